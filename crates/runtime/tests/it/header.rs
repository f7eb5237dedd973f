//! Tests of `heisen.h`: programs that use it run without Heisen and under it.

use heisen_testkit::{Sandbox, root, run};
use std::process::Command;

/// Prints what it sees of Heisen, and fails if the increments of the two threads interleave.
const COUNTER: &str = "#include <heisen.h>
#include <pthread.h>
#include <stdio.h>
static int x;
static void *add(void *a) {
    int seen = x;
    heisen_point_at(7);
    x = seen + 1;
    return a;
}
int main(void) {
    pthread_t t[2];
    fprintf(stderr, \"running %d, chosen %u\\n\", heisen_running(), heisen_choose(3));
    heisen_ready();
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, add, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    heisen_point();
    heisen_no_preempt_begin();
    heisen_no_preempt_end();
    heisen_assert(x == 2);
    return 0;
}
";

/// Its assertion fails in every schedule.
const FAILS: &str = "#include <heisen.h>
int calls;
int none(void) { return calls++; }
int main(void) { heisen_assert(none() && 1 == 2); return calls; }
";

fn include() -> String {
    format!("-I{}", root().join("include").display())
}

/// Compiles with all warnings as errors.
fn compile(sandbox: &Sandbox, name: &str, text: &str, flags: &[&str]) {
    let all = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
    sandbox.compile(name, text, &[&all, flags, &[include().as_str()]].concat());
}

#[test]
fn programs_run_without_heisen() {
    let flags: [&[&str]; 6] = [
        &["-std=c99"],
        &["-O2"],
        &["-no-pie", "-fno-pie"],
        &["-O2", "-no-pie", "-fno-pie"],
        &["-static"],
        &["-DNDEBUG"],
    ];
    for flags in flags {
        let sandbox = Sandbox::new();
        compile(&sandbox, "counter.c", COUNTER, flags);
        let ran = run(&mut Command::new(sandbox.path("counter"))).expect(0);
        assert_eq!(ran.err, "running 0, chosen 0\n", "{flags:?}");
    }
    let sandbox = Sandbox::new();
    compile(&sandbox, "fails.c", FAILS, &[]);
    let ran = run(&mut Command::new(sandbox.path("fails")));
    assert!(ran.code == -1 && ran.err.contains("Assertion `none() && 1 == 2' failed"), "{ran:?}");
    // As with `assert`, a disabled assertion does not evaluate its expression.
    compile(&sandbox, "fails.c", FAILS, &["-DNDEBUG"]);
    run(&mut Command::new(sandbox.path("fails"))).expect(0);
}

#[test]
fn programs_run_under_heisen() {
    let flags: [&[&str]; 5] =
        [&[], &["-O2"], &["-no-pie", "-fno-pie"], &["-O2", "-no-pie", "-fno-pie"], &["-DNDEBUG"]];
    for (name, flags) in flags.iter().map(|f| ("counter.c", f)).chain([("counter.cpp", &flags[0])]) {
        let sandbox = Sandbox::new();
        compile(&sandbox, name, COUNTER, flags);
        let found = sandbox.finds("assertion", &["--", "./counter"]);
        assert_eq!(found["message"], "assertion `x == 2` failed", "{name} {flags:?}");
        assert_eq!(found["preemptions"], 1);
        assert_eq!(found["place"], format!("{name}:20"));
        let schedule = found["schedule"].as_str().expect("a schedule");
        let shown = sandbox.heisen(&["show", schedule]).expect(0).out;
        assert!(shown.contains(&format!("point(7)  {name}:7 add")), "{shown}");
        let replayed = sandbox.heisen(&["replay", schedule]).expect(1);
        assert!(replayed.err.contains("running 1, chosen 0"), "{}", replayed.err);
    }
    let sandbox = Sandbox::new();
    compile(&sandbox, "fails.c", FAILS, &["-DNDEBUG"]);
    let found = sandbox.finds("assertion", &["--", "./fails"]);
    assert_eq!(found["place"], "fails.c:4");
}

/// M: p p j, A: s p p. These are independent operations (see `primitives/counts.rs`): 10 orders. In a region,
/// A runs from s to its end. That is 3 orders, as in `scope.rs` of the engine tests.
#[test]
fn points_and_regions_are_counted() {
    let program = |before: &str, between: &str, after: &str| {
        format!(
            "#include <heisen.h>
#include <pthread.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *a(void *x) {{ {before} heisen_point(); {between} heisen_point(); {after} return x; }}
int main(void) {{
    pthread_t t;
    pthread_create(&t, 0, a, 0);
    heisen_point();
    heisen_point();
    pthread_join(t, 0);
}}
"
        )
    };
    let (begin, end) = ("heisen_no_preempt_begin();", "heisen_no_preempt_end();");
    let twice = |word: &str| format!("{word}{word}");
    let sandbox = Sandbox::new();
    let count = |text: String, counts: [u64; 3], regions: bool| {
        sandbox.compile("main.c", &text, &[&include()]);
        for (search, count) in [["--bound", "1"], ["--bound", "2"], ["--strategy", "dfs"]].iter().zip(counts)
        {
            let json = sandbox.clean(&[&search[..], &["--", "./main"]].concat());
            assert_eq!((&json["executions"], &json["complete"]), (&count.into(), &true.into()), "{text}");
            let said = json["not_controlled"].to_string();
            assert_eq!(said.contains("heisen_no_preempt_begin"), regions, "{said}");
        }
    };
    count(program("", "", ""), [3, 7, 10], false);
    count(program(begin, "", end), [3, 3, 3], true);
    // A region that is not ended lasts until the end of the thread.
    count(program(begin, "", ""), [3, 3, 3], true);
    count(program(&twice(begin), end, end), [3, 3, 3], true);
    // A can be preempted only before its first point, so s may come earlier than the rest. The rest, p p,
    // runs as one step. M's two steps interleave with A's two: C(4, 2) = 6.
    // - 0 preemptions: 1.
    // - 1: M before its first or second point; all of A runs: 2.
    // - 2: the same, and A before its point: 2.
    // - 3: M twice, and A in between: 1.
    count(program("", begin, end), [3, 5, 6], true);
}

/// A thread in a region may block, and continues at once when it can. M: l u j, A: s l u on the same mutex: 4
/// orders, see `primitives/counts.rs`. In a region, A continues from s if it can. So of the orders with s
/// before M's l, only the one in which A finishes first remains. 3 orders; two of them need one preemption.
#[test]
fn blocking_in_a_region() {
    let text = "#include <heisen.h>
#include <pthread.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void both(void) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
void *a(void *x) { heisen_no_preempt_begin(); both(); heisen_no_preempt_end(); return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, a, 0);
    both();
    pthread_join(t, 0);
}
";
    let sandbox = Sandbox::new();
    sandbox.compile("main.c", text, &[&include()]);
    for (search, count) in
        [["--bound", "0"], ["--bound", "1"], ["--bound", "2"], ["--strategy", "dfs"]].iter().zip([1, 3, 3, 3])
    {
        let json = sandbox.clean(&[&search[..], &["--", "./main"]].concat());
        assert_eq!(
            (&json["executions"], &json["complete"]),
            (&count.into(), &true.into()),
            "{search:?} {json:#}"
        );
    }
}

/// A thread that spins in a region does not hang the check. In the second half of the steps every thread gets
/// a turn.
#[test]
fn a_region_does_not_undo_fairness() {
    let text = "#include <heisen.h>
#include <pthread.h>
volatile int flag;
void *a(void *x) { flag = 1; return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, a, 0);
    heisen_no_preempt_begin();
    while (!flag) heisen_point();
    heisen_no_preempt_end();
    pthread_join(t, 0);
}
";
    let sandbox = Sandbox::new();
    sandbox.compile("main.c", text, &[&include()]);
    let json = sandbox.clean(&["--steps", "1000", "--", "./main"]);
    assert!(json["not_controlled"].to_string().contains("fair schedule"), "{json:#}");
}

#[test]
fn an_end_without_a_beginning() {
    let sandbox = Sandbox::new();
    let text = "#include <heisen.h>
int main(void) {
    heisen_no_preempt_begin();
    heisen_no_preempt_end();
    heisen_no_preempt_end();
}
";
    sandbox.compile("main.c", text, &[&include()]);
    let found = sandbox.finds("misuse", &["--", "./main"]);
    assert_eq!(found["message"], "heisen_no_preempt_end was called without a heisen_no_preempt_begin");
    assert_eq!(found["place"], "main.c:5");
}

/// A program that counts its set-ups in a file. Its argument may make it create a thread too early.
const SET_UP: &str = "#include <heisen.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static int x;
static void *add(void *a) {
    int seen = x;
    heisen_point();
    x = seen + 1;
    return a;
}
static void *nothing(void *a) { return a; }
static void *sleeps(void *a) { for (;;) heisen_point(); return a; }
int main(int count, char **args) {
    const char *how = count > 1 ? args[1] : \"\";
    pthread_t t[2];
    FILE *file = fopen(\"set-ups\", \"a\");
    fputs(\"x\", file);
    fclose(file);
    for (int i = 0; i < 100; i++) heisen_point();
    if (!strcmp(how, \"joined\")) {
        pthread_create(&t[0], 0, nothing, 0);
        pthread_join(t[0], 0);
    }
    if (!strcmp(how, \"alive\")) pthread_create(&t[0], 0, sleeps, 0);
    if (!strcmp(how, \"never\")) return 3;
    heisen_ready();
    if (!strcmp(how, \"twice\")) heisen_ready();
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, add, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    heisen_assert(x == 2 || !strcmp(how, \"twice\"));
}
";

#[test]
fn executions_begin_where_the_program_is_ready() {
    for how in ["plain", "joined"] {
        let sandbox = Sandbox::new();
        sandbox.compile("main.c", SET_UP, &[&include()]);
        let all = [
            "check",
            "--json",
            "-",
            "--jobs",
            "1",
            "--no-minimise",
            "--no-explain",
            "--at-ready",
            "--",
            "./main",
            how,
        ];
        let json = sandbox.heisen(&all).expect(1).json();
        assert!(json["executions"].as_u64().is_some_and(|n| n > 2), "{json:#}");
        // One set-up for the search and two for the close-up, however many executions there were.
        let set_ups = std::fs::read_to_string(sandbox.path("set-ups")).expect("the file");
        assert_eq!(set_ups, "xxx", "{how}");
        assert!(json["not_controlled"].to_string().contains("before heisen_ready: it ran once"), "{json:#}");
        // The steps of the set-up are not numbered, and the schedule file says so.
        let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
        let text = std::fs::read_to_string(sandbox.path(schedule)).expect("the schedule");
        assert!(text.contains("\nat-ready\n"), "{text}");
        let step = text.lines().find_map(|l| l.strip_prefix("at ")).and_then(|l| l.split(' ').next());
        assert!(step.and_then(|s| s.parse::<u32>().ok()).is_some_and(|step| step < 10), "{text}");
        sandbox.heisen(&["replay", schedule]).expect(1);
    }
}

#[test]
fn programs_that_are_not_ready() {
    let sandbox = Sandbox::new();
    sandbox.compile("main.c", SET_UP, &[&include()]);
    sandbox.write("set-ups", "");
    let bad = |how: &str, options: &[&str], words: &[&str]| {
        let all = [&["check", "--at-ready"], options, &["--", "./main", how]].concat();
        sandbox.heisen(&all).fails(3, words);
    };
    bad("never", &[], &["ended (exit status 3) without calling heisen_ready", "leave out --at-ready"]);
    bad("alive", &[], &["called heisen_ready while it had more than one thread", "joined"]);
    sandbox.compile("main.c", "int main(void) { for (;;); }", &[]);
    bad("", &["--hang", "500ms"], &["does not reach heisen_ready within 0.5 s", "raise --hang"]);
}

#[test]
fn a_second_call_is_noted() {
    let sandbox = Sandbox::new();
    sandbox.compile("main.c", SET_UP, &[&include()]);
    sandbox.write("set-ups", "");
    for (options, how, noted) in [
        (&["--at-ready"][..], "twice", true),
        (&[], "twice", true),
        (&["--at-ready", "--no-preempt", "add"], "plain", false),
    ] {
        let json = sandbox.clean(&[options, &["--", "./main", how]].concat());
        assert_eq!(json["not_controlled"].to_string().contains("heisen_ready: ignored"), noted, "{json:#}");
    }
}

#[test]
fn the_header_is_at_hand() {
    let sandbox = Sandbox::new();
    // A single file needs no flag to find the header, and `heisen header` prints it.
    sandbox.write("counter.c", COUNTER);
    sandbox.heisen(&["check", "--quiet", "counter.c"]).expect(1);
    sandbox.write("counter.cc", COUNTER);
    sandbox.heisen(&["check", "--quiet", "counter.cc"]).expect(1);
    let printed = sandbox.heisen(&["header"]).expect(0);
    assert_eq!(printed.out, std::fs::read_to_string(root().join("include/heisen.h")).expect("the header"));
    // A header of the program with the same name comes first.
    sandbox.write("heisen.h", "#define own 0\n");
    sandbox.write("own.c", "#include \"heisen.h\"\nint main(void) { return own; }\n");
    sandbox.heisen(&["check", "--quiet", "own.c"]).expect(0);
}
