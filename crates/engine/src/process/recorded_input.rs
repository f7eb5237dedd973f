//! Handles recorded input: the log of input from outside that the runtime writes to the wire, as bytes and as
//! a file beside the schedule.

use crate::error::Result;
use crate::process::stdin;
use crate::program::hash;
use heisen_trace::{Execution, Note, Schedule};
use heisen_wire::{MAX_INPUT, Wire, input};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Notes of an execution that a log cannot repeat: other processes affected it in ways other than through
/// descriptors.
const NOT_LOGGED: [Note; 6] =
    [Note::Fork, Note::Spawn, Note::Exec, Note::HelperThread, Note::OutsideSignal, Note::RealTime];

/// Whether the last execution received input from outside, or waited for it in vain.
pub(crate) fn took_part(wire: &Wire, execution: &Execution) -> bool {
    let noted = |note| execution.notes.contains(&note);
    wire.input_state.load(Relaxed) & input::USED != 0 || noted(Note::Outside) || noted(Note::OutsideSilent)
}

/// The log of the last execution, if it received input from outside and the log is complete.
pub(crate) fn recorded(wire: &Wire, execution: &Execution) -> Option<Arc<[u8]>> {
    let whole = wire.input_state.load(Relaxed) & input::INCOMPLETE == 0
        && !NOT_LOGGED.iter().any(|note| execution.notes.contains(note));
    let length = (wire.input_length.load(Relaxed) as usize).min(MAX_INPUT);
    (whole && took_part(wire, execution))
        .then(|| wire.input[..length].iter().map(|byte| byte.load(Relaxed)).collect())
}

/// Prepares the wire for the next execution: with a log to be replayed, or an empty one.
pub(crate) fn give(wire: &Wire, log: Option<&[u8]>) {
    let log = log.unwrap_or_default();
    for (slot, &byte) in wire.input.iter().zip(log) {
        slot.store(byte, Relaxed);
    }
    wire.input_length.store(log.len().min(MAX_INPUT) as u32, Relaxed);
    wire.input_state.store(0, Relaxed);
}

/// Name and hash of the file for a log, as the schedule of program `name` records them.
pub fn beside(name: &str, log: &[u8]) -> (String, String) {
    let hash = hash(log);
    (format!("{name}-{}.input", &hash[..8]), hash)
}

/// Reads the log that the schedule in `file` names, if it names one.
pub fn fetch(schedule: &Schedule, file: &Path) -> Result<Option<Arc<[u8]>>> {
    let Some((name, hash)) = &schedule.input else { return Ok(None) };
    stdin::read_beside(file, name, hash, "recorded input").map(|bytes| Some(bytes.into()))
}
