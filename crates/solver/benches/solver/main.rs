//! Measures the solver on problems of the size of real traces: `cargo bench -p heisen-solver`. Arguments name the rows to
//! measure; without any, all are. Times are CPU time, so other work on the machine does not count.

mod traces;

use heisen_solver::{Answer, Limit, Solver};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use traces::Shape;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    println!("{:<34} {:>9} {:>9} {:>9}  answers", "problem", "build", "first", "median");
    for rounds in 5..=7 {
        for (above, name) in [(0, "reached"), (1, "excluded")] {
            let name = format!("fibonacci {rounds} {name}");
            if is_wanted(&name) {
                fibonacci(&name, rounds, above);
            }
        }
    }
    let small = Shape { events: 1000, threads: 4, locks: 4, locations: 40 };
    let hot = Shape { events: 1000, threads: 4, locks: 4, locations: 10 };
    let large = Shape { events: 1245, threads: 5, locks: 5, locations: 12 };
    for (name, shape, flips, steps) in [
        ("1000 events, 40 locations", small, 100, QUICK),
        ("1000 events, 10 locations", hot, 30, QUICK),
        ("1245 events, 12 locations", large, 10, LONG),
    ] {
        if is_wanted(name) {
            trace(name, shape, flips, Limit { steps: Some(steps), stop: None });
        }
    }
}

/// The CPU time of this thread until now; where the system does not tell it, the time that passed.
fn now() -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match statistics.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()) {
        Some(nanoseconds) => Duration::from_nanos(nanoseconds),
        None => BEGIN.elapsed(),
    }
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// A caller that has many questions gives up on one early.
const QUICK: u64 = 100_000;
/// Enough for an answer to nearly every question.
const LONG: u64 = 20_000_000;

fn fibonacci(name: &str, rounds: usize, above: u128) {
    let begin = now();
    let mut solver = traces::fibonacci(rounds, traces::largest_sum(rounds) + above, None);
    let built = now() - begin;
    let begin = now();
    let answer = match solver.check(&[], &Limit::default()) {
        Answer::Yes(_) => "yes",
        Answer::No(_) => "no",
        Answer::Unknown => "unknown",
    };
    println!(
        "{name:<34} {:>9} {:>9} {:>9}  {answer}, {} conflicts",
        ms(built),
        ms(now() - begin),
        "",
        solver.statistics().conflicts
    );
}

fn trace(name: &str, shape: Shape, flips: usize, limit: Limit) {
    let begin = now();
    let mut trace = traces::trace(shape, 1, None, Solver::read);
    let built = now() - begin;
    let begin = now();
    assert!(
        matches!(trace.solver.check(&trace.recorded, &Limit::default()), Answer::Yes(_)),
        "the recorded run"
    );
    let first = now() - begin;
    let (mut yes, mut no, mut unknown, mut times) = (0, 0, 0, Vec::new());
    let step = (trace.flips.len() / flips).max(1);
    for flip in trace.flips.iter().step_by(step).take(flips) {
        let begin = now();
        match trace.solver.check(flip, &limit) {
            Answer::Yes(_) => yes += 1,
            Answer::No(_) => no += 1,
            Answer::Unknown => unknown += 1,
        }
        times.push(now() - begin);
    }
    times.sort_unstable();
    let most = ms(times[times.len() - 1]);
    println!(
        "{name:<34} {:>9} {:>9} {:>9}  {yes} yes, {no} no, {unknown} unknown, longest {most}, {} triples",
        ms(built),
        ms(first),
        ms(times[times.len() / 2]),
        trace.triples
    );
}
