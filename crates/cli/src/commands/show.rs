//! `heisen show`: prints a schedule file as a table of switches.

use crate::cli::args::ShowArgs;
use crate::cli::exit;
use crate::render::finding::{operation, value};
use crate::render::inputs;
use crate::render::paint::{Paint, count, print};
use crate::render::source::Sources;
use heisen_engine::Error;
use heisen_trace::Schedule;
use heisen_trace::finding::SwitchKind;
use heisen_trace::schedule::Entry;
use std::fmt::Write;
use std::path::Path;

/// Reads a schedule file.
pub fn read(path: &Path) -> Result<Schedule, Error> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Input(format!("{shown}: not found; name a schedule file that heisen check has written"))
        }
        std::io::ErrorKind::IsADirectory => {
            Error::Input(format!("{shown} is a directory, not a schedule file; name a file in it"))
        }
        _ => Error::Input(format!("{shown}: {e}")),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Error::Input(format!("{shown} is not a schedule file; name one that heisen check has written"))
    })?;
    Schedule::parse(&text).map_err(|e| Error::Input(format!("{shown}: {e}")))
}

pub fn run(args: &ShowArgs) -> Result<u8, Error> {
    let schedule = read(&args.schedule)?;
    print(&render(&schedule, Paint::new(args.color)), false);
    Ok(exit::CLEAN)
}

fn render(schedule: &Schedule, paint: Paint) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, schedule, paint);
    out
}

/// The number of switches between threads, and of choices that are not about threads.
fn counted(schedule: &Schedule) -> String {
    let values = schedule.entries.iter().filter(|e| e.kind.is_value()).count();
    let switches = schedule.entries.len() - values;
    let switches = count(switches as u64, "switch").replace("switchs", "switches");
    if values == 0 { switches } else { format!("{switches} and {}", count(values as u64, "other choice")) }
}

/// The operation that the thread was about to do. For a choice that is not about threads, also the choice.
fn before(entry: &Entry) -> String {
    let operation = operation(entry.op, &entry.object);
    match entry.kind {
        SwitchKind::Choose(_) => value(entry.kind, entry.options),
        kind if kind.is_value() => format!("{operation}: {}", value(kind, entry.options)),
        _ => operation,
    }
}

fn write(out: &mut String, schedule: &Schedule, paint: Paint) -> std::fmt::Result {
    writeln!(out, "program  {}", String::from_utf8_lossy(&schedule.program))?;
    if !schedule.args.is_empty() {
        let args: Vec<_> = schedule.args.iter().map(|a| String::from_utf8_lossy(a)).collect();
        writeln!(out, "args     {}", args.join(" "))?;
    }
    match &schedule.outcome {
        Some((kind, message)) => writeln!(out, "outcome  {}: {message}", paint.bad(kind))?,
        None => writeln!(out, "outcome  {}", paint.good("ended well"))?,
    }
    for t in &schedule.threads {
        writeln!(out, "{:<8} {} {}", paint.thread(t.thread), t.start, paint.faint(format!("({})", t.path)))?;
    }
    if !schedule.inputs.is_empty() {
        writeln!(out, "\ninputs")?;
        for line in inputs::lines(&schedule.inputs, &schedule.threads) {
            writeln!(out, "  {line}")?;
        }
    }
    let preemptions = schedule.preemptions();
    writeln!(
        out,
        "\n{} from the default schedule, {}",
        counted(schedule),
        count(preemptions.into(), "preemption")
    )?;
    if schedule.entries.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", paint.faint("   step  switch      kind     before"))?;
    let mut sources = Sources::default();
    for e in &schedule.entries {
        let switch = if e.kind.is_value() { e.from.to_string() } else { format!("{} → {}", e.from, e.to) };
        writeln!(
            out,
            "{:>7}  {switch:<10}  {:<7}  {}  {}",
            e.step,
            e.kind.name(),
            before(e),
            paint.faint(&e.place)
        )?;
        let place = e.place.split(' ').next().and_then(|p| p.rsplit_once(':'));
        if let Some((file, line)) = place
            && let Ok(line) = line.parse()
            && let Some(text) = sources.line(file, line)
        {
            writeln!(out, "{:>29}  {}", "", paint.faint(text))?;
        }
    }
    Ok(())
}
