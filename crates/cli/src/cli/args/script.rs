//! The options of `heisen script` and `heisen run`.

use super::{TargetArgs, duration};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `heisen script`
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "heisen script [OPTIONS] SCRIPT.rhai -- PROG [ARGS]...\n       heisen script [OPTIONS] SCRIPT.rhai FILE.c|.cc|.cpp|.rs [-- ARGS...]\n       heisen script [OPTIONS] SCRIPT.rhai --attach NAME='PROG ARGS'...\n       heisen script --from SCHEDULE [-o SCRIPT.rhai]"
)]
pub struct ScriptArgs {
    /// The script file
    #[arg(value_name = "SCRIPT", required_unless_present_any = ["from", "remote"])]
    pub script: Option<PathBuf>,

    /// Write a script that leads to the bug of this schedule and fixes only what matters, to the file of -o
    /// or standard output
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = [
        "script", "source", "command", "no_instrument", "oracle", "seed", "reduce", "choices", "executions", "time",
        "expect_exit", "steps", "json", "system", "attach"
    ])]
    pub from: Option<PathBuf>,

    /// Take the script from standard input, one statement at a time, and answer on standard output: how #[heisen::test(script = …)]
    /// of the crate heisen runs a script in Rust
    #[arg(long, hide = true, conflicts_with_all = [
        "script", "from", "source", "no_instrument", "system", "attach", "json", "quiet"
    ])]
    pub remote: bool,

    #[command(flatten)]
    pub target: TargetArgs,

    /// System mode: threads run in parallel, and the script holds them at the events it names; for servers
    /// and real time
    #[arg(long)]
    pub system: bool,

    /// A program that the script starts under NAME or, without a command, one that runs under heisen run;
    /// implies --system (repeatable)
    #[arg(long, value_name = "NAME[='PROG ARGS']", value_parser = named_program, conflicts_with_all = ["command", "source"])]
    pub attach: Vec<(String, Option<Vec<String>>)>,

    /// The order in which the choices of the script are explored
    #[arg(help_heading = "Search", long, value_enum, default_value = "depth")]
    pub oracle: OracleName,

    /// Seed of --oracle random
    #[arg(help_heading = "Search", long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Cut an execution where an equivalent one chose a thread in the same line of the script; only for
    /// scripts whose variables hold nothing but threads from one choice to the next
    #[arg(help_heading = "Search", long, conflicts_with = "choices")]
    pub reduce: bool,

    /// Run one execution, with these choices of a finding
    #[arg(help_heading = "Search", long, value_name = "N,N,...", value_delimiter = ',', conflicts_with_all = ["oracle", "seed", "executions", "time"])]
    pub choices: Option<Vec<usize>>,

    /// Stop after this many executions
    #[arg(help_heading = "Limits", long, value_name = "N")]
    pub executions: Option<u64>,

    /// Stop after this time
    #[arg(help_heading = "Limits", long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,

    /// The exit status of a correct execution
    #[arg(help_heading = "Findings", long, value_name = "STATUS", default_value_t = 0)]
    pub expect_exit: i32,

    /// End an execution after this many steps
    #[arg(help_heading = "Limits", long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(10..))]
    pub steps: u32,

    /// Give up if the program runs for this long without a scheduling point
    #[arg(help_heading = "Limits", long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub hang: Duration,

    /// Write compiled files into this directory [default: .heisen]; with --from, write the script to this
    /// file
    #[arg(help_heading = "Output", short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Write the result as JSON to this file (- is standard output)
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Print nothing but errors
    #[arg(help_heading = "Output", short, long)]
    pub quiet: bool,
}

/// Names of `heisen_script::oracle::Order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OracleName {
    /// The last choice changes first
    Depth,
    /// The earliest choice changes first
    Breadth,
    /// Fewest choices that differ from the first possibility
    Few,
    /// At random
    Random,
}

/// Parses `NAME`, or `NAME='PROG ARGS'` with the quoting of a shell.
fn named_program(text: &str) -> Result<(String, Option<Vec<String>>), String> {
    let Some((name, command)) = text.split_once('=') else { return Ok((text.to_owned(), None)) };
    let words = shlex::split(command).ok_or("a quote is not closed")?;
    if name.is_empty() || words.is_empty() {
        return Err("write NAME='PROG ARGS'".to_owned());
    }
    Ok((name.to_owned(), Some(words)))
}

/// `heisen run`
#[derive(Debug, clap::Args)]
#[command(override_usage = "heisen run NAME -- PROG [ARGS]...")]
pub struct RunArgs {
    /// The name under which scripts attach to the program
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The program and its arguments
    #[arg(value_name = "PROG", last = true, required = true)]
    pub command: Vec<OsString>,
}
