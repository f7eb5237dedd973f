//! Threads: creation, end, joining, names and attributes.

use super::{cancel, detours, shims};
use crate::carrier::fibers;
use crate::carrier::fibers::Wish;
use crate::memory::race::order;
use crate::memory::symbolic;
use crate::platform::glibc::{Real, real};
use crate::platform::sys;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::handles;
use crate::sched::pause;
use crate::sched::{self, SCHED, Thread, Woken, me, thread};
use crate::sched::{dependence, operation_log, spin, symmetry};
use crate::script::system_mode;
use crate::wire_log;
use core::ffi::{c_char, c_int};
use heisen_trace::{Note, Op};
use heisen_wire::{MAX_THREADS, misuse};

const DETACHED: c_int = 1;
const ERANGE: c_int = 34;
const MIN_STACK: usize = 16384;
/// The deadline of a join that does not wait, and therefore is not a cancellation point.
const NOW: u64 = 0;
/// A thread's handle plus this is the object of its join. No other object can be at that address, as all are
/// aligned.
const JOINED: usize = 1;

/// Reads the attributes: the requested stack, and whether the thread is detached.
fn read_attributes(attributes: usize) -> (Wish, bool) {
    let mut wish = Wish::usual();
    if attributes == 0 {
        return (wish, false);
    }
    let (mut base, mut size, mut detached) = (0usize, 0usize, 0 as c_int);
    real!(pthread_attr_getdetachstate, fn(attributes => usize, &raw mut detached => *mut c_int) -> c_int);
    real!(pthread_attr_getstacksize, fn(attributes => usize, &raw mut wish.size => *mut usize) -> c_int);
    real!(pthread_attr_getguardsize, fn(attributes => usize, &raw mut wish.guard => *mut usize) -> c_int);
    real!(pthread_attr_getstack, fn(
        attributes => usize, &raw mut base => *mut usize, &raw mut size => *mut usize
    ) -> c_int);
    // If the program gave no stack, glibc answers with a stack that ends at address 0.
    if base != 0 && base.wrapping_add(size) != 0 {
        wish.stack = Some((base, size));
    }
    wish.size = wish.size.max(MIN_STACK).next_multiple_of(4096);
    wish.guard = wish.guard.next_multiple_of(4096);
    (wish, detached == DETACHED)
}

/// Creates a thread. It is inlined so that a debugger finds the return address of the intercepted function.
#[inline(always)]
pub fn create(out: *mut usize, attributes: usize, start: usize, arg: usize, pc: usize) -> c_int {
    sched::point(Op::Create, start, pc);
    make(out, attributes, start, arg)
}

/// As [`create`], without its scheduling point, which the caller makes.
#[inline(always)]
pub fn make(out: *mut usize, attributes: usize, start: usize, arg: usize) -> c_int {
    let number = SCHED.count.get();
    if number == MAX_THREADS {
        wire_log::note(Note::TooManyThreads);
        return sys::EAGAIN;
    }
    let (wish, detached) = read_attributes(attributes);
    if let Err(error) = fibers::create(number, start, arg, &wish) {
        // Without Heisen there might have been enough memory: stacks count against the limit that stops a
        // program from taking all of it.
        wire_log::note(Note::TooManyThreads);
        return error;
    }
    let t = thread(number);
    t.detached.set(detached);
    copy_name(thread(me()), t);
    super::cpu::created(number);
    // SAFETY: the program passes room for the handle.
    unsafe { *out = t.fs.get() };
    sched::add(number, Some(me()));
    super::signal::mask::of_attributes(attributes, t);
    symmetry::created(number, attributes == 0);
    0
}

fn copy_name(from: &Thread, to: &Thread) {
    for (to, from) in to.name.iter().zip(&from.name) {
        to.set(from.get());
    }
}

/// Waits until a thread ends or the deadline passes.
pub fn join(handle: usize, result: *mut usize, deadline: u64, pc: usize) -> c_int {
    let Some(number) = handles::find(handle) else { return sys::ESRCH };
    let t = thread(number);
    symmetry::joins(number);
    if number == me() {
        return sys::EDEADLK;
    }
    if t.joined.get() || t.detached.get() {
        pause::misused(misuse::DOUBLE_JOIN, handle, pc);
        return sys::EINVAL;
    }
    dependence::write(handle + JOINED);
    let ends_now = deadline == NOW;
    if !ends_now {
        cancel::point();
    }
    t.joined.set(true);
    operation_log::about_to(Op::Join, deadline != u64::MAX, false);
    let woken = cancel::wait(|| sched::wait_for(Op::Join, handle, pc, || t.ended.get(), deadline));
    if !ends_now && cancel::due() {
        t.joined.set(false);
        cancel::act();
    }
    if woken == Woken::TimedOut {
        t.joined.set(false);
        return sys::ETIMEDOUT;
    }
    order::learn_from(number);
    if !result.is_null() {
        // SAFETY: the program passes room for the result, or null.
        unsafe { *result = t.result.get() };
        symbolic::takes_result(number, result as usize, pc);
    }
    0
}

pub fn detach(handle: usize, pc: usize) -> c_int {
    let Some(number) = handles::thread_of_handle(handle) else { return sys::ESRCH };
    let t = thread(number);
    dependence::write(handle + JOINED);
    if t.detached.get() || t.joined.get() {
        pause::misused(misuse::DOUBLE_DETACH, handle, pc);
        return sys::EINVAL;
    }
    t.detached.set(true);
    0
}

fn timed_join(handle: usize, result: *mut usize, clock: c_int, until: *const Timespec, pc: usize) -> c_int {
    if !clock::can_wait(clock) {
        return sys::EINVAL;
    }
    if until.is_null() {
        return join(handle, result, u64::MAX, pc);
    }
    // SAFETY: the program passes a time, or null.
    let Some(nanos) = (unsafe { (*until).nanos() }) else { return sys::EINVAL };
    join(handle, result, clock::deadline_at(clock, nanos), pc)
}

static REAL_EXIT: Real = Real::new(c"pthread_exit");

detours! {
    /// Ends the thread. Clean-up handlers, destructors and the destructors of keys run as steps of the thread;
    /// then a thread that joins it is enabled. If the main thread calls it, the process continues until the
    /// last thread ends.
    fn pthread_exit = before_exit;
}

/// Stores the result and returns the address of the real function. That unwinds the stack down to the buffer
/// that the carrier registered.
extern "C" fn before_exit(result: usize) -> usize {
    keep_result(result);
    REAL_EXIT.address()
}

/// The running thread is about to end with this result.
pub fn keep_result(result: usize) {
    if SCHED.active.get() {
        thread(me()).result.set(result);
        symbolic::ends_with(result);
        cancel::exiting();
    }
}

shims! {
    if SCHED.active.get() || system_mode::is_on();

    /// Creates a thread, which is enabled at once. A scheduling point. If there are too many threads it gives
    /// `EAGAIN`, which is noted.
    fn pthread_create(out: *mut usize, attributes: usize, start: usize, arg: usize) -> c_int = pc {
        if system_mode::is_on() {
            return system_mode::create(out, attributes, start, arg);
        }
        create(out, attributes, start, arg, pc)
    }
}

shims! {
    /// Waits until the thread has ended. Joining oneself gives `EDEADLK`. A thread that is detached or already
    /// joined gives `EINVAL` and is a misuse.
    fn pthread_join(handle: usize, result: *mut usize) -> c_int = pc { join(handle, result, u64::MAX, pc) }

    /// As `pthread_join`. Whether the time-out fires first is a decision; it then gives `ETIMEDOUT`.
    fn pthread_timedjoin_np(handle: usize, result: *mut usize, until: *const Timespec) -> c_int = pc {
        timed_join(handle, result, 0, until, pc)
    }

    /// As `pthread_timedjoin_np`, on the given clock. Only the real-time and the monotonic clock are valid;
    /// others give `EINVAL`.
    fn pthread_clockjoin_np(handle: usize, result: *mut usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_join(handle, result, clock, until, pc)
    }

    /// A scheduling point; never waits. Gives `EBUSY` if the thread has not ended.
    fn pthread_tryjoin_np(handle: usize, result: *mut usize) -> c_int = pc {
        let Some(number) = handles::thread_of_handle(handle) else { return sys::ESRCH };
        operation_log::about_to(Op::Join, true, false);
        spin::attempt(Op::Join, handle, pc);
        dependence::tried(Op::Join, handle, pc, thread(number).ended.get());
        if !thread(number).ended.get() {
            spin::failed();
            return sys::EBUSY;
        }
        join(handle, result, NOW, pc)
    }

    /// A thread that is detached or already joined gives `EINVAL` and is a misuse. Not a scheduling point.
    fn pthread_detach(handle: usize) -> c_int = pc {
        detach(handle, pc)
    }

    /// Describes the stack that the thread really runs on. Not a scheduling point.
    fn pthread_getattr_np(handle: usize, attributes: usize) -> c_int = pc {
        let found = handles::thread_of_handle(handle);
        let stack = found.and_then(|number| thread(number).stack_bounds());
        let (Some(number), Some((base, size, guard))) = (found, stack) else {
            return fibers::with_kernel_id(thread(0).fs.get(), || {
                real!(pthread_getattr_np, fn(handle => usize, attributes => usize) -> c_int)
            });
        };
        real!(pthread_attr_init, fn(attributes => usize) -> c_int);
        real!(pthread_attr_setstack, fn(attributes => usize, base => usize, size => usize) -> c_int);
        real!(pthread_attr_setguardsize, fn(attributes => usize, guard => usize) -> c_int);
        let detached = thread(number).detached.get() as c_int;
        real!(pthread_attr_setdetachstate, fn(attributes => usize, detached => c_int) -> c_int)
    }

    /// Sets the name of the thread, which reports show. A name of more than 15 characters gives `ERANGE`. Not a
    /// scheduling point.
    fn pthread_setname_np(handle: usize, name: *const c_char) -> c_int = pc {
        let Some(number) = handles::thread_of_handle(handle) else { return sys::ESRCH };
        // SAFETY: the program passes a C string.
        let bytes = unsafe { core::ffi::CStr::from_ptr(name) }.to_bytes_with_nul();
        if bytes.len() > 16 {
            return ERANGE;
        }
        for (slot, &byte) in thread(number).name.iter().zip(bytes) {
            slot.set(byte);
        }
        0
    }

    /// Reads the name of the thread. Room for less than 16 characters gives `ERANGE`. Not a scheduling point.
    fn pthread_getname_np(handle: usize, out: *mut u8, size: usize) -> c_int = pc {
        let Some(number) = handles::thread_of_handle(handle) else { return sys::ESRCH };
        let t = thread(number);
        if t.name[0].get() == 0 {
            let main = thread(0).fs.get();
            return fibers::with_kernel_id(main, || {
                real!(pthread_getname_np, fn(main => usize, out => *mut u8, size => usize) -> c_int)
            });
        }
        if size < 16 {
            return ERANGE;
        }
        for (index, byte) in t.name.iter().enumerate() {
            // SAFETY: the program passes room for `size` bytes, which is at least 16.
            unsafe { *out.add(index) = byte.get() };
        }
        0
    }
}
