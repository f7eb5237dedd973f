//! Identifies compilation units of the debug information and their entries.

use gimli::{DebugInfoOffset, EndianSlice, LittleEndian, UnitOffset};
use std::ops::Range;

/// The bytes of a section.
pub type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// An entry of the debug information: the index of its unit and its offset in that unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryRef {
    /// Index into the units of the file.
    pub unit: usize,
    /// Offset of the entry in its unit.
    pub entry: UnitOffset,
}

/// A compilation unit.
#[derive(Debug)]
pub struct UnitInfo {
    /// Where it begins in the section.
    pub offset: DebugInfoOffset,
    /// The ranges of entries that lie in a library's namespaces. A subtree of entries is contiguous, so
    /// ranges suffice.
    pub library: Vec<Range<usize>>,
}
