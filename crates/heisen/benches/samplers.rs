//! Executions to the first bug, by each sampler and the portfolio, on every example that has one: medians over 50 seeds.
//!
//! `cargo bench --bench samplers [-- NAME...]`, where the names, if there are any, choose examples: all whose file name
//! holds one of them. `SEEDS` and `EXECUTIONS` in the environment change how many seeds there are and after how many
//! executions a search gives up. It prints a table in Markdown; a bug that most searches did not find is shown as `-`.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const STRATEGIES: [&[&str]; 13] = [
    &["random"],
    &["burst"],
    &["pct", "--depth", "2"],
    &["pct", "--depth", "3"],
    &["pct", "--depth", "5"],
    &["fair-pct"],
    &["pos"],
    &["surw"],
    &["delay", "--delays", "2"],
    &["delay", "--delays", "5"],
    &["guided"],
    &["directed"],
    &["portfolio"],
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn variable(name: &str, unless_told: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(unless_told)
}

fn heisen(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heisen"));
    command.current_dir(directory).stderr(Stdio::null());
    command
}

/// An example that states a bug, with the options that it is to be checked with.
fn stated(path: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(path).ok()?;
    let head = |line: &str| line.trim_start_matches([' ', '*', '/']).to_owned();
    if text.lines().map(head).any(|line| line.starts_with("portfolio: ")) {
        return Some(Vec::new());
    }
    let line = text.lines().map(head).find(|line| line.starts_with("heisen: bug="))?;
    let options = line.split_once(" with ").map_or("", |(_, options)| options);
    Some(options.split_whitespace().map(str::to_owned).collect())
}

fn examples() -> Vec<(PathBuf, Vec<String>)> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut all = Vec::new();
    for place in ["c", "cpp", "samplers"] {
        for entry in std::fs::read_dir(root().join("examples").join(place)).expect("the examples").flatten() {
            let path = entry.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let chosen = wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
            if let Some(options) = stated(&path).filter(|_| chosen) {
                all.push((path, options));
            }
        }
    }
    all.sort();
    all
}

/// Compiles an example, instrumented, and lets a first check find out which accesses are scheduling points: that is
/// kept in the directory, so that all that follows starts from the same.
fn prepare(directory: &Path, path: &Path, options: &[String]) {
    let compiler = if path.extension().is_some_and(|e| e == "c") { "cc" } else { "c++" };
    let mut command = heisen(directory);
    let status = command.arg(compiler).args(["-g", "-pthread"]).arg(path).args(["-o", "program"]).status();
    assert!(status.is_ok_and(|status| status.success()), "{} does not compile", path.display());
    let mut command = heisen(directory);
    command.args(["check", "--quiet", "--strategy", "random", "--executions", "300", "--keep-going"]);
    let _ = command.args(options).args(["--", "./program"]).stdout(Stdio::null()).status();
}

/// The execution that found a bug.
fn first_bug(directory: &Path, strategy: &[&str], options: &[String], seed: u64, most: u64) -> Option<u64> {
    let mut command = heisen(directory);
    command.args(["check", "--json", "-", "--strategy"]).args(strategy).args(options);
    command.args(["--seed", &seed.to_string(), "--executions", &most.to_string(), "--", "./program"]);
    let output = command.output().expect("heisen starts");
    let json: Value = serde_json::from_slice(&output.stdout).expect("a result");
    json["findings"][0]["executions_to_find"].as_u64()
}

fn main() {
    let (seeds, most) = (variable("SEEDS", 50), variable("EXECUTIONS", 10_000));
    println!("Executions to the first bug, medians over {seeds} seeds; - is more than {most}\n");
    let heads: Vec<String> =
        STRATEGIES.iter().map(|words| [words[0], words.last().unwrap_or(&"")].join(" ")).collect();
    let short = |head: &String| {
        head.split_once(' ').filter(|(a, b)| a == b).map_or(head.clone(), |(a, _)| a.to_owned())
    };
    println!("| example | {} |", heads.iter().map(short).collect::<Vec<_>>().join(" | "));
    println!("|{}", " --- |".repeat(STRATEGIES.len() + 1));
    for (path, options) in examples() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        prepare(directory.path(), &path, &options);
        let mut row = format!("| {} |", path.file_name().unwrap_or_default().to_string_lossy());
        for strategy in STRATEGIES {
            let mut found: Vec<u64> = (0..seeds)
                .map(|seed| first_bug(directory.path(), strategy, &options, seed, most).unwrap_or(u64::MAX))
                .collect();
            found.sort_unstable();
            let median = found[found.len() / 2];
            row += &if median == u64::MAX { " - |".to_owned() } else { format!(" {median} |") };
        }
        println!("{row}");
    }
}
