//! What came of a test.

use heisen_engine::Error;
use heisen_engine::check::session::Finished;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// A test and what came of it.
#[derive(Debug)]
pub struct Tested {
    pub package: String,
    /// The id of its executable.
    pub binary: String,
    pub name: String,
    pub time: Duration,
    pub verdict: Verdict,
}

/// What came of it.
#[derive(Debug)]
pub enum Verdict {
    /// Explored, with the schedules of what was found.
    Explored(Box<Finished>, Vec<PathBuf>),
    /// Not asked for.
    Ignored,
    /// The search was saved here.
    Interrupted(PathBuf),
    /// It could not be explored.
    Error(Error),
}

impl Tested {
    /// Whether a bug was found.
    pub fn failed(&self) -> bool {
        matches!(&self.verdict, Verdict::Explored(explored, _) if explored.outcome.findings().next().is_some())
    }

    /// Whether something limits what was shown of it.
    pub fn has_caveats(&self) -> bool {
        matches!(&self.verdict, Verdict::Explored(explored, _) if explored.outcome.has_caveats())
    }

    /// One JSON object: that of `heisen check`, if it was explored, with the names of the test.
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
