//! Locks of the C library's streams: makes `flockfile` a lock of the scheduler. glibc locks a stream inside
//! each function that uses it, and waits in a system call, which would stop all threads. There is no scheduling
//! point inside these functions, so only `flockfile` can hold a lock while other threads run.
//!
//! `flockfile` is therefore a lock of the scheduler, stored in glibc's own lock. Each function that locks its
//! stream first waits, by the scheduler, while another thread holds that stream. Before the first `flockfile`
//! this costs one test and one jump.
//!
//! Not covered: `fflush(NULL)`, which locks all streams, and custom streams (`fopencookie`) whose functions
//! block.

use super::{marked_streams, shims};
use crate::memory::race::order;
use crate::platform::glibc::{Real, real};
use crate::sched::{self, SCHED, me, thread};
use crate::sched::{dependence, spin};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use heisen_trace::Op;

unsafe extern "C" {
    static stdin: usize;
    static stdout: usize;
    static stderr: usize;
}

/// Whether calls must be looked at: the program has locked a stream, or bytes that it reads are inputs.
static USED: AtomicU8 = AtomicU8::new(0);

/// Offsets in `FILE`, which are ABI: the flags and the lock. `USER_LOCK` is the flag of streams that the
/// program locks by itself.
const FLAGS: usize = 0;
const USER_LOCK: u32 = 0x8000;
const LOCK: usize = 136;
/// The offset of the orientation (bytes or wide characters); it is 0 before the first read or write.
const ORIENTATION: usize = 192;

/// The lock of a stream.
#[repr(C)]
struct Lock {
    held: Cell<i32>,
    count: Cell<i32>,
    owner: Cell<usize>,
}

/// The lock of the stream at this address.
fn lock_of(file: usize) -> &'static Lock {
    // SAFETY: the program passes a stream, and each stream has a lock.
    unsafe { &**((file + LOCK) as *const *const Lock) }
}

impl Lock {
    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    fn mine(&self) -> bool {
        self.held.get() != 0 && self.owner.get() == thread(me()).fs.get()
    }
}

/// Waits until the running thread can lock the stream without blocking.
fn wait(file: usize, pc: usize) {
    let lock = lock_of(file);
    sched::wait_for(Op::StreamLock, lock.address(), pc, lock.held.get() == 0, u64::MAX);
}

shims! {
    /// Waits until no other thread holds the stream, then takes it. A scheduling point, unless the thread holds
    /// the stream already.
    fn flockfile(file: usize) -> () = pc { lock(file, pc) }

    /// As `flockfile`.
    fn _IO_flockfile(file: usize) -> () = pc { lock(file, pc) }

    /// Takes the stream if no other thread holds it. A scheduling point, unless the thread holds the stream
    /// already.
    fn ftrylockfile(file: usize) -> c_int = pc { try_lock(file, pc) }

    /// As `ftrylockfile`.
    fn _IO_ftrylockfile(file: usize) -> c_int = pc { try_lock(file, pc) }

    /// Releases the stream and enables all threads that wait for it. A scheduling point, unless the thread
    /// still holds it by an earlier `flockfile`.
    fn funlockfile(file: usize) -> () = pc { unlock(file, pc) }

    /// As `funlockfile`.
    fn _IO_funlockfile(file: usize) -> () = pc { unlock(file, pc) }
}

fn lock(file: usize, pc: usize) {
    if !lock_of(file).mine() {
        wait(file, pc);
        USED.store(1, Relaxed);
        sched::taken(lock_of(file).address());
        order::acquire(lock_of(file).address());
    }
    real!(flockfile, fn(file => usize) -> ());
}

fn try_lock(file: usize, pc: usize) -> c_int {
    let mine = lock_of(file).mine();
    if !mine {
        spin::attempt(Op::StreamLock, lock_of(file).address(), pc);
    }
    let result = real!(ftrylockfile, fn(file => usize) -> c_int);
    if !mine {
        dependence::tried(Op::StreamLock, lock_of(file).address(), pc, result == 0);
    }
    if result != 0 {
        spin::failed();
    } else if !mine {
        USED.store(1, Relaxed);
        sched::taken(lock_of(file).address());
        order::acquire(lock_of(file).address());
    }
    result
}

fn unlock(file: usize, pc: usize) {
    let lock = lock_of(file);
    let last = lock.count.get() == 1;
    if last {
        sched::point(Op::StreamUnlock, lock.address(), pc);
    }
    real!(funlockfile, fn(file => usize) -> ());
    if last {
        order::release(lock.address());
        sched::freed(lock.address());
    }
}

/// From now on functions that read are looked at, because bytes that the program reads are inputs.
pub fn watch_reads() {
    USED.store(1, Relaxed);
}

/// The stream, or null if it has no orientation yet.
fn oriented(file: usize) -> usize {
    // SAFETY: a stream, or null.
    if file != 0 && unsafe { *((file + ORIENTATION) as *const c_int) } != 0 { file } else { 0 }
}

/// Runs before a function that locks `file`: a stream, or the number of a standard stream (4 is standard error
/// for `perror`). Returns the address of the real function.
extern "C" fn before(file: usize, pc: usize, function: &'static Real) -> usize {
    if SCHED.active.get() && USED.load(Relaxed) != 0 {
        if let Some(instead) = marked_streams::instead(function, pc) {
            return instead;
        }
        // SAFETY: glibc's variables, which the program may set to other streams.
        let standard = unsafe { [0, stdin, stdout, stderr, oriented(stderr)] };
        let file = standard.get(file).copied().unwrap_or(file);
        // SAFETY: the program passes a stream, or null.
        if file != 0 && unsafe { *((file + FLAGS) as *const u32) } & USER_LOCK == 0 {
            let lock = lock_of(file);
            if lock.held.get() != 0 && !lock.mine() {
                wait(file, pc);
            }
        }
    }
    function.address()
}

/// Exports functions that lock a stream. They may have any number of arguments, also floating-point ones. Each
/// is therefore entered and left by a jump, with all registers as the caller left them. `stream` is the
/// register that holds the stream.
macro_rules! streams {
    ($($(#[$doc:meta])* fn $name:ident = $stream:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The program calls it with what the function of that name takes.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            static REAL: Real = Real::new($crate::platform::glibc::name_of!($name));
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov r11, [rip + {real} + {address}]",
                "test r11, r11",
                "je 2f",
                "cmp byte ptr [rip + {used}], 0",
                "jne 2f",
                "jmp r11",
                "2:",
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "sub rsp, 128",
                ".cfi_adjust_cfa_offset 184",
                "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2",
                "movups [rsp + 48], xmm3", "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5",
                "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
                concat!("mov rdi, ", $stream),
                "mov rsi, [rsp + 184]",
                "lea rdx, [rip + {real}]",
                "call {before}",
                "mov r11, rax",
                "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]",
                "movups xmm3, [rsp + 48]", "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]",
                "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
                "add rsp, 128",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                ".cfi_adjust_cfa_offset -184",
                "jmp r11",
                ".cfi_endproc",
                real = sym REAL,
                address = const Real::ADDRESS,
                used = sym USED,
                before = sym before,
            )
        }
    )*};
}

streams! {
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fprintf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn vfprintf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __fprintf_chk = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __vfprintf_chk = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn vfscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __isoc99_fscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __isoc99_vfscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fgetc = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn getc = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn _IO_getc = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn getw = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fflush = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fclose = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fseek = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fseeko = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fseeko64 = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn ftell = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn ftello = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn ftello64 = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn rewind = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fgetpos = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fgetpos64 = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fsetpos = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fsetpos64 = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn setvbuf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn setbuf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn setbuffer = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn setlinebuf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn feof = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn ferror = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn clearerr = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fgetwc = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn getwc = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fwprintf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn vfwprintf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __fwprintf_chk = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __vfwprintf_chk = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fwscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn vfwscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __isoc99_fwscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __isoc99_vfwscanf = "rdi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fputs = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fputc = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn putc = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn _IO_putc = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn putw = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn ungetc = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fputws = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fputwc = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn putwc = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn ungetwc = "rsi";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fgets = "rdx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fgetws = "rdx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn getline = "rdx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn freopen = "rdx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn freopen64 = "rdx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fread = "rcx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn fwrite = "rcx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn getdelim = "rcx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __getdelim = "rcx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __fgets_chk = "rcx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __fgetws_chk = "rcx";
    /// Waits first if another thread holds its stream by `flockfile`.
    fn __fread_chk = "r8";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn getchar = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn getwchar = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn scanf = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn vscanf = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn __isoc99_scanf = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn __isoc99_vscanf = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn wscanf = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn vwscanf = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn __isoc99_wscanf = "1";
    /// Waits first if another thread holds standard input by `flockfile`.
    fn __isoc99_vwscanf = "1";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn printf = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn vprintf = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn __printf_chk = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn __vprintf_chk = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn puts = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn putchar = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn putwchar = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn wprintf = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn vwprintf = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn __wprintf_chk = "2";
    /// Waits first if another thread holds standard output by `flockfile`.
    fn __vwprintf_chk = "2";
    /// Waits first if another thread holds standard error by `flockfile`. If standard error has no orientation
    /// yet, it does not wait: `perror` then writes past the stream.
    fn perror = "4";
}
