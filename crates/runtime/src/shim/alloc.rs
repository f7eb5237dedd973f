//! Memory allocation, only so that it can fail. Where no such fault is asked for, each function is a test and a jump to the
//! next one of its name: the C library's, or that of another allocator the program brings along.
//!
//! The dynamic loader allocates through these functions long before this library is initialised, and looking up the real
//! ones may itself allocate; such calls get memory from glibc by its private names.

use super::caller;
use crate::budget::MALLOC_MAY_FAIL;
use crate::glibc::{self, Real};
use crate::sched::{me, thread};
use crate::{choose, report, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use heisen_trace::{Fault, Op};

/// Set while a real function is looked up.
static LOOKING: AtomicBool = AtomicBool::new(false);

/// The address of a real function; none while one is being looked up.
fn find(real: &Real) -> Option<usize> {
    if LOOKING.swap(true, Relaxed) {
        return None;
    }
    let at = real.address();
    LOOKING.store(false, Relaxed);
    assert!(at != 0);
    Some(at)
}

/// Whether this allocation of so many bytes fails on purpose.
fn fails(bytes: usize, pc: usize) -> bool {
    // Of nothing there is always enough; and `realloc` to nothing is `free`.
    if bytes == 0 || !MALLOC_MAY_FAIL.load(Relaxed) {
        return false;
    }
    thread(me()).about_to(Op::Alloc, bytes, pc);
    let failed = choose::fault(Fault::Malloc);
    if failed {
        report::event(Op::Alloc, bytes, pc);
        report::failed();
    }
    failed
}

/// What a function that failed for want of memory returns.
fn no_memory() -> usize {
    glibc::set_errno(sys::ENOMEM);
    0
}

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> usize;
    fn __libc_calloc(count: usize, bytes: usize) -> usize;
    fn __libc_realloc(block: usize, bytes: usize) -> usize;
    fn __libc_memalign(alignment: usize, bytes: usize) -> usize;
}

/// Exports functions that jump to the real one if that is known and nothing can fail, else to `slow`, with everything as
/// the caller left it.
macro_rules! thin {
    ($($(#[$doc:meta])* fn $name:ident, $real:ident = $slow:ident($($arg:ident: $ty:ty),*) -> $ret:ty,
        $bytes:expr => $failed:expr, $early:expr;)*) => {$(
        static $real: Real = Real::new(glibc::name_of!($name));

        $(#[$doc])*
        ///
        /// # Safety
        /// The program calls it with what the function of that name in glibc takes.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "cmp byte ptr [rip + {may_fail}], 0",
                "jne {slow}",
                "mov rax, qword ptr [rip + {real}]",
                "test rax, rax",
                "je {slow}",
                "jmp rax",
                ".cfi_endproc",
                may_fail = sym MALLOC_MAY_FAIL,
                real = sym $real,
                slow = sym $slow,
            )
        }

        unsafe extern "C" fn $slow($($arg: $ty),*) -> $ret {
            if fails($bytes, caller!()) {
                return $failed;
            }
            // SAFETY: the arguments are the caller's own, and the real function has this type.
            unsafe {
                match find(&$real) {
                    None => $early,
                    Some(at) => {
                        let real: unsafe extern "C" fn($($ty),*) -> $ret = core::mem::transmute(at);
                        real($($arg),*)
                    }
                }
            }
        }
    )*};
}

thin! {
    /// With `--faults`: whether it returns `NULL` with `ENOMEM` is a decision while the budget lasts. No scheduling point.
    fn malloc, MALLOC = malloc_slow(bytes: usize) -> usize, bytes => no_memory(), __libc_malloc(bytes);

    /// With `--faults`: whether it returns `NULL` with `ENOMEM` is a decision while the budget lasts. No scheduling point.
    fn calloc, CALLOC = calloc_slow(count: usize, bytes: usize) -> usize,
        count.saturating_mul(bytes) => no_memory(), __libc_calloc(count, bytes);

    /// With `--faults`: whether it returns `NULL` with `ENOMEM`, and leaves the block as it is, is a decision while the
    /// budget lasts. No scheduling point.
    fn realloc, REALLOC = realloc_slow(block: usize, bytes: usize) -> usize,
        bytes => no_memory(), __libc_realloc(block, bytes);

    /// With `--faults`: whether it returns `NULL` with `ENOMEM` is a decision while the budget lasts. No scheduling point.
    fn aligned_alloc, ALIGNED_ALLOC = aligned_alloc_slow(alignment: usize, bytes: usize) -> usize,
        bytes => no_memory(), __libc_memalign(alignment, bytes);

    /// With `--faults`: whether it returns `ENOMEM` is a decision while the budget lasts. No scheduling point.
    fn posix_memalign, POSIX_MEMALIGN = posix_memalign_slow(out: *mut usize, alignment: usize, bytes: usize) -> c_int,
        bytes => sys::ENOMEM, {
            *out = __libc_memalign(alignment, bytes);
            if *out == 0 { sys::ENOMEM } else { 0 }
        };
}
