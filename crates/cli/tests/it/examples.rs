//! Tests that every example does what its head comment states.
//!
//! The stated bug appears with exactly the stated number of preemptions, or the example is clean and
//! completely explored. Every schedule that is found replays repeatedly with the same outcome. `with` names
//! the options to check the example with. Without options that make waits and calls fail, such a bug is not
//! found. The tables of `docs/evidence/examples.md` must be true.

use heisen_testkit::stated::{Stated, each, examples, stated, stated_class};
use heisen_testkit::{check_json, heisen, replays, root, run, scratch};
use std::path::{Path, PathBuf};

fn check_example(path: &Path) {
    let directory = scratch();
    let file = path.to_str().expect("a plain path");
    let (stated, options) = stated(path);
    let check = |args: &[&str]| {
        let all: Vec<&str> = options.iter().map(String::as_str).chain(args.iter().copied()).collect();
        check_json(directory.path(), &all)
    };
    // A check of a source file compiles it each time, which takes long for these languages.
    let program = (!file.ends_with(".c")).then(|| {
        let built = check_json(directory.path(), &["--executions", "1", "-o", "built", file]);
        built["program"].as_str().expect("a path").to_owned()
    });
    let file: &[&str] = &program.as_deref().map_or(vec![file], |program| vec!["--", program]);
    match stated {
        Stated::Clean => {
            let json = check(file);
            let bound = options.iter().skip_while(|option| *option != "--bound").nth(1);
            let bound: u64 = bound.map_or(2, |bound| bound.parse().expect("a number"));
            assert_eq!(json["verdict"], "clean", "{file:?}: {json:#}");
            assert_eq!(json["complete"], true, "{file:?}: {json:#}");
            assert_eq!(json["preemption_bound"], bound, "{file:?}: {json:#}");
            assert!(json["findings"].as_array().is_some_and(Vec::is_empty));
        }
        Stated::Bug { kind, preemptions } => {
            if options.iter().any(|option| ["--spurious", "--faults"].contains(&option.as_str())) {
                let json = check_json(directory.path(), file);
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
        }
    }
}

/// All examples of a language.
fn check_examples(language: &str) {
    each(&examples(language), |path| check_example(path));
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

/// The rows of the table in `docs/evidence/examples.md` whose first line begins with `first`, without the
/// head.
fn table(first: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("docs/evidence/examples.md")).expect("the document");
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
    let told: Vec<(String, Stated)> = table("| program | what")
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
    let rows = table("| program | here");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let mut found = [0; 3];
        for name in names(&row[1]) {
            let directory = scratch();
            let file = root().join("examples/c").join(name);
            let file = file.to_str().expect("a plain path");
            let json = check_json(directory.path(), &["--keep-going", "--bound", "2", file]);
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
