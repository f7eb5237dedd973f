//! Tests of the scope (`--focus`, `--no-preempt`): preemptions at some places only. The numbers of remaining
//! schedules are computed by hand.
//!
//! Main, M, creates a thread A, calls `ours` (l u on a mutex), and joins. A takes three steps, s l u, in
//! `theirs`, on another mutex. Without a scope there are 10 orders; 1, 3 and 7 of them have at most 0, 1 and
//! 2 preemptions. `primitives/counts.rs` of the runtime tests derives them.
//!
//! If A is not preempted, it runs from s to its end at once: before M's l, before M's u, or after it, when M
//! waits. The first two cost one preemption of M. That makes 3 orders: 1, 3 and 3. If M is not preempted, it
//! does l and u and waits for A, which then runs alone: 1 order.

use heisen_testkit::Sandbox;
use serde_json::Value;

/// Executions at bounds 0, 1 and 2, and of dfs.
const WITHOUT: [u64; 4] = [1, 3, 7, 10];
const THEIRS_WHOLE: [u64; 4] = [1, 3, 3, 3];
const OURS_WHOLE: [u64; 4] = [1, 1, 1, 1];

const THEIRS: &str = "#include <pthread.h>
pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
void *theirs(void *a) { pthread_mutex_lock(&b); pthread_mutex_unlock(&b); return a; }
";

const MAIN: &str = "#include <pthread.h>
#ifdef APART
void *theirs(void *a);
#else
#include \"theirs.c\"
#endif
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
void ours(void) { pthread_mutex_lock(&a); pthread_mutex_unlock(&a); }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, theirs, 0);
    ours();
    pthread_join(t, 0);
}
";

#[track_caller]
fn expect(sandbox: &Sandbox, program: &str, options: &[&str], counts: [u64; 4]) -> Value {
    let mut last = Value::Null;
    let searches = [["--bound", "0"], ["--bound", "1"], ["--bound", "2"], ["--strategy", "dfs"]];
    for (search, count) in searches.iter().zip(counts) {
        last = sandbox.clean(&[options, search, &["--", program]].concat());
        assert_eq!(
            (&last["executions"], &last["complete"]),
            (&count.into(), &true.into()),
            "{search:?} {last:#}"
        );
    }
    last
}

#[test]
fn functions_files_and_modules() {
    let sandbox = Sandbox::new();
    sandbox.write("theirs.c", THEIRS);
    sandbox.compile("main.c", MAIN, &[]);
    let plain = expect(&sandbox, "./main", &[], WITHOUT);
    assert_eq!(plain["not_controlled"].as_array().map(Vec::len), Some(1));
    for pattern in ["theirs", "th*s", "theirs.c", "*/theirs.c"] {
        let scoped = expect(&sandbox, "./main", &["--no-preempt", pattern], THEIRS_WHOLE);
        let said =
            format!("preemptions at calls in {pattern}: not explored (change --focus or --no-preempt)");
        assert_eq!(scoped["not_controlled"][1], said);
        assert_eq!(scoped["scope"]["no_preempt"][0], pattern);
        expect(&sandbox, "./main", &["--focus", pattern], OURS_WHOLE);
    }
    for pattern in ["ours", "o?rs", "main.c"] {
        expect(&sandbox, "./main", &["--no-preempt", pattern], OURS_WHOLE);
        expect(&sandbox, "./main", &["--focus", pattern], THEIRS_WHOLE);
    }
    // Patterns that cover all of the program: no preemption at all, or no restriction.
    expect(&sandbox, "./main", &["--no-preempt", "main", "--no-preempt", "theirs"], OURS_WHOLE);
    expect(&sandbox, "./main", &["--focus", "ours", "--focus", "theirs"], WITHOUT);
    // `--no-preempt` takes precedence over `--focus`.
    expect(&sandbox, "./main", &["--focus", "main", "--no-preempt", "theirs"], THEIRS_WHOLE);
}

#[test]
fn a_module() {
    let sandbox = Sandbox::new();
    let library = ["-shared", "-fPIC", "-o", "libtheirs.so.1"];
    sandbox.write("theirs.c", THEIRS);
    let made = heisen_testkit::run(
        std::process::Command::new("cc").args(["-g", "theirs.c"]).args(library).current_dir(sandbox.path("")),
    );
    made.expect(0);
    let place = format!("-Wl,-rpath,{}", sandbox.path("").display());
    let path = sandbox.path("libtheirs.so.1");
    sandbox.compile("main.c", MAIN, &["-DAPART", &place, &path.display().to_string()]);
    expect(&sandbox, "./main", &["--no-preempt", "libtheirs.so*"], THEIRS_WHOLE);
    expect(&sandbox, "./main", &["--focus", "libtheirs.so*"], OURS_WHOLE);
    expect(&sandbox, "./main", &["--focus", "main"], THEIRS_WHOLE);
}

/// Without optimisation, `std::lock_guard` is a chain of header functions. The scope depends on the caller of
/// the first one. With optimisation they are inlined, and the debug information names the caller. (The call
/// must not be the last one of its function. It would become a jump, with the caller's return address.)
#[test]
fn who_called_the_language_s_library() {
    let text = "#include <mutex>
#include <thread>
namespace bank {
struct Theirs {
    std::mutex m;
    void pay() { std::lock_guard<std::mutex> guard(m); }
};
struct Ours {
    std::mutex m;
    void pay() { std::lock_guard<std::mutex> guard(m); }
};
}
int main() {
    bank::Ours ours;
    bank::Theirs theirs;
    std::thread t([&] { theirs.pay(); });
    ours.pay();
    t.join();
}
";
    for flags in [&["-O0"][..], &["-O2", "-fno-optimize-sibling-calls"], &["-O0", "-g0"]] {
        let sandbox = Sandbox::new();
        sandbox.compile("main.cpp", text, flags);
        expect(&sandbox, "./main", &[], WITHOUT);
        expect(&sandbox, "./main", &["--no-preempt", "Theirs::*"], THEIRS_WHOLE);
        expect(&sandbox, "./main", &["--focus", "bank::Ours::pay"], THEIRS_WHOLE);
        expect(&sandbox, "./main", &["--focus", "bank::Theirs::pay"], OURS_WHOLE);
    }
}

/// A scope does not change the numbering of steps, so the schedule file does not contain it. M is preempted
/// before each of two scheduling points of its own, by a thread that must not be preempted itself.
#[test]
fn schedules_do_not_need_the_scope() {
    let text = "#include <assert.h>
#include <heisen.h>
#include <pthread.h>
int x;
void *theirs(void *a) { heisen_point(); heisen_point(); x++; return a; }
void ours(void) { int seen = x; heisen_point(); assert(x != seen + 1); }
int main(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, theirs, 0);
    heisen_point();
    ours();
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
}
";
    let sandbox = Sandbox::new();
    sandbox.write("main.c", text);
    for options in [
        &["--focus", "ours"][..],
        &["--no-preempt", "theirs"],
        &["--focus", "ours", "--strategy", "random", "--seed", "5"],
        &["--no-preempt", "theirs", "--strategy", "pct"],
    ] {
        let ran = sandbox.heisen(&[&["check", "--json", "-"], options, &["main.c"]].concat()).expect(1);
        let schedule = ran.json()["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
        sandbox.heisen(&["replay", "--quiet", &schedule]).expect(1);
    }
}

#[test]
fn a_resumed_search_takes_no_other_scope() {
    let sandbox = Sandbox::new();
    sandbox.write("theirs.c", THEIRS);
    sandbox.compile("main.c", MAIN, &[]);
    let ran = sandbox.heisen(&["check", "--focus", "ours", "--resume", "search.json"]).expect(2);
    assert!(ran.err.contains("--focus"), "{}", ran.err);
}

#[test]
fn patterns_that_match_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("theirs.c", THEIRS);
    sandbox.compile("main.c", MAIN, &[]);
    let bad = |options: &[&str], words: &[&str]| {
        sandbox.heisen(&[&["check"], options, &["--", "./main"]].concat()).fails(2, words);
    };
    bad(&["--focus", "their"], &["--focus \"their\" matches no module, source file or function", "theirs"]);
    bad(&["--no-preempt", "queue_*"], &["--no-preempt \"queue_*\"", "for instance, main, main.c, ours"]);
    bad(&["--focus", "ours", "--focus", ""], &["--focus \"\" matches no"]);
    sandbox.compile("main.c", MAIN, &["-g0"]);
    bad(&["--focus", "theirs.c"], &["no debug information (-g)", "theirs"]);
}
