//! System calls on signals.

use super::call;
use super::numbers::{
    SYS_RT_SIGACTION, SYS_RT_SIGPENDING, SYS_RT_SIGPROCMASK, SYS_RT_SIGQUEUEINFO, SYS_RT_SIGTIMEDWAIT,
    SYS_SIGALTSTACK,
};

/// `siginfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub signal: i32,
    pub error: i32,
    pub code: i32,
    pub pad: i32,
    /// Depending on how it was sent: process and user id, or timer and overruns; then the value.
    pub who: [i32; 2],
    pub value: usize,
    pub rest: [u64; 12],
}

impl Info {
    /// A signal without further information.
    pub const fn new(signal: i32, code: i32) -> Info {
        Info { signal, error: 0, code, pad: 0, who: [0; 2], value: 0, rest: [0; 12] }
    }

    /// Whether a process sent it, rather than the kernel because of an instruction of the program.
    pub fn is_sent(&self) -> bool {
        self.code <= 0
    }
}

/// The set that contains only this signal.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SignalStack {
    pub base: usize,
    pub flags: i32,
    pub size: usize,
}

pub fn sigaltstack(stack: &SignalStack) {
    call(SYS_SIGALTSTACK, [core::ptr::from_ref(stack) as usize, 0, 0, 0, 0, 0]);
}

#[repr(C)]
struct KernelSigaction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

core::arch::global_asm!(
    ".globl heisen_sigreturn",
    ".hidden heisen_sigreturn",
    "heisen_sigreturn:",
    "mov eax, 15",
    "syscall",
    "ud2",
);

unsafe extern "C" {
    fn heisen_sigreturn();
}

/// The code by which handlers return: its start, and its size up to the address after its system call.
pub fn sigreturn_code() -> (usize, usize) {
    (heisen_sigreturn as *const () as usize, 9)
}

/// The kernel's action for a signal in its own layout: handler, flags, restorer, mask. Sets it, if there is a
/// new one.
pub fn raw_action(signal: i32, new: Option<[usize; 4]>) -> [usize; 4] {
    let mut old = [0usize; 4];
    let at = new.as_ref().map_or(0, |new| new.as_ptr() as usize);
    call(SYS_RT_SIGACTION, [signal as usize, at, old.as_mut_ptr() as usize, 8, 0, 0]);
    old
}

pub const SA_SIGINFO: i32 = 4;
pub const SA_ONSTACK: i32 = 0x0800_0000;
const SA_RESTORER: i32 = 0x0400_0000;

/// Installs a signal handler that runs on the alternate stack; 0 restores the default.
pub fn sigaction(signal: i32, handler: usize) {
    let flags = if handler == 0 { 0 } else { SA_SIGINFO | SA_ONSTACK };
    set_action(signal, handler, flags, 0);
}

/// Installs a signal handler with these flags, and with these signals blocked while it runs.
pub fn set_action(signal: i32, handler: usize, flags: i32, mask: u64) {
    let restorer = heisen_sigreturn as *const () as usize;
    let action = KernelSigaction { handler, flags: (flags | SA_RESTORER) as usize, restorer, mask };
    call(SYS_RT_SIGACTION, [signal as usize, &raw const action as usize, 0, 8, 0, 0]);
}

/// The kernel's handler of a signal, with its flags and mask.
pub fn action(signal: i32) -> (usize, i32, u64) {
    let mut action = KernelSigaction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    call(SYS_RT_SIGACTION, [signal as usize, 0, &raw mut action as usize, 8, 0, 0]);
    (action.handler, action.flags as i32 & !SA_RESTORER, action.mask)
}

/// Sets the kernel's mask of blocked signals, unless `new` is `None`; returns the previous mask.
pub fn signal_mask(new: Option<u64>) -> u64 {
    const SIG_SETMASK: usize = 2;
    let mut old = 0u64;
    let at = new.as_ref().map_or(0, |new| core::ptr::from_ref(new) as usize);
    call(SYS_RT_SIGPROCMASK, [SIG_SETMASK, at, &raw mut old as usize, 8, 0, 0]);
    old
}

/// The signals that are pending in the kernel because they are blocked there.
pub fn signals_pending() -> u64 {
    let mut set = 0u64;
    call(SYS_RT_SIGPENDING, [&raw mut set as usize, 8, 0, 0, 0, 0]);
    set
}

/// Takes a signal of the set that is pending in the kernel, and writes its information to `info`. If none is
/// pending, returns `None` at once; with `wait`, it waits for one, and returns `None` if a handler has run.
pub fn take_signal(set: u64, info: usize, wait: bool) -> Option<i32> {
    let now = [0u64; 2];
    let timeout = if wait { 0 } else { now.as_ptr() as usize };
    let got = call(SYS_RT_SIGTIMEDWAIT, [&raw const set as usize, info, timeout, 8, 0, 0]);
    (got > 0).then_some(got as i32)
}

/// Sends a signal to this process again, with the information at `info`.
pub fn send_again(signal: i32, info: usize) {
    call(SYS_RT_SIGQUEUEINFO, [super::getpid() as usize, signal as usize, info, 0, 0, 0]);
}
