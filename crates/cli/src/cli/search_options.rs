//! Converts the options of a search from the command line into those of the engine.

use crate::cli::args;
use crate::cli::args::SearchArgs;
use heisen_engine::check::changed::Changed;
use heisen_engine::check::scope::Patterns;
use heisen_engine::check::{Kind, Options, Races, rounds, trace_memory};
use heisen_engine::explain::suppress::Suppressions;
use heisen_engine::process::{marked, stdin};
use heisen_engine::program::Program;
use heisen_engine::{Error, patch};
use heisen_trace::decision::PATIENCE;
use heisen_trace::{Accesses, Stdin, World};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

/// The number of executions of a sampler without `--executions` and `--time`.
const SAMPLES: u64 = 10_000;
/// The default of `--bound` for icb.
const BOUND: u32 = 2;
/// The default of `--depth`: the depth of the bugs that pct looks for.
const DEPTH: u32 = 3;
/// The default of `--delays`: the number of delays in one execution of the strategy `delay`.
const DELAYS: u32 = 3;
/// The default of `--memory`, in bytes.
const MEMORY: usize = 1 << 30;

pub fn jobs(args: &SearchArgs) -> usize {
    args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// The engine's options for a search of a program with these arguments.
pub fn options(args: &SearchArgs, arguments: &[OsString], stop: &AtomicBool) -> Result<Options, Error> {
    args.check_options()?;
    let strategy = args.kind();
    if matches!(strategy, Kind::Dpor | Kind::Bpor) {
        fits_dpor(args)?;
    }
    if strategy == Kind::Causal || args.chooses_inputs() {
        fits_causal(args)?;
    }
    let unlimited = strategy.samples() && args.time.is_none();
    Ok(Options {
        strategy,
        bound: args.bound.unwrap_or(if strategy == Kind::Best { u32::MAX } else { BOUND }),
        changed_since: args.changed_since.clone(),
        changed: Changed::default(),
        depth: args.depth.unwrap_or(DEPTH),
        burst: args.burst,
        delays: args.delays.unwrap_or(DELAYS),
        seed: args.seed,
        executions: args.executions.or_else(|| unlimited.then_some(SAMPLES)),
        time: args.time,
        steps: args.steps,
        hang: args.hang,
        keep_going: args.keep_going,
        minimise: !args.no_minimise,
        explain: !args.no_explain,
        expect_exit: args.expect_exit,
        scope: Patterns { no_preempt: args.no_preempt.clone(), focus: args.focus.clone() },
        // Each trace decides which execution comes next.
        jobs: if strategy == Kind::Causal { 1 } else { jobs(args) },
        memory: args.memory.unwrap_or(MEMORY),
        traced: strategy == Kind::Causal,
        trace_memory: args.trace_memory.map_or_else(trace_memory, |bytes| bytes as u64),
        inputs: args.chooses_inputs(),
        rounds: args.rounds.unwrap_or_else(rounds),
        carrier: args.carrier.into(),
        in_process: !args.fork,
        reduce: args.reduce.map(|reduce| reduce == args::Switch::On),
        symmetry: args.symmetry,
        spurious: args.spurious,
        faults: args.faults,
        world: world(args, arguments, stop)?,
        warm_up: args.warm_up,
        races: match args.races {
            None | Some(args::Races::Count) => Races::Count,
            Some(args::Races::Report) => Races::Report,
            Some(args::Races::Stop) => Races::Stop,
            Some(args::Races::Off) => Races::Off,
        },
        suppressions: args.suppressions.as_deref().map(Suppressions::read).transpose()?.unwrap_or_default(),
        hints: false,
        strict: args.strict,
    })
}

/// The options for this program. Without `--races`, data races of an instrumented Rust program are reported:
/// they are undefined behaviour, and safe code has none.
pub fn options_for(program: &Program, args: &SearchArgs, mut options: Options) -> Options {
    if args.races.is_none() && program.rust && program.instrumented {
        options.races = Races::Report;
    }
    // The solver is one more arm of the portfolio, unless options ask for what it would not explore.
    if options.strategy == Kind::Portfolio && program.symbolic && fits_causal(args).is_ok() {
        options.traced = true;
        options.world.accesses.all = true;
        options.world.patience = patience_of_rounds(args);
    }
    options
}

/// Refuses options that do not fit dynamic partial-order reduction. It needs a choice at every scheduling
/// point, and the same steps must always have the same effects.
fn fits_dpor(args: &SearchArgs) -> Result<(), Error> {
    let refused = [
        (
            !args.no_preempt.is_empty(),
            "--no-preempt",
            "dpor must be able to preempt everywhere; use --strategy icb",
        ),
        (!args.focus.is_empty(), "--focus", "dpor must be able to preempt everywhere; use --strategy icb"),
        (args.real_time, "--real-time", "real time differs from run to run"),
    ];
    refuse("--strategy dpor", &refused)
}

/// Refuses options that do not fit the solver-driven search: what it does not ask for it would not explore.
fn fits_causal(args: &SearchArgs) -> Result<(), Error> {
    const SCOPE: &str = "causal must be able to preempt everywhere; use --strategy icb";
    const VALUES: &str = "causal chooses threads and inputs only; use --strategy icb or dpor";
    // The portfolio goes on without the solver, unless its inputs are asked for.
    let option = if args.kind() == Kind::Causal { "--strategy causal" } else { "--inputs" };
    refuse(
        option,
        &[
            (!args.no_preempt.is_empty(), "--no-preempt", SCOPE),
            (!args.focus.is_empty(), "--focus", SCOPE),
            (args.spurious > 0, "--spurious", VALUES),
            (args.faults.most > 0, "--faults", VALUES),
            (args.symmetry, "--symmetry", "causal runs no two executions that take the same paths anyway"),
            (args.real_time, "--real-time", "real time differs from run to run"),
            (
                args.at_ready && !args.input.is_empty(),
                "--at-ready and --input",
                "what the program reads before heisen_ready has no inputs; use heisen_input instead of --input",
            ),
        ],
    )
}

/// Refuses the first of these options that is given, for the reason beside it.
fn refuse(option: &str, refused: &[(bool, &str, &str)]) -> Result<(), Error> {
    match refused.iter().find(|(given, ..)| *given) {
        Some((_, other, why)) => {
            Err(Error::Input(format!("{option} cannot be combined with {other}: {why}")))
        }
        None => Ok(()),
    }
}

/// The environment of the executions.
fn world(args: &SearchArgs, arguments: &[OsString], stop: &AtomicBool) -> Result<World, Error> {
    let absolute = |dir: &PathBuf| {
        std::path::absolute(dir).map_err(|e| Error::Input(format!("--dir {}: {e}", dir.display())))
    };
    let dir = args.dir.as_ref().map(absolute).transpose()?;
    // A scope needs the caller of an atomic instruction in a language's library. Only code with frame
    // pointers shows it, so only instrumented modules are patched then.
    let scoped = !args.focus.is_empty() || !args.no_preempt.is_empty();
    let patched = match &args.patch {
        Some(modules) => modules,
        None if scoped => patch::INSTRUMENTED,
        None => patch::DEFAULT,
    };
    let mut world = World {
        seed: args.seed,
        cpus: args.cpus,
        real_time: args.real_time,
        timeouts: args.timeouts,
        patience: patience(args),
        before: args.before.clone(),
        after: args.after.clone(),
        dir: dir.map(|dir| dir.into_os_string().into_vec()),
        stdin: args.stdin.as_deref().map(|path| read_stdin(path, stop)).transpose()?,
        heap: args.heap.map(|heap| heap == args::Switch::On),
        marked: args.input.iter().map(|text| marked::parse(text)).collect::<Result<_, _>>()?,
        leaks: args.leaks,
        accesses: Accesses {
            check: args.races != Some(args::Races::Off),
            all: args.accesses == args::Accesses::All || args.kind() == Kind::Causal,
            points: Vec::new(),
        },
        patch: patch::parse(patched).map_err(|why| Error::Input(format!("--patch {patched:?}: {why}")))?,
    };
    marked::complete(&mut world, arguments)?;
    Ok(world)
}

/// How often a thread may repeat itself before it gives way. The solver-driven search models no fairness, so its threads
/// must be free to take all rounds that it asks for, of each loop.
fn patience(args: &SearchArgs) -> u32 {
    match args.kind() {
        Kind::Causal => patience_of_rounds(args),
        _ => PATIENCE,
    }
}

fn patience_of_rounds(args: &SearchArgs) -> u32 {
    2 * args.rounds.unwrap_or_else(rounds) + 2
}

/// Reads the standard input for the executions. A separate thread reads, because reading may block and Ctrl-C
/// must still work.
fn read_stdin(path: &Path, stop: &AtomicBool) -> Result<Stdin, Error> {
    let (send, receive) = mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || send.send(stdin::read(&path)));
    loop {
        match receive.recv_timeout(Duration::from_millis(50)) {
            Ok(read) => return read,
            Err(mpsc::RecvTimeoutError::Timeout) if !stop.load(Relaxed) => {}
            Err(_) => return Err(Error::Interrupted),
        }
    }
}
