//! Renders a data race for the screen and as JSON: both accesses, with the locks that their threads held.

use crate::render::finding::Screen;
use crate::render::source::Sources;
use heisen_trace::race::{Access, Race};
use heisen_trace::{Finding, Frame};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// The largest number of stack frames shown.
const MAX_FRAMES: usize = 12;

impl Screen<'_> {
    /// Writes both accesses of a race.
    pub fn race(
        &self,
        out: &mut String,
        finding: &Finding,
        race: &Race,
        sources: &mut Sources,
    ) -> std::fmt::Result {
        self.access(out, finding, &race.first, sources)?;
        self.access(out, finding, &race.second, sources)
    }

    fn access(
        &self,
        out: &mut String,
        finding: &Finding,
        access: &Access,
        sources: &mut Sources,
    ) -> std::fmt::Result {
        let place =
            access.stack.place().map_or(String::new(), |f| format!(", {} at {}", f.function, f.place()));
        writeln!(out, "\n  {} {}{place}", self.who(finding, access.thread), access.does())?;
        self.line(out, &access.stack, sources)?;
        for (number, frame) in access.stack.0.iter().enumerate().take(MAX_FRAMES) {
            let text = format!("#{number} {}{}", frame.function, place_of(frame));
            writeln!(out, "    {}", self.paint.faint(text))?;
        }
        if let Some(more @ 1..) = access.stack.0.len().checked_sub(MAX_FRAMES) {
            writeln!(out, "    {}", self.paint.faint(format!("… and {more} more (the JSON lists all)")))?;
        }
        if access.holds.is_empty() {
            writeln!(out, "    holds no lock")?;
        }
        for held in &access.holds {
            writeln!(out, "    holds {} since {}", held.object, held.place)?;
        }
        Ok(())
    }
}

/// The place of a frame; empty if its line is unknown.
fn place_of(frame: &Frame) -> String {
    if frame.line.is_some() { format!("  {}", frame.place()) } else { String::new() }
}

/// A race as JSON, with the schedule file that leads to it; `None` if the finding is not a race.
pub fn json(finding: &Finding, schedule: &Path) -> Option<Value> {
    let race = finding.race.as_ref()?;
    Some(json!({
        "first": access(finding, &race.first),
        "second": access(finding, &race.second),
        "object": race.object,
        "executions": race.executions,
        "schedule": schedule.display().to_string(),
        "signature": finding.signature,
    }))
}

fn access(finding: &Finding, access: &Access) -> Value {
    let start = finding.schedule.threads.iter().find(|t| t.thread == access.thread).map(|t| t.start.as_str());
    let frame =
        |f: &Frame| json!({ "function": f.function, "file": f.file, "line": f.line, "module": f.module });
    let held: Vec<Value> =
        access.holds.iter().map(|h| json!({ "object": h.object, "place": h.place })).collect();
    json!({
        "access": access.kind(),
        "size": access.size,
        "thread": access.thread.to_string(),
        "start": start,
        "place": access.stack.place().map(|f| f.place()),
        "function": access.stack.place().map(|f| f.function.as_str()),
        "stack": access.stack.0.iter().map(frame).collect::<Vec<_>>(),
        "locks": held,
    })
}
