//! Names objects at the pauses of a close-up. An object has one name in the whole close-up, unless its memory gets a
//! new use.

use crate::process::slots::{registers, report_of, saved_registers};
use heisen_inspect::View;
use heisen_inspect::names::{LiveStack, Named, Target};
use heisen_trace::Stack;
use heisen_wire::{Wire, state, stop};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// The block of the heap in which an address lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeapBlock {
    /// Its number, in the order of allocation.
    pub(super) serial: u64,
    pub(super) range: Range<u64>,
    pc: u64,
}

impl HeapBlock {
    /// The block that the runtime has reported for the object of this pause.
    pub(super) fn reported(wire: &Wire, address: u64) -> Option<HeapBlock> {
        let heap = &wire.heap;
        let told = matches!(wire.stop.reason.load(Relaxed), stop::EVENT | stop::WATCHED | stop::CONFLICT);
        let serial = heap.serial.load(Relaxed);
        if !told || serial == 0 {
            return None;
        }
        let start = address.checked_sub(heap.offset.load(Relaxed))?;
        let range = start..start.checked_add(heap.size.load(Relaxed))?;
        Some(HeapBlock { serial, range, pc: heap.alloc_pc.load(Relaxed) })
    }

    /// The block and the position of an address in it, in words.
    pub(super) fn words(&self, view: &mut View<'_>, address: u64) -> String {
        let stack = Stack(view.frame_at(self.pc, true));
        let which = match stack.place().filter(|frame| frame.own && frame.line.is_some()) {
            Some(frame) => format!("heap block allocated at {}", frame.place()),
            None => format!("a block of {} bytes from malloc", self.range.end - self.range.start),
        };
        match address - self.range.start {
            0 => which,
            // A comma and a space separate the names of several objects.
            offset => format!("{which} (offset {offset})"),
        }
    }
}

/// The functions that the threads have not left, at a pause.
pub(super) fn live_stacks(view: &View<'_>, wire: &Wire) -> Vec<LiveStack> {
    let running = wire.stop.thread.load(Relaxed) as usize;
    let count = report_of(wire).threads.load(Relaxed) as usize;
    let live = wire.threads.iter().enumerate().take(count).filter_map(|(number, t)| {
        let registers = match t.state.load(Relaxed) {
            state::NEW => return None,
            // The thread-local memory of a thread exists until the thread is joined.
            state::ENDED => return Some(LiveStack::ended(number as u16, t.handle.load(Relaxed))),
            _ if number == running => registers(wire),
            _ => saved_registers(view, t.sp.load(Relaxed))?,
        };
        Some(view.live_stack(number as u16, t.handle.load(Relaxed), registers))
    });
    live.collect()
}

/// The names given so far.
#[derive(Debug, Default)]
pub(super) struct Namer {
    known: HashMap<u64, Named>,
    /// The bases of the objects that have a name.
    bases: HashMap<String, Vec<u64>>,
    /// The stacks at this pause, once they are needed.
    stacks: Option<Vec<LiveStack>>,
}

impl Namer {
    /// A new pause begins.
    pub(super) fn at_pause(&mut self) {
        self.stacks = None;
    }

    /// The name of the object at an address: a variable, a block of the heap, or the address.
    pub(super) fn name(&mut self, view: &mut View<'_>, wire: &Wire, address: u64) -> String {
        if let Some(name) = self.variable(view, wire, address) {
            return name;
        }
        let block = HeapBlock::reported(wire, address);
        block.map_or_else(|| format!("{address:#x}"), |block| block.words(view, address))
    }

    /// The path from a variable to the object at an address.
    pub(super) fn variable(&mut self, view: &View<'_>, wire: &Wire, address: u64) -> Option<String> {
        if let Some(name) = view.global_name(address) {
            return Some(name);
        }
        let stacks = self.stacks.get_or_insert_with(|| live_stacks(view, wire));
        let block = HeapBlock::reported(wire, address).map(|block| block.range);
        let target = Target { address, size: 0, block };
        let named = match (self.known.get(&address), view.name(&target, stacks)) {
            // A variable of a function that began later has taken the place of another.
            (Some(old), Some(new)) if new.pointers == 0 && old.base != new.base => new,
            (Some(old), _) => old.clone(),
            (None, new) => new?,
        };
        let text = self.distinct(&named);
        self.known.insert(address, named);
        Some(text)
    }

    /// The name, with a number if another object has it already.
    pub(super) fn distinct(&mut self, named: &Named) -> String {
        let bases = self.bases.entry(named.text.clone()).or_default();
        let number = bases.iter().position(|base| *base == named.base).unwrap_or_else(|| {
            bases.push(named.base);
            bases.len() - 1
        });
        if number == 0 { named.text.clone() } else { format!("{} #{}", named.text, number + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_objects_of_one_name_are_numbered() {
        let mut namer = Namer::default();
        let named = |base| Named { text: "node->lock".into(), pointers: 1, order: 1, base, value: None };
        let names = [64, 128, 64].map(|base| namer.distinct(&named(base)));
        assert_eq!(names, ["node->lock", "node->lock #2", "node->lock"]);
    }
}
