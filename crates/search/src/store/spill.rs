//! The spill file as a search sees it: a place for plans that do not fit into memory.
//!
//! A search does no I/O. The engine implements the trait; the search only writes bytes and reads them back.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A store for bytes outside of memory.
pub trait SpillFile: Debug + Send + Sync {
    /// Writes bytes. Returns their position.
    fn put(&self, bytes: &[u8]) -> io::Result<u64>;

    /// Reads bytes that were written.
    fn get(&self, place: u64, length: usize) -> io::Result<Vec<u8>>;

    /// Frees bytes that are no longer needed.
    fn free(&self, place: u64, length: usize);
}

/// The memory that a search may take, and the spill file for the rest.
#[derive(Clone, Debug)]
pub struct Room {
    /// The limit in bytes.
    pub bytes: usize,
    /// Where plans beyond the limit go.
    pub spill: Arc<dyn SpillFile>,
}

impl Room {
    /// A share of the memory: one of `parts` equal parts.
    pub(crate) fn part(&self, parts: usize) -> Room {
        Room { bytes: self.bytes / parts, spill: self.spill.clone() }
    }
}

/// Bytes in the spill file. Dropping this frees them.
#[derive(Debug)]
pub(crate) struct Spilled {
    spill: Arc<dyn SpillFile>,
    place: u64,
    length: usize,
}

impl Spilled {
    pub fn put(spill: &Arc<dyn SpillFile>, bytes: &[u8]) -> io::Result<Spilled> {
        let place = spill.put(bytes)?;
        Ok(Spilled { spill: spill.clone(), place, length: bytes.len() })
    }

    pub fn get(&self) -> io::Result<Vec<u8>> {
        self.spill.get(self.place, self.length)
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.spill.free(self.place, self.length);
    }
}
