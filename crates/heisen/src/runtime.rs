//! Finds the functions of Heisen's runtime, if the runtime was loaded into this program.
//!
//! Stable Rust has no weak symbols, so each function is looked up once, by name.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Values of [`Function::address`] that are not addresses: not looked up yet, and not found.
const UNKNOWN: usize = 0;
const ABSENT: usize = 1;

/// A function of the runtime. `F` must be a function pointer type.
#[derive(Debug)]
pub struct Function<F> {
    name: &'static CStr,
    address: AtomicUsize,
    of: PhantomData<fn() -> F>,
}

impl<F: Copy> Function<F> {
    /// # Safety
    /// `F` must be the type of the function of that name in Heisen's runtime.
    const unsafe fn new(name: &'static CStr) -> Function<F> {
        Function { name, address: AtomicUsize::new(UNKNOWN), of: PhantomData }
    }

    /// The function, or `None` if the program does not run under Heisen.
    #[inline(always)]
    pub fn get(&self) -> Option<F> {
        let address = match self.address.load(Relaxed) {
            UNKNOWN => self.look_up(),
            address => address,
        };
        if address == ABSENT {
            return None;
        }
        // SAFETY: the address is that of the function of this name, and `F` is its type.
        Some(unsafe { std::mem::transmute_copy(&address) })
    }

    #[cold]
    fn look_up(&self) -> usize {
        let address = match address_of(self.name) {
            UNKNOWN => ABSENT,
            address => address,
        };
        self.address.store(address, Relaxed);
        address
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn address_of(name: &CStr) -> usize {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    const RTLD_DEFAULT: *mut c_void = null_mut();
    // SAFETY: a C string; the default order of libraries may be asked at any time.
    unsafe { dlsym(RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// Heisen does not exist on this platform.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
fn address_of(_: &CStr) -> usize {
    UNKNOWN
}

macro_rules! functions {
    ($($name:ident = $symbol:literal: $ty:ty;)*) => {$(
        // SAFETY: the types are those of `heisen.h`.
        pub static $name: Function<$ty> = unsafe { Function::new($symbol) };
    )*};
}

functions! {
    RUNNING = c"heisen_running": extern "C" fn() -> c_int;
    POINT = c"heisen_point": extern "C" fn();
    POINT_AT = c"heisen_point_at": extern "C" fn(usize);
    STATE = c"heisen_state": extern "C" fn(c_ulong);
    CHOOSE = c"heisen_choose": extern "C" fn(c_uint) -> c_uint;
    NO_PREEMPT_BEGIN = c"heisen_no_preempt_begin": extern "C" fn();
    NO_PREEMPT_END = c"heisen_no_preempt_end": extern "C" fn();
    ATOMIC_BEGIN = c"heisen_atomic_begin": extern "C" fn();
    ATOMIC_END = c"heisen_atomic_end": extern "C" fn();
    INPUT = c"heisen_input": extern "C" fn(*mut c_void, usize, *const c_char);
    ASSUME = c"heisen_assume": extern "C" fn(c_int);
    TEST_START = c"heisen_test_start": extern "C" fn();
    TEST_END = c"heisen_test_end": extern "C" fn();
    READY = c"heisen_ready": extern "C" fn();
}

/// `heisen_point_at` takes an `unsigned long`, and a function pointer is as wide as an address.
const _: () = assert!(size_of::<c_ulong>() == size_of::<usize>() || cfg!(not(target_os = "linux")));
const _: () = assert!(size_of::<extern "C" fn()>() == size_of::<usize>());
