//! Measures the figures of the guide's table, as ratios within one run on one machine: `cargo bench
//! --features peers --bench measures`.
//!
//! - operations a second in one long execution, against the shuttle crate on the same logic;
//! - executions a second through the zygote, against fork, exit and wait alone in the same process;
//! - system calls of a long execution, counted by strace if it is installed;
//! - compressing 50 MB by `xz -T4`, one random execution, against `xz -T1` natively;
//! - a thousand sleeps of one second, against a thousand seconds;
//! - the engine's memory over a million executions (with `-- --long`: ten million).

use serde_json::Value;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const ROUNDS: usize = 100_000;
/// The number of locks and unlocks by all threads in all rounds.
const OPERATIONS: f64 = (2 * THREADS * ROUNDS) as f64;

const LOCKS: &str = r#"
#include <pthread.h>
static pthread_mutex_t locks[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static long counts[4];
static void *work(void *arg) {
    long id = (long)arg;
    for (int i = 0; i < 100000; i++) {
        int k = (i + id) & 3;
        pthread_mutex_lock(&locks[k]);
        counts[k]++;
        pthread_mutex_unlock(&locks[k]);
    }
    return 0;
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return counts[0] + counts[1] + counts[2] + counts[3] != 400000;
}
"#;

/// Forks, exits and waits as often as its argument says, with the runtime loaded but inactive. Prints the
/// number a second.
const FORKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 0;
    if (n == 0) return 0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < n; i++) {
        pid_t child = syscall(SYS_fork);
        if (child == 0) _exit(0);
        int status;
        waitpid(child, &status, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%f\n", n / ((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) * 1e-9));
    return 0;
}
"#;

fn compile(directory: &Path, name: &str, text: &str) -> PathBuf {
    let source = directory.join(format!("{name}.c"));
    std::fs::write(&source, text).expect("the source is written");
    let program = directory.join(name);
    let status = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(&source).status();
    assert!(status.expect("a C compiler").success());
    program
}

fn check(directory: &Path, program: &Path, strategy: &str, executions: u64) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_heisen"))
        .current_dir(directory)
        .args([
            "check",
            "--strategy",
            strategy,
            // The second half of the step limit is scheduled fairly, all threads in turn. This limit keeps
            // the execution in the first half.
            "--steps",
            "4000000",
            "--jobs",
            "1",
            "--json",
            "-",
            "--executions",
            &executions.to_string(),
        ])
        .arg("--")
        .arg(program)
        .output()
        .expect("heisen runs");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["executions"], executions, "{json:#}");
    json
}

fn rate(json: &Value, what: &str) -> f64 {
    json[what].as_f64().expect("a number") / json["seconds"].as_f64().expect("a number")
}

/// The seconds of one execution of the same logic under shuttle.
fn shuttle_seconds(scheduler: impl shuttle::scheduler::Scheduler + 'static, executions: usize) -> f64 {
    use shuttle::sync::{Arc, Mutex};
    let mut config = shuttle::Config::new();
    config.max_steps = shuttle::MaxSteps::None;
    let start = Instant::now();
    shuttle::Runner::new(scheduler, config).run(|| {
        let locks: Arc<Vec<Mutex<u64>>> = Arc::new((0..4).map(|_| Mutex::new(0)).collect());
        let threads: Vec<_> = (0..THREADS)
            .map(|id| {
                let locks = locks.clone();
                shuttle::thread::spawn(move || {
                    for i in 0..ROUNDS {
                        *locks[(i + id) & 3].lock().expect("not poisoned") += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    start.elapsed().as_secs_f64() / executions as f64
}

/// The number of bare forks, exits and waits a second in a process with the runtime loaded.
fn bare_forks(program: &Path, runtime: &Path, times: u32) -> f64 {
    let output =
        Command::new(program).arg(times.to_string()).env("LD_PRELOAD", runtime).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

fn best(times: usize, mut measure: impl FnMut() -> f64) -> f64 {
    (0..times).map(|_| measure()).fold(0.0, f64::max)
}

/// The system calls of the complete execution process, by strace; `None` if it is not installed.
fn system_calls(directory: &Path, program: &Path) -> Option<u64> {
    let log = directory.join("calls");
    Command::new("strace")
        .args(["-f", "-qq", "-c", "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_heisen"))
        .args(["check", "--strategy", "random", "--executions", "1", "--jobs", "1", "--"])
        .arg(program)
        .current_dir(directory)
        .stdout(Stdio::null())
        .status()
        .ok()?;
    let text = std::fs::read_to_string(log).ok()?;
    let total = text.lines().find(|l| l.trim_end().ends_with("total"))?;
    total.split_whitespace().nth(3)?.parse().ok()
}

/// The resident kilobytes of a process.
fn resident(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

/// The engine's memory after the first tenth of a long search, and at its end.
fn engine_memory(directory: &Path, program: &Path, executions: u64) -> (u64, u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_heisen"))
        .current_dir(directory)
        .args(["check", "--quiet", "--strategy", "random", "--executions", &executions.to_string(), "--"])
        .arg(program)
        .spawn()
        .expect("heisen runs");
    let mut seen = Vec::new();
    while child.try_wait().expect("it can be waited for").is_none() {
        // Leaves out samples from before the process has begun.
        seen.extend(resident(child.id()).filter(|&kilobytes| kilobytes > 1000));
        std::thread::sleep(Duration::from_millis(100));
    }
    (seen.get(seen.len() / 10).copied().unwrap_or(0), seen.last().copied().unwrap_or(0))
}

const SLEEPS: &str = r#"
#include <unistd.h>
int main(void) { for (int i = 0; i < 1000; i++) sleep(1); return 0; }
"#;

/// Words that compress about as well as text, from a simple generator.
fn text(bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut out = Vec::with_capacity(bytes + 16);
    while out.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(format!("word{} ", (state >> 33) % 50_000).as_bytes());
    }
    out
}

fn seconds(command: &mut Command) -> f64 {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{command:?}: {status}");
    start.elapsed().as_secs_f64()
}

/// The seconds to compress a file with four threads in one execution under Heisen, and with one thread
/// natively. `None` without xz.
fn compress(directory: &Path) -> Option<(f64, f64)> {
    let file = directory.join("text");
    std::fs::write(&file, text(50 << 20)).expect("a file");
    Command::new("xz").arg("--version").stdout(Stdio::null()).status().ok()?;
    let natively = seconds(Command::new("xz").args(["-T1", "-1", "-c"]).arg(&file));
    let mut command = Command::new(env!("CARGO_BIN_EXE_heisen"));
    command.current_dir(directory).args([
        "check",
        "--strategy",
        "random",
        "--executions",
        "1",
        "--jobs",
        "1",
    ]);
    Some((seconds(command.args(["--hang", "5m", "--", "xz", "-T4", "-1", "-c"]).arg(&file)), natively))
}

fn main() {
    let long = std::env::args().any(|a| a == "--long");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let locks = compile(directory.path(), "locks", LOCKS);
    let forks = compile(directory.path(), "forks", FORKS);
    let mut table = String::from("| measure | Heisen | compared with | ratio |\n| --- | --- | --- | --- |\n");

    // At random, three of four steps switch to another thread; with priorities hardly any does.
    for strategy in ["random", "pct"] {
        let ours =
            best(3, || OPERATIONS * rate(&check(directory.path(), &locks, strategy, 50), "executions"));
        let theirs = best(3, || match strategy {
            "random" => OPERATIONS / shuttle_seconds(RandomScheduler::new(2), 2),
            _ => OPERATIONS / shuttle_seconds(PctScheduler::new(3, 2), 2),
        });
        let _ = writeln!(
            table,
            "| lock and unlock operations a second, 4 threads, {strategy} | {:.1} million | shuttle: {:.1} million | {:.1} |",
            ours / 1e6,
            theirs / 1e6,
            ours / theirs
        );
    }

    let executions = best(3, || rate(&check(directory.path(), &forks, "random", 5000), "executions"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache"),
        PathBuf::from,
    );
    let newest = std::fs::read_dir(cache.join("heisen"))
        .expect("the cache")
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|extension| extension == "so"))
        .max_by_key(|e| e.metadata().and_then(|m| m.modified()).ok())
        .expect("the runtime");
    let bare = best(3, || bare_forks(&forks, &newest.path(), 5000));
    let _ = writeln!(
        table,
        "| executions a second, empty program, one worker | {executions:.0} | fork, exit, wait: {bare:.0} | {:.2} |",
        executions / bare
    );

    let points = check(directory.path(), &locks, "random", 1)["steps"].as_u64().unwrap_or(0);
    match (system_calls(directory.path(), &locks), system_calls(directory.path(), &forks)) {
        (Some(with), Some(without)) => {
            let _ = writeln!(
                table,
                "| system calls of a whole check, one execution | {points} points: {with} | 0 points: {without} | |"
            );
        }
        _ => table.push_str("| system calls | strace is not installed | | |\n"),
    }

    match compress(directory.path()) {
        Some((ours, native)) => {
            let _ = writeln!(
                table,
                "| seconds to compress 50 MB, `xz -T4 -1` | {ours:.1} | natively, `-T1`: {native:.1} | {:.2} |",
                ours / native
            );
        }
        None => table.push_str("| seconds to compress 50 MB | xz is not installed | | |\n"),
    }
    let sleeps = compile(directory.path(), "sleeps", SLEEPS);
    let slept = check(directory.path(), &sleeps, "random", 1)["seconds"].as_f64().expect("a number");
    let _ = writeln!(table, "| seconds for 1000 sleeps of a second | {slept:.3} | natively: 1000 | |");

    let many = if long { 10_000_000 } else { 1_000_000 };
    let (early, late) = engine_memory(directory.path(), &forks, many);
    let _ = writeln!(
        table,
        "| engine memory over {many} executions | at the end: {late} kB | after a tenth: {early} kB | {:.2} |",
        late as f64 / early as f64
    );
    println!("{table}");
}
