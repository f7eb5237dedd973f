//! The runtime's own stacks for signal handlers that the kernel calls: one for each kernel thread.

use crate::platform::sys;
use crate::platform::sys::SignalStack;
use crate::sched;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The size of such a stack.
const SIZE: usize = 256 << 10;

/// Gives the calling kernel thread a stack for signal handlers. Returns its address, 0 if there is no memory.
pub fn give() -> usize {
    let Some(base) = sys::map_stack(SIZE) else { return 0 };
    sys::sigaltstack(&SignalStack { base, flags: 0, size: SIZE });
    base
}

/// As [`give`], for the first kernel thread of the process.
pub fn give_first() {
    FIRST.store(give(), Relaxed);
}

static FIRST: AtomicUsize = AtomicUsize::new(0);

/// Whether the running thread is in a handler that the kernel has called on such a stack.
pub fn is_on_given() -> bool {
    let here = stack_pointer();
    let own = sched::thread(sched::me()).handler_stack.get();
    here.wrapping_sub(FIRST.load(Relaxed)) < SIZE || own != 0 && here.wrapping_sub(own) < SIZE
}

/// Unmaps such a stack. The kernel thread is about to end, and all signals are blocked.
pub fn free(base: usize) {
    if base != 0 {
        sys::unmap(base, SIZE);
    }
}

/// An address close to the stack pointer.
pub fn stack_pointer() -> usize {
    let here = 0u8;
    &raw const here as usize
}
