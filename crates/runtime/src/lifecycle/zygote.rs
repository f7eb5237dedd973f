//! The zygote: the program, started once and parked. Executions are forked from it, directly or through a
//! runner.
//!
//! The program parks before `main`, or at its call of `heisen_ready`. So every execution begins with the same
//! memory, and a crash costs nothing. The engine and the zygote take turns through one word of shared memory.
//! That needs no descriptor, so a program may close them all.

use crate::blocking::descriptors;
use crate::lifecycle::in_process::Ran;
use crate::lifecycle::{begin, in_process, stdin};
use crate::memory::patch;
use crate::memory::race::{self, points};
use crate::memory::symbolic;
use crate::platform::sys;
use crate::sched::SCHED;
use crate::sched::hooks;
use crate::wire_log;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use heisen_trace::Note;
use heisen_wire::{MAX_DECISIONS, Wire, boot, park, turn};

/// The address of the path of the directory in which executions begin, as a C string. 0 leaves the directory
/// unchanged.
static DIR: AtomicUsize = AtomicUsize::new(0);

/// Sets the directory in which executions begin, as the address of a C string. 0 stands for the directory in
/// which the program was started.
pub fn begin_in(directory: usize) {
    DIR.store(directory, Relaxed);
}

/// The program calls `heisen_ready`: parks here if the engine has asked for that.
pub fn ready() {
    let wire = wire_log::wire();
    if SCHED.running.get() {
        wire_log::note(Note::Ready);
    } else if wire.park.load(Relaxed) != park::READY {
        // This call comes from a constructor before `main`, and the program will park at `main`.
    } else if SCHED.live.get() != 1 {
        wire.boot.store(boot::THREADS, Relaxed);
        sys::exit_group(3);
    } else {
        park();
    }
}

/// Waits for plans and runs an execution for each. Returns only in the executions.
pub fn park() {
    let wire = wire_log::wire();
    let zygote = sys::getpid();
    sys::become_subreaper();
    race::prepare();
    descriptors::look_at_input();
    let mut ours = true;
    loop {
        if ours {
            give_turn(wire);
        }
        wait_for_turn(wire);
        points::renew();
        match run_slots(wire, zygote) {
            Some(still) => ours = still,
            None => return,
        }
    }
}

/// Gives the turn to the engine and wakes it.
pub fn give_turn(wire: &Wire) {
    wire.turn.store(turn::ENGINE, SeqCst);
    wire_log::ring();
}

/// Waits until the engine gives the turn back, and returns the reason, one of [`turn`]. Requests to map
/// memory for patched code are served here and do not return.
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

/// Waits before `main` of a program in system mode until the engine lets it begin.
pub fn wait_to_go() {
    let wire = wire_log::wire();
    wire.boot.store(boot::MAIN, Relaxed);
    give_turn(wire);
    wait_for_turn(wire);
}

/// Runs the slots of a turn. Returns whether it is still the zygote's turn, or `None` in an execution.
fn run_slots(wire: &Wire, zygote: i32) -> Option<bool> {
    let resets = DIR.load(Relaxed) == 0 && !stdin::is_renewed() && !symbolic::marked::is_wanted();
    let mut decisions = 0;
    let mut number = 0;
    while number < wire.slots_wanted.load(Relaxed) as usize {
        if resets && in_process::suits(wire) {
            match in_process::run(wire, zygote, number, decisions) {
                Ran::Here => return None,
                // The engine runs the remaining slots again.
                Ran::InDoubt => break,
                Ran::Ended => {}
            }
            if wire.turn.load(SeqCst) != turn::ZYGOTE {
                // The runner has given the turn back, perhaps more than once.
                return Some(false);
            }
            // The runner may have ended in a later turn, so its own count of slots is the valid one.
            number = wire.slots_run.load(Relaxed) as usize;
            points::renew();
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

/// Forks one execution and waits for its end. Returns false in the execution itself.
fn execute(wire: &Wire, zygote: i32, number: usize) -> bool {
    let child = sys::fork();
    if child == 0 {
        sys::die_with_parent();
        if sys::getppid() != zygote {
            sys::exit_group(0);
        }
        // The zygote stores it, too, but the engine may have to inspect this process before that.
        wire.child.store(sys::getpid() as u32, SeqCst);
        hooks::process_begins();
        let dir = DIR.load(Relaxed);
        if dir != 0 && !sys::change_directory(dir as *const u8) {
            sys::write(2, b"heisen: the directory of this execution is gone\n");
            sys::exit_group(5);
        }
        if !stdin::renew() {
            sys::write(2, b"heisen: the standard input of this execution cannot be opened\n");
            sys::exit_group(5);
        }
        begin::begin(number);
        return false;
    }
    wire.child.store(child.max(0) as u32, SeqCst);
    let status = if child < 0 { u32::MAX } else { wait_for(child) };
    wire.child.store(0, SeqCst);
    ended(wire, child, number, status);
    true
}

/// Called when the process of an execution has ended with this status.
pub fn ended(wire: &Wire, child: i32, number: usize, status: u32) {
    let slot = &wire.slots[number];
    let started_others = (1 << (Note::Fork as u8)) | (1 << (Note::Spawn as u8));
    if slot.report.notes.load(Relaxed) & started_others != 0 {
        sweep(child);
    }
    slot.status.store(status, Relaxed);
}

/// Waits for a child to end and returns its status.
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

/// Ends the processes that an execution left behind: its process group, then the processes that this process
/// has adopted from it.
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
