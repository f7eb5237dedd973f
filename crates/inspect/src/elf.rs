//! Reads an ELF file of the process piece by piece, only as far as needed. The file is never mapped: if it
//! shrinks while Heisen reads it, the read returns an error instead of raising a signal.

use object::read::ReadCache;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{
    Architecture, LittleEndian, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationFlags,
    RelocationTarget, SectionKind, elf,
};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;

/// Where the bytes of an ELF file come from.
pub enum Source {
    /// A file. It stays open so that all reads see the same file.
    File(Arc<File>),
    /// A copy of memory, for code that has no file.
    Bytes(Arc<[u8]>),
}

/// The access that a file and a copy have in common.
pub trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

type Cache = ReadCache<Box<dyn ReadSeek>>;

/// A parsed x86-64 ELF file.
pub type Elf<'a> = ElfFile64<'a, LittleEndian, &'a Cache>;

impl Source {
    /// Opens a file.
    pub fn open(path: &Path) -> io::Result<Source> {
        Ok(Source::File(Arc::new(File::open(path)?)))
    }

    /// Parses the headers and calls `look` with the file. Returns `None` if this is not an x86-64 ELF file.
    pub fn with<T>(&self, look: impl FnOnce(&Elf<'_>) -> T) -> Option<T> {
        let cache: Cache = ReadCache::new(match self {
            Source::File(file) => Box::new(file.clone()),
            Source::Bytes(bytes) => Box::new(Cursor::new(bytes.clone())),
        });
        let elf = Elf::parse(&cache).ok()?;
        (elf.architecture() == Architecture::X86_64).then(|| look(&elf))
    }
}

/// The largest compression ratio that is believed. A damaged size field could otherwise ask for all memory.
const MOST_COMPRESSED: u64 = 1000;

/// The uncompressed bytes of a section; empty if the file has no such section.
pub fn section(elf: &Elf<'_>, name: &str) -> Vec<u8> {
    let read = || {
        let data = elf.section_by_name(name)?.compressed_data().ok()?;
        let believable = data.uncompressed_size / MOST_COMPRESSED <= data.data.len() as u64;
        if believable { data.decompress().ok() } else { None }
    };
    read().map_or_else(Vec::new, |bytes| bytes.into_owned())
}

/// A part of the file that the loader maps into memory.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Its address before the load bias is added.
    pub address: u64,
    /// Bytes in memory.
    pub size: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Whether it holds code.
    pub executable: bool,
}

/// The loaded segments of a file.
pub fn segments(elf: &Elf<'_>) -> Vec<Segment> {
    let loaded = elf.elf_program_headers().iter().filter(|s| s.p_type(LittleEndian) == elf::PT_LOAD);
    loaded
        .map(|s| Segment {
            address: s.p_vaddr(LittleEndian),
            size: s.p_memsz(LittleEndian),
            offset: s.p_offset(LittleEndian),
            file_size: s.p_filesz(LittleEndian),
            executable: s.p_flags(LittleEndian) & elf::PF_X != Default::default(),
        })
        .collect()
}

/// The size of the file's thread-local memory, rounded up as the loader does it. `None` if it has none.
pub fn tls_size(elf: &Elf<'_>) -> Option<u64> {
    let segment = elf.elf_program_headers().iter().find(|s| s.p_type(LittleEndian) == elf::PT_TLS)?;
    let align = segment.p_align(LittleEndian).max(1);
    segment.p_memsz(LittleEndian).checked_next_multiple_of(align)
}

/// The executable segments: address before loading, and bytes.
pub fn code(elf: &Elf<'_>) -> Vec<(u64, Vec<u8>)> {
    let loaded = elf.elf_program_headers().iter().filter(|s| s.p_type(LittleEndian) == elf::PT_LOAD);
    let code = loaded.filter(|s| s.p_flags(LittleEndian) & elf::PF_X != Default::default());
    code.filter_map(|s| Some((s.p_vaddr(LittleEndian), s.data(LittleEndian, elf.data()).ok()?.to_vec())))
        .collect()
}

/// The sections that hold code: first address and end, before loading, in order.
pub fn code_sections(elf: &Elf<'_>) -> Vec<(u64, u64)> {
    let code = elf.sections().filter(|section| section.kind() == SectionKind::Text);
    let mut out: Vec<_> = code.map(|s| (s.address(), s.address().saturating_add(s.size()))).collect();
    out.sort_unstable();
    out
}

/// The slots, before loading, in which the file holds the addresses of imported functions. Only functions in
/// `names` count; each slot comes with its index in `names`.
pub fn imports(elf: &Elf<'_>, names: &[&str]) -> Vec<(usize, u64)> {
    let Some(symbols) = elf.dynamic_symbol_table() else { return Vec::new() };
    let number = |target| match target {
        RelocationTarget::Symbol(index) => {
            let symbol = symbols.symbol_by_index(index).ok()?;
            let name = symbol.name().ok()?;
            names.iter().position(|wanted| *wanted == name)
        }
        _ => None,
    };
    let whole = |flags| matches!(flags, RelocationFlags::Elf { r_type } if r_type == elf::R_X86_64_JUMP_SLOT || r_type == elf::R_X86_64_GLOB_DAT);
    let relocations = elf.dynamic_relocations().into_iter().flatten();
    relocations
        .filter(|(_, relocation)| whole(relocation.flags()))
        .filter_map(|(address, relocation)| Some((number(relocation.target())?, address)))
        .collect()
}

/// The addresses, before loading, of the functions in `names` that the file exports; 0 for a function that it
/// does not export.
pub fn exports(elf: &Elf<'_>, names: &[&str]) -> Vec<u64> {
    let mut out = vec![0; names.len()];
    for symbol in elf.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
        if let Some(number) = symbol.name().ok().and_then(|name| names.iter().position(|n| *n == name)) {
            out[number] = symbol.address();
        }
    }
    out
}
