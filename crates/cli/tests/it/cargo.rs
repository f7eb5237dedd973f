//! Tests `cargo heisen` on packages in a sandbox, with passing and failing tests of all kinds. Nothing is
//! downloaded.

use heisen_testkit::schema::Schema;
use heisen_testkit::{Ran, Sandbox, root, soon};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// The text of a manifest.
fn manifest(name: &str, more: &str) -> String {
    format!("[package]\nname = {name:?}\nversion = \"1.2.3\"\nedition = \"2021\"\n{more}")
}

/// A package outside of any workspace.
fn package(files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("Cargo.toml", manifest("crate-a", "[workspace]\n"));
    for (name, text) in files {
        sandbox.write(name, text);
    }
    sandbox
}

/// A crate that loses updates, and fails when one was lost.
const COUNTING: &str = "use std::sync::Mutex;
#[derive(Default)]
pub struct Counter(Mutex<u32>);
impl Counter {
    pub fn add(&self) {
        let count = *self.0.lock().unwrap();
        *self.0.lock().unwrap() = count + 1;
    }
    pub fn check(&self, expected: u32) {
        assert_eq!(*self.0.lock().unwrap(), expected);
    }
}
";

/// A failure in a dependency shows its line there, and the line of the program that called it. The dependency is one that
/// cargo fetches, from a repository in the sandbox.
#[test]
fn a_failure_in_a_dependency() {
    let text = "#[test]\nfn adds() {\n    let counter = std::sync::Arc::new(counting::Counter::default());\n    \
                let other = counter.clone();\n    let thread = std::thread::spawn(move || other.add());\n    \
                counter.add();\n    thread.join().unwrap();\n    counter.check(2);\n}\n";
    let sandbox = package(&[("src/lib.rs", text)]);
    sandbox.write("repository/Cargo.toml", manifest("counting", ""));
    sandbox.write("repository/src/lib.rs", COUNTING);
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
        let mut command = Command::new("git");
        command.args(identity).args(args).current_dir(sandbox.path("repository"));
        // Settings of the machine must not change what is committed.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(command.output().expect("git").status.success(), "git {args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "Count"]);
    let repository = sandbox.path("repository");
    let dependency = format!("[dependencies]\ncounting = {{ git = \"file://{}\" }}\n", repository.display());
    sandbox.write("Cargo.toml", manifest("crate-a", &format!("[workspace]\n{dependency}")));
    let mut command = sandbox.cargo_command(&["test", "--color", "never"]);
    let ran = sandbox.run(command.env("CARGO_HOME", sandbox.path("home"))).expect(1);
    let line = |words: &str| ran.out.lines().find(|line| line.contains(words)).unwrap_or_default();
    let place = line("counting::Counter::check at ");
    assert!(place.contains("/git/checkouts/") && place.ends_with("/src/lib.rs:10"), "{}", ran.out);
    assert!(
        ran.out.contains("\n  called by crate_a::adds at src/lib.rs:8\n    8 | counter.check(2);\n"),
        "{}",
        ran.out
    );
    // The operations of the explanation are in the dependency as well.
    assert!(line("why: ").contains("atomicity violation"), "{}", ran.out);
}

/// The package of the example `bank`.
fn bank() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["Cargo.toml", "src/lib.rs", "tests/loopback.rs"] {
        let text = std::fs::read(root().join("examples/cargo/bank").join(name)).expect("the example");
        sandbox.write(name, text);
    }
    sandbox
}

/// The lines about tests, without the figures, and the summary without the time.
fn lines(ran: &Ran) -> Vec<&str> {
    let lines = ran.out.lines().filter(|line| line.starts_with("test "));
    lines.map(|line| line.split([',', '(']).next().unwrap_or(line).trim_end()).map(untimed).collect()
}

fn untimed(line: &str) -> &str {
    line.split("; finished in").next().unwrap_or(line)
}

/// The only schedule of this test.
#[track_caller]
fn schedule(ran: &Ran, test: &str) -> String {
    let line = ran.out.lines().find(|line| line.starts_with(&format!("test {test} ..."))).expect("a line");
    line.split_once(" schedule: ").unwrap_or_else(|| panic!("no schedule in {line}")).1.to_owned()
}

#[test]
fn bugs_are_found_and_replayed() {
    let sandbox = bank();
    let args = ["test", "--bound", "1", "--junit", "junit.xml", "--sarif", "out.sarif", "--color", "never"];
    let ran = sandbox.cargo_heisen(&args).expect(1);
    assert_eq!(
        lines(&ran),
        [
            "test tests::deposits ... ok",
            "test tests::interest ... FAILED",
            "test tests::many_deposits ... ignored",
            "test tests::transfers ... FAILED",
            "test a_deposit_by_wire ... ok",
            "test result: FAILED. 2 passed; 2 failed; 1 ignored; 0 filtered out",
        ],
        "{}",
        ran.out
    );
    for words in [
        "\nrunning 4 tests of bank (src/lib.rs)\n",
        "\nrunning 1 test of bank::loopback (tests/loopback.rs)\n",
        "test tests::deposits ... ok (bound 1, ",
        "test tests::interest ... FAILED (1 preemption, execution ",
        "\n---- tests::interest (bank) ----\npanic: panicked at src/lib.rs:59:9: assertion `left == right` failed: a \
         deposit is lost\n",
        "is preempted before lock(",
        "\n    25 | *self.balance.lock().unwrap() = balance + balance * percent / 100;\n",
        "\n---- tests::transfers (bank) ----\ndeadlock: T1 waits for ",
        "\n    31 | let mut to = to.balance.lock().unwrap();\n",
        "\nnot controlled:\n",
    ] {
        assert!(ran.out.contains(words), "{words:?} is not in\n{}", ran.out);
    }
    // The normal build is not even started.
    assert!(!sandbox.path("target/debug").exists());
    junit(&sandbox);
    sarif(&sandbox);

    let lost = schedule(&ran, "tests::interest");
    assert!(lost.starts_with("target/heisen/schedules/bank-tests.interest-"), "{lost}");
    let again = sandbox.cargo_heisen(&["replay", &lost]).expect(1);
    assert!(again.out.contains("a deposit is lost"), "{}", again.out);
    assert!(again.messages().is_empty(), "{}", again.err);
    // The schedule names the executable, so `heisen replay` works without cargo, too.
    sandbox.heisen(&["replay", &lost]).expect(1);
    sandbox.cargo_heisen(&["replay", &schedule(&ran, "tests::transfers")]).expect(1);

    // The profile strips release builds, but `cargo heisen` needs symbols. Replay uses the same profile.
    let text = std::fs::read_to_string(sandbox.path("Cargo.toml")).expect("the manifest");
    sandbox.write("Cargo.toml", text + "[profile.release]\nstrip = true\n");
    let ran = sandbox.cargo_heisen(&["test", "--release", "interest", "-o", "found"]).expect(1);
    assert!(ran.out.contains("at src/lib.rs:59\n"), "{}", ran.out);
    let again = sandbox.cargo_heisen(&["replay", &schedule(&ran, "tests::interest")]).expect(1);
    assert!(again.err.contains("`release` profile") && again.messages().is_empty(), "{}", again.err);

    // The bug is fixed. Replay builds the new version and reports that.
    let text = std::fs::read_to_string(sandbox.path("src/lib.rs")).expect("the source");
    let fixed = text.replace(
        "let balance = self.balance();\n        *self.balance.lock().unwrap() = balance + balance * percent / 100;",
        "let mut balance = self.balance.lock().unwrap();\n        *balance += *balance * percent / 100;",
    );
    assert_ne!(text, fixed);
    sandbox.write("src/lib.rs", &fixed);
    let ran = sandbox.cargo_heisen(&["replay", &lost]);
    assert!(ran.err.contains("has changed since the schedule was made"), "{}", ran.err);
    assert!(ran.code == 0 || ran.code == 4, "{}: {}", ran.code, ran.err);
    let ran = sandbox.cargo_heisen(&["test", "interest", "-q"]).expect(0);
    assert_eq!(lines(&ran), ["test result: ok. 1 passed; 0 failed; 0 ignored; 4 filtered out"]);
    assert!(!ran.err.contains("Finished"), "{}", ran.err);
}

/// Checks that the SARIF file of the package is valid and complete.
#[track_caller]
fn sarif(sandbox: &Sandbox) {
    let text = std::fs::read_to_string(sandbox.path("out.sarif")).expect("the file");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let schema = serde_json::from_str(include_str!("../sarif.schema.json")).expect("JSON");
    Schema::new(schema).assert_valid("#", &document);
    let runs = document["runs"].as_array().expect("a list");
    let results: Vec<&Value> = runs.iter().filter_map(|run| run["results"].get(0)).collect();
    // An ignored test has no run.
    assert_eq!((runs.len(), results.len()), (4, 2), "{document:#}");
    let rules: Vec<&Value> = results.iter().map(|result| &result["ruleId"]).collect();
    assert_eq!(rules, ["panic", "deadlock"]);
    for result in results {
        let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(uri, "src/lib.rs", "{result:#}");
        assert!(result["codeFlows"][0]["threadFlows"][0].is_object(), "{result:#}");
    }
}

/// Checks that the JUnit file of the package is valid and complete.
#[track_caller]
fn junit(sandbox: &Sandbox) {
    let text = std::fs::read_to_string(sandbox.path("junit.xml")).expect("the file");
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let all = document.root_element();
    let counts = |node: roxmltree::Node<'_, '_>| {
        ["tests", "failures", "errors", "skipped"]
            .map(|name| node.attribute(name).expect("a count").to_owned())
    };
    assert_eq!(all.tag_name().name(), "testsuites");
    assert_eq!(counts(all), ["5", "2", "0", "1"]);
    let suites: Vec<_> = all.children().filter(|node| node.is_element()).collect();
    assert_eq!(
        suites.iter().map(|s| s.attribute("name")).collect::<Vec<_>>(),
        [Some("bank"), Some("bank::loopback")]
    );
    assert_eq!(counts(suites[0]), ["4", "2", "0", "1"]);
    let cases = suites[0].children().filter(|node| node.is_element());
    let case = |node: roxmltree::Node<'_, '_>| {
        let inner = node.first_element_child().map_or("", |inner| inner.tag_name().name());
        (node.attribute("name").expect("a name").to_owned(), inner.to_owned())
    };
    let expected = [
        ("deposits", "system-out"),
        ("interest", "failure"),
        ("many_deposits", "skipped"),
        ("transfers", "failure"),
    ];
    let expected = expected.map(|(name, inner)| (format!("tests::{name}"), inner.to_owned()));
    assert_eq!(cases.map(case).collect::<Vec<_>>(), expected);
    let failure = document.descendants().find(|node| node.has_tag_name("failure")).expect("a failure");
    assert_eq!(failure.attribute("type"), Some("panic"));
    assert!(failure.attribute("message").is_some_and(|words| words.ends_with("a deposit is lost")));
    assert!(failure.text().is_some_and(|words| words.contains("\n  replay it: cargo heisen replay target/")));
}

const COUNTER: &str = r#"
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub static mut PLAIN: u32 = 0;
pub static ATOMIC: AtomicU32 = AtomicU32::new(0);

fn twice(f: fn()) {
    let thread = std::thread::spawn(f);
    f();
    thread.join().unwrap();
}

#[test]
fn plain() {
    // SAFETY: none, it is the race that is wanted.
    twice(|| unsafe { PLAIN += 1 });
    // SAFETY: the other thread is done.
    assert_eq!(unsafe { PLAIN }, 2, "one is lost");
}

#[test]
fn atomic() {
    twice(|| drop(ATOMIC.fetch_add(1, Relaxed)));
    assert_eq!(ATOMIC.load(Relaxed), 2);
}

#[test]
fn atomic_in_two_steps() {
    twice(|| ATOMIC.store(ATOMIC.load(Relaxed) + 1, Relaxed));
    assert_eq!(ATOMIC.load(Relaxed), 2);
}
"#;

/// No lock is called in these tests: without instrumentation no decision would be seen.
#[test]
fn accesses_of_memory_are_explored() {
    let sandbox = package(&[("src/lib.rs", COUNTER)]);
    let ran = sandbox.cargo_heisen(&["test"]).expect(1);
    assert_eq!(
        lines(&ran),
        [
            "test atomic ... ok",
            "test atomic_in_two_steps ... FAILED",
            "test plain ... FAILED",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 filtered out",
        ],
        "{}",
        ran.out
    );
    for test in ["plain", "atomic_in_two_steps"] {
        assert!(ran.out.contains(&format!("test {test} ... FAILED (1 preemption, ")), "{}", ran.out);
        sandbox.cargo_heisen(&["replay", &schedule(&ran, test)]).expect(1);
    }
}

/// Two threads add to a counter in two steps, or to another one under a lock.
const ADDING: &str = r#"
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Mutex;

static COUNT: AtomicU32 = AtomicU32::new(0);
static LOCKED: Mutex<u32> = Mutex::new(0);

fn in_two_steps() {
    COUNT.store(COUNT.load(SeqCst) + 1, SeqCst);
}

fn under_a_lock() {
    *LOCKED.lock().unwrap() += 1;
}

fn main() {
    let add = if std::env::args().count() > 1 { under_a_lock } else { in_two_steps };
    let other = std::thread::spawn(add);
    add();
    other.join().unwrap();
    assert_eq!(COUNT.load(SeqCst) + *LOCKED.lock().unwrap(), 2);
}
"#;

/// The locks of Rust are futexes, and what its standard library does beside the program does not get in the way.
#[test]
fn the_solver_driven_search_builds_symbolically() {
    let sandbox = package(&[("src/main.rs", ADDING)]);
    let search = ["run", "--strategy", "causal", "--no-explain", "--no-minimise", "--json", "-"];
    let ran = sandbox.cargo_heisen(&search).expect(1);
    let bug = ran.json();
    assert_eq!(bug["findings"][0]["kind"], "panic", "{bug:#}");
    assert!(bug["executions"].as_u64().is_some_and(|count| count <= 4), "{bug:#}");
    // The schedule file says how to build the program, which lies in a directory of its own.
    let schedule = bug["findings"][0]["schedule"].as_str().expect("a schedule file");
    let text = std::fs::read_to_string(sandbox.path(schedule)).expect("the schedule file");
    assert!(text.contains("# cargo build [\"--symbolic\",\"--bins\"]"), "{text}");
    assert!(text.contains("/target/heisen/symbolic/"), "{text}");
    sandbox.cargo_heisen(&["replay", schedule]).expect(1);
    // The same build, with an argument.
    let ran = sandbox.cargo_heisen(&[&search[..], &["--rounds", "2", "--", "fixed"]].concat()).expect(0);
    let proven = ran.json();
    assert_eq!((&proven["verdict"], &proven["complete"]), (&"clean".into(), &true.into()), "{proven:#}");
    assert_eq!(proven["rounds"], 2, "{proven:#}");
}

const KINDS: &str = r#"
#[cfg(test)]
mod tests {
    #[test]
    #[should_panic]
    fn panics() {
        panic!("as it should");
    }

    #[test]
    #[should_panic(expected = "this")]
    fn panics_otherwise() {
        panic!("that");
    }

    #[test]
    #[should_panic]
    fn panics_not() {}

    #[test]
    fn returns_an_error() -> Result<(), String> {
        Err("not today".into())
    }

    #[test]
    fn fails_always() {
        assert!(std::env::args().count() == 0, "always");
    }

    #[test]
    #[ignore]
    fn runs_where_cargo_would() {
        assert!(std::path::Path::new("src/lib.rs").exists());
        assert_eq!(std::env::var("CARGO_PKG_NAME").unwrap(), "crate-a");
        assert_eq!(std::env::var("CARGO_PKG_VERSION_MINOR").unwrap(), "2");
        assert_eq!(std::env::var("CARGO_MANIFEST_DIR").unwrap(), env!("CARGO_MANIFEST_DIR"));
    }
}
"#;

const OWN_MAIN: &str = r#"
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let sum = std::thread::spawn(move || words.len()).join().unwrap();
    std::process::exit(sum as i32);
}
"#;

#[test]
fn all_kinds_of_tests() {
    let sandbox = package(&[("src/lib.rs", KINDS), ("tests/own.rs", OWN_MAIN)]);
    let own = "[workspace]\n[[test]]\nname = \"own\"\nharness = false\n";
    sandbox.write("Cargo.toml", manifest("crate-a", own));
    let ran = sandbox.cargo_heisen(&["test", "--json", "-"]).expect(1);
    let results: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    results.iter().for_each(|result| Schema::read().assert_valid("#/$defs/test", result));
    let verdicts: Vec<_> = results.iter().map(|r| (r["test"].as_str(), r["verdict"].as_str())).collect();
    let expected = [
        ("tests::fails_always", "bug"),
        ("tests::panics", "clean"),
        ("tests::panics_not", "bug"),
        ("tests::panics_otherwise", "bug"),
        ("tests::returns_an_error", "bug"),
        ("tests::runs_where_cargo_would", "ignored"),
        ("own", "clean"),
    ];
    assert_eq!(verdicts, expected.map(|(test, verdict)| (Some(test), Some(verdict))), "{}", ran.err);
    assert_eq!(results[0]["findings"][0]["preemptions"], 0);
    assert_eq!(results[0]["findings"][0]["executions_to_find"], 1);
    assert_eq!((&results[6]["package"], &results[6]["binary"]), (&"crate-a".into(), &"crate-a::own".into()));
    // The text for people goes to standard error.
    assert!(
        ran.err.contains("test result: FAILED. 2 passed; 4 failed; 1 ignored; 0 filtered out"),
        "{}",
        ran.err
    );

    let ran = sandbox.cargo_heisen(&["test", "--", "--ignored"]).expect(0);
    assert_eq!(
        lines(&ran),
        [
            "test tests::runs_where_cargo_would ... ok",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 6 filtered out"
        ]
    );
    // A `main` of its own gets the arguments after `--`, and here returns their number.
    let ran = sandbox.cargo_heisen(&["test", "--test", "own", "--", "--nocapture"]).expect(1);
    assert!(ran.out.contains("the program ended with exit status 1, not 0"), "{}", ran.out);
    sandbox.cargo_heisen(&["replay", &schedule(&ran, "own")]).expect(1);

    // Filters, in a package that is already built.
    for (args, expected) in [
        (&["panics", "--skip", "otherwise", "--", "--skip", "not"][..], &["panics ... ok"][..]),
        (&["tests::panics", "--exact"], &["panics ... ok"]),
        (&["-E", "test(/ics$/) | binary(own)"], &["panics ... ok", "own ... ok"]),
        (&["-E", "kind(test)"], &["own ... ok"]),
        (&["-E", "package(crate-*) & test(where)"], &["runs_where_cargo_would ... ignored"]),
    ] {
        let ran = sandbox.cargo_heisen(&[&["test"], args].concat()).expect(0);
        let found: Vec<String> = lines(&ran).iter().map(|line| line.replace("tests::", "")).collect();
        let expected: Vec<String> = expected.iter().map(|line| format!("test {line}")).collect();
        assert_eq!(found[..found.len() - 1], expected, "{args:?}");
    }
    let ran = sandbox.cargo_heisen(&["test", "no_such_test"]).expect(0);
    assert_eq!(ran.messages(), ["heisen: no test matches; 7 tests filtered out"]);
    assert_eq!(lines(&ran), ["test result: ok. 0 passed; 0 failed; 0 ignored; 7 filtered out"]);
}

const QUEUE: &str = r#"
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// An allocator of the program's own, which counts.
struct Counting;
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(1, SeqCst);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        System.dealloc(at, layout)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(macros::Nothing)]
pub struct Queue;

#[test]
fn allocates() {
    let word = std::thread::spawn(|| format!("{}-{}", env!("FROM_SCRIPT"), common::ONE)).join().unwrap();
    assert_eq!(word, "built-1");
    assert!(ALLOCATED.load(SeqCst) > 0);
}

#[cfg(feature = "extra")]
#[test]
fn extra() {}

#[cfg(configured)]
#[test]
fn configured() {}
"#;

const MACROS: &str = r#"
#[proc_macro_derive(Nothing)]
pub fn nothing(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    assert_eq!(std::thread::spawn(|| 1).join().unwrap(), 1);
    Default::default()
}

#[test]
fn on_the_host() {}
"#;

/// A workspace with members that depend on each other, a build script, a procedural macro, an allocator, and
/// aborts instead of panics.
#[test]
fn a_workspace() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"queue\", \"macros\", \"common\"]\nresolver = \"2\"\n[profile.dev]\npanic = \"abort\"\n",
    );
    let dependencies = "[dependencies]\nmacros = { path = \"../macros\" }\ncommon = { path = \"../common\" }\n\
                        [features]\nextra = []\n[lints.rust]\nunexpected_cfgs = \"allow\"\n";
    sandbox.write("queue/Cargo.toml", manifest("queue", dependencies));
    sandbox.write("queue/build.rs", "fn main() { println!(\"cargo:rustc-env=FROM_SCRIPT=built\"); }");
    sandbox.write("queue/src/lib.rs", QUEUE);
    sandbox.write("macros/Cargo.toml", manifest("macros", "[lib]\nproc-macro = true\n"));
    sandbox.write("macros/src/lib.rs", MACROS);
    sandbox.write("common/Cargo.toml", manifest("common", ""));
    sandbox.write("common/src/lib.rs", "pub const ONE: u32 = 1;\n#[test]\nfn one() { assert_eq!(ONE, 1); }");
    sandbox.write(
        "common/src/bin/tool.rs",
        "fn main() { assert_eq!(std::env::args().count(), 2, \"no word\"); }",
    );
    sandbox.write("common/src/bin/idle.rs", "fn main() {}");
    sandbox.write(".cargo/config.toml", "[build]\nrustflags = [\"--cfg\", \"configured\"]\n");

    let ran = sandbox.cargo_heisen(&["test", "--workspace"]).expect(0);
    assert_eq!(
        lines(&ran),
        [
            "test one ... ok",
            "test on_the_host ... ok",
            "test allocates ... ok",
            "test configured ... ok",
            "test result: ok. 4 passed; 0 failed; 0 ignored; 0 filtered out",
        ],
        "{}\n{}",
        ran.out,
        ran.err
    );
    let ran = sandbox.cargo_heisen(&[
        "test",
        "--workspace",
        "--exclude",
        "macros",
        "-F",
        "queue/extra",
        "-E",
        "package(queue)",
    ]);
    let ran = ran.expect(0);
    assert_eq!(lines(&ran)[..3], ["test allocates ... ok", "test configured ... ok", "test extra ... ok"]);
    let ran = sandbox
        .run(sandbox.cargo_command(&["test", "-p", "queue"]).env("RUSTFLAGS", "--cfg unused"))
        .expect(0);
    assert_eq!(
        lines(&ran)[1],
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 filtered out",
        "{}",
        ran.out
    );

    // Programs: which one runs, where it is, what it does.
    let ran = sandbox
        .cargo_heisen(&["run"])
        .fails_after_cargo(2, "several programs; choose one with --bin: idle, tool");
    assert!(ran.out.is_empty(), "{}", ran.out);
    let ran = sandbox.cargo_heisen(&["build", "--bin", "tool"]).expect(0);
    let built = "target/heisen/x86_64-unknown-linux-gnu/debug/tool";
    assert_eq!(ran.out, format!("{built}\n"));
    // The built program runs without Heisen.
    assert!(Command::new(sandbox.path(built)).arg("word").status().expect("it starts").success());
    let ran = sandbox.cargo_heisen(&["run", "--bin", "tool", "--", "word"]).expect(0);
    assert!(ran.out.starts_with("nothing to explore: only one thread ran\n"), "{}", ran.out);
    let ran = sandbox.cargo_heisen(&["run", "--bin", "tool", "--json", "result.json"]).expect(1);
    assert!(ran.out.contains("no word"), "{}", ran.out);
    let result = std::fs::read_to_string(sandbox.path("result.json")).expect("the result");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    let found = &result["findings"][0];
    // The program aborts instead of panicking.
    assert_eq!(found["kind"], "crash");
    let ran = sandbox.cargo_heisen(&["replay", found["schedule"].as_str().expect("a path")]).expect(1);
    assert!(ran.messages().is_empty(), "{}", ran.err);
}

#[test]
fn bad_input() {
    let sandbox = Sandbox::new();
    // Only cargo's own message appears.
    let ran = sandbox.cargo_heisen(&["test"]).expect(2);
    assert!(ran.err.starts_with("error: could not find `Cargo.toml`"), "{}", ran.err);
    assert!(ran.messages().is_empty() && ran.out.is_empty() && ran.made.is_empty(), "{ran:?}");
    sandbox.cargo_heisen(&["test", "-E", "test(a) test(b)"]).fails(
        2,
        &["the filter expression is wrong: expected an operator", "\n  test(a) test(b)\n          ^\n"],
    );
    sandbox
        .cargo_heisen(&["test", "--", "--shuffle"])
        .fails(2, &["after --: unexpected argument '--shuffle'"]);
    sandbox.cargo_heisen(&["test", "--bound", "many"]).fails(2, &["invalid value 'many' for '--bound <N>'"]);
    sandbox.cargo_heisen(&["tset"]).fails(2, &["unrecognized subcommand 'tset'"]);
    sandbox.cargo_heisen(&["replay", "none.schedule"]).fails(2, &["none.schedule: not found"]);
    sandbox
        .run(sandbox.cargo_command(&["test"]).env("CARGO", "/nowhere/cargo"))
        .fails(2, &["cargo cannot be started", "install Rust, or set CARGO"]);
    let help = sandbox.cargo_heisen(&["--help"]).expect(0);
    assert!(help.out.contains("Usage: cargo heisen <COMMAND>"), "{}", help.out);

    let sandbox = package(&[("src/lib.rs", "#[test]\nfn wrong() { let x: u32 = \"\"; }")]);
    let ran = sandbox.cargo_heisen(&["test"]).expect(2);
    assert!(ran.err.contains("error[E0308]: mismatched types") && ran.messages().is_empty(), "{}", ran.err);
    assert!(ran.err.contains("could not compile `crate-a`") && ran.out.is_empty(), "{ran:?}");
    sandbox.cargo_heisen(&["test", "--junit", "no/where.xml"]).fails(2, &["no is not a directory"]);
    sandbox
        .cargo_heisen(&["test", "--junit", "src"])
        .fails(2, &["src is a directory; name a file for --junit"]);
    sandbox.cargo_heisen(&["run"]).expect(2);

    let sandbox = package(&[("src/lib.rs", "")]);
    let ran = sandbox.cargo_heisen(&["test"]).expect(0);
    assert_eq!(ran.messages(), ["heisen: there are no tests"]);
    sandbox.cargo_heisen(&["run"]).fails_after_cargo(2, "there is no program here, only libraries");
}

/// A test that cannot be explored is not a bug, and the other tests are explored.
#[test]
fn tests_that_cannot_be_explored() {
    let text = "#[test]\nfn computes() { let mut n = 0u64; loop { n = std::hint::black_box(n + 1); } }\n\
                #[test]\nfn well() {}";
    let sandbox = package(&[("src/lib.rs", text), ("tests/silent.rs", OWN_MAIN)]);
    let ran = sandbox.cargo_heisen(&["test", "--hang", "200ms", "--lib", "--junit", "junit.xml"]).expect(3);
    assert_eq!(
        lines(&ran),
        [
            "test computes ... not explored",
            "test well ... ok",
            "test result: FAILED. 1 passed; 0 failed; 0 ignored; 0 filtered out; 1 not explored",
        ]
    );
    let words = "\n---- computes (crate-a) ----\nthe program took 0.2 s of processor time without reaching a scheduling point";
    assert!(ran.out.contains(words), "{}", ran.out);
    let text = std::fs::read_to_string(sandbox.path("junit.xml")).expect("the file");
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(document.root_element().attribute("errors"), Some("1"));
    // A test program with a `main` of its own, which the manifest does not declare. Heisen takes it for a
    // harness, but it does not list its tests.
    let text = std::fs::read_to_string(sandbox.path("Cargo.toml")).expect("the manifest");
    assert!(!text.contains("harness"));
    sandbox.write("src/lib.rs", "");
    let main = "#![no_main]\n#[no_mangle]\npub extern \"C\" fn main() -> i32 { 7 }";
    sandbox.write("tests/silent.rs", main);
    let ran = sandbox.cargo_heisen(&["test", "--test", "silent"]).expect(3);
    assert!(ran.out.contains("does not list its tests (exit status: 7)"), "{}", ran.out);
    assert!(ran.out.contains("set harness = false"), "{}", ran.out);
}

#[test]
fn an_interrupted_test_can_be_continued() {
    let sandbox = package(&[("src/lib.rs", "#[test]\nfn a() {}\n#[test]\nfn b() {}")]);
    sandbox.cargo_heisen(&["test", "--executions", "1"]).expect(0);
    let mut command = Command::new(heisen_testkit::cargo_heisen_path());
    command
        .args(["test", "--strategy", "random", "--time", "90s", "--seed", "5"])
        .current_dir(sandbox.path(""));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // When their number is printed, the tests have been listed. After that the first test runs.
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut out = String::new();
    while !out.contains("running 2 tests") {
        assert_ne!(reader.read_line(&mut out).expect("text"), 0, "{out}");
    }
    assert!(soon(|| !sandbox.processes().is_empty()));
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(signalled.success() && reader.read_to_string(&mut out).is_ok());
    let output = child.wait_with_output().expect("it has ended");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{out}\n{err}");
    assert!(
        out.contains("test a ... interrupted\n") && out.contains("; 1 not explored; 1 not begun;"),
        "{out}"
    );
    let saved = "target/heisen/schedules/search.json";
    assert!(
        err.ends_with(&format!("heisen: interrupted; continue with: heisen check --resume {saved}\n")),
        "{err}"
    );
    let ran = sandbox.heisen(&["check", "--resume", saved, "--executions", "10"]).expect(0);
    assert!(ran.out.contains("random executions (seed 5)"), "{}", ran.out);
}
