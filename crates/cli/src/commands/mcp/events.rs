//! The tools `list_events` and `variables_at`: what happens in the execution of a schedule.

use super::replay::{prepared, warned};
use super::tool::{Answer, Call, Tool};
use crate::commands::prepared::Prepared;
use crate::commands::replay::compared;
use crate::render::events::{self, Part};
use heisen_engine::Error;
use heisen_engine::explain::close_up::{Closeup, Recorder};
use heisen_engine::explain::difference::{self, RecordedEvent};
use heisen_engine::process::slots::Job;
use heisen_trace::schedule::ThreadLine;
use heisen_trace::{Note, Op, ThreadId};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The default and the largest number of events in one answer.
const LIMIT: usize = 100;
const MOST: usize = 1000;

/// An execution with all its events.
pub struct Recorded {
    pub closeup: Closeup,
    pub events: Vec<RecordedEvent>,
}

impl Recorded {
    /// Runs a job and records every event. Refuses an execution that does not follow its schedule.
    pub fn of(prepared: &Prepared, job: Job<'_>) -> Result<Recorded, Error> {
        let recorder = Recorder { trace: true, accesses: true, ..prepared.recorder() };
        let closeup = recorder.record(job)?;
        if let Some(divergence) = prepared.divergence(&closeup) {
            return Err(Error::Input(warned(
                prepared,
                &format!("the schedule no longer fits: {divergence}"),
            )));
        }
        prepared.check_progress(&closeup)?;
        let events = difference::events(&closeup);
        Ok(Recorded { closeup, events })
    }

    /// The last step.
    pub fn last(&self) -> u32 {
        let logged = self.events.last().map_or(0, |event| event.event.moment.step);
        self.closeup.run.execution.steps.max(logged)
    }

    /// Refuses a step after the last.
    pub fn check_step(&self, step: u32) -> Result<(), Error> {
        let last = self.last();
        if step <= last {
            return Ok(());
        }
        Err(Error::Input(format!(
            "there is no step {step}: the execution has the steps 0 to {last}; list_events shows them"
        )))
    }

    /// The thread of this name, such as T1.
    pub fn thread(&self, name: &str) -> Result<ThreadId, Error> {
        let lines = &self.closeup.lines;
        let named = lines.iter().find(|line| {
            let id = line.thread.to_string();
            id == name || id.strip_prefix('T') == Some(name)
        });
        named.map(|line| line.thread).ok_or_else(|| {
            Error::Input(format!("there is no thread {name}; the threads are: {}", threads(lines)))
        })
    }

    fn is_complete(&self) -> bool {
        !self.closeup.run.execution.notes.contains(&Note::LogFull)
    }
}

/// "T0 main, T1 depositor".
fn threads(lines: &[ThreadLine]) -> String {
    let words: Vec<String> = lines.iter().map(|line| format!("{} {}", line.thread, line.start)).collect();
    words.join(", ")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListEvents {
    /// The path of a schedule file that check or what_if has written.
    schedule: PathBuf,
    /// Only events of this thread, such as "T1".
    thread: Option<String>,
    /// Only events on this object: the name of a variable or lock as in an answer, such as "balance".
    object: Option<String>,
    /// Only operations of this kind, as in an answer, such as "lock" or "mem_write"; "access" is every access of memory.
    op: Option<String>,
    /// Only events at this step or later.
    from_step: Option<u32>,
    /// Only events at this step or earlier.
    to_step: Option<u32>,
    /// Skip this many of the matching events. An answer names the next offset if it has not all of them.
    #[serde(default)]
    offset: usize,
    /// The largest number of events in the answer: 100 if you do not say otherwise, at most 1000.
    limit: Option<usize>,
    /// Give up if the program computes or blocks for this many seconds without a scheduling point. The default is 10.
    hang_seconds: Option<u32>,
}

impl ListEvents {
    /// Refuses an operation that this execution does not have.
    fn check_op(&self, recorded: &Recorded) -> Result<(), Error> {
        let Some(op) = self.op.as_deref().filter(|op| *op != "access" && Op::from_name(op).is_none()) else {
            return Ok(());
        };
        let present: BTreeSet<&str> =
            recorded.events.iter().map(|event| event.event.moment.op.name()).collect();
        let present = present.into_iter().collect::<Vec<_>>().join(", ");
        Err(Error::Input(format!("there is no operation {op}; this execution has: access, {present}")))
    }

    fn matches(&self, thread: Option<ThreadId>, event: &RecordedEvent) -> bool {
        let moment = &event.event.moment;
        let op = self
            .op
            .as_deref()
            .is_none_or(|op| op == moment.op.name() || op == "access" && moment.is_access());
        op && thread.is_none_or(|thread| thread == moment.thread)
            && self.object.as_ref().is_none_or(|object| *object == moment.object)
            && self.from_step.is_none_or(|step| step <= moment.step)
            && self.to_step.is_none_or(|step| moment.step <= step)
    }
}

impl Tool for ListEvents {
    const NAME: &'static str = "list_events";
    const DESCRIPTION: &'static str = "Runs a schedule and lists its events in order: step, thread, operation, object, \
        value read or written, place in the source, and the locks that the thread holds. Several accesses may share a step: \
        no other thread can run between them. Filter by thread, object, operation and steps; long lists come in parts.";

    fn run(self, call: &Call) -> Result<Answer, Error> {
        let prepared = prepared(&self.schedule, self.hang_seconds, call)?;
        let recorded = Recorded::of(&prepared, Job::Schedule(&prepared.schedule))?;
        let thread = self.thread.as_deref().map(|name| recorded.thread(name)).transpose()?;
        self.check_op(&recorded)?;
        if let Some(step) = self.from_step {
            recorded.check_step(step)?;
        }
        let matching: Vec<&RecordedEvent> =
            recorded.events.iter().filter(|event| self.matches(thread, event)).collect();
        let limit = self.limit.unwrap_or(LIMIT).clamp(1, MOST);
        let shown: Vec<&RecordedEvent> = matching.iter().skip(self.offset).take(limit).copied().collect();
        let part = Part {
            all: recorded.events.len(),
            matching: matching.len(),
            offset: self.offset,
            shown: shown.len(),
        };
        let ended = compared(&prepared, &recorded.closeup).0;
        let json = json!({
            "outcome": ended,
            "threads": events::threads(&recorded.closeup.lines),
            "last_step": recorded.last(),
            "events_in_all": part.all,
            "matching": part.matching,
            "offset": part.offset,
            "next_offset": part.next(),
            "complete": recorded.is_complete(),
            "events": shown.iter().map(|event| events::json(event)).collect::<Vec<_>>(),
            "warning": prepared.warning(),
        });
        let report = format!("{ended}\n{}", events::table(&shown, &part));
        Ok(Answer { report: warned(&prepared, &report), json })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariablesAt {
    /// The path of a schedule file that check or what_if has written.
    schedule: PathBuf,
    /// The step, as list_events and findings number them. The answer shows the state after this step.
    step: u32,
    /// Give up if the program computes or blocks for this many seconds without a scheduling point. The default is 10.
    hang_seconds: Option<u32>,
}

impl Tool for VariablesAt {
    const NAME: &'static str = "variables_at";
    const DESCRIPTION: &'static str = "Runs a schedule and shows the state after a step: for each variable the last value \
        that was read or written, by which thread and where; for each thread its last and its next event, the locks that it \
        holds, and its stack where the schedule switches away from it. It knows only variables that instrumented code has \
        accessed up to that step.";

    fn run(self, call: &Call) -> Result<Answer, Error> {
        let prepared = prepared(&self.schedule, self.hang_seconds, call)?;
        let recorded = Recorded::of(&prepared, Job::Schedule(&prepared.schedule))?;
        recorded.check_step(self.step)?;
        let Closeup { lines, threads, .. } = &recorded.closeup;
        let state = events::State::after(&recorded.events, self.step, lines, threads);
        let mut json = state.json();
        json["complete"] = recorded.is_complete().into();
        json["warning"] = prepared.warning().into();
        Ok(Answer { report: warned(&prepared, &state.text()), json })
    }
}
