//! The carrier of kernel threads: every thread of the program has a kernel thread of its own. They pass a
//! baton, so that exactly one of them runs at any time.
//!
//! It serves debuggers, which see real threads, and programs that ask the kernel about their threads. It is
//! slower than `fibers`, which is the default. Otherwise it makes no difference: scheduling points, steps,
//! decisions and hashes are the same, and so are the schedules.
//!
//! `fibers::create` lays out a thread as a fiber, with the same stack, thread-local storage and first frame.
//! Then `clone` gives it a kernel thread, which waits for the baton and continues like a fiber that is
//! switched to. So memory looks the same on both carriers. A fiber that was created before `main` can get a
//! kernel thread when an execution begins. A thread also ends as a fiber does: destructors run while it has
//! the baton. Then it hands the baton over and ends without touching its stack again, because the next thread
//! may be using that stack already.
//!
//! A thread that waits for the baton blocks signals, so a signal to the process reaches the running thread.

use crate::carrier::{fibers, handler_stack};
use crate::platform::baton;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::{SCHED, Thread, debugger, hooks, me, thread, threads};
use core::arch::global_asm;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The flags of `clone`: memory, file system information, files, signal handlers and semaphore adjustments
/// are shared. The new thread belongs to this process and has its own thread-local storage. The kernel writes
/// its id where glibc expects it.
const CLONE: usize = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000 | 0x8_0000 | 0x10_0000;

/// All signals but the one by which glibc makes every thread change its user or group. Its sender waits for
/// all threads, and glibc's own handler does just that change.
const SIGNALS: u64 = !(1 << (SIGSETXID - 1));
const SIGSETXID: u32 = 33;

/// Whether glibc knows that there are several threads.
static TOLD: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn heisen_clone(flags: usize, sp: usize, id_at: usize, thread: &Thread, fs: usize) -> i32;
    fn heisen_pass(save: *const Cell<usize>, from: &Thread, to: &Thread);
    fn heisen_leave(baton: *mut u32) -> !;
}

global_asm!(
    // heisen_clone(flags, sp, id_at, thread, fs): the id of the new kernel thread, or a negative error.
    ".globl heisen_clone",
    ".hidden heisen_clone",
    ".type heisen_clone, @function",
    "heisen_clone:",
    ".cfi_startproc",
    "mov r9, rcx",
    "xor r10d, r10d",
    "mov eax, 56",
    "syscall",
    "test eax, eax",
    "jz heisen_thread_entry",
    "ret",
    ".cfi_endproc",
    ".size heisen_clone, . - heisen_clone",
    // The first instructions of the kernel thread. The stack is at a frame as `heisen_switch` leaves it; the
    // thread continues there once it has the baton.
    ".type heisen_thread_entry, @function",
    "heisen_thread_entry:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "xor ebp, ebp",
    "mov rdi, r9",
    "call {first_turn}",
    "ldmxcsr [rsp]",
    "fldcw [rsp + 4]",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".cfi_endproc",
    ".size heisen_thread_entry, . - heisen_thread_entry",
    // heisen_pass(save, from, to): waits with the same frame on the stack as a fiber that is switched out. So
    // the engine reads both in the same way.
    ".globl heisen_pass",
    ".hidden heisen_pass",
    ".type heisen_pass, @function",
    "heisen_pass:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbp, 0",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    "push r12",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r12, 0",
    "push r13",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r13, 0",
    "push r14",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r14, 0",
    "push r15",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r15, 0",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov [rdi], rsp",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "call {pass}",
    // The call has preserved all saved registers, so none of them is loaded again.
    "add rsp, 56",
    ".cfi_adjust_cfa_offset -56",
    "ret",
    ".cfi_endproc",
    ".size heisen_pass, . - heisen_pass",
    // heisen_leave(baton): hands the baton over and ends the kernel thread, without using the stack in
    // between.
    ".globl heisen_leave",
    ".hidden heisen_leave",
    ".type heisen_leave, @function",
    "heisen_leave:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "mov dword ptr [rdi], 1",
    "mov esi, 129", // FUTEX_WAKE, private
    "mov edx, 1",
    "mov eax, 202",
    "syscall",
    "xor edi, edi",
    "mov eax, 60",
    "syscall",
    "ud2",
    ".cfi_endproc",
    ".size heisen_leave, . - heisen_leave",
    first_turn = sym first_turn,
    pass = sym pass,
);

/// An execution begins on this carrier. The main thread has the baton. Threads that were created as fibers
/// before `main` get kernel threads.
pub fn begin() {
    SCHED.kernel.set(true);
    baton::handed_to(thread(me()).fs.get());
    fibers::keep_kernel_id();
    for (number, t) in threads() {
        if number != me() && !t.ended.get() && !launch(number) {
            sys::write(
                2,
                b"heisen: no kernel thread can be started; raise the limits that ulimit -a shows\n",
            );
            sys::kill(sys::getpid(), sys::SIGKILL);
        }
    }
}

/// Starts the kernel thread of a thread that is laid out as a fiber. False if the kernel allows no more
/// threads.
pub fn launch(number: usize) -> bool {
    let t = thread(number);
    if !TOLD.swap(true, Relaxed) {
        tell_glibc();
    }
    // The new kernel thread inherits this mask, so it gets no signal before its first turn.
    sys::signal_mask(Some(SIGNALS));
    // SAFETY: the stack and the control block belong to the thread, and nothing else runs on them. The kernel
    // thread touches no data of the runtime before it has the baton.
    let id = unsafe { heisen_clone(CLONE, t.sp.get(), fibers::kernel_id_at(t), t, t.fs.get()) };
    own_signals();
    id > 0
}

/// Makes glibc do its work for the first additional thread, above all install its handler of `SIGSETXID`. The
/// real `pthread_create` does that first, if the process seems to have one thread. Then it fails, because the
/// guard is as large as the address space.
fn tell_glibc() {
    extern "C" fn nothing(_: usize) -> usize {
        0
    }
    let mut attributes = [0u64; 8];
    let at = attributes.as_mut_ptr() as usize;
    let mut handle = 0usize;
    let start = nothing as *const () as usize;
    real!(pthread_attr_init, fn(at => usize) -> c_int);
    real!(pthread_attr_setguardsize, fn(at => usize, !0xfff => usize) -> c_int);
    fibers::set_single_threaded(true);
    real!(pthread_create, fn(&raw mut handle => *mut usize, at => usize, start => usize, 0 => usize) -> c_int);
    fibers::set_single_threaded(false);
    real!(pthread_attr_destroy, fn(at => usize) -> c_int);
}

/// Switches to another thread; returns when `from` is switched to again.
#[cold]
#[inline(never)]
pub fn switch(from: &Thread, to: &Thread) {
    debugger::switching();
    if from.ended.get() {
        leave(from, to);
    }
    // SAFETY: the frame that it leaves remains unchanged until `pass` returns.
    unsafe { heisen_pass(&raw const from.sp, from, to) };
    debugger::switched();
    take_signals(from);
}

/// Takes the signals of the running thread if it was diverted while it waited for the baton.
fn take_signals(t: &Thread) {
    if t.diverted.replace(false) {
        hooks::deliver();
    }
}

/// Hands the baton over and waits until it comes back.
extern "C" fn pass(from: &Thread, to: &Thread) {
    sys::signal_mask(Some(SIGNALS));
    // This comes before the other thread runs, because that may hand the baton back at once.
    from.baton.store(0, Relaxed);
    baton::handed_to(to.fs.get());
    // Releases all that this thread has done. From here on it touches nothing but its own word.
    to.baton.store(1, Release);
    sys::private_futex_wake(&to.baton);
    wait(&from.baton);
    own_signals();
}

/// The running kernel thread blocks the signals that all threads of the program block.
fn own_signals() {
    sys::signal_mask(Some(hooks::kernel_mask()));
}

/// Waits for the baton. Acquires all that the previous owner of the baton has done.
fn wait(baton: &AtomicU32) {
    while baton.load(Acquire) == 0 {
        sys::private_futex_wait(baton, 0);
    }
}

/// A new kernel thread waits for its first turn.
extern "C" fn first_turn(t: &Thread) {
    wait(&t.baton);
    t.handler_stack.set(handler_stack::give());
    own_signals();
    debugger::switched();
    take_signals(t);
}

/// The running thread has ended: hands the baton over for good.
fn leave(from: &Thread, to: &Thread) -> ! {
    sys::signal_mask(Some(SIGNALS));
    // The kernel thread of the main thread has the id of the process, which the engine watches. A kernel
    // thread that has forked is the parent of its children, which the kernel ends with it.
    if core::ptr::eq(from, thread(0)) || from.stays.get() {
        pass(from, to);
        unreachable!()
    }
    fibers::take_off_list(from.fs.get());
    handler_stack::free(from.handler_stack.get());
    baton::handed_to(to.fs.get());
    // SAFETY: the word lies in a static, and no other thread writes it while this one has the baton.
    unsafe { heisen_leave(to.baton.as_ptr()) }
}
