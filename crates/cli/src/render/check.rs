//! Renders a check for people: the progress line while it runs, and its result.

use super::caveat;
use super::claim::{claim, data_races, probability};
use crate::render::finding::Screen;
use crate::render::paint::quoted;
use crate::render::paint::{Paint, count, number};
use heisen_engine::check::{Options, Outcome, Progress, Races};
use heisen_search::{Remaining, Unseen};
use heisen_trace::Family;
use std::fmt::Write as _;
use std::path::PathBuf;

pub fn progress_line(progress: &Progress<'_>) -> String {
    let seconds = progress.time.as_secs_f64();
    let rate = (progress.executions as f64 / seconds.max(0.001)) as u64;
    let mut line = String::new();
    if let Some(bound) = progress.status.bound {
        let _ = write!(line, "bound {bound} · ");
    }
    let _ = write!(line, "{} · {}/s · {seconds:.1} s", count(progress.executions, "execution"), number(rate));
    let status = progress.status;
    match progress.limit {
        Some(limit) => {
            let left = limit.saturating_sub(progress.executions) as f64 / (rate.max(1) as f64);
            let _ = write!(line, " · of {}, about {left:.0} s left", number(limit));
        }
        None if status.queued + status.deferred > 0 => {
            let _ = match &status.remaining {
                Some(left) => write!(line, " · {}", remaining(left, status.deferred > 0)),
                None => write!(line, " · {} queued", number(status.queued as u64)),
            };
            if status.deferred > 0 {
                let _ = write!(line, ", {} for the next bound", number(status.deferred as u64));
            }
        }
        None => {}
    }
    if progress.findings > 0 {
        let _ = write!(line, " · {}", count(progress.findings as u64, "finding"));
    }
    line
}

/// The estimated number of remaining executions, with the error of recent estimates.
fn remaining(left: &Remaining, of_bound: bool) -> String {
    let of_bound = if of_bound { " of this bound" } else { "" };
    // Rounded up, so that the estimate does not look more exact than it is.
    let factor = (left.factor * 10.0).ceil() / 10.0;
    format!(
        "about {} left{of_bound} (recent estimates: within a factor of {factor:.1})",
        number(left.executions)
    )
}

/// The screens of all findings, followed by the summary.
pub fn report(
    paint: Paint,
    options: &Options,
    outcome: &Outcome,
    schedules: &[PathBuf],
    replay: &str,
) -> String {
    screens(paint, outcome, schedules, replay) + summary(paint, options, outcome).as_str()
}

/// The screens of all findings. A screen shows the command that replays the finding if its schedule file was
/// written.
pub fn screens(paint: Paint, outcome: &Outcome, schedules: &[PathBuf], replay: &str) -> String {
    let mut text = String::new();
    for (index, finding) in outcome.findings().enumerate() {
        let replay = schedules.get(index).map(|path| format!("{replay} {}", quoted(path)));
        let replay = replay.as_deref().unwrap_or_default();
        let screen = Screen { paint, replay, time: Some(outcome.tally.time) };
        text.push_str(&screen.render(finding));
        text.push('\n');
    }
    text
}

/// The summary of a check: claim, counts, races, hints and caveats.
pub fn summary(paint: Paint, options: &Options, outcome: &Outcome) -> String {
    let tally = &outcome.tally;
    let mut out = String::new();
    let findings = outcome.findings().count();
    if findings == 0 {
        let head = match outcome.empty {
            Some(_) => String::new(),
            None if outcome.complete() => paint.good("ok: "),
            None => paint.strong("nothing found: "),
        };
        let _ = writeln!(out, "{head}{}", claim(options, outcome));
    } else if findings > 1 || options.keep_going {
        let _ = writeln!(out, "{} in all", count(findings as u64, "distinct finding"));
    }
    let _ = writeln!(
        out,
        "{}, {}, {:.2} s",
        count(tally.executions, "execution"),
        count(tally.steps, "scheduling point"),
        tally.time.as_secs_f64()
    );
    if let Some(why) = tally.why_forked().filter(|_| findings == 0 && tally.mostly_forked()) {
        let _ = writeln!(out, "each execution ran in a process of its own, which is slower: {why}");
    }
    if outcome.status.unnoted > 0 {
        let _ = writeln!(
            out,
            "the memory for states was full, so --reduce skipped fewer executions: no room for {} (raise --memory)",
            count(outcome.status.unnoted, "state")
        );
    }
    if let Some(estimate) = &outcome.status.unseen
        && findings == 0
    {
        let _ = writeln!(out, "{}", unseen(estimate));
    }
    out.push_str(&about_races(options, outcome));
    out.push_str(&about_hints(options, outcome));
    if !outcome.caveats.is_empty() {
        let _ = writeln!(out, "{}", paint.faint("not controlled:"));
    }
    for line in caveat::sentences(outcome) {
        let _ = writeln!(out, "{}", paint.faint(format!("  {line}")));
    }
    out
}

/// The lines of the summary about data races and access points.
fn about_races(options: &Options, outcome: &Outcome) -> String {
    let races = &outcome.tally.races;
    let mut out = String::new();
    if races.suppressed() > 0 {
        let _ = writeln!(out, "{} suppressed", count(races.suppressed() as u64, "race"));
    }
    // Without findings, the claim already counts the races.
    if options.races == Races::Count && races.any() && outcome.findings().next().is_some() {
        let _ = writeln!(out, "{} (--races lists them)", data_races(outcome));
    }
    if outcome.accesses_explored && outcome.empty.is_none() {
        let _ = match outcome.tally.points.len() {
            0 => writeln!(out, "no memory accesses conflict"),
            points => {
                let points = count(points as u64, "place");
                writeln!(out, "all conflicting accesses are scheduling points: {points} in the code")
            }
        };
    }
    out
}

/// The hints: predictions that no execution confirmed.
fn about_hints(options: &Options, outcome: &Outcome) -> String {
    let hints = &outcome.hints;
    if !options.hints && !hints.is_empty() {
        return format!(
            "{} (--hints shows what was predicted but not confirmed)\n",
            count(hints.len() as u64, "hint")
        );
    }
    let mut out = String::new();
    for hint in hints {
        let what = match hint.family {
            Family::LockOrder => "no execution reached it",
            _ => "nothing went wrong when it happened",
        };
        let (family, from) = (hint.family.name(), number(hint.execution));
        let _ = writeln!(out, "hint: {family}, predicted from execution {from}; {what}");
        for step in &hint.steps {
            let _ = writeln!(out, "  {step}");
        }
    }
    out
}

/// The estimated probability that the next execution of a sampler shows a new behaviour.
fn unseen(unseen: &Unseen) -> String {
    let next = match unseen.once {
        0 => format!("less than 1 in {}", number(unseen.executions)),
        _ => format!("about {}", probability(unseen.chance)),
    };
    format!(
        "{} in {}; the next execution shows a new one with probability {next}",
        count(unseen.kinds, "behaviour"),
        count(unseen.executions, "execution"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_search::Status;
    use std::time::Duration;

    fn line(status: &Status) -> String {
        let time = Duration::from_secs(2);
        progress_line(&Progress { executions: 3000, limit: None, time, status, findings: 0 })
    }

    #[test]
    fn the_line_says_what_is_left_only_if_that_is_known() {
        let mut status = Status { bound: Some(1), queued: 40, ..Status::default() };
        assert_eq!(line(&status), "bound 1 · 3 000 executions · 1 500/s · 2.0 s · 40 queued");
        status.deferred = 7;
        status.remaining = Some(Remaining { executions: 12_345, factor: 1.31 });
        assert_eq!(
            line(&status),
            "bound 1 · 3 000 executions · 1 500/s · 2.0 s · about 12 345 left of this bound (recent estimates: within a \
             factor of 1.4), 7 for the next bound"
        );
        (status.bound, status.deferred) = (None, 0);
        let end = " · about 12 345 left (recent estimates: within a factor of 1.4)";
        assert!(line(&status).ends_with(end), "{}", line(&status));
    }
}
