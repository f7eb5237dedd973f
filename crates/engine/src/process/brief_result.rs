//! Holds the results of executions that ended as expected and logged nothing: nearly all executions of a
//! sampler. One result is a few words, so that thousands of them fit into the processor's caches until the
//! engine takes them.

use crate::process::slots::{Run, Tail, read_fingerprint, read_skipped};
use heisen_trace::{End, Execution, Note};
use heisen_wire::{Wire, diverged, end, flag};
use std::sync::atomic::Ordering::Relaxed;

/// An execution in a runner that ended as expected and logged nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BriefResult {
    status: i32,
    steps: u32,
    threads: u32,
    /// Bits as in [`Note::in_word`].
    notes: u64,
    fingerprint: Option<u64>,
    skipped: Option<u32>,
    instrumented: bool,
}

impl BriefResult {
    /// Reads the execution in a slot. Returns `None` unless it ended with the expected exit status and has
    /// nothing else to report.
    pub(crate) fn read(wire: &Wire, number: usize, expected: i32) -> Option<BriefResult> {
        let slot = &wire.slots[number];
        let report = &slot.report;
        let well = report.end.load(Relaxed) == end::EXIT
            && slot.undone.load(Relaxed) != 0
            && slot.status.load(Relaxed) == (expected as u32 & 0xff) << 8
            && report.diverged.load(Relaxed) == diverged::NO
            && report.followed.load(Relaxed) >= slot.plan.overrides.load(Relaxed);
        let logged = [
            &report.decisions,
            &report.misuse,
            &report.panic_thread,
            &report.text,
            &report.conflicts,
            &report.counted,
        ];
        let traced = slot.plan.flags.load(Relaxed) & flag::SYMBOLIC != 0;
        if !well || traced || logged.iter().any(|count| count.load(Relaxed) != 0) {
            return None;
        }
        Some(BriefResult {
            status: expected & 0xff,
            steps: report.steps.load(Relaxed),
            threads: report.threads.load(Relaxed),
            notes: report.notes.load(Relaxed),
            fingerprint: read_fingerprint(slot),
            skipped: read_skipped(slot),
            instrumented: wire.instrumented.load(Relaxed) != 0,
        })
    }

    /// Whether there was nothing to choose. All executions are then the same.
    pub(crate) fn is_alone(self) -> bool {
        self.threads == 1 && self.notes & Note::OtherChoice.bit() == 0
    }

    /// Converts it to a complete result.
    pub(crate) fn run(self) -> Run {
        Run {
            execution: Execution {
                steps: self.steps,
                threads: self.threads,
                decisions: Vec::new(),
                touches: Vec::new(),
                end: End::Exit(self.status),
                notes: Note::in_word(self.notes).collect(),
                diverged: None,
                fingerprint: self.fingerprint,
                counted: Vec::new(),
                symbolic: None,
            },
            tail: Tail::default(),
            forked: None,
            skipped: self.skipped,
            conflicts: Vec::new(),
            instrumented: self.instrumented,
        }
    }
}
