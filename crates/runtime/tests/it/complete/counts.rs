//! Exact numbers of executions, worked out by hand as in `tests/runtime/counts.rs`: main is M, its thread A.

#[test]
fn a_robust_mutex_is_handed_over() {
    // M: l u j. A: s l, and it ends with the mutex. A's l cannot lie between M's, as M has the mutex then; whatever else
    // comes, everyone goes on. Of the C(4, 2) = 6 orders of l u and s l that leaves out two: 4.
    // 0 preemptions: l u s l. 1: M is left before l, A ends, M is told; or M is left before u, where A's s runs and A
    // then waits. 2: M is left before l, and A before its own.
    super::suite("counted.c").counts("robust", [1, 3, 4, 4]);
}

#[test]
fn a_request_comes_between_two_looks() {
    // M: c j. A: s t t, but it ends at the first t after c. So c is before s, before the first t, before the second,
    // or after it: 4 orders.
    // 0 preemptions: c first. 1: M is left before c until A has ended. 2: and A is left before one of the two t.
    super::suite("counted.c").counts("tested", [1, 2, 4, 4]);
}

#[test]
fn a_request_wakes_a_thread_that_waits() {
    // M: c j. A: s w, where w cannot be done before c; and after c, A ends in s already, as a request that is there at
    // the beginning of a wait keeps it from waiting. c s, or s c w: 2 orders. The second leaves M before c.
    let suite = super::suite("counted.c");
    suite.counts("blocked", [1, 2, 2, 2]);
    // With a post after c, A is cancelled in every order, too, and the semaphore keeps its value. They are not counted:
    // the unwinder has a lock of its own, whose points come in between.
    suite.ends_with("posted", 0);
}

#[test]
fn a_request_wakes_a_thread_that_waits_for_a_condition() {
    // M: c j. A: s l w (to unlock and wait), r (to lock again), u (in its handler). c is before s, l or w, and A then
    // goes on to w, where it does not wait but ends with u; or it is after w, and r and u follow. 4 orders. 0 preemptions: c first. 1: M is left before c, A waits: s l w c r u. 2: A is left before l or w.
    super::suite("counted.c").counts("waited", [1, 2, 4, 4]);
}
