//! A script, run with one execution after the other until its choices are exhausted, a bug is found, or a limit is reached.

use crate::language::{self, State};
use crate::names::FUNCTIONS;
use crate::oracle::{Oracle, Order};
use crate::run::{Run, Stop};
use crate::script::Script;
use crate::subject::Subject;
use heisen_engine::error::{Error, Result};
use heisen_engine::explain::close_up::panic_words;
use heisen_engine::explain::judge::{Verdict, judge, judge_system};
use heisen_engine::inspect::Symbols;
use heisen_engine::patch::{Named, Patches};
use heisen_engine::process::run_config::{Output, RunConfig};
use heisen_engine::process::system::{Source, System};
use heisen_engine::process::zygote::Zygote;
use heisen_engine::program::Program;
use heisen_trace::FindingKind;
use rhai::{AST, Engine, EvalAltResult};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The process that is started before the script begins, if one is.
const FIRST: usize = 0;
/// How often a script may name a new place while it runs.
const MOST_NAMES: usize = 64;

/// What a script is run with.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// One program, all of whose threads are under control.
    Unit(&'a Program),
    /// Programs by their names, whose threads run free, but where the script holds them.
    System {
        /// The programs.
        programs: &'a [(String, Source)],
        /// Whether the first one is started before the script begins.
        started: bool,
    },
}

/// A script and what it is run with.
#[derive(Debug)]
pub struct Test<'a> {
    /// The script.
    pub script: Script<'a>,
    /// The runtime.
    pub runtime: &'a Path,
    /// What is run.
    pub target: Target<'a>,
    /// What holds for its executions.
    pub config: RunConfig,
    /// The exit status that is right.
    pub expected: i32,
    /// In which order choices are explored.
    pub order: Order,
    /// If these are given, only this sequence of choices is run.
    pub choices: Option<Vec<usize>>,
    /// Whether executions are cut where an equivalent one was at the same choice of a thread, in the same line of the script.
    pub reduce: bool,
    /// Most executions.
    pub executions: Option<u64>,
    /// Most time.
    pub time: Option<Duration>,
}

/// A line of the script, and what came of it, in words.
pub type Told = (Option<usize>, String);

/// What a script found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is wrong.
    pub verdict: Verdict,
    /// The line that the script was in; none if it was over.
    pub line: Option<usize>,
    /// The choices that lead there.
    pub choices: Vec<usize>,
    /// What the script had done.
    pub trail: Vec<Told>,
    /// Whether the same choices have led there again.
    pub repeats: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Executions in which the script could be followed to its end, or to a bug.
    pub executions: u64,
    /// Executions in which it could not.
    pub infeasible: u64,
    /// Why, of the last one, and in which line.
    pub why: Option<(String, Option<usize>)>,
    /// Executions in which something did not hold that the script assumes.
    pub assumed: u64,
    /// Executions that were cut, as what follows was explored by others.
    pub covered: u64,
    /// Whether all choices were explored.
    pub complete: bool,
    /// The bug.
    pub found: Option<Found>,
    /// Whether the script asks for one good execution, and what it did.
    pub exists: Option<Option<Vec<Told>>>,
    /// Choices that were fewer than before.
    pub diverged: u64,
    /// Events that were looked at.
    pub events: u64,
    /// How long it took.
    pub time: Duration,
}

/// What came of one execution.
enum One {
    Good,
    Bug(Verdict, Option<usize>),
    Infeasible(String, Option<usize>),
    Assumed,
    Covered,
    Names(Vec<Named>),
}

impl Test<'_> {
    /// Runs the script. `tell` hears of each execution; its answer says whether to go on.
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
                        // What Rust writes of a panic is read once.
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

    /// Whether so many runs with the given choices all end in the same way.
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

    /// What the script is run with, in which these places are marked.
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

    /// A message on something that the script names, with the line.
    fn with_line(&self, text: &str, named: &[Named]) -> String {
        let meant =
            named.iter().map(Named::name).filter(|name| text.contains(*name)).max_by_key(|name| name.len());
        match meant.and_then(|name| self.script.line_of(name)) {
            Some(line) => format!("{}: {text}", self.script.place(line)),
            None => text.to_owned(),
        }
    }

    /// The script is over. A program that was started without being asked for is run to its end.
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

    /// Whether what has ended went wrong.
    pub(crate) fn judge(&self, run: &mut Run) -> Option<Verdict> {
        match &mut run.subject {
            Subject::Unit(..) => run.end.as_ref().and_then(|end| judge(end, self.expected)),
            Subject::System(system) => judge_system(system, self.expected),
        }
    }

    /// One execution.
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

/// Whether two executions went wrong in the same way. Of a deadlock or a panic more is known after a close look; how long a program has
/// run that does not end is no matter.
pub(crate) fn is_same(one: &Verdict, other: &Verdict) -> bool {
    use FindingKind::{Deadlock, GoodSamaritan, Livelock, Panic};
    let known_later = matches!(one.kind, Deadlock | Panic | Livelock | GoodSamaritan);
    one.kind == other.kind && (known_later || one.message == other.message)
}

/// An error of rhai's own.
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
