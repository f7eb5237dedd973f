//! The runtime: the library inside the program that takes the place of the threading library and schedules
//! its threads.
//!
//! The engine preloads it into the program under test. All threads of the program run on one kernel thread,
//! or on kernel threads one at a time. At every scheduling point the plan, or the policy where the plan fixes
//! nothing, determines which thread runs next.
//!
//! It is `no_std`, allocates nothing on the path of a scheduling point, makes system calls itself and calls
//! nothing that it intercepts. It knows nothing of search, symbols or text: it follows a plan and writes a
//! log.
//!
//! | room | what it is |
//! | --- | --- |
//! | `platform` | system calls, glibc, registers |
//! | `wire_log` | the runtime's side of the wire: the slot of the execution, the log |
//! | `sched` | threads, enabledness, scheduling points, decisions, policies |
//! | `carrier` | what threads run on: fibers or kernel threads |
//! | `script` | threads that stop at the events of a script |
//! | `memory` | accesses of memory: instrumented and patched code, races, the checked heap |
//! | `blocking` | operations that would block in the kernel |
//! | `lifecycle` | where executions begin, and how they are undone |
//! | `shim` | the intercepted functions, one file a family; the start of the program |
//!
//! The table lists the rooms from the lowest to the highest: a room uses only rooms that stand above it in
//! the table. The head comment of each room states its rule, and `tests/it/rooms.rs` checks it. Where a lower
//! room has to call a higher one, on a cold path, the higher room plugs a function into `sched::hooks` when
//! the library is loaded.
//!
//! The engine's build script builds the runtime with `--cfg heisen_embedded`; only that build is the library
//! that is preloaded. In a build of the workspace, cargo enables the `std` feature of `trace` here, too, and
//! `std` brings a panic handler of its own. Such a build serves the lints only.
#![cfg_attr(heisen_embedded, no_std)]

mod blocking;
mod carrier;
mod lifecycle;
mod memory;
mod platform;
mod sched;
mod script;
mod shim;
mod wire_log;

/// A panic is a bug in the runtime itself, and nothing sensible can follow. It writes its place in the source
/// to standard error and kills the process.
#[cfg(heisen_embedded)]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = info.location().map_or(0, |l| l.line());
    let file = info.location().map_or("", |l| l.file());
    platform::sys::write(2, b"heisen runtime: internal error at ");
    platform::sys::write(2, file.as_bytes());
    let mut digits = [b':', b'0', b'0', b'0', b'0', b'\n'];
    let mut rest = line;
    for slot in digits[1..5].iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    platform::sys::write(2, &digits);
    platform::sys::kill(platform::sys::getpid(), platform::sys::SIGKILL);
    platform::sys::exit_group(5)
}

// The prebuilt `core` refers to the personality routine of an unwinding build. Nothing unwinds through the
// Rust code of this library, so the routine is never called. It is hidden, so that it does not replace the
// routine of a Rust program.
#[cfg(heisen_embedded)]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);
