//! Unpacks the files embedded in this executable: the runtime, which the dynamic loader preloads; the stub,
//! which is linked into instrumented programs; and `heisen.h`, which a compiler includes.
//!
//! Each is stored in a private cache directory under a name with its hash, so that versions do not collide.
//! It is compared byte for byte before it is used.

use crate::error::{Error, Result};
use crate::platform::sys;
use crate::program;
use std::fs::{self, DirBuilder};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static RUNTIME: &[u8] = include_bytes!(env!("HEISEN_RUNTIME"));

static STUB: &[u8] = include_bytes!(env!("HEISEN_STUB"));

/// The header for programs that call Heisen.
pub static HEADER: &str = include_str!("../../../../include/heisen.h");

/// The path of the runtime; writes the file if it is missing.
pub fn runtime() -> Result<PathBuf> {
    const NAME: &str = concat!("runtime-", env!("HEISEN_RUNTIME_HASH"), ".so");
    unpack("the runtime", |cache| {
        private(cache)?;
        place(cache, NAME, RUNTIME)
    })
}

/// A directory for the linker: the stub's object file, and empty libraries in place of the sanitizer's.
/// Writes it if it is missing.
pub fn stub() -> Result<PathBuf> {
    const EMPTY: &[u8] = b"!<arch>\n";
    let name = format!("stub-{}", &program::hash(STUB)[..16]);
    directory("the stub", &name, &[("stub.o", STUB), ("libtsan.a", EMPTY), ("libtsan.so", EMPTY)])
}

/// A directory that holds only `heisen.h`; writes it if it is missing.
pub fn include() -> Result<PathBuf> {
    let name = format!("include-{}", &program::hash(HEADER.as_bytes())[..16]);
    directory("heisen.h", &name, &[("heisen.h", HEADER.as_bytes())])
}

/// A link to this executable under another name. The directory's name identifies the version, so that cargo
/// rebuilds with another version.
pub fn linker(name: &str) -> Result<PathBuf> {
    let strange = |e: std::io::Error| Error::Internal(format!("this executable cannot be found: {e}"));
    let this = std::env::current_exe().map_err(strange)?;
    let meta = fs::metadata(&this).map_err(strange)?;
    let version = format!("{} {} {}.{}", this.display(), meta.len(), meta.mtime(), meta.mtime_nsec());
    let directory = format!("link-{}", &program::hash(version.as_bytes())[..16]);
    unpack("a link", |cache| {
        private(cache)?;
        let directory = cache.join(&directory);
        private(&directory)?;
        let path = directory.join(name);
        if fs::read_link(&path).is_ok_and(|there| there == this) {
            return Ok(path);
        }
        let temporary = directory.join(format!("{name}-{}.tmp", std::process::id()));
        symlink(&this, &temporary).and_then(|()| fs::rename(&temporary, &path))?;
        Ok(path)
    })
}

/// A directory for the records of running programs.
pub fn running() -> Result<PathBuf> {
    directory("the list of programs that run", "running", &[])
}

/// A directory in the cache with these files.
fn directory(what: &str, name: &str, files: &[(&str, &[u8])]) -> Result<PathBuf> {
    unpack(what, |cache| {
        private(cache)?;
        let directory = cache.join(name);
        private(&directory)?;
        for (file, bytes) in files {
            place(&directory, file, bytes)?;
        }
        Ok(directory)
    })
}

/// Calls `write` with one cache directory after the other until it succeeds.
fn unpack(what: &str, write: impl Fn(&Path) -> std::io::Result<PathBuf>) -> Result<PathBuf> {
    let mut last = String::new();
    for directory in candidates() {
        match write(&directory) {
            Ok(path) => return Ok(path),
            Err(error) => last = format!("{}: {error}", directory.display()),
        }
    }
    Err(Error::Internal(format!(
        "{what} cannot be unpacked ({last}); set XDG_CACHE_HOME to a writable directory"
    )))
}

fn candidates() -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()) {
        all.push(Path::new(&cache).join("heisen"));
    } else if let Some(home) = std::env::var_os("HOME").filter(|v| !v.is_empty()) {
        all.push(Path::new(&home).join(".cache/heisen"));
    }
    all.push(std::env::temp_dir().join(format!("heisen-{}", sys::user())));
    all
}

/// Creates a directory that nobody else can write to.
fn private(directory: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let meta = fs::symlink_metadata(directory)?;
    if !meta.is_dir() || meta.uid() != sys::user() || meta.mode() & 0o022 != 0 {
        return Err(std::io::Error::other("not a private directory"));
    }
    Ok(())
}

/// Creates a file with these bytes. An existing correct file stays, also if another process wrote it just
/// now. Running programs have it mapped, and a comparison of two of them must find the same file in both.
fn place(directory: &Path, name: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let path = directory.join(name);
    let is_there = || fs::File::open(&path).and_then(|file| holds(file, bytes)).unwrap_or(false);
    if is_there() {
        return Ok(path);
    }
    // Written under another name first, so that nobody ever sees an incomplete file.
    let mine = format!("{name}-{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Relaxed));
    let temporary = directory.join(mine);
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o700)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes));
    // A hard link fails if the file exists. A damaged file is replaced by renaming; so is any file if the
    // file system has no hard links.
    let placed = written.and_then(|()| match fs::hard_link(&temporary, &path) {
        Err(_) if !is_there() => fs::rename(&temporary, &path),
        _ => fs::remove_file(&temporary),
    });
    if placed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    placed.map(|()| path)
}

/// Whether a file has these bytes. It is read in parts: memory for all of it would cost each command more than the
/// comparison.
fn holds(mut file: impl Read, bytes: &[u8]) -> std::io::Result<bool> {
    let (mut rest, mut part) = (bytes, [0; 1 << 16]);
    loop {
        let read = file.read(&mut part)?;
        match rest.strip_prefix(&part[..read]) {
            Some(_) if read == 0 => return Ok(rest.is_empty()),
            Some(after) => rest = after,
            None => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn whoever_comes_first_writes_the_file() {
        let directory = std::env::temp_dir().join(format!("heisen-unpack-{}", std::process::id()));
        private(&directory).unwrap();
        let bytes = vec![7; 1 << 20];
        for round in 0..20 {
            let name = format!("file-{round}");
            let barrier = Barrier::new(4);
            let place_it = || {
                barrier.wait();
                fs::metadata(place(&directory, &name, &bytes).unwrap()).unwrap().ino()
            };
            let inodes: Vec<u64> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..4).map(|_| scope.spawn(place_it)).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(inodes.iter().all(|&inode| inode == inodes[0]), "{inodes:?}");
        }
        let longer = [&bytes[..], b"!"].concat();
        for damaged in [b"damaged", &b""[..], &bytes[..bytes.len() - 1], &longer] {
            fs::write(directory.join("file-0"), damaged).unwrap();
            assert_eq!(fs::read(place(&directory, "file-0", &bytes).unwrap()).unwrap(), bytes);
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 20, "something was left behind");
        fs::remove_dir_all(&directory).unwrap();
    }
}
