//! Random numbers: gives the program bytes of a generator with a fixed seed, the same in every execution.
//! Whatever the program derives from them (the order of a hash table, a back-off time) is then the same each
//! time a schedule runs. The process has one stream of bytes, used in the order of its requests and independent
//! of the policy's random choices.
//!
//! The processor's instructions RDRAND and RDSEED cannot be intercepted. Where the C++ library uses them, in
//! `std::random_device`, the shim replaces its function.

use super::{pid, shims};
use crate::memory::symbolic::marked;
use crate::platform::baton::Flag;
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::SCHED;
use crate::sched::recurrence;
use crate::wire_log;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use heisen_trace::hash;

/// Both are atomic: forked children, and programs in system mode, have threads that run in parallel.
struct Random {
    seeded: Flag,
    state: AtomicU64,
}

static RANDOM: Random = Random { seeded: Flag::new(false), state: AtomicU64::new(0) };

/// How many bytes one opening of /dev/urandom or /dev/random provides.
const DEVICE_SIZE: usize = 1 << 20;

/// Starts the stream, and replaces the random bytes that the kernel left for the process (AT_RANDOM). The C
/// library has taken its stack guard from those already; code that looks there later finds seeded bytes.
pub fn init(seed: u64) {
    const AT_RANDOM: usize = 25;
    // Keeps this stream distinct from the policies' generators, which also start from small seeds.
    RANDOM.state.store(seed ^ 0x6a09_e667_f3bc_c908, Relaxed);
    RANDOM.seeded.set(true);
    let at = real!(getauxval, fn(AT_RANDOM => usize) -> usize);
    if at != 0 {
        // SAFETY: the kernel has put 16 bytes there, on the writable initial stack.
        unsafe { fill(at as *mut u8, 16) };
    }
}

/// A forked child continues with bytes of its own, as it would without Heisen.
pub fn forked(child: u32) {
    RANDOM.state.fetch_xor(u64::from(child) << 32 | 0x5851_f42d, Relaxed);
    advance();
}

fn seeded() -> bool {
    RANDOM.seeded.get()
}

/// The next number of splitmix64.
fn next() -> u64 {
    recurrence::consulted();
    hash::scatter(advance())
}

fn advance() -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    RANDOM.state.fetch_add(STEP, Relaxed).wrapping_add(STEP)
}

/// Fills memory with bytes of the stream.
///
/// # Safety
/// It must be valid for writes.
unsafe fn fill(at: *mut u8, length: usize) {
    let mut done = 0;
    while done < length {
        let bytes = next().to_le_bytes();
        let some = bytes.len().min(length - done);
        // SAFETY: within what the caller vouches for.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at.add(done), some) };
        done += some;
    }
}

/// The system call `getrandom`. The kernel checks the arguments and decides how many bytes to write; the bytes
/// come from the seeded stream.
pub fn get(args: [usize; 6]) -> isize {
    let got = sys::call(sys::SYS_GETRANDOM, args);
    if seeded() && got > 0 {
        // SAFETY: the kernel has just written as much.
        unsafe { fill(args[0] as *mut u8, got as usize) };
    }
    got
}

/// A uniformly distributed number below `bound`.
fn below(bound: u32) -> u32 {
    if bound < 2 {
        return 0;
    }
    let uneven = bound.wrapping_neg() % bound;
    loop {
        let number = next() as u32;
        if number >= uneven {
            return number % bound;
        }
    }
}

/// Whether the path is that of a random device.
fn is_device(path: *const c_char) -> bool {
    let is = |name: &[u8]| {
        // SAFETY: the program passes a C string, or null; the comparison ends at its first difference.
        name.iter().enumerate().all(|(i, &byte)| unsafe { *path.add(i) } as u8 == byte)
    };
    !path.is_null() && (is(b"/dev/urandom\0") || is(b"/dev/random\0"))
}

/// Opens a file of seeded bytes in place of a random device.
fn open_device(flags: c_int) -> c_int {
    const O_CLOEXEC: c_int = 0o2_000_000;
    let fd = sys::memory_file(c"random", flags & O_CLOEXEC != 0, DEVICE_SIZE);
    if fd >= 0
        && let Some(at) = sys::map_shared(fd, DEVICE_SIZE)
    {
        // SAFETY: just mapped, of that size.
        unsafe { fill(at as *mut u8, DEVICE_SIZE) };
        sys::unmap(at, DEVICE_SIZE);
    }
    if fd < 0 { glibc::result(-fd) } else { fd }
}

fn reads_device(path: *const c_char, flags: c_int) -> bool {
    const O_ACCMODE: c_int = 3;
    const O_WRONLY: c_int = 1;
    flags & O_ACCMODE != O_WRONLY && is_device(path)
}

/// The program has opened a file, perhaps in a child that is not controlled.
fn opened(fd: c_int) {
    if SCHED.active.get() {
        wire_log::opened(fd);
    }
    marked::opened(fd);
}

/// Opens a file by `real`, or replaces it if it is a random device.
fn open_by(path: *const c_char, flags: c_int, real: impl FnOnce() -> c_int) -> c_int {
    if reads_device(path, flags) {
        return open_device(flags);
    }
    let fd = real();
    if fd >= 0 {
        const O_CREAT: c_int = 0o100;
        if flags & O_CREAT != 0 {
            pid::names_file(path);
        }
        opened(fd);
    }
    fd
}

fn open_stream(path: *const c_char, mode: *const c_char, real: impl FnOnce() -> usize) -> usize {
    // SAFETY: the program passes C strings. Modes that read start with `r`; `w+` and `a+` read as well, but are
    // rare for a device and are not intercepted.
    if is_device(path) && !mode.is_null() && unsafe { *mode } as u8 == b'r' {
        let fd = open_device(0);
        return if fd < 0 { 0 } else { real!(fdopen, fn(fd => c_int, mode => *const c_char) -> usize) };
    }
    let stream = real();
    if stream != 0 {
        // SAFETY: the program passes a C string.
        if unsafe { *mode } as u8 != b'r' {
            pid::names_file(path);
        }
        opened(real!(fileno, fn(stream => usize) -> c_int));
    }
    stream
}

shims! {
    if seeded();

    /// Returns bytes of the seeded stream. Not a scheduling point.
    fn getrandom(buffer: usize, length: usize, flags: u32) -> isize = pc {
        let got = get([buffer, length, flags as usize, 0, 0, 0]);
        if got < 0 { glibc::result(-got as c_int) as isize } else { got }
    }

    /// Returns bytes of the seeded stream. Not a scheduling point.
    fn getentropy(buffer: *mut c_void, length: usize) -> c_int = pc {
        let result = real!(getentropy, fn(buffer => *mut c_void, length => usize) -> c_int);
        if result == 0 {
            // SAFETY: the real function has just written as much.
            unsafe { fill(buffer.cast(), length) };
        }
        result
    }

    /// Returns a number of the seeded stream. Not a scheduling point.
    fn arc4random() -> u32 = pc { next() as u32 }

    /// Returns bytes of the seeded stream. Not a scheduling point.
    fn arc4random_buf(buffer: *mut c_void, length: usize) -> () = pc {
        // SAFETY: the program passes room for as much.
        unsafe { fill(buffer.cast(), length) }
    }

    /// Returns a number of the seeded stream. Not a scheduling point.
    fn arc4random_uniform(bound: u32) -> u32 = pc { below(bound) }

    /// `std::random_device`: returns a number of the seeded stream, whatever source it was constructed with.
    /// Not a scheduling point.
    #[allow(non_snake_case)]
    fn _ZNSt13random_device9_M_getvalEv(this: usize) -> u32 = pc {
        let _ = this;
        next() as u32
    }

    /// For /dev/urandom and /dev/random, opens a file with 1 MiB of seeded bytes instead. Not a scheduling
    /// point.
    fn open(path: *const c_char, flags: c_int, mode: u32) -> c_int = pc {
        open_by(path, flags, || real!(open, fn(path => *const c_char, flags => c_int, mode => u32) -> c_int))
    }

    /// As `open`.
    fn open64(path: *const c_char, flags: c_int, mode: u32) -> c_int = pc {
        open_by(path, flags, || real!(open64, fn(path => *const c_char, flags => c_int, mode => u32) -> c_int))
    }

    /// As `open`.
    fn openat(at: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int = pc {
        open_by(path, flags, || {
            real!(openat, fn(at => c_int, path => *const c_char, flags => c_int, mode => u32) -> c_int)
        })
    }

    /// As `open`.
    fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int = pc {
        open_by(path, flags, || {
            real!(openat64, fn(at => c_int, path => *const c_char, flags => c_int, mode => u32) -> c_int)
        })
    }

    /// As `open`: programs compiled with `_FORTIFY_SOURCE` call this instead.
    fn __open_2(path: *const c_char, flags: c_int) -> c_int = pc {
        open_by(path, flags, || real!(__open_2, fn(path => *const c_char, flags => c_int) -> c_int))
    }

    /// As `__open_2`.
    fn __open64_2(path: *const c_char, flags: c_int) -> c_int = pc {
        open_by(path, flags, || real!(__open64_2, fn(path => *const c_char, flags => c_int) -> c_int))
    }

    /// As `open`, for streams.
    fn fopen(path: *const c_char, mode: *const c_char) -> usize = pc {
        open_stream(path, mode, || real!(fopen, fn(path => *const c_char, mode => *const c_char) -> usize))
    }

    /// As `fopen`.
    fn fopen64(path: *const c_char, mode: *const c_char) -> usize = pc {
        open_stream(path, mode, || real!(fopen64, fn(path => *const c_char, mode => *const c_char) -> usize))
    }
}
