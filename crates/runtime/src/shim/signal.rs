//! Signals, as far as the runtime needs them itself: one by which the engine asks where a program that does not move
//! is, and, in a replay that looks closely, the crashes. Alternate signal stacks belong to a kernel thread, of which
//! there is one: the program is told what it set, per thread, while handlers run on a stack of the runtime's.

use super::shims;
use crate::glibc;
use crate::report;
use crate::sched::{self, S};
use crate::sys::{self, SignalStack};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::stop;

const STACK_SIZE: usize = 256 << 10;
const SS_ONSTACK: i32 = 1;
const SS_DISABLE: i32 = 2;
const MIN_STACK: usize = 2048;
const ENOMEM: i32 = 12;

/// The beginning, with the flags, of glibc's `struct sigaction`.
#[repr(C)]
#[derive(Debug)]
pub struct Sigaction {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
}

/// Sets up the runtime's alternate stack and the engine's question.
pub fn init() {
    if let Some(base) = sys::map_stack(STACK_SIZE) {
        sys::sigaltstack(&SignalStack { base, flags: 0, size: STACK_SIZE });
    }
    sys::sigaction(sys::SIGSTKFLT, on_question as *const () as usize);
}

const CRASHES: [i32; 5] = [sys::SIGSEGV, sys::SIGBUS, sys::SIGFPE, sys::SIGILL, sys::SIGTRAP];

/// Catches signals that kill, to show the engine where they came from.
pub fn catch_crashes() {
    for signal in CRASHES {
        sys::sigaction(signal, on_crash as *const () as usize);
    }
}

/// Registers out of the context that the kernel hands to a handler, in the order of `Stop::registers`.
fn take_registers(context: *const usize) {
    // Words of `ucontext_t`: five before the general registers, which start r8, r9, r10, r11.
    const GENERAL: usize = 5;
    const ORDER: [usize; 8] = [16, 15, 10, 11, 4, 5, 6, 7];
    for (slot, index) in report::wire().stop.registers.iter().zip(ORDER) {
        // SAFETY: the kernel passes a whole `ucontext_t`.
        slot.store(unsafe { *context.add(GENERAL + index) } as u64, Relaxed);
    }
}

extern "C" fn on_question(_signal: c_int, _info: *const usize, context: *const usize) {
    if !S.active.get() {
        return;
    }
    take_registers(context);
    report::pause_with(stop::STUCK);
}

extern "C" fn on_crash(signal: c_int, info: *const usize, context: *const usize) {
    // The default action from here on: returning runs into the same fault again.
    for signal in CRASHES {
        sys::sigaction(signal, 0);
    }
    if S.active.get() {
        take_registers(context);
        let stop = &report::wire().stop;
        stop.signal.store(signal as u64, Relaxed);
        // SAFETY: the kernel passes a whole `siginfo_t`; the address is its third word.
        stop.address.store(unsafe { *info.add(2) } as u64, Relaxed);
        report::pause_with(stop::CRASH);
    }
    // SAFETY: as above; the code is the third 32-bit word. Codes of 0 and below are sent, not raised by a fault.
    if unsafe { *info.cast::<i32>().add(2) } <= 0 {
        sys::kill(sys::getpid(), signal);
    }
}

/// Whether this is our own handler of crashes, which the program shall not see: Rust, for one, catches overflows of
/// stacks only if nobody else does.
fn is_ours(handler: usize) -> bool {
    handler == on_crash as *const () as usize
}

shims! {
    /// No scheduling point. Set as it is; the runtime's own handlers are not seen.
    fn sigaction(signal: c_int, new: usize, old: *mut Sigaction) -> c_int = pc {
        let result = glibc::real!(sigaction, fn(signal => c_int, new => usize, old => *mut Sigaction) -> c_int);
        if result == 0 && !old.is_null() {
            // SAFETY: the program passes room for one, or null, and the real function has filled it.
            let old = unsafe { &mut *old };
            if is_ours(old.handler) {
                (old.handler, old.flags) = (0, 0);
            }
        }
        result
    }

    /// No scheduling point. Set as it is; the runtime's own handlers are not seen.
    fn signal(number: c_int, handler: usize) -> usize = pc {
        let old = glibc::real!(signal, fn(number => c_int, handler => usize) -> usize);
        if is_ours(old) { 0 } else { old }
    }

    /// No scheduling point. Remembered for each thread; handlers run on a stack of the runtime's.
    fn sigaltstack(new: *const SignalStack, old: *mut SignalStack) -> c_int = pc {
        let t = sched::thread(sched::me());
        if !old.is_null() {
            let flags = if t.alt_size.get() == 0 { SS_DISABLE } else { 0 };
            // SAFETY: the program passes room for one, or null.
            unsafe { *old = SignalStack { base: t.alt_base.get(), flags, size: t.alt_size.get() } };
        }
        if !new.is_null() {
            // SAFETY: the program passes one, or null.
            let new = unsafe { *new };
            if new.flags & SS_DISABLE != 0 {
                t.alt_base.set(0);
                t.alt_size.set(0);
            } else if new.flags & !SS_ONSTACK != 0 {
                return glibc::result(sys::EINVAL);
            } else if new.size < MIN_STACK {
                return glibc::result(ENOMEM);
            } else {
                t.alt_base.set(new.base);
                t.alt_size.set(new.size);
            }
        }
        0
    }
}
