//! A search that was interrupted, as a file.

use crate::check::{Options, Tally};
use crate::error::{Error, Result};
use crate::program::Program;
use heisen_search::Search;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The version of the format; another one is refused.
const VERSION: u32 = 2;

/// Everything that is needed to go on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    version: u32,
    program: Vec<u8>,
    args: Vec<Vec<u8>>,
    source: Option<Vec<u8>>,
    #[serde(default)]
    with_std: bool,
    binary: String,
    #[serde(default)]
    at_ready: bool,
    #[serde(default)]
    directory: Option<Vec<u8>>,
    #[serde(default)]
    environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// What to do.
    pub options: Options,
    /// What was done.
    pub tally: Tally,
    /// The search.
    pub search: Search,
}

impl Saved {
    /// A search of `program`, to be saved.
    pub fn new(program: &Program, options: Options, tally: Tally, search: Search) -> Saved {
        let bytes = |text: &OsString| text.as_bytes().to_vec();
        Saved {
            version: VERSION,
            program: program.path.as_os_str().as_bytes().to_vec(),
            args: program.args.iter().map(bytes).collect(),
            source: program.source.as_ref().map(|s| s.as_os_str().as_bytes().to_vec()),
            with_std: program.with_std,
            binary: program.hash.clone(),
            at_ready: program.at_ready,
            directory: program.directory.as_ref().map(|d| d.as_os_str().as_bytes().to_vec()),
            environment: program
                .environment
                .iter()
                .map(|(name, value)| (bytes(name), bytes(value)))
                .collect(),
            options,
            tally,
            search,
        }
    }

    /// Writes it; whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|e| Error::Internal(format!("the search cannot be saved: {e}")))?;
        write_whole(path, &text)
    }

    /// Reads a saved search, and finds its program.
    pub fn read(path: &Path) -> Result<(Saved, Program)> {
        let shown = path.display();
        let text = fs::read(path).map_err(|e| {
            Error::Input(format!("{shown}: {e}; name the search file that the interrupted check has written"))
        })?;
        let saved: Saved = serde_json::from_slice(&text).map_err(|e| {
            Error::Input(format!(
                "{shown} is not a search that this Heisen has saved ({e}); start the check anew"
            ))
        })?;
        if saved.version != VERSION {
            return Err(Error::Input(format!(
                "{shown} was saved by another version of Heisen; start the check anew"
            )));
        }
        let args = saved.args.iter().map(|a| OsString::from_vec(a.clone())).collect();
        let mut program = Program::find(std::ffi::OsStr::from_bytes(&saved.program), args)?;
        program.at_ready = saved.at_ready;
        let text = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        program.directory = saved.directory.as_ref().map(|d| text(d).into());
        program.environment =
            saved.environment.iter().map(|(name, value)| (text(name), text(value))).collect();
        program.with_std = saved.with_std;
        program.source = saved.source.as_ref().map(|s| OsString::from_vec(s.clone()).into());
        if program.hash != saved.binary {
            let program = program.path.display();
            return Err(Error::Input(format!(
                "{program} has changed since {shown} was saved; start the check anew"
            )));
        }
        Ok((saved, program))
    }
}

/// Writes a file so that nobody ever sees half of it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |e: std::io::Error| Error::Input(format!("{} cannot be written: {e}", path.display()));
    // Where a link leads to; a device or a pipe is written to, never replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return fs::write(path, bytes).map_err(fail);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(fail)
}
