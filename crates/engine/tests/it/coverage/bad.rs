//! Tests of invalid coverage records, and of paths that cannot be written.

use heisen_testkit::{Ran, Sandbox};
use serde_json::{Value, json};

/// A valid record.
fn good() -> Value {
    let counts = |executions: u64| {
        json!({ "executions": executions, "preemptions": 0, "seconds": 0.5, "classes": 1, "races": 0,
                "sync_pairs": 0, "location_pairs": 0 })
    };
    json!({ "heisen_coverage": 1, "program": "p", "strategy": "icb", "reduce": false, "seed": null, "bound": 2,
            "whole": false, "race_check": true, "restarts": 0, "bounds": [counts(3)],
            "growth": [counts(1), counts(3)] })
}

/// The result of `heisen coverage run` for a file with this content.
fn shown(content: &str) -> Ran {
    let sandbox = Sandbox::new();
    sandbox.write("run", content);
    sandbox.heisen(&["coverage", "run"])
}

#[test]
fn not_records() {
    let sandbox = Sandbox::new();
    sandbox.heisen(&["coverage"]).fails(2, &["RUN"]);
    sandbox.heisen(&["coverage", "none"]).fails(2, &["none: not found", "heisen check --coverage"]);
    std::fs::create_dir(sandbox.path("dir")).expect("a directory");
    sandbox.heisen(&["coverage", "dir"]).fails(2, &["dir is a directory", "name a file in it"]);
    shown("").fails(2, &["run is not a record of coverage"]);
    shown("heisen schedule 1\n").fails(2, &["run is not a record of coverage"]);
    shown("[1, 2]").fails(2, &["run is not a record of coverage"]);
    shown("{\"verdict\": \"clean\"}").fails(2, &["run is not a record of coverage"]);
    shown("{\"heisen_coverage\": 2}").fails(2, &["version 2 of the format", "this Heisen reads 1"]);
    shown("{\"heisen_coverage\": 1}").fails(2, &["run is damaged", "missing field"]);
}

#[test]
fn records_that_are_damaged() {
    assert_eq!(shown(&good().to_string()).expect(0).err, "");
    let text = good().to_string();
    for length in [1, 10, text.len() / 2, text.len() - 1] {
        shown(&text[..length]).fails(2, &["run is truncated", "again"]);
    }
    let with = |path: &str, value: Value| {
        let mut record = good();
        *record.pointer_mut(path).expect("a field") = value;
        shown(&record.to_string())
    };
    with("/program", json!(7)).fails(2, &["run is damaged", "invalid type"]);
    with("/growth/0/classes", json!(-1)).fails(2, &["run is damaged"]);
    with("/growth/0/classes", json!(5)).fails(2, &["run is damaged: numbers that can only grow do not"]);
    with("/growth/0/executions", json!(4)).fails(2, &["run is damaged: numbers that can only grow do not"]);
    with("/growth/1/classes", json!(2)).fails(2, &["run is damaged: the totals"]);
    with("/growth/0/executions", json!(0)).fails(2, &["run is damaged: a sample without an execution"]);
    with("/bounds", json!([])).fails(2, &["run is damaged: the totals"]);
    let mut empty = good();
    (empty["bounds"], empty["growth"]) = (json!([]), json!([]));
    shown(&empty.to_string())
        .fails(2, &["run is of a check without a finished execution", "let it run longer"]);
}

#[test]
fn names_are_only_names() {
    let mut record = good();
    record["program"] = json!("</text><script>&\u{1}\"");
    let sandbox = Sandbox::new();
    sandbox.write("run", record.to_string());
    sandbox.heisen(&["coverage", "run", "run", "-o", "f.svg"]).expect(0);
    let text = std::fs::read_to_string(sandbox.path("f.svg")).expect("a drawing");
    assert!(!text.contains("<script>"));
    roxmltree::Document::parse(&text).expect("XML");
}

#[test]
fn places_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    sandbox.write("run", good().to_string());
    let draw = |to: &str| sandbox.heisen(&["coverage", "run", "-o", to]);
    draw("f.png").fails(2, &["-o f.png", "FILE.svg or FILE.html"]);
    draw("f").fails(2, &["-o f", "FILE.svg or FILE.html"]);
    draw("none/f.svg").fails(2, &["none/f.svg cannot be written", "none is not a directory"]);
    std::fs::create_dir(sandbox.path("d.svg")).expect("a directory");
    draw("d.svg").fails(2, &["d.svg is a directory", "name a file for -o"]);
    std::os::unix::fs::symlink("/dev/full", sandbox.path("full.svg")).expect("a link");
    draw("full.svg").fails(2, &["full.svg cannot be written", "No space left"]);
    sandbox.compile("three.c", "int main(void) { return 0; }\n", &[]);
    let check = |to: &str| sandbox.heisen(&["check", "--coverage", to, "--", "./three"]);
    check("none/c.json").fails(2, &["none/c.json cannot be written", "none is not a directory"]);
    check("d.svg").fails(2, &["d.svg is a directory", "name a file for --coverage"]);
    // The result is printed nevertheless.
    let full = check("/dev/full").fails(2, &["/dev/full cannot be written", "No space left"]);
    assert!(full.out.starts_with("nothing to explore: only one thread ran\n"), "{}", full.out);
}
