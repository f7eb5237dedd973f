//! Functions built from `select`, `release` and `choose`.
//!
//! They are the library of CONCURRIT (PLDI'13), figure 8, and the patterns of section 5.1.

use crate::language::CALLS;
use crate::predicate::Predicate;
use crate::run::{Run, Stop};
use crate::threads::Threads;
use heisen_engine::patch::Named;
use heisen_wire::script::kind;
use std::collections::BTreeSet;

fn either(one: Predicate, other: Predicate) -> Predicate {
    Predicate::Or(Box::new(one), Box::new(other))
}

fn both(one: Predicate, other: Predicate) -> Predicate {
    Predicate::And(Box::new(one), Box::new(other))
}

const ENDS: Predicate = Predicate::Kinds(1 << kind::END);
const STARTS: Predicate = Predicate::Kinds(1 << kind::START);

/// Every access, every call, and the end of a thread: switching there explores all interleavings.
fn everything() -> Predicate {
    either(Predicate::Kinds(1 << kind::READ | 1 << kind::WRITE | CALLS), ENDS)
}

/// `WaitForThread`.
pub fn wait_for_thread(run: &mut Run, threads: &Threads, until: &Predicate) -> Result<usize, Stop> {
    run.select(threads, Some(until)).map(|event| event.thread)
}

/// As [`wait_for_thread`], for the n-th such event. Any of the threads may have the events before; the script
/// does not get to know these threads.
pub fn wait_for_nth(run: &mut Run, threads: &Threads, until: &Predicate, nth: usize) -> Result<usize, Stop> {
    for _ in 1..nth {
        let known = run.known.clone();
        let event = run.select(threads, Some(until))?;
        if event.kind != kind::END {
            run.release(&Threads::one(event.thread))?;
        }
        run.known = known;
    }
    wait_for_thread(run, threads, until)
}

/// `WaitForDistinctThreads`.
pub fn wait_for_distinct_threads(run: &mut Run, count: usize, until: &Predicate) -> Result<Vec<usize>, Stop> {
    let mut threads = Threads::any();
    let mut found = Vec::new();
    while found.len() < count {
        let thread = wait_for_thread(run, &threads, until)?;
        threads = threads.minus(&Threads::one(thread));
        found.push(thread);
    }
    Ok(found)
}

/// `RunThreadsUntil`.
pub fn run_until(run: &mut Run, threads: &Threads, until: &Predicate) -> Result<(), Stop> {
    if threads.any {
        return Err(Stop::Wrong("run_until needs threads by name".into()));
    }
    run.release(threads)?;
    let mut left = threads.clone();
    while !left.list.is_empty() {
        let thread = wait_for_thread(run, &left, until)?;
        left.list.remove(&thread);
    }
    Ok(())
}

/// As [`run_until`], to the n-th such event of each thread.
pub fn run_until_nth(run: &mut Run, threads: &Threads, until: &Predicate, nth: usize) -> Result<(), Stop> {
    (0..nth).try_for_each(|_| run_until(run, threads, until))
}

/// As [`run_until`], and then one more event of any kind, so that the first one has happened.
pub fn run_through(run: &mut Run, threads: &Threads, until: &Predicate) -> Result<(), Stop> {
    run_until(run, threads, until)?;
    for &thread in &threads.list {
        if !run.has_ended(thread) {
            run.release(&Threads::one(thread))?;
            run.select(&Threads::one(thread), None)?;
        }
    }
    Ok(())
}

/// `ChooseThread`, among the threads that have not ended and are not blocked, which is known here.
pub fn choose_thread(run: &mut Run, threads: &[usize]) -> Result<usize, Stop> {
    let left: Vec<usize> = threads.iter().copied().filter(|thread| !run.has_ended(*thread)).collect();
    if left.is_empty() {
        return Err(Stop::Infeasible("all threads to choose from have ended".into()));
    }
    let able: Vec<usize> = left.into_iter().filter(|thread| run.is_able(*thread)).collect();
    match able.as_slice() {
        [] => Err(Stop::Infeasible("all threads to choose from are blocked".into())),
        [one] => Ok(*one),
        _ if run.is_covered() => Err(Stop::Covered),
        able => {
            // The usual choice: the thread that ran last continues.
            let usual = able.iter().position(|thread| run.last == Some(*thread)).unwrap_or(0);
            Ok(able[run.oracle.choose_or(able.len(), usual)])
        }
    }
}

/// The numbers below `count`, in an order that the oracle chooses.
pub fn permute(run: &mut Run, count: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..count).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let chosen = if left.len() > 1 { run.oracle.choose(left.len()) } else { 0 };
        order.push(left.remove(chosen));
    }
    order
}

/// Whether one of the threads is in one of the functions.
fn any_inside(run: &Run, threads: &[usize], functions: &[usize]) -> bool {
    threads.iter().any(|thread| functions.iter().any(|function| run.depth(*thread, *function) > 0))
}

fn numbers(run: &Run, functions: &[String]) -> Result<Vec<usize>, Stop> {
    functions.iter().map(|name| run.number(&Named::Function(name.clone()))).collect()
}

/// `SearchAll`: every interleaving of `count` threads.
pub fn search_all(run: &mut Run, count: usize) -> Result<(), Stop> {
    let threads = wait_for_distinct_threads(run, count, &STARTS)?;
    interleave(run, &threads, &everything())
}

/// As `SearchAll`, but each thread runs to its end without a switch (section 2.1).
pub fn search_seq(run: &mut Run, count: usize) -> Result<(), Stop> {
    let threads = wait_for_distinct_threads(run, count, &STARTS)?;
    interleave(run, &threads, &ENDS)
}

fn interleave(run: &mut Run, threads: &[usize], until: &Predicate) -> Result<(), Stop> {
    while threads.iter().any(|thread| !run.has_ended(*thread)) {
        let thread = choose_thread(run, threads)?;
        run_until(run, &Threads::one(thread), until)?;
    }
    Ok(())
}

/// Where a search within functions switches threads: at accesses and calls inside, and at returns.
fn within(functions: &[usize], at: Predicate) -> Predicate {
    let inside = functions.iter().map(|f| Predicate::Inside(*f, 1)).reduce(either);
    let left = functions.iter().map(|f| Predicate::Named(kind::RETURN, *f)).reduce(either);
    match (inside, left) {
        (Some(inside), Some(left)) => either(either(both(at, inside), left), ENDS),
        _ => either(at, ENDS),
    }
}

/// `SearchInFunc`: every interleaving of `count` threads while one of them is in one of the functions.
pub fn search_in_func(run: &mut Run, count: usize, functions: &[String]) -> Result<(), Stop> {
    let at = Predicate::Kinds(1 << kind::READ | 1 << kind::WRITE | CALLS);
    in_func(run, count, functions, at)
}

/// `SearchInFuncLS`: as `SearchInFunc`, but switches threads only at control points.
pub fn search_in_func_large_steps(run: &mut Run, count: usize, functions: &[String]) -> Result<(), Stop> {
    in_func(run, count, functions, Predicate::Kinds(1 << kind::POINT))
}

fn in_func(run: &mut Run, count: usize, functions: &[String], at: Predicate) -> Result<(), Stop> {
    let (threads, functions) = enter(run, count, functions)?;
    let until = within(&functions, at);
    loop {
        // A thread that has left the functions no longer matters.
        let inside: Vec<usize> =
            threads.iter().copied().filter(|thread| any_inside(run, &[*thread], &functions)).collect();
        if inside.is_empty() {
            return Ok(());
        }
        let thread = choose_thread(run, &inside)?;
        run_until(run, &Threads::one(thread), &until)?;
    }
}

/// Waits for `count` threads that enter one of the functions. Returns the threads, and the numbers of the
/// functions.
fn enter(run: &mut Run, count: usize, functions: &[String]) -> Result<(Vec<usize>, Vec<usize>), Stop> {
    let functions = numbers(run, functions)?;
    let Some(enters) = functions.iter().map(|f| Predicate::Named(kind::ENTER, *f)).reduce(either) else {
        return Err(Stop::Wrong("the list of functions is empty".into()));
    };
    Ok((wait_for_distinct_threads(run, count, &enters)?, functions))
}

/// `SearchInBuggy`: from here on, every interleaving of some threads while one of them is in one of the
/// functions.
pub fn search_in_buggy(run: &mut Run, threads: &[usize], functions: &[String]) -> Result<(), Stop> {
    let functions = numbers(run, functions)?;
    while any_inside(run, threads, &functions) {
        let thread = choose_thread(run, threads)?;
        run_until(run, &Threads::one(thread), &everything())?;
    }
    Ok(())
}

/// `SearchInFuncCB`: as `SearchInFunc` with at most `bound` contexts, whose lengths are chosen; then one
/// thread after the other.
pub fn context_bounded(run: &mut Run, bound: usize, count: usize, functions: &[String]) -> Result<(), Stop> {
    let (threads, functions) = enter(run, count, functions)?;
    let until = everything();
    for _ in 0..bound {
        if !any_inside(run, &threads, &functions) {
            break;
        }
        let thread = choose_thread(run, &threads)?;
        loop {
            run_until(run, &Threads::one(thread), &until)?;
            let over =
                run.has_ended(thread) || !run.is_able(thread) || !any_inside(run, &threads, &functions);
            if over || run.oracle.choose(2) == 1 {
                break;
            }
        }
    }
    for &thread in &threads {
        if !run.has_ended(thread) {
            run_until(run, &Threads::one(thread), &ENDS)?;
        }
    }
    Ok(())
}

/// `ExactSchedule`: runs each thread up to its event, in order.
pub fn exact_schedule(run: &mut Run, steps: &[(BTreeSet<usize>, Predicate)]) -> Result<(), Stop> {
    for (threads, until) in steps {
        run_until(run, &Threads { any: false, list: threads.clone() }, until)?;
    }
    Ok(())
}
