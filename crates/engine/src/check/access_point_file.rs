//! Stores access points in the output directory for the next check of a program, so that the search need not
//! find them again and start over. The file is only an optimisation: a damaged file, or one for another
//! program, counts as missing.

use crate::error::{Error, Result};
use crate::platform::atomic_file;
use crate::program::Program;
use heisen_trace::CodePlace;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of the format; files of other versions are ignored.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    /// The hash of the executable.
    binary: String,
    points: Vec<CodePlace>,
}

/// The path of the file for a program.
pub fn path(directory: &Path, program: &Program) -> PathBuf {
    directory.join("points").join(format!("{}-{}.json", program.short_name(), &program.hash[..8]))
}

/// Reads the stored places of a program. Empty if there is no file; an error if it is damaged.
pub fn read(path: &Path, program: &Program) -> Result<Vec<CodePlace>> {
    let broken = |why: String| Error::Input(format!("{}: {why}", path.display()));
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(broken(error.to_string())),
    };
    let file: File = serde_json::from_slice(&bytes).map_err(|e| broken(e.to_string()))?;
    let fits = file.version == VERSION && file.binary == program.hash;
    Ok(if fits { file.points } else { Vec::new() })
}

/// Stores places for later checks of the program.
pub fn write(path: &Path, program: &Program, points: Vec<CodePlace>) -> Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|e| Error::Input(format!("{}: {e}", directory.display())))?;
    }
    let file = File { version: VERSION, binary: program.hash.clone(), points };
    let text = serde_json::to_vec_pretty(&file).map_err(|e| Error::Internal(e.to_string()))?;
    atomic_file::write(path, &text)
}
