//! Atomics of 128 bits, with the methods of those in `core`.
//!
//! All use `cmpxchg16b`, the only such instruction. It needs writable memory even for a load. The C library
//! does the same on most processors.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

#[repr(C, align(16))]
pub struct AtomicU128(UnsafeCell<u128>);

impl AtomicU128 {
    pub fn compare_exchange(&self, old: u128, new: u128, _: Ordering, _: Ordering) -> Result<u128, u128> {
        let (mut low, mut high) = (old as u64, (old >> 64) as u64);
        // SAFETY: the instruction, on our own memory. The compiler keeps rbx for itself, so it is put aside.
        unsafe {
            asm!(
                "xchg {new_low}, rbx",
                "lock cmpxchg16b xmmword ptr [{at}]",
                "mov rbx, {new_low}",
                at = in(reg) self.0.get(),
                new_low = inout(reg) new as u64 => _,
                in("rcx") (new >> 64) as u64,
                inout("rax") low,
                inout("rdx") high,
                options(nostack)
            );
        }
        let found = u128::from(high) << 64 | u128::from(low);
        if found == old { Ok(found) } else { Err(found) }
    }

    pub fn load(&self, order: Ordering) -> u128 {
        // Compares with zero: if that succeeds, it writes zero again.
        match self.compare_exchange(0, 0, order, order) {
            Ok(found) | Err(found) => found,
        }
    }

    fn update(&self, order: Ordering, change: impl Fn(u128) -> u128) -> u128 {
        let mut old = self.load(order);
        loop {
            match self.compare_exchange(old, change(old), order, order) {
                Ok(found) => return found,
                Err(found) => old = found,
            }
        }
    }

    pub fn store(&self, value: u128, order: Ordering) {
        self.update(order, |_| value);
    }

    pub fn swap(&self, value: u128, order: Ordering) -> u128 {
        self.update(order, |_| value)
    }

    pub fn fetch_add(&self, operand: u128, order: Ordering) -> u128 {
        self.update(order, |old| old.wrapping_add(operand))
    }

    pub fn fetch_sub(&self, operand: u128, order: Ordering) -> u128 {
        self.update(order, |old| old.wrapping_sub(operand))
    }

    pub fn fetch_and(&self, operand: u128, order: Ordering) -> u128 {
        self.update(order, |old| old & operand)
    }

    pub fn fetch_or(&self, operand: u128, order: Ordering) -> u128 {
        self.update(order, |old| old | operand)
    }

    pub fn fetch_xor(&self, operand: u128, order: Ordering) -> u128 {
        self.update(order, |old| old ^ operand)
    }

    pub fn fetch_nand(&self, operand: u128, order: Ordering) -> u128 {
        self.update(order, |old| !(old & operand))
    }
}
