//! Inputs: values that a search may choose, and assumptions about them.

use crate::runtime;
use std::ffi::CString;

/// A type whose values can be inputs: integers, `bool`, and arrays of bytes. Of the byte of a `bool`, the lowest bit counts.
pub trait Input: Copy + sealed::Bytes {}

impl<T: Copy + sealed::Bytes> Input for T {}

mod sealed {
    /// Values that are made of bytes.
    pub trait Bytes: Sized {
        /// Passes the bytes on, and takes the value from them.
        fn through(self, change: &mut dyn FnMut(&mut [u8])) -> Self;

        /// The value that an input has without Heisen if the program gives none.
        fn zero() -> Self;
    }

    macro_rules! integers {
        ($($type:ty)*) => {$(
            impl Bytes for $type {
                #[inline]
                fn through(self, change: &mut dyn FnMut(&mut [u8])) -> Self {
                    let mut bytes = self.to_ne_bytes();
                    change(&mut bytes);
                    Self::from_ne_bytes(bytes)
                }

                fn zero() -> Self {
                    0
                }
            }
        )*};
    }

    integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

    impl Bytes for bool {
        #[inline]
        fn through(self, change: &mut dyn FnMut(&mut [u8])) -> Self {
            u8::from(self).through(change) & 1 != 0
        }

        fn zero() -> Self {
            false
        }
    }

    impl<const N: usize> Bytes for [u8; N] {
        #[inline]
        fn through(mut self, change: &mut dyn FnMut(&mut [u8])) -> Self {
            change(&mut self);
            self
        }

        fn zero() -> Self {
            [0; N]
        }
    }
}

/// An input with this name: a value that `heisen check --inputs` chooses so that the program fails.
///
/// Without Heisen, and where the search chooses no other value, it is 0, `false`, or an array of zeros. [`input_or`] takes
/// the value that the program has there.
///
/// ```
/// let amount = heisen::input::<u32>("amount");
/// let header = heisen::input::<[u8; 4]>("header");
/// assert_eq!((amount, header), (0, [0; 4]));
/// ```
#[inline]
pub fn input<T: Input>(name: &str) -> T {
    input_or(name, T::zero())
}

/// An input with this name, which keeps this value without Heisen, and where the search chooses no other.
///
/// ```
/// let workers = heisen::input_or("workers", 3u8);
/// assert_eq!(workers, 3);
/// ```
#[inline]
pub fn input_or<T: Input>(name: &str, value: T) -> T {
    match runtime::INPUT.get() {
        None => value,
        Some(_) => value.through(&mut |bytes| input_bytes(name, bytes)),
    }
}

/// Makes the bytes of a buffer an input with this name. They keep their values without Heisen.
///
/// ```
/// let mut message = *b"hello";
/// heisen::input_bytes("message", &mut message);
/// assert_eq!(&message, b"hello");
/// ```
pub fn input_bytes(name: &str, bytes: &mut [u8]) {
    if let Some(read) = runtime::INPUT.get() {
        // A C string ends at its first zero.
        let name: Vec<u8> = name.bytes().take_while(|&byte| byte != 0).collect();
        let name = CString::new(name).unwrap_or_default();
        read(bytes.as_mut_ptr().cast(), bytes.len(), name.as_ptr());
    }
}

/// From here on the execution counts only if the condition holds. If it does not, the execution ends here and is no
/// failure. Without Heisen it does nothing.
///
/// ```
/// let amount = heisen::input_or("amount", 5u32);
/// heisen::assume(amount > 0 && amount < 100);
/// assert_eq!(100 / amount, 20);
/// ```
#[inline]
pub fn assume(condition: bool) {
    if let Some(assume) = runtime::ASSUME.get() {
        assume(condition.into());
    }
}
