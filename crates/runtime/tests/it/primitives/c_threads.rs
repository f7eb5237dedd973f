//! Tests of threads in C: results, attributes, stacks, names and thread-local data.

use crate::suite::Suite;

#[test]
fn threads() {
    Suite::new("threads.c", &["-lm"]).conform(28);
}

#[test]
fn large_thread_local_variables() {
    Suite::new("large_tls.c", &[]).conform(1);
}

/// Stacks are reused, so memory limits only the number of threads at one time.
#[test]
fn many_threads_one_after_the_other() {
    let suite = Suite::new("sequence.c", &[]);
    assert_eq!(suite.native("12000").code, 0);
    let json = suite.check("12000", &["--executions", "1"]);
    assert_eq!(json["findings"], serde_json::json!([]), "{json:#}");
    assert_eq!((&json["verdict"], &json["complete"]), (&"clean".into(), &true.into()), "{json:#}");
}
