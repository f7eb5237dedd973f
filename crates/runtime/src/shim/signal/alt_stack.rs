//! Alternate stacks for signal handlers. In the kernel they belong to a kernel thread, and fibers share one.
//! The runtime therefore stores each thread's setting, and runs handlers that it calls at scheduling points on
//! that stack. Handlers that the kernel calls, for faults, run on a stack of the runtime.

use crate::carrier::handler_stack::stack_pointer;
use crate::platform::glibc;
use crate::platform::sys;
use crate::platform::sys::SignalStack;
use crate::sched::{self, Thread};
use crate::shim::shims;
use core::ffi::c_int;

const SS_ONSTACK: i32 = 1;
const SS_DISABLE: i32 = 2;
const SS_AUTODISARM: i32 = i32::MIN;
const MIN_STACK: usize = 2048;
const ENOMEM: i32 = 12;

/// Whether the running thread is on its alternate stack.
fn is_on(t: &Thread) -> bool {
    stack_pointer().wrapping_sub(t.alt_base.get()) < t.alt_size.get()
}

/// The end of the running thread's alternate stack, if it has one that is not in use.
pub fn unused_end(t: &Thread) -> Option<usize> {
    (t.alt_size.get() != 0 && !is_on(t)).then(|| (t.alt_base.get() + t.alt_size.get()) & !15)
}

/// Passes the running thread's alternate stack on to the kernel.
pub fn hand_over() {
    let t = sched::thread(sched::me());
    let flags = if t.alt_size.get() == 0 { SS_DISABLE } else { 0 };
    sys::sigaltstack(&SignalStack { base: t.alt_base.get(), flags, size: t.alt_size.get() });
}

shims! {
    /// Sets or returns the calling thread's alternate stack, for handlers with SA_ONSTACK. Not a scheduling
    /// point.
    fn sigaltstack(new: *const SignalStack, old: *mut SignalStack) -> c_int = pc {
        let t = sched::thread(sched::me());
        let on = is_on(t);
        if !old.is_null() {
            let flags = if t.alt_size.get() == 0 { SS_DISABLE } else if on { SS_ONSTACK } else { 0 };
            // SAFETY: the program passes room for one, or null.
            unsafe { *old = SignalStack { base: t.alt_base.get(), flags, size: t.alt_size.get() } };
        }
        if new.is_null() {
            return 0;
        }
        // SAFETY: the program passes one.
        let new = unsafe { *new };
        if on {
            return glibc::result(sys::EPERM);
        }
        if new.flags & SS_DISABLE != 0 {
            t.alt_base.set(0);
            t.alt_size.set(0);
        } else if new.flags & !(SS_ONSTACK | SS_AUTODISARM) != 0 {
            return glibc::result(sys::EINVAL);
        } else if new.size < MIN_STACK {
            return glibc::result(ENOMEM);
        } else {
            t.alt_base.set(new.base);
            t.alt_size.set(new.size);
        }
        0
    }
}
