//! Tests of predictions. `directed` steers executions to the failures that one execution shows to be
//! possible. It confirms them, or they are at most hints. A gate lock, thread creation and joins, a common
//! critical section or a check of a flag rule a failure out. Then there is neither a finding nor a hint.

use heisen_testkit::stated::examples;
use heisen_testkit::{check_json, compile, heisen, run, scratch, usual_or_nightly};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A compiled program of `tests/it/predicted`, in its own directory.
fn program(name: &str, flags: &[&str]) -> (TempDir, PathBuf) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/predicted").join(name);
    let text = std::fs::read_to_string(path).expect("the program");
    let directory = scratch();
    let program = compile(directory.path(), name, &text, flags);
    (directory, program)
}

#[track_caller]
fn check(name: &str, flags: &[&str], strategy: &str, executions: &str, seed: &str) -> Value {
    let (directory, program) = program(name, flags);
    let program = program.to_str().expect("a plain path");
    let options = ["--strategy", strategy, "--executions", executions, "--seed", seed, "--", program];
    let json = check_json(directory.path(), &options);
    if let Some(schedule) = json["findings"][0]["schedule"].as_str() {
        run(heisen(directory.path()).args(["replay", schedule])).expect(1);
    }
    json
}

/// Checks that `directed` finds the bug at once and `random` does not. The prediction comes from the second
/// execution, the first one that is analysed.
#[track_caller]
fn directed_finds(name: &str, flags: &[&str], kind: &str, family: &str) -> Value {
    for seed in ["0", "1", "2"] {
        let json = check(name, flags, "random", "100", seed);
        assert_eq!(json["verdict"], "clean", "random, seed {seed}: {json:#}");
    }
    let json = check(name, flags, "directed", "5", "0");
    let finding = &json["findings"][0];
    assert_eq!(finding["kind"], kind, "{json:#}");
    assert_eq!(finding["predicted"]["family"], family, "{json:#}");
    assert_eq!(finding["predicted"]["execution"], 2, "{json:#}");
    let json = check(name, flags, "portfolio", "100", "0");
    let found = &json["findings"][0];
    // Executions 5 and 17 are the first ones that the portfolio steers. An earlier one may find the bug by
    // chance.
    let executions = found["executions_to_find"].as_u64();
    assert!(executions.is_some_and(|number| number <= 17), "portfolio: {json:#}");
    if [Some(5), Some(17)].contains(&executions) {
        assert_eq!(found["predicted"]["family"], family, "portfolio: {json:#}");
    }
    finding["predicted"]["steps"].clone()
}

/// Checks that there is neither a finding nor a hint.
#[track_caller]
fn is_clean(name: &str, flags: &[&str]) {
    for strategy in ["directed", "portfolio"] {
        let json = check(name, flags, strategy, "500", "0");
        assert_eq!(json["verdict"], "clean", "{strategy}: {json:#}");
        assert_eq!(json["executions"], 500);
        assert_eq!(json["hints"], Value::Array(vec![]), "{strategy}: {json:#}");
    }
}

/// Checks the steps of a prediction. In `wanted`, `@` stands for this file.
#[track_caller]
fn steps(told: &Value, file: &str, wanted: &[&[&str]]) {
    let told: Vec<&str> =
        told.as_array().expect("a list").iter().map(|step| step.as_str().expect("a text")).collect();
    assert_eq!(told.len(), wanted.len(), "{told:?}");
    for (step, words) in told.iter().zip(wanted) {
        for word in *words {
            let word = word.replace('@', &format!("{file}:"));
            assert!(step.contains(&word), "{word} in {step}");
        }
    }
}

#[test]
fn two_locks_in_both_orders() {
    let told = directed_finds("abba.c", &[], "deadlock", "lock-order");
    let words: [&[&str]; 2] = [
        &["T1 (forward) waits for b at ", "@14, holding a since ", "@13"],
        &["T2 (backward) waits for a at ", "@23, holding b since ", "@22"],
    ];
    steps(&told, "abba.c", &words);
}

#[test]
fn three_locks_in_a_circle() {
    let told = directed_finds("philosophers.c", &[], "deadlock", "lock-order");
    let words: [&[&str]; 3] = [
        &["T1", "waits for fork[1] at", "holding fork[0] since"],
        &["T2", "waits for fork[2] at", "holding fork[1] since"],
        &["T3", "waits for fork[0] at", "holding fork[2] since"],
    ];
    steps(&told, "philosophers.c", &words);
}

#[test]
fn a_gate_is_no_deadlock() {
    is_clean("gate.c", &[]);
}

#[test]
fn creation_and_joins_are_no_deadlock() {
    is_clean("ordered.c", &[]);
}

#[test]
fn two_sections_that_belong_together() {
    let told = directed_finds("check_then_act.c", &[], "assertion", "atomicity");
    let words: [&[&str]; 3] = [&["T1", "lock(account)", "@16"], &["T2", "@16"], &["T1", "@20"]];
    steps(&told, "check_then_act.c", &words);
    is_clean("check_then_act.c", &["-DTOGETHER"]);
}

#[test]
fn a_signal_before_the_wait() {
    let told = directed_finds("wakeup.c", &[], "deadlock", "lost-wake-up");
    let words: [&[&str]; 2] =
        [&["T2 (signals): cond_signal(ready) at", "@32"], &["T1 (waits): cond_wait(ready) at", "@20"]];
    steps(&told, "wakeup.c", &words);
    directed_finds("wakeup.c", &["-DBARE"], "deadlock", "lost-wake-up");
    is_clean("wakeup.c", &["-DLOOKS"]);
}

#[test]
fn what_does_not_come_true_is_a_hint() {
    let json = check("handed_over.c", &[], "directed", "300", "0");
    assert_eq!(json["verdict"], "clean", "{json:#}");
    assert_eq!(json["hints"].as_array().map(Vec::len), Some(1), "{json:#}");
    let words: [&[&str]; 2] = [
        &["T1 (forward) waits for b at", "@9, holding a since", "@8"],
        &["T2 (backward) waits for a at", "@23, holding b since", "@22"],
    ];
    steps(&json["hints"][0]["steps"], "handed_over.c", &words);
}

#[test]
fn hints_are_counted_and_shown_on_request() {
    let (directory, program) = program("handed_over.c", &[]);
    let shown = |options: &[&str]| {
        let mut command = heisen(directory.path());
        command.args(["check", "--strategy", "directed", "--executions", "300"]).args(options);
        run(command.arg("--").arg(&program)).expect(0).out
    };
    let out = shown(&[]);
    assert!(out.contains("\n1 hint (--hints shows"), "{out}");
    assert!(!out.contains("handed_over.c:9"), "{out}");
    let out = shown(&["--hints"]);
    let head = "\nhint: lock-order cycle, predicted from execution 2; no execution reached it\n";
    assert!(out.contains(head) && out.contains("handed_over.c:9"), "{out}");
    assert_eq!(shown(&["--hints", "--quiet"]), "");
}

#[test]
fn the_screen_tells_of_the_prediction() {
    let (directory, program) = program("abba.c", &[]);
    let mut command = heisen(directory.path());
    let ran = run(command.args(["check", "--strategy", "directed", "--"]).arg(&program)).expect(1);
    assert!(
        ran.out.contains("\n  predicted from execution 2 by a lock-order cycle:\n    T1 (forward)"),
        "{}",
        ran.out
    );
}

/// A hint about memory accesses describes an order that really happened. There is none if the update is one
/// atomic operation.
#[test]
fn an_update_that_may_be_lost_is_a_hint() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/predicted/lost_update.c");
    let text = std::fs::read_to_string(path).expect("the program");
    let hints = |text: &str| {
        let directory = scratch();
        std::fs::write(directory.path().join("lost_update.c"), text).expect("the source");
        let options = ["--strategy", "directed", "--executions", "300", "lost_update.c"];
        let json = check_json(directory.path(), &options);
        assert_eq!(json["verdict"], "clean", "{json:#}");
        json["hints"].clone()
    };
    let told = hints(&text);
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told:#}");
    assert_eq!(told[0]["family"], "atomicity");
    let words: [&[&str]; 3] = [
        &["atomic_load(counter) at", "@9"],
        &["atomic_store(counter) at", "@10"],
        &["atomic_store(counter)", "@10"],
    ];
    steps(&told[0]["steps"], "lost_update.c", &words);
    assert_eq!(hints(&format!("#define ONCE\n{text}")), Value::Array(vec![]));
}

/// Steering finds no bug and gives no hint in any clean example.
#[test]
fn clean_examples_stay_clean() {
    let mut all: Vec<PathBuf> = ["c", "cpp", "rust", "published"].into_iter().flat_map(examples).collect();
    all.retain(|path| is_clean_example(path));
    assert!(all.len() >= 30, "{all:?}");
    for path in all.iter().step_by(usual_or_nightly(5, 1)) {
        let file = path.to_str().expect("a plain path");
        let options = ["--strategy", "directed", "--executions", "300", file];
        let json = check_json(scratch().path(), &options);
        assert_eq!(json["verdict"], "clean", "{file}: {json:#}");
        assert_eq!(json["hints"], Value::Array(vec![]), "{file}: {json:#}");
    }
}

fn is_clean_example(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().any(|line| line.trim_start_matches([' ', '*', '/']).starts_with("heisen: clean"))
}
