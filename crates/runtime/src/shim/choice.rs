//! What a program that knows of Heisen may ask it to choose. The program refers to the function weakly, so that it runs
//! without Heisen, too.

use crate::platform::registers::caller;
use crate::sched::decision;
use crate::sched::events;
use crate::sched::{S, me, thread};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::decision::MAX_OPTIONS;
use heisen_trace::{DecisionKind, Note, Op};

/// Returns one of 0 to `options - 1`: a decision on the value, 0 by default, and a step at which no other thread can run.
/// Not a decision, and 0, if there are fewer than two, before `main` and in a forked child; beyond 4095 values the rest is
/// left out, with a note.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_choose(options: c_int) -> c_int {
    let pc = caller!();
    if options < 2 || !S.active.get() || !S.running.get() {
        return 0;
    }
    let mut options = options as usize;
    if options > MAX_OPTIONS {
        wire_log::note(Note::TooManyChoices);
        options = MAX_OPTIONS;
    }
    // What the choice is about is the choice itself; see `Op::Choose` in the engine's `confirm`.
    let object = |value: usize| options << 16 | value;
    thread(me()).about_to(Op::Choose, object(0), pc);
    let find = |value: usize| (value < options).then_some(value);
    let value = decision::choose_value(DecisionKind::Choose, options, find, |value| value);
    events::event(Op::Choose, object(value), pc);
    value as c_int
}
