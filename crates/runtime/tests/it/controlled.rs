//! Tests of the environment of an execution. Random bytes, ids and processors are the same each time. Real
//! time, commands and directories are as the options say. Where the environment is not controlled, a caveat
//! says so.

use heisen_testkit::{Ran, Sandbox, run, timeless, usual_or_nightly};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Compiles one of the programs in `controlled/`.
fn program(sandbox: &Sandbox, name: &str) -> PathBuf {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/controlled").join(name));
    sandbox.compile(name, &text.expect("the program's text"), &[])
}

/// Runs a check and deletes its files. Returns the JSON and the screen without times, the schedule files, and
/// the output of their replays.
fn everything(sandbox: &Sandbox, args: &[&str]) -> (Value, String, Vec<String>, Vec<String>) {
    let all = [&["check", "--json", "-"], args].concat();
    let ran = sandbox.heisen(&all);
    let json = timeless(ran.json());
    let timed = |line: &&str| line.contains("found in execution") || line.ends_with(" s");
    let screen: Vec<&str> = ran.err.lines().filter(|line| !timed(line)).collect();
    let findings = json["findings"].as_array().expect("findings").clone();
    let paths: Vec<&str> = findings.iter().map(|f| f["schedule"].as_str().expect("a path")).collect();
    let schedules = paths.iter().map(|p| std::fs::read_to_string(sandbox.path(p)).expect("a schedule"));
    let schedules: Vec<String> = schedules.collect();
    let replay = |path: &&str| {
        let Ran { out, err, .. } = sandbox.heisen(&["replay", "--trace", path]).expect(1);
        out + &err
    };
    let outputs = paths.iter().map(replay).collect();
    let _ = std::fs::remove_dir_all(sandbox.path(".heisen"));
    (json, screen.join("\n"), schedules, outputs)
}

#[test]
fn random_bytes_are_those_of_the_seed() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "random.c");
    let path = path.to_str().expect("a path");
    // Natively the bytes differ; otherwise the test would show nothing.
    let native = || run(&mut Command::new(path)).expect(1).out;
    assert_ne!(native(), native());
    let seeded = |seed: &str| everything(&sandbox, &["--seed", seed, "--", path]);
    let first = seeded("5");
    assert_eq!(seeded("5"), first);
    let (_, _, schedules, outputs) = &first;
    assert!(schedules[0].contains("\nseed 5\n"), "{}", schedules[0]);
    let values = |text: &str| -> Vec<String> {
        let hex = |word: &&str| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
        text.split_whitespace().filter(hex).map(str::to_owned).collect()
    };
    let mut bytes = values(&outputs[0]);
    assert_eq!(bytes.len(), 12, "{}", outputs[0]);
    let other = values(&seeded("6").3[0]);
    assert!(bytes.iter().zip(&other).all(|(a, b)| a != b), "{bytes:?} {other:?}");
    // No two draws are equal, not even those of a parent and its child.
    bytes.sort();
    bytes.dedup();
    assert_eq!(bytes.len(), 12, "{}", outputs[0]);
}

#[test]
fn the_order_of_a_hash_map_is_stable() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "order.rs");
    let path = path.to_str().expect("a path");
    let json = sandbox.clean(&["--bound", "1", "--", path]);
    assert_eq!((&json["complete"], &json["diverged"]), (&Value::Bool(true), &Value::from(0)), "{json:#}");
    assert!(json["executions"].as_u64() > Some(20), "{json:#}");
}

#[test]
fn a_check_gives_the_same_bytes_each_time() {
    let sandbox = Sandbox::new();
    for (name, args) in [("order.rs", &["fail"][..]), ("random.cpp", &[]), ("pids.c", &["fail"])] {
        let path = program(&sandbox, name);
        let path = path.to_str().expect("a path");
        let strategies = [&["icb"][..], &["random", "--seed", "3"], &["pct", "--seed", "3"]];
        for strategy in &strategies[..usual_or_nightly(2, 3)] {
            let command =
                [&["--patch", "none", "--executions", "300", "--strategy"], *strategy, &["--", path], args]
                    .concat();
            let first = everything(&sandbox, &command);
            assert_eq!(first.0["verdict"], "bug", "{name} {strategy:?}: {:#}", first.0);
            for jobs in usual_or_nightly(&["2"][..], &["1", "2"]) {
                let again = [&["--jobs", jobs], &command[..]].concat();
                assert_eq!(everything(&sandbox, &again), first, "{name} {strategy:?}");
            }
        }
    }
}

#[test]
fn process_ids_are_consistent_and_stable() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "pids.c");
    run(&mut Command::new(&path)).expect(0);
    let path = path.to_str().expect("a path");
    sandbox.clean(&["--executions", "30", "--", path]);
    let output = |args: &[&str]| everything(&sandbox, &[&["--", path], args].concat()).3.remove(0);
    let first = output(&["many"]);
    for line in [
        "process 5000000, parent 4999999",
        "thread 5000002 of 5000000",
        "child 6000001",
        "last 6001101",
        "spawned 6001102",
    ] {
        assert!(first.contains(line), "{line}: {first}");
    }
}

#[test]
fn processors_as_asked_for() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "cpus.c");
    run(&mut Command::new(&path)).expect(0);
    let path = path.to_str().expect("a path");
    for count in ["1", "3", "63"] {
        sandbox.clean(&["--cpus", count, "--", path, count]);
    }
    sandbox.clean(&["--", path]);
    let rust = "fn main() { let n = std::thread::available_parallelism().unwrap().get();
                std::process::exit(if n == 5 { 0 } else { 9 }); }";
    let path = sandbox.compile("parallel.rs", rust, &[]);
    sandbox.clean(&["--cpus", "5", "--", path.to_str().expect("a path")]);
    // The schedule file contains the number.
    let finding = sandbox.finds("exit-status", &["--cpus", "6", "--", path.to_str().expect("a path")]);
    let schedule = std::fs::read_to_string(sandbox.path(finding["schedule"].as_str().expect("a path")));
    assert!(schedule.expect("a schedule").contains("\ncpus 6\n"));
    for bad in ["0", "65", "-1", "many"] {
        sandbox.heisen(&["check", "--cpus", bad, "--", "true"]).fails(2, &["--cpus", bad]);
    }
}

#[test]
fn real_time_takes_its_time() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "real_time.c");
    run(&mut Command::new(&path)).expect(0);
    let path = path.to_str().expect("a path");
    let start = Instant::now();
    let json = sandbox.clean(&["--real-time", "--executions", "3", "--", path]);
    assert!(start.elapsed() >= Duration::from_millis(130));
    let notes = json["not_controlled"].to_string();
    assert!(notes.contains("real time: what depends on it differs"), "{notes}");
    // A sleep that is longer than the hang limit is not a hang.
    let text = "#include <unistd.h>\nint main(void) { return (int)sleep(2); }";
    let sleeper = sandbox.compile("sleeper.c", text, &[]);
    let sleeper = sleeper.to_str().expect("a path");
    sandbox.clean(&["--real-time", "--hang", "1s", "--", sleeper]);
    let start = Instant::now();
    let json = sandbox.clean(&["--", sleeper]);
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(!json["not_controlled"].to_string().contains("real-time"), "{json:#}");
    // In real time, a deadlock is still found.
    let text = "#include <semaphore.h>\nint main(void) { sem_t s; sem_init(&s, 0, 0); return sem_wait(&s); }";
    let stuck = sandbox.compile("stuck.c", text, &[]);
    sandbox.finds("deadlock", &["--real-time", "--", stuck.to_str().expect("a path")]);
}

#[test]
fn commands_around_an_execution() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "appends.c");
    let path = path.to_str().expect("a path");
    let before = "echo before >> hooks.txt; rm -f log";
    let after = "echo after >> hooks.txt; test $(head -n 1 log) = 1 || { echo out of order; exit 3; }";
    // Without `--dir` all executions write to the same file, so only one runs at a time.
    let args = ["check", "--jobs", "1", "--before", before, "--after", after, "--json", "-", "--", path];
    let json = sandbox.heisen(&args).expect(1).json();
    let finding = &json["findings"][0];
    assert_eq!(finding["kind"], "exit-status");
    let message = finding["message"].as_str().expect("a message");
    assert!(message.ends_with("failed (exit status 3): out of order"), "{message}");
    assert!(finding["executions_to_find"].as_u64() > Some(1), "{json:#}");
    let hooks = std::fs::read_to_string(sandbox.path("hooks.txt")).expect("the commands were run");
    let lines: Vec<&str> = hooks.lines().collect();
    assert!(lines.len() > 4 && lines.chunks(2).all(|pair| pair == ["before", "after"]), "{hooks}");
    let schedule = finding["schedule"].as_str().expect("a path");
    sandbox.heisen(&["replay", schedule]).expect(1);
    let hooks = std::fs::read_to_string(sandbox.path("hooks.txt")).expect("the commands");
    assert_eq!(hooks.lines().count(), lines.len() + 2);

    // Warm-up executions do not count.
    let count = "echo >> counted.txt; rm -f log";
    sandbox
        .heisen(&["check", "--before", count, "--warm-up", "7", "--executions", "2", "--", path])
        .expect(0);
    let counted = std::fs::read_to_string(sandbox.path("counted.txt")).expect("the commands were run");
    assert_eq!(counted.lines().count(), 9);
}

#[test]
fn a_directory_for_each_execution() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "appends.c");
    let path = path.to_str().expect("a path");
    std::fs::create_dir(sandbox.path("runs")).expect("a directory");
    // The program checks that it is in the directory that HEISEN_DIR names, and that the directory is empty.
    let json = sandbox.clean(&["--dir", "runs", "--", path, "checked"]);
    assert_eq!(json["complete"], true, "{json:#}");
    assert!(json["executions"].as_u64() > Some(10), "{json:#}");
    let after = "test $(head -n 1 $HEISEN_DIR/log) = 1";
    let before = "test -d $HEISEN_DIR";
    let finding = sandbox.finds(
        "exit-status",
        &["--dir", "runs", "--before", before, "--after", after, "--", path, "checked"],
    );
    assert_eq!(finding["preemptions"], 0, "{finding:#}");
    assert_eq!(std::fs::read_dir(sandbox.path("runs")).expect("a directory").count(), 0);
    // A directory that exists already is not touched.
    std::fs::create_dir(sandbox.path("runs/run-0")).expect("a directory");
    std::fs::write(sandbox.path("runs/run-0/mine"), "").expect("a file");
    sandbox
        .heisen(&["check", "--jobs", "1", "--dir", "runs", "--", path])
        .fails(2, &["run-0 exists already", "--dir"]);
    assert!(sandbox.path("runs/run-0/mine").exists());
}

#[test]
fn commands_that_fail() {
    let sandbox = Sandbox::new();
    let check = |args: &[&str]| sandbox.heisen(&[&["check"], args, &["--", "true"]].concat());
    check(&["--before", "echo because; exit 4"]).fails(2, &["--before", "exit status 4", ": because"]);
    check(&["--before", "kill -9 $$"]).fails(2, &["--before", "SIGKILL"]);
    check(&["--before", "no-such-command"]).fails(2, &["--before", "exit status 127"]);
    check(&["--hang", "1s", "--after", "sleep 50"]).fails(2, &["--after", "longer than 1 s"]);
    check(&["--warm-up", "1", "--before", "false"]).fails(2, &["--before", "exit status 1"]);
    sandbox.write("file", "");
    for bad in ["file", "file/below", "/proc/nothing"] {
        check(&["--dir", bad]).fails(2, &[bad, "cannot be made", "--dir"]);
    }
    for option in ["--before", "--after", "--dir", "--warm-up"] {
        let ran = sandbox.heisen(&["check", option]).expect(2);
        assert!(ran.err.contains(option), "{}", ran.err);
    }
    check(&["--warm-up", "-1"]).fails(2, &["--warm-up"]);
}

#[test]
fn a_divergence_is_explained() {
    let sandbox = Sandbox::new();
    let path = program(&sandbox, "cpu_clock.c");
    // The clock decides whether the executions that look for the place differ, too.
    let checked = || sandbox.clean(&["--executions", "300", "--", path.to_str().expect("a path")]);
    let json = (0..10).map(|_| checked()).find(|json| json["diverged_at"].is_string()).expect("a place");
    assert!(json["diverged"].as_u64() > Some(0), "{json:#}");
    let at = json["diverged_at"].as_str().expect("a place").to_owned();
    // The first lock after the clock differs, so the report must not name a later one.
    let places = [("first", 12), ("second", 15)].map(|(m, line)| format!("lock({m}) (cpu_clock.c:{line}, T"));
    assert!(places.iter().any(|place| at.starts_with(place)), "{at}");
    let notes = json["not_controlled"].to_string();
    let why =
        format!("first at {at}; the program reads the processor-time clock, which Heisen does not control");
    assert!(notes.contains(&why), "{notes}");

    let path = program(&sandbox, "counter.c");
    // The program reads and writes this file, which causes the divergence.
    sandbox.write("counter.txt", "0");
    let json = sandbox.clean(&["--jobs", "1", "--executions", "200", "--", path.to_str().expect("a path")]);
    assert!(json["diverged"].as_u64() > Some(0), "{json:#}");
    let notes = json["not_controlled"].to_string();
    assert!(notes.contains("reads a file that was written while the check ran, which Heisen"), "{notes}");
}
