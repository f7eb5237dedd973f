//! Scheduling points at atomic instructions of uninstrumented code. The engine has moved each of these
//! instructions to a *trampoline* (see `engine::patch`), which first calls this module. Where there was no room
//! for a jump there is a breakpoint, whose signal leads to the trampoline.
//!
//! Unlike an intercepted call, such an instruction lies in the middle of a function: every register is in use,
//! and so are the flags and the red zone below the stack pointer. The registers that Rust code may change are
//! saved here. Those that another thread may change are saved only at a switch to one (see `platform::xsave`).
//!
//! A thread must not be switched out while it holds a lock that the scheduler does not know. Only code of the
//! program and its own libraries is patched, but others may call this code back:
//!
//! - the runtime ([`uncontrolled`](sched::uncontrolled));
//! - the kernel, as the handler of a fault, on a stack that all threads share;
//! - the C library, which may then hold a lock of its own. Above all this concerns an allocator in the program,
//!   which the C library therefore calls through [`quiet`].
//!
//! In all these cases there is no scheduling point. docs/how-it-works/patching.md lists the remaining cases.

use crate::carrier::handler_stack;
use crate::memory::race::atomic_order::{Does, memory_order};
use crate::memory::tsan::plain;
use crate::memory::{race, word_lock};
use crate::platform::program_memory;
use crate::platform::sys;
use crate::platform::sys::bit;
use crate::platform::xsave;
use crate::sched::dependence;
use crate::sched::hooks;
use crate::sched::spin;
use crate::sched::{self, SCHED, me, thread};
use crate::script::{system_mode, unit_mode};
use crate::wire_log;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use heisen_trace::Op;
use heisen_wire::patch::{ASIDE, CAS, HIGH, LOAD, LOCK, MARK, SET, SET_BY, STORE, Site, UNLOCK, XCHG};
use heisen_wire::{MAX_AREAS, MAX_TRAPS, Trap, Wire};

/// Whether the program contains breakpoints of the runtime.
static HAS_TRAPS: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn heisen_patch_entry();
}

global_asm!(
    // Called by a trampoline, with the address of the access in rdi and the description of the instruction in
    // rsi. The unwinding information skips the trampoline: to a debugger, the instruction itself has called
    // this, and the frame pointers say the same.
    ".globl heisen_patch_entry",
    ".hidden heisen_patch_entry",
    ".type heisen_patch_entry, @function",
    "heisen_patch_entry:",
    ".cfi_startproc",
    ".cfi_def_cfa rsp, {aside} + 8",
    ".cfi_offset rdi, -136",
    ".cfi_offset rsi, -144",
    "push qword ptr [rsi]",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rip, -160",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbp, -168",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "pushfq",
    "cld",
    // All general registers, in the order of their numbers.
    "push r15",
    "push r14",
    "push r13",
    "push r12",
    "push r11",
    ".cfi_offset r11, -216",
    "push r10",
    ".cfi_offset r10, -224",
    "push r9",
    ".cfi_offset r9, -232",
    "push r8",
    ".cfi_offset r8, -240",
    "push qword ptr [rbp + 32]",
    "push qword ptr [rbp + 24]",
    "push qword ptr [rbp]",
    "push 0",
    "push rbx",
    "push rdx",
    ".cfi_offset rdx, -288",
    "push rcx",
    ".cfi_offset rcx, -296",
    "push rax",
    ".cfi_offset rax, -304",
    "mov rdx, rsp",
    "sub rsp, 256",
    "and rsp, -16",
    "movaps [rsp], xmm0",
    "movaps [rsp + 16], xmm1",
    "movaps [rsp + 32], xmm2",
    "movaps [rsp + 48], xmm3",
    "movaps [rsp + 64], xmm4",
    "movaps [rsp + 80], xmm5",
    "movaps [rsp + 96], xmm6",
    "movaps [rsp + 112], xmm7",
    "movaps [rsp + 128], xmm8",
    "movaps [rsp + 144], xmm9",
    "movaps [rsp + 160], xmm10",
    "movaps [rsp + 176], xmm11",
    "movaps [rsp + 192], xmm12",
    "movaps [rsp + 208], xmm13",
    "movaps [rsp + 224], xmm14",
    "movaps [rsp + 240], xmm15",
    "call {arrived}",
    "movaps xmm0, [rsp]",
    "movaps xmm1, [rsp + 16]",
    "movaps xmm2, [rsp + 32]",
    "movaps xmm3, [rsp + 48]",
    "movaps xmm4, [rsp + 64]",
    "movaps xmm5, [rsp + 80]",
    "movaps xmm6, [rsp + 96]",
    "movaps xmm7, [rsp + 112]",
    "movaps xmm8, [rsp + 128]",
    "movaps xmm9, [rsp + 144]",
    "movaps xmm10, [rsp + 160]",
    "movaps xmm11, [rsp + 176]",
    "movaps xmm12, [rsp + 192]",
    "movaps xmm13, [rsp + 208]",
    "movaps xmm14, [rsp + 224]",
    "movaps xmm15, [rsp + 240]",
    // Restores the flags, but not by popf: if the engine single-steps popf, as it does at times, Linux loses
    // track of who set the trap flag. The direction flag is rarely set; then overflow, by an addition; then all
    // others.
    "mov eax, [rbp - 8]",
    "bt eax, 10",
    "jnc 2f",
    "std",
    "2:",
    "mov ecx, eax",
    "mov ah, al",
    "shr ecx, 11",
    "and ecx, 1",
    "mov al, cl",
    "add al, 0x7f",
    "sahf",
    // The rest has been preserved; the trampoline restores rdi and rsi.
    "mov rax, [rbp - 136]",
    "mov rcx, [rbp - 128]",
    "mov rdx, [rbp - 120]",
    "mov r8, [rbp - 72]",
    "mov r9, [rbp - 64]",
    "mov r10, [rbp - 56]",
    "mov r11, [rbp - 48]",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_restore rbp",
    ".cfi_def_cfa rsp, {aside} + 16",
    "lea rsp, [rsp + 8]",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size heisen_patch_entry, . - heisen_patch_entry",
    aside = const ASIDE,
    arrived = sym arrived,
);

/// Tells the engine the addresses at which trampolines call the runtime.
pub fn init(wire: &Wire) {
    wire.patch_entry.store(heisen_patch_entry as *const () as u64, Relaxed);
    let own = wire.patch_uncontrolled.iter().zip(uncontrolled_allocation::addresses());
    for (slot, address) in own.chain(wire.patch_lock.iter().zip(word_lock::calls())) {
        slot.store(address as u64, Relaxed);
    }
}

/// The engine is about to patch the program: maps the memory that it wants and prepares for breakpoints.
pub fn prepare(wire: &Wire) {
    xsave::init();
    let wanted = (wire.patch_areas.load(Relaxed) as usize).min(MAX_AREAS);
    let mapped = wire.patch_area[..wanted].iter().take_while(|area| {
        let [at, size] = area;
        sys::map_code(at.load(Relaxed) as usize, size.load(Relaxed) as usize)
    });
    wire.patch_areas.store(mapped.count() as u32, Relaxed);
    if !traps(wire).is_empty() {
        HAS_TRAPS.store(true, Relaxed);
        hooks::let_traps_through();
    }
}

fn traps(wire: &Wire) -> &[Trap] {
    &wire.patch_trap[..(wire.patch_traps.load(Relaxed) as usize).min(MAX_TRAPS)]
}

/// Whether the program contains breakpoints of the runtime.
pub fn has_traps() -> bool {
    HAS_TRAPS.load(Relaxed)
}

/// A set of signals to be blocked, without SIGTRAP while there are breakpoints: a breakpoint whose signal is
/// blocked ends the process.
pub fn passable(set: u64) -> u64 {
    if has_traps() { set & !bit(sys::SIGTRAP) } else { set }
}

/// Directs a thread at a breakpoint of the runtime to the trampoline, by changing the context of its signal
/// handler. Returns false if the breakpoint is not the runtime's.
pub fn leads_on(context: *mut usize) -> bool {
    // An index of a word of `ucontext_t`.
    const RIP: usize = 5 + 16;
    if !has_traps() {
        return false;
    }
    // SAFETY: the kernel passes a complete `ucontext_t`.
    let rip = unsafe { &mut *context.add(RIP) };
    let at = (*rip as u64).wrapping_sub(1);
    let traps = traps(wire_log::wire());
    match traps.binary_search_by_key(&at, |trap| trap.at.load(Relaxed)) {
        Ok(found) => {
            *rip = traps[found].trampoline.load(Relaxed) as usize;
            true
        }
        Err(_) => false,
    }
}

/// In an uncontrolled child of `fork`: removes the breakpoints, so that the child can use the signal itself.
pub fn remove_traps() {
    const PAGE: usize = 4096;
    if !has_traps() {
        return;
    }
    let mut all = true;
    for trap in traps(wire_log::wire()) {
        let at = trap.at.load(Relaxed) as usize;
        let page = at & !(PAGE - 1);
        if !sys::let_write_code(page, PAGE, true) {
            all = false;
            continue;
        }
        // SAFETY: the engine has put the breakpoint there, and the page can be written.
        unsafe { (at as *mut u8).write_volatile(trap.byte.load(Relaxed) as u8) };
        sys::let_write_code(page, PAGE, false);
    }
    HAS_TRAPS.store(!all, Relaxed);
}

/// The program's own allocation functions, for the C library.
mod uncontrolled_allocation {
    use crate::sched::uncontrolled;
    use crate::wire_log;
    use core::ffi::c_int;
    use core::sync::atomic::Ordering::Relaxed;

    /// The program's own function of that number.
    fn own(number: usize) -> usize {
        wire_log::wire().patch_own[number].load(Relaxed) as usize
    }

    /// In the order of `heisen_wire::patch::ALLOCATION`.
    macro_rules! functions {
        ($($number:literal $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
            $(extern "C" fn $name($($arg: $ty),*) -> $ret {
                // SAFETY: the program's function of this name, which has this type.
                let own: extern "C" fn($($ty),*) -> $ret = unsafe { core::mem::transmute(own($number)) };
                uncontrolled(|| own($($arg),*))
            })*

            /// The addresses of these functions.
            pub fn addresses() -> [usize; heisen_wire::patch::ALLOCATION.len()] {
                [$($name as *const () as usize),*]
            }
        };
    }

    functions! {
        0 malloc(bytes: usize) -> usize;
        1 calloc(count: usize, bytes: usize) -> usize;
        2 realloc(block: usize, bytes: usize) -> usize;
        3 free(block: usize) -> ();
        4 memalign(alignment: usize, bytes: usize) -> usize;
        5 aligned_alloc(alignment: usize, bytes: usize) -> usize;
        6 posix_memalign(out: usize, alignment: usize, bytes: usize) -> c_int;
    }
}

/// A thread is about to execute an atomic instruction on memory at `address`. `registers` are all general
/// registers.
extern "C" fn arrived(address: usize, site: &Site, registers: &[u64; 16]) {
    if system_mode::is_on() {
        if site.kind == MARK {
            unit_mode::mark(site.mark, address, registers, site.pc as usize);
        }
        return;
    }
    if !SCHED.active.get() || !SCHED.running.get() || handler_stack::is_on_given() {
        return;
    }
    let t = thread(me());
    if t.uncontrolled.get() != 0 {
        return;
    }
    let pc = site.pc as usize;
    if site.kind == MARK {
        t.mid_function.set(true);
        unit_mode::mark(site.mark, address, registers, pc);
        t.mid_function.set(false);
        return;
    }
    t.mid_function.set(true);
    let does = match site.kind {
        // `registers[0]` is the expected value.
        LOCK if registers[0] as u32 == 0 => {
            word_lock::take(address, pc);
            t.mid_function.set(false);
            return word_lock::done(address, memory_order::ACQUIRE, pc);
        }
        UNLOCK => {
            word_lock::give_up(address, pc);
            t.mid_function.set(false);
            return word_lock::done(address, memory_order::RELEASE, pc);
        }
        LOAD => loads(address, site.size, pc),
        STORE => stores(address, site.size, pc),
        _ => updates(address, site, registers, pc),
    };
    t.mid_function.set(false);
    // No other thread runs before the instruction, so it counts as done. It orders what is before and after it.
    if race::is_on(race::mode::WATCH) {
        plain::watch(does.op(), address, site.size.into(), pc);
    }
    if matches!(site.kind, LOAD | STORE) {
        race::atomic_order::done_patched(does, address, site.size.into(), pc);
    } else {
        race::atomic_order::done(does, address, site.size.into(), memory_order::SEQ_CST, pc);
    }
}

/// Before an instruction that only reads.
fn loads(address: usize, size: u8, pc: usize) -> Does {
    if race::is_patched_point(pc) {
        spin::look(Op::AtomicLoad, address, pc, read(address, size));
        dependence::memory(address, size.into(), false);
    } else {
        spin::glance(Op::AtomicLoad, address, pc, || read(address, size));
    }
    Does::Load
}

/// Before an instruction that only writes.
fn stores(address: usize, size: u8, pc: usize) -> Does {
    spin::progress();
    if race::is_patched_point(pc) {
        sched::point(Op::AtomicStore, address, pc);
        dependence::memory(address, size.into(), true);
    }
    Does::Store
}

/// Before an instruction that reads and writes.
fn updates(address: usize, site: &Site, registers: &[u64; 16], pc: usize) -> Does {
    let op = if matches!(site.kind, CAS | LOCK) { Op::AtomicCas } else { Op::AtomicRmw };
    let is_point = race::is_patched_point(pc);
    if is_point {
        if is_futile(address, site, registers) {
            spin::attempt(op, address, pc);
        } else {
            spin::exchange(op, address, pc, read(address, site.size));
        }
        let fails = site.kind == CAS && is_futile(address, site, registers);
        dependence::memory(address, site.size.into(), !fails);
    } else if is_futile(address, site, registers) {
        spin::glance(op, address, pc, || read(address, site.size));
    } else {
        spin::progress();
        spin::unscheduled_change(op, address, pc, read(address, site.size));
    }
    let futile = is_futile(address, site, registers);
    if !futile {
        // A comparison expects the value of a lock that no thread holds, and an exchange writes a value other than
        // the current one.
        word_lock::changed(address, || matches!(site.kind, CAS | XCHG) && read(address, site.size) == 0);
    }
    match site.kind {
        _ if !futile || !is_point => {}
        CAS => spin::failed(),
        _ => spin::in_vain(),
    }
    if futile && site.kind == CAS { Does::Load } else { Does::Update }
}

/// Whether the instruction will leave the memory unchanged: it tries a lock that is held, or its comparison
/// fails. A loop of such attempts waits for another thread. This function reads the memory as the instruction
/// will: if that is impossible, both fault.
fn is_futile(address: usize, site: &Site, registers: &[u64; 16]) -> bool {
    let register = || {
        let number = usize::from(site.register);
        if site.register < HIGH { registers[number % 16] } else { registers[number % 16] >> 8 }
    };
    let bits = 8 * u32::from(site.size.min(8));
    let kept = u64::MAX >> (64 - bits.max(8));
    match site.kind {
        CAS if site.size == 16 => {
            read(address, 8) != registers[0] || read(address.wrapping_add(8), 8) != registers[2]
        }
        // The only instruction of this kind whose operand is not in one register.
        CAS if site.register == HIGH => {
            let low = u64::from(u32::MAX);
            read(address, 8) != (registers[0] & low | registers[2] << 32)
        }
        CAS | LOCK => read(address, site.size) != registers[0] & kept,
        XCHG | UNLOCK => read(address, site.size) == register() & kept,
        SET => read(address, site.size) >> (u32::from(site.bit) % bits) & 1 != 0,
        SET_BY if register() & kept < u64::from(bits) => {
            read(address, site.size) >> (register() & kept) & 1 != 0
        }
        _ => false,
    }
}

fn read(address: usize, size: u8) -> u64 {
    program_memory::load(address, size.into())
}
