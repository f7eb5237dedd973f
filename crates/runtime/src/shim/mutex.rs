//! Mutexes: normal, recursive, error-checking, adaptive and robust ones. Mutexes with priority protocols are
//! treated as normal ones, which is noted.
//!
//! The words of the object have glibc's meaning, except for robust mutexes, where glibc relies on the kernel.
//! In a robust mutex the lock word is also 1 while it is held. A bit above it is set from the end of an owner
//! until the mutex is consistent again. The links form the runtime's own list of the robust mutexes that a
//! thread holds.

use super::shims;
use crate::carrier::fibers::thread_of_tid;
use crate::memory::race::order;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::events;
use crate::sched::pause;
use crate::sched::{self, Woken, me};
use crate::sched::{decision, dependence, spin};
use crate::wire_log;
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
    spins: Cell<i32>,
    /// For robust mutexes: the mutex that the same thread acquired after this one, and the one before; 0 if
    /// there is none.
    newer: Cell<usize>,
    older: Cell<usize>,
}

const KIND_MASK: i32 = 3;
const RECURSIVE: i32 = 1;
const ERROR_CHECKING: i32 = 2;
const ROBUST: i32 = 16;
const PROTECT: i32 = 64;
const PRIORITY: i32 = 32 | PROTECT;
const SHARED: i32 = 128;

/// The kind that glibc gives to a destroyed mutex.
const DESTROYED: i32 = -1;

/// The bits of the lock word that are not 0 while the mutex is held.
const HELD: i32 = 0x7ffff;
/// The bits above hold the priority ceiling of a priority-protecting mutex.
const CEILING_SHIFT: u32 = 19;
const CEILINGS: core::ops::RangeInclusive<c_int> = 1..=99;
/// The bit of the lock word that marks that an owner ended; it is the kernel's bit.
const OWNER_DIED: i32 = 0x4000_0000;
/// The owner of a mutex that was unlocked without being made consistent, as in glibc.
const NOT_RECOVERABLE: i32 = i32::MAX - 1;

impl Mutex {
    /// The mutex at an address that the program passed.
    pub fn at(address: usize) -> &'static Mutex {
        // SAFETY: the program passes a mutex; if it is not mapped, the program crashes here as it would in glibc.
        unsafe { &*(address as *const Mutex) }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// Whether no thread holds it.
    pub fn free(&self) -> bool {
        self.lock.get() & HELD == 0
    }

    fn robust(&self) -> bool {
        self.kind.get() & ROBUST != 0
    }

    fn recursive(&self) -> bool {
        self.kind.get() & KIND_MASK == RECURSIVE
    }

    /// Whether this thread can acquire it: no thread holds it, or, after a wait with a recursive lock, this
    /// thread itself does.
    pub fn free_for(&self, number: usize) -> bool {
        self.free() || self.owner.get() == TID_BASE + number as i32
    }

    fn mine(&self) -> bool {
        !self.free() && self.free_for(me())
    }

    fn acquire(&self) {
        self.lock.set(self.lock.get() | 1);
        self.owner.set(TID_BASE + me() as i32);
        self.users.set(self.users.get().wrapping_add(1));
        sched::taken(self.address());
        order::acquire(self.address());
    }

    /// Acquires it, which no thread may hold. Returns the result of the lock function.
    #[inline(always)]
    fn acquire_free(&self) -> c_int {
        if self.robust() {
            return self.acquire_robust();
        }
        self.acquire();
        if self.recursive() {
            self.count.set(1);
        }
        0
    }

    #[cold]
    fn acquire_robust(&self) -> c_int {
        if self.owner.get() == NOT_RECOVERABLE {
            events::failed();
            return sys::ENOTRECOVERABLE;
        }
        self.acquire();
        self.count.set(self.recursive() as u32);
        let head = &sched::thread(me()).robust;
        self.newer.set(0);
        self.older.set(head.replace(self.address()));
        if self.older.get() != 0 {
            Mutex::at(self.older.get()).newer.set(self.address());
        }
        if self.lock.get() & OWNER_DIED != 0 { sys::EOWNERDEAD } else { 0 }
    }

    fn release(&self) {
        order::release(self.address());
        dependence::write(self.address());
        self.owner.set(0);
        self.users.set(self.users.get().wrapping_sub(1));
        self.lock.set(self.lock.get() & !HELD);
        if self.robust() {
            self.release_robust();
        }
        sched::freed(self.address());
    }

    #[cold]
    fn release_robust(&self) {
        self.take_off_list();
        if self.lock.get() & OWNER_DIED != 0 {
            self.lock.set(self.lock.get() & !OWNER_DIED);
            self.owner.set(NOT_RECOVERABLE);
        }
    }

    /// Clears the mark "shared with other processes" of a mutex that is not shared. glibc sets it for all
    /// robust mutexes, and does not depend on it.
    fn forget_shared(&self, attributes: usize) {
        let mut shared: c_int = 1;
        real!(pthread_mutexattr_getpshared, fn(attributes => usize, &raw mut shared => *mut c_int) -> c_int);
        if shared == 0 {
            self.kind.set(self.kind.get() & !SHARED);
        }
    }

    fn take_off_list(&self) {
        let (newer, older) = (self.newer.replace(0), self.older.replace(0));
        if newer != 0 {
            Mutex::at(newer).older.set(older);
        } else {
            sched::thread(me()).robust.set(older);
        }
        if older != 0 {
            Mutex::at(older).newer.set(newer);
        }
    }

    /// Locks it again without blocking, if this thread holds it and its kind allows that.
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

    /// Whether it can be used. A destroyed mutex cannot, and its use is reported as a misuse. Also notes
    /// mutexes with priorities or shared between processes.
    #[inline(always)]
    fn usable(&self, pc: usize) -> bool {
        self.kind.get() & (PRIORITY | SHARED) == 0 || self.notes(pc)
    }

    #[cold]
    fn notes(&self, pc: usize) -> bool {
        if self.destroyed(pc) {
            return false;
        }
        for (bits, note) in [(PRIORITY, Note::PriorityMutex), (SHARED, Note::ProcessShared)] {
            if self.kind.get() & bits != 0 {
                wire_log::note(note);
            }
        }
        true
    }

    /// Whether it was destroyed; if so, reports the misuse.
    fn destroyed(&self, pc: usize) -> bool {
        let destroyed = self.kind.get() == DESTROYED;
        if destroyed {
            pause::misused(misuse::USE_DESTROYED, self.address(), pc);
        }
        destroyed
    }

    #[inline(always)]
    fn lock(&self, op: Op, pc: usize, deadline: u64) -> c_int {
        if !self.usable(pc) {
            return sys::EINVAL;
        }
        if let Some(result) = self.lock_again() {
            return result;
        }
        if !self.free() && deadline == u64::MAX {
            self.check_cycle(op, pc);
        }
        match sched::wait_for(op, self.address(), pc, || self.free(), deadline) {
            Woken::TimedOut => sys::ETIMEDOUT,
            _ => self.acquire_free(),
        }
    }

    /// Reports a deadlock if locking this mutex closes a cycle of threads that wait for each other's mutexes.
    /// These threads can never continue, even if other threads still run.
    #[cold]
    fn check_cycle(&self, op: Op, pc: usize) {
        let mut mutex = self;
        loop {
            let Some(holder) = mutex.holder() else { return };
            if holder == me() {
                sched::thread(me()).about_to(op, self.address(), pc);
                sched::cannot(self.address());
                dependence::cut_short(self.address());
                pause::deadlock();
            }
            let t = sched::thread(holder);
            let waits = matches!(t.op(), Op::Lock | Op::Relock) && t.deadline.get() == u64::MAX;
            // A thread that waits for a lock without an owner does not wait for a mutex.
            let needs = sched::needs(holder);
            if t.ended.get() || !waits || needs == 0 || needs == sched::without_owner(t.object.get()) {
                return;
            }
            mutex = Mutex::at(needs);
        }
    }

    fn holder(&self) -> Option<usize> {
        if self.free() { None } else { thread_of_tid(self.owner.get()) }
    }

    /// Unlocks it by one level.
    #[inline(always)]
    pub fn unlock(&self, pc: usize) -> c_int {
        let kind = self.kind.get() & KIND_MASK;
        if !self.mine() {
            if self.destroyed(pc) {
                return sys::EINVAL;
            }
            if kind == RECURSIVE || kind == ERROR_CHECKING || self.robust() {
                return sys::EPERM;
            }
            let what = if self.free() { misuse::UNLOCK_FREE } else { misuse::UNLOCK_NOT_OWNER };
            pause::misused(what, self.address(), pc);
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

    /// Checks that the caller holds it, as a wait on a condition variable requires. Recursive and
    /// error-checking mutexes return an error; for others it is a misuse.
    pub fn check_held(&self, pc: usize) -> c_int {
        if self.mine() {
            return 0;
        }
        if self.destroyed(pc) {
            return sys::EINVAL;
        }
        match self.kind.get() & KIND_MASK {
            RECURSIVE | ERROR_CHECKING => sys::EPERM,
            _ if self.robust() => sys::EPERM,
            _ => {
                pause::misused(misuse::WAIT_UNLOCKED, self.address(), pc);
                0
            }
        }
    }

    /// Acquires the mutex after a wait on a condition variable. Returns 0, or the result of acquiring a robust
    /// mutex.
    pub fn relock(&self, pc: usize, waited: bool) -> c_int {
        if self.mine() {
            self.count.set(self.count.get() + 1);
            return 0;
        }
        // A signal handler that ran in between may have let another thread take it.
        if !waited || !self.free() {
            sched::wait_for(Op::Relock, self.address(), pc, || self.free(), u64::MAX);
        }
        self.acquire_free()
    }
}

/// The running thread ends: the next thread that acquires a robust mutex of it gets `EOWNERDEAD`.
pub fn abandon() {
    let head = &sched::thread(me()).robust;
    while head.get() != 0 {
        let mutex = Mutex::at(head.get());
        if !mutex.robust() || !mutex.mine() {
            // The program reused the memory of the mutex: the rest of the list is lost.
            head.set(0);
            return;
        }
        order::release(mutex.address());
        dependence::write(mutex.address());
        mutex.take_off_list();
        mutex.owner.set(0);
        mutex.users.set(mutex.users.get().wrapping_sub(1));
        mutex.lock.set(mutex.lock.get() & !HELD | OWNER_DIED);
        sched::freed(mutex.address());
    }
}

#[inline(always)]
pub fn lock(mutex: usize, op: Op, pc: usize, deadline: u64) -> c_int {
    Mutex::at(mutex).lock(op, pc, deadline)
}

pub fn timed_lock(mutex: usize, clock: c_int, until: *const Timespec, pc: usize) -> c_int {
    if !clock::can_wait(clock) {
        return sys::EINVAL;
    }
    // SAFETY: the program passes a time.
    match unsafe { (*until).nanos() } {
        Some(nanos) => lock(mutex, Op::TimedLock, pc, clock::deadline_at(clock, nanos)),
        // Like glibc, rejects an invalid time only if the thread has to wait and the time does not lie before
        // 1970.
        None => match lock(mutex, Op::TimedLock, pc, 0) {
            // SAFETY: as above.
            sys::ETIMEDOUT if unsafe { (*until).seconds } >= 0 => sys::EINVAL,
            result => result,
        },
    }
}

pub fn try_lock(mutex: usize, pc: usize) -> c_int {
    let m = Mutex::at(mutex);
    if (m.recursive() || m.robust())
        && let Some(result) = m.lock_again()
    {
        return result;
    }
    spin::attempt(Op::TryLock, mutex, pc);
    if !m.usable(pc) {
        return sys::EINVAL;
    }
    dependence::tried(Op::TryLock, mutex, pc, m.free());
    if !m.free() || decision::fault(Fault::TryLock) {
        spin::failed();
        return sys::EBUSY;
    }
    m.acquire_free()
}

#[inline(always)]
pub fn unlock(mutex: usize, pc: usize) -> c_int {
    let m = Mutex::at(mutex);
    let again = m.recursive() && m.mine() && m.count.get() > 1;
    if !again {
        sched::point(Op::Unlock, mutex, pc);
    }
    m.unlock(pc)
}

pub fn destroy(mutex: usize, pc: usize) -> c_int {
    dependence::destroys(mutex);
    let m = Mutex::at(mutex);
    m.destroyed(pc);
    if !m.free() {
        pause::misused(misuse::DESTROY_HELD, mutex, pc);
        return sys::EBUSY;
    }
    if sched::awaited(mutex) || super::cond::comes_back_to(mutex) {
        pause::misused(misuse::DESTROY_WAITED, mutex, pc);
        return sys::EBUSY;
    }
    real!(pthread_mutex_destroy, fn(mutex => usize) -> c_int)
}

shims! {
    /// Waits until no thread holds the mutex, then takes it. If the caller holds it already: a recursive mutex
    /// counts, without a scheduling point; an error-checking one gives `EDEADLK`; any other is a deadlock. A
    /// robust mutex whose owner ended gives `EOWNERDEAD`.
    fn pthread_mutex_lock(mutex: usize) -> c_int = pc { lock(mutex, Op::Lock, pc, u64::MAX) }

    /// A scheduling point; never waits. Gives `EBUSY` if a thread holds the mutex.
    fn pthread_mutex_trylock(mutex: usize) -> c_int = pc { try_lock(mutex, pc) }

    /// As `pthread_mutex_lock`. Whether the time-out fires first is a decision; it then gives `ETIMEDOUT`. An
    /// invalid time gives `EINVAL` if the thread would have to wait.
    fn pthread_mutex_timedlock(mutex: usize, until: *const Timespec) -> c_int = pc {
        timed_lock(mutex, 0, until, pc)
    }

    /// As `pthread_mutex_timedlock`, on the given clock. Only the real-time and the monotonic clock are valid;
    /// others give `EINVAL`.
    fn pthread_mutex_clocklock(mutex: usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_lock(mutex, clock, until, pc)
    }

    /// Enables the threads that wait for the mutex; the one that runs first gets it. If the caller is not the
    /// owner, recursive and error-checking mutexes give `EPERM`; for others it is a misuse.
    fn pthread_mutex_unlock(mutex: usize) -> c_int = pc { unlock(mutex, pc) }

    /// Initialising a mutex that a thread waits for is a misuse. Not a scheduling point.
    fn pthread_mutex_init(mutex: usize, attributes: usize) -> c_int = pc {
        if sched::awaited(mutex) {
            pause::misused(misuse::INIT_WAITED, mutex, pc);
        }
        let result = real!(pthread_mutex_init, fn(mutex => usize, attributes => usize) -> c_int);
        if result == 0 && Mutex::at(mutex).robust() {
            Mutex::at(mutex).forget_shared(attributes);
        }
        result
    }

    /// Destroying a mutex that a thread holds or waits for gives `EBUSY` and is a misuse. So is any use of a
    /// destroyed mutex. Not a scheduling point.
    fn pthread_mutex_destroy(mutex: usize) -> c_int = pc { destroy(mutex, pc) }

    /// Makes a robust mutex usable again after its owner ended. Not a scheduling point, because the caller
    /// holds the mutex.
    fn pthread_mutex_consistent(mutex: usize) -> c_int = pc {
        let m = Mutex::at(mutex);
        if !m.robust() || m.free() || m.lock.get() & OWNER_DIED == 0 {
            return sys::EINVAL;
        }
        m.lock.set(m.lock.get() & !OWNER_DIED);
        0
    }

    /// Waits until no other thread holds the mutex, then changes its priority ceiling. A scheduling point,
    /// unless the caller holds the mutex.
    fn pthread_mutex_setprioceiling(mutex: usize, ceiling: c_int, old: *mut c_int) -> c_int = pc {
        let m = Mutex::at(mutex);
        if m.kind.get() & PROTECT == 0 || !CEILINGS.contains(&ceiling) {
            return sys::EINVAL;
        }
        if !m.usable(pc) {
            return sys::EINVAL;
        }
        let held = m.mine() && m.kind.get() & KIND_MASK != 0;
        if held && m.kind.get() & KIND_MASK == ERROR_CHECKING {
            return sys::EDEADLK;
        }
        if !held {
            sched::wait_for(Op::Lock, mutex, pc, || m.free(), u64::MAX);
        }
        let word = m.lock.get();
        if !old.is_null() {
            // SAFETY: the program passes room for the old ceiling, or null.
            unsafe { *old = word >> CEILING_SHIFT };
        }
        m.lock.set(word & HELD | ceiling << CEILING_SHIFT);
        0
    }
}
