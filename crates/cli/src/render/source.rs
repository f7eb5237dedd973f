//! Reads lines of source files for reports.

use heisen_trace::Frame;
use std::collections::HashMap;
use std::fs;

/// A cache of source files. `None` marks a file that cannot be read.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// The text of a line, trimmed; `None` if the file cannot be read or has no such line.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| {
            let bytes = fs::read(file).ok()?;
            Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
        });
        lines.as_ref()?.get((line as usize).checked_sub(1)?).map(|l| l.trim())
    }

    /// The line number and source text of a frame; `None` if the text is blank or unavailable.
    pub fn of(&mut self, frame: &Frame) -> Option<(u32, String)> {
        let (file, line) = (frame.file.as_deref()?, frame.line?);
        self.line(file, line).filter(|text| !text.is_empty()).map(|text| (line, text.to_owned()))
    }
}
