//! Oracles: they resolve the choices of a script, and decide which execution is next. CONCURRIT (PLDI'13),
//! section 4 and figure 7.
//!
//! The sequence of its choices identifies an execution. A set of prefixes of such sequences is left to be
//! explored. None of them is a prefix of a sequence that was run, so no sequence is run twice. Oracles differ
//! in the prefix they take next. After the prefix an execution takes the first choice everywhere, and the
//! other choices become new prefixes.

use std::collections::BTreeMap;

/// The order in which choices are explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last choice first (figure 7).
    #[default]
    Depth,
    /// The earliest choice first.
    Breadth,
    /// First the executions that differ least from the usual choice: a thread continues as long as it can.
    /// The number of preemptions bounds such a search as in iterative context bounding (Musuvathi and Qadeer,
    /// PLDI'07).
    Few,
    /// At random, from this seed.
    Random(u64),
}

/// A choice that was made.
#[derive(Clone, Copy, Debug)]
struct Taken {
    chosen: usize,
    options: usize,
    /// The usual choice.
    usual: usize,
}

/// Resolves choices, and stores the prefixes that are left.
#[derive(Clone, Debug)]
pub struct Oracle {
    order: Order,
    /// The prefixes that are left, by cost and by when they were found. The first is next; for
    /// [`Order::Depth`], the last.
    left: BTreeMap<(usize, u64), Vec<usize>>,
    found: u64,
    /// The choices of this execution.
    taken: Vec<Taken>,
    /// The prefix of this execution.
    prefix: Vec<usize>,
    /// How often there were fewer options than the prefix needs.
    pub diverged: u64,
    random: u64,
}

impl Oracle {
    /// An oracle for all sequences of choices.
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

    /// An oracle for a single sequence.
    pub fn of(choices: Vec<usize>) -> Oracle {
        Oracle { prefix: choices, ..Oracle::new(Order::Depth) }
    }

    /// Chooses one of `options`, at least one. The first is the usual choice.
    pub fn choose(&mut self, options: usize) -> usize {
        self.choose_or(options, 0)
    }

    /// Chooses one of `options`, of which `usual` is the usual choice.
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

    /// The oracle as it was when this execution began.
    pub fn again(mut self) -> Oracle {
        self.taken.clear();
        self
    }

    /// Whether the next choice repeats an earlier execution.
    pub fn repeats(&self) -> bool {
        self.taken.len() < self.prefix.len()
    }

    /// The choices of this execution.
    pub fn choices(&self) -> Vec<usize> {
        self.taken.iter().map(|taken| taken.chosen).collect()
    }

    /// Called when the execution has ended. Returns whether there is another one, which begins now.
    pub fn restart(&mut self) -> bool {
        let taken = std::mem::take(&mut self.taken);
        // The sequences that first differ from here on. Those that differ at the last choice are added last,
        // and are next.
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

    /// All sequences that an oracle visits in a tree of choices. `options` gives the number of options after
    /// a sequence, 0 at its end.
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

    /// A random tree of choices: the number of options depends on all choices before.
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
