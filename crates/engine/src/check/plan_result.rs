//! Carries the result of a plan from the worker that ran it to the result taker.
//!
//! Moving a complete [`Run`] between threads took a third of the time of a small execution, so most results
//! are a [`BriefResult`].

use super::hang::Hang;
use crate::error::{Error, Result};
use crate::explain::judge::Verdict;
use crate::process::brief_result::BriefResult;
use crate::process::slots::Run;
use crate::process::zygote::Cut;
use heisen_trace::{Execution, Note};

/// The result of a plan.
#[derive(Debug)]
pub(super) enum PlanResult {
    /// The execution ended as expected and logged nothing.
    Brief(BriefResult),
    /// Any other execution.
    Full(Box<FullResult>),
    /// The execution still ran when the time was over, or when the user wanted to stop.
    Cut(Cut),
    /// The execution could not be run.
    Failed(Error),
}

/// An execution with its verdict.
#[derive(Debug)]
pub(super) struct FullResult {
    pub(super) run: Run,
    /// Where it was, if it hung.
    pub(super) hang: Option<Hang>,
    /// Its failure, if any.
    pub(super) verdict: Option<Verdict>,
}

impl PlanResult {
    /// The execution, or the error that prevented it.
    pub(super) fn open(self) -> Result<FullResult> {
        match self {
            PlanResult::Brief(brief) => Ok(FullResult { run: brief.run(), hang: None, verdict: None }),
            PlanResult::Full(full) => Ok(*full),
            PlanResult::Cut(cut) => Err(cut.why),
            PlanResult::Failed(error) => Err(error),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self, PlanResult::Cut(_) | PlanResult::Failed(_))
    }

    /// The execution, if it still ran at the end of `--time`.
    pub(super) fn cut_by_time(&self) -> Option<&Cut> {
        match self {
            PlanResult::Cut(cut) if cut.why == Error::TimeOver => Some(cut),
            _ => None,
        }
    }

    pub(super) fn hangs(&self) -> bool {
        matches!(self, PlanResult::Full(full) if full.hang.is_some())
    }

    /// Whether the plans after this one need not be run.
    pub(super) fn ends_search(&self, keep_going: bool) -> bool {
        match self {
            PlanResult::Brief(brief) => brief.is_alone(),
            PlanResult::Full(full) => {
                let Execution { threads, notes, .. } = &full.run.execution;
                let alone = *threads == 1 && !notes.contains(&Note::OtherChoice);
                full.hang.is_some() || full.verdict.is_some() && !keep_going || alone
            }
            PlanResult::Cut(_) | PlanResult::Failed(_) => true,
        }
    }
}
