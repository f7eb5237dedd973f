//! Tests that the rooms (top-level modules) of the engine use each other in one direction only.

use heisen_testkit::rooms::{Rule, assert_names_once, assert_rules};

/// The rooms from the lowest to the highest. The head comment of each room states its rule in words.
const RULES: &[Rule] = &[
    ("error", &[]),
    ("platform", &["error"]),
    ("program", &["error", "platform"]),
    ("patch", &["error", "platform", "program"]),
    ("process", &["error", "platform", "program", "patch"]),
    ("explain", &["error", "platform", "program", "patch", "process"]),
    ("check", &["error", "platform", "program", "patch", "process", "explain"]),
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
