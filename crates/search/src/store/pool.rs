//! The plan pool: waiting plans in compact form, because a long search holds millions of them.
//!
//! The plans that follow from one execution share its overrides and differ only in the decision they add. A
//! [`Spread`] stores all of them: the shared overrides once, and the points at which plans leave. A plan is
//! built only when it is handed out.
//!
//! A spread costs 80 bytes, 12 for each shared override and 16 for each point. A waiting plan therefore costs
//! about 16 bytes and its share of the rest; stored separately it would take some 100 bytes and 12 for each
//! override. With a happens-before cache, each waiting plan takes 8 bytes more.
//!
//! If memory is bounded, a pool writes the spreads in its middle to the spill file ([`SpillFile`](crate::SpillFile)),
//! in parcels, and reads them back in order. Whether the pool is used as a stack or as a queue, the next plan
//! is in memory or in the next parcel.

use crate::analysis::branch_points::Point;
use crate::store::spill::{Room, Spilled};
use heisen_trace::{Override, Plan, Policy};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// The size of the largest parcel, and the share of the memory that a parcel takes if that is less.
const PARCEL: usize = 4 << 20;
const PARCEL_PART: usize = 4;
/// The approximate overhead of an allocation, in bytes.
const ALLOCATION: usize = 16;

/// The waiting plans that follow from one execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    base: Box<[Override]>,
    preemptions: u32,
    /// The weight of the plan that they follow from; see [`estimate`](crate::analysis::estimate).
    weight: f64,
    /// The next choice to take at the last point.
    next: u16,
    points: Vec<Point>,
    /// The edges that the plans lead over, point by point; see [`hb_cache`](crate::store::hb_cache). Empty
    /// without a cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edges: Vec<u64>,
}

/// A plan taken from the pool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub plan: Plan,
    /// The edge that it leads over; 0 if unknown.
    pub edge: u64,
    /// Its weight, if the points of its spread are all there are.
    pub weight: f64,
}

impl Spread {
    /// The plans that leave the execution of `plan`, of this weight, at `points`; `None` if there are no
    /// points. `edges` are those of all choices except 0 of each point, or empty.
    pub fn new(plan: &Plan, weight: f64, points: Vec<Point>, edges: Vec<u64>) -> Option<Spread> {
        if points.is_empty() {
            return None;
        }
        let mut points = points;
        points.shrink_to_fit();
        Some(Spread {
            base: plan.overrides.as_slice().into(),
            preemptions: plan.preemptions,
            weight,
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

    /// Whether [`Spread::new`] and [`Spread::take`] could have made this; a saved search may have been
    /// edited.
    fn is_sound(&self) -> bool {
        let Some(last) = self.points.last() else { return false };
        self.points.iter().all(|p| p.options >= 2)
            && self.points.windows(2).all(|w| w[0].step < w[1].step)
            && self.base.last().is_none_or(|o| o.step < self.points[0].step)
            && (1..last.options).contains(&self.next)
            && (0.0..=1.0).contains(&self.weight)
            && (self.edges.is_empty() || self.edges.len() + 1 == self.len() + usize::from(self.next))
    }

    /// Takes the next plan: the latest point first, because a depth-first search returns to it first.
    fn take(&mut self) -> Option<Waiting> {
        let point = *self.points.last()?;
        let first = self.edges.len().saturating_sub(usize::from(point.options) - 1);
        let edge = self.edges.get(first + usize::from(self.next) - 1).copied().unwrap_or(0);
        let weight = self.points.iter().fold(self.weight, |weight, p| weight / f64::from(p.options));
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
        let plan = Plan { overrides, expect: point.hash, preemptions, ..Plan::new(Policy::Default) };
        Some(Waiting { plan, edge, weight })
    }

    /// The memory that it takes. Taking plans does not change it.
    fn bytes(&self) -> usize {
        let allocated = |bytes: usize| if bytes == 0 { 0 } else { bytes + ALLOCATION };
        size_of::<Spread>()
            + allocated(size_of_val(&*self.base))
            + allocated(self.points.capacity() * size_of::<Point>())
            + allocated(self.edges.capacity() * size_of::<u64>())
    }

    /// Appends it to a parcel.
    fn pack(&self, parcel: &mut Vec<u8>) {
        let lengths = [self.base.len(), self.points.len(), self.edges.len()];
        lengths.iter().for_each(|&length| parcel.extend((length as u32).to_le_bytes()));
        parcel.extend(self.preemptions.to_le_bytes());
        parcel.extend(self.weight.to_le_bytes());
        parcel.extend(self.next.to_le_bytes());
        for o in &self.base {
            parcel.extend(o.step.to_le_bytes());
            parcel.extend(o.choice.to_le_bytes());
            parcel.extend(o.options.to_le_bytes());
            parcel.extend([o.kind, u8::from(o.named)]);
        }
        for p in &self.points {
            parcel.extend(p.step.to_le_bytes());
            parcel.extend(p.options.to_le_bytes());
            parcel.extend([p.kind, u8::from(p.preemptive)]);
            parcel.extend(p.hash.to_le_bytes());
        }
        self.edges.iter().for_each(|edge| parcel.extend(edge.to_le_bytes()));
    }

    /// Reads it from the start of a parcel.
    fn unpack(parcel: &mut &[u8]) -> Option<Spread> {
        let length = |parcel: &mut &[u8]| Some(u32::from_le_bytes(bytes(parcel)?) as usize);
        let (base, points, edges) = (length(parcel)?, length(parcel)?, length(parcel)?);
        let preemptions = u32::from_le_bytes(bytes(parcel)?);
        let weight = f64::from_le_bytes(bytes(parcel)?);
        let next = u16::from_le_bytes(bytes(parcel)?);
        let fixed = |_| {
            let step = u32::from_le_bytes(bytes(parcel)?);
            let choice = u16::from_le_bytes(bytes(parcel)?);
            let options = u16::from_le_bytes(bytes(parcel)?);
            let [kind, named] = bytes(parcel)?;
            Some(Override { step, choice, options, kind, named: named != 0 })
        };
        let base = (0..base).map(fixed).collect::<Option<_>>()?;
        let point = |_| {
            let step = u32::from_le_bytes(bytes(parcel)?);
            let options = u16::from_le_bytes(bytes(parcel)?);
            let [kind, preemptive] = bytes(parcel)?;
            let hash = u64::from_le_bytes(bytes(parcel)?);
            Some(Point { step, options, kind, preemptive: preemptive != 0, hash })
        };
        let points = (0..points).map(point).collect::<Option<_>>()?;
        let edges = (0..edges).map(|_| Some(u64::from_le_bytes(bytes(parcel)?))).collect::<Option<_>>()?;
        let spread = Spread { base, preemptions, weight, next, points, edges };
        spread.is_sound().then_some(spread)
    }
}

/// Reads the next bytes of a parcel.
fn bytes<const N: usize>(parcel: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = parcel.split_first_chunk::<N>()?;
    *parcel = rest;
    Some(*first)
}

/// Spreads in the order in which they were added. None of them is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    /// The first spreads.
    front: VecDeque<Spread>,
    /// The spreads after them, in parcels in the spill file.
    spilled: VecDeque<Arc<Spilled>>,
    /// The last spreads.
    back: VecDeque<Spread>,
    plans: usize,
    /// The memory that the spreads in memory take, and the limit.
    bytes: usize,
    room: Option<Room>,
    /// What went wrong with the spill file.
    trouble: Option<String>,
}

impl Pool {
    /// How many plans wait in it.
    pub fn len(&self) -> usize {
        self.plans
    }

    /// Whether no plan waits in it.
    pub fn is_empty(&self) -> bool {
        self.plans == 0
    }

    /// Limits its memory.
    pub fn set_room(&mut self, room: Room) {
        self.room = Some(room);
        self.make_room();
    }

    /// Why plans cannot be written to the spill file, or read back. Plans that cannot be read back still
    /// count.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Adds plans.
    pub fn add(&mut self, spread: Spread) {
        self.plans += spread.len();
        self.bytes += spread.bytes();
        self.back.push_back(spread);
        self.make_room();
    }

    /// Takes a plan of the last spread, as from a stack.
    pub fn newest(&mut self) -> Option<Waiting> {
        if self.back.is_empty() && !self.spilled.is_empty() {
            let parcel = self.spilled.pop_back()?;
            self.back = self.open(&parcel).or_else(|| {
                self.spilled.push_back(parcel);
                None
            })?;
        }
        let from = if self.back.is_empty() { &mut self.front } else { &mut self.back };
        let spread = from.back_mut()?;
        let plan = spread.take()?;
        self.plans -= 1;
        if spread.points.is_empty() {
            self.bytes -= from.pop_back()?.bytes();
        }
        Some(plan)
    }

    /// Takes a plan of the first spread, as from a queue.
    pub fn oldest(&mut self) -> Option<Waiting> {
        if self.front.is_empty() && !self.spilled.is_empty() {
            let parcel = self.spilled.pop_front()?;
            self.front = self.open(&parcel).or_else(|| {
                self.spilled.push_front(parcel);
                None
            })?;
        }
        let from = if self.front.is_empty() { &mut self.back } else { &mut self.front };
        let spread = from.front_mut()?;
        let plan = spread.take()?;
        self.plans -= 1;
        if spread.points.is_empty() {
            self.bytes -= from.pop_front()?.bytes();
        }
        Some(plan)
    }

    /// Writes the oldest spreads of `back` to the spill file while the pool takes too much memory.
    fn make_room(&mut self) {
        let Some(room) = &self.room else { return };
        let most = (room.bytes / PARCEL_PART).min(PARCEL);
        while self.bytes > room.bytes && self.back.len() > 1 && self.trouble.is_none() {
            let (mut parcel, mut taken, mut count) = (Vec::new(), 0, 0);
            for spread in self.back.iter().take(self.back.len() - 1) {
                spread.pack(&mut parcel);
                taken += spread.bytes();
                count += 1;
                if taken >= most {
                    break;
                }
            }
            match Spilled::put(&room.spill, &parcel) {
                Ok(spilled) => {
                    self.spilled.push_back(Arc::new(spilled));
                    self.back.drain(..count);
                    self.bytes -= taken;
                }
                Err(error) => self.trouble = Some(format!("cannot be put on disk: {error}")),
            }
        }
        // A deque never shrinks by itself.
        if self.back.capacity() > 4 * self.back.len() + 64 {
            self.back.shrink_to_fit();
        }
    }

    /// Reads the spreads of a parcel into memory.
    fn open(&mut self, parcel: &Spilled) -> Option<VecDeque<Spread>> {
        match contents(parcel) {
            Ok(spreads) => {
                self.bytes += spreads.iter().map(Spread::bytes).sum::<usize>();
                Some(spreads)
            }
            Err(error) => {
                self.trouble = Some(format!("cannot be read back from disk: {error}"));
                None
            }
        }
    }
}

fn contents(parcel: &Spilled) -> io::Result<VecDeque<Spread>> {
    let bytes = parcel.get()?;
    let (mut rest, mut spreads) = (&bytes[..], VecDeque::new());
    while !rest.is_empty() {
        let spread = Spread::unpack(&mut rest);
        spreads.push_back(spread.ok_or_else(|| io::Error::other("it is not what was put there"))?);
    }
    Ok(spreads)
}

impl Serialize for Pool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for spread in &self.front {
            list.serialize_element(spread)?;
        }
        for parcel in &self.spilled {
            for spread in contents(parcel).map_err(serde::ser::Error::custom)? {
                list.serialize_element(&spread)?;
            }
        }
        for spread in &self.back {
            list.serialize_element(spread)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Pool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pool, D::Error> {
        let back = VecDeque::<Spread>::deserialize(deserializer)?;
        if !back.iter().all(Spread::is_sound) {
            return Err(serde::de::Error::custom("the saved search holds plans that no search has made"));
        }
        let plans = back.iter().map(Spread::len).sum();
        let bytes = back.iter().map(Spread::bytes).sum();
        Ok(Pool { back, plans, bytes, ..Pool::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpillFile;
    use std::sync::Mutex;

    fn point(step: u32, options: u16) -> Point {
        Point { step, options, kind: 0, preemptive: step == 7, hash: u64::from(step) }
    }

    fn spread(steps: &[(u32, u16)]) -> Spread {
        let base = vec![Override { step: 1, choice: 1, options: 2, kind: 0, named: false }];
        let plan = Plan { overrides: base, expect: 9, preemptions: 3, ..Plan::new(Policy::Default) };
        Spread::new(&plan, 1.0, steps.iter().map(|&(s, o)| point(s, o)).collect(), vec![]).unwrap()
    }

    #[test]
    fn a_spread_hands_out_the_latest_point_first_and_every_choice() {
        let mut pool = Pool::default();
        pool.add(spread(&[(3, 2), (7, 4)]));
        assert_eq!(pool.len(), 4);
        let plans: Vec<Plan> = std::iter::from_fn(|| pool.newest()).map(|w| w.plan).collect();
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
        let step = |p: Option<Waiting>| p.unwrap().plan.overrides[1].step;
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
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!(read.len(), 3);
        assert_eq!(read.newest(), pool.newest());
    }

    #[test]
    fn each_plan_has_its_edge() {
        let plan = Plan::new(Policy::Default);
        let points = vec![point(3, 2), point(7, 4), point(9, 2)];
        let mut pool = Pool::default();
        pool.add(Spread::new(&plan, 1.0, points, vec![31, 71, 72, 73, 91]).unwrap());
        pool.newest();
        pool.newest();
        let mut read: Pool = serde_json::from_str(&serde_json::to_string(&pool).unwrap()).unwrap();
        let edges: Vec<u64> = std::iter::from_fn(|| read.newest()).map(|w| w.edge).collect();
        assert_eq!(edges, [72, 73, 31]);
        let text = serde_json::to_string(&pool).unwrap().replace("[31,", "[30,31,");
        assert!(serde_json::from_str::<Pool>(&text).is_err());
    }

    #[test]
    fn an_edited_file_is_refused() {
        let mut pool = Pool::default();
        pool.add(spread(&[(3, 2), (7, 4)]));
        let text = serde_json::to_string(&pool).unwrap();
        for (from, to) in [
            ("[7,4,", "[7,1,"),
            ("[7,4,", "[2,4,"),
            ("\"next\":1", "\"next\":4"),
            ("[3,2,", "[1,2,"),
            ("\"weight\":1.0", "\"weight\":1.5"),
        ] {
            assert!(text.contains(from), "{text}");
            assert!(serde_json::from_str::<Pool>(&text.replace(from, to)).is_err(), "{from} -> {to}");
        }
        assert!(
            serde_json::from_str::<Pool>(
                r#"[{"base":[],"preemptions":0,"weight":1.0,"next":1,"points":[]}]"#
            )
            .is_err()
        );
    }

    #[test]
    fn plans_weigh_what_is_left_of_their_choices() {
        let mut pool = Pool::default();
        pool.add(spread(&[(3, 2), (7, 4)]));
        let weights: Vec<f64> = std::iter::from_fn(|| pool.newest()).map(|w| w.weight).collect();
        // Together with the execution that they follow from, an eighth, that is the full weight.
        assert_eq!(weights, [0.125, 0.125, 0.125, 0.5]);
    }

    /// A spill file in memory, which is full at some point, or loses what was written to it.
    #[derive(Debug, Default)]
    struct MemorySpill {
        places: Mutex<Vec<Vec<u8>>>,
        most: Option<usize>,
        lost: bool,
    }

    impl SpillFile for MemorySpill {
        fn put(&self, bytes: &[u8]) -> io::Result<u64> {
            let mut places = self.places.lock().unwrap();
            if self.most.is_some_and(|most| places.len() == most) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            places.push(bytes.to_vec());
            Ok(places.len() as u64 - 1)
        }

        fn get(&self, place: u64, length: usize) -> io::Result<Vec<u8>> {
            let bytes = self.places.lock().unwrap()[place as usize].clone();
            assert_eq!(bytes.len(), length);
            Ok(if self.lost { vec![9; length] } else { bytes })
        }

        fn free(&self, place: u64, length: usize) {
            let bytes = std::mem::take(&mut self.places.lock().unwrap()[place as usize]);
            assert_eq!(bytes.len(), length, "it is freed once");
        }
    }

    fn bounded(spill: MemorySpill) -> (Pool, Arc<MemorySpill>) {
        let spill = Arc::new(spill);
        let mut pool = Pool::default();
        pool.set_room(Room { bytes: 2000, spill: spill.clone() });
        (pool, spill)
    }

    #[test]
    fn with_a_spill_file_the_order_is_the_same() {
        let (mut small, spill) = bounded(MemorySpill::default());
        let (mut large, mut most) = (Pool::default(), 0);
        // Many spreads come and few plans go, then fewer come; plans are taken from either end.
        for (round, few) in (0..2000u32).map(|n| (n, n < 1000)) {
            if few || round % 7 == 0 {
                let points = [(3 + round, 2 + (round % 3) as u16), (10_000, 3)];
                small.add(spread(&points));
                large.add(spread(&points));
            }
            for _ in 0..if few { 1 } else { 4 } {
                let (a, b) = match round / 100 % 2 {
                    0 => (small.newest(), large.newest()),
                    _ => (small.oldest(), large.oldest()),
                };
                assert_eq!(a, b);
            }
            assert_eq!((small.len(), small.is_empty()), (large.len(), large.is_empty()));
            most = most.max(large.bytes);
            // A parcel that was just read may be in memory as well.
            assert!(small.bytes <= 2000 + 2000 / PARCEL_PART + 500, "{}", small.bytes);
            if round % 250 == 0 {
                assert_eq!(serde_json::to_string(&small).unwrap(), serde_json::to_string(&large).unwrap());
            }
        }
        assert!(most > 50_000, "it was never much");
        while let Some(plan) = large.oldest() {
            assert_eq!(small.oldest(), Some(plan));
        }
        assert_eq!((small.oldest(), small.bytes, small.trouble()), (None, 0, None));
        let places = spill.places.lock().unwrap();
        assert!(places.len() > 20 && places.iter().all(Vec::is_empty), "all of the spill is free again");
    }

    #[test]
    fn a_full_spill_file_loses_nothing() {
        let (mut pool, _) = bounded(MemorySpill { most: Some(3), ..MemorySpill::default() });
        (0..100).for_each(|n| pool.add(spread(&[(3 + n, 2)])));
        assert_eq!(pool.trouble(), Some("cannot be put on disk: no storage space"));
        let steps: Vec<u32> =
            std::iter::from_fn(|| pool.oldest()).map(|w| w.plan.overrides[1].step).collect();
        assert_eq!(steps, (3..103).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_read_back_is_still_waited_for() {
        let (mut pool, _) = bounded(MemorySpill { lost: true, ..MemorySpill::default() });
        (0..100).for_each(|n| pool.add(spread(&[(3 + n, 2)])));
        assert_eq!(pool.trouble(), None);
        assert_eq!(pool.oldest(), None);
        assert_eq!(pool.trouble(), Some("cannot be read back from disk: it is not what was put there"));
        assert_eq!((pool.len(), pool.is_empty()), (100, false));
        assert!(serde_json::to_string(&pool).is_err());
    }

    #[test]
    fn the_sizes_the_head_comment_names() {
        assert_eq!(size_of::<Spread>(), 80);
        assert_eq!(size_of::<Override>(), 12);
    }
}
