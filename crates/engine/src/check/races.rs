//! Confirms data races: takes a close-up of the first race of each pair of places, and reports it unless it
//! is suppressed. Access points are not its task.

use super::confirm::{Confirmer, MAX_FINDINGS, MAX_UNCONFIRMED};
use super::options::Races;
use crate::error::Result;
use crate::explain::close_up::Closeup;
use crate::explain::kinds;
use crate::explain::race_close_up::JobRaces;
use crate::explain::race_log::Fate;
use crate::process::access_points::Conflict;
use crate::process::run_config::RunConfig;
use crate::process::slots::{Job, Run};
use heisen_trace::{Note, Plan};
use std::collections::BTreeSet;

impl Confirmer<'_> {
    /// Takes the races of an execution. Returns whether they end the search.
    pub(super) fn take_races(&mut self, plan: &Plan, run: &Run) -> Result<bool> {
        let races: Vec<Conflict> = run.conflicts.iter().copied().filter(Conflict::is_race).collect();
        let mut reports = BTreeSet::new();
        if self.case.options.reports_races() && races.iter().any(|race| !self.is_known(race)) {
            match self.close_up_races(plan, &races, &mut reports) {
                // A race without a close-up remains unknown, so the next execution with it gets one.
                Err(error) if error.is_cut() => {
                    self.tally.unexamined += 1;
                    self.tally.seemed.get_or_insert_with(|| "a data race".to_owned());
                }
                looked => looked?,
            }
        }
        for race in &races {
            match self.tally.races.fate(race) {
                Some(Fate::Reported(number)) => {
                    reports.insert(number);
                }
                None | Some(Fate::Uncertain) if !self.case.options.reports_races() => {
                    let exact = self.tally.points.is_racy(race.address);
                    self.tally.races.settle(race, if exact { Fate::Unlisted } else { Fate::Uncertain });
                }
                _ => {}
            }
        }
        self.tally.races.count(&reports);
        Ok(self.one_race_is_enough() && !reports.is_empty())
    }

    fn one_race_is_enough(&self) -> bool {
        self.case.options.races == Races::Stop && !self.case.options.keep_going
    }

    /// Whether nothing new can be learned about a race that an execution reported.
    fn is_known(&self, race: &Conflict) -> bool {
        match self.tally.races.fate(race) {
            None => false,
            Some(Fate::Uncertain) => !self.tally.points.is_racy(race.address),
            Some(_) => true,
        }
    }

    /// Takes close-ups of the unknown races of an execution; `told` are the races that the execution itself
    /// reported. Adds the numbers of all reported races to `reports`.
    fn close_up_races(
        &mut self,
        plan: &Plan,
        told: &[Conflict],
        reports: &mut BTreeSet<usize>,
    ) -> Result<()> {
        if self.tally.unconfirmed >= MAX_UNCONFIRMED {
            return Ok(());
        }
        let config = self.config();
        let scene = self.case.recorder(&config).races_of(Job::Plan(plan))?;
        for race in &scene.races {
            let full = self.tally.races.reports().len() >= MAX_FINDINGS;
            let fate = match self.tally.races.fate(race) {
                Some(fate) if fate != Fate::Uncertain => Some(fate),
                _ if full => Some(Fate::Unlisted),
                _ => self.close_up_race(plan, &config, &scene, race)?,
            };
            // A race that did not occur again may do so in another execution.
            let Some(fate) = fate else { continue };
            self.tally.races.settle(race, fate);
            if let Fate::Reported(number) = fate {
                reports.insert(number);
                if self.one_race_is_enough() {
                    return Ok(());
                }
            }
        }
        for race in told {
            if self.tally.races.fate(race).is_some() {
                continue;
            }
            let near = |other: &Conflict| other.address / 8 == race.address / 8;
            if scene.races.iter().any(near) {
                self.tally.races.settle(race, Fate::Uncertain);
            } else {
                self.unconfirmed(plan);
            }
        }
        Ok(())
    }

    /// Takes a close-up of one race. Returns `None` if the race did not occur again.
    fn close_up_race(
        &mut self,
        plan: &Plan,
        config: &RunConfig,
        scene: &JobRaces,
        race: &Conflict,
    ) -> Result<Option<Fate>> {
        let recorder = self.case.recorder(config);
        let closeup = recorder.race_in(scene, Job::Plan(plan), race)?;
        let seen = closeup.as_ref().and_then(|closeup| closeup.race.clone());
        let (Some(closeup), Some(seen)) = (closeup, seen) else { return Ok(self.unconfirmed(plan)) };
        let signature = closeup.signature();
        if let Some(line) = self.case.options.suppressions.fits(&seen) {
            self.tally.races.suppress(signature);
            return Ok(Some(Fate::Suppressed(line)));
        }
        if let Some(number) = self.tally.races.number_of(&signature) {
            return Ok(Some(Fate::Reported(number)));
        }
        let outside = closeup.outside;
        let Some(mut finding) = closeup.into_finding(&recorder, self.tally.executions) else {
            return Ok(None);
        };
        if self.case.options.explain {
            finding.explanation = kinds::at_once(&finding).map(Box::new);
        }
        // The schedule as it will be written must lead to the same race.
        let same = |other: &Conflict| other.pair() == race.pair();
        let is_it = |again: &Closeup| again.signature() == signature;
        let again = recorder.race(Job::Schedule(&finding.schedule), &same, &is_it)?;
        if again.is_none_or(|again| again.run.execution.diverged.is_some() || !is_it(&again)) {
            return Ok(self.unconfirmed(plan));
        }
        if outside {
            self.tally.add_note(Note::Unrecorded);
        }
        Ok(Some(Fate::Reported(self.tally.races.report(finding))))
    }

    /// Records that a race did not occur again.
    fn unconfirmed(&mut self, plan: &Plan) -> Option<Fate> {
        self.tally.unconfirmed += 1;
        self.locate_divergence(plan, None);
        None
    }
}
