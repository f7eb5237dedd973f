//! Tests of semaphores, `pthread_once` and keys in C.

use crate::suite::Suite;

#[test]
fn semaphores_once_and_keys() {
    Suite::new("sem_once_key.c", &[]).conform(17);
}
