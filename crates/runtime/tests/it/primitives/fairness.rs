//! Tests of threads that wait without blocking. Heisen recognises loops that retry at once, and reports
//! endless ones with their cycle.

use crate::suite::Suite;
use heisen_testkit::usual_or_nightly;
use serde_json::Value;

fn suite() -> Suite {
    Suite::new("fairness.c", &["-D_GNU_SOURCE"])
}

/// The finding of a case at bound 0.
fn finding(suite: &Suite, case: &str, options: &[&str]) -> Value {
    let json = suite.check(case, &[&["--bound", "0"], options].concat());
    json["findings"][0].clone()
}

/// The steps of a cycle: thread, operation, and whether it fails.
fn steps(finding: &Value) -> Vec<String> {
    let steps = finding["cycle"]["steps"].as_array().expect("a cycle");
    let text = |s: &Value| s.as_str().expect("a text").to_owned();
    let step = |s: &Value| {
        let place = text(&s["place"]);
        assert!(place.contains("fairness.c:") || place.contains("cases.h:"), "{place}");
        let object = if s["object"] == "" { String::new() } else { format!("({})", text(&s["object"])) };
        let fails = if s["ok"] == true { "" } else { " fails" };
        format!("{} {}{object}{fails}", text(&s["thread"]), text(&s["op"]))
    };
    steps.iter().map(step).collect()
}

#[test]
fn spinning_is_yielding() {
    // M holds something and releases it in its step u. A: s, then attempts t1, t2, …, of which the first one
    // after u succeeds. At t4 three attempts have failed, so t4 counts as a yield, and so does t5. At t5 A
    // has to give way to M, which was enabled since t4. So u comes before s, t1, t2, t3, t4 or t5: 6 orders.
    //
    // A switch from M before u is a preemption, and so is one from A before t1, t2 or t3. A switch at t4 or
    // t5 costs nothing. 0 preemptions: u before s. 1: u before t4 or t5.
    let suite = suite();
    for case in
        ["trylock", "spin_trylock", "tryrdlock", "trywrlock", "trywait", "poll_at_once", "read_at_once"]
    {
        suite.counts(case, [1, 3, 6, 6]);
    }
    // A ends with its only step, s. It comes before t1, t2, t3, t4 or t5 of M; the last two cost no
    // preemption.
    suite.counts("tryjoin", [2, 5, 5, 5]);
}

#[test]
fn a_loop_that_does_something_else_does_not_spin() {
    let json = suite().check("looks_in_between", &["--bound", "1", "--steps", "200"]);
    let notes = json["not_controlled"].as_array().expect("sentences");
    assert!(
        notes.iter().all(|note| !note.as_str().is_some_and(|n| n.starts_with("a loop that"))),
        "{json:#}"
    );
}

#[test]
fn a_loop_that_gives_up_is_searched() {
    suite().fails("four_attempts", "assertion", "it gave up");
}

#[test]
fn the_cycle_of_a_livelock() {
    let suite = suite();
    let alone = finding(&suite, "lone_spinner", &[]);
    assert_eq!(
        (&alone["kind"], &alone["cycle"]["order"]),
        (&"livelock".into(), &"exact".into()),
        "{alone:#}"
    );
    assert_eq!(steps(&alone), ["T0 trylock(m) fails"]);
    assert!(
        alone["message"].as_str().is_some_and(|m| m.contains("and was in the very same state at steps")),
        "{alone:#}"
    );
    let both = finding(&suite, "both_yield", &["--steps", "500"]);
    assert_eq!((&both["kind"], &both["cycle"]["order"]), (&"livelock".into(), &"exact".into()), "{both:#}");
    assert_eq!(steps(&both), ["T0 yield", "T1 yield"]);
    // More steps than the event log holds.
    let long = finding(&suite, "both_yield", &["--steps", "1500000"]);
    assert_eq!(steps(&long), ["T0 yield", "T1 yield"]);
}

#[test]
fn loops_of_different_lengths() {
    let found = finding(&suite(), "different_loops", &["--steps", "20000"]);
    assert_eq!(found["kind"], "livelock", "{found:#}");
    let steps = steps(&found);
    let posts = steps.iter().filter(|s| *s == "T0 sem_post(sem)").count();
    let waits = steps.iter().filter(|s| *s == "T0 sem_wait(sem)").count();
    assert_eq!((posts, waits), (12, 12), "{found:#}");
    assert!(steps.contains(&"T1 yield".to_owned()), "{found:#}");
}

/// An execution that exceeds the step limit is a livelock only if it returns to the same state.
#[test]
fn too_long_is_no_livelock() {
    let suite = suite();
    for case in ["many_messages", "both_count", "waits_for_an_hour", "reads_zeros", "draws_until_zero"] {
        let json = suite.check(case, &["--bound", "0", "--executions", "1", "--steps", "2000"]);
        assert_eq!(
            (&json["verdict"], &json["complete"]),
            (&"incomplete".into(), &false.into()),
            "{case}: {json:#}"
        );
        let said = json["not_controlled"].to_string();
        let words = "too long: 1 execution not explored beyond 2000 steps (raise --steps";
        assert!(said.contains(words), "{case}: {json:#}");
    }
}

/// Threads that take turns may remain in step, so that one never gets a lock. That is not a livelock, because
/// any other fair schedule ends it.
#[test]
fn keeping_step_is_no_livelock() {
    // The number of steps decides where each thread is when they begin to take turns.
    for steps in ["2000", "2001", "2002", "2003"] {
        let json = suite().check("keeps_step", &["--bound", "0", "--steps", steps]);
        let steps = json["steps"].as_u64().expect("a number");
        assert_eq!((&json["findings"], &json["executions"]), (&Value::Array(vec![]), &1.into()), "{json:#}");
        assert!(steps < 1200, "it ends soon when chance decides: {json:#}");
    }
}

/// Within a few steps, threads may block each other's progress by chance.
#[test]
fn few_steps_show_no_livelock() {
    for steps in ["36", "40", "60", "80", "120"] {
        let options = ["--strategy", "random", "--executions", "500", "--seed", "1", "--steps", steps];
        let json = suite().check("keeps_step", &options);
        assert_eq!(json["findings"], Value::Array(vec![]), "{steps}: {json:#}");
    }
}

#[test]
fn a_spinner_is_no_good_samaritan() {
    let found = finding(&suite(), "spinner_among_others", &[]);
    assert_eq!((&found["kind"], &found["thread"]), (&"good-samaritan".into(), &"T0".into()), "{found:#}");
    assert!(
        found["message"].as_str().is_some_and(|m| m.starts_with("T0 spins without yielding")),
        "{found:#}"
    );
    assert_eq!(steps(&found), ["T0 trylock(m) fails", "T2 yield"]);
}

#[test]
fn loops_that_wait_for_memory() {
    let suite = suite();
    // As for a loop that yields, see `counts::time_and_yields`. A, which sets the flag, runs at the first
    // yield, or at the second one, where M has to give way.
    suite.counts("reads_a_flag", [2, 2, 2, 2]);
    let noted = self::suite().with_note("a loop waits for memory to change");
    // A loop around an atomic instruction is recognised by that instruction.
    let tried = self::suite().with_note("a loop repeats the same steps without effect");
    tried.ends_with_under_heisen("spin_lock_of_its_own", 0);
    let json = suite
        .check("spin_lock_of_its_own", &["--patch", "none", "--strategy", "random", "--executions", "50"]);
    assert!(json["not_controlled"].to_string().contains("a loop waits for memory to change"), "{json:#}");
    noted.ends_with_under_heisen("waits_for_a_sleeper", 0);
    for carrier in ["fibers", "kernel"] {
        let json = suite.check("spin_lock_of_its_own", &["--strategy", "dfs", "--carrier", carrier]);
        let got = (&json["verdict"], &json["complete"], &json["diverged"]);
        assert_eq!(got, (&"clean".into(), &true.into(), &0.into()), "{json:#}");
    }
    // A loop that only computes is not changed.
    let json = suite.check("counts_for_long", &["--bound", "0"]);
    assert_eq!((&json["verdict"], &json["executions"]), (&"clean".into(), &1.into()), "{json:#}");
    assert_eq!(json["not_controlled"].as_array().map(Vec::len), Some(1), "{json:#}");
}

#[test]
fn loops_that_wait_and_compute() {
    let suite = suite();
    // As `reads_a_flag`.
    suite.counts("counts_meanwhile", [2, 2, 2, 2]);
    let cases = ["tells_its_rounds", "takes_and_gives_back", "alternates", "counts_for_another"];
    for case in &cases[..usual_or_nightly(2, 4)] {
        for patch in [&[][..], &["--patch", "none"]] {
            let json = suite.check(case, &[&["--bound", "1"], patch].concat());
            let got = (&json["findings"].as_array().map(Vec::len), &json["diverged"]);
            assert_eq!(got, (&Some(0), &0.into()), "{case}: {json:#}");
        }
    }
}

/// Loops that Heisen cannot prove to wait are forced to yield in the end.
#[test]
fn loops_that_are_not_understood() {
    let suite = suite();
    for case in &["backs_off", "backs_off_at_random", "counts_up_and_down"][..usual_or_nightly(1, 3)] {
        // Each execution takes as long as `--hang`.
        let json = suite.check(case, &["--bound", usual_or_nightly("0", "1"), "--hang", "200ms"]);
        let got = (&json["verdict"], &json["complete"], &json["diverged"]);
        assert_eq!(got, (&"clean".into(), &true.into(), &0.into()), "{case}: {json:#}");
        let noted = json["not_controlled"].to_string();
        assert!(noted.contains("a loop ran for longer than --hang"), "{case}: {json:#}");
    }
}

#[test]
fn memory_that_nobody_writes() {
    let suite = suite();
    suite.fails("nobody_writes", "livelock", "waits in a loop for memory that nobody changes");
    let found = finding(&suite, "nobody_writes", &[]);
    assert_eq!(steps(&found), ["T1 yield", "T2 yield"]);
}
