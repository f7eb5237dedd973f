//! The rooms of the search use each other in one direction only.

use heisen_testkit::rooms::{Rule, assert_rules};

/// From the lowest to the highest.
const RULES: &[Rule] = &[
    ("analysis", &[]),
    ("halt", &[]),
    ("status", &["analysis"]),
    ("store", &["analysis", "status"]),
    ("predict", &["analysis"]),
    ("systematic", &["analysis", "halt", "status", "store"]),
    ("sampling", &["analysis", "predict", "status", "store"]),
    ("table", &["systematic", "sampling"]),
    ("search", &["systematic", "sampling", "status", "table"]),
];

#[test]
fn rooms_use_only_lower_rooms() {
    assert_rules(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), RULES);
}
