//! Tests of condition variables in C.

use crate::suite::Suite;

#[test]
fn condition_variables() {
    Suite::new("conditions.c", &[]).conform(14);
}
