//! Exports functions that test one byte and jump to the function of the same name in the C library. They are
//! called often and very early, so these few instructions are all that the shim adds to the real function.

/// Exports such a function. If the byte is not 0, the function jumps to `slow` instead, or, with `before`,
/// first calls `before` with the address of its arguments and the return address. If the real function was not
/// looked up yet, it jumps to `early`.
macro_rules! real_jump {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $real:path;
     $byte:path => slow $slow:path, early $early:path) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The program calls it with what the function of that name in glibc takes.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "cmp byte ptr [rip + {byte}], 0",
                "jne {slow}",
                $crate::shim::real_jump::jump!(),
                ".cfi_endproc",
                byte = sym $byte,
                real = sym $real,
                slow = sym $slow,
                early = sym $early,
            )
        }
    };
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $real:path;
     $byte:path => before $before:path, early $early:path) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The program calls it with what the function of that name in glibc takes.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "cmp byte ptr [rip + {byte}], 0",
                "jne 3f",
                "2:",
                $crate::shim::real_jump::jump!(),
                "3:",
                "push rcx", "push rdx", "push rsi", "push rdi", "sub rsp, 8",
                ".cfi_adjust_cfa_offset 40",
                "lea rdi, [rsp + 8]",
                "mov rsi, [rsp + 40]",
                "call {before}",
                "add rsp, 8", "pop rdi", "pop rsi", "pop rdx", "pop rcx",
                ".cfi_adjust_cfa_offset -40",
                "jmp 2b",
                ".cfi_endproc",
                byte = sym $byte,
                real = sym $real,
                before = sym $before,
                early = sym $early,
            )
        }
    };
}
pub(crate) use real_jump;

/// The jump itself, in assembly. The address is the first word of a `Real`.
macro_rules! jump {
    () => {
        "mov rax, qword ptr [rip + {real}]\ntest rax, rax\nje {early}\njmp rax"
    };
}
pub(crate) use jump;
