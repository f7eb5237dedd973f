//! The runtime's side of the wire: begins executions, keeps the log, pauses for the engine to look. What the plan wants is in
//! [`plan`].

mod plan;

pub use plan::planned;

use crate::platform::baton::Guarded;
use plan::{diverge, due, take_choices};

use crate::carrier::{debugger, fibers, kernel_threads};
use crate::memory::heap;
use crate::platform::sys;
use crate::sched::{NONE, S, me, needs, thread, threads, watch_steps};
use crate::sched::{dependence, fair, faults, recurrence, scope, symmetry};
use crate::script::unit_mode;
use crate::shim;
use core::cell::Cell;
use core::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, compiler_fence,
};
use heisen_trace::decision::Decision;
use heisen_trace::{Note, Op};
use heisen_wire::{
    Lists, MAX_EVENTS, MAX_SLOTS, MAX_TEXT, NO_THREAD, Slot, Wire, diverged, end, flag, misuse, pack_event,
    state, stop, want,
};

struct Report {
    flags: Cell<u32>,
    /// The execution that runs.
    slot: Cell<usize>,
    /// Where it tells how many steps it has taken, at each of them.
    steps: Cell<&'static AtomicU32>,
    /// The next override of the plan, and the end of them.
    next: Cell<u32>,
    overrides: Cell<u32>,
    /// When the program was started and the execution began, in real nanoseconds; kept only where events are logged.
    started: Cell<u64>,
    begun: Cell<u64>,
}

/// Address of the mapping; 0 while there is none. Threads that run in parallel use it, too.
static WIRE: AtomicUsize = AtomicUsize::new(0);

/// Steps before there is anyone to tell them to.
static UNTOLD: AtomicU32 = AtomicU32::new(0);

static R: Guarded<Report> = Guarded::new(Report {
    flags: Cell::new(0),
    slot: Cell::new(0),
    steps: Cell::new(&UNTOLD),
    next: Cell::new(0),
    overrides: Cell::new(0),
    started: Cell::new(0),
    begun: Cell::new(0),
});

/// Attaches the mapping.
pub fn attach(at: usize) {
    WIRE.store(at, Relaxed);
    set_slot(0);
    R.started.set(now(CLOCK_REALTIME_COARSE));
}

/// The kernel stamps files by the coarse clock or, since 6.13 and where somebody looks at the stamps, by the fine one.
/// The coarse one is never ahead, so that a span of stamps begins by it and ends by the fine one.
const CLOCK_REALTIME: i32 = 0;
const CLOCK_REALTIME_COARSE: i32 = 5;

fn now(clock: i32) -> u64 {
    let [seconds, nanos] = sys::clock(clock);
    seconds as u64 * 1_000_000_000 + nanos as u64
}

/// The mapping. Only to be called in a controlled process.
#[inline]
pub fn wire() -> &'static Wire {
    // SAFETY: `attach` was given a mapping of this layout, which stays for the life of the process; all its fields
    // are atomics.
    unsafe { &*(WIRE.load(Relaxed) as *const Wire) }
}

/// The execution that runs.
#[inline]
fn slot() -> &'static Slot {
    &wire().slots[R.slot.get() % MAX_SLOTS]
}

/// What it has besides.
fn lists() -> &'static Lists {
    &wire().lists[R.slot.get() % MAX_SLOTS]
}

/// What has been told of the execution so far.
pub fn so_far() -> &'static heisen_wire::Report {
    &slot().report
}

fn set_slot(number: usize) {
    R.slot.set(number);
    R.steps.set(&slot().report.steps);
}

/// An execution begins: takes over the plan. What was done before `main` does not count.
pub fn begin(number: usize) {
    set_slot(number);
    let plan = &slot().plan;
    let limit = plan.step_limit.load(Relaxed);
    S.step.set(0);
    S.hash.set(heisen_trace::hash::EMPTY);
    S.limit.set(limit);
    S.tail.set(limit / 2);
    // In real time a wait times out when its time is over, and not before.
    S.horizon.set(if crate::sched::clock::is_real() { 0 } else { plan.horizon.load(Relaxed) });
    scope::begin();
    R.flags.set(plan.flags.load(Relaxed));
    dependence::begin(R.flags.get());
    symmetry::begin(R.flags.get());
    heap::begin();
    faults::begin(plan.spurious.load(Relaxed), plan.faults.load(Relaxed), plan.fault_kinds.load(Relaxed));
    for (_, t) in threads() {
        for stamp in [&t.enabled_since, &t.scheduled_at, &t.yielded_at, &t.disabled_at, &t.gave_way_at] {
            stamp.set(0);
        }
    }
    threads_created(S.count.get());
    take_choices();
    watch_steps();
    if R.flags.get() & flag::KERNEL != 0 {
        kernel_threads::begin();
    }
    if R.flags.get() & flag::DEBUGGER != 0 {
        debugger::begin();
    }
    set_alarm();
    crate::lifecycle::input_log::begin(R.flags.get());
    crate::blocking::descriptors::begin(u64::from(plan.patience.load(Relaxed)));
    crate::memory::race::begin();
    S.running.set(true);
    if R.flags.get() & flag::EVENTS != 0 {
        R.begun.set(now(CLOCK_REALTIME));
    }
    if crate::sched::clock::is_real() {
        note(Note::RealTime);
    }
    if stops() {
        shim::signal::catch_crashes();
    }
    if R.flags.get() & flag::SCRIPT != 0 {
        unit_mode::begin();
    }
}

/// An execution begins at a choice, after what is the same in all of them was done in another one, so many of the plan's overrides
/// among it: takes over from the plan what may differ.
pub fn resume(number: usize, followed: u32) {
    set_slot(number);
    look_at(slot().plan.flags.load(Relaxed));
    take_choices();
    R.next.set(R.next.get() + followed);
    slot().report.followed.store(followed, Relaxed);
    watch_steps();
    set_alarm();
}

/// How many overrides of the plan were followed so far, or given up.
pub fn followed() -> u32 {
    R.next.get() - slot().plan.first_override.load(Relaxed)
}

/// States are kept, whether or not the plan asks for them, or only if it does.
pub fn look_at_states(always: bool) {
    look_at(slot().plan.flags.load(Relaxed) | if always { flag::STATES } else { 0 });
}

/// From here on this is kept, as bits of [`flag`].
fn look_at(flags: u32) {
    R.flags.set(flags);
    dependence::begin(flags);
    watch_steps();
}

/// Whether the engine looks at the end, at crashes and at decisions.
pub fn stops() -> bool {
    R.flags.get() & flag::STOPS != 0
}

/// Whether a debugger is attached.
pub fn debugged() -> bool {
    R.flags.get() & flag::DEBUGGER != 0
}

/// Stops, if anyone wants to look: the engine, or a debugger that waits for what is named in [`want`].
fn show(reason: u32, wanted: u32) {
    if stops() {
        pause(reason);
    } else if debugged() {
        debugger::reached(wanted);
    }
}

/// Stops for the engine to look, in a close look.
pub fn stop_at(reason: u32) {
    if stops() {
        pause(reason);
    }
}

/// Where conflicts of accesses are told, and how many have been so far.
pub fn conflicts() -> (&'static [heisen_wire::Conflict], usize) {
    (&lists().conflicts, slot().report.conflicts.load(Relaxed) as usize)
}

/// So many conflicts have been told.
pub fn tell_conflicts(count: usize) {
    slot().report.conflicts.store(count as u32, Relaxed);
}

/// Whether decisions are logged, the one that was just looked up in the plan and those after it.
#[inline]
pub fn logs_decisions() -> bool {
    let flags = R.flags.get();
    flags & (flag::DECISIONS | flag::STOPS) != 0
        && (flags & flag::LATE == 0 || R.next.get() == R.overrides.get())
}

/// The number of steps so far.
#[inline]
pub fn steps(step: u32) {
    R.steps.get().store(step, Relaxed);
}

/// The number of threads so far.
pub fn threads_created(count: usize) {
    slot().report.threads.store(count as u32, Relaxed);
}

/// A thread, known by its place in the tree of creation, has come to so many events. What there is no room for is not
/// told.
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

/// Something happened that is not controlled.
pub fn note(note: Note) {
    if matches!(note, Note::CpuClock | Note::Outside | Note::Aside) {
        recurrence::consulted();
    }
    let notes = &slot().report.notes;
    notes.store(notes.load(Relaxed) | 1 << (note as u8), Relaxed);
}

/// Whether the program has started other processes.
pub fn started_others() -> bool {
    slot().report.notes.load(Relaxed) & ((1 << (Note::Fork as u8)) | (1 << (Note::Spawn as u8))) != 0
}

/// The program has opened a file. Where events are logged, which is when a reason for a divergence may be looked for,
/// notes one that was written between the start of the program and that of the execution.
pub fn opened(fd: i32) {
    if S.active.get() && R.flags.get() & flag::EVENTS != 0 {
        let written = sys::last_written(fd);
        if written.is_some_and(|at| (R.started.get()..=R.begun.get()).contains(&at)) {
            note(Note::ChangedFile);
        }
    }
}

/// The program waits for time to pass, and has not got stuck.
pub fn heartbeat() {
    wire().heartbeat.fetch_add(1, Relaxed);
}

/// The running thread does an operation.
#[inline]
pub fn event(op: Op, object: usize, pc: usize) {
    if R.flags.get() & (flag::EVENTS | flag::STATES | flag::TOUCHES) != 0 {
        log_event(op, object, pc);
    }
}

#[cold]
fn log_event(op: Op, object: usize, pc: usize) {
    recurrence::does(op);
    if dependence::wanted() {
        dependence::reported(op, object, pc);
    }
    if logs_events() {
        mention(S.current.get(), op, object, pc);
    }
}

/// Whether events are told.
pub fn logs_events() -> bool {
    R.flags.get() & flag::EVENTS != 0
}

/// Tells of an operation of a thread, by now or before.
pub fn mention(thread: u16, op: Op, object: usize, pc: usize) {
    let report = &slot().report;
    let index = report.events.load(Relaxed) as usize;
    if index >= MAX_EVENTS && !stops() {
        return;
    }
    // In a close look the last ones are kept: they tell why an execution does not end.
    let event = &wire().events[index % MAX_EVENTS];
    event[0].store(pack_event(S.step.get(), thread, op as u8), Relaxed);
    event[1].store(object as u64, Relaxed);
    event[2].store(pc as u64, Relaxed);
    report.events.store(index as u32 + 1, Relaxed);
}

/// The last event did not succeed: a lock was not acquired, a wait timed out.
pub fn failed() {
    dependence::outcome(0);
    if R.flags.get() & flag::EVENTS != 0 {
        let index = slot().report.events.load(Relaxed) as usize;
        if index > 0 {
            let word = &wire().events[(index - 1) % MAX_EVENTS][0];
            word.store(word.load(Relaxed) | heisen_wire::EVENT_FAILED, Relaxed);
        }
    }
}

/// A wait that the running thread began some events ago has timed out.
pub fn timed_out(op: Op, object: usize, pc: usize) {
    event(op, object, pc);
    failed();
}

/// Adds to the log of decisions and touches.
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

/// The hash of all that was done so far, for those who want to tell executions apart.
pub fn tell_graph(hash: u64) {
    slot().report.graph.store(hash, Relaxed);
}

/// A decision was taken, for `to`: the thread that runs or is woken, the value, the fault.
pub fn decision(decision: &Decision, to: u16) {
    if logs_decisions() {
        log(decision.pack());
    }
    if debugged() {
        debugger::decided(decision, to);
    }
    if stops() && decision.chosen != 0 {
        let stop = &wire().stop;
        stop.to.store(to as u32, Relaxed);
        stop.kind.store(decision.kind as u32 | (decision.preemptive as u32) << 8, Relaxed);
        stop.options.store(decision.options as u32, Relaxed);
        pause(stop::DECISION);
    }
}

/// Sets when the next look is due: at once if there are signals from outside to be handed out.
pub fn set_alarm() {
    let mut at = S.tail.get().min(S.limit.get()).min(debugger::until());
    if let Some(planned) = due(None) {
        at = at.min(planned.saturating_add(1));
    }
    if S.step.get() >= S.tail.get() {
        at = S.limit.get();
    }
    let seeks_cycle = S.step.get() >= S.tail.get() && recurrence::wanted();
    if unit_mode::is_on() || S.in_section.get() || seeks_cycle {
        at = 0;
    }
    S.alarm.set(at);
    // A signal that comes from here on sets the alarm itself, and so does a debugger.
    compiler_fence(SeqCst);
    if shim::signal::arrived() || debugger::until() < at {
        S.alarm.set(0);
    }
}

/// The step is one at which something may be due.
#[cold]
pub fn alarm(step: u32) {
    if let Some(planned) = due(Some(step))
        && step > planned
    {
        diverge(diverged::NO_DECISION, planned, 0);
    }
    if step >= debugger::until() {
        debugger::reached(want::STEP);
        set_alarm();
    }
    if step >= S.limit.get() {
        let bad = fair::bad_samaritan(S.tail.get());
        finish(end::STEP_LIMIT, bad.map_or(0, |number| number as i32 + 1), 0);
    }
    if step >= S.tail.get() {
        note(Note::FairTail);
        fair::watch();
        if !crate::sched::clock::is_real() {
            S.horizon.set(u64::MAX);
        }
        crate::sched::time_passed();
    }
    set_alarm();
}

/// The program does not ask for what was recorded: it goes another way, and cannot go on without the outside.
pub fn other_input() -> ! {
    diverge(diverged::INPUT, S.step.get(), 0);
    ending(end::EXIT, 0, thread(me()).pc.get());
    sys::exit_group(0)
}

/// The execution is about to end in an orderly way: notes how.
pub fn ending(how: u32, code: i32, pc: usize) {
    dependence::ending();
    let report = &slot().report;
    // What goes wrong while the program exits counts more than that it does; and so does another thread that ends it first.
    let before = report.end.load(Relaxed);
    let again = how == end::EXIT && report.end_thread.load(Relaxed) == me() as u32;
    if before != end::NONE && (before != end::EXIT || again) {
        return;
    }
    report.end.store(how, Relaxed);
    report.end_code.store(code as u32, Relaxed);
    report.end_thread.store(me() as u32, Relaxed);
    report.end_pc.store(pc as u64, Relaxed);
    show(stop::END, want::END);
}

/// Ends the execution here and now.
pub fn finish(how: u32, code: i32, pc: usize) -> ! {
    ending(how, code, pc);
    sys::exit_group(0)
}

/// No thread can take a step.
#[cold]
pub fn deadlock() -> ! {
    if !S.running.get() {
        // Before the program is parked there is no execution to report on: stand still, and let the engine's watchdog say where.
        sys::write(2, b"heisen: deadlock before the first execution\n");
        sys::kill(sys::getpid(), sys::SIGKILL);
    }
    finish(end::DEADLOCK, 0, thread(me()).pc.get())
}

/// A synchronisation object was used in a way that is undefined. Only the first is kept.
pub fn misused(what: u32, object: usize, pc: usize) {
    let report = &slot().report;
    if report.misuse.load(Relaxed) != misuse::NONE || !S.running.get() {
        return;
    }
    report.misuse.store(what, Relaxed);
    report.misuse_thread.store(me() as u32, Relaxed);
    report.misuse_object.store(object as u64, Relaxed);
    report.misuse_pc.store(pc as u64, Relaxed);
    show(stop::MISUSE, want::MISUSE);
}

/// The heap was used in a way that is undefined, or leaks. Whatever was misused before, this is what ends the execution.
pub fn memory_error(what: u32, object: usize, pc: usize) {
    slot().report.misuse.store(misuse::NONE, Relaxed);
    misused(what, object, pc);
}

/// A panic or exception starts to unwind in the running thread.
pub fn thrown(rust: bool) {
    if rust {
        slot().report.panic_thread.store(me() as u32 + 1, Relaxed);
    }
    if rust {
        show(stop::THROW, want::THROW);
    }
}

/// Appends a string to the text of the report, with a zero byte.
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

/// Stops until the engine has looked, with the registers of this very place.
#[inline(never)]
fn pause(reason: u32) {
    let registers = &wire().stop.registers;
    fibers::registers(registers);
    pause_with(reason);
}

/// Stops until the engine has looked; the registers are in place already.
pub fn pause_with(reason: u32) {
    let stop = &wire().stop;
    let t = thread(me());
    stop.reason.store(reason, Relaxed);
    stop.thread.store(me() as u32, Relaxed);
    stop.op.store(t.op() as u32, Relaxed);
    stop.object.store(t.object.get() as u64, Relaxed);
    stop.step.store(S.step.get(), Relaxed);
    publish_threads();
    stop.state.store(stop::STOPPED, SeqCst);
    ring();
    while stop.state.load(SeqCst) == stop::STOPPED {
        sys::futex_wait(&stop.state, stop::STOPPED);
    }
}

/// Tells the engine that there is something to see.
pub fn ring() {
    wire().bell.fetch_add(1, SeqCst);
    sys::futex_wake(&wire().bell);
}

/// Writes the threads, as they are now, to the wire.
pub fn publish_threads() {
    for (number, t) in threads() {
        let out = &wire().threads[number];
        let state = if t.ended.get() {
            state::ENDED
        } else if !t.begun.get() {
            state::NEW
        } else if S.late.has(number) && !S.signalled.has(number) {
            state::TIMED
        } else if S.enabled.has(number) {
            state::READY
        } else {
            state::BLOCKED
        };
        out.state.store(state, Relaxed);
        out.op.store(t.op() as u32, Relaxed);
        out.parent.store(if t.parent.get() == NONE { NO_THREAD } else { t.parent.get() as u32 }, Relaxed);
        out.child.store(t.child.get() as u32, Relaxed);
        out.pc.store(t.pc.get() as u64, Relaxed);
        out.start.store(t.start.get() as u64, Relaxed);
        put(&out.sp, if number == me() { 0 } else { t.sp.get() });
        put(&out.object, t.object.get());
        put(&out.needs, needs(number));
        put(&out.handle, t.fs.get());
        let own = t.stack_size.get() != 0 && !t.stack_foreign.get();
        put(&out.stack, if own { t.stack.get() } else { 0 });
        put(&out.stack_end, if own { t.stack.get() + t.guard_size.get() + t.stack_size.get() } else { 0 });
        out.kernel_id.store(fibers::kernel_id(t) as u32, Relaxed);
    }
}

fn put(slot: &AtomicU64, value: usize) {
    slot.store(value as u64, Relaxed);
}
