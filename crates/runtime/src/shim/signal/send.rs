//! Sending signals.

use super::action::{self, Effect};
use super::deliver::die;
use super::outside::look_outside;
use super::pending::{self, code, sent};
use super::{LAST, bit, deliver, is_valid, own_pid};
use crate::carrier::fibers;
use crate::memory::race::order;
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::platform::sys::Info;
use crate::sched::decision;
use crate::sched::handles;
use crate::sched::object_key::key;
use crate::sched::object_key::space;
use crate::sched::{self, SCHED, me, thread};
use crate::shim::{others, pid, shims};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

/// Whether a thread would take the signal: it does not block it, or waits for it.
fn takes(number: usize, signal: c_int) -> bool {
    let t = thread(number);
    !t.ended.get() && !t.timer.get() && (!t.blocked.get() | t.awaits.get()) & bit(signal) != 0
}

/// The threads that would take the signal, the main thread first.
fn takers(signal: c_int) -> impl Iterator<Item = usize> {
    (0..SCHED.count.get()).filter(move |&number| takes(number, signal))
}

/// The first thread that would take the signal.
pub fn first_taker(signal: c_int) -> Option<usize> {
    takers(signal).next()
}

/// A thread has a signal to take: if it waits, it is enabled for that.
pub fn wake(number: usize) {
    if sched::interrupt(number) && number != me() && thread(number).begun.get() {
        fibers::divert(thread(number));
    }
}

/// Sends a signal to a thread of the program, or to the process; `timer` is the sending timer, plus 1. Returns
/// an error number.
pub fn post(target: Option<usize>, info: &Info, timer: u16) -> c_int {
    post_choosing(target, info, timer, |signal| match takers(signal).count() {
        0 => None,
        count => Some(decision::choose_woken(count, |index| takers(signal).nth(index).unwrap_or(0))),
    })
}

/// As [`post`], where `choose` selects the thread that takes a signal to the process.
pub fn post_choosing(
    target: Option<usize>,
    info: &Info,
    timer: u16,
    choose: impl Fn(c_int) -> Option<usize>,
) -> c_int {
    let signal = info.signal;
    let effect = action::effect(signal);
    // The handler is ordered after everything that was done before the signal was sent.
    order::release(key(space::SIGNAL, signal as usize));
    if signal == sys::SIGKILL {
        die(signal);
    }
    if let Effect::Stop = effect {
        wire_log::note(Note::StopSignal);
        return 0;
    }
    let likely = thread(target.unwrap_or(0));
    if let Effect::Ignore = effect
        && (likely.blocked.get() | likely.awaits.get()) & bit(signal) == 0
    {
        return 0;
    }
    if pending::has(target, signal) {
        return 0;
    }
    let taker = match target {
        Some(number) => takes(number, signal).then_some(number),
        None => choose(signal),
    };
    if let (Effect::Terminate, Some(taker)) = (effect, taker)
        && thread(taker).awaits.get() & bit(signal) == 0
    {
        die(signal);
    }
    if !pending::add(target, taker, timer, info) {
        wire_log::note(Note::TooManySignals);
        return sys::EAGAIN;
    }
    if let Some(taker) = taker {
        wake(taker);
    }
    0
}

/// A thread of the program sends a signal. If the same thread takes it, it does so before the call returns.
fn send(target: Option<usize>, info: &Info, pc: usize) -> c_int {
    let handle = target.map_or(0, |number| thread(number).fs.get());
    sched::point(Op::Kill, handle, pc);
    let error = post(target, info, 0);
    if SCHED.signalled.has(me()) {
        deliver();
    }
    error
}

/// Sends to a thread by its handle, as the functions with `pthread` in their name do.
fn send_to_handle(handle: usize, signal: c_int, code: i32, value: usize, pc: usize) -> c_int {
    let Some(number) = handles::thread_of_handle(handle) else { return sys::ESRCH };
    match signal {
        0 => 0,
        _ if !is_valid(signal) => sys::EINVAL,
        _ if thread(number).ended.get() => 0,
        _ => send(Some(number), &sent(signal, code, value), pc),
    }
}

/// The thread of the program that has this id.
pub fn thread_of_id(id: c_int) -> Option<usize> {
    if id == own_pid() { Some(0) } else { fibers::thread_of_tid(id).filter(|&number| number != 0) }
}

/// Sends to a thread by its id; returns an error number, or `None` if it is not a thread of the program.
pub fn send_to_id(id: c_int, signal: c_int, pc: usize) -> Option<c_int> {
    let number = thread_of_id(id).filter(|&number| !thread(number).timer.get())?;
    Some(match signal {
        0 => 0,
        ..0 => sys::EINVAL,
        _ if signal > LAST => sys::EINVAL,
        _ if thread(number).ended.get() => sys::ESRCH,
        _ => send(Some(number), &sent(signal, code::TKILL, 0), pc),
    })
}

/// Sends to the program's own process; returns an error number, or `None` if it is another process.
pub fn send_to_process(process: c_int, signal: c_int, code: i32, value: usize, pc: usize) -> Option<c_int> {
    if !SCHED.active.get() || process != own_pid() {
        return None;
    }
    Some(match signal {
        0 => 0,
        ..0 => sys::EINVAL,
        _ if signal > LAST => sys::EINVAL,
        _ => send(None, &sent(signal, code, value), pc),
    })
}

/// As `kill`, to any process or group; returns an error number.
pub fn send_to_any(process: c_int, signal: c_int, pc: usize) -> c_int {
    if let Some(error) = send_to_process(process, signal, code::USER, 0, pc) {
        return error;
    }
    let target = match others::target(pid::to_real_signed(process), signal) {
        Ok(target) => target,
        Err(error) => return error,
    };
    if SCHED.active.get() && others::is_own_group(target) && !wire_log::started_others() {
        // The program is alone in the group.
        return send_to_process(own_pid(), signal, code::USER, 0, pc).unwrap_or(0);
    }
    let result = sys::call(sys::SYS_KILL, [target as isize as usize, signal as usize, 0, 0, 0, 0]);
    if SCHED.active.get() {
        // A signal that the program sends to itself in this way arrives before the call returns.
        look_outside();
        if SCHED.signalled.has(me()) {
            deliver();
        }
    }
    -result as c_int
}

shims! {
    /// Sends a signal to a thread, which takes it when it is scheduled next. A scheduling point.
    fn pthread_kill(handle: usize, signal: c_int) -> c_int = pc {
        send_to_handle(handle, signal, code::TKILL, 0, pc)
    }

    /// As `pthread_kill`, with a value.
    fn pthread_sigqueue(handle: usize, signal: c_int, value: usize) -> c_int = pc {
        send_to_handle(handle, signal, code::QUEUE, value, pc)
    }

    /// Sends a signal to the calling thread, which takes it before the call returns. A scheduling point.
    fn raise(signal: c_int) -> c_int = pc {
        glibc::result(send_to_handle(thread(me()).fs.get(), signal, code::TKILL, 0, pc))
    }

    /// As `raise`.
    fn gsignal(signal: c_int) -> c_int = pc {
        glibc::result(send_to_handle(thread(me()).fs.get(), signal, code::TKILL, 0, pc))
    }
}

shims! {
    if pid::known();

    /// As `pthread_kill`, by the thread's id.
    fn tgkill(group: c_int, id: c_int, signal: c_int) -> c_int = pc {
        if SCHED.active.get() && group == own_pid() {
            return glibc::result(send_to_id(id, signal, pc).unwrap_or(sys::ESRCH));
        }
        if others::refuses(sys::SYS_TGKILL, [pid::to_real(group) as usize, 0, signal as usize]) {
            return -1;
        }
        real!(tgkill, fn(pid::to_real(group) => c_int, pid::to_real(id) => c_int, signal => c_int) -> c_int)
    }

    /// To the program itself: sends a signal to the process. Which of the threads that do not block it takes it
    /// is a decision. A scheduling point. To its descendants: the kernel sends it. To other processes, or to
    /// all processes: refused with `EPERM`, which is noted.
    fn kill(process: c_int, signal: c_int) -> c_int = pc { glibc::result(send_to_any(process, signal, pc)) }

    /// As `kill`, with a value.
    fn sigqueue(process: c_int, signal: c_int, value: usize) -> c_int = pc {
        match send_to_process(process, signal, code::QUEUE, value, pc) {
            Some(error) => glibc::result(error),
            None if others::refuses(
                sys::SYS_RT_SIGQUEUEINFO, [pid::to_real(process) as usize, signal as usize, 0]
            ) => -1,
            None => real!(sigqueue, fn(pid::to_real(process) => c_int, signal => c_int, value => usize) -> c_int),
        }
    }
}
