//! Recognises a missed re-check: a thread reads a variable, waits, and goes on after the wait without having read the
//! variable again, although it still has the value for which the thread waited.
//!
//! A wait may end although another thread has already taken what it waited for, and also without any reason. So it must be
//! in a loop. In a loop the same instruction reads the variable again.

use super::compare::Flow;
use crate::explain::classify::Classified;
use heisen_trace::explanation::{BugClass, Remedy};
use heisen_trace::{Op, ThreadId};

/// The class, if the thread that failed did not check again.
pub(crate) fn missed_recheck(failing: &Flow, failed: Option<ThreadId>) -> Option<Classified> {
    let failed = failed?;
    let own: Vec<usize> =
        (0..failing.observed.len()).filter(|&index| failing.moment(index).thread == failed).collect();
    let op = |index: usize| failing.moment(index).op;
    let waits = (0..own.len()).filter(|&at| matches!(op(own[at]), Op::CondWait | Op::CondTimedWait));
    waits.rev().find_map(|wait| {
        let again = (wait + 1..own.len()).find(|&at| op(own[at]) == Op::Relock)?;
        // From the acquisition of the lock to the wait, and from the end of the wait to the next operation on a lock.
        let is_lock = |&at: &usize| failing.observed[own[at]].lock.is_some();
        let locked = (0..wait).rev().find(is_lock).map_or(0, |at| at + 1);
        let leaves = (again + 1..own.len()).find(is_lock).unwrap_or(own.len());
        (locked..wait).rev().find_map(|check| {
            let (check, wait) = (own[check], own[wait]);
            let after = &own[again + 1..leaves];
            let used = is_missed(failing, check, own[again], after)?;
            let taken = (wait..own[again]).rev().find(|&index| {
                failing.moment(index).writes()
                    && failing.observed[index].address == failing.observed[check].address
            });
            let story = [Some(check), Some(wait), taken, Some(used)];
            Some(Classified {
                object: failing.moment(check).object.clone(),
                story: story.into_iter().flatten().map(|index| failing.moment(index).clone()).collect(),
                remedies: vec![Remedy::WaitInLoop {
                    thread: failed,
                    variable: failing.moment(check).object.clone(),
                    place: failing.moment(wait).place.clone(),
                }],
                ..Classified::new(BugClass::MissedRecheck)
            })
        })
    })
}

/// Whether the read before the wait was not done again after it, and the variable had the same value at the end of the
/// wait. Returns the first use of the variable after it.
fn is_missed(failing: &Flow, check: usize, end: usize, after: &[usize]) -> Option<usize> {
    let checked = &failing.observed[check];
    if !failing.reads(check) {
        return None;
    }
    let on_it = |&&index: &&usize| {
        failing.moment(index).is_access() && failing.observed[index].address == checked.address
    };
    let used = *after.iter().find(on_it)?;
    let reread = after.iter().filter(on_it).any(|&index| failing.observed[index].pc == checked.pc);
    let value = (0..end).rev().find(|index| on_it(&index)).and_then(|index| failing.moment(index).value);
    (!reread && value == checked.moment.value).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::execution;
    use super::*;

    /// A thread that checks `count`, waits, and uses it; another one changes it in between. The place of the last read is
    /// the one of the check in a loop.
    fn consumer(taken: u64, in_loop: bool) -> Flow {
        let events = [
            (1, 'l', "m", 0),
            (1, 'r', "count", 0),
            (1, 'c', "cv", 0),
            (1, 'u', "m", 0),
            (2, 'w', "count", 1),
            (2, 'w', "count", taken),
            (1, 'a', "m", 0),
            (1, 'r', "count", taken),
        ];
        let mut flow = execution(&events);
        flow.observed[7].pc = if in_loop { 0 } else { 9 };
        flow
    }

    #[test]
    fn a_wait_without_a_loop() {
        let found = missed_recheck(&consumer(0, false), Some(ThreadId(1))).expect("a class");
        assert_eq!((found.class, found.object.as_str()), (BugClass::MissedRecheck, "count"));
        let steps: Vec<u32> = found.story.iter().map(|moment| moment.step).collect();
        assert_eq!(steps, [2, 3, 6, 8]);
        assert!(matches!(&found.remedies[0], Remedy::WaitInLoop { place, .. } if place == "p.c:3"));
    }

    #[test]
    fn a_loop_or_a_condition_that_holds_is_none() {
        assert!(missed_recheck(&consumer(0, true), Some(ThreadId(1))).is_none());
        assert!(missed_recheck(&consumer(1, false), Some(ThreadId(1))).is_none());
        assert!(missed_recheck(&consumer(0, false), Some(ThreadId(2))).is_none());
        assert!(missed_recheck(&consumer(0, false), None).is_none());
    }
}
