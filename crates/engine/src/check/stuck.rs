//! An execution that does not move ends the check: nothing else can run meanwhile. Where it was, and what the user can do
//! about it.

use super::Check;
use super::driver::Driver;
use crate::check::Caveat;
use crate::error::Error;
use crate::explain::close_up::registers;
use crate::inspect::{Symbols, View};
use crate::process::zygote::Observer;
use heisen_trace::{Op, Stack};
use heisen_wire::{Wire, state};
use std::sync::atomic::Ordering::Relaxed;

/// Where an execution that did not move was.
#[derive(Clone, Debug, Default)]
pub(super) struct Stuck {
    pub(super) stack: Stack,
    pub(super) spins: bool,
    /// What the thread was about to do that was scheduled last, if it waits for another process.
    pub(super) waits: Option<Op>,
}

impl Stuck {
    /// The function, and the line of the program's own that led there.
    fn place(&self) -> String {
        let top = self.stack.0.first().map_or("an unknown place", |f| &f.function);
        let own = self.stack.place().map_or(String::new(), |f| format!(" ({} {})", f.place(), f.function));
        format!("{top}{own}")
    }
}

/// Takes the stack of a program that does not move.
pub(super) struct StuckWatcher<'a> {
    pub(super) check: &'a Check<'a>,
    pub(super) seen: Option<Stuck>,
}

impl Observer for StuckWatcher<'_> {
    fn stopped(&mut self, wire: &Wire, pid: i32) {
        let mut symbols = Symbols::new();
        symbols.hide(&self.check.runtime);
        symbols.set_moved(self.check.config.patches.moved());
        if let Ok(mut view) = View::new(&mut symbols, pid) {
            let op = Op::from_code(wire.stop.op.load(Relaxed) as u8);
            let blocked = wire
                .threads
                .get(wire.stop.thread.load(Relaxed) as usize)
                .is_some_and(|thread| thread.state.load(Relaxed) == state::BLOCKED);
            let waits = op.filter(|op| blocked && matches!(op, Op::WaitChild | Op::FileLock));
            self.seen = Some(Stuck { stack: view.stack(registers(wire)), spins: false, waits });
        }
    }
}

impl Driver<'_> {
    /// Where an execution computed for long, if one did and went on.
    pub(super) fn about_computing(&self) -> Option<Caveat> {
        let computed = self.check.computed.get()?;
        Some(Caveat::Computed { hang: self.check.config.hang, place: computed.place() })
    }

    pub(super) fn describe_stuck(&self, stuck: &Stuck) -> Error {
        let seconds = self.check.config.hang.as_secs_f32();
        let place = stuck.place();
        if let Some(op) = stuck.waits {
            let what = if op == Op::WaitChild { "a child process to end" } else { "a lock on a file" };
            return Error::Uncontrolled(format!(
                "the program waited for {seconds} s for {what} in {place}, and no other thread could go on; if it only \
                 takes long, raise --hang"
            ));
        }
        Error::Uncontrolled(if stuck.spins {
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
}
