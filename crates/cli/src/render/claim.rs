//! What a check that found nothing claims, in one sentence: on the screen, in the JSON and in `docs/reference/verdicts.md` alike.

use crate::render::check::name;
use crate::render::paint::{count, number};
use heisen_engine::check::sentences::*;
use heisen_engine::check::{Empty, Kind, Options, Outcome, Reach};
use heisen_search::Guarantee;
use heisen_trace::Note;
use std::fmt::Display;
use std::time::Duration;

/// The claim, with all that limits it.
pub fn claim(options: &Options, outcome: &Outcome) -> String {
    claimed(options, outcome) + allowance(options).as_str() + races(outcome).as_str()
}

/// What a search that found nothing has earned the right to say.
fn claimed(options: &Options, outcome: &Outcome) -> String {
    let status = &outcome.status;
    let executions = number(outcome.tally.executions);
    let within = if outcome.scoped { WITHIN_SCOPE.0 } else { "" };
    let kind =
        if outcome.has_note(Note::WeakOrders) || outcome.tally.races.any() { SEQUENTIAL.0 } else { "" };
    let mut without = String::new();
    if outcome.has_note(Note::FarTimeout) {
        without += &WITHOUT_FAR.with(&[("limit", &time(options.world.timeouts))]);
    }
    if outcome.has_note(Note::TimerFd) || outcome.has_note(Note::Watchdog) {
        without += WITHOUT_EARLY.0;
    }
    let protected = if outcome.accesses_explored { "" } else { IF_PROTECTED.0 };
    let or = if outcome.not_controlled.is_empty() { "" } else { OR_LISTED.0 };
    let say = |sentence: Sentence, more: &[(&str, &dyn Display)]| {
        let common: [(&str, &dyn Display); 9] = [
            ("kind", &kind),
            ("of", &of(outcome.reach)),
            ("within", &within),
            ("without", &without),
            ("if", &protected),
            ("or", &or),
            ("executions", &executions),
            ("strategy", &name(options.strategy)),
            ("seed", &options.seed),
        ];
        sentence.with(&[&common[..], more].concat())
    };
    let bounded = |sentence: Sentence, bound: u32| {
        let preemptions = count(bound.into(), "preemption");
        let classes = classes(outcome);
        say(sentence, &[("preemptions", &preemptions), ("more", &(bound + 1)), ("classes", &classes)])
    };
    match outcome.empty {
        Some(Empty::OneThread) => return ONE_THREAD.plain(),
        Some(Empty::NoTest) => return NO_TEST.plain(),
        Some(Empty::NoPointInScope) => return say(NO_POINT_IN_SCOPE, &[]),
        None => {}
    }
    let complete = outcome.complete();
    if status.whole && complete {
        return match outcome.in_vain() {
            Some(_) => say(CLASSES, &[("classes", &classes(outcome))]),
            None => say(ALL, &[]),
        };
    }
    match options.strategy {
        Kind::Best if outcome.preemption_bound().is_none() => say(PART, &[]),
        Kind::Icb | Kind::Best => match (outcome.preemption_bound(), complete) {
            (Some(bound), true) => bounded(BOUNDED, bound),
            (Some(bound), false) => bounded(BOUNDED_AND_MORE, bound),
            (None, _) if status.has_gaps() => say(NOT_FOLLOWED, &[]),
            (None, _) => say(NO_BOUND, &[]),
        },
        Kind::Dfs => say(PART, &[]),
        Kind::Bpor if complete => bounded(BOUNDED_CLASSES, options.bound),
        Kind::Dpor | Kind::Bpor => say(PART_OF_CLASSES, &[]),
        _ if outcome.search.samples() && outcome.tally.unconfirmed > 0 => {
            say(NOT_AGAIN, &[("failed", &number(outcome.tally.unconfirmed))])
        }
        Kind::Random => say(RANDOM, &[]),
        kind => {
            let earned = status.guarantee.as_ref().map(|g| guarantee(kind, g, within)).unwrap_or_default();
            say(SAMPLED, &[("guarantee", &earned)])
        }
    }
}

/// What the schedules are of.
fn of(reach: Reach) -> &'static str {
    match reach {
        Reach::All => "",
        Reach::Partly => OF_INSTRUMENTED.0,
        Reach::Atomics => OF_ATOMICS.0,
        Reach::Patched => OF_PATCHED.0,
        Reach::Calls => OF_CALLS.0,
    }
}

/// What besides the choices of threads was allowed to happen.
fn allowance(options: &Options) -> String {
    let mut parts = Vec::new();
    for (most, what) in [(options.spurious, "spurious wake-up"), (options.faults.most, "fault")] {
        if most > 0 {
            parts.push(count(most.into(), what));
        }
    }
    if parts.is_empty() { String::new() } else { ALLOWED.with(&[("allowed", &parts.join(" and "))]) }
}

/// The races that are not reported.
fn races(outcome: &Outcome) -> String {
    if !outcome.tally.races.unreported() {
        return String::new();
    }
    let races = match outcome.tally.races.unlisted() {
        0 => "data races".to_owned(),
        some => count(some as u64, "data race"),
    };
    RACES.with(&[("races", &races)])
}

/// How many classes there are, and in how many executions.
fn classes(outcome: &Outcome) -> String {
    let classes = outcome.tally.classes.len() as u64;
    let in_vain = match outcome.in_vain().unwrap_or_default() {
        0 => String::new(),
        some => format!(" ({} in vain)", number(some)),
    };
    let plural = if classes == 1 { "" } else { "es" };
    format!("{} class{plural}, {}{in_vain}", number(classes), count(outcome.tally.executions, "execution"))
}

/// What executions by priority have earned.
fn guarantee(kind: Kind, g: &Guarantee, within: &str) -> String {
    // Of the portfolio, those of pct alone count.
    let each = match kind {
        Kind::Pct => "each".to_owned(),
        _ => format!("each of {} by pct", number(g.executions)),
    };
    GUARANTEE.with(&[
        ("threads", &g.threads),
        ("steps", &g.steps),
        ("each", &each),
        ("within", &within),
        ("depth", &g.depth),
        ("chance", &probability(g.per_execution)),
        ("total", &probability(g.total)),
    ])
}

/// A probability as a person reads it, never rounded up to certainty.
pub fn probability(p: f64) -> String {
    match p {
        p if p > 0.9999 => "99.99 %".to_owned(),
        p if p >= 0.0001 => format!("{:.2} %", 100.0 * p),
        p => format!("{p:.1e}"),
    }
}

/// A time as a person writes it.
fn time(time: Duration) -> String {
    match time.as_millis() {
        millis if millis % 1000 != 0 => format!("{millis} ms"),
        millis => format!("{} s", millis / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time(Duration::from_secs(1)), "1 s");
        assert_eq!(time(Duration::from_millis(1500)), "1500 ms");
        assert_eq!(time(Duration::from_secs(7200)), "7200 s");
    }
}
