//! Takes the results of a batch in the order of its plans, and decides whether they end the search.

use super::confirm::{Confirmation, Confirmer, MAX_FINDINGS};
use super::dpor_opening;
use super::hang;
use super::options::Races;
use super::outcome::Ended;
use super::plan_result::{FullResult, PlanResult};
use super::predictions;
use super::state::State;
use crate::error::Result;
use crate::explain::judge::Verdict;
use crate::process::access_points::Points;
use crate::process::slots::Run;
use heisen_search::Strategy;
use heisen_trace::{Note, Plan};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long results are taken after the end of the time. This suffices for very many results of most
/// programs.
const LAST_RESULTS: Duration = Duration::from_millis(500);

/// A finished batch: its plans, and the result of each plan that was run.
pub(super) type Done = (Arc<[Plan]>, Vec<Option<PlanResult>>);

/// Takes the results of a batch. The search starts over if they have shown new access points and its plans
/// depend on them.
pub(super) fn take_batch(state: &mut State<'_>, (plans, results): Done) -> Result<Option<Ended>> {
    let before = state.tally.points.clone();
    let mut taker = ResultTaker {
        points: (*before).clone(),
        state,
        began: Instant::now(),
        ended: None,
        missing: false,
        outgrown: false,
    };
    for (plan, result) in plans.iter().zip(results) {
        taker.take(plan, result)?;
    }
    let ResultTaker { state, points, ended, .. } = taker;
    if points != *state.tally.points {
        state.tally.points = Arc::new(points);
    }
    if ended.is_some() {
        return Ok(ended);
    }
    if state.tally.points.all && dpor_opening::is_over(&state.search, &state.tally) {
        Arc::make_mut(&mut state.tally.points).all = false;
    }
    let points = &state.tally.points;
    let anew = if before.all { !points.all } else { points.len() != before.len() };
    if anew && let Some(coverage) = &mut state.tally.coverage {
        coverage.start_over();
    }
    if anew && state.search.counts_steps() {
        state.start_over();
    }
    Ok(None)
}

/// Takes the results of one batch. Results after the first one that ends the search are discarded.
struct ResultTaker<'s, 'a> {
    state: &'s mut State<'a>,
    /// The access points, including those of this batch.
    points: Points,
    began: Instant,
    ended: Option<Ended>,
    /// Whether an earlier plan was not run, or its result was not taken.
    missing: bool,
    /// Whether an execution was too long for dpor's opening.
    outgrown: bool,
}

impl ResultTaker<'_, '_> {
    fn take(&mut self, plan: &Plan, result: Option<PlanResult>) -> Result<()> {
        let over = self.state.case.config.over().is_some();
        let late = over && self.began.elapsed() > LAST_RESULTS;
        // The order of results decides what a systematic search does next, so it must not depend on the
        // moment of an interruption.
        let missing = self.missing && !self.state.search.samples();
        if let Some(cut) = result.as_ref().and_then(PlanResult::cut_by_time) {
            let tally = &mut self.state.tally;
            tally.cut += 1;
            tally.awaited = tally.awaited.take().or_else(|| cut.awaited());
        }
        let result = result.map(PlanResult::open);
        if self.ended.is_some() || self.outgrown {
            self.state.search.give_back_unrun(plan);
            return Ok(());
        }
        match result {
            Some(Ok(full)) if !late && !missing => self.take_execution(plan, full),
            Some(Err(error)) if !missing && !error.is_cut() => Err(error),
            result => {
                self.give_back(plan);
                // A failure is reported even if the time was over before all results were taken.
                if let Some(Ok(FullResult { verdict: Some(verdict), .. })) = result
                    && over
                    && self.confirmer().confirm(plan, verdict)? == Confirmation::Confirmed
                    && self.is_enough()
                {
                    self.ended = Some(Ended::Found);
                }
                Ok(())
            }
        }
    }

    fn take_execution(&mut self, plan: &Plan, full: FullResult) -> Result<()> {
        let FullResult { mut run, hang, verdict } = full;
        self.count_steps(&run);
        self.points_of(&run);
        if self.points.all && dpor_opening::outgrows(&run) {
            // The execution has shown its conflicts, and nothing else of it is needed.
            self.points.all = false;
            self.state.search.give_back_unrun(plan);
            self.outgrown = true;
            return Ok(());
        }
        if self.points.all {
            self.state.tally.needless += dpor_opening::needless(&run, &self.points);
        }
        self.take_notes(plan, &run);
        let failed = verdict.is_some() && hang.is_none();
        if let Some(verdict) = verdict.filter(|_| failed)
            && !self.take_failure(plan, verdict)?
        {
            // A resumed search runs it again.
            self.give_back(plan);
            return Ok(());
        }
        self.cover(plan, &mut run);
        self.state.search.done(plan, &run.execution);
        self.count(&run);
        if run.execution.diverged.is_some() {
            self.confirmer().locate_divergence(plan, run.tail.diverged);
        }
        if let Some(hang) = hang {
            if self.state.tally.findings.is_empty() {
                return Err(hang::error(&hang, self.state.case.config.hang));
            }
            self.ended = Some(Ended::Found);
        }
        predictions::note_attempt(&mut self.state.tally, plan, failed);
        // Failures come before races. If the search stops at either, a failure is enough.
        let enough = failed && self.ended.is_some() && self.state.case.options.races == Races::Stop;
        if !enough && self.confirmer().take_races(plan, &run)? {
            self.ended = Some(Ended::Found);
        }
        // All further executions would be the same. After a failure that did not occur again, they are run
        // nevertheless.
        if self.ended.is_none() && self.state.is_alone() && self.state.tally.unconfirmed == 0 {
            self.ended = Some(Ended::Exhausted);
        }
        Ok(())
    }

    /// Confirms a failure. Returns false if the time was over first.
    fn take_failure(&mut self, plan: &Plan, verdict: Verdict) -> Result<bool> {
        match self.confirmer().confirm(plan, verdict)? {
            Confirmation::Confirmed if self.is_enough() => self.ended = Some(Ended::Found),
            // With nobody outside, all other executions would wait as long.
            Confirmation::Idle if !self.state.tally.has_note(Note::Outside) => self.ended = Some(Ended::Idle),
            Confirmation::Confirmed
            | Confirmation::Unconfirmed
            | Confirmation::TooLong
            | Confirmation::Idle => {}
            Confirmation::Cut => return Ok(false),
        }
        Ok(true)
    }

    fn give_back(&mut self, plan: &Plan) {
        self.state.search.give_back_unrun(plan);
        self.missing = true;
    }

    fn count_steps(&mut self, run: &Run) {
        let tally = &mut self.state.tally;
        tally.executions += 1;
        tally.assumed += u64::from(run.execution.notes.contains(&Note::Assumed));
        tally.steps += u64::from(run.execution.steps);
        tally.threads = tally.threads.max(run.execution.threads);
    }

    fn points_of(&mut self, run: &Run) {
        for conflict in &run.conflicts {
            self.points.learn(conflict);
        }
    }

    fn take_notes(&mut self, plan: &Plan, run: &Run) {
        // A plan that asks for all touches may overflow the log: that is not a caveat.
        let counts = |note: &&Note| !(plan.touches && **note == Note::LogFull);
        for &note in run.execution.notes.iter().filter(counts) {
            self.state.tally.add_note(note);
        }
    }

    fn count(&mut self, run: &Run) {
        let State { tally, search, .. } = &mut *self.state;
        tally.ahead += u64::from(run.skipped.is_some());
        tally.skipped += u64::from(run.skipped.unwrap_or(0));
        match run.forked {
            None => tally.undone += 1,
            Some(why) => tally.forked = why,
        }
        // Samplers count classes themselves: they ask for the class of only some executions.
        tally.classes.extend(run.execution.fingerprint.filter(|_| !search.samples()));
        tally.instrumented |= run.instrumented;
        if let Some(trace) = &run.execution.symbolic {
            tally.asks_for_inputs |= trace.reads_inputs();
            tally.called.extend(trace.called.iter().cloned());
        }
        if self.points.is_full() {
            tally.add_note(Note::TooManyPoints);
        }
    }

    /// Counts what an execution has covered, if coverage is on.
    fn cover(&mut self, plan: &Plan, run: &mut Run) {
        let time = self.state.time();
        let State { tally, search, .. } = &mut *self.state;
        let Some(coverage) = &mut tally.coverage else { return };
        coverage.take(run, time);
        // A sampler must not learn more than without coverage: it would choose differently.
        if search.samples() && !plan.tells_class() {
            run.execution.fingerprint = None;
        }
        if search.samples() && !plan.touches {
            run.execution.touches.clear();
        }
    }

    fn confirmer(&mut self) -> Confirmer<'_> {
        let State { case, search, tally, .. } = &mut *self.state;
        Confirmer { case, sampled: search.samples(), tally }
    }

    /// Whether a finding ends the search.
    fn is_enough(&self) -> bool {
        !self.state.case.options.keep_going || self.state.tally.findings.len() >= MAX_FINDINGS
    }
}
