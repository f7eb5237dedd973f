//! Tests exact numbers of executions, computed by hand as in `primitives/counts.rs`. The main thread is M,
//! its thread A.

#[test]
fn a_robust_mutex_is_handed_over() {
    // M: l u j. A: s l, and it ends while it holds the mutex. A's l cannot come between M's l and u, because
    // M holds the mutex then. Of the C(4, 2) = 6 orders of l u and s l that excludes two: 4.
    // - 0 preemptions: l u s l.
    // - 1: M is preempted before l, A ends, and M gets EOWNERDEAD. Or M is preempted before u, A's s runs,
    //   and A waits.
    // - 2: M is preempted before l, and A before its own l.
    super::suite("counted.c").counts("robust", [1, 3, 4, 4]);
}

#[test]
fn a_request_comes_between_two_looks() {
    // M: c j. A: s t t, but it ends at the first t after c. So c comes before s, before the first t, before
    // the second t, or after it: 4 orders.
    // - 0 preemptions: c first.
    // - 1: M is preempted before c until A has ended.
    // - 2: also A is preempted before one of the two t.
    super::suite("counted.c").counts("tested", [1, 2, 4, 4]);
}

#[test]
fn a_request_wakes_a_thread_that_waits() {
    // M: c j. A: s w, where w is not enabled before c. After c, A already ends in s, because a pending
    // request ends a wait at its start. c s, or s c w: 2 orders. The second one preempts M before c.
    let suite = super::suite("counted.c");
    suite.counts("blocked", [1, 2, 2, 2]);
    // With a post after c, A is also cancelled in every order, and the semaphore keeps its value. The
    // executions are not counted, because the unwinder's own lock adds scheduling points.
    suite.ends_with("posted", 0);
}

#[test]
fn a_request_wakes_a_thread_that_waits_for_a_condition() {
    // M: c j. A: s l w (unlock and wait), r (lock again), u (in its handler). If c comes before s, l or w, A
    // continues to w, where it does not wait but ends with u. If c comes after w, r and u follow. 4 orders.
    // - 0 preemptions: c first.
    // - 1: M is preempted before c, A waits: s l w c r u.
    // - 2: also A is preempted before l or w.
    super::suite("counted.c").counts("waited", [1, 2, 4, 4]);
}
