//! The state of the toy machine, and its steps.

use crate::toy::program::{Do, Expr, Place, Program};
use heisen_trace::symbolic::{
    EventKind, FutexAct, Node, NodeId, Operand, PinReason, SymbolicEvent, SymbolicTrace,
};
use heisen_trace::value_op::mask;
use heisen_trace::{End, Op, ValueOp};
use std::collections::{BTreeMap, BTreeSet};

/// A value of 8 bits, and its expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    pub number: u64,
    pub operand: Operand,
}

impl Value {
    fn known(number: u64) -> Value {
        Value { number, operand: Operand::Constant(number.into()) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Before its first step.
    Start,
    /// Before the instruction at `pc`, or its end.
    Before,
    /// In the queue of a condition variable.
    Waiting,
    /// In the queue of a futex.
    Parked,
    /// Woken from the queue of a futex.
    Unparked,
    /// Before it acquires the mutex of its wait again. Whether it was woken.
    Relocking(bool),
    /// At a barrier. Once all have arrived: whether it was the last.
    Arrived(Option<bool>),
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    pub code: usize,
    pub pc: usize,
    pub standing: Standing,
    registers: Vec<Value>,
    /// The threads that it has created, by number.
    children: Vec<usize>,
    pub parent: Option<(usize, usize)>,
    inputs: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    memory: BTreeMap<u64, u8>,
    owners: BTreeMap<u64, usize>,
    /// The read-write locks that a thread holds for writing, and the numbers of readers.
    written: BTreeSet<u64>,
    readers: BTreeMap<u64, u32>,
    tokens: Vec<u64>,
    /// The control words whose initialiser runs.
    initialising: BTreeSet<u64>,
    /// The threads that wait at each barrier.
    arrived: BTreeMap<u64, Vec<usize>>,
    /// In the order in which they came.
    queues: BTreeMap<u64, Vec<usize>>,
    pub threads: Vec<Thread>,
    /// Whether the first word of memory was freed.
    freed: bool,
    pub over: Option<Over>,
}

/// How the process ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Over {
    Exit,
    /// An assertion failed there.
    Assert(u64),
    /// A division by 0 there, or an access of freed memory.
    Crash(u64),
    /// An assumption does not hold: the execution does not count.
    Ignored,
}

impl Over {
    pub fn end(&self) -> End {
        match self {
            Over::Exit | Over::Ignored => End::Exit(0),
            Over::Assert(_) => End::Signal(6),
            Over::Crash(_) => End::Signal(8),
        }
    }
}

/// What a step asks for.
pub trait Choices {
    /// The value of an input of the thread at this place in the tree of creation.
    fn input(&mut self, path: &[u16], index: u32, bits: u32) -> u64;
    /// Which of several waiters is woken.
    fn waiter(&mut self, count: usize) -> usize;
}

/// What a step does, for those who want to know.
pub struct Recorder {
    pub trace: SymbolicTrace,
    /// Whether reads and inputs are unknowns.
    pub symbolic: bool,
    pub step: u32,
    /// The objects that the last step has touched, and whether it changed them.
    pub touches: Vec<(u64, bool)>,
}

impl Recorder {
    pub fn new(symbolic: bool) -> Recorder {
        Recorder { trace: SymbolicTrace::default(), symbolic, step: 0, touches: Vec::new() }
    }

    fn event(&mut self, thread: usize, pc: u64, kind: EventKind) {
        if self.symbolic {
            self.trace.events.push(SymbolicEvent { thread: thread as u16, step: self.step, pc, kind });
        }
    }

    fn node(&mut self, node: Node) -> NodeId {
        self.trace.nodes.push(node);
        NodeId(self.trace.nodes.len() as u32 - 1)
    }

    fn apply(&mut self, op: ValueOp, from: u32, width: u32, operands: &[Value]) -> Option<Value> {
        let numbers: Vec<u128> = operands.iter().map(|value| value.number.into()).collect();
        let number = op.apply(from, width, &numbers)? as u64;
        let operands: Vec<Operand> = operands.iter().map(|value| value.operand).collect();
        if operands.iter().all(|operand| matches!(operand, Operand::Constant(_))) {
            return Some(Value::known(number));
        }
        let node = self.node(Node::Apply { op, from, width, operands });
        Some(Value { number, operand: Operand::Node(node) })
    }

    /// A thread wakes so many of at most so many others. Returns their number.
    fn wakes(&mut self, thread: usize, pc: u64, word: u64, (most, woken): (u32, u64)) -> Value {
        if !self.symbolic {
            return Value::known(woken);
        }
        let event = self.trace.events.len() as u32;
        let node = self.node(Node::Read { event, width: 16 });
        self.event(thread, pc, EventKind::FutexWake { word, most, woken, node });
        let count = Value { number: woken, operand: Operand::Node(node) };
        self.apply(ValueOp::Trunc, 16, 8, &[count]).unwrap()
    }

    pub fn pending(&mut self, thread: usize, pc: u64, op: Op, object: u64, blocked: bool) {
        self.event(thread, pc, EventKind::Pending { op, object, blocked });
    }

    /// The thread runs from this step on.
    pub fn runs(&mut self, thread: usize) {
        self.event(thread, 0, EventKind::Runs);
    }

    pub fn sync(&mut self, thread: usize, pc: u64, op: Op, object: u64, ok: bool) {
        self.event(thread, pc, EventKind::Sync { op, object, ok });
    }
}

/// Objects are told apart from addresses of memory.
pub const MUTEX: u64 = 0x1000;
pub const CONDITION: u64 = 0x2000;
const THREAD: u64 = 0x3000;
const SEMAPHORE: u64 = 0x4000;
const RWLOCK: u64 = 0x5000;
const ONCE: u64 = 0x6000;
const BARRIER: u64 = 0x7000;
/// The queues of futexes.
const FUTEX: u64 = 0x8000;

/// The bytes of the first word of memory.
const WORD: u64 = 8;

impl State {
    /// The beginning of a program. The main thread has run up to its first visible instruction.
    pub fn new(program: &Program, recorder: &mut Recorder, choices: &mut dyn Choices) -> State {
        let mut state = State {
            memory: program.memory.iter().copied().collect(),
            owners: BTreeMap::new(),
            written: BTreeSet::new(),
            readers: BTreeMap::new(),
            tokens: program.tokens.clone(),
            initialising: BTreeSet::new(),
            arrived: BTreeMap::new(),
            queues: BTreeMap::new(),
            threads: Vec::new(),
            freed: false,
            over: None,
        };
        let (tokens, parties) = (program.tokens.iter().copied(), program.parties.iter().copied());
        recorder.trace.counts = (SEMAPHORE..).zip(tokens).chain((BARRIER..).zip(parties)).collect();
        state.create(0, None);
        recorder.trace.threads.push(None);
        state.threads[0].standing = Standing::Before;
        state.run_on(program, 0, recorder, choices);
        state
    }

    fn create(&mut self, code: usize, parent: Option<(usize, usize)>) {
        let registers = vec![Value::known(0); 6];
        let (standing, children) = (Standing::Start, Vec::new());
        self.threads.push(Thread { code, pc: 0, standing, registers, children, parent, inputs: 0 });
    }

    /// The place of the instruction at which a thread stands.
    pub fn place(&self, thread: usize) -> u64 {
        let Thread { code, pc, .. } = self.threads[thread];
        code as u64 * 1000 + pc as u64 + 1
    }

    /// The place of a thread in the tree of creation.
    fn path(&self, thread: usize) -> Vec<u16> {
        let Some((parent, nth)) = self.threads[thread].parent else { return Vec::new() };
        let mut path = self.path(parent);
        path.push(nth as u16);
        path
    }

    fn next<'p>(&self, program: &'p Program, thread: usize) -> Option<&'p Do> {
        program.code[self.threads[thread].code].get(self.threads[thread].pc)
    }

    pub fn is_enabled(&self, program: &Program, thread: usize) -> bool {
        let free = |mutex: &u64| !self.owners.contains_key(mutex);
        match &self.threads[thread].standing {
            Standing::Ended => false,
            Standing::Start | Standing::Unparked => true,
            Standing::Parked => matches!(self.next(program, thread), Some(Do::FutexWait(.., true))),
            Standing::Waiting => matches!(self.next(program, thread), Some(Do::TimedWait(..))),
            Standing::Arrived(last) => last.is_some(),
            Standing::Relocking(_) => match self.next(program, thread) {
                Some(Do::Wait(_, mutex) | Do::TimedWait(_, _, mutex)) => free(mutex),
                _ => unreachable!("only waits acquire again"),
            },
            Standing::Before => match self.next(program, thread) {
                Some(Do::Lock(mutex)) => free(mutex),
                Some(Do::Take(semaphore)) => self.tokens[*semaphore as usize] > 0,
                Some(Do::Once(control, _)) => !self.initialising.contains(control),
                Some(Do::ReadLock(lock)) => self.can_read(*lock),
                Some(Do::WriteLock(lock)) => self.can_write(*lock),
                Some(Do::Join(nth)) => {
                    let child = self.threads[thread].children[*nth];
                    self.threads[child].standing == Standing::Ended
                }
                _ => true,
            },
        }
    }

    fn can_read(&self, lock: u64) -> bool {
        !self.written.contains(&lock)
    }

    fn can_write(&self, lock: u64) -> bool {
        self.can_read(lock) && self.readers.get(&lock).is_none_or(|&count| count == 0)
    }

    /// Whether the next step of a thread is the end of a wait by its time-out.
    pub fn is_late(&self, program: &Program, thread: usize) -> bool {
        match (&self.threads[thread].standing, self.next(program, thread)) {
            (Standing::Waiting | Standing::Parked, _) => true,
            (Standing::Before, Some(Do::TimedLock(_, mutex))) => self.owners.contains_key(mutex),
            (Standing::Before, Some(Do::TimedTake(_, semaphore))) => self.tokens[*semaphore as usize] == 0,
            _ => false,
        }
    }

    /// The operation and the object before which a thread stands, if it may block.
    pub fn stands_before(&self, program: &Program, thread: usize) -> Option<(Op, u64)> {
        match (&self.threads[thread].standing, self.next(program, thread)?) {
            (Standing::Before, Do::Lock(mutex)) => Some((Op::Lock, MUTEX + mutex)),
            (Standing::Before, Do::Take(semaphore)) => Some((Op::SemWait, SEMAPHORE + semaphore)),
            (Standing::Before, Do::Once(control, _)) => Some((Op::Once, ONCE + control)),
            (Standing::Arrived(None), Do::Barrier(_, barrier)) => Some((Op::Barrier, BARRIER + barrier)),
            (Standing::Before, Do::ReadLock(lock)) => Some((Op::ReadLock, RWLOCK + lock)),
            (Standing::Before, Do::WriteLock(lock)) => Some((Op::WriteLock, RWLOCK + lock)),
            (Standing::Before, Do::Join(nth)) => Some((Op::Join, self.threads[thread].children[*nth] as u64)),
            (Standing::Waiting, Do::Wait(condition, _) | Do::TimedWait(_, condition, _)) => {
                Some((Op::CondWait, CONDITION + condition))
            }
            (Standing::Parked | Standing::Unparked, Do::FutexWait(_, word, ..)) => {
                Some((Op::FutexWait, *word))
            }
            (Standing::Relocking(_), Do::Wait(_, mutex) | Do::TimedWait(_, _, mutex)) => {
                Some((Op::Relock, MUTEX + mutex))
            }
            _ => None,
        }
    }

    /// What the next step of a thread accesses: address, size, and whether it writes.
    fn next_access(&self, program: &Program, thread: usize) -> Option<(u64, u64, bool)> {
        if self.threads[thread].standing != Standing::Before {
            return None;
        }
        let (mut scratch, mut nobody) = (self.clone(), Recorder::new(false));
        let access = match self.next(program, thread)? {
            Do::Load(_, place, size) => (scratch.address(thread, 0, place, &mut nobody)?, *size, false),
            Do::Store(place, size, value) => {
                scratch.value(thread, 0, value, &mut nobody)?;
                (scratch.address(thread, 0, place, &mut nobody)?, *size, true)
            }
            Do::Add(_, place, by) => {
                scratch.value(thread, 0, by, &mut nobody)?;
                (scratch.address(thread, 0, place, &mut nobody)?, 1, true)
            }
            Do::Cas(_, place, expected, new) => {
                scratch.value(thread, 0, expected, &mut nobody)?;
                scratch.value(thread, 0, new, &mut nobody)?;
                // It counts as a write, also if it fails.
                (scratch.address(thread, 0, place, &mut nobody)?, 1, true)
            }
            Do::FutexWait(_, word, expected, _) => {
                scratch.value(thread, 0, expected, &mut nobody)?;
                (*word, 1, false)
            }
            _ => return None,
        };
        Some((access.0, access.1.into(), access.2))
    }

    /// The places of threads that are about to do conflicting accesses.
    pub fn meetings(&self, program: &Program) -> Vec<(u64, u64)> {
        let all =
            (0..self.threads.len()).map(|thread| (self.place(thread), self.next_access(program, thread)));
        let all: Vec<(u64, (u64, u64, bool))> =
            all.filter_map(|(place, access)| Some((place, access?))).collect();
        let mut found = Vec::new();
        for (number, &(place, a)) in all.iter().enumerate() {
            for &(other, b) in &all[..number] {
                if a.0 < b.0 + b.1 && b.0 < a.0 + a.1 && (a.2 || b.2) {
                    found.push((place.min(other), place.max(other)));
                }
            }
        }
        found
    }

    /// A thread that is enabled takes its step, and runs up to its next one.
    pub fn step(
        &mut self,
        program: &Program,
        thread: usize,
        recorder: &mut Recorder,
        choices: &mut dyn Choices,
    ) {
        recorder.touches.clear();
        let place = self.place(thread);
        match self.threads[thread].standing {
            Standing::Start => {
                self.threads[thread].standing = Standing::Before;
                recorder.sync(thread, place, Op::Start, 0, true);
                recorder.touches.push((THREAD + thread as u64, true));
            }
            Standing::Waiting => {
                let Some(Do::TimedWait(_, condition, _)) = self.next(program, thread) else { unreachable!() };
                self.queues.entry(*condition).or_default().retain(|&other| other != thread);
                self.threads[thread].standing = Standing::Relocking(false);
                recorder.sync(thread, place, Op::CondTimedWait, CONDITION + condition, false);
                recorder.touches.push((CONDITION + condition, true));
                return;
            }
            Standing::Parked | Standing::Unparked => {
                let woken = self.threads[thread].standing == Standing::Unparked;
                let Some(&Do::FutexWait(register, word, ..)) = self.next(program, thread) else {
                    unreachable!()
                };
                let act = if woken { FutexAct::Woken } else { FutexAct::TimedOut };
                if !woken {
                    self.queues.entry(FUTEX + word).or_default().retain(|&other| other != thread);
                    recorder.touches.push((FUTEX + word, true));
                }
                recorder.event(thread, place, EventKind::Futex { word, act });
                self.threads[thread].registers[register] = Value::known(if woken { 0 } else { 2 });
                self.threads[thread].standing = Standing::Before;
                self.threads[thread].pc += 1;
            }
            Standing::Relocking(woken) => {
                let (register, mutex) = match self.next(program, thread) {
                    Some(Do::Wait(_, mutex)) => (None, *mutex),
                    Some(Do::TimedWait(register, _, mutex)) => (Some(*register), *mutex),
                    _ => unreachable!(),
                };
                self.owners.insert(mutex, thread);
                if let Some(register) = register {
                    self.threads[thread].registers[register] = Value::known(woken.into());
                }
                self.threads[thread].standing = Standing::Before;
                self.threads[thread].pc += 1;
                recorder.sync(thread, place, Op::Relock, MUTEX + mutex, true);
                recorder.touches.push((MUTEX + mutex, true));
            }
            Standing::Arrived(last) => {
                let Some(&Do::Barrier(register, barrier)) = self.next(program, thread) else {
                    unreachable!()
                };
                let last = last.expect("all have arrived");
                recorder.sync(thread, place, Op::BarrierLeave, BARRIER + barrier, true);
                if let Some(register) = register {
                    recorder.sync(thread, place, Op::BarrierLast, BARRIER + barrier, last);
                    self.threads[thread].registers[register] = Value::known(last.into());
                }
                self.threads[thread].standing = Standing::Before;
                self.threads[thread].pc += 1;
                recorder.touches.push((THREAD + thread as u64, true));
            }
            Standing::Before => match self.next(program, thread).cloned() {
                None => {
                    if thread == 0 {
                        recorder.sync(0, place, Op::Exit, 0, true);
                        self.over = Some(Over::Exit);
                        recorder.touches.push((THREAD, true));
                        return;
                    }
                    self.threads[thread].standing = Standing::Ended;
                    recorder.sync(thread, place, Op::End, 0, true);
                    recorder.touches.push((THREAD + thread as u64, true));
                    return;
                }
                Some(next) => {
                    self.threads[thread].pc += 1;
                    self.visible(program, thread, place, next, recorder, choices);
                    if self.over.is_some() || self.threads[thread].standing != Standing::Before {
                        return;
                    }
                }
            },
            Standing::Ended => unreachable!("it is not enabled"),
        }
        self.run_on(program, thread, recorder, choices);
    }

    fn visible(
        &mut self,
        program: &Program,
        thread: usize,
        pc: u64,
        next: Do,
        recorder: &mut Recorder,
        choices: &mut dyn Choices,
    ) {
        match next {
            Do::Load(register, place, size) => {
                let Some(address) = self.accessed(thread, pc, &place, recorder) else { return };
                let value = self.read(thread, pc, address, size, false, recorder);
                let value = if size == 1 { value } else { self.halves(value, recorder) };
                self.threads[thread].registers[register] = value;
            }
            Do::Store(place, size, value) => {
                let Some(value) = self.value(thread, pc, &value, recorder) else { return };
                let Some(address) = self.accessed(thread, pc, &place, recorder) else { return };
                let value = if size == 1 { value } else { double(value, recorder) };
                self.write(thread, pc, address, size, value, recorder);
            }
            Do::Add(register, place, by) => {
                let Some(by) = self.value(thread, pc, &by, recorder) else { return };
                let Some(address) = self.accessed(thread, pc, &place, recorder) else { return };
                let old = self.read(thread, pc, address, 1, true, recorder);
                let new = recorder.apply(ValueOp::Add, 8, 8, &[old, by]).unwrap();
                self.write(thread, pc, address, 1, new, recorder);
                self.threads[thread].registers[register] = old;
            }
            Do::Cas(register, place, expected, new) => {
                let Some(expected) = self.value(thread, pc, &expected, recorder) else { return };
                let Some(new) = self.value(thread, pc, &new, recorder) else { return };
                let Some(address) = self.accessed(thread, pc, &place, recorder) else { return };
                let old = self.read(thread, pc, address, 1, true, recorder);
                let equal = recorder.apply(ValueOp::Eq, 8, 1, &[old, expected]).unwrap();
                branch(thread, pc, equal, recorder);
                if equal.number == 1 {
                    self.write(thread, pc, address, 1, new, recorder);
                }
                self.threads[thread].registers[register] = old;
            }
            Do::Lock(mutex) => {
                self.owners.insert(mutex, thread);
                recorder.sync(thread, pc, Op::Lock, MUTEX + mutex, true);
                recorder.touches.push((MUTEX + mutex, true));
            }
            Do::Unlock(mutex) => {
                self.owners.remove(&mutex);
                recorder.sync(thread, pc, Op::Unlock, MUTEX + mutex, true);
                recorder.touches.push((MUTEX + mutex, true));
            }
            Do::Once(control, done) => {
                recorder.sync(thread, pc, Op::Once, ONCE + control, true);
                recorder.trace.atomics.push(pc);
                let found = self.read(thread, pc, ONCE + control, 1, false, recorder);
                let runs = recorder.apply(ValueOp::Eq, 8, 1, &[found, Value::known(0)]).unwrap();
                branch(thread, pc, runs, recorder);
                if runs.number == 1 {
                    self.initialising.insert(control);
                } else {
                    recorder.sync(thread, pc, Op::OnceEnd, ONCE + control, true);
                    self.threads[thread].pc = done;
                }
                recorder.touches.push((ONCE + 0x800 + control, true));
            }
            Do::Barrier(_, barrier) => {
                recorder.sync(thread, pc, Op::Barrier, BARRIER + barrier, true);
                recorder.touches.push((BARRIER + barrier, true));
                self.threads[thread].pc -= 1;
                let waiting = self.arrived.entry(barrier).or_default();
                if waiting.len() as u64 + 1 < program.parties[barrier as usize] {
                    waiting.push(thread);
                    self.threads[thread].standing = Standing::Arrived(None);
                } else {
                    for other in std::mem::take(waiting) {
                        self.threads[other].standing = Standing::Arrived(Some(false));
                    }
                    self.threads[thread].standing = Standing::Arrived(Some(true));
                }
            }
            Do::ReadLock(lock) => {
                *self.readers.entry(lock).or_default() += 1;
                recorder.sync(thread, pc, Op::ReadLock, RWLOCK + lock, true);
                recorder.touches.push((RWLOCK + lock, false));
            }
            Do::WriteLock(lock) => {
                self.written.insert(lock);
                recorder.sync(thread, pc, Op::WriteLock, RWLOCK + lock, true);
                recorder.touches.push((RWLOCK + lock, true));
            }
            Do::TryReadLock(register, lock) => {
                let can = self.can_read(lock);
                *self.readers.entry(lock).or_default() += u32::from(can);
                self.tries(thread, pc, Op::TryReadLock, (RWLOCK + lock, register), can, recorder);
            }
            Do::TryWriteLock(register, lock) => {
                let can = self.can_write(lock);
                if can {
                    self.written.insert(lock);
                }
                self.tries(thread, pc, Op::TryWriteLock, (RWLOCK + lock, register), can, recorder);
            }
            Do::RwUnlock(lock) => {
                if !self.written.remove(&lock) {
                    *self.readers.entry(lock).or_default() -= 1;
                }
                recorder.sync(thread, pc, Op::RwUnlock, RWLOCK + lock, true);
                recorder.touches.push((RWLOCK + lock, true));
            }
            Do::Take(semaphore) => {
                self.tokens[semaphore as usize] -= 1;
                recorder.sync(thread, pc, Op::SemWait, SEMAPHORE + semaphore, true);
                recorder.touches.push((SEMAPHORE + semaphore, true));
            }
            Do::TryTake(register, semaphore) | Do::TimedTake(register, semaphore) => {
                let tokens = &mut self.tokens[semaphore as usize];
                let can = *tokens > 0;
                *tokens -= u64::from(can);
                let op = if matches!(next, Do::TryTake(..)) { Op::SemTryWait } else { Op::SemTimedWait };
                self.tries(thread, pc, op, (SEMAPHORE + semaphore, register), can, recorder);
            }
            Do::Post(semaphore) => {
                self.tokens[semaphore as usize] += 1;
                recorder.sync(thread, pc, Op::SemPost, SEMAPHORE + semaphore, true);
                recorder.touches.push((SEMAPHORE + semaphore, true));
            }
            Do::TryLock(register, mutex) | Do::TimedLock(register, mutex) => {
                let free = !self.owners.contains_key(&mutex);
                if free {
                    self.owners.insert(mutex, thread);
                }
                let op = if matches!(next, Do::TryLock(..)) { Op::TryLock } else { Op::TimedLock };
                self.tries(thread, pc, op, (MUTEX + mutex, register), free, recorder);
            }
            Do::Wait(condition, mutex) | Do::TimedWait(_, condition, mutex) => {
                self.owners.remove(&mutex);
                self.queues.entry(condition).or_default().push(thread);
                self.threads[thread].standing = Standing::Waiting;
                self.threads[thread].pc -= 1;
                let op = if matches!(next, Do::Wait(..)) { Op::CondWait } else { Op::CondTimedWait };
                recorder.sync(thread, pc, op, CONDITION + condition, true);
                recorder.sync(thread, pc, Op::Unlock, MUTEX + mutex, true);
                recorder.touches.extend([(CONDITION + condition, true), (MUTEX + mutex, true)]);
            }
            Do::Signal(condition) => {
                recorder.sync(thread, pc, Op::CondSignal, CONDITION + condition, true);
                recorder.touches.push((CONDITION + condition, true));
                let queue = self.queues.entry(condition).or_default();
                if !queue.is_empty() {
                    let woken = if queue.len() > 1 { choices.waiter(queue.len()) } else { 0 };
                    if queue.len() > 1 {
                        recorder.step += 1;
                        // The choice is part of the class.
                        recorder.touches.push((CONDITION + 0x800 + woken as u64, true));
                    }
                    let woken = queue.remove(woken);
                    recorder.sync(thread, 0, Op::Wake, woken as u64, true);
                    self.threads[woken].standing = Standing::Relocking(true);
                }
            }
            Do::Broadcast(condition) => {
                recorder.sync(thread, pc, Op::CondBroadcast, CONDITION + condition, true);
                recorder.touches.push((CONDITION + condition, true));
                for woken in self.queues.remove(&condition).unwrap_or_default() {
                    self.threads[woken].standing = Standing::Relocking(true);
                }
            }
            Do::FutexWait(register, word, expected, timed) => {
                let Some(expected) = self.value(thread, pc, &expected, recorder) else { return };
                let now = self.read(thread, pc, word, 1, false, recorder);
                let equal = recorder.apply(ValueOp::Eq, 8, 1, &[now, expected]).unwrap();
                branch(thread, pc, equal, recorder);
                if equal.number == 0 {
                    self.threads[thread].registers[register] = Value::known(1);
                    return;
                }
                self.queues.entry(FUTEX + word).or_default().push(thread);
                self.threads[thread].standing = Standing::Parked;
                self.threads[thread].pc -= 1;
                recorder.event(thread, pc, EventKind::Futex { word, act: FutexAct::Waits { timed } });
                recorder.touches.push((FUTEX + word, true));
            }
            Do::FutexWake(register, word, most) => {
                recorder.touches.push((FUTEX + word, true));
                let mut queue = self.queues.remove(&(FUTEX + word)).unwrap_or_default();
                let woken = queue.len().min(most);
                self.threads[thread].registers[register] =
                    recorder.wakes(thread, pc, word, (most as u32, woken as u64));
                let chooses = queue.len() > most;
                for _ in 0..woken {
                    let nth = if chooses { choices.waiter(queue.len()) } else { 0 };
                    if chooses {
                        recorder.step += 1;
                        recorder.touches.push((FUTEX + 0x800 + nth as u64, true));
                    }
                    let woken = queue.remove(nth);
                    recorder.sync(thread, 0, Op::Wake, woken as u64, true);
                    self.threads[woken].standing = Standing::Unparked;
                }
                self.queues.insert(FUTEX + word, queue);
            }
            Do::Create(code) => {
                let (number, nth) = (self.threads.len(), self.threads[thread].children.len());
                self.threads[thread].children.push(number);
                self.create(code, Some((thread, nth + 1)));
                recorder.trace.threads.push(Some((thread as u16, nth as u16 + 1)));
                recorder.sync(thread, pc, Op::Create, number as u64, true);
                recorder.touches.push((THREAD + number as u64, true));
            }
            Do::Join(nth) => {
                let child = self.threads[thread].children[nth];
                recorder.sync(thread, pc, Op::Join, child as u64, true);
                recorder.touches.push((THREAD + child as u64, true));
            }
            Do::TryJoin(register, nth) => {
                let child = self.threads[thread].children[nth];
                let ended = self.threads[child].standing == Standing::Ended;
                self.threads[thread].registers[register] = Value::known(ended.into());
                recorder.sync(thread, pc, Op::TryJoin, child as u64, ended);
                recorder.touches.push((THREAD + child as u64, true));
            }
            _ => unreachable!("only visible instructions are steps"),
        }
    }

    /// A thread has tried something, and notes in a register whether it succeeded.
    fn tries(
        &mut self,
        thread: usize,
        pc: u64,
        op: Op,
        (object, register): (u64, usize),
        ok: bool,
        recorder: &mut Recorder,
    ) {
        self.threads[thread].registers[register] = Value::known(ok.into());
        recorder.sync(thread, pc, op, object, ok);
        recorder.touches.push((object, true));
    }

    /// Runs up to the next visible instruction.
    fn run_on(
        &mut self,
        program: &Program,
        thread: usize,
        recorder: &mut Recorder,
        choices: &mut dyn Choices,
    ) {
        while self.over.is_none() {
            let pc = self.place(thread);
            let Some(next) = self.next(program, thread) else { return };
            let at = self.threads[thread].pc;
            let mut to = at + 1;
            match next {
                Do::JumpUnless(condition, target) => {
                    let Some(holds) = self.test(thread, pc, condition, recorder) else { return };
                    to = if holds.number == 1 { to } else { *target };
                    branch(thread, pc, holds, recorder);
                }
                Do::Jump(target) => to = *target,
                Do::Free => {
                    self.freed = true;
                    recorder.sync(thread, pc, Op::Free, 0, true);
                    recorder.touches.extend((0..WORD).map(|at| (at, true)));
                }
                Do::OnceEnd(control) => {
                    self.write(thread, pc, ONCE + control, 1, Value::known(1), recorder);
                    recorder.trace.atomics.push(pc);
                    recorder.sync(thread, pc, Op::OnceEnd, ONCE + control, true);
                    self.initialising.remove(control);
                    recorder.touches.push((ONCE + 0x800 + control, true));
                }
                Do::Switch(value) => {
                    let Some(value) = self.value(thread, pc, value, recorder) else { return };
                    let three = Value::known(3);
                    let value = recorder.apply(ValueOp::And, 8, 8, &[value, three]).unwrap();
                    pin(thread, pc, value, PinReason::Switch, recorder);
                    to += value.number as usize;
                }
                Do::Assert(condition) => {
                    let Some(holds) = self.test(thread, pc, condition, recorder) else { return };
                    branch(thread, pc, holds, recorder);
                    if holds.number == 0 {
                        recorder.sync(thread, pc, Op::Assert, 0, true);
                        self.over = Some(Over::Assert(pc));
                    }
                }
                Do::Assume(condition) => {
                    let Some(holds) = self.test(thread, pc, condition, recorder) else { return };
                    if let Operand::Node(condition) = holds.operand {
                        recorder.event(thread, pc, EventKind::Assume { condition, holds: holds.number == 1 });
                    }
                    if holds.number == 0 {
                        self.over = Some(Over::Ignored);
                    }
                }
                Do::Input(register, bits) => {
                    let index = self.threads[thread].inputs;
                    self.threads[thread].inputs += 1;
                    let number = choices.input(&self.path(thread), index, *bits) & mask(*bits) as u64;
                    let value = self.input(thread, pc, *bits, number, recorder);
                    self.threads[thread].registers[*register] = value;
                }
                _ => return,
            }
            self.threads[thread].pc = to;
        }
    }

    fn input(&mut self, thread: usize, pc: u64, width: u32, value: u64, recorder: &mut Recorder) -> Value {
        if !recorder.symbolic {
            return Value::known(value);
        }
        let event = recorder.trace.events.len() as u32;
        let node = recorder.node(Node::Input { event, width });
        let number = self.threads[thread].inputs - 1;
        recorder.event(thread, pc, EventKind::Input { name: "in".into(), number, width, value, node });
        let input = Value { number: value, operand: Operand::Node(node) };
        recorder.apply(ValueOp::ZExt, width, 8, &[input]).unwrap()
    }

    /// The address of an access. Crashes if it is in freed memory.
    fn accessed(&mut self, thread: usize, pc: u64, place: &Place, recorder: &mut Recorder) -> Option<u64> {
        let address = self.address(thread, pc, place, recorder)?;
        if self.freed && address < WORD {
            recorder.touches.push((address, false));
            recorder.sync(thread, pc, Op::WrongAccess, address, true);
            self.over = Some(Over::Crash(pc));
            return None;
        }
        Some(address)
    }

    fn read(
        &mut self,
        thread: usize,
        pc: u64,
        address: u64,
        size: u8,
        update: bool,
        recorder: &mut Recorder,
    ) -> Value {
        let byte = |at: u64| u64::from(self.memory.get(&at).copied().unwrap_or(0));
        let value: u64 = (0..u64::from(size)).map(|at| byte(address + at) << (8 * at)).sum();
        recorder.touches.extend((0..u64::from(size)).map(|at| (address + at, false)));
        if !recorder.symbolic {
            return Value::known(value);
        }
        let event = recorder.trace.events.len() as u32;
        let node = recorder.node(Node::Read { event, width: 8 * u32::from(size) });
        recorder.event(thread, pc, EventKind::Read { address, size, value, node, update });
        Value { number: value, operand: Operand::Node(node) }
    }

    fn write(
        &mut self,
        thread: usize,
        pc: u64,
        address: u64,
        size: u8,
        value: Value,
        recorder: &mut Recorder,
    ) {
        for at in 0..u64::from(size) {
            self.memory.insert(address + at, (value.number >> (8 * at)) as u8);
            recorder.touches.push((address + at, true));
        }
        let Value { number, operand } = value;
        recorder.event(thread, pc, EventKind::Write { address, size, value: number, operand });
    }

    /// The sum of both bytes of a value of 16 bits.
    fn halves(&self, value: Value, recorder: &mut Recorder) -> Value {
        let low = recorder.apply(ValueOp::Trunc, 16, 8, &[value]).unwrap();
        let high = recorder.apply(ValueOp::LShr, 16, 16, &[value, Value::known(8)]).unwrap();
        let high = recorder.apply(ValueOp::Trunc, 16, 8, &[high]).unwrap();
        recorder.apply(ValueOp::Add, 8, 8, &[low, high]).unwrap()
    }

    fn address(&mut self, thread: usize, pc: u64, place: &Place, recorder: &mut Recorder) -> Option<u64> {
        match place {
            Place::Fixed(address) => Some(*address),
            Place::Indexed(base, index, last) => {
                let index = self.value(thread, pc, index, recorder)?;
                let last = Value::known((*last).into());
                let index = recorder.apply(ValueOp::And, 8, 8, &[index, last])?;
                pin(thread, pc, index, PinReason::Address, recorder);
                Some(base + index.number)
            }
        }
    }

    /// The value of an expression. `None` if the thread crashes, which ends the process.
    fn value(&mut self, thread: usize, pc: u64, expr: &Expr, recorder: &mut Recorder) -> Option<Value> {
        match expr {
            Expr::Const(number) => Some(Value::known((*number).into())),
            Expr::Reg(register) => Some(self.threads[thread].registers[*register]),
            Expr::Apply(op, a, b) => {
                let a = self.value(thread, pc, a, recorder)?;
                let b = self.value(thread, pc, b, recorder)?;
                let width = if op.is_test() { 1 } else { 8 };
                if matches!(op, ValueOp::UDiv | ValueOp::SRem) {
                    let zero = recorder.apply(ValueOp::Eq, 8, 1, &[b, Value::known(0)])?;
                    let divides = recorder.apply(ValueOp::Not, 1, 1, &[zero])?;
                    branch(thread, pc, divides, recorder);
                }
                let Some(result) = recorder.apply(*op, 8, width, &[a, b]) else {
                    recorder.sync(thread, pc, Op::Abort, 0, true);
                    self.over = Some(Over::Crash(pc));
                    return None;
                };
                match width {
                    8 => Some(result),
                    _ => recorder.apply(ValueOp::ZExt, 1, 8, &[result]),
                }
            }
        }
    }

    /// Whether an expression is not 0, as one bit.
    fn test(&mut self, thread: usize, pc: u64, expr: &Expr, recorder: &mut Recorder) -> Option<Value> {
        let value = self.value(thread, pc, expr, recorder)?;
        let zero = recorder.apply(ValueOp::Eq, 8, 1, &[value, Value::known(0)])?;
        recorder.apply(ValueOp::Not, 1, 1, &[zero])
    }
}

/// A value of 16 bits with the same byte twice.
fn double(value: Value, recorder: &mut Recorder) -> Value {
    let wide = recorder.apply(ValueOp::ZExt, 8, 16, &[value]).unwrap();
    let high = recorder.apply(ValueOp::Shl, 16, 16, &[wide, Value::known(8)]).unwrap();
    recorder.apply(ValueOp::Or, 16, 16, &[wide, high]).unwrap()
}

fn branch(thread: usize, pc: u64, condition: Value, recorder: &mut Recorder) {
    if let Operand::Node(node) = condition.operand {
        recorder.event(thread, pc, EventKind::Branch { condition: node, taken: condition.number == 1 });
    }
}

fn pin(thread: usize, pc: u64, value: Value, reason: PinReason, recorder: &mut Recorder) {
    if let Operand::Node(node) = value.operand {
        recorder.event(thread, pc, EventKind::Pin { node, value: value.number, reason });
    }
}
