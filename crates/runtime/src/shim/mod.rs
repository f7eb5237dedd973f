//! The shim: the functions by which the runtime replaces those of the C library, one file per family.
//!
//! To the program each function behaves like glibc's. It adds a scheduling point before the operation, and
//! where glibc would block, the scheduler disables the thread instead.
//!
//! Two rules hold in all of these files:
//!
//! - State that glibc stores in the object itself (the owner of a mutex, the value of a semaphore) is stored
//!   there in the same way. Functions that are not intercepted, and a forked child, so find the object in a
//!   valid state.
//! - Where the process is not controlled (before start-up, in a forked child), the shim calls the real
//!   function.

pub mod alloc;
pub mod api;
pub mod barrier;
pub mod c11;
pub mod cancel;
pub mod choice;
pub mod cond;
pub mod conversions;
pub mod cpu;
mod destroyed;
pub mod entropy;
pub mod fork;
pub mod futex;
pub mod guard;
pub mod ignored;
pub mod io;
pub mod key;
pub mod loader;
pub mod machine;
pub mod mapping;
pub mod marked_streams;
pub mod mutex;
pub mod once;
pub mod others;
pub mod pid;
pub mod process;
pub mod pthread;
pub mod real_jump;
pub mod rwlock;
pub mod sem;
pub mod settime;
pub mod signal;
pub mod spin_lock;
pub mod start;
pub mod stdio;
pub mod strings;
pub mod thread_entry;
pub mod thread_id;
pub mod time;
pub mod timer;
pub mod unwind;
pub mod verifier;

/// Exports functions that replace glibc's. They call the real function where the process is not controlled, or,
/// if the invocation begins with `if condition;`, where that condition is false.
macro_rules! shims {
    (if $when:expr; $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $pc:ident $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The program calls it with what the function of that name in glibc takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            if !$when {
                if let Some(op) = const { $crate::script::system_mode::op_of(stringify!($name)) } && $crate::script::system_mode::is_on() {
                    $crate::script::system_mode::calls(op, $crate::shim::first!($($arg)*), $crate::platform::registers::caller!());
                }
                return $crate::platform::glibc::real!($name, fn($($arg => $ty),*) -> $ret);
            }
            let $pc = $crate::platform::registers::caller!();
            let _ = $pc;
            $body
        }
    )*};
    ($($all:tt)*) => { $crate::shim::shims! { if $crate::sched::SCHED.active.get(); $($all)* } };
}
pub(crate) use shims;

/// The first of the given arguments as a number, or 0 without arguments.
macro_rules! first {
    () => {
        0
    };
    ($first:ident $($rest:ident)*) => {
        $first as usize
    };
}
pub(crate) use first;

/// Exports functions that call `before(first argument, second argument, return address, arguments)` and then
/// jump to the address that it returns. Registers and stack are as the caller left them, except for changes
/// that `before` makes to the [`Arguments`].
///
/// This is for functions with any number of arguments, and for functions through which exceptions pass: the
/// unwinder must not meet a frame of the runtime.
macro_rules! detours {
    ($($(#[$doc:meta])* fn $name:ident = $before:path;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The program calls it with what the function of that name takes.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                ".cfi_adjust_cfa_offset 56",
                "mov rdx, [rsp + 56]",
                "mov rcx, rsp",
                "call {before}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                ".cfi_adjust_cfa_offset -56",
                "jmp r11",
                ".cfi_endproc",
                before = sym $before,
            )
        }
    )*};
}
pub(crate) use detours;

/// The argument registers, in the order in which [`detours`] saves them on the stack.
#[repr(C)]
#[derive(Debug)]
pub struct Arguments {
    rax: usize,
    r9: usize,
    r8: usize,
    rcx: usize,
    rdx: usize,
    /// The second argument.
    pub rsi: usize,
    rdi: usize,
}
