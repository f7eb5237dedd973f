//! Renders the events of one execution, and its state after a step, for agents.

use crate::render::explanation::deed;
use crate::render::finding::operation;
use crate::render::paint::count;
use heisen_engine::explain::difference::RecordedEvent;
use heisen_engine::explain::judge::Verdict;
use heisen_trace::ThreadId;
use heisen_trace::finding::ThreadEnd;
use heisen_trace::schedule::ThreadLine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One event as JSON, with the names of `heisen explain --json`.
pub fn json(recorded: &RecordedEvent) -> Value {
    let event = &recorded.event;
    let moment = &event.moment;
    json!({
        "step": moment.step,
        "thread": moment.thread.to_string(),
        "op": moment.op.name(),
        "object": moment.object,
        "value": moment.shown_value(),
        "size": (moment.size > 0).then_some(moment.size),
        "done": recorded.done,
        "place": moment.place,
        "function": event.function,
        "locks": event.locks,
        "preempts": event.preempts,
    })
}

/// One event as a line: step, thread, what it does, where, and the locks that it holds.
pub fn line(recorded: &RecordedEvent) -> String {
    let event = &recorded.event;
    let moment = &event.moment;
    let failed = if recorded.done { "" } else { " (not done)" };
    let locks = match event.locks.as_slice() {
        [] => String::new(),
        locks => format!("  holds {}", locks.join(", ")),
    };
    let (step, thread) = (moment.step, moment.thread.to_string());
    let text = format!("{step:>7}  {thread:<4} {}{failed}  {}{locks}", deed(moment), moment.place);
    text.trim_end().to_owned() + "\n"
}

/// Which part of the events an answer has.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub all: usize,
    pub matching: usize,
    pub offset: usize,
    pub shown: usize,
}

impl Part {
    /// The offset of the next part, if there is one.
    pub fn next(&self) -> Option<usize> {
        let next = self.offset + self.shown;
        (next < self.matching).then_some(next)
    }
}

/// The events as lines, with a head that says which part of all they are.
pub fn table(events: &[&RecordedEvent], part: &Part) -> String {
    let mut out = String::new();
    let matching = if part.matching == part.all {
        count(part.all as u64, "event")
    } else {
        format!("{} of {} match", part.matching, count(part.all as u64, "event"))
    };
    let _ = match part.next() {
        Some(next) => writeln!(out, "{matching}; {} shown, go on with offset {next}", part.shown),
        None => writeln!(out, "{matching}"),
    };
    out.extend(events.iter().map(|event| line(event)));
    out
}

/// The threads of an execution with their start functions.
pub fn threads(lines: &[ThreadLine]) -> Vec<Value> {
    lines.iter().map(|line| json!({ "thread": line.thread.to_string(), "start": line.start })).collect()
}

/// A thread after a step.
#[derive(Clone, Copy, Debug)]
struct ThreadState<'a> {
    line: &'a ThreadLine,
    last: Option<&'a RecordedEvent>,
    next: Option<&'a RecordedEvent>,
    /// What it does at the end of the execution, if it has no next event and is still alive.
    end: Option<&'a ThreadEnd>,
}

impl ThreadState<'_> {
    /// The locks that it holds, if that is known.
    fn locks(&self) -> Option<Vec<&str>> {
        let of_next = self.next.map(|next| next.event.locks.iter().map(String::as_str).collect());
        of_next.or_else(|| Some(self.end?.holds.iter().map(|held| held.object.as_str()).collect()))
    }

    /// The functions and places of its stack, innermost first. Empty if no stack was taken.
    fn stack(&self) -> Vec<String> {
        let frames = self.end.map_or(&[][..], |end| &end.stack.0);
        let of_end = frames.iter().map(|frame| format!("{} at {}", frame.function, frame.place()));
        self.next.map_or(of_end.collect(), |next| next.event.stack.clone())
    }

    /// What it waits for at the end of the execution.
    fn waits(&self) -> Option<String> {
        let end = self.end.filter(|end| end.blocked)?;
        let holder = end.holder.map_or(String::new(), |holder| format!(", held by {holder}"));
        Some(format!("{}{holder}", operation(end.op, &end.object)))
    }
}

/// What is known of an execution after a step.
#[derive(Debug)]
pub struct State<'a> {
    step: u32,
    /// The last access of each variable, by address.
    variables: Vec<&'a RecordedEvent>,
    threads: Vec<ThreadState<'a>>,
    /// Whether any access of memory was recorded.
    instrumented: bool,
}

impl<'a> State<'a> {
    /// The state after all events up to this step.
    pub fn after(
        events: &'a [RecordedEvent],
        step: u32,
        lines: &'a [ThreadLine],
        ends: &'a [ThreadEnd],
    ) -> State<'a> {
        let past = events.partition_point(|event| event.event.moment.step <= step);
        let (past, future) = events.split_at(past);
        let mut last = BTreeMap::new();
        for event in past.iter().filter(|event| event.event.moment.shown_value().is_some()) {
            last.insert(event.address, event);
        }
        let mut variables: Vec<&RecordedEvent> = last.into_values().collect();
        variables.sort_by(|a, b| a.event.moment.object.cmp(&b.event.moment.object));
        let of = |thread: ThreadId| move |event: &&RecordedEvent| event.event.moment.thread == thread;
        let threads = lines.iter().map(|line| {
            let next = future.iter().find(of(line.thread));
            let end = ends.iter().find(|end| next.is_none() && end.thread == line.thread);
            ThreadState { line, last: past.iter().rev().find(of(line.thread)), next, end }
        });
        let threads = threads.filter(|thread| thread.last.is_some() || thread.next.is_some());
        let instrumented = events.iter().any(|event| event.event.moment.is_access());
        State { step, variables, threads: threads.collect(), instrumented }
    }

    /// What this answer cannot know.
    fn unknown(&self) -> &'static str {
        if self.instrumented {
            "only variables that instrumented code has accessed up to this step are listed; the values of others, and of \
             variables in registers, are not known"
        } else {
            "no variable is known, because no instrumented code was recorded; check the source file itself, or build the \
             program with heisen cc, heisen c++ or cargo heisen"
        }
    }

    pub fn json(&self) -> Value {
        let variable = |recorded: &&RecordedEvent| {
            let moment = &recorded.event.moment;
            json!({
                "name": moment.object,
                "value": moment.shown_value(),
                "size": moment.size,
                "by": if moment.writes() { "write" } else { "read" },
                "thread": moment.thread.to_string(),
                "step": moment.step,
                "place": moment.place,
            })
        };
        let thread = |thread: &ThreadState<'_>| {
            json!({
                "thread": thread.line.thread.to_string(),
                "start": thread.line.start,
                "last": thread.last.map(json),
                "next": thread.next.map(json),
                "waits": thread.waits(),
                "locks": thread.locks(),
                "stack": thread.stack(),
            })
        };
        json!({
            "step": self.step,
            "variables": self.variables.iter().map(variable).collect::<Vec<_>>(),
            "threads": self.threads.iter().map(thread).collect::<Vec<_>>(),
            "unknown": self.unknown(),
        })
    }

    pub fn text(&self) -> String {
        let mut out = format!("after step {}:\n", self.step);
        for recorded in &self.variables {
            let moment = &recorded.event.moment;
            let value = &moment.text;
            let by = if moment.writes() { "written" } else { "read" };
            let _ = writeln!(
                out,
                "  {} = {value}  {by} by {} at step {}  {}",
                moment.object, moment.thread, moment.step, moment.place
            );
        }
        for thread in &self.threads {
            let _ = writeln!(out, "{} ({})", thread.line.thread, thread.line.start);
            for (what, event) in [("last", thread.last), ("next", thread.next)] {
                if let Some(event) = event {
                    let _ = write!(out, "  {what}: {}", line(event).trim_start());
                }
            }
            match (thread.waits(), thread.next) {
                (Some(waits), _) => drop(writeln!(out, "  it waits: {waits}")),
                (None, None) => drop(writeln!(out, "  it has no further event")),
                (None, Some(_)) => {}
            }
            if let Some(locks) = thread.locks().filter(|locks| !locks.is_empty()) {
                let _ = writeln!(out, "  it holds {}", locks.join(", "));
            }
            for frame in thread.stack() {
                let _ = writeln!(out, "    {frame}");
            }
        }
        out + self.unknown() + "\n"
    }
}

/// How an execution ended, in words. `races` says that the schedule is one of a data race.
pub fn ended(verdict: Option<&Verdict>, did_not_end: bool, races: bool) -> String {
    let words = match verdict {
        _ if did_not_end => {
            "the program did not end, and was not seen to come back to the same state: it may only take long"
                .to_owned()
        }
        Some(verdict) => format!("it fails in this order: {}: {}", verdict.kind, verdict.message),
        None => "it passes in this order".to_owned(),
    };
    if races { words + " (nobody looked for data races)" } else { words }
}

/// The message that one event cannot come before another.
pub fn not_possible(first: &RecordedEvent, second: &RecordedEvent, tried: usize) -> String {
    let (one, other) = (&first.event.moment, &second.event.moment);
    let locks = match second.event.locks.as_slice() {
        [] => String::new(),
        locks => format!("; {} holds {} there", other.thread, locks.join(", ")),
    };
    let tried = match tried {
        0 => "no execution could be tried: the schedule fixes choices that are not about threads, or the step lies before \
              the first switch"
            .to_owned(),
        tried => format!("Heisen tried {} in which {} waits", count(tried as u64, "execution"), other.thread),
    };
    format!(
        "this order is not possible: {}'s step {} ({}) was not reached before {}'s step {} ({}){locks}; {tried}",
        one.thread,
        one.step,
        deed(one),
        other.thread,
        other.step,
        deed(other),
    )
}

/// The message that a thread did not run at a step.
pub fn not_chosen(step: u32, wanted: ThreadId, ran: Option<ThreadId>) -> String {
    match ran {
        Some(ran) => format!(
            "at step {step} {wanted} could not run, because it was blocked, had ended or had not started; {ran} ran\n"
        ),
        None => format!("the execution ended before step {step}, so {wanted} could not run there\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::Op;
    use heisen_trace::explanation::{Compared, Moment, untyped};

    fn access(step: u32, thread: u16, op: Op, address: u64, value: u64) -> RecordedEvent {
        let object = if address == 1 { "x" } else { "y" };
        let (thread, place) = (ThreadId(thread), format!("p.c:{step}"));
        let (value, size, text) = (Some(value), 4, untyped(value, 4));
        let moment = Moment { step, thread, op, object: object.into(), value, size, text, place };
        RecordedEvent { event: Compared::new(moment), address, done: true }
    }

    #[test]
    fn the_last_access_up_to_a_step_gives_the_value() {
        let events = [
            access(1, 0, Op::MemWrite, 1, 5),
            access(3, 1, Op::MemRead, 1, 5),
            access(3, 1, Op::MemWrite, 2, 0xffff_ffff),
            access(7, 1, Op::MemWrite, 1, 6),
        ];
        let line = |n, start: &str| ThreadLine { thread: ThreadId(n), path: "0".into(), start: start.into() };
        let lines = [line(0, "main"), line(1, "run"), line(2, "never")];
        let json = State::after(&events, 4, &lines, &[]).json();
        let values: Vec<_> =
            json["variables"].as_array().expect("a list").iter().map(|v| &v["value"]).collect();
        assert_eq!(values, ["5", "-1"]);
        assert_eq!((&json["variables"][0]["by"], &json["variables"][0]["step"]), (&"read".into(), &3.into()));
        assert_eq!(
            (json["threads"].as_array().map(Vec::len), &json["threads"][1]["next"]["step"]),
            (Some(2), &7.into())
        );
        assert!(json["threads"][0]["next"].is_null());
        assert!(State::after(&events[..1], 0, &lines, &[]).text().contains("only variables that"));
        assert!(State::after(&[], 0, &lines, &[]).text().contains("no variable is known"));
    }

    #[test]
    fn a_part_says_how_to_go_on() {
        let event = access(1, 0, Op::MemWrite, 1, 5);
        let mut part = Part { all: 10, matching: 3, offset: 0, shown: 1 };
        assert_eq!(part.next(), Some(1));
        assert!(table(&[&event], &part).starts_with("3 of 10 events match; 1 shown, go on with offset 1\n"));
        part.offset = 2;
        assert_eq!(part.next(), None);
    }
}
