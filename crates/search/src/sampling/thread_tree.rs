//! The tree of threads by creation, with the mean number of events of each thread.

use heisen_trace::{Counted, Expected};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many threads are stored: as many as the runtime counts.
const MOST: usize = 256;

/// A tree of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// The first node is the main thread.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Node {
    /// The indexes of its children, in the order of creation.
    children: Vec<usize>,
    /// The number of events in all executions in which the thread existed, and the number of these
    /// executions.
    events: u64,
    executions: u64,
}

impl Node {
    /// The mean number of events in one execution.
    fn mean(&self) -> u64 {
        (self.events + self.executions / 2).checked_div(self.executions).unwrap_or(0)
    }
}

impl Tree {
    /// Adds the counts of an execution. A thread's creator has a lower number than the thread.
    pub fn add(&mut self, counted: &[Counted]) {
        let mut places: Vec<Option<usize>> = Vec::with_capacity(counted.len());
        for thread in counted {
            let place = match thread.parent {
                None => {
                    if self.nodes.is_empty() {
                        self.nodes.push(Node::default());
                    }
                    Some(0)
                }
                Some(parent) => {
                    let parent = places.get(usize::from(parent)).copied().flatten();
                    parent.and_then(|parent| self.child(parent, thread.child))
                }
            };
            if let Some(place) = place {
                self.nodes[place].events += u64::from(thread.events);
                self.nodes[place].executions += 1;
            }
            places.push(place);
        }
    }

    /// The index of child number `child`, from 1, of a thread. Adds it if it is missing.
    fn child(&mut self, parent: usize, child: u16) -> Option<usize> {
        let index = usize::from(child).checked_sub(1)?;
        while self.nodes[parent].children.len() <= index {
            if self.nodes.len() == MOST {
                return None;
            }
            self.nodes.push(Node::default());
            let place = self.nodes.len() - 1;
            self.nodes[parent].children.push(place);
        }
        Some(self.nodes[parent].children[index])
    }

    /// The mean number of events of all threads together.
    pub fn events(&self) -> u64 {
        self.nodes.iter().map(Node::mean).sum()
    }

    /// The expected events of each thread, in the order that [`Expected`] asks for.
    pub fn expected(&self) -> Arc<[Expected]> {
        // Nodes in the order of the list: level by level, so that the children of one thread are adjacent.
        let mut order: Vec<usize> = if self.nodes.is_empty() { vec![] } else { vec![0] };
        let mut list: Vec<Expected> = Vec::with_capacity(self.nodes.len());
        let mut at = 0;
        while let Some(&place) = order.get(at) {
            let node = &self.nodes[place];
            let (first_child, children) = (order.len() as u32, node.children.len() as u32);
            list.push(Expected { events: node.mean(), first_child, children });
            order.extend(&node.children);
            at += 1;
        }
        // Children come after their parents, so a child's sum is complete before its parent needs it.
        for index in (0..list.len()).rev() {
            let children =
                list[index].first_child as usize..(list[index].first_child + list[index].children) as usize;
            let below: u64 = list[children].iter().map(|child| child.events).sum();
            list[index].events += below;
        }
        list.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(parent: Option<u16>, child: u16, events: u32) -> Counted {
        Counted { parent, child, events }
    }

    fn list(tree: &Tree) -> Vec<(u64, u32, u32)> {
        tree.expected().iter().map(|e| (e.events, e.first_child, e.children)).collect()
    }

    #[test]
    fn a_thread_has_the_events_of_those_it_creates() {
        let mut tree = Tree::default();
        assert_eq!((list(&tree), tree.events()), (vec![], 0));
        // Main creates T1 and T3, T1 creates T2.
        let counted =
            [thread(None, 0, 5), thread(Some(0), 1, 4), thread(Some(1), 1, 3), thread(Some(0), 2, 2)];
        tree.add(&counted);
        assert_eq!(list(&tree), [(14, 1, 2), (7, 3, 1), (2, 4, 0), (3, 4, 0)]);
        assert_eq!(tree.events(), 14);
    }

    #[test]
    fn threads_are_the_same_by_their_place_not_by_their_number() {
        let mut tree = Tree::default();
        tree.add(&[
            thread(None, 0, 1),
            thread(Some(0), 1, 10),
            thread(Some(0), 2, 20),
            thread(Some(1), 1, 30),
        ]);
        // This time the child of the first was created before the second child of main.
        tree.add(&[
            thread(None, 0, 1),
            thread(Some(0), 1, 10),
            thread(Some(1), 1, 30),
            thread(Some(0), 2, 20),
        ]);
        assert_eq!(list(&tree), [(61, 1, 2), (40, 3, 1), (20, 4, 0), (30, 4, 0)]);
    }

    #[test]
    fn events_are_those_of_an_execution_on_average() {
        let mut tree = Tree::default();
        tree.add(&[thread(None, 0, 4), thread(Some(0), 1, 10)]);
        tree.add(&[thread(None, 0, 4)]);
        tree.add(&[thread(None, 0, 6), thread(Some(0), 1, 13)]);
        // 14 / 3 is rounded to 5, 23 / 2 to 12.
        assert_eq!(list(&tree), [(5 + 12, 1, 1), (12, 2, 0)]);
    }

    #[test]
    fn more_threads_than_are_counted() {
        let mut tree = Tree::default();
        let mut counted = vec![thread(None, 0, 1)];
        counted.extend((1..300).map(|child| thread(Some(0), child, 2)));
        counted.push(thread(Some(299), 1, 7));
        tree.add(&counted);
        assert_eq!(list(&tree).len(), 256);
        assert_eq!(tree.events(), 1 + 255 * 2);
    }
}
