//! Provides the program's standard input. Heisen reads it once, from a file or its own input, gives it to
//! each execution anew, and stores it with findings. So a replay does not need the original file.

use crate::error::{Error, Result};
use crate::platform::atomic_file;
use crate::platform::sys;
use crate::program::{Program, hash};
use heisen_trace::stdin::INLINE;
use heisen_trace::{Stdin, World};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

/// The largest standard input, in bytes: each worker holds it in memory.
pub const LIMIT: usize = 64 << 20;

/// Reads the standard input for the program from a file; `-` means Heisen's own, up to its end.
pub fn read(path: &Path) -> Result<Stdin> {
    let shown = path.display();
    let bytes = if path == Path::new("-") { read_all(std::io::stdin().lock()) } else { read_file(path) };
    let bytes = bytes.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::Input(format!(
            "--stdin {shown}: not found; name the file that is to be the program's standard input"
        )),
        std::io::ErrorKind::IsADirectory => {
            Error::Input(format!("--stdin {shown} is a directory; name a file in it"))
        }
        _ => Error::Input(format!("--stdin {shown}: {e}")),
    })?;
    if bytes.len() > LIMIT {
        return Err(Error::Input(format!(
            "--stdin {shown} has more than {} MiB, the most that Heisen stores for replays; use a smaller input",
            LIMIT >> 20
        )));
    }
    Ok(Stdin::Bytes(bytes.into()))
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    File::open(path).and_then(read_all)
}

/// Reads everything, or one byte more than the limit.
fn read_all(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The environment as a file records it: a standard input that is too large becomes the name of a file beside
/// it.
pub fn recorded(world: &World, program: &Program) -> World {
    let mut world = world.clone();
    if let Some(Stdin::Bytes(bytes)) = &world.stdin
        && bytes.len() > INLINE
    {
        let hash = hash(bytes);
        world.stdin =
            Some(Stdin::Beside { name: format!("{}-{}.stdin", program.short_name(), &hash[..8]), hash });
    }
    world
}

/// Writes the standard input to a file in `directory`, if the recorded environment names one. Returns that
/// environment.
pub fn write_beside(world: &World, program: &Program, directory: &Path) -> Result<World> {
    let recorded = recorded(world, program);
    if let (Some(Stdin::Bytes(bytes)), Some(Stdin::Beside { name, .. })) = (&world.stdin, &recorded.stdin) {
        atomic_file::write(&directory.join(name), bytes)?;
    }
    Ok(recorded)
}

/// Reads the standard input that `file`, a schedule or a saved search, names, if it lies beside `file`.
pub fn fetch(world: &mut World, file: &Path) -> Result<()> {
    let Some(Stdin::Beside { name, hash: expected }) = &world.stdin else { return Ok(()) };
    let bytes = read_beside(file, name, expected, "standard input")?;
    world.stdin = Some(Stdin::Bytes(bytes.into()));
    Ok(())
}

/// Reads a file beside another one that records its name and hash.
pub(crate) fn read_beside(file: &Path, name: &str, expected: &str, what: &str) -> Result<Vec<u8>> {
    let path = file.with_file_name(name);
    let (shown, file) = (path.display(), file.display());
    let bytes = read_file(&path).map_err(|e| {
        Error::Input(format!(
            "{shown}: {e}; it holds the {what} that {file} was made with: put it back, or check the program again"
        ))
    })?;
    if hash(&bytes) != expected {
        return Err(Error::Input(format!(
            "{shown} has changed: it is not the {what} that {file} was made with; put that back, or check the program again"
        )));
    }
    Ok(bytes)
}

/// The standard input of a program that is about to start.
pub(crate) fn open(world: &World) -> Result<Stdio> {
    match &world.stdin {
        None => Ok(Stdio::null()),
        Some(Stdin::Bytes(bytes)) => sys::read_only_file(bytes)
            .map(Stdio::from)
            .map_err(|e| Error::Internal(format!("no file in memory for the standard input: {e}"))),
        Some(Stdin::Beside { name, .. }) => Err(Error::Internal(format!("{name} was not read"))),
    }
}
