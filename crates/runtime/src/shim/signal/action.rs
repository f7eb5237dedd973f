//! Actions of signals: what the program wants done for each signal. The kernel gets only the settings that it
//! needs. It ignores the signals that the program ignores, so that children inherit that; it has the default
//! action for signals without a handler. For handlers it calls the runtime, see `outside`.

use super::{INTERNAL, SIGSTOP, bit, crash, is_valid, outside, pending};
use crate::memory::patch;
use crate::platform::{glibc, sys};
use crate::shim::shims;
use crate::wire_log;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use heisen_wire::access::NO_OVERFLOW_HANDLER;

pub const SA_NOCLDSTOP: i32 = 1;
pub const SA_NOCLDWAIT: i32 = 2;
pub const SA_RESTART: i32 = 0x1000_0000;
pub const SA_NODEFER: i32 = 0x4000_0000;
pub const SA_RESETHAND: i32 = i32::MIN;

/// Values that stand for no handler.
const DEFAULT: usize = 0;
const IGNORE: usize = 1;
/// SIG_HOLD, which `sigset` takes and returns for a blocked signal.
const HOLD: usize = 2;
/// SIG_ERR.
const ERROR: usize = usize::MAX;

/// What is done for a signal.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub handler: usize,
    pub flags: i32,
    /// Signals that are blocked while the handler runs.
    pub mask: u64,
}

/// What happens when a signal is delivered.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    Handle(Action),
    Ignore,
    Terminate,
    Stop,
}

const NOTHING: Action = Action { handler: DEFAULT, flags: 0, mask: 0 };

/// An action, in atomic words, which signal handlers and parallel threads may read.
struct Slot {
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

impl Slot {
    fn get(&self) -> Action {
        Action {
            handler: self.handler.load(Relaxed),
            flags: self.flags.load(Relaxed),
            mask: self.mask.load(Relaxed),
        }
    }

    fn set(&self, action: Action) {
        self.handler.store(action.handler, Relaxed);
        self.flags.store(action.flags, Relaxed);
        self.mask.store(action.mask, Relaxed);
    }
}

/// Only the kernel thread that holds the baton writes it.
static ACTIONS: [Slot; 65] = [const {
    Slot {
        handler: AtomicUsize::new(NOTHING.handler),
        flags: AtomicI32::new(NOTHING.flags),
        mask: AtomicU64::new(NOTHING.mask),
    }
}; 65];

/// Signals that the kernel raises in the running thread because of an instruction or `abort`.
pub const RAISED: [i32; 7] =
    [sys::SIGSEGV, sys::SIGBUS, sys::SIGFPE, sys::SIGILL, sys::SIGTRAP, sys::SIGSYS, sys::SIGABRT];

/// glibc's `struct sigaction`.
#[repr(C)]
#[derive(Debug)]
pub struct Sigaction {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

/// The program's action for a signal.
pub fn of(signal: c_int) -> Action {
    ACTIONS[signal as usize].get()
}

/// Whether the program ignores it.
pub fn is_ignored(signal: c_int) -> bool {
    of(signal).handler == IGNORE
}

/// What happens when this signal is delivered.
pub fn effect(signal: c_int) -> Effect {
    const IGNORED: u64 = bit(17) | bit(18) | bit(23) | bit(28);
    const STOPS: u64 = bit(SIGSTOP) | bit(20) | bit(21) | bit(22);
    match of(signal) {
        Action { handler: DEFAULT, .. } if IGNORED & bit(signal) != 0 => Effect::Ignore,
        Action { handler: DEFAULT, .. } if STOPS & bit(signal) != 0 => Effect::Stop,
        Action { handler: DEFAULT, .. } => Effect::Terminate,
        Action { handler: IGNORE, .. } => Effect::Ignore,
        action => Effect::Handle(action),
    }
}

/// Reads the actions that are installed already: inherited ones, and those of libraries.
pub fn init() {
    for signal in (1..=super::LAST).filter(|&signal| is_valid(signal) && signal != sys::SIGSTKFLT) {
        let (handler, flags, mask) = sys::action(signal);
        ACTIONS[signal as usize].set(Action { handler, flags, mask });
        if handler > IGNORE {
            install(signal);
        }
    }
}

/// Sets the program's action for a signal.
pub fn set(signal: c_int, action: Action) {
    ACTIONS[signal as usize].set(action);
    install(signal);
    if matches!(effect(signal), Effect::Ignore) {
        pending::forget(signal);
    }
}

/// Passes the action on to the kernel. The handler of the engine's own signal stays.
pub fn install(signal: c_int) {
    let action = of(signal);
    let kept = action.flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART);
    match action.handler {
        _ if signal == sys::SIGSTKFLT => {}
        DEFAULT => match crash::default_handler(signal) {
            0 => sys::set_action(signal, DEFAULT, kept, 0),
            handler => sys::sigaction(signal, handler),
        },
        IGNORE if signal == sys::SIGTRAP && patch::has_traps() => {
            sys::sigaction(signal, crash::default_handler(signal));
        }
        IGNORE => sys::set_action(signal, IGNORE, kept, 0),
        _ if RAISED.contains(&signal) => {
            let flags = kept | action.flags & (sys::SA_ONSTACK | SA_NODEFER) | sys::SA_SIGINFO;
            // The handler may itself hit a breakpoint of the runtime.
            let flags = if signal == sys::SIGTRAP && patch::has_traps() { flags | SA_NODEFER } else { flags };
            let mask = patch::passable(action.mask);
            sys::set_action(signal, outside::on_raised as *const () as usize, flags, mask);
        }
        _ => {
            let flags = kept | sys::SA_ONSTACK | sys::SA_SIGINFO;
            sys::set_action(signal, outside::on_outside as *const () as usize, flags, u64::MAX);
        }
    }
}

/// Passes the program's own action on to the kernel, as if there were no runtime.
pub fn hand_over(signal: c_int) {
    let action = of(signal);
    // Ignored and default actions are in the kernel already, except for crashes that the engine wants to see.
    let trapped = signal == sys::SIGTRAP && patch::has_traps();
    let ours = crash::CRASHES.contains(&signal) || signal == sys::SIGSTKFLT;
    if !trapped && (action.handler > IGNORE || ours) {
        sys::set_action(signal, action.handler, action.flags, action.mask);
    }
}

/// Whether a program that asks for the action of a signal is told that the signal is ignored, because it would install a
/// handler otherwise.
fn hides_default(signal: c_int) -> bool {
    let asked = wire_log::wire().access_flags.load(Relaxed) & NO_OVERFLOW_HANDLER != 0;
    asked && matches!(signal, sys::SIGSEGV | sys::SIGBUS)
}

fn change(signal: c_int, handler: usize, flags: i32) -> usize {
    if !is_valid(signal) || handler == ERROR || signal == SIGSTOP || signal == sys::SIGKILL {
        glibc::set_errno(sys::EINVAL);
        return ERROR;
    }
    let old = of(signal).handler;
    set(signal, Action { handler, flags, mask: 0 });
    old
}

shims! {
    /// Sets the action for a signal, for all threads. If the signal is now ignored, discards pending ones. Not
    /// a scheduling point.
    fn sigaction(signal: c_int, new: *const Sigaction, old: *mut Sigaction) -> c_int = pc {
        let fixed = signal == SIGSTOP || signal == sys::SIGKILL;
        if !is_valid(signal) || fixed && !new.is_null() {
            return glibc::result(sys::EINVAL);
        }
        // `new` and `old` may be the same address.
        // SAFETY: the program passes one, or null.
        let new = unsafe { new.as_ref() }.map(|new| Action {
            handler: new.handler,
            flags: new.flags,
            mask: super::mask::blockable(new.mask[0]),
        });
        // SAFETY: the program passes room for one, or null.
        if let Some(old) = unsafe { old.as_mut() } {
            let mut now = of(signal);
            if new.is_none() && now.handler == DEFAULT && hides_default(signal) {
                now.handler = IGNORE;
            }
            (old.handler, old.flags) = (now.handler, now.flags);
            old.mask = [0; 16];
            old.mask[0] = now.mask;
        }
        if let Some(new) = new {
            set(signal, new);
        }
        0
    }

    /// As `sigaction` with SA_RESTART.
    fn signal(number: c_int, handler: usize) -> usize = pc { change(number, handler, SA_RESTART) }

    /// As `signal`.
    fn bsd_signal(number: c_int, handler: usize) -> usize = pc { change(number, handler, SA_RESTART) }

    /// As `signal`.
    fn ssignal(number: c_int, handler: usize) -> usize = pc { change(number, handler, SA_RESTART) }

    /// As `sigaction` with SA_RESETHAND and SA_NODEFER.
    fn sysv_signal(number: c_int, handler: usize) -> usize = pc {
        change(number, handler, SA_RESETHAND | SA_NODEFER)
    }

    /// As `sysv_signal`.
    fn __sysv_signal(number: c_int, handler: usize) -> usize = pc {
        change(number, handler, SA_RESETHAND | SA_NODEFER)
    }

    /// Ignores a signal, as by `sigaction`.
    fn sigignore(number: c_int) -> c_int = pc {
        if change(number, IGNORE, 0) == ERROR { -1 } else { 0 }
    }

    /// Sets the action for a signal and unblocks it, or, for SIG_HOLD, blocks it. Not a scheduling point.
    fn sigset(number: c_int, handler: usize) -> usize = pc {
        if !is_valid(number) {
            glibc::set_errno(sys::EINVAL);
            return ERROR;
        }
        let blocked = super::mask::of_running();
        let mut old = of(number).handler;
        if handler != HOLD {
            old = change(number, handler, 0);
            if old == ERROR {
                return old;
            }
        }
        super::mask::set(if handler == HOLD { blocked | bit(number) } else { blocked & !bit(number) });
        if blocked & bit(number) != 0 { HOLD } else { old }
    }

    /// Sets whether a handler interrupts waiting calls or restarts them. Not a scheduling point.
    fn siginterrupt(number: c_int, interrupts: c_int) -> c_int = pc {
        if !is_valid(number) || INTERNAL.contains(&number) {
            return glibc::result(sys::EINVAL);
        }
        let action = of(number);
        let flags = if interrupts != 0 { action.flags & !SA_RESTART } else { action.flags | SA_RESTART };
        set(number, Action { flags, ..action });
        0
    }
}
