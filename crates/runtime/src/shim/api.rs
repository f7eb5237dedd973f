//! Heisen's own functions: those of `heisen.h`, by which a program talks to Heisen. The header refers to them weakly, so that
//! without the runtime each call does nothing.

use super::process::assertion_failed;
use super::verifier;
use crate::lifecycle::zygote;
use crate::memory::symbolic::inputs;
use crate::platform::registers::caller;
use crate::sched::pause;
use crate::sched::{self, SCHED, me, thread};
use crate::sched::{atomic_section, dependence, scope};
use crate::script::{system_mode, unit_mode};
use crate::wire_log;
use core::ffi::{c_char, c_int, c_ulong};
use heisen_trace::{Note, Op};
use heisen_wire::misuse;
use heisen_wire::script::kind;

/// Returns 1 if Heisen controls the process, else 0. Not a scheduling point.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_running() -> c_int {
    SCHED.active.get() as c_int
}

/// A scheduling point that never blocks.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_point() {
    if SCHED.active.get() {
        sched::point(Op::Point, 0, caller!());
    } else if system_mode::is_on() {
        system_mode::calls(Op::Point, 0, caller!());
    }
}

/// As `heisen_point`. Reports show the number with the step.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_point_at(number: c_ulong) {
    if SCHED.active.get() {
        sched::point(Op::Point, number as usize, caller!());
    } else if system_mode::is_on() {
        system_mode::calls(Op::Point, number as usize, caller!());
    }
}

/// Tells Heisen that the program's state has this hash. Searches that drop equivalent executions
/// treat two moments as the same state if the hashes and the places of the threads are equal. What came before
/// makes no difference. Not a scheduling point.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_state(hash: c_ulong) {
    if SCHED.active.get() {
        dependence::offered(hash, caller!());
    }
}

/// Marks the start of the part of the program that a script tests. A scheduling point only if the script waits
/// for it.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_test_start() {
    if SCHED.active.get() || system_mode::is_on() {
        unit_mode::happens(unit_mode::Event {
            kind: kind::TEST_START,
            pc: caller!(),
            ..unit_mode::Event::default()
        });
    }
}

/// Marks the end of the part of the program that a script tests. A scheduling point only if the script waits
/// for it.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_test_end() {
    if SCHED.active.get() || system_mode::is_on() {
        unit_mode::happens(unit_mode::Event {
            kind: kind::TEST_END,
            pc: caller!(),
            ..unit_mode::Event::default()
        });
    }
}

/// Until the matching `heisen_no_preempt_end`, the calling thread is not preempted: it continues wherever it is
/// enabled. Sections nest. Not a scheduling point itself.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_no_preempt_begin() {
    if SCHED.active.get() {
        scope::enter(thread(me()));
        wire_log::note(Note::NoPreempt);
    }
}

/// Ends the section that `heisen_no_preempt_begin` began. Without such a section, a misuse. Not a scheduling
/// point itself.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_no_preempt_end() {
    let pc = caller!();
    if SCHED.active.get() && !scope::leave(thread(me())) {
        pause::misused(misuse::NO_PREEMPT_END, 0, pc);
    }
}

/// Until the matching `heisen_atomic_end`, everything that the calling thread does is one step. Sections nest.
/// A thread that has to wait, or yields, leaves the section there. A scheduling point before the section
/// begins.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_atomic_begin() {
    if SCHED.active.get() {
        atomic_section::begin(caller!());
    }
}

/// Ends the section that `heisen_atomic_begin` began. Without such a section, a misuse. Not a scheduling point
/// itself.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_atomic_end() {
    let pc = caller!();
    if SCHED.active.get() && !atomic_section::end() {
        pause::misused(misuse::ATOMIC_END, 0, pc);
    }
}

/// As `heisen_atomic_begin`.
#[unsafe(no_mangle)]
pub extern "C" fn __VERIFIER_atomic_begin() {
    if SCHED.active.get() {
        atomic_section::begin(caller!());
    }
}

/// As `heisen_atomic_end`.
#[unsafe(no_mangle)]
pub extern "C" fn __VERIFIER_atomic_end() {
    let pc = caller!();
    if SCHED.active.get() && !atomic_section::end() {
        pause::misused(misuse::ATOMIC_END, 0, pc);
    }
}

/// With `--at-ready`, executions begin here. Not a scheduling point.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_ready() {
    if SCHED.active.get() {
        zygote::ready();
    }
}

/// Ends the execution as a failed `assert` does.
///
/// # Safety
/// The strings are C strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heisen_assert_fail(
    expression: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
) -> ! {
    assertion_failed([expression, file, function], line, caller!())
}

/// Makes the bytes at `at` an input with this name: an unknown of symbolic builds. They keep their values unless the
/// search chooses others. Not a scheduling point.
///
/// # Safety
/// The memory has that size, and the name is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heisen_input(at: usize, bytes: usize, name: *const c_char) {
    if SCHED.active.get() && SCHED.running.get() {
        let function: unsafe extern "C" fn(usize, usize, *const c_char) = heisen_input;
        inputs::read_into(function as usize, at, bytes, name, caller!());
    }
}

/// From here on the execution counts only if the condition is not 0. Otherwise it ends here with status 0, without its
/// exit handlers. Not a scheduling point.
#[unsafe(no_mangle)]
pub extern "C" fn heisen_assume(condition: c_int) {
    let function: extern "C" fn(c_int) = heisen_assume;
    verifier::assumed(function as usize, condition, caller!());
}
