//! Tests the rest of the threading interface, beyond `primitives`: robust and priority mutexes, cancellation,
//! C11 threads, named semaphores and further futex operations. Also C++ initialisers, `fork` handlers, locked
//! streams and ten thousand threads.
//!
//! As in `primitives`, every case runs natively, under random schedules, and under all schedules with at most
//! one preemption. Where the standard allows several results, the case asserts that it gets one of them.

mod counts;

use crate::suite::{Suite, unusual_caveats};
use heisen_testkit::usual_or_nightly;
use serde_json::{Value, json};
use std::path::Path;

fn suite(name: &str) -> Suite {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/complete/programs").join(name);
    Suite::from_text_of(&file, name, &[])
}

/// The caveats of a check of a case, without the sentence that is always there.
fn notes(suite: &Suite, case: &str) -> Vec<Value> {
    let json = suite.check(case, &["--executions", "3"]);
    assert_eq!(json["findings"], json!([]), "{case}: {json:#}");
    unusual_caveats(&json).into_iter().map(Value::from).collect()
}

#[test]
fn robust_mutexes() {
    suite("robust.c").conform(9);
}

#[test]
fn priority_mutexes() {
    let suite = suite("priority.c");
    assert_eq!(suite.native("inherited").code, 0);
    assert_eq!(suite.native("ceilings").code, 0);
    let suite = suite.with_note("priority mutex: treated as an ordinary mutex");
    suite.ends_with("inherited", 0);
    // Natively, locking a `PTHREAD_PRIO_PROTECT` mutex requires a real-time priority.
    suite.ends_with_under_heisen("protected", 0);
    assert_eq!(notes(&suite, "ceilings"), [] as [Value; 0]);
}

#[test]
fn cancellation() {
    let suite = suite("cancel.c");
    suite.conform_except(15, &["asynchronous"]);
    assert_eq!(suite.native("asynchronous").code, 0);
    let said = notes(&suite, "asynchronous");
    assert!(
        said.len() == 1
            && said[0].as_str().is_some_and(|s| s.starts_with("asynchronous cancellation: refused"))
    );
}

#[test]
fn c11_threads() {
    suite("c11.c").conform(7);
}

#[test]
fn named_semaphores() {
    suite("named.c").with_note("process-shared").conform(2);
}

#[test]
fn values_of_semaphores() {
    let suite = suite("values.c");
    let failing = ["sees_1", "sees_2", "sees_3", "destroyed_with_a_waiter"];
    suite.conform_except(2, &failing);
    for case in &failing[..3] {
        suite.fails(case, "assertion", "seen != value");
    }
    suite.fails(failing[3], "misuse", "was destroyed while a thread waits on it");
}

#[test]
fn futex_operations() {
    let suite = suite("futexes.c");
    let refused = ["pi", "requeue_pi", "fd"];
    suite.conform_except(6, &refused);
    let names = [&["LOCK_PI", "UNLOCK_PI"][..], &["WAIT_REQUEUE_PI", "CMP_REQUEUE_PI"], &["futex FD"]];
    for (case, names) in refused.iter().zip(names) {
        assert_eq!(suite.native(case).code, 0, "{case}");
        let said = notes(&suite, case);
        let sentence = said[0].as_str().expect("a sentence");
        assert!(said.len() == 1 && names.iter().all(|name| sentence.contains(name)), "{case}: {said:?}");
    }
}

#[test]
fn initialisers_and_forced_unwinding_in_cpp() {
    let suite = suite("guards.cpp");
    suite.conform_except(5, &["recursive_initialiser"]);
    // libstdc++ detects this natively, too.
    assert_ne!(suite.native("recursive_initialiser").code, 0);
    suite.fails("recursive_initialiser", "crash", "recursive_init_error");
}

#[test]
fn handlers_around_fork() {
    suite("forks.c").with_note("fork: the child process").conform(3);
}

#[test]
fn locked_streams() {
    let suite = suite("streams.c");
    suite.conform_except(4, &["crosswise"]);
    suite.fails("crosswise", "deadlock", "flockfile");
}

#[test]
fn ten_thousand_threads() {
    let suite = suite("many.c");
    for case in &["at_once", "one_after_the_other"][..usual_or_nightly(1, 2)] {
        let json = suite.check(case, &["--strategy", "random", "--executions", "2"]);
        assert_eq!((&json["findings"], &json["executions"]), (&json!([]), &2.into()), "{case}: {json:#}");
        // With so many threads a decision does not record all choices, but every choice was possible.
        let said = notes(&suite, case);
        let about_choices = |note: &Value| {
            note.as_str().is_some_and(|s| s.starts_with("choices: a decision had more of them"))
        };
        assert!(said.iter().all(about_choices), "{case}: {said:?}");
    }
}
