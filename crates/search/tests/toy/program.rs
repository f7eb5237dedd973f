//! Toy programs: what they are made of and what each operation does.

use heisen_trace::DecisionKind;

/// One operation of a toy thread; each is one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// Something that never blocks.
    Step,
    /// Takes a lock; waits while anybody holds it.
    Lock(usize),
    /// Gives up a lock, if the thread holds it.
    Unlock(usize),
    /// Adds one to a semaphore.
    Post(usize),
    /// Takes one from a semaphore; waits while there is none.
    Wait(usize),
    /// One of so many outcomes (at least 1); outcome v skips the thread's next v operations.
    Choose(u16),
    /// Takes a lock if nobody holds it; while the budget of faults lasts, it may fail though nobody does (outcome 1).
    Try(usize),
    /// While the budget of spurious wake-ups lasts, the thread's next wait may end without a post (outcome 1).
    Doze,
}

impl Do {
    /// What an operation chooses besides threads.
    pub fn kind(self) -> DecisionKind {
        match self {
            Do::Choose(_) => DecisionKind::Choose,
            Do::Doze => DecisionKind::Spurious,
            _ => DecisionKind::Fault,
        }
    }
}

/// A toy program: its threads, all there from the start.
pub type Program = Vec<Vec<Do>>;

/// One step as it was taken: the thread and its outcome, 0 where there is nothing to choose. A list of them is a schedule.
pub type Taken = (usize, u16);

/// Where a program stands.
#[derive(Clone, Debug)]
pub struct State<'a> {
    program: &'a Program,
    at: Vec<usize>,
    holder: Vec<Option<usize>>,
    count: Vec<u32>,
    /// Faults and spurious wake-ups that are left.
    faults: u32,
    spurious: u32,
    /// Threads whose next wait may end without a post.
    dozing: Vec<bool>,
    /// The thread that took the last step.
    pub running: Option<usize>,
}

/// How many locks and how many semaphores there are.
pub const OBJECTS: usize = 3;

/// How many faults and how many spurious wake-ups one execution may have.
const BUDGET: u32 = 1;

impl<'a> State<'a> {
    pub fn new(program: &'a Program) -> State<'a> {
        let at = vec![0; program.len()];
        State {
            program,
            at,
            holder: vec![None; OBJECTS],
            count: vec![0; OBJECTS],
            faults: BUDGET,
            spurious: BUDGET,
            dozing: vec![false; program.len()],
            running: None,
        }
    }

    /// What a thread does next, unless it has ended.
    pub fn next_of(&self, thread: usize) -> Option<Do> {
        self.program[thread].get(self.at[thread]).copied()
    }

    pub fn is_enabled(&self, thread: usize) -> bool {
        match self.next_of(thread) {
            None => false,
            Some(Do::Lock(m)) => self.holder[m].is_none(),
            Some(Do::Wait(s)) => self.count[s] > 0 || self.dozing[thread],
            Some(_) => true,
        }
    }

    /// How many outcomes the next operation of a thread can have now.
    pub fn outcomes(&self, thread: usize) -> u16 {
        match self.next_of(thread) {
            Some(Do::Choose(n)) => n,
            Some(Do::Try(m)) if self.holder[m].is_none() && self.faults > 0 => 2,
            Some(Do::Doze) if self.spurious > 0 => 2,
            _ => 1,
        }
    }

    pub fn all_ended(&self) -> bool {
        (0..self.program.len()).all(|t| self.next_of(t).is_none())
    }

    /// Lets an enabled thread take its step.
    pub fn take(&mut self, (thread, outcome): Taken) {
        match self.next_of(thread).expect("the thread has not ended") {
            Do::Step => {}
            Do::Lock(m) => self.holder[m] = Some(thread),
            Do::Unlock(m) if self.holder[m] == Some(thread) => self.holder[m] = None,
            Do::Unlock(_) => {}
            Do::Post(s) => self.count[s] += 1,
            Do::Wait(s) => {
                self.count[s] = self.count[s].saturating_sub(1);
                self.dozing[thread] = false;
            }
            Do::Choose(_) => self.at[thread] += usize::from(outcome),
            Do::Try(_) if outcome == 1 => self.faults -= 1,
            Do::Try(m) => self.holder[m] = self.holder[m].or(Some(thread)),
            Do::Doze => {
                self.spurious -= u32::from(outcome);
                self.dozing[thread] |= outcome == 1;
            }
        }
        self.at[thread] += 1;
        self.running = Some(thread);
    }
}

/// `threads` threads of `steps` steps that never block.
pub fn independent(threads: usize, steps: usize) -> Program {
    vec![vec![Do::Step; steps]; threads]
}

/// Two threads that take two locks in opposite order.
pub fn lock_order() -> Program {
    use Do::{Lock, Unlock};
    vec![vec![Lock(0), Lock(1), Unlock(1), Unlock(0)], vec![Lock(1), Lock(0), Unlock(0), Unlock(1)]]
}
