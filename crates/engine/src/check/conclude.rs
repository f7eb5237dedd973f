//! The outcome of a check: what was explored, and in sentences what was not, so that nothing is claimed that was not shown.

use super::driver::Driver;
use super::{Ended, Kind, Outcome};
use crate::error::Result;
use crate::{blind, diverge};
use heisen_search::Strategy;
use heisen_trace::Note;

impl Driver<'_> {
    /// The outcome of a search that has ended.
    pub(super) fn conclude(mut self, ended: Ended) -> Result<Outcome> {
        self.tally.time = self.time();
        let status = self.search.status();
        let blind = blind::blind(self.check.program);
        let all_followed = !status.has_gaps() && self.tally.unconfirmed == 0;
        let sound = self.is_sound(ended) && all_followed && blind.is_none();
        let mut not_controlled: Vec<String> = self.about_accesses(ended).into_iter().collect();
        not_controlled.extend(self.about_races());
        not_controlled.extend(blind);
        not_controlled.extend(self.check.options.scope.sentence());
        if self.check.program.at_ready {
            not_controlled.push(
                "what the program does before heisen_ready: it ran once, under the default schedule".into(),
            );
        }
        not_controlled.extend(Note::in_word(self.tally.notes).map(|n| n.text().to_owned()));
        if matches!(self.check.options.strategy, Kind::Dpor | Kind::Bpor) && status.diverged > 0 {
            not_controlled.push(
                "dpor does not fit this program: executions of the same steps touched different things; icb and dfs do \
                 without (--strategy icb, --strategy dfs)"
                    .into(),
            );
        }
        if status.cut > 0 {
            not_controlled.push(format!(
                "executions of more than {} events ({} of them): dpor looks at the beginning only; icb does not (--strategy icb)",
                heisen_search::MOST_EVENTS,
                status.cut
            ));
        }
        let why = diverge::explain(
            self.tally.diverged_at.as_deref().unwrap_or_default(),
            Note::in_word(self.tally.notes),
        );
        for (count, what) in [
            (status.diverged, format!("diverged from their plan{why}")),
            (
                self.tally.unconfirmed,
                format!("failed but did not fail again when replayed, and are not reported{why}"),
            ),
        ] {
            match count {
                0 => {}
                1 => not_controlled.push(format!("1 execution {}", what.replace("their plan", "its plan"))),
                _ => not_controlled.push(format!("{count} executions {what}")),
            }
        }
        match self.tally.lost {
            0 => {}
            1 => not_controlled
                .push("the parked program was killed once; what it had to run was run again".into()),
            times => not_controlled.push(format!(
                "the parked program was killed {times} times; what it had to run was run again"
            )),
        }
        let regions = self.tally.notes & 1 << (Note::NoPreempt as u8) != 0;
        let scoped = regions || !self.check.options.scope.is_empty();
        let hints = if ended == Ended::Interrupted { Vec::new() } else { self.hints()? };
        let Driver { tally, search, .. } = self;
        Ok(Outcome { ended, tally, status, not_controlled, hints, scoped, sound, search, error: None })
    }
}
