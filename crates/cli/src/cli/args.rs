//! The commands of `heisen` and their options.

mod compare;
mod results;
mod script;

pub use compare::{DiffArgs, ExplainArgs};
pub use results::{Format, ResultArgs};
pub use script::{OracleName, RunArgs, ScriptArgs};

use crate::cli::exit;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use heisen_engine::Error;
use heisen_engine::check::Kind;
use heisen_engine::process::run_config;
use heisen_search::{Entry, Parameter, TABLE};
use heisen_trace::Faults;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Finds, reproduces and explains concurrency bugs in unmodified native Linux programs.
#[derive(Debug, Parser)]
#[command(version, after_help = exit::TABLE, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explore the schedules of a program and report the first bug
    #[command(after_help = exit::TABLE)]
    Check(Box<CheckArgs>),
    /// Replay a schedule: reach the same outcome, or say where the execution diverged
    #[command(after_help = exit::TABLE)]
    Replay(ReplayArgs),
    /// Explain why a schedule fails, by comparing it with an execution that passes
    #[command(after_help = exit::TABLE)]
    Explain(ExplainArgs),
    /// Compare the executions of two schedules of one program, side by side
    #[command(after_help = exit::TABLE)]
    Diff(DiffArgs),
    /// Show a schedule file as a table of switches with source lines
    Show(ShowArgs),
    /// Run a script that fixes part of the schedule of a program, and search the rest
    #[command(after_help = exit::TABLE)]
    Script(ScriptArgs),
    /// Run a program under a name, for scripts to attach to: heisen script SCRIPT.rhai --attach NAME
    Run(RunArgs),
    /// Show what checks covered, by preemptions and over executions, as tables or figures
    #[command(after_help = exit::TABLE)]
    Coverage(CoverageArgs),
    /// Offer Heisen to agents by the Model Context Protocol, over standard input and output
    #[command(after_help = MCP_HELP)]
    Mcp,
    /// Compile and link C like cc, with instrumentation: CC="heisen cc" make (HEISEN_CC names the real compiler);
    /// heisen cc --symbolic instruments expressions as well, by clang
    #[command(disable_help_flag = true)]
    Cc {
        /// Arguments of the compiler
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        args: Vec<OsString>,
    },
    /// Compile and link C++ like c++, with instrumentation: CXX="heisen c++" make (HEISEN_CXX names the real compiler);
    /// heisen c++ --symbolic instruments expressions as well, by clang++
    #[command(name = "c++", disable_help_flag = true)]
    Cpp {
        /// Arguments of the compiler
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        args: Vec<OsString>,
    },
    /// Print heisen.h, the C interface for programs under test: heisen header > heisen.h
    Header,
}

/// The help text about configuring a client of `heisen mcp`.
const MCP_HELP: &str = r#"A client starts this command itself. Most clients read a configuration such as:

  {
    "mcpServers": {
      "heisen": {
        "command": "heisen",
        "args": ["mcp"]
      }
    }
  }

Name the full path of heisen if it is not in PATH. Relative paths that the agent names start at the
directory in which the client starts the server. The server ends when the client closes its input.

Tools:
  check         explore the schedules of a program and report bugs
  replay        run a schedule file again and compare the outcome
  explain       say why a schedule fails
  list_events   list the events of a schedule, filtered and in parts
  variables_at  show variables, threads and locks after a step
  what_if       run a schedule in another order"#;

/// `heisen check`
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "heisen check [OPTIONS] -- PROG [ARGS]...\n       heisen check [OPTIONS] FILE.c|.cc|.cpp|.rs [-- ARGS...]\n       heisen check --resume FILE"
)]
pub struct CheckArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Instrument Rust's standard library as well as FILE.rs
    #[arg(help_heading = "Scheduling points", long, requires = "source", conflicts_with = "no_instrument")]
    pub with_std: bool,

    #[command(flatten)]
    pub search: SearchArgs,

    /// Write schedules and other files into this directory
    #[arg(help_heading = "Output", short, long, value_name = "DIR", default_value = ".heisen")]
    pub output: PathBuf,

    #[command(flatten)]
    pub results: ResultArgs,

    /// Write pages about the check into this directory: index.html, and one page for each finding
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    pub html: Option<PathBuf>,

    /// Measure what the executions cover, and write it to this file for heisen coverage
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub coverage: Option<PathBuf>,

    /// Save the search to this file every few seconds and at its end, so that --resume can continue it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    /// Continue a saved or interrupted search, with the options it was started with
    #[arg(help_heading = "Search", long, value_name = "FILE", conflicts_with_all = [
        "source", "no_instrument", "with_std", "command", "strategy", "bound", "changed_since", "reduce", "depth", "burst", "delays", "inputs", "input", "rounds", "trace_memory", "steps", "hang", "seed", "keep_going", "no_minimise", "no_explain", "expect_exit",
        "carrier", "fork", "symmetry", "spurious", "faults", "no_preempt", "focus", "at_ready", "cpus", "real_time", "timeouts", "before",
        "after", "dir", "stdin", "heap", "leaks", "patch", "warm_up", "races", "accesses",
        "suppressions"
    ])]
    pub resume: Option<PathBuf>,

    /// Show predictions that no execution confirmed: locks taken in both orders, updates that may be lost
    #[arg(help_heading = "Output", long)]
    pub hints: bool,

    /// Print nothing but errors
    #[arg(help_heading = "Output", short, long)]
    pub quiet: bool,

    /// When to use colours
    #[arg(help_heading = "Output", long, value_enum, default_value = "auto")]
    pub color: Color,
}

/// The options of all commands that take a program.
#[derive(Debug, clap::Args)]
pub struct TargetArgs {
    /// A source file: Heisen compiles and instruments it with cc, c++ or rustc (or CC, CXX, RUSTC), with -g
    /// and -pthread
    #[arg(value_name = "FILE")]
    pub source: Option<PathBuf>,

    /// The program and its arguments; after FILE, the arguments only
    #[arg(last = true, value_name = "PROG ARGS")]
    pub command: Vec<OsString>,

    /// Compile FILE without instrumentation: its memory accesses are not scheduling points
    #[arg(long, requires = "source")]
    pub no_instrument: bool,
}

/// The options of all commands that explore: how to search, and the environment of the executions.
#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// The search strategy [default: icb; best if --changed-since is given; portfolio if --time is given
    /// and neither --bound nor --reduce is]
    #[arg(help_heading = "Search", long, value_parser = strategies())]
    pub strategy: Option<Kind>,

    /// Explore schedules with at most this many preemptions [default: 2 for icb, unlimited for best and
    /// dpor]
    #[arg(help_heading = "Search", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(0..))]
    pub bound: Option<u32>,

    /// best: start with code that changed since this git revision, committed or not
    #[arg(help_heading = "Search", long, value_name = "REV", allow_hyphen_values = true)]
    pub changed_since: Option<String>,

    /// icb and dfs: explore one execution of each happens-before class [default: on for icb if the program
    /// is fully instrumented]
    #[arg(help_heading = "Search", long, value_enum, value_name = "SWITCH", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub reduce: Option<Switch>,

    /// pct and fair-pct: look for bugs of this depth, that is, with this many ordering constraints
    /// [default: 3]
    #[arg(help_heading = "Search", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub depth: Option<u32>,

    /// burst: run a thread for this many decisions on average [default: 1, 2, 4 up to 256 in turn]
    #[arg(help_heading = "Search", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub burst: Option<u32>,

    /// delay: skip a thread whose turn it is this many times [default: 3]
    #[arg(help_heading = "Search", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub delays: Option<u32>,

    /// causal, portfolio: choose the inputs of the program as well as schedules; see heisen_input in heisen.h
    #[arg(help_heading = "Search", long)]
    pub inputs: bool,

    /// causal, portfolio: make bytes from outside inputs, which implies --inputs; may be repeated:
    /// stdin:N (the first N bytes of standard input), argv:I (argument I), file:PATH:N (the first N bytes of a file)
    #[arg(help_heading = "Search", long, value_name = "BYTES", allow_hyphen_values = true)]
    pub input: Vec<OsString>,

    /// causal, portfolio: follow a loop that waits for other threads for this many rounds [default: 8]
    #[arg(help_heading = "Search", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,

    /// causal, portfolio: the memory for the trace of one execution, such as 64M or 1G [default: 256M]
    #[arg(help_heading = "Machinery", long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size)]
    pub trace_memory: Option<usize>,

    /// Stop after this many executions [default: unlimited; 10000 for samplers if --time is not given]
    #[arg(help_heading = "Limits", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub executions: Option<u64>,

    /// Stop after this time, such as 500ms, 30s, 5m or 1h; compiling does not count, and confirming a
    /// failure may take as long again (2 to 10 s)
    #[arg(help_heading = "Limits", long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub time: Option<Duration>,

    /// Do not explore an execution beyond this many scheduling points
    #[arg(help_heading = "Limits", long, value_name = "N", allow_hyphen_values = true, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(10..=0x7fff_ffff))]
    pub steps: u32,

    /// The longest time without a scheduling point: a loop that takes longer yields; if no other thread can
    /// run, the check gives up, or continues until --time if the program computes
    #[arg(help_heading = "Limits", long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s", value_parser = duration)]
    pub hang: Duration,

    /// Seed of samplers and of random numbers in the program: the same seed gives the same search
    #[arg(help_heading = "Search", long, value_name = "S", allow_hyphen_values = true, default_value_t = 0)]
    pub seed: u64,

    /// Start interchangeable threads in one order only: fewer executions, for programs that do not tell
    /// such threads apart
    #[arg(help_heading = "Search", long)]
    pub symmetry: bool,

    /// Let up to this many waits of an execution end although nobody woke the thread
    #[arg(help_heading = "Decisions besides threads", long, value_name = "N", allow_hyphen_values = true, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..))]
    pub spurious: u32,

    /// Let up to this many calls of an execution fail, of any kind or of those named, such as
    /// 2:malloc,trylock
    #[arg(help_heading = "Decisions besides threads", long, value_name = "N[:KINDS]", allow_hyphen_values = true, default_value = "0", value_parser = faults)]
    pub faults: Faults,

    /// What to do with data races of an instrumented program [default: report for Rust, count for C and
    /// C++]
    #[arg(help_heading = "Findings", long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "report", value_enum)]
    pub races: Option<Races>,

    /// Do not report data races that this file names, in the format of ThreadSanitizer suppressions
    #[arg(help_heading = "Findings", long, value_name = "FILE", requires = "races")]
    pub suppressions: Option<PathBuf>,

    /// Which plain memory accesses of an instrumented program are scheduling points
    #[arg(
        help_heading = "Scheduling points",
        long,
        value_name = "WHICH",
        value_enum,
        default_value = "conflicting"
    )]
    pub accesses: Accesses,

    /// Collect all findings, each once, instead of stopping at the first
    #[arg(help_heading = "Findings", long)]
    pub keep_going: bool,

    /// Keep the schedule that the search found, instead of the simplest one that fails in the same way
    #[arg(help_heading = "Findings", long)]
    pub no_minimise: bool,

    /// Do not compare findings with executions that pass, to say why they fail
    #[arg(help_heading = "Findings", long)]
    pub no_explain: bool,

    /// Exit with status 6 if nothing was found but the verdict has a caveat: anything not controlled,
    /// unreported data races, an incomplete search
    #[arg(help_heading = "Findings", long)]
    pub strict: bool,

    /// The exit status of a correct execution
    #[arg(help_heading = "Findings", long, value_name = "CODE", allow_hyphen_values = true, default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255))]
    pub expect_exit: i32,

    /// Do not preempt code that matches: a module, source file or function; * and ? are wildcards
    /// (repeatable)
    #[arg(help_heading = "Scheduling points", long, value_name = "PATTERN")]
    pub no_preempt: Vec<String>,

    /// Preempt only code that matches: a module, source file or function; * and ? are wildcards
    /// (repeatable)
    #[arg(help_heading = "Scheduling points", long, value_name = "PATTERN")]
    pub focus: Vec<String>,

    /// Make the atomic instructions of uninstrumented code in these modules scheduling points: file names
    /// separated by commas (* and ? are wildcards), or default (the program and its own libraries),
    /// instrumented (the instrumented ones among them), instructions (as default, with mutexes of Rust as
    /// instructions instead of locks) or none [default: default; instrumented if --focus or --no-preempt is
    /// given]
    #[arg(help_heading = "Scheduling points", long, value_name = "MODULES")]
    pub patch: Option<String>,

    /// Begin executions at the call of heisen_ready (see heisen.h) instead of at main
    #[arg(help_heading = "Environment", long)]
    pub at_ready: bool,

    /// Run this many executions in parallel [default: one per core]
    #[arg(help_heading = "Machinery", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Memory for the search, such as 64K, 512M or 2G; plans beyond it go to disk [default: 1G]
    #[arg(help_heading = "Machinery", long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size)]
    pub memory: Option<usize>,

    /// What the threads run on: fibers is fast, kernel gives each thread a kernel thread; the result is the
    /// same
    #[arg(help_heading = "Machinery", long, value_enum, default_value = "fibers")]
    pub carrier: Carrier,

    /// Fork a process for each execution instead of restoring a snapshot; slower, with the same result
    #[arg(help_heading = "Machinery", long)]
    pub fork: bool,

    /// How many processors the program sees [default: as many as it may use]
    #[arg(help_heading = "Environment", long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: Option<u32>,

    /// Use real instead of virtual time: sleeps and time-outs take as long as they say
    #[arg(help_heading = "Environment", long)]
    pub real_time: bool,

    /// Let a wait time out while other threads can run if its deadline is at most this far ahead
    #[arg(help_heading = "Decisions besides threads", long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s", value_parser = duration)]
    pub timeouts: Duration,

    /// Run this shell command before each execution; if it fails, the check ends
    #[arg(help_heading = "Environment", long, value_name = "CMD")]
    pub before: Option<String>,

    /// Run this shell command after each execution; if it fails, the execution has failed
    #[arg(help_heading = "Environment", long, value_name = "CMD")]
    pub after: Option<String>,

    /// Run each execution in an empty directory below DIR, named by HEISEN_DIR and removed afterwards
    #[arg(help_heading = "Environment", long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Feed this file to standard input of each execution (- is standard input of heisen) [default: empty]
    #[arg(help_heading = "Environment", long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,

    /// Use the checked heap, which finds use after free, double and invalid frees and overflows [default:
    /// on for instrumented programs]
    #[arg(help_heading = "Findings", long, value_name = "WHEN", value_enum)]
    pub heap: Option<Switch>,

    /// Report memory that is unreachable when the program ends; implies --heap on
    #[arg(help_heading = "Findings", long)]
    pub leaks: bool,

    /// Run this many executions first that do not count
    #[arg(help_heading = "Environment", long, value_name = "N", allow_hyphen_values = true, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub warm_up: u64,
}

/// `heisen replay`
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The schedule file
    pub schedule: PathBuf,

    /// List every step: thread, operation, object, source line
    #[arg(long)]
    pub trace: bool,

    /// What the threads run on: fibers, or kernel threads
    #[arg(long, value_enum, default_value = "fibers")]
    pub carrier: Carrier,

    /// Open gdb, stopped at the failing event; "help heisen" in gdb lists its commands
    #[arg(long, conflicts_with_all = ["trace", "quiet", "hang", "carrier"])]
    pub gdb: bool,

    /// Arguments of gdb, such as -batch -ex 'heisen threads'
    #[arg(last = true, requires = "gdb", value_name = "GDB ARGS")]
    pub gdb_args: Vec<OsString>,

    /// Give up if the program computes or blocks for this long without a scheduling point
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s", value_parser = duration)]
    pub hang: Duration,

    /// Print nothing but errors, and discard the output of the program
    #[arg(short, long)]
    pub quiet: bool,

    /// When to use colours
    #[arg(long, value_enum, default_value = "auto")]
    pub color: Color,
}

/// `heisen show`
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// The schedule file
    pub schedule: PathBuf,

    /// When to use colours
    #[arg(long, value_enum, default_value = "auto")]
    pub color: Color,
}

/// `heisen coverage`
#[derive(Debug, clap::Args)]
pub struct CoverageArgs {
    /// Files written by heisen check --coverage; each becomes one line in the figures
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// Draw figures into this SVG or HTML file instead of printing tables
    #[arg(short, long, value_name = "FILE.svg|FILE.html")]
    pub output: Option<PathBuf>,

    /// When to use colours
    #[arg(long, value_enum, default_value = "auto")]
    pub color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Races {
    /// Report every data race, and continue
    Report,
    /// Report the first data race, and stop
    Stop,
    /// Count data races; report only failures that they cause
    Count,
    /// Do not look for data races; atomic accesses are scheduling points, plain ones are not
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accesses {
    /// Accesses at places where an unordered conflict with another thread was seen
    Conflicting,
    /// All accesses: slow, but independent of the race check
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Carrier {
    Fibers,
    Kernel,
}

impl From<Carrier> for run_config::Carrier {
    fn from(carrier: Carrier) -> run_config::Carrier {
        match carrier {
            Carrier::Fibers => run_config::Carrier::Fibers,
            Carrier::Kernel => run_config::Carrier::Kernel,
        }
    }
}

impl SearchArgs {
    /// The strategy to use. Without `--strategy`, it follows from other options. `--inputs` needs causal,
    /// `--changed-since` needs best. `--bound` and `--reduce on` ask for icb. Otherwise, `--time` selects portfolio, which makes the
    /// most of the time.
    pub fn kind(&self) -> Kind {
        match self.strategy {
            Some(Kind::Dpor) if self.bound.is_some() => Kind::Bpor,
            Some(strategy) => strategy,
            None if self.chooses_inputs() => Kind::Causal,
            None if self.changed_since.is_some() => Kind::Best,
            None if self.time.is_some() && self.bound.is_none() && self.reduce != Some(Switch::On) => {
                Kind::Portfolio
            }
            None => Kind::Icb,
        }
    }

    /// Whether the search chooses inputs.
    pub fn chooses_inputs(&self) -> bool {
        self.inputs || !self.input.is_empty()
    }

    /// Refuses options that the strategy ignores, because the user expects an option to have an effect.
    pub fn check_options(&self) -> Result<(), Error> {
        let kind = self.kind();
        for (given, parameter) in [
            (self.bound.is_some(), Parameter::Bound),
            (self.changed_since.is_some(), Parameter::ChangedSince),
            (self.reduce.is_some(), Parameter::Reduce),
            (self.depth.is_some(), Parameter::Depth),
            (self.burst.is_some(), Parameter::Burst),
            (self.delays.is_some(), Parameter::Delays),
            (self.inputs, Parameter::Inputs),
            (!self.input.is_empty(), Parameter::Input),
            (self.rounds.is_some(), Parameter::Rounds),
            (self.trace_memory.is_some(), Parameter::TraceMemory),
        ] {
            if given && !kind.takes(parameter) {
                let (option, strategies, named) = (parameter.option(), takers(parameter), kind.name());
                return Err(Error::Input(format!(
                    "{option} is for --strategy {strategies}, but the strategy is {named}; change one of the two"
                )));
            }
        }
        if self.leaks && self.heap == Some(Switch::Off) {
            return Err(Error::Input("--leaks needs the checked heap; leave out --heap off".into()));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// The value of `--color`, which cargo takes, too.
    pub fn word(self) -> &'static str {
        match self {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        }
    }
}

/// Parses the name of a strategy of the table.
fn strategies() -> impl TypedValueParser<Value = Kind> {
    let offered = TABLE.iter().filter_map(|entry| Some(PossibleValue::new(entry.shown).help(entry.help?)));
    PossibleValuesParser::new(offered).try_map(|name| Kind::named(&name).ok_or("an unknown strategy"))
}

/// The names of the strategies that take an option, such as "icb, best and dpor".
fn takers(parameter: Parameter) -> String {
    let takes = |entry: &&Entry| entry.takes.contains(&parameter);
    let names: Vec<&str> = TABLE.iter().filter(takes).map(|entry| entry.shown).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Parses a number of faults, optionally with their kinds: `2:malloc`.
fn faults(text: &str) -> Result<Faults, String> {
    text.parse()
}

/// Parses a time such as `30s`; a bare number is in seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| "not a time such as 30s or 5m".to_owned())?;
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit {unit:?}; use ms, s, m or h")),
    };
    let time = Duration::try_from_secs_f64(number * factor).map_err(|_| "too long".to_owned())?;
    if time.is_zero() { Err("it must be more than 0".to_owned()) } else { Ok(time) }
}

/// The least memory that a search needs, in bytes.
const LEAST: usize = 64 << 10;

/// Parses a size such as `512M`; a bare number is in bytes.
fn size(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: usize = number.parse().map_err(|_| "not a size such as 512M or 2G".to_owned())?;
    let factor = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(format!("unknown unit {unit:?}; use K, M or G")),
    };
    let size = number.checked_mul(factor).ok_or("too large")?;
    if size < LEAST { Err("64K is the least".to_owned()) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn sizes() {
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("100000"), Ok(100_000));
        assert_eq!(size("3M"), Ok(3 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        for bad in ["", "M", "0", "63K", "1.5M", "-1M", "1T", "1 M", "99999999999G", "99999999999999999999"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for bad in ["", "s", "0", "0.0ms", "3 s", "-1s", "1d", "1e400s", "99999999999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
