//! Finds out whether a caller ignores the result of a call, by decoding the instructions after the call.
//!
//! It follows every path from the return address until the path overwrites `rax`. An unknown instruction counts
//! as a use of `rax`, and so does a return: the answer "ignored" is therefore always right. A direct call is
//! followed into the called function, because a compiler knows which registers a function of the same file
//! preserves. Calls to other modules and calls through a pointer overwrite `rax`, by the ABI. The decoder knows
//! the instructions that compilers emit around a call statement: moves, arithmetic, stack operations and jumps.

/// The largest number of instructions that are decoded.
const MOST: usize = 256;
/// The largest number of open branches, and of nested calls.
const BRANCHES: usize = 16;
const CALLS: usize = 4;

/// What an instruction does to `rax`, and where execution continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It leaves `rax` as it is.
    Nothing,
    /// It may read `rax`, or the decoder does not know it.
    Uses,
    /// It writes all of `rax` without reading it.
    Overwrites,
    /// Execution continues at the target.
    Jumps(usize),
    /// Execution continues at the target or at the next instruction.
    Branches(usize),
    /// Execution continues at the target and later returns to the next instruction.
    Calls(usize),
    Returns,
}

/// Where a path continues, and the return addresses of the calls that it is in.
#[derive(Clone, Copy)]
struct Path {
    at: usize,
    calls: [usize; CALLS],
    depth: usize,
}

/// Whether the caller at return address `pc` ignores the result.
pub fn is_ignored(pc: usize) -> bool {
    // SAFETY: `pc` and every address reached from it are code of the program: they follow a call or are the
    // target of a jump, and code ends with an instruction that the decoder does not pass.
    follow(pc, |at| unsafe { *(at as *const u8) })
}

/// The same, for code whose bytes the given function reads.
pub fn follow(pc: usize, byte: impl Fn(usize) -> u8) -> bool {
    let mut open = [Path { at: pc, calls: [0; CALLS], depth: 0 }; BRANCHES];
    let mut count = 1;
    // The targets of the branches followed so far, outside of calls.
    let mut seen = [0; BRANCHES];
    let mut branches = 0;
    let mut budget = MOST;
    while count > 0 {
        count -= 1;
        let mut path = open[count];
        loop {
            if budget == 0 {
                return false;
            }
            budget -= 1;
            let (length, does) = decode(path.at, &byte);
            let next = path.at + length;
            path.at = match does {
                Does::Nothing => next,
                Does::Uses => return false,
                Does::Overwrites => break,
                Does::Jumps(to) => to,
                Does::Branches(to) => {
                    let known = path.depth == 0 && seen[..branches].contains(&to);
                    if !known {
                        if count == BRANCHES || branches == BRANCHES {
                            return false;
                        }
                        seen[branches] = if path.depth == 0 { to } else { 0 };
                        branches += 1;
                        open[count] = Path { at: to, ..path };
                        count += 1;
                    }
                    next
                }
                Does::Calls(to) => {
                    if path.depth == CALLS {
                        return false;
                    }
                    path.calls[path.depth] = next;
                    path.depth += 1;
                    to
                }
                Does::Returns if path.depth > 0 => {
                    path.depth -= 1;
                    path.calls[path.depth]
                }
                Does::Returns => return false,
            };
        }
    }
    true
}

/// The operands of an instruction: one register, and a second register or memory.
struct Operands {
    /// The length in bytes, from the ModRM byte on.
    length: usize,
    reg: u8,
    /// The second operand, if it is a register.
    rm: Option<u8>,
    /// Whether the memory address depends on `rax`.
    by_rax: bool,
    /// Whether the memory address is relative to the instruction.
    is_relative: bool,
}

const RAX: u8 = 0;

fn operands(at: usize, rex: u8, byte: &impl Fn(usize) -> u8) -> Operands {
    let modrm = byte(at);
    let (mode, low) = (modrm >> 6, modrm & 7);
    let reg = modrm >> 3 & 7 | (rex & 4) << 1;
    let mut found = Operands { length: 1, reg, rm: None, by_rax: false, is_relative: false };
    if mode == 3 {
        found.rm = Some(low | (rex & 1) << 3);
        return found;
    }
    let mut base = Some(low | (rex & 1) << 3);
    let mut wide = mode == 2;
    if low == 4 {
        let sib = byte(at + 1);
        found.length += 1;
        let index = sib >> 3 & 7 | (rex & 2) << 2;
        // Index 4 (the stack pointer) means that there is no index; `rax` is index 0.
        found.by_rax = index == RAX;
        base = Some(sib & 7 | (rex & 1) << 3);
        if mode == 0 && sib & 7 == 5 {
            (base, wide) = (None, true);
        }
    } else if mode == 0 && low == 5 {
        (base, wide) = (None, true);
        found.is_relative = true;
    }
    found.by_rax |= base == Some(RAX);
    found.length += if wide { 4 } else { usize::from(mode == 1) };
    found
}

/// Decodes the instruction at an address: its length and its effect.
fn decode(start: usize, byte: &impl Fn(usize) -> u8) -> (usize, Does) {
    let (mut at, mut narrow, mut rex) = (start, false, 0);
    // Prefixes: 16-bit operands, segments, branch hints, `rep`.
    while matches!(byte(at), 0x66 | 0x2e | 0x3e | 0x64 | 0xf2 | 0xf3) && at - start < 8 {
        narrow |= byte(at) == 0x66;
        at += 1;
    }
    if byte(at) & 0xf0 == 0x40 {
        rex = byte(at);
        at += 1;
    }
    let opcode = byte(at);
    at += 1;
    let number = |at: usize| i32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
    let far = |at: usize| (at + 4).wrapping_add_signed(number(at) as isize);
    let near = |at: usize| (at + 1).wrapping_add_signed(isize::from(byte(at) as i8));
    let length = |end: usize| end - start;
    let register = opcode & 7 | (rex & 1) << 3;
    // Writing a part of `rax` does not overwrite it.
    let writes = |register: u8| match register {
        RAX if narrow => Does::Uses,
        RAX => Does::Overwrites,
        _ => Does::Nothing,
    };
    let given = operands(at, rex, byte);
    let end = at + given.length;
    let reads = given.by_rax || given.rm == Some(RAX);
    let unless = |used: bool, does: Does| if used { Does::Uses } else { does };
    match opcode {
        // Arithmetic and comparison of a register and another operand. A register minus itself, or xor itself,
        // is zero.
        0x29 | 0x2b | 0x31 | 0x33 if given.rm == Some(given.reg) => (length(end), writes(given.reg)),
        0x01 | 0x03 | 0x09 | 0x0b | 0x21 | 0x23 | 0x29 | 0x2b | 0x31 | 0x33 | 0x39 | 0x3b | 0x85 => {
            (length(end), unless(reads || given.reg == RAX, Does::Nothing))
        }
        0x81 if !narrow => (length(end + 4), unless(reads, Does::Nothing)),
        0x83 => (length(end + 1), unless(reads, Does::Nothing)),
        // Arithmetic on and moves to bytes in memory.
        0x80 | 0xc6 if given.rm.is_none() => (length(end + 1), unless(reads, Does::Nothing)),
        // Moves.
        0x89 => match given.rm {
            Some(to) => (length(end), unless(given.reg == RAX, writes(to))),
            None => (length(end), unless(reads || given.reg == RAX, Does::Nothing)),
        },
        0x8b | 0x63 => (length(end), unless(reads, writes(given.reg))),
        0x8d if given.rm.is_none() => (length(end), unless(reads, writes(given.reg))),
        0xb8..=0xbf if rex & 8 != 0 => (length(at + 8), writes(register)),
        0xb8..=0xbf if !narrow => (length(at + 4), writes(register)),
        0xc7 if !narrow && given.reg & 7 == 0 => match given.rm {
            Some(to) => (length(end + 4), writes(to)),
            None => (length(end + 4), unless(reads, Does::Nothing)),
        },
        // The stack.
        0x50..=0x57 => (length(at), unless(register == RAX, Does::Nothing)),
        0x58..=0x5f => (length(at), writes(register)),
        0x90 if rex == 0 => (length(at), Does::Nothing),
        0xc9 => (length(at), Does::Nothing),
        // Jumps and calls.
        0x70..=0x7f => (length(at + 1), Does::Branches(near(at))),
        0xeb => (length(at + 1), Does::Jumps(near(at))),
        0xe9 => (length(at + 4), Does::Jumps(far(at))),
        0xe8 => (length(at + 4), Does::Calls(far(at))),
        0xc3 => (length(at), Does::Returns),
        0xff => match given.reg & 7 {
            0 | 1 => (length(end), unless(reads, Does::Nothing)),
            2 => (length(end), unless(reads, Does::Overwrites)),
            // A jump through the table of imported functions: a tail call to another module.
            4 if given.is_relative => (length(end), Does::Overwrites),
            _ => (length(end), Does::Uses),
        },
        0x0f => two_bytes(start, at, rex, narrow, byte),
        _ => (length(at), Does::Uses),
    }
}

/// Decodes an instruction with a two-byte opcode, whose second byte is at `at`.
fn two_bytes(start: usize, at: usize, rex: u8, narrow: bool, byte: &impl Fn(usize) -> u8) -> (usize, Does) {
    let given = operands(at + 1, rex, byte);
    let end = at + 1 + given.length;
    let far = || {
        let number = i32::from_le_bytes([byte(at + 1), byte(at + 2), byte(at + 3), byte(at + 4)]);
        (at + 5).wrapping_add_signed(number as isize)
    };
    match byte(at) {
        // `nop`, and `endbr64`, which marks a valid jump target.
        0x1f => (end - start, Does::Nothing),
        0x1e if byte(at + 1) == 0xfa => (end - start, Does::Nothing),
        0x80..=0x8f => (at + 5 - start, Does::Branches(far())),
        // Moves that extend one or two bytes. Without a REX prefix, byte register 4 is `ah`, a part of `rax`.
        0xb6 | 0xb7 | 0xbe | 0xbf => {
            let used = given.by_rax || given.rm.is_some_and(|rm| rm & 3 == 0);
            let whole = given.reg == RAX && !narrow;
            let does = if whole { Does::Overwrites } else { Does::Nothing };
            (end - start, if used || given.reg == RAX && narrow { Does::Uses } else { does })
        }
        _ => (end - start, Does::Uses),
    }
}
