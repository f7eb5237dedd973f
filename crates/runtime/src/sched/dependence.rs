//! What each step touches: the dependencies of an execution, for searches that leave out equivalent ones.
//!
//! Two steps are dependent if they are of the same thread, if they touch the same object and one of them changes it, or if
//! one makes the thread of the other able to go on. What lies between two scheduling points is one step; what is no
//! scheduling point and touches something that others see all the same (the release of a mutex) says so here. CHESS (OSDI'08),
//! section 4.4, calls this the happens-before graph of an execution, and two executions with the same graph equivalent.
//!
//! If asked for all, every touch is logged among the decisions ([`Touch`]). If asked for states, only a hash of the graph so
//! far is logged at each decision: each event is hashed with the one before it in its thread and with those before it at its
//! object, and the hashes of all events are added up, so that the order of independent events makes no difference. That is
//! also the fingerprint of the whole execution.
//!
//! If asked for places, too, each touch of an operation is preceded by a record of where that was called from; a touch that is no
//! operation of its own, as the release of a mutex, has none.
//!
//! Reading a clock depends on what makes time jump, but not on the little by which each step moves it.

pub mod arrivals;

use crate::platform::baton::Guarded;
use crate::sched::object_key::{key, space};
use crate::sched::{S, me, threads, words};
use crate::sched::{fair, policy, sleep_sets};
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::{Op, Touch, TouchKind};
use heisen_wire::{MAX_THREADS, flag};

/// Most objects that are told apart. Beyond them several share one place, so that steps look dependent that are not.
const OBJECTS: usize = 1 << 12;
/// Size of the index, a power of two of which at most half is in use.
const INDEX: usize = 2 * OBJECTS;

/// What happened at an object, as hashes.
#[derive(Debug)]
struct Object {
    name: Cell<u64>,
    /// The last event that changed it.
    written: Cell<u64>,
    /// The sum of those that read it since.
    read: Cell<u64>,
}

// As for `sched::Sched`.
#[repr(C, align(4096))]
struct Touches {
    /// [`flag::STATES`], [`flag::TOUCHES`] and [`flag::PLACES`], as the plan has them.
    wanted: Cell<u32>,
    /// The hashes of all events, added up.
    total: Cell<u64>,
    count: Cell<usize>,
    /// One more than the place among `objects`; 0 if there is none.
    index: [Cell<u16>; INDEX],
    /// What is reported next never waits.
    tries: Cell<bool>,
    /// Whether anyone has looked at the time.
    timed: Cell<bool>,
    /// Objects in the order in which they were touched first, so that few pages are written.
    objects: [Object; OBJECTS],
    /// The last event of each thread.
    threads: [Cell<u64>; MAX_THREADS],
}

static T: Guarded<Touches> = Guarded::new(Touches {
    wanted: Cell::new(0),
    total: Cell::new(0),
    threads: [const { Cell::new(0) }; MAX_THREADS],
    objects: [const { Object { name: Cell::new(0), written: Cell::new(0), read: Cell::new(0) } }; OBJECTS],
    count: Cell::new(0),
    index: [const { Cell::new(0) }; INDEX],
    tries: Cell::new(false),
    timed: Cell::new(false),
});

/// An execution begins.
pub fn begin(flags: u32) {
    T.wanted.set(flags & (flag::STATES | flag::TOUCHES | flag::PLACES));
}

/// Whether anyone wants to know.
#[inline(always)]
pub fn wanted() -> bool {
    T.wanted.get() != 0
}

/// Whether every touch is told.
pub fn logs() -> bool {
    T.wanted.get() & flag::TOUCHES != 0
}

fn mix(a: u64, b: u64) -> u64 {
    let mut z = (a.rotate_left(25) ^ b).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The place where an object is remembered.
fn object(name: u64) -> &'static Object {
    /// Places for the first try: few, so that a small program writes to few pages.
    const NEAR: usize = 1 << 9;
    let hash = mix(name, 0) as usize;
    let (mut at, mut next) = (hash % NEAR, hash / NEAR);
    loop {
        let slot = &T.index[at % INDEX];
        let count = T.count.get();
        if slot.get() != 0 {
            let found = &T.objects[usize::from(slot.get()) - 1];
            if found.name.get() == name {
                return found;
            }
        } else if count < OBJECTS {
            slot.set(count as u16 + 1);
            T.count.set(count + 1);
            T.objects[count].name.set(name);
            return &T.objects[count];
        } else {
            return &T.objects[mix(name, 1) as usize % OBJECTS];
        }
        (at, next) = (next, next + 1);
    }
}

/// The running thread does something that follows its last event and what `before` stands for; the hash of it.
fn event(what: u64, before: u64) -> u64 {
    let last = &T.threads[me()];
    // The number of the thread, for the first event of each.
    let hash = mix(mix(last.get() ^ me() as u64, what), before);
    last.set(hash);
    T.total.set(T.total.get().wrapping_add(hash));
    wire_log::set_graph(T.total.get());
    hash
}

/// The running thread has come to its next step: that, too, is a part of the state.
pub fn stepped() {
    if S.running.get() {
        sleep_sets::stepped();
        event(1 << 8 | crate::sched::thread(me()).op() as u64, 0);
    }
}

#[cold]
fn touch(name: u64, write: bool, op: u8) {
    if !S.running.get() {
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
    wire_log::log(Touch { step: S.step.get(), thread: thread as u16, kind, op, word }.pack());
}

/// What is touched next is so by this operation.
fn place(op: Op, pc: usize) {
    if T.wanted.get() & flag::PLACES != 0 && S.running.get() {
        log(TouchKind::At, me(), op as u8, pc as u64);
    }
}

/// The running thread changes an object, other than by an event that is reported.
#[inline(always)]
pub fn write(object: usize) {
    if wanted() {
        touch(object as u64, true, 0);
    }
}

/// The running thread has changed an object in the step that it has just come to the end of.
pub fn just_wrote(object: usize) {
    if wanted() {
        in_last_step(|| touch(object as u64, true, 0));
    }
}

/// The running thread reads an object, other than by an event that is reported.
#[inline(always)]
pub fn read(object: usize) {
    if wanted() {
        touch(object as u64, false, 0);
    }
}

/// What stands for which thread is the last to end, beside the table of threads, which is number 0.
const LAST: usize = 1;

/// The running thread, whose handle this is, ends. Once the main thread has ended, too, the last one ends the process: their order
/// matters then.
pub fn ended(handle: usize) {
    if wanted() {
        touch(handle as u64, true, Op::End as u8);
        touch(key(space::THREADS, LAST) as u64, me() == 0 || crate::sched::thread(0).ended.get(), 0);
    }
}

/// The running thread comes to wait for an object, or is about to take it: nothing that others see who use it, but those who
/// destroy it.
#[inline(always)]
pub fn arrives(object: usize) {
    if wanted() {
        touch(life(object), false, 0);
    }
}

/// The running thread destroys an object, or changes what it is to those that wait for it.
pub fn destroys(object: usize) {
    if wanted() {
        touch(object as u64, true, 0);
        touch(life(object), true, 0);
    }
}

/// What stands for the existence of an object: no other can be at this address, as all are aligned.
fn life(object: usize) -> u64 {
    object as u64 + 2
}

/// What is reported next never waits, though there are forms of it that do. What it touches tells [`tried`].
#[inline(always)]
pub fn tries() {
    T.tries.set(true);
}

/// The running thread has tried to take an object, from `pc`. An attempt that failed has only read it, so that the order of
/// two failures makes no difference; which it is, is known only after the scheduling point. Whoever made it fail must have
/// changed the object. A mutex or a semaphore that is changed was free, whether or not a fault made the attempt fail.
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

/// Nobody can go on, so time is let pass.
pub fn idles() {
    if logs() {
        log(TouchKind::All, me(), Op::Sleep as u8, 0);
    }
}

/// Threads wait for each other, the running one for this object: the execution ends, whoever else could go on.
pub fn cut_short(object: usize) {
    if wanted() {
        // As if it had come to wait, like the others.
        arrives(object);
        stepped();
    }
    if logs() {
        let others = (0..words()).any(|word| S.enabled.word(word) != 0);
        log(TouchKind::All, me(), Op::Lock as u8, others.into());
    }
}

/// The execution ends: tells what the other threads were about to do.
pub fn ending() {
    if !logs() || !S.running.get() {
        return;
    }
    for (number, t) in threads() {
        let waits = !t.ended.get() && !t.timer.get() && t.object.get() != 0;
        // To wait at a barrier is to wait to be woken; to be about to arrive there is not.
        let at_barrier = t.op() == Op::Barrier && t.queue.get() != 0;
        let op = if at_barrier { Op::CondWait as u8 } else { code(t.op(), number) };
        if waits && (number != me() || !S.enabled.has(number)) {
            log(TouchKind::Waits, number, op, t.object.get() as u64);
        }
    }
}

/// What [`memory`](memory()) is told apart by.
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

/// The running thread does what is reported as an event: see [`event`](crate::sched::events::event).
#[cold]
pub fn reported(op: Op, object: usize, pc: usize) {
    let touch = |name: u64, write: bool, op_seen: u8| {
        place(op, pc);
        touch(name, write, op_seen);
    };
    let tries = T.tries.take();
    let code = code(op, me());
    match op {
        // Nothing that others see, or told apart by those who do it.
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
        // Those that try tell themselves.
        Op::TryLock | Op::SemTryWait | Op::ReadLock | Op::WriteLock | Op::Join | Op::StreamLock if tries => {}
        // Threads are numbered in the order of their creation.
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

/// How what a thread does is told. A lock that is a word in memory may also be taken by operations that are not told as such. To
/// searches it is like a read-write lock, of which that holds, too: with a mutex, whatever is no operation of its own frees it.
fn code(op: Op, number: usize) -> u8 {
    match op {
        Op::Lock if crate::sched::thread(number).takes_word.get() => Op::WriteLock as u8,
        Op::Unlock if crate::sched::thread(number).takes_word.get() => Op::RwUnlock as u8,
        op => op as u8,
    }
}

/// What the running thread does turned out so: it failed, or this was chosen.
#[inline(always)]
pub fn outcome(what: u64) {
    if wanted() && S.running.get() {
        event(!what, 0);
    }
}

/// The running thread looks at the time, or makes it pass.
pub fn time(passes: bool) {
    if wanted() {
        T.timed.set(true);
        touch(key(space::TIME, 0) as u64, passes, 0);
    }
}

/// The running thread makes another one able to go on.
#[inline]
pub fn enables(other: usize) {
    if wanted() && other != me() && S.running.get() {
        let last = &T.threads[other];
        last.set(mix(last.get() ^ other as u64, T.threads[me()].get()));
        lets_pass(other);
    }
}

/// The running thread makes another one able to go on, and so might have any of those that the other has waited for: that it
/// was this one makes no difference to what the other does.
pub fn lets_pass(other: usize) {
    if wanted() && other != me() && S.running.get() {
        sleep_sets::enabled(other);
        if logs() {
            log(TouchKind::Enables, me(), 0, other as u64);
        }
    }
}

/// The running thread has made another one able to go on in the step that it has just come to the end of.
pub fn just_enabled(other: usize) {
    in_last_step(|| enables(other));
}

/// Does something as if the step that the running thread has just come to the end of were not over.
fn in_last_step(what: impl FnOnce()) {
    let step = S.step.get();
    S.step.set(step.saturating_sub(1));
    what();
    S.step.set(step);
}

/// Another thread runs, from this step on.
#[inline(always)]
pub fn switched(to: usize) {
    if logs() {
        log(TouchKind::Switch, to, 0, 0);
    }
}

/// There is a choice of threads at this step, of which `first` is number 0.
#[cold]
pub fn choices(first: usize) {
    for word in 0..words() {
        log(TouchKind::Choices, first, word as u8, crate::sched::candidates(word));
    }
    // Once a thread has yielded, who will have to give way to whom depends on all that was before; and so does the time.
    let past = if fair::in_use() || T.timed.get() { S.hash.get() } else { 0 };
    log(TouchKind::State, me(), 0, mix(state(), past));
}

/// The program offers a hash of its state, which it calls for from `pc`: what was before makes no difference from here on, but for
/// where the threads are. Told are only states then: one who wants to know of every touch asks for the dependencies.
pub fn offered(hash: u64, pc: usize) {
    if T.wanted.get() & flag::STATES == 0 || logs() || !S.running.get() {
        return;
    }
    for object in &T.objects[..T.count.get()] {
        object.written.set(0);
        object.read.set(0);
    }
    T.total.set(mix(hash, 0));
    for (number, t) in threads() {
        let waits = number != me() && !t.ended.get();
        let place = if waits { mix(t.object.get() as u64, t.op() as u64) ^ t.pc.get() as u64 } else { 0 };
        let place = if number == me() { pc as u64 } else { place };
        let able = u64::from(t.ended.get()) << 1 | u64::from(S.enabled.has(number));
        let last = mix(mix(hash ^ number as u64, place), able);
        T.threads[number].set(last);
        T.total.set(T.total.get().wrapping_add(last));
    }
    wire_log::set_graph(T.total.get());
}

/// The hash of all that was done so far. Who has to give way to whom is a part of the state, too.
pub fn state() -> u64 {
    (0..words()).fold(T.total.get(), |hash, word| mix(hash, S.barred.word(word)))
}
