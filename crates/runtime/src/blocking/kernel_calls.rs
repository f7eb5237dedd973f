//! Calls that block in the kernel without a descriptor to poll: waiting for a child, for a file lock, for a
//! System V semaphore. Each runs on a kernel thread of its own, which makes this one call and ends. Meanwhile
//! the calling thread is disabled and the other threads run.
//!
//! That kernel thread has no thread-local storage, so only the bare system call may run on it; all signals are
//! blocked there. The scheduler does not control when the call returns, which is noted.

use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::{self, Woken, hooks, recurrence};
use crate::wire_log;
use core::arch::global_asm;
use core::cell::Cell;
use core::sync::atomic::{AtomicIsize, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use heisen_trace::{Note, Op};

/// The largest number of calls in progress. A further call blocks all threads.
const MAX: usize = 64;
const STACK: usize = 16 << 10;

/// The kernel stores this when the kernel thread has ended, and wakes whoever waits for it.
const BACK: u32 = 0;
const OUT: u32 = 1;
const FREE: u32 = 2;

/// One call in progress.
#[repr(C)]
struct Errand {
    state: AtomicU32,
    result: AtomicIsize,
    number: Cell<usize>,
    args: [Cell<usize>; 6],
    /// The address of its stack, which is reused for the next call.
    stack: Cell<usize>,
    /// The thread that waits for it.
    thread: Cell<usize>,
}

struct Errands {
    all: [Errand; MAX],
    /// How many are in progress, or have returned and were not yet noticed by the waiting thread.
    count: Cell<usize>,
}

/// The kernel thread that makes a call gets a reference to its entry. The fields that are not atomic are
/// written only while the entry has no call in progress.
static ERRANDS: Guarded<Errands> = Guarded::new(Errands {
    all: [const {
        Errand {
            state: AtomicU32::new(FREE),
            result: AtomicIsize::new(0),
            number: Cell::new(0),
            args: [const { Cell::new(0) }; 6],
            stack: Cell::new(0),
            thread: Cell::new(0),
        }
    }; MAX],
    count: Cell::new(0),
});

unsafe extern "C" {
    fn heisen_clone_helper(flags: usize, stack: usize, run: usize, what: usize, cleared: usize) -> isize;
}

global_asm!(
    // heisen_clone_helper(flags, stack, run, what, cleared): in the new kernel thread, calls run(what) on the new
    // stack. When it ends, the kernel clears the word at `cleared` and wakes the futex there.
    ".globl heisen_clone_helper",
    ".hidden heisen_clone_helper",
    "heisen_clone_helper:",
    "push r12",
    "mov r12, rdx",
    "mov r9, rcx",
    "mov r10, r8",
    "xor edx, edx",
    "xor r8d, r8d",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jz 2f",
    "pop r12",
    "ret",
    "2:",
    "xor ebp, ebp",
    "mov rdi, r9",
    "call r12",
    "ud2",
);

/// Calls `run` on a new kernel thread without thread-local storage, on a stack of `size` bytes at `stack`.
/// When it has ended, `ended` is [`BACK`]. Returns whether the kernel thread was started.
fn spawn(stack: usize, size: usize, run: usize, what: usize, ended: Option<&'static AtomicU32>) -> bool {
    const CLONE_VM_FS_FILES_SIGHAND: usize = 0xf00;
    const CLONE_THREAD: usize = 0x1_0000;
    const CLONE_SYSVSEM: usize = 0x4_0000;
    const CLONE_CHILD_CLEARTID: usize = 0x20_0000;
    let clears = if ended.is_some() { CLONE_CHILD_CLEARTID } else { 0 };
    let flags = CLONE_VM_FS_FILES_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | clears;
    let cleared = ended.map_or(0, |word| word.as_ptr() as usize);
    let mask = sys::signal_mask(Some(u64::MAX));
    // SAFETY: the stack is not in use and large enough for `run`, which never returns. The word lives for ever.
    let started = unsafe { heisen_clone_helper(flags, stack + size - 64, run, what, cleared) };
    sys::signal_mask(Some(mask));
    started >= 0
}

/// Calls `run`, which never returns, on a permanent kernel thread. It has no thread-local storage, so `run` may
/// only make bare system calls.
pub fn keep(run: extern "C" fn(usize) -> !) {
    const LARGE: usize = 64 << 10;
    if let Some(stack) = sys::map_stack(LARGE) {
        spawn(stack, LARGE, run as *const () as usize, 0, None);
    }
}

/// Runs on the kernel thread of its own: makes the call and ends. The kernel then sets the state to [`BACK`], when
/// nothing uses the stack any more.
extern "C" fn run(errand: &Errand) -> ! {
    let args = core::array::from_fn(|index| errand.args[index].get());
    errand.result.store(sys::call(errand.number.get(), args), Release);
    sys::exit_thread()
}

/// Makes a system call that may block for any time; returns the kernel's result.
pub fn call(op: Op, object: usize, number: usize, args: [usize; 6], pc: usize) -> isize {
    wire_log::note(Note::HelperThread);
    recurrence::consulted();
    let Some(errand) = send(number, args) else { return sys::call(number, args) };
    ERRANDS.count.set(ERRANDS.count.get() + 1);
    sched::add_errand();
    while sched::wait_outside(op, object, pc, u64::MAX) == Woken::Interrupted {
        // The call cannot be interrupted: it continues after the handler.
        hooks::deliver();
    }
    sched::remove_errand();
    ERRANDS.count.set(ERRANDS.count.get() - 1);
    let result = errand.result.load(Acquire);
    errand.state.store(FREE, Relaxed);
    result
}

fn send(number: usize, args: [usize; 6]) -> Option<&'static Errand> {
    let errand = ERRANDS.all.iter().find(|errand| errand.state.load(Relaxed) == FREE)?;
    if errand.stack.get() == 0 {
        errand.stack.set(sys::map_stack(STACK)?);
    }
    let stack = errand.stack.get();
    errand.number.set(number);
    for (slot, arg) in errand.args.iter().zip(args) {
        slot.set(arg);
    }
    errand.thread.set(sched::me());
    errand.state.store(OUT, Release);
    let errand_at = core::ptr::from_ref(errand) as usize;
    if !spawn(stack, STACK, run as *const () as usize, errand_at, Some(&errand.state)) {
        errand.state.store(FREE, Relaxed);
        return None;
    }
    Some(errand)
}

/// Whether a call is in progress.
pub fn is_out() -> bool {
    ERRANDS.count.get() != 0
}

/// Waits in real time until a call has returned, or a signal comes. Returns at once, with false, if several calls are
/// in progress: there is no one word to wait for.
pub fn wait() -> bool {
    let mut out = ERRANDS.all.iter().filter(|errand| errand.state.load(Relaxed) == OUT);
    let (Some(errand), None) = (out.next(), out.next()) else { return false };
    sys::futex_wait(&errand.state, OUT);
    true
}

/// Enables the threads whose calls have returned; returns whether there is one.
pub fn came_back() -> bool {
    if !is_out() {
        return false;
    }
    let mut any = false;
    for errand in &ERRANDS.all {
        if errand.state.load(Acquire) == BACK {
            sched::set_ready(errand.thread.get(), true);
            any = true;
        }
    }
    any
}
