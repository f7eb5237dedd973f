//! Tests of the ways in which a process ends, and of the findings for failures.

use crate::suite::Suite;

fn ends() -> Suite {
    Suite::new("ends.c", &["-Wno-infinite-recursion"])
}

#[test]
fn good_ends() {
    let suite = ends();
    for case in [
        "exit_from_a_thread",
        "exit_at_once",
        "return_while_others_wait",
        "handlers_wait_for_threads",
        "signals_that_are_caught",
        "faults_that_are_caught",
        "overflows_that_are_caught",
    ] {
        suite.ends_with(case, 0);
    }
    suite.ends_with("exit_with_seven", 7);
    suite.ends_with("exit_quickly_with_six", 6);
    ends().with_note("fork: the child process ran uncontrolled").ends_with("fork_in_threads", 0);
}

#[test]
fn wrong_exit_status() {
    let suite = ends();
    assert_eq!(suite.native("return_five").code, 5);
    suite.fails("return_five", "exit-status", "exit status 5, not 0");
    suite.fails("exit_with_seven", "exit-status", "exit status 7, not 0");
    suite.fails("exit_quickly_with_six", "exit-status", "exit status 6, not 0");
}

#[test]
fn crashes() {
    let suite = ends();
    for (case, signal, kind, words) in [
        ("abort_in_a_thread", 6, "crash", "killed by SIGABRT"),
        ("assert_in_a_thread", 6, "assertion", "assertion `zero == 1` failed"),
        ("null_pointer", 11, "crash", "killed by SIGSEGV"),
        ("division_by_zero", 8, "crash", "killed by SIGFPE"),
        ("overflow", 11, "crash", "killed by SIGSEGV"),
        ("overflow_of_a_small_stack", 11, "crash", "killed by SIGSEGV"),
        ("overflow_of_the_main_stack", 11, "crash", "killed by SIGSEGV"),
        ("killed_by_a_signal", 15, "crash", "killed by SIGTERM"),
    ] {
        // `timeout` ends as its program did: by the same signal, or with the matching status.
        let code = suite.native(case).code;
        assert!(code == -1 || code == 128 + signal, "{case} natively: {code}");
        suite.fails(case, kind, words);
    }
}

#[test]
fn no_end_at_all() {
    let suite = ends();
    for (case, words) in [
        ("lock_twice", "T0 locks m, which it holds already"),
        ("locks_in_two_orders", "T0 waits for other, held by T1; T1 waits for m, held by T0"),
        ("read_twice", "T0 locks rw, which it holds already"),
        ("rwlocks_crosswise", "T0 waits for second, held by T2; T2 waits for first, held by T0"),
        ("read_then_write", "T0 locks first, which it holds already"),
        ("reader_that_ended", "T0 waits for first, which T1 still held when it ended"),
        (
            "waits_with_another_lock",
            "T0 waits on condition variable unsignalled, and no thread is left to signal it; T1 waits for other, held by T0",
        ),
        ("too_few_at_the_barrier", "T0 waits at "),
        ("spin_twice", "which it holds already"),
        ("lost_signal", "lost wake-up: T0 waits on condition variable c"),
    ] {
        suite.fails(case, "deadlock", words);
    }
    suite.fails("yields_for_ever", "livelock", "did not end within");
}
