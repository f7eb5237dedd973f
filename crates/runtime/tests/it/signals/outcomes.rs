//! Tests programs with several allowed outcomes. Heisen must find exactly the allowed ones. Other tests
//! compare numbers of executions with those computed by hand, and replay findings.

use crate::suite::Suite;
use heisen_testkit::{heisen, replays, run};
use std::collections::BTreeSet;

fn races() -> Suite {
    Suite::new("races.c", &[])
}

/// The exit statuses of all schedules.
fn outcomes(suite: &Suite, case: &str) -> BTreeSet<i32> {
    let json = suite.check(case, &["--strategy", "dfs", "--keep-going", "--expect-exit", "77"]);
    assert_eq!(json["complete"], true, "{case}: {json:#}");
    let findings = json["findings"].as_array().expect("findings");
    let status =
        |message: &str| message.split_whitespace().find_map(|word| word.trim_end_matches(',').parse().ok());
    findings
        .iter()
        .map(|finding| {
            assert_eq!(finding["kind"], "exit-status", "{case}: {finding:#}");
            finding["message"].as_str().and_then(status).expect("a status")
        })
        .collect()
}

#[test]
fn all_outcomes_and_no_others() {
    let suite = races();
    for (case, allowed) in [
        ("taken_by_any", &[0, 1, 2][..]),
        ("handled_at_any_step", &[0, 1, 2]),
        ("alarm_against_work", &[0, 1]),
    ] {
        let native = suite.native(case).code;
        assert!(allowed.contains(&native), "{case} natively: {native}");
        assert_eq!(outcomes(&suite, case), allowed.iter().copied().collect(), "{case}");
    }
}

/// By default the main thread takes a signal that is sent to the process.
#[test]
fn the_main_thread_comes_first() {
    let json = races().check("taken_by_any", &["--executions", "1"]);
    assert_eq!(json["findings"], serde_json::json!([]), "{json:#}");
}

/// As in `primitives/counts.rs`, M is the main thread and A another one; T is a timer. Steps are l (lock), u
/// (unlock), s (start).
#[test]
fn executions_by_hand() {
    let suite = races();
    // M: l u, then waits for A; A: s k (kill), its last step. The handler runs before the next step of M and
    // adds no step. C(4, 2) = 6 orders.
    // - 0 preemptions: l u s k.
    // - 1: M is preempted before l or before u, A runs to its end: 2.
    // - 2: M is preempted at one of two steps, A before k: 2.
    // - 3: s l k u.
    suite.counts("one_signal", [1, 3, 5, 6]);
    // M sets T, then does l u and a long sleep, and exits. T fires before l or before u, each with a
    // preemption. Or it fires in the sleep, without one. Or it fires after the sleep and before M exits, with
    // a preemption. Or it never fires, without one.
    suite.counts("one_alarm", [2, 5, 5, 5]);
}

#[test]
fn findings_that_need_a_signal_replay() {
    let suite = races();
    for (case, kind, words) in [
        ("handler_that_locks", "deadlock", "locks m, which it holds already"),
        ("lost_before_pause", "deadlock", "waits for a signal"),
        ("audit_by_timer", "assertion", "sum_seen == 2"),
    ] {
        suite.fails(case, kind, words);
        let json = suite.check(case, &[]);
        let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
        let replay = || {
            let mut command = heisen(suite.directory.path());
            run(command.args(["replay", "--trace", &schedule])).expect(1).out
        };
        let first = replay();
        assert!(first.contains("handler("), "{first}");
        for _ in 1..replays() {
            assert_eq!(replay(), first, "{case}");
        }
    }
}
