//! Finds out whether anything is left to do when a program exits.
//!
//! Functions that the program registered, destructors of its modules, or buffered output may be left. Mostly
//! there is nothing, but the C library needs a tenth of the time of a small execution to find that out. So
//! the runner inspects the modules once. At the end of each execution it only checks that nothing has been
//! added.
//!
//! If anything is left, or if that is unclear, the C library does all of the exit.

use super::modules::{self, Module};
use crate::platform::glibc;
use crate::platform::glibc::real;
use core::cell::Cell;
use core::ffi::c_char;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many functions the program has registered to be called at `exit`. This lies in the program's memory,
/// so it is restored with it.
static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// Counts a registered function.
pub fn registered() {
    REGISTERED.fetch_add(1, Relaxed);
}

/// The same for `quick_exit`.
static REGISTERED_QUICK: AtomicU32 = AtomicU32::new(0);

/// Counts a function that is registered for `quick_exit`.
pub fn registered_quick() {
    REGISTERED_QUICK.fetch_add(1, Relaxed);
}

/// Whether `exit` calls functions of the program: registered ones, or destructors of its modules.
pub fn exit_calls_functions() -> bool {
    let mut idle = true;
    modules::each(|module| {
        idle = is_idle(module);
        !idle
    });
    REGISTERED.load(Relaxed) != 0 || !idle
}

/// Whether `quick_exit` calls functions of the program.
pub fn quick_exit_calls_functions() -> bool {
    REGISTERED_QUICK.load(Relaxed) != 0
}

/// The result of the inspection of the modules.
pub struct Handlers {
    /// Whether no module has destructors that do anything.
    idle: Cell<bool>,
    /// How many modules the loader had added by then.
    added: Cell<u64>,
    /// The address of the C library's list of open files.
    files: Cell<usize>,
}

impl Handlers {
    /// Inspects the modules.
    pub fn find(&self) {
        let audited = real!(getenv, fn(c"LD_AUDIT".as_ptr() => *const c_char) -> *const u8);
        self.idle.set(audited.is_null());
        self.files.set(glibc::symbol(c"_IO_list_all"));
        modules::each(|module| {
            self.added.set(module.added);
            self.idle.set(self.idle.get() && is_idle(module));
            false
        });
    }

    /// Whether nothing is left to do.
    pub fn are_done(&self) -> bool {
        self.idle.get()
            && REGISTERED.load(Relaxed) == 0
            && has_nothing_to_write(self.files.get())
            && self.added.get() == added()
    }
}

/// How many modules the loader has added by now.
fn added() -> u64 {
    let mut added = 0;
    modules::each(|module| {
        added = module.added;
        true
    });
    added
}

/// Whether a module has no destructor other than the one that every compiler adds.
fn is_idle(module: &Module) -> bool {
    const LAST: usize = 13;
    const LIST: usize = 26;
    const SIZE: usize = 28;
    let (mut last, mut list, mut size) = (0, 0, 0);
    for [kind, value] in module.dynamic() {
        match kind {
            LAST => last = module.address(value),
            LIST => list = module.address(value),
            SIZE => size = value,
            _ => {}
        }
    }
    let word = size_of::<usize>();
    (last == 0 || matches(last, &[EMPTY]))
        // SAFETY: the list has this size in bytes.
        && (size == 0 || size == word && matches(unsafe { *(list as *const usize) }, &[SHARED, FIXED]))
}

/// Matches any byte in a pattern.
const ANY: u16 = 0x100;

/// A `_fini` to which nothing was added.
const EMPTY: &[u16] = &[0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3];
/// `__do_global_dtors_aux` in a position-independent module. It makes the C library call the functions that
/// the module registered:
/// `cmpb $0, done; jne; push rbp; cmpq $0, __cxa_finalize; mov rbp, rsp; je; mov rdi, module; call; call;
/// movb $1, done; pop; ret`.
#[rustfmt::skip]
const SHARED: &[u16] = &[
    0x80, 0x3d, ANY, ANY, ANY, ANY, 0, 0x75, ANY, 0x55, 0x48, 0x83, 0x3d, ANY, ANY, ANY, ANY, 0, 0x48, 0x89, 0xe5, 0x74, ANY,
    0x48, 0x8b, 0x3d, ANY, ANY, ANY, ANY, 0xe8, ANY, ANY, ANY, ANY, 0xe8, ANY, ANY, ANY, ANY, 0xc6, 0x05, ANY, ANY, ANY, ANY, 1,
    0x5d, 0xc3,
];
/// The same function in a program at a fixed address, where it calls no registered functions.
#[rustfmt::skip]
const FIXED: &[u16] = &[
    0x80, 0x3d, ANY, ANY, ANY, ANY, 0, 0x75, ANY, 0x55, 0x48, 0x89, 0xe5, 0xe8, ANY, ANY, ANY, ANY,
    0xc6, 0x05, ANY, ANY, ANY, ANY, 1, 0x5d, 0xc3,
];

/// Whether the code at this address is one of these.
fn matches(code: usize, patterns: &[&[u16]]) -> bool {
    const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    // SAFETY: this is code of a function. It is longer than the pattern, or a byte differs before it ends.
    let byte = |at: usize| unsafe { ((code + at) as *const u8).read_volatile() };
    let start = if (0..MARK.len()).all(|at| byte(at) == MARK[at]) { MARK.len() } else { 0 };
    let fits = |pattern: &&[u16]| {
        let mut all = pattern.iter().enumerate();
        all.all(|(at, &wanted)| wanted == ANY || wanted == byte(start + at).into())
    };
    patterns.iter().any(fits)
}

/// Whether the buffers of all files of the C library are empty: no output waits, and no input was read in
/// advance.
fn has_nothing_to_write(files: usize) -> bool {
    const READ: usize = 8;
    const READ_END: usize = 16;
    const WRITTEN: usize = 32;
    const WRITE: usize = 40;
    const NEXT: usize = 104;
    const WIDE: usize = 192;
    // SAFETY: this is `struct _IO_FILE`, whose layout is part of glibc's interface. The list ends with null.
    unsafe {
        let word = |at: usize| (at as *const usize).read_volatile();
        if files == 0 {
            return false;
        }
        let mut file = word(files);
        while file != 0 {
            let is_clean =
                word(file + READ) == word(file + READ_END) && word(file + WRITTEN) == word(file + WRITE);
            if !is_clean || ((file + WIDE) as *const i32).read_volatile() > 0 {
                return false;
            }
            file = word(file + NEXT);
        }
    }
    true
}
