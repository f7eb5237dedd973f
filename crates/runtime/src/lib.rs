//! The runtime: preloaded into the program under test, it takes the place of the threading library, runs all threads
//! of the program on one kernel thread, or one at a time, and asks the plan, at every scheduling point, who goes next.
//!
//! It is `no_std`, allocates nothing on the path of a scheduling point, makes system calls itself and calls nothing
//! that it intercepts. It knows nothing of search, symbols or text: it follows a plan and leaves a log.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`sched`], [`choose`] | threads, who is enabled, scheduling points; decisions |
//! | [`budget`] | spurious wake-ups and faults, and how many of them there may be |
//! | [`policy`], [`fair`] | the choice where the plan leaves one; fairness to threads that wait for a yielding one |
//! | [`scope`], [`section`] | where a thread that could go on is not preempted; where all it does is one step |
//! | [`fibers`] | the usual carrier: stacks, thread-local storage, the switch |
//! | [`patch`], [`extended`] | points at atomic instructions of code that is not instrumented; registers that they keep |
//! | [`kernel`], [`debugger`] | the other carrier, kernel threads; what a debugger asks of it |
//! | [`free`] | no carrier: threads run free, but where a script holds them |
//! | [`zygote`] | parks the program before `main`, one fork an execution |
//! | [`report`] | what is written to the wire |
//! | [`clock`] | virtual time |
//! | [`heap`] | the heap of instrumented programs |
//! | [`record`] | input from outside, recorded and given again |
//! | [`recurrence`] | whether an execution that does not end comes back to the same state |
//! | [`stdin`] | standard input, from its beginning in each execution |
//! | [`io`], [`aside`] | waiting for descriptors; calls that block in the kernel, on a kernel thread of their own |
//! | [`race`] | happens-before, conflicts of accesses, which accesses are scheduling points |
//! | [`tsan`] | the callbacks of instrumented code |
//! | `shim` | what is intercepted, one file a family of functions |
//!
//! The engine's build script builds it with `--cfg heisen_embedded`, and only then is it the library that is preloaded.
//! In a build of the whole workspace cargo gives `trace` its `std` feature here, too, and there may be only one panic
//! handler: such a build is for the lints alone.
#![cfg_attr(heisen_embedded, no_std)]

mod alike;
mod aside;
mod bits;
mod budget;
mod choose;
mod clock;
mod debugger;
mod extended;
mod fair;
mod fibers;
mod free;
mod glibc;
mod heap;
mod io;
mod keeper;
mod kernel;
mod patch;
mod policy;
mod race;
mod record;
mod recurrence;
mod report;
mod reset;
mod sched;
mod scope;
mod script;
mod section;
mod shim;
mod sleep;
mod spin;
mod stdin;
mod sys;
mod touch;
mod tsan;
mod word_lock;
mod zygote;

/// A bug in the runtime itself: nothing sensible can follow, so the process ends with a status of its own and the
/// engine reports an internal error.
#[cfg(heisen_embedded)]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = info.location().map_or(0, |l| l.line());
    let file = info.location().map_or("", |l| l.file());
    sys::write(2, b"heisen runtime: internal error at ");
    sys::write(2, file.as_bytes());
    let mut digits = [b':', b'0', b'0', b'0', b'0', b'\n'];
    let mut rest = line;
    for slot in digits[1..5].iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    sys::write(2, &digits);
    sys::kill(sys::getpid(), sys::SIGKILL);
    sys::exit_group(5)
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
