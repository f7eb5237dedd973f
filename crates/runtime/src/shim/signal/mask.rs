//! Signal masks: which signals each thread blocks. The kernel blocks the signals that all threads block. Such a
//! signal, sent from outside, stays pending in the kernel until a thread unblocks it or waits for it. Before
//! the program starts another process, the kernel gets the mask of the thread that starts it.

use super::{INTERNAL, SIGSTOP, bit, deliver, outside, pending};
use crate::memory::patch;
use crate::platform::baton::Guarded;
use crate::platform::glibc;
use crate::platform::glibc::Real;
use crate::platform::sys;
use crate::sched::{self, SCHED, Thread, me, thread};
use crate::script::system_mode;
use crate::shim::shims;
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::Op;

const SIG_BLOCK: c_int = 0;
const SIG_UNBLOCK: c_int = 1;
const SIG_SETMASK: c_int = 2;

struct Kernel(Cell<u64>);

/// The kernel's mask.
static KERNEL: Guarded<Kernel> = Guarded::new(Kernel(Cell::new(0)));

/// The signals of a set that can be blocked at all.
pub fn blockable(set: u64) -> u64 {
    set & !(bit(sys::SIGKILL) | bit(SIGSTOP) | bit(INTERNAL[0]) | bit(INTERNAL[1]))
}

/// The main thread blocks the signals that the process inherited.
pub fn init() {
    KERNEL.0.set(sys::signal_mask(None));
    thread(0).blocked.set(blockable(KERNEL.0.get()));
    tell_kernel();
}

/// The signals that the running thread blocks.
pub fn of_running() -> u64 {
    thread(me()).blocked.get()
}

/// The signals that every thread blocks.
pub fn of_all() -> u64 {
    let program = sched::threads().filter(|(_, t)| !t.ended.get() && !t.timer.get());
    program.fold(u64::MAX, |all, (_, t)| all & t.blocked.get())
}

/// The signals of [`of_all`] that the kernel may block: all but those that the runtime needs itself.
pub fn common() -> u64 {
    patch::passable(of_all()) & !bit(sys::SIGSTKFLT)
}

fn set_kernel(mask: u64) {
    if KERNEL.0.replace(mask) != mask {
        sys::signal_mask(Some(mask));
    }
}

/// Updates the kernel's mask after the masks of threads have changed.
pub fn tell_kernel() {
    set_kernel(common());
}

/// Restores the kernel's mask after a handler that the kernel called was left by a jump.
pub fn restore_kernel() {
    KERNEL.0.set(common());
    sys::signal_mask(Some(KERNEL.0.get()));
}

/// The signals that the kernel blocks at the moment.
pub fn of_kernel() -> u64 {
    KERNEL.0.get()
}

/// Calls `start`, which starts another process, with the running thread's mask in the kernel.
pub fn for_child<R>(start: impl FnOnce() -> R) -> R {
    // Fork handlers are code of the program.
    set_kernel(patch::passable(of_running()));
    let result = start();
    if SCHED.active.get() {
        tell_kernel();
    }
    result
}

/// As [`for_child`], where nothing is called afterwards.
pub fn before_exec() {
    if SCHED.active.get() {
        set_kernel(of_running());
    }
}

/// Sets the running thread's mask. The thread takes newly unblocked signals at once; newly blocked ones are
/// left to other threads.
pub fn set(mask: u64) {
    let t = thread(me());
    let old = t.blocked.replace(blockable(mask));
    let unblocked = old & !t.blocked.get();
    if t.blocked.get() & !old != 0 {
        pending::hand_on(me());
    }
    if old != t.blocked.get() {
        outside::take_from_kernel(unblocked);
        tell_kernel();
    }
    if unblocked != 0 {
        deliver();
    }
}

/// Calls `wait` with another mask of the running thread. The mask takes effect together with the wait, and no
/// signal can come in between.
pub fn with<R>(set: u64, wait: impl FnOnce() -> R) -> R {
    let t = thread(me());
    let before = t.blocked.replace(blockable(set));
    outside::take_from_kernel(before & !t.blocked.get());
    tell_kernel();
    let result = wait();
    self::set(before);
    result
}

/// Sets a new thread's mask, if its attributes contain one.
pub fn of_attributes(attributes: usize, t: &Thread) {
    static REAL: Real = Real::new(c"pthread_attr_getsigmask_np");
    if attributes == 0 || REAL.address() == 0 {
        return;
    }
    let mut set = [0u64; 16];
    let out = &raw mut set;
    if glibc::real!(pthread_attr_getsigmask_np, fn(attributes => usize, out => *mut [u64; 16]) -> c_int) == 0
    {
        t.blocked.set(blockable(set[0]));
        tell_kernel();
    }
}

fn change(how: c_int, new: *const u64, old: *mut u64, pc: usize) -> c_int {
    if !new.is_null() {
        sched::point(Op::SigMask, 0, pc);
    }
    let now = of_running();
    // SAFETY: the program passes a set, or null.
    let new = unsafe { new.as_ref() }.copied();
    let wanted = match (how, new) {
        (_, None) => now,
        (SIG_BLOCK, Some(set)) => now | set,
        (SIG_UNBLOCK, Some(set)) => now & !set,
        (SIG_SETMASK, Some(set)) => set,
        _ => return sys::EINVAL,
    };
    if !old.is_null() {
        // SAFETY: the program passes room for a set, of which the kernel fills 64 bits, or null.
        unsafe { *old = now };
    }
    if new.is_some() {
        set(wanted);
    }
    0
}

/// The signal set of old functions, which have room for 32 signals.
fn old_set(set: c_int) -> u64 {
    set as u32 as u64
}

/// A set that the kernel may have in system mode: it never blocks the signal of breakpoints, because a blocked
/// breakpoint would end the process.
fn without_trap(new: *const u64) -> Option<[u64; 16]> {
    let mut set = [0; 16];
    // SAFETY: the program passes a set, or null.
    set[0] = unsafe { new.as_ref() }? & !bit(sys::SIGTRAP);
    Some(set)
}

shims! {
    if SCHED.active.get() || system_mode::is_on();

    /// Sets the calling thread's mask. Signals that it unblocks are delivered before it returns. A scheduling
    /// point.
    fn pthread_sigmask(how: c_int, new: *const u64, old: *mut u64) -> c_int = pc {
        if !system_mode::is_on() {
            return change(how, new, old, pc);
        }
        let set = without_trap(new);
        let new = set.as_ref().map_or(core::ptr::null(), |set| set.as_ptr());
        glibc::real!(pthread_sigmask, fn(how => c_int, new => *const u64, old => *mut u64) -> c_int)
    }

    /// As `pthread_sigmask`.
    fn sigprocmask(how: c_int, new: *const u64, old: *mut u64) -> c_int = pc {
        if !system_mode::is_on() {
            return glibc::result(change(how, new, old, pc));
        }
        let set = without_trap(new);
        let new = set.as_ref().map_or(core::ptr::null(), |set| set.as_ptr());
        glibc::real!(sigprocmask, fn(how => c_int, new => *const u64, old => *mut u64) -> c_int)
    }
}

shims! {
    /// Blocks a signal, as `pthread_sigmask`.
    fn sighold(signal: c_int) -> c_int = pc {
        if !super::is_valid(signal) {
            return glibc::result(sys::EINVAL);
        }
        change(SIG_BLOCK, &bit(signal), core::ptr::null_mut(), pc)
    }

    /// Unblocks a signal, as `pthread_sigmask`.
    fn sigrelse(signal: c_int) -> c_int = pc {
        if !super::is_valid(signal) {
            return glibc::result(sys::EINVAL);
        }
        change(SIG_UNBLOCK, &bit(signal), core::ptr::null_mut(), pc)
    }

    /// Blocks more signals, as `pthread_sigmask`.
    fn sigblock(set: c_int) -> c_int = pc {
        let old = of_running() as c_int;
        change(SIG_BLOCK, &old_set(set), core::ptr::null_mut(), pc);
        old
    }

    /// Sets the mask, as `pthread_sigmask`.
    fn sigsetmask(set: c_int) -> c_int = pc {
        let old = of_running() as c_int;
        change(SIG_SETMASK, &old_set(set), core::ptr::null_mut(), pc);
        old
    }

    /// Returns the calling thread's mask. Not a scheduling point.
    fn siggetmask() -> c_int = pc { of_running() as c_int }
}
