//! Holds a program or library of the process: its file, and the parts of the file that were parsed so far.

use super::debug_info::DebugInfo;
use super::elf::{self, Segment, Source, segments};
use super::symbols::SymbolTable;
use super::unwind::UnwindTables;
use object::Object;
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where separate debug files are installed.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// One file, independent of the processes that load it and of the addresses where they do.
pub struct Module {
    /// Name without the directory.
    pub name: String,
    /// Whether this is a library of the system. Heisen does not read its source lines and variables.
    pub system: bool,
    segments: Vec<Segment>,
    path: PathBuf,
    source: Source,
    unwind: OnceCell<Option<UnwindTables>>,
    symbols: OnceCell<SymbolTable>,
    debug: OnceCell<Option<DebugInfo>>,
}

impl Module {
    /// Reads the headers. Returns `None` if this is not an x86-64 program or library.
    pub fn new(path: &Path, system: bool, source: Source) -> Option<Module> {
        let segments = source.with(segments)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Some(Module {
            name,
            system,
            segments,
            path: path.to_owned(),
            source,
            unwind: OnceCell::new(),
            symbols: OnceCell::new(),
            debug: OnceCell::new(),
        })
    }

    /// The load bias, if the byte at `offset` in the file is mapped executable at `address`.
    pub fn bias(&self, offset: u64, address: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let holds = |s: &&Segment| {
            s.executable
                && offset >= s.offset / PAGE * PAGE
                && offset < s.offset.checked_add(s.file_size).unwrap_or(s.offset)
        };
        let segment = self.segments.iter().find(holds)?;
        Some(address.wrapping_sub(segment.address.wrapping_add(offset.wrapping_sub(segment.offset))))
    }

    /// The addresses, before loading, that the file occupies; `None` if it occupies no memory.
    pub fn extent(&self) -> Option<(u64, u64)> {
        let start = self.segments.iter().map(|s| s.address).min()?;
        let end = self.segments.iter().map(|s| s.address.saturating_add(s.size)).max()?;
        (start < end).then_some((start, end))
    }

    /// The code, before loading, as pieces with start and end. Each piece reaches from one line or function
    /// bound to the next.
    pub fn pieces(&self) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        for segment in self.segments.iter().filter(|s| s.executable) {
            let (start, end) = (segment.address, segment.address.saturating_add(segment.size));
            let mut bounds: Vec<u64> = vec![start, end];
            bounds.extend(self.symbols().function_bounds());
            bounds.extend(self.debug().map_or_else(Vec::new, |debug| debug.line_bounds(start, end)));
            bounds.retain(|bound| (start..=end).contains(bound));
            bounds.sort_unstable();
            bounds.dedup();
            out.extend(bounds.windows(2).map(|pair| (pair[0], pair[1])));
        }
        out
    }

    /// The code as in the file, by its addresses before loading.
    pub fn code(&self) -> Vec<(u64, Vec<u8>)> {
        self.source.with(elf::code).unwrap_or_default()
    }

    /// See [`elf::tls_size`].
    pub fn tls_size(&self) -> Option<u64> {
        self.source.with(elf::tls_size).flatten()
    }

    /// See [`elf::imports`].
    pub fn imports(&self, names: &[&str]) -> Vec<(usize, u64)> {
        self.source.with(|elf| elf::imports(elf, names)).unwrap_or_default()
    }

    /// See [`elf::exports`].
    pub fn exports(&self, names: &[&str]) -> Vec<u64> {
        self.source.with(|elf| elf::exports(elf, names)).unwrap_or_else(|| vec![0; names.len()])
    }

    /// First address and end of each function, before loading, in order and without overlaps. They come from
    /// the unwind tables, which stripped files have too, and from symbols for code without unwind entries. In
    /// a section of which both together cover less than half, the gaps count as functions too.
    pub fn functions(&self) -> Vec<(u64, u64)> {
        let mut out = apart(self.unwind().into_iter().flat_map(UnwindTables::functions).collect());
        let mut named = apart(self.symbols().functions().collect());
        named.retain(|&(start, end)| {
            let after = out.partition_point(|f| f.1 <= start);
            out.get(after).is_none_or(|f| end <= f.0)
        });
        out.extend(named);
        out.sort_unstable();
        for (start, end) in self.source.with(elf::code_sections).unwrap_or_default() {
            fill(&mut out, start, end);
        }
        out
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The unwind tables; `None` if the file cannot be read.
    pub fn unwind(&self) -> Option<&UnwindTables> {
        self.unwind.get_or_init(|| self.source.with(UnwindTables::new)).as_ref()
    }

    /// The symbols, of the file and of its separate debug file.
    pub fn symbols(&self) -> &SymbolTable {
        self.symbols.get_or_init(|| {
            let mut symbols = SymbolTable::default();
            self.source.with(|elf| symbols.add(elf));
            if let Some(source) = self.separate() {
                source.with(|elf| symbols.add(elf));
            }
            symbols.finish();
            symbols
        })
    }

    /// Lines and variables. Debug information of system libraries is not read: it costs time and says nothing
    /// about the program.
    pub fn debug(&self) -> Option<&DebugInfo> {
        let find = || self.source.with(DebugInfo::new)?.or_else(|| self.separate()?.with(DebugInfo::new)?);
        self.debug.get_or_init(|| if self.system { None } else { find() }).as_ref()
    }

    /// The separate debug file, found by build id or debug link in the same places where gdb looks.
    fn separate(&self) -> Option<Source> {
        let candidates = self.source.with(|elf| {
            let mut out = Vec::new();
            if let Ok(Some([first, rest @ ..])) = elf.build_id() {
                let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
                out.push(PathBuf::from(format!("{DEBUG_ROOT}/.build-id/{first:02x}/{rest}.debug")));
            }
            let directory = self.path.parent().unwrap_or(Path::new("/"));
            if let Ok(Some((link, _))) = elf.gnu_debuglink() {
                let link = OsStr::from_bytes(link);
                out.push(directory.join(link));
                out.push(directory.join(".debug").join(link));
                let below_root = directory.strip_prefix("/").unwrap_or(directory);
                out.push(Path::new(DEBUG_ROOT).join(below_root).join(link));
            }
            let id = elf.build_id().ok().flatten().map(<[u8]>::to_vec);
            (out, id)
        });
        let (paths, id) = candidates?;
        paths.into_iter().filter(|path| *path != self.path).find_map(|path| {
            let source = Source::open(&path).ok()?;
            // A debug link is only a name. The debug file of another build would give wrong lines, so the
            // build ids must match.
            let its = source.with(|elf| elf.build_id().ok().flatten().map(<[u8]>::to_vec))?;
            (its.is_some() && its == id).then_some(source)
        })
    }
}

/// Sorts the ranges and drops each one that overlaps its predecessor.
fn apart(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut last = 0;
    ranges.retain(|&(start, end)| {
        let keep = last <= start && start < end;
        last = if keep { end } else { last };
        keep
    });
    ranges
}

/// Adds the gaps between a section's functions as functions, if the gaps are most of the section. Otherwise
/// they are padding or data.
fn fill(functions: &mut Vec<(u64, u64)>, start: u64, end: u64) {
    let within = functions.iter().filter(|f| start <= f.0 && f.1 <= end);
    let known: u64 = within.clone().map(|f| f.1 - f.0).sum();
    if start >= end || known * 2 >= end - start {
        return;
    }
    let starts = within.clone().map(|f| f.0).chain([end]);
    let ends = [start].into_iter().chain(within.clone().map(|f| f.1));
    let gaps: Vec<(u64, u64)> = ends.zip(starts).filter(|(from, to)| from < to).collect();
    functions.extend(gaps);
    functions.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::{apart, fill};

    #[test]
    fn overlapping_ranges() {
        assert_eq!(apart(vec![(5, 9), (1, 3), (2, 6), (9, 9), (9, 10)]), [(1, 3), (5, 9), (9, 10)]);
    }

    #[test]
    fn gaps_are_functions_only_if_hardly_any_is_known() {
        let filled = |known: &[(u64, u64)]| {
            let mut functions = known.to_vec();
            fill(&mut functions, 100, 200);
            functions
        };
        assert_eq!(filled(&[(100, 160)]), [(100, 160)]);
        assert_eq!(filled(&[]), [(100, 200)]);
        assert_eq!(
            filled(&[(20, 90), (110, 120), (150, 160)]),
            [(20, 90), (100, 110), (110, 120), (120, 150), (150, 160), (160, 200)]
        );
    }
}
