//! Tests that each undefined use of a synchronisation object is reported in one sentence. All other tests
//! show that correct programs get no such report.

use crate::suite::Suite;

#[test]
fn misuses_are_reported() {
    let not_owner = "a lock was unlocked by a thread that does not hold it";
    let free = "a lock was unlocked that nobody holds";
    let held = "a lock was destroyed while a thread holds it";
    let waited = "a synchronisation object was destroyed while a thread waits on it";
    let joined = "a thread was joined twice, or joined though it is detached";
    let detached = "a thread was detached twice, or detached though it is joined";
    let unlocked = "a condition variable was waited on with a mutex that the caller does not hold";
    let destroyed = "a synchronisation object was used after it was destroyed";
    let told = [
        ("unlocked_by_another", not_owner),
        ("unlocked_though_free", free),
        ("unlocked_twice", free),
        ("destroyed_while_held", held),
        ("condition_destroyed_with_a_waiter", waited),
        ("mutex_of_a_waiter_destroyed", waited),
        ("destroyed_too_early", waited),
        ("joined_twice", joined),
        ("joined_by_two", joined),
        ("joined_though_detached", joined),
        ("detached_twice", detached),
        ("waits_without_the_mutex", unlocked),
        ("waits_with_the_mutex_of_another", unlocked),
        // For other locks, only the kind of misuse matters here.
        ("rwlock_unlocked_though_free", "nobody holds"),
        ("rwlock_unlocked_by_another", "does not hold it"),
        ("rwlock_destroyed_while_held", "was destroyed while a thread holds it"),
        ("barrier_destroyed_with_a_waiter", "was destroyed while a thread waits on it"),
        ("mutex_locked_after_its_end", destroyed),
        ("mutex_tried_after_its_end", destroyed),
        ("mutex_unlocked_after_its_end", destroyed),
        ("mutex_destroyed_twice", destroyed),
        ("condition_signalled_too_late", destroyed),
        ("condition_signalled_after_its_end", destroyed),
        ("condition_waited_on_after_its_end", destroyed),
        ("rwlock_locked_after_its_end", destroyed),
        ("semaphore_posted_after_its_end", destroyed),
        ("barrier_used_after_its_end", destroyed),
        ("barrier_not_initialised", "a barrier was used that is not initialised"),
        ("barrier_initialised_twice", "a barrier was initialised that is initialised already"),
        ("barrier_initialised_with_a_waiter", "was initialised while a thread waits on it"),
        ("mutex_initialised_with_a_waiter", "was initialised while a thread waits on it"),
    ];
    let suite = Suite::new("misuses.c", &[]);
    assert_eq!(suite.cases().len(), told.len());
    for (case, sentence) in told {
        suite.fails(case, "misuse", sentence);
    }
}

/// A new object in the memory of a destroyed one is a different object.
#[test]
fn objects_may_begin_anew() {
    Suite::new("lives.c", &[]).conform(5);
}
