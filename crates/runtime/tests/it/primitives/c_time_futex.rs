//! Tests of clocks, sleeps, yields and futexes in C.

use crate::suite::Suite;
use std::time::{Duration, Instant};

/// Cases that take long natively. Their assertions hold only under the default schedule.
const SLOW: [&str; 3] = ["sleepers_in_order", "timeouts_in_order", "a_thousand_seconds"];
/// The case that reads an uncontrolled clock.
const REAL: &str = "processor_time";

#[test]
fn clocks_sleeps_and_yields() {
    Suite::new("times.c", &[]).conform_except(11, &[&SLOW[..], &[REAL]].concat());
}

#[test]
fn processor_time_is_noted() {
    Suite::new("times.c", &[]).with_note("processor time: ").ends_with(REAL, 0);
}

#[test]
fn sleepers_come_in_the_order_of_their_times() {
    let suite = Suite::new("times.c", &[]);
    for case in &SLOW[..2] {
        let json = suite.check(case, &["--executions", "1"]);
        assert_eq!(json["findings"], serde_json::json!([]), "{case}: {json:#}");
        // Other schedules than the default one break the order.
        let json = suite.check(case, &["--strategy", "random", "--executions", "200"]);
        assert_eq!(json["findings"][0]["kind"], "assertion", "{case}: {json:#}");
    }
}

#[test]
fn sleeps_take_no_time() {
    let suite = Suite::new("times.c", &[]);
    let began = Instant::now();
    let json = suite.check(SLOW[2], &["--executions", "1"]);
    assert_eq!(json["findings"], serde_json::json!([]), "{json:#}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    suite.ends_with_under_heisen(SLOW[2], 0);
}

#[test]
fn futexes() {
    Suite::new("futexes.c", &[]).conform(11);
}
