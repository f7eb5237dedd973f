//! What is left to do when a program exits: functions that it registered, destructors of its modules, output that waits in
//! buffers. Mostly that is nothing, but the C library takes as long to find that out as a tenth of a small execution. So it is found
//! out once what modules have to do, and at the end of each execution only that nothing has been added.
//!
//! Where anything is left, or it is not clear whether, the C library does it all.

use super::modules::{self, Module};
use crate::platform::glibc;
use crate::platform::glibc::real;
use core::cell::Cell;
use core::ffi::c_char;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many functions were registered to be called at the exit. Lies in the program's memory, so it is put back.
static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// One more is registered.
pub fn registered() {
    REGISTERED.fetch_add(1, Relaxed);
}

/// The same of `quick_exit`.
static REGISTERED_QUICK: AtomicU32 = AtomicU32::new(0);

/// One more is registered for `quick_exit`.
pub fn registered_quick() {
    REGISTERED_QUICK.fetch_add(1, Relaxed);
}

/// Whether `exit` calls functions of the program's, registered ones or destructors of its modules.
pub fn exit_calls_functions() -> bool {
    let mut idle = true;
    modules::each(|module| {
        idle = is_idle(module);
        !idle
    });
    REGISTERED.load(Relaxed) != 0 || !idle
}

/// Whether `quick_exit` calls functions of the program's.
pub fn quick_exit_calls_functions() -> bool {
    REGISTERED_QUICK.load(Relaxed) != 0
}

/// What is known of the modules.
pub struct Handlers {
    /// Whether none of them has anything to do.
    idle: Cell<bool>,
    /// How often modules had been added by then.
    added: Cell<u64>,
    /// Where the C library keeps its list of open files.
    files: Cell<usize>,
}

impl Handlers {
    /// Looks at the modules.
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

/// How often modules were added by now.
fn added() -> u64 {
    let mut added = 0;
    modules::each(|module| {
        added = module.added;
        true
    });
    added
}

/// Whether a module has no destructors but the one that every compiler adds.
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
        // SAFETY: a list of so many bytes.
        && (size == 0 || size == word && matches(unsafe { *(list as *const usize) }, &[SHARED, FIXED]))
}

/// Any byte, in a pattern.
const ANY: u16 = 0x100;

/// `_fini`, to which nobody has added anything.
const EMPTY: &[u16] = &[0x48, 0x83, 0xec, 0x08, 0x48, 0x83, 0xc4, 0x08, 0xc3];
/// `__do_global_dtors_aux`, which has the C library call what was registered by its module, in a module that can be anywhere:
/// `cmpb $0, done; jne; push rbp; cmpq $0, __cxa_finalize; mov rbp, rsp; je; mov rdi, module; call; call; movb $1, done; pop; ret`.
#[rustfmt::skip]
const SHARED: &[u16] = &[
    0x80, 0x3d, ANY, ANY, ANY, ANY, 0, 0x75, ANY, 0x55, 0x48, 0x83, 0x3d, ANY, ANY, ANY, ANY, 0, 0x48, 0x89, 0xe5, 0x74, ANY,
    0x48, 0x8b, 0x3d, ANY, ANY, ANY, ANY, 0xe8, ANY, ANY, ANY, ANY, 0xe8, ANY, ANY, ANY, ANY, 0xc6, 0x05, ANY, ANY, ANY, ANY, 1,
    0x5d, 0xc3,
];
/// The same in a program at a fixed address, which has nothing to be called.
#[rustfmt::skip]
const FIXED: &[u16] = &[
    0x80, 0x3d, ANY, ANY, ANY, ANY, 0, 0x75, ANY, 0x55, 0x48, 0x89, 0xe5, 0xe8, ANY, ANY, ANY, ANY,
    0xc6, 0x05, ANY, ANY, ANY, ANY, 1, 0x5d, 0xc3,
];

/// Whether the code there is one of these.
fn matches(code: usize, patterns: &[&[u16]]) -> bool {
    const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    // SAFETY: code of a function, which is longer than that or matches no pattern before it ends.
    let byte = |at: usize| unsafe { ((code + at) as *const u8).read_volatile() };
    let start = if (0..MARK.len()).all(|at| byte(at) == MARK[at]) { MARK.len() } else { 0 };
    let fits = |pattern: &&[u16]| {
        let mut all = pattern.iter().enumerate();
        all.all(|(at, &wanted)| wanted == ANY || wanted == byte(start + at).into())
    };
    patterns.iter().any(fits)
}

/// Whether no file of the C library's has anything in its buffer that is still to be written, or that was read ahead.
fn has_nothing_to_write(files: usize) -> bool {
    const READ: usize = 8;
    const READ_END: usize = 16;
    const WRITTEN: usize = 32;
    const WRITE: usize = 40;
    const NEXT: usize = 104;
    const WIDE: usize = 192;
    // SAFETY: `struct _IO_FILE`, whose layout is part of glibc's interface, in a list that ends with null.
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
