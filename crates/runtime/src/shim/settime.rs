//! Setting clocks: moves the real-time clock of the execution, never the machine's. Waits that have begun keep
//! their deadlines.

use super::{pid, shims, time};
use crate::platform::{glibc, sys};
use crate::sched::SCHED;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::Note;

const CLOCK_REALTIME: c_int = 0;
const EFAULT: c_int = 14;
const SECOND: i64 = 1_000_000_000;

/// `struct timex`.
#[repr(C)]
#[derive(Debug)]
pub struct Timex {
    modes: u32,
    offset: i64,
    frequency: i64,
    max_error: i64,
    estimated_error: i64,
    status: c_int,
    constant: i64,
    precision: i64,
    tolerance: i64,
    time: [i64; 2],
    tick: i64,
    pulses: [i64; 8],
    tai: c_int,
    pad: [c_int; 11],
}

const _: () = assert!(size_of::<Timex>() == 208);

/// A process that is not controlled has no virtual clock, and may not set the machine's.
fn uncontrolled() -> bool {
    !SCHED.active.get()
}

/// `clock_settime`; returns an error number.
pub fn set_clock(clock: c_int, time: *const Timespec) -> c_int {
    if clock != CLOCK_REALTIME {
        // Clocks of processor time, and clock devices.
        let other = clock < 0 || (0..=11).contains(&clock) && !time::modelled(clock);
        return if other { sys::EPERM } else { sys::EINVAL };
    }
    // SAFETY: the program passes a time, or null.
    match unsafe { time.as_ref() } {
        None => EFAULT,
        Some(time) => match time.nanos_not_negative() {
            None => sys::EINVAL,
            Some(_) if uncontrolled() => sys::EPERM,
            Some(nanos) if clock::set_wall(nanos) => 0,
            Some(_) => sys::EINVAL,
        },
    }
}

/// `settimeofday`; returns an error number. A time zone has no effect, because no function returns it.
pub fn set_time_of_day(time: *const [i64; 2], zone: usize) -> c_int {
    // SAFETY: the program passes a `struct timeval`, or null.
    match unsafe { time.as_ref() } {
        Some(_) if zone != 0 => sys::EINVAL,
        Some(&[_, micros]) if !(0..1_000_000).contains(&micros) => sys::EINVAL,
        Some(&[seconds, micros]) => {
            set_clock(CLOCK_REALTIME, &Timespec { seconds, nanoseconds: micros * 1_000 })
        }
        None if uncontrolled() => sys::EPERM,
        None => 0,
    }
}

/// Moves the clock by this much, at once; returns an error number.
fn move_by(nanos: i64) -> c_int {
    if uncontrolled() {
        return sys::EPERM;
    }
    if clock::set_wall(clock::wall().saturating_add_signed(nanos)) { 0 } else { sys::EINVAL }
}

/// `clock_adjtime`, with the kernel's results.
pub fn adjust_clock(clock: c_int, timex: *mut Timex) -> isize {
    match clock {
        CLOCK_REALTIME => adjust(timex),
        _ if time::modelled(clock) => -(sys::EOPNOTSUPP as isize),
        _ => -(sys::EINVAL as isize),
    }
}

/// `adjtimex`, with the kernel's results. The clock is never synchronised to another one.
pub fn adjust(timex: *mut Timex) -> isize {
    const OFFSET: u32 = 1;
    const SET_OFFSET: u32 = 0x100;
    const MICRO: u32 = 0x1000;
    const NANO: u32 = 0x2000;
    const SINGLE_SHOT: u32 = 0x8001;
    const READ_OFFSET: u32 = 0xa001;
    const TIME_ERROR: isize = 5;
    const UNSYNCHRONISED: c_int = 0x40;
    // SAFETY: the program passes such a structure, or null.
    let Some(timex) = (unsafe { timex.as_mut() }) else { return -(EFAULT as isize) };
    let modes = timex.modes;
    let error = match modes & !(MICRO | NANO) {
        0 => 0,
        _ if modes == READ_OFFSET => 0,
        _ if modes == SINGLE_SHOT => move_by(timex.offset.saturating_mul(1_000)),
        OFFSET => move_by(timex.offset.saturating_mul(if modes & NANO != 0 { 1 } else { 1_000 })),
        SET_OFFSET => {
            let [seconds, parts] = timex.time;
            let unit = if modes & NANO != 0 { 1 } else { 1_000 };
            if !(0..SECOND / unit).contains(&parts) {
                sys::EINVAL
            } else {
                move_by(seconds.saturating_mul(SECOND).saturating_add(parts * unit))
            }
        }
        _ => {
            if SCHED.active.get() {
                wire_log::note(Note::ClockRate);
            }
            sys::EPERM
        }
    };
    if error != 0 {
        return -(error as isize);
    }
    let now = if uncontrolled() { Timespec::of(0) } else { clock::look(CLOCK_REALTIME) };
    *timex = Timex {
        modes,
        offset: 0,
        frequency: 0,
        max_error: 16_000_000,
        estimated_error: 16_000_000,
        status: UNSYNCHRONISED,
        constant: 2,
        precision: 1,
        tolerance: 32_768_000,
        time: [now.seconds, now.nanoseconds / 1_000],
        tick: 10_000,
        pulses: [0; 8],
        tai: 0,
        pad: [0; 11],
    };
    TIME_ERROR
}

/// As `clock_settime`, in seconds.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stime(seconds: *const i64) -> c_int {
    // SAFETY: the program passes a time, or null.
    let Some(&seconds) = (unsafe { seconds.as_ref() }) else { return glibc::result(EFAULT) };
    let time = Timespec { seconds, nanoseconds: 0 };
    if pid::known() {
        return glibc::result(set_clock(CLOCK_REALTIME, &time));
    }
    // glibc has this name for old programs only, and `dlsym` does not find it.
    glibc::real!(clock_settime, fn(CLOCK_REALTIME => c_int, &raw const time => *const Timespec) -> c_int)
}

shims! {
    if pid::known();

    /// Sets the virtual real-time clock of this execution, whatever the user's rights. Other clocks give
    /// `EINVAL` or `EPERM`. A forked child has no virtual clock: it gets `EPERM`. Not a scheduling point.
    fn clock_settime(clock: c_int, time: *const Timespec) -> c_int = pc { glibc::result(set_clock(clock, time)) }

    /// As `clock_settime`. A time zone has no effect.
    fn settimeofday(time: *const [i64; 2], zone: usize) -> c_int = pc { glibc::result(set_time_of_day(time, zone)) }

    /// As `clock_settime`. The clock moves at once, so that no adjustment ever remains.
    fn adjtime(delta: *const [i64; 2], old: *mut [i64; 2]) -> c_int = pc {
        // SAFETY: the program passes a `struct timeval`, or null.
        let error = match unsafe { delta.as_ref() } {
            None => 0,
            Some(&[seconds, micros]) => move_by(seconds.saturating_mul(SECOND).saturating_add(micros.saturating_mul(1_000))),
        };
        if !old.is_null() {
            // SAFETY: the program passes room for one, or null.
            unsafe { *old = [0, 0] };
        }
        glibc::result(error)
    }

    /// Reports that the clock is not synchronised. Adjustments move the virtual clock at once; changing its
    /// rate is refused with `EPERM`. Not a scheduling point.
    fn adjtimex(timex: *mut Timex) -> c_int = pc { glibc::kernel_result(adjust(timex)) as c_int }

    /// As `adjtimex`.
    fn __adjtimex(timex: *mut Timex) -> c_int = pc { glibc::kernel_result(adjust(timex)) as c_int }

    /// As `adjtimex`.
    fn ntp_adjtime(timex: *mut Timex) -> c_int = pc { glibc::kernel_result(adjust(timex)) as c_int }

    /// As `adjtimex`, for `CLOCK_REALTIME`; other clocks give `EOPNOTSUPP`.
    fn clock_adjtime(clock: c_int, timex: *mut Timex) -> c_int = pc {
        glibc::kernel_result(adjust_clock(clock, timex)) as c_int
    }
}
