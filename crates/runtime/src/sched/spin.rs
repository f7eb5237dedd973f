//! Spin loops: threads that try the same thing again and again without a yield.
//!
//! An example is a loop that calls `pthread_mutex_trylock` until it succeeds.
//!
//! CHESS (OSDI'08) section 4.3 relies on threads that yield when they make no progress. A thread that spins
//! instead is recognised by its steps. The same call from the same place on the same object fails, and the
//! thread does nothing visible in between. From then on the scheduler treats each further attempt as a yield.
//! So other threads have their turn, and the search does not branch in every round of the loop. The rule
//! depends on nothing but the steps, so every replay repeats it. Only calls that can fail at once check for
//! it, and only their failures are counted: no other scheduling point pays for it.
//!
//! Loops that read or change memory, at instrumented or patched accesses, are recognised here, too. The
//! engine recognises loops without any scheduling point and sends a signal (`engine::process::spin_watch`).

use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::{self, Reason, SCHED, me, thread};
use crate::sched::{clock, dependence, events, fair, pause};
use crate::wire_log;
use crate::wire_log::is_from_engine;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;
use heisen_trace::{Note, Op};
use heisen_wire::{MAX_THREADS, SPINS, end};

/// A scheduling point before an operation that never blocks but may [fail](failed) and be tried again. After as many
/// failures in a row as the thread has patience, the next attempt is a yield. The first yield of a thread bars it from
/// nothing (see `fair`). So a loop that gives up after one more attempt is searched as if there were no yields.
#[inline]
pub fn attempt(op: Op, object: usize, pc: usize) {
    let t = thread(me());
    if !t.failed.replace(false) {
        t.failures.set(0);
    } else if t.op() != op || t.object.get() != object || t.pc.get() != pc {
        // Another operation failed, or the thread has done something else since.
        t.failures.set(0);
    } else if t.failures.get() >= SCHED.patience.get() {
        return spins(op, object, pc);
    }
    t.about_to(op, object, pc);
    sched::reschedule(Reason::Preemptible);
    dependence::tries();
    events::event(op, object, pc);
}

#[cold]
fn spins(op: Op, object: usize, pc: usize) {
    gives_way();
    dependence::tries();
    events::event(op, object, pc);
}

/// The running thread yields, because it repeats the same operation in vain.
fn gives_way() {
    if SCHED.live.get() > 1 {
        // With one thread it makes no difference.
        wire_log::note(Note::Spin);
    }
    clock::yielded();
    fair::spun(me());
    sched::reschedule(Reason::Yields);
}

/// The [`attempt`] of the running thread has failed.
#[cold]
pub fn failed() {
    in_vain();
    events::failed();
}

/// The [`attempt`] of the running thread has changed nothing.
#[cold]
pub fn in_vain() {
    let t = thread(me());
    t.failed.set(true);
    t.failures.set(t.failures.get().saturating_add(1));
}

/// The recent reads and changes of a thread, by which its waits for memory are recognised.
#[derive(Debug)]
struct Looks {
    /// Hashes of place, address and value of its last reads, all different.
    seen: [Cell<u64>; LOOKS],
    count: Cell<u32>,
    /// The number of consecutive reads since that were among them.
    again: Cell<u32>,
    /// The number of all reads since it last changed something.
    all: Cell<u32>,
    /// Hashes of place, address and previous value of its last changes, all different.
    changed: [Cell<u64>; CHANGES],
    changes: Cell<u32>,
    /// The number of consecutive changes since that were among them: the thread does and undoes the same
    /// again and again.
    undone: Cell<u32>,
}

/// The largest number of changes in a loop that takes something and gives it back until it can have it.
const CHANGES: usize = 16;

/// After this many rounds of such changes a thread counts as waiting. The number is much larger than that for
/// reads, because a loop that locks and unlocks may well have work to do.
const ROUNDS: u32 = 100;

/// The largest number of reads in a loop that is recognised within a few rounds.
const LOOKS: usize = 32;

/// After this many reads without a change a thread counts as waiting, whatever it has read.
const MANY: u32 = 10_000;

#[repr(align(4096))]
struct AllLooks([Looks; MAX_THREADS]);

static ALL_LOOKS: Guarded<AllLooks> = Guarded::new(AllLooks(
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

/// Whether the running thread has only repeated earlier changes for long. It is about to change memory that
/// has this value now. Some loops wait for a lock in this way: they take it by an addition, find that another
/// thread holds it, and give it back by a subtraction.
fn changes_in_vain(address: usize, pc: usize, value: u64) -> bool {
    let looks = &ALL_LOOKS.0[me()];
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

/// Whether the running thread, which reads this value from memory, has only repeated earlier reads for long.
fn looks_in_vain(address: usize, pc: usize, value: u64) -> bool {
    let looks = &ALL_LOOKS.0[me()];
    looks.all.set(looks.all.get() + 1);
    if looks.all.get() >= MANY {
        looks.all.set(0);
        return true;
    }
    let hash = access(address, pc, value);
    let count = looks.count.get() as usize;
    if looks.seen[..count].iter().any(|seen| seen.get() == hash) {
        looks.again.set(looks.again.get() + 1);
        return looks.again.get() >= SCHED.patience.get() * count as u32;
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

/// The running thread changes something that other threads can see: forgets its reads.
#[inline]
pub fn progress() {
    let looks = &ALL_LOOKS.0[me()];
    looks.count.set(0);
    looks.again.set(0);
    looks.all.set(0);
}

/// A scheduling point before a read of memory that has this value now.
pub fn look(op: Op, address: usize, pc: usize, value: u64) {
    if looks_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    } else {
        sched::point(op, address, pc);
    }
}

/// A scheduling point before a change of memory that has this value now.
pub fn change(op: Op, address: usize, pc: usize, value: u64) {
    progress();
    if changes_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    } else {
        sched::point(op, address, pc);
    }
}

/// Called before a change of memory that is a scheduling point of another kind. If the thread repeats the
/// same changes again and again, it yields first. The memory has this value now.
pub fn repeated(address: usize, pc: usize, value: u64) {
    progress();
    if changes_in_vain(address, pc, value) {
        thread(me()).about_to(Op::Yield, 0, pc);
        gives_way();
        events::event(Op::Yield, 0, pc);
    }
}

/// Called before a change of memory that is not a scheduling point. It becomes one if the thread waits there,
/// repeating its changes.
pub fn unscheduled_change(op: Op, address: usize, pc: usize, value: u64) {
    if SCHED.running.get() && SCHED.live.get() > 1 && changes_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    }
}

/// A scheduling point before an atomic instruction that changes memory, which has this value now.
pub fn exchange(op: Op, address: usize, pc: usize, value: u64) {
    if changes_in_vain(address, pc, value) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    } else {
        attempt(op, address, pc);
    }
}

/// Called before a read of memory that is not a scheduling point. It becomes one if the thread waits there
/// for a change.
pub fn glance(op: Op, address: usize, pc: usize, value: impl Fn() -> u64) {
    if SCHED.running.get() && SCHED.live.get() > 1 && looks_in_vain(address, pc, value()) {
        thread(me()).about_to(op, address, pc);
        spins(op, address, pc);
    }
}

/// How often in a row, without any other step in between, the engine has found threads that wait for memory;
/// and the step of the last time.
struct Waiting {
    times: Cell<usize>,
    at: Cell<u32>,
    /// Whether one of them writes different values to memory in each round.
    writes: Cell<bool>,
}

static WAITING: Guarded<Waiting> =
    Guarded::new(Waiting { times: Cell::new(0), at: Cell::new(0), writes: Cell::new(false) });

/// Installs the handler of the signal by which the engine makes a spinning thread yield. The handler runs on
/// the thread's own stack, where its frame remains while other threads run. The signal may come again before
/// the handler has returned, for another thread.
pub fn init() {
    const SA_NODEFER: i32 = 0x4000_0000;
    sys::set_action(SPINS, on_spinning as *const () as usize, sys::SA_SIGINFO | SA_NODEFER, 0);
}

/// The engine has found the running thread in a loop that waits for memory to change; see
/// `engine::process::spin_watch`. The thread is at the first instruction of that loop. The handler has the
/// effect of a call of `sched_yield` there.
extern "C" fn on_spinning(signal: c_int, _info: *const usize, context: *mut usize) {
    // Words of `ucontext_t`.
    const RIP: usize = 5 + 16;
    const MASK: usize = 37;
    // From any other sender the signal means nothing: glibc's own handler would do nothing, either.
    if !SCHED.active.get() || !SCHED.running.get() || !is_from_engine(signal) {
        return;
    }
    // SAFETY: the kernel passes a complete `ucontext_t`. A place is a return address, so 1 is added.
    let pc = unsafe { *context.add(RIP) } + 1;
    waits_for_memory(pc, wire_log::wire().spin.load(SeqCst) != heisen_wire::spin::SAME);
    // SAFETY: as above. The set of blocked signals may have changed while other threads ran.
    unsafe { *context.add(MASK) = sys::signal_mask(None) as usize };
}

/// The thread does not yield although it waits in a loop; the engine reads this from the wire.
fn goes_on_alone() {
    wire_log::wire().spin.store(heisen_wire::spin::ALONE, SeqCst);
}

fn waits_for_memory(pc: usize, writes: bool) {
    let forced = wire_log::wire().spin.load(SeqCst) == heisen_wire::spin::FORCED;
    if !forced {
        wire_log::note(Note::SpinOnMemory);
    }
    let again = WAITING.at.get() == SCHED.step.get() && SCHED.step.get() != 0;
    WAITING.times.set(if again { WAITING.times.get() + 1 } else { 0 });
    WAITING.writes.set(writes || again && WAITING.writes.get());
    let may_come = sched::has_errands() || wire_log::started_others();
    if WAITING.writes.get() && !may_come && sched::next_deadline() == u64::MAX {
        // One of the threads may some day write the value that another one waits for, so nothing is claimed.
        // If no other thread does anything for a while, the thread continues alone, and the engine gives up
        // on a program that does not move.
        const PATIENT: usize = 20;
        let others = (0..SCHED.count.get()).any(|other| other != me() && SCHED.enabled.has(other));
        if !others || WAITING.times.get() > SCHED.live.get() * PATIENT {
            return goes_on_alone();
        }
    } else if WAITING.times.get() > SCHED.live.get() {
        // Every thread has had a turn, and none has done anything. If something may still come from outside,
        // the threads wait some seconds for it: each turn takes a few milliseconds.
        const SECONDS: usize = 1000;
        let most = if may_come { SECONDS } else { 2 * SCHED.live.get() + 2 };
        match sched::next_deadline() {
            u64::MAX if WAITING.times.get() > most && WAITING.writes.get() => return goes_on_alone(),
            u64::MAX if WAITING.times.get() > most => pause::finish(end::STEP_LIMIT, -1, pc),
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
    WAITING.at.set(SCHED.step.get() + 1);
    sched::reschedule(Reason::Yields);
    events::event(Op::Yield, 0, pc);
}
