//! Holds the scope as address ranges for the runtime: the code in which threads may be preempted.
//! `check::scope` computes them.

use crate::error::{Error, Result};
use heisen_inspect::maps::code_layout;
use heisen_wire::Wire;
use std::sync::atomic::Ordering::Relaxed;

/// A range of code and the preemption rule for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// One of `heisen_wire::scope`.
    pub(crate) kind: u32,
}

/// Where threads may be preempted.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The rule for all other code.
    pub(crate) default: u32,
    pub(crate) ranges: Vec<Range>,
    /// The code mappings for which the ranges were computed (`code_layout`).
    pub(crate) layout: String,
}

impl Scope {
    /// Writes the scope into the wire of a parked program.
    pub(crate) fn write(&self, wire: &Wire, pid: i32) -> Result<()> {
        if code_layout(pid) != self.layout {
            return Err(Error::Uncontrolled(
                "the program's code is not at the same addresses each time it is started, so --no-preempt and --focus \
                 cannot be used; does this machine forbid to switch off address-space randomisation (personality)?"
                    .into(),
            ));
        }
        for (slot, range) in wire.scope.iter().zip(&self.ranges) {
            slot.start.store(range.start, Relaxed);
            slot.end.store(range.end, Relaxed);
            slot.kind.store(range.kind.into(), Relaxed);
        }
        wire.scope_ranges.store(self.ranges.len() as u32, Relaxed);
        wire.scope_default.store(self.default, Relaxed);
        Ok(())
    }
}
