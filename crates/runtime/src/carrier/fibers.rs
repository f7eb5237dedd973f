//! The carrier of fibers: every thread of the program has its own stack and real thread-local storage, and
//! all run on one kernel thread. A switch swaps registers and the `fs` base.
//!
//! Some work that glibc expects at the start and end of a thread is done by hand, here and in
//! `shim::thread_entry`. The guards are copied, the thread id is set, the character tables are initialised,
//! and destructors run at the end. A cancellation buffer is registered, so that the real `pthread_exit`
//! unwinds to the runtime.
//!
//! This file creates fibers. `stacks` has their stacks, and `block` the control blocks by which glibc knows
//! them. The switch itself is in `platform::registers`, the first frame of a thread and its end are in
//! `shim::thread_entry`.

mod block;
mod divert;
mod stacks;

pub use block::{keep_kernel_id, kernel_id_at, take_off_list, thread_of_tid, with_kernel_id};
pub use divert::divert;
pub use stacks::{Wish, add_to_pool, give_back_of, spare_stacks};

use crate::carrier::kernel_threads;
use crate::platform::allocation::without_faults;
use crate::platform::baton::Guarded;
use crate::platform::glibc;
use crate::platform::glibc::{real, tcb};
use crate::platform::sys;
use crate::sched::handles::remember_handle;
use crate::sched::hooks::{self, HOOKS};
use crate::sched::{self, SCHED, thread, uncontrolled};
use block::{add_to_list, fs_base, is_in_list, read, write};
use core::arch::asm;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use heisen_wire::{TID_BASE, saved};
use stacks::{POOL, Stack, give_back, map_stack, take_from_pool};

/// The number of stacks of the default size that are mapped before the zygote forks.
const READY_STACKS: usize = 4;

// Page-aligned, as `sched::Sched`.
#[repr(C, align(4096))]
struct Fibers {
    allocate_tls: Cell<usize>,
    call_tls_dtors: Cell<usize>,
    ctype_init: Cell<usize>,
    single_threaded: Cell<usize>,
    /// The address at which the first frame of a thread begins.
    entry: Cell<usize>,
    stack_size: Cell<usize>,
    guard_size: Cell<usize>,
    pooled: Cell<usize>,
    pool: [Cell<Stack>; POOL],
}

static FIBERS: Guarded<Fibers> = Guarded::new(Fibers {
    allocate_tls: Cell::new(0),
    call_tls_dtors: Cell::new(0),
    ctype_init: Cell::new(0),
    single_threaded: Cell::new(0),
    entry: Cell::new(0),
    stack_size: Cell::new(0),
    guard_size: Cell::new(0),
    pool: [const { Cell::new(Stack { base: 0, size: 0, guard: 0, fresh: false }) }; POOL],
    pooled: Cell::new(0),
});

/// Finds the functions and data of glibc that the carrier needs; an error names what is missing. Threads
/// begin at `entry`.
pub fn init(entry: usize) -> Result<(), &'static [u8]> {
    const HWCAP2_FSGSBASE: usize = 2;
    const AT_HWCAP2: usize = 26;
    let hwcap = real!(getauxval, fn(AT_HWCAP2 => usize) -> usize);
    if hwcap & HWCAP2_FSGSBASE == 0 {
        return Err(b"heisen: this kernel or processor does not allow the fsgsbase instructions\n");
    }
    FIBERS.allocate_tls.set(glibc::private(c"_dl_allocate_tls"));
    FIBERS.call_tls_dtors.set(glibc::private(c"__call_tls_dtors"));
    FIBERS.ctype_init.set(glibc::private(c"__ctype_init"));
    FIBERS.single_threaded.set(glibc::symbol(c"__libc_single_threaded"));
    glibc::find_rseq();
    FIBERS.entry.set(entry);
    HOOKS.switch_kernel_thread.set(kernel_threads::switch);
    let fs = fs_base();
    if FIBERS.allocate_tls.get() == 0 || FIBERS.call_tls_dtors.get() == 0 || FIBERS.ctype_init.get() == 0 {
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
    FIBERS.stack_size.set(stack.clamp(1 << 16, 1 << 30).next_multiple_of(4096));
    FIBERS.guard_size.set(guard.max(4096).next_multiple_of(4096));
    // One arena for all threads. On one kernel thread they do not contend for it, and mapping a new arena in
    // each thread of each execution would cost several system calls.
    const M_ARENA_MAX: c_int = -8;
    real!(mallopt, fn(M_ARENA_MAX => c_int, 1 => c_int) -> c_int);

    let main = thread(0);
    main.fs.set(fs);
    remember_handle(fs, 0);
    main.begun.set(true);
    write(fs + tcb::TID, TID_BASE);
    sched::init();
    while FIBERS.pooled.get() < READY_STACKS {
        let Some(stack) = map_stack(FIBERS.stack_size.get(), FIBERS.guard_size.get()) else { break };
        give_back(Stack { fresh: true, ..stack });
    }
    Ok(())
}

/// Creates the fiber of thread `number`, which will run `start(arg)`. Returns an error number if there is no
/// memory.
pub fn create(number: usize, start: usize, arg: usize, wish: &Wish) -> Result<(), c_int> {
    // SAFETY: glibc's `_dl_allocate_tls(NULL)` gives a fresh, initialised block or null.
    let fs = unsafe {
        let allocate: extern "C" fn(*mut c_void) -> *mut c_void =
            core::mem::transmute(FIBERS.allocate_tls.get());
        without_faults(|| uncontrolled(|| allocate(core::ptr::null_mut()))) as usize
    };
    if fs == 0 {
        return Err(sys::EAGAIN);
    }
    let t = thread(number);
    let Stack { base, size, guard, fresh } = match wish.stack {
        Some((base, size)) => Stack { base, size, guard: 0, fresh: false },
        None => take_from_pool(wish.size, wish.guard)
            .or_else(|| map_stack(wish.size, wish.guard))
            .ok_or(sys::EAGAIN)?,
    };
    if !fresh {
        hooks::renew_memory(base + guard, size);
    }
    t.stack.set(base);
    t.stack_size.set(size);
    t.guard_size.set(guard);
    t.stack_foreign.set(wish.stack.is_some());
    t.shared_from.set(0);

    let own = fs_base();
    write(fs + tcb::SELF, fs);
    write(fs + tcb::HEADER_SELF, fs);
    write(fs + tcb::STACK_GUARD, read::<usize>(own + tcb::STACK_GUARD));
    write(fs + tcb::POINTER_GUARD, read::<usize>(own + tcb::POINTER_GUARD));
    write(fs + tcb::TID, TID_BASE + number as i32);
    if let Some(area) = glibc::rseq_area(fs) {
        write(area + tcb::RSEQ_CPU_ID, tcb::RSEQ_FAILED);
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
    // The floating-point environment is that of the creating thread, as POSIX requires.
    // SAFETY: stores six bytes into the word of the new stack from which `heisen_switch` loads them.
    unsafe {
        asm!("stmxcsr [{at}]", "fnstcw [{at} + 4]", at = in(reg) sp + 8 * saved::CONTROL, options(nostack));
    }
    write(sp + 8 * saved::RIP, FIBERS.entry.get());
    t.sp.set(sp);
    if SCHED.kernel.get() && !kernel_threads::launch(number) {
        take_off_list(fs);
        give_back_of(t);
        return Err(sys::EAGAIN);
    }
    Ok(())
}

/// Tells glibc, and programs that ask it, whether there is only one thread.
pub fn set_single_threaded(single: bool) {
    if FIBERS.single_threaded.get() != 0 {
        write(FIBERS.single_threaded.get(), u8::from(single));
    }
}

/// Initialises the character tables of the running thread, as glibc's own start-up of a thread does first.
pub fn init_ctype() {
    // SAFETY: glibc's own start-up of a thread calls this first, too.
    unsafe {
        let init: extern "C" fn() = core::mem::transmute(FIBERS.ctype_init.get());
        init();
    }
}

/// Runs the destructors of the running thread's thread-local objects.
pub fn call_tls_destructors() {
    // SAFETY: glibc calls this at the end of a thread, before the destructors of keys, and at the exit of the
    // program.
    unsafe {
        let call: extern "C" fn() = core::mem::transmute(FIBERS.call_tls_dtors.get());
        call();
    }
}
