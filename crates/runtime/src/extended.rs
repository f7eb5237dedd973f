//! Registers beyond those that a function must preserve: x87, SSE, AVX and what came after. At a call they belong to the
//! called function, and a switch of threads leaves them alone. A thread that is switched out, or runs a handler, in the
//! middle of a function has values in them that it needs again.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, _xgetbv};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The parts that are kept, as bits of the processor's register XCR0: x87, SSE, AVX, the three of AVX-512, and the general
/// registers of APX. Tiles, which are large, are not: nobody computes with those and synchronises in the same breath.
const PARTS: u32 = 0b111 | 0b111 << 5 | 1 << 19;

/// More than the parts take on any processor.
const SIZE: usize = 2816;
/// Where the processor keeps what it has saved, which has to be zero at first.
const HEADER: usize = 512;
const HEADER_SIZE: usize = 64;

#[repr(C, align(64))]
struct Area([u8; SIZE]);

/// The parts that this processor has; 0 if it only has the first two, and an older instruction for them.
static HAS: AtomicU32 = AtomicU32::new(0);

/// Asks the processor; slow on a virtual machine.
pub fn init() {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE != 0 {
        HAS.store(read_xcr0() & PARTS, Relaxed);
    }
}

#[target_feature(enable = "xsave")]
fn read_xcr0_here() -> u32 {
    // SAFETY: the processor has the instruction, and register 0 always exists.
    unsafe { _xgetbv(0) as u32 }
}

fn read_xcr0() -> u32 {
    // SAFETY: the caller has asked whether the processor has it.
    unsafe { read_xcr0_here() }
}

/// Does the work, which may change any of these registers, and brings them back.
#[cold]
#[inline(never)]
pub fn kept<T>(work: impl FnOnce() -> T) -> T {
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
    let done = work();
    // SAFETY: as above. The compiler is told that whatever it may have in these registers is lost.
    unsafe {
        if parts == 0 {
            asm!("fxrstor64 [{}]", in(reg) at, clobber_abi("C"), options(nostack));
        } else {
            asm!("xrstor64 [{}]", in(reg) at, in("eax") parts, in("edx") 0, clobber_abi("C"), options(nostack));
        }
    }
    done
}
