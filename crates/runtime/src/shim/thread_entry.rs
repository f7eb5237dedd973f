//! The first frame and the last steps of each thread: calls the program's function, and ends the thread when
//! that returns or calls `pthread_exit`. For the main thread, it is the function that glibc calls in place of
//! `main`.

use crate::carrier::fibers;
use crate::lifecycle::in_process;
use crate::memory::heap;
use crate::memory::race::dead_stack;
use crate::memory::symbolic;
use crate::sched::dependence;
use crate::sched::events;
use crate::sched::{self, SCHED, me, thread};
use crate::script::unit_mode;
use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `__pthread_unwind_buf_t` has 104 bytes; rounded up so that the stack stays aligned.
const UNWIND_BUFFER: usize = 112;

unsafe extern "C" {
    /// The first function of a new fiber.
    pub fn heisen_fiber_entry();
    /// The function that glibc calls in place of the program's `main`.
    pub fn heisen_main(argc: c_int, argv: usize, envp: usize) -> c_int;
    fn __pthread_register_cancel(buffer: *mut c_void);
}

global_asm!(
    // The first frame of a fiber. Unwinding ends here: an exception that gets this far is uncaught, as at the
    // bottom of a native thread. The real pthread_exit returns through the registered buffer.
    ".globl heisen_fiber_entry",
    ".hidden heisen_fiber_entry",
    ".type heisen_fiber_entry, @function",
    "heisen_fiber_entry:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "xor ebp, ebp",
    "sub rsp, {buffer}",
    "mov rdi, rsp",
    "xor esi, esi",
    "call {setjmp}",
    "test eax, eax",
    "jne 2f",
    "mov rdi, rsp",
    "call {register}",
    "call {begin}",
    "mov rdi, rdx",
    "call rax",
    "mov rdi, rax",
    "call {returned}",
    "ud2",
    "2:",
    "call {exited}",
    "ud2",
    ".cfi_endproc",
    ".size heisen_fiber_entry, . - heisen_fiber_entry",
    buffer = const UNWIND_BUFFER,
    setjmp = sym super::signal::jump::__sigsetjmp,
    register = sym __pthread_register_cancel,
    begin = sym fiber_begin,
    returned = sym fiber_returned,
    exited = sym fiber_exited,
);

/// Two words that the C ABI returns in registers.
#[repr(C)]
struct Call {
    function: usize,
    argument: usize,
}

extern "C" fn fiber_begin() -> Call {
    fibers::init_ctype();
    let t = thread(me());
    t.begun.set(true);
    if !t.timer.get() {
        events::event(heisen_trace::Op::Start, 0, t.start.get());
    }
    if SCHED.signalled.has(me()) {
        super::signal::deliver();
    }
    if !t.timer.get() {
        unit_mode::starts();
    }
    Call { function: t.start.get(), argument: t.arg.get() }
}

extern "C" fn fiber_returned(result: usize) -> ! {
    thread(me()).result.set(result);
    symbolic::returns_result(thread(me()).start.get(), result);
    super::cancel::exiting();
    finish_thread()
}

/// `pthread_exit` has unwound the stack; the shim has stored the result.
extern "C" fn fiber_exited() -> ! {
    sched::leave_waits();
    finish_thread()
}

/// Runs thread-local destructors, as the C library does first when a program exits. Then ends the execution if
/// nothing else is left to do.
pub fn end_if_done(status: c_int) {
    if SCHED.active.get() && SCHED.running.get() && super::pid::is_own() {
        fibers::call_tls_destructors();
        let ran = thread(me()).has_destructors.take();
        if ran && sched::has_others() && !in_process::exit_calls_functions() {
            super::process::exited();
        }
        in_process::exits(status);
    }
}

/// The running thread's function has returned: runs destructors, then ends the thread, or the process if this
/// is the last thread.
fn finish_thread() -> ! {
    fibers::call_tls_destructors();
    super::key::run_destructors();
    super::mutex::abandon();
    dead_stack::ends();
    if SCHED.live.get() == 1 {
        // As in a native process, the process ends with its last thread, with status 0. This counts as the end
        // of a thread: no other thread is cut off.
        dependence::ended(thread(me()).fs.get());
        super::process::exit_with(0, 0);
    }
    let t = thread(me());
    // Where a later thread has its stack must not depend on which threads have ended.
    if !t.stays.get() && !heap::is_divided() {
        // The stack can be reused from here on. Only another thread can take it, and after the switch this one
        // never runs again, or does not touch it (see `carrier::kernel_threads`).
        fibers::give_back_of(t);
    }
    sched::end()
}

/// The program's `main`.
static MAIN: AtomicUsize = AtomicUsize::new(0);

global_asm!(
    // Parks as the zygote, unless that happens later. Each execution returns from there and runs the program's
    // main, with a buffer for pthread_exit as in heisen_fiber_entry. Unwinding ends here, too.
    ".globl heisen_main",
    ".hidden heisen_main",
    ".type heisen_main, @function",
    "heisen_main:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "push rbp",
    "mov rbp, rsp",
    "sub rsp, {buffer} + 32",
    "mov [rbp - 8], rdi",
    "mov [rbp - 16], rsi",
    "mov [rbp - 24], rdx",
    "call {arrived}",
    "mov rdi, rsp",
    "xor esi, esi",
    "call {setjmp}",
    "test eax, eax",
    "jne 2f",
    "mov rdi, rsp",
    "call {register}",
    "mov rdi, [rbp - 8]",
    "mov rsi, [rbp - 16]",
    "mov rdx, [rbp - 24]",
    "mov rax, [rip + {main}]",
    "call rax",
    "mov edi, eax",
    "call {returned}",
    "mov rsp, rbp",
    "pop rbp",
    "ret",
    "2:",
    "call {exited}",
    "ud2",
    ".cfi_endproc",
    ".size heisen_main, . - heisen_main",
    buffer = const UNWIND_BUFFER,
    arrived = sym super::start::arrived,
    setjmp = sym super::signal::jump::__sigsetjmp,
    register = sym __pthread_register_cancel,
    main = sym MAIN,
    returned = sym main_returned,
    exited = sym fiber_exited,
);

extern "C" fn main_returned(status: c_int) -> c_int {
    symbolic::exits(MAIN.load(Relaxed), status);
    super::process::exiting(status, 0);
    end_if_done(status);
    status
}

/// Keeps `sym` operands and relaxed loads of `MAIN` in one place.
pub fn set_main(main: usize) {
    MAIN.store(main, Relaxed);
}
