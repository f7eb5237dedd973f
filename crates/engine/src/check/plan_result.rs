//! What came of a plan, from the worker that ran it to the driver that takes it.
//!
//! To move whole [`Run`]s from hand to hand took as long as a third of a small execution, so most of them are [`Quiet`].

use super::stuck::Stuck;
use crate::error::{Error, Result};
use crate::explain::judge::Verdict;
use crate::process::brief_result::Quiet;
use crate::process::slots::Run;
use crate::process::zygote::Cut;
use heisen_trace::{Execution, Note};

/// What came of a plan.
#[derive(Debug)]
pub(super) enum Executed {
    /// Nothing to speak of.
    Quiet(Quiet),
    /// All there is to tell.
    Told(Box<Told>),
    /// It still ran when time was over, or when the user wanted to stop.
    Cut(Cut),
    /// It could not be run.
    Failed(Error),
}

/// An execution.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) run: Run,
    /// Where it was, if it did not move.
    pub(super) stuck: Option<Stuck>,
    /// What is wrong with it, if anything.
    pub(super) verdict: Option<Verdict>,
}

impl Executed {
    /// The execution, or why there is none.
    pub(super) fn open(self) -> Result<Told> {
        match self {
            Executed::Quiet(quiet) => Ok(Told { run: quiet.run(), stuck: None, verdict: None }),
            Executed::Told(told) => Ok(*told),
            Executed::Cut(cut) => Err(cut.why),
            Executed::Failed(error) => Err(error),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Executed::Cut(_) | Executed::Failed(_))
    }

    /// Of one that had begun, and that `--time` did not let come to its end.
    pub(super) fn cut_by_time(&self) -> Option<&Cut> {
        match self {
            Executed::Cut(cut) if cut.why == Error::TimeOver => Some(cut),
            _ => None,
        }
    }

    pub(super) fn is_stuck(&self) -> bool {
        matches!(self, Executed::Told(told) if told.stuck.is_some())
    }

    /// Whether what comes after it need not be run.
    pub(super) fn ends_search(&self, keep_going: bool) -> bool {
        match self {
            Executed::Quiet(quiet) => quiet.is_alone(),
            Executed::Told(told) => {
                let Execution { threads, notes, .. } = &told.run.execution;
                let alone = *threads == 1 && !notes.contains(&Note::OtherChoice);
                told.stuck.is_some() || told.verdict.is_some() && !keep_going || alone
            }
            Executed::Cut(_) | Executed::Failed(_) => true,
        }
    }
}
