//! What a check has done and found: the tally that grows with each execution, and the outcome.

use super::caveat::Caveat;
use crate::check::coverage::Coverage;
use crate::error::Error;
use crate::explain::race_log::Raced;
use crate::process::access_points::Points;
use heisen_search::{Search, Status};
use heisen_trace::{Finding, Note, Predicted, Prediction};
use heisen_wire::runner;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use syscalls::Sysno;

/// What a search has done so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Executions.
    pub executions: u64,
    /// Scheduling points passed in all of them.
    pub steps: u64,
    /// The most threads of any of them.
    #[serde(default)]
    pub threads: u32,
    /// Time spent.
    pub time: Duration,
    /// Bugs found, each once.
    pub findings: Vec<Finding>,
    /// Signatures of those, and keys of the executions that led to them.
    pub(super) signatures: BTreeSet<String>,
    pub(super) keys: HashSet<String>,
    /// Executions that went wrong but not again when looked at closely.
    pub unconfirmed: u64,
    /// Executions that still ran when time was over.
    #[serde(default)]
    pub cut: u64,
    /// Executions that went wrong when there was no time left for a close look.
    #[serde(default)]
    pub unexamined: u64,
    /// What the first of them seemed to be.
    #[serde(default)]
    pub(super) seemed: Option<String>,
    /// Executions that ended as nobody outside the program was there.
    #[serde(default)]
    pub idle: u64,
    /// What the first of them waited for, or where one that was cut listens.
    #[serde(default)]
    pub(super) awaited: Option<String>,
    /// Executions that did not end within the limit of steps, of which nothing more is known.
    #[serde(default)]
    pub too_long: u64,
    /// Bits of notes.
    pub(super) notes: u64,
    /// Where the first execution that did not follow its plan, or did not fail again, went another way.
    pub diverged_at: Option<String>,
    /// Accesses of memory that are scheduling points.
    #[serde(default)]
    pub points: Arc<Points>,
    /// Steps at accesses that conflict with nothing, as long as all are scheduling points.
    #[serde(default)]
    pub(super) needless: u64,
    /// How often the search started over, since there were more of them.
    #[serde(default)]
    pub restarts: u64,
    /// Executions whose changes were undone, so that the next could run in the same process.
    #[serde(default)]
    pub undone: u64,
    /// Those of them that began at a choice, and not at `main`.
    #[serde(default)]
    pub ahead: u64,
    /// The steps that were done before these began, by others.
    #[serde(default)]
    pub skipped: u64,
    /// Why that was not so for the last of the others: one of `heisen_wire::runner`, 0 if nobody wanted it.
    #[serde(default)]
    pub forked: u32,
    /// How often a parked program was gone, and what it had to run was run by another.
    #[serde(default)]
    pub lost: u64,
    /// Classes of equivalent executions that were seen, by the hashes of their graphs; empty where nobody asked.
    #[serde(default)]
    pub classes: HashSet<u64>,
    /// What its executions have covered, where that is asked for.
    #[serde(default)]
    pub coverage: Option<Coverage>,
    /// Whether the program has instrumented code.
    #[serde(default)]
    pub instrumented: bool,
    /// Data races.
    #[serde(default)]
    pub races: Raced,
    /// Predictions that are worth a hint if they do not come true.
    #[serde(default)]
    pub(super) tried: Vec<Attempt>,
}

/// A likely prediction that an execution was steered to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Attempt {
    pub(super) predicted: Arc<Predicted>,
    /// Whether an execution failed.
    pub(super) failed: bool,
}

impl Tally {
    pub(super) fn add_note(&mut self, note: Note) {
        self.notes |= note.bit();
    }

    /// Whether an execution made this note.
    pub(super) fn has_note(&self, note: Note) -> bool {
        self.notes & note.bit() != 0
    }

    /// Whether no execution had anything to choose: only one thread ran, and nothing else was chosen. Then they are all the same.
    pub fn is_alone(&self) -> bool {
        self.threads == 1 && !self.has_note(Note::OtherChoice)
    }

    /// Whether every execution that went wrong became a finding, or is known by one.
    pub fn all_confirmed(&self) -> bool {
        self.unconfirmed == 0 && self.unexamined == 0
    }

    /// Whether it is known of every execution whether it is right.
    pub fn all_judged(&self) -> bool {
        self.all_confirmed() && self.idle == 0 && self.too_long == 0
    }

    /// What ran out of time before is tried again.
    pub(super) fn forget_deadline(&mut self) {
        (self.cut, self.unexamined, self.seemed) = (0, 0, None);
        self.awaited.take_if(|_| self.idle == 0);
    }

    /// Whether most executions had processes of their own, for a reason that holds for all of them.
    pub fn mostly_forked(&self) -> bool {
        self.forked != 0 && self.forked != runner::CRASH && 2 * self.undone < self.executions
    }

    /// Why executions had processes of their own, in words.
    pub fn why_forked(&self) -> Option<String> {
        Some(match self.forked {
            0 => return None,
            runner::NO_MEMORY => "there is no memory for a snapshot of the program".into(),
            runner::NO_DISPATCH => "the kernel has no system call dispatch (Linux 5.11 has)".into(),
            runner::TOO_LARGE => "the program has too much memory, or memory of an unusual kind".into(),
            runner::CRASH => "an execution crashed".into(),
            runner::DAMAGED => "the snapshot could not be restored".into(),
            runner::FILES => "the program has opened more files than a snapshot can restore".into(),
            runner::SIGNAL => "a signal came from outside the program".into(),
            code => {
                let number = code - runner::CALL;
                match Sysno::new(number as usize) {
                    // The runtime's own, before the program forks.
                    Some(Sysno::setpgid) => {
                        "the program starts another process, or leaves its process group".into()
                    }
                    Some(name) => format!("the program calls {name}, which cannot be undone"),
                    None => format!("the program makes system call {number}, which cannot be undone"),
                }
            }
        })
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left to explore.
    Exhausted,
    /// A bug was found, and that is enough.
    Found,
    /// The limit of executions or of time was reached.
    Limit,
    /// The user interrupted.
    Interrupted,
    /// The program waits for someone outside, and nobody is there.
    Idle,
    /// It could not go on.
    Failed,
}

/// Which accesses of memory the explored schedules have in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All that conflict.
    All,
    /// Those of instrumented code that conflict; some code is not instrumented.
    Partly,
    /// Atomic ones: the check for races is off.
    Atomics,
    /// Atomic read-modify-write instructions of patched modules: nothing is instrumented.
    Patched,
    /// None: nothing is instrumented or patched.
    Calls,
}

/// Why a check had nothing to explore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// Only one thread ever ran.
    OneThread,
    /// The program is a test program that says it ran no test.
    NoTest,
    /// No thread was ever at a place where `--focus` and `--no-preempt` let it be preempted.
    NoPointInScope,
}

/// The verdict of a whole check.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ended: Ended,
    /// What was done.
    pub tally: Tally,
    /// Where the search stands.
    pub status: Status,
    /// What was not explored or not controlled.
    pub caveats: Vec<Caveat>,
    /// What was predicted, and no execution came to.
    pub hints: Vec<Prediction>,
    /// Whether preemptions were searched at some places only.
    pub scoped: bool,
    /// Whether all accesses of memory that conflict were scheduling points.
    pub accesses_explored: bool,
    /// Which accesses of memory the explored schedules have in any order.
    pub reach: Reach,
    /// Why nothing could be explored, if so.
    pub empty: Option<Empty>,
    /// Whether `--time` ended it.
    pub out_of_time: bool,
    /// The search itself, to be saved.
    pub search: Search,
    /// Why it could not go on, if it has failed.
    pub error: Option<Error>,
}

impl Outcome {
    /// Whether everything within the bound was explored.
    pub fn complete(&self) -> bool {
        let exhausted = self.status.exhausted || self.empty == Some(Empty::OneThread);
        exhausted && !self.status.has_gaps() && self.tally.all_judged()
    }

    /// The verdict in one word: "bug"; "clean" if nothing was found and the search did all it set out to do; else "incomplete".
    pub fn verdict(&self) -> &'static str {
        let nothing = matches!(self.empty, Some(Empty::NoTest | Empty::NoPointInScope));
        if self.findings().next().is_some() {
            "bug"
        } else if !nothing && (self.complete() || self.sampled_to_the_end()) {
            "clean"
        } else {
            "incomplete"
        }
    }

    /// Whether anything limits what the verdict claims, besides the bound or the number of executions that was asked for.
    pub fn has_caveats(&self) -> bool {
        self.verdict() == "incomplete" || !self.caveats.is_empty() || self.tally.races.unreported()
    }

    /// Whether the claim holds for every execution that the program can have within the bound: the search came to its end, and
    /// nothing limits what it claims.
    pub fn sound(&self) -> bool {
        self.complete() && (self.accesses_explored || self.empty.is_some()) && !self.has_caveats()
    }

    /// Whether a note was made by an execution.
    pub fn has_note(&self, note: Note) -> bool {
        self.tally.has_note(note)
    }

    /// Of a search that explores each class of equivalent executions once, how many were of a class that was explored before.
    pub fn in_vain(&self) -> Option<u64> {
        let classes = self.tally.classes.len() as u64;
        self.status.classes.map(|_| self.status.executions.saturating_sub(classes))
    }

    /// What was found: what went wrong, and then the races that are reported, each in the order it was found.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.tally.findings.iter().chain(self.tally.races.reports())
    }

    /// Whether it is a search that only ever samples, and so is never complete, which has done what it was asked for,
    /// nothing failed, and no execution was cut.
    pub fn sampled_to_the_end(&self) -> bool {
        let ran_out = self.out_of_time || self.tally.cut > 0;
        self.ended == Ended::Limit && !ran_out && self.search.samples() && self.tally.all_judged()
    }

    /// The largest preemption bound that was explored fully.
    pub fn preemption_bound(&self) -> Option<u32> {
        self.status.explored_bound.filter(|_| !self.status.has_gaps() && self.tally.all_judged())
    }
}
