//! The runtime's side of the wire: the slot of the execution that runs, and the log that the engine reads.
//!
//! This module only writes memory: it knows neither the scheduler nor its callers. `sched::events` decides
//! what is logged of an event or a decision.

pub mod symbolic_log;

use crate::platform::baton::Guarded;
use crate::platform::program_memory;
use crate::platform::sys;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use heisen_trace::{Note, Op};
use heisen_wire::{
    EVENT_ACCESS, EVENT_FAILED, EVENT_SIZE, Lists, MAX_EVENTS, MAX_SLOTS, MAX_TEXT, Slot, Wire, flag,
    pack_event,
};

struct WireLog {
    flags: Cell<u32>,
    /// The slot of the execution that runs.
    slot: Cell<usize>,
    /// Where the number of steps is stored at each step.
    steps: Cell<&'static AtomicU32>,
    /// The last logged write, whose value is not yet in memory: the index of its event plus 1, address and size.
    written: Cell<(usize, usize, usize)>,
    /// The real time in nanoseconds at which the program started and at which the execution began. The latter
    /// is set only if events are logged.
    started: Cell<u64>,
    begun: Cell<u64>,
}

/// The address of the mapping; 0 while there is none. In system mode, threads that run in parallel read it,
/// too.
static WIRE: AtomicUsize = AtomicUsize::new(0);

/// Receives the number of steps before there is an execution.
static NO_STEPS: AtomicU32 = AtomicU32::new(0);

static LOG: Guarded<WireLog> = Guarded::new(WireLog {
    flags: Cell::new(0),
    slot: Cell::new(0),
    steps: Cell::new(&NO_STEPS),
    written: Cell::new((0, 0, 0)),
    started: Cell::new(0),
    begun: Cell::new(0),
});

/// Attaches the mapping.
pub fn attach(at: usize) {
    WIRE.store(at, Relaxed);
    set_slot(0);
    LOG.started.set(now(CLOCK_REALTIME_COARSE));
}

/// The kernel stamps files by the coarse clock. Since Linux 6.13 it uses the fine clock for files whose
/// stamps somebody reads. The coarse clock is never later than the fine one. So a span of stamps begins by
/// the coarse clock and ends by the fine one.
const CLOCK_REALTIME: i32 = 0;
const CLOCK_REALTIME_COARSE: i32 = 5;

fn now(clock: i32) -> u64 {
    let [seconds, nanos] = sys::clock(clock);
    seconds as u64 * 1_000_000_000 + nanos as u64
}

/// The mapping. Must only be called in a controlled process.
#[inline]
pub fn wire() -> &'static Wire {
    // SAFETY: `attach` was given a mapping of this layout, which lives as long as the process. All its fields
    // are atomics.
    unsafe { &*(WIRE.load(Relaxed) as *const Wire) }
}

/// The slot of the execution that runs.
#[inline]
pub fn slot() -> &'static Slot {
    &wire().slots[LOG.slot.get() % MAX_SLOTS]
}

/// The lists of that execution, which are too long for the slot.
pub fn lists() -> &'static Lists {
    &wire().lists[LOG.slot.get() % MAX_SLOTS]
}

/// The report of that execution so far.
pub fn so_far() -> &'static heisen_wire::Report {
    &slot().report
}

/// Makes the execution in this slot the one that runs.
pub fn set_slot(number: usize) {
    LOG.slot.set(number);
    LOG.steps.set(&slot().report.steps);
}

/// What the plan wants to be logged, as bits of [`flag`].
#[inline]
pub fn flags() -> u32 {
    LOG.flags.get()
}

/// Sets what is logged, as bits of [`flag`].
pub fn set_flags(flags: u32) {
    LOG.flags.set(flags);
}

/// Records the real time at which the execution begins, for [`opened`].
pub fn note_begin() {
    if logs_events() {
        LOG.begun.set(now(CLOCK_REALTIME));
    }
}

/// Whether the execution stops for the engine at its end, at crashes and at decisions.
pub fn stops() -> bool {
    LOG.flags.get() & flag::STOPS != 0
}

/// Whether a debugger is attached.
pub fn debugged() -> bool {
    LOG.flags.get() & flag::DEBUGGER != 0
}

/// Where conflicting accesses are logged, and how many were logged so far.
pub fn conflicts() -> (&'static [heisen_wire::Conflict], usize) {
    (&lists().conflicts, slot().report.conflicts.load(Relaxed) as usize)
}

/// Sets how many conflicts were logged.
pub fn set_conflicts(count: usize) {
    slot().report.conflicts.store(count as u32, Relaxed);
}

/// Logs the number of steps so far.
#[inline]
pub fn steps(step: u32) {
    LOG.steps.get().store(step, Relaxed);
}

/// Logs the number of threads so far.
pub fn threads_created(count: usize) {
    slot().report.threads.store(count as u32, Relaxed);
}

/// Logs the number of events of a thread, which is named by its parent and its index among the parent's
/// children. Logs nothing if there is no room.
pub fn counted(number: usize, parent: u16, child: u16, events: u32) {
    let slot = slot();
    if let Some(out) = lists().counted.get(number) {
        out.place.store(u32::from(parent) | u32::from(child) << 16, Relaxed);
        out.events.store(events, Relaxed);
        if slot.report.counted.load(Relaxed) <= number as u32 {
            slot.report.counted.store(number as u32 + 1, Relaxed);
        }
    }
}

/// Notes for the verdict that the program used something that is not controlled.
pub fn note(note: Note) {
    let notes = &slot().report.notes;
    notes.store(notes.load(Relaxed) | 1 << (note as u8), Relaxed);
}

/// Whether the program has started other processes.
pub fn started_others() -> bool {
    slot().report.notes.load(Relaxed) & ((1 << (Note::Fork as u8)) | (1 << (Note::Spawn as u8))) != 0
}

/// The program has opened a file. If events are logged, the engine may look for the reason of a divergence.
/// Then this notes a file that was written between the start of the program and that of the execution.
pub fn opened(fd: i32) {
    if logs_events() {
        let written = sys::last_written(fd);
        if written.is_some_and(|at| (LOG.started.get()..=LOG.begun.get()).contains(&at)) {
            note(Note::ChangedFile);
        }
    }
}

/// Reports that the program waits for time to pass and is not stuck.
pub fn heartbeat() {
    wire().heartbeat.fetch_add(1, Relaxed);
}

/// Whether events are logged.
#[inline]
pub fn logs_events() -> bool {
    LOG.flags.get() & flag::EVENTS != 0
}

/// Logs an operation of a thread, done at this step or before.
pub fn event(step: u32, thread: u16, op: Op, object: usize, pc: usize) {
    let report = &slot().report;
    let index = report.events.load(Relaxed) as usize;
    if index >= MAX_EVENTS && !stops() {
        return;
    }
    // In a close-up the last events overwrite the first: they show why an execution does not end.
    let event = &wire().events[index % MAX_EVENTS];
    event[0].store(pack_event(step, thread, op as u8), Relaxed);
    event[1].store(object as u64, Relaxed);
    event[2].store(pc as u64, Relaxed);
    event[3].store(0, Relaxed);
    report.events.store(index as u32 + 1, Relaxed);
}

/// Whether accesses of memory are logged.
pub fn logs_accesses() -> bool {
    LOG.flags.get() & flag::ACCESSES != 0
}

/// Logs an access of memory with its value. For a read or an atomic operation that is the value in memory now. A plain
/// write is logged before it is done, so its value is added by the next call of this function or of [`settle`]. `can_read`
/// says that the program may read the memory or would crash there: asking the kernel takes longer than all else.
pub fn access(
    step: u32,
    thread: u16,
    op: Op,
    (address, size): (usize, usize),
    pc: usize,
    can_read: impl FnOnce() -> bool,
) {
    settle();
    // Logging is slow, and there may be many accesses between two steps.
    heartbeat();
    let before = slot().report.events.load(Relaxed);
    event(step, thread, op, address, pc);
    let index = slot().report.events.load(Relaxed) as usize;
    if index == before as usize {
        // The log is full.
        return;
    }
    let event = &wire().events[(index - 1) % MAX_EVENTS];
    let size = size.min(8);
    let marks = EVENT_ACCESS | u64::from(size.next_power_of_two().trailing_zeros()) << EVENT_SIZE;
    event[0].store(event[0].load(Relaxed) | marks, Relaxed);
    if op == Op::MemWrite {
        LOG.written.set((index, address, size));
        return;
    }
    let value = if can_read() { program_memory::load(address, size) } else { sys::peek(address, size) };
    event[3].store(value, Relaxed);
}

/// Logs that a thread ends so much memory at this address, by freeing or unmapping it.
#[cold]
pub fn ended((step, thread, op): (u32, u16, Op), (address, size): (usize, usize), pc: usize) {
    settle();
    let before = slot().report.events.load(Relaxed);
    event(step, thread, op, address, pc);
    let index = slot().report.events.load(Relaxed) as usize;
    if index != before as usize {
        wire().events[(index - 1) % MAX_EVENTS][3].store(size as u64, Relaxed);
    }
}

/// Adds the value to the last logged write.
pub fn settle() {
    let (index, address, size) = LOG.written.replace((0, 0, 0));
    if index > 0 {
        wire().events[(index - 1) % MAX_EVENTS][3].store(sys::peek(address, size), Relaxed);
    }
}

/// The running thread has crashed at this address. If the last logged event is the access that did so, it has read or
/// written nothing.
pub fn crashed(address: usize) {
    let index = slot().report.events.load(Relaxed) as usize;
    if index == 0 || !logs_accesses() {
        return;
    }
    let event = &wire().events[(index - 1) % MAX_EVENTS];
    let word = event[0].load(Relaxed);
    let size = 1 << (word >> EVENT_SIZE & 3);
    if word & EVENT_ACCESS != 0 && address.wrapping_sub(event[1].load(Relaxed) as usize) < size {
        event_failed();
        LOG.written.set((0, 0, 0));
    }
}

/// Marks the last logged event as failed.
pub fn event_failed() {
    let index = slot().report.events.load(Relaxed) as usize;
    if index > 0 {
        let word = &wire().events[(index - 1) % MAX_EVENTS][0];
        word.store(word.load(Relaxed) | EVENT_FAILED, Relaxed);
    }
}

/// Adds an entry to the log of decisions and touches.
pub fn log(words: [u64; 2]) {
    let report = &slot().report;
    let count = report.decisions.load(Relaxed);
    if let Some(entry) = wire().decisions.get((report.first_decision.load(Relaxed) + count) as usize) {
        entry[0].store(words[0], Relaxed);
        entry[1].store(words[1], Relaxed);
        report.decisions.store(count + 1, Relaxed);
    } else {
        note(Note::LogFull);
    }
}

/// Sets the hash of everything done so far, by which the engine distinguishes executions.
pub fn set_graph(hash: u64) {
    slot().report.graph.store(hash, Relaxed);
}

/// Appends a string, ended by a zero byte, to the text of the report.
pub fn text(bytes: &[u8]) {
    let used = slot().report.text.load(Relaxed) as usize;
    let room = (MAX_TEXT - used).saturating_sub(1);
    let taken = bytes.len().min(room);
    for (slot, &byte) in lists().text[used..].iter().zip(&bytes[..taken]) {
        slot.store(byte, Relaxed);
    }
    if room > 0 {
        lists().text[used + taken].store(0, Relaxed);
        slot().report.text.store((used + taken + 1) as u32, Relaxed);
    }
}

/// Wakes the engine.
pub fn ring() {
    wire().bell.fetch_add(1, SeqCst);
    sys::futex_wake(&wire().bell);
}

/// Whether the engine has just sent this signal.
pub fn is_from_engine(signal: i32) -> bool {
    let asked = &wire().question;
    asked.compare_exchange(signal as u32, 0, SeqCst, SeqCst).is_ok()
}
