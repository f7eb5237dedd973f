//! The tools `replay` and `explain`: run a schedule file as the commands of these names do.

use super::tool::{Answer, Call, Tool};
use crate::commands::explain::{Explained, explained, replay_command};
use crate::commands::prepared::Prepared;
use crate::commands::replay::{Settled, compared, settled};
use crate::render::finding::Screen;
use crate::render::json;
use crate::render::paint::Paint;
use heisen_engine::Error;
use heisen_engine::process::slots::Job;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default of `hang_seconds`, as of `--hang`.
const HANG: u32 = 10;

/// Reads a schedule file and finds its program.
pub fn prepared(path: &Path, hang_seconds: Option<u32>, call: &Call) -> Result<Prepared, Error> {
    let hang = Duration::from_secs(hang_seconds.unwrap_or(HANG).max(1).into());
    Prepared::read(path, hang, call.stop.clone())
}

/// The text with the warning before it, if the program has changed.
pub fn warned(prepared: &Prepared, text: &str) -> String {
    prepared.warning().map_or(String::new(), |warning| warning + "\n") + text
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The path of a schedule file that check or what_if has written.
    schedule: PathBuf,
    /// Give up if the program computes or blocks for this many seconds without a scheduling point. The default is 10.
    hang_seconds: Option<u32>,
}

impl Tool for Replay {
    const NAME: &'static str = "replay";
    const DESCRIPTION: &'static str = "Runs a schedule file once and compares the outcome with the recorded one. Returns \
        as_recorded, the finding if it fails (what, where, in which thread), or diverged with the step at which the program \
        no longer follows the schedule. Use it after a fix: rebuild the program, then replay the old schedule.";

    fn run(self, call: &Call) -> Result<Answer, Error> {
        let prepared = prepared(&self.schedule, self.hang_seconds, call)?;
        let recorder = prepared.recorder();
        let closeup = recorder.record(Job::Schedule(&prepared.schedule))?;
        let output = closeup.output.clone();
        let (words, same, diverged, finding) = match settled(&prepared, &recorder, closeup)? {
            Settled::Diverged(divergence) => (divergence.clone(), false, Some(divergence), None),
            Settled::Ended(closeup) => {
                let (words, same) = compared(&prepared, &closeup);
                let finding = if closeup.too_long { None } else { closeup.into_finding(&recorder, 0) };
                (words, same, None, finding)
            }
        };
        let screen = finding.as_ref().map_or(String::new(), |finding| {
            Screen { paint: Paint::plain(), replay: "", time: None }.render(finding)
        });
        let json = json!({
            "as_recorded": same,
            "outcome": words,
            "recorded": prepared.recorded(),
            "diverged": diverged,
            "finding": finding.as_ref().map(|finding| json::finding(finding, &self.schedule)),
            "output": output,
            "warning": prepared.warning(),
        });
        Ok(Answer { report: warned(&prepared, &format!("{words}\n{screen}")), json })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The path of a schedule file that check or what_if has written.
    schedule: PathBuf,
    /// Also return both executions, the failing and the passing one, event by event. They may be long.
    #[serde(default)]
    complete: bool,
    /// Give up if the program computes or blocks for this many seconds without a scheduling point. The default is 10.
    hang_seconds: Option<u32>,
}

impl Tool for Explain {
    const NAME: &'static str = "explain";
    const DESCRIPTION: &'static str = "Says why a schedule fails, by comparing it with the nearest execution that passes: \
        the class of the bug, the few accesses that matter with their values and places, the order with which the program \
        passed, and the lock that is missing. Data races have no explanation: replay shows their two accesses.";

    fn run(self, call: &Call) -> Result<Answer, Error> {
        let prepared = prepared(&self.schedule, self.hang_seconds, call)?;
        let failure = match explained(&prepared, &self.schedule)? {
            Explained::Fails(failure) => *failure,
            Explained::Unfit(why) => return Err(Error::Input(warned(&prepared, &why))),
            Explained::Passes(words) => {
                let json = json!({ "fails": false, "outcome": words, "warning": prepared.warning() });
                return Ok(Answer { report: warned(&prepared, &words), json });
            }
        };
        let mut json = failure.json(&prepared, &self.schedule, self.complete);
        json["fails"] = true.into();
        json["as_recorded"] = failure.elsewhere.is_none().into();
        json["warning"] = prepared.warning().into();
        if let (false, Value::Object(fields)) = (self.complete, &mut json) {
            // The lines of source around all events of both executions.
            fields.remove("sources");
            fields.remove("newer");
        }
        // The agent gets the report as text already.
        json.as_object_mut().and_then(|fields| fields.remove("report"));
        let note = failure.elsewhere.as_ref().map_or(String::new(), |words| format!("{words}\n"));
        let replay = replay_command(&self.schedule);
        let paint = Paint::plain();
        let text = match self.complete {
            true => failure.report(&replay, paint),
            false => Screen { paint, replay: &replay, time: None }.render(&failure.finding),
        };
        Ok(Answer { report: warned(&prepared, &(note + text.as_str())), json })
    }
}
