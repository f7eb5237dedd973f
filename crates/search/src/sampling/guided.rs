//! Guided search: mutates schedules whose executions showed something new.
//!
//! This is greybox fuzzing with schedules as inputs. Wolff, Shi, Duck, Mathur, Roychoudhury: Greybox Fuzzing
//! for Concurrency Testing (ASPLOS 2024, RFF) use the reads-from relation as feedback and mutate abstract
//! schedules. Here the feedback is which place in the code follows which on an object ([`pairs`]), how often
//! in one execution, and the happens-before class. The mutations change the order of the threads' runs.
//! Entries that show something rare get more energy, as in Böhme, Pham, Roychoudhury: Coverage-based Greybox
//! Fuzzing as Markov Chain, CCS 2016.
//!
//! An entry of the corpus is an execution as a list of *runs*: a thread and its number of consecutive steps.
//! Most mutations move steps and preserve the number of steps of each thread. They insert steps of a thread
//! before or after an access to a shared object, remove, lengthen or shorten a run, or continue with the runs
//! of another entry. The steps before the first mutation are repeated exactly. After it a plan names
//! preferred threads; an unavailable one is not a divergence.
//!
//! Some executions are plain random ones, and all of them if executions are too long to record touches.
//!
//! Guarantees only that a seed alone reproduces the search.

use crate::analysis::pairs::{Pair, pairs};
use crate::analysis::relation::mix;
use crate::analysis::seeds;
use crate::sampling::common::{Sampler, Sampling};
use crate::store::hb_cache::Edges;
use heisen_trace::{Execution, Note, Override, Plan, Policy, TouchKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// How many entries the corpus has at most.
const CAPACITY: usize = 256;
/// How many different features, other than classes, are counted at most.
const MOST_SEEN: usize = 1 << 16;
/// The memory for classes, in bytes.
const FOR_CLASSES: usize = 1 << 21;
/// The largest number of runs of an entry, and of its accesses near which threads are inserted.
const MOST_RUNS: usize = 1 << 12;
const MOST_SPOTS: usize = 1 << 11;
/// Executions with more steps than this are not analysed.
const TOO_LONG: u32 = 1 << 16;
/// One in `FRESH` executions is random; of the first `FIRST`, every second.
const FRESH: u64 = 4;
const FIRST: u64 = 64;
/// The energy of an entry whose rarest feature no other execution shows. Executions that show the feature
/// share it.
const ENERGY: u64 = 1 << 16;
/// After this many mutations an entry has half of its energy, after twice as many a third, and so on.
const TIRED: u64 = 16;
/// A run is extended to one of this many next accesses, chosen at random.
const NEXT_ACCESSES: usize = 6;
/// The count of a pair in an execution is exact up to here; beyond, only its power of two counts.
const EXACT: u32 = 16;

/// Guided search; see the head of this file.
pub type Guided = Sampling<Corpus>;

/// Makes the plans of [`Guided`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Corpus {
    entries: Vec<Entry>,
    /// What was learnt since the last batch began, with the seed of each plan.
    learnt: Vec<(u64, Shown)>,
    /// By feature: in how many executions it was seen.
    seen: BTreeMap<u64, u64>,
    classes: Edges,
    /// The number of steps of the first execution.
    steps: Option<u32>,
}

/// A thread takes this many consecutive steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u16, u32)", into = "(u16, u32)")]
struct Run {
    thread: u16,
    steps: u32,
}

impl From<(u16, u32)> for Run {
    fn from((thread, steps): (u16, u32)) -> Run {
        Run { thread, steps }
    }
}

impl From<Run> for (u16, u32) {
    fn from(run: Run) -> Self {
        (run.thread, run.steps)
    }
}

/// What an execution showed: a candidate for the corpus.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Shown {
    /// Its decisions other than the default.
    overrides: Vec<Override>,
    runs: Vec<Run>,
    /// Accesses to shared objects: place and step, sorted.
    spots: Vec<(u64, u32)>,
    things: Vec<u64>,
    class: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    shown: Shown,
    /// The rarest of its features.
    rarest: u64,
    /// How many plans were made from it.
    tries: u64,
    energy: u64,
}

/// Random numbers from a seed.
struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    /// A number below `sides`, or 0 if `sides` is 0.
    fn below(&mut self, sides: usize) -> usize {
        self.thrown += 1;
        (mix(seeds::nth(self.seed, self.thrown)) % sides.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// The runs of a new plan, and the first step at which they differ from the entry.
struct Draft {
    runs: Vec<Run>,
    changed: u32,
}

impl Draft {
    /// The run that contains a step, and the number of its steps before that.
    fn find(&self, step: u32) -> Option<(usize, u32)> {
        let mut left = step;
        self.runs.iter().enumerate().find_map(|(index, run)| match left.checked_sub(run.steps) {
            Some(less) => {
                left = less;
                None
            }
            None => Some((index, left)),
        })
    }

    fn start(&self, index: usize) -> u32 {
        self.runs[..index].iter().map(|run| run.steps).sum()
    }

    /// The threads that take steps in a run or after it.
    fn later(&self, index: usize) -> Vec<u16> {
        let mut threads: Vec<u16> = self.runs[index..].iter().map(|run| run.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Removes up to `steps` steps of a thread, the first ones from a run on. Returns how many it removed.
    fn take(&mut self, from: usize, thread: u16, steps: u32) -> u32 {
        let mut left = steps;
        for run in self.runs[from..].iter_mut().filter(|run| run.thread == thread) {
            let taken = left.min(run.steps);
            run.steps -= taken;
            left -= taken;
        }
        steps - left
    }

    /// Moves the next steps of a thread before this step.
    fn let_in(&mut self, step: u32, thread: u16, steps: u32) {
        let Some((index, before)) = self.find(step) else { return };
        let Run { thread: running, steps: whole } = self.runs[index];
        self.runs[index].steps = before;
        let rest = Run { thread: running, steps: whole - before };
        self.runs.splice(index + 1..index + 1, [Run { thread, steps: 0 }, rest]);
        self.runs[index + 1].steps = self.take(index + 2, thread, steps);
        self.changed = self.changed.min(step);
    }

    /// Moves the last steps of a run to the next run of its thread.
    fn put_off(&mut self, index: usize, steps: u32) {
        let Run { thread, steps: whole } = self.runs[index];
        let steps = steps.min(whole);
        self.runs[index].steps -= steps;
        self.changed = self.changed.min(self.start(index) + whole - steps);
        match self.runs[index + 1..].iter_mut().find(|run| run.thread == thread) {
            Some(next) => next.steps += steps,
            None => self.runs.push(Run { thread, steps }),
        }
    }

    /// Removes everything from a step on.
    fn cut(&mut self, step: u32) {
        if let Some((index, before)) = self.find(step) {
            self.runs.truncate(index + 1);
            self.runs[index].steps = before;
            self.changed = self.changed.min(step);
        }
    }

    /// Continues from a step with the runs of another entry, without the steps that each thread has already
    /// taken.
    fn splice(&mut self, step: u32, others: &[Run]) {
        self.cut(step);
        let mut done: HashMap<u16, u32> = HashMap::new();
        for run in &self.runs {
            *done.entry(run.thread).or_default() += run.steps;
        }
        for run in others {
            let done = done.entry(run.thread).or_default();
            let skipped = run.steps.min(*done);
            *done -= skipped;
            self.runs.push(Run { steps: run.steps - skipped, ..*run });
        }
    }

    /// The overrides of the plan; `before` are those of the entry.
    fn overrides(&self, before: &[Override]) -> Vec<Override> {
        let mut overrides: Vec<Override> =
            before.iter().take_while(|o| o.step < self.changed).copied().collect();
        let (mut step, mut running) = (0, None);
        for run in self.runs.iter().filter(|run| run.steps > 0) {
            if step >= self.changed && running != Some(run.thread) {
                overrides.push(Override::thread(step, run.thread));
            }
            running = Some(run.thread);
            step += run.steps;
        }
        overrides
    }
}

impl Shown {
    /// What an execution showed, if it recorded everything.
    fn new(execution: &Execution) -> Option<Shown> {
        if execution.touches.is_empty() || execution.notes.contains(&Note::LogFull) {
            return None;
        }
        let chosen = |d: &&heisen_trace::Decision| d.chosen != 0;
        let fixed = |d: &heisen_trace::Decision| Override::new(d.step, d.kind, d.chosen, d.options);
        let overrides = execution.decisions.iter().filter(chosen).map(fixed).collect();
        let mut starts = vec![(0, 0)];
        let switches = execution.touches.iter().filter(|t| t.kind == TouchKind::Switch);
        starts.extend(switches.map(|t| (t.step, t.thread)));
        let ends = starts.iter().skip(1).map(|&(step, _)| step).chain([execution.steps + 1]);
        let run =
            |(&(step, thread), end): (&(u32, u16), u32)| Run { thread, steps: end.saturating_sub(step) };
        let runs: Vec<Run> = starts.iter().zip(ends).map(run).collect();
        if runs.len() > MOST_RUNS {
            return None;
        }
        let (spots, things, class) = (spots(execution), things(execution), execution.fingerprint);
        Some(Shown { overrides, runs, spots, things, class })
    }

    fn steps(&self) -> u32 {
        self.runs.iter().map(|run| run.steps).sum()
    }

    /// For how many steps a thread is inserted before a step: usually up to one of its next accesses to a
    /// shared object, or just past it.
    fn stretch(&self, step: u32, thread: u16, dice: &mut Dice) -> u32 {
        if dice.one_in(3) {
            return few(dice);
        }
        // The steps of the thread from there on: start and end of each run, and how many of its steps came
        // before.
        let (mut start, mut count, mut stretches) = (0, 0, Vec::new());
        for run in &self.runs {
            let end = start + run.steps;
            if run.thread == thread && end > step {
                let from = start.max(step);
                stretches.push((from, end, count));
                count += end - from;
            }
            start = end;
        }
        let number = |at: u32| {
            let found = stretches.partition_point(|&(from, ..)| from <= at);
            let &(from, end, before) = stretches[..found].last()?;
            (at < end).then_some(before + (at - from))
        };
        let mut accesses: Vec<u32> = self.spots.iter().filter_map(|&(_, at)| number(at)).collect();
        accesses.sort_unstable();
        let nth = dice.below(NEXT_ACCESSES.min(accesses.len()));
        let up_to = accesses.get(nth).copied().unwrap_or(0);
        (up_to + u32::from(dice.one_in(2))).max(1)
    }
}

/// Accesses to objects that several threads touch and at least one writes: place and step.
fn spots(execution: &Execution) -> Vec<(u64, u32)> {
    #[derive(Default)]
    struct Object {
        first: Option<u16>,
        several: bool,
        written: bool,
    }
    let accesses =
        || execution.touches.iter().filter(|t| matches!(t.kind, TouchKind::Read | TouchKind::Write));
    let mut objects: HashMap<u64, Object> = HashMap::new();
    for touch in accesses() {
        let object = objects.entry(touch.word).or_default();
        object.several |= *object.first.get_or_insert(touch.thread) != touch.thread;
        object.written |= touch.kind == TouchKind::Write;
    }
    let shared = |object: u64| objects.get(&object).is_some_and(|o| o.several && o.written);
    let mut found: Vec<(u64, u32)> = Vec::new();
    let mut place = 0;
    for touch in &execution.touches {
        match touch.kind {
            TouchKind::At => place = touch.word,
            TouchKind::Read | TouchKind::Write if shared(touch.word) => {
                found.push((std::mem::take(&mut place), touch.step));
            }
            _ => place = 0,
        }
    }
    found.sort_unstable();
    found.dedup();
    // A random share: a regular one would favour some places of a loop.
    let share = found.len().div_ceil(MOST_SPOTS).max(1) as u64;
    found.retain(|&(_, step)| mix(u64::from(step)).is_multiple_of(share));
    found.truncate(2 * MOST_SPOTS);
    found
}

/// The features of an execution: pairs of places that followed each other, with their counts.
fn things(execution: &Execution) -> Vec<u64> {
    let mut counts: BTreeMap<Pair, u32> = BTreeMap::new();
    for (_, pair) in pairs(&execution.touches) {
        *counts.entry(pair).or_default() += 1;
    }
    let thing = |(((op, pc), (other_op, other_pc)), count): (Pair, u32)| {
        let often = if count <= EXACT { count } else { EXACT + count.ilog2() };
        let ops = u64::from(op) << 40 | u64::from(other_op) << 32 | u64::from(often);
        mix(mix(mix(pc) ^ other_pc) ^ ops)
    };
    let mut things: Vec<u64> = counts.into_iter().map(thing).collect();
    things.sort_unstable();
    things
}

impl Guided {
    /// The search of this seed.
    pub fn new(seed: u64) -> Guided {
        Sampling::of(seed, Corpus::default())
    }
}

impl Corpus {
    /// Whether executions are short enough to be analysed. This is known after the first.
    fn looks(&self) -> bool {
        self.steps.is_some_and(|steps| steps <= TOO_LONG)
    }

    /// Draws an entry, with a probability proportional to its energy.
    fn pick(&self, dice: &mut Dice) -> Option<usize> {
        let sum: u64 = self.entries.iter().map(|entry| entry.energy).sum();
        let mut at = dice.below(usize::try_from(sum).unwrap_or(usize::MAX)) as u64;
        self.entries.iter().position(|entry| match at.checked_sub(entry.energy) {
            Some(left) => {
                at = left;
                false
            }
            None => true,
        })
    }

    /// A plan made by mutating an entry.
    fn change(&mut self, seed: u64) -> Option<Plan> {
        let mut dice = Dice { seed, thrown: 0 };
        let number = self.pick(&mut dice)?;
        self.entries[number].tries += 1;
        let shown = &self.entries[number].shown;
        let mut draft = Draft { runs: shown.runs.clone(), changed: shown.steps() };
        loop {
            self.change_once(&mut draft, shown, &mut dice);
            if dice.one_in(2) {
                break;
            }
        }
        let mut plan = Plan::new(walk(seed, &mut dice));
        plan.overrides = draft.overrides(&shown.overrides);
        Some(plan)
    }

    fn change_once(&self, draft: &mut Draft, shown: &Shown, dice: &mut Dice) {
        if draft.runs.is_empty() {
            return;
        }
        let anywhere = dice.below(shown.steps() as usize) as u32;
        let index = dice.below(draft.runs.len());
        match dice.below(10) {
            0 => draft.put_off(index, u32::MAX),
            1 => {
                let steps = few(dice);
                if dice.one_in(2) {
                    draft.put_off(index, steps);
                } else {
                    let end = draft.start(index) + draft.runs[index].steps;
                    draft.let_in(end, draft.runs[index].thread, steps);
                }
            }
            2 => {
                if let Some(other) = self.pick(dice) {
                    draft.splice(anywhere, &self.entries[other].shown.runs);
                }
            }
            3..=5 => draft.cut(anywhere),
            _ => {
                let step = spot(shown, dice).unwrap_or(anywhere) + u32::from(dice.one_in(4));
                let Some((at, _)) = draft.find(step) else { return };
                let running = draft.runs[at].thread;
                let others: Vec<u16> = draft.later(at).into_iter().filter(|&t| t != running).collect();
                if let Some(&thread) = others.get(dice.below(others.len())) {
                    let steps = shown.stretch(step, thread, dice);
                    draft.let_in(step, thread, steps);
                }
            }
        }
        draft.runs.retain(|run| run.steps > 0);
    }

    /// Takes what an execution showed, and adds it to the corpus if something is new.
    fn take(&mut self, shown: Shown) {
        let new_class = shown.class.is_some_and(|class| self.classes.insert(class.max(1)));
        let mut new_thing = false;
        let mut rarest: Option<(u64, u64)> = None;
        for &thing in &shown.things {
            if self.seen.len() == MOST_SEEN && !self.seen.contains_key(&thing) {
                continue;
            }
            let count = self.seen.entry(thing).or_default();
            new_thing |= *count == 0;
            *count += 1;
            rarest = rarest.min(Some((*count, thing))).or(Some((*count, thing)));
        }
        if new_thing || new_class {
            let rarest = rarest.map_or(0, |(_, thing)| thing);
            self.entries.push(Entry { shown, rarest, tries: 0, energy: 0 });
        }
    }
}

/// A number of steps: usually few, sometimes many, sometimes all.
fn few(dice: &mut Dice) -> u32 {
    match dice.below(4) {
        0 => u32::MAX,
        1 => 1 + dice.below(64) as u32,
        _ => 1 + dice.below(4) as u32,
    }
}

/// The step of an access to a shared object. Each place has the same chance, however often it was executed.
fn spot(shown: &Shown, dice: &mut Dice) -> Option<u32> {
    let places: Vec<&[(u64, u32)]> = shown.spots.chunk_by(|a, b| a.0 == b.0).collect();
    let place = *places.get(dice.below(places.len()))?;
    place.get(dice.below(place.len())).map(|&(_, step)| step)
}

/// A random walk, sometimes in bursts.
fn walk(seed: u64, dice: &mut Dice) -> Policy {
    if dice.one_in(4) { Policy::Burst { seed, length: 2 << dice.below(8) } } else { Policy::Random { seed } }
}

impl Sampler for Corpus {
    /// Batches are short, because the next executions are made from what the last ones showed.
    const LONGEST_BATCH: u64 = 64;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        match number {
            // The first shows how long executions are, the second records the touches of the same schedule.
            0 | 1 => Policy::Default,
            _ => walk(seed, &mut Dice { seed, thrown: 0 }),
        }
    }

    fn plan(&mut self, number: u64, seed: u64) -> Plan {
        let fresh = number.is_multiple_of(if number < FIRST { 2 } else { FRESH });
        let changed = if fresh { None } else { self.change(seed) };
        let plan = changed.unwrap_or_else(|| Plan::new(self.policy(number, seed)));
        Plan { places: self.looks(), ..plan }
    }

    fn touches(&self, _number: u64, _policy: &Policy) -> bool {
        self.looks()
    }

    fn learn(&mut self, policy: &Policy, execution: &Execution, usable: bool, _new: Option<bool>) {
        self.steps.get_or_insert(execution.steps);
        let seed = match *policy {
            Policy::Random { seed } | Policy::Burst { seed, .. } => seed,
            _ => 0,
        };
        if usable && let Some(shown) = Shown::new(execution) {
            self.learnt.push((seed, shown));
        }
    }

    fn settle(&mut self) {
        // In the order of seeds, not of arrival: an interrupted search then continues exactly as it would
        // have.
        self.learnt.sort_by_key(|&(seed, _)| seed);
        self.classes.set_room(FOR_CLASSES);
        for (_, shown) in std::mem::take(&mut self.learnt) {
            self.take(shown);
        }
        for entry in &mut self.entries {
            let shared = self.seen.get(&entry.rarest).copied().unwrap_or(ENERGY).max(1);
            entry.energy = (ENERGY / shared * TIRED / (TIRED + entry.tries)).max(1);
        }
        if self.entries.len() > CAPACITY {
            // The sort is stable, so of entries with equal energy the older ones are removed.
            self.entries.reverse();
            self.entries.sort_by_key(|entry| std::cmp::Reverse(entry.energy));
            self.entries.truncate(CAPACITY);
        }
    }
}
