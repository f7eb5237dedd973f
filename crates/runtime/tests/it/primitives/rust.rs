//! Tests of threads and locks of the Rust standard library.

use crate::suite::Suite;

/// The cases that fail.
const BAD: [&str; 4] = ["panics_in_main", "unwraps_what_a_thread_panicked", "aborts", "overflows"];

#[test]
fn rust_standard_library() {
    let suite = Suite::new("standard.rs", &[]);
    suite.conform_except(21, &BAD);
    assert_eq!(suite.native(BAD[0]).code, 101);
    suite.fails(BAD[0], "panic", "main gives up");
    suite.fails(BAD[1], "panic", "thread gives up");
    suite.fails(BAD[2], "crash", "killed by SIGABRT");
    // Rust's own signal handler recognises the guard page of this thread's stack.
    let native = suite.native(BAD[3]);
    assert!(native.err.contains("has overflowed its stack"), "{}", native.err);
    suite.fails(BAD[3], "crash", "killed by SIGABRT: fatal runtime error: stack overflow");
}

/// A wake-up is called lost only if it really was. Threads that sleep in each other's locks, or that no
/// thread ever wakes, have not lost one.
#[test]
fn deadlocks_of_the_standard_library() {
    let suite = Suite::new("deadlocks.rs", &[]);
    suite.fails("locks_crosswise", "deadlock", "asleep, with no thread left to wake them: T0 on futex ");
    suite.fails("wake_up_before_the_wait", "deadlock", "lost wake-up: T0 is asleep (futex ");
    suite.fails("nobody_wakes", "deadlock", "T0 is asleep (futex ");
    let json = suite.check("nobody_wakes", &["--bound", "1"]);
    assert!(!json["findings"][0]["message"].to_string().contains("lost"), "{json:#}");
}
