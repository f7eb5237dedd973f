//! The outcome of a check: what was explored, and in sentences what was not, so that nothing is claimed that was not shown.

use super::confirm::MAX_FINDINGS;
use super::hang;
use super::options::Kind;
use super::outcome::{Empty, Ended, Outcome, Reach};
use super::predictions;
use super::state::State;
use crate::check::sentences::{
    ATOMICS_ONLY, AWAITED, BEFORE_READY, BLIND, CALLS_ONLY, CUT, DIVERGED, DPOR_CUT, DPOR_UNFIT, LOST,
    MORE_RACES, NO_RACES, NO_TIME, NO_TIME_TO_CONFIRM, NOT_CONFIRMED, OUT_OF_TIME, PATCHED_ONLY,
    STOPPED_EARLY, TOO_LONG, UNCONFIRMED,
};
use crate::error::Result;
use crate::explain::divergence;
use crate::program::uninstrumented;
use heisen_search::{Status, Strategy};
use heisen_trace::Note;

/// What says nothing of a program in which only one thread ran.
const OF_THREADS: u64 =
    Note::WeakOrders.bit() | Note::FarTimeout.bit() | Note::TimerFd.bit() | Note::Watchdog.bit();

impl State<'_> {
    /// The outcome of a search that has ended.
    pub(super) fn conclude(mut self, ended: Ended) -> Result<Outcome> {
        let status = self.search.status();
        let alone = self.tally.is_alone() && self.tally.all_judged();
        let blind = if alone { None } else { uninstrumented::blind(self.case.program) };
        let all_followed = !status.has_gaps() && self.tally.all_judged();
        let accesses_explored = self.is_sound(ended) && all_followed && blind.is_none();
        let reach = self.reach(blind.is_some());
        let out_of_time = ended == Ended::Limit && self.executions_left(0) != Some(0);
        let mut not_controlled: Vec<String> = Vec::new();
        if !alone {
            not_controlled.extend(self.about_accesses(ended));
            not_controlled.extend(self.about_races());
            not_controlled.extend(blind.map(|code| BLIND.with(&[("code", &code)])));
            not_controlled.extend(self.case.options.scope.sentence());
        }
        if out_of_time && self.search.samples() {
            not_controlled.push(OUT_OF_TIME.with(&[("executions", &executions(self.tally.executions))]));
        }
        self.tally.notes &= if alone { !OF_THREADS } else { u64::MAX };
        not_controlled.extend(self.about_executions(&status));
        not_controlled.extend(self.left_open(ended));
        let regions = self.tally.notes & Note::NoPreempt.bit() != 0;
        let patterns = !self.case.options.scope.is_empty();
        let empty = match self.tally.notes & (Note::InScope.bit() | Note::OutOfScope.bit()) {
            _ if alone && ended == Ended::Exhausted && self.case.ran_no_test() => Some(Empty::NoTest),
            _ if alone => Some(Empty::OneThread),
            only if patterns && only == Note::OutOfScope.bit() => Some(Empty::NoPointInScope),
            _ => None,
        };
        let hints = if ended == Ended::Interrupted {
            Vec::new()
        } else {
            predictions::hints(self.case, &self.tally)?
        };
        self.tally.time = self.time();
        let State { tally, search, .. } = self;
        Ok(Outcome {
            ended,
            tally,
            status,
            not_controlled,
            hints,
            scoped: regions || patterns,
            accesses_explored,
            reach,
            empty,
            out_of_time,
            search,
            error: None,
        })
    }

    /// Which accesses of memory the schedules that were explored have in any order.
    fn reach(&self, blind: bool) -> Reach {
        let accesses = &self.case.options.world.accesses;
        match self.case.config.patches.summary() {
            _ if self.tally.instrumented && !accesses.check && !accesses.all => Reach::Atomics,
            _ if self.tally.instrumented && blind => Reach::Partly,
            _ if self.tally.instrumented => Reach::All,
            Some(_) => Reach::Patched,
            None => Reach::Calls,
        }
    }

    /// Whether every access that conflicts in any execution within the bound is a scheduling point, so that the bound was
    /// explored soundly (ICB, PLDI'07, theorem 2).
    fn is_sound(&self, ended: Ended) -> bool {
        let accesses = &self.case.options.world.accesses;
        let partly = [Note::TooManyConflicts, Note::TooManyPoints, Note::TooManyAccesses];
        self.tally.instrumented
            && (accesses.check || accesses.all)
            && ended == Ended::Exhausted
            && !self.search.samples()
            && partly.iter().all(|&note| !self.tally.has_note(note))
    }

    /// What is to be said of accesses of memory.
    fn about_accesses(&self, ended: Ended) -> Option<String> {
        let accesses = &self.case.options.world.accesses;
        if !self.tally.instrumented {
            return Some(match self.case.config.patches.summary() {
                Some(patched) => PATCHED_ONLY.with(&[("patched", &patched)]),
                None => CALLS_ONLY.plain(),
            });
        }
        if accesses.all || self.tally.points.all {
            return None;
        }
        if !accesses.check {
            return Some(ATOMICS_ONLY.plain());
        }
        // A search that ends with a finding has done what it was asked for.
        let cut = matches!(ended, Ended::Limit | Ended::Interrupted | Ended::Failed);
        (cut && !self.search.samples()).then(|| STOPPED_EARLY.plain())
    }

    /// What is to be said of races that were not listed, though that was asked for.
    fn about_races(&self) -> Option<String> {
        let unlisted = self.tally.races.unlisted();
        (self.case.options.reports_races() && unlisted > 0)
            .then(|| MORE_RACES.with(&[("listed", &MAX_FINDINGS), ("more", &unlisted)]))
    }

    /// What is to be said of what executions did.
    fn about_executions(&self, status: &Status) -> Vec<String> {
        let mut said = Vec::new();
        let options = self.case.options;
        if options.reports_races() && !self.tally.instrumented && !self.tally.is_alone() {
            said.push(NO_RACES.plain());
        }
        if self.case.program.at_ready {
            said.push(BEFORE_READY.plain());
        }
        // One after the other, executions share nothing that bears their process id.
        let shared = |note: &Note| *note != Note::FileOfPid || options.jobs > 1;
        let caveats = Note::in_word(self.tally.notes).filter(|note| note.is_caveat() && shared(note));
        said.extend(caveats.map(|note| note.text().to_owned()));
        if matches!(options.strategy, Kind::Dpor | Kind::Bpor) && status.diverged > 0 {
            said.push(DPOR_UNFIT.plain());
        }
        if status.cut > 0 {
            said.push(DPOR_CUT.with(&[("events", &heisen_search::MOST_EVENTS), ("executions", &status.cut)]));
        }
        let why = divergence::explain(
            self.tally.diverged_at.as_deref().unwrap_or_default(),
            Note::in_word(self.tally.notes),
        );
        for (count, sentence) in [(status.diverged, DIVERGED), (self.tally.unconfirmed, UNCONFIRMED)] {
            let their = if count == 1 { "its" } else { "their" };
            if count > 0 {
                said.push(sentence.with(&[
                    ("executions", &executions(count)),
                    ("their", &their),
                    ("why", &why),
                ]));
            }
        }
        said.extend(self.case.computed.get().map(|hang| hang::computed_caveat(hang, self.case.config.hang)));
        if self.tally.too_long > 0 {
            let words: [(&str, &dyn std::fmt::Display); 2] =
                [("executions", &executions(self.tally.too_long)), ("steps", &options.steps)];
            said.push(TOO_LONG.with(&words));
        }
        match self.tally.lost {
            0 => {}
            1 => said.push(LOST.with(&[("times", &"once")])),
            times => said.push(LOST.with(&[("times", &format!("{times} times"))])),
        }
        said
    }

    /// What the end of the time, or silence from outside, has left open.
    fn left_open(&self, ended: Ended) -> Vec<String> {
        let mut said = Vec::new();
        let tally = &self.tally;
        if tally.unexamined > 0 {
            let failed: [(&str, &dyn std::fmt::Display); 2] = [
                ("executions", &executions(tally.unexamined)),
                ("seemed", &tally.seemed.as_deref().unwrap_or_default()),
            ];
            let sentence = if ended == Ended::Interrupted { NOT_CONFIRMED } else { NO_TIME_TO_CONFIRM };
            said.push(sentence.with(&failed));
        }
        if tally.cut > 0 {
            said.push(CUT.with(&[("executions", &executions(tally.cut))]));
        }
        if let Some(awaited) = &tally.awaited {
            let silence = match tally.idle {
                0 => String::new(),
                _ => {
                    let seconds = (self.case.config.hang / 4).as_secs_f32();
                    format!(", and nobody came for {seconds} s (a quarter of --hang)")
                }
            };
            said.push(AWAITED.with(&[("awaited", awaited), ("silence", &silence)]));
        }
        if ended == Ended::Limit && tally.executions == 0 && tally.cut == 0 {
            said.push(NO_TIME.plain());
        }
        said
    }
}

/// So many executions.
fn executions(count: u64) -> String {
    if count == 1 { "1 execution".to_owned() } else { format!("{count} executions") }
}
