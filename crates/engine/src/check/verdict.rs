//! The outcome of a check: what was explored, and in sentences what was not, so that nothing is claimed that was not shown.

use super::driver::Driver;
use super::{Empty, Ended, Kind, Outcome, Races, Reach};
use crate::check::sentences::{
    AWAITED, BEFORE_READY, BLIND, CUT, DIVERGED, DPOR_CUT, DPOR_UNFIT, LOST, NO_RACES, NO_TIME,
    NO_TIME_TO_CONFIRM, NOT_CONFIRMED, OUT_OF_TIME, TOO_LONG, UNCONFIRMED,
};
use crate::error::Result;
use crate::explain::divergence;
use crate::program::uninstrumented;
use heisen_search::{Status, Strategy};
use heisen_trace::Note;

/// What says nothing of a program in which only one thread ran.
const OF_THREADS: u64 =
    Note::WeakOrders.bit() | Note::FarTimeout.bit() | Note::TimerFd.bit() | Note::Watchdog.bit();

impl Driver<'_> {
    /// The outcome of a search that has ended.
    pub(super) fn conclude(mut self, ended: Ended) -> Result<Outcome> {
        let status = self.search.status();
        let alone = self.tally.is_alone() && self.tally.all_judged();
        let blind = if alone { None } else { uninstrumented::blind(self.check.program) };
        let all_followed = !status.has_gaps() && self.tally.all_judged();
        let accesses_explored = self.is_sound(ended) && all_followed && blind.is_none();
        let reach = self.reach(blind.is_some());
        let out_of_time = ended == Ended::Limit && self.left(0) != Some(0);
        let mut not_controlled: Vec<String> = Vec::new();
        if !alone {
            not_controlled.extend(self.about_accesses(ended));
            not_controlled.extend(self.about_races());
            not_controlled.extend(blind.map(|code| BLIND.with(&[("code", &code)])));
            not_controlled.extend(self.check.options.scope.sentence());
        }
        if out_of_time && self.search.samples() {
            not_controlled.push(OUT_OF_TIME.with(&[("executions", &executions(self.tally.executions))]));
        }
        self.tally.notes &= if alone { !OF_THREADS } else { u64::MAX };
        not_controlled.extend(self.about_executions(&status));
        not_controlled.extend(self.left_open(ended));
        let regions = self.tally.notes & Note::NoPreempt.bit() != 0;
        let patterns = !self.check.options.scope.is_empty();
        let empty = match self.tally.notes & (Note::InScope.bit() | Note::OutOfScope.bit()) {
            _ if alone && ended == Ended::Exhausted && self.check.ran_no_test() => Some(Empty::NoTest),
            _ if alone => Some(Empty::OneThread),
            only if patterns && only == Note::OutOfScope.bit() => Some(Empty::NoPointInScope),
            _ => None,
        };
        let hints = if ended == Ended::Interrupted { Vec::new() } else { self.hints()? };
        self.tally.time = self.time();
        let Driver { tally, search, .. } = self;
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
        let accesses = &self.check.options.world.accesses;
        match self.check.config.patches.summary() {
            _ if self.tally.instrumented && !accesses.check && !accesses.all => Reach::Atomics,
            _ if self.tally.instrumented && blind => Reach::Partly,
            _ if self.tally.instrumented => Reach::All,
            Some(_) => Reach::Patched,
            None => Reach::Calls,
        }
    }

    /// What is to be said of what executions did.
    fn about_executions(&self, status: &Status) -> Vec<String> {
        let mut said = Vec::new();
        let options = self.check.options;
        let asked = matches!(options.races, Races::Report | Races::Stop);
        if asked && !self.tally.instrumented && !self.tally.is_alone() {
            said.push(NO_RACES.plain());
        }
        if self.check.program.at_ready {
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
        said.extend(self.about_computing());
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
                    let seconds = (self.check.config.hang / 4).as_secs_f32();
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
