//! Compares two recorded executions of one program: their operations, with the data flows, the locks and the preemptions
//! that differ.

use crate::explain::close_up::{Closeup, TraceLine, takes};
use crate::explain::compare::{Flow, Observed, comparison};
use crate::explain::necessary::operations;
use crate::process::slots::Event;
use heisen_trace::explanation::{Compared, Comparison, Moment};
use heisen_trace::finding::{Switch, SwitchKind};
use heisen_trace::schedule::ThreadLine;
use heisen_trace::vector_clock::{self, clocks};
use heisen_trace::{Op, Stack, ThreadId};
use std::collections::{HashMap, VecDeque};

/// The largest number of events of an execution that is compared.
pub const MAX_EVENTS: usize = 100_000;

/// Compares two executions that were recorded with every access of memory.
pub fn difference(one: &Closeup, other: &Closeup) -> Comparison {
    comparison(&flow(one), &flow(other))
}

/// One event of a recorded execution.
#[derive(Clone, Debug)]
pub struct RecordedEvent {
    /// The event, compared with no other execution.
    pub event: Compared,
    /// The address of its object.
    pub address: u64,
    /// Whether the operation succeeded.
    pub done: bool,
}

/// The events of a recorded execution, with the locks that their threads hold.
pub fn events(closeup: &Closeup) -> Vec<RecordedEvent> {
    let flow = flow(closeup);
    let events = flow.compared(&flow, 0).into_iter().zip(operations(&closeup.trace, |line| &line.event));
    events
        .map(|(event, line)| RecordedEvent { event, address: line.event.object, done: line.event.ok })
        .collect()
}

/// The operations of a recorded execution.
pub(crate) fn flow(closeup: &Closeup) -> Flow {
    let mut switched = Switched::of(&closeup.switches);
    let lines: Vec<&TraceLine> = operations(&closeup.trace, |line| &line.event).collect();
    let clocks = clocks(&order(&lines, &closeup.lines));
    let observed = lines.into_iter().zip(clocks).map(|(line, clock)| {
        let event = &line.event;
        Observed {
            moment: Moment {
                step: event.step,
                thread: event.thread,
                op: event.op,
                object: line.object.clone(),
                value: event.access.map(|access| access.value),
                text: line.value.clone(),
                size: event.access.map_or(0, |access| access.size),
                // An operation of the runtime itself, such as the exit, has no code address.
                place: if event.pc == 0 { String::new() } else { line.place.clone() },
            },
            address: event.object,
            pc: event.pc,
            own: line.own,
            lock: if event.ok { takes(event) } else { None },
            preempts: switched.preempts(event.thread, event.step),
            function: line.function.clone(),
            stack: switched.stack(event.thread, event.step, event.op),
            clock,
        }
    });
    let mut observed: Vec<Observed> = observed.collect();
    // What a wrong access reads or writes is no value of the program.
    if closeup.block.is_some()
        && let Some(last) = observed.last_mut()
    {
        last.moment.text.clear();
    }
    Flow::new(observed)
}

/// The events for their vector clocks. The log of a creation has the start function; which thread it created follows
/// from the creation paths of the threads.
fn order(lines: &[&TraceLine], threads: &[ThreadLine]) -> Vec<vector_clock::Event> {
    let mut children: HashMap<ThreadId, VecDeque<ThreadId>> = HashMap::new();
    for line in threads {
        let parent = line.path.rsplit_once('.').map(|(parent, _)| parent);
        if let Some(parent) = threads.iter().find(|thread| Some(thread.path.as_str()) == parent) {
            children.entry(parent.thread).or_default().push_back(line.thread);
        }
    }
    let event = |line: &&TraceLine| {
        let Event { thread, op, object, ok, .. } = line.event;
        let other = match op {
            Op::Create if ok => children.get_mut(&thread).and_then(VecDeque::pop_front),
            // A join names its thread.
            Op::Join => line.object.parse().ok(),
            _ => None,
        };
        vector_clock::Event { thread, op, object, ok, other }
    };
    lines.iter().map(event).collect()
}

/// The switches of an execution that no event has reached yet.
struct Switched<'a> {
    /// By the thread that runs next: the steps of preemptions, the last first.
    preemptions: HashMap<ThreadId, Vec<u32>>,
    /// By the thread that a switch stopped: the switches, the last first.
    stopped: HashMap<ThreadId, Vec<&'a Switch>>,
}

impl<'a> Switched<'a> {
    fn of(switches: &'a [Switch]) -> Switched<'a> {
        let (mut preemptions, mut stopped): (HashMap<_, Vec<u32>>, HashMap<_, Vec<&Switch>>) =
            Default::default();
        for switch in switches.iter().rev() {
            if switch.kind == SwitchKind::Preempt {
                preemptions.entry(switch.to).or_default().push(switch.step);
            }
            stopped.entry(switch.from).or_default().push(switch);
        }
        Switched { preemptions, stopped }
    }

    /// Whether this is the first event of a thread after a preemption in its favour.
    fn preempts(&mut self, thread: ThreadId, step: u32) -> bool {
        let Some(steps) = self.preemptions.get_mut(&thread) else { return false };
        let before = steps.len();
        while steps.last().is_some_and(|&at| at <= step) {
            steps.pop();
        }
        steps.len() < before
    }

    /// The stack of a thread that a switch stopped just before this operation.
    fn stack(&mut self, thread: ThreadId, step: u32, op: Op) -> Vec<String> {
        let Some(switches) = self.stopped.get_mut(&thread) else { return Vec::new() };
        let mut stack = Vec::new();
        while let Some(switch) = switches.pop_if(|switch| switch.step <= step) {
            if switch.op == op {
                stack = lines(&switch.stack);
            }
        }
        stack
    }
}

/// A stack as lines such as `deposit at account.c:28`.
fn lines(stack: &Stack) -> Vec<String> {
    let line = |frame: &heisen_trace::Frame| match frame.place() {
        place if place == frame.function => place,
        place => format!("{} at {place}", frame.function),
    };
    stack.0.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preemption_belongs_to_the_next_event_of_the_thread_that_runs() {
        let switch = |step, from, to, kind| Switch {
            step,
            from: ThreadId(from),
            op: Op::Lock,
            object: String::new(),
            to: ThreadId(to),
            kind,
            options: 2,
            stack: Stack::default(),
        };
        let switches = [switch(4, 1, 2, SwitchKind::Preempt), switch(6, 2, 1, SwitchKind::Free)];
        let mut switched = Switched::of(&switches);
        let events = [(1, 3), (2, 5), (2, 6), (1, 7)];
        let preempts: Vec<bool> =
            events.iter().map(|&(t, step)| switched.preempts(ThreadId(t), step)).collect();
        assert_eq!(preempts, [false, true, false, false]);
    }
}
