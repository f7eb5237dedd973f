//! Prints progress and notes to standard error while a check runs.

use crate::render::check::progress_line;
use crate::render::paint::say;
use heisen_engine::check::Notice;
use heisen_engine::check::changed::Changed;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// The largest number of changed functions that a note names.
const MOST_NAMES: usize = 5;

/// Shows the notices of one check.
#[derive(Debug)]
pub struct NoticePrinter {
    quiet: bool,
    /// Whether to print a progress line: only on a terminal, and not with `--quiet`.
    live: bool,
}

impl NoticePrinter {
    pub fn new(quiet: bool) -> NoticePrinter {
        NoticePrinter { quiet, live: !quiet && std::io::stderr().is_terminal() }
    }

    pub fn show(&self, notice: &Notice<'_>) {
        match notice {
            Notice::Progress(progress) if self.live => {
                let _ = write!(std::io::stderr(), "\r\x1b[K{}", progress_line(progress));
            }
            Notice::Progress(_) => {}
            Notice::ChangedCode { .. } if self.quiet => {}
            Notice::ChangedCode { revision, program, changed } => {
                say(changed_code(revision, program, changed));
            }
            Notice::AccessPointsNotRead(error) => {
                say(format_args!("note: the access points of the last check cannot be read: {error}"));
            }
            Notice::AccessPointsNotStored(error) => {
                say(format_args!("note: the access points cannot be stored for the next check: {error}"));
            }
            Notice::NotSaved(error) => say(format_args!("note: {error}; the check continues without saving")),
        }
    }

    /// Erases the progress line.
    pub fn clear(&self) {
        if self.live {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// The note that names the changed functions, with which the search begins.
fn changed_code(revision: &str, program: &Path, changed: &Changed) -> String {
    let names = &changed.functions;
    let shown = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let others = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        some => format!(" and {some} more"),
    };
    match names.len() {
        0 => format!(
            "note: no code of {} has changed since {revision}, so none is explored first",
            program.display()
        ),
        _ => format!("note: changed since {revision}, and explored first: {shown}{others}"),
    }
}
