//! Runs a plan on a toy program as the runtime does on a real one.

use crate::toy::machine::{Choices, Over, Recorder, State};
use crate::toy::program::Program;
use heisen_trace::hash::{EMPTY, thread_key};
use heisen_trace::symbolic::{InputKey, SymbolicTrace};
use heisen_trace::{DecisionKind, End, Override, Plan};

/// An execution.
pub struct Run {
    pub trace: SymbolicTrace,
    pub end: End,
    pub over: Option<Over>,
    /// The places at which threads stand in a deadlock.
    pub stuck: Vec<u64>,
    /// The places of threads that were about to do conflicting accesses.
    pub meetings: Vec<(u64, u64)>,
}

/// The decisions of a plan.
struct Planned<'p> {
    plan: &'p Plan,
    /// The index of the next override.
    next: usize,
    step: u32,
}

impl Planned<'_> {
    /// The override for the decision of this step.
    fn take(&mut self, kind: DecisionKind) -> Option<&Override> {
        let overrides = &self.plan.overrides;
        // Of the preferences that are due, only the last one counts.
        self.next += overrides[self.next..].partition_point(|o| o.step <= self.step).saturating_sub(1);
        let found = overrides.get(self.next)?;
        let applies = match found.named {
            true => found.step <= self.step && kind == DecisionKind::Thread,
            false => found.step == self.step,
        };
        if !applies {
            return None;
        }
        assert!(found.named || found.kind == kind as u8, "another decision at step {}", self.step);
        self.next += 1;
        Some(found)
    }
}

impl Choices for Planned<'_> {
    fn input(&mut self, path: &[u16], index: u32, _bits: u32) -> u64 {
        let thread = path.iter().fold(EMPTY, |key, &nth| thread_key(key, nth));
        let key = InputKey { thread, number: index.into() };
        let found = self.plan.inputs.iter().find(|input| input.key == key);
        found.map_or(0, |input| input.value)
    }

    fn waiter(&mut self, count: usize) -> usize {
        self.step += 1;
        let choice = self.take(DecisionKind::Waiter).copied();
        choice.map_or(0, |choice| {
            assert_eq!(usize::from(choice.options), count, "waiters at step {}", self.step);
            choice.choice.into()
        })
    }
}

/// After so many steps behind the plan, a thread gives way to the others.
const TURN: u32 = 30;

/// After so many steps an execution is cut off: its threads wait for each other in loops.
const MOST_STEPS: u32 = 400;

/// Runs a plan.
pub fn run(program: &Program, plan: &Plan) -> Run {
    let mut recorder = Recorder::new(true);
    let mut planned = Planned { plan, next: 0, step: 0 };
    let mut state = State::new(program, &mut recorder, &mut planned);
    let mut running = 0;
    // How many steps in a row the running thread has taken behind the plan.
    let mut turn = 0;
    let (mut deadlock, mut cut) = (false, false);
    let mut meetings = Vec::new();
    while state.over.is_none() {
        let count = state.threads.len();
        meetings.extend(state.meetings(program));
        // Waits that would have to time out come last.
        let late = |&thread: &usize| state.is_late(program, thread);
        let first = running + usize::from(turn >= TURN);
        let enabled: Vec<usize> =
            (0..count).map(|nth| (first + nth) % count).filter(|&t| state.is_enabled(program, t)).collect();
        let order: Vec<usize> = enabled
            .iter()
            .copied()
            .filter(|t| !late(t))
            .chain(enabled.iter().copied().filter(late))
            .collect();
        let Some(&first) = order.first() else {
            deadlock = true;
            break;
        };
        if planned.step >= MOST_STEPS {
            cut = true;
            break;
        }
        planned.step += 1;
        let mut thread = first;
        if order.len() > 1
            && let Some(planned) = planned.take(DecisionKind::Thread)
        {
            thread = order.iter().copied().find(|&t| t == usize::from(planned.choice)).unwrap_or(first);
        }
        recorder.step = planned.step;
        if thread != running {
            recorder.runs(thread);
        }
        state.step(program, thread, &mut recorder, &mut planned);
        let behind = planned.next == plan.overrides.len();
        turn = if thread == running && behind { turn + 1 } else { 0 };
        running = thread;
    }
    let mut stuck = Vec::new();
    for thread in 0..state.threads.len() {
        // The thread that has ended the process stands nowhere.
        if state.over.is_some() && thread == running {
            continue;
        }
        if let Some((op, object)) = state.stands_before(program, thread) {
            let blocked = !state.is_enabled(program, thread);
            recorder.pending(thread, state.place(thread), op, object, blocked);
            stuck.push(state.place(thread));
        }
    }
    let end = match &state.over {
        _ if cut => End::StepLimit,
        over => over.as_ref().map_or(End::Deadlock, Over::end),
    };
    if !deadlock {
        stuck.clear();
    }
    assert_eq!(recorder.trace.wrong_events(), [], "wrong expressions");
    Run { trace: recorder.trace, end, over: state.over, stuck, meetings }
}
