//! Where plans wait that have no room in memory. What a shelf is made of is the engine's business, as a search does no I/O;
//! it only puts bytes there and takes them back.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A place for bytes.
pub trait Shelf: Debug + Send + Sync {
    /// Puts bytes there; tells where they are.
    fn put(&self, bytes: &[u8]) -> io::Result<u64>;

    /// Reads what was put there.
    fn get(&self, place: u64, length: usize) -> io::Result<Vec<u8>>;

    /// What was put there is not needed any more.
    fn free(&self, place: u64, length: usize);
}

/// How much memory a search may take, and where the rest goes.
#[derive(Clone, Debug)]
pub struct Room {
    /// Bytes.
    pub bytes: usize,
    /// The rest.
    pub shelf: Arc<dyn Shelf>,
}

impl Room {
    /// A part of it.
    pub(crate) fn part(&self, parts: usize) -> Room {
        Room { bytes: self.bytes / parts, shelf: self.shelf.clone() }
    }
}

/// Bytes that lie on a shelf, until they are dropped.
#[derive(Debug)]
pub(crate) struct Shelved {
    shelf: Arc<dyn Shelf>,
    place: u64,
    length: usize,
}

impl Shelved {
    pub fn put(shelf: &Arc<dyn Shelf>, bytes: &[u8]) -> io::Result<Shelved> {
        let place = shelf.put(bytes)?;
        Ok(Shelved { shelf: shelf.clone(), place, length: bytes.len() })
    }

    pub fn get(&self) -> io::Result<Vec<u8>> {
        self.shelf.get(self.place, self.length)
    }
}

impl Drop for Shelved {
    fn drop(&mut self) {
        self.shelf.free(self.place, self.length);
    }
}
