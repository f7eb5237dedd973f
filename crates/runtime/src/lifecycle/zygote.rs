//! The zygote: the program, started once, parked before `main` or where it says that it is ready; every execution is a
//! fork of it.
//!
//! So every execution begins with the same memory, and a crash costs nothing. The engine and the zygote take turns by
//! one word of shared memory; no descriptor is needed, so a program may close them all.

use crate::carrier::fibers;
use crate::lifecycle::in_process::Ran;
use crate::lifecycle::{in_process, report, stdin};
use crate::memory::{heap, patch, race};
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::S;
use crate::sched::{clock, faults, scope};
use crate::script::system_mode;
use crate::shim;
use core::ffi::c_int;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use heisen_trace::Note;
use heisen_wire::{ENV_DIR, ENV_FD, MAGIC, MAX_DECISIONS, SIZE, Wire, boot, park, turn, world};

/// Runs before the program's own constructors, when the dynamic loader initialises this library.
#[unsafe(link_section = ".init_array")]
#[used]
static INIT: extern "C" fn() = init;

/// Address of the path, ended by a zero byte, of the directory in which executions begin; 0 if that is left as it is.
static DIR: AtomicUsize = AtomicUsize::new(0);

extern "C" fn init() {
    shim::memory::look_up();
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
        crate::lifecycle::reaper::split();
    }
    wire.zygote.store(sys::getpid() as u32, Relaxed);
    report::attach(at);
    if free {
        system_mode::init(wire);
        patch::init(wire);
        shim::fork::register_own();
        return;
    }
    shim::pid::init();
    shim::random::init(wire.world.seed.load(Relaxed));
    shim::cpu::init(wire.world.cpus.load(Relaxed));
    let flags = wire.world.flags.load(Relaxed);
    if flags & world::REAL_TIME != 0 {
        clock::init(true);
        crate::sched::add_errand();
    }
    if flags & world::DIR != 0 {
        let mut name = [0u8; 16];
        name[..ENV_DIR.len()].copy_from_slice(ENV_DIR.as_bytes());
        name[ENV_DIR.len()] = b'=';
        DIR.store(glibc::env_value(&name[..=ENV_DIR.len()]), Relaxed);
    }
    if flags & world::STDIN != 0 {
        stdin::init();
    }
    if let Err(message) = fibers::init() {
        sys::write(2, message);
        sys::exit_group(3);
    }
    shim::signal::init();
    patch::init(wire);
    shim::fork::register_own();
    shim::process::watch_exits();
    S.active.set(true);
    if heap::init() {
        faults::serve_heap();
    }
}

/// Before `main`, the process parks; each execution is a fork of it that goes on here.
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
    if S.active.get() {
        race::dead_stack::MAIN_END.store(stack_end, Relaxed);
        fibers::set_main(main);
        entry = fibers::heisen_main as *const () as usize;
    } else if system_mode::is_on() {
        entry = system_mode::before_main(main);
    }
    real!(__libc_start_main, fn(
        entry => usize, argc => c_int, argv => usize, init => usize, fini => usize, rtld_fini => usize,
        stack_end => usize
    ) -> c_int)
}

/// The program has come to `main`.
pub extern "C" fn arrived() {
    scope::main_begins();
    shim::alloc::look_up();
    // The C library's heap gets its first memory here, once for all executions.
    let block = real!(malloc, fn(1 => usize) -> usize);
    real!(free, fn(block => usize) -> ());
    report::wire().boot.store(boot::MAIN, Relaxed);
    if report::wire().park.load(Relaxed) == park::MAIN {
        park();
    }
}

/// The program says that it is ready: it parks here if it was told to.
pub fn ready() {
    let wire = report::wire();
    if S.running.get() {
        report::note(Note::Ready);
    } else if wire.park.load(Relaxed) != park::READY {
        // A constructor, before `main`, where it will be parked.
    } else if S.live.get() != 1 {
        wire.boot.store(boot::THREADS, Relaxed);
        sys::exit_group(3);
    } else {
        park();
    }
}

/// Waits for plans and forks an execution for each; returns only in the executions.
fn park() {
    let wire = report::wire();
    let zygote = sys::getpid();
    sys::become_subreaper();
    crate::memory::race::prepare();
    crate::blocking::descriptors::look_at_input();
    let mut ours = true;
    loop {
        if ours {
            give_turn(wire);
        }
        wait_for_turn(wire);
        crate::memory::race::points::renew();
        match run_slots(wire, zygote) {
            Some(still) => ours = still,
            None => return,
        }
    }
}

/// It is the engine's turn.
pub fn give_turn(wire: &Wire) {
    wire.turn.store(turn::ENGINE, SeqCst);
    report::ring();
}

/// Waits until it is ours again, for something else than memory for patched code, which is mapped meanwhile; for what.
pub fn wait_for_turn(wire: &Wire) -> u32 {
    loop {
        while wire.turn.load(SeqCst) == turn::ENGINE {
            sys::futex_wait(&wire.turn, turn::ENGINE);
        }
        match wire.turn.load(SeqCst) {
            turn::QUIT => sys::exit_group(0),
            turn::PATCH => patch::prepare(wire),
            other => return other,
        }
        give_turn(wire);
    }
}

/// A program whose threads run free is about to begin: it waits here until it is let.
pub fn wait_to_go() {
    let wire = report::wire();
    wire.boot.store(boot::MAIN, Relaxed);
    give_turn(wire);
    wait_for_turn(wire);
}

/// Runs the slots of a turn. Whether it is still our turn then; none in the executions.
fn run_slots(wire: &Wire, zygote: i32) -> Option<bool> {
    let resets = DIR.load(Relaxed) == 0 && !stdin::is_renewed();
    let mut decisions = 0;
    let mut number = 0;
    while number < wire.slots_wanted.load(Relaxed) as usize {
        if resets && in_process::suits(wire) {
            match in_process::run(wire, zygote, number, decisions) {
                Ran::Here => return None,
                // The engine has the rest run again.
                Ran::InDoubt => break,
                Ran::Ended => {}
            }
            if wire.turn.load(SeqCst) != turn::ZYGOTE {
                // The runner has given the turn back, perhaps more than once.
                return Some(false);
            }
            // Perhaps it is another turn by now.
            number = wire.slots_run.load(Relaxed) as usize;
            crate::memory::race::points::renew();
        } else {
            wire.slots[number].report.first_decision.store(decisions, Relaxed);
            wire.slot.store(number as u32, SeqCst);
            if !execute(wire, zygote, number) {
                return None;
            }
            number += 1;
            wire.slots_run.store(number as u32, Relaxed);
        }
        decisions = wire.slots[..number].iter().map(|slot| slot.report.decisions.load(Relaxed)).sum();
        if wire.enough.load(SeqCst) != 0 || decisions as usize > MAX_DECISIONS / 2 {
            break;
        }
    }
    Some(true)
}

/// Forks one execution and waits for its end. False in the execution itself.
fn execute(wire: &Wire, zygote: i32, number: usize) -> bool {
    let child = sys::fork();
    if child == 0 {
        sys::die_with_parent();
        if sys::getppid() != zygote {
            sys::exit_group(0);
        }
        // The zygote says so, too, but perhaps not before the engine is asked to look.
        wire.child.store(sys::getpid() as u32, SeqCst);
        shim::pid::init();
        let dir = DIR.load(Relaxed);
        if dir != 0 && !sys::change_directory(dir as *const u8) {
            sys::write(2, b"heisen: the directory of this execution is gone\n");
            sys::exit_group(5);
        }
        if !stdin::renew() {
            sys::write(2, b"heisen: the standard input of this execution cannot be opened\n");
            sys::exit_group(5);
        }
        report::begin(number);
        return false;
    }
    wire.child.store(child.max(0) as u32, SeqCst);
    let status = if child < 0 { u32::MAX } else { wait_for(child) };
    wire.child.store(0, SeqCst);
    ended(wire, child, number, status);
    true
}

/// The process of an execution has ended with this status.
pub fn ended(wire: &Wire, child: i32, number: usize, status: u32) {
    let slot = &wire.slots[number];
    let started_others = (1 << (Note::Fork as u8)) | (1 << (Note::Spawn as u8));
    if slot.report.notes.load(Relaxed) & started_others != 0 {
        sweep(child);
    }
    slot.status.store(status, Relaxed);
}

/// Waits for a child to end; its status.
pub fn wait_for(child: i32) -> u32 {
    loop {
        let (got, status) = sys::wait(child);
        if got == child {
            return status;
        }
        if got != -sys::EINTR {
            return u32::MAX;
        }
    }
}

/// Ends what an execution left behind: its process group, then whatever was adopted from it.
fn sweep(child: i32) {
    sys::kill(-child, sys::SIGKILL);
    for _ in 0..1000 {
        crate::lifecycle::reaper::kill_children();
        let (got, _) = sys::wait(-1);
        if got < 0 && got != -sys::EINTR {
            return;
        }
    }
}
