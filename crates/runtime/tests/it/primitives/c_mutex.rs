//! Tests of mutexes in C.

use crate::suite::Suite;

#[test]
fn mutexes() {
    Suite::new("mutexes.c", &[]).conform(12);
}
