//! Captures what a program writes, up to a limit: its beginning and its end.

use crate::error::{Error, Result};
use crate::platform::sys;
use std::io::{ErrorKind, PipeReader, Read};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How many bytes of the beginning are stored, and at least how many of the end.
const KEPT: usize = 64 << 10;
/// How long to wait for the end of the output after the program has ended. A process that outlived it may
/// hold the pipe open.
const PATIENCE: Duration = Duration::from_millis(500);

/// The output of a program while it is being captured.
#[derive(Debug)]
pub struct Capture {
    captured: Arc<Mutex<Captured>>,
    reader: JoinHandle<()>,
}

impl Capture {
    /// Captures the output of the program of this command. Both streams share one pipe, so their order is the
    /// program's. A thread reads the pipe all the time; otherwise the program would block when it is full.
    pub fn of(command: &mut Command) -> Result<Capture> {
        let none = |e| Error::Internal(format!("no pipe: {e}; raise the limits that ulimit -a shows"));
        let (from, to) = std::io::pipe().map_err(none)?;
        command.stdout(to.try_clone().map_err(none)?).stderr(to);
        let captured = Arc::<Mutex<Captured>>::default();
        let shared = captured.clone();
        let reader = std::thread::Builder::new().spawn(move || read_all(from, &shared));
        Ok(Capture { captured, reader: reader.map_err(sys::no_thread)? })
    }

    /// The captured text, after the program has ended.
    pub fn text(&self) -> String {
        let ended = Instant::now();
        while !self.reader.is_finished() && ended.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.text_so_far()
    }

    /// The text captured so far.
    pub fn text_so_far(&self) -> String {
        self.captured.lock().map(|captured| captured.text()).unwrap_or_default()
    }
}

fn read_all(mut from: PipeReader, captured: &Mutex<Captured>) {
    let mut buffer = [0; 1 << 14];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(got) => {
                if let Ok(mut captured) = captured.lock() {
                    captured.push(&buffer[..got]);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[derive(Debug, Default)]
struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: u64,
}

impl Captured {
    fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(KEPT - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        self.tail.extend_from_slice(&bytes[to_head..]);
        if self.tail.len() > 2 * KEPT {
            let excess = self.tail.len() - KEPT;
            self.tail.drain(..excess);
            self.dropped += excess as u64;
        }
    }

    fn text(&self) -> String {
        let mut out = String::from_utf8_lossy(&self.head).into_owned();
        if self.dropped > 0 {
            out.push_str(&format!("\n[… {} bytes left out …]\n", self.dropped));
        }
        out.push_str(&String::from_utf8_lossy(&self.tail));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_kept_in_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three"]);
        let capture = Capture::of(&mut command).expect("a pipe");
        command.status().expect("a shell");
        drop(command);
        assert_eq!(capture.text(), "one\ntwo\nthree\n");
    }

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut captured = Captured::default();
        for n in 0..100_000 {
            captured.push(format!("{n}\n").as_bytes());
        }
        let text = captured.text();
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("99998\n99999\n"));
        assert!(text.contains("bytes left out") && text.len() < 4 * KEPT);
    }

    #[test]
    fn a_process_that_got_away_is_not_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo here; sleep 3 &"]);
        let capture = Capture::of(&mut command).expect("a pipe");
        command.status().expect("a shell");
        drop(command);
        let start = Instant::now();
        assert_eq!(capture.text(), "here\n");
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}
