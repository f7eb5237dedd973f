//! Tests that a thread's registers are preserved at an atomic instruction, and that no other thread sees
//! them.

use heisen_testkit::{check_json, compile, scratch};
use std::path::Path;

#[test]
fn registers_of_others() {
    let directory = scratch();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/patch/registers.c");
    let text = std::fs::read_to_string(source).expect("the program");
    compile(directory.path(), "registers.c", &text, &["-O1"]);
    for strategy in [&["--bound", "2"][..], &["--strategy", "random", "--executions", "2000"]] {
        let json = check_json(directory.path(), &[strategy, &["--", "./registers"]].concat());
        assert_eq!(json["verdict"], "clean", "{json:#}");
        assert!(json["executions"].as_u64().is_some_and(|count| count > 100), "{json:#}");
    }
}
