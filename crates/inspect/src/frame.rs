//! Finds the frame in which a paused thread left the program: its first frame outside hidden modules. It
//! gives the known registers of that frame, and the saved registers on the stack that are in use.

use super::memory::{StackMemory, read_bytes};
use super::unwind::{Cpu, Step};
use super::{LONGEST_UNWOUND, Registers, View, call_of};
use std::ops::Range;

/// The runtime saves this many bytes below the stack pointer of a patched instruction
/// (`runtime::memory::patch`): the red zone and the general registers, and below them, aligned to 16 bytes,
/// the SSE registers.
const GENERAL: u64 = 304;
const SSE: u64 = 256;
/// The longest signal frame that is believed.
const LONGEST_FRAME: u64 = 1 << 16;
const PAGE: u64 = 4096;

/// A thread at the point where it left the program.
#[derive(Debug, PartialEq, Eq)]
pub struct ProgramFrame {
    /// Registers by their DWARF numbers; the address of the next instruction is the last. `None` for
    /// registers that a call need not preserve.
    pub registers: [Option<u64>; 17],
    /// The stack pointer. The memory above it belongs to the program.
    pub stack: u64,
    /// Saved registers that are in use because the frame is in the middle of a function.
    pub saved: Vec<Vec<u8>>,
}

impl View<'_> {
    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Writable memory outside hidden modules.
    pub fn writable(&self) -> impl Iterator<Item = Range<u64>> {
        let own = |m: &&super::Mapping| m.writable && !self.symbols.hidden.contains(&m.path);
        self.mappings.iter().filter(own).map(|m| m.start..m.end)
    }

    /// The address ranges of hidden modules, with the zero-initialised variables that have no bytes in the
    /// file.
    pub fn hidden(&self) -> impl Iterator<Item = Range<u64>> {
        let hidden = |image: &&super::Image| {
            self.module(image)
                .is_some_and(|module| self.symbols.hidden.iter().any(|path| path == module.path()))
        };
        self.images.iter().filter(hidden).map(|image| image.start..image.end.next_multiple_of(PAGE))
    }

    /// The first address of the mapping that holds an address.
    pub fn start_of_mapping(&self, address: u64) -> Option<u64> {
        self.mapping(address).map(|mapping| mapping.start)
    }

    /// The frame in which a thread left the program; `None` if it cannot be determined.
    pub fn program_frame(&self, registers: Registers) -> Option<ProgramFrame> {
        let mut memory = StackMemory::new(self.pid);
        let mut cpu = Cpu::new(registers);
        let mut after_call = false;
        let mut saved = Vec::new();
        for _ in 0..LONGEST_UNWOUND {
            let mut pc = cpu.pc()?;
            if let Some(moved) = self.symbols.moved.as_ref().and_then(|moved| moved.find(pc)) {
                pc = moved.of;
                cpu.be_at(moved.of, moved.lower);
                after_call = false;
            }
            let call = call_of(pc, after_call);
            if !self.is_hidden(call) {
                return Some(ProgramFrame { registers: cpu.all(), stack: cpu.rsp()?, saved });
            }
            let (below, mid_function) = (cpu.rsp()?, cpu.is_mid_function());
            after_call = match self.step(&mut cpu, call, &mut memory) {
                Step::Caller => true,
                Step::Interrupted => false,
                Step::Unknown | Step::End => return None,
            };
            let above = cpu.rsp()?;
            if !after_call {
                let length = above.checked_sub(below).filter(|length| *length < LONGEST_FRAME)?;
                saved.push(self.bytes(below, length)?);
            } else if !mid_function && cpu.is_mid_function() {
                saved.push(self.bytes(above.checked_sub(GENERAL)?, GENERAL)?);
                saved.push(self.bytes(above.checked_sub(GENERAL + SSE)? & !15, SSE)?);
            }
        }
        None
    }

    fn bytes(&self, at: u64, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        read_bytes(self.pid, at, &mut bytes).ok()?;
        Some(bytes)
    }
}
