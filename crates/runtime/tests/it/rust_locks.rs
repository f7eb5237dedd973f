//! Tests that the scheduler treats the mutex of Rust's standard library as one lock, whatever instructions
//! implement it. The numbers of classes are exact. The bugs are the same as with each of its instructions as
//! a scheduling point.

use heisen_testkit::{check_json, heisen, run, scratch, usual_or_nightly};
use serde_json::Value;
use std::path::Path;

/// A program whose threads run these bodies. `A` and `B` are mutexes, and `C` is a condition variable.
fn program(bodies: &[&str]) -> String {
    let threads: String = bodies.iter().map(|body| format!("thread::spawn(|| {{ {body} }}), ")).collect();
    format!(
        "use std::sync::{{Condvar, Mutex}};\nuse std::thread;\n\
         static A: Mutex<i32> = Mutex::new(0);\nstatic B: Mutex<i32> = Mutex::new(0);\n\
         static C: Condvar = Condvar::new();\n\
         fn main() {{\n    let _ = (&A, &B, &C);\n    for thread in [{threads}] {{ thread.join().unwrap(); }}\n}}\n"
    )
}

/// The compilers of tests that need not use both each time.
fn some_compilers() -> &'static [&'static str] {
    &COMPILERS[..usual_or_nightly(1, 2)]
}

/// Without and with optimisation, as a user may name the compiler.
const COMPILERS: [&str; 2] = ["rustc", "rustc -O"];

fn check(directory: &Path, compiler: &str, bodies: &[&str], args: &[&str]) -> Value {
    std::fs::write(directory.join("p.rs"), program(bodies)).expect("it is written");
    let mut command = heisen(directory);
    command.env("RUSTC", compiler).args(["check", "--quiet", "--json", "-"]).args(args).arg("p.rs");
    run(&mut command).json()
}

/// Checks that dpor counts `expected` classes, with and without optimisation.
#[track_caller]
fn classes(bodies: &[&str], expected: u64) {
    for compiler in COMPILERS {
        let json = check(scratch().path(), compiler, bodies, &["--strategy", "dpor"]);
        let found = ["classes", "executions"].map(|name| json[name].as_u64());
        assert_eq!(json["complete"], true, "{compiler} {bodies:?}: {json:#}");
        assert_eq!(found, [Some(expected); 2], "{compiler} {bodies:?}");
    }
}

const COUNTS: &str = "*A.lock().unwrap() += 1;";

#[test]
fn critical_sections() {
    let three = "for _ in 0..3 { *A.lock().unwrap() += 1; }";
    // The orders of six sections, three of each thread: C(6, 3).
    classes(&[three, three], 20);
    classes(&[COUNTS, COUNTS, COUNTS], 6);
    // Two independent locks.
    classes(&[COUNTS, "*B.lock().unwrap() += 1;"], 1);
    // Both threads use A and then B, with two orders at each lock.
    classes(&["*A.lock().unwrap() += 1; *B.lock().unwrap() += 1;"; 2], 4);
}

#[test]
fn attempts() {
    // The attempt comes before the critical section, in it, or after it.
    classes(&[COUNTS, "if let Ok(mut a) = A.try_lock() { *a += 1; }"], 3);
    classes(&["if let Ok(mut a) = A.try_lock() { *a += 1; }", COUNTS], 3);
    // Both succeed, in either order, or one fails.
    classes(&["drop(A.try_lock());"; 2], 4);
    // One thread locks by an attempt and never unlocks. The other waits forever, or has unlocked before.
    let keeps = "std::mem::forget(A.try_lock());";
    for bodies in [[keeps, COUNTS], [COUNTS, keeps]] {
        for strategy in &["dpor", "dfs", "icb"][..usual_or_nightly(1, 3)] {
            let args = ["--strategy", strategy, "--keep-going"];
            let json = check(scratch().path(), COMPILERS[0], &bodies, &args);
            assert_eq!(json["findings"].as_array().map(Vec::len), Some(1), "{strategy}: {json:#}");
            // The attempt comes before the critical section, in it, or after it.
            assert!(*strategy != "dpor" || json["classes"] == 3, "{json:#}");
        }
    }
}

#[test]
fn a_program_that_is_not_instrumented() {
    for compiler in COMPILERS {
        let three = "for _ in 0..3 { *A.lock().unwrap() += 1; }";
        let args = ["--strategy", "dpor", "--no-instrument"];
        let found = check(scratch().path(), compiler, &[three, three], &args);
        // The standard library's own counters are scheduling points, too, because Heisen cannot know that
        // they do not matter.
        let classes = found["classes"].as_u64().expect("a number");
        assert!((20..200).contains(&classes), "{compiler}: {found:#}");
    }
}

#[test]
fn deadlocks_name_the_locks_and_who_holds_them() {
    let crossed = [
        "let _a = A.lock().unwrap(); let _b = B.lock().unwrap();",
        "let _b = B.lock().unwrap(); let _a = A.lock().unwrap();",
    ];
    for compiler in some_compilers() {
        for strategy in &["icb", "dpor", "random", "dfs", "pct", "portfolio"][..usual_or_nightly(3, 6)] {
            let directory = scratch();
            let json = check(directory.path(), compiler, &crossed, &["--strategy", strategy]);
            let finding = &json["findings"][0];
            let message = finding["message"].as_str().unwrap_or_else(|| panic!("{strategy}: {json:#}"));
            assert!(
                message.contains("p::B, held by T2") && message.contains("p::A, held by T1"),
                "{message}"
            );
            let schedule = finding["schedule"].as_str().expect("a file");
            run(heisen(directory.path()).args(["replay", "--quiet", schedule])).expect(1);
        }
    }
    // One thread locks a mutex twice.
    let json = check(scratch().path(), COMPILERS[0], &["let _a = A.lock(); let _b = A.lock();"], &[]);
    let message = json["findings"][0]["message"].as_str().expect("a message");
    assert_eq!(message, "T1 locks p::A, which it holds already");
}

/// A condition variable unlocks the mutex and locks it again inside the library.
#[test]
fn condition_variables() {
    let waits = "let mut a = A.lock().unwrap(); while *a == 0 { a = C.wait(a).unwrap(); }";
    let wakes = "*A.lock().unwrap() = 1; C.notify_one();";
    for compiler in some_compilers() {
        for args in [&["--strategy", "dpor"][..], &["--strategy", "icb"], &["--strategy", "dfs"]] {
            let json = check(scratch().path(), compiler, &[waits, wakes], args);
            assert_eq!((&json["verdict"], &json["complete"]), (&"clean".into(), &true.into()), "{json:#}");
        }
        // Without a loop the thread may wait for a notification that has already happened.
        let once = "let a = A.lock().unwrap(); drop(C.wait(a));";
        let json = check(scratch().path(), compiler, &[once, wakes], &[]);
        assert_eq!(json["findings"][0]["kind"], "deadlock", "{json:#}");
    }
}

/// With each instruction of the mutex as a scheduling point, the results are the same, with more executions.
#[test]
fn instructions_show_the_same() {
    let bodies = [COUNTS, "assert!(A.try_lock().is_ok());"];
    let directory = scratch();
    let locks = check(directory.path(), COMPILERS[0], &bodies, &["--strategy", "dpor"]);
    let instructions =
        check(directory.path(), COMPILERS[0], &bodies, &["--strategy", "dpor", "--patch", "instructions"]);
    for json in [&locks, &instructions] {
        assert_eq!(json["findings"][0]["kind"], "panic", "{json:#}");
    }
    let two = [COUNTS; 2];
    let count = |patch: &str| {
        let args = ["--strategy", "dpor", "--patch", patch];
        check(scratch().path(), COMPILERS[0], &two, &args)["executions"].as_u64().expect("a number")
    };
    assert_eq!(count("default"), 2);
    assert!(count("instructions") > 2);
    assert_eq!(check_json(directory.path(), &["p.rs"])["verdict"], "bug");
}
