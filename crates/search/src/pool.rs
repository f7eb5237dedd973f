//! Plans that wait, kept small: a long search holds millions of them.
//!
//! The plans that follow from one execution share its overrides and differ only in the decision they add. A
//! [`Spread`] is all of them: the shared overrides once, and the points at which to leave; a plan is only made when it
//! is handed out. So a spread costs 72 bytes, 12 for each override it shares and 16 for each point, and a waiting plan
//! about 16 bytes and its part of the rest, where storing it whole would take some 100 bytes and 12 for each override. With
//! a cache of states each waiting plan takes 8 bytes more.

use crate::branch::Point;
use heisen_trace::{Override, Plan, Policy};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::VecDeque;

/// The waiting plans that follow from one execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spread {
    base: Box<[Override]>,
    preemptions: u32,
    /// The next choice to take at the last point.
    next: u16,
    points: Vec<Point>,
    /// The edges that the plans lead over, those of each point together; see [`cache`](crate::cache). None without a cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edges: Vec<u64>,
}

/// A plan, and the edge that it leads over; 0 if that is not known.
pub(crate) type Waiting = (Plan, u64);

impl Spread {
    /// The plans that leave the execution of `plan` at `points`; none if there are no points. The edges, if they are known,
    /// are those of all choices but 0 of each point.
    pub fn new(plan: &Plan, points: Vec<Point>, edges: Vec<u64>) -> Option<Spread> {
        if points.is_empty() {
            return None;
        }
        let mut points = points;
        points.shrink_to_fit();
        Some(Spread {
            base: plan.overrides.as_slice().into(),
            preemptions: plan.preemptions,
            next: 1,
            points,
            edges,
        })
    }

    /// How many plans wait in it.
    pub fn len(&self) -> usize {
        let all: usize = self.points.iter().map(|p| usize::from(p.options) - 1).sum();
        all - (usize::from(self.next) - 1)
    }

    /// Whether this can have come from [`Spread::new`] and [`Spread::take`]; a saved search may have been edited.
    fn is_sound(&self) -> bool {
        let Some(last) = self.points.last() else { return false };
        self.points.iter().all(|p| p.options >= 2)
            && self.points.windows(2).all(|w| w[0].step < w[1].step)
            && self.base.last().is_none_or(|o| o.step < self.points[0].step)
            && (1..last.options).contains(&self.next)
            && (self.edges.is_empty() || self.edges.len() + 1 == self.len() + usize::from(self.next))
    }

    /// Takes the next plan: the latest point first, as a depth-first search returns to it first.
    fn take(&mut self) -> Option<Waiting> {
        let point = *self.points.last()?;
        let first = self.edges.len().saturating_sub(usize::from(point.options) - 1);
        let edge = self.edges.get(first + usize::from(self.next) - 1).copied().unwrap_or(0);
        let added = Override {
            step: point.step,
            choice: self.next,
            options: point.options,
            kind: point.kind,
            named: false,
        };
        self.next += 1;
        if self.next == point.options {
            self.points.pop();
            self.edges.truncate(first);
            self.next = 1;
        }
        let mut overrides = Vec::with_capacity(self.base.len() + 1);
        overrides.extend_from_slice(&self.base);
        overrides.push(added);
        let preemptions = self.preemptions + u32::from(point.preemptive);
        Some((Plan { overrides, expect: point.hash, preemptions, ..Plan::new(Policy::Default) }, edge))
    }
}

/// Spreads in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pool {
    /// None of them is empty.
    spreads: VecDeque<Spread>,
    plans: usize,
}

impl Pool {
    /// How many plans wait in it.
    pub fn len(&self) -> usize {
        self.plans
    }

    /// Whether no plan waits in it.
    pub fn is_empty(&self) -> bool {
        self.spreads.is_empty()
    }

    /// Adds plans.
    pub fn add(&mut self, spread: Spread) {
        self.plans += spread.len();
        self.spreads.push_back(spread);
    }

    /// Takes a plan of the spread that came last, as from a stack.
    pub fn newest(&mut self) -> Option<Waiting> {
        let spread = self.spreads.back_mut()?;
        let plan = spread.take()?;
        self.plans -= 1;
        if spread.points.is_empty() {
            self.spreads.pop_back();
        }
        Some(plan)
    }

    /// Takes a plan of the spread that came first, as from a queue.
    pub fn oldest(&mut self) -> Option<Waiting> {
        let spread = self.spreads.front_mut()?;
        let plan = spread.take()?;
        self.plans -= 1;
        if spread.points.is_empty() {
            self.spreads.pop_front();
        }
        Some(plan)
    }
}

impl Serialize for Pool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.spreads.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Pool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pool, D::Error> {
        let spreads = VecDeque::<Spread>::deserialize(deserializer)?;
        if !spreads.iter().all(Spread::is_sound) {
            return Err(serde::de::Error::custom("the saved search holds plans that no search has made"));
        }
        let plans = spreads.iter().map(Spread::len).sum();
        Ok(Pool { spreads, plans })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(step: u32, options: u16) -> Point {
        Point { step, options, kind: 0, preemptive: step == 7, hash: u64::from(step) }
    }

    fn spread(steps: &[(u32, u16)]) -> Spread {
        let base = vec![Override { step: 1, choice: 1, options: 2, kind: 0, named: false }];
        let plan = Plan { overrides: base, expect: 9, preemptions: 3, ..Plan::new(Policy::Default) };
        Spread::new(&plan, steps.iter().map(|&(s, o)| point(s, o)).collect(), vec![]).unwrap()
    }

    #[test]
    fn a_spread_hands_out_the_latest_point_first_and_every_choice() {
        let mut pool = Pool::default();
        pool.add(spread(&[(3, 2), (7, 4)]));
        assert_eq!(pool.len(), 4);
        let plans: Vec<Plan> = std::iter::from_fn(|| pool.newest()).map(|(plan, _)| plan).collect();
        let last = plans.iter().map(|p| (p.overrides[1].step, p.overrides[1].choice)).collect::<Vec<_>>();
        assert_eq!(last, [(7, 1), (7, 2), (7, 3), (3, 1)]);
        assert_eq!(plans.iter().map(|p| p.preemptions).collect::<Vec<_>>(), [4, 4, 4, 3]);
        assert_eq!(plans[3].expect, 3);
        assert_eq!(plans[3].overrides[0], Override { step: 1, choice: 1, options: 2, kind: 0, named: false });
        assert_eq!((pool.is_empty(), pool.len()), (true, 0));
    }

    #[test]
    fn a_pool_is_a_stack_or_a_queue() {
        let mut pool = Pool::default();
        pool.add(spread(&[(3, 2)]));
        pool.add(spread(&[(4, 2)]));
        pool.add(spread(&[(5, 2)]));
        let step = |p: Option<Waiting>| p.unwrap().0.overrides[1].step;
        assert_eq!(step(pool.newest()), 5);
        assert_eq!(step(pool.oldest()), 3);
        assert_eq!((pool.len(), step(pool.oldest())), (1, 4));
        assert_eq!(pool.newest(), None);
    }

    #[test]
    fn saving_keeps_what_is_left_of_a_spread() {
        let mut pool = Pool::default();
        pool.add(spread(&[(3, 2), (7, 4)]));
        pool.newest();
        let text = serde_json::to_string(&pool).unwrap();
        let mut read: Pool = serde_json::from_str(&text).unwrap();
        assert_eq!(read, pool);
        assert_eq!(read.len(), 3);
        assert_eq!(read.newest(), pool.newest());
    }

    #[test]
    fn each_plan_has_its_edge() {
        let plan = Plan::new(Policy::Default);
        let points = vec![point(3, 2), point(7, 4), point(9, 2)];
        let mut pool = Pool::default();
        pool.add(Spread::new(&plan, points, vec![31, 71, 72, 73, 91]).unwrap());
        pool.newest();
        pool.newest();
        let mut read: Pool = serde_json::from_str(&serde_json::to_string(&pool).unwrap()).unwrap();
        let edges: Vec<u64> = std::iter::from_fn(|| read.newest()).map(|(_, edge)| edge).collect();
        assert_eq!(edges, [72, 73, 31]);
        let text = serde_json::to_string(&pool).unwrap().replace("[31,", "[30,31,");
        assert!(serde_json::from_str::<Pool>(&text).is_err());
    }

    #[test]
    fn an_edited_file_is_refused() {
        let mut pool = Pool::default();
        pool.add(spread(&[(3, 2), (7, 4)]));
        let text = serde_json::to_string(&pool).unwrap();
        for (from, to) in
            [("[7,4,", "[7,1,"), ("[7,4,", "[2,4,"), ("\"next\":1", "\"next\":4"), ("[3,2,", "[1,2,")]
        {
            assert!(text.contains(from), "{text}");
            assert!(serde_json::from_str::<Pool>(&text.replace(from, to)).is_err(), "{from} -> {to}");
        }
        assert!(
            serde_json::from_str::<Pool>(r#"[{"base":[],"preemptions":0,"next":1,"points":[]}]"#).is_err()
        );
    }

    #[test]
    fn the_sizes_the_head_comment_names() {
        assert_eq!(size_of::<Spread>(), 72);
        assert_eq!(size_of::<Override>(), 12);
    }
}
