//! Writes trampolines: code that calls the runtime before each atomic instruction of a piece, then executes
//! the piece and continues behind it.
//!
//! ```text
//!     lea  rsp, [rsp - 128]        skip the red zone
//!     push rdi
//!     push rsi
//!     lea  rdi, OPERAND            the memory that will be accessed
//!     lea  rsi, [rip + SITE]       the description of the instruction
//!     call [rip + ENTRY]           runtime::memory::patch, which preserves all other registers
//!     pop  rsi
//!     pop  rdi
//!     lea  rsp, [rsp + 128]
//!     lock ...                     the instruction itself
//!     jmp  BEHIND
//! ```
//!
//! None of these instructions changes a flag.

use super::code::Atomic;
use super::find::Piece;
use heisen_inspect::MovedPiece;
use heisen_wire::patch::ASIDE;
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, FlowControl, IcedError, Instruction, InstructionBlock,
    MemoryOperand, OpKind, Register,
};

/// Size of the red zone in bytes.
const RED_ZONE: i64 = 128;

/// An upper bound of a trampoline's size, for each instruction of its piece.
pub const MOST_BYTES: usize = 96;

/// A trampoline.
#[derive(Debug)]
pub struct Trampoline {
    /// Its code.
    pub code: Vec<u8>,
    /// Maps the trampoline's code to the instructions that it replaces.
    pub moved: Vec<MovedPiece>,
}

/// Writes the trampoline of a piece for the address `at`. `entry` is the address of a word that holds the
/// address of the runtime's function. `site` stores the description of an atomic instruction and returns its
/// address.
pub fn write(
    piece: &Piece,
    at: u64,
    entry: u64,
    mut site: impl FnMut(&Instruction, Atomic) -> u64,
) -> Result<Trampoline, IcedError> {
    let mut out: Vec<Instruction> = Vec::new();
    // For each instruction: the program's instruction that it replaces, and how much lower the stack pointer
    // is.
    let mut stands_for: Vec<(u64, u64)> = Vec::new();
    for (instruction, atomic) in &piece.instructions {
        if let Some(atomic) = atomic {
            let described = site(instruction, *atomic);
            let told = if atomic.mark.is_some() { stack_pointer()? } else { address_of_operand(instruction) };
            for (code, lower) in hook(told, described, entry)? {
                out.push(code);
                stands_for.push((instruction.ip(), lower));
            }
        }
        // Moved instructions get no address of their own, so that a jump to the beginning of the piece passes
        // the hook again.
        let mut own = *instruction;
        own.set_ip(0);
        out.push(own);
        stands_for.push((instruction.ip(), 0));
    }
    let goes_on = piece.instructions.last().is_some_and(|(last, _)| {
        !matches!(last.flow_control(), FlowControl::UnconditionalBranch | FlowControl::Return)
    });
    if goes_on {
        out.push(Instruction::with_branch(Code::Jmp_rel32_64, piece.end())?);
        stands_for.push((piece.end(), 0));
    }
    let block = InstructionBlock::new(&out, at);
    let encoded = BlockEncoder::encode(64, block, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
    let offsets = encoded.new_instruction_offsets.iter().zip(stands_for);
    let moved = offsets
        // An instruction that the encoder had to rewrite has no offset of its own, and counts as part of the
        // one before it.
        .filter(|(offset, _)| **offset != u32::MAX)
        .map(|(&offset, (of, lower))| MovedPiece { start: at + u64::from(offset), of, lower })
        .collect();
    Ok(Trampoline { code: encoded.code_buffer, moved })
}

/// The call of the runtime: each instruction with how much lower the stack pointer is before it.
fn hook(told: Instruction, site: u64, entry: u64) -> Result<[(Instruction, u64); 9], IcedError> {
    let rip = |target: u64| MemoryOperand::with_base_displ(Register::RIP, target as i64);
    let shift = |by| MemoryOperand::with_base_displ(Register::RSP, by);
    let lower = ASIDE as u64;
    Ok([
        (Instruction::with2(Code::Lea_r64_m, Register::RSP, shift(-RED_ZONE))?, 0),
        (Instruction::with1(Code::Push_r64, Register::RDI)?, RED_ZONE as u64),
        (Instruction::with1(Code::Push_r64, Register::RSI)?, lower - 8),
        (told, lower),
        (Instruction::with2(Code::Lea_r64_m, Register::RSI, rip(site))?, lower),
        (Instruction::with1(Code::Call_rm64, rip(entry))?, lower),
        (Instruction::with1(Code::Pop_r64, Register::RSI)?, lower),
        (Instruction::with1(Code::Pop_r64, Register::RDI)?, lower - 8),
        (Instruction::with2(Code::Lea_r64_m, Register::RSP, shift(RED_ZONE))?, RED_ZONE as u64),
    ])
}

/// Loads the program's stack pointer into rdi; the actual one is lower by [`ASIDE`].
fn stack_pointer() -> Result<Instruction, IcedError> {
    let operand = MemoryOperand::with_base_displ(Register::RSP, ASIDE.into());
    Instruction::with2(Code::Lea_r64_m, Register::RDI, operand)
}

/// Loads the address of the instruction's memory operand into rdi; the stack pointer is lower by [`ASIDE`].
fn address_of_operand(instruction: &Instruction) -> Instruction {
    let mut lea = Instruction::default();
    lea.set_code(Code::Lea_r64_m);
    lea.set_op0_kind(OpKind::Register);
    lea.set_op0_register(Register::RDI);
    lea.set_op1_kind(OpKind::Memory);
    lea.set_memory_base(instruction.memory_base());
    lea.set_memory_index(instruction.memory_index());
    lea.set_memory_index_scale(instruction.memory_index_scale());
    lea.set_memory_displ_size(instruction.memory_displ_size());
    lea.set_memory_displacement64(instruction.memory_displacement64());
    if instruction.memory_base() == Register::RSP {
        lea.set_memory_displacement64(instruction.memory_displacement64().wrapping_add(ASIDE as u64));
        // One byte may no longer suffice.
        lea.set_memory_displ_size(8);
    }
    lea
}
