//! Reproduces figures 1, 2 and 4 of "Iterative context bounding" (PLDI'07). One test uses small programs; the
//! long one is the command that `docs/evidence/coverage.md` names.

use super::{covered, each, record};
use heisen_testkit::{check_json, heisen, root, run, scratch};
use serde_json::{Value, json};
use std::path::Path;

/// The smallest bound that covers at least `percent` percent of all classes.
fn within(record: &Value, percent: u64) -> u64 {
    let classes = each(record, "bounds", "classes");
    let all = classes.last().expect("a bound");
    let place = classes.iter().position(|some| some * 100 >= all * percent).expect("all are there");
    each(record, "bounds", "preemptions")[place]
}

/// The programs of figure 4, in the small sizes of the examples.
#[test]
fn most_classes_need_few_preemptions() {
    let directory = scratch();
    for (name, classes, ninety) in [
        ("work_stealing_fixed", 18, 2),
        ("bluetooth_fixed", 132, 3),
        ("filesystem", 4, 0),
        ("transactions", 3281, 6),
    ] {
        let file = root().join(format!("examples/c/{name}.c"));
        let args = ["--bound", "40", "--reduce"];
        let (record, _) = covered(directory.path(), file.to_str().expect("a plain path"), &args);
        assert_eq!((&record["whole"], &record["program"]), (&json!(true), &json!(name)));
        let counted = each(&record, "bounds", "classes");
        assert_eq!(counted.last(), Some(&classes), "{name}: {counted:?}");
        assert_eq!(within(&record, 90), ninety, "{name}: {counted:?}");
        let ran = run(heisen(directory.path()).args(["coverage", "run.json"])).expect(0);
        let plural = if ninety == 1 { "" } else { "s" };
        let line = format!("90 % of the classes need at most {ninety} preemption{plural}");
        assert!(ran.out.lines().any(|l| l == line), "{}", ran.out);
    }
}

/// Compiles an example with other sizes, under a short name.
fn build(directory: &Path, file: &str, name: &str, options: &str) {
    let source = root().join("examples/c").join(file);
    let mut command = heisen(directory);
    command.args(["cc", "-g", "-pthread", "-o", name]).arg(source).args(options.split(' '));
    run(&mut command).expect(0);
}

/// Runs `heisen check` on a compiled program and returns the coverage record.
fn explore(directory: &Path, name: &str, args: &[&str], out: &str) -> Value {
    let program = format!("./{name}");
    // Only icb gets a bound here.
    let by_icb = !args.contains(&"--strategy") || args.contains(&"icb");
    let bound: &[&str] = if by_icb { &["--bound", "60"] } else { &[] };
    check_json(directory, &[bound, &["--coverage", out], args, &["--", program.as_str()]].concat());
    record(directory, out)
}

/// Draws the records into the directory that FIGURES names, if it is set.
fn draw(directory: &Path, name: &str, records: &[String]) {
    if let Some(to) = std::env::var_os("FIGURES") {
        let to = root().join(to).join(name);
        run(heisen(directory).args(["coverage", "-o"]).arg(to).args(records)).expect(0);
    }
}

/// The programs, options and numbers from the table in the document.
fn table() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("docs/evidence/coverage.md")).expect("the document");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let rows = text.lines().skip_while(|line| !line.starts_with("| program | options |")).skip(2);
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

#[test]
#[ignore = "takes some minutes"]
fn in_full() {
    let directory = scratch();
    let at = directory.path();
    let rows = table();
    assert_eq!(rows.len(), 4);
    let mut records = Vec::new();
    // Differences are reported only at the end, so one run is enough to update the document.
    let mut wrong = Vec::new();
    for row in &rows {
        let name = row[0].trim_end_matches(".c").trim_end_matches("_fixed");
        build(at, &row[0], name, &row[1]);
        let out = format!("{name}.json");
        let record = explore(at, name, &["--reduce"], &out);
        assert_eq!(record["whole"], true, "{name}");
        let last = |field| each(&record, "bounds", field).last().copied().expect("a bound");
        let (ninety, all) = (within(&record, 90), within(&record, 100));
        assert!(ninety <= 8, "{name}: {ninety}");
        let measured = [last("classes"), last("executions"), ninety, all].map(|number| number.to_string());
        println!("| `{}` | `{}` | {} | {} |", row[0], row[1], measured.join(" | "), row[6]);
        if row[2..6] != measured {
            wrong.push(name);
        }
        records.push(out);
    }
    draw(at, "coverage-bounds.svg", &records);

    let explored = explore(at, "work_stealing", &["--reduce", "--executions", "20000"], "reduced.json");
    assert_eq!(explored["whole"], false);
    let mut records = vec!["reduced.json".to_owned()];
    for strategy in ["icb", "dfs", "random", "pct", "pos", "surw", "portfolio"] {
        let out = format!("{strategy}.json");
        // The paper has no reduction, but icb would reduce by default.
        let plain: &[&str] = if strategy == "icb" { &["--reduce=off"] } else { &[] };
        let args = [&["--strategy", strategy, "--executions", "20000"], plain].concat();
        let record = explore(at, "work_stealing", &args, &out);
        println!("{strategy}: {} classes", each(&record, "growth", "classes").last().expect("a sample"));
        records.push(out);
    }
    let seen = |name: &str| *each(&record(at, name), "growth", "classes").last().expect("a sample");
    assert!(seen("icb.json") > 2 * seen("dfs.json"));
    draw(at, "coverage-strategies.svg", &records);
    assert!(wrong.is_empty(), "the document is wrong about {wrong:?}");
}
