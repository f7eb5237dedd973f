//! Bytes from outside that are inputs (`--input`): what the user writes, and whether the program has such bytes.

use crate::error::{Error, Result};
use heisen_trace::marked::{MOST_BYTES, MOST_MARKS, Marked, Source};
use heisen_trace::{Stdin, World};
use heisen_wire::symbolic::{MAX_MARKED, MAX_MARKED_BYTES};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const _: () = assert!(MOST_BYTES == MAX_MARKED_BYTES && MOST_MARKS == MAX_MARKED);

/// Reads a value of `--input`. An argument has no bytes yet; see [`complete`].
pub fn parse(text: &OsStr) -> Result<Marked> {
    let bytes = text.as_bytes();
    let shown = text.display();
    let wrong = |what: &str| Err(Error::Input(format!("--input {shown}: {what}")));
    let number = |digits: &[u8]| str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
    let mark = |source: Source, digits: &[u8]| match number(digits) {
        None => {
            let digits = String::from_utf8_lossy(digits);
            wrong(&format!(
                "{digits:?} is not a number of bytes; write a number such as 8 after the last colon"
            ))
        }
        Some(0) => wrong("no byte is marked; write a number of bytes from 1"),
        Some(bytes) if bytes > MOST_BYTES as u64 => wrong(&format!(
            "{bytes} bytes are too many inputs; mark at most {MOST_BYTES}, those that decide what the program does"
        )),
        Some(bytes) => Ok(Marked { source, bytes: bytes as usize }),
    };
    if let Some(digits) = bytes.strip_prefix(b"stdin:") {
        mark(Source::Stdin, digits)
    } else if let Some(digits) = bytes.strip_prefix(b"argv:") {
        match number(digits).map(u32::try_from) {
            Some(Ok(0)) => wrong("argument 0 is the name of the program; the first argument is argv:1"),
            Some(Ok(index)) => Ok(Marked { source: Source::Argument(index), bytes: 0 }),
            _ => wrong("no number of an argument; write argv:1 for the first one"),
        }
    } else if let Some(rest) = bytes.strip_prefix(b"file:") {
        match rest.iter().rposition(|&byte| byte == b':') {
            Some(colon) if colon > 0 => {
                let path = Path::new(OsStr::from_bytes(&rest[..colon]));
                let path = std::path::absolute(path)
                    .map_err(|e| Error::Input(format!("--input {shown}: {e}; name a file")))?;
                mark(Source::File(path.into_os_string().into_vec()), &rest[colon + 1..])
            }
            _ => wrong("the file or the number of its bytes is missing; write file:PATH:8"),
        }
    } else {
        wrong("unknown source of bytes; write stdin:N, argv:I or file:PATH:N")
    }
}

/// Completes what the options say by the arguments of the program: an argument has as many bytes as its text, and standard
/// input has bytes where the user names none. Refuses what does not fit.
pub fn complete(world: &mut World, arguments: &[OsString]) -> Result<()> {
    for mark in &mut world.marked {
        match mark.source {
            Source::Argument(index) => mark.bytes = argument(arguments, index)?.len(),
            Source::Stdin if world.stdin.is_none() => {
                world.stdin = Some(Stdin::Bytes(vec![0; mark.bytes].into()));
            }
            _ => {}
        }
    }
    check(world, arguments)
}

fn argument(arguments: &[OsString], index: u32) -> Result<&OsString> {
    let found = (index as usize).checked_sub(1).and_then(|at| arguments.get(at));
    found.ok_or_else(|| {
        let (count, s) = (arguments.len(), if arguments.len() == 1 { "" } else { "s" });
        Error::Input(format!(
            "--input argv:{index}: the program has {count} argument{s}; write a value for it after --, of the length that it is \
             to have"
        ))
    })
}

/// Refuses marks that do not fit each other, or that the program with these arguments does not have.
pub fn check(world: &World, arguments: &[OsString]) -> Result<()> {
    let marked = &world.marked;
    for (number, mark) in marked.iter().enumerate() {
        if let Some(earlier) = marked[..number].iter().find(|earlier| same(&earlier.source, &mark.source)) {
            let both = if earlier == mark { String::new() } else { format!(" and --input {earlier}") };
            return Err(Error::Input(format!(
                "--input {mark}{both}: the same bytes are marked twice; leave out one of both"
            )));
        }
        fits(mark, world, arguments)?;
    }
    let bytes = marked.iter().map(|mark| mark.bytes).sum::<usize>();
    if bytes > MOST_BYTES || marked.len() > MOST_MARKS {
        return Err(Error::Input(format!(
            "--input: {bytes} bytes of {} sources are too many inputs; mark at most {MOST_BYTES} bytes of {MOST_MARKS} sources",
            marked.len()
        )));
    }
    Ok(())
}

/// Whether both are the same bytes: also if two paths lead to one file.
fn same(one: &Source, other: &Source) -> bool {
    match (one, other) {
        (Source::File(one), Source::File(other)) => {
            let real = |path: &[u8]| std::fs::canonicalize(OsStr::from_bytes(path)).ok();
            one == other || real(one).is_some() && real(one) == real(other)
        }
        _ => one == other,
    }
}

/// Refuses a mark of bytes that are not there.
fn fits(mark: &Marked, world: &World, arguments: &[OsString]) -> Result<()> {
    let fewer = |what: &str, has: usize| {
        Err(Error::Input(format!("--input {mark}: {what} has only {has} bytes; mark at most that many")))
    };
    match &mark.source {
        Source::Argument(index) => {
            let has = argument(arguments, *index)?.len();
            match (has, mark.bytes) {
                (0, _) => Err(Error::Input(format!(
                    "--input {mark}: the argument is empty, so it has no bytes to choose; write as many bytes as it is to have"
                ))),
                (has, bytes) if has < bytes => fewer("the argument", has),
                _ => Ok(()),
            }
        }
        Source::Stdin => match &world.stdin {
            Some(Stdin::Bytes(bytes)) if bytes.len() < mark.bytes => {
                fewer("standard input (--stdin)", bytes.len())
            }
            Some(_) => Ok(()),
            None => fewer("standard input", 0),
        },
        Source::File(path) => {
            let path = Path::new(OsStr::from_bytes(path));
            let shown = path.display();
            let wrong = |what: String| Err(Error::Input(format!("--input {mark}: {what}")));
            match File::open(path) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    wrong(format!("{shown} is not there; write the file with as many bytes as it is to have"))
                }
                Err(e) => wrong(format!("{shown}: {e}")),
                Ok(file) if !file.metadata().is_ok_and(|about| about.is_file()) => {
                    wrong(format!("{shown} is not a regular file; name one"))
                }
                Ok(file) => {
                    let mut bytes = Vec::new();
                    match file.take(mark.bytes as u64).read_to_end(&mut bytes) {
                        Err(e) => wrong(format!("{shown}: {e}")),
                        Ok(has) if has < mark.bytes => fewer(&shown.to_string(), has),
                        Ok(_) => Ok(()),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> std::result::Result<String, String> {
        parse(text.as_ref()).map(|mark| mark.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        for text in ["stdin:1", "stdin:4096", "argv:7", "file:/a b/x:y:3", "file:/tmp/\"\n\u{e9}:12"] {
            assert_eq!(parsed(text), Ok(text.to_owned()));
        }
        let mark = parse(OsStr::from_bytes(b"file:/\xff:1")).expect("a path");
        assert_eq!(mark.source, Source::File(b"/\xff".to_vec()));
    }

    #[test]
    fn malformed_values_are_refused() {
        for (text, what) in [
            ("", "unknown source of bytes; write stdin:N"),
            ("stdin", "unknown source"),
            ("stdout:4", "unknown source"),
            ("stdin:", "\"\" is not a number of bytes"),
            ("stdin:4k", "\"4k\" is not a number of bytes"),
            ("stdin:-1", "\"-1\" is not a number of bytes"),
            ("stdin:0", "no byte is marked"),
            ("stdin:1073741824", "1073741824 bytes are too many inputs; mark at most 4096"),
            ("stdin:99999999999999999999", "is not a number of bytes"),
            ("argv:0", "argument 0 is the name of the program"),
            ("argv:x", "no number of an argument"),
            ("argv:99999999999", "no number of an argument"),
            ("file:", "the file or the number of its bytes is missing"),
            ("file:x", "the file or the number of its bytes is missing"),
            ("file::4", "the file or the number of its bytes is missing"),
            ("file:x:", "\"\" is not a number of bytes"),
            ("file:x:0", "no byte is marked"),
        ] {
            let said = parsed(text).expect_err(text);
            assert!(said.contains(what) && said.contains(&format!("--input {text}: ")), "{text}: {said}");
        }
    }
}
