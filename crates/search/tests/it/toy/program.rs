//! Toy programs: their operations, the effect of each operation, and the objects that it touches.

use heisen_trace::{DecisionKind, Op};
use std::hash::{DefaultHasher, Hash, Hasher};

/// One operation of a toy thread; each is one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// A step that never blocks and touches nothing.
    Step,
    /// Takes a lock. Waits while a thread holds it.
    Lock(usize),
    /// Releases a lock, if the thread holds it.
    Unlock(usize),
    /// Adds one to a semaphore.
    Post(usize),
    /// Takes one from a semaphore. Waits while it is 0.
    Wait(usize),
    /// Has this many outcomes (at least 1). Outcome v skips the thread's next v operations.
    Choose(u16),
    /// Takes a lock if no thread holds it. While the budget of faults lasts, it may also fail although the
    /// lock is available (outcome 1).
    Try(usize),
    /// Takes a lock if no thread holds it.
    Attempt(usize),
    /// Takes one from a semaphore if it is above 0.
    TryWait(usize),
    /// Reads a variable into the register. If it has the first value, writes the second one.
    Cas(usize, u64, u64),
    /// Waits at a barrier until this many threads have come.
    Meet(usize, usize),
    /// Like `Meet`, and stores in the register whether the thread was the last.
    Serial(usize, usize),
    /// Leaves a barrier. Programs must not contain it.
    Leave,
    /// While the budget of spurious wake-ups lasts, the thread's next wait may end without a post (outcome
    /// 1).
    Doze,
    /// Reads a variable into the thread's register.
    Load(usize),
    /// Writes the register plus one to a variable.
    Store(usize),
    /// Adds one to a variable.
    Add(usize),
    /// Writes a value to a variable.
    Put(usize, u64),
    /// Ends the process with an error if a variable has this value.
    Fail(usize, u64),
    /// Ends the process.
    Exit,
    /// Creates a thread, which does not exist before.
    Spawn(usize),
    /// Waits for the end of a thread.
    Join(usize),
    /// Waits for the end of a thread and ends the process, in one step.
    JoinLast(usize),
    /// Releases the lock, if the thread holds it, and waits on a condition variable. It has only one outcome.
    CondWait(usize, usize),
    /// Takes the lock again after `CondWait`. Programs must not contain it.
    Relock(usize),
    /// Wakes one waiter of a condition variable. The outcome says which.
    Signal(usize),
    /// Wakes all waiters of a condition variable.
    Broadcast(usize),
}

impl Do {
    /// The kind of the operation's decision.
    pub fn kind(self) -> DecisionKind {
        match self {
            Do::Choose(_) => DecisionKind::Choose,
            Do::Doze => DecisionKind::Spurious,
            Do::Signal(_) => DecisionKind::Waiter,
            _ => DecisionKind::Fault,
        }
    }
}

/// A toy program: its threads. Those that no `Spawn` names exist from the start.
pub type Program = Vec<Vec<Do>>;

/// One step as it was taken: the thread and its outcome, which is 0 if there was no choice. A schedule is a
/// list of them.
pub type Taken = (usize, u16);

/// The touches of a step.
#[derive(Clone, Debug, Default)]
pub struct StepTouches {
    pub thread: usize,
    /// The objects it accesses, whether it writes them, and the operation.
    pub accesses: Vec<(u64, bool, Op)>,
    pub enables: Vec<usize>,
    /// Whether the step ends the process.
    pub ends: bool,
}

/// The final state of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FinalState {
    at: Vec<usize>,
    holder: Vec<Option<usize>>,
    count: Vec<u32>,
    values: Vec<u64>,
    registers: Vec<u64>,
    pub over: Option<i32>,
}

/// The threads at a barrier.
#[derive(Clone, Debug, Default)]
struct Meeting {
    /// The threads that wait.
    arrived: Vec<usize>,
    round: u64,
    /// The threads that took part in the first round.
    members: Vec<usize>,
    /// Whether a thread outside of `members` has come.
    crowded: bool,
}

impl Meeting {
    fn is_crowded_by(&self, thread: usize) -> bool {
        self.crowded || self.round > 0 && !self.members.contains(&thread)
    }
}

/// The current state of a program.
#[derive(Clone, Debug)]
pub struct State<'a> {
    program: &'a Program,
    last: FinalState,
    born: Vec<bool>,
    /// The waiters of each condition variable, in order of arrival.
    waiting: Vec<Vec<usize>>,
    /// The lock that each thread must take again after waiting.
    relock: Vec<Option<usize>>,
    meetings: Vec<Meeting>,
    /// The barrier that each thread has reached and not left, with its round.
    leaves: Vec<Option<(usize, u64)>>,
    /// The remaining budget of faults and of spurious wake-ups.
    faults: u32,
    spurious: u32,
    /// The threads whose next wait may end without a post.
    dozing: Vec<bool>,
    /// The thread that took the last step.
    pub running: Option<usize>,
}

/// The numbers of locks, semaphores, variables and condition variables.
pub const OBJECTS: usize = 3;

/// The largest number of faults, and of spurious wake-ups, in one execution.
const BUDGET: u32 = 1;

const fn mutex(m: usize) -> u64 {
    0x100 + m as u64
}

const fn semaphore(s: usize) -> u64 {
    0x200 + s as u64
}

const fn variable(x: usize) -> u64 {
    0x300 + x as u64
}

const fn condition(c: usize) -> u64 {
    0x400 + c as u64
}

const fn barrier(b: usize) -> u64 {
    0x700 + b as u64
}

/// The object that represents one arrival at a barrier.
const fn arrival(b: usize, thread: usize, round: u64) -> u64 {
    heisen_trace::touch::NOWHERE + 0x1000 * (round % 2) + 0x100 * b as u64 + 8 * thread as u64
}

const fn thread_object(t: usize) -> u64 {
    0x500 + t as u64
}

/// The place of operation number `operation` of a thread.
pub const fn place(thread: usize, operation: usize) -> u64 {
    0x1000 * (thread as u64 + 1) + 0x10 * operation as u64
}

const FAULTS: u64 = 0x600;
const SPURIOUS: u64 = 0x601;

impl<'a> State<'a> {
    /// A hash of the state, without the thread that took the last step.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let all =
            (&self.last, &self.born, &self.waiting, &self.relock, self.faults, self.spurious, &self.dozing);
        let mut met = (self.meetings.clone(), &self.leaves);
        // The order of arrival is not part of the state.
        met.0.iter_mut().for_each(|meeting| meeting.arrived.sort_unstable());
        met.0.iter_mut().for_each(|meeting| meeting.members.sort_unstable());
        format!("{all:?}{met:?}").hash(&mut hasher);
        hasher.finish()
    }

    pub fn new(program: &'a Program) -> State<'a> {
        let threads = program.len();
        let mut born = vec![true; threads];
        for operation in program.iter().flatten() {
            if let Do::Spawn(t) = operation {
                born[*t] = false;
            }
        }
        State {
            program,
            last: FinalState {
                at: vec![0; threads],
                holder: vec![None; OBJECTS],
                count: vec![0; OBJECTS],
                values: vec![0; OBJECTS],
                registers: vec![0; threads],
                over: None,
            },
            born,
            waiting: vec![vec![]; OBJECTS],
            relock: vec![None; threads],
            meetings: vec![Meeting::default(); OBJECTS],
            leaves: vec![None; threads],
            faults: BUDGET,
            spurious: BUDGET,
            dozing: vec![false; threads],
            running: None,
        }
    }

    /// The next operation of a thread, or `None` if it has ended.
    pub fn next_of(&self, thread: usize) -> Option<Do> {
        if let Some(m) = self.relock[thread] {
            return Some(Do::Relock(m));
        }
        if self.leaves[thread].is_some() {
            return Some(Do::Leave);
        }
        self.program[thread].get(self.last.at[thread]).copied()
    }

    /// The place in the code where a thread stands. Each operation has its own place.
    pub fn place(&self, thread: usize) -> u64 {
        place(thread, self.last.at[thread])
    }

    fn waits_to_be_woken(&self, thread: usize) -> bool {
        let mut queues = self.waiting.iter().chain(self.meetings.iter().map(|meeting| &meeting.arrived));
        queues.any(|queue| queue.contains(&thread))
    }

    pub fn is_enabled(&self, thread: usize) -> bool {
        self.last.over.is_none() && self.could_go_on(thread)
    }

    fn could_go_on(&self, thread: usize) -> bool {
        if !self.born[thread] || self.waits_to_be_woken(thread) {
            return false;
        }
        match self.next_of(thread) {
            None => false,
            Some(Do::Lock(m) | Do::Relock(m)) => self.last.holder[m].is_none(),
            Some(Do::Wait(s)) => self.last.count[s] > 0 || self.dozing[thread],
            Some(Do::Join(t) | Do::JoinLast(t)) => self.has_ended(t),
            Some(_) => true,
        }
    }

    fn has_ended(&self, thread: usize) -> bool {
        self.born[thread] && self.next_of(thread).is_none()
    }

    /// The number of outcomes that a thread's next operation has now.
    pub fn outcomes(&self, thread: usize) -> u16 {
        match self.next_of(thread) {
            Some(Do::Choose(n)) => n,
            Some(Do::Try(m)) if self.last.holder[m].is_none() && self.faults > 0 => 2,
            Some(Do::Doze) if self.spurious > 0 => 2,
            Some(Do::Signal(c)) => (self.waiting[c].len() as u16).max(1),
            _ => 1,
        }
    }

    /// Whether all threads, or the process, have ended.
    pub fn all_ended(&self) -> bool {
        let gone = |t: usize| !self.born[t] || self.next_of(t).is_none();
        self.last.over.is_some() || (0..self.program.len()).all(gone)
    }

    /// The final state.
    pub fn into_last(self) -> FinalState {
        self.last
    }

    /// The exit code, if the process was ended.
    pub fn over(&self) -> Option<i32> {
        self.last.over
    }

    /// The objects for which threads wait, or for which their next operation may wait.
    pub fn waits(&self) -> Vec<(usize, u64, Op)> {
        let wanted = |t: usize| {
            if let Some(c) = self.waiting.iter().position(|queue| queue.contains(&t)) {
                return Some((t, condition(c), Op::CondWait));
            }
            if let Some(b) = self.meetings.iter().position(|meeting| meeting.arrived.contains(&t)) {
                return Some((t, barrier(b), Op::CondWait));
            }
            let (object, op) = match self.next_of(t)? {
                Do::Meet(b, _) | Do::Serial(b, _) => (barrier(b), Op::Barrier),
                Do::Lock(m) => (mutex(m), Op::Lock),
                Do::Relock(m) => (mutex(m), Op::Relock),
                Do::Wait(s) => (semaphore(s), Op::SemWait),
                Do::Join(t) | Do::JoinLast(t) => (thread_object(t), Op::Join),
                _ => return None,
            };
            self.born[t].then_some((t, object, op))
        };
        (0..self.program.len()).filter_map(wanted).collect()
    }

    /// The touches of a step, if it were taken now.
    pub fn foot(&self, (thread, outcome): Taken) -> StepTouches {
        let mut foot = StepTouches { thread, ..StepTouches::default() };
        let mut touch = |object, write, op| foot.accesses.push((object, write, op));
        match self.next_of(thread).expect("the thread has not ended") {
            Do::Step | Do::Choose(_) | Do::Exit => {}
            Do::Lock(m) => touch(mutex(m), true, Op::Lock),
            Do::Relock(m) => touch(mutex(m), true, Op::Relock),
            Do::Unlock(m) if self.last.holder[m] == Some(thread) => touch(mutex(m), true, Op::Unlock),
            Do::Unlock(_) => {}
            Do::Post(s) => touch(semaphore(s), true, Op::SemPost),
            // It counts as a wait that may time out.
            Do::Wait(s) if self.dozing[thread] => touch(semaphore(s), true, Op::SemTimedWait),
            Do::Wait(s) => touch(semaphore(s), true, Op::SemWait),
            Do::Try(m) if self.last.holder[m].is_some() => touch(mutex(m), false, Op::TryLock),
            Do::Try(m) => {
                touch(FAULTS, outcome == 1, Op::TryLock);
                touch(mutex(m), true, Op::TryLock);
            }
            Do::Attempt(m) => touch(mutex(m), self.last.holder[m].is_none(), Op::TryLock),
            Do::TryWait(s) => touch(semaphore(s), self.last.count[s] > 0, Op::SemTryWait),
            Do::Cas(x, expected, _) => touch(variable(x), self.last.values[x] == expected, Op::AtomicCas),
            Do::Meet(b, _) | Do::Serial(b, _) => {
                let meeting = &self.meetings[b];
                let uses = matches!(self.next_of(thread), Some(Do::Serial(..)));
                match meeting.is_crowded_by(thread) {
                    // `Op::Barrier` would mark an arrival that commutes with others, but the order of this
                    // one matters.
                    false if uses => touch(barrier(b), true, Op::Point),
                    crowded => touch(barrier(b), crowded, Op::Barrier),
                }
                touch(arrival(b, thread, meeting.round), true, Op::Barrier);
            }
            Do::Leave => {
                let (b, round) = self.leaves[thread].expect("it has arrived");
                let members = self.meetings[b].members.iter();
                members.for_each(|&other| touch(arrival(b, other, round), false, Op::Barrier));
            }
            Do::Doze => touch(SPURIOUS, outcome == 1, Op::Spurious),
            Do::Load(x) | Do::Fail(x, _) => touch(variable(x), false, Op::AtomicLoad),
            Do::Store(x) | Do::Put(x, _) => touch(variable(x), true, Op::AtomicStore),
            Do::Add(x) => touch(variable(x), true, Op::AtomicRmw),
            Do::Join(t) | Do::JoinLast(t) => touch(thread_object(t), false, Op::Join),
            Do::CondWait(c, m) if self.last.holder[m] == Some(thread) => {
                touch(condition(c), true, Op::CondWait);
                touch(mutex(m), true, Op::CondWait);
            }
            Do::CondWait(..) => {}
            Do::Signal(c) => touch(condition(c), true, Op::CondSignal),
            Do::Broadcast(c) => touch(condition(c), true, Op::CondBroadcast),
            Do::Spawn(_) => {}
        }
        let mut after = self.clone();
        after.take((thread, outcome));
        foot.ends = after.last.over.is_some();
        if after.has_ended(thread) && !foot.ends {
            foot.accesses.push((thread_object(thread), true, Op::End));
        }
        let woken = |t: usize| {
            self.waits_to_be_woken(t) && !after.waits_to_be_woken(t)
                || !self.born[t] && after.born[t]
                || matches!(self.next_of(t), Some(Do::Join(other) | Do::JoinLast(other)) if other == thread)
                    && t != thread
                    && after.has_ended(thread)
        };
        foot.enables = (0..self.program.len()).filter(|&t| woken(t)).collect();
        foot
    }

    /// Lets an enabled thread take its step.
    pub fn take(&mut self, (thread, outcome): Taken) {
        let operation = self.next_of(thread).expect("the thread has not ended");
        let last = &mut self.last;
        match operation {
            Do::Step | Do::Join(_) => {}
            Do::Lock(m) => last.holder[m] = Some(thread),
            Do::Relock(m) => {
                last.holder[m] = Some(thread);
                self.relock[thread] = None;
            }
            Do::Unlock(m) if last.holder[m] == Some(thread) => last.holder[m] = None,
            Do::Unlock(_) => {}
            Do::Post(s) => last.count[s] += 1,
            Do::Wait(s) => {
                last.count[s] = last.count[s].saturating_sub(1);
                self.dozing[thread] = false;
            }
            Do::Choose(_) => last.at[thread] += usize::from(outcome),
            Do::Try(_) if outcome == 1 => self.faults -= 1,
            Do::Try(m) | Do::Attempt(m) => last.holder[m] = last.holder[m].or(Some(thread)),
            Do::TryWait(s) => last.count[s] = last.count[s].saturating_sub(1),
            Do::Cas(x, expected, new) => {
                last.registers[thread] = last.values[x];
                if last.values[x] == expected {
                    last.values[x] = new;
                }
            }
            Do::Meet(b, count) | Do::Serial(b, count) => {
                let meeting = &mut self.meetings[b];
                meeting.crowded = meeting.is_crowded_by(thread);
                if meeting.round == 0 {
                    meeting.members.push(thread);
                    meeting.members.sort_unstable();
                }
                self.leaves[thread] = Some((b, meeting.round));
                meeting.arrived.push(thread);
                let is_last = meeting.arrived.len() == count;
                if is_last {
                    meeting.arrived.clear();
                    meeting.round += 1;
                }
                if matches!(operation, Do::Serial(..)) {
                    last.registers[thread] = u64::from(is_last);
                }
            }
            Do::Leave => self.leaves[thread] = None,
            Do::Doze => {
                self.spurious -= u32::from(outcome);
                self.dozing[thread] |= outcome == 1;
            }
            Do::Load(x) => last.registers[thread] = last.values[x],
            Do::Store(x) => last.values[x] = last.registers[thread] + 1,
            Do::Add(x) => last.values[x] += 1,
            Do::Put(x, value) => last.values[x] = value,
            Do::Fail(x, value) if last.values[x] == value => last.over = Some(1),
            Do::Fail(..) => {}
            Do::Exit | Do::JoinLast(_) => last.over = Some(0),
            Do::Spawn(t) => self.born[t] = true,
            Do::CondWait(c, m) if last.holder[m] == Some(thread) => {
                last.holder[m] = None;
                self.waiting[c].push(thread);
                self.relock[thread] = Some(m);
            }
            Do::CondWait(..) => {}
            Do::Signal(c) if self.waiting[c].is_empty() => {}
            Do::Signal(c) => {
                self.waiting[c].remove(usize::from(outcome));
            }
            Do::Broadcast(c) => self.waiting[c].clear(),
        }
        // A wait is two steps of one operation. The second one takes the lock again, or leaves the barrier.
        if !matches!(operation, Do::Relock(_) | Do::Leave) {
            self.last.at[thread] += 1;
        }
        self.running = Some(thread);
    }
}

/// The happens-before order of the steps so far, computed by its definition, without vector clocks.
#[derive(Clone, Debug, Default)]
pub struct HappensBefore {
    feet: Vec<StepTouches>,
    /// For each step, the set of steps that happen before it, as bits.
    before: Vec<u128>,
    /// For each step, a hash of its thread, its outcome and all steps that happen before it.
    names: Vec<u64>,
}

impl HappensBefore {
    /// Adds a step.
    pub fn push(&mut self, foot: StepTouches, outcome: u16) {
        let depends = |earlier: &StepTouches| {
            let conflict = |a: &(u64, bool, Op)| foot.accesses.iter().any(|b| a.0 == b.0 && (a.1 || b.1));
            earlier.thread == foot.thread
                || earlier.enables.contains(&foot.thread)
                || foot.ends
                || earlier.accesses.iter().any(conflict)
        };
        let mut before = 0u128;
        for (at, earlier) in self.feet.iter().enumerate() {
            if depends(earlier) {
                before |= self.before[at] | 1 << at;
            }
        }
        let mut name = mix((foot.thread as u64) << 32 | u64::from(outcome));
        for (at, other) in self.names.iter().enumerate().filter(|(at, _)| before >> at & 1 != 0) {
            name = name.wrapping_add(mix(*other ^ u64::from(self.feet[at].thread == foot.thread)));
        }
        self.names.push(mix(name));
        self.before.push(before);
        self.feet.push(foot);
    }

    /// The hash of the class of all steps so far.
    pub fn class(&self) -> u64 {
        self.names.iter().fold(0, |sum, name| sum.wrapping_add(*name))
    }
}

fn mix(word: u64) -> u64 {
    let z = (word ^ word >> 31).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (z ^ z >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ z >> 29
}

/// The hash of a schedule's class if all arrivals at barriers were dependent. Also returns whether the
/// schedule shows that they are: more threads have come than the barrier needs.
pub fn ordered_class(program: &Program, schedule: &[Taken]) -> (u64, bool) {
    let (mut state, mut past, mut crowded) = (State::new(program), HappensBefore::default(), false);
    for &taken in schedule {
        let mut foot = state.foot(taken);
        let barriers = barrier(0)..barrier(OBJECTS);
        for (_, write, op) in foot.accesses.iter_mut().filter(|(object, ..)| barriers.contains(object)) {
            crowded |= *write && *op == Op::Barrier;
            *write = true;
        }
        past.push(foot, taken.1);
        state.take(taken);
    }
    (past.class(), crowded)
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
