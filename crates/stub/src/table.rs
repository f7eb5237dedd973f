//! The table of callbacks, and how it is filled.

use crate::{atomic, plain};
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use heisen_abi::{COUNT, Table, VERSION, callbacks};

/// What the stub itself does at a callback.
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

/// Where the callbacks lead, in the order of the list. The jumps read it, each its one word, at any time.
pub static TABLE: [AtomicPtr<()>; COUNT] = callbacks!(answers);

/// The stub's `__tsan_init`. Each unit of code calls that in a constructor, some before ours; the runtime is to hear of it
/// even if this is the only unit.
extern "C" fn init() {
    take();
    // It is the first of the list, for good.
    let theirs = TABLE[0].load(Relaxed);
    if theirs != init as *mut () {
        // SAFETY: the runtime's answer to the same callback.
        unsafe { core::mem::transmute::<*mut (), extern "C" fn()>(theirs)() };
    }
}

/// Takes the answers of the runtime, if it is there and means the same list.
pub extern "C" fn take() {
    let theirs: *const Table;
    // SAFETY: reads a word of the global offset table. The symbol is weak: without a runtime the word is zero. Going
    // through that table also keeps linkers from settling the question for programs at fixed addresses.
    unsafe {
        asm!(
            ".weak heisen_tsan_table",
            "mov {}, qword ptr [rip + heisen_tsan_table@GOTPCREL]",
            out(reg) theirs,
            options(nostack, readonly, preserves_flags, pure)
        );
    }
    // SAFETY: null, or the runtime's table, of which these two words never change their place.
    let Some(theirs) = (unsafe { theirs.as_ref() }) else { return };
    if theirs.version != VERSION || theirs.length as usize != COUNT {
        return;
    }
    // Threads that constructors have started may call meanwhile: they find the old answer or the new one.
    for (ours, &theirs) in TABLE.iter().zip(&theirs.callbacks) {
        ours.store(theirs.cast_mut(), Relaxed);
    }
}
