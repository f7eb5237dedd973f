//! Tests that the same check gives the same result, whatever else runs and however many executions run at a
//! time. Also tests that the same schedule gives the same output.

use crate::suite::Suite;
use heisen_testkit::{heisen, replays, run, timeless, usual_or_nightly};
use serde_json::Value;

/// The result of a check without its duration.
fn result(suite: &Suite, case: &str, strategy: &[&str], jobs: &str) -> Value {
    let mut options = vec!["--strategy"];
    options.extend(strategy);
    options.extend(["--jobs", jobs]);
    timeless(suite.check(case, &options))
}

#[test]
fn the_same_check_gives_the_same_result() {
    let suite = Suite::new("prints.c", &[]);
    let strategies: [&[&str]; 13] = [
        &["icb", "--bound", "2"],
        &["icb", "--keep-going", "--executions", "500"],
        &["dfs", "--executions", "500"],
        &["best", "--executions", "500"],
        &["random", "--seed", "7", "--executions", "300"],
        &["pct", "--seed", "7", "--executions", "300"],
        &["burst", "--seed", "7", "--executions", "300"],
        &["fair-pct", "--seed", "7", "--executions", "300"],
        &["pos", "--seed", "7", "--executions", "300"],
        &["surw", "--seed", "7", "--executions", "300"],
        &["delay", "--seed", "7", "--executions", "300"],
        &["guided", "--seed", "7", "--executions", "300"],
        &["portfolio", "--seed", "7", "--executions", "300"],
    ];
    for strategy in strategies {
        for (case, bug) in [("two_payments", true), ("payments_at_once", false)] {
            let first = result(&suite, case, strategy, "1");
            assert_eq!(first["verdict"] == "bug", bug, "{first:#}");
            for jobs in usual_or_nightly(&["2"][..], &["1", "2", "2"]) {
                assert_eq!(result(&suite, case, strategy, jobs), first, "{case} {strategy:?} --jobs {jobs}");
            }
        }
    }
}

#[test]
fn other_seeds_give_other_schedules() {
    // Otherwise the test above would show little about random schedules.
    let suite = Suite::new("prints.c", &[]);
    let found = |strategy: &str, seed: &str| {
        let json = result(&suite, "two_payments", &[strategy, "--seed", seed], "2");
        json["findings"][0]["executions_to_find"].as_u64().expect("a number")
    };
    for strategy in ["random", "burst", "pct", "fair-pct", "pos", "surw", "delay", "guided", "portfolio"] {
        let first = found(strategy, "0");
        let differs = |seed: u64| found(strategy, &seed.to_string()) != first;
        assert!((1..8).any(differs), "{strategy}: {first} for each seed");
    }
}

#[test]
fn the_same_schedule_gives_the_same_output() {
    let suite = Suite::new("prints.c", &[]);
    for strategy in [&["icb"][..], &["random", "--seed", "3"]] {
        let json = result(&suite, "two_payments", strategy, "2");
        let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
        let replay = || {
            let mut command = heisen(suite.directory.path());
            let ran = run(command.args(["replay", "--trace", &schedule])).expect(1);
            (ran.out, ran.err)
        };
        let first = replay();
        let both = format!("{}{}", first.0, first.1);
        assert!(both.contains("balance 1") && both.contains("1: 0 at 17672256"), "{both}");
        for _ in 1..replays() {
            assert_eq!(replay(), first);
        }
    }
}

/// The trace must name the wait that timed out, not the step before it.
#[test]
fn a_trace_tells_who_ran_out_of_time() {
    let suite = Suite::new("trace.c", &[]);
    let json = suite.check("gives_up", &[]);
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
    let mut command = heisen(suite.directory.path());
    let trace = run(command.args(["replay", "--trace", schedule])).expect(1).out;
    // A line holds the step, the thread, the operation, perhaps "(not done)", and the place.
    let events: Vec<String> = trace
        .lines()
        .take_while(|line| line.starts_with(' '))
        .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>())
        .map(|words| words[..words.len() - 1].join(" "))
        .collect();
    let expected = [
        "T0 create(holds)",
        "T0 lock(m)",
        "T0 cond_timedwait(c)",
        "T0 unlock(m)",
        "T1 start",
        "T1 lock(n)",
        "T1 sleep",
        "T1 unlock(n)",
        "T0 cond_timedwait(c) (not done)",
        "T0 relock(m)",
        "T0 unlock(m)",
        "T0 join(T1)",
        "T0 assert",
    ];
    assert_eq!(events, expected, "{trace}");
}
