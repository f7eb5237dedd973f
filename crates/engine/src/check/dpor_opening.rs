//! Lets `dpor` begin with every memory access as a scheduling point.
//!
//! Which accesses conflict is known only after they are executed. New access points change the numbering of
//! steps, so all executions up to then are lost. But partial-order reduction branches only where steps
//! conflict (POPL'14, see `search::systematic::dpor`). Scheduling points without a conflict make its
//! executions longer, but not more numerous. So a small program is explored by one execution of each class,
//! without knowing its access points beforehand.
//!
//! The opening ends, and the search starts over with the access points found so far, as every other search
//! does, when one of these happens:
//!
//! - One execution has taken many steps; or all together have, and most of the steps were needless. Such
//!   steps cost time.
//! - A loop waits for memory. The runtime recognises the wait by what the loop reads
//!   (`runtime::sched::spin`), and everything it reads would count.
//! - An order is about to be reversed that is not the order of two conflicting accesses. It may be of two
//!   bytes of one word, because touches distinguish memory only by word, or of an access and the end of the
//!   process. This would add needless classes.
//! - Executions do not follow their plans: which block of memory a thread gets depends on which thread asked
//!   first, and such differences would otherwise not matter.

use super::case::Case;
use super::options::Kind;
use super::outcome::Tally;
use crate::process::access_points::Points;
use crate::process::slots::Run;
use heisen_search::{Search, Strategy};
use heisen_trace::{Note, Op, Touch, TouchKind};

/// The most steps of one execution.
const LONGEST: u32 = 1 << 10;
/// The most steps of all executions together, if most are at accesses without a conflict: this many take some
/// tenths of a second. If most are at conflicting accesses, starting over costs more than they do, unless the
/// search is much longer still.
const MOST: u64 = 1 << 16;

/// Whether a search begins with every access as a scheduling point. It does not if an earlier check has
/// stored access points.
pub(super) fn applies(case: &Case<'_>, tally: &Tally) -> bool {
    let accesses = &case.options.world.accesses;
    case.options.strategy == Kind::Dpor
        && case.program.instrumented
        && accesses.check
        && !accesses.all
        && tally.executions == 0
        && tally.points.is_empty()
}

/// Whether an execution ends the opening.
pub(super) fn outgrows(run: &Run) -> bool {
    const NOT_FOLLOWED: [Note; 5] =
        [Note::Spin, Note::SpinOnMemory, Note::GaveWay, Note::FairTail, Note::LogFull];
    let execution = &run.execution;
    execution.steps > LONGEST
        || execution.diverged.is_some()
        || execution.notes.iter().any(|note| NOT_FOLLOWED.contains(note))
}

/// The steps of an execution at accesses without a known conflict.
pub(super) fn needless(run: &Run, points: &Points) -> u64 {
    let access = |t: &&Touch| t.kind == TouchKind::At && Op::from_code(t.op).is_some_and(Op::is_access);
    run.execution.touches.iter().filter(access).filter(|t| !points.has(t.word)).count() as u64
}

/// Whether the results of the executions so far end the opening.
pub(super) fn is_over(search: &Search, tally: &Tally) -> bool {
    let status = search.status();
    let known = || search.reversed_places().is_none_or(|places| tally.points.contain(places));
    let costs = tally.steps > MOST && 2 * tally.needless > tally.steps;
    status.has_gaps() || !status.exhausted && (costs || !known())
}
