//! Accesses of memory that another thread frees, unmaps or protects. They come before that. Whether a thread can be about to
//! do one after it is a question, since the access fails then, whatever it would have read.

use crate::clauses::{Clauses, before, off};
use crate::tree::{Key, NodeId, Relation, Tree};
use std::collections::{BTreeMap, HashSet};

/// The bytes that one event ends.
const WORD: u64 = 8;

/// The ends and the accesses of each word.
#[derive(Debug, Default)]
pub struct Ends {
    words: BTreeMap<u64, Word>,
    /// The pairs that were found, each with the first of its ends.
    known: HashSet<(NodeId, NodeId)>,
    /// The pairs of an end and an access of different threads that were not taken from here.
    pub pairs: Vec<(NodeId, NodeId)>,
}

#[derive(Debug, Default)]
struct Word {
    ends: Vec<NodeId>,
    accesses: Vec<NodeId>,
}

impl Ends {
    /// A node was added.
    pub fn added(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) {
        let (address, size) = match tree[node].key {
            Key::Read { address, size, .. } | Key::Write { address, size, .. } => (address, u64::from(size)),
            Key::Sync { op, object } if op.ends_memory() => {
                let word = self.words.entry(object & !(WORD - 1)).or_default();
                word.ends.push(node);
                let accesses = word.accesses.clone();
                return accesses.into_iter().for_each(|access| self.found(clauses, tree, node, access));
            }
            _ => return,
        };
        let mut at = address & !(WORD - 1);
        while at < address + size {
            let word = self.words.entry(at).or_default();
            word.accesses.push(node);
            word.ends.clone().into_iter().for_each(|end| self.found(clauses, tree, end, node));
            at += WORD;
        }
    }

    /// Adds a pair, if both may happen in one execution, in an order that other threads decide.
    fn found(&mut self, clauses: &mut Clauses, tree: &Tree, end: NodeId, access: NodeId) {
        let end = first(tree, end);
        if tree.relation(end, access) != Relation::Concurrent || !self.known.insert((end, access)) {
            return;
        }
        let (end_node, access_node) = (&tree[end], &tree[access]);
        let in_time = before(access_node.event, end_node.event);
        clauses.clause([off(end_node.active), off(access_node.active), in_time]);
        self.pairs.push((end, access));
    }
}

/// The first of the ends of words that one operation makes: no thread runs between them.
fn first(tree: &Tree, end: NodeId) -> NodeId {
    let is_end = |node: &NodeId| matches!(tree[*node].key, Key::Sync { op, .. } if op.ends_memory());
    let before = |&node: &NodeId| tree[node].parent.filter(|_| tree[node].steps == 0).filter(is_end);
    std::iter::successors(Some(end), before).last().unwrap_or(end)
}
