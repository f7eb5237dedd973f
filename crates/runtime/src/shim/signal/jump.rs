//! Jumps out of handlers: `sigsetjmp` saves the thread's signal mask, `siglongjmp` restores it. glibc's own
//! functions would use the kernel's mask, which is not the thread's. The buffer has glibc's layout, so that
//! both implementations can jump to it.

use super::mask;
use crate::platform::baton::Guarded;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::SCHED;
use crate::shim::shims;
use core::cell::UnsafeCell;
use core::ffi::c_int;

/// `sigjmp_buf`, without the end of the signal set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    registers: [usize; 8],
    mask_saved: c_int,
    mask: u64,
}

/// Saves the registers as glibc does and, if asked to, the thread's signal mask. Not a scheduling point.
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

/// Saves the mask, if asked to. Some of glibc's buffers have no room for one.
extern "C" fn save_mask(buffer: *mut Buffer, wanted: c_int) -> c_int {
    // SAFETY: the program passes a buffer, with room for a mask if it wants it saved.
    unsafe {
        (*buffer).mask_saved = (wanted != 0) as c_int;
        if wanted != 0 {
            (*buffer).mask = if SCHED.active.get() { mask::of_running() } else { sys::signal_mask(None) };
        }
    }
    0
}

struct Copy(UnsafeCell<Buffer>);

static COPY: Guarded<Copy> =
    Guarded::new(Copy(UnsafeCell::new(Buffer { registers: [0; 8], mask_saved: 0, mask: 0 })));

/// The buffer to jump to. If the mask was saved, sets it and returns a copy of the buffer without a mask.
fn prepare(buffer: *const Buffer) -> *const Buffer {
    // SAFETY: the program passes a buffer that `sigsetjmp` has filled; it always says whether there is a mask.
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
    /// Jumps. If the mask was saved, restores the calling thread's mask and delivers signals that this
    /// unblocks.
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
