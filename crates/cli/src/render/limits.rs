//! The sentences that say what limits an explanation, and what would add to it.

use crate::render::paint::{count, number};
use heisen_engine::explain::difference::MAX_EVENTS;
use heisen_engine::explain::unexplained::Unexplained;
use heisen_engine::program::Program;
use heisen_trace::explanation::BugClass;
use heisen_trace::{Finding, Frame, Stack};

/// The largest number of files that a sentence names.
const MAX_FILES: usize = 3;

/// The sentences for a finding of this program. `unexplained` says why it has no explanation.
pub fn notes(finding: &Finding, program: &Program, unexplained: Option<&Unexplained>) -> Vec<String> {
    let mut notes = Vec::new();
    let most = number(MAX_EVENTS as u64);
    match unexplained {
        Some(Unexplained::TooLong(Some(_))) => notes.push(format!(
            "the execution has more than {most} events, so Heisen compared its calls but not its accesses of memory"
        )),
        Some(Unexplained::TooLong(None)) => notes.push(format!(
            "the execution has more than {most} events, and Heisen compares at most {most}; make the failing test smaller to get an explanation"
        )),
        Some(Unexplained::Unsteady) => notes.push(
            "the execution failed in another way when Heisen recorded it again, so it cannot be compared".to_owned(),
        ),
        Some(Unexplained::Alone) => {
            notes.push("no execution nearby passes, so there is nothing to compare with".to_owned());
        }
        None => {}
    }
    if lacks_lines(finding) {
        notes.push("the program has no debug information; compile it with -g to see source lines".to_owned());
    }
    // A deadlock is complete without variables.
    let complete = finding
        .explanation
        .as_ref()
        .is_some_and(|why| matches!(why.class, BugClass::Deadlock | BugClass::LostWakeUp));
    if !program.instrumented && !complete {
        let how = if program.rust { "cargo heisen" } else { "heisen cc or heisen c++" };
        notes.push(format!(
            "the program is not instrumented, so its accesses of memory are unknown; build it with {how} to see which variables are involved, and their values"
        ));
    }
    notes
}

/// Whether no place in the program's own code has a line.
fn lacks_lines(finding: &Finding) -> bool {
    let stacks = finding.threads.iter().map(|thread| &thread.stack);
    let stacks = stacks.chain(finding.switches.iter().map(|switch| &switch.stack)).chain([&finding.stack]);
    let own = |stack: &Stack| -> Vec<Frame> { stack.0.iter().filter(|frame| frame.own).cloned().collect() };
    let frames: Vec<Frame> = stacks.flat_map(own).collect();
    !frames.is_empty() && frames.iter().all(|frame| frame.line.is_none())
}

/// The sentence that names source files that cannot be read. `None` without such files.
pub fn missing(files: &[String]) -> Option<String> {
    let shown = files[..files.len().min(MAX_FILES)].join(", ");
    let more = files.len().saturating_sub(MAX_FILES) as u64;
    match files.len() {
        0 => None,
        1 => Some(format!("{shown} was not found, so its lines are not shown")),
        _ if more > 0 => Some(format!(
            "{shown} and {} were not found, so their lines are not shown",
            count(more, "other file")
        )),
        _ => Some(format!("{shown} were not found, so their lines are not shown")),
    }
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn missing_files_are_named_in_one_sentence() {
        let files: Vec<String> = ["a.c", "b.c", "c.c", "d.c"].map(str::to_owned).to_vec();
        assert_eq!(missing(&[]), None);
        assert_eq!(missing(&files[..1]).as_deref(), Some("a.c was not found, so its lines are not shown"));
        assert_eq!(
            missing(&files[..2]).as_deref(),
            Some("a.c, b.c were not found, so their lines are not shown")
        );
        assert_eq!(
            missing(&files).as_deref(),
            Some("a.c, b.c, c.c and 1 other file were not found, so their lines are not shown")
        );
    }
}
