//! Finds changed code: the lines that git reports as changed since a revision, as addresses of the parked
//! program's code.
//!
//! It serves regression runs: a search begins where the code has changed (`search::systematic::best`). A
//! function counts as changed if it contains a changed line, because a deleted line has no code any more.
//! Uncommitted changes and untracked files count as well.

use crate::error::{Error, Result};
use crate::process::run_config::{Output, RunConfig};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_inspect::{Piece, Symbols, View};
use heisen_trace::Frame;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Code that has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The names of the functions that contain it.
    pub functions: Vec<String>,
    /// Their addresses: first and end of each range, in order.
    pub ranges: Vec<(u64, u64)>,
}

/// Line ranges of a file.
type Lines = Vec<RangeInclusive<u32>>;

impl Changed {
    /// Finds the code of the parked program that has changed since a revision; empty if no code of it has.
    pub fn since(revision: &str, runtime: &Path, program: &Program, config: &RunConfig) -> Result<Changed> {
        let zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
        let mut symbols = Symbols::new();
        symbols.hide(runtime);
        symbols.full_paths();
        let code = View::new(&mut symbols, zygote.pid())
            .map_err(|e| Error::Internal(format!("the parked program cannot be looked at: {e}")))?
            .code();
        let names: BTreeSet<&str> = own(&code).filter_map(|(_, frame)| frame.file.as_deref()).collect();
        if names.is_empty() {
            return Err(refused(
                revision,
                format_args!(
                    "{} has no debug information, so its code cannot be matched with source lines; build it with -g",
                    program.path.display()
                ),
            ));
        }
        // The files as the compiler has named them, and as git names them.
        let files: HashMap<&str, PathBuf> =
            names.iter().filter_map(|&name| Some((name, Path::new(name).canonicalize().ok()?))).collect();
        let wanted: BTreeSet<&Path> = files.values().map(PathBuf::as_path).collect();
        let Some(first) = wanted.first() else {
            return Err(refused(
                revision,
                format_args!(
                    "none of the sources of {} is there, such as {}",
                    program.path.display(),
                    names.first().unwrap_or(&"?")
                ),
            ));
        };
        let lines = changed_lines(revision, &wanted, first)?;
        let of = |name: &str| files.get(name).and_then(|path| lines.get(path));
        Ok(changed_code(&code, of))
    }
}

/// The frames of the program's own code, each with its piece.
fn own(code: &[Piece]) -> impl Iterator<Item = (&Piece, &Frame)> {
    code.iter().flat_map(|piece| piece.frames.iter().filter(|f| f.own).map(move |frame| (piece, frame)))
}

/// The code of functions that contain changed lines. `lines` gives the changed lines of a file.
fn changed_code<'a>(code: &[Piece], lines: impl Fn(&str) -> Option<&'a Lines>) -> Changed {
    // From the first to the last line of each function. Lines in between without code, such as deleted ones,
    // belong to it.
    let mut extents: BTreeMap<(&str, &str), (u32, u32)> = BTreeMap::new();
    for (_, frame) in own(code) {
        if let (Some(file), Some(line)) = (frame.file.as_deref(), frame.line) {
            let (first, last) = extents.entry((&frame.function, file)).or_insert((line, line));
            (*first, *last) = (line.min(*first), line.max(*last));
        }
    }
    extents.retain(|(_, file), (first, last)| {
        lines(file).is_some_and(|lines| lines.iter().any(|l| l.start() <= last && l.end() >= first))
    });
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (piece, frame) in own(code) {
        let Some(file) = frame.file.as_deref() else { continue };
        if !extents.contains_key(&(frame.function.as_str(), file)) || piece.start >= piece.end {
            continue;
        }
        match ranges.last_mut().filter(|last| last.1 >= piece.start) {
            Some(last) => last.1 = last.1.max(piece.end),
            None => ranges.push((piece.start, piece.end)),
        }
    }
    let functions: BTreeSet<&str> = extents.keys().map(|(function, _)| *function).collect();
    Changed { functions: functions.into_iter().map(str::to_owned).collect(), ranges }
}

/// The changed lines of these files, in whichever repositories they are. `example` is one of the files.
fn changed_lines(revision: &str, files: &BTreeSet<&Path>, example: &Path) -> Result<HashMap<PathBuf, Lines>> {
    if revision.starts_with('-') {
        return Err(refused(revision, format_args!("that is not a revision")));
    }
    let directories: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let (mut roots, mut words) = (BTreeSet::new(), String::new());
    for directory in directories {
        match git(revision, directory, &["rev-parse", "--show-toplevel"])? {
            Ok(root) => {
                roots.insert(PathBuf::from(OsStr::from_bytes(root.trim_ascii_end())));
            }
            Err(said) => words = said,
        }
    }
    if roots.is_empty() {
        let example = example.display();
        return Err(refused(revision, format_args!("{example} is in no git repository: {words}")));
    }
    let mut lines = HashMap::new();
    let mut known = false;
    for root in &roots {
        let name = format!("{revision}^{{commit}}");
        let Ok(commit) = git(revision, root, &["rev-parse", "--verify", "--quiet", &name])? else { continue };
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        known = true;
        for (path, whole) in touched(revision, root, &commit)? {
            if !files.contains(path.as_path()) {
                continue;
            }
            let changed = if whole { vec![0..=u32::MAX] } else { hunks(revision, root, &commit, &path)? };
            lines.insert(path, changed);
        }
    }
    if !known {
        let root = roots.iter().next().map_or_else(String::new, |root| root.display().to_string());
        return Err(refused(revision, format_args!("the git repository {root} has no such revision")));
    }
    Ok(lines)
}

/// The files of a repository that differ from a commit, and whether git does not track them.
fn touched(revision: &str, root: &Path, commit: &str) -> Result<Vec<(PathBuf, bool)>> {
    let differ = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", commit, "--"];
    let unknown = ["ls-files", "--others", "--exclude-standard", "-z"];
    let mut found = Vec::new();
    for (arguments, whole) in [(&differ[..], false), (&unknown[..], true)] {
        let listed =
            git(revision, root, arguments)?.map_err(|said| refused(revision, format_args!("{said}")))?;
        let names = listed.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        found.extend(names.map(|name| (root.join(OsStr::from_bytes(name)), whole)));
    }
    Ok(found)
}

/// The lines of a file that differ from a commit.
fn hunks(revision: &str, root: &Path, commit: &str, path: &Path) -> Result<Lines> {
    let path = path.to_string_lossy();
    let plain = ["-U0", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv", commit, "--", &path];
    let text = git(revision, root, &[&["diff"], &plain[..]].concat())?
        .map_err(|said| refused(revision, format_args!("{said}")))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(hunk).collect())
}

/// The present lines of a hunk, by its header: `@@ -3,2 +3,4 @@`. For deleted lines, the lines before and
/// after the deletion.
fn hunk(head: &str) -> Option<RangeInclusive<u32>> {
    let now = head.strip_prefix("@@ -")?.split(' ').nth(1)?.strip_prefix('+')?;
    let (first, count) = now.split_once(',').unwrap_or((now, "1"));
    let (first, count): (u32, u32) = (first.parse().ok()?, count.parse().ok()?);
    Some(if count == 0 { first..=first.saturating_add(1) } else { first..=first.saturating_add(count - 1) })
}

/// The output of git in a directory or, if git fails, its message.
fn git(revision: &str, directory: &Path, arguments: &[&str]) -> Result<std::result::Result<Vec<u8>, String>> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(arguments).stdin(Stdio::null());
    // These variables come from our caller, such as a git hook, and may be about another directory.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    command.env("GIT_LITERAL_PATHSPECS", "1").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    let output = command
        .output()
        .map_err(|e| refused(revision, format_args!("git cannot be started: {e}; is it installed?")))?;
    if output.status.success() {
        return Ok(Ok(output.stdout));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it says nothing");
    Ok(Err(said.trim_start_matches("fatal: ").to_owned()))
}

fn refused(revision: &str, why: std::fmt::Arguments<'_>) -> Error {
    Error::Input(format!("--changed-since {revision}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_hunks() {
        assert_eq!(hunk("@@ -3,2 +3,4 @@ int main(void)"), Some(3..=6));
        assert_eq!(hunk("@@ -3 +5 @@"), Some(5..=5));
        assert_eq!(hunk("@@ -10,2 +9,0 @@ static void f(void) {"), Some(9..=10));
        assert_eq!(hunk("@@ -0,0 +1,7 @@"), Some(1..=7));
        for other in ["+++ b/queue.c", "-@@ -1 +1 @@", "@@ -1 1 @@", "@@ -1,2", ""] {
            assert_eq!(hunk(other), None, "{other}");
        }
    }

    fn piece(start: u64, end: u64, frames: &[(&str, &str, u32)]) -> Piece {
        let frame = |&(function, file, line): &(&str, &str, u32)| Frame {
            function: function.into(),
            file: Some(file.into()),
            line: Some(line),
            own: !file.starts_with("/usr"),
            ..Frame::default()
        };
        let frames = frames.iter().map(frame).collect();
        Piece { start, end, module: "/bin/p".into(), system: false, has_lines: true, main: true, frames }
    }

    #[test]
    fn functions_that_hold_changed_lines() {
        let code = [
            piece(0, 10, &[("f", "/a.c", 10)]),
            piece(10, 20, &[("f", "/a.c", 14)]),
            piece(20, 30, &[("g", "/a.c", 20)]),
            // Code of g inlined into h, and system code inlined into g.
            piece(30, 40, &[("g", "/a.c", 24), ("h", "/b.c", 5)]),
            piece(50, 60, &[("lock", "/usr/x.h", 3), ("g", "/a.c", 22)]),
            piece(60, 70, &[("h", "/b.c", 6)]),
        ];
        let of = |file: &'static str, changed: RangeInclusive<u32>| {
            let lines: Lines = vec![changed];
            let found = changed_code(&code, |name| (name == file).then_some(&lines));
            (found.functions.join(" "), found.ranges)
        };
        assert_eq!(of("/a.c", 12..=12), ("f".into(), vec![(0, 20)]));
        assert_eq!(of("/a.c", 1..=10), ("f".into(), vec![(0, 20)]));
        assert_eq!(of("/a.c", 15..=19), (String::new(), vec![]));
        assert_eq!(of("/a.c", 23..=23), ("g".into(), vec![(20, 40), (50, 60)]));
        assert_eq!(of("/a.c", 14..=20), ("f g".into(), vec![(0, 40), (50, 60)]));
        assert_eq!(of("/b.c", 0..=u32::MAX), ("h".into(), vec![(30, 40), (60, 70)]));
        assert_eq!(of("/usr/x.h", 3..=3), (String::new(), vec![]));
    }
}
