//! Pauses: where an execution stops for the engine or a debugger, at its end or at a misuse.

use super::plan::diverge;
use super::{NONE, SCHED, debugger, dependence, hooks, me, needs, operation_log, thread, threads};
use crate::platform::glibc::kernel_id;
use crate::platform::{registers, sys};
use crate::wire_log;
use crate::wire_log::{debugged, ring, slot, stops, wire};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use heisen_wire::{NO_THREAD, diverged, end, misuse, state, stop, want};

/// Stops for the engine, or for a debugger that waits for one of the bits `wanted` of [`want`].
fn show(reason: u32, wanted: u32) {
    if stops() {
        wire_log::settle();
        pause(reason);
    } else if debugged() {
        debugger::reached(wanted);
    }
}

/// Stops for the engine, in a close-up.
pub fn stop_at(reason: u32) {
    show(reason, 0);
}

/// An event with this object was logged: stops if the engine wants to see the running thread there.
pub fn at_event(object: usize) {
    let wire = wire();
    let count = wire.stops_count.load(Relaxed).min(wire.stops_at.len() as u32);
    let logged = slot().report.events.load(Relaxed);
    let mut next = wire.stops_next.load(Relaxed);
    // An event that another thread caused is not a place to stop.
    while next < count && wire.stops_at[next as usize].load(Relaxed) < logged {
        next += 1;
    }
    let here = next < count && wire.stops_at[next as usize].load(Relaxed) == logged;
    wire.stops_next.store(next + u32::from(here), Relaxed);
    if here {
        hooks::tell_block(object);
        stop_at(stop::EVENT);
    }
}

/// The program does not ask for the recorded input. The execution diverges, and it cannot continue without
/// the outside.
pub fn other_input() -> ! {
    diverge(diverged::INPUT, SCHED.step.get(), 0);
    ending(end::EXIT, 0, thread(me()).pc.get());
    sys::exit_group(0)
}

/// The execution is about to end in an orderly way: records how.
pub fn ending(how: u32, code: i32, pc: usize) {
    dependence::ending();
    operation_log::ending();
    let report = &slot().report;
    // A failure during the program's exit replaces the exit in the report; so does another thread that ends
    // the program then. Nothing replaces a failure.
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

/// Ends the execution at once.
pub fn finish(how: u32, code: i32, pc: usize) -> ! {
    ending(how, code, pc);
    sys::exit_group(0)
}

/// No thread can take a step.
#[cold]
pub fn deadlock() -> ! {
    if !SCHED.running.get() {
        // Before the zygote is parked there is no execution to report on, so the process ends with a message.
        sys::write(2, b"heisen: deadlock before the first execution\n");
        sys::kill(sys::getpid(), sys::SIGKILL);
    }
    finish(end::DEADLOCK, 0, thread(me()).pc.get())
}

/// The program used a synchronisation object in an undefined way. Only the first misuse is reported.
pub fn misused(what: u32, object: usize, pc: usize) {
    let report = &slot().report;
    if report.misuse.load(Relaxed) != misuse::NONE || !SCHED.running.get() {
        return;
    }
    report.misuse.store(what, Relaxed);
    report.misuse_thread.store(me() as u32, Relaxed);
    report.misuse_object.store(object as u64, Relaxed);
    report.misuse_pc.store(pc as u64, Relaxed);
    show(stop::MISUSE, want::MISUSE);
}

/// The program used the heap in an undefined way, or leaks memory. This replaces an earlier misuse in the
/// report, because it ends the execution.
pub fn memory_error(what: u32, object: usize, pc: usize) {
    slot().report.misuse.store(misuse::NONE, Relaxed);
    misused(what, object, pc);
}

/// A panic or exception starts to unwind in the running thread. Only a Rust panic is reported.
pub fn thrown(rust: bool) {
    if rust {
        slot().report.panic_thread.store(me() as u32 + 1, Relaxed);
    }
    if rust {
        show(stop::THROW, want::THROW);
    }
}

/// Stops until the engine lets the execution continue. The engine sees the registers of this very place.
#[inline(never)]
fn pause(reason: u32) {
    registers::capture(&wire().stop.registers);
    pause_with(reason);
}

/// Stops until the engine lets the execution continue. The caller has captured the registers.
pub fn pause_with(reason: u32) {
    let stop = &wire().stop;
    let t = thread(me());
    stop.reason.store(reason, Relaxed);
    stop.thread.store(me() as u32, Relaxed);
    stop.op.store(t.op() as u32, Relaxed);
    stop.object.store(t.object.get() as u64, Relaxed);
    stop.step.store(SCHED.step.get(), Relaxed);
    publish_threads();
    stop.state.store(stop::STOPPED, SeqCst);
    ring();
    while stop.state.load(SeqCst) == stop::STOPPED {
        sys::futex_wait(&stop.state, stop::STOPPED);
    }
}

/// Writes the current state of all threads to the wire.
pub fn publish_threads() {
    for (number, t) in threads() {
        let out = &wire().threads[number];
        let state = if t.ended.get() {
            state::ENDED
        } else if !t.begun.get() {
            state::NEW
        } else if SCHED.late.has(number) && !SCHED.signalled.has(number) {
            state::TIMED
        } else if SCHED.enabled.has(number) {
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
        out.kernel_id.store(kernel_id(t.fs.get(), SCHED.kernel.get()) as u32, Relaxed);
    }
}

pub(super) fn put(slot: &AtomicU64, value: usize) {
    slot.store(value as u64, Relaxed);
}
