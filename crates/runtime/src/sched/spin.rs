//! Loops that try the same thing again and again without a yield, such as `while (pthread_mutex_trylock(&m)) ;`.
//!
//! CHESS (OSDI'08) section 4.3 relies on threads that yield when they make no progress. One that does not, but spins, is
//! seen by its steps: the same call from the same place on the same object fails, and the thread does nothing visible
//! in between. From then on each further attempt is a yield, to the scheduler, so that others have their turn and the
//! search does not branch at every round of the loop. It depends on nothing but the steps, so it is the same in every
//! replay. Only calls that can fail at once ask, and only their failures are remembered: no other scheduling point
//! pays for it.

use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::{self, Gives, S, me, thread};
use crate::sched::{clock, dependence, events, fair, pause};
use crate::wire_log;
use crate::wire_log::is_from_engine;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;
use heisen_trace::{Note, Op};
use heisen_wire::{MAX_THREADS, SPINS, end};

/// So many attempts in a row may fail before the next is a yield. The first yield of a thread bars it from nothing (see
/// `fair`), so a loop that gives up after one attempt more is searched as if there were no yields.
pub const PATIENCE: u32 = 3;

/// A scheduling point before an operation that never blocks but may [fail](failed), to be tried again.
#[inline]
pub fn attempt(op: Op, object: usize, pc: usize) {
    let t = thread(me());
    if !t.failed.replace(false) {
        t.failures.set(0);
    } else if t.op() != op || t.object.get() != object || t.pc.get() != pc {
        // It was something else that failed, or the thread has done something else since.
        t.failures.set(0);
    } else if t.failures.get() >= PATIENCE {
        return spins(op, object, pc);
    }
    t.about_to(op, object, pc);
    sched::reschedule(Gives::Able);
    dependence::tries();
    events::event(op, object, pc);
}

#[cold]
fn spins(op: Op, object: usize, pc: usize) {
    gives_way();
    dependence::tries();
    events::event(op, object, pc);
}

/// The running thread yields, as it does the same in vain.
fn gives_way() {
    if S.live.get() > 1 {
        // Alone, it makes no difference.
        wire_log::note(Note::Spin);
    }
    clock::yielded();
    fair::spun(me());
    sched::reschedule(Gives::Yields);
}

/// The [`attempt`] of the running thread has failed.
#[cold]
pub fn failed() {
    in_vain();
    events::failed();
}

/// The [`attempt`] of the running thread has done what it does, and changed nothing by it.
#[cold]
pub fn in_vain() {
    let t = thread(me());
    t.failed.set(true);
    t.failures.set(t.failures.get().saturating_add(1));
}

/// What a thread has read from memory since it last changed something: by these it is seen to wait for a change there.
#[derive(Debug)]
struct Looks {
    /// Hashes of place, address and value of the last few reads that were all different.
    seen: [Cell<u64>; LOOKS],
    count: Cell<u32>,
    /// How many reads there were since that were among them.
    again: Cell<u32>,
    /// How many there were in all.
    all: Cell<u32>,
    /// Hashes of place, address and value before it of the last few changes that were all different.
    changed: [Cell<u64>; CHANGES],
    changes: Cell<u32>,
    /// How many changes there were since that were among them: the same was done and undone again and again.
    undone: Cell<u32>,
}

/// So many changes a loop may consist of that takes something and gives it back, until it can have it.
const CHANGES: usize = 16;

/// After so many rounds of them a thread is taken to wait. A loop that locks and unlocks may well have something to do, so
/// these are many more than for reads alone.
const ROUNDS: u32 = 100;

/// So many reads a loop may consist of to be seen at once.
const LOOKS: usize = 32;

/// After so many reads a thread is taken to wait, whatever it has read.
const MANY: u32 = 10_000;

#[repr(align(4096))]
struct AllLooks([Looks; MAX_THREADS]);

static L: Guarded<AllLooks> = Guarded::new(AllLooks(
    [const {
        Looks {
            seen: [const { Cell::new(0) }; LOOKS],
            count: Cell::new(0),
            again: Cell::new(0),
            all: Cell::new(0),
            changed: [const { Cell::new(0) }; CHANGES],
            changes: Cell::new(0),
            undone: Cell::new(0),
        }
    }; MAX_THREADS],
));

fn access(address: usize, pc: usize, value: u64) -> u64 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    mix(mix(mix(1, address as u64), pc as u64), value)
}

/// Whether the running thread, which changes memory that has this value now, has made only such changes for long as it had made
/// before. A lock that is taken by adding to it, found to be another's, and given back by subtracting is waited for like this.
fn changes_in_vain(address: usize, pc: usize, value: u64) -> bool {
    let looks = &L.0[me()];
    let hash = access(address, pc, value);
    let count = looks.changes.get() as usize;
    if looks.changed[..count].iter().any(|seen| seen.get() == hash) {
        looks.undone.set(looks.undone.get() + 1);
        return looks.undone.get() >= ROUNDS * count as u32;
    }
    looks.undone.set(0);
    let next = if count == CHANGES { 0 } else { count };
    looks.changed[next].set(hash);
    looks.changes.set(next as u32 + 1);
    false
}

/// Whether the running thread, which reads a value from memory, has only read what it had read before, for long.
fn looks_in_vain(address: usize, pc: usize, value: u64) -> bool {
    let looks = &L.0[me()];
    looks.all.set(looks.all.get() + 1);
    if looks.all.get() >= MANY {
        looks.all.set(0);
        return true;
    }
    let hash = access(address, pc, value);
    let count = looks.count.get() as usize;
    if looks.seen[..count].iter().any(|seen| seen.get() == hash) {
        looks.again.set(looks.again.get() + 1);
        return looks.again.get() >= PATIENCE * count as u32;
    }
    looks.again.set(0);
    if count == LOOKS {
        looks.count.set(0);
    }
    let count = looks.count.get();
    looks.seen[count as usize].set(hash);
    looks.count.set(count + 1);
    false
}

/// The running thread changes something that others can see.
#[inline]
pub fn progress() {
    let looks = &L.0[me()];
    looks.count.set(0);
    looks.again.set(0);
    looks.all.set(0);
}

/// A scheduling point before a read of memory, which has that value now.
pub fn look(op: Op, address: usize, pc: usize, value: u64) {
    if looks_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    } else {
        sched::point(op, address, pc);
    }
}

/// A scheduling point before a change of memory, which has that value now.
pub fn change(op: Op, address: usize, pc: usize, value: u64) {
    progress();
    if changes_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    } else {
        sched::point(op, address, pc);
    }
}

/// Before a change of memory, which has that value now, that is a scheduling point of its own kind: a yield if the thread has changed
/// the same again and again.
pub fn repeated(address: usize, pc: usize, value: u64) {
    progress();
    if changes_in_vain(address, pc, value) {
        thread(me()).about_to(Op::Yield, 0, pc);
        gives_way();
        events::event(Op::Yield, 0, pc);
    }
}

/// Before a change of memory that is no scheduling point, unless the thread waits there for another change.
pub fn unscheduled_change(op: Op, address: usize, pc: usize, value: u64) {
    if S.running.get() && S.live.get() > 1 && changes_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    }
}

/// A scheduling point before an atomic instruction that changes memory, which has that value now.
pub fn exchange(op: Op, address: usize, pc: usize, value: u64) {
    if changes_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    } else {
        attempt(op, address, pc);
    }
}

/// Before a read of memory that is no scheduling point, unless the thread waits there for a change.
pub fn glance(op: Op, address: usize, pc: usize, value: impl Fn() -> u64) {
    if S.running.get() && S.live.get() > 1 && looks_in_vain(address, pc, value()) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    }
}

/// How often in a row, with no other step in between, threads were found to wait for memory; and the step of the last.
struct Waiting {
    times: Cell<usize>,
    at: Cell<u32>,
    /// Whether one of them writes something else to memory in each round.
    writes: Cell<bool>,
}

static W: Guarded<Waiting> =
    Guarded::new(Waiting { times: Cell::new(0), at: Cell::new(0), writes: Cell::new(false) });

/// Lets the engine tell a thread that it spins. The handler runs on the thread's own stack, where its frame stays while
/// others run; and it may be told again before it has returned, on another thread.
pub fn init() {
    const SA_NODEFER: i32 = 0x4000_0000;
    sys::set_action(SPINS, on_spinning as *const () as usize, sys::SA_SIGINFO | SA_NODEFER, 0);
}

/// The engine has found the running thread in a loop that waits for memory to change; see `engine::spin`. It is at the
/// first instruction of that loop: as good as a call of `sched_yield` there.
extern "C" fn on_spinning(signal: c_int, _info: *const usize, context: *mut usize) {
    // Words of `ucontext_t`.
    const RIP: usize = 5 + 16;
    const MASK: usize = 37;
    // From anybody else it means nothing: glibc's own handler would do nothing, either.
    if !S.active.get() || !S.running.get() || !is_from_engine(signal) {
        return;
    }
    // SAFETY: the kernel passes a whole `ucontext_t`. Places are told as those that a call returns to.
    let pc = unsafe { *context.add(RIP) } + 1;
    waits_for_memory(pc, wire_log::wire().spin.load(SeqCst) != heisen_wire::spin::SAME);
    // SAFETY: as above. Which signals are blocked may have changed while others ran.
    unsafe { *context.add(MASK) = sys::signal_mask(None) as usize };
}

/// The thread does not yield, though it waits in a loop.
fn goes_on_alone() {
    wire_log::wire().spin.store(heisen_wire::spin::ALONE, SeqCst);
}

fn waits_for_memory(pc: usize, writes: bool) {
    let forced = wire_log::wire().spin.load(SeqCst) == heisen_wire::spin::FORCED;
    if !forced {
        wire_log::note(Note::SpinOnMemory);
    }
    let again = W.at.get() == S.step.get() && S.step.get() != 0;
    W.times.set(if again { W.times.get() + 1 } else { 0 });
    W.writes.set(writes || again && W.writes.get());
    let may_come = sched::has_errands() || wire_log::started_others();
    if W.writes.get() && !may_come && sched::next_deadline() == u64::MAX {
        // What one of them writes may be what another waits for, some time. So nothing is claimed; if nobody else does anything
        // for a while, the thread goes on alone, and the engine gives up on a program that does not move.
        const PATIENT: usize = 20;
        let others = (0..S.count.get()).any(|other| other != me() && S.enabled.has(other));
        if !others || W.times.get() > S.live.get() * PATIENT {
            return goes_on_alone();
        }
    } else if W.times.get() > S.live.get() {
        // Everyone has had a turn, and nobody has done anything. If something may still come from outside, that has
        // some seconds, as each time takes a few milliseconds.
        const SECONDS: usize = 1000;
        let most = if may_come { SECONDS } else { 2 * S.live.get() + 2 };
        match sched::next_deadline() {
            u64::MAX if W.times.get() > most && W.writes.get() => return goes_on_alone(),
            u64::MAX if W.times.get() > most => pause::finish(end::STEP_LIMIT, -1, pc),
            u64::MAX => {}
            deadline => clock::reach(deadline),
        }
    }
    if forced {
        wire_log::note(Note::ForcedYield);
    }
    thread(me()).about_to(Op::Yield, 0, pc);
    clock::yielded();
    fair::spun(me());
    W.at.set(S.step.get() + 1);
    sched::reschedule(Gives::Yields);
    events::event(Op::Yield, 0, pc);
}
