//! Lines of source text, where the files are readable.

use heisen_trace::Frame;
use std::collections::HashMap;
use std::fs;

/// Source files that were read.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// The text of a line, trimmed; none if the file cannot be read.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| {
            let bytes = fs::read(file).ok()?;
            Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
        });
        lines.as_ref()?.get((line as usize).checked_sub(1)?).map(|l| l.trim())
    }

    /// The source line of a frame.
    pub fn of(&mut self, frame: &Frame) -> Option<(u32, String)> {
        let (file, line) = (frame.file.as_deref()?, frame.line?);
        self.line(file, line).filter(|text| !text.is_empty()).map(|text| (line, text.to_owned()))
    }
}
