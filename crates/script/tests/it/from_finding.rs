//! Tests `heisen script --from`, which makes a script from a finding, with every finding of the examples.
//!
//! A script has at most ten lines. It leads to the bug in every run, also after the program was edited
//! elsewhere and compiled again. CONCURRIT (PLDI'13), section 2.4, did that by hand.
//!
//! `cargo test --release -p heisen-script --test it from_finding -- --ignored` runs each script a hundred
//! times.

use heisen_testkit::stated::{Stated, each, examples, stated};
use heisen_testkit::{check_json, heisen, root, run, scratch, usual_or_nightly};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A program with a bug: its file, the kind of bug, and the options that find it.
type Buggy = (PathBuf, String, Vec<String>);

/// The examples with a bug in these directories.
fn buggy(directories: &[&str]) -> Vec<Buggy> {
    let mut all = Vec::new();
    for path in directories.iter().flat_map(|directory| examples(directory)) {
        if let (Stated::Bug { kind, preemptions }, mut options) = stated(&path) {
            options.extend(["--bound".to_owned(), preemptions.to_string()]);
            all.push((path, kind, options));
        }
    }
    all
}

/// The examples whose bugs only sampling finds.
fn sampled() -> Vec<Buggy> {
    let with = |(name, executions): (&str, &str)| {
        let options = ["--strategy", "portfolio", "--executions", executions].map(str::to_owned);
        (root().join("examples/samplers").join(name), "assertion".to_owned(), options.to_vec())
    };
    [("far_ahead.c", "300"), ("in_turn.c", "5000")].map(with).to_vec()
}

/// The program with other lines, another size and other addresses.
fn edited(text: &str, is_rust: bool) -> String {
    if is_rust {
        return format!(
            "// Nothing to do with the bug.\n#[inline(never)]\nfn unrelated(n: u32) -> u32 {{\n    n * 3\n}}\n#[used]\nstatic UNRELATED: fn(u32) -> u32 = unrelated;\n{text}"
        );
    }
    format!(
        "/* Nothing to do with the bug. */\nstatic int unrelated[100];\n\n\n\
         __attribute__((constructor)) static void elsewhere(void) {{ unrelated[3] = 4; }}\n{text}"
    )
}

/// Makes a script from the bug, and runs it `runs` times with the changed program.
fn holds((path, kind, options): &Buggy, runs: usize) {
    let directory = scratch();
    let copy = directory.path().join(path.file_name().expect("a name"));
    let name = copy.to_str().expect("a plain path");
    let text = std::fs::read_to_string(path).expect("the example");
    // Files that some examples include.
    for other in ["work_stealing.h", "philosophers.c"] {
        std::fs::copy(root().join("examples/c").join(other), directory.path().join(other)).expect("copied");
    }
    std::fs::write(&copy, &text).expect("written");
    let args: Vec<&str> = options.iter().map(String::as_str).chain([name]).collect();
    let json = check_json(directory.path(), &args);
    let schedule = json["findings"][0]["schedule"].as_str().unwrap_or_else(|| panic!("{name}: {json:#}"));
    let ran = run(heisen(directory.path()).args(["script", "--from", schedule, "-o", "s.rhai"]));
    assert_eq!(ran.code, 0, "{name}: {}", ran.err);
    assert!(ran.out.ends_with("fails in 100 runs of 100\n"), "{name}: {}", ran.out);
    let script = std::fs::read_to_string(directory.path().join("s.rhai")).expect("the script");
    assert!((1..=10).contains(&script.lines().count()), "{name}: {script}");
    assert!(script.starts_with(&format!("// {kind}: ")), "{name}: {script}");
    // The edit moves lines of the source, so a script must not name them.
    assert!(!script.contains("at(\""), "{name}: {script}");
    let is_rust = copy.extension().is_some_and(|extension| extension == "rs");
    std::fs::write(&copy, edited(&text, is_rust)).expect("written");
    // In a program that does not end, this limit shows the bug sooner.
    let steps = options.iter().skip_while(|option| *option != "--steps").take(2);
    let steps: Vec<&str> = steps.map(String::as_str).collect();
    for _ in 0..runs {
        again(directory.path(), &[&steps[..], &["s.rhai", name]].concat(), kind, &script);
    }
}

fn again(directory: &Path, args: &[&str], kind: &str, script: &str) {
    let ran = run(heisen(directory).args(["script", "--json", "-"]).args(args));
    let json: Value = serde_json::from_str(&ran.out).unwrap_or(Value::Null);
    let found = &json["found"];
    assert_eq!(
        (ran.code, &found["kind"], &found["repeats"]),
        (1, &kind.into(), &true.into()),
        "{args:?}: {script}{}{json:#}",
        ran.err
    );
}

#[test]
fn findings_of_the_c_examples() {
    let all = buggy(&["c"]);
    assert!(all.len() >= 28, "{}", all.len());
    let all: Vec<Buggy> = all.into_iter().step_by(usual_or_nightly(13, 1)).collect();
    each(&all, |example| holds(example, 1));
}

#[test]
fn findings_of_the_other_examples() {
    let mut all = buggy(&["cpp", "rust", "published"]);
    all.extend(sampled());
    assert!(all.len() >= 15, "{}", all.len());
    let all: Vec<Buggy> = all.into_iter().step_by(usual_or_nightly(9, 1)).collect();
    each(&all, |example| holds(example, 1));
}

#[test]
#[ignore = "takes a quarter of an hour; see docs/how-to/script.md"]
fn a_hundred_runs() {
    let mut all = buggy(&["c", "cpp", "rust", "published"]);
    all.extend(sampled());
    each(&all, |example| holds(example, 100));
}
