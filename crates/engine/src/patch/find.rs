//! Finds the atomic instructions in machine code, and for each the piece of code that must move so that a
//! jump fits in its place.
//!
//! Patching bytes that are not an instruction would destroy the program, so the search is careful. Code is
//! decoded from the beginnings of functions, which the unwind tables give. A function with anything
//! inconsistent (an unknown instruction, a jump into the middle of one, bytes that differ from the file) is
//! skipped entirely. A piece of several instructions moves only if nothing jumps into it. The targets of a
//! jump through a table are not known for sure. In a function with such a jump, a piece is therefore a single
//! instruction.

use super::code::{Atomic, Read, Text, atomic, shared_operand};
use super::locks::{Call, Function, Locks, Role, Roles};
use super::marks::Marks;
use super::std_functions::Treatment;
use heisen_wire::patch::{LOAD, MARK, STORE};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::HashMap;

/// The length of a jump instruction in bytes.
pub const JUMP: u64 = 5;
/// How many instructions before and after an atomic one may move with it. Four suffice for a jump, as each
/// has at least one byte.
const NEIGHBOURS: usize = 4;
/// A function with a frame pointer sets it within this many instructions.
const PROLOGUE: usize = 4;
/// The largest jump table that is believed, in entries.
const MOST_ENTRIES: usize = 1 << 16;

/// Instructions that move together.
#[derive(Debug)]
pub struct Piece {
    /// The instructions, each with its description if it is atomic or marked.
    pub instructions: Vec<(Instruction, Option<Atomic>)>,
    /// Whether there is no room for a jump, so that a breakpoint replaces the instruction.
    pub trap: bool,
}

impl Piece {
    /// How many marked places the piece contains.
    pub fn marks(&self) -> usize {
        self.instructions.iter().filter(|(_, site)| site.is_some_and(|site| site.mark.is_some())).count()
    }

    /// Its first address.
    pub fn start(&self) -> u64 {
        self.instructions.first().map_or(0, |(instruction, _)| instruction.ip())
    }

    /// The address after it.
    pub fn end(&self) -> u64 {
        self.instructions.last().map_or(0, |(instruction, _)| instruction.next_ip())
    }
}

/// The search result for one module.
#[derive(Debug, Default)]
pub struct Found {
    /// The pieces to be moved, by address.
    pub pieces: Vec<Piece>,
    /// The number of atomic instructions in the pieces.
    pub sites: usize,
    /// The number of skipped functions that may contain atomic instructions.
    pub odd: usize,
    /// Calls to be redirected to the runtime.
    pub calls: Vec<Call>,
}

/// What to search for besides marks.
#[derive(Clone, Copy)]
pub struct Want<'a> {
    /// Whether to find atomic instructions. The function says how to treat a function that begins at an
    /// address and has any.
    pub atomics: Option<&'a dyn Fn(u64) -> Treatment>,
    /// Whether the program runs. Then a patch may change only one byte at a time, so every site becomes a
    /// breakpoint.
    pub live: bool,
    /// The functions by which locks are recognised; empty if locks are not to be recognised.
    pub roles: &'a Roles,
}

/// Finds the pieces to be moved in a module with known functions. In a module that is not to be patched
/// otherwise, it finds only `marks`.
pub fn find(
    texts: &[Text],
    functions: &[(u64, u64)],
    read: &Read<'_>,
    marks: &Marks,
    Want { atomics, live, roles }: Want<'_>,
) -> Found {
    let mut found = Found::default();
    let mut targets = Targets::default();
    let mut with_sites = Vec::new();
    let mut survey = Survey::default();
    let mut of_locks = OfLocks { roles, read, known: HashMap::new() };
    for &(start, end) in functions {
        let Some(bytes) = texts.iter().find_map(|text| text.slice(start, end)) else { continue };
        let marked = marks.range(start..end).next().is_some();
        survey.look(bytes, start, texts, marked, &mut targets, &mut of_locks);
        if survey.is_indirect {
            for &(table, size) in &survey.tables {
                add_table(table, size, texts, read, &mut targets.guessed);
            }
        }
        let treatment = atomics.filter(|_| survey.may_have_sites).map(|treat| treat(start));
        let treatment = treatment.unwrap_or(Treatment::Nothing);
        if treatment != Treatment::Nothing || marked {
            if survey.fits {
                with_sites.push((start, end, survey.is_indirect, treatment));
            } else {
                found.odd += 1;
            }
        }
    }
    targets.sort();
    for (start, end, indirect, treatment) in with_sites {
        let Some(bytes) = texts.iter().find_map(|text| text.slice(start, end)) else { continue };
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter().collect();
        // A jump from elsewhere into the middle of an instruction shows that the code was decoded wrongly.
        let begins = |t: &u64| instructions.binary_search_by_key(t, Instruction::ip).is_ok();
        if between(&targets.known, start, end).iter().all(begins) {
            let framed = instructions.iter().take(PROLOGUE).any(sets_frame_pointer);
            let locks = match treatment {
                Treatment::Nothing => Locks::default(),
                _ => Function { instructions: &instructions, roles, read }.locks(),
            };
            found.calls.extend(&locks.calls);
            let own = |instruction: &Instruction| {
                let site = match treatment {
                    Treatment::Nothing => None,
                    Treatment::Atomics => atomic(instruction),
                    Treatment::Accesses => atomic(instruction).or_else(|| access(instruction, framed)),
                }?;
                Some(Atomic {
                    kind: *locks.instructions.get(&instruction.ip()).unwrap_or(&site.kind),
                    ..site
                })
            };
            let site = |instruction: &Instruction| match marks.get(&instruction.ip()) {
                Some(&mark) => Some(Atomic { kind: MARK, size: 0, register: 0, bit: 0, mark: Some(mark) }),
                None => own(instruction),
            };
            cut(&instructions, (&targets, indirect), live, &mut found, site);
        } else {
            found.odd += 1;
        }
    }
    found
}

/// Addresses that may be jumped to.
#[derive(Default)]
struct Targets {
    /// Targets named by a jump or call.
    known: Vec<u64>,
    /// Targets that come from a computed address or a possible jump table.
    guessed: Vec<u64>,
}

impl Targets {
    fn sort(&mut self) {
        for list in [&mut self.known, &mut self.guessed] {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// Whether there is a target from `start` to before `end`.
    fn any_in(&self, start: u64, end: u64) -> bool {
        [&self.known, &self.guessed].iter().any(|list| !between(list, start, end).is_empty())
    }
}

/// The elements of a sorted list that are at least `start` and below `end`.
fn between(sorted: &[u64], start: u64, end: u64) -> &[u64] {
    let from = sorted.partition_point(|&n| n < start);
    let to = sorted.partition_point(|&n| n < end);
    &sorted[from..to.max(from)]
}

/// Recognises the functions that belong to locks.
struct OfLocks<'a> {
    roles: &'a Roles,
    read: &'a Read<'a>,
    /// For each word that may hold a function's address: whether it is the address of such a function.
    known: HashMap<u64, bool>,
}

impl OfLocks<'_> {
    /// Whether an instruction calls one of these functions or loads its address.
    fn is_named_by(&mut self, instruction: &Instruction) -> bool {
        if self.roles.is_empty() {
            return false;
        }
        let is_of_lock = |target: u64| matches!(self.roles.get(&target), Some(Role::Contended | Role::Wake));
        if instruction.op0_kind() == OpKind::NearBranch64 {
            return is_of_lock(instruction.near_branch_target());
        }
        let may_load =
            matches!(instruction.flow_control(), FlowControl::IndirectCall | FlowControl::IndirectBranch)
                || instruction.code() == Code::Mov_r64_rm64;
        if !may_load || !instruction.is_ip_rel_memory_operand() {
            return false;
        }
        let word = instruction.ip_rel_memory_address();
        *self.known.entry(word).or_insert_with(|| {
            let bytes: Option<[u8; 8]> = (self.read)(word, 8).try_into().ok();
            bytes.is_some_and(|bytes| is_of_lock(u64::from_le_bytes(bytes)))
        })
    }
}

/// The result of a first pass over a function.
#[derive(Default)]
struct Survey {
    /// Whether it contains an atomic instruction, as far as it can be decoded.
    may_have_sites: bool,
    /// Whether all of it decodes consistently.
    fits: bool,
    /// Whether it has a jump to a computed address.
    is_indirect: bool,
    /// Where the tables of such jumps may be, and the size of an entry.
    tables: Vec<(u64, usize)>,
    /// First addresses of its instructions, and its jump targets inside itself. The vectors are reused for
    /// each function.
    starts: Vec<u64>,
    own: Vec<u64>,
}

impl Survey {
    /// Surveys one function. Adds to `targets` the addresses that it jumps to or takes, except its own
    /// beginning. Targets inside the function itself matter only if something in it is to be moved.
    fn look(
        &mut self,
        bytes: &[u8],
        start: u64,
        texts: &[Text],
        marked: bool,
        targets: &mut Targets,
        of_locks: &mut OfLocks<'_>,
    ) {
        let end = start + bytes.len() as u64;
        (self.may_have_sites, self.fits, self.is_indirect) = (false, true, false);
        self.tables.clear();
        self.starts.clear();
        self.own.clear();
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                self.fits = false;
                // The bytes after an undecodable instruction are unknown. If one of them is the `lock`
                // prefix, the function counts as having atomic instructions.
                self.may_have_sites |= bytes.contains(&0xf0);
                break;
            }
            self.starts.push(instruction.ip());
            self.may_have_sites |= atomic(&instruction).is_some() || of_locks.is_named_by(&instruction);
            match instruction.flow_control() {
                FlowControl::Next => {}
                FlowControl::IndirectBranch => {
                    let one_word = instruction.is_ip_rel_memory_operand();
                    self.is_indirect |= !one_word;
                    if instruction.op0_kind() == OpKind::Memory && !one_word {
                        self.tables.push((instruction.memory_displacement64(), 8));
                    }
                    continue;
                }
                _ => {
                    if matches!(
                        instruction.op0_kind(),
                        OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16
                    ) {
                        let target = instruction.near_branch_target();
                        if (start..end).contains(&target) {
                            self.own.push(target);
                        } else {
                            targets.known.push(target);
                        }
                    }
                    continue;
                }
            }
            if instruction.is_ip_rel_memory_operand() {
                let address = instruction.ip_rel_memory_address();
                if instruction.mnemonic() == Mnemonic::Lea {
                    self.tables.push((address, 4));
                    if texts.iter().any(|text| text.holds(address)) {
                        targets.guessed.push(address);
                    }
                }
            } else if instruction.memory_index_scale() == 8 && instruction.memory_base() == Register::None {
                self.tables.push((instruction.memory_displacement64(), 8));
            } else if matches!(
                instruction.code(),
                Code::Mov_r32_imm32 | Code::Mov_r64_imm64 | Code::Mov_rm64_imm32
            ) {
                let address = instruction.immediate(1);
                if texts.iter().any(|text| text.holds(address)) {
                    targets.guessed.push(address);
                }
            }
        }
        if self.may_have_sites || marked {
            self.fits &= self.own.iter().all(|target| self.starts.binary_search(target).is_ok());
            targets.known.extend(&self.own);
        }
    }
}

/// Adds the possible entries of a jump table: offsets relative to the table, or addresses, as long as they
/// lead into code.
fn add_table(table: u64, size: usize, texts: &[Text], read: &Read<'_>, guessed: &mut Vec<u64>) {
    const AT_ONCE: usize = 4096;
    for part in 0..MOST_ENTRIES * size / AT_ONCE {
        let bytes = read(table.wrapping_add((part * AT_ONCE) as u64), AT_ONCE);
        for entry in bytes.chunks_exact(size) {
            let number = entry.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            let target = if size == 4 { table.wrapping_add(number as u32 as i32 as u64) } else { number };
            if !texts.iter().any(|text| text.holds(target)) {
                return;
            }
            guessed.push(target);
        }
        if bytes.len() < AT_ONCE {
            return;
        }
    }
}

/// Describes an instruction that loads or stores a word which other threads may use. Compilers write atomic
/// loads and stores as a move, or as a comparison with memory. Memory on the stack counts as the thread's
/// own.
fn access(instruction: &Instruction, framed: bool) -> Option<Atomic> {
    let (memory, size) = shared_operand(instruction)?;
    let base = instruction.memory_base();
    let on_stack = base == Register::RSP || framed && base == Register::RBP;
    if on_stack || size > 8 {
        return None;
    }
    let kind = match instruction.mnemonic() {
        Mnemonic::Mov if memory == 0 => STORE,
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => LOAD,
        Mnemonic::Cmp | Mnemonic::Test => LOAD,
        _ => return None,
    };
    Some(Atomic { kind, size, register: 0, bit: 0, mark: None })
}

/// Whether an instruction copies the stack pointer into the frame pointer.
fn sets_frame_pointer(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_register() == Register::RBP
        && instruction.op1_register() == Register::RSP
}

/// Whether an instruction may move together with another, and whether another moved instruction may follow
/// it.
fn is_movable(instruction: &Instruction) -> (bool, bool) {
    match instruction.flow_control() {
        // `endbr64` may be the target of a jump through a table. The other two tell the program its own
        // address or processor.
        FlowControl::Next => (
            !matches!(instruction.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Syscall | Mnemonic::Rdtscp),
            true,
        ),
        FlowControl::ConditionalBranch => (true, true),
        FlowControl::UnconditionalBranch => (instruction.op0_kind() == OpKind::NearBranch64, false),
        FlowControl::Return => (true, false),
        _ => (false, false),
    }
}

/// Cuts a function into pieces to be moved.
fn cut(
    instructions: &[Instruction],
    (targets, indirect): (&Targets, bool),
    live: bool,
    found: &mut Found,
    site: impl Fn(&Instruction) -> Option<Atomic>,
) {
    let mut free = 0;
    for at in 0..instructions.len() {
        if at < free || site(&instructions[at]).is_none() {
            continue;
        }
        let (first, last, trap) = match surroundings(instructions, at, free, targets, indirect) {
            Some((first, last)) if !live => (first, last, false),
            _ => (at, at, true),
        };
        let pieces = instructions[first..=last].iter().map(|&i| (i, site(&i)));
        let piece = Piece { instructions: pieces.collect(), trap };
        found.sites += piece.instructions.iter().filter(|(_, atomic)| atomic.is_some()).count();
        found.pieces.push(piece);
        free = last + 1;
    }
}

/// The shortest run of instructions that includes `at`, begins at `free` or later, makes room for a jump and
/// can be moved.
fn surroundings(
    instructions: &[Instruction],
    at: usize,
    free: usize,
    targets: &Targets,
    indirect: bool,
) -> Option<(usize, usize)> {
    if instructions[at].len() as u64 >= JUMP {
        return Some((at, at));
    }
    if indirect {
        return None;
    }
    let mut best: Option<(usize, usize)> = None;
    for first in (free.max(at.saturating_sub(NEIGHBOURS))..=at).rev() {
        let start = instructions[first].ip();
        let wide = |last: &usize| instructions[*last].next_ip() - start >= JUMP;
        let Some(last) = (at..instructions.len().min(at + NEIGHBOURS + 1)).find(wide) else { continue };
        let end = instructions[last].next_ip();
        // The code behind a return or jump may be an exception handler, to which no jump leads.
        let leaves =
            matches!(instructions[at].flow_control(), FlowControl::Return | FlowControl::UnconditionalBranch);
        let movable = (first..=last).all(|i| {
            let (itself, goes_on) = is_movable(&instructions[i]);
            i == at || itself && (goes_on || i == last)
        }) && (!leaves || at == last);
        if movable && !targets.any_in(start + 1, end) && best.is_none_or(|(a, b)| last - first < b - a) {
            best = Some((first, last));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_wire::patch::{CAS, HIGH, RMW, SET, SET_BY, XCHG};
    use std::sync::LazyLock;

    static NO_ROLES: LazyLock<Roles> = LazyLock::new(Roles::new);

    fn want(atomics: bool) -> Want<'static> {
        Want { atomics: atomics.then_some(&|_| Treatment::Atomics), live: false, roles: &NO_ROLES }
    }

    /// Treats the code as one function at 0x1000. Returns where its pieces begin and end, and whether they
    /// are breakpoints.
    fn pieces(bytes: &[u8]) -> Vec<(u64, u64, bool)> {
        let texts = [Text { start: 0x1000, bytes: bytes.to_vec() }];
        let functions = [(0x1000, 0x1000 + bytes.len() as u64)];
        let found = find(&texts, &functions, &|_, _| Vec::new(), &Marks::new(), want(true));
        found.pieces.iter().map(|p| (p.start() - 0x1000, p.end() - 0x1000, p.trap)).collect()
    }

    #[test]
    fn room_for_a_jump() {
        // lock inc dword [rip+0]; ret
        assert_eq!(pieces(&[0xf0, 0xff, 0x05, 0, 0, 0, 0, 0xc3]), [(0, 7, false)]);
        // lock inc [rdi]; mov eax, esi; ret
        assert_eq!(pieces(&[0xf0, 0xff, 0x07, 0x89, 0xf0, 0xc3]), [(0, 5, false)]);
        // lock inc [rdi]; ret: too short
        assert_eq!(pieces(&[0xf0, 0xff, 0x07, 0xc3]), [(0, 3, true)]);
        // push rbx; lock inc [rdi]; ret
        assert_eq!(pieces(&[0x53, 0xf0, 0xff, 0x07, 0xc3]), [(0, 5, false)]);
        // nop; lock inc [rdi]; lock inc [rdi]; ret: both in one
        assert_eq!(pieces(&[0x90, 0xf0, 0xff, 0x07, 0xf0, 0xff, 0x07, 0xc3]), [(1, 7, false)]);
        // lock inc [rdi]; call rax; ret
        assert_eq!(pieces(&[0xf0, 0xff, 0x07, 0xff, 0xd0, 0xc3]), [(0, 3, true)]);
    }

    #[test]
    fn nothing_is_moved_that_is_jumped_into() {
        // lock dec [rdi]; jz -> the mov; mov eax, esi; ret
        assert_eq!(pieces(&[0xf0, 0xff, 0x0f, 0x74, 0x00, 0x89, 0xf0, 0xc3]), [(0, 5, false)]);
        // mov eax, 1; xchg [rdi], eax; test eax, eax; jnz -> the xchg; ret
        let spin = [0xb8, 1, 0, 0, 0, 0x87, 0x07, 0x85, 0xc0, 0x75, 0xfa, 0xc3];
        assert_eq!(pieces(&spin), [(5, 11, false)]);
        // lock inc [rdi]; mov eax, esi; jmp -> the mov
        assert_eq!(pieces(&[0xf0, 0xff, 0x07, 0x89, 0xf0, 0xeb, 0xfc]), [(0, 3, true)]);
        // The same with a computed jump, which may lead anywhere.
        assert_eq!(pieces(&[0xf0, 0xff, 0x07, 0x89, 0xf0, 0xff, 0xe0]), [(0, 3, true)]);
        // But a tail call through the linkage table leaves the function.
        assert_eq!(pieces(&[0xf0, 0xff, 0x07, 0x89, 0xf0, 0xff, 0x25, 0, 0, 0, 0]), [(0, 5, false)]);
    }

    /// Like `pieces`, for a mark in code without atomic instructions.
    fn marked(bytes: &[u8], at: u64) -> Vec<(u64, u64, bool)> {
        let texts = [Text { start: 0x1000, bytes: bytes.to_vec() }];
        let functions = [(0x1000, 0x1000 + bytes.len() as u64)];
        let marks = Marks::from([(0x1000 + at, 0)]);
        let found = find(&texts, &functions, &|_, _| Vec::new(), &marks, want(false));
        found.pieces.iter().map(|p| (p.start() - 0x1000, p.end() - 0x1000, p.trap)).collect()
    }

    #[test]
    fn marks_where_a_function_is_left() {
        // add rsp, 56; ret; mov rdi, rax; ...: what follows may be for exceptions
        assert_eq!(marked(&[0x48, 0x83, 0xc4, 0x38, 0xc3, 0x48, 0x89, 0xc7, 0x90, 0x90], 4), [(0, 5, false)]);
        // pop rbx; ret; mov rdi, rax; nop; nop
        assert_eq!(marked(&[0x5b, 0xc3, 0x48, 0x89, 0xc7, 0x90, 0x90], 1), [(1, 2, true)]);
        // jz -> the ret; add rsp, 56; ret: jumped into, in a function without atomic instructions
        assert_eq!(marked(&[0x74, 0x04, 0x48, 0x83, 0xc4, 0x38, 0xc3], 6), [(6, 7, true)]);
    }

    #[test]
    fn what_is_no_function_is_left_alone() {
        let odd = |bytes: &[u8]| {
            let texts = [Text { start: 0x1000, bytes: bytes.to_vec() }];
            let found = find(
                &texts,
                &[(0x1000, 0x1000 + bytes.len() as u64)],
                &|_, _| Vec::new(),
                &Marks::new(),
                want(true),
            );
            (found.sites, found.odd)
        };
        // A jump into the middle of an instruction.
        assert_eq!(odd(&[0xf0, 0xff, 0x05, 0, 0, 0, 0, 0xeb, 0xfa]), (0, 1));
        // An unknown instruction.
        assert_eq!(odd(&[0xf0, 0xff, 0x05, 0, 0, 0, 0, 0x06]), (0, 1));
        // The last instruction is cut off.
        assert_eq!(odd(&[0xf0, 0xff, 0x05, 0, 0, 0, 0, 0xe8, 0, 0]), (0, 1));
    }

    #[test]
    fn loads_and_stores_of_shared_memory() {
        let of = |bytes: &[u8], framed| {
            let mut decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
            access(&decoder.decode(), framed).map(|found| (found.kind, found.size))
        };
        // mov eax, [rdi]; mov [rdi], eax; cmp dword [rdi], 0; movzx eax, byte [rdi]
        assert_eq!(of(&[0x8b, 0x07], false), Some((LOAD, 4)));
        assert_eq!(of(&[0x89, 0x07], false), Some((STORE, 4)));
        assert_eq!(of(&[0x83, 0x3f, 0], false), Some((LOAD, 4)));
        assert_eq!(of(&[0x0f, 0xb6, 0x07], false), Some((LOAD, 1)));
        // mov eax, [rbp - 8], with and without a frame pointer; mov eax, [rsp + 8]; lea; mov eax, fs:[0]; movups
        assert_eq!(of(&[0x8b, 0x45, 0xf8], true), None);
        assert_eq!(of(&[0x8b, 0x45, 0xf8], false), Some((LOAD, 4)));
        assert_eq!(of(&[0x8b, 0x44, 0x24, 0x08], false), None);
        assert_eq!(of(&[0x48, 0x8d, 0x07], false), None);
        assert_eq!(of(&[0x64, 0x8b, 0x04, 0x25, 0, 0, 0, 0], false), None);
        assert_eq!(of(&[0x0f, 0x10, 0x07], false), None);
    }

    #[test]
    fn what_is_atomic() {
        let of = |bytes: &[u8]| {
            let mut decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
            atomic(&decoder.decode())
        };
        let kind = |kind, size, register, bit| Some(Atomic { kind, size, register, bit, mark: None });
        assert_eq!(of(&[0xf0, 0x48, 0x0f, 0xc7, 0x0f]), kind(CAS, 16, 0, 0));
        assert_eq!(of(&[0xf0, 0x0f, 0xc7, 0x0f]), kind(CAS, 8, HIGH, 0));
        assert_eq!(of(&[0xf0, 0x0f, 0xb1, 0x17]), kind(CAS, 4, 0, 0));
        assert_eq!(of(&[0x86, 0x27]), kind(XCHG, 1, HIGH, 0));
        assert_eq!(of(&[0x4d, 0x87, 0x0f]), kind(XCHG, 8, 9, 0));
        assert_eq!(of(&[0xf0, 0x0f, 0xba, 0x2f, 7]), kind(SET, 4, 0, 7));
        assert_eq!(of(&[0xf0, 0x0f, 0xab, 0x37]), kind(SET_BY, 4, 6, 0));
        assert_eq!(of(&[0xf0, 0x66, 0x01, 0x07]), kind(RMW, 2, 0, 0));
        // xchg of registers; lock or [rsp], 0; lock inc fs:[0]; mov
        assert_eq!(of(&[0x87, 0xc7]), None);
        assert_eq!(of(&[0xf0, 0x83, 0x0c, 0x24, 0]), None);
        assert_eq!(of(&[0x64, 0xf0, 0xff, 0x04, 0x25, 0, 0, 0, 0]), None);
        assert_eq!(of(&[0x89, 0x07]), None);
    }
}
