//! What a tool is: parameters with a schema, a description for the agent, and a function that runs it.

use crate::render::check::progress_line;
use heisen_engine::Error;
use heisen_engine::check::Progress;
use rmcp::handler::server::common::schema_for_type;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool as Description, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::mpsc::UnboundedSender;

/// A tool. The type is that of its parameters.
pub trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    /// What it does, for the agent.
    const DESCRIPTION: &'static str;

    /// Runs the tool. Blocks until it has ended.
    fn run(self, call: &Call) -> Result<Answer, Error>;
}

/// One call of a tool, as the tool sees it.
#[derive(Debug)]
pub struct Call {
    /// Set if the call shall end.
    pub stop: Arc<AtomicBool>,
    pub progress: UnboundedSender<Reached>,
}

impl Call {
    /// Reports how far a check is.
    pub fn report(&self, progress: &Progress<'_>) {
        let (executions, limit) = (progress.executions, progress.limit);
        // Nobody listens after the call has ended.
        let _ = self.progress.send(Reached { executions, limit, line: progress_line(progress) });
    }
}

/// How far a check is.
#[derive(Debug)]
pub struct Reached {
    pub executions: u64,
    pub limit: Option<u64>,
    pub line: String,
}

/// The answer of a tool.
#[derive(Debug)]
pub struct Answer {
    /// What a person would read.
    pub report: String,
    /// The same and more as data.
    pub json: Value,
}

impl Answer {
    /// The answer as the protocol has it. Clients that do not know structured content get the JSON as text.
    pub fn into_result(self) -> CallToolResult {
        let json = self.json.to_string();
        let mut result = CallToolResult::structured(self.json);
        result.content = vec![ContentBlock::text(self.report), ContentBlock::text(json)];
        result
    }
}

/// An error that the agent sees.
pub fn failed(message: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// A call whose parameters were understood.
pub type Work = Box<dyn FnOnce(&Call) -> Result<Answer, Error> + Send>;

/// A tool that the server offers.
pub struct Offered {
    pub description: Description,
    /// Reads the parameters.
    pub read: fn(JsonObject) -> Result<Work, serde_json::Error>,
}

/// Offers a tool.
pub fn offer<T: Tool>() -> Offered {
    // A tool runs the program under test, and writes only files of Heisen.
    let annotations = ToolAnnotations::new().read_only(false).destructive(false).open_world(false);
    let description = Description::new(T::NAME, T::DESCRIPTION, schema_for_type::<T>());
    Offered {
        description: description.with_annotations(annotations),
        read: |arguments| {
            let tool: T = serde_json::from_value(Value::Object(arguments))?;
            Ok(Box::new(move |call| tool.run(call)))
        },
    }
}
