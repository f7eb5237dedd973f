//! Accesses to blocks of memory by instrumented code: copies, and the work of C library functions on its
//! behalf.

use super::plain;
use crate::platform::baton::Guarded;
use crate::platform::program_memory;
use crate::sched::access_mode::MODE;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

/// A part of memory that a call accesses.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    at: usize,
    bytes: usize,
    write: bool,
}

impl Part {
    pub fn read(at: usize, bytes: usize) -> Part {
        Part { at, bytes, write: false }
    }

    pub fn write(at: usize, bytes: usize) -> Part {
        Part { at, bytes, write: true }
    }
}

/// A call accesses memory. `first` is what it accesses first. `all` computes the rest, once no other thread can
/// change it.
pub fn touch<const N: usize>(pc: usize, first: &[Part], all: impl FnOnce() -> [Part; N]) {
    let first = || first.iter().filter(|part| part.bytes != 0);
    for part in first() {
        plain::about_to(part.at, part.bytes, part.write, pc);
    }
    for part in first() {
        plain::checked(|| plain::op(part.write), part.at, part.bytes, part.write, pc);
    }
    for part in all().iter().filter(|part| part.bytes != 0) {
        // The scheduling point recorded the first bytes only.
        if plain::is_point(pc) {
            crate::sched::dependence::memory(part.at, part.bytes, part.write);
        }
        plain::touched(part.at, part.bytes, part.write, pc);
    }
}

/// Memory is copied.
pub fn copies(to: usize, from: usize, bytes: usize, pc: usize) {
    let parts = [Part::read(from, bytes), Part::write(to, bytes)];
    touch(pc, &parts, || parts);
}

/// A copy that was announced.
struct Announced([Cell<usize>; 3]);

static ANNOUNCED: Guarded<Announced> = Guarded::new(Announced([const { Cell::new(0) }; 3]));

/// The running thread is about to copy memory: does what its next call for that would do first.
pub fn announce(to: usize, from: usize, bytes: usize, pc: usize) {
    if MODE.load(Relaxed) != 0 {
        copies(to, from, bytes, pc);
    }
    for (place, value) in ANNOUNCED.0.iter().zip([to, from, bytes]) {
        place.set(value);
    }
}

/// Whether exactly this copy was announced, and no other since.
pub fn was_announced(to: usize, from: usize, bytes: usize) -> bool {
    let mut same = true;
    for (place, value) in ANNOUNCED.0.iter().zip([to, from, bytes]) {
        same &= place.replace(0) == value;
    }
    same && bytes != 0
}

/// Memory is filled.
pub fn fills(to: usize, bytes: usize, pc: usize) {
    touch(pc, &[Part::write(to, bytes)], || [Part::write(to, bytes)]);
}

macro_rules! copy {
    ($name:ident) => {
        /// Copies memory, which may overlap: a read and a write of all of it, as [`__tsan_read8`] and
        /// [`__tsan_write8`].
        ///
        /// # Safety
        /// Called by instrumented code, with what `memmove` takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: usize, from: usize, bytes: usize) -> usize {
            let pc = $crate::platform::registers::caller!();
            if $crate::sched::access_mode::MODE.load(core::sync::atomic::Ordering::Relaxed) != 0
                && !($crate::memory::symbolic::is_on() && block_access::was_announced(to, from, bytes))
            {
                block_access::copies(to, from, bytes, pc);
            }
            block_access::real_copy(to, from, bytes)
        }
    };
}
pub(super) use copy;

macro_rules! set {
    ($name:ident) => {
        /// Fills memory: a write of all of it, as [`__tsan_write8`].
        ///
        /// # Safety
        /// Called by instrumented code, with what `memset` takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: usize, byte: i32, bytes: usize) -> usize {
            let pc = $crate::platform::registers::caller!();
            if $crate::sched::access_mode::MODE.load(core::sync::atomic::Ordering::Relaxed) != 0 {
                block_access::fills(to, bytes, pc);
            }
            block_access::real_set(to, byte, bytes)
        }
    };
}
pub(super) use set;

/// Copies.
pub fn real_copy(to: usize, from: usize, bytes: usize) -> usize {
    if bytes != 0 {
        program_memory::probe(from);
        program_memory::probe(to);
    }
    // SAFETY: the program passes what `memmove` takes.
    unsafe { core::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    to
}

/// Fills.
pub fn real_set(to: usize, byte: i32, bytes: usize) -> usize {
    if bytes != 0 {
        program_memory::probe(to);
    }
    // SAFETY: the program passes what `memset` takes.
    unsafe { core::ptr::write_bytes(to as *mut u8, byte as u8, bytes) };
    to
}
