//! Read-write locks. Readers and writers wait for different conditions, so the scheduler knows a lock as two
//! objects. Readers need the lock's address; writers need the address after it.
//!
//! As in glibc, readers pass waiting writers unless the lock has the kind `PREFER_WRITER_NONRECURSIVE`. With
//! that kind a reader waits while other threads read and a writer waits, and a thread that reads twice may
//! deadlock.
//!
//! Reading does not count as a change of the lock (see `sched::dependence`), so that readers are independent. An attempt to
//! write that fails because others read therefore counts as a change: its order with the readers matters.

use super::{destroyed, shims};
use crate::memory::race::order;
use crate::platform::sys;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::pause;
use crate::sched::{self, Woken, me};
use crate::sched::{decision, dependence, operation_log, spin};
use crate::wire_log;
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::{Fault, Note, Op};
use heisen_wire::{TID_BASE, misuse};

/// `pthread_rwlock_t`, as glibc lays it out.
#[repr(C)]
struct RwLock {
    /// The number of readers, above two bits: the phase, and whether a writer holds the lock.
    readers: Cell<u32>,
    writers: Cell<u32>,
    write_phase: Cell<u32>,
    write_locked: Cell<u32>,
    pad: [u32; 2],
    writer: Cell<i32>,
    shared: Cell<i32>,
    unused: [usize; 2],
    flags: Cell<u32>,
}

const WRITE_PHASE: u32 = 1;
const WRITE_LOCKED: u32 = 2;
const ONE_READER: u32 = 8;
const PREFER_WRITER_NONRECURSIVE: u32 = 2;
/// The offset of the mark of a destroyed lock: glibc's `__pad2`.
const MARK: usize = 40;

fn at(address: usize) -> &'static RwLock {
    // SAFETY: the program passes a read-write lock; if it is not mapped, the program crashes here as it would in glibc.
    let lock: &RwLock = unsafe { &*(address as *const RwLock) };
    if lock.shared.get() != 0 {
        wire_log::note(Note::ProcessShared);
    }
    lock
}

impl RwLock {
    /// The object that a reader needs.
    fn read_key(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// The object that a writer needs. No other object can be at this address, as all are aligned.
    fn write_key(&self) -> usize {
        self.read_key() + 1
    }

    fn written(&self) -> bool {
        self.readers.get() & WRITE_LOCKED != 0
    }

    fn read(&self) -> bool {
        self.readers.get() >= ONE_READER
    }

    fn mine_to_write(&self) -> bool {
        self.written() && self.writer.get() == TID_BASE + me() as i32
    }

    fn prefers_writers(&self) -> bool {
        self.flags.get() == PREFER_WRITER_NONRECURSIVE
    }

    fn can_write(&self) -> bool {
        !self.written() && !self.read()
    }

    fn can_read(&self) -> bool {
        !(self.written() || self.read() && self.gives_way())
    }

    /// Whether readers must let a waiting writer go first.
    fn gives_way(&self) -> bool {
        self.prefers_writers() && sched::awaited(self.write_key())
    }

    fn set_readers(&self, count: u32) {
        self.readers.set(count * ONE_READER);
        self.write_phase.set(0);
    }

    /// The object at which readers release their order for the next writer; other readers do not acquire it.
    fn left_by_readers(&self) -> usize {
        self.read_key() + 8
    }

    fn acquire_read(&self) {
        order::acquire(self.read_key());
        let count = self.readers.get() / ONE_READER;
        self.set_readers(count + 1);
        if count == 0 {
            sched::taken(self.write_key());
            if self.gives_way() {
                sched::taken(self.read_key());
            }
        }
    }

    fn acquire_write(&self) {
        order::acquire(self.read_key());
        order::acquire(self.left_by_readers());
        self.readers.set(WRITE_PHASE | WRITE_LOCKED);
        self.write_phase.set(1);
        self.write_locked.set(1);
        self.writer.set(TID_BASE + me() as i32);
        sched::taken(self.write_key());
        sched::taken(self.read_key());
    }

    fn release_read(&self) {
        order::release(self.left_by_readers());
        let count = self.readers.get() / ONE_READER;
        self.set_readers(count - 1);
        if count == 1 {
            dependence::write(self.read_key());
            self.freed();
        } else {
            dependence::read(self.read_key());
        }
    }

    fn release_write(&self) {
        order::release(self.read_key());
        dependence::write(self.read_key());
        self.writer.set(0);
        self.write_locked.set(0);
        self.set_readers(0);
        self.freed();
    }

    fn freed(&self) {
        sched::freed(self.write_key());
        sched::freed(self.read_key());
    }

    fn lock_read(&self, pc: usize, deadline: u64) -> c_int {
        destroyed::check(self.read_key(), MARK, pc);
        if self.mine_to_write() {
            return sys::EDEADLK;
        }
        operation_log::about_to(Op::ReadLock, deadline != u64::MAX, self.prefers_writers());
        let key = self.read_key();
        match sched::wait_for_key(Op::ReadLock, key, key, pc, || self.can_read(), deadline) {
            Woken::TimedOut => sys::ETIMEDOUT,
            _ => {
                self.acquire_read();
                0
            }
        }
    }

    fn lock_write(&self, pc: usize, deadline: u64) -> c_int {
        destroyed::check(self.read_key(), MARK, pc);
        if self.mine_to_write() {
            return sys::EDEADLK;
        }
        // From now on a writer waits.
        if self.prefers_writers() {
            dependence::write(self.read_key());
        }
        if self.read() && self.prefers_writers() && !sched::awaited(self.write_key()) {
            sched::taken(self.read_key());
        }
        operation_log::about_to(Op::WriteLock, deadline != u64::MAX, false);
        match sched::wait_for_key(
            Op::WriteLock,
            self.read_key(),
            self.write_key(),
            pc,
            || self.can_write(),
            deadline,
        ) {
            Woken::TimedOut => {
                if self.can_read() {
                    sched::freed(self.read_key());
                }
                sys::ETIMEDOUT
            }
            _ => {
                self.acquire_write();
                0
            }
        }
    }

    fn unlock(&self, pc: usize) {
        destroyed::check(self.read_key(), MARK, pc);
        if self.read() {
            self.release_read();
        } else if self.written() {
            if !self.mine_to_write() {
                pause::misused(misuse::UNLOCK_NOT_OWNER, self.read_key(), pc);
            }
            self.release_write();
        } else {
            pause::misused(misuse::UNLOCK_FREE, self.read_key(), pc);
        }
    }
}

/// The deadline of a timed function, or an error number if the time is invalid. Unlike those of mutexes, these
/// functions always check it.
fn deadline(clock: c_int, until: *const Timespec) -> Result<u64, c_int> {
    if !clock::can_wait(clock) {
        return Err(sys::EINVAL);
    }
    // SAFETY: the program passes a time.
    let nanos = unsafe { (*until).nanos() }.ok_or(sys::EINVAL)?;
    Ok(clock::deadline_at(clock, nanos))
}

fn timed_read(lock: usize, clock: c_int, until: *const Timespec, pc: usize) -> c_int {
    match deadline(clock, until) {
        Ok(deadline) => at(lock).lock_read(pc, deadline),
        Err(error) => error,
    }
}

fn timed_write(lock: usize, clock: c_int, until: *const Timespec, pc: usize) -> c_int {
    match deadline(clock, until) {
        Ok(deadline) => at(lock).lock_write(pc, deadline),
        Err(error) => error,
    }
}

shims! {
    /// Waits until no writer holds the lock, then takes it for reading. A lock that prefers writers also waits
    /// while other threads read and a writer waits. If the caller holds it for writing, gives `EDEADLK`.
    fn pthread_rwlock_rdlock(lock: usize) -> c_int = pc { at(lock).lock_read(pc, u64::MAX) }

    /// Waits until no thread holds the lock, then takes it for writing. If the caller holds it for writing,
    /// gives `EDEADLK`.
    fn pthread_rwlock_wrlock(lock: usize) -> c_int = pc { at(lock).lock_write(pc, u64::MAX) }

    /// A scheduling point; never waits. Gives `EBUSY` where `pthread_rwlock_rdlock` would wait.
    fn pthread_rwlock_tryrdlock(lock: usize) -> c_int = pc {
        operation_log::about_to(Op::ReadLock, true, at(lock).prefers_writers());
        spin::attempt(Op::ReadLock, lock, pc);
        destroyed::check(lock, MARK, pc);
        dependence::tried(Op::ReadLock, lock, pc, !at(lock).written() && !at(lock).can_read());
        if !at(lock).can_read() || decision::fault(Fault::TryLock) {
            spin::failed();
            return sys::EBUSY;
        }
        at(lock).acquire_read();
        0
    }

    /// A scheduling point; never waits. Gives `EBUSY` if a thread holds the lock.
    fn pthread_rwlock_trywrlock(lock: usize) -> c_int = pc {
        operation_log::about_to(Op::WriteLock, true, false);
        spin::attempt(Op::WriteLock, lock, pc);
        destroyed::check(lock, MARK, pc);
        dependence::tried(Op::WriteLock, lock, pc, !at(lock).written());
        if !at(lock).can_write() || decision::fault(Fault::TryLock) {
            spin::failed();
            return sys::EBUSY;
        }
        at(lock).acquire_write();
        0
    }

    /// As `pthread_rwlock_rdlock`. Whether the time-out fires first is a decision; it then gives `ETIMEDOUT`.
    /// An invalid time gives `EINVAL`.
    fn pthread_rwlock_timedrdlock(lock: usize, until: *const Timespec) -> c_int = pc { timed_read(lock, 0, until, pc) }

    /// As `pthread_rwlock_wrlock`. Whether the time-out fires first is a decision; it then gives `ETIMEDOUT`.
    /// An invalid time gives `EINVAL`.
    fn pthread_rwlock_timedwrlock(lock: usize, until: *const Timespec) -> c_int = pc { timed_write(lock, 0, until, pc) }

    /// As `pthread_rwlock_timedrdlock`, on the given clock. Only the real-time and the monotonic clock are
    /// valid; others give `EINVAL`.
    fn pthread_rwlock_clockrdlock(lock: usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_read(lock, clock, until, pc)
    }

    /// As `pthread_rwlock_timedwrlock`, on the given clock. Only the real-time and the monotonic clock are
    /// valid; others give `EINVAL`.
    fn pthread_rwlock_clockwrlock(lock: usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_write(lock, clock, until, pc)
    }

    /// The writer, or the last reader, enables the waiting threads; the one that runs first gets the lock.
    /// Unlocking a lock that no thread holds, or that another thread holds for writing, is a misuse.
    fn pthread_rwlock_unlock(lock: usize) -> c_int = pc {
        sched::point(Op::RwUnlock, lock, pc);
        at(lock).unlock(pc);
        0
    }

    /// Destroying a lock that a thread holds or waits for is a misuse, and so is any use of a destroyed lock.
    /// Not a scheduling point.
    fn pthread_rwlock_destroy(lock: usize) -> c_int = pc {
        dependence::destroys(lock);
        let l = at(lock);
        if !l.can_write() {
            pause::misused(misuse::DESTROY_HELD, lock, pc);
        } else if sched::awaited(l.read_key()) || sched::awaited(l.write_key()) {
            pause::misused(misuse::DESTROY_WAITED, lock, pc);
        } else {
            destroyed::destroy(lock, MARK, pc);
        }
        0
    }
}
