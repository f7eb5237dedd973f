//! Runs a script, one execution after the other, until its choices are exhausted, a bug is found, or a limit
//! is reached.

use crate::language::{self, State};
use crate::names::FUNCTIONS;
use crate::oracle::{Oracle, Order};
use crate::run::{Run, Stop};
use crate::script::Script;
use crate::subject::Subject;
use heisen_engine::error::{Error, Result};
use heisen_engine::explain::close_up::panic_words;
use heisen_engine::explain::judge::{Verdict, judge, judge_system};
use heisen_engine::patch::{Named, Patches};
use heisen_engine::process::run_config::{Output, RunConfig};
use heisen_engine::process::system::{Source, System};
use heisen_engine::process::zygote::Zygote;
use heisen_engine::program::Program;
use heisen_inspect::Symbols;
use heisen_trace::FindingKind;
use rhai::{AST, Engine, EvalAltResult};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The number of the process that is started before the script begins.
const FIRST: usize = 0;
/// How often a script may name a new place while it runs.
const MOST_NAMES: usize = 64;

/// What a script controls.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// One program, with all its threads under control.
    Unit(&'a Program),
    /// Named programs in system mode: threads run in parallel, and the script holds some.
    System {
        /// The programs.
        programs: &'a [(String, Source)],
        /// Whether the first program is started before the script begins.
        started: bool,
    },
}

/// A script, what it controls, and limits.
#[derive(Debug)]
pub struct Test<'a> {
    /// The script.
    pub script: Script<'a>,
    /// The path of the runtime.
    pub runtime: &'a Path,
    /// What the script controls.
    pub target: Target<'a>,
    /// The configuration of executions.
    pub config: RunConfig,
    /// The expected exit status.
    pub expected: i32,
    /// The order in which choices are explored.
    pub order: Order,
    /// If given, only this sequence of choices is run.
    pub choices: Option<Vec<usize>>,
    /// Whether an execution is cut off where an equivalent one was at the same choice of a thread, at the
    /// same line of the script.
    pub reduce: bool,
    /// The limit on the number of executions.
    pub executions: Option<u64>,
    /// The limit on the time.
    pub time: Option<Duration>,
}

/// A line of the script, with a sentence on its result.
pub type TrailLine = (Option<usize>, String);

/// A bug that a script found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The failure.
    pub verdict: Verdict,
    /// The line at which the script was; `None` if it was over.
    pub line: Option<usize>,
    /// The choices that lead to it.
    pub choices: Vec<usize>,
    /// What the script had done.
    pub trail: Vec<TrailLine>,
    /// Whether the same choices led to it again.
    pub repeats: bool,
}

/// The result of a script.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many executions followed the script to its end, or to a bug.
    pub executions: u64,
    /// How many executions could not follow it.
    pub infeasible: u64,
    /// Why the last of those could not, and at which line.
    pub why: Option<(String, Option<usize>)>,
    /// In how many executions an assumption of the script did not hold.
    pub assumed: u64,
    /// How many executions were cut off because others explored the rest.
    pub covered: u64,
    /// Whether all choices were explored.
    pub complete: bool,
    /// The bug.
    pub found: Option<Found>,
    /// Set if the script asks for one good execution: what that execution did, if there is one.
    pub exists: Option<Option<Vec<TrailLine>>>,
    /// How often there were fewer options than before.
    pub diverged: u64,
    /// How many events were examined.
    pub events: u64,
    /// The duration.
    pub time: Duration,
}

/// The result of one execution.
enum One {
    Good,
    Bug(Verdict, Option<usize>),
    Infeasible(String, Option<usize>),
    Assumed,
    Covered,
    Names(Vec<Named>),
}

impl Test<'_> {
    /// Runs the script. Calls `tell` after each execution; its result says whether to continue.
    pub fn run(&self, tell: &mut dyn FnMut(&Outcome) -> bool) -> Result<Outcome> {
        let began = Instant::now();
        let mut named = self.script.named();
        let first = named.len();
        let oracle = match &self.choices {
            Some(choices) => Oracle::of(choices.clone()),
            None => Oracle::new(self.order),
        };
        let (mut state, mut engine, mut ast) = self.start(&named, oracle, Output::Dropped)?;
        let mut outcome = Outcome::default();
        loop {
            let one = self.one(&engine, &ast, &state)?;
            outcome.time = began.elapsed();
            outcome.events = state.borrow().run.events;
            outcome.diverged = state.borrow().run.oracle.diverged;
            match one {
                One::Names(more) => {
                    named.extend(more);
                    if named.len() > first + MOST_NAMES {
                        return Err(Error::Input(
                            "the script names more functions and lines each time it runs".into(),
                        ));
                    }
                    let oracle = state.borrow().run.oracle.clone();
                    drop((engine, ast, state));
                    (state, engine, ast) = self.start(&named, oracle.again(), Output::Dropped)?;
                    continue;
                }
                One::Good => outcome.executions += 1,
                One::Assumed => outcome.assumed += 1,
                One::Covered => outcome.covered += 1,
                One::Infeasible(why, line) => {
                    outcome.infeasible += 1;
                    outcome.why = Some((why, line));
                    if state.borrow().exists {
                        outcome.exists.get_or_insert(None);
                    }
                }
                One::Bug(verdict, line) => {
                    outcome.executions += 1;
                    let found = {
                        let mut state = state.borrow_mut();
                        let (choices, trail) = (state.run.oracle.choices(), state.run.tell());
                        Found { verdict, line, choices, trail, repeats: false }
                    };
                    if found.verdict.kind == FindingKind::Panic && matches!(self.target, Target::Unit(_)) {
                        // Only this run captures the output, which holds the message of Rust's panic.
                        let oracle = state.borrow().run.oracle.clone();
                        drop((engine, ast, state));
                        (state, engine, ast) = self.start(&named, oracle, Output::Captured)?;
                    }
                    outcome.found = Some(self.again(&engine, &ast, &state, found)?);
                    outcome.time = began.elapsed();
                    return Ok(outcome);
                }
            }
            if state.borrow().exists && matches!(outcome.exists, None | Some(None)) {
                let good = outcome.executions > 0;
                outcome.exists = Some(good.then(|| state.borrow_mut().run.tell()));
                if good {
                    return Ok(outcome);
                }
            }
            let more = self.choices.is_none() && state.borrow_mut().run.oracle.restart();
            if !more {
                outcome.complete = self.choices.is_none();
                return Ok(outcome);
            }
            let ran = outcome.executions + outcome.infeasible + outcome.assumed + outcome.covered;
            let over = self.executions.is_some_and(|most| ran >= most)
                || self.time.is_some_and(|most| began.elapsed() >= most);
            if over || !tell(&outcome) {
                return Ok(outcome);
            }
        }
    }

    /// Whether `times` executions with the given choices all fail in the expected way.
    pub fn fails(&self, times: usize, expected: &Verdict) -> Result<bool> {
        let named = self.script.named();
        let choices = self.choices.clone().unwrap_or_default();
        let (state, engine, ast) = self.start(&named, Oracle::of(choices.clone()), Output::Dropped)?;
        for _ in 0..times {
            state.borrow_mut().run.oracle = Oracle::of(choices.clone());
            match self.one(&engine, &ast, &state)? {
                One::Bug(verdict, _) if is_same(&verdict, expected) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Runs the choices of a finding once more.
    fn again(
        &self,
        engine: &Engine,
        ast: &AST,
        state: &Rc<RefCell<State>>,
        mut found: Found,
    ) -> Result<Found> {
        state.borrow_mut().run.oracle = Oracle::of(found.choices.clone());
        state.borrow_mut().run.reduces = false;
        found.repeats = matches!(
            self.one(engine, ast, state)?,
            One::Bug(verdict, _) if is_same(&verdict, &found.verdict)
        );
        if let (FindingKind::Panic, Subject::Unit(zygote, _)) =
            (found.verdict.kind, &mut state.borrow_mut().run.subject)
            && let Some(words) = panic_words(&zygote.end_output()).filter(|_| found.repeats)
        {
            found.verdict.message = words;
        }
        Ok(found)
    }

    /// Starts what the script controls, with these places marked.
    pub(crate) fn subject(&self, named: &[Named], oracle: Oracle, output: Output) -> Result<Run> {
        let mut config = self.config.clone();
        config.in_process = false;
        let with_line = |error| match error {
            Error::Input(text) => Error::Input(self.with_line(&text, named)),
            error => error,
        };
        let subject = match self.target {
            Target::Unit(program) => {
                config.patches = Arc::new(Patches::with_marks(named.to_vec()));
                let zygote = Zygote::start(self.runtime, program, &config, output).map_err(with_line)?;
                let mut symbols = Symbols::new();
                symbols.hide(self.runtime);
                symbols.set_moved(config.patches.moved());
                Subject::Unit(Box::new(zygote), Box::new(symbols))
            }
            Target::System { programs, .. } => {
                let (runtime, memory) = (self.runtime.to_owned(), self.script.mentions_memory());
                let system = System::new(runtime, programs, named, &config, memory);
                Subject::System(Box::new(system.map_err(with_line)?))
            }
        };
        let mut run = Run::new(subject, named.to_vec(), oracle);
        run.reduces = self.reduce;
        Ok(run)
    }

    fn start(
        &self,
        named: &[Named],
        oracle: Oracle,
        output: Output,
    ) -> Result<(Rc<RefCell<State>>, Engine, AST)> {
        let run = self.subject(named, oracle, output)?;
        let state = Rc::new(RefCell::new(State::new(run)));
        let mut engine = language::engine(&state);
        let ast = self.script.compile(&mut engine)?;
        Ok((state, engine, ast))
    }

    /// Adds the line to a message about something that the script names.
    fn with_line(&self, text: &str, named: &[Named]) -> String {
        let meant =
            named.iter().map(Named::name).filter(|name| text.contains(*name)).max_by_key(|name| name.len());
        match meant.and_then(|name| self.script.line_of(name)) {
            Some(line) => format!("{}: {text}", self.script.place(line)),
            None => text.to_owned(),
        }
    }

    /// Ends the script. A program that was started before the script is run to its end.
    fn finish(&self, run: &mut Run) -> std::result::Result<(), Stop> {
        run.finish()?;
        if let (Target::System { started: true, .. }, Subject::System(system)) =
            (self.target, &mut run.subject)
        {
            let until = Instant::now() + self.config.hang;
            while system.status(FIRST).is_none() {
                if self.config.stop.load(Relaxed) {
                    return Err(Stop::Engine(Error::Interrupted));
                }
                if Instant::now() > until {
                    return Err(Stop::Infeasible(format!(
                        "the program did not end within {:?} after the script; if it never does, call end_run() last",
                        self.config.hang
                    )));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// The verdict on a program that has ended, if it failed.
    pub(crate) fn judge(&self, run: &mut Run) -> Option<Verdict> {
        match &mut run.subject {
            Subject::Unit(..) => run.end.as_ref().and_then(|end| judge(end, self.expected)),
            Subject::System(system) => judge_system(system, self.expected),
        }
    }

    /// Runs one execution.
    fn one(&self, engine: &Engine, ast: &AST, state: &Rc<RefCell<State>>) -> Result<One> {
        {
            let mut state = state.borrow_mut();
            state.stopped = None;
            state.place = None;
            if let Err(stop) = state.run.begin() {
                return match stop {
                    Stop::Engine(error) => Err(error),
                    _ => Err(Error::Uncontrolled("the program ended before main".into())),
                };
            }
            if let (Target::System { started: true, programs }, Subject::System(system)) =
                (self.target, &mut state.run.subject)
            {
                system.start(&programs[0].0)?;
            }
        }
        let ran = self.script.run(engine, ast, state);
        let mut state = state.borrow_mut();
        let stopped = state.stopped.take();
        let stop = match (ran, stopped) {
            (Ok(()), _) => self.finish(&mut state.run).err().map(|stop| (stop, None)),
            (Err(error), Some((stop, line))) => Some((stop, line.or(error.position().line()))),
            (Err(error), None) => {
                let (stop, line) = refused(&error);
                Some((stop, state.place.or(line)))
            }
        };
        let line = stop.as_ref().and_then(|(_, line)| *line);
        let one = match stop.map(|(stop, _)| stop) {
            None | Some(Stop::Ended) => match self.judge(&mut state.run) {
                Some(verdict) => One::Bug(verdict, line),
                None if line.is_some() => {
                    One::Infeasible("the program has ended before such an event came".into(), line)
                }
                None => One::Good,
            },
            Some(Stop::Infeasible(why)) => One::Infeasible(why, line),
            Some(Stop::Assumed) => One::Assumed,
            Some(Stop::Covered) => One::Covered,
            Some(Stop::EndRun) => match self.judge(&mut state.run) {
                Some(verdict) => One::Bug(verdict, line),
                None => One::Good,
            },
            Some(Stop::Asserted(what)) => {
                let kind = FindingKind::Assertion;
                let place = self.script.place(line.unwrap_or(0));
                let message = format!("{place} of the script: {what}");
                One::Bug(Verdict { kind, key: message.clone(), message }, line)
            }
            Some(Stop::Names(names)) => One::Names(names),
            Some(Stop::Wrong(what)) => {
                state.run.abandon();
                return Err(Error::Input(match line {
                    Some(line) => format!("{}: {what}", self.script.place(line)),
                    None => what,
                }));
            }
            Some(Stop::Engine(error)) => return Err(error),
        };
        state.run.abandon();
        Ok(one)
    }
}

/// Whether two executions failed in the same way. A close-up may add details to the message of a deadlock or
/// panic. For a program that does not end, the message depends on how long it ran.
pub(crate) fn is_same(one: &Verdict, other: &Verdict) -> bool {
    use FindingKind::{Deadlock, GoodSamaritan, Livelock, Panic};
    let known_later = matches!(one.kind, Deadlock | Panic | Livelock | GoodSamaritan);
    one.kind == other.kind && (known_later || one.message == other.message)
}

/// The reason of an error of rhai itself.
fn refused(error: &EvalAltResult) -> (Stop, Option<usize>) {
    let line = error.position().line();
    let text = match error.unwrap_inner() {
        EvalAltResult::ErrorFunctionNotFound(call, _) => {
            let name = call.split(" (").next().unwrap_or(call);
            let is_known = FUNCTIONS.contains(&name);
            let all = FUNCTIONS.iter().map(|known| (*known).to_owned());
            match language::unknown("function", name, all) {
                nearest if !is_known && nearest.contains(';') => nearest,
                _ => format!("there is no function {name} for these arguments: {call}"),
            }
        }
        EvalAltResult::ErrorVariableNotFound(name, _) => format!("there is no variable {name}"),
        other => {
            let mut other = other.to_string();
            if let Some(at) = other.rfind(" (line ") {
                other.truncate(at);
            }
            other
        }
    };
    (Stop::Wrong(text), line.or(error.unwrap_inner().position().line()))
}
