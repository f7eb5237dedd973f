//! Takes stacks and names at chosen events of an execution. The log has only the innermost code address and the bare
//! address of the object of each event. So the job runs once more, with a pause after each of these events: the thread
//! has just used the object there, so its variables lead to it.

use super::namer::{HeapBlock, Namer, live_stacks};
use crate::error::Result;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Event, Job, read_last_event, registers, report_of};
use crate::process::zygote::{Observer, Zygote};
use crate::program::Program;
use heisen_inspect::names::{Named, Target};
use heisen_inspect::value::ValueType;
use heisen_inspect::{Symbols, View};
use heisen_trace::Stack;
use heisen_wire::{MAX_STOPS, Wire, stop};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// The largest number of events at which one close-up pauses.
pub(super) const MAX_MOMENTS: usize = 600;

/// An event that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) event: Event,
    /// Whether its stack is wanted.
    pub(super) place: bool,
    /// Whether the name of its object is wanted.
    pub(super) name: bool,
}

/// What was seen at an event.
#[derive(Debug)]
pub(super) struct Seen {
    event: Event,
    /// The innermost frames, up to the first of the program.
    pub(super) stack: Option<Stack>,
    named: Option<Named>,
    /// The number of the block of the heap; 0 if it is not in one.
    block: u64,
    words: Option<String>,
}

/// Everything seen, by the number of the event.
pub(super) type Moments = BTreeMap<u32, Seen>;

#[derive(Debug)]
struct MomentWatcher<'a> {
    symbols: &'a mut Symbols,
    wanted: &'a BTreeMap<u32, Wanted>,
    seen: Moments,
}

impl Observer for MomentWatcher<'_> {
    fn stopped(&mut self, wire: &Wire, pid: i32) {
        let number = report_of(wire).events.load(Relaxed);
        let Some(wanted) = self.wanted.get(&number).filter(|_| wire.stop.reason.load(Relaxed) == stop::EVENT)
        else {
            return;
        };
        // An execution that does something else is not the one that was recorded.
        let event = wanted.event;
        let same = |now: &Event| (now.thread, now.op, now.pc) == (event.thread, event.op, event.pc);
        if !read_last_event(wire).is_some_and(|now| same(&now)) {
            return;
        }
        let Ok(mut view) = View::new(self.symbols, pid) else { return };
        let stack = wanted.place.then(|| view.stack_to_program(registers(wire)));
        let (mut named, mut words, mut block) = (None, None, None);
        if wanted.name {
            block = HeapBlock::reported(wire, event.object);
            let range = block.as_ref().map(|block| block.range.clone());
            let size = event.access.map_or(0, |access| access.size);
            let target = Target { address: event.object, size, block: range };
            named = view.name(&target, &live_stacks(&view, wire));
            if let (None, Some(block)) = (&named, &block) {
                words = Some(block.words(&mut view, event.object));
            }
        }
        let block = block.map_or(0, |block| block.serial);
        self.seen.insert(number, Seen { event, stack, named, block, words });
    }
}

/// Runs the job and looks at the wanted events.
pub(super) fn look(
    (runtime, program, config): (&Path, &Program, &RunConfig),
    job: Job<'_>,
    detail: Detail,
    symbols: &mut Symbols,
    wanted: &BTreeMap<u32, Wanted>,
) -> Result<Moments> {
    // The output is captured although nobody reads it, so that the program has the same addresses as in the close-up.
    let mut zygote = Zygote::start(runtime, program, config, Output::Captured)?;
    let wire = zygote.wire();
    for (at, number) in wire.stops_at.iter().zip(wanted.keys()) {
        at.store(*number, Relaxed);
    }
    wire.stops_next.store(0, Relaxed);
    wire.stops_count.store(wanted.len().min(MAX_STOPS) as u32, Relaxed);
    let mut watcher = MomentWatcher { symbols, wanted, seen: Moments::new() };
    zygote.run(job, detail, Some(&mut watcher))?;
    Ok(watcher.seen)
}

/// The names of objects at events.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By address: from which event on it has which name.
    names: HashMap<u64, Vec<(u32, ObjectName)>>,
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectName {
    pub(super) text: String,
    /// The types of its values, by their sizes.
    values: Vec<(u8, ValueType)>,
}

impl ObjectName {
    /// The type of its value of this size, if it is known.
    pub(super) fn value(&self, size: u8) -> Option<&ValueType> {
        self.values.iter().find(|(of, _)| *of == size).map(|(_, value)| value)
    }
}

impl Names {
    /// Chooses one name for each object. An address is another object when its block of the heap, or the variable that
    /// it lies in, is another.
    pub(super) fn of(moments: &Moments) -> Names {
        let mut uses: HashMap<u64, Vec<(u32, Vec<&Seen>)>> = HashMap::new();
        for (number, seen) in moments.iter().filter(|(_, s)| s.named.is_some() || s.words.is_some()) {
            let uses = uses.entry(seen.event.object).or_default();
            match uses.last_mut() {
                Some((_, same)) if is_same(same, seen) => same.push(seen),
                _ => uses.push((*number, vec![seen])),
            }
        }
        let mut all: Vec<(u32, u64, Vec<&Seen>)> = uses
            .into_iter()
            .flat_map(|(address, uses)| uses.into_iter().map(move |(from, seen)| (from, address, seen)))
            .collect();
        // In the order of the execution, so that numbers of equal names follow it.
        all.sort_by_key(|(from, address, _)| (*from, *address));
        let mut namer = Namer::default();
        let mut names = Names::default();
        for (from, address, seen) in all {
            let best = best(&seen);
            let text = match best {
                Some(named) => namer.distinct(named),
                None => seen.iter().find_map(|seen| seen.words.clone()).unwrap_or_default(),
            };
            let value = |seen: &&Seen| {
                let named =
                    seen.named.as_ref().filter(|named| best.is_some_and(|best| best.text == named.text))?;
                Some((seen.event.access?.size, named.value.clone()?))
            };
            let values = seen.iter().filter_map(value).collect();
            names.names.entry(address).or_default().push((from, ObjectName { text, values }));
        }
        names
    }

    /// The name of an address at an event.
    pub(super) fn at(&self, address: u64, number: u32) -> Option<&ObjectName> {
        let names = self.names.get(&address)?;
        let index = names.partition_point(|(from, _)| *from <= number);
        Some(&names[index.saturating_sub(1)].1)
    }
}

/// The best name: of equal ones, that of the most events. A pointer that dangles or is not yet set gives another name at
/// a few events.
fn best<'a>(seen: &[&'a Seen]) -> Option<&'a Named> {
    let all = || seen.iter().filter_map(|seen| seen.named.as_ref());
    let times = |named: &Named| all().filter(|other| other.text == named.text).count();
    all().min_by_key(|named| (rank(named), Reverse(times(named))))
}

fn is_same(earlier: &[&Seen], now: &Seen) -> bool {
    let last = earlier[earlier.len() - 1];
    let variable = |seen: &Seen| seen.named.clone().filter(|named| named.pointers == 0);
    last.block == now.block
        && match (variable(last), variable(now)) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
}

/// Names with fewer pointers are better. A name that begins with a variable of the program says more than `self`.
fn rank(named: &Named) -> (usize, bool) {
    let first = named.text.trim_start_matches(['(', '*']);
    let is_self = ["self", "this"].iter().any(|word| {
        first
            .strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    });
    (named.pointers, is_self)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::{Op, ThreadId};

    fn seen(object: u64, block: u64, text: &str, pointers: usize) -> Seen {
        let event = Event {
            step: 1,
            thread: ThreadId(1),
            op: Op::MemRead,
            ok: true,
            object,
            pc: 7,
            access: None,
            ended: 0,
        };
        let named = Named { text: text.into(), pointers, order: 1, base: object, value: None };
        Seen { event, stack: None, named: Some(named), block, words: None }
    }

    #[test]
    fn a_reused_block_has_a_name_of_its_own() {
        let moments = Moments::from([
            (3, seen(64, 1, "self->done", 1)),
            (5, seen(64, 1, "queue->done", 1)),
            (9, seen(64, 2, "list->head", 1)),
        ]);
        let names = Names::of(&moments);
        let at = |number| names.at(64, number).map(|name| name.text.as_str());
        assert_eq!([at(1), at(3), at(6)], [Some("queue->done"); 3]);
        assert_eq!([at(9), at(12)], [Some("list->head"); 2]);
        assert_eq!(names.at(65, 3), None);
    }

    #[test]
    fn a_reused_place_on_a_stack_has_a_name_of_its_own() {
        let moments =
            Moments::from([(3, seen(64, 0, "i", 0)), (5, seen(64, 0, "i", 0)), (9, seen(64, 0, "sum", 0))]);
        let names = Names::of(&moments);
        let at = |number| names.at(64, number).map(|name| name.text.as_str());
        assert_eq!([at(5), at(9)], [Some("i"), Some("sum")]);
    }

    #[test]
    fn variables_of_the_program_are_better_than_self() {
        let rank_of = |text: &str, pointers| {
            rank(&Named { text: text.into(), pointers, order: 0, base: 0, value: None })
        };
        assert!(rank_of("pool->lock", 1) < rank_of("this->lock", 1));
        assert!(rank_of("self.lock", 1) < rank_of("pool.inner.lock", 2));
        assert_eq!(rank_of("selfish", 1), (1, false));
    }
}
