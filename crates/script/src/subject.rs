//! What a script controls: one program under full control, or a system of programs whose threads run in
//! parallel.

use crate::event::Event;
use crate::predicate::Place;
use crate::run::Stop;
use crate::threads::Threads;
use heisen_engine::Error;
use heisen_engine::process::slots::Run as Ended;
use heisen_engine::process::system;
use heisen_engine::process::system::System;
use heisen_engine::process::zygote::{NextStop, Zygote};
use heisen_inspect::{Symbols, VariablePath, View};
use heisen_trace::{DecisionKind, Schedule};
use heisen_wire::script::{ANYONE, MAX_PROMISES, MAX_SCRIPTED, Set, answer, command};
use heisen_wire::{MAX_THREADS, state};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The default time limit of a select in system mode.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What a script controls.
#[derive(Debug)]
pub enum Subject {
    /// One program, with all its threads under control.
    Unit(Box<Zygote>, Box<Symbols>),
    /// Several programs in system mode: threads run in parallel, and the script holds some.
    System(Box<System>),
}

/// A command, as the runtime gets it.
#[derive(Debug)]
pub struct Order<'a> {
    /// The kinds of events that the script mentions, as bits.
    pub kinds: u32,
    /// The awaited events.
    pub until: &'a [u64],
    /// The events at which threads that the script knows stop.
    pub mentioned: &'a [u64],
    /// The threads whose events are awaited.
    pub select: &'a Threads,
    /// The threads that the script knows.
    pub known: &'a BTreeSet<usize>,
    /// The threads that continue.
    pub release: BTreeSet<usize>,
}

/// The result of a command.
#[derive(Debug)]
pub enum Answer {
    /// A thread has come to an event.
    Event(usize),
    /// All awaited threads have ended.
    Ended,
    /// No thread is enabled that is not held.
    Nobody,
    /// No event came in time.
    Late(Duration),
    /// The program has ended.
    Over(Option<Box<Ended>>),
}

fn write(set: &Set, threads: &Threads) {
    let rest = if threads.any { u64::MAX } else { 0 };
    set.iter().for_each(|word| word.store(rest, Relaxed));
    for &thread in threads.list.iter().filter(|thread| **thread < MAX_THREADS) {
        let word = &set[thread / 64];
        word.store(word.load(Relaxed) ^ 1 << (thread % 64), Relaxed);
    }
}

fn members(set: &Set) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(word, bits)| {
        let mut left = bits.load(Relaxed);
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(word * 64 + bit)
        })
    })
}

impl Subject {
    /// Begins an execution, along a schedule if one is given.
    pub fn begin(&mut self, follows: Option<&Schedule>, states: bool) -> Result<Option<Box<Ended>>, Error> {
        match self {
            Subject::Unit(zygote, _) => match zygote.begin_script(follows, states)? {
                NextStop::End(run) => Ok(Some(run)),
                NextStop::Answer | NextStop::Late => Ok(None),
            },
            Subject::System(system) => {
                system.begin();
                Ok(None)
            }
        }
    }

    /// Gives a command, and waits for its result.
    pub fn order(&mut self, order: Order<'_>, limit: Option<Duration>) -> Result<Answer, Error> {
        match self {
            Subject::Unit(zygote, _) => {
                let script = zygote.script();
                script.command.store(command::SELECT, Relaxed);
                script.kinds.store(order.kinds, Relaxed);
                for (out, words) in [(&script.until, order.until), (&script.mentioned, order.mentioned)] {
                    for (slot, word) in out.words.iter().zip(words) {
                        slot.store(*word, Relaxed);
                    }
                    out.length.store(words.len() as u32, Relaxed);
                }
                write(&script.release, &Threads { any: false, list: order.release });
                write(&script.select, order.select);
                write(&script.known, &Threads { any: false, list: order.known.clone() });
                let came = zygote.go_on(limit)?;
                let script = zygote.script();
                let thread = script.thread.load(Relaxed) as usize;
                Ok(match came {
                    NextStop::End(run) => Answer::Over(Some(run)),
                    NextStop::Late => Answer::Late(limit.unwrap_or_default()),
                    NextStop::Answer => match script.answer.load(Relaxed) {
                        answer::EVENT => Answer::Event(thread),
                        answer::ENDED => Answer::Ended,
                        _ => Answer::Nobody,
                    },
                })
            }
            Subject::System(system) => {
                let limit = limit.unwrap_or(PATIENCE);
                let command = system::Command {
                    kinds: order.kinds,
                    until: order.until.to_vec(),
                    mentioned: order.mentioned.to_vec(),
                    select: order.select.list.iter().copied().collect(),
                    new: order.select.any,
                    known: order.known.iter().copied().collect(),
                    release: order.release.into_iter().collect(),
                };
                Ok(match system.run(&command, limit, &mut |_| false)? {
                    system::Answer::Event(thread) => Answer::Event(thread),
                    system::Answer::Ended => Answer::Ended,
                    system::Answer::Gone | system::Answer::Done => Answer::Over(None),
                    system::Answer::Late => Answer::Late(limit),
                })
            }
        }
    }

    /// Fixes a decision of a thread, or of any, by its name in schedules: the n-th such decision. Returns
    /// whether that was possible.
    pub fn promise(
        &mut self,
        kind: DecisionKind,
        thread: Option<usize>,
        value: u32,
        nth: u32,
    ) -> Result<(), Stop> {
        let Subject::Unit(zygote, _) = self else {
            return Err(Stop::Wrong(
                "promises need controlled threads: leave out --system and --attach".into(),
            ));
        };
        let script = zygote.script();
        let count = script.promised.load(Relaxed) as usize;
        let Some(promise) = script.promises.get(count) else {
            return Err(Stop::Wrong(format!("{MAX_PROMISES} promises are the most")));
        };
        promise.kind.store(kind as u32, Relaxed);
        promise.thread.store(thread.map_or(ANYONE, |thread| thread as u32), Relaxed);
        promise.value.store(value, Relaxed);
        promise.nth.store(nth, Relaxed);
        script.promised.store(count as u32 + 1, Relaxed);
        Ok(())
    }

    /// Ends the script: all threads continue. Returns the result of the program, if it is run to its end.
    pub fn finish(&mut self) -> Result<Option<Box<Ended>>, Error> {
        match self {
            Subject::Unit(zygote, _) => {
                zygote.script().command.store(command::FINISH, Relaxed);
                match zygote.go_on(None)? {
                    NextStop::End(run) => Ok(Some(run)),
                    _ => Err(Error::Internal("the program asks a script that is over".into())),
                }
            }
            Subject::System(system) => {
                system.finish();
                Ok(None)
            }
        }
    }

    /// Ends the execution at once.
    pub fn abandon(&mut self) {
        match self {
            Subject::Unit(zygote, _) => zygote.abandon(),
            Subject::System(system) => system.end(),
        }
    }

    /// How many events were examined in this execution.
    pub fn events(&self) -> u64 {
        match self {
            Subject::Unit(zygote, _) => zygote.script().events.load(Relaxed).into(),
            Subject::System(system) => system.events(),
        }
    }

    /// Whether there is instrumented code, so that memory accesses can be events.
    pub fn is_instrumented(&self) -> bool {
        match self {
            Subject::Unit(zygote, _) => zygote.is_instrumented(),
            Subject::System(system) => system.is_instrumented(),
        }
    }

    /// The held threads, among those that a script can know.
    pub fn held(&self) -> Vec<usize> {
        match self {
            Subject::Unit(zygote, _) => {
                members(&zygote.script().held).take_while(|thread| *thread < MAX_SCRIPTED).collect()
            }
            Subject::System(system) => system.held(),
        }
    }

    /// Whether any thread is held.
    pub fn holds_any(&self) -> bool {
        match self {
            Subject::Unit(zygote, _) => members(&zygote.script().held).next().is_some(),
            Subject::System(system) => !system.held().is_empty(),
        }
    }

    /// The event at which a thread stops.
    pub fn at(&self, thread: usize) -> Event {
        match self {
            Subject::Unit(zygote, _) => Event::read(thread, (0, 0), &zygote.script().at[thread]),
            Subject::System(system) => Event::read(thread, system.whose(thread), system.at(thread)),
        }
    }

    /// Whether a thread has ended.
    pub fn has_ended(&self, thread: usize) -> bool {
        match self {
            Subject::Unit(zygote, _) => {
                zygote.threads().any(|(number, told)| number == thread && told == state::ENDED)
            }
            Subject::System(system) => system.has_ended(thread),
        }
    }

    /// Whether a thread would be enabled if it were released now, as far as is known.
    pub fn is_able(&self, thread: usize) -> bool {
        let able = |told| matches!(told, state::READY | state::TIMED | state::NEW);
        match self {
            Subject::Unit(zygote, _) => zygote.threads().any(|(number, told)| number == thread && able(told)),
            Subject::System(system) => !system.has_ended(thread),
        }
    }

    /// The hash of the happens-before graph so far, equal for equivalent executions, if there is one.
    pub fn graph(&self) -> Option<u64> {
        match self {
            Subject::Unit(zygote, _) => Some(zygote.graph()),
            Subject::System(_) => None,
        }
    }

    /// A view of the program of an event, or of the first program without an event.
    pub fn view(&mut self, event: Option<&Event>, over: bool) -> Result<View<'_>, Stop> {
        let view = match self {
            Subject::Unit(zygote, symbols) => {
                // After the end, the parked program has everything at the same addresses.
                let pid = if over { zygote.pid() } else { zygote.execution() };
                View::new(symbols, pid)
            }
            Subject::System(system) => system.view(event.map_or(0, |event| event.program), None),
        };
        view.map_err(|e| Stop::Engine(Error::Internal(format!("the program cannot be looked at: {e}"))))
    }

    /// The paths to a variable, in all programs that have it.
    pub fn ways_to(
        &mut self,
        path: &str,
        over: bool,
    ) -> Result<Vec<Place>, (heisen_inspect::PathError, Option<Stop>)> {
        use heisen_inspect::PathError;
        let stop = |stop| (PathError::NoDebugInfo, Some(stop));
        if let Subject::Unit(..) = self {
            let way = self.view(None, over).map_err(stop)?.way_to(path).map_err(|why| (why, None))?;
            return Ok(vec![Place { program: None, way }]);
        }
        let Subject::System(system) = self else { return Ok(Vec::new()) };
        let mut ways = Vec::new();
        let mut why = PathError::NoDebugInfo;
        for program in 0..system.programs() {
            let Ok(view) = system.view(program, None) else { continue };
            match view.way_to(path) {
                Ok(way) => ways.push(Place { program: Some(program), way }),
                Err(PathError::NoDebugInfo) => {}
                Err(other) => why = other,
            }
        }
        if ways.is_empty() { Err((why, None)) } else { Ok(ways) }
    }

    /// The address to which a path leads now.
    pub fn follow(&mut self, program: Option<usize>, way: &VariablePath, over: bool) -> Option<u64> {
        match self {
            Subject::Unit(..) => self.view(None, over).ok()?.follow(way),
            Subject::System(system) => system.view(program.unwrap_or(0), None).ok()?.follow(way),
        }
    }
}
