//! All schedules and all inputs of a toy program.

use crate::toy::machine::{Choices, Over, Recorder, State};
use crate::toy::program::Program;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What executions of a program may show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// The failures.
    pub failures: BTreeSet<Over>,
    /// The places at which threads stand in deadlocks.
    pub stuck: BTreeSet<u64>,
    /// The places of threads that are about to do conflicting accesses, if asked for.
    pub meetings: BTreeSet<(u64, u64)>,
}

/// Choices that were fixed, and how many more were asked for.
#[derive(Default)]
struct Fixed {
    values: Vec<u64>,
    /// For each choice, how many there are.
    options: Vec<u64>,
}

impl Fixed {
    fn choose(&mut self, options: u64) -> u64 {
        let value = self.values.get(self.options.len()).copied().unwrap_or(0);
        self.options.push(options);
        value
    }

    /// The next combination of choices.
    fn next(self) -> Option<Fixed> {
        let mut values: Vec<u64> =
            (0..self.options.len()).map(|at| self.values.get(at).copied().unwrap_or(0)).collect();
        while let Some(last) = values.pop() {
            if last + 1 < self.options[values.len()] {
                values.push(last + 1);
                return Some(Fixed { values, options: Vec::new() });
            }
        }
        None
    }
}

impl Choices for Fixed {
    fn input(&mut self, _path: &[u16], _index: u32, bits: u32) -> u64 {
        self.choose(1 << bits)
    }

    fn waiter(&mut self, count: usize) -> usize {
        self.choose(count as u64) as usize
    }
}

/// Calls a function with all combinations of choices.
fn each_choice(mut act: impl FnMut(&mut Fixed)) {
    let mut next = Some(Fixed::default());
    while let Some(mut fixed) = next {
        act(&mut fixed);
        next = fixed.next();
    }
}

/// What all executions show. `None` if there are more than `most` states.
pub fn outcomes(program: &Program, most: usize, meetings: bool) -> Option<Outcomes> {
    let mut outcomes = Outcomes::default();
    let mut known: HashSet<State> = HashSet::new();
    let mut open: Vec<State> = Vec::new();
    let mut recorder = Recorder::new(false);
    each_choice(|fixed| open.push(State::new(program, &mut recorder, fixed)));
    while let Some(state) = open.pop() {
        if let Some(over) = &state.over {
            if !matches!(over, Over::Exit | Over::Ignored) {
                outcomes.failures.insert(over.clone());
            }
            continue;
        }
        if known.len() > most {
            return None;
        }
        if !known.insert(state.clone()) {
            continue;
        }
        if meetings {
            outcomes.meetings.extend(state.meetings(program));
        }
        let enabled: Vec<usize> =
            (0..state.threads.len()).filter(|&thread| state.is_enabled(program, thread)).collect();
        if enabled.is_empty() {
            let standing = (0..state.threads.len()).filter(|&t| state.stands_before(program, t).is_some());
            outcomes.stuck.extend(standing.map(|thread| state.place(thread)));
        }
        for thread in enabled {
            each_choice(|fixed| {
                let mut after = state.clone();
                after.step(program, thread, &mut recorder, fixed);
                open.push(after);
            });
        }
    }
    Some(outcomes)
}

/// A step of a thread: the path of creation of the thread, and the number of the step.
type StepName = (Vec<usize>, usize);

/// What orders the steps of an execution: for each object, the changes in order, each with the reads behind it.
type Class = BTreeMap<u64, Vec<(StepName, BTreeSet<StepName>)>>;

/// The choices of each step that has any.
type Chosen = BTreeMap<StepName, Vec<u64>>;

/// An execution so far: its state, class and choices, and the number of steps of each thread.
type Begun = (State, Class, Chosen, Vec<usize>);

/// The number of classes of executions: those that differ in the order of steps that conflict, or in inputs. `None` if
/// there are more than `most` executions.
pub fn classes(program: &Program, most: usize) -> Option<usize> {
    let mut all: HashSet<(Class, Chosen)> = HashSet::new();
    let mut executions = 0;
    let mut recorder = Recorder::new(false);
    let mut open: Vec<Begun> = Vec::new();
    each_choice(|fixed| {
        let state = State::new(program, &mut recorder, fixed);
        open.push((state, Class::new(), BTreeMap::from([((vec![], 0), taken(fixed))]), Vec::new()));
    });
    while let Some((state, class, chosen, counts)) = open.pop() {
        let enabled: Vec<usize> =
            (0..state.threads.len()).filter(|&thread| state.is_enabled(program, thread)).collect();
        if state.over.is_some() || enabled.is_empty() {
            executions += 1;
            all.insert((class, chosen));
            if executions > most {
                return None;
            }
            continue;
        }
        for thread in enabled {
            each_choice(|fixed| {
                let (mut after, mut class, mut chosen) = (state.clone(), class.clone(), chosen.clone());
                let mut counts = counts.clone();
                after.step(program, thread, &mut recorder, fixed);
                counts.resize(after.threads.len(), 0);
                counts[thread] += 1;
                let mut path = vec![];
                let mut at = thread;
                while let Some((parent, nth)) = after.threads[at].parent {
                    path.push(nth);
                    at = parent;
                }
                let name = (path, counts[thread]);
                for &(object, write) in &recorder.touches {
                    let changes = class.entry(object).or_default();
                    if write {
                        changes.push((name.clone(), BTreeSet::new()));
                    } else {
                        if changes.is_empty() {
                            changes.push(((vec![], 0), BTreeSet::new()));
                        }
                        changes.last_mut().unwrap().1.insert(name.clone());
                    }
                }
                chosen.insert(name, taken(fixed));
                open.push((after, class, chosen, counts));
            });
        }
    }
    Some(all.len())
}

fn taken(fixed: &Fixed) -> Vec<u64> {
    (0..fixed.options.len()).map(|at| fixed.values.get(at).copied().unwrap_or(0)).collect()
}
