//! The options for results that other programs read.

use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Options of the commands that explore.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ResultArgs {
    /// Write the result as JSON to this file (- is standard output); cargo heisen test: one object per line
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the findings as SARIF 2.1.0 to this file (- is standard output)
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,

    /// Write the result as JUnit XML to this file (- is standard output)
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// The format of the report: text for people, or annotations for GitHub Actions
    #[arg(help_heading = "Output", long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    #[default]
    Text,
    /// Workflow commands of GitHub Actions, which become annotations of source lines
    Github,
}

impl ResultArgs {
    /// Whether standard output belongs to a file, so that the report goes to standard error.
    pub fn on_stdout(&self) -> bool {
        [&self.json, &self.sarif, &self.junit].into_iter().flatten().any(|path| path == Path::new("-"))
    }

    /// The files with their options.
    pub fn files(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("--json", self.json.as_deref()),
            ("--sarif", self.sarif.as_deref()),
            ("--junit", self.junit.as_deref()),
        ]
    }
}
