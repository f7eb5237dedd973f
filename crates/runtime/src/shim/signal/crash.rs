//! Signals that the runtime handles itself. By one of them the engine asks where a program is that makes no
//! progress. In a close-up, crashes are handled, too.

use super::{action, bit, mask, outside};
use crate::carrier::handler_stack;
use crate::memory::patch;
use crate::platform::sys;
use crate::platform::sys::Info;
use crate::sched::SCHED;
use crate::sched::pause;
use crate::wire_log;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::stop;

/// Sets up the runtime's alternate stack and the handler of the engine's question.
pub fn init() {
    handler_stack::give_first();
    sys::sigaction(sys::SIGSTKFLT, on_question as *const () as usize);
    crate::sched::spin::init();
}

/// Signals of faults.
pub const CRASHES: [i32; 5] = [sys::SIGSEGV, sys::SIGBUS, sys::SIGFPE, sys::SIGILL, sys::SIGTRAP];

/// Handles crashes, so that the engine can see where they happened.
pub fn catch_crashes() {
    for signal in CRASHES {
        action::install(signal);
    }
}

/// The handler of a signal for which the program has none. It is the runtime's if the engine wants to see such
/// crashes, or if the signal may be a breakpoint of the runtime.
pub fn default_handler(signal: c_int) -> usize {
    let seen = SCHED.active.get() && SCHED.running.get() && wire_log::stops();
    let trap = signal == sys::SIGTRAP && patch::has_traps();
    if trap || seen && CRASHES.contains(&signal) { on_crash as *const () as usize } else { 0 }
}

/// Stores the registers from the context that the kernel passes to a handler, in the order of
/// `Stop::registers`.
fn take_registers(context: *const usize) {
    // Words of `ucontext_t`: five before the general registers, which start r8, r9, r10, r11.
    const GENERAL: usize = 5;
    const ORDER: [usize; 8] = [16, 15, 10, 11, 4, 5, 6, 7];
    for (slot, index) in wire_log::wire().stop.registers.iter().zip(ORDER) {
        // SAFETY: the kernel passes a complete `ucontext_t`.
        slot.store(unsafe { *context.add(GENERAL + index) } as u64, Relaxed);
    }
}

extern "C" fn on_question(signal: c_int, info: *const Info, context: *const usize) {
    if !SCHED.active.get() {
        return;
    }
    if !wire_log::is_from_engine(signal) {
        return outside::pass_on(signal, info, context);
    }
    take_registers(context);
    pause::pause_with(stop::STUCK);
}

extern "C" fn on_crash(signal: c_int, info: *const Info, context: *mut usize) {
    // SAFETY: the kernel passes a complete `siginfo_t`.
    let sent = unsafe { (*info).is_sent() };
    if !sent && signal == sys::SIGTRAP && patch::leads_on(context) || sent && action::is_ignored(signal) {
        return;
    }
    if sent && SCHED.active.get() && mask::of_all() & bit(signal) != 0 {
        // All threads of the program block it; it arrived only because the runtime does not block it.
        return outside::on_outside(signal, info, context);
    }
    // The default action from here on: returning causes the same fault again.
    for signal in CRASHES {
        sys::sigaction(signal, 0);
    }
    if SCHED.active.get() && wire_log::stops() {
        take_registers(context);
        let stop = &wire_log::wire().stop;
        stop.signal.store(signal as u64, Relaxed);
        // SAFETY: the kernel passes a complete `siginfo_t`; the address is its third word.
        let address = unsafe { *info.cast::<u64>().add(2) };
        stop.address.store(address, Relaxed);
        wire_log::crashed(address as usize);
        pause::pause_with(stop::CRASH);
    }
    // A breakpoint does not fault again: the code after it would run.
    if sent || signal == sys::SIGTRAP {
        sys::kill(sys::getpid(), signal);
    }
}
