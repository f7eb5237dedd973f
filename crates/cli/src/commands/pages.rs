//! `heisen check --html`: writes a directory of pages, one for the check and one for each finding.

use crate::commands::check::Place;
use crate::render::coverage::Run;
use crate::render::html::{self, document, index};
use crate::render::paint::quoted;
use crate::render::{coverage_figure, json, limits};
use heisen_engine::Error;
use heisen_engine::check::coverage::Record;
use heisen_engine::check::session::Finished;
use heisen_engine::platform::atomic_file;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Creates the directory. Refuses one that cannot be written or that has files of someone else.
pub fn check_directory(directory: &Path) -> Result<(), Error> {
    let shown = directory.display();
    if directory.exists() && !directory.is_dir() {
        return Err(Error::Input(format!("{shown} is a file; name a directory for --html")));
    }
    let fail = |e: std::io::Error| {
        Error::Input(format!("{shown} cannot be written: {e}; choose another directory for --html"))
    };
    fs::create_dir_all(directory).map_err(fail)?;
    for entry in fs::read_dir(directory).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        if !is_ours(&name) {
            return Err(Error::Input(format!(
                "{shown} has other files, such as {}; name a new or empty directory for --html",
                name.display()
            )));
        }
    }
    let trial = directory.join(TRIAL);
    fs::write(&trial, "").and_then(|()| fs::remove_file(&trial)).map_err(fail)
}

/// The name of the file that shows whether the directory can be written.
const TRIAL: &str = "finding-0.html";

/// Whether a file is one that `--html` writes.
fn is_ours(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("finding-")?.strip_suffix(".html"));
    name == "index.html" || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes the pages of a finished check, and removes those of an earlier one.
pub fn write(
    directory: &Path,
    finished: &Finished,
    place: &Place<'_>,
    schedules: &[PathBuf],
) -> Result<(), Error> {
    let Finished { program, options, outcome, .. } = finished;
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_ours(&entry.file_name())) {
        let _ = fs::remove_file(entry.path());
    }
    let mut replays = Vec::new();
    for (number, (finding, schedule)) in (1..).zip(outcome.findings().zip(schedules)) {
        let replay = format!("{} {}", place.replay, quoted(schedule));
        let page = html::page(&document::of_finding(
            finding,
            &replay,
            &program.path,
            &limits::notes(finding, program, None),
        ));
        atomic_file::write(&directory.join(index::page_of(number)), page.as_bytes())?;
        replays.push(replay);
    }
    let result = json::result(program, options, outcome, schedules);
    let label = program.short_name();
    let figures =
        Record::new(program, options, outcome).map(|record| coverage_figure::svg(&[Run { record, label }]));
    let page = index::page(&result, &replays, figures.as_deref());
    atomic_file::write(&directory.join("index.html"), page.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_files_are_replaced() {
        let ours = |name: &str| is_ours(OsStr::new(name));
        assert!(ours("index.html") && ours("finding-12.html") && ours(TRIAL));
        assert!(!ours("finding-x.html") && !ours("index.htm") && !ours("notes.txt"));
    }
}
