//! The runtime: preloaded into the program under test, it takes the place of the threading library, runs all threads
//! of the program on one kernel thread, or one at a time, and asks the plan, at every scheduling point, who goes next.
//!
//! It is `no_std`, allocates nothing on the path of a scheduling point, makes system calls itself and calls nothing
//! that it intercepts. It knows nothing of search, symbols or text: it follows a plan and leaves a log.
//!
//! | room | what it is |
//! | --- | --- |
//! | `platform` | system calls, glibc, registers |
//! | `wire_log` | the runtime's side of the wire: the slot of the execution, the log |
//! | `sched` | threads, who is enabled, scheduling points, decisions, policies |
//! | `carrier` | what threads run on: fibers or kernel threads |
//! | `script` | threads that stop at the events of a script |
//! | `memory` | accesses of memory: instrumented and patched code, races, the checked heap |
//! | `blocking` | operations that would block in the kernel |
//! | `lifecycle` | where executions begin and are undone |
//! | `shim` | what is intercepted, one file a family of functions; the start of the program |
//!
//! The rooms are listed from the lowest to the highest: a room uses only those above it in the table. The head comment of each
//! states its rule, and `tests/it/rooms.rs` checks it. Where a lower room has to call a higher one, on a cold path, the higher
//! room plugs a function into `sched::hooks` when the library is loaded.
//!
//! The engine's build script builds it with `--cfg heisen_embedded`, and only then is it the library that is preloaded.
//! In a build of the whole workspace cargo gives `trace` its `std` feature here, too, and there may be only one panic
//! handler: such a build is for the lints alone.
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

/// A bug in the runtime itself: nothing sensible can follow, so the process ends with a status of its own and the
/// engine reports an internal error.
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

// The prebuilt `core` names the personality routine of an unwinding build. Nothing unwinds through this library's Rust
// code, so it is never called; hidden, so that it does not take the place of a Rust program's own.
#[cfg(heisen_embedded)]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);
