//! Thread expressions: the sets of threads that commands take. CONCURRIT (PLDI'13), figure 4.

use std::collections::BTreeSet;

/// A set of threads: some, or all except some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Whether the set is all threads except those in the list, rather than those in the list.
    pub any: bool,
    /// The list of threads.
    pub list: BTreeSet<usize>,
}

impl Threads {
    /// One thread.
    pub fn one(thread: usize) -> Threads {
        Threads { any: false, list: BTreeSet::from([thread]) }
    }

    /// All threads.
    pub fn any() -> Threads {
        Threads { any: true, list: BTreeSet::new() }
    }

    /// Whether a thread belongs to the set.
    pub fn has(&self, thread: usize) -> bool {
        self.list.contains(&thread) != self.any
    }

    /// The union with another set.
    pub fn plus(mut self, others: &Threads) -> Threads {
        match (self.any, others.any) {
            (true, false) => self.list.retain(|thread| !others.has(*thread)),
            (false, false) => self.list.extend(&others.list),
            (false, true) => {
                let list = others.list.iter().filter(|thread| !self.list.contains(thread)).copied().collect();
                return Threads { any: true, list };
            }
            (true, true) => self.list.retain(|thread| !others.has(*thread)),
        }
        self
    }

    /// The set without the threads of another set.
    pub fn minus(mut self, others: &Threads) -> Threads {
        match (self.any, others.any) {
            (true, false) => self.list.extend(&others.list),
            (false, _) => self.list.retain(|thread| !others.has(*thread)),
            (true, true) => {
                let list = others.list.iter().filter(|thread| !self.list.contains(thread)).copied().collect();
                return Threads { any: false, list };
            }
        }
        self
    }
}
