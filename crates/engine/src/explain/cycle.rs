//! Finds the cycle of an execution that does not end: what its last events repeat.
//!
//! CHESS (OSDI'08) section 4.5 leaves it to the user to find out why an execution is too long. Here the last
//! events are compared with themselves. Of all suffixes that have a period, the longest is taken; its
//! shortest period is the cycle. Threads take turns under the fair schedule, so loops of different lengths
//! make one long cycle together. In that case each thread is examined by itself.

use crate::process::slots::Event;
use heisen_trace::ThreadId;
use heisen_trace::cycle::Order;
use std::collections::{BTreeMap, HashMap};

/// How many of the last events are examined.
const WINDOW: usize = 20_000;
/// How often a cycle must repeat, and how many events it must span, if there are that many.
const ROUNDS: usize = 3;
const SPAN: usize = 60;
/// A longer cycle of all threads is shown thread by thread.
const LONG: usize = 12;
/// How many steps are shown.
const KEPT: usize = 64;
/// How many steps are shown if they have no order.
const FREQUENT: usize = 8;

/// The parts of an event that are equal in each round.
type Key = (ThreadId, u64, u8, u64, bool);

fn key(event: &Event) -> Key {
    (event.thread, event.pc, event.op as u8, event.object, event.ok)
}

/// The repeated events, each with how often it happened.
#[derive(Debug)]
pub(crate) struct Found {
    pub order: Order,
    /// How many events were examined.
    pub of: usize,
    /// The number of events in one round; 0 if there is no order.
    pub length: usize,
    pub events: Vec<(Event, u32)>,
}

/// How much of the end of an execution is examined.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fair {
    /// The second half.
    Half,
    /// The last quarter, in which threads take turns.
    Quarter,
}

/// What the last events repeat; `None` if there are no events.
pub(crate) fn find(events: &[Event], fair: Fair) -> Option<Found> {
    let last = events.last()?.step;
    let before = match fair {
        Fair::Half => last / 2,
        Fair::Quarter => last - last / 4,
    };
    let fair = events.iter().rposition(|e| e.step <= before).map_or(0, |last| last + 1);
    let window = &events[fair.max(events.len().saturating_sub(WINDOW))..];
    let mut times: HashMap<Key, u32> = HashMap::new();
    for event in window {
        *times.entry(key(event)).or_default() += 1;
    }
    let found = |order, length, rounds: Vec<Event>| Found {
        order,
        of: window.len(),
        length,
        events: rounds.into_iter().take(KEPT).map(|e| (e, times[&key(&e)])).collect(),
    };
    let whole = last_round(window);
    if let Some(round) = whole.as_ref().filter(|round| round.len() <= LONG) {
        return Some(found(Order::Exact, round.len(), round.clone()));
    }
    let mut threads: BTreeMap<ThreadId, Vec<Event>> = BTreeMap::new();
    for &event in window {
        threads.entry(event.thread).or_default().push(event);
    }
    // A thread that ended or blocked in the meantime repeats nothing.
    let late = window.len() - window.len() / 4;
    threads.retain(|thread, _| window[late..].iter().any(|e| e.thread == *thread));
    let each: Option<Vec<Vec<Event>>> = threads.values().map(|events| last_round(events)).collect();
    match (each.map(|rounds| rounds.concat()), whole) {
        (Some(each), whole) if whole.as_ref().is_none_or(|whole| each.len() < whole.len()) => {
            Some(found(Order::EachThread, each.len(), each))
        }
        (_, Some(whole)) => Some(found(Order::Exact, whole.len(), whole)),
        _ => {
            let mut places: BTreeMap<Key, Event> = BTreeMap::new();
            for event in window {
                places.entry(key(event)).or_insert(*event);
            }
            let mut all: Vec<Event> = places.into_values().collect();
            all.sort_by_key(|e| std::cmp::Reverse(times[&key(e)]));
            all.truncate(FREQUENT);
            Some(found(Order::Frequent, 0, all))
        }
    }
}

/// The last round of the events, rotated so that it begins with the first thread's first place.
fn last_round(events: &[Event]) -> Option<Vec<Event>> {
    let keys: Vec<Key> = events.iter().rev().map(key).collect();
    let period = period(&keys)?;
    let mut round = events[events.len() - period..].to_vec();
    let first = (0..period).min_by_key(|&i| (round[i].thread, round[i].pc))?;
    round.rotate_left(first);
    Some(round)
}

/// The shortest period of the longest prefix that has one, by the borders of Knuth, Morris and Pratt.
fn period(keys: &[Key]) -> Option<usize> {
    let mut border = vec![0; keys.len() + 1];
    let mut best = None;
    let mut matched = 0;
    for length in 2..=keys.len() {
        while matched > 0 && keys[length - 1] != keys[matched] {
            matched = border[matched];
        }
        if keys[length - 1] == keys[matched] {
            matched += 1;
        }
        border[length] = matched;
        let period = length - matched;
        if period * ROUNDS <= length && length >= SPAN.min(keys.len()) {
            best = Some(period);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::Op;

    /// Events as letters: the case is the thread, the letter is the place.
    fn events(text: &str) -> Vec<Event> {
        let event = |(step, c): (usize, char)| Event {
            step: 1000 + step as u32,
            thread: ThreadId(u16::from(c.is_lowercase())),
            op: Op::Lock,
            ok: true,
            object: 0,
            pc: c as u64,
            access: None,
            ended: 0,
        };
        text.chars().enumerate().map(event).collect()
    }

    fn round(text: &str) -> (Order, String) {
        let found = find(&events(text), Fair::Half).expect("events");
        let letter = |(e, _): &(Event, u32)| char::from(e.pc as u8);
        (found.order, found.events.iter().map(letter).collect())
    }

    #[test]
    fn the_shortest_cycle_of_the_end() {
        assert_eq!(round(&"a".repeat(100)), (Order::Exact, "a".into()));
        assert_eq!(round(&("xyzzy".to_owned() + &"bca".repeat(50))), (Order::Exact, "abc".into()));
        // A repetition within the cycle is not the cycle.
        assert_eq!(round(&"abbbbc".repeat(40)), (Order::Exact, "abbbbc".into()));
        // The log may end anywhere in a round.
        assert_eq!(round(&("abAB".repeat(40) + "abA")), (Order::Exact, "ABab".into()));
    }

    #[test]
    fn loops_of_different_lengths_are_distinguished() {
        let text: String =
            (0..2000).map(|i| format!("{}{}", &"ABCDE"[i % 5..][..1], &"abcd"[i % 4..][..1])).collect();
        assert_eq!(round(&text), (Order::EachThread, "ABCDEabcd".into()));
    }

    #[test]
    fn without_a_cycle_the_frequent_places() {
        let text: String = (0..300)
            .map(|i| "a".repeat(i % 17 + i / 17) + "b" + if i % 7 == i % 4 { "c" } else { "" })
            .collect();
        assert_eq!(round(&text), (Order::Frequent, "abc".into()));
        assert!(find(&[], Fair::Half).is_none());
    }

    #[test]
    fn what_was_before_the_fair_half_does_not_count() {
        let mut all = events(&("x".repeat(1500) + &"ab".repeat(300)));
        for (step, event) in all.iter_mut().enumerate() {
            event.step = step as u32;
        }
        let found = find(&all, Fair::Half).expect("events");
        assert_eq!((found.length, found.of), (2, 1050));
        assert_eq!(found.events.iter().map(|e| e.1).collect::<Vec<_>>(), [300, 300]);
        let found = find(&all, Fair::Quarter).expect("events");
        assert_eq!((found.length, found.of), (2, 524));
    }
}
