//! Renders findings as SARIF 2.1.0, the format of static analysis results that code scanning services read.
//!
//! Each check is a run, each kind of finding a rule. A code flow has a thread flow for each thread; its locations are
//! the operations that matter and the switches. Paths are relative to the current directory.

use crate::render::caveat;
use crate::render::explanation::{deed, short};
use crate::render::finding::{operation, value};
use crate::render::paint::Paint;
use crate::render::place::{SourceLine, of_finding, uri};
use crate::render::visible;
use heisen_engine::check::Outcome;
use heisen_trace::finding::{Switch, SwitchKind};
use heisen_trace::{Finding, FindingKind, ThreadId};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Where the official JSON schema of the format is.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The name of the fingerprint. It changes if equal bugs get other signatures than before.
const FINGERPRINT: &str = "heisenSignature/v1";

/// The document with all runs.
pub fn document(runs: &[Value]) -> Value {
    json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": runs })
}

/// The run of a check. `name` is the program or the test; `replay` is the command that replays a schedule file.
pub fn run(name: &str, outcome: &Outcome, schedules: &[PathBuf], replay: &str) -> Value {
    let findings: Vec<(&Finding, Option<&Path>)> = outcome
        .findings()
        .enumerate()
        .map(|(index, finding)| (finding, schedules.get(index).map(PathBuf::as_path)))
        .collect();
    let mut notes: Vec<(&str, String)> =
        caveat::sentences(outcome).into_iter().map(|sentence| ("note", sentence)).collect();
    if let Some(error) = &outcome.error {
        notes.push(("error", error.to_string()));
    }
    of_findings(name, &findings, replay, &notes)
}

/// The run of a test that was not explored.
pub fn failed_run(name: &str, error: &str) -> Value {
    of_findings(name, &[], "", &[("error", error.to_owned())])
}

fn of_findings(
    name: &str,
    findings: &[(&Finding, Option<&Path>)],
    replay: &str,
    notes: &[(&str, String)],
) -> Value {
    let mut kinds: Vec<FindingKind> = Vec::new();
    for (finding, _) in findings {
        if !kinds.contains(&finding.kind) {
            kinds.push(finding.kind);
        }
    }
    let results: Vec<Value> = findings
        .iter()
        .map(|(finding, schedule)| result(finding, &kinds, schedule.map(|path| (path, replay))))
        .collect();
    let notes_json: Vec<Value> =
        notes.iter().map(|(level, text)| json!({ "level": level, "message": message(text) })).collect();
    json!({
        "tool": { "driver": {
            "name": "Heisen",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": kinds.iter().map(|kind| rule(*kind)).collect::<Vec<Value>>(),
        } },
        "columnKind": "unicodeCodePoints",
        "automationDetails": { "description": message(&format!("heisen: {name}")) },
        "invocations": [{
            "executionSuccessful": notes.iter().all(|(level, _)| *level != "error"),
            "toolExecutionNotifications": notes_json,
        }],
        "results": results,
    })
}

fn rule(kind: FindingKind) -> Value {
    let (name, text) = description(kind);
    json!({
        "id": kind.name(),
        "name": name,
        "shortDescription": { "text": text },
        "fullDescription": { "text": text },
        "help": { "text": format!("{text} Heisen replayed the schedule before it reported the finding.") },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": ["concurrency", "reliability"], "precision": "very-high", "problem.severity": "error" },
    })
}

/// The name of a rule, and what a finding of this kind is.
const fn description(kind: FindingKind) -> (&'static str, &'static str) {
    match kind {
        FindingKind::Assertion => {
            ("AssertionFails", "An assertion fails under some schedule of the threads.")
        }
        FindingKind::Crash => ("Crash", "A signal kills the process under some schedule of the threads."),
        FindingKind::Deadlock => {
            ("Deadlock", "Threads wait for each other, or for an event that can no longer happen.")
        }
        FindingKind::Livelock => ("Livelock", "The program does not end under a fair schedule."),
        FindingKind::GoodSamaritan => (
            "GoodSamaritan",
            "The program does not end, and a thread runs without ever yielding to the others.",
        ),
        FindingKind::ExitStatus => (
            "ExitStatus",
            "The process ends with an unexpected exit status under some schedule of the threads.",
        ),
        FindingKind::Panic => ("Panic", "A Rust panic ends the process under some schedule of the threads."),
        FindingKind::Misuse => {
            ("Misuse", "A synchronisation object is used in a way that its specification leaves undefined.")
        }
        FindingKind::DataRace => (
            "DataRace",
            "Two threads access the same memory, at least one writes, and nothing orders the accesses.",
        ),
        FindingKind::UseAfterFree => ("UseAfterFree", "Memory is used after it was freed."),
        FindingKind::DoubleFree => ("DoubleFree", "A block of memory is freed twice."),
        FindingKind::InvalidFree => {
            ("InvalidFree", "An address is freed that is not the address of a block.")
        }
        FindingKind::HeapOverflow => ("HeapOverflow", "Memory before or after a block is accessed."),
        FindingKind::Leak => ("Leak", "Memory is unreachable when the program ends."),
    }
}

fn result(finding: &Finding, kinds: &[FindingKind], schedule: Option<(&Path, &str)>) -> Value {
    let places = of_finding(finding);
    let mut text = finding.message.clone();
    if let Some(why) = &finding.explanation {
        text += &short(why, Paint::plain()).trim_end().replace("\n  ", "\n");
    }
    let mut properties = json!({ "preemptions": finding.preemptions });
    if let Some(why) = &finding.explanation {
        properties["class"] = why.class.name().into();
    }
    if let Some((path, replay)) = schedule {
        properties["schedule"] = path.display().to_string().into();
        properties["replay"] = format!("{replay} {}", crate::render::paint::quoted(path)).into();
    }
    let mut out = json!({
        "ruleId": finding.kind.name(),
        "ruleIndex": kinds.iter().position(|kind| *kind == finding.kind),
        "kind": "fail",
        "level": "error",
        "message": message(&text),
        "locations": places.first().map(|(_, place)| location(Some(place), "")).into_iter().collect::<Vec<_>>(),
        "partialFingerprints": { FINGERPRINT: finding.signature },
        "properties": properties,
    });
    let related: Vec<Value> =
        places.iter().skip(1).map(|(what, place)| location(Some(place), what)).collect();
    if !related.is_empty() {
        out["relatedLocations"] = related.into();
    }
    if let Some(flow) = code_flow(finding) {
        out["codeFlows"] = json!([flow]);
    }
    out
}

/// A step of the code flow.
struct Step {
    thread: ThreadId,
    place: Option<SourceLine>,
    text: String,
}

/// The operations that matter and the switches, in their order. `None` if there are none.
fn code_flow(finding: &Finding) -> Option<Value> {
    let steps = steps(finding);
    if steps.is_empty() {
        return None;
    }
    let mut threads: Vec<ThreadId> = steps.iter().map(|step| step.thread).collect();
    threads.sort();
    threads.dedup();
    let flow = |thread: &ThreadId| {
        let own = steps.iter().enumerate().filter(|(_, step)| step.thread == *thread);
        let locations: Vec<Value> = own
            .map(|(order, step)| {
                json!({
                    "executionOrder": order + 1,
                    "importance": "essential",
                    "location": location(step.place.as_ref(), &step.text),
                })
            })
            .collect();
        let started = finding.schedule.threads.iter().find(|line| line.thread == *thread);
        let start = started.map_or("", |line| &line.start);
        let name = if start.is_empty() { thread.to_string() } else { format!("{thread} ({start})") };
        json!({ "id": thread.to_string(), "message": message(&name), "locations": locations })
    };
    Some(json!({
        "message": message("The operations of each thread; executionOrder is their order in the execution."),
        "threadFlows": threads.iter().map(flow).collect::<Vec<Value>>(),
    }))
}

fn steps(finding: &Finding) -> Vec<Step> {
    // A switch comes before the operation that it prevents.
    let mut steps: Vec<(u32, bool, Step)> = Vec::new();
    for switch in &finding.switches {
        let place = SourceLine::of_stack(&switch.stack);
        steps.push((switch.step, false, Step { thread: switch.from, place, text: switched(switch) }));
    }
    for moment in finding.explanation.iter().flat_map(|why| &why.story) {
        let (thread, place) = (moment.thread, SourceLine::parse(&moment.place));
        steps.push((moment.step, true, Step { thread, place, text: format!("{thread} {}", deed(moment)) }));
    }
    steps.sort_by_key(|(step, is_operation, _)| (*step, *is_operation));
    let mut steps: Vec<Step> = steps.into_iter().map(|(_, _, step)| step).collect();
    for access in finding.race.iter().flat_map(|race| [&race.first, &race.second]) {
        let (thread, place) = (access.thread, SourceLine::of_stack(&access.stack));
        steps.push(Step { thread, place, text: format!("{thread} {}", access.does()) });
    }
    if let Some(thread) = finding.thread.filter(|_| finding.race.is_none()) {
        let place = SourceLine::of_stack(&finding.stack);
        steps.push(Step { thread, place, text: format!("{thread} fails: {}", finding.message) });
    }
    for end in finding.threads.iter().filter(|end| end.blocked && finding.kind == FindingKind::Deadlock) {
        let (thread, place) = (end.thread, SourceLine::of_stack(&end.stack));
        let text = format!("{thread} waits: {}", operation(end.op, &end.object));
        steps.push(Step { thread, place, text });
    }
    steps
}

/// A switch in words.
fn switched(switch: &Switch) -> String {
    let Switch { from, to, .. } = switch;
    let op = operation(switch.op, &switch.object);
    match switch.kind {
        SwitchKind::Preempt => format!("{from} is preempted before {op}; {to} runs"),
        SwitchKind::Free => format!("{from} stops at {op}; {to} runs next"),
        SwitchKind::Wake => format!("{from} does {op} and wakes {to}"),
        kind => format!("{from} at {op}: {}", value(kind, switch.options)),
    }
}

/// A location. Either part may be missing.
fn location(place: Option<&SourceLine>, text: &str) -> Value {
    let mut out = Map::new();
    if let Some(SourceLine { file, line }) = place {
        out.insert(
            "physicalLocation".to_owned(),
            json!({ "artifactLocation": { "uri": uri(file) }, "region": { "startLine": line } }),
        );
    }
    if !text.is_empty() {
        out.insert("message".to_owned(), message(text));
    }
    Value::Object(out)
}

/// A message. The standard reads `{0}` as a placeholder and `[text](1)` as a link (sections 3.11.5 and 3.11.6), so
/// both are escaped. Other braces and brackets remain as they are: most readers show escapes literally.
fn message(text: &str) -> Value {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let digits = after.trim_start_matches(|c: char| c.is_ascii_digit());
        if c == '{' && digits.len() < after.len() && digits.starts_with('}') {
            let number = &after[..after.len() - digits.len()];
            out += &format!("{{{{{number}}}}}");
            rest = &digits[1..];
            continue;
        }
        let bracket = after.find(['[', ']']).map_or("", |at| &after[at..]);
        if c == '[' && bracket.starts_with("](") {
            out.push('\\');
        }
        visible::push(&mut out, c);
        rest = after;
    }
    json!({ "text": out })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::{NASTY, finding, stack};
    use heisen_testkit::schema::Schema;
    use heisen_trace::race::{Access, Race};

    /// Describes the part of the format that Heisen writes. The official schema is not part of this repository.
    const SCHEMA: &str = include_str!("../../tests/sarif.schema.json");

    #[track_caller]
    fn valid(findings: &[(&Finding, Option<&Path>)]) -> Value {
        let run = of_findings("./prog", findings, "heisen replay", &[("note", NASTY.to_owned())]);
        let document = document(&[run]);
        let schema = Schema::new(serde_json::from_str(SCHEMA).expect("JSON"));
        schema.assert_valid("#", &document);
        document
    }

    #[test]
    fn a_lost_update() {
        let document = valid(&[(&finding("balance"), Some(Path::new(".heisen/prog-1.schedule")))]);
        let result = &document["runs"][0]["results"][0];
        assert_eq!(document["runs"][0]["tool"]["driver"]["rules"][0]["id"], "assertion");
        assert_eq!((&result["ruleId"], &result["ruleIndex"]), (&"assertion".into(), &0.into()));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "account.c");
        assert_eq!(place["region"]["startLine"], 40);
        assert_eq!(result["partialFingerprints"]["heisenSignature/v1"], "assertion-0123456789abcdef");
        assert_eq!(result["properties"]["replay"], "heisen replay .heisen/prog-1.schedule");
        let text = result["message"]["text"].as_str().expect("a text");
        assert!(text.starts_with("assertion failed: balance\n"), "{text}");
        assert!(text.contains("why: atomicity violation on `balance`"), "{text}");
        let flows = result["codeFlows"][0]["threadFlows"].as_array().expect("a list");
        let ids: Vec<&Value> = flows.iter().map(|flow| &flow["id"]).collect();
        assert_eq!(ids, ["T0", "T1", "T2"]);
        let t1: Vec<(u64, &str)> = flows[1]["locations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|at| {
                let text = at["location"]["message"]["text"].as_str().expect("a text");
                (at["executionOrder"].as_u64().expect("a number"), text)
            })
            .collect();
        assert_eq!(
            t1,
            [
                (1, "T1 reads balance = 100"),
                (2, "T1 is preempted before mem_write(balance); T2 runs"),
                (4, "T1 writes balance = 120"),
            ]
        );
        assert_eq!(flows[0]["locations"][0]["executionOrder"], 5);
    }

    #[test]
    fn a_race_has_both_accesses() {
        let access = |thread, write, line| Access {
            thread: ThreadId(thread),
            write,
            atomic: false,
            size: 4,
            holds: Vec::new(),
            stack: stack("add", "sum.c", line),
        };
        let mut race = finding("sum");
        (race.kind, race.explanation, race.thread, race.stack) =
            (FindingKind::DataRace, None, None, Default::default());
        race.race = Some(Race {
            first: access(1, true, 3),
            second: access(2, false, 4),
            object: "sum".to_owned(),
            executions: 1,
        });
        let document = valid(&[(&finding("x"), None), (&race, None)]);
        let result = &document["runs"][0]["results"][1];
        assert_eq!(result["ruleIndex"], 1);
        assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 4);
        assert_eq!(result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 3);
        assert_eq!(result["relatedLocations"][0]["message"]["text"], "T1 writes 4 bytes");
    }

    #[test]
    fn every_kind_has_a_rule() {
        let mut all: Vec<Finding> = Vec::new();
        for kind in FindingKind::ALL {
            all.push(Finding { kind, ..finding("x") });
        }
        let all: Vec<(&Finding, Option<&Path>)> = all.iter().map(|finding| (finding, None)).collect();
        let document = valid(&all);
        let rules = document["runs"][0]["tool"]["driver"]["rules"].as_array().expect("a list");
        assert_eq!(rules.len(), FindingKind::ALL.len());
    }

    #[test]
    fn names_are_neither_placeholders_nor_links() {
        assert_eq!(message("a {12} {x} b[3]")["text"], "a {{12}} {x} b[3]");
        assert_eq!(message("[a](1)")["text"], "\\[a](1)");
        let document = valid(&[(&finding(NASTY), None)]).to_string();
        assert!(!document.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{document}");
    }

    #[test]
    fn tests_that_were_not_explored_are_unsuccessful() {
        let run = failed_run("queue::push", "it hangs");
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        assert_eq!(run["results"], json!([]));
    }
}
