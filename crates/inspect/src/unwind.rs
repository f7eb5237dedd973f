//! Unwinds from a function to its caller, by the tables that compilers write for exceptions (`.eh_frame`) or
//! for debuggers (`.debug_frame`). It follows all registers that functions must preserve. Some frames can be
//! found only through them and through memory: those of functions that align their stack, and of signal
//! handlers.

use super::Registers;
use super::elf::{Elf, section};
use super::memory::StackMemory;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, Encoding, EndianSlice, Evaluation,
    EvaluationResult, Expression, LittleEndian, Location, Register, RegisterRule, UnwindContext,
    UnwindSection, UnwindTableRow, Value, X86_64,
};
use object::{Object, ObjectSection};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The longest frame that is believed for code without tables. Its frame pointer may be an arbitrary number.
const LONGEST_GUESS: u64 = 1 << 20;

/// The most steps of one table expression; real ones have fewer than ten.
const EXPRESSION_STEPS: u32 = 1000;

/// The known registers of a frame, by their DWARF numbers. The return address is the last.
#[derive(Clone, Debug)]
pub struct Cpu([Option<u64>; 17]);

impl Cpu {
    /// The registers of the innermost frame.
    pub fn new(registers: Registers) -> Cpu {
        let Registers { rip, rsp, rbp, rbx, r12, r13, r14, r15 } = registers;
        let mut cpu = Cpu([None; 17]);
        let known = [
            (X86_64::RA, rip),
            (X86_64::RSP, rsp),
            (X86_64::RBP, rbp),
            (X86_64::RBX, rbx),
            (X86_64::R12, r12),
            (X86_64::R13, r13),
            (X86_64::R14, r14),
            (X86_64::R15, r15),
        ];
        for (register, value) in known {
            cpu.set(register, Some(value));
        }
        cpu
    }

    fn get(&self, register: Register) -> Option<u64> {
        *self.0.get(usize::from(register.0))?
    }

    fn set(&mut self, register: Register, value: Option<u64>) {
        if let Some(slot) = self.0.get_mut(usize::from(register.0)) {
            *slot = value;
        }
    }

    /// Moves the frame to another instruction and raises the stack pointer by `higher`.
    pub fn be_at(&mut self, pc: u64, higher: u64) {
        self.set(X86_64::RA, Some(pc));
        self.set(X86_64::RSP, self.get(X86_64::RSP).map(|rsp| rsp.wrapping_add(higher)));
    }

    /// All registers, by their DWARF numbers.
    pub fn all(&self) -> [Option<u64>; 17] {
        self.0
    }

    /// The stack pointer.
    pub fn rsp(&self) -> Option<u64> {
        self.get(X86_64::RSP)
    }

    /// Whether registers are known that a call need not preserve. The frame is then in the middle of a
    /// function.
    pub fn is_mid_function(&self) -> bool {
        self.get(X86_64::RAX).is_some()
    }

    /// The instruction that runs next, or to which the called function returns.
    pub fn pc(&self) -> Option<u64> {
        self.get(X86_64::RA)
    }
}

/// The result of one unwinding step.
#[derive(Debug)]
pub enum Step {
    /// The registers are now the caller's.
    Caller,
    /// The registers are now those of the code that a signal interrupted. Its address is the next
    /// instruction, not one behind a call.
    Interrupted,
    /// There is no caller: the tables mark this as the outermost frame, or memory cannot be read.
    End,
    /// The tables have no entry for this code.
    Unknown,
}

/// Maps code to table entries: first address, address after the last, and offset of the entry.
type Index = Vec<(u64, u64, usize)>;

/// The unwind tables of a file.
#[derive(Debug)]
pub struct UnwindTables {
    eh_frame: Vec<u8>,
    eh_index: Index,
    debug_frame: Vec<u8>,
    debug_index: Index,
    bases: BaseAddresses,
}

impl UnwindTables {
    /// Reads the tables of a file. The sorted table that linkers add (`.eh_frame_hdr`) is not used: it adds
    /// nothing to the entries, may be missing, and could itself be wrong.
    pub fn new(elf: &Elf<'_>) -> UnwindTables {
        let mut bases = BaseAddresses::default();
        let address = |name| elf.section_by_name(name).map(|section| section.address());
        if let Some(at) = address(".eh_frame") {
            bases = bases.set_eh_frame(at);
        }
        if let Some(at) = address(".text") {
            bases = bases.set_text(at);
        }
        if let Some(at) = address(".got") {
            bases = bases.set_got(at);
        }
        let (eh_frame, debug_frame) = (section(elf, ".eh_frame"), section(elf, ".debug_frame"));
        let eh_index = index(&as_eh_frame(&eh_frame), &bases);
        let debug_index = index(&as_debug_frame(&debug_frame), &bases);
        UnwindTables { eh_frame, eh_index, debug_frame, debug_index, bases }
    }

    /// The code ranges that the tables describe, first address and end of each; mostly functions.
    pub fn functions(&self) -> impl Iterator<Item = (u64, u64)> {
        self.eh_index.iter().chain(&self.debug_index).map(|&(start, end, _)| (start, end))
    }

    /// Steps from the frame whose code is at `address` to its caller. `address` is before loading, and that
    /// of the call rather than behind it. On success the registers are the caller's.
    pub fn step(&self, address: u64, bias: u64, cpu: &mut Cpu, memory: &mut StackMemory) -> Step {
        if let Some(entry) = find(&self.eh_index, address) {
            self.apply(&as_eh_frame(&self.eh_frame), entry, address, bias, cpu, memory)
        } else if let Some(entry) = find(&self.debug_index, address) {
            self.apply(&as_debug_frame(&self.debug_frame), entry, address, bias, cpu, memory)
        } else {
            Step::Unknown
        }
    }

    fn apply<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        entry: usize,
        address: u64,
        bias: u64,
        cpu: &mut Cpu,
        memory: &mut StackMemory,
    ) -> Step {
        let Ok(fde) = section.fde_from_offset(&self.bases, entry.into(), S::cie_from_offset) else {
            return Step::Unknown;
        };
        let mut context = UnwindContext::new();
        let Ok(row) = fde.unwind_info_for_address(section, &self.bases, &mut context, address) else {
            return Step::Unknown;
        };
        let mut frame = Frame { section, encoding: fde.cie().encoding(), bias, cpu, memory };
        let interrupted = fde.is_signal_trampoline();
        match frame.caller(row, fde.cie().return_address_register(), interrupted) {
            Some(caller) => *cpu = caller,
            None => return Step::End,
        }
        if interrupted { Step::Interrupted } else { Step::Caller }
    }
}

fn as_eh_frame(bytes: &[u8]) -> EhFrame<Slice<'_>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section
}

fn as_debug_frame(bytes: &[u8]) -> DebugFrame<Slice<'_>> {
    let mut section = DebugFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section
}

/// Indexes all entries. It stops at an unreadable entry, because the beginning of the next one is then
/// unknown.
fn index<'a, S: UnwindSection<Slice<'a>>>(section: &S, bases: &BaseAddresses) -> Index {
    let mut out = Index::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(S::cie_from_offset)
            && let Some(end) = fde.initial_address().checked_add(fde.len())
        {
            out.push((fde.initial_address(), end, fde.offset()));
        }
    }
    out.sort_unstable();
    out
}

fn find(index: &Index, address: u64) -> Option<usize> {
    let after = index.partition_point(|&(start, _, _)| start <= address);
    index[..after].last().filter(|&&(_, end, _)| address < end).map(|&(_, _, entry)| entry)
}

/// One frame, while its caller is computed.
struct Frame<'f, S> {
    section: &'f S,
    encoding: Encoding,
    bias: u64,
    cpu: &'f Cpu,
    memory: &'f mut StackMemory,
}

impl<'a, S: UnwindSection<Slice<'a>>> Frame<'_, S> {
    fn caller(&mut self, row: &UnwindTableRow<usize>, ra: Register, interrupted: bool) -> Option<Cpu> {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.cpu.get(*register)?.checked_add_signed(*offset)?
            }
            CfaRule::Expression(expression) => self.evaluate(expression.get(self.section).ok()?, None)?,
        };
        // Stacks grow downwards, so every caller's frame is higher. A signal handler may run on another
        // stack, though.
        if !interrupted && cfa <= self.cpu.get(X86_64::RSP)? {
            return None;
        }
        // A register without a rule was preserved by the called function, or its value does not matter here.
        let mut caller = self.cpu.clone();
        caller.set(X86_64::RSP, Some(cfa));
        caller.set(X86_64::RA, None);
        for (register, rule) in row.registers() {
            let value = self.value(*register, rule, cfa);
            caller.set(if *register == ra { X86_64::RA } else { *register }, value);
        }
        caller.pc()?;
        Some(caller)
    }

    fn value(&mut self, register: Register, rule: &RegisterRule<usize>, cfa: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.cpu.get(register),
            RegisterRule::Offset(offset) => self.memory.word(cfa.checked_add_signed(*offset)?),
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(*offset),
            RegisterRule::Register(other) => self.cpu.get(*other),
            RegisterRule::Expression(expression) => {
                let at = self.evaluate(expression.get(self.section).ok()?, Some(cfa))?;
                self.memory.word(at)
            }
            RegisterRule::ValExpression(expression) => {
                self.evaluate(expression.get(self.section).ok()?, Some(cfa))
            }
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    fn evaluate(&mut self, expression: Expression<Slice<'a>>, initial: Option<u64>) -> Option<u64> {
        let mut evaluation: Evaluation<_> = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(EXPRESSION_STEPS);
        if let Some(value) = initial {
            evaluation.set_initial_value(value);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.cpu.get(register)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size, space: None, .. } => {
                    let value = self.memory.value(address, size.into())?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(self.bias)).ok()?
                }
                _ => return None,
            }
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

/// Steps to the caller without tables, if a guess is plausible. An address without code is a jump to a wild
/// address: its caller's return address is on top of the stack. Other code may have a frame pointer, which is
/// believed if it leads to an address that `is_code`.
pub fn guess(
    cpu: &mut Cpu,
    innermost: bool,
    is_code: impl Fn(u64) -> bool,
    memory: &mut StackMemory,
) -> bool {
    match guessed(cpu, innermost, &is_code, memory) {
        Some(caller) if caller.pc().is_some_and(is_code) => {
            *cpu = caller;
            true
        }
        _ => false,
    }
}

fn guessed(
    cpu: &Cpu,
    innermost: bool,
    is_code: impl Fn(u64) -> bool,
    memory: &mut StackMemory,
) -> Option<Cpu> {
    let mut caller = cpu.clone();
    let rsp = cpu.get(X86_64::RSP)?;
    let below = if innermost && !is_code(cpu.pc()?) {
        rsp
    } else {
        let rbp = cpu.get(X86_64::RBP)?;
        if rbp < rsp || rbp - rsp > LONGEST_GUESS || rbp % 8 != 0 {
            return None;
        }
        caller.set(X86_64::RBP, memory.word(rbp));
        rbp.checked_add(8)?
    };
    caller.set(X86_64::RA, memory.word(below));
    caller.set(X86_64::RSP, below.checked_add(8));
    Some(caller)
}
