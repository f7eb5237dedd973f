//! Reads-from: each read takes its value from the last write before it (Cortex, section 2.3, "read-write constraints").
//!
//! Memory is divided into *cells*, so that each access covers whole cells. Where all accesses agree, a cell is the word
//! that they access. An access with another boundary splits a cell; what was said of the cell is then no longer assumed.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::tree::{Key, NodeId, Relation, Tree};
use heisen_solver::{Formula, Op, Term};
use std::collections::{BTreeMap, HashMap};

/// An access, as far as memory is concerned.
#[derive(Clone, Copy, Debug)]
struct Access {
    node: NodeId,
    address: u64,
    /// The unknown of a read, or the value of a write.
    value: Term,
}

/// What a read may take its value from.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// `None` for the initial value.
    write: Option<NodeId>,
    chosen: Term,
}

struct Read {
    access: Access,
    sources: Vec<Source>,
    list: List,
}

struct Cell {
    length: u64,
    subject: Subject,
    reads: Vec<Read>,
    writes: Vec<Access>,
    initial: Term,
}

/// All cells, and what memory holds at first.
#[derive(Default)]
pub struct Memory {
    /// By address.
    cells: BTreeMap<u64, Cell>,
    /// The bytes that executions have read before anything was written there.
    initial: HashMap<u64, u8>,
    /// Whether executions have disagreed about such a byte.
    pub contradicted: bool,
    /// The pairs of accesses of different threads, one of them a write, that touch the same memory; those that were not
    /// taken from here. `None` if nobody asks for them.
    pub conflicts: Option<Vec<(NodeId, NodeId)>>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("cells", &self.cells.len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// How many bytes are known that memory holds at first.
    pub fn known(&self) -> usize {
        self.initial.len()
    }

    /// An execution has read a byte before anything was written there.
    pub fn learn(&mut self, clauses: &mut Clauses, address: u64, byte: u8) {
        if let Some(known) = self.initial.insert(address, byte) {
            self.contradicted |= known != byte;
            return;
        }
        let covering = self.cells.range(..=address).next_back();
        if let Some((&start, cell)) = covering.filter(|(start, cell)| address - **start < cell.length) {
            let holds = is_byte(clauses, cell.initial, address - start, byte);
            clauses.clause([holds]);
        }
    }

    /// Adds the unknown of a read.
    pub fn add_read(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, at: (u64, u8), value: Term) {
        let access = Access { node, address: at.0, value };
        for start in self.cover(clauses, tree, at) {
            self.read_cell(clauses, tree, start, access);
        }
    }

    /// Adds the value of a write.
    pub fn add_write(
        &mut self,
        clauses: &mut Clauses,
        tree: &Tree,
        node: NodeId,
        at: (u64, u8),
        value: Term,
    ) {
        let access = Access { node, address: at.0, value };
        for start in self.cover(clauses, tree, at) {
            let Some(cell) = self.cells.get_mut(&start) else { continue };
            if let Some(conflicts) = &mut self.conflicts {
                let others = cell.writes.iter().map(|other| other.node);
                let beside = others.filter(|&other| tree.relation(node, other) == Relation::Concurrent);
                conflicts.extend(beside.map(|other| (other, node)));
            }
            cell.writes.push(access);
            let length = cell.length;
            for read in &mut cell.reads {
                let relation = tree.relation(node, read.access.node);
                if relation == Relation::Concurrent {
                    if let Some(conflicts) = &mut self.conflicts {
                        conflicts.push((read.access.node, node));
                    }
                    read.add_source(clauses, tree, access, start, length, relation);
                }
            }
        }
    }

    /// The cells of an access, made if necessary.
    fn cover(&mut self, clauses: &mut Clauses, tree: &Tree, (address, size): (u64, u8)) -> Vec<u64> {
        let end = address + u64::from(size);
        self.split(clauses, tree, address);
        self.split(clauses, tree, end);
        let mut at = address;
        let mut all = Vec::new();
        while at < end {
            let next = self.cells.range(at..end).next().map_or(end, |(&start, _)| start);
            if next > at {
                self.make(clauses, at, next - at);
            }
            all.push(at);
            at += self.cells[&at].length;
        }
        all
    }

    fn make(&mut self, clauses: &mut Clauses, start: u64, length: u64) {
        let subject = clauses.subject();
        let initial = clauses.solver.terms.unknown(8 * length as u32);
        for offset in 0..length {
            if let Some(&byte) = self.initial.get(&(start + offset)) {
                let holds = is_byte(clauses, initial, offset, byte);
                clauses.clause([holds]);
            }
        }
        let (reads, writes) = (Vec::new(), Vec::new());
        self.cells.insert(start, Cell { length, subject, reads, writes, initial });
    }

    /// Sees to it that no cell has this address inside.
    fn split(&mut self, clauses: &mut Clauses, tree: &Tree, address: u64) {
        let covering = self.cells.range(..address).next_back();
        let Some((&start, cell)) = covering.filter(|(start, cell)| address - **start < cell.length) else {
            return;
        };
        clauses.retire(cell.subject);
        let length = cell.length;
        let Some(cell) = self.cells.remove(&start) else { return };
        for (start, length) in [(start, address - start), (address, start + length - address)] {
            self.make(clauses, start, length);
            if let Some(part) = self.cells.get_mut(&start) {
                part.writes.clone_from(&cell.writes);
            }
            for read in &cell.reads {
                self.read_cell(clauses, tree, start, read.access);
            }
        }
    }

    /// Adds a read of a cell.
    fn read_cell(&mut self, clauses: &mut Clauses, tree: &Tree, start: u64, access: Access) {
        let Some(cell) = self.cells.get_mut(&start) else { return };
        let list = clauses.list(cell.subject, on(tree[access.node].active));
        let mut read = Read { access, sources: Vec::new(), list };
        let related: Vec<(Access, Relation)> =
            cell.writes.iter().map(|&write| (write, tree.relation(write.node, access.node))).collect();
        let earlier = related.iter().filter(|(_, relation)| *relation == Relation::Before);
        // Of the writes that come before wherever the read comes, only the last one counts.
        match earlier.max_by_key(|(write, _)| tree.depth(write.node)) {
            Some(&(last, relation)) => {
                read.add_source(clauses, tree, last, start, cell.length, relation);
            }
            None => {
                let initial = Access { node: access.node, address: start, value: cell.initial };
                read.add_initial(clauses, initial, cell.length);
            }
        }
        for &(write, relation) in related.iter().filter(|(_, relation)| *relation == Relation::Concurrent) {
            if let Some(conflicts) = &mut self.conflicts {
                conflicts.push((write.node, access.node));
            }
            read.add_source(clauses, tree, write, start, cell.length, relation);
        }
        if let Some(conflicts) = &mut self.conflicts {
            let others = cell.reads.iter().map(|other| other.access.node);
            let beside = others.filter(|&other| {
                (is_update(tree, other) || is_update(tree, access.node))
                    && tree.relation(other, access.node) == Relation::Concurrent
            });
            conflicts.extend(beside.map(|other| (other, access.node)));
        }
        cell.reads.push(read);
    }
}

impl Read {
    /// The read may take its value from the initial one.
    fn add_initial(&mut self, clauses: &mut Clauses, initial: Access, length: u64) {
        let chosen = clauses.fresh();
        let same = self.same(clauses, initial, initial.address, length);
        clauses.clause([off(chosen), same]);
        self.sources.push(Source { write: None, chosen });
        clauses.extend(self.list, on(chosen));
    }

    /// The read may take its value from this write.
    fn add_source(
        &mut self,
        clauses: &mut Clauses,
        tree: &Tree,
        write: Access,
        start: u64,
        length: u64,
        relation: Relation,
    ) {
        let chosen = clauses.fresh();
        clauses.clause([off(chosen), on(tree[write.node].active)]);
        if relation == Relation::Concurrent {
            clauses.clause([off(chosen), before(tree[write.node].event, tree[self.access.node].event)]);
        }
        let same = self.same(clauses, write, start, length);
        clauses.clause([off(chosen), same]);
        for &other in &self.sources {
            self.nothing_between(clauses, tree, other, write.node);
        }
        let source = Source { write: Some(write.node), chosen };
        for other in self.sources.iter().filter_map(|other| other.write) {
            self.nothing_between(clauses, tree, source, other);
        }
        self.sources.push(source);
        clauses.extend(self.list, on(chosen));
    }

    /// If the read takes its value from this source, this other write is not between the two.
    fn nothing_between(&self, clauses: &mut Clauses, tree: &Tree, source: Source, other: NodeId) {
        let relation = source.write.map_or(Relation::After, |write| tree.relation(other, write));
        if matches!(relation, Relation::Before | Relation::Exclusive) {
            return;
        }
        let (event, read) = (tree[other].event, tree[self.access.node].event);
        let mut clause = vec![off(source.chosen), off(tree[other].active)];
        if let Some(write) = source.write.filter(|_| relation == Relation::Concurrent) {
            clause.push(before(event, tree[write].event));
        }
        if !tree.is_before(other, self.access.node) {
            clause.push(before(read, event));
        }
        clauses.clause(clause);
    }

    /// That the bytes of a cell are the same in the read and in what it takes them from.
    fn same(&self, clauses: &mut Clauses, from: Access, start: u64, length: u64) -> Formula {
        let mut part = |access: Access| bytes(clauses, access.value, start - access.address, length);
        let (read, written) = (part(self.access), part(from));
        clauses.solver.same(read, written)
    }
}

/// Whether a read belongs to an atomic update, which counts as a write where accesses conflict.
fn is_update(tree: &Tree, node: NodeId) -> bool {
    matches!(tree[node].key, Key::Read { update: true, .. })
}

/// Some bytes of a value, which lies in memory with its lowest byte first.
fn bytes(clauses: &mut Clauses, value: Term, offset: u64, length: u64) -> Term {
    let terms = &mut clauses.solver.terms;
    let width = terms.width(value);
    let shifted = match offset {
        0 => value,
        offset => {
            let distance = terms.constant(width, u128::from(8 * offset));
            terms.apply(Op::LShr, &[value, distance])
        }
    };
    terms.resize(Op::ZExt, 8 * length as u32, shifted)
}

fn is_byte(clauses: &mut Clauses, value: Term, offset: u64, byte: u8) -> Formula {
    let part = bytes(clauses, value, offset, 1);
    let byte = clauses.solver.terms.constant(8, byte.into());
    on(clauses.solver.terms.apply(Op::Eq, &[part, byte]))
}
