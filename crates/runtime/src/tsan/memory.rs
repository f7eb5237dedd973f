//! Copying and filling memory, from instrumented code.

macro_rules! copy {
    ($name:ident) => {
        /// Copies memory, which may overlap: a read and a write of it all, as [`__tsan_read8`] and [`__tsan_write8`].
        ///
        /// # Safety
        /// Called by instrumented code, with what `memmove` takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: usize, from: usize, bytes: usize) -> usize {
            let pc = $crate::shim::caller!();
            if bytes != 0 && $crate::race::MODE.load(core::sync::atomic::Ordering::Relaxed) != 0 {
                plain::accessed(from, bytes, false, pc);
                plain::accessed(to, bytes, true, pc);
            }
            memory::real_copy(to, from, bytes)
        }
    };
}
pub(super) use copy;

macro_rules! set {
    ($name:ident) => {
        /// Fills memory: a write of it all, as [`__tsan_write8`].
        ///
        /// # Safety
        /// Called by instrumented code, with what `memset` takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: usize, byte: i32, bytes: usize) -> usize {
            let pc = $crate::shim::caller!();
            if bytes != 0 && $crate::race::MODE.load(core::sync::atomic::Ordering::Relaxed) != 0 {
                plain::accessed(to, bytes, true, pc);
            }
            memory::real_set(to, byte, bytes)
        }
    };
}
pub(super) use set;

/// Copies.
pub fn real_copy(to: usize, from: usize, bytes: usize) -> usize {
    // SAFETY: the program passes what `memmove` takes.
    unsafe { core::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    to
}

/// Fills.
pub fn real_set(to: usize, byte: i32, bytes: usize) -> usize {
    // SAFETY: the program passes what `memset` takes.
    unsafe { core::ptr::write_bytes(to as *mut u8, byte as u8, bytes) };
    to
}
