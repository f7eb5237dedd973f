//! Choices of the program: lets a program ask Heisen for a value. The program refers to the function weakly, so
//! that it also runs without Heisen.

use crate::platform::registers::caller;
use crate::sched::decision;
use crate::sched::events;
use crate::sched::{SCHED, me, thread};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::decision::MAX_OPTIONS;
use heisen_trace::{DecisionKind, Note, Op};

/// Returns a number from 0 to `options - 1`, 0 by default. Which one is a decision, and a step at which no
/// other thread can run. Returns 0 without a decision if `options` is less than 2, before `main`, and in a
/// forked child. If `options` is larger than 4095, the values from 4095 on are not explored, which is noted.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_choose(options: c_int) -> c_int {
    let pc = caller!();
    if options < 2 || !SCHED.active.get() || !SCHED.running.get() {
        return 0;
    }
    let mut options = options as usize;
    if options > MAX_OPTIONS {
        wire_log::note(Note::TooManyChoices);
        options = MAX_OPTIONS;
    }
    // The object of this event is the choice itself; see `Op::Choose` in the engine's `confirm`.
    let object = |value: usize| options << 16 | value;
    thread(me()).about_to(Op::Choose, object(0), pc);
    let find = |value: usize| (value < options).then_some(value);
    let value = decision::choose_value(DecisionKind::Choose, options, find, |value| value);
    events::event(Op::Choose, object(value), pc);
    value as c_int
}
