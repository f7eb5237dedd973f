//! All schedules of a toy program, by recursion over its states. Knows threads and outcomes, but neither plans nor
//! decisions nor an order of choices.

use crate::program::{Program, State, Taken};

/// One schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole {
    pub schedule: Vec<Taken>,
    pub preemptions: u32,
    pub deadlock: bool,
}

/// All schedules, in no particular order, or none if there are more than `most`.
pub fn schedules(program: &Program, most: usize) -> Option<Vec<Whole>> {
    let mut found = Vec::new();
    explore(&State::new(program), program.len(), &mut Vec::new(), 0, most, &mut found).then_some(found)
}

fn explore(
    state: &State,
    threads: usize,
    schedule: &mut Vec<Taken>,
    preemptions: u32,
    most: usize,
    found: &mut Vec<Whole>,
) -> bool {
    let mut ended = true;
    for thread in (0..threads).filter(|&t| state.is_enabled(t)) {
        ended = false;
        let preempts = state.running.is_some_and(|r| r != thread && state.is_enabled(r));
        for outcome in 0..state.outcomes(thread) {
            let mut after = state.clone();
            after.take((thread, outcome));
            schedule.push((thread, outcome));
            if !explore(&after, threads, schedule, preemptions + u32::from(preempts), most, found) {
                return false;
            }
            schedule.pop();
        }
    }
    if ended {
        found.push(Whole { schedule: schedule.clone(), preemptions, deadlock: !state.all_ended() });
    }
    found.len() <= most
}
