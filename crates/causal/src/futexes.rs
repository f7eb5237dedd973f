//! Futexes: waits in a queue that begin where a word has a value, and wakes of some waiters.
//!
//! The comparison of the word is a read and a branch of the same step, before the wait. The number of threads that a wake
//! has woken is an unknown, because the program may look at it.

use crate::clauses::Clauses;
use crate::queues::Queues;
use crate::tree::{Key, NodeId, Tree};
use heisen_solver::{Model, Term};
use heisen_trace::symbolic::FutexAct;

/// The bits of the number of threads that a wake has woken.
pub const COUNT_BITS: u32 = 16;

/// All futexes, by the address of the word.
#[derive(Debug, Default)]
pub struct Futexes(Queues);

impl Futexes {
    /// A thread begins to wait, or goes on after that.
    pub fn act(&mut self, clauses: &mut Clauses, tree: &mut Tree, node: NodeId, word: u64, act: FutexAct) {
        match act {
            FutexAct::Waits { .. } => {
                self.0.wait(clauses, tree, node, word);
                tree[node].waits = Some(node);
            }
            FutexAct::Woken => {
                if let Some(wait) = tree[node].waits.take() {
                    self.0.woken(clauses, tree, node, word, wait);
                }
            }
            FutexAct::TimedOut => {
                if let Some(wait) = tree[node].waits.take() {
                    self.0.left(clauses, tree, node, word, wait);
                }
            }
        }
    }

    /// A thread wakes at most so many others.
    pub fn wake(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, word: u64, most: u32) {
        if let Some(unknown) = tree[node].unknown {
            self.0.count(clauses, tree, node, word, unknown);
        }
        self.0.wake(clauses, tree, node, word, most);
    }

    /// Whether this wake wakes the thread that waits since `wait`.
    pub fn wakes(&self, model: &Model, word: u64, wake: NodeId, wait: NodeId) -> bool {
        self.0.wakes(model, word, wake, wait)
    }

    /// From the result follows that nothing wakes the thread that waits since `wait`.
    pub fn asleep(&mut self, clauses: &mut Clauses, word: u64, wait: NodeId) -> Option<Term> {
        self.0.asleep(clauses, word, wait)
    }
}

/// How a wait may end that begins with this event.
pub fn ends_of_wait(key: &Key) -> Vec<Key> {
    match *key {
        Key::Futex { word, act: FutexAct::Waits { timed } } => {
            let ends = [(FutexAct::Woken, true), (FutexAct::TimedOut, timed)];
            ends.into_iter().filter(|(_, may)| *may).map(|(act, _)| Key::Futex { word, act }).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether this event ends a wait.
pub fn ends_wait(key: &Key) -> bool {
    matches!(key, Key::Futex { act: FutexAct::Woken | FutexAct::TimedOut, .. })
}
