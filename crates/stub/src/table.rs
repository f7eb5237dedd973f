//! Holds the table of callbacks, and fills it with the runtime's functions if the runtime is loaded.

use crate::{atomic, plain, symbolic};
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use heisen_abi::{COUNT, Table, VERSION, callbacks};

/// The stub's own function for a callback.
#[rustfmt::skip]
macro_rules! answer {
    (init()) => { init };
    (memcpy()) => { plain::memcpy };
    (memmove()) => { plain::memmove };
    (memset()) => { plain::memset };
    (thread_fence()) => { atomic::thread_fence };
    (mutex($what:ident)) => { plain::nothing };
    (annotate_happens($when:ident)) => { plain::nothing };
    ($operation:ident($word:ident)) => { atomic::$word::$operation };
    ($other:ident($($bytes:literal)?)) => { plain::nothing };
}

macro_rules! answers {
    ($($kind:ident($($argument:tt)?) $name:ident;)*) => {
        [$(AtomicPtr::new(answer!($kind($($argument)?)) as *mut ())),*]
    };
}

/// The functions to which the callbacks jump, in the order of the list. Each jump reads its own word, at any
/// time.
pub static TABLE: [AtomicPtr<()>; COUNT] = callbacks!(answers);

/// The stub's `__tsan_init`. Each unit of code calls it in a constructor, some of them before the stub's
/// constructor. It passes the call on to the runtime, which must receive one even if the program has only one
/// unit.
extern "C" fn init() {
    take();
    // `__tsan_init` is always the first callback of the list.
    let theirs = TABLE[0].load(Relaxed);
    if theirs != init as *mut () {
        // SAFETY: the entry is the runtime's function for the same callback, so it has the same signature.
        unsafe { core::mem::transmute::<*mut (), extern "C" fn()>(theirs)() };
    }
}

/// Fills the table with the runtime's functions, if the runtime is loaded and has the same list of callbacks.
pub extern "C" fn take() {
    symbolic::take();
    let theirs: *const Table;
    // SAFETY: this reads a word of the global offset table. The symbol is weak: without a runtime the word is
    // zero. Reading through that table also prevents linkers from resolving the symbol early in programs at
    // fixed addresses.
    unsafe {
        asm!(
            ".weak heisen_tsan_table",
            "mov {}, qword ptr [rip + heisen_tsan_table@GOTPCREL]",
            out(reg) theirs,
            options(nostack, readonly, preserves_flags, pure)
        );
    }
    // SAFETY: the pointer is null or points to the runtime's table. Version and length have the same place in
    // all versions of the table.
    let Some(theirs) = (unsafe { theirs.as_ref() }) else { return };
    if theirs.version != VERSION || theirs.length as usize != COUNT {
        return;
    }
    // Threads that constructors have started may call callbacks meanwhile. They read either the old or the
    // new function.
    for (ours, &theirs) in TABLE.iter().zip(&theirs.callbacks) {
        ours.store(theirs.cast_mut(), Relaxed);
    }
    symbolic::wake();
}
