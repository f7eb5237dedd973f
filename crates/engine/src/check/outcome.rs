//! Holds the results of a check: the tally, which grows with each execution, and the outcome.

use super::caveat::Caveat;
use crate::check::coverage::Coverage;
use crate::error::Error;
use crate::explain::race_log::RaceLog;
use crate::process::access_points::Points;
use heisen_search::{Search, Status};
use heisen_trace::{Finding, Note, Predicted, Prediction};
use heisen_wire::runner;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use syscalls::Sysno;

/// The work of a search so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// The number of executions.
    pub executions: u64,
    /// The number of scheduling points in all executions.
    pub steps: u64,
    /// The most threads in one execution.
    #[serde(default)]
    pub threads: u32,
    /// Time spent.
    pub time: Duration,
    /// The bugs found, each once.
    pub findings: Vec<Finding>,
    /// Signatures of the findings, and keys of the executions that led to them.
    pub(super) signatures: BTreeSet<String>,
    pub(super) keys: HashSet<String>,
    /// Executions that failed, but not again in the close-up.
    pub unconfirmed: u64,
    /// Executions that still ran when the time was over.
    #[serde(default)]
    pub cut: u64,
    /// Executions that failed when no time was left for a close-up.
    #[serde(default)]
    pub unexamined: u64,
    /// What the first of them appeared to be.
    #[serde(default)]
    pub(super) seemed: Option<String>,
    /// Executions that ended because nobody outside the program was there.
    #[serde(default)]
    pub idle: u64,
    /// What the first of them waited for, or where an execution that was cut listens.
    #[serde(default)]
    pub(super) awaited: Option<String>,
    /// Executions that reached the step limit and were not found to be livelocks.
    #[serde(default)]
    pub too_long: u64,
    /// The notes of the executions, as bits.
    pub(super) notes: u64,
    /// Where executions of one plan first differed: the plan was not followed, or its failure did not occur
    /// again.
    pub diverged_at: Option<String>,
    /// The access points.
    #[serde(default)]
    pub points: Arc<Points>,
    /// Steps at accesses without a conflict, while every access is a scheduling point.
    #[serde(default)]
    pub(super) needless: u64,
    /// How often the search started over because there were new access points.
    #[serde(default)]
    pub restarts: u64,
    /// Executions in a runner, after which the snapshot was restored.
    #[serde(default)]
    pub undone: u64,
    /// Those of them that began after a shared prefix rather than at `main`.
    #[serde(default)]
    pub ahead: u64,
    /// The steps of the shared prefixes, which these executions did not have to take.
    #[serde(default)]
    pub skipped: u64,
    /// Why the last execution outside a runner was not in one: one of `heisen_wire::runner`; 0 if no runner
    /// was asked for.
    #[serde(default)]
    pub forked: u32,
    /// How often a zygote was gone, so that another one ran its plans.
    #[serde(default)]
    pub lost: u64,
    /// The happens-before classes seen, by the hashes of their graphs; empty if they are not counted.
    #[serde(default)]
    pub classes: HashSet<u64>,
    /// What the executions have covered, if coverage is counted.
    #[serde(default)]
    pub coverage: Option<Coverage>,
    /// Whether the program has instrumented code.
    #[serde(default)]
    pub instrumented: bool,
    /// How many executions ended at an assumption that does not hold.
    #[serde(default)]
    pub assumed: u64,
    /// Whether the program has asked for inputs, as far as symbolic traces show it.
    #[serde(default)]
    pub asks_for_inputs: bool,
    /// The functions without instrumentation that executions with a symbolic trace have called.
    #[serde(default)]
    pub called: BTreeSet<String>,
    /// The data races seen.
    #[serde(default)]
    pub races: RaceLog,
    /// Predictions that become hints if no execution confirms them.
    #[serde(default)]
    pub(super) tried: Vec<Attempt>,
}

/// A likely prediction to which an execution was steered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Attempt {
    pub(super) predicted: Arc<Predicted>,
    /// Whether such an execution failed.
    pub(super) failed: bool,
}

impl Tally {
    pub(super) fn add_note(&mut self, note: Note) {
        self.notes |= note.bit();
    }

    /// Whether any execution made this note.
    pub(super) fn has_note(&self, note: Note) -> bool {
        self.notes & note.bit() != 0
    }

    /// Whether no execution had anything to choose: only one thread ran, and there was no other choice. All
    /// executions are then the same.
    pub fn is_alone(&self) -> bool {
        self.threads == 1 && !self.has_note(Note::OtherChoice)
    }

    /// Whether every execution that failed became a finding, or is the same as one.
    pub fn all_confirmed(&self) -> bool {
        self.unconfirmed == 0 && self.unexamined == 0
    }

    /// Whether every execution is known to be correct or a finding.
    pub fn all_judged(&self) -> bool {
        self.all_confirmed() && self.idle == 0 && self.too_long == 0
    }

    /// Forgets what the last deadline cut short: it is tried again.
    pub(super) fn forget_deadline(&mut self) {
        (self.cut, self.unexamined, self.seemed) = (0, 0, None);
        self.awaited.take_if(|_| self.idle == 0);
    }

    /// Whether most executions had a process of their own, for a reason that holds for all of them.
    pub fn mostly_forked(&self) -> bool {
        self.forked != 0 && self.forked != runner::CRASH && 2 * self.undone < self.executions
    }

    /// Why executions had a process of their own, in words.
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
                    // The runtime's own call, before the program forks.
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
    /// A bug was found, and the search does not go on after one.
    Found,
    /// The limit of executions or of time was reached.
    Limit,
    /// The user interrupted.
    Interrupted,
    /// The program waits for someone outside, and nobody is there.
    Idle,
    /// The search could not go on.
    Failed,
}

/// Which accesses occur in any order in the explored schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All conflicting accesses.
    All,
    /// Conflicting accesses of instrumented code; some code is not instrumented.
    Partly,
    /// Atomic accesses: the check for data races is off.
    Atomics,
    /// Atomic read-modify-write instructions of patched modules: nothing is instrumented.
    Patched,
    /// No accesses: nothing is instrumented or patched.
    Calls,
}

/// Why a check had nothing to explore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// Only one thread ever ran.
    OneThread,
    /// The program is a test program whose output says that it ran no test.
    NoTest,
    /// No thread reached a place where `--focus` and `--no-preempt` allow preemption.
    NoPointInScope,
    /// Every execution ended at an assumption that does not hold.
    Contradiction,
}

/// The outcome of a check.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ended: Ended,
    /// The work that was done.
    pub tally: Tally,
    /// The final state of the strategy.
    pub status: Status,
    /// What was not explored or not controlled.
    pub caveats: Vec<Caveat>,
    /// Predictions that no execution confirmed.
    pub hints: Vec<Prediction>,
    /// Whether threads were preempted only at some places.
    pub scoped: bool,
    /// Whether all conflicting accesses were scheduling points.
    pub accesses_explored: bool,
    /// Which accesses occur in any order in the explored schedules.
    pub reach: Reach,
    /// Why there was nothing to explore, if so.
    pub empty: Option<Empty>,
    /// Whether `--time` ended it.
    pub out_of_time: bool,
    /// The search itself, to be saved.
    pub search: Search,
    /// Why the search could not go on, if it failed.
    pub error: Option<Error>,
}

impl Outcome {
    /// Whether everything within the bound was explored.
    pub fn complete(&self) -> bool {
        let exhausted = self.status.exhausted || self.empty == Some(Empty::OneThread);
        exhausted && !self.status.has_gaps() && self.tally.all_judged()
    }

    /// The verdict in one word: "bug"; "clean" if nothing was found and the search did everything it was
    /// asked for; otherwise "incomplete".
    pub fn verdict(&self) -> &'static str {
        let nothing =
            matches!(self.empty, Some(Empty::NoTest | Empty::NoPointInScope | Empty::Contradiction));
        if self.findings().next().is_some() {
            "bug"
        } else if !nothing && (self.complete() || self.sampled_to_the_end()) {
            "clean"
        } else {
            "incomplete"
        }
    }

    /// Whether anything limits the claim, other than the bound or the number of executions that the user
    /// asked for.
    pub fn has_caveats(&self) -> bool {
        self.verdict() == "incomplete" || !self.caveats.is_empty() || self.tally.races.unreported()
    }

    /// Whether the claim holds for every execution of the program within the bound: the search was exhausted,
    /// and nothing limits its claim.
    pub fn sound(&self) -> bool {
        self.complete() && (self.accesses_explored || self.empty.is_some()) && !self.has_caveats()
    }

    /// Whether any execution made this note.
    pub fn has_note(&self, note: Note) -> bool {
        self.tally.has_note(note)
    }

    /// For a search that explores each class once: how many executions were of a class explored before.
    pub fn in_vain(&self) -> Option<u64> {
        let classes = self.tally.classes.len() as u64;
        self.status.classes.map(|_| self.status.executions.saturating_sub(classes))
    }

    /// The findings: failures, then the reported races, each in the order in which they were found.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.tally.findings.iter().chain(self.tally.races.reports())
    }

    /// Whether a sampler, which is never complete, did everything it was asked for, without a failure and
    /// without an execution that was cut.
    pub fn sampled_to_the_end(&self) -> bool {
        let ran_out = self.out_of_time || self.tally.cut > 0;
        self.ended == Ended::Limit && !ran_out && self.search.samples() && self.tally.all_judged()
    }

    /// The largest preemption bound that was explored fully.
    pub fn preemption_bound(&self) -> Option<u32> {
        self.status.explored_bound.filter(|_| !self.status.has_gaps() && self.tally.all_judged())
    }
}
