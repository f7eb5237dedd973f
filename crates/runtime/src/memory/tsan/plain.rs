//! Plain accesses to memory. An access that needs no work costs a load and a branch.

use crate::memory::heap;
use crate::memory::race;
use crate::memory::race::{access, mode, points};
use crate::platform::program_memory;
use crate::sched;
use crate::sched::pause;
use crate::sched::{dependence, spin};
use crate::script::unit_mode;
use crate::wire_log;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Op;
use heisen_wire::stop;

/// The operation that an access is to the scheduler.
pub const fn op(write: bool) -> Op {
    if write { Op::MemWrite } else { Op::MemRead }
}

/// An access that may need work: a scheduling point before it, if its place is an access point, and the
/// comparison with others.
#[inline(always)]
pub fn accessed(address: usize, size: usize, write: bool, pc: usize) {
    if race::is_on(!(mode::CHECK | mode::HEAP)) {
        about_to(address, size, write, pc);
    }
    touched(address, size, write, pc);
}

/// The first part of [`accessed`]: a scheduling point, if the place of the access is an access point.
#[inline(never)]
pub fn about_to(address: usize, size: usize, write: bool, pc: usize) {
    if race::is_on(mode::SCRIPT) {
        unit_mode::accesses(address, size, write, peek(address, size), pc);
    }
    if is_point(pc) {
        point(address, size, write, pc);
    }
}

/// Whether an access at this code address is a scheduling point.
pub fn is_point(pc: usize) -> bool {
    race::is_on(mode::ALL) || race::is_on(mode::POINTS) && points::has(pc)
}

/// The second part of [`accessed`]: no other thread runs before the access.
#[inline(always)]
pub fn touched(address: usize, size: usize, write: bool, pc: usize) {
    let bits = race::MODE.load(Relaxed);
    if bits & mode::WATCH != 0 {
        watch(op(write), address, size, pc);
    }
    heap::touch(address, size, write, pc);
    if bits & mode::CHECK != 0 {
        if size <= 8 {
            access::plain(address, size, write, pc);
        } else {
            access::range(address, size, write, pc);
        }
    }
}

/// Checks an access of which the log will know only after it is done. If it is wrong, the log ends with it, as this
/// operation.
#[inline(always)]
pub fn checked(op: impl FnOnce() -> Op, address: usize, size: usize, write: bool, pc: usize) {
    if race::is_on(mode::WATCH) {
        // The value of an earlier write, before this operation changes it.
        wire_log::settle();
        if heap::is_wrong(address, size) {
            watch(op(), address, size, pc);
        }
    }
    heap::touch(address, size, write, pc);
}

fn point(address: usize, size: usize, write: bool, pc: usize) {
    if write {
        // As for atomics: where all accesses are scheduling points, most concern only the thread itself.
        if points::has(pc) {
            spin::change(op(write), address, pc, peek(address, size));
        } else {
            sched::point(op(write), address, pc);
        }
    } else {
        spin::look(op(write), address, pc, peek(address, size));
    }
    dependence::memory(address, size, write);
}

/// The value that a thread is about to read, as far as it fits into a word.
pub fn peek(address: usize, size: usize) -> u64 {
    program_memory::load(address, size.min(8))
}

/// In a close-up: logs the access, and stops if the engine looks for it.
#[cold]
pub fn watch(op: Op, address: usize, size: usize, pc: usize) {
    if wire_log::logs_accesses() {
        let can_read = || !heap::is_wrong(address, size);
        wire_log::access(sched::SCHED.step.get(), sched::me() as u16, op, (address, size), pc, can_read);
        pause::at_event(address);
    }
    let wire = wire_log::wire();
    let byte = wire.watch.load(Relaxed) as usize;
    if pc as u64 == wire.watch_pc.load(Relaxed)
        && sched::me() as u32 == wire.watch_thread.load(Relaxed)
        && (address..address + size).contains(&byte)
    {
        heap::tell_block(byte);
        pause::stop_at(stop::WATCHED);
    }
}

/// The rest of an access, where a mode is on.
pub extern "C" fn slow<const SIZE: usize, const WRITE: bool, const VOLATILE: bool>(address: usize) {
    let pc = crate::platform::registers::caller!();
    if VOLATILE && !WRITE {
        spin::glance(op(WRITE), address, pc, || peek(address, SIZE));
    }
    accessed(address, SIZE, WRITE, pc);
}

macro_rules! accesses {
    ($name:ident, [$size:literal], [$write:literal], [$volatile:literal]) => {
        /// A plain access: a scheduling point if it is known to conflict with one of another thread.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(address: usize) {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "movzx eax, byte ptr [rip + {mode}]",
                "test eax, eax",
                "jne 2f",
                "ret",
                // As in `race::access`: nothing to do if the thread has made such an access in this epoch.
                "2:",
                "cmp eax, {check}",
                "jne {slow}",
                "mov rax, rdi",
                "shl rax, {unfolded}",
                "mov rdx, rax",
                "shr rdx, {unfolded} + {piece}",
                "lea rsi, [rip + {pieces}]",
                "cmp byte ptr [rdx + rsi], 0",
                "je {slow}",
                "shr rax, {unfolded} + 3",
                "shl rax, 4",
                "movabs rdx, {base}",
                "mov rdx, [rax + rdx]",
                "xor rdx, qword ptr [rip + {sched} + {now}]",
                "mov ecx, edi",
                "and ecx, 7",
                "mov eax, {bytes}",
                "shl eax, cl",
                // The part in the next eight bytes belongs to another granule.
                "cmp eax, 255",
                "ja {slow}",
                "lea rcx, [rax + {same}]",
                "and rdx, rcx",
                "cmp rdx, rax",
                "jne {slow}",
                "ret",
                ".cfi_endproc",
                mode = sym $crate::sched::access_mode::MODE,
                check = const $crate::sched::access_mode::mode::CHECK,
                unfolded = const 64 - $crate::memory::race::shadow::FOLDED,
                piece = const $crate::memory::race::shadow::PIECE,
                pieces = sym $crate::memory::race::shadow::PIECES_MAPPED,
                base = const $crate::memory::race::shadow::BASE + if $write { 0 } else { 8 },
                sched = sym $crate::sched::SCHED,
                now = const $crate::sched::Sched::NOW,
                bytes = const if $size < 16 && !$volatile { (1u32 << ($size % 16)) - 1 } else { 0xffff },
                same = const $crate::sched::epoch::SAME as i64,
                slow = sym plain::slow::<$size, $write, $volatile>,
            )
        }
    };
}
pub(super) use accesses;

macro_rules! both {
    ($name:ident, $size:literal) => {
        /// A read and then a write of the same memory, as [`__tsan_read8`] and [`__tsan_write8`].
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(address: usize) {
            let pc = $crate::platform::registers::caller!();
            plain::accessed(address, $size, false, pc);
            plain::accessed(address, $size, true, pc);
        }
    };
}
pub(super) use both;

macro_rules! access_pc {
    ($name:ident, $size:literal, $write:literal) => {
        /// A plain access at the given code address, as [`__tsan_read8`].
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(address: usize, pc: usize) {
            plain::accessed(address, $size, $write, pc);
        }
    };
}
pub(super) use access_pc;

macro_rules! range {
    ($name:ident, $write:literal) => {
        /// A plain access to a structure, as [`__tsan_read8`].
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(address: usize, bytes: usize) {
            plain::accessed(address, bytes, $write, $crate::platform::registers::caller!());
        }
    };
}
pub(super) use range;

macro_rules! range_pc {
    ($name:ident, $write:literal) => {
        /// A plain access to a structure at the given code address, as [`__tsan_read8`].
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(address: usize, bytes: usize, pc: usize) {
            plain::accessed(address, bytes, $write, pc);
        }
    };
}
pub(super) use range_pc;

macro_rules! vptr_update {
    ($name:ident) => {
        /// An object gets the virtual functions of its class: a write, if it had others before.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(address: usize, value: usize) {
            if plain::peek(address, 8) != value as u64 {
                plain::accessed(address, 8, true, $crate::platform::registers::caller!());
            }
        }
    };
}
pub(super) use vptr_update;
