//! Locks that are one word of memory, 0 while no thread holds it: the `Mutex` of Rust's standard library.
//!
//! `lock` is a compare-exchange from 0 to 1; if that fails, it calls a function that spins, exchanges and waits
//! on a futex. `unlock` is an exchange with 0; if that returns 2, it calls a function that wakes one waiter.
//! Without this module each of these atomic instructions would be a step of its own. A thread could then fail
//! and try again in many equivalent orders. The engine recognises the two instructions by the functions that
//! they call (`engine::patch::locks`). Here each is one event, as for a pthread mutex: a thread whose attempt
//! would fail waits until the word is 0.
//!
//! # Why nothing is missed
//!
//! Take an execution in which an attempt fails. From there until the thread has the lock, it changes only the
//! word, from 1 to 2, and the queue of the futex. Both are private: no code but that of the mutex can read
//! them. All other threads therefore do the same if the attempt is left out, and the lock is taken where the
//! last exchange returned 0. That is the execution explored here.
//!
//! A thread that waits for ever here waits for ever there, and the other way round: a thread that finds 2 when
//! it unlocks wakes a waiter. This last part is the assumption about the library: its mutex wakes the threads
//! that wait for it.
//!
//! A thread that waits here counts as one that has read the word. Otherwise a conflict could be missed
//! (rule 3 of `race`): one thread takes the word for ever, by an instruction that is not a scheduling point yet,
//! and another waits for it in vain.
//!
//! The word itself has the value that the program expects. Instructions that are not recognised, such as those
//! of `try_lock`, may use it at the same time: [`changed`] updates the threads that wait.

use crate::carrier::handler_stack;
use crate::memory::race::atomic_order::{Does, memory_order};
use crate::memory::tsan::plain;
use crate::memory::{heap, race};
use crate::platform::baton::Guarded;
use crate::platform::program_memory;
use crate::platform::registers::caller;
use crate::sched::events;
use crate::sched::spin;
use crate::sched::{self, SCHED, me, thread, without_owner};
use crate::script::system_mode;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use heisen_trace::Op;

/// Its size in bytes.
const SIZE: usize = 4;
/// Its values.
const FREE: u32 = 0;
const HELD: u32 = 1;

fn atomic(word: usize) -> &'static AtomicU32 {
    program_memory::probe(word);
    // SAFETY: the program is about to access this word; if it is not mapped, the program crashes here as it would there.
    unsafe { AtomicU32::from_ptr(word as *mut u32) }
}

fn is_free(word: usize) -> bool {
    atomic(word).load(SeqCst) == FREE
}

/// Before the instruction by which the running thread takes a word: returns when the word is 0.
pub fn take(word: usize, pc: usize) {
    let value = u64::from(atomic(word).load(SeqCst));
    let is_point = race::is_patched_point(pc);
    if is_point {
        spin::repeated(word, pc, value);
    } else {
        spin::unscheduled_change(Op::Lock, word, pc, value);
    }
    // If another thread holds it, that shows a conflict, so this becomes a scheduling point in the next
    // execution at the latest.
    if is_point || !is_free(word) {
        if !is_free(word) {
            tell_taker(word);
        }
        // The thread may never get the lock. Its read of the word shows the conflict with the thread that holds
        // it.
        race::atomic_order::done_by_lock(Does::Load, word, SIZE, memory_order::RELAXED, pc);
        let t = thread(me());
        t.takes_word.set(true);
        loop {
            let key = without_owner(word);
            sched::wait_for_key(Op::Lock, word, key, pc, || is_free(word), u64::MAX);
            if is_free(word) {
                break;
            }
        }
        t.takes_word.set(false);
    } else if wire_log::logs_events() {
        remember(word, pc);
    }
    sched::taken(without_owner(word));
}

/// The thread that has taken a word without a scheduling point, and where.
struct Taker {
    word: Cell<usize>,
    thread: Cell<usize>,
    pc: Cell<usize>,
}

struct Takers([Taker; 64]);

/// In a close look: those of late.
static TAKERS: Guarded<Takers> = Guarded::new(Takers(
    [const { Taker { word: Cell::new(0), thread: Cell::new(0), pc: Cell::new(0) } }; 64],
));

/// The running thread takes a word without a logged event.
#[cold]
fn remember(word: usize, pc: usize) {
    let same = TAKERS.0.iter().find(|taker| taker.word.get() == word);
    let taker = same.unwrap_or(&TAKERS.0[(word >> 2) % TAKERS.0.len()]);
    taker.word.set(word);
    taker.thread.set(me());
    taker.pc.set(pc);
}

/// A thread waits for a word: logs which thread has taken it.
#[cold]
fn tell_taker(word: usize) {
    if let Some(taker) = TAKERS.0.iter().find(|taker| taker.word.get() == word)
        && wire_log::logs_events()
    {
        taker.word.set(0);
        events::mention(taker.thread.get() as u16, Op::Lock, word, taker.pc.get());
    }
}

/// Before the instruction by which the running thread releases a word.
pub fn give_up(word: usize, pc: usize) {
    if race::is_patched_point(pc) {
        let t = thread(me());
        t.takes_word.set(true);
        sched::point(Op::Unlock, word, pc);
        t.takes_word.set(false);
    }
    if wire_log::logs_events()
        && let Some(taker) = TAKERS.0.iter().find(|taker| taker.word.get() == word)
    {
        taker.word.set(0);
    }
    sched::freed(without_owner(word));
}

/// Another atomic operation is about to change memory, or has changed it. If threads wait for this word, they
/// check it again. `takes` tells whether the new value is known not to be 0.
#[inline]
pub fn changed(word: usize, takes: impl FnOnce() -> bool) {
    let key = without_owner(word);
    if sched::is_needed(key) {
        if takes() { sched::taken(key) } else { sched::freed(key) }
    }
}

/// As [`changed`], for an operation that was done.
#[inline]
pub fn has_changed(word: usize) {
    changed(word, || !is_free(word));
}

/// The operation was done, or no other thread runs before it.
pub fn done(word: usize, order: i32, pc: usize) {
    if race::is_on(race::mode::WATCH) {
        plain::watch(Op::AtomicRmw, word, SIZE, pc);
    }
    race::atomic_order::done_by_lock(Does::Update, word, SIZE, order, pc);
}

/// The result of a call that compares and exchanges: whether it failed, and the old value. Callers that only
/// ask whether the old value is 0 use the first.
#[repr(C)]
struct Exchanged {
    failed: u64,
    old: u64,
}

/// The functions that take a word and release it, in this order.
pub fn calls() -> [usize; heisen_wire::patch::LOCK_CALLS] {
    [lock as *const () as usize, unlock as *const () as usize]
}

/// Whether calls are events: an execution runs, and the caller is not a callback from code that holds a lock of
/// its own.
fn is_controlled() -> bool {
    SCHED.active.get()
        && SCHED.running.get()
        && !system_mode::is_on()
        && thread(me()).uncontrolled.get() == 0
        && !handler_stack::is_on_given()
}

extern "C" fn lock(word: usize) -> Exchanged {
    let pc = caller!();
    let controlled = is_controlled();
    if controlled {
        heap::touch(word, SIZE, true, pc);
        take(word, pc);
    }
    let (failed, old) = match atomic(word).compare_exchange(FREE, HELD, SeqCst, SeqCst) {
        Ok(old) => (0, old),
        Err(old) => (1, old),
    };
    if controlled {
        done(word, memory_order::ACQUIRE, pc);
    }
    Exchanged { failed, old: old.into() }
}

extern "C" fn unlock(word: usize) -> u32 {
    let pc = caller!();
    let controlled = is_controlled();
    if controlled {
        heap::touch(word, SIZE, true, pc);
        give_up(word, pc);
    }
    let old = atomic(word).swap(FREE, SeqCst);
    if controlled {
        done(word, memory_order::RELEASE, pc);
    }
    old
}
