//! The schedule file: what makes one execution happen again, as text a person can read, edit and commit.
//!
//! ```text
//! heisen schedule 1
//! program "/home/me/account"
//! arg "--fast"
//! binary 5f0c…                          hash of the executable
//! steps-limit 1000000
//! expect-exit 0
//! outcome assertion "balance == 200"
//! signature 8c1d0f6b2a7e4c55
//! thread T1 0.1 deposit                 creation path and start function, for the reader
//! at 12 T1 -> T2 preempt lock 2 "lock" "account.c:23 deposit"
//! at 30 T0 -> T3 wake cond_signal 2 "ready" "account.c:40 main"
//! end 2
//! ```
//!
//! Only decisions that differ from the default are listed. `end` carries their number, so that a truncated file is
//! noticed. `#` starts a comment. Strings are quoted with `\"`, `\\`, `\n`, `\t` and `\xHH` as escapes.

use crate::finding::{FindingKind, SwitchKind};
use crate::op::Op;
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// The version of the format that this crate writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// One decision of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The step it is taken at.
    pub step: u32,
    /// The thread that is running.
    pub from: ThreadId,
    /// The thread that runs, or is woken, instead of the default one.
    pub to: ThreadId,
    /// Why this is not the default.
    pub kind: SwitchKind,
    /// What `from` is about to do.
    pub op: Op,
    /// How many choices there were; 0 if unknown.
    pub options: u16,
    /// The object of the operation, for the reader.
    pub object: String,
    /// The code location, for the reader.
    pub place: String,
}

/// A thread of the schedule, for the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLine {
    /// Its number in order of creation.
    pub thread: ThreadId,
    /// Its path of creation indices from the main thread.
    pub path: String,
    /// Its start function.
    pub start: String,
}

/// A whole schedule file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The executable.
    pub program: Vec<u8>,
    /// Its arguments.
    pub args: Vec<Vec<u8>>,
    /// The source file it was compiled from by `heisen check FILE`.
    pub source: Option<Vec<u8>>,
    /// Hash of the executable.
    pub binary: String,
    /// The step limit the finding was made under.
    pub steps_limit: u32,
    /// The exit status that counts as success.
    pub expect_exit: i32,
    /// The outcome it leads to: kind and message.
    pub outcome: Option<(FindingKind, String)>,
    /// The signature of that outcome.
    pub signature: String,
    /// The threads of the execution.
    pub threads: Vec<ThreadLine>,
    /// The decisions, in order of their steps.
    pub entries: Vec<Entry>,
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ParseError {}

impl Schedule {
    /// Preemptions among the entries.
    pub fn preemptions(&self) -> u32 {
        self.entries.iter().filter(|e| e.kind == SwitchKind::Preempt).count() as u32
    }

    /// The schedule as text.
    pub fn to_text(&self) -> String {
        let mut out = format!("heisen schedule {VERSION}\n");
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "program {}", quote(&self.program))?;
        for arg in &self.args {
            writeln!(out, "arg {}", quote(arg))?;
        }
        if let Some(source) = &self.source {
            writeln!(out, "source {}", quote(source))?;
        }
        writeln!(out, "binary {}", self.binary)?;
        writeln!(out, "steps-limit {}", self.steps_limit)?;
        writeln!(out, "expect-exit {}", self.expect_exit)?;
        if let Some((kind, message)) = &self.outcome {
            writeln!(out, "outcome {kind} {}", quote(message.as_bytes()))?;
        }
        if !self.signature.is_empty() {
            writeln!(out, "signature {}", self.signature)?;
        }
        out.push_str("\n# thread, creation path, start function\n");
        for t in &self.threads {
            writeln!(out, "thread {} {} {}", t.thread, t.path, quote(t.start.as_bytes()))?;
        }
        out.push_str(
            "\n# Decisions that differ from the default: at STEP the running thread -> the one chosen instead,\n\
             # preempt, free or wake, what the running thread is about to do, number of choices, object, place.\n",
        );
        for e in &self.entries {
            writeln!(
                out,
                "at {} {} -> {} {} {} {} {} {}",
                e.step,
                e.from,
                e.to,
                e.kind.name(),
                e.op.name(),
                e.options,
                quote(e.object.as_bytes()),
                quote(e.place.as_bytes()),
            )?;
        }
        writeln!(out, "end {}", self.entries.len())
    }

    /// Reads a schedule from text.
    pub fn parse(text: &str) -> Result<Schedule, ParseError> {
        let mut schedule = Schedule::default();
        let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
        let (_, first) = lines.next().unwrap_or((1, ""));
        match first.strip_prefix("heisen schedule ").map(|v| v.trim().parse::<u32>()) {
            Some(Ok(VERSION)) => {}
            Some(Ok(other)) => {
                return error(1, format!("schedule format {other}, but this Heisen reads format {VERSION}"));
            }
            _ => return error(1, "not a Heisen schedule (it must start with \"heisen schedule 1\")"),
        }
        let mut ended = false;
        let mut last = 1;
        for (number, line) in lines {
            last = number;
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if ended {
                return error(number, "text after the end line");
            }
            let mut words = Words { rest: line, line: number };
            match words.word("a keyword")? {
                "program" => schedule.program = words.string("the program")?,
                "arg" => {
                    let arg = words.string("an argument")?;
                    schedule.args.push(arg);
                }
                "source" => schedule.source = Some(words.string("the source file")?),
                "binary" => schedule.binary = words.word("a hash")?.to_owned(),
                "steps-limit" => schedule.steps_limit = words.number("a number of steps")?,
                "expect-exit" => schedule.expect_exit = words.number("an exit status")?,
                "outcome" => {
                    let name = words.word("a kind of finding")?;
                    let Some(kind) = FindingKind::from_name(name) else {
                        return error(number, format!("no kind of finding is called {name:?}"));
                    };
                    schedule.outcome = Some((kind, words.text("the message")?));
                }
                "signature" => schedule.signature = words.word("a signature")?.to_owned(),
                "thread" => {
                    let thread = words.thread()?;
                    let path = words.word("a creation path")?.to_owned();
                    schedule.threads.push(ThreadLine {
                        thread,
                        path,
                        start: words.text("the start function")?,
                    });
                }
                "at" => {
                    let entry = words.entry()?;
                    if schedule.entries.last().is_some_and(|e| e.step >= entry.step) {
                        return error(number, format!("step {} is not after the step before it", entry.step));
                    }
                    schedule.entries.push(entry);
                }
                "end" => {
                    let count: usize = words.number("the number of decisions")?;
                    if count != schedule.entries.len() {
                        let have = schedule.entries.len();
                        return error(number, format!("{count} decisions announced, {have} found"));
                    }
                    ended = true;
                }
                other => return error(number, format!("unknown keyword {other:?}")),
            }
            words.nothing_more()?;
        }
        if !ended {
            return error(last, "the file is truncated: its end line is missing");
        }
        if schedule.program.is_empty() {
            return error(last, "no program is named");
        }
        Ok(schedule)
    }
}

fn error<T>(line: usize, what: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError { line, what: what.into() })
}

fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    for b in c.encode_utf8(&mut buffer).bytes() {
                        let _ = write!(out, "\\x{b:02x}");
                    }
                }
                c => out.push(c),
            }
        }
        for b in chunk.invalid() {
            let _ = write!(out, "\\x{b:02x}");
        }
    }
    out.push('"');
    out
}

/// The words of one line.
struct Words<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Words<'a> {
    fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        let rest = self.rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if end == 0 {
            return error(self.line, format!("{what} is missing"));
        }
        self.rest = &rest[end..];
        Ok(&rest[..end])
    }

    fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, ParseError> {
        let word = self.word(what)?;
        word.parse().or_else(|_| error(self.line, format!("{word:?} is not {what}")))
    }

    fn thread(&mut self) -> Result<ThreadId, ParseError> {
        let word = self.word("a thread")?;
        word.parse().or_else(|()| error(self.line, format!("{word:?} is not a thread (they are T0, T1, …)")))
    }

    fn entry(&mut self) -> Result<Entry, ParseError> {
        let step = self.number("a step")?;
        let from = self.thread()?;
        if self.word("->")? != "->" {
            return error(self.line, "\"->\" must stand between the two threads");
        }
        let to = self.thread()?;
        let kind = match self.word("preempt, free or wake")? {
            "preempt" => SwitchKind::Preempt,
            "free" => SwitchKind::Free,
            "wake" => SwitchKind::Wake,
            other => return error(self.line, format!("{other:?} is none of preempt, free, wake")),
        };
        let name = self.word("an operation")?;
        let Some(op) = Op::from_name(name) else {
            return error(self.line, format!("no operation is called {name:?}"));
        };
        let options = self.number("a number of choices")?;
        let object = self.text("the object")?;
        let place = self.text("the place")?;
        Ok(Entry { step, from, to, kind, op, options, object, place })
    }

    fn text(&mut self, what: &str) -> Result<String, ParseError> {
        let bytes = self.string(what)?;
        String::from_utf8(bytes).or_else(|_| error(self.line, format!("{what} is not UTF-8")))
    }

    fn string(&mut self, what: &str) -> Result<Vec<u8>, ParseError> {
        let rest = self.rest.trim_start();
        let Some(body) = rest.strip_prefix('"') else {
            return error(self.line, format!("{what} must be in double quotes"));
        };
        let mut out = Vec::new();
        let mut chars = body.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &body[at + 1..];
                    return Ok(out);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push(b'\n'),
                    Some('t') => out.push(b'\t'),
                    Some(c @ ('"' | '\\')) => out.push(c as u8),
                    Some('x') => {
                        let hex = body.get(at + 2..at + 4).and_then(|h| u8::from_str_radix(h, 16).ok());
                        let Some(byte) = hex else {
                            return error(self.line, "\\x needs two hexadecimal digits");
                        };
                        out.push(byte);
                        chars.nth(1);
                    }
                    _ => return error(self.line, "unknown escape in a string"),
                },
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        error(self.line, "a string without its closing quote")
    }

    fn nothing_more(&self) -> Result<(), ParseError> {
        match self.rest.trim() {
            "" => Ok(()),
            rest if rest.starts_with('#') => Ok(()),
            rest => error(self.line, format!("unexpected {rest:?} at the end of the line")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Schedule {
        Schedule {
            program: b"/tmp/a b/\xff\"prog\"".to_vec(),
            args: vec![b"".to_vec(), b"x\ny\t\x01".to_vec(), "ä→".as_bytes().to_vec()],
            source: Some(b"examples/c/account.c".to_vec()),
            binary: "00ff".into(),
            steps_limit: 10,
            expect_exit: -3,
            outcome: Some((FindingKind::ExitStatus, "exit \\ \"1\"".into())),
            signature: "abc".into(),
            threads: vec![ThreadLine { thread: ThreadId(1), path: "0.1".into(), start: "worker".into() }],
            entries: vec![
                Entry {
                    step: 3,
                    from: ThreadId(1),
                    to: ThreadId(2),
                    kind: SwitchKind::Preempt,
                    op: Op::Lock,
                    options: 3,
                    object: "lock".into(),
                    place: "a.c:3 f".into(),
                },
                Entry {
                    step: 9,
                    from: ThreadId(2),
                    to: ThreadId(0),
                    kind: SwitchKind::Wake,
                    op: Op::CondSignal,
                    options: 0,
                    object: String::new(),
                    place: String::new(),
                },
            ],
        }
    }

    #[test]
    fn text_round_trips() {
        let text = sample().to_text();
        assert_eq!(Schedule::parse(&text), Ok(sample()), "{text}");
        assert_eq!(sample().preemptions(), 1);
    }

    #[test]
    fn comments_and_blank_lines_are_passed_over() {
        let text = sample().to_text().replace("\nend 2", "\n\n# mine\nend 2 # both");
        assert_eq!(Schedule::parse(&text), Ok(sample()));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let text = sample().to_text();
        for cut in (0..text.trim_end().len()).filter(|&i| text.is_char_boundary(i)) {
            assert!(Schedule::parse(&text[..cut]).is_err(), "cut at {cut}: {:?}", &text[..cut]);
        }
    }

    #[test]
    fn nonsense_names_its_line() {
        let text = sample().to_text();
        for (old, new, want) in [
            ("heisen schedule 1", "heisen schedule 9", "reads format 1"),
            ("heisen schedule 1", "#!/bin/sh", "not a Heisen schedule"),
            ("at 3 T1", "at three T1", "is not a step"),
            ("at 3 T1", "at 3 1", "is not a thread"),
            ("at 9 ", "at 3 ", "not after the step"),
            ("preempt lock", "preempt fly", "no operation is called"),
            ("preempt lock", "kick lock", "none of preempt"),
            (" -> T2", " T2", "must stand between"),
            ("end 2", "end 7", "7 decisions announced, 2 found"),
            ("binary 00ff", "binary", "a hash is missing"),
            ("\"lock\"", "\"lock", "must be in double quotes"),
            ("f\"\nat 9", "f\nat 9", "without its closing quote"),
            ("signature abc", "signature abc def", "unexpected"),
            ("outcome exit-status", "outcome sad", "no kind of finding"),
            ("signature abc", "hello", "unknown keyword"),
            ("program ", "# program ", "no program is named"),
        ] {
            assert!(text.contains(old), "{old}");
            let error = Schedule::parse(&text.replacen(old, new, 1)).expect_err(new);
            assert!(error.to_string().contains(want), "{new}: {error}");
        }
    }
}
