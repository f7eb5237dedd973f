//! Oracles: who resolves the choices of a script, and which execution is next. CONCURRIT (PLDI'13), section 4 and figure 7.
//!
//! An execution is known by the sequence of its choices. What is left to be explored is a set of prefixes of such sequences, none of
//! which is a prefix of one that was run, so no sequence is run twice; an oracle differs from another by which it takes next. After
//! the prefix it is the first choice everywhere, and the others become prefixes of their own.

use std::collections::BTreeSet;

/// The order in which choices are explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last choice first (figure 7).
    #[default]
    Depth,
    /// The earliest choice first.
    Breadth,
    /// Those first that differ least from the first choice everywhere.
    Few,
    /// At random, from this seed.
    Random(u64),
}

/// Resolves choices, and keeps what is left.
#[derive(Clone, Debug)]
pub struct Oracle {
    order: Order,
    /// Prefixes that are left: for [`Order::Few`] and [`Order::Breadth`] the smallest is next, for [`Order::Depth`] the last.
    left: Vec<Vec<usize>>,
    /// The choices of this execution: which, of how many.
    taken: Vec<(usize, usize)>,
    /// How many of them the prefix tells.
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
            left: Vec::new(),
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

    /// One of `options`, which are at least one.
    pub fn choose(&mut self, options: usize) -> usize {
        let at = self.taken.len();
        let wanted = self.prefix.get(at).copied().unwrap_or(0);
        if wanted >= options {
            self.diverged += 1;
        }
        let chosen = wanted.min(options.saturating_sub(1));
        self.taken.push((chosen, options));
        chosen
    }

    /// As it was when this execution began.
    pub fn again(mut self) -> Oracle {
        self.taken.clear();
        self
    }

    /// The choices of this execution.
    pub fn choices(&self) -> Vec<usize> {
        self.taken.iter().map(|(chosen, _)| *chosen).collect()
    }

    /// The execution has ended. Whether there is another one, which begins now.
    pub fn restart(&mut self) -> bool {
        let taken = std::mem::take(&mut self.taken);
        // Those that differ from here on for the first time. The last choice is left first, so the last one is next.
        for at in self.prefix.len()..taken.len() {
            let (chosen, options) = taken[at];
            for other in (0..options).rev().filter(|other| *other != chosen) {
                let mut prefix: Vec<usize> = taken[..at].iter().map(|(chosen, _)| *chosen).collect();
                prefix.push(other);
                self.left.push(prefix);
            }
        }
        match self.take() {
            Some(prefix) => {
                self.prefix = prefix;
                true
            }
            None => false,
        }
    }

    fn take(&mut self) -> Option<Vec<usize>> {
        let cost = |prefix: &Vec<usize>| match self.order {
            Order::Few => prefix.iter().filter(|choice| **choice != 0).count(),
            _ => prefix.len(),
        };
        match self.order {
            Order::Depth => self.left.pop(),
            Order::Breadth | Order::Few => {
                let first = (0..self.left.len()).min_by_key(|&at| (cost(&self.left[at]), &self.left[at]))?;
                Some(self.left.swap_remove(first))
            }
            Order::Random(_) => {
                let count = self.left.len();
                (count > 0).then(|| {
                    let at = (self.next_random() % count as u64) as usize;
                    self.left.swap_remove(at)
                })
            }
        }
    }

    fn next_random(&mut self) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// How many prefixes are left to be explored, at least.
    pub fn left(&self) -> usize {
        self.left.len()
    }
}

/// All sequences that an oracle goes through for a given tree of choices, for tests: `options` tells how many there are
/// after a sequence, 0 at its end.
pub fn all(mut oracle: Oracle, options: impl Fn(&[usize]) -> usize) -> Vec<Vec<usize>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tree of choices by chance: how many there are depends on all that was chosen before.
    fn options(seed: u64, sequence: &[usize]) -> usize {
        let hash = sequence.iter().fold(seed, |hash, choice| {
            (hash ^ *choice as u64).wrapping_mul(0x100_0000_01b3).rotate_left(17)
        });
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
        assert_eq!(first(Order::Breadth, 3), [[0, 0, 0], [1, 0, 0], [0, 1, 0]]);
        assert_eq!(first(Order::Few, 4), [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]);
    }

    #[test]
    fn a_sequence_that_is_given() {
        let mut oracle = Oracle::of(vec![1, 5]);
        assert_eq!((oracle.choose(2), oracle.choose(3), oracle.choose(2)), (1, 2, 0));
        assert_eq!((oracle.choices(), oracle.diverged), (vec![1, 2, 0], 1));
    }
}
