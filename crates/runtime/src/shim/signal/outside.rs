//! Signals that the kernel delivers. For faults and `abort` the program's handler runs at once. Signals from
//! other processes are only recorded, and taken at a scheduling point.

use super::action::{self, Action, Effect, SA_RESETHAND};
use super::deliver::blocked_in;
use super::pending::code;
use super::{LAST, SIGPIPE, bit, mask, send};
use crate::memory::patch;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::platform::sys::Info;
use crate::sched::alarm;
use crate::sched::arrived_signals::{ARRIVED, arrived};
use crate::sched::events;
use crate::sched::{self, SCHED, me, thread};
use crate::shim::pid;
use crate::wire_log;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst, compiler_fence};
use heisen_trace::{Note, Op};

/// The information of the last signal of each kind. A reader that a signal interrupted reads again.
struct Received(UnsafeCell<[Info; 65]>);

/// Only the handler writes it, and nothing interrupts the handler; readers check that it did not run meanwhile.
static RECEIVED: Guarded<Received> = Guarded::new(Received(UnsafeCell::new([Info::new(0, 0); 65])));
static TIMES: AtomicU64 = AtomicU64::new(0);

/// The kernel's handler for signals that the program handles.
pub extern "C" fn on_outside(signal: c_int, info: *const Info, _context: *const usize) {
    if (1..=LAST).contains(&signal) {
        TIMES.fetch_add(1, SeqCst);
        // SAFETY: the kernel passes a complete `siginfo_t`, and nothing interrupts this handler.
        unsafe { (*RECEIVED.0.get())[signal as usize] = *info };
        ARRIVED.fetch_or(bit(signal), SeqCst);
        // The next scheduling point collects it.
        SCHED.alarm.set(0);
    }
}

/// The kernel's handler of faults and `abort`: calls the program's handler.
pub extern "C" fn on_raised(signal: c_int, info: *mut Info, context: *mut usize) {
    // SAFETY: the kernel passes a complete `siginfo_t`.
    let received = unsafe { &*info };
    if received.is_sent() && !is_from_running(received) {
        return on_outside(signal, info, context);
    }
    if signal == sys::SIGTRAP && !received.is_sent() && patch::leads_on(context) {
        return;
    }
    let action = action::of(signal);
    if action.handler <= 1 {
        return;
    }
    let t = thread(me());
    let blocked = t.blocked.replace(blocked_in(signal, &action, t.blocked.get()));
    if action.flags & SA_RESETHAND != 0 {
        action::set(signal, Action { handler: 0, flags: 0, mask: 0 });
    }
    events::event(Op::Handler, action.handler, t.pc.get());
    // SAFETY: the program installed this function for this signal; what it gets is what the kernel made for it.
    unsafe {
        let handler: extern "C" fn(c_int, *mut Info, *mut usize) = core::mem::transmute(action.handler);
        handler(signal, info, context);
    }
    t.blocked.set(blocked);
}

/// Whether the running thread sent it to itself, as `abort` does. The handler then runs before the call
/// returns.
fn is_from_running(info: &Info) -> bool {
    info.code == code::TKILL && pid::to_seen(info.who[0]) == pid::own()
}

/// A signal came that the runtime uses itself, but the engine did not send it: it is for the program.
pub fn pass_on(signal: c_int, info: *const Info, context: *const usize) {
    let ends = matches!(action::effect(signal), Effect::Terminate);
    if !ends || mask::of_all() & bit(signal) != 0 {
        return on_outside(signal, info, context);
    }
    sys::sigaction(signal, 0);
    // It is blocked until this handler returns.
    sys::kill(sys::getpid(), signal);
}

fn received(signal: c_int) -> Info {
    loop {
        let times = TIMES.load(SeqCst);
        compiler_fence(SeqCst);
        // SAFETY: a copy of plain data; if the handler wrote meanwhile it is read again.
        let info = unsafe { (&raw const (*RECEIVED.0.get())[signal as usize]).read_volatile() };
        compiler_fence(SeqCst);
        if TIMES.load(SeqCst) == times {
            return info;
        }
    }
}

/// Passes recorded signals to threads. Which thread gets one is not a decision, as the arrival is not one
/// either.
pub fn collect() {
    let mut set = ARRIVED.swap(0, SeqCst);
    while set != 0 {
        let signal = set.trailing_zeros() as c_int + 1;
        set &= set - 1;
        hand_out(&received(signal));
    }
}

fn hand_out(info: &Info) {
    let mut info = *info;
    // The sender, or the child that has changed its state.
    info.who[0] = pid::to_seen(info.who[0]);
    // SIGPIPE goes to the thread that wrote to the closed pipe.
    let target = (info.signal == SIGPIPE && !thread(me()).timer.get() && !thread(me()).ended.get()).then(me);
    if info.signal != SIGPIPE {
        wire_log::note(Note::OutsideSignal);
    }
    send::post_choosing(target, &info, 0, send::first_taker);
}

/// Takes signals of the set that are pending in the kernel because all threads blocked them, and which one
/// thread no longer blocks.
pub fn take_from_kernel(set: u64) {
    let set = set & mask::of_kernel();
    if set == 0 {
        return;
    }
    let mut info = Info::new(0, 0);
    while sys::take_signal(set, &raw mut info as usize, false).is_some() {
        hand_out(&info);
    }
}

fn waits_for_one(t: &sched::Thread) -> bool {
    !t.ended.get() && t.op() == Op::SigWait
}

/// Signals for which threads wait in `sigwait` and related functions.
fn awaited() -> u64 {
    let waiting = sched::threads().filter(|(_, t)| waits_for_one(t));
    waiting.fold(0, |set, (_, t)| set | t.awaits.get())
}

/// Passes signals that have arrived to threads, also those that all threads block and for which one waits.
/// Returns whether there were any.
pub fn look_outside() -> bool {
    let awaited = awaited();
    let came = arrived() || awaited != 0 && sys::signals_pending() & awaited != 0;
    if came {
        take_from_kernel(awaited);
        collect();
        alarm::set_alarm();
    }
    came
}

/// Called when no thread can run. If a thread waits for a signal, and the program has started other processes
/// that may send one, waits for it. Returns false if there is nothing to wait for.
pub fn wait_for_outside() -> bool {
    let waits = sched::threads().any(|(_, t)| waits_for_one(t));
    if !SCHED.running.get() || !wire_log::started_others() || !waits {
        return false;
    }
    let awaited = awaited();
    if !arrived() {
        let mut info = Info::new(0, 0);
        // An unblocked signal between the check and the wait would be missed. All handled signals are therefore
        // blocked; the wait accepts those of its set.
        let handled = (1..=LAST).filter(|&s| action::of(s).handler > 1 && super::is_valid(s));
        let handled = handled.fold(0, |set, s| set | bit(s)) & !mask::common();
        sys::signal_mask(Some(mask::common() | handled));
        if !arrived() && sys::take_signal(awaited | handled, &raw mut info as usize, true).is_some() {
            hand_out(&info);
        }
        mask::restore_kernel();
    }
    collect();
    alarm::set_alarm();
    true
}
