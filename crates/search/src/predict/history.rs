//! An execution as predictions see it: the deeds of its threads in order, each with the locks that were held, and with
//! what must have come before it under any schedule.
//!
//! What must come first is told by the creation of threads and by joins alone: all else could have gone another way. What
//! has come first by signals, semaphores and the like is known as well, for hints, which are to be few.

use heisen_trace::touch::{NOWHERE, NOWHERE_END, WORD};
use heisen_trace::{Deed, Execution, Op, TouchKind};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The object.
    pub object: u64,
    /// The deed by which it was taken, as an index.
    pub since: usize,
    /// Whether others may hold it in the same way.
    pub shared: bool,
}

/// One deed.
#[derive(Clone, Debug)]
pub struct Act {
    /// What was done.
    pub deed: Deed,
    /// Whether the object was changed.
    pub write: bool,
    /// Whether it took a lock, as opposed to an attempt that failed, or to anything else.
    pub took: bool,
    /// The locks that the thread held before, the oldest first.
    pub held: Rc<[Lock]>,
    /// What must have come before, and what has: how far all threads were.
    must: Rc<[u32]>,
    did: Rc<[u32]>,
    /// Which deed of its thread it is, from 1.
    index: u32,
}

impl Act {
    /// The operation; none for an access of memory.
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

    /// Whether this comes before the other under any schedule.
    pub fn must_precede(&self, other: &Act) -> bool {
        if self.thread() == other.thread() { self.index < other.index } else { self.is_in(&other.must) }
    }

    /// What tells apart deeds of one thread between which something must have happened.
    pub fn must_clock(&self) -> Rc<[u32]> {
        self.must.clone()
    }

    /// Whether nothing orders the two under all schedules.
    pub fn is_free_of(&self, other: &Act) -> bool {
        !self.must_precede(other) && !other.must_precede(self)
    }

    /// Whether the other is the next deed of the same thread.
    pub fn comes_just_before(&self, other: &Act) -> bool {
        self.thread() == other.thread() && self.index + 1 == other.index
    }

    /// Whether it came before the other by more than chance in this execution.
    pub fn did_precede(&self, other: &Act) -> bool {
        self.thread() != other.thread() && self.is_in(&other.did)
    }

    /// Whether a lock keeps the other thread's deed from coming between this one and a later one of its own thread: it was
    /// held all the time, and the other needs it.
    pub fn is_kept_together(&self, later: &Act, other: &Act) -> bool {
        let throughout = |lock: &&Lock| later.held.contains(lock);
        self.held.iter().filter(throughout).any(|lock| other.is_excluded_by(lock))
    }

    /// Whether this is done under a lock that nobody can have while another thread has `lock`.
    fn is_excluded_by(&self, lock: &Lock) -> bool {
        self.held.iter().any(|own| own.object == lock.object && !(own.shared && lock.shared))
    }
}

/// How far all threads were, as each thread knows of it: vector clocks (Mattern, 1989).
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

    /// What a thread, that has done so much itself, has to pass on.
    fn told(&mut self, thread: usize, done: u32) -> Rc<[u32]> {
        let mut told = vec![0; thread + 1];
        told[thread] = done;
        let mut clock = self.of(thread).clone();
        merge(&mut clock, &told);
        clock
    }
}

/// The deeds of an execution.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In order.
    pub acts: Vec<Act>,
    /// The lock that each wait on a condition variable gave up, by the index of its deed.
    pub given_up: HashMap<usize, Lock>,
}

struct Reader {
    history: History,
    must: Clocks,
    did: Clocks,
    /// Locks held by each thread, and deeds of each thread.
    held: HashMap<u16, Rc<[Lock]>>,
    done: HashMap<u16, u32>,
    counts: HashMap<(u16, u8, u64), u32>,
    created: HashSet<u16>,
    /// Who touched an object last without an operation: of a thread's handle, that is the thread as it ended.
    ended: HashMap<u64, u16>,
    /// Locks that say when they are free; of others, the call that frees them is all there is.
    told: HashSet<u64>,
    /// The wait that a thread has just begun.
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
        let told = execution.touches.iter().filter(|t| t.op == 0 && is_access(t.kind)).map(|t| t.word);
        let mut reader = Reader {
            history: History::default(),
            must: Clocks::default(),
            did: Clocks::default(),
            held: HashMap::new(),
            done: HashMap::new(),
            counts: HashMap::new(),
            created: HashSet::from([0]),
            ended: HashMap::new(),
            told: told.filter(|object| locks.contains(object)).collect(),
            waits: HashMap::new(),
        };
        // What a wide access touches is one deed, at the word it begins in.
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

    fn told(&mut self, thread: u16) -> (Rc<[u32]>, Rc<[u32]>) {
        let done = self.done.get(&thread).copied().unwrap_or(0);
        (self.must.told(thread.into(), done), self.did.told(thread.into(), done))
    }

    fn enables(&mut self, thread: u16, other: u16) {
        let (must, did) = self.told(thread);
        if self.created.insert(other) {
            merge(self.must.of(other.into()), &must);
        }
        merge(self.did.of(other.into()), &did);
    }

    /// Adds a deed.
    fn act(&mut self, deed: Deed, write: bool, took: bool) {
        let thread = deed.thread;
        let op = Op::from_code(deed.op);
        match op {
            Some(Op::Join) => {
                if let Some(&other) = self.ended.get(&deed.object) {
                    let (must, did) = self.told(other);
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
            let (_, did) = self.told(thread);
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

    /// A touch of a lock, which changes it or not.
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
                // What waits for a lock and goes on has it, so the other has lost it in a way that was not seen.
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
            Some(_) if !self.told.contains(&deed.object) => self.release(deed.thread, deed.object),
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
