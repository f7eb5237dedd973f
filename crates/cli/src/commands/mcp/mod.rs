//! `heisen mcp`: offers Heisen to agents by the Model Context Protocol, over standard input and output.
//!
//! | module | what it is for |
//! | --- | --- |
//! | `server` | the requests of a client: one tool at a time, progress, cancellation |
//! | `tool` | what a tool is, and its answer |
//! | `check`, `replay`, `events`, `what_if` | the tools |
//!
//! Only `server` and `tool` know the protocol. The tools call the same functions as the other commands.

mod check;
mod events;
mod replay;
mod server;
mod tool;
mod what_if;

use crate::cli::exit;
use crate::render::paint::say;
use heisen_engine::Error;
use heisen_engine::platform::own_stdio;
use rmcp::serve_server;
use rmcp::service::ServerInitializeError;
use server::{Over, Server};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

pub fn run(stop: Arc<AtomicBool>) -> Result<u8, Error> {
    if io::stdin().is_terminal() {
        say(
            "waiting for a client of the Model Context Protocol; heisen mcp --help shows how to configure one",
        );
    }
    let internal = |e: io::Error| Error::Internal(format!("the server cannot be started: {e}"));
    // The programs under test and the compilers must not write between the messages.
    let (input, output) = own_stdio().map_err(internal)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(internal)?;
    let served = runtime.block_on(serve(input, output, stop));
    // After a signal, a thread still waits for input.
    runtime.shutdown_background();
    served
}

async fn serve(input: File, output: File, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let over = Over { signalled: stop, closed: Arc::default() };
    let input = Input { from: tokio::fs::File::from_std(input), closed: over.closed.clone() };
    let output = tokio::fs::File::from_std(output);
    let server = Server::new(over.clone());
    let turn = server.turn();
    let serving = async {
        match serve_server(server, (input, output)).await {
            Ok(service) => {
                let _ = service.waiting().await;
                Ok(exit::CLEAN)
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(exit::CLEAN),
            Err(_) => Err(Error::Input(
                "the first message is not a request of the Model Context Protocol; heisen mcp --help shows how to configure a \
                 client"
                    .into(),
            )),
        }
    };
    let served = tokio::select! {
        served = serving => served,
        () = over.signal() => Ok(exit::CLEAN),
    };
    // The last tool ends its processes.
    drop(turn.lock().await);
    served
}

/// Standard input. Notes its end, because the SDK does not stop a running tool then.
struct Input {
    from: tokio::fs::File,
    closed: Arc<AtomicBool>,
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.from).poll_read(context, buffer));
        if read.is_err() || buffer.filled().len() == before {
            self.closed.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        Poll::Ready(read)
    }
}
