//! The theory of orders: events, and literals each of which puts one event before another. An assignment is refuted when
//! its edges form a cycle.
//!
//! Cycles are found by an order of all events that every edge follows, repaired locally when an edge does not (Pearce and
//! Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2007). Taking an edge away, when the solver
//! backtracks, leaves that order valid.

use batsat::theory::{Theory, TheoryArg};
use batsat::{Lit, Var};
use std::collections::HashMap;

/// Something that happens, before or after other events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    /// The literal that stands for the edge; `None` for an edge that is always there.
    reason: Option<Lit>,
}

/// All events, and the edges of the current assignment.
#[derive(Debug, Default)]
pub struct Orders {
    /// By event: the edges that leave it.
    out: Vec<Vec<Edge>>,
    /// By event: where the edges come from that reach it.
    into: Vec<Vec<u32>>,
    /// By event: its position in the order that all edges follow.
    position: Vec<u32>,
    /// The edge of a literal's variable, when it is true.
    edges: HashMap<Var, (u32, u32)>,
    /// The edges of the current assignment, in the order in which they were added.
    added: Vec<(u32, u32)>,
    /// For each level of the solver: how many literals were seen and edges added when it began.
    levels: Vec<(usize, usize)>,
    /// How many literals of the assignment were seen.
    seen: usize,
    /// The position of events in the last model.
    model: Vec<u32>,
    marked: Vec<bool>,
}

impl Orders {
    /// Adds an event.
    pub fn event(&mut self) -> Event {
        let number = u32::try_from(self.out.len()).expect("fewer than 2^32 events");
        self.out.push(Vec::new());
        self.into.push(Vec::new());
        self.position.push(number);
        self.marked.push(false);
        Event(number)
    }

    /// The number of events.
    pub fn count(&self) -> usize {
        self.out.len()
    }

    /// Declares that a variable, when true, puts one event before another.
    pub fn declare(&mut self, var: Var, from: Event, to: Event) {
        self.edges.insert(var, (from.0, to.0));
    }

    /// Puts an event before another for good. Returns whether that is possible.
    pub fn fix(&mut self, from: Event, to: Event) -> bool {
        debug_assert!(self.levels.is_empty(), "while nothing is assumed");
        self.insert(from.0, to.0, None).is_ok()
    }

    /// All events of the last model, in order.
    pub fn model(&self) -> Vec<Event> {
        let mut all: Vec<Event> = (0..self.model.len() as u32).map(Event).collect();
        all.sort_by_key(|event| self.model[event.0 as usize]);
        all
    }

    /// Adds an edge. If it closes a cycle, returns the reasons of the cycle's edges, and the edge is not added.
    fn insert(&mut self, from: u32, to: u32, reason: Option<Lit>) -> Result<(), Vec<Lit>> {
        if from == to {
            return Err(reason.into_iter().collect());
        }
        let (low, high) = (self.position[to as usize], self.position[from as usize]);
        if low < high {
            let after = self
                .reachable(to, from, high)
                .map_err(|path| path.into_iter().chain(reason).collect::<Vec<_>>())?;
            let before = self.reaching(from, low);
            self.reorder(before, after);
        }
        self.out[from as usize].push(Edge { to, reason });
        self.into[to as usize].push(from);
        Ok(())
    }

    /// The events that edges lead to from an event, up to a position. If `target` is among them, the reasons on the path
    /// to it.
    fn reachable(&mut self, start: u32, target: u32, limit: u32) -> Result<Vec<u32>, Vec<Lit>> {
        let mut found = vec![start];
        let mut came: HashMap<u32, (u32, Option<Lit>)> = HashMap::new();
        self.marked[start as usize] = true;
        let mut next = 0;
        let mut cycle = None;
        while let Some(&event) = found.get(next).filter(|_| cycle.is_none()) {
            next += 1;
            for edge in &self.out[event as usize] {
                if edge.to == target {
                    cycle = Some((event, edge.reason));
                    break;
                }
                if self.position[edge.to as usize] < limit && !self.marked[edge.to as usize] {
                    self.marked[edge.to as usize] = true;
                    came.insert(edge.to, (event, edge.reason));
                    found.push(edge.to);
                }
            }
        }
        found.iter().for_each(|&event| self.marked[event as usize] = false);
        let Some((mut event, reason)) = cycle else { return Ok(found) };
        let mut reasons: Vec<Lit> = reason.into_iter().collect();
        while let Some(&(before, reason)) = came.get(&event) {
            reasons.extend(reason);
            event = before;
        }
        Err(reasons)
    }

    /// The events from which edges lead to an event, down to a position.
    fn reaching(&mut self, start: u32, limit: u32) -> Vec<u32> {
        let mut found = vec![start];
        self.marked[start as usize] = true;
        let mut next = 0;
        while let Some(&event) = found.get(next) {
            next += 1;
            for &from in &self.into[event as usize] {
                if self.position[from as usize] > limit && !self.marked[from as usize] {
                    self.marked[from as usize] = true;
                    found.push(from);
                }
            }
        }
        found.iter().for_each(|&event| self.marked[event as usize] = false);
        found
    }

    /// Puts all events of `before` before all of `after`, on the positions that they have together.
    fn reorder(&mut self, mut before: Vec<u32>, mut after: Vec<u32>) {
        let position = |event: &u32| self.position[*event as usize];
        before.sort_by_key(position);
        after.sort_by_key(position);
        let all: Vec<u32> = before.into_iter().chain(after).collect();
        let mut positions: Vec<u32> = all.iter().map(position).collect();
        positions.sort_unstable();
        for (event, position) in all.into_iter().zip(positions) {
            self.position[event as usize] = position;
        }
    }

    fn check(&mut self, acts: &mut TheoryArg<'_>) {
        while let Some(&lit) = acts.model().get(self.seen) {
            if let Some(&(from, to)) = self.edges.get(&lit.var()).filter(|_| lit.sign()) {
                if let Err(cycle) = self.insert(from, to, Some(lit)) {
                    let clause: Vec<Lit> = cycle.into_iter().map(|lit| !lit).collect();
                    acts.raise_conflict(&clause, false);
                    return;
                }
                self.added.push((from, to));
            }
            self.seen += 1;
        }
    }
}

impl Theory for Orders {
    fn final_check(&mut self, acts: &mut TheoryArg<'_>) {
        self.check(acts);
        self.model.clone_from(&self.position);
    }

    fn create_level(&mut self) {
        self.levels.push((self.seen, self.added.len()));
    }

    fn pop_levels(&mut self, n: usize) {
        let at = self.levels.len() - n;
        if let Some(&(seen, added)) = self.levels.get(at) {
            for (from, to) in self.added.drain(added..).rev() {
                // The newest edges are the last ones.
                self.out[from as usize].pop();
                self.into[to as usize].pop();
            }
            self.seen = seen;
            self.levels.truncate(at);
        }
    }

    fn n_levels(&self) -> usize {
        self.levels.len()
    }

    fn partial_check(&mut self, acts: &mut TheoryArg<'_>) {
        self.check(acts);
    }

    fn explain_propagation(&mut self, _: Lit) -> &[Lit] {
        // Nothing is propagated.
        &[]
    }
}
