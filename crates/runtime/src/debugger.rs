//! What a debugger asks of an execution on kernel threads: to wait until it is attached, and to stop at a step, a
//! switch, a preemption or the failing event. The debugger calls the two functions named `go` and `look`, reads
//! [`heisen_gdb`], and has a breakpoint on [`heisen_gdb_stop`]; so nothing is compared by the debugger itself, and going
//! to a far step takes no longer than running there.

use crate::sched::{S, me, threads};
use crate::{report, sys};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use heisen_trace::decision::{Decision, DecisionKind};
use heisen_wire::want;

/// What the debugger reads; the script knows the layout.
#[derive(Debug)]
#[repr(C)]
pub struct Debugger {
    /// Not 0 once the debugger has called [`heisen_gdb_go`].
    attached: AtomicU32,
    /// The step to stop at.
    until: AtomicU32,
    /// Bits of [`want`].
    wants: AtomicU32,
    /// The bits of [`want`] that the last stop was for.
    reason: AtomicU32,
    /// The last step, and the thread that runs.
    step: AtomicU32,
    thread: AtomicU32,
    /// The thread that the last switch left, and whether that was a preemption.
    from: AtomicU32,
    preempted: AtomicU32,
    /// How many threads there are, where they are described in the wire, and the size of each description.
    count: AtomicU32,
    size: AtomicU32,
    threads: AtomicU64,
    /// How the execution ends and with what code, one of `heisen_wire::end`; whether the schedule could not be followed,
    /// one of `heisen_wire::diverged`, and at which step.
    end: AtomicU32,
    end_code: AtomicU32,
    diverged: AtomicU32,
    diverged_step: AtomicU32,
}

/// The one debugger.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static heisen_gdb: Debugger = Debugger {
    attached: AtomicU32::new(0),
    until: AtomicU32::new(u32::MAX),
    wants: AtomicU32::new(0),
    reason: AtomicU32::new(0),
    step: AtomicU32::new(0),
    thread: AtomicU32::new(0),
    from: AtomicU32::new(0),
    preempted: AtomicU32::new(0),
    count: AtomicU32::new(0),
    size: AtomicU32::new(0),
    threads: AtomicU64::new(0),
    end: AtomicU32::new(0),
    end_code: AtomicU32::new(0),
    diverged: AtomicU32::new(0),
    diverged_step: AtomicU32::new(0),
};

/// The debugger has a breakpoint here.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn heisen_gdb_stop() {
    // SAFETY: does nothing, so that the function is not taken for one that need not be called.
    unsafe { core::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
}

/// The debugger says where to stop next: at a step, and at what `wants` names.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_gdb_go(until: u32, wants: u32) {
    heisen_gdb.until.store(until, Relaxed);
    heisen_gdb.wants.store(wants, Relaxed);
    heisen_gdb.attached.store(1, Relaxed);
    report::set_alarm();
}

/// The debugger wants to see the threads as they are now.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_gdb_look() {
    report::publish_threads();
    let d = &heisen_gdb;
    d.step.store(S.step.get(), Relaxed);
    d.thread.store(me() as u32, Relaxed);
    d.count.store(threads().count() as u32, Relaxed);
    let described = &report::wire().threads;
    d.threads.store(described.as_ptr() as u64, Relaxed);
    d.size.store(size_of_val(&described[0]) as u32, Relaxed);
    let told = report::so_far();
    for (to, from) in [
        (&d.end, &told.end),
        (&d.end_code, &told.end_code),
        (&d.diverged, &told.diverged),
        (&d.diverged_step, &told.diverged_step),
    ] {
        to.store(from.load(Relaxed), Relaxed);
    }
}

/// An execution begins: waits until the debugger is there.
pub fn begin() {
    sys::allow_tracing();
    while heisen_gdb.attached.load(Relaxed) == 0 {
        sys::sleep_ms(5);
    }
}

/// The step to stop at; `u32::MAX` if none.
#[inline]
pub fn until() -> u32 {
    heisen_gdb.until.load(Relaxed)
}

/// Something has been reached that the debugger may want to stop at.
pub fn reached(what: u32) {
    let d = &heisen_gdb;
    let step_due = what & want::STEP != 0;
    if !step_due && d.wants.load(Relaxed) & what == 0 {
        return;
    }
    d.until.store(u32::MAX, Relaxed);
    d.reason.store(what, Relaxed);
    heisen_gdb_look();
    heisen_gdb_stop();
}

/// A decision was taken: the switch that may follow is a preemption or not.
pub fn decided(decision: &Decision, to: u16) {
    let thread = decision.kind == DecisionKind::Thread;
    let preempts = thread && decision.preemptive && usize::from(to) != me();
    heisen_gdb.preempted.store(u32::from(preempts), Relaxed);
}

/// The running thread hands the baton on; who runs next is set already.
pub fn switching() {
    if report::debugged() {
        let d = &heisen_gdb;
        d.from.store(d.thread.load(Relaxed), Relaxed);
        d.thread.store(me() as u32, Relaxed);
    }
}

/// The running thread has just got the baton.
pub fn switched() {
    if report::debugged() {
        let preempted = heisen_gdb.preempted.swap(0, Relaxed) != 0;
        reached(want::SWITCH | if preempted { want::PREEMPTION } else { 0 });
    }
}
