//! Measures what a check costs by size: time and memory against threads, steps of an execution, and
//! executions.
//!
//! `cargo bench --bench sizes [-- threads|steps|executions]` prints tables in Markdown and draws
//! `docs/evidence/sizes-*.svg`. Time is the processor time of engine and program together, the best of three
//! checks, because others may use the machine, too. Memory is the largest resident size of the engine, and of
//! any process of the program. If the cost is linear, the time of a step, or of an execution, is a flat line.

use heisen_cli::plot::{Plot, Point, Scale, Series, drawing, largest};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A number of threads take locks in turn, a number of times each. Both are arguments.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
enum { MOST = 64, LOCKS = 4 };
static pthread_mutex_t locks[LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                       PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static long counts[LOCKS], rounds;
static void *work(void *arg) {
    long id = (long)arg;
    for (long i = 0; i < rounds; i++) {
        int k = (i + id) % LOCKS;
        pthread_mutex_lock(&locks[k]);
        counts[k]++;
        pthread_mutex_unlock(&locks[k]);
    }
    return 0;
}
int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    rounds = argc > 2 ? atol(argv[2]) : 0;
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], 0, work, (void *)i);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
    return 0;
}
"#;

const TIMES: usize = 3;
/// A run of more seconds than this is not repeated.
const LONG: f64 = 20.0;
/// About how many steps a measurement takes in total.
const STEPS: u64 = 2_000_000;
/// The largest number of executions, so that a measurement with short executions does not take long.
const EXECUTIONS: u64 = 20_000;

/// What one check did and what it cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
    executions: f64,
    steps: f64,
    seconds: f64,
    /// The memory of the engine and of the program, in kilobytes.
    engine: f64,
    program: f64,
}

/// A measurement at each size, with each strategy.
struct Measure {
    name: &'static str,
    /// What the size counts.
    of: &'static str,
    sizes: Vec<u64>,
    strategies: &'static [&'static [&'static str]],
    /// Threads, rounds of each thread, and executions at a size.
    shape: fn(u64) -> (u64, u64, u64),
    /// The name of the plotted cost, and its value.
    time: (&'static str, fn(&Cost) -> f64),
}

/// What was observed of a check while it ran.
#[derive(Default)]
struct Seen {
    /// Processor time of each kernel thread, in nanoseconds.
    times: HashMap<PathBuf, f64>,
    /// The largest number of kilobytes of the engine, and of any other process.
    memory: [f64; 2],
}

impl Seen {
    /// Observes a process and all its descendants.
    fn look(&mut self, pid: u32, command: &Path) {
        let place = PathBuf::from(format!("/proc/{pid}"));
        let number = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        let status = std::fs::read_to_string(place.join("status")).unwrap_or_default();
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(number);
        // A process that is about to become the program still has the engine's memory, and counts as engine
        // by its name.
        if let (Some(kilobytes), Ok(exe)) = (kilobytes, std::fs::read_link(place.join("exe"))) {
            let most = &mut self.memory[usize::from(exe != command)];
            *most = most.max(kilobytes);
        }
        for task in std::fs::read_dir(place.join("task")).into_iter().flatten().flatten() {
            let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            if let Some(time) = number(&read("schedstat")) {
                self.times.insert(task.path(), time);
            }
            for child in read("children").split_whitespace().filter_map(|word| word.parse().ok()) {
                self.look(child, command);
            }
        }
    }
}

fn check(directory: &Path, strategy: &[&str], (threads, rounds, executions): (u64, u64, u64)) -> Cost {
    let command = Path::new(env!("CARGO_BIN_EXE_heisen"));
    let mut child = Command::new(command)
        .current_dir(directory)
        .args(["check", "--quiet", "--jobs", "1", "--json", "result", "--steps", "100000000", "--strategy"])
        .args(strategy)
        .args(["--executions", &executions.to_string(), "--hang", "5m", "--", "./program"])
        .args([threads.to_string(), rounds.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .expect("heisen starts");
    let command = command.canonicalize().expect("the command");
    let mut seen = Seen::default();
    while child.try_wait().expect("it can be waited for").is_none() {
        seen.look(child.id(), &command);
        std::thread::sleep(Duration::from_millis(2));
    }
    let text = std::fs::read(directory.join("result")).expect("a result");
    let json: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(
        (&json["findings"], &json["executions"]),
        (&Value::Array(vec![]), &executions.into()),
        "{json:#}"
    );
    let [engine, program] = seen.memory;
    Cost {
        executions: executions as f64,
        steps: json["steps"].as_f64().expect("a number"),
        seconds: seen.times.values().sum::<f64>() / 1e9,
        engine,
        program,
    }
}

/// The fastest of some checks, with the largest memory of any.
fn best(directory: &Path, strategy: &[&str], shape: (u64, u64, u64)) -> Cost {
    let mut best = check(directory, strategy, shape);
    for _ in 1..TIMES {
        if best.seconds > LONG {
            break;
        }
        let cost = check(directory, strategy, shape);
        best.seconds = best.seconds.min(cost.seconds);
        best.engine = best.engine.max(cost.engine);
        best.program = best.program.max(cost.program);
    }
    best
}

fn measures() -> [Measure; 3] {
    let step: (_, fn(&Cost) -> f64) = ("nanoseconds a step", |cost| 1e9 * cost.seconds / cost.steps);
    [
        Measure {
            name: "threads",
            of: "threads",
            sizes: vec![2, 4, 8, 16, 32, 64],
            strategies: &[&["random"], &["pct"], &["surw"], &["icb"]],
            shape: |threads| (threads, 50_000 / threads, STEPS / 100_000),
            time: step,
        },
        Measure {
            name: "steps",
            of: "steps of an execution",
            sizes: (2..=7).map(|power| 10u64.pow(power)).collect(),
            strategies: &[&["random"], &["pct"], &["surw"], &["icb"]],
            shape: |steps| (4, steps / 8, (STEPS / steps).clamp(1, EXECUTIONS)),
            time: step,
        },
        Measure {
            name: "executions",
            of: "executions",
            sizes: (0..=7).map(|power| 10u64.pow(power)).collect(),
            strategies: &[&["random"], &["icb", "--bound", "9"]],
            shape: |executions| (3, 3, executions),
            time: ("microseconds an execution", |cost| 1e6 * cost.seconds / cost.executions),
        },
    ]
}

fn plot(
    id: &'static str,
    title: &'static str,
    measure: &Measure,
    y: &'static str,
    series: Vec<Series>,
) -> Plot {
    Plot {
        id,
        title,
        x: (measure.of, Scale::log(largest(&series, |point| point.x))),
        y: (y, Scale::log(largest(&series, |point| point.y))),
        mark: None,
        series,
    }
}

/// Measures, prints the table and returns the drawing.
fn measured(directory: &Path, measure: &Measure) -> String {
    println!("| {} | strategy | {} | engine, kB | program, kB |", measure.of, measure.time.0);
    println!("| --- | --- | --- | --- | --- |");
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    for strategy in measure.strategies {
        let label = strategy[0].to_owned();
        let (mut time, mut kilobytes) = (Vec::new(), Vec::new());
        for &size in &measure.sizes {
            let cost = best(directory, strategy, (measure.shape)(size));
            let each = (measure.time.1)(&cost);
            println!("| {size} | {label} | {each:.1} | {} | {} |", cost.engine, cost.program);
            let point = |y: f64, what: &str| Point {
                x: size as f64,
                y,
                says: format!("{size} {}: {y:.1} {what}", measure.of),
            };
            time.push(point(each, measure.time.0));
            kilobytes.push(point(cost.engine + cost.program, "kB"));
        }
        times.push(Series { label: label.clone(), points: time });
        memory.push(Series { label, points: kilobytes });
    }
    println!();
    let legend: Vec<String> = measure.strategies.iter().map(|words| words.join(" ")).collect();
    let time = plot("time", "Time", measure, measure.time.0, times);
    let memory = plot("memory", "Memory of engine and program", measure, "kilobytes, at most", memory);
    drawing("Cost by size", &[time, memory], &legend)
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("program.c");
    std::fs::write(&source, PROGRAM).expect("the source is written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-pthread", "-o"]).arg(directory.path().join("program")).arg(&source);
    assert!(compiler.status().expect("a C compiler").success());
    for measure in measures() {
        if wanted.is_empty() || wanted.iter().any(|word| word == measure.name) {
            let svg = measured(directory.path(), &measure);
            let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence");
            std::fs::write(docs.join(format!("sizes-{}.svg", measure.name)), svg).expect("it is written");
        }
    }
}
