//! The fibers carrier: every thread of the program has a stack and a real thread-local storage block of its own, and
//! all run on one kernel thread. A switch is a swap of registers and of the `fs` base.
//!
//! What glibc expects of a thread is done here by hand: guards copied, thread id set, character tables initialised,
//! a cancellation buffer registered (so that the real `pthread_exit` unwinds to us), destructors run at the end.

use crate::glibc::{self, real, tcb};
use crate::race::shadow;
use crate::sched::{self, S, Thread, me, thread};
use crate::{budget, kernel, patch, report, shim, sys};
use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use heisen_wire::{MAX_THREADS, TID_BASE, saved};

/// Stacks are kept and used again; some of the usual size are mapped before the zygote forks.
const POOL: usize = 64;
const READY_STACKS: usize = 4;
/// Twice as many places as there can be threads.
const HANDLES: usize = 2 * MAX_THREADS;

/// A stack that was mapped here: its lowest address, its size without the guard, and that of the guard below it.
#[derive(Clone, Copy)]
struct Stack {
    base: usize,
    size: usize,
    guard: usize,
}

struct Fibers {
    allocate_tls: Cell<usize>,
    call_tls_dtors: Cell<usize>,
    ctype_init: Cell<usize>,
    single_threaded: Cell<usize>,
    rseq_offset: Cell<Option<isize>>,
    stack_size: Cell<usize>,
    guard_size: Cell<usize>,
    pool: [Cell<Stack>; POOL],
    pooled: Cell<usize>,
    /// Which thread has which control block: a table of thread numbers plus 1, hashed by address, with linear probing.
    by_handle: [Cell<u16>; HANDLES],
}

// SAFETY: as for `sched::S`.
unsafe impl Sync for Fibers {}

static F: Fibers = Fibers {
    allocate_tls: Cell::new(0),
    call_tls_dtors: Cell::new(0),
    ctype_init: Cell::new(0),
    single_threaded: Cell::new(0),
    rseq_offset: Cell::new(None),
    stack_size: Cell::new(0),
    guard_size: Cell::new(0),
    pool: [const { Cell::new(Stack { base: 0, size: 0, guard: 0 }) }; POOL],
    pooled: Cell::new(0),
    by_handle: [const { Cell::new(0) }; HANDLES],
};

/// `__pthread_unwind_buf_t` is 104 bytes; rounded up to keep the stack aligned.
const UNWIND_BUFFER: usize = 112;

unsafe extern "C" {
    fn heisen_switch(save: *const Cell<usize>, to: usize, fs: usize);
    fn heisen_fiber_entry();
    fn __pthread_register_cancel(buffer: *mut c_void);
}

global_asm!(
    // heisen_switch(save, to, fs): saves what a function must preserve, with the layout of `heisen_wire::saved`.
    ".globl heisen_switch",
    ".hidden heisen_switch",
    ".type heisen_switch, @function",
    "heisen_switch:",
    // The slowest first, so that the rest overlaps with it.
    "wrfsbase rdx",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov [rdi], rsp",
    // Loading the control words is slow and hardly ever needed: threads rarely differ in them.
    "mov eax, [rsp]",
    "cmp eax, [rsi]",
    "jne 3f",
    "mov ax, [rsp + 4]",
    "cmp ax, [rsi + 4]",
    "je 4f",
    "3:",
    "ldmxcsr [rsi]",
    "fldcw [rsi + 4]",
    "4:",
    "mov rsp, rsi",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".size heisen_switch, . - heisen_switch",
    // The first frame of a fiber. Unwinding ends here: an exception that gets this far is uncaught, as it would be at
    // the bottom of a native thread. The real pthread_exit comes back through the registered buffer.
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
    setjmp = sym shim::signal::jump::__sigsetjmp,
    register = sym __pthread_register_cancel,
    begin = sym fiber_begin,
    returned = sym fiber_returned,
    exited = sym fiber_exited,
);

/// Finds what the carrier needs of glibc; an error names what is missing.
pub fn init() -> Result<(), &'static [u8]> {
    const HWCAP2_FSGSBASE: usize = 2;
    const AT_HWCAP2: usize = 26;
    let hwcap = real!(getauxval, fn(AT_HWCAP2 => usize) -> usize);
    if hwcap & HWCAP2_FSGSBASE == 0 {
        return Err(b"heisen: this kernel or processor does not allow the fsgsbase instructions\n");
    }
    F.allocate_tls.set(glibc::private(c"_dl_allocate_tls"));
    F.call_tls_dtors.set(glibc::private(c"__call_tls_dtors"));
    F.ctype_init.set(glibc::private(c"__ctype_init"));
    F.single_threaded.set(glibc::symbol(c"__libc_single_threaded"));
    let rseq = glibc::symbol(c"__rseq_offset");
    if rseq != 0 {
        // SAFETY: glibc exports this as a constant of pointer size.
        F.rseq_offset.set(Some(unsafe { *(rseq as *const isize) }));
    }
    let fs = fs_base();
    if F.allocate_tls.get() == 0 || F.call_tls_dtors.get() == 0 || F.ctype_init.get() == 0 {
        return Err(b"heisen: this C library is not a glibc that Heisen knows (no _dl_allocate_tls)\n");
    }
    if read::<i32>(fs + tcb::TID) != sys::gettid() {
        return Err(b"heisen: this glibc keeps its thread id elsewhere than expected\n");
    }
    if !is_in_list(fs) {
        return Err(b"heisen: this glibc keeps its list of threads elsewhere than expected\n");
    }
    let (mut stack, mut guard) = (8usize << 20, 4096usize);
    let mut attributes = [0u64; 8];
    let at = attributes.as_mut_ptr().cast::<c_void>();
    real!(pthread_attr_init, fn(at => *mut c_void) -> c_int);
    real!(pthread_attr_getstacksize, fn(at => *mut c_void, &raw mut stack => *mut usize) -> c_int);
    real!(pthread_attr_getguardsize, fn(at => *mut c_void, &raw mut guard => *mut usize) -> c_int);
    F.stack_size.set(stack.clamp(1 << 16, 1 << 30).next_multiple_of(4096));
    F.guard_size.set(guard.max(4096).next_multiple_of(4096));
    // One arena for all threads: there is nothing to contend for on one kernel thread, and mapping a fresh one in
    // each thread of each execution would cost several system calls.
    const M_ARENA_MAX: c_int = -8;
    real!(mallopt, fn(M_ARENA_MAX => c_int, 1 => c_int) -> c_int);

    let main = thread(0);
    main.fs.set(fs);
    remember_handle(fs, 0);
    main.begun.set(true);
    write(fs + tcb::TID, TID_BASE);
    sched::init();
    while F.pooled.get() < READY_STACKS {
        let Some(stack) = map_stack(F.stack_size.get(), F.guard_size.get()) else { break };
        give_back(stack);
    }
    Ok(())
}

fn read<T: Copy>(at: usize) -> T {
    // SAFETY: callers pass addresses inside a thread control block.
    unsafe { *(at as *const T) }
}

fn write<T>(at: usize, value: T) {
    // SAFETY: callers pass addresses inside a thread control block or a fresh stack.
    unsafe { *(at as *mut T) = value };
}

fn fs_base() -> usize {
    let fs;
    // SAFETY: word 0 of the thread control block points to itself.
    unsafe { asm!("mov {}, fs:[0]", out(reg) fs, options(nostack, readonly, preserves_flags)) };
    fs
}

/// Whether a control block is in glibc's list of threads, a ring of two-word links (next, previous).
fn is_in_list(fs: usize) -> bool {
    let link = fs + tcb::LIST;
    let (next, previous) = (read::<usize>(link), read::<usize>(link + 8));
    next != 0 && previous != 0 && read::<usize>(next + 8) == link && read::<usize>(previous) == link
}

/// Adds a control block to glibc's list of threads, after the main thread's: a child of `fork` takes its own off there,
/// and `dlopen` goes through it to initialise thread-local variables of fixed place in threads that exist already.
fn add_to_list(fs: usize) {
    let (link, main) = (fs + tcb::LIST, thread(0).fs.get() + tcb::LIST);
    let next = read::<usize>(main);
    write(link, next);
    write(link + 8, main);
    write(next + 8, link);
    write(main, link);
}

/// Takes a control block off that list.
pub fn take_off_list(fs: usize) {
    let link = fs + tcb::LIST;
    let (next, previous) = (read::<usize>(link), read::<usize>(link + 8));
    write(previous, next);
    write(next + 8, previous);
}

/// Switches to another thread; returns when `from` is switched to again.
#[inline]
pub fn switch(from: &Thread, to: &Thread) {
    if S.kernel.get() {
        return kernel::switch(from, to);
    }
    // SAFETY: `to` is not running, so its saved stack pointer points at a frame that `heisen_switch`, or `create`,
    // laid down; its fs base is a live control block.
    unsafe { heisen_switch(&raw const from.sp, to.sp.get(), to.fs.get()) };
}

unsafe extern "C" {
    fn heisen_diverted();
}

global_asm!(
    // Where a thread goes on that was diverted: it takes its signals, then does what `heisen_switch` would have done.
    // The stack pointer is at the frame that was there before, which the unwinding information describes.
    ".globl heisen_diverted",
    ".hidden heisen_diverted",
    ".type heisen_diverted, @function",
    "heisen_diverted:",
    ".cfi_startproc",
    ".cfi_def_cfa rsp, 64",
    ".cfi_offset r15, -56",
    ".cfi_offset r14, -48",
    ".cfi_offset r13, -40",
    ".cfi_offset r12, -32",
    ".cfi_offset rbx, -24",
    ".cfi_offset rbp, -16",
    "call {deliver}",
    "add rsp, 8",
    ".cfi_def_cfa_offset 56",
    "pop r15",
    ".cfi_def_cfa_offset 48",
    "pop r14",
    ".cfi_def_cfa_offset 40",
    "pop r13",
    ".cfi_def_cfa_offset 32",
    "pop r12",
    ".cfi_def_cfa_offset 24",
    "pop rbx",
    ".cfi_def_cfa_offset 16",
    "pop rbp",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    ".size heisen_diverted, . - heisen_diverted",
    deliver = sym diverted,
);

extern "C" fn diverted() {
    shim::signal::deliver();
}

/// Makes a thread that is switched out take its signals when it is switched to: lays another frame below its own. So
/// the path of a scheduling point needs no test for signals.
pub fn divert(t: &Thread) {
    if S.kernel.get() {
        // It waits for the baton somewhere below its frame, and looks by itself.
        t.diverted.set(true);
        return;
    }
    let old = t.sp.get();
    let new = old - 8 * saved::WORDS;
    for word in 0..saved::WORDS {
        write(new + 8 * word, read::<usize>(old + 8 * word));
    }
    write(new + 8 * saved::RIP, heisen_diverted as *const () as usize);
    t.sp.set(new);
}

/// Puts the registers of the caller's frame, as they are now, into `out`; in the order of `Stop::registers`.
#[inline(always)]
pub fn registers(out: &[AtomicU64; 8]) {
    // SAFETY: stores eight words to an array of that size.
    unsafe {
        asm!(
            "lea {scratch}, [rip]",
            "mov [{out}], {scratch}",
            "mov [{out} + 8], rsp",
            "mov [{out} + 16], rbp",
            "mov [{out} + 24], rbx",
            "mov [{out} + 32], r12",
            "mov [{out} + 40], r13",
            "mov [{out} + 48], r14",
            "mov [{out} + 56], r15",
            out = in(reg) out.as_ptr(),
            scratch = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// What `pthread_create` asks for.
#[derive(Debug)]
pub struct Wish {
    /// Stack given by the program: lowest address and size.
    pub stack: Option<(usize, usize)>,
    /// Size of stack and guard.
    pub size: usize,
    pub guard: usize,
}

impl Wish {
    /// A thread without attributes.
    pub fn usual() -> Wish {
        Wish { stack: None, size: F.stack_size.get(), guard: F.guard_size.get() }
    }
}

fn map_stack(size: usize, guard: usize) -> Option<Stack> {
    // The engine limits the data of the program. Stacks shall not count: natively they hardly do, as only what is
    // touched of one takes memory.
    sys::raise_data_limit(size as isize);
    let Some(base) = sys::map_stack(guard + size) else {
        sys::raise_data_limit(-(size as isize));
        return None;
    };
    sys::protect_none(base, guard);
    Some(Stack { base, size, guard })
}

/// A stack from the pool, the latest that fits.
fn take_from_pool(size: usize, guard: usize) -> Option<Stack> {
    let fits = |stack: &Cell<Stack>| (stack.get().size, stack.get().guard) == (size, guard);
    let pooled = &F.pool[..F.pooled.get()];
    let found = pooled.iter().rposition(fits)?;
    let stack = pooled[found].get();
    let last = pooled.len() - 1;
    pooled[found].set(pooled[last].get());
    F.pooled.set(last);
    Some(stack)
}

/// The stacks that nobody uses: where they begin and end.
pub fn spare_stacks() -> impl Iterator<Item = (usize, usize)> {
    let ends = |Stack { base, size, guard }: Stack| (base, base + guard + size);
    F.pool[..F.pooled.get()].iter().map(move |stack| ends(stack.get()))
}

/// Puts a stack into the pool. If that is full another one is unmapped, or a program that makes threads one after the
/// other would run out of memory.
fn give_back(stack: Stack) {
    if F.pooled.get() < POOL {
        F.pool[F.pooled.get()].set(stack);
        F.pooled.set(F.pooled.get() + 1);
    } else {
        let other = F.pool[0].replace(stack);
        sys::unmap(other.base, other.guard + other.size);
        sys::raise_data_limit(-(other.size as isize));
    }
}

/// Makes the fiber of thread `number`, which will run `start(arg)`; an error number if there is no memory.
pub fn create(number: usize, start: usize, arg: usize, wish: &Wish) -> Result<(), c_int> {
    // SAFETY: glibc's `_dl_allocate_tls(NULL)` gives a fresh, initialised block or null.
    let fs = unsafe {
        let allocate: extern "C" fn(*mut c_void) -> *mut c_void = core::mem::transmute(F.allocate_tls.get());
        budget::without_faults(|| patch::quietly(|| allocate(core::ptr::null_mut()))) as usize
    };
    if fs == 0 {
        return Err(sys::EAGAIN);
    }
    let t = thread(number);
    let Stack { base, size, guard } = match wish.stack {
        Some((base, size)) => Stack { base, size, guard: 0 },
        None => take_from_pool(wish.size, wish.guard)
            .or_else(|| map_stack(wish.size, wish.guard))
            .ok_or(sys::EAGAIN)?,
    };
    shadow::renew(base + guard, size);
    t.stack.set(base);
    t.stack_size.set(size);
    t.guard_size.set(guard);
    t.stack_foreign.set(wish.stack.is_some());

    let own = fs_base();
    write(fs + tcb::SELF, fs);
    write(fs + tcb::HEADER_SELF, fs);
    write(fs + tcb::STACK_GUARD, read::<usize>(own + tcb::STACK_GUARD));
    write(fs + tcb::POINTER_GUARD, read::<usize>(own + tcb::POINTER_GUARD));
    write(fs + tcb::TID, TID_BASE + number as i32);
    if let Some(offset) = F.rseq_offset.get() {
        write(fs.wrapping_add_signed(offset) + tcb::RSEQ_CPU_ID, tcb::RSEQ_FAILED);
    }
    set_single_threaded(false);
    add_to_list(fs);
    t.fs.set(fs);
    remember_handle(fs, number);
    t.start.set(start);
    t.arg.set(arg);

    let top = (base + guard + size) & !15;
    let sp = top - 8 * saved::WORDS;
    for word in 0..saved::WORDS {
        write(sp + 8 * word, 0usize);
    }
    // The floating-point environment is the creator's, as POSIX says.
    // SAFETY: stores six bytes into the word of the fresh stack that `heisen_switch` loads them from.
    unsafe {
        asm!("stmxcsr [{at}]", "fnstcw [{at} + 4]", at = in(reg) sp + 8 * saved::CONTROL, options(nostack));
    }
    write(sp + 8 * saved::RIP, heisen_fiber_entry as *const () as usize);
    t.sp.set(sp);
    if S.kernel.get() && !kernel::launch(number) {
        take_off_list(fs);
        give_back_of(t);
        return Err(sys::EAGAIN);
    }
    Ok(())
}

/// Tells glibc, and who else asks it, whether there is only one thread.
pub fn set_single_threaded(single: bool) {
    if F.single_threaded.get() != 0 {
        write(F.single_threaded.get(), u8::from(single));
    }
}

/// Puts the stack of a thread that does not need it any more into the pool, if it came from there.
fn give_back_of(t: &Thread) {
    if !t.stack_foreign.get() && t.stack_size.get() != 0 {
        give_back(Stack { base: t.stack.get(), size: t.stack_size.get(), guard: t.guard_size.get() });
    }
}

/// Two words that the C ABI returns in registers.
#[repr(C)]
struct Call {
    function: usize,
    argument: usize,
}

extern "C" fn fiber_begin() -> Call {
    // SAFETY: glibc's own start-up of a thread calls this first, too.
    unsafe {
        let init: extern "C" fn() = core::mem::transmute(F.ctype_init.get());
        init();
    }
    let t = thread(me());
    t.begun.set(true);
    if !t.timer.get() {
        report::event(heisen_trace::Op::Start, 0, t.start.get());
    }
    if S.signalled.has(me()) {
        shim::signal::deliver();
    }
    Call { function: t.start.get(), argument: t.arg.get() }
}

extern "C" fn fiber_returned(result: usize) -> ! {
    thread(me()).result.set(result);
    shim::cancel::exiting();
    finish_thread()
}

/// `pthread_exit` has unwound the stack; the shim has kept the result.
extern "C" fn fiber_exited() -> ! {
    sched::leave_waits();
    finish_thread()
}

/// The running thread's function is done: destructors, then the end of the thread, or of the process with its last.
pub fn finish_thread() -> ! {
    // SAFETY: glibc calls this at the end of a thread, before the destructors of keys.
    unsafe {
        let call: extern "C" fn() = core::mem::transmute(F.call_tls_dtors.get());
        call();
    }
    shim::key::run_destructors();
    shim::mutex::abandon();
    if S.live.get() == 1 {
        // As natively: the process ends with its last thread, with status 0.
        shim::process::exit_with(0, 0);
    }
    let t = thread(me());
    if !t.stays.get() {
        // Safe to hand on already: only another thread can take it, and this one never runs again after the switch, or
        // does not touch it (see `kernel`).
        give_back_of(t);
    }
    sched::end()
}

/// The user's `main`, and what it is called with.
pub static MAIN: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// What glibc calls in place of the program's `main`.
    pub fn heisen_main(argc: c_int, argv: usize, envp: usize) -> c_int;
}

global_asm!(
    // Parks as the zygote, unless that is to be later; each execution returns from there and runs the program's main, with a buffer for
    // pthread_exit as in heisen_fiber_entry. Unwinding ends here, too.
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
    arrived = sym crate::zygote::arrived,
    setjmp = sym shim::signal::jump::__sigsetjmp,
    register = sym __pthread_register_cancel,
    main = sym MAIN,
    returned = sym main_returned,
    exited = sym fiber_exited,
);

extern "C" fn main_returned(status: c_int) -> c_int {
    shim::process::exiting(status, 0);
    status
}

/// The lowest address and the size of a thread's stack, and the size of its guard; none for the main thread.
pub fn stack_of(t: &Thread) -> Option<(usize, usize, usize)> {
    (t.stack_size.get() != 0)
        .then(|| (t.stack.get() + t.guard_size.get(), t.stack_size.get(), t.guard_size.get()))
}

/// The process id that a mutex recorded, as a thread's number.
pub fn thread_of_tid(tid: i32) -> Option<usize> {
    usize::try_from(tid.wrapping_sub(TID_BASE)).ok().filter(|&n| n < S.count.get())
}

/// Calls `ask` with the id of the kernel thread in the control block of a thread, for functions that hand it on to the
/// kernel.
pub fn with_kernel_id<R>(handle: usize, ask: impl FnOnce() -> R) -> R {
    if S.kernel.get() {
        return ask();
    }
    let id = read::<i32>(handle + tcb::TID);
    write(handle + tcb::TID, sys::gettid());
    let answer = ask();
    write(handle + tcb::TID, id);
    answer
}

/// The id of the kernel thread that a thread runs on.
pub fn kernel_id(t: &Thread) -> i32 {
    if S.kernel.get() { read(t.fs.get() + tcb::TID) } else { sys::gettid() }
}

/// Puts the id of the kernel thread into the running thread's control block, where glibc keeps it.
pub fn keep_kernel_id() {
    write(fs_base() + tcb::TID, sys::gettid());
}

/// Where glibc keeps the id of the kernel thread in a control block.
pub fn kernel_id_at(t: &Thread) -> usize {
    t.fs.get() + tcb::TID
}

/// The thread whose `pthread_t` this is.
pub fn thread_of_handle(handle: usize) -> Option<usize> {
    let found = place_of_handle(handle).get();
    (found != 0 && handle != 0).then(|| found as usize - 1)
}

/// Where in the table a control block is, or would be. There is always a free place, as threads are fewer.
fn place_of_handle(fs: usize) -> &'static Cell<u16> {
    let mut at = (fs >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HANDLES.trailing_zeros());
    loop {
        let place = &F.by_handle[at % HANDLES];
        if place.get() == 0 || thread(place.get() as usize - 1).fs.get() == fs {
            return place;
        }
        at += 1;
    }
}

/// A thread's control block is never freed, so what is in the table stays right.
fn remember_handle(fs: usize, number: usize) {
    place_of_handle(fs).set(number as u16 + 1);
}

/// Keeps `sym` operands and relaxed loads of `MAIN` in one place.
pub fn set_main(main: usize) {
    MAIN.store(main, Relaxed);
}
