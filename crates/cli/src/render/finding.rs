//! Renders a finding as one screen: what failed and where, the switches that matter, and how to replay it.

use crate::render::explanation;
use crate::render::inputs;
use crate::render::limits;
use crate::render::paint::{Paint, count, number};
use crate::render::source::Sources;
use heisen_trace::cycle::{Cycle, Order};
use heisen_trace::finding::{Block, Switch, SwitchKind, ThreadEnd};
use heisen_trace::{Finding, FindingKind, Op, Schedule, Stack, ThreadId};
use std::ffi::OsStr;
use std::fmt::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The largest number of switches shown. The schedule file has all of them.
const MAX_SWITCHES: usize = 6;
/// The largest number of steps of a cycle shown.
const MAX_CYCLE: usize = 8;
/// The largest number of lines shown of the program's own output: the last ones, unless a line tells of a failure.
const MAX_OUTPUT: usize = 10;
/// The largest number of lines shown from a line on that tells of a failure.
const MAX_FAILURE: usize = 20;
/// What test frameworks and languages print when something fails.
const FAILURES: [&str; 4] = ["Failure", "panicked at", "FAILED", "Assertion"];
/// The largest number of characters shown of such a line: its end, which was written last.
const MAX_LINE: usize = 200;

/// The parts of the screen that do not come from the finding.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    pub paint: Paint,
    /// The command that replays the schedule file; empty if there is no such file.
    pub replay: &'a str,
    /// How long the search took.
    pub time: Option<Duration>,
}

impl Screen<'_> {
    /// The screen as text.
    pub fn render(&self, finding: &Finding) -> String {
        let mut out = String::new();
        let program = OsStr::from_bytes(&finding.schedule.program);
        let mut sources = Sources::of_program(Path::new(program));
        // Writing to a String cannot fail.
        let _ = self.write(&mut out, finding, &mut sources);
        out
    }

    fn write(&self, out: &mut String, finding: &Finding, sources: &mut Sources) -> std::fmt::Result {
        let paint = self.paint;
        writeln!(out, "{} {}", paint.bad(headline(finding.kind)), paint.strong(&finding.message))?;
        if let Some(words) = by_default(finding) {
            writeln!(out, "{words}")?;
        }
        if finding.kind == FindingKind::Deadlock {
            self.deadlock(out, finding, sources)?;
        } else if let Some(race) = &finding.race {
            self.race(out, finding, race, sources)?;
        } else {
            self.place(out, finding, sources)?;
        }
        if let Some(block) = &finding.block {
            self.block(out, finding, block, sources)?;
        }
        if let Some(cycle) = &finding.cycle {
            self.cycle(out, finding, cycle, sources)?;
        }
        if let Some(why) = &finding.explanation {
            out.push_str(&explanation::short(why, paint));
        }
        chosen_inputs(out, finding)?;
        self.switches(out, finding, sources)?;
        globals(out, finding)?;
        if let Some(predicted) = &finding.predicted {
            let (family, from) = (predicted.family.name(), number(predicted.execution));
            writeln!(out, "\n  predicted from execution {from} by a {family}:")?;
            for step in &predicted.steps {
                writeln!(out, "    {step}")?;
            }
        }
        let said: Vec<&str> = finding.output.lines().filter(|l| !l.trim().is_empty()).collect();
        // For a panic, the output repeats the message and often adds a long backtrace.
        if !said.is_empty() && finding.kind != FindingKind::Panic {
            writeln!(out, "\n  the program wrote:")?;
            let shown = telling(&said);
            if let Some(line) = omitted(shown.start, "before") {
                writeln!(out, "    {}", paint.faint(line))?;
            }
            for line in &said[shown.clone()] {
                writeln!(out, "    {}", paint.faint(end_of(line)))?;
            }
            if let Some(line) = omitted(said.len() - shown.end, "after") {
                writeln!(out, "    {}", paint.faint(line))?;
            }
        }
        let mut found = match finding.executions_to_find {
            0 => String::new(),
            n => format!("found in execution {}", number(n)),
        };
        if let Some(race) = finding.race.as_ref().filter(|race| race.executions > 1) {
            let _ = write!(found, " and {} more", number(race.executions - 1));
        }
        match self.time {
            Some(time) if !found.is_empty() => {
                writeln!(out, "\n  {found}, after {:.2} s", time.as_secs_f64())?
            }
            _ if !found.is_empty() => writeln!(out, "\n  {found}")?,
            _ => {}
        }
        if let Some(minimised) = &finding.minimised {
            let (from, runs) =
                (count(minimised.from.into(), "preemption"), count(minimised.runs, "execution"));
            writeln!(out, "  minimised from {from}, by {runs}")?;
        }
        for file in sources.newer() {
            writeln!(out, "  note: {file} is newer than the program; the lines shown may be wrong")?;
        }
        if let Some(sentence) = limits::missing(sources.missing()) {
            writeln!(out, "  note: {sentence}")?;
        }
        if !self.replay.is_empty() {
            writeln!(out, "  replay it: {}", paint.strong(self.replay))?;
        }
        Ok(())
    }

    /// The failing thread and line.
    fn place(&self, out: &mut String, finding: &Finding, sources: &mut Sources) -> std::fmt::Result {
        let Some(thread) = finding.thread else { return Ok(()) };
        let who = self.who(finding, thread);
        match finding.stack.place() {
            None => writeln!(out, "\n  in {who}"),
            Some(frame) => {
                writeln!(out, "\n  in {who}, {} at {}", frame.function, frame.place())?;
                self.line(out, &finding.stack, sources)?;
                self.dependency(out, &finding.stack, sources)?;
                self.callers(out, &finding.stack)
            }
        }
    }

    /// If the place is in a dependency: the line of the program that called it.
    fn dependency(&self, out: &mut String, stack: &Stack, sources: &mut Sources) -> std::fmt::Result {
        let Some(frame) = stack.caller_of_dependency() else { return Ok(()) };
        writeln!(out, "  called by {} at {}", frame.function, frame.place())?;
        match sources.of(frame) {
            Some((line, text)) => writeln!(out, "    {} {text}", self.paint.faint(format!("{line} |"))),
            None => Ok(()),
        }
    }

    /// Up to three callers of a place in the program's own code, in one line.
    fn callers(&self, out: &mut String, stack: &Stack) -> std::fmt::Result {
        let own: Vec<String> =
            stack.0.iter().filter(|f| f.own).skip(1).take(3).map(|f| f.function.clone()).collect();
        if own.is_empty() {
            return Ok(());
        }
        writeln!(out, "    {}", self.paint.faint(format!("called from {}", own.join(" ← "))))
    }

    pub fn line(&self, out: &mut String, stack: &Stack, sources: &mut Sources) -> std::fmt::Result {
        let Some((line, text)) = stack.place().and_then(|f| sources.of(f)) else { return Ok(()) };
        writeln!(out, "    {} {text}", self.paint.faint(format!("{line} |")))
    }

    /// The threads of a deadlock: what each one waits for, and the locks that it holds.
    fn deadlock(&self, out: &mut String, finding: &Finding, sources: &mut Sources) -> std::fmt::Result {
        for t in &finding.threads {
            let place = t.stack.place().map_or(String::new(), |f| format!("  at {}", f.place()));
            writeln!(out, "\n  {} {}{place}", self.who(finding, t.thread), waits(t))?;
            self.line(out, &t.stack, sources)?;
            for held in &t.holds {
                writeln!(out, "    holds {} since {}", held.object, held.place)?;
            }
        }
        Ok(())
    }

    /// The places where the block of a memory error was allocated and freed.
    fn block(
        &self,
        out: &mut String,
        finding: &Finding,
        block: &Block,
        sources: &mut Sources,
    ) -> std::fmt::Result {
        let events = [("allocated", Some(&block.allocated)), ("freed", block.freed.as_ref())];
        for (what, event) in events.into_iter().filter_map(|(what, event)| Some((what, event?))) {
            let who = self.who(finding, event.thread);
            let place =
                event.stack.place().map_or(String::new(), |f| format!(", {} at {}", f.function, f.place()));
            let which = match finding.kind {
                FindingKind::Leak => "the first of them",
                _ => "the block",
            };
            writeln!(out, "\n  {which} was {what} by {who}{place}")?;
            self.line(out, &event.stack, sources)?;
            self.callers(out, &event.stack)?;
        }
        Ok(())
    }

    /// The steps that an endless execution repeats.
    fn cycle(
        &self,
        out: &mut String,
        finding: &Finding,
        cycle: &Cycle,
        sources: &mut Sources,
    ) -> std::fmt::Result {
        let steps = count(cycle.length.into(), "step");
        match cycle.order {
            Order::Exact => writeln!(out, "\n  it repeats {steps}:")?,
            Order::EachThread => writeln!(out, "\n  each thread repeats its own steps, {steps} in all:")?,
            Order::Frequent => writeln!(
                out,
                "\n  no cycle was found; the last {} were mostly:",
                count(cycle.of.into(), "step")
            )?,
        }
        for step in cycle.steps.iter().take(MAX_CYCLE) {
            let who = self.who(finding, step.thread);
            let op = operation(step.op, &step.object);
            let fails = if step.ok { "" } else { ", which fails" };
            let place = step.stack.place().map_or(String::new(), |f| format!("  at {}", f.place()));
            let times = match cycle.order {
                Order::Frequent => format!(", {} times", number(step.times.into())),
                _ => String::new(),
            };
            writeln!(out, "  {who} {op}{fails}{times}{place}")?;
            self.line(out, &step.stack, sources)?;
        }
        if cycle.length as usize > MAX_CYCLE {
            writeln!(out, "  … and {} more (the JSON lists all)", cycle.length as usize - MAX_CYCLE)?;
        }
        Ok(())
    }

    /// A thread with its start function: `T1 (deposit)`.
    pub fn who(&self, finding: &Finding, thread: ThreadId) -> String {
        let line = finding.schedule.threads.iter().find(|t| t.thread == thread);
        match line.filter(|l| !l.start.is_empty()) {
            Some(line) => self.paint.thread(format!("{thread} ({})", line.start)),
            None => self.paint.thread(thread),
        }
    }

    /// The preemptions and the choices that are not about threads. Without a preemption, all switches.
    fn switches(&self, out: &mut String, finding: &Finding, sources: &mut Sources) -> std::fmt::Result {
        let preemptions = finding.preemptions;
        let shown: Vec<&Switch> = finding.switches.iter().filter(|s| matters(finding, s)).collect();
        let values = finding.switches.iter().filter(|s| s.kind.is_value()).count() as u64;
        let schedule = &finding.schedule;
        if shown.is_empty() {
            return match by_default(finding) {
                Some(_) => Ok(()),
                None => writeln!(out, "\n  it happens under the default schedule, without any preemption"),
            };
        }
        let mut what = match preemptions {
            0 if values == shown.len() as u64 => "no preemption".to_owned(),
            0 => "no preemption, only another order of threads".to_owned(),
            some => count(some.into(), "preemption"),
        };
        if values > 0 {
            let comma = if what.contains(',') { "," } else { "" };
            let _ = write!(what, "{comma} and {}", count(values, "other choice"));
        }
        writeln!(out, "\n  the schedule, {what} in {}:", count(schedule.threads.len() as u64, "thread"))?;
        for (i, switch) in shown.iter().take(MAX_SWITCHES).enumerate() {
            let from = self.who(finding, switch.from);
            let to = self.who(finding, switch.to);
            let op = operation(switch.op, &switch.object);
            // The place follows the operation: it belongs to the thread that stops.
            let place = switch.stack.place().map_or(String::new(), |f| format!(" at {}", f.place()));
            let text = match switch.kind {
                SwitchKind::Preempt => format!("{from} is preempted before {op}{place}; {to} runs"),
                SwitchKind::Free if switch.from == switch.to => {
                    format!("{from} continues with {op}{place} before the others run")
                }
                SwitchKind::Free => format!("{from} stops at {op}{place}; {to} runs next"),
                SwitchKind::Wake => format!("{from} does {op}{place} and wakes {to}"),
                kind @ SwitchKind::Choose(_) => {
                    format!("{from}{place}: {}", value(kind, switch.options))
                }
                kind => format!("{from} in {op}{place}: {}", value(kind, 2)),
            };
            writeln!(out, "  {}. {text}", i + 1)?;
            self.line(out, &switch.stack, sources)?;
        }
        if shown.len() > MAX_SWITCHES {
            writeln!(out, "  … and {} more (heisen show lists all)", shown.len() - MAX_SWITCHES)?;
        }
        Ok(())
    }
}

/// Whether a switch is shown: the preemptions and the choices that are not about threads. Without a preemption, all.
fn matters(finding: &Finding, switch: &Switch) -> bool {
    finding.preemptions == 0 || switch.kind == SwitchKind::Preempt || switch.kind.is_value()
}

/// The inputs that the search has chosen, by name and thread.
fn chosen_inputs(out: &mut String, finding: &Finding) -> std::fmt::Result {
    let Schedule { inputs, threads, .. } = &finding.schedule;
    if inputs.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  with these inputs:")?;
    for line in inputs::lines(inputs, threads) {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

/// The values of global variables at the switches that are shown, and at the end.
fn globals(out: &mut String, finding: &Finding) -> std::fmt::Result {
    let mut first = true;
    for variable in &finding.globals {
        let values = finding.switches.iter().zip(&variable.at_switches);
        let shown = values.filter(|(switch, _)| matters(finding, switch)).map(|(_, value)| value);
        let shown: Vec<&String> = shown.take(MAX_SWITCHES).collect();
        if shown.iter().all(|value| **value == variable.at_end) {
            continue;
        }
        if std::mem::take(&mut first) {
            writeln!(out, "\n  global variables at these switches, and at the end:")?;
        }
        let values: Vec<String> =
            (1..).zip(&shown).map(|(number, value)| format!("{value} at {number}")).collect();
        writeln!(out, "    {} = {}, {} at the end", variable.name, values.join(", "), variable.at_end)?;
    }
    Ok(())
}

/// The first sentence for a failure under the default schedule. Other kinds, such as data races and memory
/// errors, may have no visible effect without Heisen.
fn by_default(finding: &Finding) -> Option<&'static str> {
    let fails = matches!(
        finding.kind,
        FindingKind::Assertion
            | FindingKind::Crash
            | FindingKind::Deadlock
            | FindingKind::ExitStatus
            | FindingKind::Panic
    );
    (fails && finding.switches.is_empty()).then_some(match finding.schedule.inputs.is_empty() {
        true => "it fails under the default schedule, so most likely also without Heisen",
        false => {
            "it fails under the default schedule, so most likely also without Heisen if it gets these inputs"
        }
    })
}

/// The lines of the program's output that tell most: the last ones, or, if the first line that tells of a failure comes
/// earlier, those from there on.
fn telling(lines: &[&str]) -> Range<usize> {
    let fails = |line: &&str| FAILURES.iter().any(|word| line.contains(word));
    let last = lines.len().saturating_sub(MAX_OUTPUT);
    match lines.iter().position(fails) {
        Some(first) if first < last => first..lines.len().min(first + MAX_FAILURE),
        _ => last..lines.len(),
    }
}

/// Says how many lines are left out, if there are any.
fn omitted(lines: usize, side: &str) -> Option<String> {
    (lines > 0).then(|| format!("… {} {side}", count(lines as u64, "line")))
}

/// The line, or its end if it is longer than [`MAX_LINE`] characters.
fn end_of(line: &str) -> String {
    match line.char_indices().rev().nth(MAX_LINE - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &line[at..]),
        _ => line.to_owned(),
    }
}

fn headline(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Assertion => "bug:",
        FindingKind::Crash => "crash:",
        FindingKind::Deadlock => "deadlock:",
        FindingKind::Livelock => "livelock:",
        FindingKind::GoodSamaritan => "good Samaritan:",
        FindingKind::ExitStatus => "exit status:",
        FindingKind::Panic => "panic:",
        FindingKind::Misuse => "misuse:",
        FindingKind::DataRace => "data race:",
        FindingKind::UseAfterFree => "use after free:",
        FindingKind::DoubleFree => "double free:",
        FindingKind::InvalidFree => "invalid free:",
        FindingKind::HeapOverflow => "heap overflow:",
        FindingKind::Leak => "leak:",
    }
}

/// An operation with its object, written as a call: `lock(q)`.
pub fn operation(op: Op, object: &str) -> String {
    if object.is_empty() { op.name().to_owned() } else { format!("{}({object})", op.name()) }
}

/// Describes a choice that is not about threads; empty for other switches. `options` is the number of
/// choices.
pub fn value(kind: SwitchKind, options: u16) -> String {
    match kind {
        SwitchKind::Choose(value) => format!("heisen_choose({options}) returns {value}"),
        SwitchKind::Spurious => "its wait ends although nobody wakes it".to_owned(),
        SwitchKind::Fault(fault) => fault.text().to_owned(),
        SwitchKind::Preempt | SwitchKind::Free | SwitchKind::Wake => String::new(),
    }
}

fn waits(t: &ThreadEnd) -> String {
    let op = operation(t.op, &t.object);
    match t.holder {
        Some(holder) if t.holder_ended => format!("waits: {op}, held by {holder}, which has ended"),
        Some(holder) => format!("waits: {op}, held by {holder}"),
        None if t.blocked => format!("waits: {op}"),
        None => format!("is about to {op}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_tell_of_a_failure_are_shown() {
        let quiet: Vec<&str> = vec!["line"; 30];
        assert_eq!(telling(&quiet), 20..30);
        assert_eq!(telling(&quiet[..3]), 0..3);
        let mut gtest = quiet.clone();
        gtest[5] = "queue_test.cc:12: Failure";
        gtest[9] = "[  FAILED  ] Queue.Order";
        assert_eq!(telling(&gtest), 5..25);
        gtest[2] = "thread 'main' panicked at src/lib.rs:3";
        assert_eq!(telling(&gtest), 2..22);
        assert_eq!(omitted(0, "before"), None);
        assert_eq!(omitted(1, "before").as_deref(), Some("… 1 line before"));
    }
}
