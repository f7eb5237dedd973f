//! What came of a plan, from the worker that ran it to the driver that takes it.
//!
//! To move whole [`Run`]s from hand to hand took as long as a third of a small execution, so most of them are [`Quiet`].

use super::stuck::Stuck;
use crate::error::{Error, Result};
use crate::judge::Verdict;
use crate::quiet::Quiet;
use crate::slot::Run;

/// What came of a plan.
#[derive(Debug)]
pub(super) enum Executed {
    /// Nothing to speak of.
    Quiet(Quiet),
    /// All there is to tell.
    Told(Box<Told>),
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
            Executed::Failed(error) => Err(error),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Executed::Failed(_))
    }

    pub(super) fn is_stuck(&self) -> bool {
        matches!(self, Executed::Told(told) if told.stuck.is_some())
    }

    /// Whether what comes after it need not be run.
    pub(super) fn ends_search(&self, keep_going: bool) -> bool {
        match self {
            Executed::Quiet(_) => false,
            Executed::Told(told) => told.stuck.is_some() || told.verdict.is_some() && !keep_going,
            Executed::Failed(_) => true,
        }
    }
}
