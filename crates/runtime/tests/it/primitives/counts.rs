//! Exact numbers of executions, worked out by hand.
//!
//! A thread stops before each of its operations. So a thread T with operations x and y takes three steps: s (from its
//! start to just before x), x (to just before y), y (to its end). It is enabled if the operation that comes next can be
//! done. To leave a thread that is enabled is a preemption; when a thread blocks or ends, any enabled one may follow
//! for free. A schedule is an order of all steps in which each is enabled when it is taken; dfs runs each once, icb each
//! with at most so many preemptions.
//!
//! In what follows main is M, creates a thread A (and B), does some operations itself and joins: the join, j, is
//! enabled once A has ended, so it is last and adds nothing where M has to wait for it anyway. Creating the first
//! thread is no decision, as there is nobody else.

use crate::suite::Suite;

fn expect(suite: &Suite, case: &str, counts: [u64; 4]) {
    suite.counts(case, counts);
}

#[test]
fn one_thread_has_one_schedule() {
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "alone", [1, 1, 1, 1]);
    // A takes a single step, s, after which it has ended; M waits for it in between.
    expect(&suite, "a_thread_of_no_steps", [1, 1, 1, 1]);
}

#[test]
fn independent_operations() {
    // M: l u j, A: s l u, on different mutexes (or reading the same lock): M's two steps anywhere among A's three,
    // C(5, 2) = 10 orders.
    // 0 preemptions: M l u, waits, A: 1.
    // 1: M is left before l or before u, A runs to its end: 2.
    // 2: M is left at one of two places, A after one or two of its steps, M then goes on until it waits: 2 · 2 = 4.
    // 3: M is left before l and again before u, A after one or two steps: 2. 4: and A once more in between: 1.
    // 1 + 2 + 4 + 2 + 1 = 10.
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "two_mutexes", [1, 3, 7, 10]);
    expect(&suite, "two_readers", [1, 3, 7, 10]);
}

#[test]
fn operations_that_exclude_each_other() {
    // The same with one mutex (or a reader and a writer). If M has it first, A's s is before l, between l and u, or
    // after u: 3 orders. If A has it first: s l u, then M: 1.
    // 0 preemptions: s after u. 1: s between l and u, where M is left before u and A blocks; or all of A before l.
    // 2: s before l, where M is left before l, and A before its own.
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "the_same_mutex", [1, 3, 4, 4]);
    expect(&suite, "reader_and_writer", [1, 3, 4, 4]);
}

#[test]
fn two_threads_and_their_creator() {
    // M: c (create B), jA, jB. A: s l u, B: s l u, on different mutexes; A exists from the beginning, B after c.
    //
    // All: c comes after i = 0..3 of A's steps. Then the r = 3 - i that are left, followed by jA, are a chain of r + 1
    // steps, B's are one of 3, and jB is last: C(r + 4, 3) orders. C(4,3) + C(5,3) + C(6,3) + C(7,3) = 4+10+20+35 = 69.
    //
    // 0 preemptions: M does c and waits for A. A first: then B, M or M, B. B first: then A, M. 3.
    //
    // 1: M is left before c, A runs to its end, M does c and jA, waits for B: 1.
    //    A first and left at one of its two places: B, A, M: 2. Or A first to its end, then B, left at one of two
    //    places for M, which does jA and waits: 2.
    //    B first and left at one of two places: A to its end, then B, M or M, B: 4.  1 + 2 + 2 + 4 = 9.
    //
    // 2: M is left before c, and A at one of two places: M does c and waits; the three ways of bound 0 to go on: 6. Or A
    //    runs to its end, M does c and is left before jA, which it could do: B: 1.
    //    A first and left (2), B left for A (2), A to its end, then B, M or M, B (2): 8.
    //    B first and left (2), A left (2) for B: B to its end, A, M: 4. Or B left after its first step, A to its end, B
    //    again and left after its second, for M: 1.  6 + 1 + 8 + 4 + 1 = 20.
    let suite = Suite::new("counts.c", &[]);
    expect(&suite, "two_threads", [3, 3 + 9, 3 + 9 + 20, 69]);
}

#[test]
fn operations_that_wait_for_each_other() {
    let suite = Suite::new("counts.c", &[]);
    // M: p (post), A: s w (wait), w after p: s p w, where M is left before p and A blocks; or p s w.
    expect(&suite, "semaphore", [1, 2, 2, 2]);
    // M holds the mutex. M: W (gives it up and waits), R (has it again), u; A: s l g u (g the signal). A's l comes after
    // W, R after A's u. So only s and W may change places; for s W, M is left before W and A blocks.
    expect(&suite, "condition", [1, 2, 2, 2]);
    // M: b, A: s b at a barrier of two. b s b: M waits, A lets it go on: no preemption. s b b: M is left, A waits, M
    // lets it go on: 1. s M.b A.b: M is left, A is left: 2. In each, the one who lets the other go on may be left before it
    // goes on itself: one preemption more.
    expect(&suite, "meeting", [1, 3, 5, 6]);
    // M: o, A: s o, where either may run the initialiser, which has no steps: three orders as at the barrier.
    expect(&suite, "initialiser", [1, 2, 3, 3]);
}

#[test]
fn time_and_yields() {
    let suite = Suite::new("counts.c", &[]);
    // A: s p (post), M: w (wait with a limit). M cannot go on but by running out of time, so to run it or A is a free
    // choice: A s p, M w; or M times out, A s p. With a preemption: A s, left before p, M times out, A p.
    expect(&suite, "timeout", [2, 3, 3, 3]);
    // The same with a limit of an hour: M does not time out while A can go on, and A always can.
    expect(&suite, "far_timeout", [1, 1, 1, 1]);
    let json = suite.check("far_timeout", &["--strategy", "dfs", "--timeouts", "2h"]);
    assert_eq!(json["executions"], 3, "{json:#}");
    // A: s, which raises the flag. M yields: A, or M once more for free; at the second yield in a row M has to give
    // way to A, which could run all the time.
    expect(&suite, "yielding", [2, 2, 2, 2]);
}

#[test]
fn the_choice_of_who_is_woken() {
    // A and B: post a semaphore, then sleep on a futex; M waits for both posts and wakes one, then another.
    // Without preemptions: M waits, so A or B first (2), which posts and sleeps; then M, which takes one and waits, or
    // the other directly (2). Both asleep, the first wake wakes A or B (2), the second the one that is left. M waits
    // for A: A first, then B, M or M, B; or B first, then A (3). 2 · 2 · 2 · 3 = 24.
    let json = Suite::new("counts.c", &[]).check("waiters", &["--bound", "0"]);
    assert_eq!((&json["executions"], &json["verdict"]), (&24.into(), &"clean".into()), "{json:#}");
}
