//! Memory at addresses that the program gives, which may be null, unmapped or misaligned.
//!
//! These are bare instructions, since Rust's own accesses may assume that an address is good. Where the program would crash,
//! it crashes here with the same signal.

use core::arch::asm;

/// So many bytes, at most eight, as a number.
#[inline]
pub fn load(address: usize, size: usize) -> u64 {
    let mut value: u64;
    // SAFETY: a load changes nothing; if it faults, so does what the program is about to do.
    unsafe {
        match size {
            1 => {
                asm!("movzx {:e}, byte ptr [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags))
            }
            2 => {
                asm!("movzx {:e}, word ptr [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags))
            }
            4 => {
                asm!("mov {:e}, dword ptr [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags))
            }
            8 => {
                asm!("mov {}, qword ptr [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags))
            }
            _ => {
                value = 0;
                for index in (0..size.min(8)).rev() {
                    value = value << 8 | load(address.wrapping_add(index), 1);
                }
            }
        }
    }
    value
}

/// Crashes if there is no memory. Before a Rust access, which builds with debug assertions check by themselves: they would
/// end the process with another signal.
#[inline(always)]
pub fn probe(address: usize) {
    if cfg!(debug_assertions) {
        load(address, 1);
    }
}
