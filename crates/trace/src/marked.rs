//! Bytes that a program reads from outside and that are inputs: the option `--input`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The most bytes that all marks of a check may cover together: each is an unknown of its own.
pub const MOST_BYTES: usize = 4096;
/// The most marks of a check.
pub const MOST_MARKS: usize = 16;

/// Where the bytes come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// An argument of the program; 1 is the first.
    Argument(u32),
    /// The file at this absolute path.
    File(Vec<u8>),
}

/// The first bytes of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    /// Where they come from.
    pub source: Source,
    /// How many bytes. For an argument, as many as it has.
    pub bytes: usize,
}

impl Marked {
    /// The name of the input. Two files whose paths end in the same name keep their paths.
    pub fn name(&self, all: &[Marked]) -> String {
        match &self.source {
            Source::Stdin => "stdin".into(),
            Source::Argument(index) => format!("argv[{index}]"),
            Source::File(path) => {
                let last = |path: &[u8]| path.rsplit(|&byte| byte == b'/').next().map(<[u8]>::to_vec);
                let same = |other: &&Marked| match &other.source {
                    Source::File(other) => last(other) == last(path),
                    _ => false,
                };
                let alone = all.iter().filter(same).count() <= 1;
                let name = if alone { last(path).unwrap_or_default() } else { path.clone() };
                String::from_utf8_lossy(&name).into_owned()
            }
        }
    }
}

impl fmt::Display for Marked {
    /// As the option writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Stdin => write!(f, "stdin:{}", self.bytes),
            Source::Argument(index) => write!(f, "argv:{index}"),
            Source::File(path) => write!(f, "file:{}:{}", String::from_utf8_lossy(path), self.bytes),
        }
    }
}

/// The name of a piece of an input that takes several: from this byte on.
pub fn piece(name: &str, offset: u32) -> String {
    format!("{name}[{offset}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_last_name_unless_two_have_it() {
        let file = |path: &str| Marked { source: Source::File(path.into()), bytes: 4 };
        let all = [file("/a/x.conf"), file("/b/x.conf"), file("/b/y\n")];
        let names: Vec<String> = all.iter().map(|mark| mark.name(&all)).collect();
        assert_eq!(names, ["/a/x.conf", "/b/x.conf", "y\n"]);
        assert_eq!(all[0].to_string(), "file:/a/x.conf:4");
    }
}
