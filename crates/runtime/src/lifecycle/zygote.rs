//! The zygote: the program, started once, parked before `main` or where it says that it is ready; every execution is a
//! fork of it.
//!
//! So every execution begins with the same memory, and a crash costs nothing. The engine and the zygote take turns by
//! one word of shared memory; no descriptor is needed, so a program may close them all.

use crate::blocking::descriptors;
use crate::lifecycle::in_process::Ran;
use crate::lifecycle::{begin, in_process, stdin};
use crate::memory::patch;
use crate::memory::race::{self, points};
use crate::platform::sys;
use crate::sched::S;
use crate::sched::hooks;
use crate::wire_log;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use heisen_trace::Note;
use heisen_wire::{MAX_DECISIONS, Wire, boot, park, turn};

/// Address of the path, ended by a zero byte, of the directory in which executions begin; 0 if that is left as it is.
static DIR: AtomicUsize = AtomicUsize::new(0);

/// Executions begin in the directory with this path, ended by a zero byte; 0 for the one that the program was started in.
pub fn begin_in(directory: usize) {
    DIR.store(directory, Relaxed);
}

/// The program says that it is ready: it parks here if it was told to.
pub fn ready() {
    let wire = wire_log::wire();
    if S.running.get() {
        wire_log::note(Note::Ready);
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

/// It is the engine's turn.
pub fn give_turn(wire: &Wire) {
    wire.turn.store(turn::ENGINE, SeqCst);
    wire_log::ring();
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
    let wire = wire_log::wire();
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
