//! Saves a search to a file: one that was interrupted, or one that runs and may be killed at any time.

use crate::check::options::Options;
use crate::check::outcome::Tally;
use crate::error::{Error, Result};
use crate::platform::atomic_file::{directory_of, remove_unfinished, write_with};
use crate::process::stdin;
use crate::program::{Program, hex};
use heisen_search::Search;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The version of the format; other versions are refused.
const VERSION: u32 = 7;
/// How often a running search is saved.
const EVERY: Duration = Duration::from_secs(1);
/// Saving may take at most one part in this many of the time. If it takes long, it is done less often.
const PART: u32 = 20;
/// The bytes after the search in the file: a newline, and the search's SHA-256 in hexadecimal digits.
const SUM: u64 = 1 + 64;

/// Everything that is needed to resume a search.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved<O = Options, T = Tally, S = Search> {
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
    /// Whether it was saved while it ran. It then goes on being saved to the same file.
    #[serde(default)]
    pub regularly: bool,
    /// The settings.
    pub options: O,
    /// The work done so far.
    pub tally: T,
    /// The search itself.
    pub search: S,
}

impl<'a> Saved<&'a Options, &'a Tally, &'a Search> {
    /// A search of `program`, to be saved. A standard input that its options name must lie beside the file.
    pub fn new(
        program: &Program,
        regularly: bool,
        options: &'a Options,
        tally: &'a Tally,
        search: &'a Search,
    ) -> Self {
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
            regularly,
            options,
            tally,
            search,
        }
    }

    /// Writes the file completely or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_with(path, |file| {
            let mut summed = Summed { file, sum: Sha256::new() };
            serde_json::to_writer(&mut summed, self)?;
            write!(summed.file, "\n{}", hex(&summed.sum.finalize()))
        })
    }
}

impl Saved {
    /// Reads a saved search and finds its program.
    pub fn read(path: &Path) -> Result<(Saved, Program)> {
        let shown = path.display();
        let unreadable = |e: std::io::Error| {
            Error::Input(format!("{shown}: {e}; name the search file that the interrupted check has written"))
        };
        let damaged = |why: &dyn Display| {
            Error::Input(format!(
                "{shown} is not a search that this Heisen has saved, or is damaged ({why}); start the check again"
            ))
        };
        let read = || File::open(path).map(BufReader::new).map_err(unreadable);
        /// The fields with which every version begins.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
            #[serde(rename = "binary")]
            _binary: String,
        }
        // The rest of the file can be parsed only if the version is the same.
        match Version::deserialize(&mut serde_json::Deserializer::from_reader(read()?)) {
            Err(e) if e.is_io() => return Err(unreadable(e.into())),
            Err(e) => return Err(damaged(&e)),
            Ok(Version { version, .. }) if version != VERSION => {
                return Err(Error::Input(format!(
                    "{shown} was saved by another version of Heisen; start the check again"
                )));
            }
            Ok(_) => {}
        }
        let length = fs::metadata(path).map_err(unreadable)?.len().saturating_sub(SUM);
        if !is_as_summed(read()?, length).map_err(unreadable)? {
            return Err(damaged(&"its sum is wrong"));
        }
        let mut saved: Saved = serde_json::from_reader(read()?.take(length)).map_err(|e| damaged(&e))?;
        let again = saved.search.take_rerun();
        saved.tally.executions = saved.tally.executions.saturating_sub(again.executions);
        saved.tally.steps = saved.tally.steps.saturating_sub(again.steps);
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
                "{program} has changed since {shown} was saved; start the check again"
            )));
        }
        Ok((saved, program))
    }
}

/// Writes to a file and computes the hash of the bytes.
struct Summed<'a> {
    file: &'a mut dyn Write,
    sum: Sha256,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether the bytes after the first `length` are those that [`Saved::write`] would put there.
fn is_as_summed(mut file: impl Read, length: u64) -> io::Result<bool> {
    let mut summed = Summed { file: &mut io::sink(), sum: Sha256::new() };
    io::copy(&mut file.by_ref().take(length), &mut summed)?;
    let mut rest = String::new();
    // Bytes that are not text are not a sum.
    let read = file.take(SUM + 1).read_to_string(&mut rest);
    Ok(read.is_ok() && rest.strip_prefix('\n') == Some(hex(&summed.sum.finalize()).as_str()))
}

/// Saves a search while it runs, so that little is lost if it is killed.
#[derive(Debug)]
pub struct Autosave {
    path: PathBuf,
    program: Program,
    options: Options,
    /// When it was last saved, and how long that took.
    saved: Instant,
    took: Duration,
    /// Whether saving has failed before.
    failed: bool,
}

impl Autosave {
    /// Prepares to save a search of `program` to this file.
    pub fn new(path: &Path, program: &Program, options: &Options) -> Result<Autosave> {
        remove_unfinished(path);
        let world = stdin::write_beside(&options.world, program, &directory_of(path))?;
        let options = Options { world, ..options.clone() };
        let (path, program) = (path.to_owned(), program.clone());
        let (saved, took) = (Instant::now(), Duration::ZERO);
        Ok(Autosave { path, program, options, saved, took, failed: false })
    }

    /// Whether the search is due to be saved again.
    pub(crate) fn is_due(&self) -> bool {
        self.saved.elapsed() >= EVERY.max(self.took * PART)
    }

    /// Saves the search.
    pub(crate) fn save(&mut self, tally: &Tally, search: &Search) -> Result<()> {
        let began = Instant::now();
        let written = Saved::new(&self.program, true, &self.options, tally, search).write(&self.path);
        (self.took, self.saved) = (began.elapsed(), Instant::now());
        written
    }

    /// Saves the search. A failure does not end it: the last saved file is still there, and the disk may have
    /// space again later. Returns only the first failure.
    pub(crate) fn try_to_save(&mut self, tally: &Tally, search: &Search) -> Option<Error> {
        let error = self.save(tally, search).err()?;
        (!std::mem::replace(&mut self.failed, true)).then_some(error)
    }
}
