//! Holds machine code of a parked program and recognises its atomic instructions.

use heisen_wire::patch::{CAS, HIGH, RMW, SET, SET_BY, XCHG};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A range of code at its loaded address.
#[derive(Debug)]
pub struct Text {
    /// Its first address.
    pub start: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Text {
    pub(super) fn slice(&self, start: u64, end: u64) -> Option<&[u8]> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(end.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..to)
    }

    /// The byte at an address.
    pub fn byte(&self, address: u64) -> Option<u8> {
        self.bytes.get(usize::try_from(address.checked_sub(self.start)?).ok()?).copied()
    }

    pub(super) fn holds(&self, address: u64) -> bool {
        address >= self.start && address - self.start < self.bytes.len() as u64
    }
}

/// An atomic instruction, as described to the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// A kind from `heisen_wire::patch`.
    pub kind: u8,
    /// Bytes that it accesses.
    pub size: u8,
    /// See `heisen_wire::patch::Site`.
    pub register: u8,
    /// See `heisen_wire::patch::Site`.
    pub bit: u8,
    /// The number of the script's mark, if the site is only a mark.
    pub mark: Option<u32>,
}

/// Reads bytes from the memory of the process; fewer than asked for, if the rest is unreadable.
pub type Read<'a> = dyn Fn(u64, usize) -> Vec<u8> + 'a;

/// Describes an instruction that atomically accesses memory which other threads may use; `None` for other
/// instructions.
pub fn atomic(instruction: &Instruction) -> Option<Atomic> {
    let exchanges = instruction.mnemonic() == Mnemonic::Xchg;
    if !instruction.has_lock_prefix() && !exchanges {
        return None;
    }
    let (memory, size) = shared_operand(instruction)?;
    if is_fence(instruction) {
        return None;
    }
    let other = instruction.op_count() == 2 && instruction.op_kind(1 - memory) == OpKind::Register;
    let register = if other { instruction.op_register(1 - memory) } else { Register::None };
    let mut atomic = Atomic { kind: RMW, size, register: number_of(register), bit: 0, mark: None };
    match instruction.mnemonic() {
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg16b => {
            (atomic.kind, atomic.register) = (CAS, 0);
        }
        Mnemonic::Cmpxchg8b => (atomic.kind, atomic.register) = (CAS, HIGH),
        Mnemonic::Xchg => atomic.kind = XCHG,
        Mnemonic::Bts if other => atomic.kind = SET_BY,
        Mnemonic::Bts => {
            atomic.kind = SET;
            atomic.bit = instruction.immediate8();
        }
        _ => {}
    }
    Some(atomic)
}

/// The index and size of the memory operand that other threads may use.
pub(super) fn shared_operand(instruction: &Instruction) -> Option<(u32, u8)> {
    let memory = (0..instruction.op_count()).find(|&n| instruction.op_kind(n) == OpKind::Memory)?;
    // These segments are thread-local.
    if matches!(instruction.memory_segment(), Register::FS | Register::GS) {
        return None;
    }
    // Relative addresses of 32 bits do not occur in compiled code, and are hard to move.
    if matches!(instruction.memory_base(), Register::EIP | Register::ESP) {
        return None;
    }
    let size = u8::try_from(instruction.memory_size().size()).ok().filter(|size| *size > 0)?;
    Some((memory, size))
}

/// Whether the instruction leaves the thread's stack unchanged. Compilers write fences this way.
pub(super) fn is_fence(instruction: &Instruction) -> bool {
    let immediate =
        instruction.op_count() == 2 && !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    let nothing = match instruction.mnemonic() {
        Mnemonic::Or | Mnemonic::Add | Mnemonic::Xor | Mnemonic::Sub => {
            immediate && instruction.immediate(1) == 0
        }
        _ => false,
    };
    nothing && instruction.memory_base() == Register::RSP
}

/// See `heisen_wire::patch::Site::register`.
pub(super) fn number_of(register: Register) -> u8 {
    match register {
        Register::None => 0,
        Register::AH | Register::CH | Register::DH | Register::BH => {
            HIGH + (register as u8 - Register::AH as u8)
        }
        register if register.is_gpr() => register.full_register().number() as u8,
        _ => 0,
    }
}
