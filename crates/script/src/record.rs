//! Records an execution along a schedule as a script would see it: every event, with wordings in terms of the
//! program.
//!
//! A schedule counts steps, a script waits for events. The schedule is therefore followed once with all
//! events recorded. No thread is held, so this changes no step. It is done twice: the functions that a thread
//! is in are only known for functions that are named before.

use crate::event::Event;
use crate::oracle::Oracle;
use crate::predicate::{Predicate, Target};
use crate::run::{Run, Stop};
use crate::test::{Test, is_same};
use crate::threads::Threads;
use heisen_engine::error::{Error, Result};
use heisen_engine::explain::judge::Verdict;
use heisen_engine::patch::Named;
use heisen_engine::process::run_config::Output;
use heisen_trace::finding::SwitchKind;
use heisen_trace::schedule::Entry;
use heisen_trace::{Schedule, ThreadId};
use heisen_wire::script::{MAX_NAMED, kind};
use std::collections::{BTreeMap, BTreeSet};

/// Events after this many are ignored, so the script leaves them to the search.
const MOST_EVENTS: usize = 500_000;

/// How many stops are stored after the last decision that is not the default: from there on the program runs
/// by itself.
const MOST_AFTER: usize = 8;

/// A predicate, and its text in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// The text.
    pub text: String,
    /// The predicate.
    pub predicate: Predicate,
}

/// The recording of an execution along a schedule.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Its events, in order.
    pub events: Vec<Event>,
    /// By index of the event: the stops, each with its wordings, the best first. At a stop another thread
    /// continued, up to a little after the last decision that is not the default. Decisions that are not
    /// about threads are stops, too.
    pub stops: BTreeMap<usize, Vec<Wording>>,
    /// The decisions of the schedule that are not the default.
    pub entries: Vec<Entry>,
}

impl Recording {
    /// Whether there was a decision other than of the next thread and of the waiter.
    pub fn has_values(&self) -> bool {
        self.entries.iter().any(|entry| entry.kind.is_value())
    }

    /// The last event of a thread before the decision of an entry.
    fn before(&self, entry: &Entry, thread: ThreadId) -> Option<usize> {
        // A thread decision belongs to the step of an event; every other decision has a step of its own.
        let of_threads = matches!(entry.kind, SwitchKind::Preempt | SwitchKind::Free);
        let last = entry.step.saturating_sub(u32::from(!of_threads));
        let until = self.events.partition_point(|event| event.step <= last);
        self.events[..until].iter().rposition(|event| event.thread == usize::from(thread.0))
    }

    /// The events at which threads have to be held for the decisions that are not the default, each with the
    /// number of its entry.
    pub fn decisions(&self) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            out.extend(self.before(entry, entry.from).map(|at| (at, number)));
            // A thread must have a name to be woken by name.
            if entry.kind == SwitchKind::Wake {
                out.extend(self.before(entry, entry.to).map(|at| (at, number)));
            }
        }
        out
    }

    /// The keys of [`Recording::stops`].
    fn places(&self) -> BTreeSet<usize> {
        let last = self.entries.last().map_or(0, |entry| entry.step);
        let ends =
            |at: &usize| self.events.get(at + 1).is_none_or(|next| next.thread != self.events[*at].thread);
        let mut after = 0;
        let near = |at: &usize| {
            after += usize::from(self.events[*at].step > last);
            after <= MOST_AFTER
        };
        let mut places: BTreeSet<usize> = (0..self.events.len()).filter(ends).take_while(near).collect();
        places.extend(self.decisions().into_iter().map(|(at, _)| at));
        places
    }
}

impl Test<'_> {
    /// Follows a schedule, and records what a script would see. The verdict is that of an execution without a
    /// close-up. `None` if the schedule does not fit, or does not fail.
    pub fn record(&self, schedule: &Schedule) -> Result<Option<(Recording, Verdict)>> {
        let Some((mut run, events, verdict)) = self.follow(schedule, &[])? else { return Ok(None) };
        let mut named = functions(&mut run, &events);
        // Without the functions, if marks at their entries change the result.
        let marked = self.follow(schedule, &named)?.filter(|(.., marked)| is_same(marked, &verdict));
        let (mut run, events) = match marked {
            Some((run, events, _)) => (run, events),
            None => {
                named.clear();
                (run, events)
            }
        };
        let entries = schedule.entries.clone();
        let mut recording = Recording { events, entries, ..Recording::default() };
        let inside = innermost(&recording.events);
        for at in recording.places() {
            let event = recording.events[at].clone();
            let wordings = wordings(&mut run, &event, inside[at].map(|number| &named[number]));
            recording.stops.insert(at, wordings);
        }
        Ok(Some((recording, verdict)))
    }

    fn follow(&self, schedule: &Schedule, named: &[Named]) -> Result<Option<(Run, Vec<Event>, Verdict)>> {
        let mut run = self.subject(named, Oracle::of(Vec::new()), Output::Dropped)?;
        run.follows = Some(schedule.clone());
        let mut events = Vec::new();
        let engine = |stop| match stop {
            Stop::Engine(error) => error,
            other => Error::Internal(format!("an execution that nobody holds stops: {other:?}")),
        };
        run.begin().map_err(engine)?;
        loop {
            match run.select(&Threads::any(), None) {
                Ok(event) => {
                    if event.kind != kind::END {
                        run.release(&Threads::one(event.thread)).map_err(engine)?;
                    }
                    events.push(event);
                    if events.len() >= MOST_EVENTS {
                        run.finish().map_err(engine)?;
                        break;
                    }
                }
                Err(Stop::Ended) => break,
                Err(stop) => return Err(engine(stop)),
            }
        }
        let follows = run.end.as_ref().is_some_and(|end| end.execution.diverged.is_none());
        let verdict = self.judge(&mut run).filter(|_| follows);
        Ok(verdict.map(|verdict| (run, events, verdict)))
    }
}

/// The program's own functions that threads were in, as far as events show, each by an unambiguous name.
fn functions(run: &mut Run, events: &[Event]) -> Vec<Named> {
    let places: BTreeSet<u64> = events.iter().map(|event| event.pc).filter(|pc| *pc != 0).collect();
    let Ok(mut view) = run.view(None) else { return Vec::new() };
    let mut all = view.named_functions();
    all.retain(|function| !function.system);
    let mut names = BTreeSet::new();
    for pc in places {
        let own = view.frame_at(pc, true).last().is_some_and(|frame| frame.own);
        let found = all.iter().find(|function| (function.start + 1..=function.end).contains(&pc));
        if let (true, Some(function)) = (own, found) {
            names.insert(function.name.clone());
        }
    }
    let short = |name: String| {
        let last = name.rsplit("::").next().unwrap_or(&name).to_owned();
        let end = format!("::{last}");
        let others = all.iter().filter(|f| f.name != name && (f.name == last || f.name.ends_with(&end)));
        if others.count() == 0 { last } else { name }
    };
    let plain = |name: &String| !name.contains(['"', '\\', '\n']);
    names.into_iter().map(short).filter(plain).take(MAX_NAMED).map(Named::Function).collect()
}

/// For each event: the number of the named function that its thread has entered last.
fn innermost(events: &[Event]) -> Vec<Option<usize>> {
    let mut inside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut of = |event: &Event| {
        let stack = inside.entry(event.thread).or_default();
        let number = event.number as usize;
        match event.kind {
            kind::ENTER => stack.push(number),
            kind::RETURN => {
                let left = stack.iter().rposition(|other| *other == number);
                stack.truncate(left.unwrap_or(stack.len()));
            }
            _ => {}
        }
        // A function that was left by a jump has no return event.
        stack.iter().rev().copied().find(|number| event.depth(*number) > 0)
    };
    events.iter().map(&mut of).collect()
}

/// The wordings of an event: by its object, by its function, or by its kind alone.
fn wordings(run: &mut Run, event: &Event, function: Option<&Named>) -> Vec<Wording> {
    let mut out: Vec<Wording> = Vec::new();
    let wording = |text: String, predicate| Wording { text, predicate };
    let plain = match event.kind {
        kind::READ => "reads",
        kind::WRITE => "writes",
        kind::LOCK => "locks",
        kind::UNLOCK => "unlocks",
        kind::START => "starts",
        kind::END => "ends",
        kind::POINT => {
            let text = format!("at_control({})", event.number);
            return vec![wording(text, Predicate::Control(event.number))];
        }
        _ => match event.op {
            Some(op) => {
                out.push(wording(format!("operation(\"{}\")", op.name()), Predicate::Op(op)));
                ""
            }
            None => return out,
        },
    };
    let kinds = 1 << event.kind;
    if !plain.is_empty() {
        out.push(wording(format!("{plain}()"), Predicate::Kinds(kinds)));
    }
    let object = run.view(None).ok().and_then(|view| view.object_name(event.address));
    let named = object.filter(|_| !plain.is_empty() && event.address != 0).and_then(|name| {
        // The reverse lookup: the places that a script with that name would mean.
        let places = run.ways_to(&name).ok()?;
        let short = name.rsplit("::").next().unwrap_or(&name).to_owned();
        let name = if run.ways_to(&short).is_ok_and(|short| short == places) { short } else { name };
        let predicate = Predicate::On(kinds, Target::Variable(name.clone(), places));
        let is = predicate.holds(event, &mut |_| None);
        is.then(|| wording(format!("{plain}(\"{name}\")"), predicate))
    });
    if !matches!(event.kind, kind::START | kind::END)
        && let Some(function) = function
        && let Ok(number) = run.number(function)
    {
        let within = |one: &Wording| Wording {
            text: format!("in_func(\"{}\") & {}", function.name(), one.text),
            predicate: Predicate::And(
                Box::new(Predicate::Inside(number, 1)),
                Box::new(one.predicate.clone()),
            ),
        };
        let inside: Vec<Wording> = named.iter().chain(&out).map(within).collect();
        out.splice(0..0, inside);
    }
    out.splice(0..0, named);
    out
}
