//! The command line of `cargo heisen`.
//!
//! Options for cargo have cargo's names and are passed on to cargo. Options of the search are those of
//! `heisen check`. Options for cargo come last in each command, because their heading in the help applies to
//! all options that follow.

use crate::cli::args::{Color, ReplayArgs, ResultArgs, SearchArgs};
use crate::cli::exit;
use clap::{Parser, Subcommand};
use heisen_engine::check::Kind;
use std::ffi::OsString;
use std::path::PathBuf;

/// Explores the schedules of the tests and programs of a cargo package.
#[derive(Debug, Parser)]
#[command(name = "cargo-heisen", bin_name = "cargo heisen", version, after_help = exit::TABLE, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explore the schedules of each test, each in its own process; run all tests even if some fail
    #[command(after_help = exit::TABLE)]
    Test(Box<TestArgs>),
    /// Build a program of the package and explore its schedules
    #[command(after_help = exit::TABLE)]
    Run(Box<RunArgs>),
    /// Build instrumented programs, and print their paths
    Build(Box<BuildArgs>),
    /// Rebuild, and replay a schedule: reach the same outcome, or say where the execution diverged
    #[command(after_help = exit::TABLE)]
    Replay(Box<ReplayCommand>),
}

/// `cargo heisen test`
#[derive(Debug, clap::Args)]
#[command(override_usage = "cargo heisen test [OPTIONS] [FILTER]... [-- [OPTIONS OF TESTS]]")]
pub struct TestArgs {
    #[command(flatten)]
    pub filters: FilterArgs,

    /// Only tests that match this expression, such as 'test(push) & !package(foo)' (repeatable: any of
    /// them)
    #[arg(short = 'E', long = "filter-expr", value_name = "EXPR", allow_hyphen_values = true)]
    pub expressions: Vec<String>,

    /// Arguments of cargo test: filters, --skip, --exact, --ignored, --include-ignored; a test with its own
    /// main gets all of them
    #[arg(last = true, value_name = "OPTIONS OF TESTS")]
    pub for_tests: Vec<OsString>,

    #[command(flatten)]
    pub search: SearchArgs,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub build: Build,

    #[command(flatten)]
    pub targets: Targets,

    #[command(flatten)]
    pub cargo: Cargo,
}

/// Options that select tests.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FilterArgs {
    /// Only tests whose names contain one of these
    #[arg(value_name = "FILTER")]
    pub names: Vec<String>,

    /// Leave out tests whose names contain this (repeatable)
    #[arg(long, value_name = "FILTER")]
    pub skip: Vec<String>,

    /// Filters match whole names only
    #[arg(long)]
    pub exact: bool,

    /// Only tests marked #[ignore]
    #[arg(long)]
    pub ignored: bool,

    /// Also tests marked #[ignore]
    #[arg(long, conflicts_with = "ignored")]
    pub include_ignored: bool,
}

/// The words after `--`: those options of a test executable that `cargo heisen` accepts.
#[derive(Debug, Parser)]
#[command(name = "cargo heisen test --", no_binary_name = true, disable_help_flag = true)]
pub struct AfterDashes {
    #[command(flatten)]
    pub filters: FilterArgs,

    // Accepted without effect: each test runs alone, and its output is shown with its failure.
    #[arg(long, alias = "nocapture", hide = true)]
    no_capture: bool,
    #[arg(long, hide = true)]
    show_output: bool,
    #[arg(long, hide = true)]
    test_threads: Option<u32>,
}

/// `cargo heisen run`
#[derive(Debug, clap::Args)]
#[command(override_usage = "cargo heisen run [OPTIONS] [-- ARGS...]")]
pub struct RunArgs {
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<OsString>,

    /// Run this binary
    #[arg(long, value_name = "NAME", conflicts_with = "example")]
    pub bin: Option<String>,

    /// Run this example
    #[arg(long, value_name = "NAME")]
    pub example: Option<String>,

    #[command(flatten)]
    pub search: SearchArgs,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub build: Build,

    #[command(flatten)]
    pub cargo: Cargo,
}

/// `cargo heisen build`
#[derive(Debug, clap::Args)]
pub struct BuildArgs {
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// When to use colours
    #[arg(long, value_enum, default_value = "auto")]
    pub color: Color,

    #[command(flatten)]
    pub build: Build,

    #[command(flatten)]
    pub targets: Targets,

    #[command(flatten)]
    pub cargo: Cargo,
}

/// `cargo heisen replay`
#[derive(Debug, clap::Args)]
#[command(override_usage = "cargo heisen replay [OPTIONS] SCHEDULE")]
pub struct ReplayCommand {
    #[command(flatten)]
    pub replay: ReplayArgs,

    #[command(flatten)]
    pub cargo: Cargo,
}

/// Options for output.
#[derive(Debug, clap::Args)]
pub struct Output {
    /// Write schedules and other files into this directory [default: heisen/schedules in the target
    /// directory]
    #[arg(help_heading = "Output", short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub results: ResultArgs,

    /// Show neither passing tests nor the progress of cargo
    #[arg(help_heading = "Output", short, long)]
    pub quiet: bool,

    /// When to use colours
    #[arg(help_heading = "Output", long, value_enum, default_value = "auto")]
    pub color: Color,
}

/// The build options that are not options of cargo.
pub const WITH_STD: &str = "--with-std";
pub const SYMBOLIC: &str = "--symbolic";

/// Options that make one build differ from another. A schedule file records them for its replay.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of cargo")]
pub struct Build {
    /// Packages (repeatable)
    #[arg(short, long, value_name = "SPEC")]
    pub package: Vec<String>,

    /// All packages of the workspace
    #[arg(long, alias = "all")]
    pub workspace: bool,

    /// With --workspace: all but these packages (repeatable)
    #[arg(long, value_name = "SPEC", requires = "workspace")]
    pub exclude: Vec<String>,

    /// Features, separated by spaces or commas (repeatable)
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub features: Vec<String>,

    /// All features
    #[arg(long)]
    pub all_features: bool,

    /// Without default features
    #[arg(long)]
    pub no_default_features: bool,

    /// Build with the release profile
    #[arg(short, long, conflicts_with = "profile")]
    pub release: bool,

    /// Build with this profile
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// Instrument Rust's standard library as well
    #[arg(long, help_heading = "Scheduling points")]
    pub with_std: bool,

    /// Make a symbolic build, which instruments expressions and Rust's standard library as well;
    /// --strategy causal and --inputs make one by themselves
    #[arg(long, help_heading = "Scheduling points")]
    pub symbolic: bool,
}

/// Options that select targets of the packages.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of cargo")]
pub struct Targets {
    /// The library
    #[arg(long)]
    pub lib: bool,

    /// All binaries
    #[arg(long)]
    pub bins: bool,

    /// This binary (repeatable)
    #[arg(long, value_name = "NAME")]
    pub bin: Vec<String>,

    /// All targets that are tests by default
    #[arg(long)]
    pub tests: bool,

    /// This integration test (repeatable)
    #[arg(long, value_name = "NAME")]
    pub test: Vec<String>,

    /// All examples
    #[arg(long)]
    pub examples: bool,

    /// This example (repeatable)
    #[arg(long, value_name = "NAME")]
    pub example: Vec<String>,
}

/// Options for where and how cargo works.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of cargo")]
pub struct Cargo {
    /// Path of Cargo.toml
    #[arg(long, value_name = "PATH")]
    pub manifest_path: Option<PathBuf>,

    /// The target directory; instrumented builds go to heisen below it
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,

    /// Do not change Cargo.lock
    #[arg(long)]
    pub locked: bool,

    /// Do not use the network
    #[arg(long)]
    pub offline: bool,

    /// Both --locked and --offline
    #[arg(long)]
    pub frozen: bool,

    /// Verbose output of cargo (-vv: very verbose)
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// The words of a command line, collected from the options that were given.
#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn flag(&mut self, name: &str, given: bool) {
        if given {
            self.0.push(name.into());
        }
    }

    fn each<V: Into<OsString> + Clone>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        for value in values {
            self.0.extend([name.into(), value.into()]);
        }
    }
}

impl Build {
    /// The same build, symbolic if the search needs that.
    pub fn for_search(&self, search: &SearchArgs) -> Build {
        Build { symbolic: self.symbolic || search.kind() == Kind::Causal, ..self.clone() }
    }

    /// The options as words of a command line: cargo's options, `--with-std` and `--symbolic`.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Words::default();
        words.each("--package", &self.package);
        words.flag("--workspace", self.workspace);
        words.each("--exclude", &self.exclude);
        words.each("--features", &self.features);
        words.flag("--all-features", self.all_features);
        words.flag("--no-default-features", self.no_default_features);
        words.flag("--release", self.release);
        words.each("--profile", &self.profile);
        // A symbolic build has the standard library anyway.
        words.flag(WITH_STD, self.with_std && !self.symbolic);
        words.flag(SYMBOLIC, self.symbolic);
        words.0
    }
}

impl Targets {
    /// The options as words of cargo's command line.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Words::default();
        words.flag("--lib", self.lib);
        words.flag("--bins", self.bins);
        words.each("--bin", &self.bin);
        words.flag("--tests", self.tests);
        words.each("--test", &self.test);
        words.flag("--examples", self.examples);
        words.each("--example", &self.example);
        words.0
    }
}

impl Cargo {
    /// The options as words that all commands of cargo take. The target directory is not among them.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Words::default();
        words.each("--manifest-path", &self.manifest_path);
        words.flag("--locked", self.locked);
        words.flag("--offline", self.offline);
        words.flag("--frozen", self.frozen);
        for _ in 0..self.verbose {
            words.flag("--verbose", true);
        }
        words.0
    }
}

impl FilterArgs {
    /// The filters of both.
    pub fn and(mut self, other: FilterArgs) -> FilterArgs {
        self.names.extend(other.names);
        self.skip.extend(other.skip);
        self.exact |= other.exact;
        self.ignored |= other.ignored;
        self.include_ignored |= other.include_ignored;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
        AfterDashes::command().debug_assert();
    }

    #[test]
    fn options_of_cargo_are_passed_on() {
        let words = "cargo-heisen test -p a -p b -F x,y --release --offline -vv --lib --test t --bound 3 name --skip no";
        let args = Args::parse_from(words.split(' '));
        let Command::Test(args) = args.command else { panic!("not test") };
        let joined = |words: Vec<OsString>| words.join(" ".as_ref()).into_string().expect("text");
        assert_eq!(joined(args.build.words()), "--package a --package b --features x,y --release");
        assert_eq!(joined(args.targets.words()), "--lib --test t");
        assert_eq!(joined(args.cargo.words()), "--offline --verbose --verbose");
        assert_eq!(args.search.bound, Some(3));
        assert_eq!(args.filters.names, ["name"]);
        assert_eq!(args.filters.skip, ["no"]);
    }

    #[test]
    fn the_search_decides_whether_the_build_is_symbolic() {
        for (options, expected) in [
            ("", ""),
            ("--with-std", "--with-std"),
            ("--symbolic", "--symbolic"),
            ("--symbolic --with-std", "--symbolic"),
            ("--strategy causal --with-std --release", "--release --symbolic"),
            ("--inputs", "--symbolic"),
            ("--strategy dpor", ""),
        ] {
            let line = format!("cargo-heisen run {options}");
            let Command::Run(args) = Args::parse_from(line.split_whitespace()).command else {
                panic!("not run")
            };
            let words = args.build.for_search(&args.search).words();
            assert_eq!(words.join(" ".as_ref()), expected, "{options}");
        }
    }
}
