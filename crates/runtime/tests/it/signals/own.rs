//! Tests of signals that the runtime itself uses. Only those from the kernel or the engine are for the
//! runtime.

use crate::suite::Suite;

fn own() -> Suite {
    Suite::new("own.c", &[])
}

const FORK: &str = "fork: the child process ran uncontrolled";
const OUTSIDE: &str = "a signal came from outside";

#[test]
fn sent_signals_reach_the_handlers_of_the_program() {
    own().ends_with("handled", 0);
    own().ends_with("faults_and_sent", 0);
    for case in ["handled_from_a_child", "blocked_from_a_child"] {
        own().with_note(FORK).with_note(OUTSIDE).ends_with(case, 0);
    }
}

#[test]
fn children_are_left_without_handlers_of_the_runtime() {
    for case in ["default_in_a_child", "handled_in_a_child"] {
        own().with_note(FORK).ends_with(case, 0);
    }
}

#[test]
fn the_default_action_ends_the_program() {
    let suite = own();
    for (case, words) in [
        ("killed_by_sigsys", "killed by SIGSYS"),
        ("killed_by_sigsegv", "killed by SIGSEGV"),
        ("killed_by_sigbus", "killed by SIGBUS"),
        ("killed_by_sigtrap", "killed by SIGTRAP"),
        ("killed_by_sigstkflt", "killed by signal 16"),
        ("child_sends_sigsys", "killed by SIGSYS"),
        ("child_sends_sigsegv", "killed by SIGSEGV"),
        ("child_sends_sigstkflt", "killed by signal 16"),
    ] {
        suite.fails(case, "crash", words);
    }
}
