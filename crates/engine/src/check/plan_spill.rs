//! Provides the spill file for plans that do not fit into memory. The file has no name, so it disappears with
//! this process, however that ends.

use crate::platform::sys;
use heisen_search::SpillFile;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The spill file, created when the first bytes are written.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
    space: Mutex<Space>,
}

#[derive(Debug, Default)]
struct Space {
    file: Option<File>,
    /// The offset at which the next bytes are written.
    end: u64,
    /// The number of bytes in use. Unused ranges between them were returned to the file system.
    used: u64,
}

impl Disk {
    /// A spill file in `directory`, or in its nearest existing parent.
    pub fn new(directory: &Path) -> Disk {
        let there = directory.ancestors().find(|path| path.is_dir());
        let directory = there.unwrap_or(Path::new(".")).to_owned();
        Disk { directory, space: Mutex::default() }
    }

    /// Creates a file without a name.
    fn file(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(&self.directory) {
            return Ok(file);
        }
        // For file systems without unnamed files.
        let path = self.directory.join(format!(".heisen-search-{}.tmp", std::process::id()));
        let file = options.create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }
}

impl SpillFile for Disk {
    fn put(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match space.file.take() {
            Some(file) => file,
            None => self.file()?,
        };
        let place = space.end;
        let written = file.write_all_at(bytes, place);
        space.file = Some(file);
        written?;
        space.end += bytes.len() as u64;
        space.used += bytes.len() as u64;
        Ok(place)
    }

    fn get(&self, place: u64, length: usize) -> io::Result<Vec<u8>> {
        let space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = vec![0; length];
        let file = space.file.as_ref().ok_or_else(|| io::Error::other("nothing was put there"))?;
        file.read_exact_at(&mut bytes, place)?;
        Ok(bytes)
    }

    fn free(&self, place: u64, length: usize) {
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        space.used -= length as u64;
        if space.used == 0 {
            space.end = 0;
        }
        let Space { file: Some(file), end, .. } = &*space else { return };
        // Space that cannot be returned now is returned when the search ends.
        if *end == 0 {
            let _ = file.set_len(0);
        } else {
            sys::free_part(file, place, length as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn bytes_come_back_and_the_room_is_freed() {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = Disk::new(&directory.path().join("not/yet/there"));
        let parcel = |n: u8| vec![n; 1 << 16];
        let places: Vec<u64> = (0..8).map(|n| disk.put(&parcel(n)).expect("it is put there")).collect();
        assert_eq!(std::fs::read_dir(directory.path()).expect("the directory").count(), 0, "it has no name");
        let blocks = || {
            let space = disk.space.lock().unwrap();
            space.file.as_ref().unwrap().metadata().unwrap().blocks() * 512
        };
        assert!(blocks() >= 8 << 16);
        places[..6].iter().for_each(|&place| disk.free(place, 1 << 16));
        assert!(blocks() <= 3 << 16, "{}", blocks());
        assert_eq!(disk.get(places[7], 1 << 16).expect("it is there"), parcel(7));
        places[6..].iter().for_each(|&place| disk.free(place, 1 << 16));
        assert_eq!((blocks(), disk.put(&parcel(9)).expect("there is room")), (0, 0));
        assert_eq!(disk.get(0, 1 << 16).expect("it is there"), parcel(9));
        assert!(disk.get(10, 1 << 16).is_err());
    }
}
