//! Runs a plan on a toy program as the runtime does on a real one.
//!
//! A decision has at least two choices. Choice 0 is the running thread or else the next enabled one in cyclic
//! order. Overrides are checked by kind, number of choices and hash. Threads in the sleep set are skipped.
//! The touches of each step are recorded with its place.

use crate::toy::oracle::Outcome;
use crate::toy::program::{HappensBefore, Program, State};
use heisen_trace::plan::Touches;
use heisen_trace::{
    Decision, DecisionKind, Divergence, End, Execution, Override, Plan, Policy, Sleeper, Touch, TouchKind,
    hash,
};
use std::cell::Cell;

/// An execution, and the schedule that it led to.
#[derive(Clone, Debug)]
pub struct Run {
    pub execution: Execution,
    pub outcome: Outcome,
}

struct Recorder<'p> {
    plan: &'p Plan,
    /// The index of the next override.
    next: usize,
    /// The current step. It is 0 before the first scheduling point.
    step: u32,
    hash: u64,
    decisions: Vec<Decision>,
    touches: Vec<Touch>,
    asleep: Vec<Sleeper>,
    diverged: Option<Divergence>,
}

impl Recorder<'_> {
    /// Counts one step and makes one choice. For a choice of a thread, `threads` are the threads it chooses
    /// from.
    fn choose(&mut self, kind: DecisionKind, options: u16, preemptive: bool, threads: &[usize]) -> u16 {
        self.step += 1;
        let overrides = &self.plan.overrides;
        self.next += overrides[self.next..].partition_point(|o| o.step <= self.step).saturating_sub(1);
        let decides = options >= 2 && kind == DecisionKind::Thread;
        let is_for = |o: &&Override| o.step == self.step || o.named && o.step < self.step;
        let fixed = overrides.get(self.next).filter(is_for).filter(|o| !o.named || decides);
        self.next += usize::from(fixed.is_some());
        let last = overrides.last().map_or(0, |o| o.step);
        let mut chosen = 0;
        if let Some(o) = fixed {
            let named = threads.iter().position(|&t| t == usize::from(o.choice));
            let choice = if o.named { named.map(|at| at as u16) } else { Some(o.choice) };
            let as_expected = o.kind == kind as u8
                && (o.options == 0 || o.options == options)
                && choice.is_some_and(|choice| choice < options)
                && (o.step != last || self.plan.expect == 0 || self.plan.expect == self.hash);
            if as_expected {
                chosen = choice.unwrap();
            } else if !o.named {
                let found = format!("{} of {options}", kind.name());
                self.diverged.get_or_insert(Divergence { step: self.step, found });
            }
        } else if self.step > last && self.next == overrides.len() && self.plan.policy != Policy::Default {
            chosen = self.walk(options);
        } else if self.step > last && self.next == overrides.len() && kind == DecisionKind::Thread {
            let sleeps = |t: &usize| self.asleep.iter().any(|s| usize::from(s.thread) == *t);
            chosen = threads.iter().position(|t| !sleeps(t)).unwrap_or(0) as u16;
        }
        if options >= 2 {
            let (step, hash) = (self.step, self.hash);
            self.decisions.push(Decision { step, kind, options, chosen, preemptive, hash });
        }
        chosen
    }

    /// A random choice, as the policy defines it.
    fn walk(&self, options: u16) -> u16 {
        let (seed, length) = match self.plan.policy {
            Policy::Random { seed } => (seed, 1),
            Policy::Burst { seed, length } => (seed, length),
            _ => panic!("{:?}", self.plan.policy),
        };
        let mut random = seed ^ u64::from(self.step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        random = (random ^ random >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random ^= random >> 32;
        let goes_on = !random.is_multiple_of(u64::from(length));
        if goes_on { 0 } else { (random / u64::from(length) % u64::from(options)) as u16 }
    }

    fn touch(&mut self, kind: TouchKind, thread: usize, op: u8, word: u64) {
        self.touches.push(Touch { step: self.step, thread: thread as u16, kind, op, word });
        if self.step < self.plan.sleep.from {
            return;
        }
        let wakes = |s: &Sleeper| match (kind, s.touches) {
            (TouchKind::Enables, _) => u64::from(s.thread) == word,
            (TouchKind::Write, Touches::Reads(object) | Touches::Writes(object)) => object == word,
            (TouchKind::Read, Touches::Writes(object)) => object == word,
            _ => false,
        };
        let woken: Vec<u16> = self.asleep.iter().filter(|s| wakes(s)).map(|s| s.thread).collect();
        self.asleep.retain(|s| usize::from(s.thread) == thread || !woken.contains(&s.thread));
    }
}

thread_local! {
    /// Whether programs report a hash of their state, which replaces the hash of the steps so far.
    pub static TELLS_STATES: Cell<bool> = const { Cell::new(false) };
}

/// Runs a plan with the default policy or with a random walk.
pub fn run(program: &Program, plan: &Plan) -> Run {
    let threads = program.len();
    let mut state = State::new(program);
    let mut r = Recorder {
        plan,
        next: 0,
        step: 0,
        hash: hash::EMPTY,
        decisions: vec![],
        touches: vec![],
        asleep: plan.sleep.sleepers.clone(),
        diverged: None,
    };
    let mut past = HappensBefore::default();
    let (mut schedule, mut preemptions) = (vec![], 0);
    loop {
        let running_on = state.running.is_some_and(|t| state.is_enabled(t));
        // If the running thread is enabled, it is the first in the cycle. If not, the filter removes it.
        let first = state.running.unwrap_or(0);
        let enabled: Vec<usize> =
            (0..threads).map(|i| (first + i) % threads).filter(|&t| state.is_enabled(t)).collect();
        if enabled.is_empty() {
            break;
        }
        let options = enabled.len() as u16;
        let choice = r.choose(DecisionKind::Thread, options, running_on, &enabled);
        if options >= 2 {
            let set = enabled.iter().fold(0, |set, &t| set | 1 << t);
            r.touch(TouchKind::Choices, enabled[0], 0, set);
            let known = if TELLS_STATES.get() { state.hash() } else { past.class() };
            r.touch(TouchKind::State, 0, 0, known);
        }
        preemptions += u32::from(running_on && choice != 0);
        let thread = enabled[usize::from(choice)];
        if thread != state.running.unwrap_or(0) {
            r.touch(TouchKind::Switch, thread, 0, 0);
        }
        r.hash = hash::fold(r.hash, thread as u16, 1, options);
        let mut outcome = 0;
        let outcomes = state.outcomes(thread);
        if let Some(next) = state.next_of(thread)
            && outcomes > 1
        {
            outcome = r.choose(next.kind(), outcomes, false, &[]);
            // The hash must contain the outcome, as the runtime's hash contains the waiter that wakes.
            r.hash = hash::fold(r.hash, outcome, 2, outcomes);
        }
        let foot = state.foot((thread, outcome));
        for &(object, write, op) in &foot.accesses {
            let kind = if write { TouchKind::Write } else { TouchKind::Read };
            r.touch(TouchKind::At, thread, op as u8, state.place(thread));
            r.touch(kind, thread, op as u8, object);
        }
        for &other in &foot.enables {
            r.touch(TouchKind::Enables, thread, 0, other as u64);
        }
        if r.step >= plan.sleep.from {
            let stays = |s: &Sleeper| usize::from(s.thread) == thread || s.touches != Touches::Everything;
            r.asleep.retain(stays);
        }
        past.push(foot, outcome);
        state.take((thread, outcome));
        schedule.push((thread, outcome));
    }
    let over = r.plan.overrides.last().filter(|o| o.step > r.step && !o.named);
    if let Some(o) = over {
        r.diverged.get_or_insert(Divergence { step: o.step, found: "the end".into() });
    }
    let deadlock = !state.all_ended();
    // The last scheduling point was passed, but no thread could go on.
    r.step += u32::from(deadlock);
    for (thread, object, op) in state.waits() {
        r.touch(TouchKind::Waits, thread, op as u8, object);
    }
    let end = if deadlock { End::Deadlock } else { End::Exit(state.over().unwrap_or(0)) };
    let execution = Execution {
        steps: r.step,
        threads: threads as u32,
        decisions: r.decisions,
        touches: r.touches,
        end,
        notes: vec![],
        diverged: r.diverged,
        fingerprint: Some(past.class()),
        counted: vec![],
        symbolic: None,
    };
    let (class, last) = (past.class(), state.into_last());
    Run { execution, outcome: Outcome { schedule, preemptions, deadlock, class, last } }
}
