//! Measures executions to the first bug, with each sampler and the portfolio, on every example with a bug:
//! medians over 50 seeds.
//!
//! `cargo bench --bench samplers [-- NAME...]`. Names choose the examples whose file names contain one of
//! them. In the environment, `SEEDS` sets the number of seeds, and `EXECUTIONS` the number of executions
//! after which a search gives up. The output is a table in Markdown; `-` stands for a bug that most searches
//! did not find.
//!
//! Each program starts once, and all searches share it. A plain loop replaces the engine's driver. An
//! execution counts as a bug if the judge says so, without a close-up. The access points are determined
//! before, so all searches start with the same ones. Counts of executions do not depend on the speed of the
//! machine, so examples are searched in parallel.

use heisen_engine::explain::judge;
use heisen_engine::patch;
use heisen_engine::process::access_points::Points;
use heisen_engine::process::run_config::{Output, RunConfig};
use heisen_engine::process::slots::{Detail, Job, Run};
use heisen_engine::process::zygote::Zygote;
use heisen_engine::program::compile::{Extent, compile};
use heisen_engine::program::embedded;
use heisen_search::{
    Burst, Delay, Directed, FairPct, Guided, Pct, Portfolio, Pos, Random, Search, Strategy, Surw,
};
use heisen_trace::{Faults, Plan, World};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A strategy: its name, and its search for a seed.
type Named = (&'static str, fn(u64) -> Search);

/// The portfolio must be the last, because it is compared with the best of the others.
const STRATEGIES: [Named; 13] = [
    ("random", |seed| Random::new(seed).into()),
    ("burst", |seed| Burst::new(seed, None).into()),
    ("pct 2", |seed| Pct::new(seed, 2).into()),
    ("pct 3", |seed| Pct::new(seed, 3).into()),
    ("pct 5", |seed| Pct::new(seed, 5).into()),
    ("fair-pct", |seed| FairPct::new(seed, 3).into()),
    ("pos", |seed| Pos::new(seed).into()),
    ("surw", |seed| Surw::new(seed).into()),
    ("delay 2", |seed| Delay::new(seed, 2).into()),
    ("delay 5", |seed| Delay::new(seed, 5).into()),
    ("guided", |seed| Guided::new(seed).into()),
    ("directed", |seed| Directed::new(seed).into()),
    ("portfolio", |seed| Portfolio::new(seed).into()),
];

/// How many times as many executions as the best strategy the portfolio may need.
const WITHIN: f64 = 1.5;
/// The number of executions of one round that determines the access points, and the number of rounds.
const FIRST: u64 = 40;
const ROUNDS: u64 = 10;
/// The largest number of plans in one turn.
const TURN: usize = 512;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn variable(name: &str, unless_told: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(unless_told)
}

/// The options of an example that states a bug; `None` if it states none.
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

/// The configuration for these options. Examples have no others.
fn run_config(options: &[String]) -> RunConfig {
    let patch = patch::parse(patch::DEFAULT).expect("the default");
    let mut config = RunConfig { world: World { patch, ..World::default() }, ..RunConfig::default() };
    for option in options.chunks(2) {
        match [option[0].as_str(), option[1].as_str()] {
            ["--steps", value] => config.steps = value.parse().expect("a number"),
            ["--spurious", value] => config.spurious = value.parse().expect("a number"),
            ["--faults", value] => config.faults = value.parse::<Faults>().expect("faults"),
            other => panic!("what does {other:?} mean?"),
        }
    }
    config
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

/// Runs up to `most` executions of a search. Calls `see` with each until it returns true.
fn search(zygote: &mut Zygote, mut search: Search, most: u64, mut see: impl FnMut(&Run) -> bool) {
    let (mut done, mut turn) = (0, 1);
    while done < most {
        let room = turn.min((most - done) as usize);
        let plans: Vec<Plan> = std::iter::from_fn(|| search.next()).take(room).collect();
        let mut left = &plans[..];
        while !left.is_empty() {
            let jobs: Vec<Job<'_>> = left.iter().map(Job::Plan).collect();
            let runs = zygote.run_all(&jobs, Detail::End, None).expect("the program runs");
            for (plan, run) in left.iter().zip(&runs) {
                done += 1;
                if see(run) {
                    return;
                }
                search.done(plan, &run.execution);
            }
            left = &left[runs.len()..];
        }
        turn = (2 * turn).min(TURN);
    }
}

fn is_bug(run: &Run) -> bool {
    judge::judge(run, 0).is_some()
}

/// The number of the first execution that found a bug.
fn first_bug(zygote: &mut Zygote, by: Search, most: u64) -> Option<u64> {
    let (mut executions, mut found) = (0, false);
    search(zygote, by, most, |run| {
        executions += 1;
        found = is_bug(run);
        found
    });
    found.then_some(executions)
}

/// The median over all seeds; `None` if half of the searches or more found nothing.
fn median(seeds: u64, mut first: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    let (mut found, mut in_vain) = (Vec::new(), 0);
    for seed in 0..seeds {
        match first(seed) {
            Some(executions) => found.push(executions),
            None => in_vain += 1,
        }
        // The other seeds cannot change the result any more.
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
    let program = compile(path, vec![], directory.path(), Extent::Program).expect("it compiles");
    let runtime = embedded::runtime().expect("the runtime");
    let mut zygote =
        Zygote::start(&runtime, &program, &run_config(options), Output::Dropped).expect("it starts");
    let mut points = Points::default();
    for round in 0..ROUNDS {
        // Uses the access points known so far, because more accesses may conflict if threads are switched at
        // an access.
        search(&mut zygote, Random::new(u64::MAX - round).into(), FIRST, |run| {
            for conflict in &run.conflicts {
                points.learn(conflict);
            }
            false
        });
        zygote.set_points(&Arc::new(points.clone()));
    }
    let mut by = |&(_, search): &Named| median(seeds, |seed| first_bug(&mut zygote, search(seed), most));
    STRATEGIES.iter().map(&mut by).collect()
}

/// How many times as many executions the portfolio needs as the best other strategy.
fn ratio(medians: &[Option<u64>]) -> Option<f64> {
    let (portfolio, others) = medians.split_last()?;
    let best = others.iter().flatten().min()?;
    portfolio.map(|executions| executions as f64 / *best as f64)
}

fn main() {
    let (seeds, most) = (variable("SEEDS", 50), variable("EXECUTIONS", 2_000));
    let examples = examples();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); examples.len()]));
    let work = || {
        while let Some((index, (path, options))) =
            Some(next.fetch_add(1, Relaxed)).and_then(|index| Some((index, examples.get(index)?)))
        {
            let began = std::time::Instant::now();
            let medians = measure(path, options, seeds, most);
            eprintln!("{}: {medians:?}, {:.1?}", path.display(), began.elapsed());
            rows.lock().expect("nobody panics")[index] = medians;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    println!("Executions to the first bug, medians over {seeds} seeds; - is more than {most}\n");
    println!("| example | {} | ratio |", STRATEGIES.map(|(name, _)| name).join(" | "));
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
