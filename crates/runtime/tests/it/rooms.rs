//! Tests that the rooms (top-level modules) of the runtime use each other in one direction only.

use heisen_testkit::rooms::{Rule, assert_names_once, assert_rules};

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

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

#[test]
fn rooms_use_only_lower_rooms() {
    assert_rules(SRC, RULES);
}

#[test]
fn no_two_modules_have_one_name() {
    assert_names_once(SRC);
}
