//! Mutexes: normal, recursive, error-checking, adaptive. Robust and priority ones are treated as plain, with a note.

use super::shims;
use crate::clock::{self, Timespec};
use crate::fibers::thread_of_tid;
use crate::sched::{self, Woken, me};
use crate::{choose, report, sys};
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::{Fault, Note, Op};
use heisen_wire::{TID_BASE, misuse};

/// `pthread_mutex_t`, as far as glibc's ABI fixes it (static initialisers are compiled into programs).
#[repr(C)]
#[derive(Debug)]
pub struct Mutex {
    lock: Cell<i32>,
    count: Cell<u32>,
    owner: Cell<i32>,
    users: Cell<u32>,
    kind: Cell<i32>,
}

const KIND_MASK: i32 = 3;
const RECURSIVE: i32 = 1;
const ERROR_CHECKING: i32 = 2;
const ROBUST: i32 = 16;
const PRIORITY: i32 = 32 | 64;
const SHARED: i32 = 128;

impl Mutex {
    /// The mutex at an address that the program passed.
    pub fn at(address: usize) -> &'static Mutex {
        // SAFETY: the program passes a mutex; if it is not mapped, the program crashes here as it would in glibc.
        unsafe { &*(address as *const Mutex) }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// Whether nobody holds it.
    pub fn free(&self) -> bool {
        self.lock.get() == 0
    }

    /// Whether a thread could acquire it: nobody holds it, or, left from a recursive lock, that thread itself.
    pub fn free_for(&self, number: usize) -> bool {
        self.free() || self.owner.get() == TID_BASE + number as i32
    }

    fn mine(&self) -> bool {
        !self.free() && self.free_for(me())
    }

    fn acquire(&self) {
        self.lock.set(1);
        self.owner.set(TID_BASE + me() as i32);
        self.users.set(self.users.get().wrapping_add(1));
        sched::taken(self.address());
    }

    fn release(&self) {
        self.owner.set(0);
        self.users.set(self.users.get().wrapping_sub(1));
        self.lock.set(0);
        sched::freed(self.address());
    }

    /// Locks again without blocking, if the kind allows that.
    fn lock_again(&self) -> Option<c_int> {
        if !self.mine() {
            return None;
        }
        match self.kind.get() & KIND_MASK {
            RECURSIVE if self.count.get() == u32::MAX => Some(sys::EAGAIN),
            RECURSIVE => {
                self.count.set(self.count.get() + 1);
                Some(0)
            }
            ERROR_CHECKING => Some(sys::EDEADLK),
            _ => None,
        }
    }

    fn notes(&self) {
        let kind = self.kind.get();
        if kind & (ROBUST | PRIORITY | SHARED) != 0 {
            for (bits, note) in
                [(ROBUST, Note::RobustMutex), (PRIORITY, Note::PriorityMutex), (SHARED, Note::ProcessShared)]
            {
                if kind & bits != 0 {
                    report::note(note);
                }
            }
        }
    }

    #[inline(always)]
    fn lock(&self, op: Op, pc: usize, deadline: u64) -> c_int {
        self.notes();
        if let Some(result) = self.lock_again() {
            return result;
        }
        if !self.free() && deadline == u64::MAX {
            self.check_cycle(op, pc);
        }
        match sched::wait_for(op, self.address(), pc, || self.free(), deadline) {
            Woken::TimedOut => sys::ETIMEDOUT,
            _ => {
                self.acquire();
                0
            }
        }
    }

    /// If locking this closes a cycle of threads that wait for each other's mutexes, none of them ever goes on: that is
    /// a deadlock, though other threads may still run.
    #[cold]
    fn check_cycle(&self, op: Op, pc: usize) {
        let mut mutex = self;
        loop {
            let Some(holder) = mutex.holder() else { return };
            if holder == me() {
                sched::thread(me()).about_to(op, self.address(), pc);
                sched::cannot(self.address());
                report::deadlock();
            }
            let t = sched::thread(holder);
            let waits = matches!(t.op(), Op::Lock | Op::Relock) && t.deadline.get() == u64::MAX;
            if t.ended.get() || !waits || sched::needs(holder) == 0 {
                return;
            }
            mutex = Mutex::at(sched::needs(holder));
        }
    }

    fn holder(&self) -> Option<usize> {
        if self.free() { None } else { thread_of_tid(self.owner.get()) }
    }

    /// Gives the mutex up, one level of it.
    #[inline(always)]
    pub fn unlock(&self, pc: usize) -> c_int {
        let kind = self.kind.get() & KIND_MASK;
        if !self.mine() {
            if kind == RECURSIVE || kind == ERROR_CHECKING {
                return sys::EPERM;
            }
            let what = if self.free() { misuse::UNLOCK_FREE } else { misuse::UNLOCK_NOT_OWNER };
            report::misused(what, self.address(), pc);
            if self.free() {
                return 0;
            }
        }
        if kind == RECURSIVE && self.count.get() > 1 {
            self.count.set(self.count.get() - 1);
            return 0;
        }
        self.count.set(0);
        self.release();
        0
    }

    /// Whether the caller holds it, as it must before it waits on a condition variable. Error-checking mutexes
    /// tell the caller; for the others it is a misuse.
    pub fn check_held(&self, pc: usize) -> c_int {
        if self.mine() {
            return 0;
        }
        match self.kind.get() & KIND_MASK {
            RECURSIVE | ERROR_CHECKING => sys::EPERM,
            _ => {
                report::misused(misuse::WAIT_UNLOCKED, self.address(), pc);
                0
            }
        }
    }

    /// Acquires the mutex after a wait on a condition variable.
    pub fn relock(&self, pc: usize, waited: bool) {
        if self.mine() {
            self.count.set(self.count.get() + 1);
            return;
        }
        // A handler that ran in between may have let others take it.
        if !waited || !self.free() {
            sched::wait_for(Op::Relock, self.address(), pc, || self.free(), u64::MAX);
        }
        self.acquire();
        if self.kind.get() & KIND_MASK == RECURSIVE {
            self.count.set(1);
        }
    }
}

#[inline(always)]
fn lock(mutex: usize, op: Op, pc: usize, deadline: u64) -> c_int {
    let mutex = Mutex::at(mutex);
    let result = mutex.lock(op, pc, deadline);
    if result == 0 && mutex.kind.get() & KIND_MASK == RECURSIVE && mutex.count.get() == 0 {
        mutex.count.set(1);
    }
    result
}

fn timed_lock(mutex: usize, clock: c_int, until: *const Timespec, pc: usize) -> c_int {
    if !clock::can_wait(clock) {
        return sys::EINVAL;
    }
    // SAFETY: the program passes a time.
    match unsafe { (*until).nanos() } {
        Some(nanos) => lock(mutex, Op::TimedLock, pc, clock::deadline_at(clock, nanos)),
        // A time that is none is noticed only by a thread that has to wait, and only if it is not long past anyway.
        None => match lock(mutex, Op::TimedLock, pc, 0) {
            // SAFETY: as above.
            sys::ETIMEDOUT if unsafe { (*until).seconds } >= 0 => sys::EINVAL,
            result => result,
        },
    }
}

shims! {
    /// Waits until the mutex is free. Locked again by its owner, a recursive one counts without a scheduling point,
    /// an error-checking one gives `EDEADLK`, any other is a deadlock.
    fn pthread_mutex_lock(mutex: usize) -> c_int = pc { lock(mutex, Op::Lock, pc, u64::MAX) }

    /// A scheduling point, never a wait: `EBUSY` if the mutex is held.
    fn pthread_mutex_trylock(mutex: usize) -> c_int = pc {
        let m = Mutex::at(mutex);
        m.notes();
        if m.kind.get() & KIND_MASK == RECURSIVE && let Some(result) = m.lock_again() {
            return result;
        }
        sched::point(Op::TryLock, mutex, pc);
        if !m.free() || choose::fault(Fault::TryLock) {
            report::failed();
            return sys::EBUSY;
        }
        m.acquire();
        if m.kind.get() & KIND_MASK == RECURSIVE {
            m.count.set(1);
        }
        0
    }

    /// Waits until the mutex is free; that the time runs out before is a decision, and gives `ETIMEDOUT`. A time
    /// that is none gives `EINVAL` to a thread that would have to wait.
    fn pthread_mutex_timedlock(mutex: usize, until: *const Timespec) -> c_int = pc {
        timed_lock(mutex, 0, until, pc)
    }

    /// As `pthread_mutex_timedlock`, on the clock given; other clocks than the real-time and the monotonic one give
    /// `EINVAL`.
    fn pthread_mutex_clocklock(mutex: usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_lock(mutex, clock, until, pc)
    }

    /// Enables the threads that wait for the mutex; which of them gets it is the decision who runs next. By another
    /// than the owner: `EPERM` from recursive and error-checking mutexes, a misuse otherwise.
    fn pthread_mutex_unlock(mutex: usize) -> c_int = pc {
        let m = Mutex::at(mutex);
        let again = m.kind.get() & KIND_MASK == RECURSIVE && m.mine() && m.count.get() > 1;
        if !again {
            sched::point(Op::Unlock, mutex, pc);
        }
        m.unlock(pc)
    }

    /// No scheduling point. A mutex that is held or waited for gives `EBUSY` and is a misuse.
    fn pthread_mutex_destroy(mutex: usize) -> c_int = pc {
        let m = Mutex::at(mutex);
        if !m.free() {
            report::misused(misuse::DESTROY_HELD, mutex, pc);
            return sys::EBUSY;
        }
        if sched::awaited(mutex) || super::cond::comes_back_to(mutex) {
            report::misused(misuse::DESTROY_WAITED, mutex, pc);
            return sys::EBUSY;
        }
        crate::glibc::real!(pthread_mutex_destroy, fn(mutex => usize) -> c_int)
    }
}
