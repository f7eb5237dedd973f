//! Start of the program: what runs when the library is loaded, and in place of `main`.
//!
//! This file puts the rooms together: each room plugs its functions into the hooks of the rooms below it.

use super::{pid, signal, thread_entry};
use crate::blocking::descriptors;
use crate::carrier::fibers;
use crate::lifecycle::{in_process, reaper, stdin, system_start, zygote};
use crate::memory::race::{dead_stack, order, shadow};
use crate::memory::{heap, patch, symbolic};
use crate::platform::glibc::real;
use crate::platform::{allocation, glibc, sys};
use crate::sched::hooks::HOOKS;
use crate::sched::{self, SCHED, clock, scope};
use crate::script::{system_mode, unit_mode};
use crate::wire_log;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::{ENV_DIR, ENV_FD, MAGIC, SIZE, Wire, boot, park, world};

/// Runs before the program's own constructors, when the dynamic loader initialises this library.
#[unsafe(link_section = ".init_array")]
#[used]
static INIT: extern "C" fn() = init;

extern "C" fn init() {
    super::strings::look_up();
    super::conversions::look_up();
    let mut name = [0u8; 16];
    name[..ENV_FD.len()].copy_from_slice(ENV_FD.as_bytes());
    name[ENV_FD.len()] = b'=';
    let Some(fd) = glibc::take_env_number(&name[..=ENV_FD.len()]) else { return };
    glibc::strip_env_first(b"LD_PRELOAD=");
    let Some(at) = sys::map_shared(fd, SIZE) else { return };
    sys::close(fd);
    // SAFETY: the mapping is at least that large; a foreign one fails the check of its first word.
    let wire = unsafe { &*(at as *const Wire) };
    if wire.magic.load(Relaxed) != MAGIC || wire.zygote.load(Relaxed) != 0 {
        return;
    }
    let free = wire.world.flags.load(Relaxed) & world::FREE != 0;
    if !free {
        reaper::split();
    }
    wire.zygote.store(sys::getpid() as u32, Relaxed);
    wire_log::attach(at);
    if free {
        plug_in();
        system_start::init(wire);
        patch::init(wire);
        super::fork::register_own();
        return;
    }
    plug_in();
    symbolic::init();
    super::pid::init();
    super::entropy::init(wire.world.seed.load(Relaxed));
    super::cpu::init(wire.world.cpus.load(Relaxed));
    let flags = wire.world.flags.load(Relaxed);
    if flags & world::REAL_TIME != 0 {
        clock::init(true);
        sched::add_errand();
    }
    if flags & world::DIR != 0 {
        let mut name = [0u8; 16];
        name[..ENV_DIR.len()].copy_from_slice(ENV_DIR.as_bytes());
        name[ENV_DIR.len()] = b'=';
        zygote::begin_in(glibc::env_value(&name[..=ENV_DIR.len()]));
    }
    if flags & world::STDIN != 0 {
        stdin::init();
    }
    if let Err(message) = fibers::init(thread_entry::heisen_fiber_entry as *const () as usize) {
        sys::write(2, message);
        sys::exit_group(3);
    }
    super::signal::init();
    patch::init(wire);
    super::fork::register_own();
    super::process::watch_exits();
    SCHED.active.set(true);
    if heap::init() {
        allocation::serve_heap();
    }
}

/// Fills the hooks by which each room calls the rooms above it. It must run before there is a second thread.
fn plug_in() {
    unit_mode::plug_in();
    order::plug_in();
    shadow::plug_in();
    HOOKS.tell_block.set(heap::tell_block);
    descriptors::plug_in();
    in_process::plug_in();
    signal::plug_in();
    HOOKS.process_begins.set(pid::init);
    HOOKS.recheck.set(recheck);
    HOOKS.is_watchdog.set(super::timer::is_watchdog);
}

/// Enables or disables the threads whose condition changes without a call to the scheduler.
fn recheck() {
    super::once::recheck();
    super::timer::recheck();
}

/// Parks the process as the zygote before `main`. Each execution is forked from it and continues here.
///
/// # Safety
/// Called by the program's start-up code with what glibc expects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: usize,
    argc: c_int,
    argv: usize,
    init: usize,
    fini: usize,
    rtld_fini: usize,
    stack_end: usize,
) -> c_int {
    let mut entry = main;
    if SCHED.active.get() {
        dead_stack::MAIN_END.store(stack_end, Relaxed);
        thread_entry::set_main(main);
        symbolic::marked::arguments(argc as usize, argv);
        entry = thread_entry::heisen_main as *const () as usize;
    } else if system_mode::is_on() {
        entry = system_start::before_main(main);
    }
    real!(__libc_start_main, fn(
        entry => usize, argc => c_int, argv => usize, init => usize, fini => usize, rtld_fini => usize,
        stack_end => usize
    ) -> c_int)
}

/// The program has come to `main`.
pub extern "C" fn arrived() {
    scope::main_begins();
    if symbolic::marked::is_wanted() {
        super::stdio::watch_reads();
    }
    super::alloc::look_up();
    // The C library's heap gets its first memory here, once for all executions.
    let block = real!(malloc, fn(1 => usize) -> usize);
    real!(free, fn(block => usize) -> ());
    wire_log::wire().boot.store(boot::MAIN, Relaxed);
    if wire_log::wire().park.load(Relaxed) == park::MAIN {
        zygote::park();
    }
}
