//! Finds threads that wait for someone outside the program. If nobody comes, that is not the program's fault.

use crate::process::descriptor;
use crate::process::descriptor::Endpoint;
use crate::process::slots::report_of;
use heisen_trace::{Note, Op, ThreadId};
use heisen_wire::{Wire, state};
use std::sync::atomic::Ordering::Relaxed;

/// What the blocked threads of a program wait for outside, such as
/// `T0 waits on descriptor 3 for a connection to 127.0.0.1:80`. Empty if no thread waits for the outside. The
/// other end of a pipe does not count if it may belong to a process that the program started itself.
pub(super) fn waits(wire: &Wire, pid: i32) -> Vec<String> {
    let report = report_of(wire);
    let noted = |note: Note| report.notes.load(Relaxed) & 1 << (note as u8) != 0;
    if !noted(Note::OutsideSilent) {
        return Vec::new();
    }
    let alone = !noted(Note::Fork) && !noted(Note::Spawn);
    let mut waits = Vec::new();
    for (number, thread) in wire.threads.iter().enumerate().take(report.threads.load(Relaxed) as usize) {
        let op = Op::from_code(thread.op.load(Relaxed) as u8);
        if thread.state.load(Relaxed) == state::ENDED || !op.is_some_and(Op::is_on_descriptor) {
            continue;
        }
        let fd = thread.object.load(Relaxed);
        let mut leads = descriptor::leads(pid, fd);
        leads.retain(|(_, lead)| alone || lead.is_outside());
        if leads.is_empty() && op == Some(Op::Poll) {
            // If a thread waits for several descriptors, only the first is known.
            let listening = descriptor::listening(pid).into_iter();
            leads.extend(listening.map(|(fd, address)| (fd, Endpoint::Listens(address))));
        }
        let who = ThreadId(number as u16);
        waits.extend(
            leads.iter().map(|(fd, lead)| format!("{who} waits on descriptor {fd} for {}", lead.wish())),
        );
        if leads.is_empty() && alone {
            let what = descriptor::target(pid, fd).map_or_else(String::new, |target| format!(" ({target})"));
            waits.push(format!("{who} waits on descriptor {fd}{what}"));
        }
    }
    waits
}
