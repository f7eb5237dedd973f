//! Finds the code of a program that is not instrumented although other code is.
//!
//! Each module with a stub has a note that says where the callbacks are. Code calls them directly, so a call
//! is an opcode and a distance: four bytes, which by chance lead there once in a million opcodes. A source
//! file is identified by its unit of debug information. If its code accesses memory but contains no such
//! call, it was compiled without instrumentation.

use crate::program::Program;
use crate::program::libraries::{Elf, is_basic, libraries};
use gimli::{DwarfSections, EndianSlice};
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use object::read::elf::ProgramHeader;
use object::{LittleEndian, Object, ObjectSection, SectionKind, elf};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The name for Rust's standard library and its dependencies.
pub const STD: &str = "Rust's own libraries";

/// Uninstrumented code in a program that also has instrumented code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uninstrumented {
    /// An entire module.
    Module(String),
    /// Some source files of a module.
    Files {
        /// The module.
        module: String,
        /// The files.
        files: Vec<String>,
    },
    /// Some files of these modules. They cannot be named, because the modules have no debug information.
    Unknown(Vec<String>),
}

/// The uninstrumented code of a program; empty if no code of it is instrumented.
pub fn uninstrumented_code(program: &Program) -> Vec<Uninstrumented> {
    let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut modules = vec![(name, program.path.clone())];
    modules.extend(libraries(&program.path).into_iter().filter(|(name, _)| !is_basic(name)));
    let (mut instrumented, mut parts, mut unknown) = (false, Vec::new(), Vec::new());
    for (name, path) in modules {
        let Ok(bytes) = fs::read(&path) else { continue };
        match look(&bytes) {
            Seen::AllCode => parts.push(Uninstrumented::Module(name)),
            Seen::Files(files) => {
                instrumented = true;
                if !files.is_empty() {
                    parts.push(Uninstrumented::Files { module: name, files: files.into_iter().collect() });
                }
            }
            Seen::Unknown => {
                instrumented = true;
                unknown.push(name);
            }
        }
    }
    if !unknown.is_empty() {
        parts.push(Uninstrumented::Unknown(unknown));
    }
    if instrumented { parts } else { Vec::new() }
}

/// The uninstrumented part of a module.
enum Seen {
    /// The entire module.
    AllCode,
    /// These source files.
    Files(BTreeSet<String>),
    /// Perhaps some files; there is no debug information to tell.
    Unknown,
}

fn look(bytes: &[u8]) -> Seen {
    let Ok(elf) = Elf::parse(bytes) else { return Seen::AllCode };
    let code = Code::of(&elf, bytes);
    let stubs = stubs(bytes);
    let calls = code.calls(&stubs);
    if calls.is_empty() {
        return Seen::AllCode;
    }
    let sections = DwarfSections::load(|id| {
        let data = elf.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
        Ok::<_, gimli::Error>(data.unwrap_or(Cow::Borrowed(&[])))
    });
    let Ok(sections) = sections else { return Seen::Unknown };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, gimli::LittleEndian));
    let mut files = BTreeSet::new();
    let (mut known, mut with_std) = (false, false);
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut ranges = Vec::new();
        let mut all = match dwarf.unit_ranges(&unit) {
            Ok(all) => all,
            Err(_) => continue,
        };
        while let Ok(Some(range)) = all.next() {
            // The linker leaves code that it removed at an address near 0.
            ranges.extend(code.within(range.begin..range.end));
        }
        if ranges.is_empty() {
            continue;
        }
        known = true;
        let called = |range: &Range<u64>| {
            let first = calls.partition_point(|&at| at < range.start);
            calls.get(first).is_some_and(|&at| at < range.end)
        };
        let text = |part: Option<EndianSlice<'_, _>>| {
            part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
        };
        let file = || named(text(unit.name), &text(unit.comp_dir));
        if ranges.iter().any(called) {
            with_std |= file() == STD;
        } else if ranges.iter().any(|range| code.accesses(range)) {
            files.insert(file());
        }
    }
    if with_std {
        // The library is instrumented entirely, except compiler_builtins, which shares nothing between
        // threads.
        files.remove(STD);
    }
    if known { Seen::Files(files) } else { Seen::Unknown }
}

/// A source file as a user would name it.
fn named(name: String, directory: &str) -> String {
    // The standard library and its dependencies, as they come with the compiler.
    if ["/rustc/", "/rust/deps/"].iter().any(|root| directory.starts_with(root) || name.starts_with(root)) {
        return STD.to_owned();
    }
    // For Rust, a crate is one source file in several units.
    let name = name.split("/@/").next().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    let path = Path::new(name);
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}

/// The address ranges of callbacks in a file, before loading: one range for each stub, usually one.
pub(crate) fn stubs(bytes: &[u8]) -> Vec<Range<u64>> {
    let Ok(elf) = Elf::parse(bytes) else { return Vec::new() };
    let mut found = Vec::new();
    for segment in elf.elf_program_headers() {
        let Ok(Some(mut notes)) = segment.notes(LittleEndian, bytes) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() != b"Heisen" {
                continue;
            }
            let at = note.desc().as_ptr() as u64 - bytes.as_ptr() as u64;
            let at =
                segment.p_vaddr(LittleEndian).wrapping_add(at.wrapping_sub(segment.p_offset(LittleEndian)));
            let words: Vec<i32> =
                note.desc().as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
            // A version, and two distances relative to their own positions.
            if let [_, start, end] = words[..] {
                let place = |index: u64, distance: i32| (at + 4 * index).wrapping_add_signed(distance.into());
                found.push(place(1, start)..place(2, end));
            }
        }
    }
    found
}

/// The code of a module.
struct Code<'a> {
    /// Address and content of executable segments.
    pieces: Vec<(u64, &'a [u8])>,
    /// Variables: writable addresses, without the linker's tables.
    variables: Vec<Range<u64>>,
}

impl<'a> Code<'a> {
    fn of(elf: &Elf<'a>, bytes: &'a [u8]) -> Code<'a> {
        let runs = |s: &&elf::ProgramHeader64<LittleEndian>| {
            s.p_type(LittleEndian) == elf::PT_LOAD
                && s.p_flags(LittleEndian) & elf::PF_X != Default::default()
        };
        let pieces = elf.elf_program_headers().iter().filter(runs);
        let variables = elf.sections().filter(|section| {
            matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData)
                && !section.name().is_ok_and(|name| name.starts_with(".got"))
        });
        Code {
            pieces: pieces
                .filter_map(|s| Some((s.p_vaddr(LittleEndian), s.data(LittleEndian, bytes).ok()?)))
                .collect(),
            variables: variables.map(|s| s.address()..s.address().saturating_add(s.size())).collect(),
        }
    }

    /// The range, if it is code.
    fn within(&self, range: Range<u64>) -> Option<Range<u64>> {
        let holds = |&&(start, bytes): &&(u64, &[u8])| {
            range.start >= start && range.end <= start.saturating_add(bytes.len() as u64) && range.start != 0
        };
        self.pieces.iter().find(holds).filter(|_| range.start < range.end).map(|_| range)
    }

    /// The addresses of all calls and jumps into one of the ranges, in order.
    fn calls(&self, targets: &[Range<u64>]) -> Vec<u64> {
        let mut found = Vec::new();
        for &(start, bytes) in if targets.is_empty() { &[] } else { &self.pieces[..] } {
            for (at, window) in bytes.windows(5).enumerate() {
                if window[0] & 0xfe != 0xe8 {
                    continue;
                }
                let distance = i32::from_le_bytes([window[1], window[2], window[3], window[4]]);
                let at = start + at as u64;
                let target = (at + 5).wrapping_add_signed(distance.into());
                if targets.iter().any(|range| range.contains(&target)) {
                    found.push(at);
                }
            }
        }
        found
    }

    /// Whether a range contains code that reads or writes memory other than its own stack.
    fn accesses(&self, range: &Range<u64>) -> bool {
        let Some((start, bytes)) = self
            .pieces
            .iter()
            .find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&range.start))
        else {
            return false;
        };
        let bytes = &bytes[(range.start - start) as usize..(range.end - start) as usize];
        let mut info = InstructionInfoFactory::new();
        Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE).iter().any(|instruction| {
            instruction.flow_control() == FlowControl::Next
                && info.info(&instruction).used_memory().iter().any(|memory| {
                    let real = !matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess);
                    let own = match memory.base() {
                        Register::RSP | Register::RBP => true,
                        _ if matches!(memory.segment(), Register::FS | Register::GS) => true,
                        Register::None if memory.index() == Register::None => {
                            !self.variables.iter().any(|range| range.contains(&memory.displacement()))
                        }
                        _ => false,
                    };
                    real && !own
                })
        })
    }
}
