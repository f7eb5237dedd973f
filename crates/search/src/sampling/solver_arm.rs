//! The solver-driven search as an arm of the portfolio, for programs that are built symbolically.
//!
//! A sampler needs luck where a failure depends on one value in many. The solver asks for that value. Its executions
//! carry expressions and are slow, so most turns belong to the samplers: the n-th turn of the solver comes n + 1
//! executions after the one before, and later ones 32 executions. As each of its executions decides what it asks
//! next, none of them runs beside another execution.

use crate::{Causal, Halt, Room, Strategy};
use heisen_causal::Options;
use heisen_trace::{Execution, Plan};
use serde::{Deserialize, Serialize};

/// The most executions of samplers between two turns.
const RAREST: u64 = 32;

/// The arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SolverArm {
    causal: Causal,
    /// How many turns it has had.
    turns: u64,
    /// The number of the samplers' plan before which the next turn comes.
    due: u64,
    /// Whether its plan is out.
    #[serde(skip)]
    is_out: bool,
}

impl SolverArm {
    /// A new search.
    pub fn new(options: Options) -> SolverArm {
        SolverArm { causal: Causal::new(options), turns: 0, due: 1, is_out: false }
    }

    /// Whether its plan is out.
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// Whether its turn comes before this plan of the samplers. A search that was read back first runs again what it has
    /// run before.
    pub fn is_due(&self, number: u64) -> bool {
        number >= self.due || self.causal.runs_again()
    }

    /// Its plan. `None` if it has asked all that it can ask.
    pub fn next_plan(&mut self) -> Option<Plan> {
        let plan = self.causal.next();
        match plan {
            Some(_) => self.is_out = true,
            None => self.due = u64::MAX,
        }
        plan
    }

    /// Takes back its plan with the execution, before this plan of the samplers.
    pub fn done(&mut self, plan: &Plan, execution: &Execution, number: u64) {
        self.is_out = false;
        if !self.causal.runs_again() {
            self.turns += 1;
            self.due = number + RAREST.min(1 + self.turns);
        }
        self.causal.done(plan, execution);
    }

    /// Takes back its plan, which was not run. It is the next one.
    pub fn give_back_unrun(&mut self, plan: &Plan) {
        self.is_out = false;
        self.causal.give_back_unrun(plan);
    }

    /// See [`Strategy::heed`].
    pub fn heed(&mut self, halt: Halt) {
        self.causal.heed(halt);
    }

    /// See [`Strategy::bound_memory`].
    pub fn bound_memory(&mut self, room: Room) {
        self.causal.bound_memory(room);
    }

    /// How many executions it has had.
    pub fn executions(&self) -> u64 {
        self.causal.status().executions
    }
}
