//! The theory of orders: events, and literals each of which puts one event before another. It finds each literal that
//! follows from the edges of the current assignment, and refutes an assignment whose edges form a cycle.
//!
//! Events that come one after another in every solution, such as those of a thread, form chains. For each event and chain
//! a clock says how many events of the chain come before the event or are it (vector clocks; Fidge, 1988; Mattern,
//! 1989), so whether an event reaches another is one comparison. Each rise of a clock is recorded with the edge that
//! caused it: backtracking takes records away, and a reason is found by following the oldest records that suffice.

use crate::sat::{Lit, Theory, Var};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens, before or after other events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    /// The literal that stands for the edge; `None` for an edge that is always there.
    reason: Option<Lit>,
}

/// What a variable means.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    first: u32,
    second: u32,
    /// Whether the negation means nothing. Otherwise it is the opposite order.
    one_sided: bool,
}

/// A clock of an event rose.
#[derive(Clone, Copy, Debug)]
struct Rise {
    event: u32,
    chain: u32,
    clock: u32,
    /// The edge that caused it: where it comes from, and its literal.
    from: u32,
    reason: Option<Lit>,
    /// The record before it of the same clock.
    previous: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    /// Its chain, once it has edges or literals.
    chain: u32,
    place: u32,
    out: Vec<Edge>,
    /// By chain: the newest record of the clock.
    clocks: Vec<u32>,
    /// By chain: the places of events there, in order, and the literal that follows when such an event reaches this one.
    awaited: Vec<Vec<(u32, Lit)>>,
}

/// All events, and the edges of the current assignment.
#[derive(Debug, Default)]
pub struct Orders {
    nodes: Vec<Node>,
    /// By chain: its last event.
    tails: Vec<u32>,
    /// By variable.
    meanings: Vec<Option<Meaning>>,
    rises: Vec<Rise>,
    /// For each literal of the current assignment: how many records there were before it, and where its edge begins.
    assigned: Vec<(u32, u32)>,
    /// Literals that follow from the edges that are always there.
    fixed: Vec<Lit>,
    /// The events of the last model, in order.
    model: Vec<Event>,
}

impl Orders {
    /// Adds an event.
    pub fn event(&mut self) -> Event {
        let number = u32::try_from(self.nodes.len()).expect("fewer than 2^32 events");
        let (clocks, awaited) = (Vec::new(), Vec::new());
        self.nodes.push(Node { chain: NONE, place: 0, out: Vec::new(), clocks, awaited });
        Event(number)
    }

    /// The number of events.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Declares that a variable, when true, puts one event before another; when false, after it, unless it is
    /// one-sided. Not during a search.
    pub(crate) fn declare(&mut self, var: Var, first: Event, second: Event, one_sided: bool) {
        let (first, second) = (first.0, second.0);
        self.place(first);
        self.place(second);
        if self.meanings.len() <= var.index() {
            self.meanings.resize(var.index() + 1, None);
        }
        self.meanings[var.index()] = Some(Meaning { first, second, one_sided });
        let lit = Lit::new(var, true);
        self.wait(second, first, !lit);
        if !one_sided {
            self.wait(first, second, lit);
        }
    }

    /// Waits for an event to reach another.
    fn wait(&mut self, from: u32, to: u32, lit: Lit) {
        if self.reaches(from, to) {
            self.fixed.push(lit);
        }
        let Node { chain, place, .. } = self.nodes[from as usize];
        let awaited = &mut self.nodes[to as usize].awaited;
        if awaited.len() <= chain as usize {
            awaited.resize(chain as usize + 1, Vec::new());
        }
        let list = &mut awaited[chain as usize];
        list.insert(list.partition_point(|&(other, _)| other <= place), (place, lit));
    }

    /// Puts an event on a chain of its own, if it is on none.
    fn place(&mut self, event: u32) {
        let node = &mut self.nodes[event as usize];
        if node.chain == NONE {
            node.chain = self.tails.len() as u32;
            self.tails.push(event);
        }
    }

    /// Puts an event before another for good. Returns whether that is possible. Not during a search.
    pub fn fix(&mut self, from: Event, to: Event) -> bool {
        let (from, to) = (from.0, to.0);
        self.place(from);
        let chain = self.nodes[from as usize].chain;
        if self.nodes[to as usize].chain == NONE && self.tails[chain as usize] == from {
            let place = self.nodes[from as usize].place + 1;
            let node = &mut self.nodes[to as usize];
            (node.chain, node.place) = (chain, place);
            self.tails[chain as usize] = to;
        } else {
            self.place(to);
            if self.reaches(to, from) {
                return false;
            }
            if self.reaches(from, to) {
                return true;
            }
        }
        let mut implied = std::mem::take(&mut self.fixed);
        self.insert(from, Edge { to, reason: None }, &mut implied);
        self.fixed = implied;
        true
    }

    /// The literals that follow from edges that are always there, since the last call.
    pub(crate) fn take_fixed(&mut self) -> Vec<Lit> {
        std::mem::take(&mut self.fixed)
    }

    /// Whether one event is always before another.
    pub(crate) fn is_fixed(&self, first: Event, second: Event) -> bool {
        let placed = |event: Event| self.nodes[event.0 as usize].chain != NONE;
        first != second && placed(first) && placed(second) && self.reaches(first.0, second.0)
    }

    /// All events of the last model, in order.
    pub fn model(&self) -> &[Event] {
        &self.model
    }

    /// How many events of a chain are before an event or are it.
    fn clock(&self, event: u32, chain: u32) -> u32 {
        let node = &self.nodes[event as usize];
        if node.chain == chain {
            return node.place + 1;
        }
        match node.clocks.get(chain as usize) {
            Some(&record) if record != NONE => self.rises[record as usize].clock,
            _ => 0,
        }
    }

    /// Whether an event is another one or before it.
    fn reaches(&self, first: u32, second: u32) -> bool {
        let node = &self.nodes[first as usize];
        self.clock(second, node.chain) > node.place
    }

    /// Adds an edge that closes no cycle and is not implied by others.
    fn insert(&mut self, from: u32, edge: Edge, implied: &mut Vec<Lit>) {
        let mut next = self.rises.len();
        self.nodes[from as usize].out.push(edge);
        for chain in 0..self.tails.len() as u32 {
            let clock = self.clock(from, chain);
            self.raise(chain, clock, from, edge, implied);
        }
        while let Some(&Rise { event, chain, clock, .. }) = self.rises.get(next) {
            // A later record has more.
            if self.nodes[event as usize].clocks[chain as usize] == next as u32 {
                for at in 0..self.nodes[event as usize].out.len() {
                    let edge = self.nodes[event as usize].out[at];
                    self.raise(chain, clock, event, edge, implied);
                }
            }
            next += 1;
        }
    }

    /// Raises a clock of the event that an edge leads to.
    fn raise(&mut self, chain: u32, clock: u32, from: u32, edge: Edge, implied: &mut Vec<Lit>) {
        let before = self.clock(edge.to, chain);
        if before >= clock {
            return;
        }
        let node = &mut self.nodes[edge.to as usize];
        if node.clocks.len() <= chain as usize {
            node.clocks.resize(chain as usize + 1, NONE);
        }
        let previous = std::mem::replace(&mut node.clocks[chain as usize], self.rises.len() as u32);
        self.rises.push(Rise { event: edge.to, chain, clock, from, reason: edge.reason, previous });
        if let Some(list) = node.awaited.get(chain as usize) {
            let first = list.partition_point(|&(place, _)| place < before);
            let newly = list[first..].iter().take_while(|&&(place, _)| place < clock);
            implied.extend(newly.map(|&(_, lit)| lit));
        }
    }

    /// The literals of the edges on a path from an event to another one that it reaches.
    fn path(&self, first: u32, second: u32, reasons: &mut Vec<Lit>) {
        let Node { chain, place, .. } = self.nodes[first as usize];
        let mut event = second;
        while self.nodes[event as usize].chain != chain {
            let mut record = self.rises[self.nodes[event as usize].clocks[chain as usize] as usize];
            // The oldest record that suffices has the oldest reasons.
            while record.previous != NONE && self.rises[record.previous as usize].clock > place {
                record = self.rises[record.previous as usize];
            }
            reasons.extend(record.reason);
            event = record.from;
        }
    }

    /// The edge that a literal stands for.
    fn edge(&self, lit: Lit) -> Option<(u32, u32)> {
        match self.meanings[lit.var().index()]? {
            Meaning { first, second, .. } if lit.sign() => Some((first, second)),
            Meaning { one_sided: true, .. } => None,
            Meaning { first, second, .. } => Some((second, first)),
        }
    }

    /// Puts all events in an order that the current edges allow; of two possible events, the older one comes first.
    fn sort(&mut self) {
        let mut before = vec![0_u32; self.nodes.len()];
        self.nodes.iter().flat_map(|node| &node.out).for_each(|edge| before[edge.to as usize] += 1);
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..).zip(&before).filter(|(_, count)| **count == 0).map(|(event, _)| Reverse(event)).collect();
        self.model.clear();
        while let Some(Reverse(event)) = ready.pop() {
            self.model.push(Event(event));
            for edge in &self.nodes[event as usize].out {
                before[edge.to as usize] -= 1;
                if before[edge.to as usize] == 0 {
                    ready.push(Reverse(edge.to));
                }
            }
        }
        debug_assert_eq!(self.model.len(), self.nodes.len(), "there is no cycle");
    }
}

impl Theory for Orders {
    fn assign(&mut self, lit: Lit, implied: &mut Vec<Lit>, conflict: &mut Vec<Lit>) -> bool {
        let records = self.rises.len() as u32;
        let Some((from, to)) = self.edge(lit) else {
            self.assigned.push((records, NONE));
            return true;
        };
        if self.reaches(to, from) {
            self.path(to, from, conflict);
            conflict.push(lit);
            return false;
        }
        if self.reaches(from, to) {
            self.assigned.push((records, NONE));
            return true;
        }
        self.assigned.push((records, from));
        self.insert(from, Edge { to, reason: Some(lit) }, implied);
        true
    }

    fn retract(&mut self) {
        let Some((records, from)) = self.assigned.pop() else { return };
        for rise in self.rises.drain(records as usize..).rev() {
            self.nodes[rise.event as usize].clocks[rise.chain as usize] = rise.previous;
        }
        if from != NONE {
            // The newest edge is the last one.
            self.nodes[from as usize].out.pop();
        }
    }

    fn explain(&mut self, lit: Lit, reasons: &mut Vec<Lit>) {
        let Some(Meaning { first, second, .. }) = self.meanings[lit.var().index()] else { return };
        match lit.sign() {
            true => self.path(first, second, reasons),
            false => self.path(second, first, reasons),
        }
    }

    fn complete(&mut self) {
        self.sort();
    }
}
