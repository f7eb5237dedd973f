//! One execution under a script: `select` and `release`, the two commands that all else is made of. CONCURRIT (PLDI'13),
//! section 3.3.3 and figure 5.
//!
//! A thread that has come to an event is held there until it is released. Whoever waits for an event of some threads lets
//! all others run that are not held; as soon as no event can come any more, that is known, and the execution is
//! infeasible for the script.

use crate::event::Event;
use crate::oracle::Oracle;
use crate::predicate::{ALL_KINDS, Predicate};
use crate::threads::Threads;
use heisen_engine::Error;
use heisen_engine::look::{NoWay, Symbols, View, Way};
use heisen_engine::patch::Named;
use heisen_engine::slot::Run as Ended;
use heisen_engine::zygote::{Came, Zygote};
use heisen_wire::script::{MAX_CODE, MAX_SCRIPTED, Set, answer, command, kind};
use heisen_wire::{MAX_THREADS, state};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Why a script does not go on.
#[derive(Clone, Debug)]
pub enum Stop {
    /// What it waits for cannot come.
    Infeasible(String),
    /// The program has ended.
    Ended,
    /// It says so.
    EndRun,
    /// What it assumes does not hold.
    Assumed,
    /// What follows was explored by another execution.
    Covered,
    /// What it asserts does not hold.
    Asserted(String),
    /// It is wrong.
    Wrong(String),
    /// It names places that are not marked yet.
    Names(Vec<Named>),
    /// The engine cannot go on.
    Engine(Error),
}

/// A step of the script that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The line of the script.
    pub line: Option<usize>,
    /// What came of it.
    pub what: What,
}

/// What a step of a script came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A thread has come to an event.
    Event(Event),
    /// The script says something.
    Said(String),
}

/// An execution under a script.
#[derive(Debug)]
pub struct Run {
    pub(crate) zygote: Zygote,
    symbols: Symbols,
    named: Vec<Named>,
    /// Resolves choices.
    pub oracle: Oracle,
    /// Threads that the script has seen.
    known: BTreeSet<usize>,
    ended: BTreeSet<usize>,
    /// Those that are to go on with the next command.
    released: BTreeSet<usize>,
    mentioned: Vec<Predicate>,
    kinds: u32,
    /// What came of the program, once it has ended.
    pub end: Option<Box<Ended>>,
    /// What was done so far.
    pub trail: Vec<Done>,
    /// Whether executions are cut where another one has come to the same state, in the same line of the script.
    pub reduces: bool,
    seen: HashSet<Seen>,
    /// The thread that has come to an event last.
    pub last: Option<usize>,
    /// How long a select may take.
    pub limit: Option<Duration>,
    /// The events that were looked at in all executions.
    pub events: u64,
    /// Where the script is, for [`Run::trail`].
    pub line: Option<usize>,
    /// Commands since anything was asked of the program: a script that asks nothing more goes round in circles.
    pub idle: u64,
}

/// A state: the line of the script, the hash of what was done, and where threads are held.
type Seen = (Option<usize>, u64, Vec<(usize, u64)>);

fn write(set: &Set, threads: &Threads) {
    let rest = if threads.any { u64::MAX } else { 0 };
    set.iter().for_each(|word| word.store(rest, Relaxed));
    for &thread in threads.list.iter().filter(|thread| **thread < MAX_THREADS) {
        let word = &set[thread / 64];
        word.store(word.load(Relaxed) ^ 1 << (thread % 64), Relaxed);
    }
}

pub(crate) fn members(set: &Set) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(word, bits)| {
        let bits = bits.load(Relaxed);
        (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
    })
}

impl Run {
    /// Executions of a parked program, in which these places are marked.
    pub fn new(zygote: Zygote, symbols: Symbols, named: Vec<Named>, oracle: Oracle) -> Run {
        Run {
            zygote,
            symbols,
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
            seen: HashSet::new(),
            last: None,
            limit: None,
            events: 0,
            line: None,
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
        let came = self.zygote.begin_script(self.reduces);
        self.came(came)
    }

    /// The program goes on by itself, to its end.
    pub fn finish(&mut self) -> Result<(), Stop> {
        self.zygote.script().command.store(command::FINISH, Relaxed);
        let came = self.zygote.go_on(None);
        match self.came(came) {
            Err(Stop::Ended) => Ok(()),
            Ok(()) => Err(Stop::Engine(Error::Internal("the program asks a script that is over".into()))),
            Err(stop) => Err(stop),
        }
    }

    /// Ends the execution.
    pub fn abandon(&mut self) {
        if self.end.is_none() {
            self.events += u64::from(self.zygote.script().events.load(Relaxed));
            self.zygote.abandon();
        }
    }

    fn came(&mut self, came: heisen_engine::error::Result<Came>) -> Result<(), Stop> {
        match came.map_err(Stop::Engine)? {
            Came::Answer => Ok(()),
            Came::Late => Err(Stop::Infeasible(format!(
                "no such event came within {:?}",
                self.limit.unwrap_or_default()
            ))),
            Came::End(run) => {
                self.events += u64::from(self.zygote.script().events.load(Relaxed));
                self.end = Some(run);
                Err(Stop::Ended)
            }
        }
    }

    /// The number of a function or line that the script names.
    pub fn number(&self, place: &Named) -> Result<usize, Stop> {
        self.named.iter().position(|named| named == place).ok_or_else(|| Stop::Names(vec![place.clone()]))
    }

    /// What a number stands for.
    pub fn name(&self, number: usize) -> &str {
        self.named.get(number).map_or("?", Named::name)
    }

    pub(crate) fn view(&mut self) -> Result<View<'_>, Stop> {
        // Once it has ended, the parked program has everything at the same place.
        let pid = if self.end.is_none() { self.zygote.execution() } else { self.zygote.pid() };
        View::new(&mut self.symbols, pid)
            .map_err(|e| Stop::Engine(Error::Internal(format!("the program cannot be looked at: {e}"))))
    }

    /// The way to a variable.
    pub fn way_to(&mut self, path: &str) -> Result<Way, Stop> {
        self.view()?.way_to(path).map_err(|why| {
            let or = |names: &[String]| names.join(" or ");
            Stop::Wrong(match why {
                NoWay::NoDebugInfo => {
                    format!("where {path} is nobody knows: the program has no debug information; compile it with -g")
                }
                NoWay::NoVariable(near) if near.is_empty() => {
                    format!("the program has no global or static variable for {path}")
                }
                NoWay::NoVariable(near) => {
                    format!("the program has no global or static variable for {path}; did you mean {}?", or(&near))
                }
                NoWay::NoField(field, others) if others.is_empty() => {
                    format!("{path}: there is no {field}")
                }
                NoWay::NoField(field, others) => format!("{path}: there is no {field}, only {}", others.join(", ")),
            })
        })
    }

    /// Whether the program is instrumented, so that accesses of memory can be events.
    pub fn is_instrumented(&self) -> bool {
        self.zygote.is_instrumented()
    }

    /// Lets threads go on, when the program does so next.
    pub fn release(&mut self, threads: &Threads) -> Result<(), Stop> {
        self.check(threads)?;
        self.released.extend(self.held().filter(|thread| threads.has(*thread)).collect::<Vec<_>>());
        Ok(())
    }

    fn held(&self) -> impl Iterator<Item = usize> + '_ {
        members(&self.zygote.script().held).filter(|thread| !self.released.contains(thread))
    }

    /// Threads that the script names must be there.
    fn check(&self, threads: &Threads) -> Result<(), Stop> {
        match threads.list.iter().find(|thread| !threads.any && self.ended.contains(thread)) {
            Some(thread) => Err(Stop::Infeasible(format!("T{thread} has ended"))),
            None => Ok(()),
        }
    }

    /// Waits for an event of some threads, among those of a predicate; of any kind that the script mentions if there is none. Those
    /// that have another go on.
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
        self.command(threads, predicate)?;
        let limit = self.limit;
        let came = self.zygote.go_on(limit);
        self.came(came)?;
        let script = self.zygote.script();
        let thread = script.thread.load(Relaxed) as usize;
        match script.answer.load(Relaxed) {
            answer::EVENT if thread < MAX_SCRIPTED => {
                let event = Event::read(thread, &script.at[thread]);
                self.known.insert(thread);
                if event.kind == kind::END {
                    self.ended.insert(thread);
                }
                self.last = Some(thread);
                self.trail.push(Done { line: self.line, what: What::Event(event.clone()) });
                Ok(event)
            }
            answer::EVENT => Err(Stop::Wrong(format!(
                "T{thread} has an event, and a script can know of {MAX_SCRIPTED} threads at most"
            ))),
            answer::ENDED => {
                self.ended.extend(threads.list.iter().copied());
                Err(Stop::Infeasible(format!("T{thread} has ended before")))
            }
            // Nobody is held: that is not the script's doing.
            _ if members(&script.held).next().is_none() => {
                self.finish()?;
                Err(Stop::Ended)
            }
            _ => Err(Stop::Infeasible(self.why_nobody(threads))),
        }
    }

    /// An event that a thread is held at already.
    fn has_event(&mut self, threads: &Threads, predicate: Option<&Predicate>) -> Result<Option<Event>, Stop> {
        let held: Vec<usize> = self.held().filter(|t| threads.has(*t) && *t < MAX_SCRIPTED).collect();
        for thread in held {
            let event = Event::read(thread, &self.zygote.script().at[thread]);
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

    fn command(&mut self, threads: &Threads, predicate: Option<&Predicate>) -> Result<(), Stop> {
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
                "the program is not instrumented, so its accesses of memory and calls are no events; give heisen script its \
                 source file, or compile it with heisen cc"
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
            if predicate.follows() {
                let view = self.view()?;
                predicate.compile(&|way| view.follow(way), out);
            } else {
                predicate.compile(&|_| None, out);
            }
        }
        if code.len().max(mentions.len()) > MAX_CODE || until.height() > 64 {
            return Err(Stop::Wrong("the predicate is too long".into()));
        }
        let script = self.zygote.script();
        script.command.store(command::SELECT, Relaxed);
        script.kinds.store(self.kinds, Relaxed);
        for (out, words) in [(&script.until, &code), (&script.mentioned, &mentions)] {
            for (slot, word) in out.words.iter().zip(words) {
                slot.store(*word, Relaxed);
            }
            out.length.store(words.len() as u32, Relaxed);
        }
        write(&script.release, &Threads { any: false, list: std::mem::take(&mut self.released) });
        write(&script.select, threads);
        write(&script.known, &Threads { any: false, list: self.known.clone() });
        Ok(())
    }

    /// Whether an event is one of a predicate.
    pub fn holds(&mut self, predicate: &Predicate, event: &Event) -> bool {
        if predicate.follows() {
            self.view().is_ok_and(|view| predicate.holds(event, &|way| view.follow(way)))
        } else {
            predicate.holds(event, &|_| None)
        }
    }

    /// There is a choice: whether what follows need not be run, as an equivalent execution has come here before. Its other choices are
    /// explored, or will be.
    pub fn is_covered(&mut self) -> bool {
        if !self.reduces || self.oracle.repeats() {
            return false;
        }
        let script = self.zygote.script();
        let held = members(&script.held).filter(|thread| *thread < MAX_SCRIPTED);
        let places = held.map(|thread| (thread, script.at[thread].pc.load(Relaxed))).collect();
        !self.seen.insert((self.line, self.zygote.graph(), places))
    }

    /// Whether a thread has ended.
    pub fn has_ended(&mut self, thread: usize) -> bool {
        self.ended.contains(&thread)
            || self.zygote.threads().any(|(number, told)| number == thread && told == state::ENDED)
    }

    /// Whether a thread could take a step if it were released now.
    pub fn is_able(&mut self, thread: usize) -> bool {
        let able = |told| matches!(told, state::READY | state::TIMED | state::NEW);
        self.zygote.threads().any(|(number, told)| number == thread && able(told))
    }

    /// How often a thread is in a function that the script names, where it is held.
    pub fn depth(&self, thread: usize, function: usize) -> u8 {
        let held = members(&self.zygote.script().held).any(|held| held == thread);
        match self.zygote.script().at.get(thread) {
            Some(told) if held => Event::read(thread, told).depth(function),
            _ => 0,
        }
    }
}
