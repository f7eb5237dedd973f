//! The tool `what_if`: runs a schedule in another order and says how it ends.

use super::events::Recorded;
use super::replay::{prepared, warned};
use super::tool::{Answer, Call, Tool};
use crate::commands::explain::replay_command;
use crate::commands::prepared::Prepared;
use crate::render::finding::Screen;
use crate::render::paint::Paint;
use crate::render::{events, json};
use heisen_engine::Error;
use heisen_engine::explain::close_up::Closeup;
use heisen_engine::explain::difference::RecordedEvent;
use heisen_engine::explain::what_if::{Choice, Reordered, reordered, with_choices};
use heisen_engine::platform::atomic_file;
use heisen_engine::process::slots::Job;
use heisen_engine::program;
use heisen_trace::{FindingKind, Plan};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    /// The path of a schedule file that check or what_if has written.
    schedule: PathBuf,
    /// The event that shall come first. In the schedule it comes after the second one.
    first: Option<EventRef>,
    /// The event that shall come second. It belongs to another thread.
    second: Option<EventRef>,
    /// Instead of first and second: the threads that shall run at some steps, in order. The execution follows the
    /// schedule up to the first of them, and continues without preemptions after the last.
    #[serde(default)]
    choices: Vec<ChoiceRef>,
    /// Give up if the program computes or blocks for this many seconds without a scheduling point. The default is 10.
    hang_seconds: Option<u32>,
}

/// An event of the schedule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventRef {
    /// Its step, as list_events numbers them.
    step: u32,
    /// Its thread, such as "T1". The step alone identifies the event; the thread guards against a mistake.
    thread: Option<String>,
}

/// A thread that shall run at a step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChoiceRef {
    /// The step.
    step: u32,
    /// The thread, such as "T2".
    thread: String,
}

impl Tool for WhatIf {
    const NAME: &'static str = "what_if";
    const DESCRIPTION: &'static str = "Runs a schedule in another order and says whether the program then passes or fails, \
        and how. Give either first and second (let the event first come before the event second), or choices (at step N run \
        thread T). The result comes from a real execution; if the order is not possible, possible is false. The answer names \
        a new schedule file of that execution for list_events, variables_at, explain and replay.";

    fn run(self, call: &Call) -> Result<Answer, Error> {
        let prepared = prepared(&self.schedule, self.hang_seconds, call)?;
        let recorded = Recorded::of(&prepared, Job::Schedule(&prepared.schedule))?;
        match (&self.first, &self.second, self.choices.is_empty()) {
            (Some(first), Some(second), true) => self.reorder(&prepared, &recorded, first, second),
            (None, None, false) => self.choose(&prepared, &recorded),
            _ => Err(Error::Input(
                "nothing to try; give first and second, or choices, such as [{\"step\": 6, \"thread\": \"T2\"}]".into(),
            )),
        }
    }
}

impl WhatIf {
    fn reorder(
        &self,
        prepared: &Prepared,
        recorded: &Recorded,
        first: &EventRef,
        second: &EventRef,
    ) -> Result<Answer, Error> {
        let [one, other] = [first, second].map(|event| identified(recorded, event));
        let (one, other) = (one?, other?);
        let moment = |index: usize| &recorded.events[index].event.moment;
        if moment(one).thread == moment(other).thread {
            return Err(Error::Input(format!(
                "both events are of {}; only the order of events of two threads can be changed",
                moment(one).thread
            )));
        }
        if first.step < second.step {
            return Err(Error::Input(format!(
                "step {} comes before step {} already; swap first and second",
                first.step, second.step
            )));
        }
        let Prepared { runtime, program, config, schedule, .. } = prepared;
        let (found, tried) = reordered((runtime, program, config), schedule, [first.step, second.step])?;
        let Some(Reordered { plan, steps }) = found else {
            let held = &recorded.events[other];
            let words = events::not_possible(&recorded.events[one], held, tried);
            let json =
                json!({ "possible": false, "outcome": words, "tried": tried, "warning": prepared.warning() });
            return Ok(Answer { report: warned(prepared, &words), json });
        };
        let (mut json, recorded, text) = self.outcome(prepared, &plan)?;
        let now = steps.map(|step| recorded.iter().find(|event| event.event.moment.step == step));
        let lines: Vec<String> = now.iter().flatten().map(|event| events::line(event)).collect();
        json["tried"] = tried.into();
        json["first"] = json!(now[0].map(events::json));
        json["second"] = json!(now[1].map(events::json));
        json["possible"] = true.into();
        let report = format!("{text}\nthe two events in this execution:\n{}", lines.concat());
        Ok(Answer { report: warned(prepared, &report), json })
    }

    fn choose(&self, prepared: &Prepared, recorded: &Recorded) -> Result<Answer, Error> {
        let mut choices = Vec::new();
        for ChoiceRef { step, thread } in &self.choices {
            if choices.last().is_some_and(|last: &Choice| last.step >= *step) {
                return Err(Error::Input(format!(
                    "the steps of choices must increase, but step {step} comes after a later one"
                )));
            }
            choices.push(Choice { step: *step, thread: recorded.thread(thread)? });
        }
        // Later steps may exist only in the new execution.
        if let Some(first) = choices.first() {
            recorded.check_step(first.step)?;
        }
        let Prepared { runtime, program, config, schedule, .. } = prepared;
        let (plan, took) = with_choices((runtime, program, config), schedule, &choices)?;
        let (mut json, _, text) = self.outcome(prepared, &plan)?;
        let made: Vec<Value> = choices
            .iter()
            .zip(&took)
            .map(|(choice, took)| {
                json!({
                    "step": choice.step,
                    "thread": choice.thread.to_string(),
                    "ran": took.map(|thread| thread.to_string()),
                    "followed": *took == Some(choice.thread),
                })
            })
            .collect();
        let missed: String = choices
            .iter()
            .zip(&took)
            .filter(|(choice, took)| **took != Some(choice.thread))
            .map(|(choice, took)| events::not_chosen(choice.step, choice.thread, *took))
            .collect();
        json["possible"] = missed.is_empty().into();
        json["choices"] = made.into();
        Ok(Answer { report: warned(prepared, &format!("{missed}{text}")), json })
    }

    /// Runs the plan, writes its schedule file, and says how the execution ended. Returns also its events.
    fn outcome(
        &self,
        prepared: &Prepared,
        plan: &Plan,
    ) -> Result<(Value, Vec<RecordedEvent>, String), Error> {
        let Recorded { closeup, events } = Recorded::of(prepared, Job::Plan(plan))?;
        let recorder = prepared.recorder();
        let path = write_schedule(prepared, &closeup, &self.schedule)?;
        let (steps, did_not_end) = (closeup.run.execution.steps, closeup.too_long);
        let races =
            prepared.schedule.outcome.as_ref().is_some_and(|(kind, _)| *kind == FindingKind::DataRace);
        let words = events::ended(closeup.verdict.as_ref(), did_not_end, races);
        let finding = if did_not_end { None } else { closeup.into_finding(&recorder, 0) };
        let replay = replay_command(&path);
        let screen = finding.as_ref().map_or(String::new(), |finding| {
            Screen { paint: Paint::plain(), replay: &replay, time: None }.render(finding)
        });
        let json = json!({
            "fails": finding.is_some(),
            "did_not_end": did_not_end,
            "outcome": words,
            "recorded": prepared.recorded(),
            "finding": finding.as_ref().map(|finding| json::finding(finding, &path)),
            "steps": steps,
            "schedule": path.display().to_string(),
            "warning": prepared.warning(),
        });
        let report = format!("{words}\n{screen}schedule file of this execution: {}\n", path.display());
        Ok((json, events, report))
    }
}

/// The index of an event: the first one of its step.
fn identified(recorded: &Recorded, event: &EventRef) -> Result<usize, Error> {
    recorded.check_step(event.step)?;
    let found = recorded.events.iter().position(|other| other.event.moment.step == event.step);
    let index = found.ok_or_else(|| {
        Error::Input(format!("no event has the step {}; list_events shows the steps", event.step))
    })?;
    let thread = recorded.events[index].event.moment.thread;
    match &event.thread {
        Some(name) if recorded.thread(name)? != thread => {
            Err(Error::Input(format!("step {} is of {thread}, not of {name}", event.step)))
        }
        _ => Ok(index),
    }
}

/// Writes the schedule of an execution beside the one that it was made from.
fn write_schedule(prepared: &Prepared, closeup: &Closeup, original: &Path) -> Result<PathBuf, Error> {
    let mut schedule = closeup.schedule(&prepared.recorder());
    schedule.input.clone_from(&prepared.schedule.input);
    let text = schedule.to_text();
    let stem = original.file_stem().unwrap_or_default().to_string_lossy();
    // A what-if of a what-if does not get a longer name each time.
    let stem = stem.split("-what-if-").next().unwrap_or_default();
    let name = format!("{stem}-what-if-{}.schedule", &program::hash(text.as_bytes())[..8]);
    let path = std::path::absolute(original.with_file_name(name))
        .map_err(|e| Error::Input(format!("{}: {e}", original.display())))?;
    atomic_file::write(&path, text.as_bytes())?;
    Ok(path)
}
