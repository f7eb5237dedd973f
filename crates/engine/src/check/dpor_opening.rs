//! How dpor begins: with every access of memory as a scheduling point.
//!
//! Which accesses conflict shows only when they are executed, and where there are more points steps are counted anew, so what was
//! run until then was in vain. But partial order reduction branches only where steps conflict (POPL'14, see `search::dpor`):
//! points at which nothing conflicts make its executions longer, and not more. So a small program is explored by one execution
//! of each class, with no need to know anything of it before.
//!
//! The opening is over, and the search starts over with the places that were seen to conflict, as all others begin, when
//!
//! - one execution has taken many steps, or all have and most of them for nothing: they cost time;
//! - a loop waits for memory: by what it reads it is seen to wait (`runtime::spin`), and all that it reads would count;
//! - an order is about to be reversed that is none of two accesses that conflict: of two bytes of one word, by which touches tell
//!   memory apart, or of an access and the end of the process. There would be more classes than need be;
//! - executions do not follow their plans: which block of memory a thread gets depends on who was first to ask for one, and nobody
//!   would mind.

use super::driver::Driver;
use super::{Check, Kind, Tally};
use crate::check::access_points::Points;
use crate::process::slots::Run;
use heisen_search::Strategy;
use heisen_trace::{Note, Op, Touch, TouchKind};

/// Most steps of one execution.
const LONGEST: u32 = 1 << 10;
/// Most steps of all, if most are at accesses that conflict with nothing: these take some tenths of a second. If most are not, to
/// start over costs more than they do, unless the search is much longer still.
const MOST: u64 = 1 << 16;

impl Check<'_> {
    /// Whether a search begins with all accesses as scheduling points: not if some are known from an earlier check.
    pub(super) fn opens(&self, tally: &Tally) -> bool {
        let accesses = &self.options.world.accesses;
        self.options.strategy == Kind::Dpor
            && self.program.instrumented
            && accesses.check
            && !accesses.all
            && tally.executions == 0
            && tally.points.is_empty()
    }
}

/// Whether an execution is none for the opening.
pub(super) fn outgrows(run: &Run) -> bool {
    const NOT_FOLLOWED: [Note; 5] =
        [Note::Spin, Note::SpinOnMemory, Note::GaveWay, Note::FairTail, Note::LogFull];
    let execution = &run.execution;
    execution.steps > LONGEST
        || execution.diverged.is_some()
        || execution.notes.iter().any(|note| NOT_FOLLOWED.contains(note))
}

/// The steps of an execution at accesses that conflict with nothing, as far as is known.
pub(super) fn needless(run: &Run, points: &Points) -> u64 {
    let access = |t: &&Touch| t.kind == TouchKind::At && Op::from_code(t.op).is_some_and(Op::is_access);
    run.execution.touches.iter().filter(access).filter(|t| !points.has(t.word)).count() as u64
}

impl Driver<'_> {
    /// Whether the opening is over by what its executions have led to.
    pub(super) fn has_opened(&self) -> bool {
        let status = self.search.status();
        let known = || self.search.reversed_places().is_none_or(|places| self.tally.points.contain(places));
        let costs = self.tally.steps > MOST && 2 * self.tally.needless > self.tally.steps;
        status.has_gaps() || !status.exhausted && (costs || !known())
    }
}
