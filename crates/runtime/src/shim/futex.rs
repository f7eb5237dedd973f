//! Futexes: schedules the futex operations that Rust's standard library, parking_lot and libstdc++ make through
//! `syscall`. The only state of a futex is its queue; the word belongs to the program. If more threads wait
//! than a wake wakes, which ones is a decision.

use crate::memory::race::order;
use crate::memory::symbolic::futex_events as symbolic;
use crate::platform::registers::caller;
use crate::platform::{glibc, sys};
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::decision;
use crate::sched::events;
use crate::sched::operation_log;
use crate::sched::{self, ANY, Left, MANY, SCHED, Woken};
use crate::wire_log;
use core::cell::Cell;
use core::ffi::c_long;
use heisen_trace::{Note, Op};

const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;
/// Refused operations: they concern priorities, which the scheduler does not model, or were removed in Linux
/// 2.6.
const FD: usize = 2;
const LOCK_PI: usize = 6;
const UNLOCK_PI: usize = 7;
const TRYLOCK_PI: usize = 8;
const WAIT_REQUEUE_PI: usize = 11;
const CMP_REQUEUE_PI: usize = 12;
const LOCK_PI2: usize = 13;
const OPERATION: usize = 0x7f;
const CLOCK_REALTIME_FLAG: usize = 256;
const CLOCK_MONOTONIC: i32 = 1;
const CLOCK_REALTIME: i32 = 0;
const EFAULT: i32 = 14;
/// Nothing is ever mapped below this address.
const FIRST_PAGE: usize = 4096;

/// Schedules futex operations. `WAIT` and `WAIT_BITSET` wait for a wake; whether their time-out fires first is
/// a decision. `WAKE`, `WAKE_BITSET`, `REQUEUE`, `CMP_REQUEUE` and `WAKE_OP` wake or move waiters; which ones
/// is a decision if more wait than the call takes. Operations with priority inheritance give `ENOSYS`. Other
/// system calls go to the kernel, with ids of threads and processes translated.
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
    // A C function with variable arguments receives its first seven as this function does.
    let is_futex = number == sys::SYS_FUTEX;
    let this = syscall as *const () as usize;
    let value_id = symbolic::take_arguments(this, [number, a, b, c, d, e, f], is_futex, caller!());
    let result = match number {
        sys::SYS_FUTEX if SCHED.active.get() => futex(a, b, (c as u32, value_id), d, e, f as u32, caller!()),
        sys::SYS_FUTEX_WAITV if SCHED.active.get() => wait_for_any(a, b, c, d, e, caller!()),
        _ => super::thread_id::call(number, [a, b, c, d, e, f], caller!()),
    };
    glibc::kernel_result(result) as c_long
}

/// A call of `syscall` for a futex. The third argument has an expression beside its value.
fn futex(
    word: usize,
    operation: usize,
    (value, value_id): (u32, u32),
    fourth: usize,
    second: usize,
    last: u32,
    pc: usize,
) -> isize {
    let timeout = fourth as *const Timespec;
    if operation & CLOCK_REALTIME_FLAG != 0 && operation & OPERATION != WAIT_BITSET {
        return -(sys::ENOSYS as isize);
    }
    if !matches!(operation & OPERATION, WAIT | WAIT_BITSET) {
        symbolic::pin(value_id, value, pc);
    }
    match operation & OPERATION {
        WAIT => wait(word, (value, value_id), ANY, relative(timeout), pc),
        WAIT_BITSET => {
            let clock = if operation & CLOCK_REALTIME_FLAG != 0 { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
            wait(word, (value, value_id), last, absolute(timeout, clock), pc)
        }
        WAKE => wake_some(word, value, ANY, pc),
        WAKE_BITSET => wake_some(word, value, last, pc),
        REQUEUE => requeue(word, value, fourth as u32, second, None, pc),
        CMP_REQUEUE => requeue(word, value, fourth as u32, second, Some(last), pc),
        WAKE_OP => wake_op(word, value, fourth as u32, second, last, pc),
        LOCK_PI | UNLOCK_PI | TRYLOCK_PI | LOCK_PI2 => refuse(Note::FutexPi),
        WAIT_REQUEUE_PI | CMP_REQUEUE_PI => refuse(Note::FutexRequeuePi),
        FD => refuse(Note::FutexFd),
        _ => refuse(Note::FutexOp),
    }
}

fn refuse(note: Note) -> isize {
    wire_log::note(note);
    -(sys::ENOSYS as isize)
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

/// The kernel's error for an address that cannot be a futex word.
fn refused(word: usize) -> Option<isize> {
    if !word.is_multiple_of(4) {
        return Some(-(sys::EINVAL as isize));
    }
    (word < FIRST_PAGE).then_some(-(EFAULT as isize))
}

fn read(word: usize) -> u32 {
    // SAFETY: the program passes the address of a futex word. For an unmapped address that is not near null,
    // the kernel would return EFAULT; the program crashes here instead.
    unsafe { (word as *const u32).read_volatile() }
}

fn wait(word: usize, (value, value_id): (u32, u32), mask: u32, deadline: Option<u64>, pc: usize) -> isize {
    let Some(deadline) = deadline else { return -(sys::EINVAL as isize) };
    if mask == 0 {
        return -(sys::EINVAL as isize);
    }
    if let Some(error) = refused(word) {
        return error;
    }
    loop {
        sched::point(Op::FutexWait, word, pc);
        // Uninstrumented code usually acquires what it waited for, by an access that the runtime does not see.
        order::acquire(word);
        let now = read(word);
        symbolic::compares(word, now, value, value_id, pc);
        if now != value {
            events::failed();
            return -(sys::EAGAIN as isize);
        }
        match mask {
            ANY => symbolic::waits(word, deadline != u64::MAX, pc),
            _ => operation_log::does_with_futex(Op::FutexWait, word, pc),
        }
        match sched::sleep_in_queue_interruptibly(Op::FutexWait, word, mask, pc, deadline) {
            Left::Woken => {
                order::acquire(word);
                symbolic::woken(word, pc);
                return 0;
            }
            Left::Spuriously => {
                events::event(Op::Spurious, word, pc);
                return 0;
            }
            Left::TimedOut => {
                events::timed_out(Op::FutexWait, word, pc);
                symbolic::timed_out(word, pc);
                return -(sys::ETIMEDOUT as isize);
            }
            // The kernel restarts only a wait without a time-out.
            Left::Restarts if deadline == u64::MAX => {}
            Left::Undisturbed => {}
            Left::Interrupted | Left::Restarts => return -(sys::EINTR as isize),
        }
    }
}

/// Calls `with` for up to `limit` waiters of the word, chosen one by one, and returns their number. `with` must
/// remove the waiter from the queue.
fn choose_each(word: usize, limit: usize, mask: u32, with: impl Fn(usize)) -> isize {
    let waiting = sched::waiters(word, mask);
    if waiting <= limit {
        // All of them wake: there is nothing to choose.
        for (number, t) in sched::threads() {
            if t.waits_in(word) && t.mask.get() & mask != 0 {
                with(number);
            }
        }
        return waiting as isize;
    }
    for _ in 0..limit {
        with(decision::choose_waiter(word, mask));
    }
    limit as isize
}

fn wake(word: usize, limit: usize, mask: u32) -> isize {
    choose_each(word, limit, mask, |number| {
        let t = sched::thread(number);
        if t.queue.get() == MANY {
            // The waiter's call returns the index of the woken word.
            t.many_count.set(place_among(t.several(), word));
        }
        order::teach(number);
        sched::take_off(number, Op::FutexWait, 0, true);
    })
}

fn place_among(words: &[Cell<usize>], word: usize) -> usize {
    words.iter().position(|one| one.get() == word).unwrap_or(0)
}

/// The operations that only wake. Like the kernel, they wake one waiter even if the limit is below one.
fn wake_some(word: usize, limit: u32, mask: u32, pc: usize) -> isize {
    if mask == 0 {
        return -(sys::EINVAL as isize);
    }
    if let Some(error) = refused(word) {
        return error;
    }
    sched::point(Op::FutexWake, word, pc);
    let limit = (limit as i32).max(1) as usize;
    match mask {
        ANY => symbolic::wakes(
            syscall as *const () as usize,
            word,
            limit,
            sched::waiters(word, ANY).min(limit),
            pc,
        ),
        _ => operation_log::does_with_futex(Op::FutexWake, word, pc),
    }
    wake(word, limit, mask)
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
        events::failed();
        return -(sys::EAGAIN as isize);
    }
    let woken = wake(word, wake_limit as usize, ANY);
    let moved = choose_each(word, move_limit as usize, ANY, |number| {
        let t = sched::thread(number);
        if t.queue.get() == MANY {
            let several = t.several();
            several[place_among(several, word)].set(to);
        } else {
            t.queue.set(to);
        }
        t.object.set(to);
        t.ticket.set(sched::ticket());
    });
    // The kernel counts both, also for REQUEUE, although the manual says otherwise.
    woken + moved
}

/// Changes the second word, then wakes waiters of the first. Also wakes waiters of the second word if its old
/// value passes the comparison.
fn wake_op(word: usize, limit: u32, second_limit: u32, second: usize, how: u32, pc: usize) -> isize {
    let signed = |shift: u32| ((how << (20 - shift)) as i32) >> 20;
    let (operation, comparison, compare_with) = (how >> 28, how >> 24 & 0xf, signed(0));
    const SHIFT: u32 = 8;
    let mut argument = signed(12);
    if operation & SHIFT != 0 {
        argument = 1i32.wrapping_shl(argument as u32);
    }
    sched::point(Op::FutexWake, word, pc);
    operation_log::does_with_futex(Op::FutexWake, word, pc);
    let old = read(second) as i32;
    let new = match operation & !SHIFT {
        0 => argument,
        1 => old.wrapping_add(argument),
        2 => old | argument,
        3 => old & !argument,
        4 => old ^ argument,
        _ => return -(sys::ENOSYS as isize),
    };
    // SAFETY: the program passes the address of a futex word, just read.
    unsafe { (second as *mut i32).write_volatile(new) };
    let holds = match comparison {
        0 => old == compare_with,
        1 => old != compare_with,
        2 => old < compare_with,
        3 => old <= compare_with,
        4 => old > compare_with,
        5 => old >= compare_with,
        _ => return -(sys::ENOSYS as isize),
    };
    let woken = wake(word, (limit as i32).max(1) as usize, ANY);
    woken + if holds { wake(second, (second_limit as i32).max(1) as usize, ANY) } else { 0 }
}

/// `struct futex_waitv`.
#[repr(C)]
struct Waiter {
    value: u64,
    word: u64,
    flags: u32,
    reserved: u32,
}

/// The kernel's limit on words in one call.
const MOST_WORDS: usize = 128;
const FLAG_32_BITS: u32 = 2;
const FLAG_PRIVATE: u32 = 128;

/// `futex_waitv`: waits on several words and returns the index of the word that was woken.
fn wait_for_any(list: usize, count: usize, flags: usize, timeout: usize, clock: usize, pc: usize) -> isize {
    let invalid = -(sys::EINVAL as isize);
    if flags != 0 || !(1..=MOST_WORDS).contains(&count) || list == 0 {
        return invalid;
    }
    let clock = clock as i32;
    if timeout != 0 && !matches!(clock, CLOCK_REALTIME | CLOCK_MONOTONIC) {
        return invalid;
    }
    let Some(deadline) = absolute(timeout as *const Timespec, clock) else { return invalid };
    // SAFETY: the program passes that many of them.
    let list = unsafe { core::slice::from_raw_parts(list as *const Waiter, count) };
    let known = |one: &Waiter| one.flags & !FLAG_PRIVATE == FLAG_32_BITS && one.reserved == 0;
    if !list.iter().all(known) {
        return invalid;
    }
    let words = [const { Cell::new(0) }; MOST_WORDS];
    for (slot, one) in words.iter().zip(list) {
        slot.set(one.word as usize);
    }
    sched::point(Op::FutexWait, words[0].get(), pc);
    operation_log::does_with_futex(Op::FutexWait, words[0].get(), pc);
    if list.iter().any(|one| read(one.word as usize) != one.value as u32) {
        events::failed();
        return -(sys::EAGAIN as isize);
    }
    let t = sched::thread(sched::me());
    t.many.set(words.as_ptr() as usize);
    t.many_count.set(count);
    match sched::wait_in_queue(Op::FutexWait, MANY, ANY, pc, deadline) {
        Woken::TimedOut => {
            events::timed_out(Op::FutexWait, words[0].get(), pc);
            -(sys::ETIMEDOUT as isize)
        }
        _ => t.many_count.get() as isize,
    }
}
