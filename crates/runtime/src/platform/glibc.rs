//! What the runtime uses of glibc: functions found through `dlsym`, so that they are the real ones and not the
//! shim's, and the few private facts about its thread control block.

use super::allocation::without_faults;
use super::{constant, sys};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

#[link(name = "c")]
unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    static mut environ: *mut *mut c_char;
}

const RTLD_DEFAULT: *mut c_void = core::ptr::null_mut();
/// For `dlsym`: "the next definition after the library that asks".
pub const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

/// The address of glibc's own `dlsym`: this library exports one, too (see `shim::loader`).
pub fn real_dlsym() -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    if REAL.load(Relaxed) == 0 {
        // The versions after and before it moved into libc from a library of its own.
        for version in [c"GLIBC_2.34", c"GLIBC_2.2.5"] {
            // SAFETY: C strings; RTLD_NEXT skips this library.
            let at = unsafe { dlvsym(RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) } as usize;
            if at != 0 {
                REAL.store(at, Relaxed);
                break;
            }
        }
    }
    REAL.load(Relaxed)
}

/// `dlsym`, called on behalf of this library.
///
/// # Safety
/// The handle is one that `dlsym` takes, the name a C string.
unsafe fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: as the caller's; glibc's function has this type.
    unsafe {
        let function: extern "C" fn(*mut c_void, *const c_char) -> *mut c_void =
            core::mem::transmute(real_dlsym());
        function(handle, name)
    }
}

/// A function of glibc, looked up at its first use. Its address comes first, for functions in assembly.
#[derive(Debug)]
#[repr(C)]
pub struct Real {
    address: AtomicUsize,
    name: &'static CStr,
}

impl Real {
    /// The offset of the address, which is 0 before the function is looked up. For code in assembly.
    pub const ADDRESS: usize = core::mem::offset_of!(Real, address);

    pub const fn new(name: &'static CStr) -> Real {
        Real { name, address: AtomicUsize::new(0) }
    }

    /// Its name.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// Its address; 0 if there is no such function.
    #[inline]
    pub fn address(&self) -> usize {
        match self.address.load(Relaxed) {
            0 => self.find(),
            at => at,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        // SAFETY: the name is a C string; RTLD_NEXT skips this library.
        let at = without_faults(|| unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) }) as usize;
        self.address.store(at, Relaxed);
        constant::keep(&self.address, at, at);
        at
    }
}

/// The name of a function as a C string.
macro_rules! name_of {
    ($name:ident) => {{
        const NAME: &core::ffi::CStr =
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            };
        NAME
    }};
}
pub(crate) use name_of;

/// Calls the real function of that name, with the given type.
macro_rules! real {
    ($name:ident, fn($($arg:expr => $ty:ty),*) $(-> $ret:ty)?) => {{
        static REAL: $crate::platform::glibc::Real = $crate::platform::glibc::Real::new($crate::platform::glibc::name_of!($name));
        let at = REAL.address();
        assert!(at != 0);
        // SAFETY: glibc's function of that name has this type, and the arguments are the caller's own.
        unsafe {
            let function: unsafe extern "C" fn($($ty),*) $(-> $ret)? = core::mem::transmute(at);
            function($($arg),*)
        }
    }};
}
pub(crate) use real;

/// The address of a private symbol of glibc, anywhere in the program; 0 if there is none.
pub fn private(name: &CStr) -> usize {
    // SAFETY: both are C strings.
    unsafe { dlvsym(RTLD_DEFAULT, name.as_ptr(), c"GLIBC_PRIVATE".as_ptr()) as usize }
}

/// The address of a symbol, anywhere in the program; 0 if there is none.
pub fn symbol(name: &CStr) -> usize {
    // SAFETY: a C string.
    unsafe { dlsym(RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// The address of a function that this library exports; 0 if it does not. `dlsym` searches in the order in
/// which the libraries were loaded, and this library comes before all others except the program.
pub fn own_symbol(name: &CStr) -> usize {
    /// `Dl_info`.
    #[repr(C)]
    #[derive(Default)]
    struct Info([usize; 4]);
    unsafe extern "C" {
        fn dladdr(address: usize, info: *mut Info) -> c_int;
    }
    let library = |address: usize| {
        let mut info = Info::default();
        // SAFETY: `dladdr` takes any address, and fills the struct if it lies in a library; its second word is
        // the address at which that library is loaded.
        unsafe { dladdr(address, &raw mut info) };
        info.0[1]
    };
    let at = symbol(name);
    if at != 0 && library(at) == library(own_symbol as *const () as usize) { at } else { 0 }
}

/// The address of a symbol of a library, which is loaded if necessary; 0 if there is none.
pub fn loaded(library: &CStr, name: &CStr) -> usize {
    const RTLD_LAZY: c_int = 1;
    // SAFETY: both are C strings; the handle is that of a library that is never unloaded.
    unsafe {
        let handle = without_faults(|| dlopen(library.as_ptr(), RTLD_LAZY));
        if handle.is_null() { 0 } else { dlsym(handle, name.as_ptr()) as usize }
    }
}

/// Sets `errno` of the running thread.
pub fn set_errno(value: i32) {
    // SAFETY: glibc returns a valid pointer into the running thread's storage.
    unsafe { *__errno_location() = value };
}

/// The result of a function that returns -1 and sets `errno` on failure.
pub fn result(error: i32) -> c_int {
    if error == 0 {
        return 0;
    }
    set_errno(error);
    -1
}

/// The kernel's result in the form of the C library: -1 and `errno` for an error.
pub fn kernel_result(got: isize) -> isize {
    if (-4095..0).contains(&got) {
        set_errno(-got as i32);
        return -1;
    }
    got
}

/// Reads the value of an environment variable as a number, and removes the variable from the program's
/// environment.
pub fn take_env_number(prefix: &[u8]) -> Option<i32> {
    let (slot, value) = find_env(prefix)?;
    let mut number = 0i32;
    // SAFETY: before `main` only this thread exists, and it does not change the value meanwhile.
    for &digit in unsafe { &*value } {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add((digit - b'0') as i32)?;
    }
    remove_env(slot);
    Some(number)
}

/// Removes the first element of a `:`-separated variable, or the variable itself if it has only one. The
/// program and its children then find the environment that the user gave.
pub fn strip_env_first(prefix: &[u8]) {
    let Some((slot, value)) = find_env(prefix) else { return };
    // SAFETY: before `main` only this thread exists, and nobody else refers to the value meanwhile.
    let value = unsafe { &mut *value };
    match value.iter().position(|&b| b == b':') {
        None => remove_env(slot),
        Some(colon) => {
            let rest = value.len() - colon;
            value.copy_within(colon + 1.., 0);
            // SAFETY: the string's terminating zero lies just behind it; `rest - 1` bytes and a zero fit before it.
            unsafe { *value.as_mut_ptr().add(rest - 1) = 0 };
        }
    }
}

/// The address of an environment variable's value, a C string; 0 if it is not set.
pub fn env_value(prefix: &[u8]) -> usize {
    find_env(prefix).map_or(0, |(_, value)| value.cast::<u8>() as usize)
}

/// An environment variable: its index in the table, and its value without the terminating zero.
fn find_env(prefix: &[u8]) -> Option<(usize, *mut [u8])> {
    // SAFETY: `environ` is a null-terminated array of C strings, and before `main` only this thread exists.
    unsafe {
        let table = environ;
        if table.is_null() {
            return None;
        }
        let mut slot = 0;
        loop {
            let entry = *table.add(slot);
            if entry.is_null() {
                return None;
            }
            let bytes = CStr::from_ptr(entry).to_bytes();
            if bytes.starts_with(prefix) {
                let value = entry.cast::<u8>().add(prefix.len());
                return Some((slot, core::ptr::slice_from_raw_parts_mut(value, bytes.len() - prefix.len())));
            }
            slot += 1;
        }
    }
}

fn remove_env(slot: usize) {
    // SAFETY: as in `find_env`; entries after the slot move down by one, the null included.
    unsafe {
        let table = environ;
        let mut at = slot;
        loop {
            let next = *table.add(at + 1);
            *table.add(at) = next;
            if next.is_null() {
                return;
            }
            at += 1;
        }
    }
}

/// The offset of the restartable-sequence area from the control block; 0 if glibc has none.
static RSEQ_OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Looks up where the restartable-sequence area is.
pub fn find_rseq() {
    let rseq = symbol(c"__rseq_offset");
    if rseq != 0 {
        // SAFETY: glibc exports this as a constant of pointer size.
        RSEQ_OFFSET.store(unsafe { *(rseq as *const isize) }, Relaxed);
    }
}

/// The restartable-sequence area of the thread with this control block, if glibc has one.
pub fn rseq_area(fs: usize) -> Option<usize> {
    match RSEQ_OFFSET.load(Relaxed) {
        0 => None,
        offset => Some(fs.wrapping_add_signed(offset)),
    }
}

/// The id of the kernel thread that a thread runs on. With `own`, each thread has its own kernel thread, and
/// the id is in its control block; otherwise it is the running kernel thread.
pub fn kernel_id(fs: usize, own: bool) -> i32 {
    // SAFETY: callers pass the control block of a thread.
    if own { unsafe { *((fs + tcb::TID) as *const i32) } } else { sys::gettid() }
}

/// The thread control block, in the layout of glibc's x86-64 ABI. `LIST` and `TID` are private but have not
/// moved since glibc 2.4, and `fibers` checks both before it relies on them. The others are ABI.
pub mod tcb {
    /// A pointer to itself.
    pub const SELF: usize = 0x0;
    /// A second pointer to itself (`header.self`), which `pthread_self` returns.
    pub const HEADER_SELF: usize = 0x10;
    /// The canary of the stack protector.
    pub const STACK_GUARD: usize = 0x28;
    /// The key by which `setjmp` and related functions mangle pointers.
    pub const POINTER_GUARD: usize = 0x30;
    /// Its link in the list of threads.
    pub const LIST: usize = 0x2c0;
    /// The thread id.
    pub const TID: usize = 0x2d0;
    /// The offset of the processor id in the restartable-sequence area.
    pub const RSEQ_CPU_ID: usize = 4;
    /// "Registration failed", so that `sched_getcpu` asks the kernel.
    pub const RSEQ_FAILED: i32 = -2;
}
