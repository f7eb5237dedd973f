//! A script in another process that arrives one statement at a time: a Rust function beside its test.
//!
//! The crate `heisen` (its module `script`) is the other end. We write a line, the other end answers with a
//! line, until the script is over. Fields are separated by tabs. Statements are expressions of the script
//! language, so the two ends share one definition of it.
//!
//! | we write | then the other end |
//! | --- | --- |
//! | `begin` | begins the script, and writes as below |
//! | `value`, with fields | continues with the result of its statement |
//! | `stop` | leaves the script, and writes nothing more until the next `begin` |
//! | `end` | shows what follows, up to the end of our output |
//!
//! | it writes | and we |
//! | --- | --- |
//! | `call`, a place in its source, a statement | evaluate the statement |
//! | `done` | let the program run to its end |

use crate::event::Event;
use crate::language::{Shared, Thread, terminated};
use crate::run::{Run, Stop};
use crate::source::Source;
use crate::threads::Threads;
use heisen_engine::error::Error;
use heisen_engine::patch::Named;
use rhai::{Array, Dynamic, Engine, EvalAltResult, INT, Position, Scope};
use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// After this many statements without a command to the program, a script counts as an endless loop.
const MOST_STATEMENTS: u64 = 200_000;
/// How soon an interruption is noticed while the other end computes.
const GLANCE: Duration = Duration::from_millis(50);

/// The connection to the other end.
pub struct Remote {
    lines: Receiver<String>,
    stop: Arc<AtomicBool>,
    peer: RefCell<Peer>,
    /// The events of this execution that were returned to the other end, which refers to them by number.
    events: Rc<RefCell<Vec<Event>>>,
}

/// The other end, as far as its statements have shown.
struct Peer {
    output: Box<dyn Write>,
    /// Places in its source. The number of a place is its index plus 1.
    places: Vec<String>,
    /// The functions and lines that it names, and the place of the first mention.
    named: Vec<(Named, usize)>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("places", &self.peer.borrow().places).finish_non_exhaustive()
    }
}

impl Remote {
    /// Reads from `input` and writes to `output`. The end of the input means that the other end has gone, and
    /// sets `stop`.
    pub fn new(
        input: impl BufRead + Send + 'static,
        output: impl Write + 'static,
        stop: Arc<AtomicBool>,
    ) -> Remote {
        let (send, lines) = channel();
        let gone = stop.clone();
        // A separate thread reads, so that the end of the input is noticed also during a wait.
        std::thread::spawn(move || {
            for line in input.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
            gone.store(true, Relaxed);
        });
        let peer = Peer { output: Box::new(output), places: Vec::new(), named: Vec::new() };
        Remote { lines, stop, peer: RefCell::new(peer), events: Rc::default() }
    }

    /// A place by its number.
    pub fn place(&self, number: usize) -> String {
        self.peer.borrow().places.get(number.wrapping_sub(1)).cloned().unwrap_or_default()
    }

    /// The place where something was first named.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.peer.borrow().named.iter().find(|(named, _)| named.name() == name).map(|(_, place)| *place)
    }

    /// All executions are over.
    pub fn end(&self) {
        // An error means that the other end has gone, and does not matter.
        let _ = self.say("end");
    }

    /// Registers the functions that only remote statements use: threads and events by number.
    pub fn register(&self, engine: &mut Engine) {
        let events = self.events.clone();
        engine
            .register_fn("t", |number: INT| Thread(number as usize))
            .register_fn("threads", |numbers: Array| Threads {
                any: false,
                list: numbers.into_iter().filter_map(|n| n.as_int().ok()).map(|n| n as usize).collect(),
            })
            .register_fn("event", move |number: INT| {
                events.borrow().get(number as usize).cloned().unwrap_or_default()
            });
    }

    /// Runs the script once.
    pub fn run(
        &self,
        engine: &Engine,
        scope: &mut Scope<'_>,
        state: &Shared,
    ) -> Result<(), Box<EvalAltResult>> {
        self.events.borrow_mut().clear();
        let ran = self.say("begin").and_then(|()| self.statements(engine, scope, state));
        let Err(refused) = ran else { return Ok(()) };
        // An error means that the other end has gone, which is noticed elsewhere.
        let _ = self.say("stop");
        Err(match refused {
            Refused::Rhai(error) => error,
            Refused::Stop(stop) => {
                let mut state = state.borrow_mut();
                state.stopped = Some((stop, state.place));
                terminated(Position::NONE)
            }
        })
    }

    fn statements(&self, engine: &Engine, scope: &mut Scope<'_>, state: &Shared) -> Result<(), Refused> {
        let (mut orders, mut idle) = (state.borrow().run.orders, 0);
        loop {
            let line = self.hear()?;
            let mut fields = line.splitn(3, '\t');
            let (place, statement) = match (fields.next(), fields.next(), fields.next()) {
                (Some("done"), None, None) => {
                    state.borrow_mut().place = None;
                    return Ok(());
                }
                (Some("call"), Some(place), Some(statement)) => (place, statement),
                _ => return Err(Stop::Wrong(format!("{line:?} is no statement")).into()),
            };
            let place = self.peer.borrow_mut().number(place);
            state.borrow_mut().place = Some(place);
            if state.borrow().run.orders == orders {
                idle += 1;
            } else {
                (orders, idle) = (state.borrow().run.orders, 0);
            }
            if idle > MOST_STATEMENTS {
                return Err(Stop::Wrong(
                    "an endless loop: the script no longer asks anything of the program".into(),
                )
                .into());
            }
            let source = Source::new(statement);
            self.marked(&state.borrow().run, &source, place)?;
            let value = engine.eval_with_scope::<Dynamic>(scope, &source.text).map_err(|error| {
                if let Some((Stop::Names(names), _)) = &state.borrow().stopped {
                    self.peer.borrow_mut().name(names, place);
                }
                Refused::Rhai(error)
            })?;
            let answer = self.value(engine, &state.borrow().run, value)?;
            self.say(&answer)?;
        }
    }

    /// Everything that a statement names must be marked in the program. Otherwise the program is started
    /// again, which is rare if all names of a statement are marked at once.
    fn marked(&self, run: &Run, source: &Source, place: usize) -> Result<(), Refused> {
        let named = source.named.iter().map(|(named, _)| named.clone());
        let missing: Vec<Named> = named.filter(|named| run.number(named).is_err()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.peer.borrow_mut().name(&missing, place);
        Err(Stop::Names(missing).into())
    }

    /// The result of a statement, as a line.
    fn value(&self, engine: &Engine, run: &Run, value: Dynamic) -> Result<String, Refused> {
        let values = match value.try_cast_result::<Array>() {
            Ok(array) => array,
            Err(value) if value.is_unit() => Vec::new(),
            Err(value) => vec![value],
        };
        let mut line = "value".to_owned();
        for value in values {
            let kind = engine.map_type_name(value.type_name());
            let wrong = || Stop::Wrong(format!("a statement gives a value of type {kind}"));
            for field in self.fields(run, value).ok_or_else(wrong)? {
                line.push('\t');
                line.push_str(&escaped(&field));
            }
        }
        Ok(line)
    }

    /// The fields of a value, if it can be sent. An event gets a number.
    fn fields(&self, run: &Run, value: Dynamic) -> Option<Vec<String>> {
        if value.is_bool() || value.is_int() || value.is_string() {
            return Some(vec![value.to_string()]);
        }
        let value = match value.try_cast_result::<Thread>() {
            Ok(thread) => return Some(vec![thread.0.to_string()]),
            Err(value) => value,
        };
        let event = value.try_cast::<Event>()?;
        let mut events = self.events.borrow_mut();
        let mut fields =
            vec![events.len().to_string(), event.word().to_owned(), run.function(&event).to_owned()];
        let numbers = [
            event.thread as u64,
            event.address,
            event.size,
            event.value,
            event.args[0],
            event.args[1],
            event.returned,
            event.caller,
            event.control(),
        ];
        fields.extend(numbers.map(|number| number.to_string()));
        events.push(event);
        Some(fields)
    }

    fn hear(&self) -> Result<String, Refused> {
        loop {
            match self.lines.recv_timeout(GLANCE) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) if !self.stop.load(Relaxed) => {}
                Err(_) => return Err(Stop::Engine(Error::Interrupted).into()),
            }
        }
    }

    fn say(&self, line: &str) -> Result<(), Refused> {
        let output = &mut self.peer.borrow_mut().output;
        let said = writeln!(output, "{line}").and_then(|()| output.flush());
        said.map_err(|_| Stop::Engine(Error::Interrupted).into())
    }
}

impl Peer {
    /// Stores the names that a statement at this place mentions.
    fn name(&mut self, names: &[Named], place: usize) {
        for name in names {
            if !self.named.iter().any(|(known, _)| known == name) {
                self.named.push((name.clone(), place));
            }
        }
    }

    /// The number of a place; a new place gets a new number.
    fn number(&mut self, place: &str) -> usize {
        let known = self.places.iter().position(|known| known == place);
        1 + known.unwrap_or_else(|| {
            self.places.push(place.to_owned());
            self.places.len() - 1
        })
    }
}

/// Why the script does not continue: for a reason of the execution, or an error of rhai.
enum Refused {
    Stop(Stop),
    Rhai(Box<EvalAltResult>),
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Refused {
        Refused::Stop(stop)
    }
}

/// Escapes tabs and line ends in a field.
fn escaped(field: &str) -> String {
    field.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stay_in_their_line() {
        assert_eq!(escaped("a\tb\\n\nc\r"), "a\\tb\\\\n\\nc\\r");
    }

    #[test]
    fn places_have_numbers() {
        let remote = Remote::new(std::io::empty(), std::io::sink(), Arc::default());
        let number = |place: &str| remote.peer.borrow_mut().number(place);
        assert_eq!((number("a.rs:1"), number("b.rs:2"), number("a.rs:1")), (1, 2, 1));
        assert_eq!((remote.place(2).as_str(), remote.place(0).as_str()), ("b.rs:2", ""));
    }

    #[test]
    fn who_has_gone_is_noticed() {
        let stop = Arc::new(AtomicBool::new(false));
        let remote = Remote::new("done\n".as_bytes(), std::io::sink(), stop.clone());
        assert!(matches!(remote.hear(), Ok(line) if line == "done"));
        assert!(matches!(remote.hear(), Err(Refused::Stop(Stop::Engine(Error::Interrupted)))));
        assert!(stop.load(Relaxed));
    }
}
