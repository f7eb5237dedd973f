//! Places in source files, as other programs name them: a path relative to the current directory, or a URI.

use crate::render::finding::operation;
use heisen_trace::{Finding, Frame, Stack};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Relative to the current directory if it lies below that directory.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
}

impl SourceLine {
    /// Reads `file:line`. `None` if the text is only the name of a function.
    pub fn parse(place: &str) -> Option<SourceLine> {
        let (file, line) = place.rsplit_once(':')?;
        SourceLine::new(file, line.parse().ok()?)
    }

    /// The line of a frame.
    pub fn of_frame(frame: &Frame) -> Option<SourceLine> {
        SourceLine::new(frame.file.as_deref()?, frame.line?)
    }

    /// The line that a person would call the place of a stack.
    pub fn of_stack(stack: &Stack) -> Option<SourceLine> {
        SourceLine::of_frame(stack.place()?)
    }

    fn new(file: &str, line: u32) -> Option<SourceLine> {
        let file = from_here(Path::new(file));
        (!file.as_os_str().is_empty() && line > 0).then_some(SourceLine { file, line })
    }
}

/// The places of a finding, each with what happened there, the most important one first: the failing line; else the
/// later access of a data race; else where a thread waits.
pub fn of_finding(finding: &Finding) -> Vec<(String, SourceLine)> {
    let mut out: Vec<(String, SourceLine)> = Vec::new();
    let mut add = |what: String, stack: &Stack| {
        if let Some(place) = SourceLine::of_stack(stack)
            && !out.iter().any(|(_, known)| *known == place)
        {
            out.push((what, place));
        }
    };
    if finding.race.is_none() {
        add(finding.message.clone(), &finding.stack);
    }
    for access in finding.race.iter().flat_map(|race| [&race.second, &race.first]) {
        add(format!("{} {}", access.thread, access.does()), &access.stack);
    }
    for end in finding.threads.iter().filter(|end| end.blocked && finding.thread != Some(end.thread)) {
        add(format!("{} waits: {}", end.thread, operation(end.op, &end.object)), &end.stack);
    }
    if let Some(block) = &finding.block {
        add(format!("{} allocates the block", block.allocated.thread), &block.allocated.stack);
        if let Some(freed) = &block.freed {
            add(format!("{} frees the block", freed.thread), &freed.stack);
        }
    }
    for step in finding.cycle.iter().flat_map(|cycle| &cycle.steps) {
        add(format!("{} repeats {}", step.thread, operation(step.op, &step.object)), &step.stack);
    }
    out
}

/// A path relative to the current directory if it lies below that directory.
pub fn from_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    match path.strip_prefix(here) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => path.to_owned(),
    }
}

/// The URI of a path (RFC 3986): a relative reference for a relative path, else a `file:` URI. Leading `./` is
/// omitted, as services for continuous integration compare these texts with the names of files.
pub fn uri(path: &Path) -> String {
    let mut out = if path.is_absolute() { "file://".to_owned() } else { String::new() };
    let mut first = true;
    for part in path.components() {
        let bytes = match part {
            Component::CurDir => continue,
            Component::RootDir => {
                out.push('/');
                continue;
            }
            part => part.as_os_str().as_bytes().to_vec(),
        };
        if !first {
            out.push('/');
        }
        first = false;
        for byte in bytes {
            if byte.is_ascii_alphanumeric() || b"-._~+@".contains(&byte) {
                out.push(byte as char);
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_with_a_line_are_read() {
        let here = std::env::current_dir().expect("a directory");
        let line = |file: &str, line| Some(SourceLine { file: file.into(), line });
        assert_eq!(SourceLine::parse("a.c:7"), line("a.c", 7));
        assert_eq!(SourceLine::parse("a:b.c:7"), line("a:b.c", 7));
        assert_eq!(SourceLine::parse(&format!("{}/src/a.c:7", here.display())), line("src/a.c", 7));
        for other in ["main", "core::ptr::drop_in_place", "a.c:", ":7", "a.c:0", ""] {
            assert_eq!(SourceLine::parse(other), None, "{other}");
        }
    }

    #[test]
    fn uris_are_escaped() {
        assert_eq!(uri(Path::new("src/a.c")), "src/a.c");
        assert_eq!(uri(Path::new("./a b.c")), "a%20b.c");
        assert_eq!(uri(Path::new("../c:d/é.c")), "../c%3Ad/%C3%A9.c");
        assert_eq!(uri(Path::new("/usr/<x>\n.c")), "file:///usr/%3Cx%3E%0A.c");
    }
}
