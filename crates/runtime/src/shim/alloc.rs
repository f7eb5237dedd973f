//! Memory allocation: makes it fail for `--faults`, and gives instrumented programs memory of the checked heap.
//! Where neither is asked for, each function is a test and a jump to the next function of its name: glibc's, or
//! that of an allocator in the program.
//!
//! The dynamic loader allocates through these functions long before this library is initialised, and looking up
//! the real functions may itself allocate. Such calls get memory from glibc by its private names
//! (`__libc_malloc`).

use super::real_jump::real_jump;
use crate::memory::heap;
use crate::memory::race;
use crate::memory::race::shadow;
use crate::memory::symbolic;
use crate::platform::allocation::{ALLOCATION, FOLLOWED, HEAP, MAY_FAIL};
use crate::platform::glibc;
use crate::platform::glibc::Real;
use crate::platform::registers::caller;
use crate::platform::sys;
use crate::sched::decision;
use crate::sched::events;
use crate::sched::pause;
use crate::sched::{me, thread};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use heisen_trace::{Fault, Op};
use heisen_wire::misuse;

/// Set while a real function is looked up.
static LOOKING: AtomicBool = AtomicBool::new(false);

/// The address of a real function, or `None` while another one is being looked up.
fn find(real: &Real) -> Option<usize> {
    heap::glibc_begins();
    if LOOKING.swap(true, Relaxed) {
        return None;
    }
    let at = real.address();
    LOOKING.store(false, Relaxed);
    assert!(at != 0);
    Some(at)
}

/// Looks up all real functions. This must happen early: a `dlsym` that fails allocates its message, and a
/// look-up in the middle of it would itself return that failure.
pub fn look_up() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Relaxed) {
        for real in REALS {
            find(real);
        }
    }
}

/// Whether this allocation of `bytes` bytes fails on purpose.
fn fails(bytes: usize, pc: usize) -> bool {
    // An allocation of 0 bytes never fails, and `realloc` to 0 bytes is `free`.
    if bytes == 0 || ALLOCATION.load(Relaxed) & MAY_FAIL == 0 {
        return false;
    }
    thread(me()).about_to(Op::Alloc, bytes, pc);
    let failed = decision::fault(Fault::Malloc);
    if failed {
        events::event(Op::Alloc, bytes, pc);
        events::failed();
    }
    failed
}

/// Sets `ENOMEM` and returns the null pointer.
fn no_memory() -> usize {
    glibc::set_errno(sys::ENOMEM);
    0
}

/// Reports a misuse if no block can have this size, as when a negative number was converted.
fn asked(bytes: usize, pc: usize) -> usize {
    if bytes > isize::MAX as usize {
        pause::misused(misuse::ALLOCATION_SIZE, 0, pc);
    }
    bytes
}

/// The result for an address from the checked heap: the address, or null with `ENOMEM` if it is 0.
fn given(address: usize) -> usize {
    if address == 0 { no_memory() } else { address }
}

/// The result of `memalign` and similar functions. Like glibc, it rounds the alignment up to a power of two.
fn aligned(alignment: usize, bytes: usize, pc: usize) -> usize {
    if !alignment.is_power_of_two() {
        pause::misused(misuse::ALIGNMENT, 0, pc);
    }
    match alignment.checked_next_power_of_two() {
        Some(alignment) => given(heap::allocate(asked(bytes, pc), alignment, pc)),
        None => {
            glibc::set_errno(sys::EINVAL);
            0
        }
    }
}

/// The real `malloc`, for a forked child that is not controlled.
fn real_malloc(bytes: usize) -> usize {
    // SAFETY: both take any number, and the real function has this type.
    unsafe {
        match find(&MALLOC) {
            None => __libc_malloc(bytes),
            Some(at) => core::mem::transmute::<usize, extern "C" fn(usize) -> usize>(at)(bytes),
        }
    }
}

/// Allocates as `malloc` does, on behalf of a function that the program calls at `pc`. Returns 0 if there is no memory.
pub fn allocate(bytes: usize, pc: usize) -> usize {
    if fails(bytes, pc) {
        return no_memory();
    }
    if heap::serves() {
        return given(heap::allocate(bytes, 1, pc));
    }
    let block = real_malloc(bytes);
    begins(block, bytes);
    block
}

/// The result of `realloc` if the checked heap serves it, or `None` if the block is glibc's.
fn resized(block: usize, bytes: usize, pc: usize) -> Option<usize> {
    match (block, bytes) {
        (0, _) => heap::serves().then(|| given(heap::allocate(asked(bytes, pc), 1, pc))),
        (block, 0) if heap::contains(block) => {
            heap::free(block, pc);
            Some(0)
        }
        (block, _) if heap::contains(block) => {
            Some(given(heap::reallocate(block, asked(bytes, pc), pc, real_malloc)))
        }
        (block, _) => {
            heap::foreign(block, pc);
            is_followed().then(|| regrown(block, bytes, pc))
        }
    }
}

/// The result of the real `realloc`. The race check treats a moved block, or the bytes that were added, as new.
fn regrown(block: usize, bytes: usize, pc: usize) -> usize {
    let old = real_size(block);
    // SAFETY: the program passes a block of the real functions, which have this type.
    let new = unsafe {
        match find(&REALLOC) {
            None => __libc_realloc(block, bytes),
            Some(at) => core::mem::transmute::<usize, extern "C" fn(usize, usize) -> usize>(at)(block, bytes),
        }
    };
    if new == block {
        shadow::renew(block + old, real_size(block).saturating_sub(old));
    } else {
        begins(new, bytes);
        symbolic::moved(new, block, if new == 0 { 0 } else { old.min(bytes) }, pc);
    }
    new
}

/// The usable size of a block of the real allocator.
fn real_size(block: usize) -> usize {
    find(&USABLE).map_or(0, |at| {
        // SAFETY: the real function has this type.
        unsafe { core::mem::transmute::<usize, extern "C" fn(usize) -> usize>(at)(block) }
    })
}

/// Whether the race check or the symbolic trace must know of allocations.
fn is_followed() -> bool {
    race::is_on(race::mode::CHECK) || symbolic::is_on()
}

/// Marks a block of the real allocator as new: earlier accesses to this memory cannot race with later ones.
/// This covers the usable size, because the block may grow into it later.
fn begins(block: usize, bytes: usize) {
    /// The largest difference between usable and requested size that is believed.
    const SPARE: usize = 4096;
    if block != 0 && is_followed() {
        shadow::renew(block, real_size(block).clamp(bytes, bytes + SPARE));
    }
}

/// Frees a block of the checked heap; `None` if the block is glibc's.
fn freed(block: usize, pc: usize) -> Option<()> {
    match block {
        0 => Some(()),
        block if heap::contains(block) => {
            heap::free(block, pc);
            Some(())
        }
        block => {
            heap::foreign(block, pc);
            None
        }
    }
}

const PAGE: usize = 4096;

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> usize;
    fn __libc_calloc(count: usize, bytes: usize) -> usize;
    fn __libc_realloc(block: usize, bytes: usize) -> usize;
    fn __libc_memalign(alignment: usize, bytes: usize) -> usize;
    fn __libc_free(block: usize);
}

/// Exports functions that jump to the real one if its address is known and nothing else is to be done.
/// Otherwise they jump to `slow`, with all registers as the caller left them. `slow` gets, in this order:
///
/// - the number of bytes, for the decision whether the call fails, and the result of a failed call;
/// - the result of the checked heap, or `None` if the heap does not serve the call;
/// - the result while real functions are looked up;
/// - optionally, what to do with memory that the real function returned.
macro_rules! thin {
    ($($(#[$doc:meta])* fn $name:ident, $real:ident = $slow:ident($($arg:ident: $ty:ty),*) -> $ret:ty,
        $bytes:expr => $failed:expr, |$pc:ident| $heap:expr, $early:expr
        $(, |$result:ident| $begins:expr)?;)*) => {
    /// The real functions.
    static REALS: &[&Real] = &[$(&$real),*];

    $(
        static $real: Real = Real::new(glibc::name_of!($name));

        real_jump! {
            $(#[$doc])*
            fn $name($($arg: $ty),*) -> $ret, $real; ALLOCATION => slow $slow, early $slow
        }

        #[allow(clippy::unused_unit, reason = "what fails may return nothing")]
        unsafe extern "C" fn $slow($($arg: $ty),*) -> $ret {
            let $pc = caller!();
            if fails($bytes, $pc) {
                return $failed;
            }
            if ALLOCATION.load(Relaxed) & (HEAP | FOLLOWED) != 0
                && let Some(result) = $heap
            {
                return result;
            }
            // SAFETY: the arguments are the caller's own, and the real function has this type.
            unsafe {
                match find(&$real) {
                    None => $early,
                    Some(at) => {
                        let real: unsafe extern "C" fn($($ty),*) -> $ret = core::mem::transmute(at);
                        let given = real($($arg),*);
                        $(
                            let $result = given;
                            $begins;
                        )?
                        given
                    }
                }
            }
        }
    )*};
}

thin! {
    /// With `--faults`, whether it returns `NULL` with `ENOMEM` is a decision while the budget lasts. In an
    /// instrumented program, a size beyond `PTRDIFF_MAX` is a misuse. Not a scheduling point.
    fn malloc, MALLOC = malloc_slow(bytes: usize) -> usize, bytes => no_memory(),
        |pc| heap::serves().then(|| given(heap::allocate(asked(bytes, pc), 1, pc))), __libc_malloc(bytes),
        |block| begins(block, bytes);

    /// With `--faults`, whether it returns `NULL` with `ENOMEM` is a decision while the budget lasts. Not a
    /// scheduling point.
    fn calloc, CALLOC = calloc_slow(count: usize, bytes: usize) -> usize,
        count.saturating_mul(bytes) => no_memory(),
        |pc| heap::serves().then(|| given(heap::allocate_zeroed(count, bytes, pc))), __libc_calloc(count, bytes),
        |block| {
            begins(block, count.wrapping_mul(bytes));
            if block != 0 {
                symbolic::zeroed(block, count.wrapping_mul(bytes), pc);
            }
        };

    /// With `--faults`, whether it returns `NULL` with `ENOMEM` and leaves the block unchanged is a decision
    /// while the budget lasts. Not a scheduling point.
    fn realloc, REALLOC = realloc_slow(block: usize, bytes: usize) -> usize,
        bytes => no_memory(), |pc| resized(block, bytes, pc), __libc_realloc(block, bytes),
        |new| if block == 0 { begins(new, bytes) };

    /// As `realloc`.
    fn reallocarray, REALLOCARRAY = reallocarray_slow(block: usize, count: usize, bytes: usize) -> usize,
        count.saturating_mul(bytes) => no_memory(), |pc| match count.checked_mul(bytes) {
            Some(bytes) => resized(block, bytes, pc),
            None => Some(no_memory()),
        }, match count.checked_mul(bytes) {
            Some(bytes) => __libc_realloc(block, bytes),
            None => no_memory(),
        }, |new| if block == 0 { begins(new, count.wrapping_mul(bytes)) };

    /// In an instrumented program, a pointer that is not a block, or a block that was freed before, is a
    /// finding. Not a scheduling point.
    fn free, FREE = free_slow(block: usize) -> (), 0 => (), |pc| freed(block, pc), __libc_free(block);

    /// With `--faults`, whether it returns `NULL` with `ENOMEM` is a decision while the budget lasts. In an
    /// instrumented program, an alignment that is not a power of two is a misuse. Not a scheduling point.
    fn aligned_alloc, ALIGNED_ALLOC = aligned_alloc_slow(alignment: usize, bytes: usize) -> usize,
        bytes => no_memory(), |pc| heap::serves().then(|| aligned(alignment, bytes, pc)),
        __libc_memalign(alignment, bytes), |block| begins(block, bytes);

    /// As `aligned_alloc`.
    fn memalign, MEMALIGN = memalign_slow(alignment: usize, bytes: usize) -> usize,
        bytes => no_memory(), |pc| heap::serves().then(|| aligned(alignment, bytes, pc)),
        __libc_memalign(alignment, bytes), |block| begins(block, bytes);

    /// As `aligned_alloc`, aligned to a page.
    fn valloc, VALLOC = valloc_slow(bytes: usize) -> usize, bytes => no_memory(),
        |pc| heap::serves().then(|| aligned(PAGE, bytes, pc)), __libc_memalign(PAGE, bytes),
        |block| begins(block, bytes);

    /// As `valloc`, with the size rounded up to full pages.
    fn pvalloc, PVALLOC = pvalloc_slow(bytes: usize) -> usize, bytes => no_memory(),
        |pc| heap::serves().then(|| match bytes.checked_next_multiple_of(PAGE) {
            Some(bytes) => aligned(PAGE, bytes, pc),
            None => no_memory(),
        }), __libc_memalign(PAGE, bytes.next_multiple_of(PAGE)),
        |block| begins(block, bytes.next_multiple_of(PAGE));

    /// With `--faults`, whether it returns `ENOMEM` is a decision while the budget lasts. Not a scheduling
    /// point.
    fn posix_memalign, POSIX_MEMALIGN = posix_memalign_slow(out: *mut usize, alignment: usize, bytes: usize) -> c_int,
        bytes => sys::ENOMEM,
        |pc| heap::serves().then(|| {
            if !alignment.is_power_of_two() || alignment < size_of::<usize>() {
                return sys::EINVAL;
            }
            match heap::allocate(asked(bytes, pc), alignment, pc) {
                0 => sys::ENOMEM,
                address => {
                    // SAFETY: the program passes room for a pointer.
                    unsafe { *out = address };
                    0
                }
            }
        }), {
            *out = __libc_memalign(alignment, bytes);
            if *out == 0 { sys::ENOMEM } else { 0 }
        }, |error| if error == 0 { begins(*out, bytes) };

    /// In an instrumented program, returns the number of bytes that were requested. Not a scheduling point.
    fn malloc_usable_size, USABLE = usable_slow(block: usize) -> usize, 0 => 0,
        |pc| heap::contains(block).then(|| heap::usable(block, pc)), 0;
}

/// As `free`, by its name in old programs.
///
/// # Safety
/// The program calls it with what `free` takes.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn cfree(block: usize) {
    // Through the table of imports: the program may bring its own `free`.
    core::arch::naked_asm!(".cfi_startproc", "jmp {free}@PLT", ".cfi_endproc", free = sym free)
}
