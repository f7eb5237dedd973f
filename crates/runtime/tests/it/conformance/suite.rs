//! Compiles a program of the conformance suite and compares the results of its cases.

use heisen_testkit::{heisen, run, scratch, usual_or_nightly};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of native runs of each case.
const RUNS: &str = "50";
/// The largest number of executions of a case with an exhaustive search. A case that needs more must be made
/// smaller, or be sampled.
const ALL: &str = "6000";
/// The number of executions of a case whose results are those of its native runs.
const AS_NATIVELY: &str = "30";
/// The time-out horizon. It is so large because cases also state results for very distant deadlines.
const FAR: &str = "1000h";
/// The time in seconds after which `timeout` kills a command. Nothing here takes long unless it hangs.
const LIMIT: &str = "60";

/// A case, as the program lists it.
#[derive(Debug)]
struct Case {
    name: String,
    search: String,
    executions: String,
    status: String,
    allowed: BTreeSet<String>,
}

impl Case {
    fn read(line: &str) -> Case {
        let mut fields = line.split('\t').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_else(|| panic!("not a case: {line}"));
        let (name, search, executions, status) = (next(), next(), next(), next());
        Case { name, search, executions, status, allowed: fields.collect() }
    }
}

/// A compiled program in its own directory.
struct Suite {
    directory: tempfile::TempDir,
    program: PathBuf,
}

/// Compiles a file of `programs/` and checks its cases.
#[track_caller]
pub fn conforms(name: &str, flags: &[&str]) {
    let all = differences(name, flags);
    let wrong: Vec<&str> = all.iter().filter_map(|(_, wrong)| wrong.as_deref()).collect();
    assert!(wrong.is_empty(), "{} of {} cases in {name}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The cases of a file, each with its difference from the stated results, if any.
#[track_caller]
pub fn differences(name: &str, flags: &[&str]) -> Vec<(String, Option<String>)> {
    let suite = Suite::new(name, flags);
    let listed = run(&mut Command::new(&suite.program)).expect(0);
    let cases: Vec<Case> = listed.out.lines().map(Case::read).collect();
    assert!(!cases.is_empty(), "{name} lists no cases");
    // The cases of a file are similar. The wrong ones are all different.
    let every = if name == super::WRONG { 1 } else { usual_or_nightly(2, 1) };
    cases.iter().step_by(every).map(|case| (case.name.clone(), suite.differs(case).err())).collect()
}

impl Suite {
    /// Compiles without debug information. No test here needs it, and each check reads the executable.
    fn new(name: &str, flags: &[&str]) -> Suite {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/conformance/programs").join(name);
        let directory = scratch();
        let program = directory.path().join("program");
        let (compiler, standard): (&str, &[&str]) = match source.extension().and_then(|e| e.to_str()) {
            Some("c") => ("cc", &["-pthread"]),
            Some("cpp") => ("c++", &["-pthread", "-std=c++20"]),
            Some("rs") => ("rustc", &["--edition=2024", "-Cstrip=symbols"]),
            other => panic!("no compiler for {other:?}"),
        };
        let mut command = Command::new(compiler);
        run(command.args(standard).arg(&source).arg("-o").arg(&program).args(flags)).expect(0);
        Suite { directory, program }
    }

    /// Runs a command that writes results. Returns the set of results, their number and the output.
    fn results(
        &self,
        case: &Case,
        command: &mut Command,
    ) -> Result<(BTreeSet<String>, usize, String), String> {
        let path = self.directory.path().join("results");
        let _ = std::fs::remove_file(&path);
        command.env("CONFORMANCE_RESULTS", &path).current_dir(self.directory.path());
        command.env_remove("LD_PRELOAD").env_remove("RUST_BACKTRACE");
        let ran = run(command);
        if ran.code != 0 {
            return Err(format!("{}: status {}\n{}{}", case.name, ran.code, ran.out, ran.err));
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Ok((text.lines().map(str::to_owned).collect(), text.lines().count(), ran.out))
    }

    /// The results of many native runs of the case.
    fn natively(&self, case: &Case) -> Result<BTreeSet<String>, String> {
        let mut command = Command::new("timeout");
        command.args([LIMIT]).arg(&self.program).arg(&case.name).env("CONFORMANCE_RUNS", RUNS);
        let (results, count, _) = self.results(case, &mut command)?;
        if count.to_string() != RUNS {
            return Err(format!("{}: {count} results in {RUNS} native runs", case.name));
        }
        Ok(results)
    }

    /// The results of the case under the search that it asks for.
    fn under_heisen(&self, case: &Case) -> Result<BTreeSet<String>, String> {
        let (strategy, executions) = match case.search.as_str() {
            "all" => ("dfs", ALL),
            "samples" => ("random", case.executions.as_str()),
            _ => ("random", AS_NATIVELY),
        };
        let inner = heisen(self.directory.path());
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(inner.get_program());
        command.args([
            "check",
            // The suite tests calls, not atomic instructions.
            "--patch",
            "none",
            "--quiet",
            "--json",
            "-",
            "--timeouts",
            FAR,
            "--hang",
            "5s",
            "--jobs",
            "1",
            "--strategy",
            strategy,
        ]);
        command.args(["--executions", executions, "--expect-exit", &case.status]);
        command.arg("--").arg(&self.program).arg(&case.name);
        let (results, count, out) = self.results(case, &mut command)?;
        let json: serde_json::Value =
            serde_json::from_str(&out).map_err(|e| format!("{}: {e}", case.name))?;
        if json["verdict"] != "clean" || strategy == "dfs" && json["complete"] != true {
            return Err(format!("{}: not clean and complete: {json:#}", case.name));
        }
        if json["executions"].as_u64() != Some(count as u64) {
            return Err(format!("{}: {count} results in {} executions", case.name, json["executions"]));
        }
        Ok(results)
    }

    /// Checks that the case has its stated results, natively and under Heisen. The error describes the
    /// difference.
    fn differs(&self, case: &Case) -> Result<(), String> {
        let natively = self.natively(case)?;
        let allowed = if case.search == "natively" { &natively } else { &case.allowed };
        if !natively.is_subset(allowed) || allowed.is_empty() {
            return Err(format!("{}: natively {natively:?}, allowed {allowed:?}", case.name));
        }
        let found = self.under_heisen(case)?;
        if found != *allowed {
            return Err(format!("{}: under Heisen {found:?}, allowed {allowed:?}", case.name));
        }
        Ok(())
    }
}
