//! The rooms of the commands use each other in one direction only.

use heisen_testkit::rooms::{Rule, assert_rules};

/// From the lowest to the highest.
const RULES: &[Rule] = &[
    ("cli", &[]),
    ("render", &["cli"]),
    ("gdb", &["cli"]),
    ("commands", &["cli", "render", "gdb"]),
    ("cargo", &["cli", "render", "commands"]),
    ("bin", &[]),
];

#[test]
fn rooms_use_only_lower_rooms() {
    assert_rules(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), RULES);
}
