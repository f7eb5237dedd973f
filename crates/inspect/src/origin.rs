//! Finds the file behind a mapping and distinguishes versions of a file.

use super::elf::Source;
use super::maps::Mapping;
use super::memory;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Distinguishes two files, or two versions of one file.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    path: PathBuf,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// Where the bytes of a module are.
#[derive(Debug)]
enum Place {
    File(PathBuf),
    Memory { pid: i32, start: u64 },
}

/// The file behind a mapping, or the memory if there is no file.
#[derive(Debug)]
pub struct Origin {
    place: Place,
    size: u64,
}

impl Origin {
    /// Returns `None` for memory without a file, or whose file is gone. `main` says whether this is the main
    /// executable.
    pub fn of(pid: i32, mapping: &Mapping, main: bool) -> Option<(Identity, Origin)> {
        let &Mapping { start, end, inode, .. } = mapping;
        let size = end.checked_sub(start)?;
        let path = mapping.path.clone();
        // The vDSO, the kernel's code in every process, is a complete ELF file that exists only in memory.
        if path == Path::new("[vdso]") {
            let origin = Origin { place: Place::Memory { pid, start }, size };
            return Some((Identity { path, inode, size, modified: (0, 0) }, origin));
        }
        if inode == 0 {
            return None;
        }
        if mapping.deleted {
            let kept = if main { "exe".to_owned() } else { format!("map_files/{start:x}-{end:x}") };
            let origin = Origin { place: Place::File(format!("/proc/{pid}/{kept}").into()), size };
            return Some((Identity { path, inode, size, modified: (0, 0) }, origin));
        }
        let found = fs::metadata(&path).ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        let origin = Origin { place: Place::File(path.clone()), size };
        Some((Identity { path, inode: found.ino(), size: found.size(), modified }, origin))
    }

    /// Opens the file, or copies the memory.
    pub fn open(&self) -> io::Result<Source> {
        match &self.place {
            Place::File(path) => Source::open(path),
            &Place::Memory { pid, start } => {
                let mut bytes = vec![0; self.size as usize];
                memory::read_bytes(pid, start, &mut bytes)?;
                Ok(Source::Bytes(bytes.into()))
            }
        }
    }
}
