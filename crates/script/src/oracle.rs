//! Oracles: who resolves the choices of a script, and which execution is next. CONCURRIT (PLDI'13), section 4 and figure 7.
//!
//! An execution is known by the sequence of its choices. What is left to be explored is a set of prefixes of such sequences, none of
//! which is a prefix of one that was run, so no sequence is run twice; an oracle differs from another by which it takes next. After
//! the prefix it is the first choice everywhere, and the others become prefixes of their own.

use std::collections::BTreeMap;

/// The order in which choices are explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last choice first (figure 7).
    #[default]
    Depth,
    /// The earliest choice first.
    Breadth,
    /// Those first that differ least from what is usual: a thread goes on as long as it can. The number of preemptions bounds such a
    /// search as in iterative context bounding (Musuvathi and Qadeer, PLDI'07).
    Few,
    /// At random, from this seed.
    Random(u64),
}

/// A choice.
#[derive(Clone, Copy, Debug)]
struct Taken {
    chosen: usize,
    options: usize,
    /// What is chosen if nothing speaks against it.
    usual: usize,
}

/// Resolves choices, and keeps what is left.
#[derive(Clone, Debug)]
pub struct Oracle {
    order: Order,
    /// Prefixes that are left, by what they cost and when they were found: the first is next, for [`Order::Depth`] the last.
    left: BTreeMap<(usize, u64), Vec<usize>>,
    found: u64,
    /// The choices of this execution.
    taken: Vec<Taken>,
    /// The first of them.
    prefix: Vec<usize>,
    /// Choices that were not as they had been: there were fewer than the prefix wants.
    pub diverged: u64,
    random: u64,
}

impl Oracle {
    /// For all sequences of choices.
    pub fn new(order: Order) -> Oracle {
        let seed = if let Order::Random(seed) = order { seed } else { 0 };
        Oracle {
            order,
            left: BTreeMap::new(),
            found: 0,
            taken: Vec::new(),
            prefix: Vec::new(),
            diverged: 0,
            random: seed ^ 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// For one sequence only.
    pub fn of(choices: Vec<usize>) -> Oracle {
        Oracle { prefix: choices, ..Oracle::new(Order::Depth) }
    }

    /// One of `options`, which are at least one, and of which the first is usual.
    pub fn choose(&mut self, options: usize) -> usize {
        self.choose_or(options, 0)
    }

    /// One of `options`, of which one is usual.
    pub fn choose_or(&mut self, options: usize, usual: usize) -> usize {
        let first = if self.order == Order::Few { usual } else { 0 };
        let wanted = self.prefix.get(self.taken.len()).copied().unwrap_or(first);
        if wanted >= options {
            self.diverged += 1;
        }
        let chosen = wanted.min(options.saturating_sub(1));
        self.taken.push(Taken { chosen, options, usual });
        chosen
    }

    /// As it was when this execution began.
    pub fn again(mut self) -> Oracle {
        self.taken.clear();
        self
    }

    /// Whether the next choice is one of an execution before.
    pub fn repeats(&self) -> bool {
        self.taken.len() < self.prefix.len()
    }

    /// The choices of this execution.
    pub fn choices(&self) -> Vec<usize> {
        self.taken.iter().map(|taken| taken.chosen).collect()
    }

    /// The execution has ended. Whether there is another one, which begins now.
    pub fn restart(&mut self) -> bool {
        let taken = std::mem::take(&mut self.taken);
        // Those that differ from here on for the first time. The last choice is left first, so the last one is next.
        let unusual = |taken: &&Taken| taken.chosen != taken.usual;
        for at in self.prefix.len()..taken.len() {
            let Taken { chosen, options, usual } = taken[at];
            let before = taken[..at].iter().filter(unusual).count();
            for other in (0..options).rev().filter(|other| *other != chosen) {
                let mut prefix: Vec<usize> = taken[..at].iter().map(|taken| taken.chosen).collect();
                prefix.push(other);
                let cost = match self.order {
                    Order::Few => before + usize::from(other != usual),
                    Order::Breadth => prefix.len(),
                    Order::Depth => 0,
                    Order::Random(_) => self.next_random() as usize,
                };
                self.found += 1;
                self.left.insert((cost, self.found), prefix);
            }
        }
        let next = if self.order == Order::Depth { self.left.pop_last() } else { self.left.pop_first() };
        self.prefix = next.as_ref().map(|(_, prefix)| prefix.clone()).unwrap_or_default();
        next.is_some()
    }

    fn next_random(&mut self) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// All sequences that an oracle goes through for a given tree of choices: `options` tells how many there are
    /// after a sequence, 0 at its end.
    fn all(mut oracle: Oracle, options: impl Fn(&[usize]) -> usize) -> Vec<Vec<usize>> {
        let mut out = Vec::new();
        let mut seen = BTreeSet::new();
        loop {
            let mut sequence = Vec::new();
            loop {
                match options(&sequence) {
                    0 => break,
                    count => sequence.push(oracle.choose(count)),
                }
            }
            assert!(seen.insert(sequence.clone()), "{sequence:?} is run twice");
            out.push(sequence);
            if !oracle.restart() {
                return out;
            }
        }
    }

    /// A tree of choices by chance: how many there are depends on all that was chosen before.
    fn options(seed: u64, sequence: &[usize]) -> usize {
        let hash = sequence
            .iter()
            .fold(seed, |hash, choice| (hash ^ *choice as u64).wrapping_mul(0x100_0000_01b3).rotate_left(17));
        if sequence.len() > 5 { 0 } else { (hash >> 7) as usize % 4 }
    }

    /// Every sequence, by recursion.
    fn brute(seed: u64, prefix: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
        match options(seed, prefix) {
            0 => out.push(prefix.clone()),
            count => {
                for choice in 0..count {
                    prefix.push(choice);
                    brute(seed, prefix, out);
                    prefix.pop();
                }
            }
        }
    }

    proptest! {
        #[test]
        fn each_order_runs_each_sequence_once(seed: u64) {
            let mut expected = Vec::new();
            brute(seed, &mut Vec::new(), &mut expected);
            for order in [Order::Depth, Order::Breadth, Order::Few, Order::Random(seed)] {
                let mut found = all(Oracle::new(order), |sequence| options(seed, sequence));
                if order == Order::Depth {
                    prop_assert_eq!(&found, &expected);
                }
                found.sort();
                prop_assert_eq!(&found, &expected);
            }
        }
    }

    #[test]
    fn orders() {
        let binary = |sequence: &[usize]| if sequence.len() == 3 { 0 } else { 2 };
        let first = |order, count| all(Oracle::new(order), binary)[..count].to_vec();
        assert_eq!(first(Order::Depth, 3), [[0, 0, 0], [0, 0, 1], [0, 1, 0]]);
        assert_eq!(first(Order::Breadth, 4), [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]);
        assert_eq!(first(Order::Few, 5), [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]]);
    }

    #[test]
    fn a_sequence_that_is_given() {
        let mut oracle = Oracle::of(vec![1, 5]);
        assert_eq!((oracle.choose(2), oracle.choose(3), oracle.choose(2)), (1, 2, 0));
        assert_eq!((oracle.choices(), oracle.diverged), (vec![1, 2, 0], 1));
    }
}
