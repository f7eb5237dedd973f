//! Tests of input and output in C: pipes, sockets, counters and timers.

use crate::suite::Suite;

#[test]
fn descriptors() {
    Suite::new("descriptors.c", &[]).conform(17);
}

#[test]
fn sockets() {
    Suite::new("sockets.c", &[]).conform(7);
}

#[test]
fn threads_that_wait_for_each_others_pipes() {
    Suite::new("silence.c", &[]).fails("two_that_listen", "deadlock", "to read from descriptor");
}

#[test]
fn a_child_that_speaks_is_waited_for() {
    Suite::new("silence.c", &[])
        .with_note("fork: the child process ran uncontrolled")
        .with_note("input from outside")
        .ends_with("a_child_speaks", 0);
}

#[test]
fn a_lock_on_a_file_is_waited_for_aside() {
    let suite = Suite::new("silence.c", &[]);
    assert_eq!(suite.native("a_lock_on_a_file").code, 0);
    // In some schedules the thread comes too late to have to wait.
    let json = suite.check("a_lock_on_a_file", &["--strategy", "random", "--executions", "50"]);
    assert_eq!(json["findings"], serde_json::json!([]), "{json:#}");
    let said = json["not_controlled"].to_string();
    assert!(said.contains("ran on a kernel thread of its own"), "{json:#}");
}
