//! Computes the races that the race check must find, in a slow and simple way. The input is the order in
//! which the operations of a small program were executed. The happens-before order is the transitive closure
//! of all single edges.

use std::collections::BTreeSet;

/// A program for `interpreter.c`.
#[derive(Debug)]
pub struct Program {
    /// The operations of each thread.
    pub threads: Vec<String>,
}

/// A random number generator; each number is below a limit.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |n| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % n
    }
}

impl Program {
    /// A random program for release sequences. Each thread writes, takes part in release sequences of one
    /// variable, and reads data of another thread.
    pub fn sequences(seed: u64) -> Program {
        let mut below = numbers(seed);
        let mut thread = |number: u64| {
            let mut text = if below(3) > 0 { format!("w{number}") } else { String::new() };
            for _ in 0..1 + below(4) {
                const ATOMIC: &[u8] = b"sszzffghae";
                text.push_str(&format!("{}0", char::from(ATOMIC[below(ATOMIC.len() as u64) as usize])));
            }
            if below(3) > 0 {
                text.push_str(&format!("{}r{}", ["a0", "q0c0"][below(2) as usize], (number + 1) % 3));
            }
            text
        };
        Program { threads: (0..3).map(&mut thread).collect() }
    }

    /// A random program.
    pub fn random(seed: u64) -> Program {
        let mut below = numbers(seed);
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
                    // The operations that pass messages are twice as frequent as the others.
                    _ => {
                        const ATOMIC: &[u8] = b"aassqzqzivfghjkmecb";
                        format!("{}{}", char::from(ATOMIC[below(ATOMIC.len() as u64) as usize]), below(2))
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

/// An executed operation.
#[derive(Clone, Copy, Debug)]
struct Operation {
    slot: usize,
    what: char,
    on: usize,
}

impl Operation {
    /// Parses text such as `12w3`.
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

    /// The variable that it accesses, whether it writes, and whether it is atomic.
    fn access(&self) -> Option<(usize, bool, bool)> {
        match self.what {
            'r' => Some((self.on, false, false)),
            'w' => Some((self.on, true, false)),
            'a' | 'q' | 'i' | 'k' | 'm' => Some((3 + self.on, false, true)),
            's' | 'z' | 'v' | 'f' | 'g' | 'h' | 'j' => Some((3 + self.on, true, true)),
            _ => None,
        }
    }

    /// Whether it writes an atomic variable.
    fn modifies(&self) -> bool {
        self.access().is_some_and(|(_, write, atomic)| write && atomic)
    }

    fn is_update(&self) -> bool {
        matches!(self.what, 'f' | 'g' | 'h' | 'j')
    }

    /// Whether it reads an atomic variable.
    fn looks(&self) -> bool {
        self.is_update() || matches!(self.what, 'a' | 'q' | 'i' | 'k' | 'm')
    }

    fn releases(&self) -> bool {
        matches!(self.what, 's' | 'v' | 'f' | 'h')
    }

    fn acquires(&self) -> bool {
        matches!(self.what, 'a' | 'i' | 'f' | 'j' | 'k')
    }

    fn is_release_fence(&self) -> bool {
        matches!(self.what, 'e' | 'b')
    }

    fn is_acquire_fence(&self) -> bool {
        matches!(self.what, 'c' | 'b')
    }

    /// The form in which reports show the operation.
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

/// The modifications from which a read gets its value: the last one before it and, as long as that is a
/// read-modify-write, the one before that. If such a modification releases, it heads a release sequence that
/// the value belongs to (C++20, intro.races).
fn sequence(done: &[Operation], read: usize) -> Vec<usize> {
    let same = |at: usize| done[at].modifies() && done[at].on == done[read].on;
    let mut heads: Vec<usize> = Vec::new();
    for at in (0..read).rev().filter(|&at| same(at)) {
        heads.push(at);
        if !done[at].is_update() {
            break;
        }
    }
    heads
}

/// The pairs of operations that race in an execution.
pub fn races_in(order: &str) -> BTreeSet<String> {
    let done: Vec<Operation> = order.split_whitespace().map(Operation::parse).collect();
    let mut before = vec![vec![false; done.len()]; done.len()];
    for (now, operation) in done.iter().enumerate() {
        for then in 0..now {
            let earlier = done[then];
            let same_thread = earlier.thread() == operation.thread();
            let unlocked = earlier.what == 'u' && operation.what == 'l' && earlier.on == operation.on;
            before[then][now] |= same_thread || unlocked;
        }
        if !operation.looks() {
            continue;
        }
        // "Synchronises with", for operations and fences (C++20, atomics.order and atomics.fences). The edge
        // starts at the head, or at a release fence before it in its thread. It ends at the read, or at an
        // acquire fence after it in its thread.
        let of = |thread: usize, fence: fn(&Operation) -> bool| {
            let done = &done;
            (0..done.len()).filter(move |&at| done[at].thread() == thread && fence(&done[at]))
        };
        let fences = of(operation.thread(), Operation::is_acquire_fence).filter(|&at| at > now);
        let targets: Vec<usize> = operation.acquires().then_some(now).into_iter().chain(fences).collect();
        for head in sequence(&done, now) {
            let fences = of(done[head].thread(), Operation::is_release_fence).filter(|&at| at < head);
            for source in done[head].releases().then_some(head).into_iter().chain(fences) {
                targets.iter().for_each(|&target| before[source][target] = true);
            }
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
