//! Replaces files atomically: writes them under a temporary name, then renames them.

use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file so that no reader ever sees a part of it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| file.write_all(bytes))
}

/// Like [`write()`], but a function writes the contents.
pub(crate) fn write_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let fail = |e: io::Error| Error::Input(format!("{} cannot be written: {e}", path.display()));
    let fill = |file: File| {
        let mut file = BufWriter::with_capacity(1 << 16, file);
        write(&mut file)?;
        file.flush()
    };
    // Resolve links. A device or a pipe is written to, never replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return OpenOptions::new().write(true).open(path).and_then(fill).map_err(fail);
    }
    let temporary = temporary(path);
    let written = File::create(&temporary).and_then(fill).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(fail)
}

/// Refuses a path that cannot be written, without changing anything. A pipe or a device is not opened: its reader would
/// see an end.
pub fn check(path: &Path) -> Result<()> {
    let real = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return Ok(());
    }
    let temporary = temporary(real);
    let tried = File::create(&temporary).and_then(|_| fs::remove_file(&temporary));
    tried.map_err(|e| Error::Input(format!("{} cannot be written: {e}", path.display())))
}

/// The name under which a file is written before it is renamed.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

/// The directory that a file is in.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Removes the temporary files that killed processes left beside a file.
pub(crate) fn remove_unfinished(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + ".";
    for entry in fs::read_dir(directory_of(path)).into_iter().flatten().flatten() {
        let found = entry.file_name().to_string_lossy().into_owned();
        let writer = found.strip_prefix(&name).and_then(|rest| rest.strip_suffix(".tmp"));
        let gone = |pid: u32| !Path::new("/proc").join(pid.to_string()).exists();
        if writer.and_then(|pid| pid.parse().ok()).is_some_and(gone) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
