//! An execution as predictions need it: the operations of its threads, with locks held and the operations
//! that must come before.
//!
//! Only the creation of threads and joins say what must come before: everything else could have happened in
//! another order. The order by signals, semaphores and the like is recorded as well. Hints use it, because
//! hints should be few.

use heisen_trace::touch::{NOWHERE, NOWHERE_END, WORD};
use heisen_trace::{Deed, Execution, Op, TouchKind};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The lock object.
    pub object: u64,
    /// The index of the operation that acquired it.
    pub since: usize,
    /// Whether other threads may hold it in the same mode.
    pub shared: bool,
}

/// One operation of a thread.
#[derive(Clone, Debug)]
pub struct Act {
    /// The operation and its object.
    pub deed: Deed,
    /// Whether it changed the object.
    pub write: bool,
    /// Whether it acquired a lock. False for an attempt that failed, and for other operations.
    pub took: bool,
    /// The locks that the thread held before, the oldest first.
    pub held: Rc<[Lock]>,
    /// Two vector clocks: the operations that must come before under every schedule, and those that came
    /// before here.
    must: Rc<[u32]>,
    did: Rc<[u32]>,
    /// The number of the operation in its thread, from 1.
    index: u32,
}

impl Act {
    /// The operation code. `None` for a memory access.
    pub fn op(&self) -> Option<Op> {
        Op::from_code(self.deed.op)
    }

    /// The thread.
    pub fn thread(&self) -> u16 {
        self.deed.thread
    }

    fn is_in(&self, clock: &[u32]) -> bool {
        clock.get(usize::from(self.thread())).is_some_and(|&seen| seen >= self.index)
    }

    /// Whether this comes before the other under every schedule.
    pub fn must_precede(&self, other: &Act) -> bool {
        if self.thread() == other.thread() { self.index < other.index } else { self.is_in(&other.must) }
    }

    /// A clock that differs between two operations of a thread if something must have happened between them.
    pub fn must_clock(&self) -> Rc<[u32]> {
        self.must.clone()
    }

    /// Whether neither must come before the other.
    pub fn is_unordered_with(&self, other: &Act) -> bool {
        !self.must_precede(other) && !other.must_precede(self)
    }

    /// Whether the other is the next operation of the same thread.
    pub fn comes_just_before(&self, other: &Act) -> bool {
        self.thread() == other.thread() && self.index + 1 == other.index
    }

    /// Whether synchronisation ordered this before the other in this execution.
    pub fn did_precede(&self, other: &Act) -> bool {
        self.thread() != other.thread() && self.is_in(&other.did)
    }

    /// Whether a lock prevents the operation of another thread between this one and `later`: this thread
    /// holds it throughout, and the other operation needs it.
    pub fn is_kept_together(&self, later: &Act, other: &Act) -> bool {
        let throughout = |lock: &&Lock| later.held.contains(lock);
        self.held.iter().filter(throughout).any(|lock| other.is_excluded_by(lock))
    }

    /// Whether this operation holds a lock that excludes `lock`.
    fn is_excluded_by(&self, lock: &Lock) -> bool {
        self.held.iter().any(|own| own.object == lock.object && !(own.shared && lock.shared))
    }
}

/// Vector clocks of threads and objects (Mattern, 1989).
#[derive(Default)]
struct Clocks {
    threads: Vec<Rc<[u32]>>,
    objects: HashMap<u64, Rc<[u32]>>,
}

fn merge(into: &mut Rc<[u32]>, from: &[u32]) {
    if (0..from.len()).all(|i| into.get(i).is_some_and(|&known| known >= from[i])) {
        return;
    }
    let length = into.len().max(from.len());
    let at = |clock: &[u32], i: usize| clock.get(i).copied().unwrap_or(0);
    *into = (0..length).map(|i| at(into, i).max(at(from, i))).collect();
}

impl Clocks {
    fn of(&mut self, thread: usize) -> &mut Rc<[u32]> {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, Rc::new([]));
        }
        &mut self.threads[thread]
    }

    /// The clock that a thread with `done` operations passes on.
    fn passed_on(&mut self, thread: usize, done: u32) -> Rc<[u32]> {
        let mut own = vec![0; thread + 1];
        own[thread] = done;
        let mut clock = self.of(thread).clone();
        merge(&mut clock, &own);
        clock
    }
}

/// The operations of an execution.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All operations, in order.
    pub acts: Vec<Act>,
    /// By the index of a wait on a condition variable: the mutex that it released.
    pub given_up: HashMap<usize, Lock>,
}

struct Reader {
    history: History,
    must: Clocks,
    did: Clocks,
    /// By thread: the locks that it holds, and how many operations it has done.
    held: HashMap<u16, Rc<[Lock]>>,
    done: HashMap<u16, u32>,
    counts: HashMap<(u16, u8, u64), u32>,
    created: HashSet<u16>,
    /// By object: the thread that last touched it without an operation. For a thread handle, that is the
    /// ended thread.
    ended: HashMap<u64, u16>,
    /// Locks whose release is recorded. For the others only the unlock call is known.
    with_release: HashSet<u64>,
    /// By thread: the wait that it has just begun.
    waits: HashMap<u16, usize>,
}

fn is_lock(op: Op) -> bool {
    matches!(op, Op::Lock | Op::TryLock | Op::TimedLock | Op::Relock | Op::ReadLock | Op::WriteLock)
}

impl History {
    /// Reads the touches of an execution.
    pub fn read(execution: &Execution) -> History {
        let op = |code| Op::from_code(code);
        let locks: HashSet<u64> = execution
            .touches
            .iter()
            .filter(|t| op(t.op).is_some_and(is_lock) && is_access(t.kind))
            .map(|t| t.word)
            .collect();
        let released = execution.touches.iter().filter(|t| t.op == 0 && is_access(t.kind)).map(|t| t.word);
        let mut reader = Reader {
            history: History::default(),
            must: Clocks::default(),
            did: Clocks::default(),
            held: HashMap::new(),
            done: HashMap::new(),
            counts: HashMap::new(),
            created: HashSet::from([0]),
            ended: HashMap::new(),
            with_release: released.filter(|object| locks.contains(object)).collect(),
            waits: HashMap::new(),
        };
        // A wide access is one operation, on the first word.
        let mut last = None;
        for touch in &execution.touches {
            let same = |word: u64| (touch.step, touch.thread, touch.kind as u8, touch.op, word);
            match touch.kind {
                TouchKind::Enables => reader.enables(touch.thread, touch.word as u16),
                TouchKind::Read | TouchKind::Write => {
                    let goes_on = touch.op == 0 && last == Some(same(touch.word.wrapping_sub(WORD)));
                    let deed = Deed {
                        thread: touch.thread,
                        op: touch.op,
                        object: touch.word,
                        nth: reader.count(touch.thread, touch.op, touch.word),
                        step: touch.step,
                    };
                    let own = touch.op == 0 || touch.op == Op::Barrier as u8;
                    let nowhere = own && (NOWHERE..NOWHERE_END).contains(&touch.word);
                    if locks.contains(&touch.word) {
                        reader.lock(deed, touch.kind == TouchKind::Write);
                    } else if !goes_on && !nowhere {
                        reader.act(deed, touch.kind == TouchKind::Write, false);
                    }
                    last = Some(same(touch.word));
                }
                TouchKind::Switch
                | TouchKind::Choices
                | TouchKind::State
                | TouchKind::Waits
                | TouchKind::At
                | TouchKind::All => {}
            }
        }
        reader.history
    }
}

fn is_access(kind: TouchKind) -> bool {
    matches!(kind, TouchKind::Read | TouchKind::Write)
}

impl Reader {
    fn count(&mut self, thread: u16, op: u8, object: u64) -> u32 {
        let count = self.counts.entry((thread, op, object)).or_default();
        *count += 1;
        *count
    }

    fn held(&self, thread: u16) -> Rc<[Lock]> {
        self.held.get(&thread).cloned().unwrap_or_else(|| Rc::new([]))
    }

    fn passed_on(&mut self, thread: u16) -> (Rc<[u32]>, Rc<[u32]>) {
        let done = self.done.get(&thread).copied().unwrap_or(0);
        (self.must.passed_on(thread.into(), done), self.did.passed_on(thread.into(), done))
    }

    fn enables(&mut self, thread: u16, other: u16) {
        let (must, did) = self.passed_on(thread);
        if self.created.insert(other) {
            merge(self.must.of(other.into()), &must);
        }
        merge(self.did.of(other.into()), &did);
    }

    /// Adds an operation.
    fn act(&mut self, deed: Deed, write: bool, took: bool) {
        let thread = deed.thread;
        let op = Op::from_code(deed.op);
        match op {
            Some(Op::Join) => {
                if let Some(&other) = self.ended.get(&deed.object) {
                    let (must, did) = self.passed_on(other);
                    merge(self.must.of(thread.into()), &must);
                    merge(self.did.of(thread.into()), &did);
                }
            }
            None => {
                self.ended.insert(deed.object, thread);
            }
            _ => {}
        }
        let orders =
            op.is_some_and(|op| !is_lock(op) && !matches!(op, Op::Unlock | Op::RwUnlock | Op::Create));
        if orders && let Some(known) = self.did.objects.get(&deed.object) {
            let known = known.clone();
            merge(self.did.of(thread.into()), &known);
        }
        let done = self.done.entry(thread).or_default();
        *done += 1;
        let index = *done;
        if orders {
            let (_, did) = self.passed_on(thread);
            let known = self.did.objects.entry(deed.object).or_insert_with(|| Rc::new([]));
            merge(known, &did);
        }
        if op == Some(Op::CondWait) {
            self.waits.insert(thread, self.history.acts.len());
        } else {
            self.waits.remove(&thread);
        }
        self.history.acts.push(Act {
            deed,
            write,
            took,
            held: self.held(thread),
            must: self.must.of(thread.into()).clone(),
            did: self.did.of(thread.into()).clone(),
            index,
        });
    }

    /// Adds a touch of a lock. `write` says whether the touch changed it.
    fn lock(&mut self, deed: Deed, write: bool) {
        match Op::from_code(deed.op) {
            Some(op) if is_lock(op) => {
                let shared = op == Op::ReadLock;
                let in_the_way = |lock: &Lock| lock.object == deed.object && !(lock.shared && shared);
                let others: Vec<u16> = self
                    .held
                    .iter()
                    .filter(|&(&other, held)| other != deed.thread && held.iter().any(in_the_way))
                    .map(|(&other, _)| other)
                    .collect();
                // A thread that continues from a wait for a lock holds it, so the other thread lost the lock
                // unseen.
                let certain = matches!(op, Op::Lock | Op::Relock);
                // An attempt that only reads has failed.
                let took = certain || others.is_empty() && (write || op != Op::TryLock);
                for other in others.into_iter().filter(|_| certain) {
                    self.release(other, deed.object);
                }
                let since = self.history.acts.len();
                self.act(deed, true, took);
                if took {
                    let lock = Lock { object: deed.object, since, shared };
                    let held: Vec<Lock> = self.held(deed.thread).iter().copied().chain([lock]).collect();
                    self.held.insert(deed.thread, held.into());
                }
            }
            None => self.release(deed.thread, deed.object),
            Some(_) if !self.with_release.contains(&deed.object) => self.release(deed.thread, deed.object),
            Some(_) => {}
        }
    }

    fn release(&mut self, thread: u16, object: u64) {
        let held = self.held(thread);
        let Some(at) = held.iter().rposition(|lock| lock.object == object) else { return };
        if let Some(&wait) = self.waits.get(&thread) {
            self.history.given_up.insert(wait, held[at]);
        }
        let left = held.iter().enumerate().filter(|&(index, _)| index != at).map(|(_, lock)| *lock);
        self.held.insert(thread, left.collect());
    }
}
