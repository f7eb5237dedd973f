//! Tests that the two carriers make no difference. A check runs the same executions with the same findings on
//! kernel threads and on fibers. A schedule from one carrier replays on the other with the same output. Other
//! tests check that kernel threads are real ones.

use heisen_testkit::stated::examples;
use heisen_testkit::{Sandbox, check_json, heisen, root, run, scratch, timeless, usual_or_nightly};
use std::path::Path;

const CARRIERS: [&str; 2] = ["fibers", "kernel"];

/// Checks an example on both carriers and replays its finding on both. Both use one directory, so the files
/// have the same names.
fn same_on_both(path: &Path) {
    let file = path.to_str().expect("a plain path");
    let clean = file.contains("_fixed");
    let bound = if clean { "1" } else { "2" };
    // The options that the head comment of the example states.
    let text = std::fs::read_to_string(path).expect("the example");
    let head = text.lines().find(|line| line.contains("heisen: ")).expect("a statement");
    let stated: Vec<&str> =
        head.split_once(" with ").map_or(vec![], |(_, with)| with.split_whitespace().collect());
    let directory = scratch();
    let [fibers, kernel] = CARRIERS.map(|carrier| {
        // The second check must not use the access points that the first one saved.
        let _ = std::fs::remove_dir_all(directory.path().join(".heisen/points"));
        let bound: &[&str] = if stated.contains(&"--bound") { &[] } else { &["--bound", bound] };
        let options = [&["--carrier", carrier], bound, &stated[..], &[file]].concat();
        let json = check_json(directory.path(), &options);
        let schedule = json["findings"][0]["schedule"].as_str().map(|name| directory.path().join(name));
        (timeless(json), schedule.map(|path| std::fs::read_to_string(path).expect("the schedule")))
    });
    assert_eq!(fibers, kernel, "{file}");
    let found = fibers.0["findings"][0]["schedule"].as_str();
    assert_eq!(
        found.is_none(),
        clean || ["filesystem.c", "dekker.c", "transactions.c"].iter().any(|name| file.ends_with(name)),
        "{file}: {:#}",
        fibers.0
    );
    let Some(schedule) = found else { return };
    let [fibers, kernel] = CARRIERS.map(|carrier| {
        let replay = ["replay", "--trace", "--carrier", carrier, schedule];
        run(heisen(directory.path()).args(replay)).expect(1).out
    });
    assert!(!fibers.is_empty());
    assert_eq!(fibers, kernel, "{file}");
}

#[test]
fn c_examples() {
    examples("c").iter().step_by(usual_or_nightly(7, 1)).for_each(|path| same_on_both(path));
}

#[test]
fn cpp_examples() {
    examples("cpp").iter().step_by(usual_or_nightly(5, 1)).for_each(|path| same_on_both(path));
}

#[test]
fn rust_examples() {
    examples("rust").iter().step_by(usual_or_nightly(5, 1)).for_each(|path| same_on_both(path));
}

/// Samplers behave the same on both carriers: the runtime applies the policy, and a seed gives the same
/// search.
#[test]
fn random_and_pct() {
    let file = root().join("examples/c/channel.c");
    let file = file.to_str().expect("a plain path");
    for strategy in ["random", "pct"] {
        let directory = scratch();
        let check = |carrier: &str| {
            let args =
                ["--carrier", carrier, "--strategy", strategy, "--executions", "100", "--keep-going", file];
            timeless(check_json(directory.path(), &args))
        };
        // The first check finds access points, with which the next ones begin.
        check(CARRIERS[0]);
        let [fibers, kernel] = CARRIERS.map(check);
        assert_eq!(fibers, kernel);
    }
}

const KERNEL: &str = include_str!("carriers/kernel.c");

/// Properties that only kernel threads have hold in every schedule.
#[test]
fn kernel_threads_are_real() {
    let sandbox = Sandbox::new();
    let program = sandbox.compile("kernel.c", KERNEL, &[]);
    let program = program.to_str().expect("a plain path");
    for case in
        ["tasks", "ids", "constructor", "main_exits", "forks", "users", "signals", "stacks", "masks", "many"]
    {
        let args = ["--carrier", "kernel", "--bound", "1", "--executions", "100", "--", program, case];
        let json = sandbox.heisen(&[&["check", "--json", "-"], &args[..]].concat()).expect(0).json();
        assert!(json["executions"].as_u64() >= Some(1), "{case}: {json:#}");
    }
}

/// Fibers give the same results where both carriers have the property.
#[test]
fn fibers_do_the_same() {
    let sandbox = Sandbox::new();
    let program = sandbox.compile("kernel.c", KERNEL, &[]);
    let program = program.to_str().expect("a plain path");
    for case in ["constructor", "main_exits", "forks", "users", "stacks", "many"] {
        let [fibers, kernel] = CARRIERS.map(|carrier| {
            let args = ["--carrier", carrier, "--bound", "1", "--executions", "100", "--", program, case];
            timeless(sandbox.heisen(&[&["check", "--json", "-"], &args[..]].concat()).expect(0).json())
        });
        assert_eq!(fibers, kernel, "{case}");
    }
}

/// If a thread other than the main one never reaches a scheduling point, the report names its place.
#[test]
fn a_thread_that_spins() {
    let sandbox = Sandbox::new();
    let program = sandbox.compile("kernel.c", KERNEL, &[]);
    let program = program.to_str().expect("a plain path");
    let args = ["check", "--carrier", "kernel", "--hang", "100ms", "--", program, "spins"];
    sandbox.heisen(&args).fails(3, &["scheduling point, in spin", "kernel.c:"]);
}

/// A resumed search uses the carrier it began with.
#[test]
fn the_carrier_of_a_resumed_search_cannot_change() {
    let sandbox = Sandbox::new();
    sandbox.heisen(&["check", "--resume", "x", "--carrier", "kernel"]).fails(2, &["--carrier", "--resume"]);
}
