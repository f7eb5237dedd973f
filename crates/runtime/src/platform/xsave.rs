//! Saves and restores registers beyond those that a function must preserve: x87, SSE, AVX and later ones. At a
//! call they belong to the called function, and a switch of threads does not save them. A thread that is
//! switched out, or runs a handler, in the middle of a function still needs its values in them.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The parts that are saved, as bits of the processor's register XCR0: x87, SSE, AVX, the three of AVX-512, and
/// the general registers of APX. Tiles are large and are not saved: code that computes with tiles does not
/// synchronise at the same time.
const PARTS: u32 = 0b111 | 0b111 << 5 | 1 << 19;

/// An upper limit of the size of these parts on any processor.
const SIZE: usize = 2816;
/// The offset of the header, in which the processor marks the parts that it has saved. It must be zero at
/// first.
const HEADER: usize = 512;
const HEADER_SIZE: usize = 64;

#[repr(C, align(64))]
struct Area([u8; SIZE]);

/// The part that code which comes here in the middle of a function has saved itself.
const SSE: u32 = 0b10;

/// The parts that this processor has; 0 if it only has the first two, and an older instruction for them.
static HAS: AtomicU32 = AtomicU32::new(0);
/// Whether the processor tells which parts are in use.
static TELLS: AtomicBool = AtomicBool::new(false);

/// Asks the processor; this is slow on a virtual machine.
pub fn init() {
    const OSXSAVE: u32 = 1 << 27;
    const IN_USE: u32 = 1 << 2;
    if __cpuid(1).ecx & OSXSAVE != 0 {
        HAS.store(read_register(0) & PARTS, Relaxed);
        TELLS.store(__cpuid_count(13, 1).eax & IN_USE != 0, Relaxed);
    }
}

#[target_feature(enable = "xsave")]
fn read_register_here(number: u32) -> u32 {
    // SAFETY: the processor has the instruction, and callers know that it has the register.
    unsafe { _xgetbv(number) as u32 }
}

/// Register 0 has the bits of all parts, register 1 those of the parts that are not in their initial state.
fn read_register(number: u32) -> u32 {
    // SAFETY: the caller has checked that the processor has it.
    unsafe { read_register_here(number) }
}

/// Runs `work`, which may change any of these registers, and restores them. SSE registers are only restored
/// together with others.
#[inline(never)]
pub fn preserved<T>(work: impl FnOnce() -> T) -> T {
    let parts = HAS.load(Relaxed) & !SSE;
    // Other parts are rarely in use: functions leave the upper halves of registers clear.
    if !TELLS.load(Relaxed) || read_register(1) & parts != 0 {
        return all_preserved(work);
    }
    let done = work();
    let used = read_register(1) & parts;
    if used != 0 {
        clear(used);
    }
    done
}

/// Puts parts into their initial state.
#[cold]
fn clear(parts: u32) {
    let mut area = Area([0; SIZE]);
    // SAFETY: the area says that none of the parts is saved in it; the control word of SSE, which may be loaded
    // with them, does not change.
    unsafe {
        asm!("stmxcsr [{at} + 24]", "xrstor64 [{at}]", at = in(reg) area.0.as_mut_ptr(), in("eax") parts, in("edx") 0,
             clobber_abi("C"), options(nostack));
    }
}

#[cold]
fn all_preserved<T>(work: impl FnOnce() -> T) -> T {
    let mut area = MaybeUninit::<Area>::uninit();
    let at = area.as_mut_ptr().cast::<u8>();
    let parts = HAS.load(Relaxed);
    // SAFETY: the area is large enough and aligned; the instructions are there, as `init` has seen.
    unsafe {
        at.add(HEADER).write_bytes(0, HEADER_SIZE);
        if parts == 0 {
            asm!("fxsave64 [{}]", in(reg) at, options(nostack, preserves_flags));
        } else {
            asm!("xsave64 [{}]", in(reg) at, in("eax") parts, in("edx") 0, options(nostack, preserves_flags));
        }
    }
    // Other threads continue from function calls, and expect the stack of x87 registers to be empty.
    // SAFETY: the previous content is saved; Rust uses none of it.
    unsafe { asm!("fninit", options(nostack, preserves_flags)) };
    let done = work();
    // SAFETY: as above. The clobbers tell the compiler that its values in these registers are lost.
    unsafe {
        if parts == 0 {
            asm!("fxrstor64 [{}]", in(reg) at, clobber_abi("C"), options(nostack));
        } else {
            asm!("xrstor64 [{}]", in(reg) at, in("eax") parts, in("edx") 0, clobber_abi("C"), options(nostack));
        }
    }
    done
}

/// The control word of SSE, which a switch of threads saves, but [`kept`] does not.
pub fn control() -> u32 {
    let mut word = 0;
    // SAFETY: stores four bytes there.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
    word
}

/// Sets the control word of SSE.
pub fn set_control(word: u32) {
    // SAFETY: loads four bytes that the processor has stored.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
}
