//! Nodes of the tree as constraints: which nodes can be active together, in which order, with which values.
//!
//! A solution is a *prefix* of an execution: the active nodes, in the order of their events. Nodes outside the causal past
//! of what is asked for need not be active. What is said here of active nodes is what executions do, no more and no less:
//! every prefix of an execution within the tree is a solution, and every solution can be run.

use crate::barriers::Barriers;
use crate::clauses::{Clauses, off, on};
use crate::deadlocks::Deadlocks;
use crate::ends::Ends;
use crate::futexes::{self, Futexes};
use crate::joins::Joins;
use crate::memory::Memory;
use crate::mutexes::Mutexes;
use crate::queues::Queues;
use crate::rounds::known_value;
use crate::semaphores::Semaphores;
use crate::tree::{Held, Key, NewNode, NodeId, Outcome, ThreadRoot, Tree};
use heisen_solver::{Formula, Op as ValueOp, Term};
use heisen_trace::Op;
use heisen_trace::symbolic::FutexAct;
use std::collections::HashMap;

/// The tree, and its constraints.
#[derive(Debug)]
pub struct Encoding {
    pub tree: Tree,
    pub clauses: Clauses,
    pub memory: Memory,
    mutexes: Mutexes,
    pub conditions: Queues,
    pub futexes: Futexes,
    pub semaphores: Semaphores,
    pub barriers: Barriers,
    joins: Joins,
    pub deadlocks: Deadlocks,
    pub ends: Ends,
    /// Whether a thread has released a read-write lock that it had not acquired.
    pub foreign_release: bool,
    /// Whether the values of inputs are open.
    pub chooses_inputs: bool,
    /// By the node of a pin: that its value is the outcome.
    pub pinned: HashMap<NodeId, Formula>,
}

/// Whether the constraints say all of what an operation does. Tests compare that with brute force.
pub const fn is_modelled(op: Op) -> bool {
    matches!(
        op,
        Op::Start
            | Op::Create
            | Op::Join
            | Op::TryJoin
            | Op::End
            | Op::Lock
            | Op::TryLock
            | Op::TimedLock
            | Op::Unlock
            | Op::ReadLock
            | Op::WriteLock
            | Op::TryReadLock
            | Op::TryWriteLock
            | Op::RwUnlock
            | Op::CondWait
            | Op::CondTimedWait
            | Op::Relock
            | Op::CondSignal
            | Op::CondBroadcast
            | Op::Once
            | Op::OnceEnd
            | Op::Barrier
            | Op::BarrierLeave
            | Op::BarrierLast
            | Op::SemInit
            | Op::SemWait
            | Op::SemTryWait
            | Op::SemTimedWait
            | Op::SemPost
            | Op::Yield
            | Op::Sleep
            | Op::Exit
            | Op::Abort
            | Op::Assert
            | Op::Throw
            | Op::Point
            | Op::Section
            | Op::Free
            | Op::Unmap
            | Op::Protect
    )
}

/// Whether a thread may stand before this operation for ever.
pub const fn may_block(op: Op) -> bool {
    matches!(
        op,
        Op::Lock
            | Op::Relock
            | Op::ReadLock
            | Op::WriteLock
            | Op::Once
            | Op::SemWait
            | Op::BarrierLeave
            | Op::Join
    )
}

/// Whether this is an operation that fails where it would have to wait, or a question that may have the answer no.
pub const fn may_fail(key: &Key) -> bool {
    match key {
        Key::Join { attempt, .. } => *attempt,
        Key::Sync { op, .. } => matches!(
            op,
            Op::TryLock
                | Op::TimedLock
                | Op::TryReadLock
                | Op::TryWriteLock
                | Op::BarrierLast
                | Op::SemTryWait
                | Op::SemTimedWait
        ),
        _ => false,
    }
}

impl Encoding {
    /// The tree with the beginning of the main thread only.
    pub fn new(chooses_inputs: bool) -> Encoding {
        let mut clauses = Clauses::new();
        let (tree, memory, mutexes, conditions, futexes, semaphores, barriers, joins) = Default::default();
        let deadlocks = Deadlocks::new(&mut clauses);
        let pinned = HashMap::new();
        let mut encoding = Encoding {
            tree,
            clauses,
            memory,
            mutexes,
            conditions,
            futexes,
            semaphores,
            barriers,
            joins,
            deadlocks,
            ends: Ends::default(),
            foreign_release: false,
            chooses_inputs,
            pinned,
        };
        let (event, active) = (encoding.clauses.solver.event(), encoding.clauses.truth());
        encoding.begin(None, event, active);
        encoding
    }

    fn begin(&mut self, parent: Option<NodeId>, event: heisen_solver::Event, active: Term) -> ThreadRoot {
        let (key, outcome) = (Key::Begin, Outcome::Is(1));
        let root = self.tree.add(NewNode {
            parent,
            pc: 0,
            key,
            outcome,
            steps: 0,
            event,
            active,
            unknown: None,
            known: None,
        });
        self.deadlocks.thread(&mut self.clauses, &self.tree, root);
        root
    }

    /// The input that a node reads has this value in every execution.
    pub fn keep_input(&mut self, node: NodeId, value: u64) {
        let Some(unknown) = self.tree[node].unknown else { return };
        let terms = &mut self.clauses.solver.terms;
        let width = terms.width(unknown);
        let constant = terms.constant(width, value.into());
        let same = terms.apply(ValueOp::Eq, &[unknown, constant]);
        self.clauses.clause([on(same)]);
    }

    /// The thread that a node creates.
    pub fn thread_of(&mut self, create: NodeId) -> ThreadRoot {
        if let Some(root) = self.tree.created_by(create) {
            return root;
        }
        let Node { event, active } = self.of(create);
        self.begin(Some(create), event, active)
    }

    fn of(&self, node: NodeId) -> Node {
        Node { event: self.tree[node].event, active: self.tree[node].active }
    }

    /// Adds a node behind another, with the constraints that it brings.
    pub fn add(&mut self, parent: NodeId, pc: u64, key: Key, outcome: Outcome, steps: u32) -> NodeId {
        let active = self.clauses.fresh();
        let before = self.of(parent);
        self.clauses.clause([off(active), on(before.active)]);
        let event = if steps == 0 {
            before.event
        } else {
            let event = self.clauses.solver.event();
            self.clauses.solver.precedes(before.event, event);
            event
        };
        let unknown = match key {
            Key::Read { size, .. } => Some(self.clauses.solver.terms.unknown(8 * u32::from(size))),
            Key::Input { width, .. } => Some(self.clauses.solver.terms.unknown(width)),
            Key::FutexWake { .. } => Some(self.clauses.solver.terms.unknown(futexes::COUNT_BITS)),
            _ => None,
        };
        let siblings: Vec<NodeId> = self.tree.next_of(parent).collect();
        let known = known_value(&self.clauses.solver.terms, &key, outcome);
        let parent_of = Some(parent);
        let new = NewNode {
            parent: parent_of,
            pc,
            key: key.clone(),
            outcome,
            steps,
            event,
            active,
            unknown,
            known,
        };
        let node = self.tree.add(new);
        for sibling in siblings {
            self.exclude(node, sibling);
        }
        self.encode(node, &key, outcome);
        self.ends.added(&mut self.clauses, &self.tree, node);
        if steps == 0 {
            self.complete_step(parent, node);
        }
        self.deadlocks.added(&mut self.clauses, &self.tree, node);
        if let Some(op) = blocking(&key) {
            self.may_stand(node, op, &key);
        }
        node
    }

    /// A thread does not stop within a step: where this node follows its parent in the same step, it does so in every
    /// prefix. The rest of the step may end the process.
    fn complete_step(&mut self, parent: NodeId, node: NodeId) {
        let active = self.tree[node].active;
        let mut clause = vec![off(self.tree[parent].active), on(active)];
        match (&self.tree[node].key, self.tree[node].outcome) {
            (
                &(Key::Branch { condition } | Key::Defined { condition } | Key::Assume { condition }),
                Outcome::Is(outcome),
            ) => clause.push(if outcome == 0 { on(condition) } else { off(condition) }),
            (&Key::Pin { value, .. }, Outcome::Is(number)) => {
                let equal = self.equals(value, number);
                clause.push(equal.not());
            }
            (&Key::Sync { op: Op::BarrierLast, object }, Outcome::Is(outcome)) => {
                let last = self.barriers.was_last(&self.tree, node, object);
                clause.extend(last.map(|last| if outcome == 0 { on(last) } else { off(last) }));
            }
            // Which values are others changes when another value is seen.
            (_, Outcome::Other) => return,
            _ => {}
        }
        self.clauses.clause(clause);
    }

    /// Two children of one node exclude each other.
    fn exclude(&mut self, node: NodeId, sibling: NodeId) {
        let (a, b) = (&self.tree[node], &self.tree[sibling]);
        if a.key == b.key
            && let Key::Pin { value, .. } = a.key
        {
            // Two values exclude each other anyway.
            let other = match (a.outcome, b.outcome) {
                (Outcome::Is(value), Outcome::Other) => Some((b.active, value)),
                (Outcome::Other, Outcome::Is(value)) => Some((a.active, value)),
                _ => None,
            };
            if let Some((active, number)) = other {
                let equal = self.equals(value, number);
                self.clauses.clause([off(active), equal.not()]);
            }
            return;
        }
        let (a, b) = (a.active, b.active);
        self.clauses.clause([off(a), off(b)]);
    }

    fn equals(&mut self, value: Term, number: u64) -> Formula {
        let terms = &mut self.clauses.solver.terms;
        let number = terms.constant(terms.width(value), number.into());
        on(terms.apply(ValueOp::Eq, &[value, number]))
    }

    fn encode(&mut self, node: NodeId, key: &Key, outcome: Outcome) {
        let Encoding { tree, clauses, memory, futexes, joins, deadlocks, .. } = self;
        let active = tree[node].active;
        match (key, outcome) {
            (&Key::Read { address, size, .. }, _) => {
                if let Some(unknown) = tree[node].unknown {
                    memory.add_read(clauses, tree, node, (address, size), unknown);
                }
            }
            (&Key::Write { address, size, value }, _) => {
                memory.add_write(clauses, tree, node, (address, size), value);
            }
            (Key::Branch { condition } | Key::Defined { condition }, Outcome::Is(outcome)) => {
                let holds = if outcome == 0 { off(*condition) } else { on(*condition) };
                clauses.clause([off(active), holds]);
            }
            (Key::Pin { value, .. }, Outcome::Is(number)) => {
                let equal = self.equals(*value, number);
                self.pinned.insert(node, equal.clone());
                self.clauses.clause([off(active), equal]);
            }
            // What comes behind an assumption that does not hold counts for nothing.
            (Key::Assume { .. }, Outcome::Is(0)) => clauses.clause([off(active)]),
            (Key::Assume { condition }, _) => clauses.clause([off(active), on(*condition)]),
            (Key::Join { thread: Some(thread), .. }, Outcome::Is(1)) => {
                joins.join(clauses, tree, node, *thread);
            }
            (&Key::Futex { word, act }, _) => futexes.act(clauses, tree, node, word, act),
            (&Key::FutexWake { word, most }, _) => futexes.wake(clauses, tree, node, word, most),
            (Key::Join { thread: Some(thread), .. }, Outcome::Is(0)) => {
                joins.fail(clauses, tree, node, *thread);
            }
            (Key::Sync { op: Op::End, .. }, _) => {
                joins.end(clauses, tree, node);
                deadlocks.end(clauses, tree, node);
            }
            (Key::Sync { op, object }, Outcome::Is(ok)) => self.synchronise(node, *op, *object, ok == 1),
            _ => {}
        }
    }

    fn synchronise(&mut self, node: NodeId, op: Op, object: u64, ok: bool) {
        let Encoding { tree, clauses, mutexes, conditions, semaphores, barriers, .. } = self;
        match (op, ok) {
            (Op::Lock | Op::TryLock | Op::TimedLock | Op::WriteLock | Op::TryWriteLock, true) => {
                self.acquire(node, object, false);
            }
            // As if it were a lock, which is held while the initialiser runs.
            (Op::Once, _) => self.acquire(node, object, false),
            (Op::OnceEnd, _) => self.release(node, object),
            (Op::Barrier, _) => barriers.arrive(clauses, tree, node, object),
            (Op::BarrierLeave, _) => barriers.leave(clauses, tree, node, object),
            (Op::BarrierLast, last) => {
                if let Some(was) = barriers.was_last(tree, node, object) {
                    clauses.clause([off(tree[node].active), if last { on(was) } else { off(was) }]);
                }
            }
            (Op::ReadLock | Op::TryReadLock | Op::PolitelyReadLock, true) => self.acquire(node, object, true),
            (Op::Relock, true) => {
                if let Some((wait, condition)) = tree[node].waits.and_then(|wait| waited(tree, wait)) {
                    conditions.woken(clauses, tree, node, condition, wait);
                    tree[node].waits = None;
                }
                self.acquire(node, object, false);
            }
            (Op::Unlock | Op::RwUnlock, true) => {
                // A mutex that another thread holds stays as it is.
                self.foreign_release |= op == Op::RwUnlock && tree.held(node, object).is_none();
                self.release(node, object);
            }
            (Op::TryLock | Op::TimedLock | Op::TryWriteLock, false) => {
                mutexes.fail(clauses, tree, node, object, false);
            }
            (Op::TryReadLock, false) => mutexes.fail(clauses, tree, node, object, true),
            (Op::CondWait | Op::CondTimedWait, true) => {
                conditions.wait(clauses, tree, node, object);
                tree[node].waits = Some(node);
            }
            (Op::CondTimedWait, false) => {
                if let Some(wait) = tree[node].waits.take() {
                    conditions.left(clauses, tree, node, object, wait);
                }
            }
            (Op::SemInit, _) => semaphores.initialise(clauses, tree, node, object),
            (Op::SemWait | Op::SemTryWait | Op::SemTimedWait, true) => {
                semaphores.wait(clauses, tree, node, object);
            }
            (Op::SemTryWait | Op::SemTimedWait, false) => semaphores.fail(clauses, tree, node, object),
            (Op::SemPost, _) => semaphores.post(clauses, tree, node, object),
            (Op::CondSignal, _) => conditions.wake(clauses, tree, node, object, 1),
            (Op::CondBroadcast, _) => conditions.wake(clauses, tree, node, object, u32::MAX),
            _ => {}
        }
    }

    fn acquire(&mut self, node: NodeId, object: u64, shared: bool) {
        self.mutexes.acquire(&mut self.clauses, &self.tree, node, object, shared);
        let held = Held { object, by: node };
        let all = self.tree[node].held.iter().copied();
        self.tree[node].held = all.chain([held]).collect();
    }

    fn release(&mut self, node: NodeId, object: u64) {
        let Some(held) = self.tree.held(node, object) else { return };
        self.mutexes.release(&mut self.clauses, &self.tree, node, object, held.by);
        self.tree[node].held = self.tree[node].held.iter().copied().filter(|other| *other != held).collect();
    }

    /// The thread may stand before this operation for ever.
    fn may_stand(&mut self, node: NodeId, op: Op, key: &Key) {
        let Encoding { tree, clauses, mutexes, conditions, futexes, .. } = self;
        let Encoding { semaphores, barriers, joins, deadlocks, .. } = self;
        let Some(parent) = tree[node].parent else { return };
        let (stuck, new) = deadlocks.stands(clauses, tree, parent);
        if !new {
            return;
        }
        match *key {
            Key::Join { thread: Some(thread), .. } => joins.not_ended(clauses, tree, thread, stuck),
            Key::Futex { word, .. } => {
                let wait =
                    tree[parent].waits.filter(|&wait| futexes::ends_of_wait(&tree[wait].key).len() == 1);
                let asleep = wait.and_then(|wait| futexes.asleep(clauses, word, wait));
                // A wait that may time out does not last.
                clauses.clause([off(stuck)].into_iter().chain(asleep.map(on)));
            }
            Key::Sync { op: Op::SemWait, object } => {
                let empty = semaphores.empty(clauses, tree, parent, object);
                clauses.clause([off(stuck), on(empty)]);
            }
            Key::Sync { op: Op::BarrierLeave, object } => {
                barriers.waits(clauses, tree, parent, object, stuck);
            }
            Key::Sync { object, .. } => {
                let occupied = mutexes.occupied(clauses, tree, object, op != Op::ReadLock);
                let mut clause = vec![off(stuck), on(occupied)];
                if let Some((wait, condition)) = tree[parent].waits.and_then(|wait| waited(tree, wait)) {
                    if matches!(tree[wait].key, Key::Sync { op: Op::CondTimedWait, .. }) {
                        // Otherwise the wait can still time out.
                        conditions.awake(clauses, condition, wait, stuck);
                    } else {
                        clause.extend(conditions.asleep(clauses, condition, wait).map(on));
                    }
                }
                clauses.clause(clause);
            }
            _ => clauses.clause([off(stuck)]),
        }
    }

    /// No solution contains this node from now on: nothing can follow it, or it does not exist.
    pub fn forbid(&mut self, node: NodeId) {
        let active = self.tree[node].active;
        self.clauses.clause([off(active)]);
    }
}

/// What constraints need of a node.
struct Node {
    event: heisen_solver::Event,
    active: Term,
}

/// The operation before which a thread may stand for ever, if this is one.
pub fn blocking(key: &Key) -> Option<Op> {
    match key {
        Key::Join { attempt, .. } => (!attempt).then_some(Op::Join),
        Key::Futex { act: FutexAct::Woken, .. } => Some(Op::FutexWait),
        Key::Sync { op, .. } => Some(*op).filter(|op| may_block(*op)),
        _ => None,
    }
}

/// A wait, and the condition variable that it waits on.
fn waited(tree: &Tree, wait: NodeId) -> Option<(NodeId, u64)> {
    match tree[wait].key {
        Key::Sync { object, .. } => Some((wait, object)),
        _ => None,
    }
}
