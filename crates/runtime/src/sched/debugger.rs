//! The interface of a debugger to an execution on kernel threads. The execution waits until a debugger is
//! attached, and stops at a step, a switch, a preemption or the failing event.
//!
//! The debugger only reads and writes memory. It writes the head of [`heisen_gdb`], reads the scheduler's own
//! records through its [`Map`], and has a breakpoint on [`heisen_gdb_stop`]. It calls no function here: after
//! a call it would write back all registers, which gdb 13 cannot do on processors with AMX. The runtime does
//! all comparisons, so going to a distant step takes no longer than running there.

use crate::platform::glibc::tcb;
use crate::platform::sys;
use crate::sched::{SCHED, Thread, me, thread};
use crate::wire_log;
use core::mem::offset_of;
use core::ptr::from_ref;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use heisen_trace::decision::{Decision, DecisionKind};
use heisen_wire::want;

/// The words that the debugger writes and reads. The debugger's script knows this layout.
#[derive(Debug)]
#[repr(C)]
pub struct Debugger {
    /// Not 0 once the debugger has said where to stop. The debugger writes this field and the next two.
    attached: AtomicU32,
    /// The step to stop at.
    until: AtomicU32,
    /// Bits of [`want`].
    wants: AtomicU32,
    /// The bits of [`want`] that caused the last stop.
    reason: AtomicU32,
    /// The thread that the last switch left, and the one it led to.
    from: AtomicU32,
    to: AtomicU32,
    /// Whether the last switch is a preemption.
    preempted: AtomicU32,
    /// Unused.
    pad: AtomicU32,
    map: Map,
}

/// Where the debugger finds the scheduler's records: addresses, and offsets in the record of a thread. All
/// are 0 until the execution begins.
#[derive(Debug)]
#[repr(C)]
struct Map {
    /// The address of `alarm`. The debugger sets that word to 0 after it has changed [`Debugger::until`], so
    /// that the runtime looks at its next step.
    alarm: AtomicU64,
    /// The addresses of the last step, the running thread and the number of threads.
    step: AtomicU64,
    current: AtomicU64,
    count: AtomicU64,
    /// The addresses of sets of threads.
    enabled: AtomicU64,
    late: AtomicU64,
    signalled: AtomicU64,
    /// The address of the first thread's record, and the size of a record.
    threads: AtomicU64,
    size: AtomicU64,
    /// Offsets in a record.
    op: AtomicU64,
    object: AtomicU64,
    pc: AtomicU64,
    start: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    control: AtomicU64,
    /// The offset of the id of the kernel thread in a thread's control block.
    kernel_id: AtomicU64,
    /// The addresses of fields of the report: how the execution ends (one of `heisen_wire::end`) and its
    /// code; whether it diverged (one of `heisen_wire::diverged`) and at which step.
    end: AtomicU64,
    end_code: AtomicU64,
    diverged: AtomicU64,
    diverged_step: AtomicU64,
}

impl Map {
    const fn new() -> Map {
        // SAFETY: the fields are words for which every value is valid, so zeros are, too.
        unsafe { core::mem::zeroed() }
    }

    fn fill(&self) {
        let report = wire_log::so_far();
        let entries = [
            (&self.step, address(&SCHED.step)),
            (&self.current, address(&SCHED.current)),
            (&self.count, address(&SCHED.count)),
            (&self.enabled, address(&SCHED.enabled)),
            (&self.late, address(&SCHED.late)),
            (&self.signalled, address(&SCHED.signalled)),
            (&self.threads, address(thread(0))),
            (&self.size, size_of::<Thread>()),
            (&self.op, Thread::OP),
            (&self.object, offset_of!(Thread, object)),
            (&self.pc, offset_of!(Thread, pc)),
            (&self.start, offset_of!(Thread, start)),
            (&self.begun, offset_of!(Thread, begun)),
            (&self.ended, offset_of!(Thread, ended)),
            (&self.control, offset_of!(Thread, fs)),
            (&self.kernel_id, tcb::TID),
            (&self.end, address(&report.end)),
            (&self.end_code, address(&report.end_code)),
            (&self.diverged, address(&report.diverged)),
            (&self.diverged_step, address(&report.diverged_step)),
            (&self.alarm, address(&SCHED.alarm)),
        ];
        for (entry, value) in entries {
            entry.store(value as u64, Relaxed);
        }
    }
}

fn address<T>(of: &T) -> usize {
    from_ref(of) as usize
}

/// The interface to the debugger.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static heisen_gdb: Debugger = Debugger {
    attached: AtomicU32::new(0),
    until: AtomicU32::new(u32::MAX),
    wants: AtomicU32::new(0),
    reason: AtomicU32::new(0),
    from: AtomicU32::new(0),
    to: AtomicU32::new(0),
    preempted: AtomicU32::new(0),
    pad: AtomicU32::new(0),
    map: Map::new(),
};

/// The debugger has a breakpoint here.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn heisen_gdb_stop() {
    // SAFETY: the instruction does nothing. It keeps the compiler from dropping calls of this function.
    unsafe { core::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
}

/// An execution begins: waits until the debugger is attached.
pub fn begin() {
    heisen_gdb.map.fill();
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

/// The execution has reached something at which the debugger may want to stop.
pub fn reached(what: u32) {
    let d = &heisen_gdb;
    let step_due = what & want::STEP != 0;
    if !step_due && d.wants.load(Relaxed) & what == 0 {
        return;
    }
    d.until.store(u32::MAX, Relaxed);
    d.reason.store(what, Relaxed);
    heisen_gdb_stop();
}

/// A decision was taken: records whether the switch that follows is a preemption.
pub fn decided(decision: &Decision, to: u16) {
    let thread = decision.kind == DecisionKind::Thread;
    let preempts = thread && decision.preemptive && usize::from(to) != me();
    heisen_gdb.preempted.store(u32::from(preempts), Relaxed);
}

/// The running thread hands the baton over; the next thread is set already.
pub fn switching() {
    if wire_log::debugged() {
        let d = &heisen_gdb;
        d.from.store(d.to.load(Relaxed), Relaxed);
        d.to.store(me() as u32, Relaxed);
    }
}

/// The running thread has just got the baton.
pub fn switched() {
    if wire_log::debugged() {
        let preempted = heisen_gdb.preempted.swap(0, Relaxed) != 0;
        reached(want::SWITCH | if preempted { want::PREEMPTION } else { 0 });
    }
}
