//! Recognises spin loops that also compute something, such as `while (!flag) rounds++;`: no two rounds begin
//! in the same state, but the difference does not matter.
//!
//! Some rounds are single-stepped. The bits that differ between the beginnings of two rounds *vary*, and so
//! does everything computed from them. Suppose no branch, jump or address of a round depends on varying bits.
//! Then the next round takes the same path, and the bits that vary at its end are among those that varied
//! before. By induction the thread goes round for ever, unless another thread changes memory that it reads.
//! So the test has no false positives, just like the one for a loop that returns to the same state. A loop
//! that counts to a limit branches by varying bits, and one that walks through memory reads by them: neither
//! is taken for a spin loop.

use super::{Code, General, RIP, Traced, value};
use heisen_inspect::memory::read_bytes;
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind, Register,
    RflagsBits,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

/// The most instructions that are single-stepped.
const WATCHED: usize = 4_000;
/// How many rounds must take the same path.
const ROUNDS: usize = 3;
/// A loop is found after this many steps in a row at often visited places, and `VISITS` is how often one
/// round may pass its first instruction.
const OFTEN: usize = 64;
const VISITS: usize = 4;

/// An executed instruction.
#[derive(Debug)]
struct Taken {
    instruction: Instruction,
    /// The address ranges that it reads and writes.
    reads: Vec<(u64, u64)>,
    writes: Vec<(u64, u64)>,
    /// The registers from which its addresses are computed.
    through: Vec<Register>,
}

/// A spin loop that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// The address of its first instruction.
    pub(super) head: u64,
    /// The address of its last instruction.
    pub(super) last: u64,
    /// Whether memory differs after each round.
    pub(super) writes: bool,
}

/// The recorded steps of a thread.
struct Trace {
    taken: Vec<Taken>,
    /// The general registers before each step, and after the last.
    general: Vec<General>,
    /// The SSE and x87 registers before some of the steps.
    floating: HashMap<usize, Vec<u8>>,
    /// Written bytes: the step, the address, and the value before that step.
    written: Vec<(usize, u64, u8)>,
}

/// Steps through a loop. If it is a spin loop, the thread is then at the loop's first instruction, at least
/// one step from where it was.
pub(super) fn find(traced: &Traced, code: &mut Code) -> io::Result<Option<Loop>> {
    let Some(head) = head(traced, code)? else { return Ok(None) };
    let Some(trace) = Trace::record(traced, code, head)? else { return Ok(None) };
    let found = (1..=VISITS).find_map(|visits| trace.waits(traced.0, head, visits, &mut code.factory));
    Ok(found)
}

/// The lowest address that the thread passes again and again.
fn head(traced: &Traced, code: &mut Code) -> io::Result<Option<u64>> {
    let mut visits: HashMap<u64, usize> = HashMap::new();
    // How many steps in a row were at often visited addresses.
    let mut often = 0;
    while often < OFTEN && visits.values().sum::<usize>() < WATCHED / 4 {
        let rip = traced.general()?[RIP];
        if code.at(rip).is_none() {
            return Ok(None);
        }
        let times = visits.entry(rip).or_default();
        *times += 1;
        often = if *times > ROUNDS { often + 1 } else { 0 };
        if !traced.step()? {
            return Ok(None);
        }
    }
    Ok(visits.into_iter().filter(|(_, times)| *times > ROUNDS).map(|(rip, _)| rip).min())
}

impl Trace {
    /// Records some rounds, from the loop's first instruction until it is reached again.
    fn record(traced: &Traced, code: &mut Code, head: u64) -> io::Result<Option<Trace>> {
        let mut trace =
            Trace { taken: Vec::new(), general: Vec::new(), floating: HashMap::new(), written: Vec::new() };
        let mut begun = 0;
        for _ in 0..2 * WATCHED {
            let now = traced.general()?;
            if now[RIP] == head {
                begun += 1;
                trace.floating.insert(trace.taken.len(), traced.floating()?);
            }
            let done = begun > ROUNDS * VISITS || begun > ROUNDS && trace.taken.len() > WATCHED / 2;
            if done && now[RIP] == head {
                trace.general.push(now);
                return Ok(Some(trace));
            }
            if begun > 0 {
                let Some(instruction) = code.at(now[RIP]) else { return Ok(None) };
                let Some(taken) = Taken::new(&now, instruction, &mut code.factory) else { return Ok(None) };
                for &(from, to) in &taken.writes {
                    let mut bytes = vec![0; (to - from) as usize];
                    if read_bytes(traced.0, from, &mut bytes).is_err() {
                        return Ok(None);
                    }
                    trace
                        .written
                        .extend((from..to).zip(bytes).map(|(at, byte)| (trace.taken.len(), at, byte)));
                }
                trace.general.push(now);
                trace.taken.push(taken);
            } else if code.leaves(now[RIP]) {
                return Ok(None);
            }
            if !traced.step()? {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The loop, if it is a spin loop whose rounds pass its first instruction `visits` times.
    fn waits(
        &self,
        tid: i32,
        head: u64,
        visits: usize,
        factory: &mut InstructionInfoFactory,
    ) -> Option<Loop> {
        let begins: Vec<usize> =
            (0..self.general.len()).filter(|&at| self.general[at][RIP] == head).step_by(visits).collect();
        // The last rounds, each with its first and last step.
        let rounds: Vec<(usize, usize)> = begins.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let last = rounds.len().checked_sub(ROUNDS - 1)?;
        let way = |&(from, to): &(usize, usize)| self.general[from..to].iter().map(|general| general[RIP]);
        let (first, others) = rounds[last..].split_first()?;
        if others.iter().any(|other| !way(first).eq(way(other))) {
            return None;
        }
        let mut varies = Varies::default();
        for &round in &rounds[last..] {
            self.differences(tid, round, &mut varies, factory);
        }
        let round = &self.taken[first.0..first.1];
        loop {
            let mut after = varies.clone();
            if !round.iter().all(|taken| after.passes(taken, factory)) {
                return None;
            }
            if !varies.include(&after) {
                break;
            }
        }
        let last = way(first).max()?;
        Some(Loop { head, last, writes: varies.writes() })
    }

    /// Adds the bits that differ before two steps.
    fn differences(
        &self,
        tid: i32,
        (from, to): (usize, usize),
        varies: &mut Varies,
        factory: &mut InstructionInfoFactory,
    ) {
        for (register, before, after) in super::registers(&self.general[from], &self.general[to]) {
            *varies.registers.entry(register).or_default() |= before ^ after;
        }
        if super::flags(&self.general[from]) != super::flags(&self.general[to]) {
            varies.flags = true;
        }
        if self.floating.get(&from) != self.floating.get(&to) {
            // Which of these registers differ is not worth finding out.
            for taken in &self.taken {
                let used = factory.info(&taken.instruction).used_registers().iter().map(|u| u.register());
                varies.registers.extend(used.filter(|r| !r.is_gpr()).map(|r| (r.full_register(), u64::MAX)));
            }
        }
        let touched: BTreeSet<u64> =
            self.written.iter().filter(|(step, ..)| *step >= from).map(|&(_, at, _)| at).collect();
        for at in touched {
            let differs = match (self.byte(tid, from, at), self.byte(tid, to, at)) {
                (Some(before), Some(after)) => before ^ after,
                _ => u8::MAX,
            };
            *varies.memory.entry(at).or_default() |= differs;
        }
    }

    /// The value of a byte of memory before a step; `None` if it can no longer be read.
    fn byte(&self, tid: i32, step: usize, at: u64) -> Option<u8> {
        let later = self.written.iter().find(|&&(written, address, _)| written >= step && address == at);
        later.map(|&(_, _, byte)| byte).or_else(|| {
            let mut now = [0];
            read_bytes(tid, at, &mut now).ok().map(|()| now[0])
        })
    }
}

impl Taken {
    /// Returns `None` if the memory that it accesses is not known.
    fn new(
        general: &General,
        instruction: Instruction,
        factory: &mut InstructionInfoFactory,
    ) -> Option<Taken> {
        let mut taken = Taken { instruction, reads: Vec::new(), writes: Vec::new(), through: Vec::new() };
        for memory in factory.info(&instruction).used_memory() {
            if memory.access() == OpAccess::NoMemAccess {
                continue;
            }
            let size = memory.memory_size().size() as u64;
            if size == 0 || memory.memory_size() == MemorySize::Unknown {
                return None;
            }
            let from = memory.virtual_address(0, |register, _, _| value(general, register))?;
            taken.through.extend([memory.base(), memory.index()].map(Register::full_register));
            // A conditional write may leave the bytes unchanged, so it counts as a read too.
            if reads(memory.access()) || memory.access() == OpAccess::CondWrite {
                taken.reads.push((from, from + size));
            }
            if writes(memory.access()) {
                taken.writes.push((from, from + size));
            }
        }
        Some(taken)
    }
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Whether the old value is certainly overwritten.
fn overwrites(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::ReadWrite)
}

/// The bits that are not the same in every round.
#[derive(Clone, Debug, Default)]
struct Varies {
    /// By full register. In a register that is not a general one, all bits vary if one does.
    registers: HashMap<Register, u64>,
    flags: bool,
    memory: BTreeMap<u64, u8>,
}

/// All bits from the lowest varying one upwards: a sum may differ there because of carries.
fn carried(bits: u64) -> u64 {
    if bits == 0 { 0 } else { u64::MAX << bits.trailing_zeros() }
}

/// The bits of its full register that a register covers: the lowest bit, and a mask.
fn part(register: Register) -> (u32, u64) {
    let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    let bits = match register.size() {
        1 => 0xff,
        2 => 0xffff,
        4 => 0xffff_ffff,
        _ => u64::MAX,
    };
    (if high { 8 } else { 0 }, bits)
}

impl Varies {
    fn register(&self, register: Register) -> u64 {
        let (shift, bits) = part(register);
        self.registers.get(&register.full_register()).map_or(0, |varied| varied >> shift & bits)
    }

    fn set_register(&mut self, register: Register, varied: u64) {
        let (shift, bits) = part(register);
        let whole = self.registers.entry(register.full_register()).or_default();
        // A write of four bytes clears the upper half.
        *whole = match bits {
            0xff | 0xffff => *whole & !(bits << shift) | (varied & bits) << shift,
            _ => varied & bits,
        };
    }

    fn bytes(&self, &(from, to): &(u64, u64)) -> u64 {
        let varied = |(at, bits): (&u64, &u8)| u64::from(*bits) << (8 * ((at - from) % 8));
        self.memory.range(from..to).map(varied).fold(0, |all, bits| all | bits)
    }

    fn set_bytes(&mut self, &(from, to): &(u64, u64), varied: u64) {
        for at in from..to {
            self.memory.insert(at, (varied >> (8 * ((at - from) % 8))) as u8);
        }
    }

    /// Adds the bits that vary elsewhere. Returns whether there are new ones.
    fn include(&mut self, other: &Varies) -> bool {
        let mut more = other.flags && !self.flags;
        self.flags |= other.flags;
        for (&register, &bits) in &other.registers {
            let own = self.registers.entry(register).or_default();
            more |= bits & !*own != 0;
            *own |= bits;
        }
        for (&at, &bits) in &other.memory {
            let own = self.memory.entry(at).or_default();
            more |= bits & !*own != 0;
            *own |= bits;
        }
        more
    }

    fn writes(&self) -> bool {
        self.memory.values().any(|&bits| bits != 0)
    }

    /// The varying bits of an operand, for an instruction with at most one operand in memory.
    fn operand(&self, taken: &Taken, number: u32) -> u64 {
        match taken.instruction.op_kind(number) {
            OpKind::Register => self.register(taken.instruction.op_register(number)),
            OpKind::Memory => taken.reads.first().map_or(0, |read| self.bytes(read)),
            _ => 0,
        }
    }

    /// The varying bits of an instruction's first operand after it, where they are known more precisely than
    /// "some operand varies".
    fn result(&self, taken: &Taken) -> Option<u64> {
        let instruction = &taken.instruction;
        if taken.reads.len() > 1 || taken.writes.len() > 1 || instruction.op0_register().is_vector_register()
        {
            return None;
        }
        let both = || self.operand(taken, 0) | self.operand(taken, 1);
        Some(match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => self.operand(taken, 1),
            Mnemonic::And | Mnemonic::Test if is_immediate(instruction.op1_kind()) => {
                self.operand(taken, 0) & instruction.immediate(1)
            }
            Mnemonic::Add | Mnemonic::Sub => carried(both()),
            Mnemonic::Inc | Mnemonic::Dec => carried(self.operand(taken, 0)),
            _ => return None,
        })
    }

    /// Executes an instruction on the varying bits. Returns false if its target or its memory address depends
    /// on varying bits.
    fn passes(&mut self, taken: &Taken, factory: &mut InstructionInfoFactory) -> bool {
        let instruction = &taken.instruction;
        if taken.through.iter().any(|&register| self.register(register) != 0) {
            return false;
        }
        let used = factory.info(instruction).used_registers();
        let varied = used.iter().any(|u| reads(u.access()) && self.register(u.register()) != 0)
            || instruction.rflags_read() != 0 && self.flags
            || taken.reads.iter().any(|read| self.bytes(read) != 0);
        if varied && instruction.flow_control() != FlowControl::Next {
            return false;
        }
        let any = if varied { u64::MAX } else { 0 };
        let known = self.result(taken);
        let bits = known.unwrap_or(any);
        let modified = instruction.rflags_modified();
        if modified != 0 {
            let whole = modified & ARITHMETIC == ARITHMETIC;
            // The flags of a conjunction depend on the result alone.
            let by_result =
                matches!(instruction.mnemonic(), Mnemonic::And | Mnemonic::Test) && known.is_some();
            self.flags = if by_result { bits != 0 } else { varied } || self.flags && !whole;
        }
        for register in used.iter().filter(|u| writes(u.access())) {
            let own = if overwrites(register.access()) { 0 } else { self.register(register.register()) };
            self.set_register(register.register(), bits | own);
        }
        for part in &taken.writes {
            self.set_bytes(part, bits);
        }
        true
    }
}

/// The flags that arithmetic sets.
const ARITHMETIC: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

fn is_immediate(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Register | OpKind::Memory)
}
