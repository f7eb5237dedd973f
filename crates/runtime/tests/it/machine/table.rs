//! Tests that the table of system calls is the same in the documentation and in the code.

use heisen_testkit::root;
use heisen_trace::machine::TABLE;
use std::collections::BTreeSet;

/// The table in the form of the documentation.
fn rendered() -> String {
    let mut text = String::from("| calls | control | meaning |\n| --- | --- | --- |\n");
    for row in TABLE {
        let names: Vec<String> = row.calls.iter().map(|call| format!("`{}`", call.0)).collect();
        text += &format!("| {} | {} | {} |\n", names.join(", "), row.control.word(), row.meaning);
    }
    text
}

#[test]
fn the_documentation_shows_the_table() {
    let path = root().join("docs/reference/machine.md");
    let text = std::fs::read_to_string(&path).expect("docs/reference/machine.md");
    let is_row = |line: &&str| line.starts_with('|');
    let there: Vec<&str> = text.lines().filter(is_row).collect();
    let rendered = rendered();
    let wanted: Vec<&str> = rendered.lines().collect();
    assert_eq!(there, wanted, "docs/reference/machine.md is out of date; its table should be\n{rendered}");
}

#[test]
fn no_call_has_two_rows() {
    let mut numbers = BTreeSet::new();
    for row in TABLE {
        for (name, number) in row.calls {
            assert!(numbers.insert(number), "{name} has two rows");
        }
    }
}
