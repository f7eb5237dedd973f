//! The conformance suite: small programs in C, C++ and Rust, each of which states all its possible results.
//! Where the standards allow several results, such as the order of two threads that lock the same mutex, all
//! of them are listed.
//!
//! Each program runs natively, and every result must be a listed one. It also runs under Heisen in every
//! schedule, or in a sample if there are too many. Then the set of results must equal the list. An unlisted
//! result would mean that Heisen runs the program wrongly. A missing result would mean that Heisen overlooks
//! bugs.

mod suite;

use std::path::Path;
use suite::{conforms, differences};

/// The macros of `results.h` and `results.rs` that define a case.
const CASES: [&str; 11] = [
    "CASE(",
    "ENDS(",
    "SAMPLED(",
    "NATIVELY(",
    "BECOMES(",
    "WRITES(",
    "WRITES_WIDE(",
    "READS(",
    "READS_WIDE(",
    "FOLLOWS(",
    "Case(",
];

/// The file with cases that state wrong results.
const WRONG: &str = "wrong.c";

#[test]
fn wrong_statements_are_noticed() {
    let noticed = [
        ("states_what_never_happens", "under Heisen {\"AB\", \"BA\"}, allowed {\"A\", \"AB\", \"BA\"}"),
        ("forgets_what_is_rare", "\"BA\""),
        ("forgets_what_happens_always", "natively {\"AB\"}, allowed {\"BA\"}"),
        ("ends_otherwise", "a run ended with status 0x400"),
        ("ends_with_a_bug", "a lock was unlocked that nobody holds"),
        ("says_nothing_at_the_end", "0 results in 1 executions"),
        ("has_too_many_schedules", "not clean and complete"),
        ("is_told_that_it_is_watched", "under Heisen {\"watched\"}, allowed {\"natively\"}"),
    ];
    let found = differences(WRONG, &[]);
    assert_eq!(found.len(), noticed.len());
    for ((case, wrong), (name, words)) in found.iter().zip(noticed) {
        let wrong = wrong.as_deref().unwrap_or("nothing is said of it");
        assert!(case == name && wrong.contains(words), "{case}: {wrong}");
    }
}

#[test]
fn there_are_enough_programs_and_each_file_is_tested() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/conformance");
    let tests = std::fs::read_to_string(here.join("mod.rs")).expect("this file");
    let mut count = 0;
    for entry in std::fs::read_dir(here.join("programs")).expect("the programs") {
        let entry = entry.expect("a file");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("results.") || name == WRONG {
            continue;
        }
        assert!(tests.contains(&format!("conforms(\"{name}\"")), "{name} is not tested");
        let text = std::fs::read_to_string(entry.path()).expect("a program");
        count +=
            text.lines().filter(|line| CASES.iter().any(|case| line.trim_start().starts_with(case))).count();
    }
    println!("{count} programs");
    assert!(count >= 150, "only {count} programs");
    // The page names a round number, so a new program rarely changes it.
    let page =
        std::fs::read_to_string(heisen_testkit::root().join("docs/reference/limits.md")).expect("the page");
    let named = format!("more than {} small programs", (count - 1) / 10 * 10);
    assert!(page.contains(&named), "{count} programs, but limits.md does not say {named:?}");
}

#[test]
fn mutexes() {
    conforms("mutexes.c", &[]);
}

#[test]
fn conditions() {
    conforms("conditions.c", &[]);
}

#[test]
fn locks() {
    conforms("locks.c", &[]);
}

#[test]
fn once_keys_and_semaphores() {
    conforms("once_keys_semaphores.c", &[]);
}

#[test]
fn threads() {
    conforms("threads.c", &[]);
}

#[test]
fn times() {
    conforms("times.c", &[]);
}

#[test]
fn futexes() {
    conforms("futexes.c", &[]);
}

#[test]
fn ends() {
    conforms("ends.c", &[]);
}

#[test]
fn processes() {
    conforms("processes.c", &[]);
}

#[test]
fn bad_calls() {
    conforms("bad_calls.c", &[]);
}

#[test]
fn streams() {
    conforms("streams.c", &[]);
}

#[test]
fn descriptors() {
    conforms("descriptors.c", &[]);
}

#[test]
fn obsolete_signals() {
    conforms("obsolete_signals.c", &[]);
}

#[test]
fn ids() {
    conforms("ids.c", &[]);
}

#[test]
fn asks() {
    let include = format!("-I{}", heisen_testkit::root().join("include").display());
    conforms("asks.c", &[&include]);
}

#[test]
fn cpp_standard_library() {
    conforms("standard.cpp", &[]);
}

#[test]
fn rust_standard_library() {
    conforms("standard.rs", &[]);
}
