//! Answers the requests of a client. The engine blocks, so a tool runs on a thread of its own, one tool at a time.

use super::tool::{Call, Offered, Reached, failed, offer};
use super::{check, events, replay, what_if};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

/// How often a running tool learns of the end of the input and of signals.
const TICK: Duration = Duration::from_millis(20);

const INSTRUCTIONS: &str = "Heisen finds, reproduces and explains concurrency bugs in native Linux programs. Call check \
    with a program or a source file first. Each finding has a schedule file. Pass its path to the other tools: explain \
    says why the schedule fails, list_events and variables_at show the execution, what_if runs it in another order, and \
    replay runs it again, also after you have changed and rebuilt the program.";

/// Whether the server shall end.
#[derive(Clone, Debug)]
pub struct Over {
    /// A signal has asked for it.
    pub signalled: Arc<AtomicBool>,
    /// The client has closed the input.
    pub closed: Arc<AtomicBool>,
}

impl Over {
    fn is_over(&self) -> bool {
        self.signalled.load(Relaxed) || self.closed.load(Relaxed)
    }

    /// Waits for a signal.
    pub async fn signal(&self) {
        while !self.signalled.load(Relaxed) {
            tokio::time::sleep(TICK).await;
        }
    }
}

/// The server of one client.
pub struct Server {
    tools: Vec<Offered>,
    over: Over,
    /// Held while a tool runs.
    turn: Arc<Mutex<()>>,
}

impl Server {
    pub fn new(over: Over) -> Server {
        let tools = vec![
            offer::<check::Check>(),
            offer::<replay::Replay>(),
            offer::<replay::Explain>(),
            offer::<events::ListEvents>(),
            offer::<events::VariablesAt>(),
            offer::<what_if::WhatIf>(),
        ];
        Server { tools, over, turn: Arc::default() }
    }

    /// The lock that is held while a tool runs.
    pub fn turn(&self) -> Arc<Mutex<()>> {
        self.turn.clone()
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("heisen", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.iter().map(|tool| tool.description.clone()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.description.name == request.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.description.name).collect();
            let message = format!("there is no tool {:?}; the tools are: {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let work = match (tool.read)(request.arguments.unwrap_or_default()) {
            Ok(work) => work,
            Err(error) => {
                let message =
                    format!("{error}; the schema of {} names all parameters", tool.description.name);
                return Ok(failed(message).into());
            }
        };
        let turn = self.turn.clone().lock_owned().await;
        let stop = Arc::new(AtomicBool::new(false));
        let (progress, mut reached) = mpsc::unbounded_channel();
        let call = Call { stop: stop.clone(), progress };
        let mut running = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&call)
        });
        let mut shown = 0;
        let done = loop {
            tokio::select! {
                done = &mut running => break done,
                Some(at) = reached.recv() => show(&context, &at, &mut shown).await,
                () = tokio::time::sleep(TICK) => {
                    if context.ct.is_cancelled() || self.over.is_over() {
                        stop.store(true, Relaxed);
                    }
                }
            }
        };
        Ok(match done {
            Ok(Ok(answer)) => answer.into_result(),
            Ok(Err(error)) => failed(error.to_string()),
            Err(error) => return Err(ErrorData::internal_error(error.to_string(), None)),
        }
        .into())
    }
}

/// Sends progress to a client that has asked for it. Its number must grow each time.
async fn show(context: &RequestContext<RoleServer>, at: &Reached, shown: &mut u64) {
    let Some(token) = context.meta.get_progress_token().filter(|_| at.executions > *shown) else { return };
    *shown = at.executions;
    let mut progress =
        ProgressNotificationParam::new(token, at.executions as f64).with_message(at.line.clone());
    progress.total = at.limit.map(|limit| limit as f64);
    // A client that has gone needs no progress.
    let _ = context.peer.notify_progress(progress).await;
}
