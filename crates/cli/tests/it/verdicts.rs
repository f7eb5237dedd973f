//! Tests that verdicts claim no more than the check has shown. Each program here once got a verdict that
//! claimed too much. The screen, the JSON and `docs/reference/verdicts.md` must use the same words.

use heisen_cli::note;
use heisen_cli::sentences::{CAVEATS, CLAIMS, LIMITS, Sentence};
use heisen_testkit::{Sandbox, program, root};
use heisen_trace::Note;
use heisen_trace::machine::{Control, TABLE};
use serde_json::Value;
use std::collections::BTreeSet;

/// Store buffering: both threads may read 0, but not in a sequentially consistent execution. Only main
/// observes the failure.
fn store_buffering(kind: &str, [store, load]: [&str; 2]) -> String {
    let write = |place: &str| store.replace("AT", place);
    let read = |place: &str| load.replace("AT", place);
    program(
        &format!("static {kind} x, y; static int r, s;"),
        &[&format!("{} r = {};", write("x"), read("y")), &format!("{} s = {};", write("y"), read("x"))],
    )
}

const RELAXED: [&str; 2] = [
    "atomic_store_explicit(&AT, 1, memory_order_relaxed);",
    "atomic_load_explicit(&AT, memory_order_relaxed)",
];
const PLAIN: [&str; 2] = ["AT = 1;", "AT"];

const LOCKED: &str = "pthread_mutex_lock(&m); sum++; pthread_mutex_unlock(&m);";
const MUTEX: &str = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int sum;";

/// Checks a file. Returns the exit code, the first line of the screen, and the JSON. Both must agree and use
/// sentences of the tables.
#[track_caller]
fn verdict(sandbox: &Sandbox, args: &[&str]) -> (i32, String, Value) {
    let ran = sandbox.heisen(&[&["check", "--json", "result.json"], args].concat());
    let text =
        std::fs::read_to_string(sandbox.path("result.json")).unwrap_or_else(|e| panic!("{e}: {}", ran.err));
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let headline = ran.out.lines().next().unwrap_or_default().to_owned();
    let listed: Vec<&str> = ran
        .out
        .lines()
        .skip_while(|line| *line != "not controlled:")
        .skip(1)
        .map(|line| line.trim_start())
        .collect();
    let sentences: Vec<&str> =
        json["not_controlled"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(listed, sentences, "{}", ran.out);
    for sentence in &sentences {
        let noted = Note::ALL.iter().any(|&note| note::sentence(note) == Some(*sentence));
        assert!(noted || CAVEATS.iter().any(|caveat| caveat.fits(sentence)), "in no table: {sentence}");
    }
    if let Some(claim) = json["claim"].as_str() {
        let bare = headline.trim_start_matches("ok: ").trim_start_matches("nothing found: ");
        assert_eq!(bare, claim, "the screen and the JSON differ");
        // A claim about every schedule must not have caveats.
        let any = claim.split(';').next().filter(|words| words.contains(" any "));
        assert!(!any.is_some_and(is_unqualified) || sentences.is_empty(), "{claim}: {sentences:?}");
        // The remark on data races may follow each claim.
        let claim = claim
            .strip_suffix(" (--races lists them)")
            .and_then(|c| c.rsplit_once("; "))
            .map_or(claim, |c| c.0);
        assert!(CLAIMS.iter().any(|sentence| sentence.fits(claim)), "in no table: {claim}");
    }
    (ran.code, headline, json)
}

/// Whether these words claim every schedule. Bounds on preemptions, spurious wake-ups and faults are not
/// limits here.
fn is_unqualified(words: &str) -> bool {
    let limits = ["sequentially consistent ", " of ", " within ", " without ", " if ", ", except "];
    !limits.iter().any(|limit| words.contains(limit))
}

/// Checks that a check without findings has a claim that begins with `starts`, and that `--strict` ends with
/// this exit code.
#[track_caller]
fn claims(sandbox: &Sandbox, args: &[&str], starts: &str, strict: i32) -> (String, Value) {
    let (code, headline, json) = verdict(sandbox, args);
    assert_eq!(code, 0, "{json:#}");
    assert!(headline.starts_with(starts), "{headline:?} does not start with {starts:?}");
    assert_eq!(verdict(sandbox, &[&["--strict"], args].concat()).0, strict, "{json:#}");
    // A sound result has no caveat.
    assert!(json["sound"] == false || strict == 0, "{json:#}");
    (headline, json)
}

#[test]
fn schedules_are_sequentially_consistent() {
    let sandbox = Sandbox::new();
    sandbox.write("relaxed.c", store_buffering("atomic_int", RELAXED));
    let all = "ok: no bug in any sequentially consistent schedule; all ";
    let (_, json) = claims(&sandbox, &["--strategy", "dfs", "relaxed.c"], all, 6);
    assert_eq!((&json["verdict"], &json["sound"]), (&"clean".into(), &false.into()), "{json:#}");
    let (_, json) = claims(
        &sandbox,
        &["--bound", "0", "relaxed.c"],
        "ok: no bug in any sequentially consistent schedule with at most 0 preemptions; all ",
        6,
    );
    assert!(
        json["claim"].as_str().unwrap().ends_with("needs at least 1 preemption, or what is listed below"),
        "{json:#}"
    );
    claims(
        &sandbox,
        &["--strategy", "dpor", "relaxed.c"],
        "ok: no bug in any sequentially consistent schedule; every ",
        6,
    );
    // Plain accesses with data races: the number of races is in the headline.
    sandbox.write("volatile.c", store_buffering("volatile int", PLAIN));
    let (headline, json) = claims(&sandbox, &["--strategy", "dfs", "volatile.c"], all, 6);
    assert!(headline.ends_with(" explored; 2 data races (--races lists them)"), "{headline}");
    assert_eq!(json["races_unlisted"], 2, "{json:#}");
    // With `--races=off`, plain accesses are not checked.
    let atomics = "ok: no bug in any schedule of calls and atomic accesses; all ";
    claims(&sandbox, &["--strategy", "dfs", "--races=off", "volatile.c"], atomics, 6);
    // Data protected by a lock has only sequentially consistent executions (SC-DRF).
    sandbox.write("locked.c", program(MUTEX, &[LOCKED, LOCKED]));
    let (_, json) =
        claims(&sandbox, &["--strategy", "dfs", "locked.c"], "ok: no bug in any schedule; all ", 0);
    assert_eq!(json["sound"], true, "{json:#}");
}

#[test]
fn uninstrumented_programs_have_schedules_of_calls() {
    let sandbox = Sandbox::new();
    sandbox.compile("plain.c", &store_buffering("volatile int", PLAIN), &["-O1"]);
    let (_, json) = claims(
        &sandbox,
        &["--strategy", "dfs", "--", "./plain"],
        "ok: no bug in any schedule of calls; all ",
        6,
    );
    assert_eq!(json["sound"], false, "{json:#}");
    sandbox.compile("relaxed.c", &store_buffering("atomic_int", RELAXED), &["-O1"]);
    claims(
        &sandbox,
        &["--strategy", "dfs", "--", "./relaxed"],
        "ok: no bug in any schedule of calls; all ",
        6,
    );
    let add = ["atomic_fetch_add(&AT, 1);", "AT"];
    sandbox.compile("patched.c", &store_buffering("atomic_int", add), &["-O1"]);
    let (_, json) = claims(
        &sandbox,
        &["--strategy", "dfs", "--", "./patched"],
        "ok: no bug in any schedule of calls and patched atomics; all ",
        6,
    );
    assert_eq!(json["sound"], false, "{json:#}");
    claims(
        &sandbox,
        &["--strategy", "dpor", "--", "./plain"],
        "ok: no bug in any schedule of calls if locks protect what threads share; every ",
        6,
    );
}

#[test]
fn races_that_cannot_be_looked_for() {
    let sandbox = Sandbox::new();
    sandbox.compile("plain.c", &store_buffering("volatile int", PLAIN), &[]);
    let (_, json) = claims(
        &sandbox,
        &["--strategy", "dfs", "--races", "--", "./plain"],
        "ok: no bug in any schedule of calls, except as listed below; all ",
        6,
    );
    assert!(json["not_controlled"].to_string().contains("data races: not looked for"), "{json:#}");
}

/// Waits for at most an hour. The other thread always posts in time, unless time passes faster than it runs.
fn far(wait: &str) -> String {
    program(
        "#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\nstatic sem_t sem;",
        &[
            &format!("struct timespec at; clock_gettime(CLOCK_REALTIME, &at); at.tv_sec += 3600; {wait}"),
            "sem_post(&sem);",
        ],
    )
}

#[test]
fn far_time_outs_are_not_explored() {
    let sandbox = Sandbox::new();
    sandbox.write("far.c", far("if (sem_timedwait(&sem, &at)) abort();"));
    let all = "ok: no bug in any schedule without time-outs beyond 1 s; all ";
    let (_, json) = claims(&sandbox, &["--strategy", "dfs", "far.c"], all, 6);
    assert!(json["not_controlled"].to_string().contains("--timeouts 2h"), "{json:#}");
    let (code, _, json) = verdict(&sandbox, &["--timeouts", "2h", "far.c"]);
    assert_eq!((code, &json["findings"][0]["kind"]), (1, &"crash".into()), "{json:#}");
    claims(
        &sandbox,
        &["--timeouts", "1500ms", "far.c"],
        "ok: no bug in any schedule without time-outs beyond 1500 ms; all ",
        6,
    );
    // A time-out that may fire in any schedule is not a caveat.
    sandbox.write("near.c", far("sem_timedwait(&sem, &at);").replace("3600", "0"));
    claims(&sandbox, &["--strategy", "dfs", "near.c"], "ok: no bug in any schedule; all ", 0);
    // That a watchdog fires far too early is not explored, and that is not a caveat.
    sandbox.write("watched.c", far("alarm(3600); sem_wait(&sem);"));
    claims(&sandbox, &["--strategy", "dfs", "watched.c"], "ok: no bug in any schedule; all ", 0);
    // Time passes while both sleep, but then one sleeps while the other runs.
    sandbox.write("sleepers.c", program("#include <unistd.h>", &["sleep(3600);", "sleep(7200);"]));
    claims(&sandbox, &["--strategy", "dfs", "sleepers.c"], all, 6);
    sandbox.write("alone.c", "#include <unistd.h>\nint main(void) { sleep(3600); return 0; }\n");
    claims(&sandbox, &["alone.c"], "nothing to explore: only one thread ran", 0);
}

/// For these timers it is not explored that they fire while a thread can go on.
#[test]
fn timers_that_fire_early() {
    let sandbox = Sandbox::new();
    let early = "ok: no bug in any schedule without timers that fire early; all ";
    let declarations = format!(
        "#include <poll.h>\n#include <stdlib.h>\n#include <sys/timerfd.h>\n#include <unistd.h>\n{MUTEX}"
    );
    // Natively, either descriptor may be ready first.
    let polls = "int ends[2]; if (pipe(ends)) abort(); \
                 struct itimerspec soon = { .it_value.tv_nsec = 100000 }; \
                 int timer = timerfd_create(CLOCK_MONOTONIC, 0); timerfd_settime(timer, 0, &soon, 0); \
                 if (write(ends[1], \"x\", 1) != 1) abort(); \
                 struct pollfd both[2] = { { ends[0], POLLIN, 0 }, { timer, POLLIN, 0 } }; \
                 if (poll(both, 2, -1) == 2) abort();";
    sandbox.write("timerfd.c", program(&declarations, &[polls, LOCKED]));
    let (_, json) = claims(&sandbox, &["--strategy", "dfs", "timerfd.c"], early, 6);
    assert!(json["not_controlled"].to_string().contains("timerfd: "), "{json:#}");
    // Natively, the signal may come first.
    sandbox.write(
        "soon.c",
        program(&declarations, &[&format!("ualarm(50, 0); {LOCKED} ualarm(0, 0);"), LOCKED]),
    );
    let (_, json) = claims(&sandbox, &["--strategy", "dfs", "soon.c"], early, 6);
    assert!(json["not_controlled"].to_string().contains("watchdog"), "{json:#}");
}

#[test]
fn one_thread_has_nothing_to_explore() {
    let sandbox = Sandbox::new();
    sandbox.write("alone.c", "#include <stdatomic.h>\natomic_int x;\nint main(void) { return atomic_load_explicit(&x, memory_order_relaxed); }\n");
    for options in [
        &["--strategy", "random"][..],
        &["--strategy", "portfolio"],
        &["--time", "30s"],
        &[],
        &["--strategy", "dpor"],
    ] {
        for args in [&["alone.c"][..], &["--no-instrument", "alone.c"]] {
            let (headline, json) = claims(&sandbox, &[options, args].concat(), "nothing to explore: ", 0);
            assert_eq!(headline, "nothing to explore: only one thread ran");
            let told = (&json["executions"], &json["verdict"], &json["complete"], &json["not_controlled"]);
            assert_eq!(told, (&1.into(), &"clean".into(), &true.into(), &Value::Array(vec![])), "{json:#}");
        }
    }
    // A program with one thread may have other choices.
    sandbox.write("chooses.c", "#include <heisen.h>\nint main(void) { heisen_choose(3); return 0; }\n");
    let (_, json) = claims(&sandbox, &["chooses.c"], "ok: no bug in any schedule; all 3 ", 0);
    assert_eq!(json["executions"], 3, "{json:#}");
    let random = ["--strategy", "random", "--executions", "20", "chooses.c"];
    assert_eq!(claims(&sandbox, &random, "nothing found: no bug in 20 random", 0).1["executions"], 20);
}

/// If no execution reaches a test, the check has shown nothing.
#[test]
fn programs_that_run_no_test() {
    let sandbox = Sandbox::new();
    let text = "#[test]\nfn adds() { assert_eq!(1 + 1, 2) }\n";
    sandbox.compile("tests.rs", text, &["--test"]);
    let none = "nothing to explore: the program ran no test (name one, or change the filter)";
    let (headline, json) = claims(&sandbox, &["--", "./tests", "subtracts"], none, 6);
    assert_eq!((headline.as_str(), &json["verdict"]), (none, &"incomplete".into()), "{json:#}");
    let (_, _, json) = verdict(&sandbox, &["--executions", "1", "--", "./tests", "adds"]);
    assert_ne!(json["claim"], none);
    let google = |count: u32| {
        format!(
            "#include <stdio.h>\nint main(void) {{ puts(\"[==========] Running {count} tests from 1 test suite.\"); }}\n"
        )
    };
    sandbox.write("google.c", google(0));
    claims(&sandbox, &["google.c"], none, 6);
    sandbox.write("google.c", google(2));
    claims(&sandbox, &["google.c"], "nothing to explore: only one thread ran", 0);
}

#[test]
fn a_failure_of_the_default_schedule_is_reported_first() {
    let sandbox = Sandbox::new();
    let text = program("#include <assert.h>", &["assert(0);", ""]);
    sandbox.write("always.c", text);
    for strategy in ["icb", "random", "portfolio", "dpor"] {
        let ran =
            sandbox.heisen(&["check", "--strategy", strategy, "--json", "result.json", "always.c"]).expect(1);
        let second = ran.out.lines().nth(1);
        assert_eq!(
            second,
            Some("it fails under the default schedule, so most likely also without Heisen"),
            "{}",
            ran.out
        );
        let text = std::fs::read_to_string(sandbox.path("result.json")).expect("the result");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["findings"][0]["default_schedule"], true, "{json:#}");
    }
    // A bug that needs a schedule other than the default.
    let racy = program(
        "#include <assert.h>\nstatic atomic_int flag;",
        &["atomic_store(&flag, 1); atomic_store(&flag, 0);", "assert(!atomic_load(&flag));"],
    );
    sandbox.write("racy.c", racy);
    let ran = sandbox.heisen(&["check", "racy.c"]).expect(1);
    assert!(!ran.out.contains("default schedule"), "{}", ran.out);
}

#[test]
fn a_scope_that_leaves_nothing() {
    let sandbox = Sandbox::new();
    let text = program(&format!("{MUTEX}\nint unrelated(void) {{ return sum; }}"), &[LOCKED, LOCKED]);
    sandbox.compile("scoped.c", &text, &[]);
    let (headline, json) = claims(&sandbox, &["--focus", "unrelated", "--", "./scoped"], "no bug in ", 6);
    assert!(
        headline.contains("but no thread was ever preempted: no scheduling point is in the scope"),
        "{headline}"
    );
    assert_eq!(json["verdict"], "incomplete", "{json:#}");
    let within = "ok: no bug in any schedule of calls within the scope; all ";
    claims(&sandbox, &["--focus", "t0", "--bound", "9", "--", "./scoped"], within, 6);
}

#[test]
fn samplers_that_time_ends_are_incomplete() {
    let sandbox = Sandbox::new();
    sandbox.write("locked.c", program(MUTEX, &[LOCKED, LOCKED]));
    let args = ["--strategy", "random", "--time", "300ms", "--executions", "100000000", "locked.c"];
    let (_, json) = claims(&sandbox, &args, "nothing found: no bug in ", 6);
    assert_eq!(json["verdict"], "incomplete", "{json:#}");
    assert!(json["not_controlled"].to_string().contains("--time ended the search after"), "{json:#}");
    let args = ["--strategy", "random", "--time", "100s", "--executions", "10", "locked.c"];
    assert_eq!(claims(&sandbox, &args, "nothing found: no bug in 10 random", 0).1["verdict"], "clean");
}

/// Two threads of a Rust program that add to the same counter without synchronisation.
const RUST_RACE: &str = "static mut SUM: u32 = 0;\nfn add() { unsafe { SUM += 1 } }\nfn main() {\n    \
    let other = std::thread::spawn(add);\n    add();\n    other.join().unwrap();\n}\n";

#[test]
fn races_of_rust_programs_are_findings() {
    let sandbox = Sandbox::new();
    sandbox.write("race.rs", RUST_RACE);
    let (code, headline, json) = verdict(&sandbox, &["race.rs"]);
    assert_eq!((code, &json["findings"][0]["kind"]), (1, &"data-race".into()), "{json:#}");
    assert!(headline.starts_with("data race: "), "{headline}");
    let (headline, json) = claims(
        &sandbox,
        &["--races=count", "race.rs"],
        "ok: no bug in any sequentially consistent schedule of calls",
        6,
    );
    assert!(headline.contains(" data races (--races lists them)"), "{headline}");
    assert_eq!(json["findings"], Value::Array(vec![]), "{json:#}");
}

/// The sentences in the first column of the tables below a heading of a page.
fn shown(page: &str, heading: &str) -> Vec<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("there is no section {heading}"));
    let first = |line: &str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned());
    section.lines().filter_map(first).collect()
}

#[test]
fn the_page_has_every_sentence_and_no_other() {
    let page = std::fs::read_to_string(root().join("docs/reference/verdicts.md")).expect("the page");
    let texts =
        |list: &[Sentence]| list.iter().map(|sentence| sentence.0.to_owned()).collect::<BTreeSet<_>>();
    let notes = Note::ALL.iter().filter_map(|&note| note::sentence(note)).map(str::to_owned).collect();
    for (heading, expected) in [
        ("The claims\n", texts(CLAIMS)),
        ("What limits a claim\n", texts(LIMITS)),
        ("Caveats\n", texts(CAVEATS)),
        ("Notes of executions\n", notes),
    ] {
        let shown = shown(&page, heading);
        let set: BTreeSet<String> = shown.iter().cloned().collect();
        assert_eq!(set.len(), shown.len(), "{heading} shows a sentence twice");
        let missing: Vec<_> = expected.difference(&set).collect();
        let unknown: Vec<_> = set.difference(&expected).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{heading}: missing {missing:#?}, unknown {unknown:#?}"
        );
    }
}

#[test]
fn every_refusal_has_a_sentence_with_its_name() {
    for row in TABLE {
        if let Control::Refused(note) = row.control {
            let sentence = note::sentence(note).expect("a sentence");
            assert!(sentence.contains("refused with EPERM"), "{note:?}");
            let (first, _) = row.calls[0];
            assert!(sentence.contains(first), "{note:?} does not name {first}");
        }
    }
}

/// A bound on choices other than threads is part of the claim.
#[test]
fn spurious_wake_ups_and_faults_are_bounds() {
    let sandbox = Sandbox::new();
    let waits = "pthread_mutex_lock(&m); while (!sum) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m);";
    let sets = "pthread_mutex_lock(&m); sum = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);";
    let declarations = format!("{MUTEX} static pthread_cond_t c = PTHREAD_COND_INITIALIZER;");
    sandbox.write("waits.c", program(&declarations, &[waits, sets]));
    let dfs = ["--strategy", "dfs", "waits.c"];
    claims(&sandbox, &dfs, "ok: no bug in any schedule; all ", 0);
    let with = "ok: no bug in any schedule with at most 1 spurious wake-up; all ";
    claims(&sandbox, &[&["--spurious", "1"][..], &dfs].concat(), with, 0);
    let with = "ok: no bug in any schedule with at most 1 preemption and 1 spurious wake-up; all ";
    claims(&sandbox, &["--spurious", "1", "--bound", "1", "waits.c"], with, 0);
}

/// A wait for a condition variable with a time-out of an hour, by each waiting function.
#[test]
fn far_time_outs_of_condition_variables() {
    let sandbox = Sandbox::new();
    let waits = "struct timespec at; clock_gettime(CLOCK_REALTIME, &at); at.tv_sec += 3600; \
                 pthread_mutex_lock(&m); while (!sum) if (pthread_cond_timedwait(&c, &m, &at)) abort(); \
                 pthread_mutex_unlock(&m);";
    let sets = "pthread_mutex_lock(&m); sum = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);";
    let declarations = format!(
        "#include <stdlib.h>\n#include <time.h>\n{MUTEX} static pthread_cond_t c = PTHREAD_COND_INITIALIZER;"
    );
    sandbox.write("waits.c", program(&declarations, &[waits, sets]));
    let far = "ok: no bug in any schedule without time-outs beyond 1 s; ";
    claims(&sandbox, &["--strategy", "dfs", "waits.c"], far, 6);
    for strategy in ["icb", "best", "dpor"] {
        claims(&sandbox, &["--strategy", strategy, "--bound", "9", "waits.c"], far, 6);
    }
    let bounded = "ok: no bug in any schedule with at most 0 preemptions without time-outs beyond 1 s; ";
    claims(&sandbox, &["--bound", "0", "waits.c"], bounded, 6);
    let (code, _, json) = verdict(&sandbox, &["--timeouts", "2h", "waits.c"]);
    assert_eq!((code, &json["findings"][0]["kind"]), (1, &"crash".into()), "{json:#}");
}

/// If the claim has no words for a caveat, it refers to the list.
#[test]
fn other_caveats_are_exceptions() {
    let sandbox = Sandbox::new();
    let except = "ok: no bug in any schedule, except as listed below; ";
    let cases: [(&str, &str, &[&str], &str); 5] = [
        (
            "trylock.c",
            MUTEX,
            &["while (pthread_mutex_trylock(&m)); sum++; pthread_mutex_unlock(&m);"; 2],
            "a loop repeats",
        ),
        (
            "fork.c",
            "#include <sys/wait.h>\n#include <unistd.h>",
            &["if (!fork()) _exit(0); wait(0);", ""],
            "fork: ",
        ),
        (
            "priority.c",
            "#include <stdlib.h>",
            &[
                "pthread_mutexattr_t a; pthread_mutexattr_init(&a); \
          pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT); pthread_mutex_t m; pthread_mutex_init(&m, &a); \
          pthread_mutex_lock(&m); pthread_mutex_unlock(&m);",
                "",
            ],
            "priority mutex: ",
        ),
        ("cpu.c", "#include <time.h>", &["clock();", ""], "processor time: "),
        ("ready.c", "#include <heisen.h>", &["heisen_ready();", ""], "heisen_ready: ignored"),
    ];
    for (file, declarations, bodies, words) in cases {
        sandbox.write(file, program(declarations, bodies));
        let (_, json) = claims(&sandbox, &["--strategy", "dfs", file], except, 6);
        assert!(json["not_controlled"].to_string().contains(words), "{json:#}");
    }
}
