//! Recognises a missed re-check: a thread reads a variable, waits, and goes on after the wait without having read the
//! variable again, although it still has the value for which the thread waited. Or it reads two variables that are equal,
//! as the begin and the end of an empty container are, and they are equal again.
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
        let checks = &own[locked..wait];
        let missed = |&check: &usize| {
            let wait = own[wait];
            let after = &own[again + 1..leaves];
            let used = is_missed(failing, check, checks, own[again], after)?;
            let taken = (wait..own[again]).rev().find(|&index| {
                failing.moment(index).writes()
                    && failing.observed[index].address == failing.observed[check].address
            });
            Some((check, wait, used, taken))
        };
        // Of a condition with two variables, the one that another thread changed says more.
        let all: Vec<_> = checks.iter().rev().filter_map(missed).collect();
        let found = all.iter().find(|(_, _, _, taken)| taken.is_some()).or(all.first());
        found.map(|&(check, wait, used, taken)| {
            let story = [Some(check), Some(wait), taken, Some(used)];
            Classified {
                object: failing.moment(check).object.clone(),
                story: story.into_iter().flatten().map(|index| failing.moment(index).clone()).collect(),
                remedies: vec![Remedy::WaitInLoop {
                    thread: failed,
                    variable: failing.moment(check).object.clone(),
                    place: failing.moment(wait).place.clone(),
                }],
                ..Classified::new(BugClass::MissedRecheck)
            }
        })
    })
}

/// Whether the read before the wait was not done again after it, and the variable had the same value at the end of the
/// wait, or was again equal to another one that was read in the same section. Returns the first use of the variable after
/// it.
fn is_missed(failing: &Flow, check: usize, checks: &[usize], end: usize, after: &[usize]) -> Option<usize> {
    if !failing.reads(check) {
        return None;
    }
    let on = |read: usize| {
        let address = failing.observed[read].address;
        move |&index: &usize| failing.moment(index).is_access() && failing.observed[index].address == address
    };
    let again = |read: usize| {
        after.iter().copied().filter(on(read)).any(|at| failing.observed[at].pc == failing.observed[read].pc)
    };
    let value = |read: usize| failing.moment(read).value;
    let at_end = |read: usize| (0..end).rev().find(on(read)).and_then(value);
    let used = after.iter().copied().find(on(check))?;
    let equal = |&other: &usize| {
        failing.reads(other)
            && failing.observed[other].address != failing.observed[check].address
            && value(other) == value(check)
            && at_end(other) == at_end(check)
            && !again(other)
    };
    let holds = at_end(check) == value(check) || checks.iter().any(equal);
    (value(check).is_some() && !again(check) && holds).then_some(used)
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

    /// The condition is `used == size`, and nobody changes `size`.
    #[test]
    fn a_variable_that_changes_says_more_than_one_that_does_not() {
        let mut flow = execution(&[
            (1, 'l', "m", 0),
            (1, 'r', "used", 1),
            (1, 'r', "size", 1),
            (1, 'c', "cv", 0),
            (1, 'u', "m", 0),
            (2, 'w', "used", 0),
            (3, 'w', "used", 1),
            (1, 'a', "m", 0),
            (1, 'r', "used", 1),
            (1, 'r', "size", 1),
        ]);
        flow.observed[8].pc = 8;
        flow.observed[9].pc = 9;
        let found = missed_recheck(&flow, Some(ThreadId(1))).expect("it is missed");
        assert_eq!(found.object, "used");
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
    fn a_container_that_is_empty_again() {
        let events = |end: u64| {
            [
                (1, 'l', "m", 0),
                (1, 'r', "end", 5),
                (1, 'r', "begin", 5),
                (1, 'c', "cv", 0),
                (1, 'u', "m", 0),
                (2, 'w', "end", end),
                (2, 'w', "begin", 6),
                (1, 'a', "m", 0),
                (1, 'r', "begin", 6),
            ]
        };
        let missed = |end| {
            let mut flow = execution(&events(end));
            flow.observed[8].pc = 9;
            missed_recheck(&flow, Some(ThreadId(1))).map(|found| found.object)
        };
        assert_eq!(missed(6).as_deref(), Some("begin"));
        assert_eq!(missed(7), None);
    }

    #[test]
    fn a_loop_or_a_condition_that_holds_is_none() {
        assert!(missed_recheck(&consumer(0, true), Some(ThreadId(1))).is_none());
        assert!(missed_recheck(&consumer(1, false), Some(ThreadId(1))).is_none());
        assert!(missed_recheck(&consumer(0, false), Some(ThreadId(2))).is_none());
        assert!(missed_recheck(&consumer(0, false), None).is_none());
    }
}
