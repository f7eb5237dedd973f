//! One execution under a script: `select` and `release`, from which all other commands are built.
//!
//! CONCURRIT (PLDI'13), section 3.3.3 and figure 5. A thread that has reached an event is held there until it
//! is released. While the script waits for an event of some threads, all threads that are not held run. When
//! no such event can come any more, the execution is infeasible for the script.

use crate::event::Event;
use crate::oracle::Oracle;
use crate::predicate::{ALL_KINDS, Place, Predicate};
use crate::subject::{Answer, Order, PATIENCE, Subject};
use crate::threads::Threads;
use heisen_engine::Error;
use heisen_engine::patch::Named;
use heisen_engine::process::slots::Run as Ended;
use heisen_engine::process::system;
use heisen_engine::process::system::System;
use heisen_inspect::{PathError, View};
use heisen_trace::{DecisionKind, Schedule};
use heisen_wire::script::{MAX_CODE, MAX_SCRIPTED, kind};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

/// Why a script does not continue.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The event that it waits for cannot come.
    Infeasible(String),
    /// The program has ended.
    Ended,
    /// The script called `end_run`.
    EndRun,
    /// An assumption of the script does not hold.
    Assumed,
    /// Another execution has explored what follows.
    Covered,
    /// An assertion of the script does not hold.
    Asserted(String),
    /// The script has an error.
    Wrong(String),
    /// The script names places that are not marked yet.
    Names(Vec<Named>),
    /// The engine has failed.
    Engine(Error),
}

/// A command of the script that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The line of the script.
    pub line: Option<usize>,
    /// Its result.
    pub what: What,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A thread has come to an event.
    Event(Event),
    /// The script prints a line.
    Said(String),
}

/// An execution under a script.
#[derive(Debug)]
pub struct Run {
    pub(crate) subject: Subject,
    named: Vec<Named>,
    /// Resolves choices.
    pub oracle: Oracle,
    /// The threads that the script has seen.
    pub(crate) known: BTreeSet<usize>,
    ended: BTreeSet<usize>,
    /// The threads that continue with the next command.
    released: BTreeSet<usize>,
    mentioned: Vec<Predicate>,
    kinds: u32,
    /// The result of the program, once it has ended.
    pub end: Option<Box<Ended>>,
    /// The commands so far.
    pub trail: Vec<Done>,
    /// Whether an execution is cut off where another one reached the same state, at the same line of the
    /// script.
    pub reduces: bool,
    /// The schedule that executions follow as long as no thread is held.
    pub follows: Option<Schedule>,
    seen: HashSet<Seen>,
    /// The thread that has reached an event last.
    pub last: Option<usize>,
    /// The time limit of a select.
    pub limit: Option<Duration>,
    /// How many events were examined in all executions.
    pub events: u64,
    /// The current line of the script, for [`Run::trail`].
    pub line: Option<usize>,
    /// How often the program was continued, in all executions.
    pub orders: u64,
    /// How many commands came since the last one to the program: a script without such commands is an endless
    /// loop.
    pub idle: u64,
}

/// A state: the line of the script, the hash of the happens-before graph, and where threads are held.
type Seen = (Option<usize>, u64, Vec<(usize, u64)>);

impl Run {
    /// Executions of programs in which these places are marked.
    pub fn new(subject: Subject, named: Vec<Named>, oracle: Oracle) -> Run {
        Run {
            subject,
            named,
            oracle,
            known: BTreeSet::new(),
            ended: BTreeSet::new(),
            released: BTreeSet::new(),
            mentioned: Vec::new(),
            kinds: 0,
            end: None,
            trail: Vec::new(),
            reduces: false,
            follows: None,
            seen: HashSet::new(),
            last: None,
            limit: None,
            events: 0,
            line: None,
            orders: 0,
            idle: 0,
        }
    }

    /// Begins an execution.
    pub fn begin(&mut self) -> Result<(), Stop> {
        self.known.clear();
        self.ended.clear();
        self.released.clear();
        self.mentioned.clear();
        self.kinds = 0;
        self.end = None;
        self.trail.clear();
        self.last = None;
        self.line = None;
        self.idle = 0;
        self.limit = None;
        match self.subject.begin(self.follows.as_ref(), self.reduces).map_err(Stop::Engine)? {
            Some(run) => Err(self.over(Some(run))),
            None => Ok(()),
        }
    }

    /// Lets the program run on by itself; to its end, if it is a controlled program.
    pub fn finish(&mut self) -> Result<(), Stop> {
        let end = self.subject.finish().map_err(Stop::Engine)?;
        self.over(end);
        Ok(())
    }

    /// Ends the execution.
    pub fn abandon(&mut self) {
        if self.end.is_none() {
            self.events += self.subject.events();
            self.subject.abandon();
        }
    }

    /// Notes that the program has ended.
    fn over(&mut self, run: Option<Box<Ended>>) -> Stop {
        if run.is_some() {
            self.events += self.subject.events();
            self.end = run;
        }
        Stop::Ended
    }

    /// The number of a function or line that the script names.
    pub fn number(&self, place: &Named) -> Result<usize, Stop> {
        self.named.iter().position(|named| named == place).ok_or_else(|| Stop::Names(vec![place.clone()]))
    }

    /// The name of the place with this number.
    pub fn name(&self, number: usize) -> &str {
        self.named.get(number).map_or("?", Named::name)
    }

    /// The function or line of an event at a place that the script names.
    pub fn function(&self, event: &Event) -> &str {
        match event.kind {
            kind::ENTER | kind::RETURN | kind::LINE => self.name(event.number as usize),
            _ => "",
        }
    }

    pub(crate) fn view(&mut self, event: Option<&Event>) -> Result<View<'_>, Stop> {
        self.subject.view(event, self.end.is_some())
    }

    /// The paths to a variable.
    pub fn ways_to(&mut self, path: &str) -> Result<Vec<Place>, Stop> {
        self.subject.ways_to(path, self.end.is_some()).map_err(|(why, stop)| {
            if let Some(stop) = stop {
                return stop;
            }
            let or = |names: &[String]| names.join(" or ");
            Stop::Wrong(match why {
                PathError::NoDebugInfo => {
                    format!(
                        "{path} cannot be found, as the program has no debug information; compile it with -g"
                    )
                }
                PathError::NoVariable(near) if near.is_empty() => {
                    format!("the program has no global or static variable for {path}")
                }
                PathError::NoVariable(near) => {
                    format!(
                        "the program has no global or static variable for {path}; did you mean {}?",
                        or(&near)
                    )
                }
                PathError::NoField(field, others) if others.is_empty() => {
                    format!("{path}: there is no {field}")
                }
                PathError::NoField(field, others) => {
                    format!("{path}: there is no {field}, only {}", others.join(", "))
                }
            })
        })
    }

    /// Whether the program is instrumented, so that memory accesses can be events.
    pub fn is_instrumented(&self) -> bool {
        self.subject.is_instrumented()
    }

    /// Releases threads: they continue when the program continues next.
    pub fn release(&mut self, threads: &Threads) -> Result<(), Stop> {
        self.check(threads)?;
        let released: Vec<usize> = self.held().into_iter().filter(|thread| threads.has(*thread)).collect();
        self.released.extend(released);
        Ok(())
    }

    fn held(&self) -> Vec<usize> {
        let mut held = self.subject.held();
        held.retain(|thread| !self.released.contains(thread));
        held
    }

    /// Checks that the threads which the script names have not ended.
    fn check(&self, threads: &Threads) -> Result<(), Stop> {
        match threads.list.iter().find(|thread| !threads.any && self.ended.contains(thread)) {
            Some(thread) => Err(Stop::Infeasible(format!("T{thread} has ended"))),
            None => Ok(()),
        }
    }

    /// Waits for an event of some threads that belongs to a predicate, or, without one, of any kind that the
    /// script mentions. Threads with another event continue.
    pub fn select(&mut self, threads: &Threads, predicate: Option<&Predicate>) -> Result<Event, Stop> {
        if !threads.any && threads.list.is_empty() {
            return Err(Stop::Wrong("no thread is left to wait for".into()));
        }
        self.check(threads)?;
        if let Some(event) = self.has_event(threads, predicate)? {
            self.idle += 1;
            return Ok(event);
        }
        self.idle = 0;
        self.orders += 1;
        match self.command(threads, predicate)? {
            Answer::Event(thread) if thread < MAX_SCRIPTED => {
                let event = self.subject.at(thread);
                self.known.insert(thread);
                if event.kind == kind::END {
                    self.ended.insert(thread);
                }
                self.last = Some(thread);
                self.trail.push(Done { line: self.line, what: What::Event(event.clone()) });
                Ok(event)
            }
            Answer::Event(thread) => Err(Stop::Wrong(format!(
                "T{thread} has an event, and a script can know of {MAX_SCRIPTED} threads at most"
            ))),
            Answer::Ended => {
                self.ended.extend(threads.list.iter().copied());
                let names: Vec<String> = threads.list.iter().map(|thread| format!("T{thread}")).collect();
                let has = if names.len() == 1 { "has" } else { "have" };
                Err(Stop::Infeasible(format!("{} {has} ended before", names.join(" and "))))
            }
            Answer::Over(run) => Err(self.over(run)),
            Answer::Late(limit) => {
                let where_they_are = self.whereabouts();
                Err(Stop::Infeasible(format!("no such event came within {limit:?}{where_they_are}")))
            }
            // No thread is held, so the script is not the cause.
            Answer::Nobody if !self.subject.holds_any() => {
                self.finish()?;
                Err(Stop::Ended)
            }
            Answer::Nobody => Err(Stop::Infeasible(self.why_nobody(threads))),
        }
    }

    /// An event at which a thread is already held.
    fn has_event(&mut self, threads: &Threads, predicate: Option<&Predicate>) -> Result<Option<Event>, Stop> {
        for thread in self.held().into_iter().filter(|thread| threads.has(*thread)) {
            let event = self.subject.at(thread);
            let satisfies = match predicate {
                None => true,
                Some(predicate) => self.holds(predicate, &event),
            };
            if satisfies {
                self.known.insert(thread);
                return Ok(Some(event));
            }
            self.released.insert(thread);
        }
        Ok(None)
    }

    fn command(&mut self, threads: &Threads, predicate: Option<&Predicate>) -> Result<Answer, Stop> {
        let all = Predicate::Kinds(ALL_KINDS);
        let until = predicate.unwrap_or(&all);
        for mention in until.mentions() {
            if !self.mentioned.contains(&mention) {
                self.mentioned.push(mention);
            }
        }
        self.kinds |= until.kinds();
        const MEMORY: u32 = 1 << kind::READ | 1 << kind::WRITE | 1 << kind::CALL;
        if until.kinds() & !MEMORY == 0 && !self.is_instrumented() {
            return Err(Stop::Wrong(
                "the program is not instrumented, so its memory accesses and calls are not events; give heisen script its \
                 source file, or compile it with heisen cc; in a test of Rust, wait for heisen::point_at by at_control"
                    .into(),
            ));
        }
        let mentioned = self
            .mentioned
            .clone()
            .into_iter()
            .reduce(|one, other| Predicate::Or(Box::new(one), Box::new(other)));
        let (mut code, mut mentions) = (Vec::new(), Vec::new());
        let all = [(Some(until), &mut code), (mentioned.as_ref(), &mut mentions)];
        for (predicate, out) in all.into_iter().filter_map(|(predicate, out)| Some((predicate?, out))) {
            let over = self.end.is_some();
            predicate.compile(&mut |place| self.subject.follow(place.program, &place.way, over), out);
        }
        if code.len().max(mentions.len()) > MAX_CODE || until.height() > 64 {
            return Err(Stop::Wrong("the predicate is too long".into()));
        }
        let order = Order {
            kinds: self.kinds,
            until: &code,
            mentioned: &mentions,
            select: threads,
            known: &self.known,
            release: std::mem::take(&mut self.released),
        };
        self.subject.order(order, self.limit).map_err(Stop::Engine)
    }

    /// Fixes a decision that is not about threads: the n-th such decision of one thread, or of any.
    pub fn promise(&mut self, kind: DecisionKind, of: &Threads, value: u32, nth: u32) -> Result<(), Stop> {
        self.check(of)?;
        let thread = match (of.any, of.list.first(), of.list.len()) {
            (true, None, _) => None,
            (false, Some(thread), 1) => Some(*thread),
            _ => return Err(Stop::Wrong("one thread is needed, or any".into())),
        };
        self.subject.promise(kind, thread, value, nth)
    }

    /// The system that the script controls.
    pub fn system(&mut self, what: &str) -> Result<&mut System, Stop> {
        match &mut self.subject {
            Subject::System(system) => Ok(system),
            Subject::Unit(..) => Err(Stop::Wrong(format!(
                "{what} is for programs that are named with --attach NAME='PROG ARGS', or run with --system"
            ))),
        }
    }

    /// Waits for something that is not an event. Held threads stay held, all others run.
    pub fn wait_until(&mut self, what: &str, mut done: impl FnMut(&mut System) -> bool) -> Result<(), Stop> {
        let release = std::mem::take(&mut self.released).into_iter().collect();
        let limit = self.limit.unwrap_or(PATIENCE);
        let command = system::Command { release, ..system::Command::default() };
        self.idle = 0;
        self.orders += 1;
        let system = self.system(what)?;
        match system.run(&command, limit, &mut done).map_err(Stop::Engine)? {
            system::Answer::Late => {
                let where_they_are = self.whereabouts();
                Err(Stop::Infeasible(format!("{what} took longer than {limit:?}{where_they_are}")))
            }
            system::Answer::Done => Ok(()),
            _ => Err(Stop::Ended),
        }
    }

    /// Whether an event belongs to a predicate.
    pub fn holds(&mut self, predicate: &Predicate, event: &Event) -> bool {
        let over = self.end.is_some();
        predicate.holds(event, &mut |place| self.subject.follow(place.program, &place.way, over))
    }

    /// Called at a choice: whether the rest need not be run, because an equivalent execution has been here
    /// before. The other choices of that execution are explored, or will be.
    pub fn is_covered(&mut self) -> bool {
        if !self.reduces || self.oracle.repeats() {
            return false;
        }
        let Some(graph) = self.subject.graph() else { return false };
        let places =
            self.subject.held().into_iter().map(|thread| (thread, self.subject.at(thread).pc)).collect();
        !self.seen.insert((self.line, graph, places))
    }

    /// Whether a thread has ended.
    pub fn has_ended(&mut self, thread: usize) -> bool {
        self.ended.contains(&thread) || self.subject.has_ended(thread)
    }

    /// Whether a thread would be enabled if it were released now, as far as is known.
    pub fn is_able(&mut self, thread: usize) -> bool {
        self.subject.is_able(thread)
    }

    /// How many calls deep a held thread is in a function that the script names.
    pub fn depth(&self, thread: usize, function: usize) -> u8 {
        let held = self.subject.held().contains(&thread);
        if held { self.subject.at(thread).depth(function) } else { 0 }
    }
}
