//! Handles the two signals by which a runner observes its execution: SIGSYS at a system call, SIGSEGV at the
//! first write to a page.
//!
//! The program may use both signals, too. The runner records which actions the program wants for them. They
//! take effect when the runner gives up control of the execution. Only signals that the kernel raised belong
//! to the runner. If anyone sends one of these signals, the runner gives up control and sends the signal
//! again.

use super::calls::{Fate, SEEN, UNSEEN, make_way};
use super::snapshot::PAGE;
use super::{control, leave};
use crate::memory::patch;
use crate::platform::sys;
use crate::platform::sys::Info;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::runner;

/// The two signals, as bits of a mask. They must never be blocked.
pub const OURS: u64 = 1 << (sys::SIGSYS - 1) | 1 << (sys::SIGSEGV - 1);

const SIGNALS: [i32; 2] = [sys::SIGSYS, sys::SIGSEGV];

/// Indices of words of `ucontext_t`: the general registers begin here, with r8.
const REGISTERS: usize = 5;
const RSP: usize = REGISTERS + 15;
const RIP: usize = REGISTERS + 16;
/// The blocked signals that hold after the handler has returned.
const MASK: usize = 37;

/// An action in the layout of the kernel: handler, flags, restorer, mask.
type Action = [usize; 4];

/// What the program wants for the two signals, at the start of an execution and now.
pub struct Own {
    first: [Cell<Action>; 2],
    now: [Cell<Action>; 2],
    /// Which of the two signals the program blocks.
    blocked_first: Cell<u64>,
    blocked: Cell<u64>,
}

impl Own {
    /// Records what the program wants, and installs the runner's handlers. Returns the mask of blocked
    /// signals without the two.
    pub fn begin(&self) -> u64 {
        const SA_NODEFER: i32 = 0x4000_0000;
        let flags = sys::SA_SIGINFO | sys::SA_ONSTACK | SA_NODEFER;
        for (place, signal) in self.now.iter().zip(SIGNALS) {
            place.set(sys::raw_action(signal, None));
        }
        sys::set_action(sys::SIGSYS, on_call as *const () as usize, flags, 0);
        sys::set_action(sys::SIGSEGV, on_fault as *const () as usize, flags, 0);
        for signal in (1..=64).filter(|signal| !SIGNALS.contains(signal)) {
            // The runner must also see system calls in a signal handler of the program.
            let action = sys::raw_action(signal, None);
            if action[3] & OURS as usize != 0 {
                sys::raw_action(signal, Some([action[0], action[1], action[2], action[3] & !OURS as usize]));
            }
        }
        let mask = sys::signal_mask(None);
        self.blocked.set(mask & OURS);
        self.stay();
        sys::signal_mask(Some(mask & !OURS));
        mask & !OURS
    }

    /// Makes the program's present actions and mask those at the start of each execution.
    pub fn stay(&self) {
        for (first, now) in self.first.iter().zip(&self.now) {
            first.set(now.get());
        }
        self.blocked_first.set(self.blocked.get());
    }

    /// Undoes what an execution has changed.
    pub fn undo(&self) {
        for (first, now) in self.first.iter().zip(&self.now) {
            now.set(first.get());
        }
        self.blocked.set(self.blocked_first.get());
    }

    /// The action that the program wants for this signal, if it is one of the two.
    pub fn action(&self, signal: c_int) -> Option<&Cell<Action>> {
        SIGNALS.iter().position(|&own| own == signal).map(|index| &self.now[index])
    }

    /// The program changes its blocked signals, as by `rt_sigprocmask`.
    pub fn block(&self, how: usize, set: u64) {
        const SIG_BLOCK: usize = 0;
        const SIG_UNBLOCK: usize = 1;
        self.blocked.set(
            OURS & match how {
                SIG_BLOCK => self.blocked.get() | set,
                SIG_UNBLOCK => self.blocked.get() & !set,
                _ => set,
            },
        );
    }

    /// The runner has given up control. After the handler with this context has returned, the signals are the
    /// program's.
    fn hand_over(&self, context: *mut usize) {
        for (now, signal) in self.now.iter().zip(SIGNALS) {
            sys::raw_action(signal, Some(now.get()));
        }
        // SAFETY: the kernel passes a complete `ucontext_t`.
        unsafe { *context.add(MASK) |= self.blocked.get() as usize };
    }
}

/// One of the two signals came, but not from the kernel. Gives up control; the program receives the signal
/// where it was interrupted.
fn pass_on(info: *const Info, context: *mut usize) {
    let c = control();
    leave(c, runner::SIGNAL);
    c.calls.own.hand_over(context);
    // The signal must not arrive before this handler has returned.
    sys::signal_mask(Some(u64::MAX));
    // SAFETY: the kernel passes a complete `siginfo_t`.
    let signal = unsafe { (*info).signal };
    sys::send_again(signal, info as usize);
}

/// Handles a system call of the program or of the runtime.
pub extern "C" fn on_call(_signal: c_int, info: *const Info, context: *mut usize) {
    const RAX: usize = REGISTERS + 13;
    const ARGUMENTS: [usize; 6] =
        [REGISTERS + 8, REGISTERS + 9, REGISTERS + 12, REGISTERS + 2, REGISTERS, REGISTERS + 1];
    const SYSCALL_LENGTH: usize = 2;
    const RT_SIGPROCMASK: usize = 14;
    /// The code of a call that the kernel has handed over.
    const SYS_USER_DISPATCH: c_int = 2;
    let c = control();
    c.selector.store(UNSEEN, Relaxed);
    // SAFETY: the kernel passes a complete `siginfo_t`.
    if unsafe { (*info).code } != SYS_USER_DISPATCH {
        return pass_on(info, context);
    }
    // SAFETY: the kernel passes a complete `ucontext_t`.
    let word = |index: usize| unsafe { &mut *context.add(index) };
    let number = *word(RAX);
    let args = ARGUMENTS.map(|index| *word(index));
    let result = match c.calls.fate(number, args) {
        Fate::Made => {
            make_way(args);
            sys::call(number, args)
        }
        Fate::Done(result) => result,
        Fate::Leaves => {
            leave(c, runner::CALL + number as u32);
            c.calls.own.hand_over(context);
            // The program makes the call itself, by executing the instruction again.
            *word(RIP) -= SYSCALL_LENGTH;
            return;
        }
    };
    *word(RAX) = result as usize;
    if number == RT_SIGPROCMASK {
        // The mask that holds after the handler has returned.
        *word(MASK) = sys::signal_mask(None) as usize;
    }
    if c.left.get() {
        c.calls.own.hand_over(context);
    } else {
        c.selector.store(SEEN, Relaxed);
    }
}

/// Handles a fault: a write to a page that the snapshot protects, or a crash of the program.
pub extern "C" fn on_fault(_signal: c_int, info: *const Info, context: *mut usize) {
    /// The code if the kernel itself ran into the fault. Then there is no address.
    const SI_KERNEL: c_int = 0x80;
    /// More than the kernel puts on the stack for a handler.
    const FRAME: usize = 4 * PAGE;
    /// The index of the address in the words of `siginfo_t`.
    const ADDRESS: usize = 2;
    let c = control();
    let seen = c.selector.load(Relaxed);
    c.selector.store(UNSEEN, Relaxed);
    // SAFETY: the kernel passes a complete `siginfo_t`.
    let (address, code) = unsafe { (*info.cast::<usize>().add(ADDRESS), (*info).code) };
    if code <= 0 {
        return pass_on(info, context);
    }
    // SAFETY: the kernel passes a complete `ucontext_t`.
    let stack = unsafe { *context.add(RSP) };
    if code == SI_KERNEL && c.snapshot.will_write(stack.saturating_sub(FRAME), FRAME) {
        // The kernel could not call a handler on the stack of the thread, and has lost the signal. The signal
        // of a breakpoint is handled here instead. The engine repeats the signal that it sends to a spinning
        // thread. Apart from signals from outside, no other handler runs on that stack.
        patch::leads_on(context);
        c.selector.store(seen, Relaxed);
        return;
    }
    let no_room = c.snapshot.covers_more(address);
    if no_room || !c.snapshot.written(address) {
        // When the instruction is tried again, the action of the program takes place, or the default action.
        leave(c, if no_room { runner::TOO_LARGE } else { runner::CRASH });
        c.calls.own.hand_over(context);
        return;
    }
    c.selector.store(seen, Relaxed);
}
