//! Tells which code is instrumented. All code of a program calls the C library's `memcpy` and similar
//! functions. Their accesses are checked only for instrumented callers, because others may order threads in
//! ways that the runtime does not see.
//!
//! A function is instrumented if it calls one of the stub's jumps; every function that was compiled in this way
//! and calls anything does. The module's note says where these jumps are (see `heisen-stub`), its unwinding
//! information where functions begin and end. Both are read from the loaded program, by glibc's
//! `_dl_find_object`, which takes no lock.

use crate::platform::constant;
use crate::platform::glibc::Real;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `_dl_find_object`, of glibc 2.35 and later.
static FIND: Real = Real::new(c"_dl_find_object");

/// The start and end of this library.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Looks up both. A later look-up could be in the middle of another.
pub fn look_up() {
    if let Some(own) = Module::of(look_up as *const () as usize) {
        OWN[0].store(own.start, Relaxed);
        OWN[1].store(own.end, Relaxed);
    }
}

const REMEMBERED: usize = 1 << 12;

/// A cache of answers by the hash of the code address: twice the address, plus 1 if its function is
/// instrumented. Each answer is one word, because in system mode threads read and write it in parallel without
/// a lock. All threads compute the same answer, so any of their writes may win.
static ANSWERS: [AtomicUsize; REMEMBERED] = [const { AtomicUsize::new(0) }; REMEMBERED];

/// Whether the function that made a call is instrumented, by the return address of the call.
pub fn is_instrumented(pc: usize) -> bool {
    let known = &ANSWERS[(pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) % REMEMBERED];
    let found = known.load(Relaxed);
    if found >> 1 == pc {
        return found & 1 != 0;
    }
    // The runtime's own code is not instrumented. This also ends the recursion if the search below calls such a
    // function.
    if (OWN[0].load(Relaxed)..OWN[1].load(Relaxed)).contains(&pc) {
        return false;
    }
    // The call may be the last instruction of its function.
    let answer = look(pc - 1).unwrap_or(false);
    let found = pc << 1 | usize::from(answer);
    known.store(found, Relaxed);
    constant::keep(known, found, pc);
    answer
}

/// Whether an address is that of a static variable: in the memory of the executable or of a library.
pub fn is_variable(address: usize) -> bool {
    Module::of(address).is_some()
}

fn look(at: usize) -> Option<bool> {
    let module = Module::of(at)?;
    let (from, to) = module.jumps()?;
    let (start, end) = module.function(at)?;
    /// The instruction `call`, with a distance relative to its end.
    const CALL: u8 = 0xe8;
    const LENGTH: usize = 5;
    let target = |call: usize| (call + LENGTH).wrapping_add_signed(read::<i32>(call + 1) as isize);
    let calls = |&at: &usize| read::<u8>(at) == CALL && (from..to).contains(&target(at));
    Some((start..end.saturating_sub(LENGTH - 1)).find(calls).is_some())
}

fn read<T: Copy>(at: usize) -> T {
    // SAFETY: only parts of a module that the loader has mapped are read (headers, notes, unwinding information
    // and code), all of them integers.
    unsafe { (at as *const T).read_unaligned() }
}

/// A loaded executable or library.
struct Module {
    start: usize,
    end: usize,
    /// Its `.eh_frame_hdr`.
    unwinding: usize,
}

impl Module {
    fn of(at: usize) -> Option<Module> {
        /// `struct dl_find_object`.
        #[repr(C)]
        #[derive(Default)]
        struct Found {
            flags: u64,
            start: usize,
            end: usize,
            link_map: usize,
            eh_frame: usize,
            reserved: [u64; 7],
        }
        let mut found = Found::default();
        if FIND.address() == 0 {
            return None;
        }
        // SAFETY: glibc's function has this type, and takes any address.
        let error = unsafe {
            let find: extern "C" fn(usize, *mut Found) -> i32 = core::mem::transmute(FIND.address());
            find(at, &raw mut found)
        };
        let module = Module { start: found.start, end: found.end, unwinding: found.eh_frame };
        (error == 0 && module.unwinding != 0).then_some(module)
    }

    fn contains(&self, at: usize) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// The start and end of the stub's jumps, from its note; `None` if the module has none.
    fn jumps(&self) -> Option<(usize, usize)> {
        const MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");
        const LOAD: u32 = 1;
        const NOTE: u32 = 4;
        if read::<u32>(self.start) != MAGIC {
            return None;
        }
        let (table, size) =
            (self.start + read::<usize>(self.start + 32), read::<u16>(self.start + 54) as usize);
        let header = |number: usize| table + number * size;
        let headers = || (0..read::<u16>(self.start + 56) as usize).map(header);
        // The difference between addresses in memory and in the file.
        let first = headers().find(|&at| read::<u32>(at) == LOAD)?;
        let shift = self.start.wrapping_sub(read::<usize>(first + 16) & !0xfff);
        headers()
            .filter(|&at| read::<u32>(at) == NOTE)
            .find_map(|at| self.jumps_in(shift.wrapping_add(read::<usize>(at + 16)), read::<usize>(at + 40)))
    }

    /// As [`jumps`](Module::jumps), among the notes at this address.
    fn jumps_in(&self, mut at: usize, length: usize) -> Option<(usize, usize)> {
        const NAME: u64 = u64::from_le_bytes(*b"Heisen\0\0");
        const HEAD: usize = 12;
        let end = at.checked_add(length).filter(|&end| self.contains(at) && end <= self.end)?;
        while at + HEAD <= end {
            let [name, content] = [at, at + 4].map(|field| (read::<u32>(field) as usize).next_multiple_of(4));
            let next = at + HEAD + name + content;
            // The version, and two distances relative to their own addresses.
            if name == 8 && content == 12 && next <= end && read::<u64>(at + HEAD) == NAME {
                let place = |field: usize| field.wrapping_add_signed(read::<i32>(field) as isize);
                return Some((place(next - 8), place(next - 4)));
            }
            at = next;
        }
        None
    }

    /// The start and end of the function that contains an address.
    fn function(&self, at: usize) -> Option<(usize, usize)> {
        /// Version 1; the frames relative to here, their number, and a table relative to the header.
        const ENCODED: u32 = u32::from_le_bytes([1, 0x1b, 0x03, 0x3b]);
        const ENTRY: usize = 8;
        let header = self.unwinding;
        if read::<u32>(header) != ENCODED {
            return None;
        }
        let place = |field: usize| header.wrapping_add_signed(read::<i32>(field) as isize);
        let entry = |index: usize| header + 12 + index * ENTRY;
        let (mut low, mut high) = (0, read::<u32>(header + 8) as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            if place(entry(middle)) <= at { low = middle + 1 } else { high = middle }
        }
        let entry = entry(low.checked_sub(1)?);
        // The description of the frame: two words, the function's address relative to here, and its length.
        let (start, frame) = (place(entry), place(entry + 4));
        let begins = (frame + 8).wrapping_add_signed(read::<i32>(frame + 8) as isize);
        let end = start + read::<u32>(frame + 12) as usize;
        (begins == start && at < end && self.contains(start) && end <= self.end).then_some((start, end))
    }
}
