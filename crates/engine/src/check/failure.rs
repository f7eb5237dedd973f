//! What becomes of an execution that went wrong: a close look, and then once more by the schedule as it will be written.
//! Only what leads to the same place both times is a finding.

use super::MAX_UNCONFIRMED;
use super::driver::Driver;
use crate::error::Result;
use crate::explain::close_up::Camera;
use crate::explain::divergence;
use crate::explain::divergence::{Parting, Place};
use crate::explain::judge::Verdict;
use crate::process::recorded_input;
use crate::process::slots::Job;
use crate::process::zygote::RunConfig;
use heisen_trace::{Finding, FindingKind, Note, Plan, Policy};
use std::sync::Arc;

/// Further looks at a failure that depends on input from outside, until it comes back.
const MORE_LOOKS: usize = 9;

/// What a close look at an execution that went wrong has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is a finding, or is known by one.
    Confirmed,
    /// It did not go wrong again.
    Unconfirmed,
    /// Time was over before that was known.
    Cut,
    /// It only waits for someone outside the program.
    Idle,
    /// It only takes more steps than there may be.
    TooLong,
}

/// Whether one more execution that did not end within the limit of steps is looked at closely, where so many were and only
/// took long. A look takes longer than the execution did, so from the fifth on it is the eighth, the sixteenth, and so on.
fn is_worth_a_look(too_long: u64) -> bool {
    too_long < 4 || (too_long + 1).is_power_of_two()
}

impl Driver<'_> {
    /// Looks closely at an execution that went wrong.
    pub(super) fn found(&mut self, plan: &Plan, verdict: Verdict) -> Result<Look> {
        let seemed = verdict.message.clone();
        match self.look_closely(plan, verdict) {
            Ok(look) => Ok(look),
            Err(error) if error.is_cut() => {
                self.tally.unexamined += 1;
                self.tally.seemed.get_or_insert(seemed);
                Ok(Look::Cut)
            }
            Err(error) => Err(error),
        }
    }

    fn look_closely(&mut self, plan: &Plan, verdict: Verdict) -> Result<Look> {
        if self.tally.keys.contains(&verdict.key) {
            return Ok(Look::Confirmed);
        }
        // One that did not come back may do so the next time, but not every look is worth its time.
        if self.tally.unconfirmed >= MAX_UNCONFIRMED {
            self.tally.unconfirmed += 1;
            return Ok(Look::Unconfirmed);
        }
        let endless = matches!(verdict.kind, FindingKind::Livelock | FindingKind::GoodSamaritan);
        if endless && !is_worth_a_look(self.tally.too_long) {
            self.tally.too_long += 1;
            return Ok(Look::TooLong);
        }
        let config = self.run_config();
        let camera = self.check.camera(&config);
        let default = Plan::new(Policy::Default);
        let plan = if self.fails_by_default(&camera, &default, &verdict)? { &default } else { plan };
        let mut closeup = camera.shoot(Job::Plan(plan))?;
        for _ in 0..MORE_LOOKS {
            // With input from outside, it need not go the same way each time, and once is enough, as that is recorded.
            if !closeup.outside || closeup.verdict.as_ref().is_some_and(|v| v.kind == verdict.kind) {
                break;
            }
            closeup = camera.shoot(Job::Plan(plan))?;
        }
        if closeup.too_long {
            self.tally.too_long += 1;
            return Ok(Look::TooLong);
        }
        if closeup.verdict.as_ref().is_none_or(|v| v.kind != verdict.kind) {
            self.tally.unconfirmed += 1;
            self.locate(plan, closeup.run.tail.diverged);
            return Ok(Look::Unconfirmed);
        }
        if verdict.kind == FindingKind::Deadlock && !closeup.idle.is_empty() {
            self.tally.idle += 1;
            self.tally.awaited.get_or_insert(closeup.idle.join("; "));
            return Ok(Look::Idle);
        }
        let (outside, input) = (closeup.outside, closeup.input.take());
        let Some(mut finding) = closeup.into_finding(&camera, self.tally.executions) else {
            return Ok(Look::Unconfirmed);
        };
        finding.predicted = match self.prediction(plan) {
            // The finding does not depend on it.
            Err(error) if error.is_cut() => None,
            prediction => prediction?,
        };
        if let Some(input) = input
            && self.leads_there_with(&input, &finding)?
        {
            finding.schedule.input = Some(recorded_input::beside(&self.check.program.short_name(), &input));
            finding.input = Some(input);
            self.keep(verdict, finding);
            return Ok(Look::Confirmed);
        }
        // The schedule as it will be written must lead there, too.
        let again = camera.shoot(Job::Schedule(&finding.schedule))?;
        if again.run.execution.diverged.is_some() || again.signature() != finding.signature {
            self.tally.unconfirmed += 1;
            self.locate(plan, again.run.tail.diverged);
            return Ok(Look::Unconfirmed);
        }
        if outside {
            self.tally.notes |= 1 << (Note::Unrecorded as u8);
        }
        self.keep(verdict, finding);
        Ok(Look::Confirmed)
    }

    /// Whether a search by chance whose first execution failed would have failed by default, too. That is the shorter explanation.
    fn fails_by_default(&self, camera: &Camera<'_>, default: &Plan, verdict: &Verdict) -> Result<bool> {
        if self.tally.executions != 1 || !self.search.samples() {
            return Ok(false);
        }
        let closeup = camera.shoot(Job::Plan(default))?;
        Ok(!closeup.outside && closeup.verdict.is_some_and(|v| v.key == verdict.key))
    }

    /// Whether the schedule of a finding leads there with what was recorded, and nobody outside.
    fn leads_there_with(&self, input: &Arc<[u8]>, finding: &Finding) -> Result<bool> {
        let config = RunConfig { input: Some(input.clone()), ..self.run_config() };
        let again = self.check.camera(&config).shoot(Job::Schedule(&finding.schedule))?;
        Ok(again.run.execution.diverged.is_none() && again.signature() == finding.signature)
    }

    fn keep(&mut self, verdict: Verdict, mut finding: Finding) {
        self.tally.keys.insert(verdict.key);
        finding.executions_to_find = self.tally.executions;
        if self.tally.signatures.insert(finding.signature.clone()) {
            self.tally.findings.push(finding);
        }
    }

    /// Finds out, the first time, where the executions of a plan go different ways. What can't be found out is left open.
    pub(super) fn locate(&mut self, plan: &Plan, noticed: Option<Place>) {
        if self.tally.diverged_at.is_some() {
            return;
        }
        let check = self.check;
        let parting = divergence::part(&check.runtime, check.program, &self.run_config(), plan, noticed);
        let Parting { at, notes } = parting.unwrap_or_default();
        self.tally.diverged_at = Some(at);
        for note in notes {
            self.tally.notes |= 1 << (note as u8);
        }
    }
}
