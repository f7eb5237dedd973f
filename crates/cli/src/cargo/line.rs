//! Renders the results of tests as text: a line for each test, in the style of cargo, the failures, and a
//! summary.

use super::result::{Tested, Verdict};
use crate::render::caveat;
use crate::render::check::screens;
use crate::render::github;
use crate::render::paint::{Paint, count, number};
use crate::render::place::from_here;
use heisen_engine::check::session::Finished;
use heisen_engine::check::{Empty, Kind};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The command that resumes a search.
pub const COMMAND: &str = "heisen";
/// The replay command on the screens of failures.
pub const REPLAY: &str = "cargo heisen replay";

/// The line of a test.
pub fn line(paint: Paint, tested: &Tested) -> String {
    let head = format!("test {} ...", tested.name);
    match &tested.verdict {
        Verdict::Ignored => format!("{head} ignored"),
        Verdict::Interrupted(_) => format!("{head} interrupted"),
        Verdict::Error(_) => format!("{head} {}", paint.bad("not explored")),
        Verdict::Explored(explored, schedules) => match explored.outcome.findings().next() {
            None => format!("{head} {} ({}, {})", paint.good("ok"), extent(explored), cost(explored)),
            Some(finding) => {
                let more = match explored.outcome.findings().count() {
                    1 => String::new(),
                    n => format!(", {n} findings"),
                };
                format!(
                    "{head} {} ({}, execution {}{more}) schedule: {}",
                    paint.bad("FAILED"),
                    count(finding.preemptions.into(), "preemption"),
                    number(finding.executions_to_find),
                    schedules.first().map_or(PathBuf::new(), |path| from_here(path)).display()
                )
            }
        },
    }
}

/// How much a search without findings explored.
fn extent(explored: &Finished) -> String {
    let Finished { options, outcome, .. } = explored;
    match outcome.empty {
        Some(Empty::OneThread) => return "nothing to explore: one thread".to_owned(),
        Some(Empty::NoTest) => return "nothing to explore: no test".to_owned(),
        Some(Empty::Contradiction) => return "no execution meets the assumptions".to_owned(),
        Some(Empty::NoPointInScope) => return "no scheduling point in the scope".to_owned(),
        None => {}
    }
    let below = if outcome.has_caveats() { ", see below" } else { "" };
    if options.strategy == Kind::Causal {
        return match (outcome.complete(), outcome.status.rounds) {
            (true, None) => format!("all paths{below}"),
            (true, Some(rounds)) => {
                format!("all paths, {} of a waiting loop{below}", count(rounds.into(), "round"))
            }
            (false, _) => format!("not all paths{below}"),
        };
    }
    if outcome.status.exhaustive && outcome.complete() {
        return format!("all schedules{below}");
    }
    match options.strategy {
        Kind::Best if outcome.preemption_bound().is_none() => "not all schedules".to_owned(),
        Kind::Icb | Kind::Best => match outcome.preemption_bound() {
            Some(bound) if outcome.complete() => format!("bound {bound}{below}"),
            Some(bound) => format!("bound {bound}, the next in part"),
            None if outcome.status.has_gaps() => "not all executions followed".to_owned(),
            None => "bound 0 in part".to_owned(),
        },
        Kind::Dfs => "not all schedules".to_owned(),
        Kind::Bpor if outcome.complete() => format!("bound {}{below}", options.bound),
        Kind::Dpor | Kind::Bpor => "not all classes".to_owned(),
        kind => format!("{}, seed {}", kind.name(), options.seed),
    }
}

fn cost(explored: &Finished) -> String {
    let tally = &explored.outcome.tally;
    format!("{}, {:.2} s", count(tally.executions, "execution"), tally.time.as_secs_f64())
}

/// The details of a test that failed or could not be explored; `None` for other tests.
pub fn details(paint: Paint, tested: &Tested) -> Option<String> {
    match &tested.verdict {
        Verdict::Explored(explored, schedules) if tested.failed() => {
            let schedules: Vec<PathBuf> = schedules.iter().map(|path| from_here(path)).collect();
            Some(screens(paint, &explored.outcome, &schedules, REPLAY))
        }
        Verdict::Error(error) => Some(format!("{error}\n\n")),
        _ => None,
    }
}

/// The details of all tests that failed or could not be explored.
pub fn failures(paint: Paint, all: &[Tested]) -> String {
    let mut out = String::new();
    for tested in all {
        if let Some(details) = details(paint, tested) {
            let _ = writeln!(out, "---- {} ({}) ----\n{details}", tested.name, tested.binary);
        }
    }
    if out.is_empty() { out } else { format!("\nfailures:\n\n{}", out.trim_end_matches('\n')) + "\n" }
}

/// The annotations of all tests that failed or could not be explored.
pub fn annotations(all: &[Tested]) -> String {
    let mut out = String::new();
    for tested in all {
        let name = &format!("{} ({})", tested.name, tested.binary);
        out += &match &tested.verdict {
            Verdict::Explored(explored, schedules) => {
                let schedules: Vec<PathBuf> = schedules.iter().map(|path| from_here(path)).collect();
                github::findings(name, &explored.outcome, &schedules, REPLAY)
            }
            Verdict::Error(error) => github::error(name, &error.to_string()),
            Verdict::Ignored | Verdict::Interrupted(_) => String::new(),
        };
    }
    out
}

/// The summary. `left` is the number of selected tests that were not begun.
pub fn summary(paint: Paint, all: &[Tested], filtered: usize, left: usize, time: Duration) -> String {
    let counted = |which: fn(&Tested) -> bool| all.iter().filter(|tested| which(tested)).count();
    let failed = counted(Tested::failed);
    let ignored = counted(|tested| matches!(tested.verdict, Verdict::Ignored));
    let errors = counted(|tested| matches!(tested.verdict, Verdict::Error(_) | Verdict::Interrupted(_)));
    let passed = all.len() - failed - ignored - errors;
    let word = if failed + errors + left == 0 { paint.good("ok") } else { paint.bad("FAILED") };
    let mut out = format!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; {filtered} filtered out"
    );
    for (number, what) in [(errors, "not explored"), (left, "not begun")] {
        if number > 0 {
            let _ = write!(out, "; {number} {what}");
        }
    }
    let _ = writeln!(out, "; finished in {:.2} s", time.as_secs_f64());
    out + not_controlled(paint, all).as_str()
}

/// The caveats of all tests, each once, with the number of tests that have it.
fn not_controlled(paint: Paint, all: &[Tested]) -> String {
    let explored: Vec<&Finished> = all
        .iter()
        .filter_map(|tested| match &tested.verdict {
            Verdict::Explored(explored, _) => Some(&**explored),
            _ => None,
        })
        .collect();
    let mut sentences: Vec<(String, usize)> = Vec::new();
    for sentence in explored.iter().flat_map(|explored| caveat::sentences(&explored.outcome)) {
        match sentences.iter_mut().find(|(known, _)| *known == sentence) {
            Some((_, times)) => *times += 1,
            None => sentences.push((sentence, 1)),
        }
    }
    let mut out = String::new();
    if !sentences.is_empty() {
        let _ = writeln!(out, "{}", paint.faint("not controlled:"));
    }
    for (sentence, times) in sentences {
        let tests = if times == explored.len() {
            String::new()
        } else {
            format!(" ({})", count(times as u64, "test"))
        };
        let _ = writeln!(out, "{}", paint.faint(format!("  {sentence}{tests}")));
    }
    out
}
