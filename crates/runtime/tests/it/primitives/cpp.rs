//! Tests of threads and locks of the C++ standard library.

use crate::suite::Suite;

/// The cases of `standard.cpp` that fail.
const BAD: [&str; 4] =
    ["throws_in_a_thread", "throws_in_main", "throws_a_standard_exception", "forgets_to_join"];

#[test]
fn cpp_17() {
    let suite = Suite::new("standard.cpp", &[]);
    suite.conform_except(26, &BAD);
    suite.fails(BAD[0], "crash", "terminate called after throwing an instance of 'int'");
    suite.fails(BAD[1], "crash", "terminate called after throwing an instance of 'int'");
    suite.fails(BAD[2], "crash", "deep trouble");
    suite.fails(BAD[3], "crash", "terminate called without an active exception");
}

#[test]
fn cpp_20() {
    let suite = Suite::new("modern.cpp", &["-std=c++20"]);
    suite.conform_except(8, &["semaphores"]);
    let random = ["--strategy", "random", "--seed", "1", "--executions", "50"];
    let json = suite.check("semaphores", &[&random[..], &["--patch", "none"]].concat());
    assert_eq!(json["verdict"], "clean", "{json:#}");
    // In libstdc++ 11 and 12, a thread that releases a semaphore wakes no thread if it finds another release
    // there (GCC bug 104928).
    let json = suite.check("semaphores", &random);
    let message = json["findings"][0]["message"].as_str();
    assert!(message.is_none_or(|m| m.contains("asleep")), "{json:#}");
}
