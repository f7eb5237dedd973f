//! The questions that are open, and the answers so far.

use crate::clauses::{Clauses, Core};
use crate::encode::may_fail;
use crate::rounds::rounds;
use crate::tree::{Key, Node, NodeId, Outcome, Tree};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A thread comes to this node.
    Reached(NodeId),
    /// A deadlock in which a thread stands after this node.
    Stuck(NodeId),
    /// Two threads stand before these accesses.
    Meeting(NodeId, NodeId),
    /// A livelock in which a thread is in a loop at this node.
    Livelock(NodeId),
    /// A thread stands before this access when the memory has ended, at the second node.
    Late(NodeId, NodeId),
}

impl Target {
    /// The node that the question is about, or the first of them.
    pub fn node(self) -> NodeId {
        match self {
            Target::Reached(node)
            | Target::Stuck(node)
            | Target::Meeting(node, _)
            | Target::Livelock(node)
            | Target::Late(node, _) => node,
        }
    }
}

impl Target {
    /// The most rounds of a waiting loop that a thread does on the way there.
    pub fn rounds(self, tree: &Tree) -> u32 {
        let before = |node: NodeId| tree[node].rounds;
        match self {
            Target::Reached(node) => before(node),
            // The thread stands behind the node.
            Target::Stuck(node) | Target::Livelock(node) => before(node).max(rounds(tree, node)),
            Target::Meeting(a, b) | Target::Late(a, b) => before(a).max(before(b)),
        }
    }
}

/// The numbers of rounds up to which the search asks everything before it goes on: powers of two.
pub fn level(rounds: u32) -> u32 {
    rounds.checked_next_power_of_two().unwrap_or(u32::MAX)
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

impl Question {
    /// Whether it would be asked now.
    fn waits(&self, clauses: &Clauses) -> bool {
        match &self.state {
            State::Open => true,
            State::Impossible(core) => clauses.has_changed(core),
            State::Out | State::Shown | State::GivenUp => false,
        }
    }
}

/// All questions.
#[derive(Debug, Default)]
pub struct Questions {
    all: BTreeMap<Target, Question>,
    /// The branches whose outcome has led to a failure at once, by place.
    failures: BTreeSet<(u64, u64)>,
    /// Those to be asked, the next one last, as long as no execution adds anything. Answers only remove some.
    waiting: Option<Vec<Target>>,
}

impl Questions {
    /// An execution has added to the tree, or to the constraints.
    pub fn learnt(&mut self) {
        self.waiting = None;
    }

    pub fn add(&mut self, target: Target) {
        self.waiting = None;
        self.all.entry(target).or_insert(Question { state: State::Open, asked: false });
    }

    pub fn set(&mut self, target: Target, state: State) {
        if state == State::Open {
            self.waiting = None;
        }
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

    /// The question to ask next: first what needs few rounds of waiting loops; among those, outcomes that have led to a
    /// failure elsewhere, and accesses that may meet last; then deadlocks, and outcomes that no execution had at that place
    /// in the code, such as that of an assertion that fails; then what was never asked, and what is near the beginning or,
    /// if `deep`, far from it. Some bugs need the one, some the other.
    pub fn next(&mut self, tree: &Tree, clauses: &Clauses, deep: bool) -> Option<Target> {
        let mut waiting = self.waiting.take().unwrap_or_else(|| self.sorted(tree, clauses, deep));
        let waits = |target: &Target| self.all.get(target).is_some_and(|question| question.waits(clauses));
        while waiting.pop_if(|target| !waits(target)).is_some() {}
        let next = waiting.last().copied();
        self.waiting = Some(waiting);
        next
    }

    /// All that wait, the next one last.
    fn sorted(&mut self, tree: &Tree, clauses: &Clauses, deep: bool) -> Vec<Target> {
        let seen = tree.nodes.iter().filter(|node| node.seen);
        let taken: HashSet<(u64, u64)> = seen.filter_map(outcome_at).collect();
        let is_taken = |target: Target| match target {
            Target::Reached(node) => outcome_at(&tree[node]).is_none_or(|outcome| taken.contains(&outcome)),
            Target::Stuck(_) => false,
            Target::Meeting(..) | Target::Livelock(_) | Target::Late(..) => true,
        };
        let mut keys = Vec::new();
        for (&target, question) in &mut self.all {
            if let Target::Reached(node) = target
                && tree[node].seen
                && question.state != State::Out
            {
                question.state = State::Shown;
            }
            if question.waits(clauses) {
                let fails =
                    matches!(target, Target::Reached(node) if self.failures.contains(&branch(tree, node)));
                let meets = matches!(target, Target::Meeting(..));
                let depth = i64::from(tree.depth(target.node()));
                let depth = if deep { -depth } else { depth };
                let order = (level(target.rounds(tree)), meets, !fails, is_taken(target));
                keys.push((order, question.asked, depth, target));
            }
        }
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.into_iter().map(|(.., target)| target).collect()
    }

    /// Whether each question that needs at most so many rounds of waiting loops has an answer.
    pub fn are_settled(&self, rounds: u32, tree: &Tree, clauses: &Clauses) -> bool {
        let is_open = |question: &Question| {
            question.waits(clauses) || matches!(question.state, State::Out | State::GivenUp)
        };
        !self.all.iter().any(|(target, question)| is_open(question) && target.rounds(tree) <= rounds)
    }

    /// How many questions would be asked now.
    pub fn unsettled(&self, clauses: &Clauses) -> usize {
        self.all.values().filter(|question| question.waits(clauses)).count()
    }
}

/// The place in the code of an event that has several outcomes, and its outcome.
fn outcome_at(node: &Node) -> Option<(u64, u64)> {
    let has_others = matches!(node.key, Key::Branch { .. } | Key::Defined { .. }) || may_fail(&node.key);
    match node.outcome {
        Outcome::Is(outcome) if has_others => Some((node.pc, outcome)),
        _ => None,
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
