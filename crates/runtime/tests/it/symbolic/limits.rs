//! Limits: traces that outgrow their memory, and programs with children.

use super::*;
use heisen_trace::End;
use heisen_wire::symbolic::Header;

/// A trace with room for this many events, and twice as many nodes.
fn room(events: u64) -> Symbolic {
    Symbolic { memory: size_of::<Header>() as u64 + events * (40 + 2 * 32), ..Symbolic::default() }
}

const BRANCHES: &str = "int main(void) {
    V x = input(\"x\", 500);
    for (int i = 0; i < 1000; i++) branch(binary(ULT, 32, 1, x, constant(i)));
    return 0;
}";

#[test]
fn a_trace_that_outgrows_its_memory_is_cut_at_an_event() {
    for events in [0, 1, 2, 50] {
        let mut parked = Parked::with(BRANCHES, room(events), true);
        for _ in 0..2 {
            let run = parked.run(&Plan::new(Policy::Default));
            assert_eq!(run.execution.end, End::Exit(0));
            let trace = run.execution.symbolic.expect("a trace");
            assert!(trace.losses.full && !trace.losses.is_exact());
            assert_eq!(trace.events.len() as u64, events);
            assert_eq!(trace.wrong_events(), Vec::<usize>::new());
        }
    }
    let trace = Parked::with(BRANCHES, room(1100), true).trace();
    assert!(!trace.losses.full);
    assert_eq!(branches(&trace).len(), 1000);
}

#[test]
fn large_blocks_of_zeros_take_no_memory() {
    trace(
        "static char *volatile block;
         static int x;
         static void *other(void *a) { store(&x, 4, constant(1)); return a; }
         int main(void) {
             join(start(other, 0));
             if (load(&x, 4).v != 1 || !(block = calloc(1, 1 << 29))) abort();
             char line[200];
             long kilobytes = -1;
             FILE *status = fopen(\"/proc/self/status\", \"r\");
             while (fgets(line, sizeof line, status)) sscanf(line, \"RssShmem: %ld\", &kilobytes);
             return kilobytes < 0 || kilobytes > 100000;
         }",
    );
}

#[test]
fn children_log_nothing() {
    let trace = trace(
        "#include <sys/wait.h>
         int main(void) {
             V x = input(\"x\", 3);
             int status;
             pid_t child = fork();
             if (child == 0) { branch(binary(EQ, 32, 1, x, constant(3))); _exit(input(\"y\", 5).v); }
             waitpid(child, &status, 0);
             branch(binary(EQ, 32, 1, x, constant(4)));
             return WEXITSTATUS(status) != 5;
         }",
    );
    assert_eq!(branches(&trace), [(0, false)]);
}

#[test]
fn programs_without_symbolic_settings_have_no_trace() {
    let runtime = embedded::runtime().expect("the runtime is written");
    let program = Program::find(compiled(BRANCHES).as_os_str(), Vec::new()).expect("a program");
    let mut zygote =
        Zygote::start(&runtime, &program, &RunConfig::default(), Output::Dropped).expect("it is parked");
    let run = zygote.run(Job::Plan(&Plan::new(Policy::Default)), Detail::Symbolic, None).expect("it ends");
    assert_eq!(run.execution.end, End::Exit(0));
    assert!(run.execution.symbolic.is_none());
}
