//! Atomic sections: everything that a thread does in one is a single step, with a scheduling point before it.
//!
//! Inside, a thread that can continue does so, and no step is counted: everything it touches belongs to the
//! step that began with the section. A thread that has to wait inside, or that yields, leaves the section
//! there. The rest of the section is ordinary code.
//!
//! All sections touch one object, and the race check orders them as if they held one lock. So every order of
//! the sections of different threads is explored, and two sections are never a data race.
//!
//! Other code pays nothing for this: in a section the alarm of the scheduler is due at every step, and its
//! cold path checks for the section.

use super::access_mode::{is_on, mode};
use super::alarm::set_alarm;
use super::object_key::{key, space};
use super::{SCHED, dependence, hooks, me, point, thread};
use heisen_trace::Op;

/// The object that all sections touch; its number lies in the space of the table of threads.
fn object() -> usize {
    const SECTIONS: usize = 2;
    key(space::THREADS, SECTIONS)
}

/// A section begins, unless the running thread is in one already.
#[inline(always)]
pub fn begin(pc: usize) {
    let depth = &thread(me()).sections;
    depth.set(depth.get().saturating_add(1));
    if depth.get() == 1 {
        point(Op::Section, object(), pc);
        if is_on(mode::CHECK) {
            hooks::acquire(object());
        }
        SCHED.in_section.set(true);
        SCHED.known.forget();
        set_alarm();
    }
}

/// A section ends. False if the running thread is not in one.
pub fn end() -> bool {
    let depth = &thread(me()).sections;
    let before = depth.get();
    depth.set(before.saturating_sub(1));
    if before == 1 {
        leave();
    }
    before > 0
}

/// The running thread has to wait, or yields: it leaves the section. It has found the object of its wait
/// taken, in this very step.
pub fn interrupted() {
    let object = thread(me()).object.get();
    if object != 0 {
        dependence::just_wrote(object);
    }
    leave();
}

/// Ends the section: steps count again.
fn leave() {
    if SCHED.in_section.replace(false) {
        if is_on(mode::CHECK) {
            hooks::release(object());
        }
        set_alarm();
    }
}
