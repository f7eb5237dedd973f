//! Delivery of signals: the running thread calls the handlers of the signals that it can take.
//!
//! As in Linux, if several signals are due, the first gets its stack frame first and the others theirs on top
//! of it. The handler of the last signal so runs first, unless the mask of the first one blocks it.
//!
//! `errno` is not saved: a handler that changes it and does not restore it changes it for the thread, as
//! without Heisen.

use super::action::{self, Action, Effect, SA_NODEFER, SA_RESETHAND, SA_RESTART};
use super::{Delivered, pending};
use super::{alt_stack, bit, crash, mask};
use crate::memory::race::order;
use crate::platform::sys;
use crate::platform::sys::Info;
use crate::platform::xsave;
use crate::sched::events;
use crate::sched::object_key::key;
use crate::sched::object_key::space;
use crate::sched::{SCHED, me, thread};
use core::arch::global_asm;
use core::ffi::c_int;
use heisen_trace::Op;

/// `ucontext_t`: it holds no registers, but it holds the mask, and a change that a handler makes to the mask
/// takes effect.
#[repr(C, align(16))]
struct Context {
    words: [u64; 121],
}

const CONTEXT_MASK: usize = 37;
const CONTEXT_RIP: usize = 21;

unsafe extern "C" {
    fn heisen_call_on(stack: usize, handler: usize, signal: c_int, info: *mut Info, context: *mut Context);
}

global_asm!(
    // heisen_call_on(stack, handler, signal, info, context): calls the handler on that stack, or on the current
    // one for 0.
    ".globl heisen_call_on",
    ".hidden heisen_call_on",
    ".type heisen_call_on, @function",
    "heisen_call_on:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "test rdi, rdi",
    "cmovnz rsp, rdi",
    "mov rax, rsi",
    "mov edi, edx",
    "mov rsi, rcx",
    "mov rdx, r8",
    "call rax",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size heisen_call_on, . - heisen_call_on",
);

/// The running thread takes its due signals. It must not be in the middle of a wait.
#[cold]
pub fn deliver() -> Delivered {
    deliver_but(0)
}

/// As [`deliver`], without handling the signals of the set.
pub fn deliver_but(set: u64) -> Delivered {
    let number = me();
    let t = thread(number);
    SCHED.signalled.remove(number);
    let mut first = Delivered::Nothing;
    while let Some(mut info) = pending::take(number, !t.blocked.get() & !set) {
        order::acquire(key(space::SIGNAL, info.signal as usize));
        match action::effect(info.signal) {
            Effect::Ignore | Effect::Stop => {}
            Effect::Terminate => die(info.signal),
            Effect::Handle(action) => {
                if first == Delivered::Nothing {
                    let restarts = action.flags & SA_RESTART != 0;
                    first = if restarts { Delivered::Restart } else { Delivered::Interrupt };
                }
                call(&mut info, action);
            }
        }
    }
    first
}

/// Calls a handler at a scheduling point of the running thread.
fn call(info: &mut Info, action: Action) {
    let t = thread(me());
    let signal = info.signal;
    let before = (t.op(), t.object.get(), t.pc.get(), t.blocked.get());
    if action.flags & SA_RESETHAND != 0 {
        action::set(signal, Action { handler: 0, flags: 0, mask: 0 });
    }
    t.blocked.set(blocked_in(signal, &action, before.3));
    pending::hand_on(me());
    // Other due signals get their frames on top.
    deliver();
    let mut context = Context { words: [0; 121] };
    context.words[CONTEXT_MASK] = before.3;
    context.words[CONTEXT_RIP] = before.2 as u64;
    let on = if action.flags & sys::SA_ONSTACK != 0 { alt_stack::unused_end(t) } else { None };
    events::event(Op::Handler, action.handler, before.2);
    // SAFETY: the program installed this function for this signal; the stack is its own, or this one.
    let mut run = || unsafe {
        heisen_call_on(on.unwrap_or(0), action.handler, signal, info, &raw mut context);
    };
    if t.mid_function.replace(false) {
        let control = xsave::control();
        xsave::preserved(run);
        xsave::set_control(control);
        t.mid_function.set(true);
    } else {
        run();
    }
    t.blocked.set(mask::blockable(context.words[CONTEXT_MASK]));
    if mask::of_kernel() != 0 {
        mask::tell_kernel();
    }
    t.about_to(before.0, before.1, before.2);
}

/// The signals that are blocked while a handler runs.
pub fn blocked_in(signal: c_int, action: &Action, blocked: u64) -> u64 {
    let own = if action.flags & SA_NODEFER != 0 { 0 } else { bit(signal) };
    mask::blockable(blocked | action.mask | own)
}

/// The signal ends the program. The kernel does it, so that the exit status is right.
pub fn die(signal: c_int) -> ! {
    if signal != sys::SIGKILL {
        action::set(signal, Action { handler: 0, flags: 0, mask: 0 });
    }
    if crash::default_handler(signal) == 0 {
        sys::sigaction(signal, 0);
    }
    sys::signal_mask(Some(0));
    sys::kill(sys::getpid(), signal);
    sys::exit_group(128 + signal)
}
