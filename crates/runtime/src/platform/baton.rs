//! Data that only the kernel thread that holds the baton may use, and the check of that rule.
//!
//! The threads of a controlled program run one at a time. On fibers there is one kernel thread. On kernel
//! threads, one of them holds the baton, and handing it over orders memory (see `carrier::kernel_threads`). The
//! runtime's own data is therefore [`Guarded`]: cells without locks. In system mode threads run in parallel,
//! and none of them may access such data.

use core::cell::Cell;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Data that only the kernel thread that holds the baton may access.
///
/// A build with debug assertions checks this at each use; in a release build the wrapper adds nothing to its
/// content.
#[derive(Debug)]
#[repr(transparent)]
pub struct Guarded<T>(T);

// SAFETY: one kernel thread at a time accesses the content, and the baton orders these accesses. A signal
// handler that accesses it runs on the kernel thread that holds the baton; all others block signals. The
// content is cells, to which a handler writes single words that the interrupted code reads again.
unsafe impl<T> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub const fn new(content: T) -> Guarded<T> {
        Guarded(content)
    }
}

impl<T> Deref for Guarded<T> {
    type Target = T;

    #[inline(always)]
    #[track_caller]
    fn deref(&self) -> &T {
        if cfg!(debug_assertions) {
            assert_held();
        }
        &self.0
    }
}

/// A flag that every thread may read, with or without the baton. It orders nothing else.
#[derive(Debug)]
#[repr(transparent)]
pub struct Flag(AtomicBool);

impl Flag {
    pub const fn new(value: bool) -> Flag {
        Flag(AtomicBool::new(value))
    }

    #[inline(always)]
    pub fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    pub fn set(&self, value: bool) {
        self.0.store(value, Relaxed);
    }
}

/// A function that another room plugs in before there is a second kernel thread; from then on every thread may
/// read it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Hook<F: Copy>(Cell<F>);

// SAFETY: no thread reads it while it is written, because there is only one kernel thread then.
unsafe impl<F: Copy> Sync for Hook<F> {}

impl<F: Copy> Hook<F> {
    pub const fn new(function: F) -> Hook<F> {
        Hook(Cell::new(function))
    }

    #[inline(always)]
    pub fn get(&self) -> F {
        self.0.get()
    }

    pub fn set(&self, function: F) {
        debug_assert!(HOLDER.load(Relaxed) == NOT_CHECKED, "plugged in too late");
        self.0.set(function);
    }
}

/// In builds with debug assertions: the fs base of the thread that holds the baton, [`NOT_CHECKED`] or [`NOBODY`].
static HOLDER: AtomicUsize = AtomicUsize::new(NOT_CHECKED);

/// There is one kernel thread, or the process is not controlled.
const NOT_CHECKED: usize = 0;
/// Threads run in parallel.
const NOBODY: usize = 1;

/// The thread with this fs base holds the baton from now on. The previous holder calls this while it still has
/// the baton.
#[inline(always)]
pub fn handed_to(fs: usize) {
    if cfg!(debug_assertions) {
        HOLDER.store(fs, Relaxed);
    }
}

/// Threads run in parallel from now on: there is no baton.
pub fn abolish() {
    handed_to(NOBODY);
}

/// The process is a child of `fork`, which is not controlled.
pub fn let_go() {
    handed_to(NOT_CHECKED);
}

#[inline]
#[track_caller]
fn assert_held() {
    let holder = HOLDER.load(Relaxed);
    if holder != NOT_CHECKED {
        assert!(holder == fs_base(), "touched without the baton");
    }
}

/// The running thread's fs base, by the pointer to itself that lies there.
fn fs_base() -> usize {
    let base: usize;
    // SAFETY: the ABI has that pointer in every thread's control block.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) base, options(nostack, readonly, preserves_flags)) };
    base
}
