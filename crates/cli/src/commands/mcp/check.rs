//! The tool `check`: runs a check as `heisen check` does. The parameters become a command line, which has the same
//! defaults and the same messages.

use super::tool::{Answer, Call, Tool};
use crate::cli::args::{Args, CheckArgs, Command};
use crate::commands::check::{Place, search, write_results};
use crate::render::check::report;
use crate::render::json;
use crate::render::notice::NoticePrinter;
use crate::render::paint::Paint;
use clap::Parser;
use heisen_engine::Error;
use heisen_engine::check::{Ended, Notice};
use heisen_engine::program::compile::Language;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The path of an executable, or of a source file (.c, .cc, .cpp, .rs), which Heisen compiles and instruments.
    /// Relative paths start at the working directory of the server.
    program: String,
    /// The arguments of the program.
    #[serde(default)]
    args: Vec<String>,
    /// The search strategy: icb (systematic, the default), dfs, best, dpor, random, burst, pct, fair-pct, pos, surw,
    /// delay, guided, directed or portfolio (the default if a time is given).
    strategy: Option<String>,
    /// icb, best, dpor: the largest number of preemptions. icb explores 2 if you do not say otherwise.
    bound: Option<u32>,
    /// Stop after this time, such as "500ms", "30s" or "5m". Without it, a systematic search runs to its end, which may
    /// take very long.
    time: Option<String>,
    /// Stop after this many executions.
    executions: Option<u64>,
    /// The seed of all random choices.
    seed: Option<u64>,
    /// What to do with data races: "report" (all), "stop" (at the first), "count" (report only failures) or "off".
    races: Option<String>,
    /// Compile a source file without instrumentation: its memory accesses are then not scheduling points.
    #[serde(default)]
    no_instrument: bool,
    /// Collect all findings instead of stopping at the first.
    #[serde(default)]
    keep_going: bool,
    /// The exit status of a correct execution. The default is 0.
    expect_exit: Option<i32>,
    /// Preempt only code that matches one of these: a module, source file or function; * and ? are wildcards.
    #[serde(default)]
    focus: Vec<String>,
    /// A file for standard input of each execution.
    stdin: Option<String>,
    /// The directory for schedule files. The default is .heisen in the working directory of the server.
    output: Option<String>,
    /// Further options of heisen check, one word each, such as ["--spurious", "1"].
    #[serde(default)]
    options: Vec<String>,
}

impl Check {
    /// The command line of `heisen check`.
    fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = vec!["heisen".into(), "check".into()];
        let numbers =
            [("bound", self.bound.map(u64::from)), ("executions", self.executions), ("seed", self.seed)];
        let texts = [
            ("strategy", &self.strategy),
            ("time", &self.time),
            ("races", &self.races),
            ("stdin", &self.stdin),
            ("output", &self.output),
        ];
        let numbers = numbers.iter().filter_map(|(name, value)| Some((*name, (*value)?.to_string())));
        let texts = texts.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?.clone())));
        let focus = self.focus.iter().map(|pattern| ("focus", pattern.clone()));
        let status = self.expect_exit.map(|code| ("expect-exit", code.to_string()));
        words.extend(
            numbers.chain(texts).chain(focus).chain(status).map(|(name, value)| format!("--{name}={value}")),
        );
        let switches = [("--no-instrument", self.no_instrument), ("--keep-going", self.keep_going)];
        words.extend(switches.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).to_owned()));
        words.extend(self.options.iter().cloned());
        let of_program = [self.program.clone()];
        if Language::of(Path::new(&self.program)).is_some() {
            words.extend(of_program.into_iter().chain(["--".to_owned()]));
        } else {
            words.extend(["--".to_owned()].into_iter().chain(of_program));
        }
        words.extend(self.args.iter().cloned());
        words
    }

    fn command_line(&self) -> Result<CheckArgs, Error> {
        let parsed = Args::try_parse_from(self.words()).map_err(|error| {
            // The first paragraph; the next ones are about the command line.
            let text = error.render().to_string();
            let text = text.split("\n\n").next().unwrap_or_default();
            Error::Input(text.strip_prefix("error: ").unwrap_or(text).trim_end().to_owned())
        })?;
        match parsed.command {
            Command::Check(mut args) => {
                args.output = std::path::absolute(&args.output)
                    .map_err(|e| Error::Input(format!("{}: {e}", args.output.display())))?;
                Ok(*args)
            }
            _ => Err(Error::Internal("the command line is one of heisen check".into())),
        }
    }
}

impl Tool for Check {
    const NAME: &'static str = "check";
    const DESCRIPTION: &'static str = "Explores the thread schedules of a native Linux program (C, C++, Rust or any \
        dynamically linked executable) and reports concurrency bugs: failed assertions, crashes, deadlocks, livelocks, data \
        races, memory errors. Returns what heisen check --json gives: verdict (bug, clean or incomplete), claim (what was \
        proven, with every bound), findings with explanation and the path of a schedule file, which the other tools take. \
        Give a time limit for anything but small programs.";

    fn run(self, call: &Call) -> Result<Answer, Error> {
        let args = self.command_line()?;
        let printer = NoticePrinter::new(false);
        let finished = search(&args, call.stop.clone(), &mut |notice| match notice {
            Notice::Progress(progress) => call.report(progress),
            notice => printer.show(&notice),
        })?;
        let outcome = &finished.outcome;
        if outcome.ended == Ended::Interrupted {
            return Err(Error::Interrupted);
        }
        let name = finished.program.short_name();
        let replay = "heisen replay";
        let place = Place {
            directory: &args.output,
            name: &name,
            command: "heisen",
            replay,
            origin: "",
            html: args.html.as_deref(),
        };
        let schedules = finished.write_schedules(&args.output, &name, "")?;
        write_results(&finished, &place, &args.results, &schedules)?;
        args.coverage.as_deref().map_or(Ok(()), |path| finished.write_coverage(path))?;
        if finished.was_saved() {
            finished.save(&args.output)?;
        }
        let mut json = json::result(&finished.program, &finished.options, outcome, &schedules);
        if let Some(error) = &outcome.error {
            if schedules.is_empty() {
                return Err(error.clone());
            }
            json["error"] = error.to_string().into();
        }
        let report = report(Paint::plain(), &finished.options, outcome, &schedules, replay);
        Ok(Answer { report, json })
    }
}
