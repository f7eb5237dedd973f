//! Memory and strings: copying, filling and comparing. A call from instrumented code counts as an access to the
//! memory. This is needed because gcc and clang 14 call these functions; newer compilers of the clang family
//! call `__tsan_memcpy` instead.
//!
//! Each function is a test and a jump to the C library's function. Resolvers of other libraries call them
//! before this library is relocated. Until it is initialised, simple versions run that need nothing else.

use super::alloc;
use crate::memory::race::MODE;
use crate::memory::symbolic::call::{Call, Value};
use crate::memory::symbolic::string_calls::{self as model, ALL, Comparison};
use crate::memory::tsan;
use crate::memory::tsan::{Part, touch};
use crate::platform::glibc;
use crate::platform::glibc::Real;
use crate::platform::program_memory;
use crate::platform::registers::caller;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

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

/// How `memcmp` and the functions after it compare.
const BLOCKS: Comparison = Comparison { most: ALL, ends: false, folds: false };
const STRINGS: Comparison = Comparison { most: ALL, ends: true, folds: false };
const FOLDED: Comparison = Comparison { most: ALL, ends: true, folds: true };

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

/// The same where upper and lower case do not differ.
fn folded_compared(one: usize, other: usize, most: usize) -> usize {
    let lower = |at| glibc::real!(tolower, fn(c_int::from(byte(at)) => c_int) -> c_int);
    until(most, |index| lower(one + index) != lower(other + index) || byte(one + index) == 0)
}

/// The number of bytes that a search for a string reads of the one that it searches.
fn up_to_string(at: usize, wanted: usize) -> usize {
    let count = length(wanted, ALL);
    let is_at = |start: usize| (0..count).all(|index| byte(start + index) == byte(wanted + index));
    let mut start = 0;
    loop {
        if is_at(at + start) {
            return start + count;
        }
        if byte(at + start) == 0 {
            return start + 1;
        }
        start += 1;
    }
}

/// The number of bytes that a search reads that ends at the first byte of a set, or, with `inside`, at the first one that
/// is not in it.
fn spanned(at: usize, set: usize, inside: bool) -> usize {
    let is_in = |wanted: u8| (0..length(set, ALL)).any(|index| byte(set + index) == wanted);
    until(ALL, |index| byte(at + index) == 0 || is_in(byte(at + index)) != inside)
}

/// The accesses of a function that searches by a set.
fn spans(at: usize, set: usize, inside: bool, pc: usize) {
    touch(pc, &[Part::read(at, 1), Part::read(set, 1)], || {
        [Part::read(at, spanned(at, set, inside)), Part::read(set, string(set, ALL))]
    });
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

/// Exports functions. Each entry has the name of the real function, its accesses, its simple version, and what it does to
/// expressions.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $real:ident = $as:ident,
        $before:ident |$pc:ident| $accesses:expr, $early:ident $simple:expr, |$call:ident| $model:expr;)*) => {
    /// The real functions.
    static REALS: &[&$crate::platform::glibc::Real] = &[$(&$real),*];

    $(
        static $real: $crate::platform::glibc::Real =
            $crate::platform::glibc::Real::new($crate::platform::glibc::name_of!($as));

        $crate::shim::real_jump::real_jump! {
            $(#[$doc])*
            fn $name($($arg: $ty),*) -> $ret, $real; $crate::memory::race::MODE => before $before, early $early
        }

        /// Records the accesses of the call, whose arguments are in these registers.
        extern "C" fn $before(registers: &[usize; 4], $pc: usize) {
            let [$($arg,)* ..] = *registers;
            $(let _ = $arg;)*
            if $crate::memory::tsan::code::is_instrumented($pc) {
                let function: unsafe extern "C" fn($($ty),*) -> $ret = $name;
                let call = $crate::memory::symbolic::call::Call::begin(
                    function as usize,
                    [$(stringify!($arg)),*].len(),
                    $pc,
                );
                $accesses;
                if let Some($call) = &call {
                    $call.returns($model);
                }
            }
        }

        extern "C" fn $early($($arg: usize),*) -> usize {
            $simple
        }
    )*};
}
pub(super) use functions;

/// The result of the real function, which compares.
fn compares_as(real: &Real, one: usize, other: usize, most: usize) -> i32 {
    // SAFETY: the functions take two or three of these arguments, those of the program.
    unsafe {
        let real: extern "C" fn(usize, usize, usize) -> i32 = core::mem::transmute(real.address());
        real(one, other, most)
    }
}

functions! {
    /// If instrumented code calls it, a read and a write of that memory. A scheduling point if the access is
    /// known to conflict with one of another thread.
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void, MEMCPY = memmove,
        before_memcpy |pc| tsan::copies(to, from, bytes, pc), early_memcpy copy(to, from, bytes),
        |call| model::copies(call, to, from, bytes);

    /// As `memcpy`.
    fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void, MEMMOVE = memmove,
        before_memmove |pc| tsan::copies(to, from, bytes, pc), early_memmove copy(to, from, bytes),
        |call| model::copies(call, to, from, bytes);

    /// As `memcpy`.
    fn mempcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void, MEMPCPY = mempcpy,
        before_mempcpy |pc| tsan::copies(to, from, bytes, pc), early_mempcpy copy(to, from, bytes) + bytes,
        |call| model::copies(call, to, from, bytes);

    /// A write of that memory, in other respects as `memcpy`.
    fn memset(to: *mut c_void, value: c_int, bytes: usize) -> *mut c_void, MEMSET = memset,
        before_memset |pc| tsan::fills(to, bytes, pc), early_memset fill(to, value as u8, bytes),
        |call| model::fills(call, to, call.argument(1, value as usize, 32), bytes, 2);

    /// As `memset`.
    fn bzero(to: *mut c_void, bytes: usize) -> (), BZERO = bzero,
        before_bzero |pc| tsan::fills(to, bytes, pc), early_bzero fill(to, 0, bytes),
        |call| model::fills(call, to, Value::constant(0, 8), bytes, 1);

    /// A read of both blocks up to the first difference, in other respects as `memcpy`.
    fn memcmp(one: *const c_void, other: *const c_void, bytes: usize) -> c_int, MEMCMP = memcmp,
        before_memcmp |pc| compares(one, other, bytes, pc, || compared(one, other, bytes)),
        early_memcmp difference(one, other, compared(one, other, bytes)),
        |call| model::compares(call, one, other, BLOCKS.up_to(bytes), || compares_as(&MEMCMP, one, other, bytes));

    /// As `memcmp`.
    fn bcmp(one: *const c_void, other: *const c_void, bytes: usize) -> c_int, BCMP = bcmp,
        before_bcmp |pc| compares(one, other, bytes, pc, || compared(one, other, bytes)),
        early_bcmp difference(one, other, compared(one, other, bytes)),
        |call| model::compares(call, one, other, BLOCKS.up_to(bytes), || compares_as(&BCMP, one, other, bytes));

    /// A read of the memory that it searches, in other respects as `memcpy`.
    fn memchr(at: *const c_void, character: c_int, bytes: usize) -> *mut c_void, MEMCHR = memchr,
        before_memchr |pc| touch(pc, &[Part::read(at, bytes.min(1))], || {
            [Part::read(at, until(bytes, |index| byte(at + index) == character as u8))]
        }),
        early_memchr found(at, until(bytes, |index| byte(at + index) == character as u8), character),
        |call| model::finds(call, at, character, bytes);

    /// A read of the string, in other respects as `memcpy`.
    fn strlen(at: *const c_char) -> usize, STRLEN = strlen,
        before_strlen |pc| reads(at, pc, || string(at, ALL)), early_strlen length(at, ALL),
        |call| model::measures(call, at, ALL);

    /// As `strlen`.
    fn strnlen(at: *const c_char, most: usize) -> usize, STRNLEN = strnlen,
        before_strnlen |pc| touch(pc, &[Part::read(at, most.min(1))], || [Part::read(at, string(at, most))]),
        early_strnlen length(at, most),
        |call| model::measures(call, at, most);

    /// A read of the part of the string that it searches, in other respects as `memcpy`.
    fn strchr(at: *const c_char, character: c_int) -> *mut c_char, STRCHR = strchr,
        before_strchr |pc| reads(at, pc, || up_to(at, character)),
        early_strchr found(at, up_to(at, character), character),
        |call| model::finds_in_string(call, at, character, false);

    /// As `strlen`.
    fn strrchr(at: *const c_char, character: c_int) -> *mut c_char, STRRCHR = strrchr,
        before_strrchr |pc| { let _ = character; reads(at, pc, || string(at, ALL)) },
        early_strrchr found_last(at, character),
        |call| model::finds_in_string(call, at, character, true);

    /// A read of both strings up to the first difference, in other respects as `memcpy`.
    fn strcmp(one: *const c_char, other: *const c_char) -> c_int, STRCMP = strcmp,
        before_strcmp |pc| compares(one, other, 1, pc, || strings_compared(one, other, ALL)),
        early_strcmp difference(one, other, strings_compared(one, other, ALL)),
        |call| model::compares(call, one, other, STRINGS, || compares_as(&STRCMP, one, other, 0));

    /// As `strcmp`.
    fn strncmp(one: *const c_char, other: *const c_char, most: usize) -> c_int, STRNCMP = strncmp,
        before_strncmp |pc| compares(one, other, most, pc, || strings_compared(one, other, most)),
        early_strncmp difference(one, other, strings_compared(one, other, most)),
        |call| model::compares(call, one, other, STRINGS.up_to(most), || compares_as(&STRNCMP, one, other, most));

    /// A read of the string and a write of the copy, in other respects as `memcpy`.
    fn strcpy(to: *mut c_char, from: *const c_char) -> *mut c_char, STRCPY = strcpy,
        before_strcpy |pc| copies_string(to, from, pc), early_strcpy copy(to, from, string(from, ALL)),
        |call| model::copies_string(call, to, from);

    /// As `strcpy`.
    fn stpcpy(to: *mut c_char, from: *const c_char) -> *mut c_char, STPCPY = stpcpy,
        before_stpcpy |pc| copies_string(to, from, pc),
        early_stpcpy { let bytes = string(from, ALL); copy(to, from, bytes) + bytes - 1 },
        |call| model::copies_string(call, to, from);

    /// A read of the string and a write of all bytes that it fills, in other respects as `memcpy`.
    fn strncpy(to: *mut c_char, from: *const c_char, most: usize) -> *mut c_char, STRNCPY = strncpy,
        before_strncpy |pc| copies_some(to, from, most, pc), early_strncpy {
            let bytes = length(from, most);
            fill(to + bytes, 0, most - bytes);
            copy(to, from, bytes)
        },
        |call| model::copies_some(call, to, from, most);

    /// A read of both strings and a write of the bytes that it adds, in other respects as `memcpy`.
    fn strcat(to: *mut c_char, from: *const c_char) -> *mut c_char, STRCAT = strcat,
        before_strcat |pc| appends(to, from, ALL, pc), early_strcat append(to, from, ALL),
        |call| model::appends(call, to, from, ALL);

    /// As `strcat`.
    fn strncat(to: *mut c_char, from: *const c_char, most: usize) -> *mut c_char, STRNCAT = strncat,
        before_strncat |pc| appends(to, from, most, pc), early_strncat append(to, from, most),
        |call| model::appends(call, to, from, most);

    /// A read of the part of the block that it searches, in other respects as `memcpy`.
    fn memrchr(at: *const c_void, character: c_int, bytes: usize) -> *mut c_void, MEMRCHR = memrchr,
        before_memrchr |pc| touch(pc, &[Part::read(at + bytes.max(1) - 1, bytes.min(1))], || {
            let read = until(bytes, |index| byte(at + bytes - 1 - index) == character as u8);
            [Part::read(at + bytes - read, read)]
        }),
        early_memrchr glibc::real!(memrchr, fn(at => usize, character => usize, bytes => usize) -> usize),
        |call| model::finds_last(call, at, character, bytes);

    /// As `strchr`.
    fn strchrnul(at: *const c_char, character: c_int) -> *mut c_char, STRCHRNUL = strchrnul,
        before_strchrnul |pc| reads(at, pc, || up_to(at, character)),
        early_strchrnul glibc::real!(strchrnul, fn(at => usize, character => usize) -> usize),
        |call| model::finds_in_string(call, at, character, false);

    /// A read of both strings, of the first one up to the end of the second one in it, in other respects as `memcpy`.
    fn strstr(at: *const c_char, wanted: *const c_char) -> *mut c_char, STRSTR = strstr,
        before_strstr |pc| touch(pc, &[Part::read(wanted, 1), Part::read(at, 1)], || {
            [Part::read(wanted, string(wanted, ALL)), Part::read(at, up_to_string(at, wanted))]
        }),
        early_strstr glibc::real!(strstr, fn(at => usize, wanted => usize) -> usize),
        |call| model::finds_string(call, at, wanted);

    /// A read of both strings, of the first one up to where the search ends, in other respects as `memcpy`.
    fn strspn(at: *const c_char, set: *const c_char) -> usize, STRSPN = strspn,
        before_strspn |pc| spans(at, set, true, pc),
        early_strspn glibc::real!(strspn, fn(at => usize, set => usize) -> usize),
        |call| model::spans(call, at, set, true);

    /// As `strspn`.
    fn strcspn(at: *const c_char, set: *const c_char) -> usize, STRCSPN = strcspn,
        before_strcspn |pc| spans(at, set, false, pc),
        early_strcspn glibc::real!(strcspn, fn(at => usize, set => usize) -> usize),
        |call| model::spans(call, at, set, false);

    /// As `strspn`.
    fn strpbrk(at: *const c_char, set: *const c_char) -> *mut c_char, STRPBRK = strpbrk,
        before_strpbrk |pc| spans(at, set, false, pc),
        early_strpbrk glibc::real!(strpbrk, fn(at => usize, set => usize) -> usize),
        |call| model::spans(call, at, set, false);

    /// As `strcmp`.
    fn strcasecmp(one: *const c_char, other: *const c_char) -> c_int, STRCASECMP = strcasecmp,
        before_strcasecmp |pc| compares(one, other, 1, pc, || folded_compared(one, other, ALL)),
        early_strcasecmp glibc::real!(strcasecmp, fn(one => usize, other => usize) -> usize),
        |call| model::compares(call, one, other, FOLDED, || compares_as(&STRCASECMP, one, other, 0));

    /// As `strcmp`.
    fn strncasecmp(one: *const c_char, other: *const c_char, most: usize) -> c_int, STRNCASECMP = strncasecmp,
        before_strncasecmp |pc| compares(one, other, most, pc, || folded_compared(one, other, most)),
        early_strncasecmp glibc::real!(strncasecmp, fn(one => usize, other => usize, most => usize) -> usize),
        |call| model::compares(call, one, other, FOLDED.up_to(most), || compares_as(&STRNCASECMP, one, other, most));

    /// As `memcpy`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __memcpy_chk(to: *mut c_void, from: *const c_void, bytes: usize, room: usize) -> *mut c_void,
        MEMCPY_CHK = __memcpy_chk, before_memcpy_chk |pc| tsan::copies(to, from, bytes, pc),
        early_memcpy_chk glibc::real!(__memcpy_chk, fn(to => usize, from => usize, bytes => usize, room => usize) -> usize),
        |call| model::copies(call, to, from, bytes);

    /// As `memmove`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __memmove_chk(to: *mut c_void, from: *const c_void, bytes: usize, room: usize) -> *mut c_void,
        MEMMOVE_CHK = __memmove_chk, before_memmove_chk |pc| tsan::copies(to, from, bytes, pc),
        early_memmove_chk glibc::real!(__memmove_chk, fn(to => usize, from => usize, bytes => usize, room => usize) -> usize),
        |call| model::copies(call, to, from, bytes);

    /// As `memset`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __memset_chk(to: *mut c_void, value: c_int, bytes: usize, room: usize) -> *mut c_void,
        MEMSET_CHK = __memset_chk, before_memset_chk |pc| tsan::fills(to, bytes, pc),
        early_memset_chk glibc::real!(__memset_chk, fn(to => usize, value => usize, bytes => usize, room => usize) -> usize),
        |call| model::fills(call, to, call.argument(1, value as usize, 32), bytes, 2);

    /// As `strcpy`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strcpy_chk(to: *mut c_char, from: *const c_char, room: usize) -> *mut c_char,
        STRCPY_CHK = __strcpy_chk, before_strcpy_chk |pc| copies_string(to, from, pc),
        early_strcpy_chk glibc::real!(__strcpy_chk, fn(to => usize, from => usize, room => usize) -> usize),
        |call| model::copies_string(call, to, from);

    /// As `strncpy`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strncpy_chk(to: *mut c_char, from: *const c_char, most: usize, room: usize) -> *mut c_char,
        STRNCPY_CHK = __strncpy_chk, before_strncpy_chk |pc| copies_some(to, from, most, pc),
        early_strncpy_chk glibc::real!(__strncpy_chk, fn(to => usize, from => usize, most => usize, room => usize) -> usize),
        |call| model::copies_some(call, to, from, most);

    /// As `strcat`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strcat_chk(to: *mut c_char, from: *const c_char, room: usize) -> *mut c_char,
        STRCAT_CHK = __strcat_chk, before_strcat_chk |pc| appends(to, from, ALL, pc),
        early_strcat_chk glibc::real!(__strcat_chk, fn(to => usize, from => usize, room => usize) -> usize),
        |call| model::appends(call, to, from, ALL);

    /// As `strncat`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __strncat_chk(to: *mut c_char, from: *const c_char, most: usize, room: usize) -> *mut c_char,
        STRNCAT_CHK = __strncat_chk, before_strncat_chk |pc| appends(to, from, most, pc),
        early_strncat_chk glibc::real!(__strncat_chk, fn(to => usize, from => usize, most => usize, room => usize) -> usize),
        |call| model::appends(call, to, from, most);
}

/// A read of the string, as `strlen`, and an allocation, as `malloc`.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strdup(at: *const c_char) -> *mut c_char {
    let function: unsafe extern "C" fn(*const c_char) -> *mut c_char = strdup;
    duplicates(function as usize, 1, at as usize, ALL, caller!())
        .unwrap_or_else(|| glibc::real!(strdup, fn(at => *const c_char) -> *mut c_char))
}

/// As `strdup`.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strndup(at: *const c_char, most: usize) -> *mut c_char {
    let function: unsafe extern "C" fn(*const c_char, usize) -> *mut c_char = strndup;
    duplicates(function as usize, 2, at as usize, most, caller!())
        .unwrap_or_else(|| glibc::real!(strndup, fn(at => *const c_char, most => usize) -> *mut c_char))
}

/// Records that the function at this address, with so many arguments, copies a string. Where expressions are logged, it also
/// makes the copy, and returns it.
fn duplicates(function: usize, count: usize, at: usize, most: usize, pc: usize) -> Option<*mut c_char> {
    if MODE.load(Relaxed) == 0 || !tsan::code::is_instrumented(pc) {
        return None;
    }
    let call = Call::begin(function, count, pc);
    touch(pc, &[Part::read(at, most.min(1))], || [Part::read(at, string(at, most))]);
    let call = call?;
    call.returns(model::measures(&call, at, most));
    let bytes = length(at, most);
    let copied = alloc::allocate(bytes + 1, pc);
    if copied != 0 {
        model::duplicated(&call, copied, at, bytes);
        copy(copied, at, bytes);
        set_byte(copied + bytes, 0);
    }
    Some(copied as *mut c_char)
}
