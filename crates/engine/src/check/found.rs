//! What becomes of an execution that went wrong: a close look, and then once more by the schedule as it will be written.
//! Only what leads to the same place both times is a finding.

use super::MAX_UNCONFIRMED;
use super::driver::Driver;
use crate::diverge::{self, Parting, Place};
use crate::error::Result;
use crate::input;
use crate::judge::Verdict;
use crate::slot::Job;
use crate::zygote::Limits;
use heisen_trace::{Finding, Note, Plan};
use std::sync::Arc;

/// Further looks at a failure that depends on input from outside, until it comes back.
const MORE_LOOKS: usize = 9;

impl Driver<'_> {
    /// Looks closely at an execution that went wrong. False if it did not go wrong again.
    pub(super) fn found(&mut self, plan: &Plan, verdict: Verdict) -> Result<bool> {
        if self.tally.keys.contains(&verdict.key) {
            return Ok(true);
        }
        // One that did not come back may do so the next time, but not every look is worth its time.
        if self.tally.unconfirmed >= MAX_UNCONFIRMED {
            self.tally.unconfirmed += 1;
            return Ok(false);
        }
        let limits = self.limits();
        let camera = self.check.camera(&limits);
        let mut closeup = camera.shoot(Job::Plan(plan))?;
        for _ in 0..MORE_LOOKS {
            // With input from outside, it need not go the same way each time, and once is enough, as that is recorded.
            if !closeup.outside || closeup.verdict.as_ref().is_some_and(|v| v.kind == verdict.kind) {
                break;
            }
            closeup = camera.shoot(Job::Plan(plan))?;
        }
        if closeup.verdict.as_ref().is_none_or(|v| v.kind != verdict.kind) {
            self.tally.unconfirmed += 1;
            self.locate(plan, closeup.run.tail.diverged);
            return Ok(false);
        }
        let (outside, input) = (closeup.outside, closeup.input.take());
        let Some(mut finding) = closeup.into_finding(&camera, self.tally.executions) else {
            return Ok(false);
        };
        finding.predicted = self.prediction(plan)?;
        if let Some(input) = input
            && self.leads_there_with(&input, &finding)?
        {
            finding.schedule.input = Some(input::beside(&self.check.program.short_name(), &input));
            finding.input = Some(input);
            self.keep(verdict, finding);
            return Ok(true);
        }
        // The schedule as it will be written must lead there, too.
        let again = camera.shoot(Job::Schedule(&finding.schedule))?;
        if again.run.execution.diverged.is_some() || again.signature() != finding.signature {
            self.tally.unconfirmed += 1;
            self.locate(plan, again.run.tail.diverged);
            return Ok(false);
        }
        if outside {
            self.tally.notes |= 1 << (Note::Unrecorded as u8);
        }
        self.keep(verdict, finding);
        Ok(true)
    }

    /// Whether the schedule of a finding leads there with what was recorded, and nobody outside.
    fn leads_there_with(&self, input: &Arc<[u8]>, finding: &Finding) -> Result<bool> {
        let limits = Limits { input: Some(input.clone()), ..self.limits() };
        let again = self.check.camera(&limits).shoot(Job::Schedule(&finding.schedule))?;
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
        let parting = diverge::part(&check.runtime, check.program, &self.limits(), plan, noticed);
        let Parting { at, notes } = parting.unwrap_or_default();
        self.tally.diverged_at = Some(at);
        for note in notes {
            self.tally.notes |= 1 << (note as u8);
        }
    }
}
