//! Tests of choices other than threads: values that the program asks for, spurious wake-ups and faults. The
//! numbers are computed by hand as in `counts`. Such a choice costs no preemption, and no other thread can
//! run at its step. So it multiplies the number of schedules.

use crate::suite::Suite;
use heisen_testkit::{compile, heisen, run, scratch, timeless};
use serde_json::Value;

fn suite() -> Suite {
    Suite::new("choices.c", &[])
}

/// Checks that a complete search takes this many executions and finds nothing.
#[track_caller]
fn expect(suite: &Suite, case: &str, options: &[&str], executions: u64) {
    let json = suite.check(case, options);
    let found = (&json["executions"], &json["complete"], &json["verdict"]);
    assert_eq!(found, (&executions.into(), &true.into(), &"clean".into()), "{case} {options:?}: {json:#}");
}

/// The finding of a check, and its schedule as text. Replays must find the bug again.
#[track_caller]
fn found(suite: &Suite, case: &str, options: &[&str], kind: &str) -> (Value, String) {
    let json = suite.check(case, options);
    let finding = json["findings"][0].clone();
    assert_eq!(finding["kind"], kind, "{case}: {json:#}");
    let schedule = finding["schedule"].as_str().expect("a schedule");
    for _ in 0..3 {
        run(heisen(suite.directory.path()).args(["replay", "--quiet", schedule])).expect(1);
    }
    let text = std::fs::read_to_string(suite.directory.path().join(schedule)).expect("the schedule");
    (finding, text)
}

#[test]
fn values() {
    let suite = suite();
    for strategy in [&["--strategy", "dfs"][..], &["--bound", "0"]] {
        expect(&suite, "two_values", strategy, 3 * 3);
        // The first value is 0, or it is 1 and then there are three more.
        expect(&suite, "one_depends_on_the_other", strategy, 1 + 3);
        expect(&suite, "nothing_to_choose", strategy, 1);
        // M picks one of three values before it waits for the end of A, which picks one of two. There is one
        // order, because a pick is not a scheduling point.
        expect(&suite, "in_two_threads", strategy, 2 * 3);
    }
}

#[test]
fn more_values_than_can_be_recorded() {
    let json = suite().check("too_much_to_choose", &["--strategy", "dfs"]);
    assert_eq!((&json["executions"], &json["complete"]), (&4095.into(), &false.into()), "{json:#}");
    let told = json["not_controlled"].as_array().expect("sentences");
    assert!(
        told.iter().any(|note| note.as_str().is_some_and(|n| n.contains("more of them than Heisen records"))),
        "{json:#}"
    );
}

#[test]
fn a_value_that_is_wrong() {
    let suite = suite();
    let (finding, text) = found(&suite, "the_wrong_value", &["--strategy", "dfs"], "assertion");
    assert_eq!(finding["preemptions"], 0);
    assert!(text.contains("\nat 1 T0 choose 2 of 4 ") && text.contains("\nat 2 T0 choose 3 of 4 "), "{text}");
    let choices = finding["choices"].as_array().expect("choices");
    assert_eq!(choices.len(), 2, "{finding:#}");
    assert_eq!(choices[1]["what"], "heisen_choose(4) returns 3");
    assert_eq!((&choices[1]["kind"], &choices[1]["thread"]), (&"choose".into(), &"T0".into()));
    // The probability is 1/16, so 100 executions miss it with one in six hundred seeds.
    for strategy in ["random", "pct"] {
        found(&suite, "the_wrong_value", &["--strategy", strategy, "--executions", "100"], "assertion");
    }
    // Values cost no preemption, and do not replace one.
    let (finding, text) = found(&suite, "a_value_and_a_preemption", &[], "assertion");
    assert_eq!(finding["preemptions"], 1);
    assert!(text.contains(" T0 -> T1 preempt lock ") && text.contains(" T1 choose 1 of 2 "), "{text}");
    let schedule = finding["schedule"].as_str().expect("a schedule");
    let shown = run(heisen(suite.directory.path()).args(["show", schedule])).expect(0).out;
    assert!(shown.contains("1 switch and 1 other choice from the default schedule, 1 preemption"), "{shown}");
    assert!(shown.contains("choose   heisen_choose(2) returns 1"), "{shown}");
    let replayed = run(heisen(suite.directory.path()).args(["replay", "--trace", schedule])).expect(1).out;
    assert!(replayed.contains("T1   choose(1 of 2)"), "{replayed}");
    assert!(replayed.contains("1 preemption and 1 other choice in 2 threads"), "{replayed}");
    assert!(replayed.contains("T1 (picks_late) at "), "{replayed}");
    assert!(replayed.contains("choices.c:11: heisen_choose(2) returns 1"), "{replayed}");
}

#[test]
fn spurious_wake_ups() {
    let suite = suite();
    // M: w (sleeps, unless A has set the word). A: s (sets the word), k (wakes). The orders w s k, s k w and
    // s w k have 0, 1 and 2 preemptions. With a spurious wake-up, M may continue by itself where it sleeps
    // (q). q s k and s k q cost no preemption; s q k preempts A. A sleep that does not begin, because the
    // word is set, is not a choice.
    for (bound, plain, spurious) in [("0", 1, 1 + 2), ("1", 2, 2 + 3), ("2", 3, 3 + 3)] {
        expect(&suite, "sleeps_once", &["--bound", bound], plain);
        expect(&suite, "sleeps_once", &["--bound", bound, "--spurious", "1"], spurious);
    }
    expect(&suite, "sleeps_once", &["--strategy", "dfs", "--spurious", "1"], 6);
    // There is no second sleep.
    expect(&suite, "sleeps_once", &["--strategy", "dfs", "--spurious", "9"], 6);
    // The wait times out, or it wakes before.
    expect(&suite, "waits_with_a_limit", &[], 1);
    expect(&suite, "waits_with_a_limit", &["--spurious", "1"], 2);
    // Without a wake-up the program deadlocks; with one it does not.
    let json = suite.check("nobody_wakes", &["--spurious", "1", "--keep-going"]);
    assert_eq!(
        (&json["executions"], &json["findings"][0]["kind"]),
        (&2.into(), &"deadlock".into()),
        "{json:#}"
    );
}

#[test]
fn a_wait_that_is_not_repeated() {
    let suite = suite();
    for case in ["waits_while", "waits_if"] {
        expect(&suite, case, &[], 2);
    }
    for most in ["1", "3"] {
        let json = suite.check("waits_while", &["--spurious", most]);
        assert_eq!((&json["verdict"], &json["complete"]), (&"clean".into(), &true.into()), "{json:#}");
    }
    let (finding, text) = found(&suite, "waits_if", &["--spurious", "1"], "assertion");
    assert_eq!(finding["preemptions"], 0);
    assert!(text.contains("\nspurious 1\n"), "{text}");
    assert!(text.contains(" T0 spurious cond_wait \"cond\" "), "{text}");
    let schedule = finding["schedule"].as_str().expect("a schedule");
    let trace = run(heisen(suite.directory.path()).args(["replay", "--trace", schedule])).expect(1).out;
    assert!(trace.contains("T0   spurious(cond)"), "{trace}");
    assert!(trace.contains("T0 (main) in cond_wait(cond) at "), "{trace}");
    assert!(trace.contains("choices.c:114: its wait ends although nobody wakes it"), "{trace}");
    for strategy in ["random", "pct"] {
        let options = ["--strategy", strategy, "--spurious", "1", "--executions", "1000"];
        found(&suite, "waits_if", &options, "assertion");
    }
}

#[test]
fn failing_locks() {
    let suite = suite();
    expect(&suite, "tries_twice", &[], 1);
    expect(&suite, "tries_twice", &["--faults", "1"], 1 + 2);
    expect(&suite, "tries_twice", &["--faults", "2:trylock"], 1 + 2 + 1);
    expect(&suite, "tries_twice", &["--faults", "2:malloc"], 1);
    expect(&suite, "tries_everything", &["--faults", "1"], 1 + 5);
}

#[test]
fn failing_allocations() {
    let suite = suite();
    expect(&suite, "allocates", &[], 1);
    expect(&suite, "allocates", &["--faults", "1"], 1 + 5);
    expect(&suite, "allocates", &["--faults", "2:malloc"], 1 + 5 + 5 * 4 / 2);
    expect(&suite, "allocates", &["--faults", "2:trylock"], 1);
    // Memory that the runtime allocates for a thread does not count.
    expect(&suite, "a_thread_allocates", &["--faults", "1"], 2);
}

#[test]
fn an_allocation_that_is_not_checked() {
    let suite = suite();
    for case in ["unchecked", "duplicates"] {
        expect(&suite, case, &[], 1);
        let (finding, text) = found(&suite, case, &["--faults", "1"], "crash");
        assert_eq!(finding["choices"][0]["what"], "malloc returns NULL", "{finding:#}");
        assert!(text.contains("\nfaults 1\n") && text.contains(" T0 fault malloc alloc \""), "{text}");
        for strategy in ["random", "pct"] {
            let options = ["--strategy", strategy, "--faults", "1:malloc", "--executions", "1000"];
            found(&suite, case, &options, "crash");
        }
    }
}

#[test]
fn the_same_check_gives_the_same_result() {
    let suite = suite();
    for case in ["waits_while", "waits_if", "allocates", "the_wrong_value"] {
        for strategy in ["icb", "random", "pct"] {
            let mut first = None;
            for jobs in ["1", "2"] {
                let options = ["--strategy", strategy, "--spurious", "2", "--faults", "2", "--keep-going"];
                let limits = ["--executions", "200", "--seed", "5", "--jobs", jobs];
                let json = timeless(suite.check(case, &[&options[..], &limits].concat()));
                assert_eq!(*first.get_or_insert_with(|| json.clone()), json, "{case} {strategy}");
            }
        }
    }
}

/// An allocator in a library of the program. It aborts when it gets a block that is not its own.
const ALLOCATOR: &str = r#"
#include <stdlib.h>
#include <string.h>
static _Alignas(16) char pool[1 << 20];
static size_t used;
size_t given;
void *malloc(size_t n) {
    n = (n + 31) & ~(size_t)15;
    if (used + n > sizeof pool) return NULL;
    *(size_t *)(pool + used) = n - 16;
    used += n;
    given++;
    return pool + used - n + 16;
}
void free(void *p) { if (p && ((char *)p < pool || (char *)p >= pool + used)) abort(); }
void *calloc(size_t a, size_t b) { void *p = malloc(a * b); return p ? memset(p, 0, a * b) : p; }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p && q) memcpy(q, p, ((size_t *)p)[-2] < n ? ((size_t *)p)[-2] : n);
    return q;
}
"#;

#[test]
fn another_allocator_stays_in_charge() {
    let directory = scratch();
    let at = directory.path();
    let library = compile(at, "allocator.c", ALLOCATOR, &["-shared", "-fPIC"]);
    std::fs::rename(library, at.join("liballocator.so")).expect("a library");
    let program = "#include <stdlib.h>\nextern size_t given;\nint main(void) {\n    size_t before = given;\n    \
                   char *p = malloc(10);\n    if (!p) return 0;\n    free(p);\n    return given == before + 1 ? 0 : 7;\n}\n";
    let path = format!("-L{}", at.display());
    let search = format!("-Wl,-rpath,{}", at.display());
    let program = compile(at, "uses.c", program, &[&path, &search, "-lallocator", "-Wl,--no-as-needed"]);
    let mut command = heisen(at);
    command.args(["check", "--json", "-", "--faults", "1", "--"]).arg(&program);
    let json = run(&mut command).expect(0).json();
    assert_eq!((&json["executions"], &json["verdict"]), (&2.into(), &"clean".into()), "{json:#}");
}
