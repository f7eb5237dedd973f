//! The options of the commands that compare executions: `heisen explain` and `heisen diff`.

use super::{Color, duration};
use std::path::PathBuf;
use std::time::Duration;

/// The options that both have.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Give up if the program computes or blocks for this long without a scheduling point
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s", value_parser = duration)]
    pub hang: Duration,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// When to use colours
    #[arg(long, value_enum, default_value = "auto")]
    pub color: Color,
}

/// `heisen explain`
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The schedule file
    pub schedule: PathBuf,

    /// Write the explanation as one self-contained HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write both executions as a trace for ui.perfetto.dev to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,

    /// Write the failing execution as a graph for Graphviz to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,

    /// Write the explanation as JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub run: CompareArgs,
}

/// `heisen diff`
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// The schedule file of the first execution, called A
    #[arg(value_name = "SCHEDULE")]
    pub one: PathBuf,

    /// The schedule file of the second execution, called B
    #[arg(value_name = "SCHEDULE")]
    pub other: PathBuf,

    /// Write both executions as one self-contained HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write both executions as JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub run: CompareArgs,
}
