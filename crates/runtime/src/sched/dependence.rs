//! Dependence: records what each step of an execution touches, for searches that leave out equivalent
//! executions.
//!
//! Two steps are dependent in three cases:
//!
//! - They belong to the same thread.
//! - They touch the same object, and one of them changes it.
//! - One enables the thread of the other.
//!
//! Everything between two scheduling points is one step. Some operations are not scheduling points but affect
//! other threads, such as the release of a mutex; they report their touches here. CHESS (OSDI'08), section
//! 4.4, calls this the happens-before graph of an execution. Two executions with the same graph are
//! equivalent.
//!
//! With `flag::TOUCHES` every touch is logged among the decisions ([`Touch`]). With `flag::STATES` alone,
//! only a hash of the graph so far is logged at each decision. It hashes each event with the event before it
//! in its thread and with the earlier events at its object. The hashes of all events are added up, so the
//! order of independent events makes no difference. The final sum is the fingerprint of the execution.
//!
//! With `flag::PLACES`, a record of the calling address precedes each touch of an operation. A touch without
//! an operation of its own, such as the release of a mutex, has no such record.
//!
//! Reading a clock depends on steps that make time jump, but not on the small advance of time at each step.

pub mod arrivals;

use crate::platform::baton::Guarded;
use crate::sched::object_key::{key, space};
use crate::sched::{SCHED, me, threads, words};
use crate::sched::{fair, policy, sleep_sets};
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::{Op, Touch, TouchKind};
use heisen_wire::{MAX_THREADS, flag};

/// The largest number of objects that are distinguished. Further objects share records, so that some
/// independent steps seem dependent.
const OBJECTS: usize = 1 << 12;
/// The size of the index: a power of two, of which at most half is in use.
const INDEX: usize = 2 * OBJECTS;

/// The history of an object, as hashes.
#[derive(Debug)]
struct Object {
    name: Cell<u64>,
    /// The last event that changed it.
    written: Cell<u64>,
    /// The sum of the events that have read it since.
    read: Cell<u64>,
}

// Page-aligned, and the fields that every execution writes come first, as in `sched::Sched`.
#[repr(C, align(4096))]
struct Touches {
    /// [`flag::STATES`], [`flag::TOUCHES`] and [`flag::PLACES`], as in the plan.
    wanted: Cell<u32>,
    /// The sum of the hashes of all events.
    total: Cell<u64>,
    count: Cell<usize>,
    /// The position in `objects` plus 1; 0 if the entry is empty.
    index: [Cell<u16>; INDEX],
    /// Whether the operation that is reported next never waits; see [`tries`].
    tries: Cell<bool>,
    /// Whether any thread has read or changed the time.
    timed: Cell<bool>,
    /// Objects in the order of their first touch, so that few pages are written.
    objects: [Object; OBJECTS],
    /// The last event of each thread.
    threads: [Cell<u64>; MAX_THREADS],
}

static TOUCHES: Guarded<Touches> = Guarded::new(Touches {
    wanted: Cell::new(0),
    total: Cell::new(0),
    threads: [const { Cell::new(0) }; MAX_THREADS],
    objects: [const { Object { name: Cell::new(0), written: Cell::new(0), read: Cell::new(0) } }; OBJECTS],
    count: Cell::new(0),
    index: [const { Cell::new(0) }; INDEX],
    tries: Cell::new(false),
    timed: Cell::new(false),
});

/// An execution begins with these flags of its plan.
pub fn begin(flags: u32) {
    TOUCHES.wanted.set(flags & (flag::STATES | flag::TOUCHES | flag::PLACES));
}

/// Whether the plan asks for states or touches.
#[inline(always)]
pub fn wanted() -> bool {
    TOUCHES.wanted.get() != 0
}

/// Whether every touch is logged.
pub fn logs() -> bool {
    TOUCHES.wanted.get() & flag::TOUCHES != 0
}

fn mix(a: u64, b: u64) -> u64 {
    let mut z = (a.rotate_left(25) ^ b).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The record of an object.
fn object(name: u64) -> &'static Object {
    /// The range of the first probe: small, so that a small program writes to few pages.
    const NEAR: usize = 1 << 9;
    let hash = mix(name, 0) as usize;
    let (mut at, mut next) = (hash % NEAR, hash / NEAR);
    loop {
        let slot = &TOUCHES.index[at % INDEX];
        let count = TOUCHES.count.get();
        if slot.get() != 0 {
            let found = &TOUCHES.objects[usize::from(slot.get()) - 1];
            if found.name.get() == name {
                return found;
            }
        } else if count < OBJECTS {
            slot.set(count as u16 + 1);
            TOUCHES.count.set(count + 1);
            TOUCHES.objects[count].name.set(name);
            return &TOUCHES.objects[count];
        } else {
            return &TOUCHES.objects[mix(name, 1) as usize % OBJECTS];
        }
        (at, next) = (next, next + 1);
    }
}

/// Adds an event of the running thread and returns its hash. It follows the thread's last event and the
/// events whose hash is `before`.
fn event(what: u64, before: u64) -> u64 {
    let last = &TOUCHES.threads[me()];
    // The number of the thread distinguishes the first events of different threads.
    let hash = mix(mix(last.get() ^ me() as u64, what), before);
    last.set(hash);
    TOUCHES.total.set(TOUCHES.total.get().wrapping_add(hash));
    wire_log::set_graph(TOUCHES.total.get());
    hash
}

/// The running thread has reached its next step: its pending operation is part of the state, too.
pub fn stepped() {
    if SCHED.running.get() {
        sleep_sets::stepped();
        event(1 << 8 | crate::sched::thread(me()).op() as u64, 0);
    }
}

#[cold]
fn touch(name: u64, write: bool, op: u8) {
    if !SCHED.running.get() {
        return;
    }
    policy::touched(op, name);
    sleep_sets::touched(name, write);
    let object = object(name);
    if write {
        let hash = event(u64::from(op), mix(object.written.get(), object.read.get()));
        object.written.set(hash);
        object.read.set(0);
    } else {
        let hash = event(u64::from(op), object.written.get());
        object.read.set(object.read.get().wrapping_add(hash));
    }
    if logs() {
        log(if write { TouchKind::Write } else { TouchKind::Read }, me(), op, name);
    }
}

fn log(kind: TouchKind, thread: usize, op: u8, word: u64) {
    wire_log::log(Touch { step: SCHED.step.get(), thread: thread as u16, kind, op, word }.pack());
}

/// The touch that follows belongs to this operation, called from `pc`.
fn place(op: Op, pc: usize) {
    if TOUCHES.wanted.get() & flag::PLACES != 0 && SCHED.running.get() {
        log(TouchKind::At, me(), op as u8, pc as u64);
    }
}

/// The running thread changes an object by something other than a reported event.
#[inline(always)]
pub fn write(object: usize) {
    if wanted() {
        touch(object as u64, true, 0);
    }
}

/// The running thread has changed an object in the step that has just ended.
pub fn just_wrote(object: usize) {
    if wanted() {
        in_last_step(|| touch(object as u64, true, 0));
    }
}

/// The running thread reads an object by something other than a reported event.
#[inline(always)]
pub fn read(object: usize) {
    if wanted() {
        touch(object as u64, false, 0);
    }
}

/// The number of the object for "which thread ends last", in the space of the table of threads. The table
/// itself is number 0.
const LAST: usize = 1;

/// The running thread, which has this handle, ends. Once the main thread has ended, the last thread to end
/// ends the process. From then on the order of ends matters.
pub fn ended(handle: usize) {
    if wanted() {
        touch(handle as u64, true, Op::End as u8);
        touch(key(space::THREADS, LAST) as u64, me() == 0 || crate::sched::thread(0).ended.get(), 0);
    }
}

/// The running thread is about to wait for an object or to take it. This affects threads that destroy the
/// object, but not threads that use it.
#[inline(always)]
pub fn arrives(object: usize) {
    if wanted() {
        touch(life(object), false, 0);
    }
}

/// The running thread destroys an object, or changes its meaning for the threads that wait for it.
pub fn destroys(object: usize) {
    if wanted() {
        touch(object as u64, true, 0);
        touch(life(object), true, 0);
    }
}

/// The key for the existence of an object. No object has this address, because objects are aligned.
fn life(object: usize) -> u64 {
    object as u64 + 2
}

/// The operation that is reported next never waits, although other forms of it do. [`tried`] reports its
/// touch.
#[inline(always)]
pub fn tries() {
    TOUCHES.tries.set(true);
}

/// The running thread has tried to take an object, in a call from `pc`. Only after the scheduling point is it
/// known whether the attempt `changes` the object. A failed attempt has only read it, so the order of two
/// failures makes no difference. The operation that made it fail must have changed the object. A mutex or
/// semaphore that is changed was available, even if a fault made the attempt fail.
#[inline(always)]
pub fn tried(op: Op, object: usize, pc: usize, changes: bool) {
    if wanted() {
        log_attempt(op, object, pc, changes);
    }
}

#[cold]
fn log_attempt(op: Op, object: usize, pc: usize, changes: bool) {
    let code = match op {
        Op::TryLock | Op::SemTryWait => op as u8,
        Op::ReadLock | Op::WriteLock => Op::TryLock as u8,
        _ => 0,
    };
    place(op, pc);
    touch(object as u64, changes, code);
}

/// No thread can run, so virtual time advances, or `symmetry` releases the threads that it holds.
pub fn idles() {
    if logs() {
        log(TouchKind::All, me(), Op::Sleep as u8, 0);
    }
}

/// Threads wait for each other, the running one for this object. The execution ends here, even if other
/// threads could run.
pub fn cut_short(object: usize) {
    if wanted() {
        // It counts as having begun to wait, like the other threads of the cycle.
        arrives(object);
        stepped();
    }
    if logs() {
        let others = (0..words()).any(|word| SCHED.enabled.word(word) != 0);
        log(TouchKind::All, me(), Op::Lock as u8, others.into());
    }
}

/// The execution ends: logs the operations that the other threads were about to do.
pub fn ending() {
    if !logs() || !SCHED.running.get() {
        return;
    }
    for (number, t) in threads() {
        let waits = !t.ended.get() && !t.timer.get() && t.object.get() != 0;
        // A thread that waits at a barrier waits to be woken; a thread that is about to arrive does not.
        let at_barrier = t.op() == Op::Barrier && t.queue.get() != 0;
        let op = if at_barrier { Op::CondWait as u8 } else { code(t.op(), number) };
        if waits && (number != me() || !SCHED.enabled.has(number)) {
            log(TouchKind::Waits, number, op, t.object.get() as u64);
        }
    }
}

/// The unit in which [`memory`](memory()) distinguishes addresses.
pub const WORD: usize = heisen_trace::touch::WORD as usize;

/// The running thread accesses memory, at a scheduling point.
#[inline]
pub fn memory(address: usize, size: usize, write: bool) {
    if wanted() {
        let mut at = address & !(WORD - 1);
        while at < address + size.max(1) {
            let t = crate::sched::thread(me());
            place(t.op(), t.pc.get());
            touch(at as u64, write, 0);
            at += WORD;
        }
    }
}

/// The running thread does an operation that is reported as an event: see
/// [`event`](crate::sched::events::event).
#[cold]
pub fn reported(op: Op, object: usize, pc: usize) {
    let touch = |name: u64, write: bool, op_seen: u8| {
        place(op, pc);
        touch(name, write, op_seen);
    };
    let tries = TOUCHES.tries.take();
    let code = code(op, me());
    match op {
        // Operations that other threads do not see, or whose touches the callers report themselves.
        Op::Start
        | Op::End
        | Op::Exit
        | Op::Exec
        | Op::Abort
        | Op::Assert
        | Op::Throw
        | Op::Wake
        | Op::Choose
        | Op::Alloc
        | Op::Free
        | Op::Unmap
        | Op::Protect
        | Op::WrongAccess
        | Op::Spurious
        | Op::Point
        | Op::Yield
        | Op::Sleep
        | Op::TestCancel
        | Op::Barrier
        | Op::AtomicLoad
        | Op::AtomicStore
        | Op::AtomicRmw
        | Op::AtomicCas
        | Op::MemRead
        | Op::MemWrite => {}
        // The callers of attempts report their touches by `tried`.
        Op::TryLock | Op::SemTryWait | Op::ReadLock | Op::WriteLock | Op::Join | Op::StreamLock if tries => {}
        // Threads are numbered in the order of their creation, so that order matters.
        Op::Create => touch(key(space::THREADS, 0) as u64, true, op as u8),
        Op::ReadLock | Op::SemGetValue => touch(object as u64, false, op as u8),
        Op::Read
        | Op::Write
        | Op::Accept
        | Op::Connect
        | Op::Poll
        | Op::Close
        | Op::FileLock
        | Op::TimerFd
        | Op::WaitChild
        | Op::SystemV => touch(key(space::KERNEL, 0) as u64, true, op as u8),
        Op::Timer | Op::Kill | Op::SigWait | Op::SigMask | Op::Handler => {
            touch(key(space::SIGNAL, 0) as u64, true, op as u8);
        }
        _ if object == 0 => {}
        _ => touch(object as u64, true, code),
    }
}

/// The code by which an operation is logged. A lock that is a word in memory may also be taken by
/// instructions that are not logged as lock operations. Searches treat it like a read-write lock, which may
/// also change by such operations. For a mutex, searches take every touch without an operation as its
/// release.
fn code(op: Op, number: usize) -> u8 {
    match op {
        Op::Lock if crate::sched::thread(number).takes_word.get() => Op::WriteLock as u8,
        Op::Unlock if crate::sched::thread(number).takes_word.get() => Op::RwUnlock as u8,
        op => op as u8,
    }
}

/// The outcome of the running thread's operation: 0 if it failed, else 1 plus the choice.
#[inline(always)]
pub fn outcome(what: u64) {
    if wanted() && SCHED.running.get() {
        event(!what, 0);
    }
}

/// The running thread reads the time, or makes it advance.
pub fn time(passes: bool) {
    if wanted() {
        TOUCHES.timed.set(true);
        touch(key(space::TIME, 0) as u64, passes, 0);
    }
}

/// The running thread enables another thread.
#[inline]
pub fn enables(other: usize) {
    if wanted() && other != me() && SCHED.running.get() {
        let last = &TOUCHES.threads[other];
        last.set(mix(last.get() ^ other as u64, TOUCHES.threads[me()].get()));
        lets_pass(other);
    }
}

/// The running thread enables another thread. Every thread that the other has waited for could have been the
/// one to do so, and which one it was makes no difference to the other.
pub fn lets_pass(other: usize) {
    if wanted() && other != me() && SCHED.running.get() {
        sleep_sets::enabled(other);
        if logs() {
            log(TouchKind::Enables, me(), 0, other as u64);
        }
    }
}

/// The running thread has enabled another thread in the step that has just ended.
pub fn just_enabled(other: usize) {
    in_last_step(|| enables(other));
}

/// Does something as part of the running thread's step that has just ended.
fn in_last_step(what: impl FnOnce()) {
    let step = SCHED.step.get();
    SCHED.step.set(step.saturating_sub(1));
    what();
    SCHED.step.set(step);
}

/// Another thread runs, from this step on.
#[inline(always)]
pub fn switched(to: usize) {
    if logs() {
        log(TouchKind::Switch, to, 0, 0);
    }
}

/// Logs the candidates of the thread decision at this step, with `first` as choice 0, and the state.
#[cold]
pub fn choices(first: usize) {
    for word in 0..words() {
        log(TouchKind::Choices, first, word as u8, crate::sched::candidates(word));
    }
    // Once a thread has yielded, fairness depends on all earlier steps; so does the time once it was read.
    // The hash of all steps stands for that.
    let past = if fair::in_use() || TOUCHES.timed.get() { SCHED.hash.get() } else { 0 };
    log(TouchKind::State, me(), 0, mix(state(), past));
}

/// The program offers a hash of its state, in a call from `pc`. From here on earlier events make no
/// difference, except for the places of the threads. This applies only if states are logged: a search that
/// asks for every touch needs the dependences themselves.
pub fn offered(hash: u64, pc: usize) {
    if TOUCHES.wanted.get() & flag::STATES == 0 || logs() || !SCHED.running.get() {
        return;
    }
    for object in &TOUCHES.objects[..TOUCHES.count.get()] {
        object.written.set(0);
        object.read.set(0);
    }
    TOUCHES.total.set(mix(hash, 0));
    for (number, t) in threads() {
        let waits = number != me() && !t.ended.get();
        let place = if waits { mix(t.object.get() as u64, t.op() as u64) ^ t.pc.get() as u64 } else { 0 };
        let place = if number == me() { pc as u64 } else { place };
        let able = u64::from(t.ended.get()) << 1 | u64::from(SCHED.enabled.has(number));
        let last = mix(mix(hash ^ number as u64, place), able);
        TOUCHES.threads[number].set(last);
        TOUCHES.total.set(TOUCHES.total.get().wrapping_add(last));
    }
    wire_log::set_graph(TOUCHES.total.get());
}

/// The hash of everything done so far. Which threads are barred is part of the state, too.
pub fn state() -> u64 {
    (0..words()).fold(TOUCHES.total.get(), |hash, word| mix(hash, SCHED.barred.word(word)))
}
