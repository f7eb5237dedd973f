//! Futexes, which Rust's standard library, parking_lot and libstdc++ reach through `syscall`. A futex has no state but
//! its queue; the word belongs to the program. Which waiters a wake wakes is a decision when there are more than asked
//! for.

use crate::choose;
use crate::clock::{self, Timespec};
use crate::sched::{self, ANY, Left, S};
use crate::shim::caller;
use crate::{glibc, report, sys};
use core::ffi::c_long;
use heisen_trace::{Note, Op};

const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;
const OPERATION: usize = 0x7f;
const CLOCK_REALTIME_FLAG: usize = 256;
const CLOCK_MONOTONIC: i32 = 1;
const CLOCK_REALTIME: i32 = 0;
const EFAULT: i32 = 14;
/// Nothing is ever mapped below.
const FIRST_PAGE: usize = 4096;

/// Futex operations are the scheduler's: `WAIT` and `WAIT_BITSET` wait for a wake or, as a decision, until their
/// time has run out; which waiters `WAKE`, `WAKE_BITSET`, `REQUEUE` and `CMP_REQUEUE` take is a decision if there
/// are more than asked for; other operations give `ENOSYS`. Any other system call is made as it is, with ids of
/// threads as the kernel knows them.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    // A C function with a variable number of arguments receives its first seven just as this one does.
    let result = match number {
        sys::SYS_FUTEX if S.active.get() => futex(a, b, c as u32, d, e, f as u32, caller!()),
        _ => super::kernel::call(number, [a, b, c, d, e, f], caller!()),
    };
    glibc::kernel_result(result) as c_long
}

fn futex(
    word: usize,
    operation: usize,
    value: u32,
    fourth: usize,
    second: usize,
    last: u32,
    pc: usize,
) -> isize {
    let timeout = fourth as *const Timespec;
    if operation & CLOCK_REALTIME_FLAG != 0 && operation & OPERATION != WAIT_BITSET {
        return -(sys::ENOSYS as isize);
    }
    match operation & OPERATION {
        WAIT => wait(word, value, ANY, relative(timeout), pc),
        WAIT_BITSET => {
            let clock = if operation & CLOCK_REALTIME_FLAG != 0 { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
            wait(word, value, last, absolute(timeout, clock), pc)
        }
        WAKE => wake_some(word, value, ANY, pc),
        WAKE_BITSET => wake_some(word, value, last, pc),
        REQUEUE => requeue(word, value, fourth as u32, second, None, pc),
        CMP_REQUEUE => requeue(word, value, fourth as u32, second, Some(last), pc),
        _ => {
            report::note(Note::FutexOp);
            -(sys::ENOSYS as isize)
        }
    }
}

fn relative(timeout: *const Timespec) -> Option<u64> {
    if timeout.is_null() {
        return Some(u64::MAX);
    }
    // SAFETY: the program passes a time, or null.
    unsafe { (*timeout).nanos_not_negative() }.map(clock::deadline_in)
}

fn absolute(timeout: *const Timespec, clock: i32) -> Option<u64> {
    if timeout.is_null() {
        return Some(u64::MAX);
    }
    // SAFETY: the program passes a time, or null.
    unsafe { (*timeout).nanos_not_negative() }.map(|nanos| clock::deadline_at(clock, nanos))
}

/// What the kernel says of an address that cannot be that of a word.
fn refused(word: usize) -> Option<isize> {
    if !word.is_multiple_of(4) {
        return Some(-(sys::EINVAL as isize));
    }
    (word < FIRST_PAGE).then_some(-(EFAULT as isize))
}

fn read(word: usize) -> u32 {
    // SAFETY: the program passes the address of a futex word; for one that is not mapped, and not near null, it would
    // get EFAULT, and crashes here.
    unsafe { (word as *const u32).read_volatile() }
}

fn wait(word: usize, value: u32, mask: u32, deadline: Option<u64>, pc: usize) -> isize {
    let Some(deadline) = deadline else { return -(sys::EINVAL as isize) };
    if mask == 0 {
        return -(sys::EINVAL as isize);
    }
    if let Some(error) = refused(word) {
        return error;
    }
    loop {
        sched::point(Op::FutexWait, word, pc);
        if read(word) != value {
            report::failed();
            return -(sys::EAGAIN as isize);
        }
        match sched::sleep_in_queue_interruptibly(Op::FutexWait, word, mask, pc, deadline) {
            Left::Woken => return 0,
            Left::Spuriously => {
                report::event(Op::Spurious, word, pc);
                return 0;
            }
            Left::TimedOut => {
                report::timed_out(Op::FutexWait, word, pc);
                return -(sys::ETIMEDOUT as isize);
            }
            // The kernel starts over only a wait without a limit.
            Left::Restarts if deadline == u64::MAX => {}
            Left::Undisturbed => {}
            Left::Interrupted | Left::Restarts => return -(sys::EINTR as isize),
        }
    }
}

/// Calls `with` for up to `limit` waiters of the word, chosen one by one; how many there were. `with` takes them off.
fn choose_each(word: usize, limit: usize, mask: u32, with: impl Fn(usize)) -> isize {
    let waiting = sched::waiters(word, mask);
    if waiting <= limit {
        // All of them: there is nothing to choose.
        for (number, t) in sched::threads() {
            if t.queue.get() == word && t.mask.get() & mask != 0 {
                with(number);
            }
        }
        return waiting as isize;
    }
    for _ in 0..limit {
        with(choose::choose_waiter(word, mask));
    }
    limit as isize
}

fn wake(word: usize, limit: usize, mask: u32) -> isize {
    choose_each(word, limit, mask, |number| sched::take_off(number, Op::FutexWait, 0, true))
}

/// The operations that only wake. With a limit below one the kernel still wakes one.
fn wake_some(word: usize, limit: u32, mask: u32, pc: usize) -> isize {
    if mask == 0 {
        return -(sys::EINVAL as isize);
    }
    if let Some(error) = refused(word) {
        return error;
    }
    sched::point(Op::FutexWake, word, pc);
    wake(word, (limit as i32).max(1) as usize, mask)
}

fn requeue(
    word: usize,
    wake_limit: u32,
    move_limit: u32,
    to: usize,
    expect: Option<u32>,
    pc: usize,
) -> isize {
    let (Ok(wake_limit), Ok(move_limit)) = (i32::try_from(wake_limit), i32::try_from(move_limit)) else {
        return -(sys::EINVAL as isize);
    };
    if let Some(error) = refused(word).or_else(|| refused(to)) {
        return error;
    }
    sched::point(Op::FutexRequeue, word, pc);
    if expect.is_some_and(|value| read(word) != value) {
        report::failed();
        return -(sys::EAGAIN as isize);
    }
    let woken = wake(word, wake_limit as usize, ANY);
    let moved = choose_each(word, move_limit as usize, ANY, |number| {
        let t = sched::thread(number);
        t.queue.set(to);
        t.object.set(to);
        t.ticket.set(sched::ticket());
    });
    // The kernel counts both, also for REQUEUE, whatever the manual says.
    woken + moved
}
