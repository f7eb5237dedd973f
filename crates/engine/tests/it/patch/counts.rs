//! Tests that every atomic instruction is one scheduling point, and nothing else is. The numbers of
//! executions are computed by hand.
//!
//! Main creates a thread A and then does two atomic operations, as A does after its start. This is the
//! program of `scope.rs`, with atomic instructions instead of lock and unlock. It has 10 orders; 1, 3 and 7
//! of them have at most 0, 1 and 2 preemptions. Without patching only `create`, `join` and A's start are
//! seen: one order.

use heisen_testkit::{Sandbox, root, usual_or_nightly};
use std::path::Path;
use std::process::Command;

const COUNTS: [u64; 4] = [1, 3, 7, 10];

const PROGRAM: &str = "#include <pthread.h>
#ifdef APART
void *two(void *);
#else
#include \"two.c\"
#endif
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, two, 0);
    two(0);
    pthread_join(t, 0);
}
";

const TWO: &str = "static int a; static long b;
void *two(void *arg) {
    __atomic_fetch_add(&a, 1, __ATOMIC_SEQ_CST);
    __atomic_exchange_n(&b, 2, __ATOMIC_SEQ_CST);
    return arg;
}
";

#[track_caller]
fn expect(sandbox: &Sandbox, options: &[&str], program: &Path, counts: [u64; 4]) {
    let searches = [["--bound", "0"], ["--bound", "1"], ["--bound", "2"], ["--strategy", "dfs"]];
    for (search, count) in searches.iter().zip(counts) {
        let json = sandbox.clean(&[options, search, &["--", program.to_str().unwrap()]].concat());
        assert_eq!(
            (&json["executions"], &json["complete"], &json["diverged"]),
            (&count.into(), &true.into(), &0.into()),
            "{search:?} {json:#}"
        );
    }
}

#[test]
fn however_a_program_is_built() {
    let sandbox = Sandbox::new();
    sandbox.write("two.c", TWO);
    let builds: [&[&str]; 8] = [
        &["-O0"],
        &["-O2"],
        &["-O2", "-s"],
        &["-O0", "-no-pie"],
        &["-O2", "-no-pie", "-s"],
        &["-O1", "-fno-omit-frame-pointer", "-fcf-protection=full"],
        // Without unwind tables, Heisen finds functions by symbols. Without symbols as well, it uses the
        // section.
        &["-O2", "-fno-asynchronous-unwind-tables"],
        &["-O2", "-fno-asynchronous-unwind-tables", "-s"],
    ];
    for (number, flags) in builds.iter().enumerate() {
        let program = sandbox.compile("counted.c", PROGRAM, flags);
        expect(&sandbox, &["--patch", "default"], &program, COUNTS);
        if number >= usual_or_nightly(1, builds.len()) {
            continue;
        }
        expect(&sandbox, &["--patch", "counted"], &program, COUNTS);
        expect(&sandbox, &["--patch", "none"], &program, [1; 4]);
        expect(&sandbox, &[], &program, COUNTS);
        expect(&sandbox, &["--no-preempt", "counted"], &program, [1; 4]);
    }
}

#[test]
fn on_kernel_threads() {
    let sandbox = Sandbox::new();
    sandbox.write("two.c", TWO);
    let program = sandbox.compile("counted.c", PROGRAM, &["-O2"]);
    expect(&sandbox, &["--patch", "default", "--carrier", "kernel"], &program, COUNTS);
}

#[test]
fn in_a_library_of_its_own() {
    let sandbox = Sandbox::new();
    let source = sandbox.write("two.c", TWO);
    let library = sandbox.path("libtwo.so");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-s", "-o"])
        .args([&library, &source])
        .status()
        .expect("cc starts");
    assert!(built.success());
    let (library, here) = (library.to_str().unwrap(), sandbox.path(""));
    let search = format!("-Wl,-rpath,{}", here.display());
    let program = sandbox.compile("counted.c", PROGRAM, &["-DAPART", library, &search]);
    expect(&sandbox, &["--patch", "default"], &program, COUNTS);
    expect(&sandbox, &["--patch", "libtwo.so"], &program, COUNTS);
    expect(&sandbox, &["--patch", "*.so"], &program, COUNTS);
    expect(&sandbox, &["--patch", "counted"], &program, [1; 4]);
    // The caveat states the numbers of atomic instructions.
    let json = sandbox.clean(&["--patch", "default", "--", program.to_str().unwrap()]);
    let said = json["not_controlled"][0].as_str().unwrap();
    assert!(said.contains("0 in counted; 2 in libtwo.so"), "{said}");
    assert_eq!(json["patch"], serde_json::json!(["default"]));
}

#[test]
fn scope_knows_atomic_instructions() {
    let sandbox = Sandbox::new();
    sandbox.write("two.c", TWO);
    let program = sandbox.compile("counted.c", PROGRAM, &["-O0"]);
    expect(&sandbox, &["--patch", "default", "--no-preempt", "two"], &program, [1, 1, 1, 1]);
    expect(&sandbox, &["--patch", "default", "--focus", "two"], &program, COUNTS);
}

#[test]
fn with_other_options() {
    let sandbox = Sandbox::new();
    sandbox.write("two.c", TWO);
    let program = sandbox.compile("counted.c", PROGRAM, &["-O2"]);
    let json = sandbox.clean(&["--patch", "default", "--warm-up", "2", "--", program.to_str().unwrap()]);
    assert_eq!(json["executions"], 7);
    // A resumed search uses the saved option.
    let ran = sandbox.heisen(&["check", "--resume", "search.json", "--patch", "default"]);
    assert!(ran.err.contains("--patch"), "{}", ran.err);
    assert_eq!(ran.code, 2);
}

#[test]
fn the_example_of_the_documentation() {
    let text = std::fs::read_to_string(root().join("docs/how-it-works/patching.md")).expect("the page");
    let source = text.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let sandbox = Sandbox::new();
    let program = sandbox.compile("once.c", source, &["-O2", "-s"]);
    let program = program.to_str().unwrap();
    assert_eq!(sandbox.clean(&["--patch", "none", "--", program])["complete"], true);
    let finding = sandbox.finds("assertion", &["--patch", "default", "--", program]);
    assert_eq!(finding["preemptions"], 1);
}
