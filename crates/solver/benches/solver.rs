//! Measures the solver on problems of the size of real traces: `cargo bench -p heisen-solver`. Arguments name the rows to
//! measure; without any, all are.

mod traces;

use heisen_solver::{Answer, Limit};
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
    for (name, shape, flips) in [
        ("1000 events, 40 locations", small, 100),
        ("1000 events, 10 locations", hot, 100),
        ("1245 events, 12 locations", large, 100),
    ] {
        if is_wanted(name) {
            trace(name, shape, flips);
        }
    }
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

fn limit() -> Limit {
    Limit { steps: Some(20_000_000), stop: None }
}

fn fibonacci(name: &str, rounds: usize, above: u128) {
    let begin = Instant::now();
    let mut solver = traces::fibonacci(rounds, traces::largest_sum(rounds) + above);
    let built = begin.elapsed();
    let begin = Instant::now();
    let answer = match solver.check(&[], &limit()) {
        Answer::Yes(_) => "yes",
        Answer::No(_) => "no",
        Answer::Unknown => "unknown",
    };
    println!("{name:<34} {:>9} {:>9} {:>9}  {answer}", ms(built), ms(begin.elapsed()), "");
}

fn trace(name: &str, shape: Shape, flips: usize) {
    let begin = Instant::now();
    let mut trace = traces::trace(shape, 1);
    let built = begin.elapsed();
    let begin = Instant::now();
    assert!(matches!(trace.solver.check(&[], &limit()), Answer::Yes(_)), "the recorded run");
    let first = begin.elapsed();
    let (mut yes, mut no, mut times) = (0, 0, Vec::new());
    let step = (trace.flips.len() / flips).max(1);
    for flip in trace.flips.iter().step_by(step).take(flips) {
        let begin = Instant::now();
        match trace.solver.check(flip, &limit()) {
            Answer::Yes(_) => yes += 1,
            Answer::No(_) => no += 1,
            Answer::Unknown => {}
        }
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let most = ms(times[times.len() - 1]);
    println!(
        "{name:<34} {:>9} {:>9} {:>9}  {yes} yes, {no} no of {}, longest {most}, {} triples",
        ms(built),
        ms(first),
        ms(times[times.len() / 2]),
        times.len(),
        trace.triples
    );
}
