//! Tests of the signal state that a child process inherits, and of signals that a child sends.

use crate::suite::Suite;

fn children() -> Suite {
    Suite::new("children.c", &[])
}

const FORK: &str = "fork: the child process ran uncontrolled";
const SPAWN: &str = "another process was started and ran uncontrolled";
const OUTSIDE: &str = "a signal came from outside";

#[test]
fn children_have_the_signals_of_their_parent() {
    children().with_note(SPAWN).ends_with("started_programs", 0);
    children().with_note(FORK).ends_with("forked_children", 0);
    children().with_note(FORK).ends_with("vforked_children", 0);
    children().with_note(SPAWN).ends_with("spawned_children", 0);
}

#[test]
fn signals_from_outside() {
    for case in ["the_end_of_a_child", "signals_from_a_child"] {
        children().with_note(FORK).with_note(OUTSIDE).ends_with(case, 0);
    }
    children().ends_with("a_broken_pipe", 0);
}
