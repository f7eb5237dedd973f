//! Tests of signal masks, pending signals, handlers, and their effect on calls that wait.

use crate::suite::Suite;

const BAD: [&str; 4] = ["killed", "killed_by_a_fault", "killed_when_unblocked", "waits_for_nothing"];

fn signals() -> Suite {
    Suite::new("signals.c", &["-Wno-deprecated-declarations"])
}

#[test]
fn signals_are_as_they_are_natively() {
    signals().conform_except(42, &BAD);
}

#[test]
fn signals_that_kill() {
    let suite = signals();
    for (case, signal, words) in [
        (BAD[0], 15, "killed by SIGTERM"),
        (BAD[1], 11, "killed by SIGSEGV"),
        (BAD[2], 1, "killed by SIGHUP"),
    ] {
        let code = suite.native(case).code;
        assert!(code == -1 || code == 128 + signal, "{case} natively: {code}");
        suite.fails(case, "crash", words);
    }
}

#[test]
fn a_signal_that_nobody_sends() {
    signals().fails(BAD[3], "deadlock", "T0 waits for a signal, and no thread or timer is left to send it");
}
