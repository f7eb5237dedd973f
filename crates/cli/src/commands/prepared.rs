//! Makes a schedule file ready to run: finds its program and restores the configuration of its check. `replay`, `explain`,
//! `diff` and `script` share it.

use crate::commands::show;
use crate::render::caveat;
use crate::render::finding::{operation, value};
use crate::render::paint::say;
use heisen_engine::Error;
use heisen_engine::explain::close_up::{Closeup, Recorder};
use heisen_engine::process::run_config::{Output, RunConfig, Symbolic};
use heisen_engine::process::symbolic_trace::Misfit;
use heisen_engine::process::{marked, recorded_input, stdin};
use heisen_engine::program::Program;
use heisen_engine::program::compile;
use heisen_engine::program::compile::Extent;
use heisen_engine::program::embedded;
use heisen_trace::schedule::InputLine;
use heisen_trace::{End, Schedule};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A schedule file and everything that a run of it needs.
#[derive(Debug)]
pub struct Prepared {
    pub schedule: Schedule,
    pub program: Program,
    pub config: RunConfig,
    pub runtime: PathBuf,
    /// Whether the program has changed since the schedule was made.
    pub changed: bool,
}

impl Prepared {
    /// Reads a schedule file and finds its program.
    pub fn read(path: &Path, hang: Duration, stop: Arc<AtomicBool>) -> Result<Prepared, Error> {
        let schedule = show::read(path)?;
        let program = find_program(&schedule)?;
        Prepared::of(path, schedule, program, hang, stop)
    }

    /// Prepares the schedule of a file with this program. Warns if the program has changed.
    pub fn of(
        path: &Path,
        mut schedule: Schedule,
        mut program: Program,
        hang: Duration,
        stop: Arc<AtomicBool>,
    ) -> Result<Prepared, Error> {
        stdin::fetch(&mut schedule.world, path)?;
        program.at_ready = schedule.at_ready;
        marked::check(&schedule.world, &program.args)?;
        let changed = program.hash != schedule.binary;
        if changed {
            say(has_changed(&program));
        }
        let config = run_config(&schedule, path, hang, stop)?;
        Ok(Prepared { schedule, program, config, runtime: embedded::runtime()?, changed })
    }

    /// The warning that the program has changed since the schedule was made.
    pub fn warning(&self) -> Option<String> {
        self.changed.then(|| has_changed(&self.program))
    }

    /// A recorder that captures the output, because the message of a panic is in it.
    pub fn recorder(&self) -> Recorder<'_> {
        Recorder {
            runtime: &self.runtime,
            program: &self.program,
            config: &self.config,
            expect_exit: self.schedule.expect_exit,
            output: Output::Captured,
            trace: false,
            accesses: false,
        }
    }

    /// Whether the execution ended as the schedule file says. If the program has changed, the place may differ.
    pub fn is_as_recorded(&self, closeup: &Closeup) -> bool {
        let expected = self.schedule.outcome.as_ref().map(|(kind, _)| *kind);
        let signature = &self.schedule.signature;
        closeup.verdict.as_ref().map(|v| v.kind) == expected
            && (self.changed || signature.is_empty() || closeup.signature() == *signature)
    }

    /// The outcome that the schedule file records, in words.
    pub fn recorded(&self) -> String {
        let outcome = self.schedule.outcome.as_ref();
        outcome.map_or("a clean end".to_owned(), |(kind, message)| format!("{kind}: {message}"))
    }

    /// Where and why the execution did not follow its schedule. `None` if it followed.
    pub fn divergence(&self, closeup: &Closeup) -> Option<String> {
        let divergence = closeup.run.execution.diverged.as_ref()?;
        let entry = self.schedule.entries.iter().find(|e| e.step == divergence.step);
        let expected = entry.map_or("what was recorded".to_owned(), |e| {
            let then = if e.kind.is_value() { value(e.kind, e.options) } else { e.to.to_string() };
            format!("{} about to {} at {}, then {then}", e.from, operation(e.op, &e.object), e.place)
        });
        let at = if closeup.diverged.is_empty() { String::new() } else { format!(": {}", closeup.diverged) };
        let why =
            caveat::causes(&closeup.run.execution.notes).map_or(String::new(), |why| format!("; {why}"));
        Some(format!(
            "diverged at step {}: expected {expected}; found {}{at}{why}; check the program again to get a schedule that fits",
            divergence.step, divergence.found
        ))
    }

    /// Refuses inputs that do not fit what the program has read, if it did not end as recorded.
    pub fn check_inputs(&self, closeup: &Closeup) -> Result<(), Error> {
        let Some(misfit) = &closeup.misfit else { return Ok(()) };
        if closeup.run.execution.diverged.is_none() && self.is_as_recorded(closeup) {
            return Ok(());
        }
        let named =
            |line: &InputLine| format!("input {} of thread {}, {:?},", line.number, line.path, line.name);
        let what = match misfit {
            Misfit::Width(line, bits) => {
                format!("{} has {} bits, but the program reads {bits}", named(line), line.width)
            }
            Misfit::Unread(line) => format!("{} is not read by the program", named(line)),
            Misfit::Missing(1) => "the program reads an input that is missing".into(),
            Misfit::Missing(count) => format!("the program reads {count} inputs that are missing"),
        };
        Err(Error::Input(format!(
            "the inputs of the schedule do not fit the program: {what}; correct its input lines, or check the program again"
        )))
    }

    /// Refuses an execution that stopped reaching scheduling points.
    pub fn check_progress(&self, closeup: &Closeup) -> Result<(), Error> {
        if closeup.run.execution.end != End::Stuck {
            return Ok(());
        }
        let place =
            closeup.stack.place().map_or(String::new(), |f| format!(" in {} at {}", f.function, f.place()));
        Err(Error::Uncontrolled(format!(
            "the program ran for {} s without reaching a scheduling point{place}; if it only takes long, raise --hang",
            self.config.hang.as_secs_f32()
        )))
    }
}

fn has_changed(program: &Program) -> String {
    format!(
        "warning: {} has changed since the schedule was made; the schedule may no longer fit",
        program.path.display()
    )
}

/// The configuration of the executions of the check that found the schedule. `path` is the schedule file.
fn run_config(
    schedule: &Schedule,
    path: &Path,
    hang: Duration,
    stop: Arc<AtomicBool>,
) -> Result<RunConfig, Error> {
    Ok(RunConfig {
        steps: schedule.steps_limit.max(10),
        hang,
        stop,
        symmetry: schedule.symmetry,
        spurious: schedule.spurious,
        faults: schedule.faults,
        world: schedule.world.clone(),
        input: recorded_input::fetch(schedule, path)?,
        symbolic: symbolic(schedule),
        ..RunConfig::default()
    })
}

/// What an execution with chosen inputs needs; `None` if the schedule has none.
fn symbolic(schedule: &Schedule) -> Option<Symbolic> {
    let inputs = schedule.inputs.clone();
    let has = !inputs.is_empty() || !schedule.world.marked.is_empty();
    has.then(|| Symbolic { inputs: inputs.into(), ..Symbolic::default() })
}

/// Finds the program of a schedule. Compiles it again if Heisen compiled it and the executable is gone.
pub fn find_program(schedule: &Schedule) -> Result<Program, Error> {
    let args: Vec<OsString> = schedule.args.iter().map(|a| OsString::from_vec(a.clone())).collect();
    let path = Path::new(OsStr::from_bytes(&schedule.program));
    // `compile` puts the executable into DIR/build/HASH.
    match (&schedule.source, path.ancestors().nth(3)) {
        (Some(source), Some(directory)) if !path.exists() => {
            let source = PathBuf::from(OsString::from_vec(source.clone()));
            let extent = match (schedule.instrumented, schedule.with_std) {
                _ if schedule.symbolic => Extent::Symbolic,
                (_, true) => Extent::WithStd,
                (true, false) => Extent::Program,
                (false, false) => Extent::AsItIs,
            };
            compile::compile(&source, args, directory, extent)
        }
        _ => Program::find(path.as_os_str(), args),
    }
}
