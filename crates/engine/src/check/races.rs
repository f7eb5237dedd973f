//! What a search does about data races besides making scheduling points of them: the first of each pair of places is
//! looked at closely, and reported unless it is suppressed.

use super::driver::Driver;
use super::{Caveat, Ended, MAX_FINDINGS, MAX_UNCONFIRMED, Races};
use crate::check::access_points::Conflict;
use crate::error::Result;
use crate::explain::close_up::Closeup;
use crate::explain::race_close_up::Scene;
use crate::explain::race_log::Fate;
use crate::process::slots::{Job, Run};
use crate::process::zygote::RunConfig;
use heisen_trace::{Note, Plan};
use std::collections::BTreeSet;

impl Driver<'_> {
    /// Takes the races of an execution; whether they end the search.
    pub(super) fn take_races(&mut self, plan: &Plan, run: &Run) -> Result<bool> {
        let races: Vec<Conflict> = run.conflicts.iter().copied().filter(Conflict::is_race).collect();
        let mut reports = BTreeSet::new();
        if self.races_asked_for() && races.iter().any(|race| !self.is_known(race)) {
            match self.look_at_races(plan, &races, &mut reports) {
                // What was not looked at is not known, so the next execution with it is looked at.
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
                None | Some(Fate::Told) if !self.races_asked_for() => {
                    let exact = self.tally.points.is_racy(race.address);
                    self.tally.races.settle(race, if exact { Fate::Unlisted } else { Fate::Told });
                }
                _ => {}
            }
        }
        self.tally.races.count(&reports);
        Ok(self.one_race_is_enough() && !reports.is_empty())
    }

    fn races_asked_for(&self) -> bool {
        matches!(self.check.options.races, Races::Report | Races::Stop)
    }

    fn one_race_is_enough(&self) -> bool {
        self.check.options.races == Races::Stop && !self.check.options.keep_going
    }

    /// Whether nothing new can be learned of a race that an execution told of.
    fn is_known(&self, race: &Conflict) -> bool {
        match self.tally.races.fate(race) {
            None => false,
            Some(Fate::Told) => !self.tally.points.is_racy(race.address),
            Some(_) => true,
        }
    }

    /// Looks closely at the races of an execution that are not known yet; `told` is what it said of them itself. The
    /// numbers of all that are reported are added to `reports`.
    fn look_at_races(&mut self, plan: &Plan, told: &[Conflict], reports: &mut BTreeSet<usize>) -> Result<()> {
        if self.tally.unconfirmed >= MAX_UNCONFIRMED {
            return Ok(());
        }
        let config = self.run_config();
        let scene = self.check.camera(&config).scene(Job::Plan(plan))?;
        for race in &scene.races {
            let full = self.tally.races.reports().len() >= MAX_FINDINGS;
            let fate = match self.tally.races.fate(race) {
                Some(fate) if fate != Fate::Told => Some(fate),
                _ if full => Some(Fate::Unlisted),
                _ => self.look_at_race(plan, &config, &scene, race)?,
            };
            // What did not come up again may do so in another execution.
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
                self.tally.races.settle(race, Fate::Told);
            } else {
                self.unconfirmed(plan);
            }
        }
        Ok(())
    }

    /// Looks closely at one race. None if it did not come up again.
    fn look_at_race(
        &mut self,
        plan: &Plan,
        config: &RunConfig,
        scene: &Scene,
        race: &Conflict,
    ) -> Result<Option<Fate>> {
        let camera = self.check.camera(config);
        let closeup = camera.race_in(scene, Job::Plan(plan), race)?;
        let seen = closeup.as_ref().and_then(|closeup| closeup.race.clone());
        let (Some(closeup), Some(seen)) = (closeup, seen) else { return Ok(self.unconfirmed(plan)) };
        let signature = closeup.signature();
        if let Some(line) = self.check.options.suppressions.fits(&seen) {
            self.tally.races.suppress(signature);
            return Ok(Some(Fate::Suppressed(line)));
        }
        if let Some(number) = self.tally.races.number_of(&signature) {
            return Ok(Some(Fate::Reported(number)));
        }
        let outside = closeup.outside;
        let Some(finding) = closeup.into_finding(&camera, self.tally.executions) else { return Ok(None) };
        // The schedule as it will be written must lead there, too.
        let same = |other: &Conflict| other.pair() == race.pair();
        let is_it = |again: &Closeup| again.signature() == signature;
        let again = camera.race(Job::Schedule(&finding.schedule), &same, &is_it)?;
        if again.is_none_or(|again| again.run.execution.diverged.is_some() || !is_it(&again)) {
            return Ok(self.unconfirmed(plan));
        }
        if outside {
            self.tally.notes |= 1 << (Note::Unrecorded as u8);
        }
        Ok(Some(Fate::Reported(self.tally.races.report(finding))))
    }

    /// A race did not come up again.
    fn unconfirmed(&mut self, plan: &Plan) -> Option<Fate> {
        self.tally.unconfirmed += 1;
        self.locate(plan, None);
        None
    }

    /// Whether every access that conflicts in any execution within the bound is a scheduling point, so that the bound was
    /// explored soundly (ICB, PLDI'07, theorem 2).
    pub(super) fn is_sound(&self, ended: Ended) -> bool {
        let accesses = &self.check.options.world.accesses;
        let partly = [Note::TooManyConflicts, Note::TooManyPoints, Note::TooManyAccesses];
        self.tally.instrumented
            && (accesses.check || accesses.all)
            && ended == Ended::Exhausted
            && !self.search.samples()
            && partly.iter().all(|&note| self.tally.notes & 1 << (note as u8) == 0)
    }

    /// What is to be said of accesses of memory.
    pub(super) fn about_accesses(&self, ended: Ended) -> Option<Caveat> {
        let accesses = &self.check.options.world.accesses;
        if !self.tally.instrumented {
            let patched = self.check.config.patches.patched();
            return Some(if patched.is_empty() { Caveat::CallsOnly } else { Caveat::PatchedOnly(patched) });
        }
        if accesses.all || self.tally.points.all {
            return None;
        }
        if !accesses.check {
            return Some(Caveat::AtomicsOnly);
        }
        // A search that ends with a finding has done what it was asked for.
        let cut = matches!(ended, Ended::Limit | Ended::Interrupted | Ended::Failed);
        (cut && !self.search.samples()).then_some(Caveat::StoppedEarly)
    }

    /// What is to be said of races that were not listed, though that was asked for.
    pub(super) fn about_races(&self) -> Option<Caveat> {
        let more = self.tally.races.unlisted();
        (self.races_asked_for() && more > 0).then_some(Caveat::MoreRaces { listed: MAX_FINDINGS, more })
    }
}
