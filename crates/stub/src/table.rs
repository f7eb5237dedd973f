//! The table of callbacks, and how it is filled.

use crate::{atomic, plain};
use core::arch::asm;
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
        [$(answer!($kind($($argument)?)) as *const ()),*]
    };
}

/// Where the callbacks lead, in the order of the list.
pub static mut TABLE: [*const (); COUNT] = callbacks!(answers);

/// The stub's `__tsan_init`. Each unit of code calls that in a constructor, some before ours; the runtime is to hear of it
/// even if this is the only unit.
extern "C" fn init() {
    take();
    // SAFETY: nobody writes now. It is the first of the list, for good.
    let theirs = unsafe { TABLE[0] };
    if theirs != init as *const () {
        // SAFETY: the runtime's answer to the same callback.
        unsafe { core::mem::transmute::<*const (), extern "C" fn()>(theirs)() };
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
    let ours = (&raw mut TABLE).cast::<*const ()>();
    for (index, &theirs) in theirs.callbacks.iter().enumerate() {
        // SAFETY: within the table. Nobody else writes; who reads at the same time, as threads that constructors start may,
        // finds either word, which is whole. The writes are volatile so that they stay single words.
        unsafe { ours.add(index).write_volatile(theirs) };
    }
}
