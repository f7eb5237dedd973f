//! Resolves the scope: patterns that say where threads are preempted, and the ranges of code that they match
//! (CHESS, OSDI'08, section 4.4.1).
//!
//! A pattern is matched against the module, source file and function of the code that calls an intercepted
//! function. This is computed once, on the parked program: the runtime only looks up an address.

use crate::error::{Error, Result};
use crate::platform::glob::matches_end;
use crate::process::run_config::{Output, RunConfig};
use crate::process::scope_ranges::{Range, Scope};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_inspect::maps::code_layout;
use heisen_inspect::{Piece, Symbols, View};
use heisen_wire::{MAX_SCOPE, scope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// How many names are shown when a pattern matches no code.
const SHOWN: usize = 4;

/// Where threads are preempted, in the user's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patterns {
    /// Threads are not preempted in code that matches one of these.
    pub no_preempt: Vec<String>,
    /// If not empty, threads are preempted only in code that matches one of these.
    pub focus: Vec<String>,
}

impl Patterns {
    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.no_preempt.is_empty() && self.focus.is_empty()
    }

    /// Finds the code of the parked program that the patterns match; `None` if there are no patterns.
    pub fn resolve(
        &self,
        runtime: &Path,
        program: &Program,
        config: &RunConfig,
    ) -> Result<Option<Arc<Scope>>> {
        if self.is_empty() {
            return Ok(None);
        }
        let zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
        let mut symbols = Symbols::new();
        symbols.hide(runtime);
        // With full paths, the meaning of a pattern does not depend on where the check is started.
        symbols.full_paths();
        let code = View::new(&mut symbols, zygote.pid())
            .map_err(|e| Error::Internal(format!("the parked program cannot be looked at: {e}")))?
            .code();
        for (option, patterns) in [("--no-preempt", &self.no_preempt), ("--focus", &self.focus)] {
            for pattern in patterns {
                if !code.iter().any(|piece| matches_piece(pattern, piece)) {
                    return Err(no_match(option, pattern, program, &code));
                }
            }
        }
        let scope = Scope { layout: code_layout(zygote.pid()), ..self.ranges(&code) };
        if scope.ranges.len() > MAX_SCOPE {
            return Err(Error::Input(format!(
                "the patterns of --no-preempt and --focus mean {} separate pieces of code, and {MAX_SCOPE} is the most; \
                 name modules or files rather than functions",
                scope.ranges.len()
            )));
        }
        Ok(Some(Arc::new(scope)))
    }

    fn ranges(&self, code: &[Piece]) -> Scope {
        let default = if self.focus.is_empty() { scope::FREE } else { scope::HELD };
        let mut ranges: Vec<Range> = Vec::new();
        for piece in code {
            let any = |patterns: &[String]| patterns.iter().any(|pattern| matches_piece(pattern, piece));
            let kind = if any(&self.no_preempt) {
                scope::HELD
            } else if any(&self.focus) {
                scope::FREE
            } else if !piece.system && piece.frames.iter().all(|frame| !frame.own) {
                scope::GLUE
            } else {
                default
            };
            if kind == default || piece.start >= piece.end {
                continue;
            }
            match ranges.last_mut().filter(|last| last.end == piece.start && last.kind == kind) {
                Some(last) => last.end = piece.end,
                None => ranges.push(Range { start: piece.start, end: piece.end, kind }),
            }
        }
        Scope { default, ranges, layout: String::new() }
    }
}

/// Whether a pattern matches this piece of code.
fn matches_piece(pattern: &str, piece: &Piece) -> bool {
    matches_end(pattern, &piece.module, "/")
        || piece.frames.iter().any(|frame| {
            matches_end(pattern, &frame.function, "::")
                || frame.file.as_ref().is_some_and(|file| matches_end(pattern, file, "/"))
        })
}

/// The error for a pattern that matches nothing, with names that exist.
fn no_match(option: &str, pattern: &str, program: &Program, code: &[Piece]) -> Error {
    let own = || code.iter().flat_map(|piece| &piece.frames).filter(|frame| frame.own);
    let mut names: BTreeSet<&str> = own().map(|frame| frame.function.as_str()).collect();
    names.extend(own().filter_map(|frame| frame.file.as_deref()?.rsplit('/').next()));
    let core = pattern.trim_matches(['*', '?']).to_lowercase();
    let near = |name: &&&str| !core.is_empty() && name.to_lowercase().contains(&core);
    let mut shown: Vec<&str> = names.iter().filter(near).take(SHOWN).copied().collect();
    if shown.is_empty() {
        // Code without a known function is named by its address.
        let plain = |name: &&&str| !name.contains("+0x");
        shown = names.iter().filter(plain).take(SHOWN).copied().collect();
    }
    let there = if shown.is_empty() {
        String::new()
    } else {
        format!("; there are, for instance, {}", shown.join(", "))
    };
    let lines = code.iter().any(|piece| piece.main && piece.has_lines);
    let lines = if lines { "" } else { "; it has no debug information (-g), so source files are not known" };
    Error::Input(format!(
        "{option} {pattern:?} matches no module, source file or function of {}, nor of its libraries{there}{lines}",
        program.path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::Frame;

    fn piece(start: u64, end: u64, function: &str, own: bool) -> Piece {
        let frames =
            vec![Frame { function: function.into(), file: None, line: None, own, ..Frame::default() }];
        Piece { start, end, module: "/bin/p".into(), system: false, has_lines: true, main: true, frames }
    }

    #[test]
    fn ranges_are_joined_and_exclusions_win() {
        let code = [
            piece(0, 10, "f", true),
            piece(10, 20, "g", true),
            piece(20, 30, "g", true),
            piece(30, 40, "std::lock", false),
            piece(40, 50, "h", true),
        ];
        let range = |start, end, kind| Range { start, end, kind };
        let of = |no_preempt: &[&str], focus: &[&str]| {
            let own = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
            let scope = Patterns { no_preempt: own(no_preempt), focus: own(focus) }.ranges(&code);
            (scope.default, scope.ranges)
        };
        let glue = range(30, 40, scope::GLUE);
        assert_eq!(of(&["g"], &[]), (scope::FREE, vec![range(10, 30, scope::HELD), glue]));
        assert_eq!(of(&[], &["g"]), (scope::HELD, vec![range(10, 30, scope::FREE), glue]));
        assert_eq!(of(&["g"], &["g", "h"]), (scope::HELD, vec![glue, range(40, 50, scope::FREE)]));
        assert_eq!(of(&["p"], &[]), (scope::FREE, vec![range(0, 50, scope::HELD)]));
    }
}
