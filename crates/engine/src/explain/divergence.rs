//! Finds where executions of one plan begin to differ, and why. A plan identifies its steps by number, so a
//! divergence is noticed at the next step that the plan fixes (CHESS, OSDI'08, section 4.2). Its cause may
//! lie long before that step. So the plan is run a few more times with every event logged, and the first
//! differing event is named.

use crate::error::Result;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Event, Job, Operation, Run};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_inspect::{Symbols, View};
use heisen_trace::{Note, Op, Plan, Stack};
use std::path::Path;

/// How often the plan is run to see a difference.
const RUNS: usize = 4;

/// The first difference between executions of one plan.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// The first operation that differs, such as `lock(q) (queue.c:31, T2)`.
    pub at: String,
    /// Actions of the executions that Heisen does not control.
    pub notes: Vec<Note>,
}

/// Runs the plan several times to see where its executions differ. If they no longer differ, the result names
/// `noticed`, the operation at which the search noticed the divergence.
pub fn locate(
    runtime: &Path,
    program: &Program,
    config: &RunConfig,
    plan: &Plan,
    noticed: Option<Operation>,
) -> Result<Difference> {
    let mut zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
    let mut logs: Vec<Vec<Event>> = Vec::new();
    let mut notes: Vec<Note> = Vec::new();
    for _ in 0..RUNS {
        let Run { execution, .. } = zygote.run(Job::Plan(plan), Detail::Events, None)?;
        notes.extend(execution.notes);
        logs.push(zygote.events());
    }
    notes.sort();
    notes.dedup();
    let mut symbols = Symbols::new();
    symbols.hide(runtime);
    let at = first_difference(&logs).or(noticed).map_or(String::new(), |place| {
        View::new(&mut symbols, zygote.pid()).map_or(String::new(), |mut view| describe(&mut view, place))
    });
    Ok(Difference { at, notes })
}

/// The first event at which any log differs from the first log.
fn first_difference(logs: &[Vec<Event>]) -> Option<Operation> {
    let (first, others) = logs.split_first()?;
    let same = |a: &Event, b: &Event| Operation::from(a) == Operation::from(b) && a.ok == b.ok;
    let differs = |other: &Vec<Event>| {
        let common = first.iter().zip(other).take_while(|(a, b)| same(a, b)).count();
        let event = other.get(common).or(first.get(common))?;
        Some((common, Operation::from(event)))
    };
    others.iter().filter_map(differs).min_by_key(|(at, _)| *at).map(|(_, place)| place)
}

/// An operation with its object, place and thread.
pub(crate) fn describe(view: &mut View<'_>, place: Operation) -> String {
    let object = match place.op {
        Op::Create | Op::Join => None,
        _ if place.object == 0 => None,
        _ => view.object_name(place.object),
    };
    let op = object.map_or(place.op.name().to_owned(), |object| format!("{}({object})", place.op.name()));
    let starts = place.op == Op::Start;
    match Stack(view.frame_at(place.pc, !starts)).place() {
        Some(frame) => format!("{op} ({}, {})", frame.place(), place.thread),
        None => format!("{op} ({})", place.thread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::ThreadId;

    fn log(ops: &[(u16, Op)]) -> Vec<Event> {
        let event = |&(thread, op): &(u16, Op)| Event {
            step: 0,
            thread: ThreadId(thread),
            op,
            ok: true,
            object: 0,
            pc: 0,
            access: None,
            ended: 0,
        };
        ops.iter().map(event).collect()
    }

    #[test]
    fn the_first_difference_of_any_two() {
        let a = log(&[(0, Op::Create), (1, Op::Lock), (1, Op::Unlock)]);
        let b = log(&[(0, Op::Create), (1, Op::Lock), (0, Op::Join)]);
        let c = log(&[(0, Op::Create), (1, Op::Yield)]);
        let at = |logs: &[Vec<Event>]| first_difference(logs).map(|p| (p.thread.0, p.op));
        assert_eq!(at(&[a.clone(), a.clone()]), None);
        assert_eq!(at(&[a.clone(), b.clone()]), Some((0, Op::Join)));
        assert_eq!(at(&[a.clone(), b, c]), Some((1, Op::Yield)));
        // A log that ends early differs where the other goes on.
        assert_eq!(at(&[a.clone(), a[..2].to_vec()]), Some((1, Op::Unlock)));
        assert_eq!(at(&[]), None);
    }
}
