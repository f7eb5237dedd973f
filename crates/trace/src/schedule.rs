//! The schedule file: what makes one execution happen again, as text a person can read, edit and commit.
//!
//! ```text
//! heisen schedule 1
//! program "/home/me/account"
//! arg "--fast"
//! binary 5f0c…                          hash of the executable
//! steps-limit 1000000
//! expect-exit 0
//! seed 0                                of what the program takes for random
//! patch "default"                       modules whose atomic instructions are scheduling points
//! spurious 1                            the budgets, where they are not 0
//! faults 1:malloc
//! access "account" 0x11d9 "account.c:23 deposit"    an access of memory that is a scheduling point
//! outcome assertion "balance == 200"
//! signature 8c1d0f6b2a7e4c55
//! thread T1 0.1 deposit                 creation path and start function, for the reader
//! at 12 T1 -> T2 preempt lock 2 "lock" "account.c:23 deposit"
//! at 30 T0 -> T3 wake cond_signal 2 "ready" "account.c:40 main"
//! at 31 T1 choose 2 of 5 "account.c:22 deposit"
//! at 35 T1 spurious cond_wait "ready" "account.c:27 deposit"
//! at 40 T2 fault malloc alloc "24 bytes" "account.c:31 deposit"
//! end 5
//! ```
//!
//! Only decisions that differ from the default are listed. `end` carries their number, so that a truncated file is
//! noticed. `#` starts a comment. Strings are quoted with `\"`, `\\`, `\n`, `\t` and `\xHH` as escapes.

use crate::access::CodePlace;
use crate::fault::{Fault, Faults};
use crate::finding::{FindingKind, SwitchKind};
use crate::op::Op;
use crate::stdin::Stdin;
use crate::thread::ThreadId;
use crate::world::{TIMEOUTS, World};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::time::Duration;

/// The version of the format that this crate writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// One decision of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The step it is taken at.
    pub step: u32,
    /// The thread that is running.
    pub from: ThreadId,
    /// The thread that runs, or is woken, instead of the default one; the same as `from` if no thread is chosen.
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
    /// Whether it was instrumented then.
    #[serde(default)]
    pub instrumented: bool,
    /// Whether Rust's standard library was, too.
    #[serde(default)]
    pub with_std: bool,
    /// Hash of the executable.
    pub binary: String,
    /// Whether its steps count from `heisen_ready`, rather than from `main`.
    #[serde(default)]
    pub at_ready: bool,
    /// The step limit the finding was made under.
    pub steps_limit: u32,
    /// The exit status that counts as success.
    pub expect_exit: i32,
    /// Spurious wake-ups that the execution may have.
    #[serde(default)]
    pub spurious: u32,
    /// Faults that it may meet.
    #[serde(default)]
    pub faults: Faults,
    /// What surrounds the execution.
    pub world: World,
    /// Name and hash of the file beside it that holds what came from outside.
    #[serde(default)]
    pub input: Option<(String, String)>,
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
        if self.instrumented {
            out.push_str("instrumented\n");
        }
        if self.with_std {
            out.push_str("with-std\n");
        }
        writeln!(out, "binary {}", self.binary)?;
        if self.at_ready {
            out.push_str("at-ready\n");
        }
        writeln!(out, "steps-limit {}", self.steps_limit)?;
        writeln!(out, "expect-exit {}", self.expect_exit)?;
        self.write_world(out)?;
        if let Some((name, hash)) = &self.input {
            writeln!(out, "input-file {} {hash}", quote(name.as_bytes()))?;
        }
        if self.spurious > 0 {
            writeln!(out, "spurious {}", self.spurious)?;
        }
        if self.faults.most > 0 {
            writeln!(out, "faults {}", self.faults)?;
        }
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
        if self.entries.iter().any(|e| e.kind.is_value()) {
            out.push_str(
                "# Or what the running thread meets: choose VALUE of CHOICES, spurious, fault KIND.\n",
            );
        }
        for e in &self.entries {
            let (kind, op, options) = (e.kind.name(), e.op.name(), e.options);
            let (object, place) = (quote(e.object.as_bytes()), quote(e.place.as_bytes()));
            write!(out, "at {} {} ", e.step, e.from)?;
            match e.kind {
                SwitchKind::Preempt | SwitchKind::Free | SwitchKind::Wake => {
                    writeln!(out, "-> {} {kind} {op} {options} {object} {place}", e.to)?;
                }
                SwitchKind::Choose(value) => writeln!(out, "{kind} {value} of {options} {place}")?,
                SwitchKind::Spurious => writeln!(out, "{kind} {op} {object} {place}")?,
                SwitchKind::Fault(fault) => writeln!(out, "{kind} {} {op} {object} {place}", fault.name())?,
            }
        }
        writeln!(out, "end {}", self.entries.len())
    }

    fn write_world(&self, out: &mut String) -> fmt::Result {
        let world = &self.world;
        writeln!(out, "seed {}", world.seed)?;
        if let Some(cpus) = world.cpus {
            writeln!(out, "cpus {cpus}")?;
        }
        if world.real_time {
            out.push_str("real-time\n");
        }
        if world.timeouts != TIMEOUTS {
            writeln!(out, "timeouts {}", world.timeouts.as_nanos().min(u64::MAX.into()))?;
        }
        for (keyword, command) in [("before", &world.before), ("after", &world.after)] {
            if let Some(command) = command {
                writeln!(out, "{keyword} {}", quote(command.as_bytes()))?;
            }
        }
        if let Some(dir) = &world.dir {
            writeln!(out, "dir {}", quote(dir))?;
        }
        if let Some(heap) = world.heap {
            writeln!(out, "heap {}", if heap { "on" } else { "off" })?;
        }
        if world.leaks {
            out.push_str("leaks\n");
        }
        self.write_accesses(out)?;
        for pattern in &world.patch {
            writeln!(out, "patch {}", quote(pattern.as_bytes()))?;
        }
        match &world.stdin {
            None => Ok(()),
            Some(Stdin::Bytes(bytes)) => writeln!(out, "stdin {}", quote(bytes)),
            Some(Stdin::Beside { name, hash }) => {
                writeln!(out, "stdin-file {} {hash}", quote(name.as_bytes()))
            }
        }
    }

    fn write_accesses(&self, out: &mut String) -> fmt::Result {
        let accesses = &self.world.accesses;
        if accesses.all {
            out.push_str("accesses all\n");
        }
        if !accesses.check {
            out.push_str("accesses unchecked\n");
        }
        for CodePlace { module, offset, place } in &accesses.points {
            writeln!(out, "access {} {offset:#x} {}", quote(module.as_bytes()), quote(place.as_bytes()))?;
        }
        Ok(())
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
                "instrumented" => schedule.instrumented = true,
                "with-std" => schedule.with_std = true,
                "binary" => schedule.binary = words.word("a hash")?.to_owned(),
                "at-ready" => schedule.at_ready = true,
                "steps-limit" => schedule.steps_limit = words.number("a number of steps")?,
                "expect-exit" => schedule.expect_exit = words.number("an exit status")?,
                "seed" => schedule.world.seed = words.number("a seed")?,
                "cpus" => schedule.world.cpus = Some(words.number("a number of processors")?),
                "real-time" => schedule.world.real_time = true,
                "timeouts" => {
                    schedule.world.timeouts = Duration::from_nanos(words.number("a number of nanoseconds")?);
                }
                "before" => schedule.world.before = Some(words.text("the command before")?),
                "after" => schedule.world.after = Some(words.text("the command after")?),
                "dir" => schedule.world.dir = Some(words.string("the directory")?),
                "heap" => match words.word("on or off")? {
                    "on" => schedule.world.heap = Some(true),
                    "off" => schedule.world.heap = Some(false),
                    other => return error(number, format!("the heap is on or off, not {other:?}")),
                },
                "leaks" => schedule.world.leaks = true,
                "accesses" => match words.word("all or unchecked")? {
                    "all" => schedule.world.accesses.all = true,
                    "unchecked" => schedule.world.accesses.check = false,
                    other => return error(number, format!("{other:?} is none of all, unchecked")),
                },
                "access" => {
                    let module = words.text("a module")?;
                    let offset = words.hexadecimal("where in the module it is")?;
                    let place = words.text("the place")?;
                    schedule.world.accesses.points.push(CodePlace { module, offset, place });
                }
                "patch" => schedule.world.patch.push(words.text("the modules to be patched")?),
                "stdin" => {
                    let bytes = words.string("the standard input")?;
                    schedule.world.stdin = Some(Stdin::Bytes(bytes.into()));
                }
                "stdin-file" => {
                    let name = words.text("the file of the standard input")?;
                    let hash = words.word("its hash")?.to_owned();
                    schedule.world.stdin = Some(Stdin::Beside { name, hash });
                }
                "input-file" => {
                    let name = words.text("the file of the recorded input")?;
                    schedule.input = Some((name, words.word("its hash")?.to_owned()));
                }
                "spurious" => schedule.spurious = words.number("a number of spurious wake-ups")?,
                "faults" => {
                    let text = words.word("a number of faults")?;
                    schedule.faults = text.parse().or_else(|what| error(number, what))?;
                }
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
                    schedule.check_budgets(number)?;
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

    /// Whether the last entry is still within the budgets: beyond them there is no such decision.
    fn check_budgets(&self, line: usize) -> Result<(), ParseError> {
        let count = |kind: &str| self.entries.iter().filter(|e| e.kind.name() == kind).count();
        let (spurious, faults) = (self.spurious, self.faults);
        match self.entries.last().map(|e| e.kind) {
            Some(SwitchKind::Spurious) if count("spurious") > spurious as usize => error(
                line,
                format!("more spurious wake-ups than allowed; raise \"spurious {spurious}\" above"),
            ),
            Some(SwitchKind::Fault(fault)) if faults.kinds & fault.bit() == 0 => error(
                line,
                format!("\"faults {faults}\" above does not allow {}; add it there", fault.name()),
            ),
            Some(SwitchKind::Fault(_)) if count("fault") > faults.most as usize => {
                error(line, format!("more faults than allowed; raise \"faults {faults}\" above"))
            }
            _ => Ok(()),
        }
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

    fn hexadecimal(&mut self, what: &str) -> Result<u64, ParseError> {
        let word = self.word(what)?;
        let digits = word.strip_prefix("0x").unwrap_or_default();
        u64::from_str_radix(digits, 16)
            .or_else(|_| error(self.line, format!("{word:?} is not {what}, such as 0x11d9")))
    }

    fn thread(&mut self) -> Result<ThreadId, ParseError> {
        let word = self.word("a thread")?;
        word.parse().or_else(|()| error(self.line, format!("{word:?} is not a thread (they are T0, T1, …)")))
    }

    fn entry(&mut self) -> Result<Entry, ParseError> {
        let step = self.number("a step")?;
        let from = self.thread()?;
        match self.word("-> and a thread, choose, spurious or fault")? {
            "->" => {}
            word @ ("choose" | "spurious" | "fault") => return self.value_entry(step, from, word),
            _ => {
                return error(
                    self.line,
                    "\"->\" must stand between the two threads, or choose, spurious or fault after the first",
                );
            }
        }
        let to = self.thread()?;
        let kind = match self.word("preempt, free or wake")? {
            "preempt" => SwitchKind::Preempt,
            "free" => SwitchKind::Free,
            "wake" => SwitchKind::Wake,
            other => return error(self.line, format!("{other:?} is none of preempt, free, wake")),
        };
        let op = self.operation()?;
        let options = self.number("a number of choices")?;
        let object = self.text("the object")?;
        let place = self.text("the place")?;
        Ok(Entry { step, from, to, kind, op, options, object, place })
    }

    /// The rest of an entry in which no thread is chosen.
    fn value_entry(&mut self, step: u32, from: ThreadId, word: &str) -> Result<Entry, ParseError> {
        let mut entry = Entry {
            step,
            from,
            to: from,
            kind: SwitchKind::Spurious,
            op: Op::Choose,
            options: 2,
            object: String::new(),
            place: String::new(),
        };
        match word {
            "choose" => {
                let value = self.number("a value")?;
                if self.word("of")? != "of" {
                    return error(self.line, "\"of\" must stand between the value and the number of choices");
                }
                entry.options = self.number("a number of choices")?;
                if entry.options != 0 && value >= entry.options {
                    return error(self.line, format!("{value} is none of {} choices from 0", entry.options));
                }
                entry.kind = SwitchKind::Choose(value);
                entry.object = format!("{value} of {}", entry.options);
            }
            "fault" => {
                let name = self.word("a fault")?;
                let Some(&fault) = Fault::ALL.iter().find(|f| f.name() == name) else {
                    return error(self.line, format!("no fault is called {name:?}"));
                };
                entry.kind = SwitchKind::Fault(fault);
            }
            _ => {}
        }
        if word != "choose" {
            entry.op = self.operation()?;
            entry.object = self.text("the object")?;
        }
        entry.place = self.text("the place")?;
        Ok(entry)
    }

    fn operation(&mut self) -> Result<Op, ParseError> {
        let name = self.word("an operation")?;
        Op::from_name(name).map_or_else(|| error(self.line, format!("no operation is called {name:?}")), Ok)
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
    use crate::access::Accesses;

    fn sample() -> Schedule {
        Schedule {
            program: b"/tmp/a b/\xff\"prog\"".to_vec(),
            args: vec![b"".to_vec(), b"x\ny\t\x01".to_vec(), "ä→".as_bytes().to_vec()],
            source: Some(b"examples/c/account.c".to_vec()),
            instrumented: true,
            with_std: true,
            binary: "00ff".into(),
            at_ready: true,
            steps_limit: 10,
            expect_exit: -3,
            spurious: 0,
            faults: Faults::default(),
            world: World {
                seed: u64::MAX,
                cpus: Some(3),
                real_time: true,
                timeouts: Duration::from_millis(1500),
                before: Some("echo \"$HEISEN_DIR\"".into()),
                after: Some("true".into()),
                dir: Some(b"/tmp/\xff".to_vec()),
                stdin: Some(Stdin::Bytes((*b"1 # 2\n\0\xff\r\n").into())),
                patch: vec!["default".into(), "lib \"x\"*.so".into()],
                heap: Some(false),
                leaks: true,
                accesses: Accesses {
                    check: false,
                    all: true,
                    points: vec![CodePlace { module: "a b".into(), offset: 0x11d9, place: "x.c:3 f".into() }],
                },
            },
            input: Some(("a.input".into(), "0a".into())),
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

    /// With decisions that choose no thread.
    fn with_values() -> Schedule {
        let entry = |step, kind, op, options, object: &str| Entry {
            step,
            from: ThreadId(1),
            to: ThreadId(1),
            kind,
            op,
            options,
            object: object.into(),
            place: "a.c:3 f".into(),
        };
        let values = [
            entry(10, SwitchKind::Choose(2), Op::Choose, 5, "2 of 5"),
            entry(12, SwitchKind::Spurious, Op::CondWait, 2, "ready"),
            entry(14, SwitchKind::Fault(Fault::Malloc), Op::Alloc, 2, "24 bytes"),
            entry(15, SwitchKind::Fault(Fault::TryLock), Op::TryLock, 2, "lock"),
        ];
        let faults = Faults { most: 2, kinds: Fault::Malloc.bit() | Fault::TryLock.bit() };
        let mut schedule = Schedule { spurious: 1, faults, ..sample() };
        schedule.entries.extend(values);
        schedule
    }

    #[test]
    fn values_round_trip() {
        let text = with_values().to_text();
        assert_eq!(Schedule::parse(&text), Ok(with_values()), "{text}");
        for line in [
            "spurious 1",
            "faults 2:malloc,trylock",
            "at 10 T1 choose 2 of 5 \"a.c:3 f\"",
            "at 12 T1 spurious cond_wait \"ready\" \"a.c:3 f\"",
            "at 14 T1 fault malloc alloc \"24 bytes\" \"a.c:3 f\"",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in {text}");
        }
        assert_eq!(with_values().preemptions(), 1);
        // Without them, the file is as it always was.
        let plain = sample().to_text();
        assert!(!plain.contains("spurious") && !plain.contains("faults"), "{plain}");
    }

    #[test]
    fn nonsense_values_name_their_line() {
        let text = with_values().to_text();
        let line =
            text.lines().position(|line| line.contains("fault trylock")).expect("the second fault") + 1;
        let second = format!("line {line}: more faults than allowed; raise \"faults 1:");
        for (old, new, want) in [
            ("choose 2 of 5", "choose two of 5", "\"two\" is not a value"),
            ("choose 2 of 5", "choose 2 off 5", "\"of\" must stand between"),
            ("choose 2 of 5", "choose 5 of 5", "5 is none of 5 choices from 0"),
            ("choose 2 of 5", "choose 2 of", "is not a number of choices"),
            ("T1 choose", "T1 pick", "choose, spurious or fault after the first"),
            ("spurious cond_wait", "spurious sleeping", "no operation is called \"sleeping\""),
            ("fault malloc", "fault fire", "no fault is called \"fire\""),
            ("fault malloc", "fault", "no fault is called \"alloc\""),
            ("fault malloc", "fault eintr", "\"faults 2:malloc,trylock\" above does not allow eintr"),
            ("faults 2:", "faults 1:", &second),
            ("faults 2:", "faults many:", "\"many\" is not a number of faults"),
            ("malloc,trylock", "malloc,fire", "no fault is called \"fire\"; there are malloc"),
            ("spurious 1\n", "", "more spurious wake-ups than allowed; raise \"spurious 0\""),
            ("spurious 1\n", "spurious x\n", "\"x\" is not a number of spurious wake-ups"),
        ] {
            assert!(text.contains(old), "{old}");
            let error = Schedule::parse(&text.replacen(old, new, 1)).expect_err(new);
            assert!(error.to_string().contains(want), "{new}: {error}");
        }
        for cut in (0..text.trim_end().len()).filter(|&i| text.is_char_boundary(i)) {
            assert!(Schedule::parse(&text[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn text_round_trips() {
        let text = sample().to_text();
        assert_eq!(Schedule::parse(&text), Ok(sample()), "{text}");
        assert_eq!(sample().preemptions(), 1);
    }

    #[test]
    fn a_standard_input_beside_the_file() {
        let mut schedule = sample();
        let (name, hash) = ("a \"b\".stdin".to_owned(), "77aa".to_owned());
        schedule.world.stdin = Some(Stdin::Beside { name, hash });
        let text = schedule.to_text();
        assert_eq!(Schedule::parse(&text), Ok(schedule), "{text}");
        let error = Schedule::parse(&text.replace(" 77aa", "")).expect_err("no hash");
        assert!(error.to_string().contains("its hash is missing"), "{error}");
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
            ("seed 1", "seed x1", "is not a seed"),
            ("cpus 3", "cpus -3", "is not a number of processors"),
            ("real-time", "real-time yes", "unexpected"),
            ("stdin \"1", "stdin 1", "must be in double quotes"),
            ("program ", "# program ", "no program is named"),
        ] {
            assert!(text.contains(old), "{old}");
            let error = Schedule::parse(&text.replacen(old, new, 1)).expect_err(new);
            assert!(error.to_string().contains(want), "{new}: {error}");
        }
    }
}
