//! Handles an execution that hangs: it reaches no scheduling point within `--hang`, so nothing else can run.
//! It ends the check.

use crate::error::Error;
use crate::patch::Patches;
use crate::process::slots::registers;
use crate::process::zygote::Observer;
use heisen_inspect::{Symbols, View};
use heisen_trace::{Op, Stack};
use heisen_wire::{Wire, state};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Where a hanging execution was.
#[derive(Clone, Debug, Default)]
pub(super) struct Hang {
    pub(super) stack: Stack,
    pub(super) spins: bool,
    /// What the last scheduled thread was about to do, if it waits for another process.
    pub(super) waits: Option<Op>,
}

impl Hang {
    /// The function, and the program's own line that led there.
    pub(super) fn place(&self) -> String {
        let top = self.stack.0.first().map_or("an unknown place", |f| &f.function);
        let own = self.stack.place().map_or(String::new(), |f| format!(" ({} {})", f.place(), f.function));
        format!("{top}{own}")
    }
}

/// Takes the stack of a hanging program.
pub(super) struct HangWatcher<'a> {
    pub(super) runtime: &'a Path,
    pub(super) patches: &'a Patches,
    pub(super) seen: Option<Hang>,
}

impl Observer for HangWatcher<'_> {
    fn stopped(&mut self, wire: &Wire, pid: i32) {
        let mut symbols = Symbols::new();
        symbols.hide(self.runtime);
        symbols.set_moved(self.patches.moved());
        if let Ok(mut view) = View::new(&mut symbols, pid) {
            let op = Op::from_code(wire.stop.op.load(Relaxed) as u8);
            let blocked = wire
                .threads
                .get(wire.stop.thread.load(Relaxed) as usize)
                .is_some_and(|thread| thread.state.load(Relaxed) == state::BLOCKED);
            let waits = op.filter(|op| blocked && matches!(op, Op::WaitChild | Op::FileLock));
            self.seen = Some(Hang { stack: view.stack(registers(wire)), spins: false, waits });
        }
    }
}

/// The error with which the check ends at a hanging execution. `limit` is `--hang`.
pub(super) fn error(hang: &Hang, limit: Duration) -> Error {
    let seconds = limit.as_secs_f32();
    let place = hang.place();
    if let Some(op) = hang.waits {
        let what = if op == Op::WaitChild { "a child process to end" } else { "a lock on a file" };
        return Error::Uncontrolled(format!(
            "the program waited for {seconds} s for {what} in {place}, and no other thread could go on; if it only \
             takes long, raise --hang"
        ));
    }
    Error::Uncontrolled(if hang.spins {
        format!(
            "the program took {seconds} s of processor time without reaching a scheduling point, in {place}; if it \
             computes for so long, raise --hang, or give --time to let it compute until then; if it waits in a loop for \
             another thread, let the loop yield"
        )
    } else {
        format!(
            "the program blocks in {place}, a call that Heisen does not control; nothing else can run \
             meanwhile; if it only takes long, raise --hang"
        )
    })
}
