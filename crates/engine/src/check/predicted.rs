//! What was predicted, in words: of a finding that an execution was steered to, and of what no execution came to, as a
//! hint.
//!
//! A prediction knows threads, objects and numbers of deeds. Where in the program they are is found out by running the
//! execution that it was made from once more, with all events logged.

use super::driver::Driver;
use crate::error::Result;
use crate::explain::close_up::{Closeup, TraceLine};
use crate::process::slots::Job;
use heisen_trace::{
    Deed, Family, FindingKind, Op, Plan, Policy, Predicted, Prediction, Target, ThreadId, touch,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Hints at most; more than that nobody reads.
const MAX_HINTS: usize = 20;
/// Predictions that are looked at for them at most.
const MAX_LOOKS: usize = 4 * MAX_HINTS;

/// A prediction that was worth a hint, and was tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tried {
    predicted: Arc<Predicted>,
    failed: bool,
}

impl Driver<'_> {
    /// An execution that was steered has ended, and went wrong or not.
    pub(super) fn tried(&mut self, plan: &Plan, failed: bool) {
        let Policy::Directed { to, .. } = &plan.policy else { return };
        if !to.target.likely {
            return;
        }
        let tried = &mut self.tally.tried;
        if let Some(known) = tried.iter_mut().find(|tried| tried.predicted == *to) {
            known.failed |= failed;
        } else if tried.len() < MAX_LOOKS {
            tried.push(Tried { predicted: to.clone(), failed });
        }
    }

    /// The prediction that a plan is steered to, in words; none if that cannot be found out any more.
    pub(super) fn prediction(&self, plan: &Plan) -> Result<Option<Prediction>> {
        let Policy::Directed { to, .. } = &plan.policy else { return Ok(None) };
        Ok(describe(&self.look_back(&to.policy)?, to))
    }

    /// What was worth a hint and did not come true, as far as there is time to look at it.
    pub(super) fn hints(&self) -> Result<Vec<Prediction>> {
        let mut hints = Vec::new();
        match self.look_for_hints(&mut hints) {
            Err(error) if !error.is_cut() => Err(error),
            _ => Ok(hints),
        }
    }

    fn look_for_hints(&self, hints: &mut Vec<Prediction>) -> Result<()> {
        let mut seen: Option<(&Policy, Closeup)> = None;
        let mut known = BTreeSet::new();
        for Tried { predicted, .. } in self.tally.tried.iter().filter(|tried| !tried.failed) {
            if seen.as_ref().is_none_or(|(policy, _)| **policy != predicted.policy) {
                seen = Some((&predicted.policy, self.look_back(&predicted.policy)?));
            }
            let Some((_, closeup)) = &seen else { continue };
            let places = places(closeup, &predicted.target);
            if known.contains(&places) || self.came_true(predicted.target.family, &places) {
                continue;
            }
            if let Some(hint) = describe(closeup, predicted)
                && self.is_worth_telling(closeup, predicted)?
            {
                known.insert(places);
                hints.push(hint);
            }
            if hints.len() == MAX_HINTS {
                break;
            }
        }
        Ok(())
    }

    /// Runs an execution of the search again, with every event.
    fn look_back(&self, policy: &Policy) -> Result<Closeup> {
        let config = self.run_config();
        let mut camera = self.check.camera(&config);
        camera.trace = true;
        camera.shoot(Job::Plan(&Plan::new(policy.clone())))
    }

    /// A thread that writes what it has read is told only if the other does come between, and if it does not look whether what
    /// it has read is still so, as some atomic operations do.
    fn is_worth_telling(&self, closeup: &Closeup, predicted: &Arc<Predicted>) -> Result<bool> {
        let target = &predicted.target;
        let Some(last) = target.deeds.last().filter(|_| target.family != Family::LockOrder) else {
            return Ok(true);
        };
        let writes = |line: &TraceLine| matches!(line.event.op, Op::MemWrite | Op::AtomicStore);
        if !find(closeup, last).is_some_and(writes) || !is_of_one_object(closeup, target) {
            return Ok(false);
        }
        let steered = self.look_back(&Policy::Directed { seed: 0, length: 0, to: predicted.clone() })?;
        let steps: Option<Vec<u32>> =
            target.deeds.iter().map(|deed| Some(find(&steered, deed)?.event.step)).collect();
        Ok(steps.is_some_and(|steps| steps.is_sorted()) && is_of_one_object(&steered, target))
    }

    /// Whether a deadlock was found at these places, in another way.
    fn came_true(&self, family: Family, places: &BTreeSet<String>) -> bool {
        let deadlocks = self.tally.findings.iter().filter(|finding| finding.kind == FindingKind::Deadlock);
        family == Family::LockOrder
            && deadlocks.into_iter().any(|finding| {
                let locks = |op: Op| matches!(op, Op::Lock | Op::ReadLock | Op::WriteLock);
                let waits = finding.threads.iter().filter(|t| t.blocked && locks(t.op));
                waits.filter_map(|t| t.stack.place()).all(|frame| places.contains(&frame.place()))
            })
    }
}

/// The event of a deed.
fn find<'a>(closeup: &'a Closeup, deed: &Deed) -> Option<&'a TraceLine> {
    let is_it = |line: &&TraceLine| {
        let event = &line.event;
        let same = match deed.op {
            0 => is_access(event.op) && event.object & !(touch::WORD - 1) == deed.object,
            op => event.op as u8 == op && event.object == deed.object,
        };
        event.thread.0 == deed.thread && same
    };
    closeup.trace.iter().filter(is_it).nth((deed.nth as usize).checked_sub(1)?)
}

/// Whether all is done to one object. What is told apart by words of memory may be two variables.
fn is_of_one_object(closeup: &Closeup, target: &Target) -> bool {
    let objects: BTreeSet<Option<u64>> =
        target.deeds.iter().map(|deed| Some(find(closeup, deed)?.event.object)).collect();
    objects.len() == 1 && !objects.contains(&None)
}

fn is_access(op: Op) -> bool {
    matches!(
        op,
        Op::MemRead | Op::MemWrite | Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas
    )
}

/// Where its threads would have gone wrong.
fn places(closeup: &Closeup, target: &Target) -> BTreeSet<String> {
    let place = |deed| find(closeup, deed).map(|line| line.place.clone());
    target.deeds.iter().filter_map(place).collect()
}

fn describe(closeup: &Closeup, predicted: &Predicted) -> Option<Prediction> {
    let target = &predicted.target;
    let lines: Vec<(&Deed, &TraceLine)> =
        target.deeds.iter().map(|deed| Some((deed, find(closeup, deed)?))).collect::<Option<_>>()?;
    let who = |deed: &Deed| {
        let id = ThreadId(deed.thread);
        let name = closeup.lines.iter().find(|line| line.thread == id).map(|line| line.start.as_str());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => format!("{id} ({name})"),
            None => id.to_string(),
        }
    };
    let does = |line: &TraceLine| format!("{}({}) at {}", line.event.op.name(), line.object, line.place);
    let steps = match target.family {
        Family::LockOrder => lines
            .chunks_exact(2)
            .map(|pair| {
                let ((deed, held), (_, wants)) = (pair[0], pair[1]);
                format!(
                    "{} waits for {} at {}, holding {} since {}",
                    who(deed),
                    wants.object,
                    wants.place,
                    held.object,
                    held.place
                )
            })
            .collect(),
        _ => lines.iter().map(|(deed, line)| format!("{}: {}", who(deed), does(line))).collect(),
    };
    Some(Prediction { family: target.family, execution: predicted.execution, steps })
}
