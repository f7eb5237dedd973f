//! Tests that the command's JSON matches `docs/reference/json.schema.json`, and that `docs/reference/json.md`
//! names every field.

use heisen_testkit::schema::Schema;
use heisen_testkit::{Sandbox, explained_json, program, root, scratch};
use heisen_trace::FindingKind;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Checks an example. Its result must match the schema.
#[track_caller]
fn checked(args: &[&str]) -> Value {
    let directory = scratch();
    let name = args.last().expect("an example");
    let example = root().join("examples").join(name).display().to_string();
    let json = explained_json(directory.path(), &[&args[..args.len() - 1], &[example.as_str()]].concat());
    Schema::read().assert_valid("#", &json);
    json
}

/// The first finding.
#[track_caller]
fn first(json: &Value) -> &Value {
    assert_eq!(json["verdict"], "bug", "{json:#}");
    &json["findings"][0]
}

#[test]
fn clean_results() {
    let json = checked(&["c/account_fixed.c"]);
    assert_eq!((&json["verdict"], &json["complete"]), (&"clean".into(), &true.into()), "{json:#}");
    let json = checked(&["--strategy", "dpor", "--bound", "1", "c/account_fixed.c"]);
    assert_eq!(json["strategy"], "bpor", "{json:#}");
    assert!(json["blocked"].is_u64() && json["classes"].is_u64(), "{json:#}");
    let json = checked(&["--strategy", "pct", "--executions", "50", "c/account_fixed.c"]);
    assert!(json["guarantee"].is_object() && json["unseen"].is_object(), "{json:#}");
    let json = checked(&["--no-instrument", "--focus", "deposit", "c/account_fixed.c"]);
    assert_eq!(json["scope"]["focus"], json!(["deposit"]), "{json:#}");
    assert_ne!(json["not_controlled"], json!([]), "{json:#}");
}

#[test]
fn incomplete_results() {
    let json = checked(&["--strategy", "dfs", "--executions", "300", "c/bounded_buffer_fixed.c"]);
    assert_eq!(json["verdict"], "incomplete", "{json:#}");
    assert!(json["remaining"].is_object() && json["claim"].is_string(), "{json:#}");
}

#[test]
fn failures() {
    let json = checked(&["c/account.c"]);
    assert_eq!((&first(&json)["kind"], &json["claim"]), (&"assertion".into(), &Value::Null), "{json:#}");
    let json = checked(&["c/philosophers.c"]);
    assert_eq!(first(&json)["kind"], "deadlock", "{json:#}");
    let json = checked(&["c/samaritan.c"]);
    assert!(first(&json)["cycle"].is_object(), "{json:#}");
    let json = checked(&["--spurious", "1", "c/spurious.c"]);
    assert_eq!(first(&json)["choices"][0]["kind"], "spurious", "{json:#}");
    let json = checked(&["--strategy", "directed", "c/lock_order.c"]);
    assert_eq!(first(&json)["predicted"]["family"], "lock-order", "{json:#}");
}

#[test]
fn races_and_memory_errors() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "race.c",
        program(
            "static int sum; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;",
            &["pthread_mutex_lock(&m); sum++; pthread_mutex_unlock(&m);", "sum++;"],
        ),
    );
    let json = explained_json(&sandbox.path(""), &["--races", "race.c"]);
    Schema::read().assert_valid("#", &json);
    assert_eq!(first(&json)["kind"], "data-race", "{json:#}");
    let locks: Vec<&Value> =
        ["first", "second"].iter().map(|side| &json["races"][0][side]["locks"]).collect();
    assert!(locks.iter().any(|locks| locks[0]["object"] == "m"), "{json:#}");

    let freed = program(
        "#include <stdlib.h>\nstatic _Atomic(int *) block;",
        &["int *mine = malloc(4); block = mine; free(mine);", "int *there = block; if (there) *there = 1;"],
    );
    sandbox.write("freed.c", freed);
    let json = explained_json(&sandbox.path(""), &["freed.c"]);
    Schema::read().assert_valid("#", &json);
    assert_eq!(first(&json)["kind"], "use-after-free", "{json:#}");
    assert!(first(&json)["block"]["freed"].is_object(), "{json:#}");
}

#[test]
fn explanations() {
    let sandbox = Sandbox::new();
    let example = root().join("examples/c/account.c").display().to_string();
    let json = explained_json(&sandbox.path(""), &[&example]);
    let schedule = first(&json)["schedule"].as_str().expect("a path").to_owned();
    let args = ["explain", &schedule, "--json", "-", "--perfetto", "trace.json", "--dot", "graph.dot"];
    let json = sandbox.heisen(&args).expect(1).json();
    Schema::read().assert_valid("#/$defs/explain", &json);
    assert_eq!(json["finding"]["kind"], "assertion", "{json:#}");
    assert_eq!(json["explanation"]["class"], "atomicity-violation", "{json:#}");
    let failing = json["explanation"]["failing"].as_array().expect("a list");
    assert!(failing.iter().any(|event| event["preempts"] == true), "{json:#}");
    assert!(
        json["explanation"]["passing"][0].is_object() && json["sources"][&example].is_object(),
        "{json:#}"
    );
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).expect("the file");
    let trace: Value = serde_json::from_str(&read("trace.json")).expect("JSON");
    let slices = trace["traceEvents"].as_array().expect("a list").iter().filter(|event| event["ph"] == "X");
    let passing = json["explanation"]["passing"].as_array().map_or(0, Vec::len);
    assert_eq!(slices.count(), failing.len() + passing);
    assert!(read("graph.dot").contains("subgraph cluster_T1"), "{}", read("graph.dot"));
    sandbox
        .heisen(&["explain", &schedule, "--json", "-", "--dot", "-"])
        .fails(2, &["--json and --dot both write to standard output"]);
    sandbox.heisen(&["explain", &schedule, "--perfetto", "no/where"]).fails(2, &["no is not a directory"]);
}

#[test]
fn scripts() {
    let sandbox = Sandbox::new();
    let (schema, example) = (Schema::read(), |name: &str| root().join(name).display().to_string());
    let script = |text: &str, code: i32| {
        sandbox.write("s.rhai", text);
        let program = example("examples/script/localtime.c");
        let json = sandbox.heisen(&["script", "--json", "-", "s.rhai", &program]).expect(code).json();
        schema.assert_valid("#/$defs/script", &json);
        json
    };
    let found = script("context_bounded(2, 2, [\"MT_safe_localtime\"]);", 1);
    assert!(found["found"]["choices"].is_array(), "{found:#}");
    let exists = script("exists(); wait_for_thread(any, enters(\"MT_safe_localtime\"));", 0);
    assert!(exists["exists"].is_array(), "{exists:#}");
    let never = script("wait_for_distinct_threads(3, enters(\"MT_safe_localtime\"));", 4);
    assert!(never["why"]["what"].is_string(), "{never:#}");
}

/// The names of all fields that a schema describes.
fn fields(schema: &Value, all: &mut BTreeSet<String>) {
    match schema {
        Value::Object(parts) => {
            if let Some(Value::Object(properties)) = parts.get("properties") {
                all.extend(properties.keys().cloned());
            }
            parts.values().for_each(|part| fields(part, all));
        }
        Value::Array(parts) => parts.iter().for_each(|part| fields(part, all)),
        _ => {}
    }
}

#[test]
fn the_page_names_every_field() {
    let page = std::fs::read_to_string(root().join("docs/reference/json.md")).expect("the page");
    let mut all = BTreeSet::new();
    fields(Schema::read().json(), &mut all);
    assert!(all.len() > 90, "{all:?}");
    let missing: Vec<_> = all.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in json.md: {missing:?}");
}

#[test]
fn the_schema_knows_every_kind_of_finding() {
    let schema = Schema::read();
    let kinds: Vec<&str> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(schema.json()["$defs"]["finding"]["properties"]["kind"]["enum"], json!(kinds));
}

#[test]
fn the_validator_finds_mistakes() {
    let schema = Schema::new(json!({
        "type": "object",
        "required": ["n"],
        "properties": {
            "n": { "type": "integer", "minimum": 0 },
            "list": { "type": "array", "items": { "$ref": "#/$defs/word" } },
            "maybe": { "anyOf": [{ "$ref": "#/$defs/word" }, { "type": "null" }] },
        },
        "$defs": {
            "word": { "enum": ["a", "b"] },
            "more": { "allOf": [{ "$ref": "#" }, { "properties": { "name": { "type": ["string", "null"] } } }] },
        },
    }));
    let wrong = |reference, value: Value| !schema.errors(reference, &value).is_empty();
    assert!(!wrong("#", json!({ "n": 1, "list": ["a"], "maybe": null })));
    assert!(!wrong("#/$defs/more", json!({ "n": 1, "name": "x" })));
    for value in [
        json!([]),
        json!({}),
        json!({ "n": -1 }),
        json!({ "n": 1.5 }),
        json!({ "n": "1" }),
        json!({ "n": 1, "list": ["c"] }),
        json!({ "n": 1, "maybe": 2 }),
        json!({ "n": 1, "other": 2 }),
    ] {
        assert!(wrong("#", value.clone()), "{value}");
    }
    assert!(wrong("#/$defs/more", json!({ "n": 1, "name": 2 })));
    assert!(wrong("#/$defs/more", json!({ "n": 1, "names": null })));
}
