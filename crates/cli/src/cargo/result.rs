//! The result of one test.

use super::line::REPLAY;
use crate::render::place::from_here;
use crate::render::sarif;
use heisen_engine::Error;
use heisen_engine::check::session::Finished;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// A test with its result.
#[derive(Debug)]
pub struct Tested {
    pub package: String,
    /// The id of its executable.
    pub binary: String,
    pub name: String,
    pub time: Duration,
    pub verdict: Verdict,
}

/// The result of a test.
#[derive(Debug)]
pub enum Verdict {
    /// The test was explored. The paths are the schedule files of its findings.
    Explored(Box<Finished>, Vec<PathBuf>),
    /// The test is marked `#[ignore]`, and the user did not ask for such tests.
    Ignored,
    /// The check was interrupted. The search was saved to this file.
    Interrupted(PathBuf),
    /// The test could not be explored.
    Error(Error),
}

impl Tested {
    /// Whether a bug was found.
    pub fn failed(&self) -> bool {
        matches!(&self.verdict, Verdict::Explored(explored, _) if explored.outcome.findings().next().is_some())
    }

    /// Whether its verdict has caveats.
    pub fn has_caveats(&self) -> bool {
        matches!(&self.verdict, Verdict::Explored(explored, _) if explored.outcome.has_caveats())
    }

    /// The result as a run of SARIF. `None` for an ignored test.
    pub fn sarif(&self) -> Option<Value> {
        let name = &format!("{} {}", self.binary, self.name);
        match &self.verdict {
            Verdict::Explored(explored, schedules) => {
                let schedules: Vec<PathBuf> = schedules.iter().map(|path| from_here(path)).collect();
                Some(sarif::run(name, &explored.outcome, &schedules, REPLAY))
            }
            Verdict::Ignored => None,
            Verdict::Interrupted(_) => Some(sarif::failed_run(name, "interrupted")),
            Verdict::Error(error) => Some(sarif::failed_run(name, &error.to_string())),
        }
    }

    /// The result as one JSON object, with the names of the test. For an explored test, it contains the
    /// fields of `heisen check`.
    pub fn json(&self) -> Value {
        let mut value = match &self.verdict {
            Verdict::Explored(explored, schedules) => crate::render::json::result(
                &explored.program,
                &explored.options,
                &explored.outcome,
                schedules,
            ),
            Verdict::Ignored => json!({ "verdict": "ignored" }),
            Verdict::Interrupted(path) => json!({ "verdict": "interrupted", "search": path }),
            Verdict::Error(error) => json!({ "verdict": "error", "message": error.to_string() }),
        };
        value["package"] = self.package.as_str().into();
        value["binary"] = self.binary.as_str().into();
        value["test"] = self.name.as_str().into();
        value
    }
}
