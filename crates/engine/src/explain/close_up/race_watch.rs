//! Pauses at the two accesses of one data race, and takes their stacks, locks and the name of the memory.

use super::describe::held_by;
use super::namer::Namer;
use crate::explain::judge::Verdict;
use crate::process::access_points::{Conflict, Side};
use crate::process::slots::{Event, read_events, registers, report_of};
use heisen_inspect::memory::StackMemory;
use heisen_inspect::{Registers, View};
use heisen_trace::race::{Access, Race};
use heisen_trace::{FindingKind, Stack, ThreadId};
use heisen_wire::{Wire, stop};
use std::sync::atomic::Ordering::Relaxed;

/// The verdict on an execution with a data race.
pub(crate) fn verdict(race: &Race) -> Verdict {
    Verdict { kind: FindingKind::DataRace, message: race.message(), key: race.identity() }
}

/// Watches for a race at pauses, and holds the race once it has happened.
#[derive(Debug, Default)]
pub(crate) struct RaceWatch {
    conflict: Option<Conflict>,
    /// The latest access that may be the earlier one of the race. There may be very many. So for each, only
    /// the data for unwinding the stack is taken.
    earlier: Option<Earlier>,
    /// The race.
    pub race: Option<Race>,
}

/// A thread at an access, to be described after it has gone on.
#[derive(Debug)]
struct Earlier {
    registers: Registers,
    memory: StackMemory,
    /// How many events had been logged.
    events: usize,
}

impl RaceWatch {
    /// Starts to watch for a race, in the parked program.
    pub fn of(conflict: &Conflict, wire: &Wire) -> RaceWatch {
        wire.watch.store(conflict.address, Relaxed);
        wire.watch_pc.store(conflict.first.pc, Relaxed);
        wire.watch_conflicts.store(conflict.second.pc, Relaxed);
        wire.watch_thread.store(conflict.first.thread.0.into(), Relaxed);
        RaceWatch { conflict: Some(*conflict), ..RaceWatch::default() }
    }

    /// Called at a pause. Returns whether it is before an access that may be the earlier one.
    pub fn watched(&mut self, wire: &Wire, pid: i32) -> bool {
        let watched = wire.stop.reason.load(Relaxed) == stop::WATCHED;
        if watched && self.race.is_none() {
            let registers = registers(wire);
            let memory = StackMemory::taken_at(pid, registers.rsp);
            let events = report_of(wire).events.load(Relaxed) as usize;
            self.earlier = Some(Earlier { registers, memory, events });
        }
        watched
    }

    /// Called at the conflict: records the race.
    pub fn conflict(&mut self, wire: &Wire, view: &mut View<'_>, namer: &mut Namer) {
        let (Some(conflict), Some(earlier)) = (self.conflict, self.earlier.take()) else { return };
        // Stop watching for it.
        wire.watch_pc.store(0, Relaxed);
        let stack = view.stack_in(earlier.registers, earlier.memory);
        let events = read_events(wire);
        let since = (report_of(wire).events.load(Relaxed) as usize).saturating_sub(earlier.events);
        let before = &events[..events.len().saturating_sub(since)];
        let second = ThreadId(wire.stop.thread.load(Relaxed) as u16);
        let later_stack = view.stack(registers(wire));
        self.race = Some(Race {
            first: access((view, wire, namer), &conflict.first, conflict.first.thread, stack, before),
            second: access((view, wire, namer), &conflict.second, second, later_stack, &events),
            object: touched(view, wire, namer, conflict.address),
            executions: 0,
        });
    }
}

fn access(
    (view, wire, namer): (&mut View<'_>, &Wire, &mut Namer),
    side: &Side,
    thread: ThreadId,
    stack: Stack,
    events: &[Event],
) -> Access {
    // A thread that ends has left its function.
    let stack = if stack.0.is_empty() { Stack(view.frame_at(side.pc, true)) } else { stack };
    Access {
        thread,
        write: side.write,
        atomic: side.atomic,
        size: side.size,
        holds: held_by(view, wire, namer, thread, events).into_iter().map(|lock| lock.held).collect(),
        stack,
    }
}

/// The heap block of the watched access, in words.
fn block(view: &mut View<'_>, wire: &Wire) -> Option<String> {
    let heap = &wire.heap;
    (heap.serial.load(Relaxed) != 0).then(|| {
        let (offset, size) = (heap.offset.load(Relaxed), heap.size.load(Relaxed));
        let thread = ThreadId(heap.alloc_thread.load(Relaxed) as u16);
        let stack = Stack(view.frame_at(heap.alloc_pc.load(Relaxed), true));
        let place = stack.place().map_or(String::new(), |f| format!(" at {}", f.place()));
        format!("byte {offset} of a block of {size} bytes that {thread} allocated{place}")
    })
}

/// What lies at an address, in words: a variable, the stack of a thread, or the heap.
fn touched(view: &mut View<'_>, wire: &Wire, namer: &mut Namer, address: u64) -> String {
    if let Some(name) = namer.variable(view, wire, address) {
        return name;
    }
    if let Some(block) = block(view, wire) {
        return block;
    }
    let count = report_of(wire).threads.load(Relaxed) as usize;
    let running = wire.stop.thread.load(Relaxed) as usize;
    let is_on_stack = |number: &usize| {
        let sp = match *number == running {
            true => registers(wire).rsp,
            false => wire.threads[*number].sp.load(Relaxed),
        };
        sp != 0 && sp <= address && view.in_one_mapping(sp, address)
    };
    match (0..count).find(is_on_stack) {
        Some(number) => format!("the stack of {}", ThreadId(number as u16)),
        None => format!("memory at {address:#x}"),
    }
}
