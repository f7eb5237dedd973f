//! Patches the parked program. The patches are computed once for a check, because the code has the same
//! addresses in every process of the program. Each parked program then receives them through its memory file,
//! which may write to code.

use super::code::{Atomic, Text};
use super::find::{self, Found, JUMP, Piece, Want};
use super::locks::{self, Roles};
use super::marks::{self, Marks, Named};
use super::std_functions::{self, Treatment};
use super::{modules, near_memory, trampoline};
use crate::error::{Error, Result};
use heisen_inspect::maps::Mapping;
use heisen_inspect::maps::{self, code_layout};
use heisen_inspect::{Loaded, Moved, MovedPiece, Symbols, View, memory};
use heisen_wire::patch::{ALLOCATION, LOCK_CALLS, Site};
use heisen_wire::{MAX_AREAS, MAX_TRAPS, Wire};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// Patches are written page by page.
const PAGE: u64 = 4096;
/// The opcode of a breakpoint.
const BREAKPOINT: u8 = 0xcc;

/// The patches for the programs of a check.
#[derive(Debug, Default)]
pub struct Patches {
    made: Mutex<Option<Arc<Made>>>,
    /// Places that the script names.
    named: Vec<Named>,
    /// Whether named places may be missing, because another program may have them.
    lenient: bool,
    /// Whether the program runs already instead of being parked.
    live: bool,
}

/// Everything to be written into a program.
#[derive(Debug, Default)]
struct Made {
    /// The code mappings for which the patches were computed. They are valid only for these.
    layout: String,
    /// The runtime's function that trampolines call.
    entry: u64,
    /// The runtime's functions for locks.
    lock: [u64; LOCK_CALLS],
    /// Memory for trampolines: address and size.
    areas: Vec<(u64, u64)>,
    /// Breakpoints: address, trampoline, and the byte that the breakpoint replaces.
    traps: Vec<(u64, u64, u8)>,
    /// Bytes by address: trampolines and pages of code.
    writes: Vec<(u64, Vec<u8>)>,
    /// The allocation functions that the program defines; 0 for those that it does not define.
    own: [u64; ALLOCATION.len()],
    moved: Arc<Moved>,
    patched: Vec<PatchedModule>,
    /// Places that the script names and the program lacks: their numbers, and why.
    missing: Vec<(usize, String)>,
}

/// What was patched in one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedModule {
    /// The module.
    pub name: String,
    /// How many instructions and calls became scheduling points.
    pub sites: usize,
    /// Functions that were skipped because their code could not be decoded safely.
    pub odd: usize,
}

impl Patches {
    /// Marks these places for a script, in addition to the patches that the options ask for.
    pub fn with_marks(named: Vec<Named>) -> Patches {
        Patches { named, ..Patches::default() }
    }

    /// Like [`Patches::with_marks`], but places that the program lacks are not an error.
    pub fn with_some_marks(named: Vec<Named>) -> Patches {
        Patches { named, lenient: true, ..Patches::default() }
    }

    /// Like [`Patches::with_some_marks`], for a program that runs already.
    pub fn while_it_runs(named: Vec<Named>) -> Patches {
        Patches { named, lenient: true, live: true, ..Patches::default() }
    }

    /// The numbers of the named places that the program lacks, and why.
    pub fn missing(&self) -> Vec<(usize, String)> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.as_ref().map_or_else(Vec::new, |made| made.missing.clone())
    }

    /// Whether places are to be marked, whatever the options ask for.
    pub(crate) fn has_marks(&self) -> bool {
        !self.named.is_empty()
    }

    /// Computes, the first time, the patches for a parked program. Asks the runtime for the memory that they
    /// need.
    pub(crate) fn prepare(
        &self,
        patterns: &[String],
        runtime: &Path,
        wire: &Wire,
        pid: i32,
    ) -> Result<Prepared> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match &*made {
            Some(made) => made.clone(),
            None => {
                let first = make(patterns, self, runtime, wire, pid)?;
                if let Some((_, why)) = first.missing.first().filter(|_| !self.lenient) {
                    return Err(Error::Input(why.clone()));
                }
                made.insert(Arc::new(first)).clone()
            }
        };
        let layout = code_layout(pid);
        if layout.is_empty() {
            return Err(Error::Uncontrolled(
                "the parked program is gone before it was patched; does something kill it?".into(),
            ));
        }
        if layout != made.layout || wire.patch_entry.load(Relaxed) != made.entry {
            return Err(Error::Uncontrolled(
                "the program's code is not at the same addresses each time it is started, so --patch cannot be used; \
                 does this machine forbid to switch off address-space randomisation (personality)?"
                    .into(),
            ));
        }
        made.ask(wire);
        Ok(Prepared(made))
    }

    /// The moved instructions, for unwinding stacks.
    pub fn moved(&self) -> Option<Arc<Moved>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|made| made.moved.clone())
    }

    /// The modules that were patched; empty if no instruction was patched.
    pub(crate) fn patched(&self) -> Vec<PatchedModule> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let modules = made.as_ref().map_or(&[][..], |made| &made.patched);
        if modules.iter().all(|module| module.sites == 0) { Vec::new() } else { modules.to_vec() }
    }
}

/// Patches for which the runtime was asked to prepare.
#[derive(Debug)]
pub(crate) struct Prepared(Arc<Made>);

impl Prepared {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.areas.is_empty()
    }

    /// Writes the patches, after the runtime has mapped the memory.
    pub(crate) fn write(&self, wire: &Wire, pid: i32) -> Result<()> {
        let mapped = wire.patch_areas.load(Relaxed) as usize;
        if let Some((at, size)) = self.0.areas.get(mapped) {
            return Err(Error::Uncontrolled(format!(
                "the program could not map {size} bytes at {at:#x} for --patch; raise the limits that ulimit -a shows"
            )));
        }
        let refused = |error| {
            Error::Uncontrolled(format!(
                "the program's code cannot be written through /proc/{pid}/mem ({error}), so --patch cannot be used; \
                 does the kernel forbid it (proc_mem.force_override)?"
            ))
        };
        let memory = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem")).map_err(refused)?;
        for (at, bytes) in &self.0.writes {
            memory.write_all_at(bytes, *at).map_err(refused)?;
        }
        Ok(())
    }
}

impl Prepared {
    /// Removes the breakpoints from a running program.
    pub(crate) fn remove(&self, pid: i32) {
        let Ok(memory) = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem")) else { return };
        for &(at, _, byte) in &self.0.traps {
            // If the process is gone, there is nothing to restore.
            let _ = memory.write_all_at(&[byte], at);
        }
    }
}

impl Made {
    /// Writes to the wire which memory the runtime has to map, and the breakpoints.
    fn ask(&self, wire: &Wire) {
        for (slot, &(at, size)) in wire.patch_area.iter().zip(&self.areas) {
            slot[0].store(at, Relaxed);
            slot[1].store(size, Relaxed);
        }
        for (slot, &(at, trampoline, byte)) in wire.patch_trap.iter().zip(&self.traps) {
            slot.at.store(at, Relaxed);
            slot.trampoline.store(trampoline, Relaxed);
            slot.byte.store(byte.into(), Relaxed);
        }
        for (slot, &own) in wire.patch_own.iter().zip(&self.own) {
            slot.store(own, Relaxed);
        }
        wire.patch_areas.store(self.areas.len() as u32, Relaxed);
        wire.patch_traps.store(self.traps.len() as u32, Relaxed);
    }
}

/// Computes all patches, on the first parked program.
fn make(patterns: &[String], patches: &Patches, runtime: &Path, wire: &Wire, pid: i32) -> Result<Made> {
    let Patches { named, live, .. } = patches;
    let internal = |e| Error::Internal(format!("the parked program cannot be looked at: {e}"));
    let mut symbols = Symbols::new();
    symbols.hide(runtime);
    let mut view = View::new(&mut symbols, pid).map_err(internal)?;
    let mappings = maps::read(pid).map_err(internal)?;
    let all = view.modules();
    let chosen = modules::choose(patterns, &all)?;
    let (marks, missing) = if named.is_empty() {
        (Marks::new(), Vec::new())
    } else {
        let texts: Vec<Text> = all.iter().flat_map(|module| unchanged(pid, view.code_of(module))).collect();
        marks::find(named, &mut view, &texts)?
    };
    let entry = wire.patch_entry.load(Relaxed);
    let lock = wire.patch_lock.each_ref().map(|function| function.load(Relaxed));
    let mut made = Made { layout: code_layout(pid), entry, lock, missing, ..Made::default() };
    let mut moved = Vec::new();
    let mut marked = 0;
    let as_instructions = *live || patterns.iter().any(|pattern| pattern == modules::INSTRUCTIONS);
    let roles = if as_instructions { Roles::new() } else { roles(&view, &all) };
    for module in &all {
        let atomics = chosen.iter().any(|chosen| chosen.path == module.path);
        let functions = view.functions_of(module);
        if !atomics && !functions.iter().any(|&(start, end)| marks.range(start..end).next().is_some()) {
            continue;
        }
        if atomics {
            made.add_allocator(&view, module, &all, wire);
        }
        let texts = unchanged(pid, view.code_of(module));
        let read = |address, length| read(pid, address, length);
        let instrumented = modules::is_instrumented(module);
        let treatment = |start: u64| match view.function_name(module, start) {
            Some(name) if instrumented => std_functions::treatment(&name),
            _ => Treatment::Atomics,
        };
        let atomics = atomics.then_some(&treatment as &dyn Fn(u64) -> Treatment);
        let want = Want { atomics, live: *live, roles: &roles };
        let found = find::find(&texts, &functions, &read, &marks, want);
        marked += found.pieces.iter().map(Piece::marks).sum::<usize>();
        made.add(module, &texts, &found, &mappings, &mut moved)?;
    }
    if marked < marks.len() {
        return Err(Error::Uncontrolled(format!(
            "{} of the {} places that the script names lie in code that Heisen does not understand",
            marks.len() - marked,
            marks.len()
        )));
    }
    made.traps.sort_unstable();
    moved.sort_unstable_by_key(|piece: &MovedPiece| piece.start);
    let end = made.areas.iter().map(|(at, size)| at + size).max().unwrap_or(0);
    made.moved = Arc::new(Moved { pieces: moved, end });
    if made.traps.len() > MAX_TRAPS || made.areas.len() > MAX_AREAS {
        return Err(Error::Input(format!(
            "--patch means {} modules and {} short atomic instructions, and {MAX_AREAS} and {MAX_TRAPS} are the most; \
             name fewer modules",
            made.areas.len(),
            made.traps.len()
        )));
    }
    Ok(made)
}

/// The functions by which locks are recognised, of all modules.
fn roles(view: &View<'_>, modules: &[Loaded]) -> Roles {
    let named = modules.iter().flat_map(|module| view.functions_with(module, &locks::PARTS));
    named.filter_map(|(address, name)| Some((address, locks::role(&name)?))).collect()
}

/// Reads the memory of the process, up to the first unreadable byte.
fn read(pid: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // If the second page is missing, read only the first.
    let first_page = (PAGE - address % PAGE) as usize;
    for length in [length, first_page.min(length)] {
        if memory::read_bytes(pid, address, &mut bytes[..length]).is_ok() {
            bytes.truncate(length);
            return bytes;
        }
    }
    Vec::new()
}

/// The code in the process, without the pages that differ from the file. For such pages the file's tables do
/// not hold.
fn unchanged(pid: i32, file: Vec<(u64, Vec<u8>)>) -> Vec<Text> {
    let mut texts = Vec::new();
    for (start, bytes) in file {
        let pages = bytes.chunks(PAGE as usize);
        for (page, expected) in (start..).step_by(PAGE as usize).zip(pages) {
            if read(pid, page, expected.len()) != expected {
                continue;
            }
            match texts.last_mut() {
                Some(Text { start, bytes }) if *start + bytes.len() as u64 == page => {
                    bytes.extend_from_slice(expected);
                }
                _ => texts.push(Text { start: page, bytes: expected.to_vec() }),
            }
        }
    }
    texts
}

impl Made {
    /// If a module defines its own allocator, makes the C library call it through the runtime, because the C
    /// library may hold a lock during the call.
    fn add_allocator(&mut self, view: &View<'_>, module: &Loaded, all: &[Loaded], wire: &Wire) {
        for (own, defined) in self.own.iter_mut().zip(view.exports_of(module, &ALLOCATION)) {
            if *own == 0 {
                *own = defined;
            }
        }
        let Some(library) = all.iter().find(|module| modules::is_c_library(module)) else { return };
        for (number, at) in view.imports_of(library, &ALLOCATION) {
            if self.own[number] != 0 {
                let quiet = wire.patch_uncontrolled[number].load(Relaxed);
                self.writes.push((at, quiet.to_le_bytes().to_vec()));
            }
        }
    }

    /// Adds the patches for one module.
    fn add(
        &mut self,
        module: &Loaded,
        texts: &[Text],
        found: &Found,
        mappings: &[Mapping],
        moved: &mut Vec<MovedPiece>,
    ) -> Result<()> {
        let name = module.path.file_name().unwrap_or(module.path.as_os_str()).to_string_lossy().into_owned();
        self.patched.push(PatchedModule { name, sites: found.sites + found.calls.len(), odd: found.odd });
        let starts = found.pieces.iter().map(Piece::start).chain(found.calls.iter().map(|call| call.at));
        let ends = found.pieces.iter().map(Piece::end).chain(found.calls.iter().map(|call| call.at));
        let (Some(first), Some(last)) = (starts.min(), ends.max()) else { return Ok(()) };
        let instructions: usize = found.pieces.iter().map(|piece| piece.instructions.len()).sum();
        let sites = HEADER + found.sites * size_of::<Site>();
        let most = sites + (instructions + found.pieces.len()) * trampoline::MOST_BYTES;
        let taken = &self.areas;
        let at = near_memory::near(mappings, taken, first, last, most as u64).ok_or_else(|| {
            Error::Uncontrolled(format!(
                "there is no room for {most} bytes of code near to {}, so --patch cannot be used for it",
                module.path.display()
            ))
        })?;
        let mut area = self.entry.to_le_bytes().to_vec();
        for target in self.lock {
            area.extend(jump_to(target));
        }
        let mut code = Vec::new();
        let mut changed = BTreeMap::new();
        for call in &found.calls {
            let jump = at + 8 + if call.locks { 0 } else { JUMP_TO as u64 };
            changed.extend(call_instead(call, jump));
        }
        for piece in &found.pieces {
            let target = at + (sites + code.len()) as u64;
            let made = trampoline::write(piece, target, at, |instruction, atomic| {
                let site = at + area.len() as u64;
                area.extend(describe(instruction.next_ip(), atomic));
                site
            });
            let made = made.map_err(|e| Error::Internal(format!("at {:#x}: {e}", piece.start())))?;
            moved.extend(made.moved);
            code.extend(made.code);
            // Padding between two trampolines replaces no instruction.
            moved.push(MovedPiece { start: at + (sites + code.len()) as u64, of: 0, lower: 0 });
            code.resize(code.len().next_multiple_of(16), BREAKPOINT);
            changed.extend(self.replace(piece, target, texts));
        }
        area.resize(sites, 0);
        area.extend(code);
        self.areas.push((at, (most as u64).next_multiple_of(PAGE)));
        self.writes.push((at, area));
        self.writes.extend(by_page(&changed, texts));
        Ok(())
    }

    /// The bytes that replace a piece, by address: a jump to `target`, or a breakpoint.
    fn replace(
        &mut self,
        piece: &Piece,
        target: u64,
        texts: &[Text],
    ) -> impl Iterator<Item = (u64, u8)> + use<> {
        let start = piece.start();
        let mut bytes = Vec::new();
        if piece.trap {
            let byte = texts.iter().find_map(|text| text.byte(start)).unwrap_or(0);
            self.traps.push((start, target, byte));
            bytes.push(BREAKPOINT);
        } else {
            bytes.push(0xe9);
            bytes.extend((target.wrapping_sub(start + JUMP) as i32).to_le_bytes());
            // Nothing should jump to the rest of the piece. If something does, a breakpoint exposes it.
            bytes.resize((piece.end() - start) as usize, BREAKPOINT);
        }
        (start..).zip(bytes)
    }
}

/// Bytes before the site descriptions: the runtime's entry address, and jumps to its lock functions.
const HEADER: usize = 8 + LOCK_CALLS * JUMP_TO;
/// Bytes of a jump to an arbitrary address.
const JUMP_TO: usize = 16;

/// A jump to an address.
fn jump_to(target: u64) -> [u8; JUMP_TO] {
    // jmp [rip]
    let mut bytes = [BREAKPOINT; JUMP_TO];
    bytes[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    bytes[6..14].copy_from_slice(&target.to_le_bytes());
    bytes
}

/// Replaces a call by a call of `target` that returns to the same address.
fn call_instead(call: &locks::Call, target: u64) -> impl Iterator<Item = (u64, u8)> + use<> {
    const CALL: usize = 5;
    const NOP: u8 = 0x90;
    let end = call.at + call.len as u64;
    let mut bytes = vec![NOP; call.len - CALL];
    bytes.push(0xe8);
    bytes.extend((target.wrapping_sub(end) as i32).to_le_bytes());
    (call.at..).zip(bytes)
}

/// Groups the changed bytes into one write per page, with the unchanged bytes between them.
fn by_page(changed: &BTreeMap<u64, u8>, texts: &[Text]) -> Vec<(u64, Vec<u8>)> {
    let mut out: Vec<(u64, Vec<u8>)> = Vec::new();
    for (&address, &byte) in changed {
        if let Some((start, bytes)) = out.last_mut()
            && *start / PAGE == address / PAGE
        {
            let end = *start + bytes.len() as u64;
            let known = |at| texts.iter().find_map(|text| text.byte(at));
            if let Some(between) = (end..address).map(known).collect::<Option<Vec<u8>>>() {
                bytes.extend(between);
                bytes.push(byte);
                continue;
            }
        }
        out.push((address, vec![byte]));
    }
    out
}

/// A site description for the runtime, in its memory layout.
fn describe(pc: u64, atomic: Atomic) -> [u8; size_of::<Site>()] {
    let Atomic { kind, size, register, bit, mark } = atomic;
    let mut bytes = [0; size_of::<Site>()];
    bytes[..8].copy_from_slice(&pc.to_le_bytes());
    bytes[8..12].copy_from_slice(&[kind, size, register, bit]);
    bytes[12..].copy_from_slice(&mark.unwrap_or_default().to_le_bytes());
    bytes
}
