//! Runs a plan on a toy program as the runtime runs it on a real one: decisions where there are two choices or more,
//! choice 0 being the running thread or else the next enabled one in cyclic order, overrides checked by kind, number
//! of choices and hash.

use crate::oracle::Whole;
use crate::program::{Program, State};
use heisen_trace::{Decision, DecisionKind, Divergence, End, Execution, Plan, Policy, hash};

/// An execution, and the schedule it came to.
#[derive(Clone, Debug)]
pub struct Run {
    pub execution: Execution,
    pub whole: Whole,
}

struct Recorder<'p> {
    plan: &'p Plan,
    step: u32,
    hash: u64,
    decisions: Vec<Decision>,
    diverged: Option<Divergence>,
}

impl Recorder<'_> {
    /// Makes one choice and counts one step.
    fn choose(&mut self, kind: DecisionKind, options: u16, preemptive: bool) -> u16 {
        let fixed = self.plan.overrides.iter().find(|o| o.step == self.step);
        let mut chosen = 0;
        if let Some(o) = fixed {
            let last = self.plan.overrides.last().is_some_and(|l| l.step == o.step);
            let as_expected = o.kind == kind as u8
                && o.options == options
                && o.choice < options
                && (!last || self.plan.expect == self.hash);
            if as_expected {
                chosen = o.choice;
            } else {
                let found = format!("{} of {options}", kind.name());
                self.diverged.get_or_insert(Divergence { step: self.step, found });
            }
        }
        if options >= 2 {
            let (step, hash) = (self.step, self.hash);
            self.decisions.push(Decision { step, kind, options, chosen, preemptive, hash });
        }
        self.step += 1;
        chosen
    }
}

/// Runs a plan with the default policy.
pub fn run(program: &Program, plan: &Plan) -> Run {
    assert_eq!(plan.policy, Policy::Default);
    let threads = program.len();
    let mut state = State::new(program);
    let mut r = Recorder { plan, step: 0, hash: hash::EMPTY, decisions: vec![], diverged: None };
    let mut whole = Whole { schedule: vec![], preemptions: 0, deadlock: false };
    loop {
        let running_on = state.running.is_some_and(|t| state.is_enabled(t));
        // The running thread is the first in the cycle if it is enabled and simply not there if it is not.
        let first = state.running.unwrap_or(0);
        let enabled: Vec<usize> =
            (0..threads).map(|i| (first + i) % threads).filter(|&t| state.is_enabled(t)).collect();
        if enabled.is_empty() {
            break;
        }
        let options = enabled.len() as u16;
        let choice = r.choose(DecisionKind::Thread, options, running_on);
        whole.preemptions += u32::from(running_on && choice != 0);
        let thread = enabled[usize::from(choice)];
        r.hash = hash::fold(r.hash, thread as u16, 1, options);
        let mut outcome = 0;
        let outcomes = state.outcomes(thread);
        if let Some(next) = state.next_of(thread)
            && outcomes > 1
        {
            outcome = r.choose(next.kind(), outcomes, false);
            // Which outcome it was must show in the hash, as the waiter that is woken does.
            r.hash = hash::fold(r.hash, outcome, 2, outcomes);
        }
        state.take((thread, outcome));
        whole.schedule.push((thread, outcome));
    }
    let over = r.plan.overrides.last().filter(|o| o.step >= r.step);
    if let Some(o) = over {
        r.diverged.get_or_insert(Divergence { step: o.step, found: "the end".into() });
    }
    whole.deadlock = !state.all_ended();
    let end = if whole.deadlock { End::Deadlock } else { End::Exit(0) };
    let (steps, decisions, diverged) = (r.step, r.decisions, r.diverged);
    let execution = Execution {
        steps,
        threads: threads as u32,
        decisions,
        touches: vec![],
        end,
        notes: vec![],
        diverged,
    };
    Run { execution, whole }
}
