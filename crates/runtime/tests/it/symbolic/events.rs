//! Events: sharing, visible operations, and what threads were about to do at the end.

use super::*;
use heisen_trace::decision::DecisionKind;
use heisen_trace::{End, Op};
use std::collections::BTreeSet;

/// Visible operations: thread, operation, object if it is the number of a thread, success.
fn operations(trace: &SymbolicTrace) -> Vec<(u16, Op, Option<u64>, bool)> {
    let operation = |event: &SymbolicEvent| match event.kind {
        EventKind::Sync { op, object, ok } => {
            let names_thread = matches!(op, Op::Create | Op::Join | Op::Wake);
            Some((event.thread, op, names_thread.then_some(object), ok))
        }
        _ => None,
    };
    trace.events.iter().filter_map(operation).collect()
}

/// What threads were about to do: thread, operation, whether it was blocked.
fn pending(trace: &SymbolicTrace) -> Vec<(u16, Op, bool)> {
    let pending = |event: &SymbolicEvent| match event.kind {
        EventKind::Pending { op, blocked, .. } => Some((event.thread, op, blocked)),
        _ => None,
    };
    trace.events.iter().filter_map(pending).collect()
}

/// A counter that two threads increment without a lock. Each has a point before its write.
const COUNTER: &str = "static int x;
    static void *add(void *a) {
        V v = load(&x, 4);
        heisen_point();
        store(&x, 4, binary(ADD, 32, 32, v, constant(1)));
        return a;
    }
    int main(void) {
        pthread_t one = start(add, 0), two = start(add, 0);
        join(one); join(two);
        return !branch(binary(EQ, 32, 1, load(&x, 4), constant(2)));
    }";

#[test]
fn results_of_threads_are_written_and_read() {
    let trace = trace(
        "static void *ends(void *a) { return (void *)7; }
         static void *exits(void *a) { pthread_exit((void *)8); }
         int main(void) {
             pthread_t one = start(ends, 0), two = start(exits, 0);
             void *first, *second;
             pthread_join(one, &first);
             pthread_join(two, &second);
             V v = load(&first, 8);
             return branch(binary(EQ, 64, 1, v, constant(7))) ? 0 : 1;
         }",
    );
    let passed = |event: &SymbolicEvent| match event.kind {
        EventKind::Read { address, value, .. } if address >= RESULTS => Some((event.thread, address, value)),
        EventKind::Write { address, value, .. } if address >= RESULTS => Some((event.thread, address, value)),
        _ => None,
    };
    let passed: Vec<_> = trace.events.iter().filter_map(passed).collect();
    let who: Vec<_> = passed.iter().map(|&(thread, _, value)| (thread, value)).collect();
    assert_eq!(who, [(1, 7), (2, 8), (0, 7), (0, 8)]);
    assert_eq!((passed[0].1, passed[1].1), (passed[2].1, passed[3].1));
    assert_ne!(passed[0].1, passed[1].1);
    assert!(branches(&trace).contains(&(0, true)));
    assert!(trace.losses.is_exact(), "{:?}", trace.losses);
}

#[test]
fn shared_memory_has_events_and_other_memory_has_none() {
    let trace = trace(
        "static int x, alone;
         static void *other(void *a) {
             V v = load(&x, 4);
             store(&alone, 4, v);
             if (branch(binary(EQ, 32, 1, load(&alone, 4), constant(5)))) store(&x, 4, binary(ADD, 32, 32, v, constant(1)));
             return a;
         }
         int main(void) {
             store(&x, 4, constant(5));
             join(start(other, 0));
             return load(&x, 4).v != 6;
         }",
    );
    assert!(trace.losses.is_exact(), "{:?}", trace.losses);
    assert_eq!(accesses(&trace), [(0, true, 4, 5), (1, false, 4, 5), (1, true, 4, 6), (0, false, 4, 6)]);
    assert_eq!(branches(&trace), [(1, true)]);
}

#[test]
fn the_trace_follows_the_schedule() {
    let mut parked = Parked::new(COUNTER);
    let usual = parked.trace();
    assert_eq!(branches(&usual), [(0, true)]);
    // The second thread runs where the first has read and is about to write.
    let write =
        usual.events.iter().find(|event| event.thread == 1 && matches!(event.kind, EventKind::Write { .. }));
    let step = write.expect("the first thread writes").step;
    let lost = parked.ended(&switches(&[(step, 2)]), 1);
    assert_eq!(branches(&lost), [(0, false)]);
    let written = accesses(&lost).into_iter().filter(|access| access.1);
    assert_eq!(written.collect::<Vec<_>>(), [(2, true, 4, 1), (1, true, 4, 1)]);
    let steps: Vec<u32> = lost.events.iter().map(|event| event.step).collect();
    assert!(steps.is_sorted(), "{steps:?}");
}

#[test]
fn memory_that_becomes_shared_makes_the_plan_run_again() {
    let shared = Symbolic::default();
    let mut first = Parked::with(COUNTER, shared.clone(), true);
    let trace = first.trace();
    assert_eq!(shared.shared.lock().expect("a list").len(), 1);
    // Other zygotes know what the first has found.
    let mut second = Parked::with(COUNTER, shared, true);
    assert_eq!(second.trace(), trace);
    // An address that the execution does not know yet.
    let known: BTreeSet<u64> = [1, 2].into();
    let more = Symbolic { shared: Arc::new(known.into()), ..Symbolic::default() };
    assert_eq!(Parked::with(COUNTER, more, true).trace().events, trace.events);
}

#[test]
fn traces_are_the_same_in_one_process_and_in_many() {
    let mut forked = Parked::with(COUNTER, Symbolic::default(), false);
    let expected = forked.trace();
    let mut parked = Parked::new(COUNTER);
    for round in 0..5 {
        let run = parked.run(&Plan::new(Policy::Default));
        assert_eq!(run.forked, None, "round {round}");
        assert_eq!(run.execution.symbolic.as_deref(), Some(&*expected), "round {round}");
        let other = parked.run(&switches(&[(4 + round, 2)]));
        assert_eq!(other.forked, None);
    }
}

#[test]
fn accesses_of_different_executions_share_memory() {
    // Each execution has the write of one thread or the read of another one. In both processes of their own and one.
    const ONE_OF_BOTH: &str = "static int x, both;
        static void *writes(void *a) { if (both || heisen_choose(2) == 1) store(&x, 4, constant(1)); return a; }
        static void *reads(void *a) { if (both || heisen_choose(2) == 1) load(&x, 4); return a; }
        int main(int count, char **words) {
            both = heisen_choose(2);
            pthread_t one = start(writes, 0), two = start(reads, 0);
            join(one); join(two);
            return 0;
        }";
    for in_process in [true, false] {
        let mut parked = Parked::with(ONE_OF_BOTH, Symbolic::default(), in_process);
        let choice = |parked: &mut Parked, number: usize| {
            let decisions = parked.run(&Plan::new(Policy::Default)).execution.decisions;
            let chosen = decisions.into_iter().filter(|decision| decision.kind == DecisionKind::Choose);
            let step = chosen.map(|decision| decision.step).nth(number).expect("so many choices");
            let one = Override::new(step, DecisionKind::Choose, 1, 2);
            Plan { overrides: vec![one], ..Plan::new(Policy::Default) }
        };
        let (both, writes, reads) = (choice(&mut parked, 0), choice(&mut parked, 1), choice(&mut parked, 2));
        assert_eq!(accesses(&parked.ended(&writes, 0)), [], "no other thread has accessed it");
        assert_eq!(accesses(&parked.ended(&reads, 0)), [(2, false, 4, 0)]);
        assert_eq!(accesses(&parked.ended(&writes, 0)), [(1, true, 4, 1)]);
        assert_eq!(accesses(&parked.ended(&both, 0)), [(1, true, 4, 1), (2, false, 4, 1)]);
    }
}

#[test]
fn memory_that_is_only_read_is_not_shared() {
    let trace = trace(
        "static int numbers[4] = {1, 2, 3, 4};
         static void *reads(void *a) { if (load(&numbers[2], 4).v != 3) abort(); return a; }
         int main(void) { reads(0); join(start(reads, 0)); join(start(reads, 0)); return 0; }",
    );
    assert_eq!(accesses(&trace), []);
}

#[test]
fn accesses_of_several_granules_are_one_event() {
    let trace = trace(
        "static struct { char bytes[32]; } s __attribute__((aligned(8)));
         static void *other(void *a) {
             store(s.bytes + 5, 2, constant(0x0201));
             return a;
         }
         int main(void) {
             store(s.bytes, 8, constant(0)); store(s.bytes + 12, 4, constant(7));
             join(start(other, 0));
             V all = load(s.bytes, 8);
             // This granule is shared only because another part of the access is.
             return all.v != 0x02010000000000 || !load(s.bytes + 6, 8).id || load(s.bytes + 12, 4).v != 7;
         }",
    );
    let all = [
        (0, true, 8, 0),
        (1, true, 2, 0x201),
        (0, false, 8, 0x02010000000000),
        (0, false, 8, 0x0007_0000_0000_0002),
    ];
    assert_eq!(accesses(&trace), [&all[..1], &[(0, true, 4, 7)], &all[1..], &[(0, false, 4, 7)]].concat());
    assert!(trace.losses.is_exact());
}

#[test]
fn blocks_are_words() {
    let trace = trace(
        "static char shared[40] __attribute__((aligned(8))), alone[40] __attribute__((aligned(8)));
         static void *other(void *a) {
             copy(alone + 3, shared, 20);
             pin(load(alone + 3, 8), 8);
             copy(shared + 24, alone + 3, 3);
             return a;
         }
         int main(void) {
             fill(shared, constant(7), 40);
             join(start(other, 0));
             return load(shared + 24, 1).v != 7;
         }",
    );
    let events = accesses(&trace);
    let sizes = |thread: u16, write: bool| -> Vec<u8> {
        events.iter().filter(|event| (event.0, event.1) == (thread, write)).map(|event| event.2).collect()
    };
    assert_eq!(sizes(0, true), [8, 8, 8, 8], "the last eight bytes are not shared");
    assert_eq!(sizes(1, false).iter().map(|&size| u32::from(size)).sum::<u32>(), 20);
    assert_eq!((sizes(1, true), sizes(0, false)), (vec![3], vec![1]));
    assert_eq!(trace.losses.overwritten, 0);
}

#[test]
fn updates_of_shared_memory_are_a_read_and_a_write() {
    let trace = trace(
        "static volatile uint32_t x;
         static void *other(void *a) {
             update(1, &x, constant(2));
             compare(&x, constant(9), constant(1), 0);
             compare(&x, constant(2), constant(5), 1);
             compare(&x, constant(2), constant(5), 0);
             return a;
         }
         int main(void) { join(start(other, 0)); return load(&x, 4).v != 5; }",
    );
    let kinds: Vec<(bool, u64)> = trace
        .events
        .iter()
        .filter(|event| event.thread == 1)
        .filter_map(|event| match event.kind {
            EventKind::Read { value, update, .. } => Some((update, value)),
            EventKind::Write { address, value, .. } if address < NO_MEMORY => Some((true, 100 + value)),
            EventKind::Branch { taken, .. } => Some((true, 200 + u64::from(taken))),
            _ => None,
        })
        .collect();
    let expected =
        [(true, 0), (true, 102), (true, 2), (true, 200), (false, 2), (true, 2), (true, 201), (true, 105)];
    assert_eq!(kinds, expected);
}

#[test]
fn events_have_places_in_the_program() {
    let trace = trace(
        "static int x;
         static void *other(void *a) {
             V v = load(&x, 4); update(1, (uint32_t *)&x, v); compare((uint32_t *)&x, v, v, 0); copy(&x, &x, 4);
             fill(&x, constant(0), 4); store(&x, 4, input(\"x\", 1)); branch(binary(EQ, 32, 1, v, constant(0))); pin(v, 8);
             return a;
         }
         int main(void) { join(start(other, 0)); store(&x, 4, constant(1)); heisen_assume(1); return 0; }",
    );
    let mut places = BTreeSet::new();
    let has_place = |event: &&SymbolicEvent| !matches!(event.kind, EventKind::Sync { .. } | EventKind::Runs);
    for event in trace.events.iter().filter(has_place) {
        // Where programs lie whose addresses are not randomised.
        assert!((0x5555_5555_4000..0x5555_5556_0000).contains(&event.pc), "{event:x?}");
        places.insert(event.pc);
    }
    assert!(places.len() >= 9, "{places:x?}");
}

#[test]
fn the_initial_content_of_shared_memory_is_known() {
    let trace = trace(
        "static int x = 0x01020304;
         static void *other(void *a) { store(&x, 4, constant(1)); return a; }
         int main(void) { join(start(other, 0)); return load(&x, 4).v != 1; }",
    );
    assert_eq!(trace.initial.iter().map(|(_, byte)| *byte).collect::<Vec<_>>(), [4, 3, 2, 1]);
    let first = trace.events.iter().find_map(|event| match event.kind {
        EventKind::Write { address, .. } => Some(address),
        _ => None,
    });
    assert_eq!(Some(trace.initial[0].0), first);
}

#[test]
fn unseen_writes_of_shared_memory_are_counted() {
    let trace = trace(
        "static volatile int x;
         static void *other(void *a) { store(&x, 4, constant(1)); x = 3; return a; }
         int main(void) { join(start(other, 0)); return load(&x, 4).v != 3; }",
    );
    assert_eq!(trace.losses.overwritten, 1);
}

#[test]
fn operations_are_logged_with_the_threads_that_they_concern() {
    let trace = trace(
        "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
         static void *child(void *a) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return a; }
         static void *parent(void *a) { join(start(child, 0)); return a; }
         int main(void) {
             pthread_t first = start(parent, 0);
             join(first);
             pthread_mutex_lock(&m);
             if (pthread_mutex_trylock(&m) != EBUSY) abort();
             return 0;
         }",
    );
    let expected = [
        (0, Op::Create, Some(1), true),
        (1, Op::Start, None, true),
        (1, Op::Create, Some(2), true),
        (2, Op::Start, None, true),
        (2, Op::Lock, None, true),
        (2, Op::Unlock, None, true),
        (2, Op::End, None, true),
        (1, Op::Join, Some(2), true),
        (1, Op::End, None, true),
        (0, Op::Join, Some(1), true),
        (0, Op::Lock, None, true),
        (0, Op::TryLock, None, false),
        (0, Op::Exit, None, true),
    ];
    assert_eq!(operations(&trace), expected);
    assert_eq!(trace.threads, [None, Some((0, 1)), Some((1, 1))]);
    let keys: BTreeSet<u64> = (0..3).map(|thread| trace.thread_key(thread)).collect();
    assert_eq!(keys.len(), 3);
}

#[test]
fn a_lock_counts_when_it_is_acquired() {
    let trace = trace(
        "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
         static void *other(void *a) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return a; }
         int main(void) {
             pthread_mutex_lock(&m);
             pthread_t t = start(other, 0);
             sched_yield();
             pthread_mutex_unlock(&m);
             join(t);
             return 0;
         }",
    );
    let of_locks: Vec<(u16, Op)> = operations(&trace)
        .into_iter()
        .filter(|operation| matches!(operation.1, Op::Lock | Op::Unlock | Op::Yield | Op::Start))
        .map(|operation| (operation.0, operation.1))
        .collect();
    let expected =
        [(0, Op::Lock), (1, Op::Start), (0, Op::Yield), (0, Op::Unlock), (1, Op::Lock), (1, Op::Unlock)];
    assert_eq!(of_locks, expected);
}

#[test]
fn waits_are_logged_with_who_ends_them() {
    let trace = trace(
        "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
         static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
         static void *waits(void *a) { pthread_mutex_lock(&m); pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m); return a; }
         int main(void) {
             pthread_t one = start(waits, 0), two = start(waits, 0);
             sched_yield();
             pthread_mutex_lock(&m); pthread_cond_broadcast(&c); pthread_mutex_unlock(&m);
             join(one); join(two);
             return 0;
         }",
    );
    let all = operations(&trace);
    let at = |wanted: (u16, Op, Option<u64>, bool)| {
        all.iter().position(|one| *one == wanted).unwrap_or_else(|| panic!("no {wanted:?} in {all:#?}"))
    };
    for waiter in [1, 2] {
        let waits = at((waiter, Op::CondWait, None, true));
        let wakes = at((0, Op::Wake, Some(waiter.into()), true));
        let locks = at((waiter, Op::Relock, None, true));
        assert!(waits < wakes && wakes < locks, "{all:#?}");
    }
    assert!(at((0, Op::CondBroadcast, None, true)) < at((0, Op::Wake, Some(1), true)));
}

#[test]
fn a_wait_that_times_out_has_failed() {
    let trace = trace(
        "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
         static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
         int main(void) {
             struct timespec soon = {1, 0};
             pthread_mutex_lock(&m);
             return pthread_cond_timedwait(&c, &m, &soon) != ETIMEDOUT;
         }",
    );
    let waits: Vec<bool> =
        operations(&trace).iter().filter(|one| one.1 == Op::CondTimedWait).map(|one| one.3).collect();
    assert_eq!(waits, [true, false], "it begins, and times out");
}

#[test]
fn semaphores_and_barriers_have_counts() {
    let trace = trace(
        "static sem_t s; static pthread_barrier_t b;
         static void *other(void *a) { sem_post(&s); pthread_barrier_wait(&b); return a; }
         int main(void) {
             sem_init(&s, 0, 3); pthread_barrier_init(&b, 0, 2);
             pthread_t t = start(other, 0);
             sem_wait(&s); sem_wait(&s); pthread_barrier_wait(&b);
             join(t);
             return 0;
         }",
    );
    let counts: Vec<u64> = trace.counts.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts.len(), 2);
    assert!(counts.contains(&2) && counts.contains(&3), "{counts:?}");
}

#[test]
fn a_deadlock_shows_what_threads_were_about_to_do() {
    let text = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
         static void *other(void *x) {
             pthread_mutex_lock(&b); sched_yield(); pthread_mutex_lock(&a);
             return x;
         }
         int main(void) {
             pthread_t t = start(other, 0);
             pthread_mutex_lock(&a); sched_yield(); pthread_mutex_lock(&b);
             join(t);
             return 0;
         }";
    let run = Parked::new(text).run(&Plan::new(Policy::Default));
    assert_eq!(run.execution.end, End::Deadlock);
    let trace = run.execution.symbolic.expect("a trace");
    assert_eq!(pending(&trace), [(0, Op::Lock, true), (1, Op::Lock, true)]);
    let object = |thread: u16| {
        trace.events.iter().find_map(|event| match event.kind {
            EventKind::Pending { object, .. } if event.thread == thread => Some(object),
            _ => None,
        })
    };
    let locked = |thread: u16| {
        trace.events.iter().find_map(|event| match event.kind {
            EventKind::Sync { op: Op::Lock, object, .. } if event.thread == thread => Some(object),
            _ => None,
        })
    };
    assert_eq!((object(0), object(1)), (locked(1), locked(0)));
    let locks = operations(&trace).iter().filter(|one| one.1 == Op::Lock).count();
    assert_eq!(locks, 2, "the locks that were never acquired are not logged as operations");
}

#[test]
fn an_exit_shows_which_threads_were_blocked() {
    let trace = trace(
        "static sem_t s;
         static void *waits(void *a) { sem_wait(&s); return a; }
         int main(void) { start(waits, 0); sched_yield(); return 0; }",
    );
    assert_eq!(pending(&trace), [(1, Op::SemWait, true)]);
}

#[test]
fn zeros_of_new_blocks_are_written() {
    for (size, place) in [(2000, 1000), (8, 0)] {
        let trace = trace(&format!(
            "static void *other(void *a) {{ store(a, 4, constant(load(a, 4).v + 1)); return a; }}
             int main(void) {{
                 // The second block lies where the first one lay.
                 for (int i = 0; i < 2; i++) {{
                     char *block = calloc(1, {size});
                     join(start(other, block + {place}));
                     if (load(block + {place}, 4).v != 1) abort();
                     free(block);
                 }}
                 return 0;
             }}"
        ));
        let once = [(0, true, 8, 0), (1, false, 4, 0), (1, true, 4, 1), (0, false, 4, 1)];
        let twice = [(0, true, 8, 0), (2, false, 4, 0), (2, true, 4, 1), (0, false, 4, 1)];
        assert_eq!(accesses(&trace), [once, twice].concat());
        assert_eq!(trace.losses.overwritten, 0);
    }
}

#[test]
fn a_crash_leaves_the_trace() {
    let mut parked = Parked::new(
        "int main(void) {
             V x = input(\"x\", 1);
             branch(binary(EQ, 32, 1, x, constant(1)));
             *(volatile int *)8 = 1;
             return 0;
         }",
    );
    for _ in 0..2 {
        let run = parked.run(&Plan::new(Policy::Default));
        assert_eq!(run.execution.end, End::Signal(11));
        assert_eq!(branches(&run.execution.symbolic.expect("a trace")), [(0, true)]);
    }
}
