//! Takes close-ups of data races. The search knows only the two places of a race. Here the schedule runs
//! again with pauses at both accesses, to take stacks, locks and the name of the memory.

use crate::error::Result;
use crate::explain::close_up::{Closeup, Recorder};
use crate::process::access_points::Conflict;
use crate::process::run_config::RunConfig;
use crate::process::slots::{Detail, Job};
use crate::process::zygote::Zygote;
use std::sync::Arc;

/// The races of one job, and a configuration in which the same races occur again.
#[derive(Debug)]
pub struct JobRaces {
    config: RunConfig,
    /// The races, in the order in which they happen.
    pub races: Vec<Conflict>,
}

impl Recorder<'_> {
    /// Finds the races of a job. At a location without a known race, the runtime remembers only some of the
    /// accesses, and may take one for another. So the job runs once to learn the locations, and then once
    /// more. The output is captured although nobody reads it, so that the program has the same addresses as
    /// in the close-up.
    pub fn races_of(&self, job: Job<'_>) -> Result<JobRaces> {
        let mut zygote = Zygote::start(self.runtime, self.program, self.config, self.output)?;
        let first = zygote.run(job, Detail::Decisions, None)?;
        let mut points = (*self.config.points).clone();
        for conflict in &first.conflicts {
            points.remember(conflict);
        }
        let points = Arc::new(points);
        zygote.set_points(&points);
        let mut races = zygote.run(job, Detail::Decisions, None)?.conflicts;
        races.retain(Conflict::is_race);
        Ok(JobRaces { config: RunConfig { points, ..self.config.clone() }, races })
    }

    /// Takes a close-up of one race of a job; `None` if the race does not occur.
    pub fn race_in(&self, scene: &JobRaces, job: Job<'_>, race: &Conflict) -> Result<Option<Closeup>> {
        let closeup = Recorder { config: &scene.config, ..*self }.record_race(job, Some(race))?;
        Ok(Some(closeup).filter(|closeup| closeup.race.is_some()))
    }

    /// Takes close-ups of the `wanted` races of a job until one satisfies `should`. If none does, returns the
    /// first; `None` if there is no race at all.
    pub fn race(
        &self,
        job: Job<'_>,
        wanted: &dyn Fn(&Conflict) -> bool,
        should: &dyn Fn(&Closeup) -> bool,
    ) -> Result<Option<Closeup>> {
        let scene = self.races_of(job)?;
        let mut other = None;
        for race in scene.races.iter().filter(|race| wanted(race)) {
            match self.race_in(&scene, job, race)? {
                Some(closeup) if should(&closeup) => return Ok(Some(closeup)),
                closeup => other = other.or(closeup),
            }
        }
        Ok(other)
    }
}
