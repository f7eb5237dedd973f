//! Numbers and characters: reading numbers from strings, and changing the case of characters. A call from instrumented code
//! counts as a read of the string, and passes expressions through.

use super::strings::functions;
use crate::memory::symbolic::call::Call;
use crate::memory::symbolic::number_calls::{self as model, Kind};
use crate::memory::tsan::{Part, touch};
use crate::platform::glibc;
use core::ffi::{c_char, c_int, c_long, c_longlong, c_ulong, c_ulonglong};

/// Looks up the real functions.
pub fn look_up() {
    for real in REALS {
        real.address();
    }
}

const INT: Kind = Kind { signed: true, bits: 32 };
const LONG: Kind = Kind { signed: true, bits: 64 };
const UNSIGNED: Kind = Kind { signed: false, bits: 64 };

/// The accesses of a function that reads a number, and stores where it ends.
fn reads_number(at: usize, end: usize, base: usize, pc: usize) {
    let base = u64::from(base as u32);
    let (bytes, stored) = if model::is_base(base) { (1, 8) } else { (0, 0) };
    let stores = Part::write(end, if end == 0 { 0 } else { stored });
    touch(pc, &[Part::read(at, bytes), stores], || [Part::read(at, model::extent(at, base)), stores]);
}

/// What a function does that reads a number and stores where it ends.
fn number(call: &Call, at: usize, end: usize, base: usize, kind: Kind) -> u32 {
    model::reads_to(call, at, end, call.argument(2, base, 32), kind)
}

functions! {
    /// If instrumented code calls it, a read of the number. A scheduling point if the access is known to conflict with one
    /// of another thread.
    fn atoi(at: *const c_char) -> c_int, ATOI = atoi, before_atoi |pc| reads_number(at, 0, 10, pc),
        early_atoi glibc::real!(atoi, fn(at => usize) -> usize), |call| model::reads(call, at, INT);

    /// As `atoi`.
    fn atol(at: *const c_char) -> c_long, ATOL = atol, before_atol |pc| reads_number(at, 0, 10, pc),
        early_atol glibc::real!(atol, fn(at => usize) -> usize), |call| model::reads(call, at, LONG);

    /// As `atoi`.
    fn atoll(at: *const c_char) -> c_longlong, ATOLL = atoll, before_atoll |pc| reads_number(at, 0, 10, pc),
        early_atoll glibc::real!(atoll, fn(at => usize) -> usize), |call| model::reads(call, at, LONG);

    /// As `atoi`.
    fn strtol(at: *const c_char, end: *mut *mut c_char, base: c_int) -> c_long, STRTOL = strtol,
        before_strtol |pc| reads_number(at, end, base, pc),
        early_strtol glibc::real!(strtol, fn(at => usize, end => usize, base => usize) -> usize),
        |call| number(call, at, end, base, LONG);

    /// As `atoi`.
    fn strtoll(at: *const c_char, end: *mut *mut c_char, base: c_int) -> c_longlong, STRTOLL = strtoll,
        before_strtoll |pc| reads_number(at, end, base, pc),
        early_strtoll glibc::real!(strtoll, fn(at => usize, end => usize, base => usize) -> usize),
        |call| number(call, at, end, base, LONG);

    /// As `atoi`.
    fn strtoul(at: *const c_char, end: *mut *mut c_char, base: c_int) -> c_ulong, STRTOUL = strtoul,
        before_strtoul |pc| reads_number(at, end, base, pc),
        early_strtoul glibc::real!(strtoul, fn(at => usize, end => usize, base => usize) -> usize),
        |call| number(call, at, end, base, UNSIGNED);

    /// As `atoi`.
    fn strtoull(at: *const c_char, end: *mut *mut c_char, base: c_int) -> c_ulonglong, STRTOULL = strtoull,
        before_strtoull |pc| reads_number(at, end, base, pc),
        early_strtoull glibc::real!(strtoull, fn(at => usize, end => usize, base => usize) -> usize),
        |call| number(call, at, end, base, UNSIGNED);

    /// Noticed only where expressions are followed: the result of instrumented code's call is an expression if the
    /// character is.
    fn tolower(character: c_int) -> c_int, TOLOWER = tolower, before_tolower |pc| {},
        early_tolower glibc::real!(tolower, fn(character => usize) -> usize),
        |call| model::lower(call, call.argument(0, character, 32)).id;

    /// As `tolower`.
    fn toupper(character: c_int) -> c_int, TOUPPER = toupper, before_toupper |pc| {},
        early_toupper glibc::real!(toupper, fn(character => usize) -> usize),
        |call| model::upper(call, call.argument(0, character, 32)).id;
}
