//! Tests exact numbers of executions, computed by hand.
//!
//! A thread stops before each of its operations. So a thread T with operations x and y takes three steps: s
//! (from its start to just before x), x (to just before y), y (to its end). It is enabled if its next
//! operation can be done. A switch away from an enabled thread is a preemption. When a thread blocks or ends,
//! any enabled one may follow without a preemption. A schedule is an order of all steps in which each step is
//! enabled when it is taken. dfs runs each schedule once; icb runs each schedule up to its bound of
//! preemptions.
//!
//! In the following, the main thread is M. It creates a thread A (and B), does some operations itself and
//! joins. The join, j, is enabled once A has ended. So it is last, and adds nothing where M has to wait for
//! it anyway. Creating the first thread is not a decision, because no other thread exists.

use crate::suite::Suite;

fn expect(suite: &Suite, case: &str, counts: [u64; 4]) {
    suite.counts(case, counts);
}

#[test]
fn one_thread_has_one_schedule() {
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "alone", [1, 1, 1, 1]);
    // A takes a single step, s, and has then ended. M waits for it.
    expect(&suite, "a_thread_of_no_steps", [1, 1, 1, 1]);
}

#[test]
fn independent_operations() {
    // M: l u j, A: s l u, on different mutexes (or reading the same lock). M's two steps interleave with A's
    // three: C(5, 2) = 10 orders.
    // - 0 preemptions: M l u, waits, A: 1.
    // - 1: M is preempted before l or before u, A runs to its end: 2.
    // - 2: M is preempted at one of two steps, A after one or two of its steps, M then continues until it
    //   waits: 2 · 2 = 4.
    // - 3: M is preempted before l and again before u, A after one or two steps: 2.
    // - 4: the same, and A once more in between: 1.
    //
    // 1 + 2 + 4 + 2 + 1 = 10.
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "two_mutexes", [1, 3, 7, 10]);
    expect(&suite, "two_readers", [1, 3, 7, 10]);
}

#[test]
fn operations_that_exclude_each_other() {
    // The same with one mutex (or a reader and a writer). If M locks it first, A's s comes before l, between
    // l and u, or after u: 3 orders. If A locks it first: s l u, then M: 1.
    // - 0 preemptions: s after u.
    // - 1: s between l and u, where M is preempted before u and A blocks; or all of A before l.
    // - 2: s before l, where M is preempted before l, and A before its own l.
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "the_same_mutex", [1, 3, 4, 4]);
    expect(&suite, "reader_and_writer", [1, 3, 4, 4]);
}

#[test]
fn two_threads_and_their_creator() {
    // M: c (create B), jA, jB. A: s l u, B: s l u, on different mutexes. A exists from the beginning, B after
    // c.
    //
    // All: c comes after i = 0..3 of A's steps. The remaining r = 3 - i steps of A, followed by jA, are a
    // chain of r + 1 steps. B's steps are a chain of 3, and jB is last: C(r + 4, 3) orders. C(4,3) + C(5,3) +
    // C(6,3) + C(7,3) = 4+10+20+35 = 69.
    //
    // 0 preemptions: M does c and waits for A. A first: then B, M or M, B. B first: then A, M. 3.
    //
    // 1 preemption: 1 + 2 + 2 + 4 = 9.
    // - M is preempted before c, A runs to its end, M does c and jA, waits for B: 1.
    // - A first and preempted at one of its two steps: B, A, M: 2.
    // - A first to its end, then B, preempted at one of two steps for M, which does jA and waits: 2.
    // - B first and preempted at one of two steps: A to its end, then B, M or M, B: 4.
    //
    // 2 preemptions: 6 + 1 + 8 + 4 + 1 = 20.
    // - M is preempted before c, and A at one of two steps: M does c and waits; then the three ways of bound
    //   0: 6.
    // - M is preempted before c, A runs to its end, M does c and is preempted before jA, which is enabled: B:
    //   1.
    // - A first and preempted (2), B preempted for A (2), A to its end, then B, M or M, B (2): 8.
    // - B first and preempted (2), A preempted (2) for B: B to its end, A, M: 4.
    // - B preempted after its first step, A to its end, B again and preempted after its second step, for M:
    //   1.
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "two_threads", [3, 3 + 9, 3 + 9 + 20, 69]);
}

#[test]
fn operations_that_wait_for_each_other() {
    let suite = Suite::new("counts.c", &[]);
    // M: p (post), A: s w (wait), w after p: s p w, where M is preempted before p and A blocks; or p s w.
    expect(&suite, "semaphore", [1, 2, 2, 2]);
    // M holds the mutex. M: W (unlocks and waits), R (locks again), u; A: s l g u (g is the signal). A's l
    // comes after W, and R after A's u. So only s and W can change places. For s W, M is preempted before W
    // and A blocks.
    expect(&suite, "condition", [1, 2, 2, 2]);
    // M: b, A: s b at a barrier of two. b s b: M waits, A releases it: no preemption. s b b: M is preempted,
    // A waits, M releases it: 1. s M.b A.b: M is preempted, A is preempted: 2. In each order, the thread that
    // releases the other may be preempted before it continues itself: one preemption more.
    expect(&suite, "meeting", [1, 3, 5, 6]);
    // M: o, A: s o. Either may run the initialiser, which has no steps: three orders as at the barrier.
    expect(&suite, "initialiser", [1, 2, 3, 3]);
}

#[test]
fn time_and_yields() {
    let suite = Suite::new("counts.c", &[]);
    // A: s p (post), M: w (wait with a limit). M can only continue by a time-out, so choosing M or A costs no
    // preemption: A s p, M w; or M times out, A s p. With a preemption: A s, preempted before p, M times out,
    // A p.
    expect(&suite, "timeout", [2, 3, 3, 3]);
    // The same with a limit of an hour: M does not time out while A can continue, and A always can.
    expect(&suite, "far_timeout", [1, 1, 1, 1]);
    let json = suite.check("far_timeout", &["--strategy", "dfs", "--timeouts", "2h"]);
    assert_eq!(json["executions"], 3, "{json:#}");
    // A: s, which sets the flag. M yields: A runs, or M once more without a preemption. At the second yield
    // in a row, M has to give way to A, which was enabled all the time.
    expect(&suite, "yielding", [2, 2, 2, 2]);
}

#[test]
fn the_choice_of_who_is_woken() {
    // A and B each post a semaphore and then sleep on a futex. M waits for both posts and wakes one thread,
    // then the other. Without preemptions:
    // - M waits, so A or B is first (2); it posts and sleeps.
    // - Then M takes one post and waits, or the other thread runs directly (2).
    // - Both sleep. The first wake wakes A or B (2), the second one the other.
    // - M waits for A: A first, then B, M or M, B; or B first, then A (3).
    //
    // 2 · 2 · 2 · 3 = 24.
    let json = Suite::new("counts.c", &[]).check("waiters", &["--bound", "0"]);
    assert_eq!((&json["executions"], &json["verdict"]), (&24.into(), &"clean".into()), "{json:#}");
}
