//! Tests that every example does what its head comment states.
//!
//! The stated bug appears with exactly the stated number of preemptions, or the example is clean and
//! completely explored. Every schedule that is found replays repeatedly with the same outcome. `with` names
//! the options to check the example with. Without options that make waits and calls fail, such a bug is not
//! found. The tables of `docs/evidence/examples.md` must be true.

use heisen_testkit::stated::{Stated, built, each, examples, stated, stated_class};
use heisen_testkit::{explained_json, heisen, replays, root, run, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn check_example(path: &Path) -> Option<Row> {
    let directory = scratch();
    let (stated, options) = stated(path);
    let check = |args: &[&str]| {
        let all: Vec<&str> = options.iter().map(String::as_str).chain(args.iter().copied()).collect();
        explained_json(directory.path(), &all)
    };
    // A check of a source file compiles it each time.
    let program = built(directory.path(), path);
    let file: &[&str] = &["--", &program];
    match stated {
        Stated::Clean => {
            let json = check(file);
            let bound = options.iter().skip_while(|option| *option != "--bound").nth(1);
            let bound: u64 = bound.map_or(2, |bound| bound.parse().expect("a number"));
            assert_eq!(json["verdict"], "clean", "{file:?}: {json:#}");
            assert_eq!(json["complete"], true, "{file:?}: {json:#}");
            assert_eq!(json["preemption_bound"], bound, "{file:?}: {json:#}");
            assert!(json["findings"].as_array().is_some_and(Vec::is_empty));
            None
        }
        Stated::Bug { kind, preemptions } => {
            if options.iter().any(|option| ["--spurious", "--faults"].contains(&option.as_str())) {
                let json = explained_json(directory.path(), file);
                assert_eq!(json["verdict"], "clean", "{file:?} without {options:?}: {json:#}");
            }
            if preemptions > 0 {
                // With fewer preemptions there is no bug, and the search is complete.
                let less = (preemptions - 1).to_string();
                let json = check(&[&["--bound", &less], file].concat());
                assert_eq!(json["verdict"], "clean", "{file:?}: {json:#}");
                assert_eq!(json["complete"], true, "{file:?}: {json:#}");
            }
            let json = check(&[&["--bound", preemptions.to_string().as_str()], file].concat());
            let finding = &json["findings"][0];
            assert_eq!(finding["kind"], kind.as_str(), "{file:?}: {json:#}");
            assert_eq!(finding["preemptions"], preemptions, "{file:?}: {json:#}");
            if let Some(class) = stated_class(path) {
                assert_eq!(finding["explanation"]["class"], class.as_str(), "{file:?}: {json:#}");
            }
            let schedule = finding["schedule"].as_str().expect("a schedule");
            let mut first = None;
            for _ in 0..replays() {
                let ran = run(heisen(directory.path()).args(["replay", schedule])).expect(1);
                assert_eq!(*first.get_or_insert_with(|| ran.out.clone()), ran.out, "{file:?}");
            }
            run(heisen(directory.path()).args(["show", schedule])).expect(0);
            Row::of(path, &finding["explanation"])
        }
    }
}

/// A row of the table in `docs/evidence/explanations.md`.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    class: String,
    /// Events, those shown, data flows, those shown, orderings.
    counts: Vec<u64>,
}

impl Row {
    /// The row of an example with this explanation. `None` if its executions were not compared.
    fn of(path: &Path, explanation: &Value) -> Option<Row> {
        let reduction = &explanation["reduction"];
        let counts =
            ["events", "events_shown", "flows", "flows_shown"].map(|field| reduction[field].as_u64());
        let orderings = explanation["orderings"].as_array().map(|all| all.len() as u64);
        let counts: Option<Vec<u64>> = counts.into_iter().chain([orderings]).collect();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let class = explanation["class"].as_str().unwrap_or_default().replace('-', " ");
        Some(Row { name, class, counts: counts.filter(|counts| counts[0] > 0)? })
    }

    /// All rows of the table.
    fn told() -> Vec<Row> {
        let number = |cell: &String| cell.parse().expect("a number");
        let row = |row: Vec<String>| Row {
            name: row[0].trim_matches('`').to_owned(),
            class: row[1].clone(),
            counts: row[2..].iter().map(number).collect(),
        };
        table("explanations.md", "| program | class").into_iter().map(row).collect()
    }
}

/// All examples of a language. The table of explanations has their numbers. The accesses of C++ and Rust programs depend
/// on the version of the language's library, so only their classes are compared.
fn check_examples(language: &str) {
    let rows = std::sync::Mutex::new(Vec::new());
    each(&examples(language), |path| {
        let row = check_example(path);
        rows.lock().expect("no panic").extend(row);
    });
    let told = Row::told();
    for row in rows.into_inner().expect("no panic") {
        let known = told.iter().find(|told| told.name == row.name);
        let exact = row.name.ends_with(".c");
        let same = |known: &&Row| if exact { **known == row } else { known.class == row.class };
        assert!(
            known.filter(same).is_some(),
            "docs/evidence/explanations.md has {known:?}, but it is {row:?}"
        );
    }
}

/// Cortex (PPoPP'16, table 4): what differs is a small part of the executions.
#[test]
fn explanations_show_a_small_part() {
    let median = |shown: usize, all: usize| {
        let rows = Row::told();
        let part = |row: &Row| 100 * row.counts[shown] / row.counts[all].max(1);
        let mut parts: Vec<u64> = rows.iter().map(part).collect();
        parts.sort_unstable();
        parts[parts.len() / 2]
    };
    let (events, flows) = (median(1, 0), median(3, 2));
    assert!(events <= 50 && flows <= 25, "{events} % of the events, {flows} % of the data flows");
    let text = std::fs::read_to_string(root().join("docs/evidence/explanations.md")).expect("the document");
    let told = format!("In the median, {events} % of the events and {flows} % of the data flows are shown");
    assert!(text.contains(&told), "not in the document: {told}");
}

#[test]
fn c_examples() {
    check_examples("c");
}

#[test]
fn cpp_examples() {
    check_examples("cpp");
}

#[test]
fn rust_examples() {
    check_examples("rust");
}

/// The rows of the table in a page of `docs/evidence` whose first line begins with `first`, without the head.
fn table(page: &str, first: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("docs/evidence").join(page)).expect("the document");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let mut lines = text.lines().skip_while(|line| !line.starts_with(first)).skip(2);
    lines.by_ref().take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The names between backquotes in a cell.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn the_document_tells_of_every_bug() {
    let told: Vec<(String, Stated)> = table("examples.md", "| program | what")
        .iter()
        .map(|row| {
            let preemptions = row[3].parse().expect("a number");
            (row[0].trim_matches('`').to_owned(), Stated::Bug { kind: row[2].clone(), preemptions })
        })
        .collect();
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let there: Vec<(String, Stated)> = ["c", "cpp", "rust"]
        .into_iter()
        .flat_map(examples)
        .map(|path| (name(&path), stated(&path).0))
        .filter(|(_, stated)| *stated != Stated::Clean)
        .collect();
    assert_eq!(told, there);
}

/// "Iterative context bounding" (PLDI'07), table 2.
#[test]
#[ignore = "long: part of the nightly tests"]
fn bugs_per_bound() {
    let rows = table("examples.md", "| program | here");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let mut found = [0; 3];
        for name in names(&row[1]) {
            let directory = scratch();
            let file = root().join("examples/c").join(name);
            let file = file.to_str().expect("a plain path");
            let json = explained_json(directory.path(), &["--keep-going", "--bound", "2", file]);
            assert_eq!(json["complete"], true, "{file}: {json:#}");
            for finding in json["findings"].as_array().expect("a list") {
                found[finding["preemptions"].as_u64().expect("a number") as usize] += 1;
            }
        }
        let told: Vec<u64> = row[2..5].iter().map(|cell| cell.parse().expect("a number")).collect();
        assert_eq!(found[..], told, "{}", row[0]);
    }
}

/// Extracts of published bugs; docs/evidence/published.md has the table.
#[test]
fn published_examples() {
    check_examples("published");
}

/// The first screen of each published bug shows the two lines that the published fix changes or guards, and an order with
/// which the program passed. The lines are marked in the extracts.
#[test]
fn the_first_screen_shows_the_lines_of_the_fix() {
    const SCREEN: usize = 40;
    let buggy: Vec<PathBuf> =
        examples("published").into_iter().filter(|path| stated(path).0 != Stated::Clean).collect();
    each(&buggy, |path| {
        let text = std::fs::read_to_string(path).expect("an example");
        let fixed = text.lines().zip(1..).filter(|(line, _)| line.ends_with("fix */"));
        let fixed: Vec<String> = fixed.map(|(_, number)| format!("{}:{number}", path.display())).collect();
        assert_eq!(fixed.len(), 2, "{}", path.display());
        let directory = scratch();
        let ran = run(heisen(directory.path()).arg("check").arg(path)).expect(1);
        let screen: Vec<&str> = ran.out.lines().take(SCREEN).collect();
        assert!(screen.iter().any(|line| line.contains("it passed with")), "no order in\n{}", ran.out);
        for place in fixed {
            // Line 5 is not line 53.
            let is_there = |line: &&str| {
                line.split(&place).skip(1).any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
            };
            assert!(screen.iter().any(is_there), "no {place} in\n{}", ran.out);
        }
    });
}
