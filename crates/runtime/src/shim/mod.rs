//! What is intercepted, one file a family of functions. Each function does the same as glibc's, seen from the program,
//! with a scheduling point before it and with blocking left to the scheduler.
//!
//! Two rules. What glibc keeps in the object itself (the owner of a mutex, the value of a semaphore) is kept there the
//! same way, so that functions that are not intercepted, and a forked child, see it true. And where the process is not
//! controlled (before start-up, in a forked child), the real function is called.

pub mod cond;
pub mod futex;
pub mod key;
pub mod mutex;
pub mod once;
pub mod process;
pub mod sem;
pub mod signal;
pub mod thread;
pub mod time;
pub mod unwind;

/// The return address of the intercepted function: where the program called it. Only valid directly in the body of
/// an exported function, and only with frame pointers, which the engine's build script asks for.
macro_rules! caller {
    () => {{
        let pc: usize;
        // SAFETY: with frame pointers, the return address lies just above the saved rbp.
        unsafe { core::arch::asm!("mov {}, [rbp + 8]", out(reg) pc, options(nostack, readonly, preserves_flags)) };
        pc
    }};
}
pub(crate) use caller;

/// Exports functions that take the place of glibc's: outside a controlled process they call the real one.
macro_rules! shims {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $pc:ident $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The program calls it with what the function of that name in glibc takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            if !$crate::sched::S.active.get() {
                return $crate::glibc::real!($name, fn($($arg => $ty),*) -> $ret);
            }
            let $pc = $crate::shim::caller!();
            let _ = $pc;
            $body
        }
    )*};
}
pub(crate) use shims;
