//! A client for servers: it opens some connections at once, sends text on each, reads every reply to its end,
//! and ends the server. During a check it does so once for each execution.

use heisen_testkit::{all_processes, soon};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// How long a connection may be silent. A server that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait before the next attempt to connect.
const RETRY: Duration = Duration::from_millis(5);

/// What the client does.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The text for each connection. The server must close the connection: either the text makes it do so,
    /// ...
    pub lanes: &'static [&'static str],
    /// ... or, if this is set, the server does when the client closes its side.
    pub half_close: bool,
    /// How the server is ended.
    pub end: End,
}

/// How a server is ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// By this text, on a connection of its own.
    Words(&'static str),
    /// By a signal of this name.
    Signal(&'static str),
}

/// How to find a server.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its executable.
    pub program: &'a Path,
    /// The directory in which only the server and Heisen run.
    pub directory: &'a Path,
    /// The port that it listens on.
    pub port: u16,
}

/// A port that nobody uses now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Talks to the server until `child` ends; `child` is the server or starts it. Returns the replies of each
/// conversation.
pub fn talk_until_end(child: &mut Child, place: Place<'_>, script: &Script) -> Vec<Vec<u8>> {
    let mut said = Vec::new();
    while matches!(child.try_wait(), Ok(None)) {
        match converse(place, script) {
            Some(words) => said.push(words),
            None => std::thread::sleep(RETRY),
        }
    }
    said
}

/// One conversation. Returns `None` if the server is not there yet, or if it closed the connections without a
/// reply because it was about to end.
fn converse(place: Place<'_>, script: &Script) -> Option<Vec<u8>> {
    let lanes: Option<Vec<TcpStream>> = script.lanes.iter().map(|_| connect(place.port)).collect();
    let mut lanes = lanes?;
    for (lane, words) in lanes.iter_mut().zip(script.lanes) {
        lane.write_all(words.as_bytes()).ok()?;
        if script.half_close {
            lane.shutdown(Shutdown::Write).ok()?;
        }
    }
    let mut all = Vec::new();
    for lane in &mut lanes {
        let before = all.len();
        let ended = lane.read_to_end(&mut all);
        if all.is_empty() {
            return None;
        }
        if let Err(error) = ended {
            all.extend_from_slice(format!("[{error}]").as_bytes());
        }
        all.extend_from_slice(format!("[{} bytes]\n", all.len() - before).as_bytes());
    }
    match script.end {
        End::Words(words) => {
            let mut lane = connect(place.port)?;
            let _ = lane.write_all(words.as_bytes());
            let _ = lane.read_to_end(&mut all);
        }
        End::Signal(name) => signal(place, name),
    }
    Some(all)
}

fn connect(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

/// Sends a signal to the server and waits for its end. The process id that the server sees may differ from
/// the kernel's.
fn signal(place: Place<'_>, name: &str) {
    for pid in all_processes().filter(|&pid| serves(pid, place)) {
        let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "no signal to {pid}");
        soon(|| !serves(pid, place));
    }
}

/// Whether the process runs the program in its directory and has sockets. The zygote has none.
fn serves(pid: i32, place: Place<'_>) -> bool {
    let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let program = place.program.canonicalize().unwrap_or_default();
    let descriptors = || std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    link("exe") == program
        && link("cwd") == place.directory
        && descriptors().any(|entry| {
            std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
        })
}
