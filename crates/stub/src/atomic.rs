//! The stub's own atomics: the real operations, always sequentially consistent, which every weaker order
//! permits.

use crate::wide::AtomicU128;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

macro_rules! word {
    ($word:ident, $atomic:ident, $($fetch:ident)*) => {
        /// Operations on words of this size.
        pub mod $word {
            use super::{$atomic as Atomic, Ordering::SeqCst, c_int};
            use core::primitive::$word as Word;

            unsafe fn atomic<'a>(at: *mut Word) -> &'a Atomic {
                // SAFETY: the program does an atomic operation there, so it may be read and written, and only that way.
                unsafe { &*at.cast() }
            }

            pub unsafe extern "C" fn load(at: *mut Word, _order: c_int) -> Word {
                // SAFETY: as the caller promises.
                unsafe { atomic(at) }.load(SeqCst)
            }

            pub unsafe extern "C" fn store(at: *mut Word, value: Word, _order: c_int) {
                // SAFETY: as the caller promises.
                unsafe { atomic(at) }.store(value, SeqCst)
            }

            pub unsafe extern "C" fn exchange(at: *mut Word, value: Word, _order: c_int) -> Word {
                // SAFETY: as the caller promises.
                unsafe { atomic(at) }.swap(value, SeqCst)
            }

            $(
                pub unsafe extern "C" fn $fetch(at: *mut Word, operand: Word, _order: c_int) -> Word {
                    // SAFETY: as the caller promises.
                    unsafe { atomic(at) }.$fetch(operand, SeqCst)
                }
            )*

            pub unsafe extern "C" fn compare_exchange_val(at: *mut Word, expected: Word, value: Word) -> Word {
                // SAFETY: as the caller promises.
                match unsafe { atomic(at) }.compare_exchange(expected, value, SeqCst, SeqCst) {
                    Ok(old) | Err(old) => old,
                }
            }

            pub unsafe extern "C" fn compare_exchange(at: *mut Word, expected: *mut Word, value: Word) -> c_int {
                // SAFETY: as the caller promises; what is expected lies in a variable of the caller's own.
                unsafe {
                    let wanted = *expected;
                    let old = compare_exchange_val(at, wanted, value);
                    // Only then: C promises no write otherwise.
                    if old != wanted {
                        *expected = old;
                    }
                    (old == wanted).into()
                }
            }
        }
    };
}

word!(u8, AtomicU8, fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand);
word!(u16, AtomicU16, fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand);
word!(u32, AtomicU32, fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand);
word!(u64, AtomicU64, fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand);
word!(u128, AtomicU128, fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand);

pub extern "C" fn thread_fence(_order: c_int) {
    fence(Ordering::SeqCst);
}
