//! The runtime's own stacks for handlers that the kernel calls: one for each kernel thread.

use crate::platform::sys;
use crate::platform::sys::SignalStack;
use crate::sched;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Of the runtime's own stacks.
const SIZE: usize = 256 << 10;

/// Gives the calling kernel thread a stack for handlers; its address, 0 if there is no memory.
pub fn give() -> usize {
    let Some(base) = sys::map_stack(SIZE) else { return 0 };
    sys::sigaltstack(&SignalStack { base, flags: 0, size: SIZE });
    base
}

/// As [`give`], for the kernel thread that the process was started with.
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

/// Frees such a stack, before the kernel thread ends and with all signals blocked.
pub fn free(base: usize) {
    if base != 0 {
        sys::unmap(base, SIZE);
    }
}

/// The stack pointer, nearly.
pub fn stack_pointer() -> usize {
    let here = 0u8;
    &raw const here as usize
}
