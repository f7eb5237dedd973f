//! Confirms failures: takes a close-up of an execution that failed, then replays its schedule as it will be
//! written. Only a failure that occurs both times is a finding.

use super::case::Case;
use super::options::Kind;
use super::outcome::Tally;
use super::predictions;
use crate::error::Result;
use crate::explain::close_up::{Closeup, Recorder, circle};
use crate::explain::divergence;
use crate::explain::divergence::Difference;
use crate::explain::explanation::explain;
use crate::explain::judge::Verdict;
use crate::explain::kinds;
use crate::explain::minimise::{Effort, minimise};
use crate::explain::neighbourhood::{self, points_near};
use crate::process::recorded_input;
use crate::process::run_config::{Output, RunConfig, Symbolic};
use crate::process::slots::{Detail, Job, Operation};
use crate::process::zygote::Zygote;
use heisen_trace::finding::{Minimised, SwitchKind, ThreadEnd};
use heisen_trace::{Finding, FindingKind, Note, Plan, Policy, Stack};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// After this many failures that did not occur again, no further one is confirmed.
pub(super) const MAX_UNCONFIRMED: u64 = 20;
/// After this many distinct findings even `--keep-going` stops.
pub(super) const MAX_FINDINGS: usize = 100;
/// How many further close-ups are taken of a failure that depends on input from outside, until it occurs
/// again.
const MORE_CLOSE_UPS: usize = 9;
/// How long the schedule of a finding is minimised. The number of runs is the usual limit, so that the result does not
/// depend on the speed of the machine; few programs are so slow that the time comes first.
const EFFORT: Effort = Effort { runs: 5_000, time: Duration::from_secs(5), fewest: false };

/// The steps of a candidate for an endless schedule: so many times those up to the last switch, and so many more.
const ENDLESS_FACTOR: u32 = 4;
const ENDLESS_STEPS: u32 = 20_000;

fn preemptions(closeup: &Closeup) -> u32 {
    closeup.switches.iter().filter(|switch| switch.kind == SwitchKind::Preempt).count() as u32
}

/// Whether two executions fail in the same way.
fn is_same_failure(one: &Closeup, other: &Closeup) -> bool {
    let kind = one.verdict.as_ref().map(|verdict| verdict.kind);
    let same = match kind {
        Some(FindingKind::Livelock | FindingKind::GoodSamaritan) => repeats_the_same(one, other),
        Some(FindingKind::Deadlock) => {
            let waits = waits_in_circle(one);
            !waits.is_empty() && waits == waits_in_circle(other)
        }
        _ => false,
    };
    one.signature() == other.signature() || same && kind == other.verdict.as_ref().map(|verdict| verdict.kind)
}

/// The locks of a circle, with the places where threads wait for them. Who waits besides is chance.
fn waits_in_circle(closeup: &Closeup) -> BTreeSet<(String, String)> {
    let place = |end: &ThreadEnd| end.stack.place().map_or(String::new(), |frame| frame.place());
    circle(&closeup.threads).into_iter().map(|end| (end.object.clone(), place(end))).collect()
}

/// Whether the threads of two endless executions repeat the same operations. Where they were when the steps were over is
/// chance.
fn repeats_the_same(one: &Closeup, other: &Closeup) -> bool {
    let repeated = |closeup: &Closeup| -> BTreeSet<(u16, u8, String)> {
        let steps = closeup.cycle.iter().flat_map(|cycle| &cycle.steps);
        let place = |stack: &Stack| stack.place().map_or(String::new(), |frame| frame.place());
        steps.map(|step| (step.thread.0, step.op as u8, place(&step.stack))).collect()
    };
    one.thread == other.thread && repeated(one) == repeated(other)
}

/// What the close-up and the replay of a failure have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// It is a finding, or the same as an earlier one.
    Confirmed,
    /// It did not fail again.
    Unconfirmed,
    /// The time was over before that was known.
    Cut,
    /// The program only waits for someone outside.
    Idle,
    /// The execution only takes more steps than the limit.
    TooLong,
}

/// Whether to take a close-up of one more execution that reached the step limit, after `too_long` that were
/// only too long. A close-up takes longer than the execution, so after the first four only the eighth, the
/// sixteenth, and so on get one.
fn is_worth_a_close_up(too_long: u64) -> bool {
    too_long < 4 || (too_long + 1).is_power_of_two()
}

/// Confirms failures and data races.
pub(super) struct Confirmer<'s> {
    pub(super) case: &'s Case<'s>,
    pub(super) tally: &'s mut Tally,
    /// Whether a sampler found them.
    pub(super) sampled: bool,
}

impl Confirmer<'_> {
    /// Confirms an execution that failed.
    pub(super) fn confirm(&mut self, plan: &Plan, verdict: Verdict) -> Result<Confirmation> {
        let seemed = verdict.message.clone();
        match self.close_up_and_replay(plan, verdict) {
            Ok(confirmation) => Ok(confirmation),
            Err(error) if error.is_cut() => {
                self.tally.unexamined += 1;
                self.tally.seemed.get_or_insert(seemed);
                Ok(Confirmation::Cut)
            }
            Err(error) => Err(error),
        }
    }

    fn close_up_and_replay(&mut self, plan: &Plan, verdict: Verdict) -> Result<Confirmation> {
        if self.tally.keys.contains(&verdict.key) {
            return Ok(Confirmation::Confirmed);
        }
        // A failure that did not occur again may do so the next time, but not every close-up is worth its
        // time.
        if self.tally.unconfirmed >= MAX_UNCONFIRMED {
            self.tally.unconfirmed += 1;
            return Ok(Confirmation::Unconfirmed);
        }
        let endless = verdict.is_endless();
        if endless && !is_worth_a_close_up(self.tally.too_long) {
            self.tally.too_long += 1;
            return Ok(Confirmation::TooLong);
        }
        let mut config = self.config_for(plan)?;
        let default = Plan::new(Policy::Default);
        let by_default = self.fails_by_default(&self.case.recorder(&config), &default, &verdict)?;
        let plan = if by_default { &default } else { plan };
        if self.case.options.explain && plan.overrides == default.overrides && plan.policy == default.policy {
            let without = config.without_backtraces();
            let fast = without.as_ref().unwrap_or(&config);
            let points = points_near((&self.case.runtime, self.case.program, fast), plan)?;
            config.points = points;
        }
        let recorder = self.case.recorder(&config);
        let mut closeup = recorder.record(Job::Plan(plan))?;
        for _ in 0..MORE_CLOSE_UPS {
            // With input from outside, executions may differ. One failure is enough, because its input is
            // recorded.
            if !closeup.outside || closeup.verdict.as_ref().is_some_and(|v| v.kind == verdict.kind) {
                break;
            }
            closeup = recorder.record(Job::Plan(plan))?;
        }
        if closeup.too_long {
            self.tally.too_long += 1;
            return Ok(Confirmation::TooLong);
        }
        if closeup.verdict.as_ref().is_none_or(|v| v.kind != verdict.kind) {
            self.tally.unconfirmed += 1;
            self.locate_divergence(plan, closeup.run.tail.diverged);
            return Ok(Confirmation::Unconfirmed);
        }
        if verdict.kind == FindingKind::Deadlock && !closeup.idle.is_empty() {
            self.tally.idle += 1;
            self.tally.awaited.get_or_insert(closeup.idle.join("; "));
            return Ok(Confirmation::Idle);
        }
        let (mut closeup, minimised, simplest) = self.minimised(&recorder, plan, &verdict, closeup)?;
        let (outside, input) = (closeup.outside, closeup.input.take());
        let Some(mut finding) = closeup.into_finding(&recorder, self.tally.executions) else {
            return Ok(Confirmation::Unconfirmed);
        };
        finding.minimised = minimised;
        finding.predicted = match predictions::prediction(self.case, self.tally, plan) {
            // The finding does not depend on the prediction.
            Err(error) if error.is_cut() => None,
            prediction => prediction?,
        };
        if let Some(input) = input
            && self.replays_with(&input, &finding)?
        {
            finding.schedule.input = Some(recorded_input::beside(&self.case.program.short_name(), &input));
            finding.input = Some(input);
            self.add(verdict, finding);
            return Ok(Confirmation::Confirmed);
        }
        // The schedule as it will be written must lead to the same failure.
        let again = recorder.record(Job::Schedule(&finding.schedule))?;
        if again.run.execution.diverged.is_some() || again.signature() != finding.signature {
            self.tally.unconfirmed += 1;
            self.locate_divergence(plan, again.run.tail.diverged);
            return Ok(Confirmation::Unconfirmed);
        }
        if outside {
            self.tally.add_note(Note::Unrecorded);
        } else if self.case.options.explain && endless {
            finding.explanation = kinds::at_once(&finding).map(Box::new);
        } else if self.case.options.explain {
            let plan = simplest.as_ref().unwrap_or(plan);
            finding.explanation = match explain(&recorder, plan, &finding, neighbourhood::Effort::SHORT) {
                // The finding does not depend on it.
                Err(error) if error.is_cut() => None,
                explanation => explanation?.map(Box::new),
            };
        }
        self.add(verdict, finding);
        Ok(Confirmation::Confirmed)
    }

    /// Whether a sampler's first execution failed, and the default schedule fails as well. The default
    /// schedule is the shorter explanation.
    fn fails_by_default(&self, recorder: &Recorder<'_>, default: &Plan, verdict: &Verdict) -> Result<bool> {
        if self.tally.executions != 1 || !self.sampled {
            return Ok(false);
        }
        let closeup = recorder.record(Job::Plan(default))?;
        Ok(!closeup.outside && closeup.verdict.is_some_and(|v| v.key == verdict.key))
    }

    /// The close-up of the simplest schedule that fails in the same way; the given one if none is simpler.
    fn minimised(
        &self,
        recorder: &Recorder<'_>,
        plan: &Plan,
        verdict: &Verdict,
        closeup: Closeup,
    ) -> Result<(Closeup, Option<Minimised>, Option<Plan>)> {
        // Input from outside may differ in each execution.
        if !self.case.options.minimise || closeup.outside || closeup.switches.is_empty() {
            return Ok((closeup, None, None));
        }
        // Backtraces take most of the time of executions that print them.
        let without = recorder.config.without_backtraces();
        let mut config = without.as_ref().unwrap_or(recorder.config).clone();
        if verdict.is_endless() {
            // Candidates are shorter than the steps that tell an endless execution from a long one. The result is not.
            let last = closeup.switches.last().map_or(0, |switch| switch.step);
            config.steps =
                config.steps.min(last.saturating_mul(ENDLESS_FACTOR).saturating_add(ENDLESS_STEPS));
        }
        let fast = Recorder { config: &config, ..*recorder };
        let target = (fast.runtime, fast.program, fast.config);
        let mut same_place = |plan: &Plan| Ok(is_same_failure(&fast.record(Job::Plan(plan))?, &closeup));
        let effort = Effort { fewest: self.case.options.strategy == Kind::Icb, ..EFFORT };
        let simplest = match minimise(target, recorder.expect_exit, plan, verdict, &mut same_place, effort) {
            // The finding does not depend on it.
            Err(error) if error.is_cut() => None,
            simplest => simplest?,
        };
        // The plan of a sampler has no choices either, but does not run the default schedule.
        let differs =
            |plan: &Plan, other: &Plan| plan.overrides != other.overrides || plan.policy != other.policy;
        let Some(simplest) = simplest.filter(|simplest| differs(&simplest.plan, plan)) else {
            return Ok((closeup, None, None));
        };
        let again = recorder.record(Job::Plan(&simplest.plan))?;
        if !is_same_failure(&again, &closeup) || again.outside || again.too_long {
            return Ok((closeup, None, None));
        }
        // The log of an endless execution may lack some of its preemptions.
        let (before, after) = (preemptions(&closeup), preemptions(&again));
        let minimised = Minimised { from: before, runs: simplest.runs };
        let fewer = after < before;
        Ok((again, fewer.then_some(minimised), Some(simplest.plan)))
    }

    /// Whether the schedule of a finding fails in the same way with the recorded input and nobody outside.
    fn replays_with(&self, input: &Arc<[u8]>, finding: &Finding) -> Result<bool> {
        let config = RunConfig { input: Some(input.clone()), ..self.config() };
        let again = self.case.recorder(&config).record(Job::Schedule(&finding.schedule))?;
        Ok(again.run.execution.diverged.is_none() && again.signature() == finding.signature)
    }

    /// How close-ups run.
    pub(super) fn config(&self) -> RunConfig {
        self.case.close_up_config(&self.tally.points)
    }

    /// How close-ups run that have the inputs of a plan, chosen or not. Other plans of them have these inputs, too.
    fn config_for(&self, plan: &Plan) -> Result<RunConfig> {
        let config = self.config();
        let has = !plan.inputs.is_empty() || self.case.options.inputs;
        let Some(symbolic) = config.symbolic.as_ref().filter(|_| has) else {
            return Ok(config);
        };
        let mut zygote = Zygote::start(&self.case.runtime, self.case.program, &config, Output::Dropped)?;
        let run = zygote.run(Job::Plan(plan), Detail::Symbolic, None)?;
        let inputs = run.execution.symbolic.map_or_else(Vec::new, |trace| trace.inputs());
        let symbolic = Some(Symbolic { inputs: inputs.into(), ..symbolic.clone() });
        Ok(RunConfig { symbolic, ..config })
    }

    fn add(&mut self, verdict: Verdict, mut finding: Finding) {
        self.tally.keys.insert(verdict.key);
        finding.executions_to_find = self.tally.executions;
        if self.tally.signatures.insert(finding.signature.clone()) {
            self.tally.findings.push(finding);
        }
    }

    /// Finds out where executions of a plan differ, for the first such plan only. If that fails, the place
    /// remains unknown.
    pub(super) fn locate_divergence(&mut self, plan: &Plan, noticed: Option<Operation>) {
        if self.tally.diverged_at.is_some() {
            return;
        }
        let case = self.case;
        let located = divergence::locate(&case.runtime, case.program, &self.config(), plan, noticed);
        let Difference { at, notes } = located.unwrap_or_default();
        self.tally.diverged_at = Some(at);
        for note in notes {
            self.tally.add_note(note);
        }
    }
}
