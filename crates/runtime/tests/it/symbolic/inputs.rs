//! Inputs: their names and values, and values that the engine chooses.

use super::*;
use heisen_trace::End;
use heisen_trace::symbolic::{ChosenInput, InputKey};

/// An input: thread, name, number, bits and value.
type Read<'a> = (u16, &'a str, u32, u32, u64);

fn inputs(trace: &SymbolicTrace) -> Vec<Read<'_>> {
    fn input(event: &SymbolicEvent) -> Option<Read<'_>> {
        match &event.kind {
            EventKind::Input { name, number, width, value, .. } => {
                Some((event.thread, name, *number, *width, *value))
            }
            _ => None,
        }
    }
    trace.events.iter().filter_map(input).collect()
}

/// The keys of all inputs, in the order of their events.
fn keys(trace: &SymbolicTrace) -> Vec<InputKey> {
    (0..trace.events.len()).filter_map(|event| trace.input_key(event)).collect()
}

fn choosing(key: InputKey, value: u64) -> Plan {
    Plan { inputs: vec![ChosenInput { key, value }], ..Plan::new(Policy::Default) }
}

#[test]
fn inputs_keep_their_values_unless_others_are_chosen() {
    let mut parked = Parked::new(
        "int main(void) {
             V a = input(\"a\", 7), b = input(\"b\", 8);
             if (branch(binary(EQ, 32, 1, b, constant(42)))) exit(3);
             return a.v != 7;
         }",
    );
    let trace = parked.trace();
    assert_eq!(inputs(&trace), [(0, "a", 0, 32, 7), (0, "b", 0, 32, 8)]);
    assert_eq!(branches(&trace), [(0, false)]);
    let plan = choosing(keys(&trace)[1], 42);
    let chosen = parked.ended(&plan, 3);
    assert_eq!(inputs(&chosen), [(0, "a", 0, 32, 7), (0, "b", 0, 32, 42)]);
    assert_eq!(branches(&chosen), [(0, true)]);
    // Executions without a trace have the same inputs.
    let run = parked.0.run(Job::Plan(&plan), Detail::Decisions, None).expect("the execution ends");
    assert_eq!(run.execution.end, End::Exit(3));
    assert!(run.execution.symbolic.is_none());
    let run =
        parked.0.run(Job::Plan(&Plan::new(Policy::Default)), Detail::End, None).expect("the execution ends");
    assert_eq!(run.execution.end, End::Exit(0));
}

#[test]
fn an_input_is_named_by_its_thread() {
    let mut parked = Parked::new(
        "static void *reads(void *a) { sched_yield(); return input(\"x\", (uintptr_t)a).v == 77 ? (exit(4), a) : a; }
         int main(void) {
             pthread_t one = start(reads, (void *)10), two = start(reads, (void *)20);
             join(one); join(two);
             return 0;
         }",
    );
    let trace = parked.trace();
    assert_eq!(inputs(&trace), [(1, "x", 0, 32, 10), (2, "x", 1, 32, 20)]);
    let mut plan = choosing(keys(&trace)[1], 77);
    let chosen = parked.run(&plan).execution;
    assert_eq!(chosen.end, End::Exit(4));
    assert_eq!(inputs(&chosen.symbolic.expect("a trace")).last(), Some(&(2, "x", 1, 32, 77)));
    // The other thread comes first.
    plan.overrides = vec![Override::thread(4, 2), Override::thread(5, 2), Override::thread(6, 2)];
    let other = parked.run(&plan).execution.symbolic.expect("a trace");
    assert_eq!(inputs(&other), [(2, "x", 0, 32, 77)]);
}

#[test]
fn large_inputs_are_words() {
    let mut parked = Parked::new(
        "int main(void) {
             char bytes[20] = \"abcdefghijklmnopqrs\";
             heisen_input(bytes, 20, \"text\"); heisen_input(bytes, 0, \"nothing\"); heisen_input(bytes, 1, 0);
             pin(load(bytes + 6, 4), 8);
             return bytes[17] == 'X' ? 5 : 0;
         }",
    );
    let trace = parked.trace();
    let widths: Vec<_> =
        inputs(&trace).into_iter().map(|(_, name, number, width, _)| (name, number, width)).collect();
    assert_eq!(widths, [("text[0]", 0, 64), ("text[8]", 0, 64), ("text[16]", 0, 32), ("input", 0, 8)]);
    let run = parked.run(&choosing(keys(&trace)[2], 0x5800));
    assert_eq!(run.execution.end, End::Exit(5));
    assert_eq!(run.execution.symbolic.expect("a trace").wrong_events(), Vec::<usize>::new());
}

#[test]
fn inputs_that_are_shared_are_written() {
    let trace = trace(
        "static int x;
         static void *reads(void *a) { return branch(binary(EQ, 32, 1, load(&x, 4), constant(9))) ? a : a; }
         int main(void) { x = 9; heisen_input(&x, 4, \"x\"); join(start(reads, 0)); return 0; }",
    );
    assert_eq!(accesses(&trace), [(0, true, 4, 9), (1, false, 4, 9)]);
    assert_eq!(branches(&trace), [(1, true)]);
    assert!(trace.losses.is_exact(), "{:?}", trace.losses);
}

/// Declarations of verification tasks, which need not link without Heisen, and a call as instrumented code makes it.
const TASK: &str = "#define OPEN __attribute__((weak, noplt))
    extern OPEN int __VERIFIER_nondet_int(void); extern OPEN unsigned char __VERIFIER_nondet_uchar(void);
    extern OPEN void __VERIFIER_assume(int); extern OPEN void reach_error(void);
    static V returned(void *function, uint64_t value) {
        struct frame *f = table()->frame;
        V v = {value, f->returner == (uint64_t)function ? f->results[0] : 0};
        f->returner = 0;
        return v;
    }
    static void assume(V condition) {
        struct frame *f = table()->frame;
        f->arguments[0] = condition.id;
        if (condition.id) f->callee = (uint64_t)__VERIFIER_assume;
        __VERIFIER_assume(condition.v);
        if (returned(__VERIFIER_assume, 0).id) abort();
    }
    ";

#[test]
fn functions_of_verification_tasks() {
    let text = format!(
        "{TASK} int main(void) {{
            V x = returned(__VERIFIER_nondet_int, (uint32_t)__VERIFIER_nondet_int());
            V y = returned(__VERIFIER_nondet_uchar, __VERIFIER_nondet_uchar());
            assume(unary(ZEXT, 1, 32, binary(ULT, 32, 1, x, constant(10))));
            assume(constant(1));
            if (branch(binary(EQ, 8, 1, y, constant(200)))) reach_error();
            return 0;
        }}"
    );
    let mut parked = Parked::new(&text);
    let trace = parked.trace();
    assert!(trace.losses.is_exact(), "{:?}", trace.losses);
    assert_eq!(
        inputs(&trace),
        [(0, "__VERIFIER_nondet_int", 0, 32, 0), (0, "__VERIFIER_nondet_uchar", 0, 8, 0)]
    );
    let assumed = |trace: &SymbolicTrace| -> Vec<bool> {
        let holds = trace.events.iter().map(|event| match event.kind {
            EventKind::Assume { holds, .. } => Some(holds),
            _ => None,
        });
        holds.flatten().collect()
    };
    assert_eq!(assumed(&trace), [true]);
    let keys = keys(&trace);
    let run = parked.run(&choosing(keys[0], 10));
    assert_eq!(run.execution.end, End::Exit(0));
    let cut = run.execution.symbolic.expect("a trace");
    assert_eq!((assumed(&cut), branches(&cut)), (vec![false], vec![]));
    let run = parked.run(&choosing(keys[1], 200));
    assert_eq!((run.execution.end, run.tail.texts[0].as_str()), (End::Signal(6), "reach_error()"));
}

#[test]
fn every_function_of_verification_tasks_returns_inputs() {
    let mut parked = Parked::new(include_str!("nondet.c"));
    let trace = parked.trace();
    let all = inputs(&trace);
    assert_eq!(all.len(), 32);
    let keys = keys(&trace);
    for (index, input) in all.iter().enumerate() {
        let run = parked.run(&choosing(keys[index], 1));
        let function = if index == 31 { "__VERIFIER_error()" } else { "reach_error()" };
        assert_eq!(run.tail.texts.first().map(String::as_str), Some(function), "{input:?}");
    }
    assert_eq!(all[31], (0, "__VERIFIER_nondet_memory", 0, 24, 0x6261));
}
