//! Reads lines of source files for reports.

use heisen_trace::Frame;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A cache of source files. `None` marks a file that cannot be read.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<String, Option<Vec<String>>>,
    /// The executable. A source that is newer may not fit it.
    program: PathBuf,
    /// The files whose lines were shown and that are newer than the program, in order.
    newer: Vec<String>,
    /// The files of the program's own code whose lines were wanted and that cannot be read, in order.
    missing: Vec<String>,
}

impl Sources {
    /// The sources of an executable.
    pub fn of_program(program: &Path) -> Sources {
        Sources { program: program.to_owned(), ..Sources::default() }
    }

    /// The files whose lines were shown although they are newer than the program.
    pub fn newer(&self) -> &[String] {
        &self.newer
    }

    /// The files of the program's own code that cannot be read.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The text of a line, trimmed; `None` if the file cannot be read or has no such line.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| {
            let bytes = fs::read(file).ok()?;
            if is_newer(Path::new(file), &self.program) {
                self.newer.push(file.to_owned());
            }
            Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
        });
        lines.as_ref()?.get((line as usize).checked_sub(1)?).map(|l| l.trim())
    }

    /// The line number and source text of a frame; `None` if the text is blank or unavailable.
    pub fn of(&mut self, frame: &Frame) -> Option<(u32, String)> {
        let (file, line) = (frame.file.as_deref()?, frame.line?);
        if frame.own && !Path::new(file).exists() && !self.missing.iter().any(|missing| missing == file) {
            self.missing.push(file.to_owned());
        }
        self.line(file, line).filter(|text| !text.is_empty()).map(|text| (line, text.to_owned()))
    }
}

/// Whether a source file was written after the program, so that its lines may not be those of the program. `false` if
/// that is unknown.
pub fn is_newer(file: &Path, program: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    time(file).zip(time(program)).is_some_and(|(file, program)| file > program)
}
