//! Writes a schedule file. Default values are left out, so that files stay short.

use super::{InputLine, Schedule, VERSION};
use crate::access::CodePlace;
use crate::decision::PATIENCE;
use crate::finding::SwitchKind;
use crate::marked::Source;
use crate::stdin::Stdin;
use crate::world::TIMEOUTS;
use std::fmt::{self, Write};

impl Schedule {
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
        if self.symbolic {
            out.push_str("symbolic\n");
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
        for InputLine { path, number, width, value, name } in &self.inputs {
            writeln!(out, "input {path} {number} {width} {value} {}", quote(name.as_bytes()))?;
        }
        if self.symmetry {
            out.push_str("symmetry\n");
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
        if world.patience != PATIENCE {
            writeln!(out, "patience {}", world.patience)?;
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
        for mark in &world.marked {
            match &mark.source {
                Source::Stdin => writeln!(out, "mark stdin {}", mark.bytes)?,
                Source::Argument(index) => writeln!(out, "mark argv {} {index}", mark.bytes)?,
                Source::File(path) => writeln!(out, "mark file {} {}", mark.bytes, quote(path))?,
            }
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
