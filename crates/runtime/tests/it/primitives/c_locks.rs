//! Tests of read-write locks, spin locks and barriers in C.

use crate::suite::Suite;

#[test]
fn locks_and_barriers() {
    Suite::new("locks.c", &[]).conform(14);
}
