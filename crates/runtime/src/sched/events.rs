//! The log of steps: events and decisions.
//!
//! A step pays for one test of the flags of the wire log. Everything else happens only if the plan asks for
//! events, states, touches or a symbolic trace.

use super::{SCHED, debugger, dependence, operation_log, pause, plan, recurrence};
use crate::wire_log;
use crate::wire_log::symbolic_log;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Op;
use heisen_trace::decision::Decision;
use heisen_wire::{flag, stop};

/// The running thread does an operation.
#[inline]
pub fn event(op: Op, object: usize, pc: usize) {
    if wire_log::flags() & (flag::EVENTS | flag::STATES | flag::TOUCHES | flag::SYMBOLIC) != 0 {
        log_event(op, object, pc);
    }
}

#[cold]
fn log_event(op: Op, object: usize, pc: usize) {
    recurrence::does(op);
    if wire_log::flags() & flag::SYMBOLIC != 0 {
        operation_log::does(op, object, pc);
    }
    if dependence::wanted() {
        dependence::reported(op, object, pc);
    }
    if wire_log::logs_events() {
        mention(SCHED.current.get(), op, object, pc);
        pause::at_event(object);
    }
}

/// Logs an operation that a thread has done at this step or before.
pub fn mention(thread: u16, op: Op, object: usize, pc: usize) {
    wire_log::event(SCHED.step.get(), thread, op, object, pc);
}

/// The last event did not succeed: a lock was not acquired, a wait timed out.
pub fn failed() {
    dependence::outcome(0);
    if wire_log::logs_events() {
        wire_log::event_failed();
    }
    symbolic_log::failed();
}

/// A wait that the running thread began some events ago has timed out: logs it again, as failed.
pub fn timed_out(op: Op, object: usize, pc: usize) {
    event(op, object, pc);
    failed();
}

/// A decision was taken. `to` is the thread that runs or is woken, the value, or the fault.
pub fn decision(decision: &Decision, to: u16) {
    if plan::logs_decisions() {
        wire_log::log(decision.pack());
    }
    if wire_log::debugged() {
        debugger::decided(decision, to);
    }
    if wire_log::stops() && decision.chosen != 0 {
        let stop = &wire_log::wire().stop;
        stop.to.store(to as u32, Relaxed);
        stop.kind.store(decision.kind as u32 | (decision.preemptive as u32) << 8, Relaxed);
        stop.options.store(decision.options as u32, Relaxed);
        pause::stop_at(stop::DECISION);
    }
}
