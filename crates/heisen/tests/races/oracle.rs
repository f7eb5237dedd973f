//! What the race check must find, worked out the slow way: from the order in which the operations of a small program were
//! executed, which of them happen before which, as the transitive closure of all single steps, and which conflict.

use std::collections::BTreeSet;

/// A program for `interpreter.c`.
#[derive(Debug)]
pub struct Program {
    /// What each thread does.
    pub threads: Vec<String>,
}

impl Program {
    /// A random one.
    pub fn random(seed: u64) -> Program {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = move |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % n
        };
        let mut thread = |most: u64| {
            let mut text = String::new();
            let mut held = None;
            for _ in 0..2 + below(most) {
                let operation = match (below(10), held) {
                    (0..=1, None) => {
                        held = Some(below(2));
                        format!("l{}", held.unwrap_or(0))
                    }
                    (0..=1, Some(lock)) => {
                        held = None;
                        format!("u{lock}")
                    }
                    (2..=6, _) => format!("{}{}", ["r", "w"][below(2) as usize], below(5)),
                    _ => {
                        format!("{}{}", ["a", "s", "q", "z", "f", "g", "a", "s"][below(8) as usize], below(2))
                    }
                };
                text.push_str(&operation);
            }
            if let Some(lock) = held {
                text.push_str(&format!("u{lock}"));
            }
            text
        };
        let threads = if seed.is_multiple_of(3) {
            vec![thread(3), thread(3), thread(2)]
        } else {
            vec![thread(5), thread(5)]
        };
        Program { threads }
    }
}

/// An operation that was executed.
#[derive(Clone, Copy, Debug)]
struct Operation {
    slot: usize,
    what: char,
    on: usize,
}

impl Operation {
    /// From text such as `12w3`.
    fn parse(text: &str) -> Operation {
        let at = text.find(|c: char| !c.is_ascii_digit()).expect("an operation");
        let number = |digits: &str| digits.parse().expect("a number");
        Operation {
            slot: number(&text[..at]),
            what: text[at..].chars().next().expect("an operation"),
            on: number(&text[at + 1..]),
        }
    }

    fn thread(&self) -> usize {
        self.slot / 8
    }

    /// The variable that it touches, whether it writes and whether it is atomic.
    fn access(&self) -> Option<(usize, bool, bool)> {
        match self.what {
            'r' => Some((self.on, false, false)),
            'w' => Some((self.on, true, false)),
            'a' | 'q' => Some((3 + self.on, false, true)),
            's' | 'z' | 'f' | 'g' => Some((3 + self.on, true, true)),
            _ => None,
        }
    }

    /// As reports have it.
    fn shown(&self) -> String {
        let (_, write, atomic) = self.access().expect("an access");
        format!(
            "{}{} s{}",
            if atomic { "atomic " } else { "" },
            if write { "write" } else { "read" },
            self.slot
        )
    }
}

/// The pairs of operations that race in an execution.
pub fn races_in(order: &str) -> BTreeSet<String> {
    let done: Vec<Operation> = order.split_whitespace().map(Operation::parse).collect();
    let mut before = vec![vec![false; done.len()]; done.len()];
    // What an acquire of each atomic variable is after, and who released there last.
    let mut heads: [Vec<usize>; 2] = Default::default();
    let mut releaser = [usize::MAX; 2];
    for (now, operation) in done.iter().enumerate() {
        for then in 0..now {
            let earlier = done[then];
            let same_thread = earlier.thread() == operation.thread();
            let unlocked = earlier.what == 'u' && operation.what == 'l' && earlier.on == operation.on;
            before[then][now] |= same_thread || unlocked;
        }
        if matches!(operation.what, 'a' | 'f') {
            for &head in &heads[operation.on] {
                before[head][now] = true;
            }
        }
        // A store begins anew, unless it is of the thread that released last, which C++ allowed until 2020.
        if matches!(operation.what, 's' | 'z') && releaser[operation.on] != operation.thread() {
            heads[operation.on].clear();
        }
        if matches!(operation.what, 's' | 'f') {
            heads[operation.on].push(now);
            releaser[operation.on] = operation.thread();
        }
    }
    for middle in 0..done.len() {
        for from in 0..done.len() {
            for to in 0..done.len() {
                before[from][to] |= before[from][middle] && before[middle][to];
            }
        }
    }
    let mut races = BTreeSet::new();
    for (now, later) in done.iter().enumerate() {
        for (then, earlier) in done.iter().enumerate().take(now) {
            let (Some(one), Some(other)) = (earlier.access(), later.access()) else { continue };
            let conflict = one.0 == other.0 && (one.1 || other.1) && !(one.2 && other.2);
            if conflict && earlier.thread() != later.thread() && !before[then][now] {
                races.insert(super::sorted(earlier.shown(), later.shown()));
            }
        }
    }
    races
}
