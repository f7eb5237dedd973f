//! Memory and strings: copying, filling and comparing. A call from instrumented code counts as an access to the
//! memory. This is needed because gcc and clang 14 call these functions; newer compilers of the clang family
//! call `__tsan_memcpy` instead.
//!
//! Each function is a test and a jump to the C library's function. Resolvers of other libraries call them
//! before this library is relocated. Until it is initialised, simple versions run that need nothing else.

use super::real_jump::real_jump;
use crate::memory::race::MODE;
use crate::memory::tsan;
use crate::memory::tsan::{Part, touch};
use crate::platform::glibc;
use crate::platform::glibc::Real;
use crate::platform::program_memory;
use core::ffi::{c_char, c_int, c_void};

/// Looks up the real functions.
pub fn look_up() {
    for real in REALS {
        real.address();
    }
    tsan::code::look_up();
}

fn byte(at: usize) -> u8 {
    program_memory::probe(at);
    // SAFETY: the program passes strings and memory that can be read. The read is volatile so that the compiler
    // does not turn the loop into a call.
    unsafe { (at as *const u8).read_volatile() }
}

fn set_byte(at: usize, value: u8) {
    // SAFETY: the program passes memory that can be written; volatile as above.
    unsafe { (at as *mut u8).write_volatile(value) };
}

/// The number of bytes up to and including the first one for which `wanted` holds; at most `most`.
fn until(most: usize, wanted: impl Fn(usize) -> bool) -> usize {
    let mut count = 0;
    while count < most {
        count += 1;
        if wanted(count - 1) {
            break;
        }
    }
    count
}

const ALL: usize = usize::MAX;

/// The size of a string with its terminating zero; at most `most`.
fn string(at: usize, most: usize) -> usize {
    until(most, |index| byte(at + index) == 0)
}

/// The length of a string without its terminating zero; at most `most`.
fn length(at: usize, most: usize) -> usize {
    let mut count = 0;
    while count < most && byte(at + count) != 0 {
        count += 1;
    }
    count
}

/// The number of bytes that a search for this character reads.
fn up_to(at: usize, character: usize) -> usize {
    until(ALL, |index| byte(at + index) == 0 || byte(at + index) == character as u8)
}

/// The number of bytes that a comparison reads: up to the first difference.
fn compared(one: usize, other: usize, most: usize) -> usize {
    until(most, |index| byte(one + index) != byte(other + index))
}

/// The same for strings.
fn strings_compared(one: usize, other: usize, most: usize) -> usize {
    until(most, |index| byte(one + index) != byte(other + index) || byte(one + index) == 0)
}

/// The simple version of `memmove`.
fn copy(to: usize, from: usize, bytes: usize) -> usize {
    if to.wrapping_sub(from) >= bytes {
        (0..bytes).for_each(|index| set_byte(to + index, byte(from + index)));
    } else {
        (0..bytes).rev().for_each(|index| set_byte(to + index, byte(from + index)));
    }
    to
}

fn fill(to: usize, value: u8, bytes: usize) -> usize {
    (0..bytes).for_each(|index| set_byte(to + index, value));
    to
}

/// The difference of the last of `bytes` bytes.
fn difference(one: usize, other: usize, bytes: usize) -> usize {
    match bytes.checked_sub(1) {
        None => 0,
        Some(last) => (i32::from(byte(one + last)) - i32::from(byte(other + last))) as usize,
    }
}

/// The address of the last of `bytes` bytes if it is this character; else 0.
fn found(at: usize, bytes: usize, character: usize) -> usize {
    match bytes.checked_sub(1) {
        Some(last) if byte(at + last) == character as u8 => at + last,
        _ => 0,
    }
}

fn found_last(at: usize, character: usize) -> usize {
    (0..string(at, ALL)).rev().find(|index| byte(at + index) == character as u8).map_or(0, |index| at + index)
}

/// The simple version of `strncat`, or of `strcat` without a limit.
fn append(to: usize, from: usize, most: usize) -> usize {
    let (end, bytes) = (to + length(to, ALL), length(from, most));
    copy(end, from, bytes);
    set_byte(end + bytes, 0);
    to
}

/// The accesses of `strncat`, or of `strcat` without a limit.
fn appends(to: usize, from: usize, most: usize, pc: usize) {
    touch(pc, &[Part::read(to, 1), Part::read(from, most.min(1)), Part::write(to, 1)], || {
        let old = length(to, ALL);
        [
            Part::read(to, old + 1),
            Part::read(from, string(from, most)),
            Part::write(to + old, length(from, most) + 1),
        ]
    });
}

/// The accesses of a function that reads a string.
fn reads(at: usize, pc: usize, bytes: impl FnOnce() -> usize) {
    touch(pc, &[Part::read(at, 1)], || [Part::read(at, bytes())]);
}

/// The accesses of a function that compares.
fn compares(one: usize, other: usize, most: usize, pc: usize, bytes: impl FnOnce() -> usize) {
    let first = most.min(1);
    touch(pc, &[Part::read(one, first), Part::read(other, first)], || {
        let bytes = bytes();
        [Part::read(one, bytes), Part::read(other, bytes)]
    });
}

/// The accesses of `strcpy`.
fn copies_string(to: usize, from: usize, pc: usize) {
    touch(pc, &[Part::read(from, 1), Part::write(to, 1)], || {
        let bytes = string(from, ALL);
        [Part::read(from, bytes), Part::write(to, bytes)]
    });
}

/// The accesses of `strncpy`, which fills the rest with zeros.
fn copies_some(to: usize, from: usize, most: usize, pc: usize) {
    touch(pc, &[Part::read(from, most.min(1)), Part::write(to, most)], || {
        [Part::read(from, string(from, most)), Part::write(to, most)]
    });
}

/// Exports functions. Each entry has the name of the real function, its accesses and its simple version.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $real:ident = $as:ident,
        $before:ident |$pc:ident| $accesses:expr, $early:ident $simple:expr;)*) => {
    /// The real functions.
    static REALS: &[&Real] = &[$(&$real),*];

    $(
        static $real: Real = Real::new(glibc::name_of!($as));

        real_jump! {
            $(#[$doc])*
            fn $name($($arg: $ty),*) -> $ret, $real; MODE => before $before, early $early
        }

        /// Records the accesses of the call, whose arguments are in these registers.
        extern "C" fn $before(registers: &[usize; 4], $pc: usize) {
            let [$($arg,)* ..] = *registers;
            $(let _ = $arg;)*
            if tsan::code::is_instrumented($pc) {
                $accesses;
            }
        }

        extern "C" fn $early($($arg: usize),*) -> usize {
            $simple
        }
    )*};
}

functions! {
    /// If instrumented code calls it, a read and a write of that memory. A scheduling point if the access is
    /// known to conflict with one of another thread.
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void, MEMCPY = memmove,
        before_memcpy |pc| tsan::copies(to, from, bytes, pc), early_memcpy copy(to, from, bytes);

    /// As `memcpy`.
    fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void, MEMMOVE = memmove,
        before_memmove |pc| tsan::copies(to, from, bytes, pc), early_memmove copy(to, from, bytes);

    /// As `memcpy`.
    fn mempcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void, MEMPCPY = mempcpy,
        before_mempcpy |pc| tsan::copies(to, from, bytes, pc), early_mempcpy copy(to, from, bytes) + bytes;

    /// A write of that memory, in other respects as `memcpy`.
    fn memset(to: *mut c_void, value: c_int, bytes: usize) -> *mut c_void, MEMSET = memset,
        before_memset |pc| tsan::fills(to, bytes, pc), early_memset fill(to, value as u8, bytes);

    /// As `memset`.
    fn bzero(to: *mut c_void, bytes: usize) -> (), BZERO = bzero,
        before_bzero |pc| tsan::fills(to, bytes, pc), early_bzero fill(to, 0, bytes);

    /// A read of both blocks up to the first difference, in other respects as `memcpy`.
    fn memcmp(one: *const c_void, other: *const c_void, bytes: usize) -> c_int, MEMCMP = memcmp,
        before_memcmp |pc| compares(one, other, bytes, pc, || compared(one, other, bytes)),
        early_memcmp difference(one, other, compared(one, other, bytes));

    /// As `memcmp`.
    fn bcmp(one: *const c_void, other: *const c_void, bytes: usize) -> c_int, BCMP = bcmp,
        before_bcmp |pc| compares(one, other, bytes, pc, || compared(one, other, bytes)),
        early_bcmp difference(one, other, compared(one, other, bytes));

    /// A read of the memory that it searches, in other respects as `memcpy`.
    fn memchr(at: *const c_void, character: c_int, bytes: usize) -> *mut c_void, MEMCHR = memchr,
        before_memchr |pc| touch(pc, &[Part::read(at, bytes.min(1))], || {
            [Part::read(at, until(bytes, |index| byte(at + index) == character as u8))]
        }),
        early_memchr found(at, until(bytes, |index| byte(at + index) == character as u8), character);

    /// A read of the string, in other respects as `memcpy`.
    fn strlen(at: *const c_char) -> usize, STRLEN = strlen,
        before_strlen |pc| reads(at, pc, || string(at, ALL)), early_strlen length(at, ALL);

    /// As `strlen`.
    fn strnlen(at: *const c_char, most: usize) -> usize, STRNLEN = strnlen,
        before_strnlen |pc| touch(pc, &[Part::read(at, most.min(1))], || [Part::read(at, string(at, most))]),
        early_strnlen length(at, most);

    /// A read of the part of the string that it searches, in other respects as `memcpy`.
    fn strchr(at: *const c_char, character: c_int) -> *mut c_char, STRCHR = strchr,
        before_strchr |pc| reads(at, pc, || up_to(at, character)),
        early_strchr found(at, up_to(at, character), character);

    /// As `strlen`.
    fn strrchr(at: *const c_char, character: c_int) -> *mut c_char, STRRCHR = strrchr,
        before_strrchr |pc| { let _ = character; reads(at, pc, || string(at, ALL)) },
        early_strrchr found_last(at, character);

    /// A read of both strings up to the first difference, in other respects as `memcpy`.
    fn strcmp(one: *const c_char, other: *const c_char) -> c_int, STRCMP = strcmp,
        before_strcmp |pc| compares(one, other, 1, pc, || strings_compared(one, other, ALL)),
        early_strcmp difference(one, other, strings_compared(one, other, ALL));

    /// As `strcmp`.
    fn strncmp(one: *const c_char, other: *const c_char, most: usize) -> c_int, STRNCMP = strncmp,
        before_strncmp |pc| compares(one, other, most, pc, || strings_compared(one, other, most)),
        early_strncmp difference(one, other, strings_compared(one, other, most));

    /// A read of the string and a write of the copy, in other respects as `memcpy`.
    fn strcpy(to: *mut c_char, from: *const c_char) -> *mut c_char, STRCPY = strcpy,
        before_strcpy |pc| copies_string(to, from, pc), early_strcpy copy(to, from, string(from, ALL));

    /// As `strcpy`.
    fn stpcpy(to: *mut c_char, from: *const c_char) -> *mut c_char, STPCPY = stpcpy,
        before_stpcpy |pc| copies_string(to, from, pc),
        early_stpcpy { let bytes = string(from, ALL); copy(to, from, bytes) + bytes - 1 };

    /// A read of the string and a write of all bytes that it fills, in other respects as `memcpy`.
    fn strncpy(to: *mut c_char, from: *const c_char, most: usize) -> *mut c_char, STRNCPY = strncpy,
        before_strncpy |pc| copies_some(to, from, most, pc), early_strncpy {
            let bytes = length(from, most);
            fill(to + bytes, 0, most - bytes);
            copy(to, from, bytes)
        };

    /// A read of both strings and a write of the bytes that it adds, in other respects as `memcpy`.
    fn strcat(to: *mut c_char, from: *const c_char) -> *mut c_char, STRCAT = strcat,
        before_strcat |pc| appends(to, from, ALL, pc), early_strcat append(to, from, ALL);

    /// As `strcat`.
    fn strncat(to: *mut c_char, from: *const c_char, most: usize) -> *mut c_char, STRNCAT = strncat,
        before_strncat |pc| appends(to, from, most, pc), early_strncat append(to, from, most);

    /// A read of the string, as `strlen`, and an allocation, as `malloc`.
    fn strdup(at: *const c_char) -> *mut c_char, STRDUP = strdup,
        before_strdup |pc| reads(at, pc, || string(at, ALL)), early_strdup glibc::real!(strdup, fn(at => usize) -> usize);

    /// As `strdup`.
    fn strndup(at: *const c_char, most: usize) -> *mut c_char, STRNDUP = strndup,
        before_strndup |pc| touch(pc, &[Part::read(at, most.min(1))], || [Part::read(at, string(at, most))]),
        early_strndup glibc::real!(strndup, fn(at => usize, most => usize) -> usize);

    /// As `memcpy`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __memcpy_chk(to: *mut c_void, from: *const c_void, bytes: usize, room: usize) -> *mut c_void,
        MEMCPY_CHK = __memcpy_chk, before_memcpy_chk |pc| tsan::copies(to, from, bytes, pc),
        early_memcpy_chk glibc::real!(__memcpy_chk, fn(to => usize, from => usize, bytes => usize, room => usize) -> usize);

    /// As `memmove`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __memmove_chk(to: *mut c_void, from: *const c_void, bytes: usize, room: usize) -> *mut c_void,
        MEMMOVE_CHK = __memmove_chk, before_memmove_chk |pc| tsan::copies(to, from, bytes, pc),
        early_memmove_chk glibc::real!(__memmove_chk, fn(to => usize, from => usize, bytes => usize, room => usize) -> usize);

    /// As `memset`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __memset_chk(to: *mut c_void, value: c_int, bytes: usize, room: usize) -> *mut c_void,
        MEMSET_CHK = __memset_chk, before_memset_chk |pc| tsan::fills(to, bytes, pc),
        early_memset_chk glibc::real!(__memset_chk, fn(to => usize, value => usize, bytes => usize, room => usize) -> usize);

    /// As `strcpy`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strcpy_chk(to: *mut c_char, from: *const c_char, room: usize) -> *mut c_char,
        STRCPY_CHK = __strcpy_chk, before_strcpy_chk |pc| copies_string(to, from, pc),
        early_strcpy_chk glibc::real!(__strcpy_chk, fn(to => usize, from => usize, room => usize) -> usize);

    /// As `strncpy`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strncpy_chk(to: *mut c_char, from: *const c_char, most: usize, room: usize) -> *mut c_char,
        STRNCPY_CHK = __strncpy_chk, before_strncpy_chk |pc| copies_some(to, from, most, pc),
        early_strncpy_chk glibc::real!(__strncpy_chk, fn(to => usize, from => usize, most => usize, room => usize) -> usize);

    /// As `strcat`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strcat_chk(to: *mut c_char, from: *const c_char, room: usize) -> *mut c_char,
        STRCAT_CHK = __strcat_chk, before_strcat_chk |pc| appends(to, from, ALL, pc),
        early_strcat_chk glibc::real!(__strcat_chk, fn(to => usize, from => usize, room => usize) -> usize);

    /// As `strncat`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strncat_chk(to: *mut c_char, from: *const c_char, most: usize, room: usize) -> *mut c_char,
        STRNCAT_CHK = __strncat_chk, before_strncat_chk |pc| appends(to, from, most, pc),
        early_strncat_chk glibc::real!(__strncat_chk, fn(to => usize, from => usize, most => usize, room => usize) -> usize);
}
