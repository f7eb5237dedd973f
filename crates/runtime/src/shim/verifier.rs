//! The functions of verification tasks, as the competition SV-COMP defines them. Values that a task leaves open are
//! inputs, which are 0 unless the search chooses them.

use super::process::assertion_failed;
use crate::memory::symbolic::inputs;
use crate::platform::registers::caller;
use crate::sched::SCHED;
use crate::sched::pause;
use crate::wire_log;
use core::ffi::{c_char, c_int};
use heisen_trace::Note;
use heisen_wire::end;

/// The program assumes a condition, by the function at this address. If it does not hold, the execution ends here, and is
/// no failure.
pub fn assumed(function: usize, condition: c_int, pc: usize) {
    if SCHED.active.get() && SCHED.running.get() {
        inputs::assumes(function, condition, pc);
        if condition == 0 {
            wire_log::note(Note::Assumed);
            pause::finish(end::EXIT, 0, pc);
        }
    }
}

/// An input that the function at this address returns.
fn input(function: usize, name: &[u8], bits: u32, pc: usize) -> u64 {
    if SCHED.active.get() && SCHED.running.get() { inputs::returned(function, name, bits, pc) } else { 0 }
}

macro_rules! nondet {
    ($($(#[$doc:meta])* fn $name:ident() -> $ty:ty, $bits:literal = |$value:ident| $convert:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $ty {
            let function: extern "C" fn() -> $ty = $name;
            let $value = input(function as usize, stringify!($name).as_bytes(), $bits, caller!());
            $convert
        }
    )*};
}

nondet! {
    /// An input of type `bool`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_bool() -> bool, 1 = |value| value != 0;

    /// An input of type `_Bool`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet__Bool() -> bool, 1 = |value| value != 0;

    /// An input of type `char`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_char() -> i8, 8 = |value| value as i8;

    /// An input of type `unsigned char`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_uchar() -> u8, 8 = |value| value as u8;

    /// An input of type `unsigned char`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_unsigned_char() -> u8, 8 = |value| value as u8;

    /// An input of type `unsigned char`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_u8() -> u8, 8 = |value| value as u8;

    /// An input of type `short`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_short() -> i16, 16 = |value| value as i16;

    /// An input of type `unsigned short`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_ushort() -> u16, 16 = |value| value as u16;

    /// An input of type `unsigned short`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_u16() -> u16, 16 = |value| value as u16;

    /// An input of type `int`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_int() -> i32, 32 = |value| value as i32;

    /// An input of type `unsigned int`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_uint() -> u32, 32 = |value| value as u32;

    /// An input of type `unsigned int`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_unsigned() -> u32, 32 = |value| value as u32;

    /// An input of type `unsigned int`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_unsigned_int() -> u32, 32 = |value| value as u32;

    /// An input of type `unsigned int`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_u32() -> u32, 32 = |value| value as u32;

    /// An input of type `long`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_long() -> i64, 64 = |value| value as i64;

    /// An input of type `unsigned long`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_ulong() -> u64, 64 = |value| value;

    /// An input of type `long long`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_longlong() -> i64, 64 = |value| value as i64;

    /// An input of type `unsigned long long`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_ulonglong() -> u64, 64 = |value| value;

    /// An input of type `loff_t`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_loff_t() -> i64, 64 = |value| value as i64;

    /// An input of type `size_t`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_size_t() -> u64, 64 = |value| value;

    /// An input of type `pthread_t`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_pthread_t() -> u64, 64 = |value| value;

    /// An input of type `sector_t`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_sector_t() -> u64, 64 = |value| value;

    /// An input of type `unsigned long long`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_u64() -> u64, 64 = |value| value;

    /// An input of type `void *`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_pointer() -> usize, 64 = |value| value as usize;

    /// An input of type `char *`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_pchar() -> usize, 64 = |value| value as usize;

    /// An input of type `float`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_float() -> f32, 32 = |value| f32::from_bits(value as u32);

    /// An input of type `double`, which is 0 unless the search chooses its value.
    fn __VERIFIER_nondet_double() -> f64, 64 = |value| f64::from_bits(value);
}

/// An input of type `__int128`, which is 0 unless the search chooses its value. It has no expression.
#[unsafe(no_mangle)]
pub extern "C" fn __VERIFIER_nondet_int128() -> i128 {
    let function: extern "C" fn() -> i128 = __VERIFIER_nondet_int128;
    wide(function as usize, b"__VERIFIER_nondet_int128", caller!()) as i128
}

/// An input of type `unsigned __int128`, which is 0 unless the search chooses its value. It has no expression.
#[unsafe(no_mangle)]
pub extern "C" fn __VERIFIER_nondet_uint128() -> u128 {
    let function: extern "C" fn() -> u128 = __VERIFIER_nondet_uint128;
    wide(function as usize, b"__VERIFIER_nondet_uint128", caller!())
}

/// An input of 128 bits, which the function at this address returns.
fn wide(function: usize, name: &[u8], pc: usize) -> u128 {
    if SCHED.active.get() && SCHED.running.get() { inputs::returned_wide(function, name, pc) } else { 0 }
}

/// Makes the content of a block of memory an input.
///
/// # Safety
/// The memory has that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __VERIFIER_nondet_memory(at: usize, bytes: usize) {
    if SCHED.active.get() && SCHED.running.get() {
        let function: unsafe extern "C" fn(usize, usize) = __VERIFIER_nondet_memory;
        let name = c"__VERIFIER_nondet_memory".as_ptr();
        inputs::read_into(function as usize, at, bytes, name, caller!());
    }
}

/// As `heisen_assume`.
#[unsafe(no_mangle)]
pub extern "C" fn __VERIFIER_assume(condition: c_int) {
    let function: extern "C" fn(c_int) = __VERIFIER_assume;
    assumed(function as usize, condition, caller!());
}

/// The error of a verification task: ends the execution as a failed `assert` does.
#[unsafe(no_mangle)]
pub extern "C" fn reach_error() -> ! {
    fails(c"reach_error()".as_ptr(), caller!())
}

/// As `reach_error`, by its name in old tasks.
#[unsafe(no_mangle)]
pub extern "C" fn __VERIFIER_error() -> ! {
    fails(c"__VERIFIER_error()".as_ptr(), caller!())
}

fn fails(call: *const c_char, pc: usize) -> ! {
    assertion_failed([call, c"".as_ptr(), c"".as_ptr()], 0, pc)
}
