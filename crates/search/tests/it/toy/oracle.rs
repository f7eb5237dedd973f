//! Enumerates all schedules of a toy program by recursion over its states. It knows threads and outcomes, but
//! no plans, no decisions and no order of choices.

use crate::toy::program::{FinalState, HappensBefore, Program, State, Taken};

/// One complete schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    pub schedule: Vec<Taken>,
    pub preemptions: u32,
    pub deadlock: bool,
    /// The hash of its happens-before class.
    pub class: u64,
    /// The final state of the program.
    pub last: FinalState,
}

/// All schedules, in no particular order, or `None` if there are more than `most`.
pub fn schedules(program: &Program, most: usize) -> Option<Vec<Outcome>> {
    let mut found = Vec::new();
    explore(
        &State::new(program),
        &HappensBefore::default(),
        program.len(),
        &mut Vec::new(),
        0,
        most,
        &mut found,
    )
    .then_some(found)
}

fn explore(
    state: &State,
    past: &HappensBefore,
    threads: usize,
    schedule: &mut Vec<Taken>,
    preemptions: u32,
    most: usize,
    found: &mut Vec<Outcome>,
) -> bool {
    let mut ended = true;
    for thread in (0..threads).filter(|&t| state.is_enabled(t)) {
        ended = false;
        let preempts = state.running.is_some_and(|r| r != thread && state.is_enabled(r));
        for outcome in 0..state.outcomes(thread) {
            let mut after = state.clone();
            after.take((thread, outcome));
            let mut then = past.clone();
            then.push(state.foot((thread, outcome)), outcome);
            schedule.push((thread, outcome));
            if !explore(&after, &then, threads, schedule, preemptions + u32::from(preempts), most, found) {
                return false;
            }
            schedule.pop();
        }
    }
    if ended {
        let (schedule, deadlock) = (schedule.clone(), !state.all_ended());
        let (class, last) = (past.class(), state.clone().into_last());
        found.push(Outcome { schedule, preemptions, deadlock, class, last });
    }
    found.len() <= most
}
