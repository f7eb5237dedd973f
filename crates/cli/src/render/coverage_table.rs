//! Renders the figures of `heisen coverage` as text tables.

use crate::render::coverage::Run;
use crate::render::paint::{Paint, count, number};
use heisen_engine::check::coverage::{Counts, Sample};
use std::fmt::Write;

/// The length, in characters, of a bar that stands for all classes.
const BAR: f64 = 20.0;
/// Each row has at least this many times the executions of the row before it. The last row is an exception.
const APART: f64 = 3.0;

/// The tables of each search. For several searches, also a table that compares them.
pub fn render(runs: &[Run], paint: Paint) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for run in runs {
        let _ = one(&mut out, run, paint);
    }
    if runs.len() > 1 {
        let _ = compared(&mut out, runs, paint);
    }
    out
}

fn counts(run: &Run, counts: &Counts) -> String {
    let races = if run.record.race_check { number(counts.races) } else { "-".to_owned() };
    format!("{races:>12}  {:>10}  {:>14}", number(counts.sync_pairs), number(counts.location_pairs))
}

const HEAD: &str = "racing pairs  sync pairs  location pairs";

fn one(out: &mut String, run: &Run, paint: Paint) -> std::fmt::Result {
    writeln!(out, "{}\n", paint.strong(run.sentence()))?;
    let head = format!("preemptions  executions     classes    share  {HEAD}");
    writeln!(out, "{}", paint.faint(head))?;
    for within in &run.record.bounds {
        let share = run.share(within.counts.classes);
        writeln!(
            out,
            "{:>11}  {:>10}  {:>10}  {share:>5.1} %  {}  {}",
            format!("≤ {}", within.preemptions),
            number(within.executions),
            number(within.counts.classes),
            counts(run, &within.counts),
            "█".repeat((share / 100.0 * BAR).round() as usize)
        )?;
    }
    if let Some(bound) = run.record.bound_for(0.9) {
        let all = if run.record.exhaustive { "classes" } else { "classes seen" };
        writeln!(out, "90 % of the {all} need at most {}", count(bound.into(), "preemption"))?;
    }
    writeln!(out, "\n{}", paint.faint(format!("executions     classes  {HEAD}")))?;
    for sample in rows(&run.record.growth) {
        writeln!(
            out,
            "{:>10}  {:>10}  {}",
            number(sample.executions),
            number(sample.counts.classes),
            counts(run, &sample.counts)
        )?;
    }
    writeln!(out)
}

/// Selects about two samples for each power of ten of executions, and the last sample.
fn rows(growth: &[Sample]) -> Vec<&Sample> {
    let mut wanted = 1.0;
    let mut chosen = Vec::new();
    for (index, sample) in growth.iter().enumerate() {
        let last = index + 1 == growth.len();
        if sample.executions as f64 >= wanted || last {
            wanted = sample.executions as f64 * APART;
            chosen.push(sample);
        }
    }
    chosen
}

/// Classes over executions, with one column for each search. All searches have samples at the same numbers of
/// executions, except for their last sample.
fn compared(out: &mut String, runs: &[Run], paint: Paint) -> std::fmt::Result {
    let width = |run: &Run| run.label.chars().count().max(10);
    let head: String = runs.iter().map(|run| format!("  {:>w$}", run.label, w = width(run))).collect();
    writeln!(out, "{}\n", paint.strong("Classes over executions"))?;
    writeln!(out, "{}", paint.faint(format!("executions{head}")))?;
    let longest = runs.iter().max_by_key(|run| run.record.total().executions);
    for row in longest.map(|run| rows(&run.record.growth)).unwrap_or_default() {
        let cell = |run: &Run| {
            let sample = run.record.growth.iter().find(|sample| sample.executions == row.executions);
            let text = sample.map_or("-".to_owned(), |sample| number(sample.counts.classes));
            format!("  {text:>w$}", w = width(run))
        };
        writeln!(out, "{:>10}{}", number(row.executions), runs.iter().map(cell).collect::<String>())?;
    }
    let last = |run: &Run| format!("  {:>w$}", number(run.record.total().counts.classes), w = width(run));
    writeln!(out, "{:>10}{}", "all", runs.iter().map(last).collect::<String>())
}
