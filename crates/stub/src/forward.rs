//! What must have names and sections that Rust cannot give: the callbacks, each a jump through the table; the constructor
//! that fills it; and a note that says where the jumps are. It stays when symbols are stripped, so `heisen` can always tell
//! which code of a module is instrumented.

use crate::table::{TABLE, take};
use core::arch::global_asm;
use heisen_abi::{VERSION, callbacks};

macro_rules! jumps {
    ($($kind:ident($($argument:tt)?) $name:ident;)*) => {
        global_asm!(
            ".pushsection .text.heisen_stub, \"ax\", @progbits",
            ".p2align 4",
            "2:",
            ".cfi_startproc",
            ".set heisen_stub_at, 0",
            $(
                concat!(".weak ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ", @function"),
                concat!(stringify!($name), ":"),
                "jmp *{table} + heisen_stub_at(%rip)",
                ".set heisen_stub_at, heisen_stub_at + 8",
            )*
            ".cfi_endproc",
            "3:",
            ".popsection",
            ".pushsection .note.heisen, \"a\", @note",
            ".p2align 2",
            ".long 7, 12, 1",
            ".asciz \"Heisen\"",
            ".p2align 2",
            // The version, and where the jumps begin and end, from here.
            ".long {version}",
            ".long 2b - .",
            ".long 3b - .",
            ".popsection",
            // Zero is the first of the priorities of constructors.
            ".pushsection .init_array.00000, \"aw\", @init_array",
            ".p2align 3",
            ".quad {take}",
            ".popsection",
            table = sym TABLE,
            take = sym take,
            version = const VERSION,
            options(att_syntax)
        );
    };
}

callbacks!(jumps);
