//! Tests of `alarm`, `setitimer` and `timer_create`.

use crate::suite::Suite;

/// The case that ends by SIGALRM.
const DEADLY: &str = "watchdog_goes_off";

#[test]
fn timers_are_as_they_are_natively() {
    Suite::new("timers.c", &[]).conform_except(13, &[DEADLY]);
}

#[test]
fn a_watchdog_goes_off_in_its_time() {
    let suite = Suite::new("timers.c", &[]);
    let code = suite.native(DEADLY).code;
    assert!(code == -1 || code == 128 + 14, "natively: {code}");
    suite.fails(DEADLY, "crash", "killed by SIGALRM");
}
