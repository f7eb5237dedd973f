//! Reads which files and memory a process has mapped where, from `/proc/PID/maps`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One line of `/proc/PID/maps`.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether code in it can run.
    pub executable: bool,
    /// Its offset in the file.
    pub offset: u64,
    /// The file's inode; 0 for memory without a file.
    pub inode: u64,
    /// The file, or a name in brackets, or empty.
    pub path: PathBuf,
    /// Whether the file was deleted from its directory.
    pub deleted: bool,
}

/// The mappings of a process, in order of their addresses.
pub fn read(pid: i32) -> io::Result<Vec<Mapping>> {
    Ok(parse(&std::fs::read(format!("/proc/{pid}/maps"))?))
}

/// Skips lines that do not parse.
fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    // start-end permissions offset device inode      path
    let mut fields = line.splitn(6, |&b| b == b' ');
    let mut field = || str::from_utf8(fields.next()?).ok();
    let (start, end) = field()?.split_once('-')?;
    let permissions = field()?;
    let offset = field()?;
    let _device = field()?;
    let inode = field()?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    // The kernel appends this suffix if the file was deleted.
    let (path, deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    };
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        writable: permissions.as_bytes().get(1) == Some(&b'w'),
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        inode: inode.parse().ok()?,
        path: OsString::from_vec(unescape(path)).into(),
        deleted,
    })
}

/// The kernel escapes only newlines here, as `\012`.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(tail) => {
                out.push(b'\n');
                rest = tail;
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

/// The lines of `/proc/PID/maps` for code from files. Equal for two processes that have the same code at the
/// same addresses.
pub fn code_layout(pid: i32) -> String {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let code = |line: &&str| line.contains(" r-xp ") && line.contains('/');
    maps.lines().filter(code).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        let maps = parse(
            b"55d0f000-55d10000 r-xp 00001000 fe:00 1234                       /tmp/a b\\012c (deleted)\n\
              7ffd0000-7ffe0000 rw-p 00000000 00:00 0                          [stack]\n\
              7fff0000-7fff1000 rw-p 00000000 00:00 0 \n\
              nonsense\n\n",
        );
        assert_eq!(maps.len(), 3);
        assert_eq!(
            maps[0],
            Mapping {
                start: 0x55d0f000,
                end: 0x55d10000,
                writable: false,
                executable: true,
                offset: 0x1000,
                inode: 1234,
                path: "/tmp/a b\nc".into(),
                deleted: true,
            }
        );
        assert_eq!((maps[1].path.to_str(), maps[1].executable), (Some("[stack]"), false));
        assert_eq!(maps[2].path.to_str(), Some(""));
    }
}
