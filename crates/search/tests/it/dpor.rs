//! Tests of dynamic partial-order reduction on real programs. Where the number of classes is known, dpor
//! needs as many executions. Elsewhere it must find the same classes and bugs as an exploration of all
//! schedules. Other tests cover the options it rejects and its caveats about unsuitable programs.

use heisen_testkit::{check_json, heisen, program, root, run, scratch, usual_or_nightly};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks a C program of these declarations and thread bodies. The search must be complete.
fn check(declarations: &str, bodies: &[&str], args: &[&str]) -> Value {
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), program(declarations, bodies)).expect("it is written");
    let json = check_json(directory.path(), &[args, &["--keep-going", "p.c"]].concat());
    assert_eq!(json["complete"], true, "{args:?} {bodies:?}: {json:#}");
    json
}

fn number(json: &Value, name: &str) -> u64 {
    json[name].as_u64().unwrap_or_else(|| panic!("{name}: {json:#}"))
}

/// The signatures of all findings.
fn findings(json: &Value) -> BTreeSet<&str> {
    let all = json["findings"].as_array().expect("a list");
    all.iter().map(|f| f["signature"].as_str().expect("a text")).collect()
}

const DPOR: &[&str] = &["--strategy", "dpor"];

/// Checks that dpor explores `expected` classes with one execution each, with one worker and with two.
#[track_caller]
fn classes(declarations: &str, bodies: &[&str], expected: u64) {
    for jobs in ["1", "2"] {
        let json = check(declarations, bodies, &[DPOR, &["--jobs", jobs]].concat());
        let found = ["classes", "executions", "blocked", "restarts"].map(|name| number(&json, name));
        assert_eq!(found, [expected, expected, 0, 0], "{bodies:?}");
        assert_eq!(json["verdict"], "clean");
    }
}

/// Checks that dpor finds the same classes and bugs as dfs, and that at most `in_vain` executions are blocked
/// by a sleep set. Returns the number of findings.
#[track_caller]
fn matches_dfs(declarations: &str, bodies: &[&str], in_vain: u64) -> u64 {
    let counted = check(declarations, bodies, &["--strategy", "dfs", "--reduce"]);
    let reduced = check(declarations, bodies, DPOR);
    assert_eq!(number(&reduced, "classes"), number(&counted, "classes"), "{bodies:?}");
    assert_eq!(findings(&reduced), findings(&counted), "{bodies:?}");
    let (classes, blocked) = (number(&reduced, "classes"), number(&reduced, "blocked"));
    assert!(blocked <= in_vain, "{blocked} in vain: {bodies:?}");
    let executions = number(&reduced, "executions");
    assert!(executions == classes + blocked || number(&reduced, "restarts") > 0, "{bodies:?}: {reduced:#}");
    if usual_or_nightly(false, true) {
        let all = check(declarations, bodies, &["--strategy", "dfs"]);
        assert_eq!(findings(&reduced), findings(&all), "{bodies:?}");
        assert!(executions < number(&all, "executions"));
    }
    findings(&reduced).len() as u64
}

const MUTEXES: &str =
    "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER; static int a, b;";
const LOCK_M: &str = "pthread_mutex_lock(&m); a++; pthread_mutex_unlock(&m);";
const LOCK_N: &str = "pthread_mutex_lock(&n); b++; pthread_mutex_unlock(&n);";
const ATOMICS: &str = "static atomic_int x, y;";

#[test]
fn critical_sections() {
    // The orders of the critical sections of one mutex: C(6, 3), 3!, 5! / (2! 2!).
    classes(MUTEXES, &[&LOCK_M.repeat(3), &LOCK_M.repeat(3)], 20);
    classes(MUTEXES, &[LOCK_M, LOCK_M, LOCK_M], 6);
    classes(MUTEXES, &[&LOCK_M.repeat(2), &LOCK_M.repeat(2), LOCK_M], 30);
    // Critical sections of different mutexes are independent. With two mutexes there are two orders at each;
    // in the last program one combination is a cycle.
    classes(MUTEXES, &[&LOCK_M.repeat(3), &LOCK_N.repeat(3)], 1);
    let (both, other) = (format!("{LOCK_M}{LOCK_N}"), format!("{LOCK_N}{LOCK_M}"));
    classes(MUTEXES, &[&both, &both], 4);
    classes(MUTEXES, &[&both, &other], 3);
}

#[test]
fn atomics() {
    // Two other model checkers report the same counts.
    let twice = "for (int i = 0; i < 2; i++) { int v = x; x = v + 1; }";
    let thrice = "for (int i = 0; i < 3; i++) { int v = x; x = v + 1; }";
    classes(ATOMICS, &[twice, twice], 34);
    classes(ATOMICS, &[thrice, thrice], 328);
    // Two writes in two orders with 3 positions for the read; store buffering without the cycle; increments:
    // C(4, 2).
    classes(ATOMICS, &["x = 1;", "x = 2;", "int v = x; (void)v;"], 6);
    classes(ATOMICS, &["x = 1; int v = y; (void)v;", "y = 1; int v = x; (void)v;"], 3);
    classes(ATOMICS, &["x++; x++;", "x++; x++;"], 6);
}

/// The small programs of the benchmark.
#[test]
fn small_programs() {
    for (name, expected) in [
        ("mutex_counter", 20),
        ("racy_counter", 4),
        ("ping_pong", 8),
        // It would be 78 if failed compare-exchanges counted as writes.
        ("treiber", 46),
        ("philosophers", 6),
        ("stealing", 12),
    ] {
        let directory = scratch();
        let file = root().join(format!("crates/cli/benches/small/{name}.c")).display().to_string();
        // The second check starts with the access points that the first one saved.
        for again in [false, true] {
            let json = check_json(directory.path(), &[DPOR, &[&file]].concat());
            let found = ["classes", "executions", "restarts"].map(|name| number(&json, name));
            assert_eq!(found, [expected, expected, 0], "{name}, again: {again}");
        }
    }
}

/// dpor begins with every access as a scheduling point (the opening). Where that would add needless classes
/// or too many steps, the search starts over with the access points only.
#[test]
fn the_opening_ends() {
    let count = |declarations: &str, bodies: &[&str], args: &[&str]| {
        let json = check(declarations, bodies, &[DPOR, args].concat());
        ["classes", "restarts"].map(|name| number(&json, name))
    };
    // Each thread writes its own byte of one word.
    let bytes = "static char b[4] __attribute__((aligned(4)));";
    assert_eq!(count(bytes, &["b[0] = 1;", "b[1] = 1;"], &[]), [1, 1]);
    assert_eq!(count(bytes, &["b[0] = 1;", "b[1] = 1;"], &["--accesses", "all"]), [2, 0]);
    // More steps than the opening allows in one execution, without a conflict; then one conflict.
    let many = format!("{ATOMICS} static volatile int own;");
    let long = "for (int i = 0; i < 2000; i++) own = i; x++;";
    assert_eq!(count(&many, &[long, "x++;"], &[]), [2, 1]);
    // A loop that waits. Partial-order reduction does not support fairness, so this search is never complete.
    let directory = scratch();
    let waits = program(ATOMICS, &["x = 1;", "for (int i = 0; i < 9 && !x; i++) ;"]);
    std::fs::write(directory.path().join("p.c"), waits).expect("it is written");
    let json = check_json(directory.path(), &[DPOR, &["p.c"]].concat());
    assert_eq!(["classes", "restarts"].map(|name| number(&json, name)), [5, 1], "{json:#}");
}

/// An execution that only the step limit ends is long. dpor still reverses its races and finds the bug.
#[test]
fn loops_without_end() {
    let directory = scratch();
    let file = root().join("examples/c/samaritan.c").display().to_string();
    let json = check_json(
        directory.path(),
        &[DPOR, &["--keep-going", "--steps", "200000", "--executions", "60", &file]].concat(),
    );
    let kinds: BTreeSet<&str> =
        json["findings"].as_array().expect("a list").iter().filter_map(|f| f["kind"].as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(["good-samaritan"]), "{json:#}");
    assert_eq!(json["verdict"], "bug");
}

/// A finding from the opening records in its schedule that every access is a scheduling point, so it replays.
#[test]
fn a_finding_of_the_opening_replays() {
    let directory = scratch();
    let file = root().join("examples/c/trylock.c").display().to_string();
    let json = check_json(directory.path(), &[DPOR, &[&file]].concat());
    assert_eq!((&json["restarts"], &json["findings"][0]["kind"]), (&0.into(), &"assertion".into()));
    let schedule = json["findings"][0]["schedule"].as_str().expect("a path");
    let text = std::fs::read_to_string(directory.path().join(schedule)).expect("a schedule");
    assert!(text.contains("\naccesses all\n"), "{text}");
    let out = run(heisen(directory.path()).args(["replay", schedule])).expect(1).out;
    assert!(out.contains("assertion `total == 7` failed"), "{out}");
    run(heisen(directory.path()).args(["script", "--from", schedule])).expect(0);
}

#[test]
fn condition_variables() {
    let shared = format!("{MUTEXES} static pthread_cond_t c = PTHREAD_COND_INITIALIZER; static int ready;");
    let wait = "pthread_mutex_lock(&m); while (!ready) pthread_cond_wait(&c, &m); ready--; pthread_mutex_unlock(&m);";
    let wake = |how: &str, count: u32| {
        format!("pthread_mutex_lock(&m); ready = {count}; pthread_cond_{how}(&c); pthread_mutex_unlock(&m);")
    };
    assert_eq!(matches_dfs(&shared, &[wait, &wake("signal", 1)], 0), 0);
    assert_eq!(matches_dfs(&shared, &[wait, wait, &wake("broadcast", 2)], 0), 0);
    // Which of two waiters wakes is a choice, too. One signal is too few for both.
    assert!(matches_dfs(&shared, &[wait, wait, &wake("signal", 2)], 9) > 0);
    // A signal that comes too early is lost.
    let once = "pthread_mutex_lock(&m); if (!ready) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m);";
    assert!(matches_dfs(&shared, &[once, "ready = 1; pthread_cond_signal(&c);"], 0) > 0);
    // A wait may time out at once, or only when no other thread can go on.
    for until in ["{0, 0}", "{2000000000, 0}"] {
        let until = format!("{shared} static struct timespec until = {until};");
        let wait = "pthread_mutex_lock(&m); if (!ready) pthread_cond_timedwait(&c, &m, &until); pthread_mutex_unlock(&m);";
        assert_eq!(matches_dfs(&until, &[wait, &wake("signal", 1)], 0), 0);
    }
}

#[test]
fn semaphores() {
    let s = "static sem_t s;";
    // dpor cannot always tell which post a wait needs, so some executions are blocked.
    assert_eq!(matches_dfs(s, &["sem_post(&s); sem_post(&s);", "sem_wait(&s);", "sem_wait(&s);"], 3), 0);
    assert!(matches_dfs(s, &["sem_post(&s);", "sem_wait(&s);", "sem_wait(&s);"], 3) > 0);
    let try_first = "if (sem_trywait(&s)) sem_wait(&s);";
    assert_eq!(matches_dfs(s, &["sem_post(&s); sem_post(&s);", try_first], 3), 0);
}

#[test]
fn other_objects() {
    let attempt = "if (!pthread_mutex_trylock(&m)) { a++; pthread_mutex_unlock(&m); }";
    assert_eq!(matches_dfs(MUTEXES, &[attempt, attempt, LOCK_M], 3), 0);
    let lock = "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;";
    let read = "pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l);";
    let write = "pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l);";
    assert_eq!(matches_dfs(lock, &[read, read, write], 3), 0);
    let try_read = "if (!pthread_rwlock_tryrdlock(&l)) pthread_rwlock_unlock(&l);";
    let try_write = "if (!pthread_rwlock_trywrlock(&l)) pthread_rwlock_unlock(&l);";
    assert_eq!(matches_dfs(lock, &[try_read, try_write], 3), 0);
    let once =
        "static pthread_once_t o = PTHREAD_ONCE_INIT; static atomic_int x; static void f(void) { x++; x++; }";
    assert_eq!(matches_dfs(once, &["pthread_once(&o, f); x++;", "pthread_once(&o, f); x++;"], 3), 0);
    let barrier = "static pthread_barrier_t b; static atomic_int x;
        __attribute__((constructor)) static void init(void) { pthread_barrier_init(&b, 0, 2); }";
    let meet = "x++; pthread_barrier_wait(&b); x++;";
    assert_eq!(matches_dfs(barrier, &[meet, meet], 3), 0);
    // The other thread may or may not have locked the mutex before it is destroyed.
    let destroy = format!("{LOCK_M} pthread_mutex_destroy(&m);");
    assert!(matches_dfs(MUTEXES, &[LOCK_M, &destroy], 3) > 0);
}

#[test]
fn threads_and_ends() {
    let inner = format!("{ATOMICS} static void *inner(void *u) {{ x++; return u; }}");
    let start = "pthread_t u; pthread_create(&u, 0, inner, 0); x++; pthread_join(u, 0);";
    assert_eq!(matches_dfs(&inner, &[start, "x++;"], 0), 0);
    let ends = format!("#include <stdlib.h>\n#include <assert.h>\n{ATOMICS}");
    assert_eq!(matches_dfs(&ends, &["x = 1; exit(0);", "y = 1; x = 2; y = 3;"], 0), 0);
    assert!(matches_dfs(&ends, &["x++; x++;", "assert(x != 1);", "y = 1; x--;"], 3) > 0);
    let chooses = format!("#include <heisen.h>\n{ATOMICS}");
    let choose = "if (heisen_choose(2)) x = 1; else y = 1;";
    assert_eq!(matches_dfs(&chooses, &[choose, "x = 2; y = 2;"], 3), 0);
}

/// Checks that dpor finds the same classes and bugs as icb at bounds 0 and 2, with at most as many
/// executions. Returns the numbers of executions.
#[track_caller]
fn within_bounds(declarations: &str, bodies: &[&str]) -> [u64; 2] {
    let each = |bound: &str| {
        let at = ["--bound", bound];
        let counted = check(declarations, bodies, &[&["--strategy", "icb", "--reduce"][..], &at].concat());
        let reduced = check(declarations, bodies, &[DPOR, &at].concat());
        assert_eq!(number(&reduced, "classes"), number(&counted, "classes"), "{bound} of {bodies:?}");
        assert_eq!(findings(&reduced), findings(&counted), "{bound} of {bodies:?}");
        if usual_or_nightly(false, true) {
            let all = [&["--strategy", "icb", "--reduce=off"][..], &at].concat();
            let all = check(declarations, bodies, &all);
            assert_eq!(findings(&reduced), findings(&all), "{bound} of {bodies:?}");
            let fewer = number(&reduced, "executions") <= number(&all, "executions");
            assert!(fewer || number(&reduced, "restarts") > 0, "{bound} of {bodies:?}");
        }
        for finding in reduced["findings"].as_array().expect("a list") {
            assert!(number(finding, "preemptions").to_string().as_str() <= bound, "{finding:#}");
        }
        let two = check(declarations, bodies, &[DPOR, &at, &["--jobs", "2"]].concat());
        assert_eq!(number(&two, "executions"), number(&reduced, "executions"));
        number(&reduced, "executions")
    };
    ["0", "2"].map(each)
}

#[test]
fn bounds() {
    // There is one class, but dpor also explores the orders in which the threads end before `main` joins
    // them.
    assert_eq!(within_bounds(MUTEXES, &[&LOCK_M.repeat(3), &LOCK_N.repeat(3)]), [2, 8]);
    let (both, other) = (format!("{LOCK_M}{LOCK_N}"), format!("{LOCK_N}{LOCK_M}"));
    within_bounds(MUTEXES, &[&both, &other]);
    within_bounds(ATOMICS, &["int v = x; x = v + 1;", "int v = x; x = v + 1;", "x++;"]);
    within_bounds("static sem_t s;", &["sem_post(&s); sem_post(&s);", "sem_wait(&s);", "sem_wait(&s);"]);
    let shared = format!("{MUTEXES} static pthread_cond_t c = PTHREAD_COND_INITIALIZER; static int ready;");
    let wait = "pthread_mutex_lock(&m); while (!ready) pthread_cond_wait(&c, &m); ready--; pthread_mutex_unlock(&m);";
    let wake =
        "pthread_mutex_lock(&m); ready = 2; pthread_cond_signal(&c); pthread_mutex_unlock(&m);".to_owned();
    within_bounds(&shared, &[wait, wait, &wake]);
    let nested = |a, b| {
        format!(
            "pthread_mutex_lock(&{a}); pthread_mutex_lock(&{b}); pthread_mutex_unlock(&{b}); pthread_mutex_unlock(&{a});"
        )
    };
    within_bounds(MUTEXES, &[&nested("m", "n"), &nested("n", "m")]);
    let ends = format!("#include <stdlib.h>\n#include <assert.h>\n{ATOMICS}");
    within_bounds(&ends, &["x = 1; exit(0);", "y = 1; x = 2; y = 3;"]);
    within_bounds(&ends, &["x++; x++;", "assert(x != 1);", "y = 1; x--;"]);
}

#[test]
fn what_it_says_of_bounds() {
    let directory = scratch();
    let text = program(MUTEXES, &[&LOCK_M.repeat(3), &LOCK_M.repeat(3)]);
    std::fs::write(directory.path().join("p.c"), text).expect("it is written");
    let says = |bound: &str| {
        let args = ["check", "--strategy", "dpor", "--bound", bound, "p.c"];
        run(heisen(directory.path()).args(args)).expect(0).out
    };
    let out = says("0");
    assert!(
        out.contains(
            "ok: no bug in any schedule with at most 0 preemptions; every happens-before class explored: 2 classes, "
        ),
        "{out}"
    );
    assert!(out.contains("; a remaining bug needs at least 1 preemption\n"), "{out}");
    // At a bound that excludes no schedule, the claim covers all schedules.
    let out = says("9");
    assert!(
        out.contains("ok: no bug in any schedule; every happens-before class explored: 20 classes, "),
        "{out}"
    );
}

#[test]
fn philosophers() {
    let forks = "static pthread_mutex_t f[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};";
    let eat = |a: usize| {
        let b = (a + 1) % 3;
        format!(
            "pthread_mutex_lock(&f[{a}]); pthread_mutex_lock(&f[{b}]); pthread_mutex_unlock(&f[{b}]); pthread_mutex_unlock(&f[{a}]);"
        )
    };
    let bodies = [0, 1, 2].map(eat);
    let json = check(forks, &bodies.each_ref().map(String::as_str), DPOR);
    // Of the 2^3 orders at the forks, one is impossible: everyone would get a fork only as its second user.
    assert_eq!((number(&json, "classes"), findings(&json).len()), (7, 1), "{json:#}");
    assert_eq!(json["findings"][0]["kind"], "deadlock");
}

/// dpor finds the bug that the head comment of each example describes, and finds none in the fixed version.
#[test]
fn examples() {
    let directory = scratch();
    for (name, kind) in [
        ("account", "assertion"),
        ("bluetooth", "assertion"),
        ("bounded_buffer", "assertion"),
        ("figure2", "assertion"),
        ("lock_order", "deadlock"),
        ("lost_wakeup", "deadlock"),
        ("once", "deadlock"),
        ("pipes", "deadlock"),
        ("pool", "exit-status"),
        ("treiber", "assertion"),
        ("trylock", "assertion"),
    ] {
        let path = |end: &str| root().join(format!("examples/c/{name}{end}.c")).display().to_string();
        let json = check_json(directory.path(), &[DPOR, &[&path("")]].concat());
        assert_eq!(json["findings"][0]["kind"], kind, "{name}: {json:#}");
        let json = check_json(directory.path(), &[DPOR, &[&path("_fixed")]].concat());
        assert_eq!(
            (&json["verdict"], &json["complete"]),
            (&"clean".into(), &true.into()),
            "{name}: {json:#}"
        );
    }
}

#[test]
fn budgets_are_shared() {
    // With a budget of 1, one of two waits may end spuriously, or one of two attempts may fail.
    let shared = format!("{MUTEXES} static pthread_cond_t c = PTHREAD_COND_INITIALIZER; static int ready;");
    let wait = "pthread_mutex_lock(&m); while (!ready) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m);";
    let wake = "pthread_mutex_lock(&m); ready = 1; pthread_cond_broadcast(&c); pthread_mutex_unlock(&m);";
    let attempt = "if (!pthread_mutex_trylock(&m)) { a++; pthread_mutex_unlock(&m); }";
    let other = attempt.replace("&m", "&n").replace("a++", "b++");
    for (declarations, bodies, option) in
        [(&*shared, &[wait, wake][..], "--spurious"), (MUTEXES, &[attempt, &other][..], "--faults")]
    {
        let counted = check(declarations, bodies, &["--strategy", "dfs", "--reduce", option, "1"]);
        let reduced = check(declarations, bodies, &[DPOR, &[option, "1"]].concat());
        assert_eq!(number(&reduced, "classes"), number(&counted, "classes"), "{bodies:?}");
    }
}

#[test]
fn what_it_says() {
    let directory = scratch();
    let text = program(MUTEXES, &[&LOCK_M.repeat(3), &LOCK_M.repeat(3)]);
    std::fs::write(directory.path().join("p.c"), text).expect("it is written");
    let ran = run(heisen(directory.path()).args(["check", "--strategy", "dpor", "p.c"])).expect(0);
    let expected =
        "ok: no bug in any schedule; every happens-before class explored: 20 classes, 20 executions";
    assert!(ran.out.lines().any(|line| line == expected), "{}", ran.out);
}

#[test]
fn what_it_does_not_go_with() {
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), "int main(void) { return 0; }").expect("it is written");
    for (options, words) in [
        (&["--reduce"][..], "--reduce is for --strategy icb and dfs, but the strategy is dpor"),
        (&["--no-preempt", "f"], "--strategy dpor cannot be combined with --no-preempt"),
        (&["--focus", "f"], "--strategy dpor cannot be combined with --focus"),
        (&["--real-time"], "--strategy dpor cannot be combined with --real-time"),
        (&["--bound", "1", "--real-time"], "--strategy dpor cannot be combined with --real-time"),
        (&["--bound", "1", "--reduce"], "--reduce is for --strategy icb and dfs, but the strategy is dpor"),
        (&["--bound", "-1"], "invalid value '-1' for '--bound <N>'"),
    ] {
        let ran =
            run(heisen(directory.path()).args(["check", "--strategy", "dpor"]).args(options).arg("p.c"));
        ran.fails(2, &[words]);
    }
}

#[test]
fn programs_that_it_does_not_fit() {
    let directory = scratch();
    let check = |declarations: &str, bodies: &[&str]| {
        std::fs::write(directory.path().join("p.c"), program(declarations, bodies)).expect("it is written");
        let json = check_json(directory.path(), &[DPOR, &["--executions", "2000", "p.c"]].concat());
        assert_eq!((&json["verdict"], &json["complete"]), (&"incomplete".into(), &false.into()), "{json:#}");
        json["not_controlled"].to_string()
    };
    // Which mutex is locked differs from run to run.
    let either = "for (int i = 0; i < 4; i++) {
        pthread_mutex_t *p = __builtin_ia32_rdtsc() >> 4 & 1 ? &m : &n;
        pthread_mutex_lock(p); pthread_mutex_unlock(p);
    }";
    let said = check(MUTEXES, &[either, either]);
    assert!(said.contains("dpor does not fit this program") && said.contains("--strategy icb"), "{said}");
    // A thread that yields gives way to the others.
    let yields = "while (!x) sched_yield();";
    let said = check(&format!("#include <sched.h>\n{ATOMICS}"), &[yields, "y = 1; y = 2; x = 1;"]);
    assert!(said.contains("fairness"), "{said}");
    // Regions without preemption hide choices.
    let region = "heisen_no_preempt_begin(); x = 1; x = 2; heisen_no_preempt_end();";
    let said = check(&format!("#include <heisen.h>\n{ATOMICS}"), &[region, "x = 3;"]);
    assert!(said.contains("heisen_no_preempt_begin"), "{said}");
}
