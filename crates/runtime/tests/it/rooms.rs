//! Tests that the rooms (top-level modules) of the runtime use each other in one direction only.

use heisen_testkit::rooms::{Rule, cycle, names_twice, violations};
use std::path::Path;

/// The rooms from the lowest to the highest. The head comment of each room states its rule in words.
const RULES: &[Rule] = &[
    ("platform", &[]),
    ("wire_log", &["platform"]),
    ("sched", &["platform", "wire_log"]),
    ("carrier", &["platform", "wire_log", "sched"]),
    ("script", &["platform", "wire_log", "sched"]),
    ("memory", &["platform", "wire_log", "sched", "carrier", "script"]),
    ("blocking", &["platform", "wire_log", "sched", "memory"]),
    ("lifecycle", &["platform", "wire_log", "sched", "carrier", "script", "memory", "blocking"]),
    ("shim", &["platform", "wire_log", "sched", "carrier", "script", "memory", "blocking", "lifecycle"]),
];

fn src() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

#[test]
fn rooms_use_only_lower_rooms() {
    assert!(cycle(RULES).is_empty(), "the rules have a cycle: {:?}", cycle(RULES));
    let found = violations(src(), RULES);
    assert!(found.is_empty(), "{} uses that the rules forbid:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_two_modules_have_one_name() {
    let found = names_twice(src());
    assert!(found.is_empty(), "modules of the same name:\n{}", found.join("\n"));
}
