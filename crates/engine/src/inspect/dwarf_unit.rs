//! Compilation units of the debug information, and how their entries are named.

use gimli::{DebugInfoOffset, EndianSlice, LittleEndian, UnitOffset};
use std::ops::Range;

/// Bytes of a section.
pub type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// An entry of the debug information: the number of its unit, and its place in there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef {
    /// Index into the units of the file.
    pub unit: usize,
    /// Offset of the entry.
    pub entry: UnitOffset,
}

/// A compilation unit.
#[derive(Debug)]
pub struct UnitInfo {
    /// Where it begins.
    pub offset: DebugInfoOffset,
    /// Which of its entries are inside of the namespaces of a library: whole subtrees lie in one piece.
    pub library: Vec<Range<usize>>,
}
