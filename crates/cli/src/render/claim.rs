//! Builds the claim of a check without findings: one sentence for the screen and the JSON.
//!
//! A claim names every bound and every caveat. A caveat either has words of its own in the claim, such as "of
//! calls", or makes the claim refer to the list of caveats below it.

use crate::render::paint::{count, number};
use crate::render::sentences::*;
use heisen_engine::check::{Caveat, Empty, Kind, Options, Outcome, Reach};
use heisen_search::Guarantee;
use heisen_trace::Note;
use std::fmt::Display;
use std::time::Duration;

/// The claim omits a probability below this one.
const NEGLIGIBLE: f64 = 1e-9;

/// The claim with all its limits, followed by the number of unreported races.
pub fn claim(options: &Options, outcome: &Outcome) -> String {
    claimed(options, outcome) + races(outcome).as_str()
}

/// The parts of a claim that limit it. A part that does not apply is empty.
#[derive(Debug, Default)]
struct Limits {
    kind: &'static str,
    of: &'static str,
    within: &'static str,
    without: String,
    protected: &'static str,
    except: &'static str,
    or: &'static str,
}

impl Limits {
    fn of(options: &Options, outcome: &Outcome) -> Limits {
        let limits = Limits {
            kind: if outcome.tally.races.any() { SEQUENTIAL.0 } else { "" },
            of: of(outcome.reach),
            within: if outcome.scoped { WITHIN_SCOPE.0 } else { "" },
            protected: if outcome.accesses_explored { "" } else { IF_PROTECTED.0 },
            ..Limits::default()
        };
        limits.with(&outcome.caveats, options.world.timeouts)
    }

    /// Adds the limits that follow from these caveats.
    fn with(self, caveats: &[Caveat], timeouts: Duration) -> Limits {
        let noted = |note| caveats.contains(&Caveat::Note(note));
        let mut without = String::new();
        if noted(Note::FarTimeout) {
            without += &WITHOUT_FAR.with(&[("limit", &time(timeouts))]);
        }
        if noted(Note::TimerFd) || noted(Note::Watchdog) {
            without += if without.is_empty() { "" } else { " and" };
            without += WITHOUT_EARLY.0;
        }
        let kind = if noted(Note::WeakOrders) { SEQUENTIAL.0 } else { self.kind };
        let or = if caveats.is_empty() { "" } else { OR_LISTED.0 };
        let limits = Limits { kind, without, or, ..self };
        let all_named = caveats.iter().all(|caveat| limits.name(caveat));
        Limits { except: if all_named { "" } else { EXCEPT_LISTED.0 }, ..limits }
    }

    /// Whether the claim names a caveat in words of its own.
    fn name(&self, caveat: &Caveat) -> bool {
        match caveat {
            Caveat::CallsOnly
            | Caveat::PatchedOnly(_)
            | Caveat::AtomicsOnly
            | Caveat::PartlyInstrumented(_) => !self.of.is_empty(),
            Caveat::OutOfScope(_) | Caveat::Note(Note::NoPreempt) => !self.within.is_empty(),
            Caveat::Note(Note::WeakOrders) => !self.kind.is_empty(),
            Caveat::Note(Note::FarTimeout | Note::TimerFd | Note::Watchdog) => !self.without.is_empty(),
            _ => false,
        }
    }
}

/// The claim without the number of unreported races.
fn claimed(options: &Options, outcome: &Outcome) -> String {
    let status = &outcome.status;
    let executions = count(outcome.tally.executions, "execution");
    let limits = Limits::of(options, outcome);
    let say = |sentence: Sentence, bound: Option<u32>, more: &[(&str, &dyn Display)]| {
        let all = match outcome.tally.executions {
            1 => "there is only 1 execution".to_owned(),
            _ => format!("all {executions} explored"),
        };
        let inputs = if options.inputs { FOR_ANY_INPUT.0 } else { "" };
        let common: [(&str, &dyn Display); 15] = [
            ("inputs", &inputs),
            ("kind", &limits.kind),
            ("of", &limits.of),
            ("with", &at_most(options, outcome, bound)),
            ("within", &limits.within),
            ("without", &limits.without),
            ("if", &limits.protected),
            ("except", &limits.except),
            ("or", &limits.or),
            ("all", &all),
            ("executions", &executions),
            ("random", &count(outcome.tally.executions, "random execution")),
            ("strategy", &options.strategy.name()),
            ("seed", &options.seed),
            ("more", &count(bound.map_or(0, u64::from) + 1, "preemption")),
        ];
        sentence.with(&[&common[..], more].concat())
    };
    match outcome.empty {
        Some(Empty::OneThread) => return ONE_THREAD.plain(),
        Some(Empty::NoTest) => return NO_TEST.plain(),
        Some(Empty::Contradiction) => {
            let choose = if options.inputs { "" } else { CHOOSE_INPUTS.0 };
            return say(CONTRADICTION, None, &[("choose", &choose)]);
        }
        Some(Empty::NoPointInScope) => return say(NO_POINT_IN_SCOPE, None, &[]),
        None => {}
    }
    let complete = outcome.complete();
    if options.strategy == Kind::Causal {
        return match status.rounds_completed {
            _ if complete => say(PATHS, None, &[]),
            Some(_) => say(PATHS_AND_MORE, None, &[]),
            None => say(PART_OF_PATHS, None, &[]),
        };
    }
    if status.exhaustive && complete {
        return match outcome.in_vain() {
            Some(_) => say(CLASSES, None, &[("classes", &classes(outcome))]),
            None => say(ALL, None, &[]),
        };
    }
    match options.strategy {
        Kind::Best if outcome.preemption_bound().is_none() => say(PART, None, &[]),
        Kind::Icb | Kind::Best => match (outcome.preemption_bound(), complete) {
            (Some(bound), true) => say(BOUNDED, Some(bound), &[]),
            (Some(bound), false) => say(BOUNDED_AND_MORE, Some(bound), &[]),
            (None, _) if status.has_gaps() => say(NOT_FOLLOWED, None, &[]),
            (None, _) => say(NO_BOUND, None, &[]),
        },
        Kind::Dfs => say(PART, None, &[]),
        Kind::Bpor if complete => {
            say(BOUNDED_CLASSES, Some(options.bound), &[("classes", &classes(outcome))])
        }
        Kind::Dpor | Kind::Bpor => say(PART_OF_CLASSES, None, &[]),
        _ if outcome.search.samples() && outcome.tally.unconfirmed > 0 => {
            say(NOT_AGAIN, None, &[("failed", &number(outcome.tally.unconfirmed))])
        }
        Kind::Random => say(RANDOM, None, &[]),
        kind => {
            let earned = status.guarantee.as_ref().filter(|g| g.total >= NEGLIGIBLE);
            let earned = earned.map(|g| guarantee(kind, g, &limits)).unwrap_or_default();
            say(SAMPLED, None, &[("guarantee", &earned)])
        }
    }
}

/// The bounds on one execution: preemptions, spurious wake-ups, faults, rounds of loops. Empty if there is no bound.
fn at_most(options: &Options, outcome: &Outcome, bound: Option<u32>) -> String {
    let mut parts: Vec<String> = bound.iter().map(|&bound| count(bound.into(), "preemption")).collect();
    for (most, what) in [(options.spurious, "spurious wake-up"), (options.faults.most, "fault")] {
        if most > 0 {
            parts.push(count(most.into(), what));
        }
    }
    if let Some(rounds) = outcome.status.rounds_completed.or(outcome.status.rounds) {
        parts.push(format!("{} of a waiting loop", count(rounds.into(), "round")));
    }
    let most = match &parts[..] {
        [] => return String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    WITH.with(&[("most", &most)])
}

/// The kinds of operations whose orders were explored; empty for all.
fn of(reach: Reach) -> &'static str {
    match reach {
        Reach::All => "",
        Reach::Partly => OF_INSTRUMENTED.0,
        Reach::Atomics => OF_ATOMICS.0,
        Reach::Patched => OF_PATCHED.0,
        Reach::Calls => OF_CALLS.0,
    }
}

/// The number of unreported races, as the end of a claim; empty if there are none.
fn races(outcome: &Outcome) -> String {
    if !outcome.tally.races.unreported() {
        return String::new();
    }
    let races = data_races(outcome);
    RACES.with(&[("races", &races)])
}

/// The number of data races without a report. It is "at least 1" if the exact pair of accesses is uncertain
/// for every race.
pub fn data_races(outcome: &Outcome) -> String {
    match outcome.tally.races.unlisted() {
        0 => "at least 1 data race".to_owned(),
        some => count(some as u64, "data race"),
    }
}

/// The number of classes, of executions, and of redundant executions.
fn classes(outcome: &Outcome) -> String {
    let classes = outcome.tally.classes.len() as u64;
    let redundant = match outcome.in_vain().unwrap_or_default() {
        0 => String::new(),
        some => format!(" ({} redundant)", number(some)),
    };
    let plural = if classes == 1 { "" } else { "es" };
    format!("{} class{plural}, {}{redundant}", number(classes), count(outcome.tally.executions, "execution"))
}

/// The sentence on the probability with which pct finds a bug.
fn guarantee(kind: Kind, g: &Guarantee, limits: &Limits) -> String {
    // Of a portfolio, only the executions of pct count.
    let they = match kind {
        Kind::Pct => "they".to_owned(),
        _ => format!("its {} by pct", count(g.executions, "execution")),
    };
    GUARANTEE.with(&[
        ("threads", &g.threads),
        ("steps", &number(g.steps.into())),
        ("they", &they),
        ("within", &limits.within),
        ("depth", &g.depth),
        ("total", &probability(g.total)),
        ("except", &limits.except),
    ])
}

/// A probability as text, never rounded up to certainty or down to zero.
pub fn probability(p: f64) -> String {
    match p {
        p if p > 0.9999 => "99.99 %".to_owned(),
        p if p >= 0.0001 => format!("{:.2} %", 100.0 * p),
        p if p >= NEGLIGIBLE => format!("1 in {}", number((1.0 / p).ceil() as u64)),
        _ => "less than 1 in 1 000 000 000".to_owned(),
    }
}

/// A duration as text, in the largest unit that divides it.
fn time(time: Duration) -> String {
    let (millis, seconds) = (time.as_millis(), time.as_secs());
    match seconds {
        _ if millis % 1000 != 0 => format!("{millis} ms"),
        0 => "0 s".to_owned(),
        _ if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        _ if seconds % 60 == 0 => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_engine::check::Differs;
    use heisen_engine::check::scope::Patterns;

    #[test]
    fn times() {
        for (seconds, text) in [(0, "0 s"), (1, "1 s"), (90, "90 s"), (120, "2 min"), (7200, "2 h")] {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
        assert_eq!(time(Duration::from_millis(1500)), "1500 ms");
    }

    /// One caveat of each kind.
    fn caveats() -> Vec<Caveat> {
        let differs = Differs { executions: 1, at: String::new(), notes: Vec::new() };
        let notes = Note::ALL.iter().filter(|note| note.is_caveat()).map(|&note| Caveat::Note(note));
        let others = [
            Caveat::CallsOnly,
            Caveat::PatchedOnly(Vec::new()),
            Caveat::AtomicsOnly,
            Caveat::StoppedEarly,
            Caveat::PartlyInstrumented(Vec::new()),
            Caveat::NoRaces,
            Caveat::MoreRaces { listed: 100, more: 1 },
            Caveat::OutOfScope(Patterns::default()),
            Caveat::BeforeReady,
            Caveat::DporUnfit,
            Caveat::DporCut { events: 8192, executions: 1 },
            Caveat::NotExact("the solver reached its limit".into()),
            Caveat::InputsKept,
            Caveat::Diverged(differs.clone()),
            Caveat::Unconfirmed(differs),
            Caveat::TooLong { executions: 1, steps: 1 },
            Caveat::Computed { hang: Duration::ZERO, place: String::new() },
            Caveat::NoTimeToConfirm { executions: 1, seemed: String::new(), interrupted: false },
            Caveat::Cut(1),
            Caveat::Awaited { awaited: String::new(), silence: None },
            Caveat::NoTime,
            Caveat::Lost(1),
            Caveat::OutOfTime(1),
        ];
        notes.chain(others).collect()
    }

    #[test]
    fn every_caveat_limits_the_claim() {
        let unlimited = Limits::default().with(&[], Duration::ZERO);
        assert_eq!((unlimited.kind, unlimited.of, unlimited.within, unlimited.except), ("", "", "", ""));
        assert_eq!(unlimited.without, "");
        for caveat in caveats() {
            let limits = Limits::default().with(std::slice::from_ref(&caveat), Duration::from_secs(1));
            let named = limits.name(&caveat);
            assert!(named || limits.except == EXCEPT_LISTED.0, "{caveat:?}");
            let words = [limits.kind, limits.of, limits.within, &limits.without, limits.except].concat();
            assert_ne!(words, "", "{caveat:?}");
            assert_eq!(limits.or, OR_LISTED.0, "{caveat:?}");
            assert_ne!(crate::render::caveat::sentence(&caveat), "", "{caveat:?}");
        }
    }

    #[test]
    fn probabilities() {
        let shown = [(1.0, "99.99 %"), (0.0303, "3.03 %"), (3.1e-6, "1 in 322 581")];
        for (p, text) in shown.into_iter().chain([(0.0, "less than 1 in 1 000 000 000")]) {
            assert_eq!(probability(p), text);
        }
    }
}
