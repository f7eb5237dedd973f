//! Tests of `heisen check --races` on real instrumented programs. Each program in `races/` states in comments
//! which pairs of accesses race, by labels on its lines. Compiled with `CLEAN`, it must have no race.

use heisen_engine::program::instrument;
use heisen_testkit::{Ran, Sandbox, usual_or_nightly};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles and links a program with instrumentation.
fn instrument(directory: &Path, source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = directory.join(name);
    let mut command = match source.extension().and_then(|e| e.to_str()) {
        Some("rs") => {
            let mut rustc = Command::new("rustc");
            rustc.args(["-g", "--edition=2021"]).args(instrument::rust_flags().expect("the flags"));
            rustc.args(flags).arg(source).arg("-o").arg(&program);
            rustc
        }
        other => {
            let mut compiler = Command::new(heisen_testkit::heisen_path());
            compiler.arg(if other == Some("cpp") { "c++" } else { "cc" });
            compiler.args(["-g", "-pthread"]).args(flags).arg(source).arg("-o").arg(&program);
            compiler
        }
    };
    let output = command.output().expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The path of a program in `races/`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/races").join(name)
}

/// The pairs that a source says race. Each side is the kind of access and its line.
fn stated(text: &str) -> BTreeSet<String> {
    let line_of = |label: &str| {
        let number = text.lines().position(|line| line.ends_with(&format!("// @{label}")));
        number.unwrap_or_else(|| panic!("no label {label}")) + 1
    };
    let side = |side: &str| {
        let (kind, label) = side.trim().rsplit_once(' ').expect("an access and a label");
        format!("{kind} {}", line_of(label))
    };
    let pair = |line: &str| {
        let (one, other) = line.split_once('|').expect("two accesses");
        sorted(side(one), side(other))
    };
    text.lines().filter_map(|line| line.strip_prefix("// race: ")).map(pair).collect()
}

fn sorted(one: String, other: String) -> String {
    let mut both = [one, other];
    both.sort();
    both.join(" | ")
}

/// The pairs that a check has reported, in the same form.
fn reported(json: &Value) -> BTreeSet<String> {
    let side = |access: &Value| {
        let place = access["place"].as_str().expect("a place");
        let line = place.rsplit_once(':').map_or(place, |(_, line)| line);
        format!("{} {line}", access["access"].as_str().expect("a kind"))
    };
    let races = json["races"].as_array().expect("a list");
    let pairs: Vec<String> =
        races.iter().map(|race| sorted(side(&race["first"]), side(&race["second"]))).collect();
    let set: BTreeSet<String> = pairs.iter().cloned().collect();
    assert_eq!(set.len(), pairs.len(), "some are reported twice: {pairs:?}");
    set
}

/// Runs a check that reports data races. Returns its JSON, too.
#[track_caller]
fn check(sandbox: &Sandbox, program: &Path, args: &[&str]) -> (Ran, Value) {
    let program = program.to_str().expect("a name");
    let all = [&["check", "--races", "--json", "-"], args, &["--", program]].concat();
    let ran = sandbox.heisen(&all);
    let json = ran.json();
    (ran, json)
}

/// Checks a program and its clean version.
#[track_caller]
fn has_just_the_races_it_states(name: &str) {
    let source = source(name);
    let sandbox = Sandbox::new();
    let text = std::fs::read_to_string(&source).expect("a source");
    let stated = stated(&text);
    let program = instrument(&sandbox.path(""), &source, "program", &[]);
    let (ran, json) = check(&sandbox, &program, &[]);
    assert_eq!(reported(&json), stated, "{name}\n{}", ran.err);
    assert_eq!(ran.code, i32::from(!stated.is_empty()), "{json:#}");
    assert_eq!(json["complete"], true, "{json:#}");
    // The standard libraries of Rust and C++ are not instrumented.
    let weak = json["not_controlled"].to_string().contains("memory orders: ");
    assert_eq!(json["sound"], name.ends_with(".c") && !weak, "{json:#}");
    for (race, finding) in json["races"].as_array().unwrap().iter().zip(json["findings"].as_array().unwrap())
    {
        assert_eq!(finding["kind"], "data-race");
        assert_eq!(finding["schedule"], race["schedule"]);
        assert!(race["executions"].as_u64().unwrap() > 0);
        let again = sandbox.heisen(&["replay", race["schedule"].as_str().unwrap()]).expect(1);
        assert!(again.out.contains(finding["message"].as_str().unwrap()), "{}", again.out);
    }
    let clean: &[&str] = if name.ends_with(".rs") { &["--cfg", "clean"] } else { &["-DCLEAN"] };
    let twin = instrument(&sandbox.path(""), &source, "twin", clean);
    let (ran, json) = check(&sandbox, &twin, &[]);
    assert_eq!(reported(&json), BTreeSet::new(), "the twin of {name}");
    assert_eq!((ran.code, &json["verdict"]), (0, &"clean".into()), "{json:#}");
}

macro_rules! programs {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            has_just_the_races_it_states($name);
        })*

        #[test]
        fn every_program_is_checked() {
            let directory = source("");
            let there = std::fs::read_dir(directory).expect("the programs").map(|e| e.expect("a file").file_name());
            let there: BTreeSet<String> = there.map(|name| name.to_string_lossy().into_owned()).collect();
            let mut listed: BTreeSet<String> = [$($name.to_owned(),)*].into();
            listed.extend(["interpreter.c", "oracle.rs"].map(str::to_owned));
            assert_eq!(there, listed);
        }
    };
}

programs! {
    a_counter: "counter.c",
    a_lock_each: "other_lock.c",
    a_message: "message.c",
    a_plain_flag: "plain_flag.c",
    an_atomic_and_a_plain_access: "mixed.c",
    fences: "fences.c",
    double_checked_locking: "double_checked.c",
    neighbours: "neighbours.c",
    overlapping_accesses: "overlap.c",
    bit_fields: "bitfield.c",
    a_copy: "copy.c",
    functions_of_the_c_library: "strings.c",
    start_and_join: "start_join.c",
    a_read_write_lock: "rwlock.c",
    a_semaphore: "semaphore.c",
    a_barrier: "barrier.c",
    once: "once.c",
    once_and_its_neighbour: "once_neighbour.c",
    once_and_what_follows: "once_after.c",
    a_static_variable_of_cpp: "guard.cpp",
    a_condition_variable: "condition.c",
    a_pipe: "pipe.c",
    a_signal_handler: "handler.c",
    a_release_sequence: "sequence.c",
    a_store_of_the_releasing_thread: "sequence_own_store.c",
    a_store_of_a_thread_in_between: "sequence_other_store.c",
    a_store_after_a_fence: "sequence_fence.c",
    a_compare_exchange_that_fails: "sequence_failed.c",
    a_spin_lock: "spin.c",
    stack_and_heap: "locals.c",
    classes_of_cpp: "classes.cpp",
    rust_statics: "counter.rs",
    rust_atomics: "message.rs",
    rust_arc: "arc.rs",
}

mod oracle;
use oracle::{Program, races_in};

/// The interpreter with one program, in its own sandbox.
struct Interpreted {
    sandbox: Sandbox,
    program: Program,
}

impl Interpreted {
    fn new(interpreter: &Path, program: Program) -> Interpreted {
        let sandbox = Sandbox::new();
        std::fs::copy(interpreter, sandbox.path("interpreter")).expect("a copy");
        Interpreted { sandbox, program }
    }

    /// Checks the program. Returns the reported races, each as two operations, all executed orders, and the
    /// JSON.
    fn check(&self, args: &[&str]) -> (BTreeSet<String>, Vec<String>, Value) {
        let threads: Vec<&str> = self.program.threads.iter().map(String::as_str).collect();
        let start = ["check", "--races", "--json", "-"];
        let all = [&start, args, &["--", "./interpreter", "orders"], &threads[..]].concat();
        let ran = self.sandbox.heisen(&all);
        let json = ran.json();
        let side = |access: &Value| {
            let text = |name: &str| access[name].as_str().expect("a text").to_owned();
            format!("{} {}", text("access"), text("function"))
        };
        let races = json["races"].as_array().expect("a list");
        let pairs = races.iter().map(|race| sorted(side(&race["first"]), side(&race["second"])));
        let orders = std::fs::read_to_string(self.sandbox.path("orders")).expect("what was executed");
        (pairs.collect(), orders.lines().map(str::to_owned).collect(), json)
    }
}

/// Runs a test for many seeds, on all processors.
fn for_seeds(seeds: std::ops::Range<u64>, what: impl Fn(&Path, u64) + Sync) {
    let directory = heisen_testkit::scratch();
    let interpreter = instrument(directory.path(), &source("interpreter.c"), "interpreter", &[]);
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    what(&interpreter, seed);
                }
            });
        }
    });
}

#[test]
fn the_races_of_one_execution_are_those_that_its_order_has() {
    let check = |interpreter: &Path, seed: u64| {
        let program = if seed < 32 { Program::random(seed) } else { Program::sequences(seed) };
        let one = Interpreted::new(interpreter, program);
        let (reported, orders, json) =
            one.check(&["--strategy", "random", "--executions", "1", "--seed", &seed.to_string()]);
        // The close-ups followed the same order.
        assert!(orders.iter().all(|order| *order == orders[0]), "{orders:?}");
        assert_eq!(reported, races_in(&orders[0]), "seed {seed}: {:?}\n{}", one.program.threads, orders[0]);
        assert_eq!(json["executions"], 1);
    };
    for_seeds(0..usual_or_nightly(16, 32), check);
    for_seeds(32..usual_or_nightly(48, 80), check);
}

#[test]
fn a_load_does_not_race_with_what_it_acquires() {
    // A plain write of the same variable, then a store, and in the other thread an acquire load: no race.
    for_seeds(0..1, |interpreter, _| {
        let threads = ["w3s0", "a0"].map(str::to_owned).to_vec();
        let one = Interpreted::new(interpreter, Program { threads });
        let (reported, orders, _) = one.check(&["--executions", "1"]);
        assert_eq!(orders, ["0w3 1s0 8a0 "]);
        assert_eq!((reported, races_in(&orders[0])), Default::default());
        // Without the acquire there is a race.
        let threads = ["w3s0", "q0"].map(str::to_owned).to_vec();
        let one = Interpreted::new(interpreter, Program { threads });
        let (reported, orders, _) = one.check(&["--executions", "1"]);
        assert_eq!(reported, races_in(&orders[0]));
        assert_eq!(reported.len(), 1);
    });
}

#[test]
fn the_races_of_a_whole_search_are_those_that_its_orders_have() {
    for_seeds(100..112, |interpreter, seed| {
        let one = Interpreted::new(interpreter, Program::random(seed));
        let (reported, orders, json) = one.check(&["--bound", "1"]);
        assert_eq!(json["complete"], true, "{json:#}");
        let all: BTreeSet<String> = orders.iter().flat_map(|order| races_in(order)).collect();
        assert_eq!(reported, all, "seed {seed}: {:?}", one.program.threads);
    });
}

#[test]
fn a_message_needs_a_release_and_an_acquire() {
    let sandbox = Sandbox::new();
    for store in ["relaxed", "release", "seq_cst"] {
        for load in ["relaxed", "consume", "acquire", "seq_cst"] {
            let flags = [format!("-DRELEASE=memory_order_{store}"), format!("-DACQUIRE=memory_order_{load}")];
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let name = format!("{store}-{load}");
            let program = instrument(&sandbox.path(""), &source("message.c"), &name, &flags);
            let (_, json) = check(&sandbox, &program, &[]);
            let races = usize::from(store == "relaxed" || load == "relaxed");
            assert_eq!(json["races"].as_array().unwrap().len(), races, "{name}: {json:#}");
        }
    }
}

/// A program with two races, one of them in a function with two callers. That race makes the assertion fail
/// if `FAILS` is set.
const TWO: &str = "\
#include <assert.h>
#include <pthread.h>
static int counter;
static struct { int size; int items[4]; } queue;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void bump(int *at) { (*at)++; }
static void *worker(void *none) {
    pthread_mutex_lock(&lock);
    queue.items[2] = 1;
    pthread_mutex_unlock(&lock);
    bump(&counter);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    queue.items[2] = 2;
    bump(&counter);
    pthread_join(thread, 0);
    assert(counter == 2 || !FAILS);
    return 0;
}
";

fn two(sandbox: &Sandbox, name: &str, fails: bool) -> PathBuf {
    let source = sandbox.write(&format!("{name}.c"), TWO);
    instrument(&sandbox.path(""), &source, name, &[if fails { "-DFAILS=1" } else { "-DFAILS=0" }])
}

#[test]
fn a_report_has_both_accesses_with_all_that_is_known() {
    let sandbox = Sandbox::new();
    two(&sandbox, "two", false);
    let ran = sandbox.heisen(&["check", "--races", "--", "./two"]).expect(1);
    for words in [
        "data race: queue.items[2]: T0 writes 4 bytes at two.c:17, T1 writes 4 bytes at two.c:9, and nothing orders the two",
        "  T0 (main) writes 4 bytes, main at two.c:17\n    17 | queue.items[2] = 2;\n    #0 main  two.c:17\n    holds no lock\n",
        "  T1 (worker) writes 4 bytes, worker at two.c:9\n    9 | queue.items[2] = 1;\n    #0 worker  two.c:9\n    holds lock since two.c:8\n",
        "    #0 bump  two.c:6\n    #1 worker  two.c:11\n    holds no lock\n",
        "3 distinct findings in all\n",
        "all conflicting accesses are scheduling points: 4 places in the code\n",
    ] {
        assert!(ran.out.contains(words), "{words}\n--- is not in\n{}", ran.out);
    }
    let json = check(&sandbox, Path::new("./two"), &[]).1;
    let race = &json["races"][0];
    assert_eq!(race["object"], "queue.items[2]");
    assert_eq!(race["second"]["locks"], serde_json::json!([{ "object": "lock", "place": "two.c:8" }]));
    assert_eq!(race["second"]["start"], "worker");
    assert_eq!((&race["first"]["size"], &race["first"]["function"]), (&4.into(), &"main".into()));
    assert_eq!(race["first"]["stack"][0]["module"], "two");
}

/// The race check remembers a limited number of accesses per location. A caveat says when it has forgotten
/// some.
#[test]
fn more_accesses_than_are_remembered() {
    let sandbox = Sandbox::new();
    let loads = "    sum += atomic_load_explicit(&word, memory_order_relaxed);\n";
    for (count, forgotten) in [(4000, false), (4200, true)] {
        let text = format!(
            "#include <stdatomic.h>\nstatic atomic_int word;\nint main(void) {{\n    int sum = 0;\n{}    return sum;\n}}\n",
            loads.repeat(count)
        );
        let source = sandbox.write("many.c", &text);
        let program = instrument(&sandbox.path(""), &source, "many", &[]);
        let (ran, json) = check(&sandbox, &program, &[]);
        assert_eq!((ran.code, &json["sound"]), (0, &(!forgotten).into()), "{json:#}");
        let said = json["not_controlled"].to_string().contains("a location had more of them than");
        assert_eq!(said, forgotten, "{json:#}");
    }
}

/// Compilers and optimisation levels differ in how they translate `memcpy` and similar functions.
#[test]
fn functions_of_the_c_library_by_all_compilers() {
    let sandbox = Sandbox::new();
    let source = source("strings.c");
    let stated = stated(&std::fs::read_to_string(&source).expect("a source"));
    for compiler in ["gcc", "clang"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("{compiler} is not installed: not tried");
            continue;
        }
        for flags in ["-O0", "-O1", "-O2", "-O3", "-D_FORTIFY_SOURCE=2 -O2"] {
            for (name, more, races) in [("program", "", &stated), ("twin", " -DCLEAN", &BTreeSet::new())] {
                let mut command = sandbox.command(&["cc", "-g", "-pthread"]);
                command.env("HEISEN_CC", compiler).args(format!("{flags}{more}").split_whitespace());
                heisen_testkit::run(command.arg(&source).arg("-o").arg(sandbox.path(name))).expect(0);
                let (_, json) = check(&sandbox, &sandbox.path(name), &["--bound", "1"]);
                assert_eq!(reported(&json), *races, "{compiler} {flags}{more}: {json:#}");
                heisen_testkit::run(sandbox.shell("rm -rf .heisen").arg("")).expect(0);
            }
        }
    }
}

#[test]
fn a_race_for_a_block_of_the_heap_is_named_by_its_variable() {
    let sandbox = Sandbox::new();
    let text = "#include <pthread.h>\n#include <stdlib.h>\nstruct pair { long a, b; };\n\
                static void *worker(void *p) { ((struct pair *)p)->b++; return 0; }\n\
                int main(void) {\n    struct pair *p = calloc(1, sizeof *p);\n    pthread_t t[2];\n\
                for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, worker, p);\n\
                for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n    free(p);\n    return 0;\n}\n";
    let source = sandbox.write("block.c", text);
    let program = instrument(&sandbox.path("."), &source, "block", &[]);
    let (_, json) = check(&sandbox, &program, &[]);
    let races = json["races"].as_array().expect("races");
    assert_eq!(races.len(), 2, "{json:#}");
    for race in races {
        assert_eq!(race["object"], "p->b");
    }
}

#[test]
fn races_are_quiet_unless_they_are_asked_for() {
    let sandbox = Sandbox::new();
    two(&sandbox, "two", false);
    let ran = sandbox.heisen(&["check", "--", "./two"]).expect(0);
    assert!(ran.out.starts_with("ok: no bug in any sequentially consistent schedule "), "{}", ran.out);
    assert!(ran.out.contains(" at least 3 preemptions; 3 data races (--races lists them)\n"), "{}", ran.out);
    let json = sandbox.heisen(&["check", "--json", "-", "--", "./two"]).expect(0).json();
    assert_eq!((&json["verdict"], &json["races"]), (&"clean".into(), &Value::Array(Vec::new())));
    let ran = sandbox.heisen(&["check", "--races=off", "--", "./two"]).expect(0);
    assert!(
        ran.out.contains("as the race check is off") && !ran.out.contains("--races lists"),
        "{}",
        ran.out
    );
}

#[test]
fn the_first_race_may_end_the_search() {
    let sandbox = Sandbox::new();
    two(&sandbox, "two", false);
    let json = sandbox.heisen(&["check", "--races=stop", "--json", "-", "--", "./two"]).expect(1).json();
    assert_eq!((&json["executions"], json["races"].as_array().map(Vec::len)), (&1.into(), Some(1)));
    assert_eq!(json["findings"][0]["kind"], "data-race");
    let all = ["check", "--races=stop", "--keep-going", "--json", "-", "--", "./two"];
    let json = sandbox.heisen(&all).expect(1).json();
    assert_eq!((&json["complete"], json["races"].as_array().map(Vec::len)), (&true.into(), Some(3)));
}

#[test]
fn what_fails_comes_before_the_races() {
    let sandbox = Sandbox::new();
    two(&sandbox, "two", true);
    let json =
        sandbox.heisen(&["check", "--races", "--keep-going", "--json", "-", "--", "./two"]).expect(1).json();
    let kinds: Vec<&str> =
        json["findings"].as_array().unwrap().iter().map(|f| f["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["assertion", "data-race", "data-race", "data-race"]);
    for finding in json["findings"].as_array().unwrap() {
        let ran = sandbox.heisen(&["replay", finding["schedule"].as_str().unwrap()]).expect(1);
        assert!(ran.out.contains(finding["message"].as_str().unwrap()), "{}", ran.out);
    }
    // By default races are only counted, so the failure is the only finding.
    let json = sandbox.heisen(&["check", "--json", "-", "--", "./two"]).expect(1).json();
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(1));
}

#[test]
fn suppressions() {
    let sandbox = Sandbox::new();
    two(&sandbox, "two", false);
    let with = |text: &str| {
        sandbox.write("file", text);
        let ran =
            sandbox.heisen(&["check", "--races", "--suppressions", "file", "--json", "-", "--", "./two"]);
        let json = ran.json();
        let left = json["races"].as_array().map_or(0, Vec::len);
        assert_eq!(ran.code, i32::from(left > 0));
        // Suppressed races remain scheduling points.
        assert_eq!(json["access_points"], 4, "{json:#}");
        (left, json["races_suppressed"].as_u64().unwrap_or(0), ran)
    };
    for (text, left, suppressed) in [
        ("# nothing\n\n", 3, 0),
        ("race:bump\n", 1, 2),
        ("race:^worker$\n", 0, 3),
        ("race_top:worker\n", 2, 1),
        ("race:two.c", 0, 3),
        ("race:queue.items\nrace:counter\n", 0, 3),
        ("called_from_lib:two\nthread:x\nmutex:y\n", 0, 3),
    ] {
        let (there, gone, ran) = with(text);
        assert_eq!((there, gone), (left, suppressed), "{text}\n{}", ran.err);
    }
    let (_, _, ran) = with("race:bump\nrace:nobody\n");
    assert_eq!(
        ran.messages(),
        ["heisen: note: file:2: race:nobody: this suppression matches no data race of this check"]
    );
    sandbox.write("file", "race:worker");
    let ran = sandbox.heisen(&["check", "--races", "--suppressions", "file", "--", "./two"]).expect(0);
    assert!(ran.out.contains("3 races suppressed\n"), "{}", ran.out);
}

#[test]
fn bad_suppressions() {
    let sandbox = Sandbox::new();
    two(&sandbox, "two", false);
    let with = |file: &str| sandbox.heisen(&["check", "--races", "--suppressions", file, "--", "./two"]);
    with("missing").fails(2, &["missing: not found"]);
    with(".").fails(2, &[". is a directory, not a suppressions file"]);
    sandbox.write("bad", "race:x\nrase:y\n");
    with("bad").fails(2, &["bad:2: rase:y: not a suppression"]);
    sandbox.write("empty", "race:\n");
    with("empty").fails(2, &["empty:1: race:: a suppression without a pattern"]);
    sandbox.write("bytes", b"\xff\xfe");
    with("bytes").fails(2, &["bytes is not a suppressions file"]);
    let alone = sandbox.heisen(&["check", "--suppressions", "empty", "--", "./two"]);
    alone.fails(2, &["--races"]);
}

#[test]
fn scheduling_points_are_kept_from_check_to_check() {
    let sandbox = Sandbox::new();
    two(&sandbox, "two", false);
    let check = || sandbox.heisen(&["check", "--json", "-", "--", "./two"]).expect(0);
    let first = check().json();
    assert_eq!((&first["restarts"], &first["access_points"]), (&1.into(), &4.into()));
    let second = check().json();
    assert_eq!((&second["restarts"], &second["access_points"]), (&0.into(), &4.into()));
    assert!(second["executions"].as_u64() < first["executions"].as_u64());
    let directory = sandbox.path(".heisen/points");
    let files: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let good = std::fs::read_to_string(file).unwrap();
    // A file of another program is ignored, and a damaged one is reported. Both are replaced.
    std::fs::write(file, good.replace("\"binary\": \"", "\"binary\": \"00")).unwrap();
    let ran = check();
    assert_eq!((ran.messages().len(), &ran.json()["restarts"]), (0, &1.into()), "{}", ran.err);
    std::fs::write(file, "{ \"version\": 1").unwrap();
    let ran = check();
    assert_eq!(ran.messages().len(), 1, "{}", ran.err);
    assert!(ran.err.contains("note: the access points of the last check cannot be read: "), "{}", ran.err);
    assert_eq!(ran.json()["restarts"], 1);
    assert_eq!(std::fs::read_to_string(file).unwrap(), good);
    // For a program without access points no file is written.
    let clean = instrument(&sandbox.path(""), &source("neighbours.c"), "clean", &[]);
    assert_eq!(
        sandbox.heisen(&["check", "-o", "other", "--", clean.to_str().unwrap()]).expect(0).made.len(),
        0
    );
}
