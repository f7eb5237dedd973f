//! The assembly for names and sections that Rust cannot express: callbacks, constructor, and a note.
//!
//! Each callback is a jump through the table. The constructor fills the table. The note says where the jumps
//! are. It survives stripping, so `heisen` can always find the instrumented code of a module.

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
            // The version, and the start and end of the jumps, relative to here.
            ".long {version}",
            ".long 2b - .",
            ".long 3b - .",
            ".popsection",
            // Constructors with priority zero run first.
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
