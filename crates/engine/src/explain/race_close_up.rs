//! The close look at a data race. The search knows no more of one than two places in the code; here the schedule is run
//! again with stops at both accesses, and stacks, locks and the name of what they touch are taken there.

use crate::error::Result;
use crate::explain::close_up::{Camera, Closeup};
use crate::process::access_points::Conflict;
use crate::process::run_config::RunConfig;
use crate::process::slots::{Detail, Job};
use crate::process::zygote::Zygote;
use std::sync::Arc;

/// The races of one job, and a configuration in which the same races occur again.
#[derive(Debug)]
pub struct Scene {
    config: RunConfig,
    /// The races, in the order in which they happen.
    pub races: Vec<Conflict>,
}

impl Camera<'_> {
    /// The races of a job. An execution that knows of no race at some place remembers only some of the accesses there, and
    /// may take one of them for another: so it is run once to learn where, and once more. The output is kept, though
    /// nobody reads it, so that the program finds itself at the same addresses as in the close look.
    pub fn scene(&self, job: Job<'_>) -> Result<Scene> {
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
        Ok(Scene { config: RunConfig { points, ..self.config.clone() }, races })
    }

    /// Looks closely at one of the races of a job; none if it does not come up.
    pub fn race_in(&self, scene: &Scene, job: Job<'_>, race: &Conflict) -> Result<Option<Closeup>> {
        let closeup = Camera { config: &scene.config, ..*self }.shoot_at(job, Some(race))?;
        Ok(Some(closeup).filter(|closeup| closeup.race.is_some()))
    }

    /// Looks closely at the races of a job that are `wanted`, until one is as it `should` be; the first of them if none
    /// is. None if there is none at all.
    pub fn race(
        &self,
        job: Job<'_>,
        wanted: &dyn Fn(&Conflict) -> bool,
        should: &dyn Fn(&Closeup) -> bool,
    ) -> Result<Option<Closeup>> {
        let scene = self.scene(job)?;
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
