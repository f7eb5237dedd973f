//! Executions to the first bug, by each sampler and the portfolio, on every example that has one: medians over 50 seeds.
//!
//! `cargo bench --bench samplers [-- NAME...]`, where the names, if there are any, choose examples: all whose file name
//! holds one of them. `SEEDS` and `EXECUTIONS` in the environment change how many seeds there are and after how many
//! executions a search gives up. It prints a table in Markdown; a bug that most searches did not find is shown as `-`.
//!
//! What is counted does not depend on how fast the machine is, so examples are searched side by side, one on each core.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The portfolio is the last: it is compared with the best of the others.
const STRATEGIES: [&[&str]; 12] = [
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
    &["directed"],
    &["portfolio"],
];

/// How many times as many executions as the best the portfolio may need.
const WITHIN: f64 = 1.5;

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
    for place in ["c", "cpp", "published", "rust", "samplers"] {
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
/// kept in the directory, so that all that follows starts from the same. The program.
fn prepare(directory: &Path, path: &Path, options: &[String]) -> PathBuf {
    let mut command = heisen(directory);
    command.args(["check", "--quiet", "--strategy", "random", "--executions", "1000", "--jobs", "1"]);
    let _ = command.arg("--keep-going").args(options).arg(path).stdout(Stdio::null()).status();
    let name = path.file_stem().unwrap_or_default();
    let builds = std::fs::read_dir(directory.join(".heisen/build")).into_iter().flatten().flatten();
    let program = builds.map(|entry| entry.path().join(name)).find(|program| program.exists());
    program.unwrap_or_else(|| panic!("{} does not compile", path.display()))
}

/// The execution that found a bug.
fn first_bug(directory: &Path, words: &[&str], options: &[String], program: &Path) -> Option<u64> {
    let mut command = heisen(directory);
    command.args(["check", "--json", "-", "--jobs", "1", "--strategy"]).args(words).args(options);
    let output = command.arg("--").arg(program).output().expect("heisen starts");
    let json: Value = serde_json::from_slice(&output.stdout).expect("a result");
    json["findings"][0]["executions_to_find"].as_u64()
}

/// The median over all seeds; none if that is more than `most`.
fn median(seeds: u64, mut first: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let (mut found, mut in_vain) = (Vec::new(), 0);
    for seed in 0..seeds {
        match first(seed) {
            Some(executions) => found.push(executions),
            None => in_vain += 1,
        }
        // Whatever the others find.
        if 2 * in_vain >= seeds {
            return None;
        }
    }
    found.sort_unstable();
    found.get(seeds as usize / 2).copied()
}

/// The medians of all strategies on an example.
fn measure(path: &Path, options: &[String], seeds: u64, most: u64) -> Vec<Option<u64>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = prepare(directory.path(), path, options);
    let most = most.to_string();
    let by = |strategy: &&[&str]| {
        median(seeds, |seed| {
            let seed = seed.to_string();
            let words = [*strategy, &["--seed", &seed, "--executions", &most]].concat();
            first_bug(directory.path(), &words, options, &program)
        })
    };
    STRATEGIES.iter().map(by).collect()
}

/// How many times as many executions the portfolio needs as the best of the others.
fn ratio(medians: &[Option<u64>]) -> Option<f64> {
    let (portfolio, others) = medians.split_last()?;
    let best = others.iter().flatten().min()?;
    portfolio.map(|executions| executions as f64 / *best as f64)
}

/// A strategy as the head of a column: its name and its parameter.
fn head(words: &&[&str]) -> String {
    match words {
        [name, .., parameter] => format!("{name} {parameter}"),
        alone => alone.concat(),
    }
}

fn main() {
    let (seeds, most) = (variable("SEEDS", 50), variable("EXECUTIONS", 5_000));
    let examples = examples();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); examples.len()]));
    let work = || {
        while let Some((index, (path, options))) =
            Some(next.fetch_add(1, Relaxed)).and_then(|index| Some((index, examples.get(index)?)))
        {
            let medians = measure(path, options, seeds, most);
            eprintln!("{}: {medians:?}", path.display());
            rows.lock().expect("nobody panics")[index] = medians;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    println!("Executions to the first bug, medians over {seeds} seeds; - is more than {most}\n");
    let heads: Vec<String> = STRATEGIES.iter().map(head).collect();
    println!("| example | {} | ratio |", heads.join(" | "));
    println!("|{}", " --- |".repeat(STRATEGIES.len() + 2));
    let rows = rows.into_inner().expect("nobody panics");
    for ((path, _), medians) in examples.iter().zip(&rows) {
        let cell = |median: &Option<u64>| median.map_or("-".to_owned(), |median| median.to_string());
        let cells: Vec<String> = medians.iter().map(cell).collect();
        let ratio = ratio(medians).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        println!("| {name} | {} | {ratio} |", cells.join(" | "));
    }
    let holds = rows.iter().filter(|medians| ratio(medians).is_some_and(|ratio| ratio <= WITHIN)).count();
    println!("\nThe portfolio is within {WITHIN} times the best on {holds} of {}", rows.len());
}
