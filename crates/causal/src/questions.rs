//! The questions that are open, and the answers so far.

use crate::clauses::{Clauses, Core};
use crate::tree::{Key, NodeId, Outcome, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A thread comes to this node.
    Reached(NodeId),
    /// A deadlock in which a thread stands after this node.
    Stuck(NodeId),
    /// Two threads stand before these accesses.
    Meeting(NodeId, NodeId),
    /// A thread stands before this access when the memory has ended, at the second node.
    Late(NodeId, NodeId),
}

impl Target {
    /// The node that the question is about, or the first of them.
    pub fn node(self) -> NodeId {
        let (Target::Reached(node) | Target::Stuck(node) | Target::Meeting(node, _) | Target::Late(node, _)) =
            self;
        node
    }
}

/// What is known of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It was not asked, or may be asked again.
    Open,
    /// A plan that should reach it is out.
    Out,
    /// No, as long as this does not change.
    Impossible(Core),
    /// An execution has shown it.
    Shown,
    /// It will not be asked again, without having been answered.
    GivenUp,
}

#[derive(Debug)]
struct Question {
    state: State,
    asked: bool,
}

/// All questions.
#[derive(Debug, Default)]
pub struct Questions {
    all: BTreeMap<Target, Question>,
    /// The branches whose outcome has led to a failure at once, by place.
    failures: BTreeSet<(u64, u64)>,
}

impl Questions {
    pub fn add(&mut self, target: Target) {
        self.all.entry(target).or_insert(Question { state: State::Open, asked: false });
    }

    pub fn set(&mut self, target: Target, state: State) {
        if let Some(question) = self.all.get_mut(&target) {
            question.asked |= !matches!(state, State::Open | State::Shown);
            question.state = state;
        }
    }

    /// None of them will be asked any more.
    pub fn give_up(&mut self) {
        for question in self.all.values_mut().filter(|question| question.state != State::Out) {
            question.state = State::GivenUp;
        }
    }

    /// An execution has shown this. Returns whether it is the first.
    pub fn show(&mut self, target: Target) -> bool {
        self.add(target);
        let new = !self.is_shown(target);
        self.set(target, State::Shown);
        new
    }

    /// Whether an execution has shown this.
    pub fn is_shown(&self, target: Target) -> bool {
        self.all.get(&target).is_some_and(|question| question.state == State::Shown)
    }

    /// An execution has failed at once after this outcome of the branch at this place.
    pub fn failed_after(&mut self, pc: u64, outcome: u64) {
        self.failures.insert((pc, outcome));
    }

    /// The question to ask next: first outcomes that have led to a failure elsewhere, accesses that may meet last; among
    /// those, what was never asked, and then what is near the beginning.
    pub fn next(&mut self, tree: &Tree, clauses: &Clauses) -> Option<Target> {
        let mut best = None;
        for (&target, question) in &mut self.all {
            if let Target::Reached(node) = target
                && tree[node].seen
                && question.state != State::Out
            {
                question.state = State::Shown;
            }
            let waits = match &question.state {
                State::Open => true,
                State::Impossible(core) => clauses.has_changed(core),
                State::Out | State::Shown | State::GivenUp => false,
            };
            if !waits {
                continue;
            }
            let fails =
                matches!(target, Target::Reached(node) if self.failures.contains(&branch(tree, node)));
            let meets = matches!(target, Target::Meeting(..));
            let key = (meets, !fails, question.asked, tree.depth(target.node()), target);
            if best.is_none_or(|known| key < known) {
                best = Some(key);
            }
        }
        best.map(|(.., target)| target)
    }

    /// How many questions would be asked now.
    pub fn unsettled(&self, clauses: &Clauses) -> usize {
        let unsettled = |question: &&Question| match &question.state {
            State::Open => true,
            State::Impossible(core) => clauses.has_changed(core),
            State::Out | State::Shown | State::GivenUp => false,
        };
        self.all.values().filter(unsettled).count()
    }
}

/// The place and the outcome of a branch.
fn branch(tree: &Tree, node: NodeId) -> (u64, u64) {
    match (&tree[node].key, tree[node].outcome) {
        (Key::Branch { .. }, Outcome::Is(outcome)) => (tree[node].pc, outcome),
        // No branch has this outcome.
        _ => (0, u64::MAX),
    }
}

/// The branch after which nothing but the end of a path has happened.
pub fn branch_before(tree: &Tree, node: NodeId) -> Option<(u64, u64)> {
    let path = std::iter::successors(Some(node), |&node| tree[node].parent);
    path.take(3).map(|node| branch(tree, node)).find(|(_, outcome)| *outcome != u64::MAX)
}
