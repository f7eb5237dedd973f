//! Tests that a search gives the same findings, classes and counts when repeated, and with one worker or two.

use heisen_testkit::{Sandbox, root, timeless, usual_or_nightly};
use serde_json::Value;

/// Examples with different kinds of bugs, and one without a bug.
const EXAMPLES: [&str; 5] =
    ["account.c", "bounded_buffer_fixed.c", "lock_order.c", "lost_wakeup.c", "trylock.c"];

const SEARCHES: [&[&str]; 7] = [
    &["--bound", "2"],
    &["--bound", "2", "--reduce"],
    &["--strategy", "dfs"],
    &["--strategy", "dfs", "--reduce"],
    &["--strategy", "random"],
    &["--strategy", "pct"],
    &["--strategy", "portfolio"],
];

#[test]
fn twice_and_with_one_worker_or_two() {
    let sandbox = Sandbox::new();
    for example in &EXAMPLES[..usual_or_nightly(2, 5)] {
        let text = std::fs::read_to_string(root().join("examples/c").join(example)).expect("an example");
        let program = sandbox.compile(example, &text, &[]);
        let program = program.to_str().expect("a path");
        let mut classes = 0;
        for search in SEARCHES {
            let check = |jobs: &str| -> Value {
                let options = [
                    "check",
                    "--keep-going",
                    "--executions",
                    usual_or_nightly("100", "400"),
                    "--jobs",
                    jobs,
                    "--json",
                    "-",
                ];
                let ran = sandbox.heisen(&[&options, search, &["--", program]].concat());
                assert!(ran.code == 0 || ran.code == 1, "{example} {search:?}: {}", ran.err);
                timeless(ran.json())
            };
            let first = check("1");
            for jobs in usual_or_nightly(&["2"][..], &["1", "2"]) {
                assert_eq!(check(jobs), first, "{example} {search:?}: another time, with --jobs {jobs}");
            }
            classes += first["classes"].as_u64().unwrap_or(0);
        }
        assert!(classes > 0, "{example}: no search has told any classes apart");
    }
}
