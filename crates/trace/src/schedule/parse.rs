//! Reads a schedule file. A person may have edited it, so every error names its line and says what should be
//! there.

use super::words::{Words, error};
use super::{ParseError, Schedule, ThreadLine, VERSION};
use crate::access::CodePlace;
use crate::finding::{FindingKind, SwitchKind};
use crate::stdin::Stdin;
use std::time::Duration;

impl Schedule {
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
                "symbolic" => schedule.symbolic = true,
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
                "patience" => schedule.world.patience = words.number("a number of rounds")?,
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
                "mark" => schedule.world.marked.push(words.mark()?),
                "input-file" => {
                    let name = words.text("the file of the recorded input")?;
                    schedule.input = Some((name, words.word("its hash")?.to_owned()));
                }
                "input" => schedule.inputs.push(words.input()?),
                "symmetry" => schedule.symmetry = true,
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

    /// Checks that the last entry is within the budgets: beyond them there is no such decision.
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
