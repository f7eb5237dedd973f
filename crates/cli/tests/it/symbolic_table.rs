//! The table of docs/evidence/symbolic.md: all examples, searched by the solver and by partial-order reduction.

use crate::symbolic::has_clang;
use heisen_testkit::{Sandbox, root};
use serde_json::Value;

/// Searches an example up to its first finding, or for this many seconds. The options are those that its head asks for.
fn search(strategy: &str, example: &str, options: &[&str]) -> Option<Value> {
    let sandbox = Sandbox::new();
    let fixed =
        ["check", "--json", "-", "--no-explain", "--no-minimise", "--time", "20", "--strategy", strategy];
    let said = sandbox.heisen(&[&fixed[..], options, &[example]].concat());
    serde_json::from_str(&said.out).ok()
}

fn verdict(json: &Value) -> String {
    let is_bug = json["findings"].as_array().is_some_and(|all| !all.is_empty());
    let rounds = match json["complete"] {
        Value::Bool(true) => json["rounds"].as_u64(),
        _ => json["rounds_completed"].as_u64(),
    };
    match (is_bug, rounds, &json["complete"]) {
        (true, ..) => "bug".into(),
        (false, Some(rounds), _) => format!("proven within {rounds} rounds"),
        (false, None, Value::Bool(true)) => "proven".into(),
        (false, None, _) => "nothing found".into(),
    }
}

#[test]
#[ignore = "measures: a quarter of an hour"]
fn print_the_table_of_examples() {
    if !has_clang() {
        return;
    }
    println!(
        "| example | causal | executions | dpor | executions | not exact |\n| --- | --- | --- | --- | --- | --- |"
    );
    for (folder, ending) in [("c", "c"), ("cpp", "cpp")] {
        let folder = root().join("examples").join(folder);
        let files = std::fs::read_dir(folder).expect("examples").map(|entry| entry.expect("a file").path());
        let mut files: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|is| is == ending)).collect();
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("an example");
            let head = text.lines().find_map(|line| line.split_once("heisen: ")).map_or("", |(_, head)| head);
            let options: Vec<&str> = match head.split_once(" with ") {
                Some((_, options)) => options.trim_end_matches("*/").split_whitespace().collect(),
                None => Vec::new(),
            };
            let path = file.display().to_string();
            // The solver knows no bound of preemptions.
            let unbounded = if options.first() == Some(&"--bound") { &options[2..] } else { &options[..] };
            let (causal, dpor) = (search("causal", &path, unbounded), search("dpor", &path, &options));
            let row = |json: &Option<Value>| match json {
                Some(json) => format!("{} | {}", verdict(json), json["executions"]),
                None => "refused | ".to_owned(),
            };
            let reasons = causal.as_ref().and_then(|json| json["not_controlled"].as_array());
            let reasons: Vec<&str> = reasons.into_iter().flatten().filter_map(Value::as_str).collect();
            let reasons: Vec<&str> =
                reasons.iter().filter_map(|reason| reason.strip_prefix("paths may be missing: ")).collect();
            let name = file.file_name().expect("a name").to_string_lossy();
            println!("| `{name}` | {} | {} | {} |", row(&causal), row(&dpor), reasons.join("; "));
        }
    }
}
