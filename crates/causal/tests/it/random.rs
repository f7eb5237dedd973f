//! Compares the search with all schedules and all inputs of random programs.

use crate::toy::generator::{Features, program};
use crate::toy::machine::Over;
use crate::toy::oracle::{Outcomes, classes, outcomes};
use crate::toy::program::Program;
use crate::toy::runner::{Run, run};
use heisen_causal::{Causal, Options, Status};
use heisen_trace::End;

/// What a search has shown.
pub struct Searched {
    pub outcomes: Outcomes,
    pub status: Status,
    /// How many executions it took to the first failure.
    pub first: Option<u64>,
}

/// Searches to the end, or up to so many executions.
pub fn search(program: &Program, most: u64) -> Searched {
    let mut causal = Causal::new(Options::default());
    let (mut outcomes, mut first) = (Outcomes::default(), None);
    while let Some(plan) = causal.next_plan() {
        let Run { trace, end, over, stuck } = run(program, &plan);
        if std::env::var_os("SEED").is_some() {
            println!("PLAN {:?} {:?}", plan.overrides, plan.inputs);
            for e in &trace.events {
                println!("   {} step {} pc {} {:?}", e.thread, e.step, e.pc, e.kind);
            }
            println!("{end:?}");
        }
        causal.done(&plan, &trace, &end);
        if end != End::Exit(0) {
            first = first.or(Some(causal.status().executions));
        }
        outcomes.failures.extend(over.filter(|over| !matches!(over, Over::Exit | Over::Ignored)));
        outcomes.stuck.extend(stuck);
        if causal.status().executions >= most {
            break;
        }
    }
    Searched { outcomes, status: causal.status(), first }
}

#[derive(Debug, Default)]
struct Totals {
    ms: u128,
    programs: u64,
    failing: u64,
    deadlocks: u64,
    executions: u64,
    questions: u64,
    classes: u64,
    executions_of_counted: u64,
}

fn compare(seeds: std::ops::Range<u64>, features: Features) {
    let mut totals = Totals::default();
    for seed in seeds {
        let program = program(seed, features);
        let Some(expected) = outcomes(&program, 10_000) else { continue };
        let t = std::time::Instant::now();
        let Searched { outcomes, status, .. } = search(&program, 5_000);
        totals.ms += t.elapsed().as_micros();
        let context = || format!("seed {seed}, {features:?}: {program:?}\n{status:?}");
        assert_eq!(outcomes, expected, "{}", context());
        assert!(status.is_proof(), "{}", context());
        assert_eq!(status.diverged, 0, "{}", context());
        totals.programs += 1;
        totals.failing += u64::from(!expected.failures.is_empty());
        totals.deadlocks += u64::from(!expected.stuck.is_empty());
        totals.executions += status.executions;
        totals.questions += status.questions;
        if let Some(classes) = classes(&program, 300) {
            assert!(status.executions <= classes as u64, "{classes} classes, {}", context());
            totals.classes += classes as u64;
            totals.executions_of_counted += status.executions;
        }
    }
    println!("{features:?}: {totals:?}");
}

fn seeds(normal: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("HEISEN_NIGHTLY").is_some() { 40 * normal } else { normal }
}

#[test]
fn branches() {
    compare(seeds(100), Features::Branches);
}

#[test]
fn mutexes() {
    compare(seeds(100), Features::Mutexes);
}

#[test]
fn memory() {
    compare(seeds(100), Features::Memory);
}

#[test]
fn inputs() {
    compare(seeds(100), Features::Inputs);
}

#[test]
fn conditions() {
    compare(seeds(100), Features::Conditions);
}

#[test]
fn one_seed() {
    if let Ok(seed) = std::env::var("SEED") {
        let seed: u64 = seed.parse().unwrap();
        compare(seed..seed + 1, Features::Conditions);
    }
}
