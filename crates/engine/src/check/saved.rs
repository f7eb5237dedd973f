//! A search as a file: one that was interrupted, or one that runs and may be killed at any time.

use crate::check::{Options, Tally};
use crate::error::{Error, Result};
use crate::process::stdin;
use crate::program::{Program, hex};
use heisen_search::Search;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The version of the format; another one is refused.
const VERSION: u32 = 7;
/// How often a search that runs is saved.
const EVERY: Duration = Duration::from_secs(1);
/// If that takes long it is done less often, so that it takes no more than one part in so many of the time.
const PART: u32 = 20;
/// What follows the search in the file: the end of its line, and its SHA-256 in hexadecimal digits.
const SUM: u64 = 1 + 64;

/// Everything that is needed to go on.
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
    /// Whether it was saved while it ran, so that it goes on being saved to the same file.
    #[serde(default)]
    pub regularly: bool,
    /// What to do.
    pub options: O,
    /// What was done.
    pub tally: T,
    /// The search.
    pub search: S,
}

impl<'a> Saved<&'a Options, &'a Tally, &'a Search> {
    /// A search of `program`, to be saved. What its options name as standard input must lie beside the file.
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

    /// Writes it; whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_with(path, |file| {
            let mut summed = Summed { file, sum: Sha256::new() };
            serde_json::to_writer(&mut summed, self)?;
            write!(summed.file, "\n{}", hex(&summed.sum.finalize()))
        })
    }
}

impl Saved {
    /// Reads a saved search, and finds its program.
    pub fn read(path: &Path) -> Result<(Saved, Program)> {
        let shown = path.display();
        let unreadable = |e: std::io::Error| {
            Error::Input(format!("{shown}: {e}; name the search file that the interrupted check has written"))
        };
        let damaged = |why: &dyn Display| {
            Error::Input(format!(
                "{shown} is not a search that this Heisen has saved, or is damaged ({why}); start the check anew"
            ))
        };
        let read = || File::open(path).map(BufReader::new).map_err(unreadable);
        /// What every version begins with.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
            #[serde(rename = "binary")]
            _binary: String,
        }
        // What follows it, and the rest of what is in it, is understood only if the version is the same.
        match Version::deserialize(&mut serde_json::Deserializer::from_reader(read()?)) {
            Err(e) if e.is_io() => return Err(unreadable(e.into())),
            Err(e) => return Err(damaged(&e)),
            Ok(Version { version, .. }) if version != VERSION => {
                return Err(Error::Input(format!(
                    "{shown} was saved by another version of Heisen; start the check anew"
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
                "{program} has changed since {shown} was saved; start the check anew"
            )));
        }
        Ok((saved, program))
    }
}

/// What is written to a file, and its hash.
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

/// Whether what follows the first `length` bytes is what [`Saved::write`] would put there.
fn is_as_summed(mut file: impl Read, length: u64) -> io::Result<bool> {
    let mut summed = Summed { file: &mut io::sink(), sum: Sha256::new() };
    io::copy(&mut file.by_ref().take(length), &mut summed)?;
    let mut rest = String::new();
    // What is no text is no sum.
    let read = file.take(SUM + 1).read_to_string(&mut rest);
    Ok(read.is_ok() && rest.strip_prefix('\n') == Some(hex(&summed.sum.finalize()).as_str()))
}

/// Saves a search while it runs, so that little is lost if it is killed.
#[derive(Debug)]
pub struct Keeper {
    path: PathBuf,
    program: Program,
    options: Options,
    /// When it was saved last, and how long that took.
    saved: Instant,
    took: Duration,
    /// Is told once if it cannot be saved.
    complain: fn(&Error),
    failed: bool,
}

impl Keeper {
    /// One that saves a search to this file.
    pub fn new(path: &Path, program: &Program, options: &Options, complain: fn(&Error)) -> Result<Keeper> {
        remove_unfinished(path);
        let world = stdin::keep(&options.world, program, &beside(path))?;
        let options = Options { world, ..options.clone() };
        let (path, program) = (path.to_owned(), program.clone());
        let (saved, took) = (Instant::now(), Duration::ZERO);
        Ok(Keeper { path, program, options, saved, took, complain, failed: false })
    }

    /// Whether the search is to be saved again.
    pub(crate) fn is_due(&self) -> bool {
        self.saved.elapsed() >= EVERY.max(self.took * PART)
    }

    /// Saves it.
    pub(crate) fn save(&mut self, tally: &Tally, search: &Search) -> Result<()> {
        let began = Instant::now();
        let written = Saved::new(&self.program, true, &self.options, tally, search).write(&self.path);
        (self.took, self.saved) = (began.elapsed(), Instant::now());
        written
    }

    /// Saves it, and goes on if that fails: what was saved before is still there, and there may be room again later.
    pub(crate) fn try_to_save(&mut self, tally: &Tally, search: &Search) {
        if let Err(error) = self.save(tally, search)
            && !self.failed
        {
            self.failed = true;
            (self.complain)(&error);
        }
    }
}

/// The directory that a file is in.
pub fn beside(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Removes what was left of writing a file by processes that were killed.
fn remove_unfinished(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + ".";
    for entry in fs::read_dir(beside(path)).into_iter().flatten().flatten() {
        let found = entry.file_name().to_string_lossy().into_owned();
        let writer = found.strip_prefix(&name).and_then(|rest| rest.strip_suffix(".tmp"));
        let gone = |pid: u32| !Path::new("/proc").join(pid.to_string()).exists();
        if writer.and_then(|pid| pid.parse().ok()).is_some_and(gone) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes a file so that nobody ever sees half of it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| file.write_all(bytes))
}

/// The same, with what writes it.
fn write_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let fail = |e: io::Error| Error::Input(format!("{} cannot be written: {e}", path.display()));
    let fill = |file: File| {
        let mut file = BufWriter::with_capacity(1 << 16, file);
        write(&mut file)?;
        file.flush()
    };
    // Where a link leads to; a device or a pipe is written to, never replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return OpenOptions::new().write(true).open(path).and_then(fill).map_err(fail);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary).and_then(fill).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(fail)
}
