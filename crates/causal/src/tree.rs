//! The local paths of all threads that executions have taken, as one tree.
//!
//! The children of a node are the events that may follow it in its thread: one event, with one child for each outcome of
//! it. The node of a creation also has the [`Key::Begin`] of the created thread as a child. Two nodes in different
//! children are therefore in threads that run beside each other, if one of the children is a `Begin`, and exclude each
//! other otherwise.

use crate::rounds::{may_repeat, rounds};
use heisen_solver::{Event, Term};
use heisen_trace::Op;
use heisen_trace::symbolic::{FutexAct, PinReason};
use std::rc::Rc;

/// The number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// A thread: the node of its [`Key::Begin`].
pub type ThreadRoot = NodeId;

/// An event of a thread, up to its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The thread exists.
    Begin,
    /// Memory is read. `update`: the write of an atomic update may follow in the same step.
    Read { address: u64, size: u8, update: bool },
    /// Memory is written.
    Write { address: u64, size: u8, value: Term },
    /// A branch; the outcome is 1 if it is taken.
    Branch { condition: Term },
    /// Whether an operation has a result, such as a division by a value other than 0. The outcome is 1 if it has.
    Defined { condition: Term },
    /// An expression was replaced by its value, which is the outcome.
    Pin { value: Term, reason: PinReason },
    /// An input.
    Input { name: String, number: u32, width: u32 },
    /// The execution counts only if the condition holds; the outcome is 1 if it does.
    Assume { condition: Term },
    /// An operation. The outcome is 1 if it succeeded.
    Sync { op: Op, object: u64 },
    /// The end of a thread is awaited; an attempt gives up. The outcome is 1 if it succeeded.
    Join { thread: Option<ThreadRoot>, attempt: bool },
    /// A wait on a futex.
    Futex { word: u64, act: FutexAct },
    /// At most so many threads that wait on a futex are woken.
    FutexWake { word: u64, most: u32 },
    /// The thread has a next event that no execution has shown.
    Unknown,
}

/// How a node differs from the others with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This number.
    Is(u64),
    /// None of the numbers of its siblings.
    Other,
}

/// A mutex that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub object: u64,
    /// The node that acquired it.
    pub by: NodeId,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// The event before it in its thread; of a `Begin`, the creation.
    pub parent: Option<NodeId>,
    /// An ancestor, for [`Tree::relation`].
    jump: NodeId,
    depth: u32,
    pub thread: ThreadRoot,
    pub pc: u64,
    pub key: Key,
    pub outcome: Outcome,
    /// The steps of its thread that it takes: its own, and those before it that have no event. 0 if it belongs to the
    /// step of its parent.
    pub steps: u32,
    /// The event of its step.
    pub event: Event,
    /// Whether it is in the prefix that the solver looks for.
    pub active: Term,
    /// The unknown of a read, an input or a wake.
    pub unknown: Option<Term>,
    pub children: Vec<NodeId>,
    /// Whether an execution has reached it.
    pub seen: bool,
    /// Whether the process ends at it.
    pub ends: bool,
    /// The mutexes that its thread holds after it.
    pub held: Rc<[Held]>,
    /// Of a thread that waits on a condition variable or a futex: the node of the wait.
    pub waits: Option<NodeId>,
    /// The number of inputs of its thread up to it.
    pub inputs: u32,
    /// The value that an unknown has on every path through this node, if the node says so. Both are terms.
    pub known: Option<(Term, Term)>,
    /// The most rounds of a waiting loop that its thread has done before it.
    pub rounds: u32,
    /// Whether no other thread exists yet, and no input was read: there is only one way to get there, and on.
    pub alone: bool,
}

/// How two nodes lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The first happens before the second, wherever the second happens. Also if both are one node.
    Before,
    /// The first happens after the second, wherever the first happens.
    After,
    /// No execution has both.
    Exclusive,
    /// They belong to threads that run beside each other.
    Concurrent,
}

/// All nodes.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
}

impl std::ops::Index<NodeId> for Tree {
    type Output = Node;

    fn index(&self, node: NodeId) -> &Node {
        &self.nodes[node.0]
    }
}

impl std::ops::IndexMut<NodeId> for Tree {
    fn index_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.0]
    }
}

/// What is new about a node.
#[derive(Debug)]
pub struct NewNode {
    pub parent: Option<NodeId>,
    pub pc: u64,
    pub key: Key,
    pub outcome: Outcome,
    pub steps: u32,
    pub event: Event,
    pub active: Term,
    pub unknown: Option<Term>,
    pub known: Option<(Term, Term)>,
}

impl Tree {
    /// Adds a node. What it inherits of its parent is copied.
    pub fn add(&mut self, new: NewNode) -> NodeId {
        let id = NodeId(self.nodes.len());
        let NewNode { parent, pc, key, outcome, steps, event, active, unknown, known } = new;
        let begins = key == Key::Begin;
        let (depth, jump) = parent.map_or((0, id), |parent| {
            let up = &self[parent];
            let (near, far) = (up.depth - self[up.jump].depth, self[up.jump].depth);
            let jumps = near == far - self[self[up.jump].jump].depth;
            (up.depth + 1, if jumps { self[up.jump].jump } else { parent })
        });
        let inherited = parent.filter(|_| !begins).map(|parent| &self[parent]);
        let thread = inherited.map_or(id, |up| up.thread);
        let held = inherited.map_or_else(|| Rc::from([]), |up| up.held.clone());
        let waits = inherited.and_then(|up| up.waits);
        let inputs = inherited.map_or(0, |up| up.inputs) + u32::from(matches!(key, Key::Input { .. }));
        let alone = inherited.is_none_or(|up| up.alone)
            && (parent.is_none() || !begins)
            && !matches!(key, Key::Sync { op: Op::Create, .. } | Key::Input { .. });
        let rounds = parent.filter(|&up| may_repeat(self, up)).map_or(0, |up| rounds(self, up));
        let rounds = inherited.map_or(0, |up| up.rounds.max(rounds));
        let (children, seen, ends) = (Vec::new(), false, false);
        self.nodes.push(Node {
            parent,
            jump,
            depth,
            thread,
            pc,
            key,
            outcome,
            steps,
            event,
            active,
            unknown,
            children,
            seen,
            ends,
            held,
            waits,
            inputs,
            known,
            rounds,
            alone,
        });
        if let Some(parent) = parent {
            self[parent].children.push(id);
        }
        id
    }

    /// How far a node is from the root.
    pub fn depth(&self, node: NodeId) -> u32 {
        self[node].depth
    }

    /// The children of a node in its own thread.
    pub fn next_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let children = self[node].children.iter().copied();
        children.filter(|&child| self[child].key != Key::Begin)
    }

    /// The first event of the thread that a node creates.
    pub fn created_by(&self, node: NodeId) -> Option<ThreadRoot> {
        self[node].children.iter().copied().find(|&child| self[child].key == Key::Begin)
    }

    /// The ancestor of a node at a depth.
    fn ancestor(&self, mut node: NodeId, depth: u32) -> NodeId {
        while self[node].depth > depth {
            let jump = self[node].jump;
            node = if self[jump].depth >= depth { jump } else { self[node].parent.unwrap_or(jump) };
        }
        node
    }

    /// How two nodes lie to each other.
    pub fn relation(&self, first: NodeId, second: NodeId) -> Relation {
        let depth = self[first].depth.min(self[second].depth);
        let (mut a, mut b) = (self.ancestor(first, depth), self.ancestor(second, depth));
        if a == b {
            return if a == first { Relation::Before } else { Relation::After };
        }
        loop {
            let (up_a, up_b) = (self[a].parent, self[b].parent);
            if up_a == up_b {
                let begins = self[a].key == Key::Begin || self[b].key == Key::Begin;
                return if begins { Relation::Concurrent } else { Relation::Exclusive };
            }
            let (jump_a, jump_b) = (self[a].jump, self[b].jump);
            // Nodes of one depth jump equally far.
            (a, b) = match jump_a == jump_b {
                true => (up_a.unwrap_or(a), up_b.unwrap_or(b)),
                false => (jump_a, jump_b),
            };
        }
    }

    /// Whether the first node is an ancestor of the second, or the second.
    pub fn is_before(&self, first: NodeId, second: NodeId) -> bool {
        self[first].depth <= self[second].depth && self.ancestor(second, self[first].depth) == first
    }

    /// The mutex that a thread holds after a node.
    pub fn held(&self, node: NodeId, object: u64) -> Option<Held> {
        self[node].held.iter().copied().find(|held| held.object == object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_solver::Solver;

    /// A tree whose nodes have these parents; `begins` are those of threads.
    fn tree(parents: &[usize], begins: &[usize]) -> Tree {
        let mut solver = Solver::new();
        let (event, active) = (solver.event(), solver.terms.unknown(1));
        let mut tree = Tree::default();
        for (number, &parent) in parents.iter().enumerate() {
            tree.add(NewNode {
                parent: (number > 0).then_some(NodeId(parent)),
                pc: 0,
                key: if begins.contains(&number) { Key::Begin } else { Key::Unknown },
                outcome: Outcome::Is(1),
                steps: 1,
                event,
                active,
                unknown: None,
                known: None,
            });
        }
        tree
    }

    #[test]
    fn relations_are_those_of_paths() {
        // Pseudo-random trees, compared with lists of ancestors.
        let mut random = 1_u64;
        let mut draw = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        for _ in 0..20 {
            let near = 1 + draw(6);
            let parents: Vec<usize> =
                (0..60).map(|n: usize| if n == 0 { 0 } else { n - 1 - draw(n.min(near)) }).collect();
            let begins: Vec<usize> = (0..60).filter(|&n| n == 0 || n % 7 == 3).collect();
            let tree = tree(&parents, &begins);
            let path = |mut node: usize| {
                let mut path = vec![node];
                while node != 0 {
                    node = parents[node];
                    path.push(node);
                }
                path
            };
            for (a, b) in (0..60).flat_map(|a| (0..60).map(move |b| (a, b))) {
                let (up_a, up_b) = (path(a), path(b));
                let expected = if up_b.contains(&a) {
                    Relation::Before
                } else if up_a.contains(&b) {
                    Relation::After
                } else {
                    let below = |path: &[usize], other: &[usize]| {
                        *path.iter().take_while(|node| !other.contains(node)).last().unwrap()
                    };
                    let parts = [below(&up_a, &up_b), below(&up_b, &up_a)];
                    if parts.iter().any(|part| begins.contains(part)) {
                        Relation::Concurrent
                    } else {
                        Relation::Exclusive
                    }
                };
                assert_eq!(tree.relation(NodeId(a), NodeId(b)), expected, "{a} and {b} in {parents:?}");
                assert_eq!(tree.is_before(NodeId(a), NodeId(b)), expected == Relation::Before);
            }
        }
    }
}
