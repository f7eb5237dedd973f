//! What came of a plan, from the worker that ran it to the driver that takes it.
//!
//! To move whole [`Run`]s from hand to hand took as long as a third of a small execution, so most of them are [`Quiet`].

use super::stuck::Stuck;
use crate::error::{Error, Result};
use crate::quiet::Quiet;
use crate::slot::Run;

/// What came of a plan.
#[derive(Debug)]
pub(super) enum Executed {
    /// Nothing to speak of.
    Quiet(Quiet),
    /// All of it, where it was if it did not move, and whether it went wrong.
    Whole(Box<(Run, Option<Stuck>, bool)>),
    /// It could not be run.
    Failed(Error),
}

impl Executed {
    /// The execution, where it was if it did not move, and whether it went wrong.
    pub(super) fn open(self) -> Result<(Run, Option<Stuck>, bool)> {
        match self {
            Executed::Quiet(quiet) => Ok((quiet.run(), None, false)),
            Executed::Whole(whole) => Ok(*whole),
            Executed::Failed(error) => Err(error),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Executed::Failed(_))
    }

    pub(super) fn is_stuck(&self) -> bool {
        matches!(self, Executed::Whole(whole) if whole.1.is_some())
    }

    /// Whether what comes after it need not be run.
    pub(super) fn ends_search(&self, keep_going: bool) -> bool {
        match self {
            Executed::Quiet(_) => false,
            Executed::Whole(whole) => whole.1.is_some() || whole.2 && !keep_going,
            Executed::Failed(_) => true,
        }
    }
}
