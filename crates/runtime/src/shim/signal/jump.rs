//! Jumps out of handlers: `sigsetjmp` keeps the mask of the thread, `siglongjmp` brings it back. glibc's own would ask the
//! kernel, whose mask is not that of the thread. The buffer is laid out as glibc's, so either's jump understands it.

use super::mask;
use crate::platform::baton::Guarded;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::S;
use crate::shim::shims;
use core::cell::UnsafeCell;
use core::ffi::c_int;

/// `sigjmp_buf`, but for the end of the set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    registers: [usize; 8],
    mask_saved: c_int,
    mask: u64,
}

/// Saves registers as glibc's does and, if asked to, what the thread blocks; no scheduling point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __sigsetjmp() {
    // Registers that are pointers are mangled with the thread's guard.
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov [rdi], rbx",
        "mov rax, rbp",
        "xor rax, fs:0x30",
        "rol rax, 17",
        "mov [rdi + 8], rax",
        "mov [rdi + 16], r12",
        "mov [rdi + 24], r13",
        "mov [rdi + 32], r14",
        "mov [rdi + 40], r15",
        "lea rax, [rsp + 8]",
        "xor rax, fs:0x30",
        "rol rax, 17",
        "mov [rdi + 48], rax",
        "mov rax, [rsp]",
        "xor rax, fs:0x30",
        "rol rax, 17",
        "mov [rdi + 56], rax",
        "jmp {save}",
        ".cfi_endproc",
        save = sym save_mask,
    )
}

/// Notes the mask, if asked to. Some buffers of glibc's have no room for one.
extern "C" fn save_mask(buffer: *mut Buffer, wanted: c_int) -> c_int {
    // SAFETY: the program passes a buffer, with room for a mask if it wants it saved.
    unsafe {
        (*buffer).mask_saved = (wanted != 0) as c_int;
        if wanted != 0 {
            (*buffer).mask = if S.active.get() { mask::of_running() } else { sys::signal_mask(None) };
        }
    }
    0
}

struct Copy(UnsafeCell<Buffer>);

static COPY: Guarded<Copy> =
    Guarded::new(Copy(UnsafeCell::new(Buffer { registers: [0; 8], mask_saved: 0, mask: 0 })));

/// The buffer to jump to: with a mask that was saved, which is set here, a copy without.
fn prepare(buffer: *const Buffer) -> *const Buffer {
    // SAFETY: the program passes a buffer that `sigsetjmp` has filled; whether there is a mask is always there.
    let (saved, registers) = unsafe { ((*buffer).mask_saved != 0, (*buffer).registers) };
    if !saved {
        return buffer;
    }
    // SAFETY: there is a mask.
    mask::set(unsafe { (*buffer).mask });
    mask::restore_kernel();
    // SAFETY: see `Copy`.
    unsafe { *COPY.0.get() = Buffer { registers, mask_saved: 0, mask: 0 } };
    COPY.0.get()
}

shims! {
    /// Jumps; sets the calling thread's mask if it was saved, and takes signals that are unblocked by that.
    fn siglongjmp(buffer: *const Buffer, value: c_int) -> () = pc {
        real!(siglongjmp, fn(prepare(buffer) => *const Buffer, value => c_int) -> ())
    }

    /// As `siglongjmp`.
    fn longjmp(buffer: *const Buffer, value: c_int) -> () = pc {
        real!(longjmp, fn(prepare(buffer) => *const Buffer, value => c_int) -> ())
    }

    /// As `siglongjmp`.
    fn _longjmp(buffer: *const Buffer, value: c_int) -> () = pc {
        real!(_longjmp, fn(prepare(buffer) => *const Buffer, value => c_int) -> ())
    }

    /// As `siglongjmp`.
    fn __longjmp_chk(buffer: *const Buffer, value: c_int) -> () = pc {
        real!(__longjmp_chk, fn(prepare(buffer) => *const Buffer, value => c_int) -> ())
    }
}
