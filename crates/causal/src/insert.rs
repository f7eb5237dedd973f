//! Puts the trace of an execution into the tree.
//!
//! Each thread follows the path that it took. Where it leaves the tree, nodes are added, and beside them the outcomes that
//! no execution has shown yet. The same path must lead to the same next event; if it does not, something that the trace
//! does not say decides, and the search is not exact.

use crate::bounds::Bounds;
use crate::encode::{Encoding, blocking, is_modelled, may_block, may_fail};
use crate::exactness::{Exactness, Reason};
use crate::expressions::{Expression, Expressions};
use crate::futexes;
use crate::queues::MOST;
use crate::rounds::{may_repeat, rounds};
use crate::steps::{is_of_thread, steps};
use crate::tree::{Key, NodeId, Outcome, ThreadRoot};
use heisen_solver::Term;
use heisen_trace::symbolic::{EventKind, PinReason, SymbolicEvent, SymbolicTrace};
use heisen_trace::{End, Op};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What an execution has added.
#[derive(Debug, Default)]
pub struct Inserted {
    /// How much is known now that was not known before: nodes reached, and initial values.
    pub new: usize,
    /// Nodes that no execution has shown, which questions may ask for.
    pub open: Vec<NodeId>,
    /// The nodes after which threads stood in a deadlock.
    pub stuck: Vec<NodeId>,
    /// The nodes at which threads have done too many rounds of a loop.
    pub loops: Vec<NodeId>,
    /// Whether an outcome is not asked for, because it lies behind too many rounds of a loop.
    pub bounded: bool,
    /// Whether the constraints outgrew their memory.
    pub full: bool,
}

/// Puts a trace into the tree.
pub fn insert(
    encoding: &mut Encoding,
    exactness: &mut Exactness,
    rounds: u32,
    bounds: &Bounds,
    (trace, end): (&SymbolicTrace, &End),
) -> Inserted {
    let known = encoding.memory.known();
    let mut insertion = Insertion {
        encoding,
        exactness,
        rounds,
        expressions: Expressions::new(trace),
        at: BTreeMap::new(),
        roots: BTreeMap::from([(0, NodeId(0))]),
        finished: HashSet::new(),
        known: HashSet::new(),
        pending: BTreeMap::new(),
        written: HashMap::new(),
        left: HashSet::new(),
        overdue: HashSet::new(),
        initialising: HashMap::new(),
        values: HashMap::new(),
        inserted: Inserted::default(),
        is_cut: false,
        has_failed: false,
    };
    for &(address, byte) in &trace.initial {
        insertion.encoding.memory.learn(&mut insertion.encoding.clauses, address, byte);
    }
    for &(object, count) in &trace.counts {
        insertion.encoding.semaphores.learn(object, count);
        insertion.encoding.barriers.learn(object, count);
    }
    for (index, (event, steps)) in trace.events.iter().zip(steps(trace)).enumerate() {
        if insertion.event(index, event, steps).is_none() {
            insertion.exactness.add(Reason::Invalid);
            break;
        }
        if index % OFTEN == 0 && insertion.is_over(bounds) {
            break;
        }
    }
    insertion.end(trace, end);
    let Insertion { mut inserted, .. } = insertion;
    inserted.new += encoding.memory.known() - known;
    if encoding.memory.contradicted || encoding.semaphores.contradicted || encoding.barriers.contradicted {
        exactness.add(Reason::InitialValues);
    }
    if encoding.foreign_release {
        exactness.add(Reason::Operation(Op::RwUnlock));
    }
    if encoding.semaphores.reused {
        exactness.add(Reason::Reinitialised);
    }
    inserted
}

/// After so many events the bounds are looked at.
const OFTEN: usize = 16;

struct Insertion<'i, 't> {
    encoding: &'i mut Encoding,
    exactness: &'i mut Exactness,
    /// The most rounds of a loop without effect.
    rounds: u32,
    expressions: Expressions<'t>,
    /// The last node of each thread that has one, by thread number.
    at: BTreeMap<u16, NodeId>,
    roots: BTreeMap<u16, ThreadRoot>,
    /// The threads that have ended.
    finished: HashSet<u16>,
    /// The threads whose next operation is known, although they have not done it.
    known: HashSet<u16>,
    /// What threads were about to do at the end: place in the code, operation and object.
    pending: BTreeMap<u16, (u64, Op, u64)>,
    /// The bytes that were written, as the last write left them.
    written: HashMap<u64, u8>,
    /// The threads that are not followed any more, because they have done too many rounds of a loop.
    left: HashSet<u16>,
    /// The threads that will be left as soon as they hold no lock.
    overdue: HashSet<u16>,
    /// The control words of initialisers that run, and their threads.
    initialising: HashMap<u64, u16>,
    /// The values of unknowns.
    values: HashMap<Term, u128>,
    inserted: Inserted,
    /// Whether not all of the trace is in the tree.
    is_cut: bool,
    /// Whether the process ended with an access that may come in time in other executions.
    has_failed: bool,
}

impl Insertion<'_, '_> {
    /// Whether the rest of the trace is left out.
    fn is_over(&mut self, bounds: &Bounds) -> bool {
        let full = self.encoding.clauses.solver.bytes() > bounds.bytes;
        let stopped = bounds.is_stopped();
        self.inserted.full |= full;
        for (applies, reason) in [(full, Reason::Memory), (stopped, Reason::Stopped)] {
            if applies {
                self.exactness.add(reason);
                self.is_cut = true;
            }
        }
        full || stopped
    }

    /// The last node of a thread.
    fn place(&self, thread: u16) -> Option<NodeId> {
        self.at.get(&thread).or_else(|| self.roots.get(&thread)).copied()
    }

    /// Takes one event. `None` if the trace is not valid.
    fn event(&mut self, index: usize, event: &SymbolicEvent, steps: u32) -> Option<()> {
        let place = match self.place(event.thread) {
            Some(place) if !self.left.contains(&event.thread) => place,
            // It was left, or the thread that created it.
            _ if !self.left.is_empty() => {
                self.writes(event);
                return Some(());
            }
            _ => return None,
        };
        if let EventKind::Pending { op, object, .. } = event.kind {
            self.pending.insert(event.thread, (event.pc, op, object));
            return Some(());
        }
        if !is_of_thread(&event.kind) {
            return Some(());
        }
        // A thread that ends the process may still do something.
        self.pending.remove(&event.thread);
        if self.finished.contains(&event.thread) {
            return None;
        }
        if let EventKind::Sync { op: Op::WrongAccess, .. } = event.kind {
            self.has_failed = true;
            return Some(());
        }
        let (key, outcome, defined) = self.key(event)?;
        let mut place = match event.kind {
            EventKind::Sync { op: Op::Abort, .. } => self.undefined(place),
            _ => self.defined(place, event.pc, &defined),
        };
        if let EventKind::Sync { op, .. } = event.kind {
            if !is_modelled(op) {
                // What it does counts for nothing as long as there is no other thread.
                if !self.encoding.tree[place].alone {
                    self.exactness.add(Reason::Operation(op));
                }
            } else if steps == 0 && may_block(op) {
                // Where a thread has to wait, it leaves an atomic section: that would be a step of its own.
                self.exactness.add(Reason::Operation(Op::Section));
            }
        }
        // One that wakes more threads than any program has is one that wakes all.
        if let EventKind::FutexWake { most, .. } = event.kind
            && (MOST + 1..=u16::MAX.into()).contains(&most)
        {
            self.exactness.add(Reason::Operation(Op::FutexWake));
        }
        place = self.step(place, event.pc, key, outcome, steps);
        self.at.insert(event.thread, place);
        if let Some(unknown) = self.encoding.tree[place].unknown {
            self.expressions.set_unknown(index, unknown);
            if let EventKind::Read { value, .. }
            | EventKind::Input { value, .. }
            | EventKind::FutexWake { woken: value, .. } = event.kind
            {
                self.values.insert(unknown, value.into());
            }
        }
        self.follow_once(event);
        if self.has_waited_enough(event.thread, place) {
            self.left.insert(event.thread);
            self.inserted.bounded = true;
        }
        match event.kind {
            EventKind::Read { address, size, value, .. } => {
                for (at, byte) in (address..).zip(value.to_le_bytes()).take(size.into()) {
                    match self.written.get(&at) {
                        Some(written) if *written == byte => {}
                        // No event says who wrote that.
                        Some(_) => self.exactness.add(Reason::Overwritten),
                        None => self.encoding.memory.learn(&mut self.encoding.clauses, at, byte),
                    }
                }
            }
            EventKind::Write { .. } => self.writes(event),
            EventKind::Input { value, .. } if !self.encoding.chooses_inputs => {
                self.encoding.keep_input(place, value);
            }
            EventKind::Sync { op: Op::Create, object, ok: true } => {
                let root = self.encoding.thread_of(place);
                self.roots.insert(u16::try_from(object).ok()?, root);
            }
            EventKind::Sync { op: Op::End, .. } => {
                self.finished.insert(event.thread);
            }
            _ => {}
        }
        Some(())
    }

    /// Whether a thread has done too many rounds of a loop. If it can, it goes on until it holds no lock, because then it
    /// may stay there for ever.
    fn has_waited_enough(&mut self, thread: u16, place: NodeId) -> bool {
        let tree = &self.encoding.tree;
        let holds = !tree[place].held.is_empty();
        let rounds = if may_repeat(tree, place) { rounds(tree, place) } else { 0 };
        if rounds > self.rounds {
            self.overdue.insert(thread);
        }
        if self.overdue.contains(&thread) && !holds {
            self.inserted.loops.push(place);
            return true;
        }
        rounds > self.rounds + 1
    }

    /// Remembers what an event has written.
    fn writes(&mut self, event: &SymbolicEvent) {
        if let EventKind::Write { address, size, value, .. } = event.kind {
            self.written.extend((address..).zip(value.to_le_bytes()).take(size.into()));
        }
    }

    /// An initialiser that does not end as it should runs again, and no event says when.
    fn follow_once(&mut self, event: &SymbolicEvent) {
        let fails = match event.kind {
            EventKind::Sync { op: Op::Once, object, .. } => {
                self.initialising.insert(object, event.thread).is_some()
            }
            EventKind::Sync { op: Op::OnceEnd, object, .. } => {
                self.initialising.remove(&object);
                false
            }
            EventKind::Sync { op: Op::End | Op::Throw, .. } => {
                self.initialising.values().any(|&thread| thread == event.thread)
            }
            _ => false,
        };
        if fails {
            self.exactness.add(Reason::Operation(Op::Once));
        }
    }

    /// The key, the outcome, and what must hold for its expression to have a value.
    fn key(&mut self, event: &SymbolicEvent) -> Option<(Key, u64, Vec<Term>)> {
        let terms = &mut self.encoding.clauses.solver.terms;
        let mut expressions = |node| self.expressions.node(terms, node);
        let test = |expression: Expression, terms: &heisen_solver::term::Terms| {
            (terms.width(expression.term) == 1).then_some(expression)
        };
        let plain = |key: Key, outcome: u64| Some((key, outcome, Vec::new()));
        let with = |key: Key, outcome: u64, expression: &Expression| {
            Some((key, outcome, expression.defined.to_vec()))
        };
        match &event.kind {
            &EventKind::Read { address, size, update, .. } => {
                (1..=8).contains(&size).then_some(())?;
                plain(Key::Read { address, size, update }, 1)
            }
            &EventKind::Write { address, size, operand, .. } => {
                (1..=8).contains(&size).then_some(())?;
                let expression = self.expressions.operand(terms, operand, 8 * u32::from(size))?;
                with(Key::Write { address, size, value: expression.term }, 1, &expression)
            }
            &EventKind::Branch { condition, taken } => {
                let expression = test(expressions(condition)?, terms)?;
                with(Key::Branch { condition: expression.term }, taken.into(), &expression)
            }
            &EventKind::Pin { node, value, reason } => {
                let expression = expressions(node)?;
                with(Key::Pin { value: expression.term, reason }, value, &expression)
            }
            &EventKind::Input { ref name, number, width, .. } => {
                (1..=128).contains(&width).then_some(())?;
                plain(Key::Input { name: name.clone(), number, width }, 1)
            }
            &EventKind::Assume { condition, holds } => {
                let expression = test(expressions(condition)?, terms)?;
                with(Key::Assume { condition: expression.term }, holds.into(), &expression)
            }
            &EventKind::Sync { op: op @ (Op::Join | Op::TryJoin), object, ok } => {
                let thread = u16::try_from(object).ok().and_then(|number| self.roots.get(&number).copied());
                plain(Key::Join { thread, attempt: op == Op::TryJoin }, ok.into())
            }
            // The number of a created thread depends on other threads.
            &EventKind::Sync { op: op @ Op::Create, ok, .. } => plain(Key::Sync { op, object: 0 }, ok.into()),
            // What the object of these is says nothing of other threads.
            &EventKind::Sync { op: op @ (Op::Start | Op::End | Op::Exit), ok, .. } => {
                plain(Key::Sync { op, object: 0 }, ok.into())
            }
            &EventKind::Sync { op, object, ok } => plain(Key::Sync { op, object }, ok.into()),
            &EventKind::Futex { word, act } => plain(Key::Futex { word, act }, 1),
            &EventKind::FutexWake { word, most, .. } => plain(Key::FutexWake { word, most }, 1),
            EventKind::Pending { .. } | EventKind::Runs => None,
        }
    }

    /// A thread stands before this operation. Adds it, if it is one before which threads may stand for ever. Returns
    /// whether it is.
    fn pending(&mut self, place: NodeId, (pc, op, object): (u64, Op, u64)) -> bool {
        let tree = &self.encoding.tree;
        let key = match op {
            // It was added where the wait began.
            Op::CondWait | Op::CondTimedWait | Op::FutexWait => return tree[place].waits.is_some(),
            Op::Barrier => return matches!(tree[place].key, Key::Sync { op: Op::Barrier, .. }),
            Op::Join => {
                let thread = u16::try_from(object).ok().and_then(|number| self.roots.get(&number).copied());
                Key::Join { thread, attempt: false }
            }
            op if may_block(op) => Key::Sync { op, object },
            _ => return false,
        };
        self.expect(place, pc, key, Outcome::Is(1));
        true
    }

    /// Adds the conditions under which an expression has a value, where the path does not have them yet.
    fn defined(&mut self, mut place: NodeId, pc: u64, conditions: &[Term]) -> NodeId {
        for &condition in conditions {
            let key = Key::Defined { condition };
            let tree = &self.encoding.tree;
            let path = std::iter::successors(Some(place), |&node| tree[node].parent);
            if path.clone().any(|node| tree[node].key == key) {
                continue;
            }
            place = self.step(place, pc, key, 1, 0);
        }
        place
    }

    /// Where a thread is that crashed: an operation that has no result tells so by the values of the execution.
    fn undefined(&mut self, mut place: NodeId) -> NodeId {
        loop {
            let Encoding { tree, clauses, .. } = &*self.encoding;
            let value = |unknown: Term| self.values.get(&unknown).copied().unwrap_or(0);
            let follows = |child: &NodeId| match (&tree[*child].key, tree[*child].outcome) {
                (&Key::Defined { condition }, Outcome::Is(outcome)) => {
                    clauses.solver.terms.evaluate(condition, &value) == Some(outcome.into())
                }
                _ => false,
            };
            let Some(next) = tree.next_of(place).find(follows) else { return place };
            if !tree[next].seen {
                self.inserted.new += 1;
            }
            self.encoding.tree[next].seen = true;
            place = next;
        }
    }

    /// Follows an event, or adds it.
    fn step(&mut self, place: NodeId, pc: u64, key: Key, outcome: u64, steps: u32) -> NodeId {
        let outcome = Outcome::Is(outcome);
        let tree = &self.encoding.tree;
        let found = tree.next_of(place).find(|&child| {
            let child = &tree[child];
            child.pc == pc
                && child.key == key
                && child.outcome == outcome
                && (child.steps == 0) == (steps == 0)
        });
        let node = match found {
            Some(node) => node,
            None => {
                self.check(place, pc, &key);
                let node = self.encoding.add(place, pc, key.clone(), outcome, steps);
                self.alternatives(place, pc, &key, outcome, steps);
                self.ends_of_wait(node);
                node
            }
        };
        if !self.encoding.tree[node].seen {
            self.encoding.tree[node].seen = true;
            self.inserted.new += 1;
            // What may happen next at an unknown event is known now.
            let tree = &self.encoding.tree;
            let unknown: Vec<NodeId> =
                tree.next_of(place).filter(|&child| tree[child].key == Key::Unknown).collect();
            for child in unknown.into_iter().filter(|&child| child != node) {
                self.encoding.tree[child].seen = true;
                self.encoding.forbid(child);
            }
        }
        node
    }

    /// Whether the tree knows of another event there.
    fn check(&mut self, place: NodeId, pc: u64, key: &Key) {
        let tree = &self.encoding.tree;
        let ends_wait = |key: &Key| {
            let is_end = matches!(key, Key::Sync { op: Op::Relock | Op::CondTimedWait | Op::Spurious, .. });
            (is_end || futexes::ends_wait(key)) && tree[place].waits.is_some()
        };
        let differs = tree.next_of(place).any(|child| {
            let child = &tree[child];
            child.key != Key::Unknown
                && (child.key != *key || child.pc != pc)
                && !(ends_wait(&child.key) && ends_wait(key))
        });
        if differs || tree[place].ends {
            self.exactness.add(Reason::Nondeterminism { pc });
        }
    }

    /// Adds the other outcomes of an event.
    fn alternatives(&mut self, place: NodeId, pc: u64, key: &Key, outcome: Outcome, steps: u32) {
        if self.encoding.tree[place].alone {
            return;
        }
        let other = match (key, outcome) {
            (Key::Branch { .. } | Key::Defined { .. }, Outcome::Is(taken)) => {
                Some(Outcome::Is(1 - taken.min(1)))
            }
            (Key::Assume { .. }, Outcome::Is(0)) => Some(Outcome::Is(1)),
            (Key::Pin { reason, .. }, _) if reason.is_exact() => Some(Outcome::Other),
            (key, Outcome::Is(ok)) if may_fail(key) => Some(Outcome::Is(1 - ok.min(1))),
            _ => None,
        };
        let Some(other) = other else { return };
        let tree = &self.encoding.tree;
        let exists = tree.next_of(place).any(|child| {
            let child = &tree[child];
            child.key == *key && child.pc == pc && child.outcome == other
        });
        if !exists {
            let node = self.encoding.add(place, pc, key.clone(), other, steps);
            self.asks(node);
        }
    }

    /// The search asks for this outcome, unless it lies behind too many rounds of a loop.
    fn asks(&mut self, node: NodeId) {
        let tree = &self.encoding.tree;
        if tree[node].parent.is_some_and(|before| rounds(tree, before) > self.rounds) {
            self.inserted.bounded = true;
        } else {
            self.inserted.open.push(node);
        }
    }

    /// Where a wait has begun: adds how it may end.
    fn ends_of_wait(&mut self, node: NodeId) {
        let tree = &self.encoding.tree;
        let pc = tree[node].pc;
        for end in futexes::ends_of_wait(&tree[node].key) {
            self.expect(node, pc, end, Outcome::Is(1));
        }
        let tree = &self.encoding.tree;
        if let Key::Sync { op: Op::Barrier, object } = tree[node].key {
            let key = Key::Sync { op: Op::BarrierLeave, object };
            return self.expect(node, tree[node].pc, key, Outcome::Is(1));
        }
        let (Some(wait), Key::Sync { op: Op::Unlock, object: mutex }) = (tree[node].waits, &tree[node].key)
        else {
            return;
        };
        let (mutex, pc, key) = (*mutex, tree[wait].pc, tree[wait].key.clone());
        // Once woken, the thread acquires the mutex that the wait has released.
        self.expect(node, pc, Key::Sync { op: Op::Relock, object: mutex }, Outcome::Is(1));
        if matches!(key, Key::Sync { op: Op::CondTimedWait, .. }) {
            self.expect(node, pc, key, Outcome::Is(0));
        }
    }

    /// A thread stands before an operation, which may be new.
    fn expect(&mut self, place: NodeId, pc: u64, key: Key, outcome: Outcome) {
        let tree = &self.encoding.tree;
        let known = tree.next_of(place).any(|child| {
            let child = &tree[child];
            child.pc == pc && child.key == key && child.outcome == outcome
        });
        if known {
            return;
        }
        if key != Key::Unknown {
            self.check(place, pc, &key);
        }
        let node = self.encoding.add(place, pc, key, outcome, 1);
        self.asks(node);
        self.inserted.new += 1;
    }

    /// What the end of the execution says of all threads.
    fn end(&mut self, trace: &SymbolicTrace, end: &End) {
        let losses = &trace.losses;
        let ender =
            trace.events.iter().rev().find(|event| is_of_thread(&event.kind)).map(|event| event.thread);
        // A thread that waits in a loop for ever is not followed so far.
        let limited = *end == End::StepLimit && !ender.is_some_and(|ender| self.left.contains(&ender));
        let named: u64 = losses.functions.iter().map(|(_, count)| count).sum();
        for &(reason, count) in &losses.pinned {
            if reason != PinReason::Foreign || count > named {
                self.exactness.add(Reason::Pinned(reason));
            }
        }
        for (function, _) in &losses.functions {
            self.exactness.add_argument_of(function);
        }
        let reasons = [
            (losses.overwritten > 0, Reason::Overwritten),
            (losses.full, Reason::TraceFull),
            (losses.incomplete, Reason::Incomplete),
            (limited, Reason::StepLimit),
            (*end == End::Stuck, Reason::Stuck),
        ];
        for (applies, reason) in reasons {
            if applies {
                self.exactness.add(reason);
            }
        }
        let cut = self.is_cut || losses.full || limited || *end == End::Stuck;
        for (thread, pending) in std::mem::take(&mut self.pending) {
            if let Some(place) = self.place(thread)
                && !cut
                && self.pending(place, pending)
            {
                self.known.insert(thread);
            }
        }
        let threads: Vec<u16> = self.roots.keys().copied().collect();
        for thread in threads {
            let Some(place) = self.place(thread).filter(|_| !self.left.contains(&thread)) else { continue };
            let finished = self.finished.contains(&thread) || self.known.contains(&thread);
            if *end == End::Deadlock {
                self.stands(place);
            } else if cut {
            } else if Some(thread) == ender && !self.has_failed {
                let place = if matches!(end, End::Signal(_)) { self.undefined(place) } else { place };
                self.ends(place);
            } else if !finished && self.encoding.tree.next_of(place).next().is_none() {
                self.expect(place, 0, Key::Unknown, Outcome::Is(1));
            }
        }
    }

    /// The thread stood there in a deadlock, unless it has ended.
    fn stands(&mut self, place: NodeId) {
        let tree = &self.encoding.tree;
        if matches!(tree[place].key, Key::Sync { op: Op::End, .. }) {
            return;
        }
        if tree.next_of(place).any(|child| blocking(&tree[child].key).is_some()) {
            self.inserted.stuck.push(place);
        } else {
            self.exactness.add(Reason::UnknownWait { pc: tree[place].pc });
        }
    }

    /// The process ended at this node of a thread.
    fn ends(&mut self, place: NodeId) {
        let node = &mut self.encoding.tree[place];
        if node.ends {
            return;
        }
        node.ends = true;
        let pc = node.pc;
        let tree = &self.encoding.tree;
        let behind: Vec<NodeId> = tree.next_of(place).collect();
        // A path on which an operation has no result ends there, as one outcome of it.
        if behind.iter().any(|&child| !matches!(tree[child].key, Key::Defined { .. } | Key::Unknown)) {
            self.exactness.add(Reason::Nondeterminism { pc });
        }
        let unknown = behind.iter().copied().filter(|&child| tree[child].key == Key::Unknown);
        let unknown: Vec<NodeId> = unknown.collect();
        if behind.is_empty() {
            self.encoding.forbid(place);
        }
        // The next step was a last one, without an event.
        for child in unknown {
            self.encoding.tree[child].seen = true;
            self.encoding.forbid(child);
        }
    }
}
