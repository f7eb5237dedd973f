//! Tests that count happens-before classes in small programs for which the number is known.

use heisen_testkit::{check_json, program, scratch};
use serde_json::Value;

/// Checks a C program of these declarations and thread bodies with the happens-before cache (`--reduce`). The
/// search must be complete and find no bug. Returns the result as JSON.
fn check(declarations: &str, bodies: &[&str], args: &[&str]) -> Value {
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), program(declarations, bodies))
        .expect("the program is written");
    let json = check_json(directory.path(), &[args, &["--reduce", "p.c"]].concat());
    assert_eq!(
        (&json["verdict"], &json["complete"]),
        (&"clean".into(), &true.into()),
        "{bodies:?}: {json:#}"
    );
    json
}

/// The number of classes that a search without a bound sees.
fn classes(declarations: &str, bodies: &[&str]) -> u64 {
    check(declarations, bodies, &["--strategy", "dfs"])["classes"].as_u64().expect("a number")
}

const MUTEXES: &str =
    "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER; static int a, b;";
const LOCK_M: &str = "pthread_mutex_lock(&m); a++; pthread_mutex_unlock(&m);";
const LOCK_N: &str = "pthread_mutex_lock(&n); b++; pthread_mutex_unlock(&n);";

#[test]
fn critical_sections() {
    // The orders of the critical sections of one mutex: C(6, 3), and 4! / (2! 2!).
    assert_eq!(classes(MUTEXES, &[&LOCK_M.repeat(3), &LOCK_M.repeat(3)]), 20);
    assert_eq!(classes(MUTEXES, &[&LOCK_M.repeat(2), &LOCK_M.repeat(2)]), 6);
    // 3 threads with one critical section each: 3!.
    assert_eq!(classes(MUTEXES, &[LOCK_M, LOCK_M, LOCK_M]), 6);
    // Critical sections of different mutexes are independent.
    assert_eq!(classes(MUTEXES, &[LOCK_M, LOCK_N]), 1);
    assert_eq!(classes(MUTEXES, &[&LOCK_M.repeat(3), &LOCK_N.repeat(3)]), 1);
    // Two orders at each of two mutexes. If the threads take them in opposite orders, one of the four
    // combinations is a cycle.
    let (both, other) = (format!("{LOCK_M}{LOCK_N}"), format!("{LOCK_N}{LOCK_M}"));
    assert_eq!(classes(MUTEXES, &[&both, &both]), 4);
    assert_eq!(classes(MUTEXES, &[&both, &other]), 3);
}

#[test]
fn atomics() {
    let x = "static atomic_int x, y;";
    let twice = "for (int i = 0; i < 2; i++) { int v = x; x = v + 1; }";
    let thrice = "for (int i = 0; i < 3; i++) { int v = x; x = v + 1; }";
    // Two other model checkers report the same counts.
    assert_eq!(classes(x, &[twice, twice]), 34);
    assert_eq!(classes(x, &[thrice, thrice]), 328);
    // Two stores: either is last. A store and a load: either is first. Two loads: no difference.
    assert_eq!(classes(x, &["x = 1;", "x = 2;"]), 2);
    assert_eq!(classes(x, &["x = 1;", "int v = x; (void)v;"]), 2);
    assert_eq!(classes(x, &["int v = x; (void)v;", "int v = x; (void)v;"]), 1);
    assert_eq!(classes(x, &["x = 1;", "y = 1;"]), 1);
    // An increment is one step: C(4, 2).
    assert_eq!(classes(x, &["x++; x++;", "x++; x++;"]), 6);
    // Store buffering: two conflicting pairs with two orders each, without the one combination that is a
    // cycle: 2 * 2 - 1.
    assert_eq!(classes(x, &["x = 1; int v = y; (void)v;", "y = 1; int v = x; (void)v;"]), 3);
}

#[test]
fn readers_are_independent() {
    let lock = "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;";
    let read = "pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l);";
    let write = "pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l);";
    assert_eq!(classes(lock, &[write, write]), 2);
    assert_eq!(classes(lock, &[read, write]), 2);
}

#[test]
fn reduction_keeps_all_classes_of_a_bound() {
    // Two threads with three sections each. At bound 0 one thread finishes before the other begins.
    let sections = LOCK_M.repeat(3);
    let within = |bound: &str| {
        let plain = ["--strategy", "icb", "--bound", bound];
        let json = check(MUTEXES, &[&sections, &sections], &plain);
        (json["classes"].as_u64().unwrap(), json["preemption_bound"].as_u64().unwrap())
    };
    // With p preemptions the sections form at most p + 2 blocks of one thread. Of the sequences of 3 a and 3
    // b, 2 have at most 2 blocks, 2 + 4 at most 3, and 2 + 4 + 8 at most 4. All 20 sequences have at most 6
    // blocks.
    assert_eq!(within("0"), (2, 0));
    assert_eq!(within("1"), (6, 1));
    assert_eq!(within("2"), (14, 2));
    assert_eq!(within("4"), (20, 4));
}

/// One thread frees memory before the other uses it. Nothing else in the two threads depends on their order.
#[test]
fn memory_that_is_freed() {
    let directory = scratch();
    let declarations = format!(
        "#include <stdlib.h>\n{MUTEXES} static char *p, got; __attribute__((constructor)) static void make(void) {{ p = malloc(8); *p = 1; }}"
    );
    let bodies = [format!("{LOCK_M} got = *p;"), format!("{LOCK_N} free(p);")];
    let bodies = [bodies[0].as_str(), bodies[1].as_str()];
    std::fs::write(directory.path().join("p.c"), program(&declarations, &bodies))
        .expect("the program is written");
    let ways: [&[&str]; 5] =
        [&[], &["--reduce=off"], &["--reduce"], &["--strategy", "dfs", "--reduce"], &["--strategy", "dpor"]];
    for args in ways {
        let json = check_json(directory.path(), &[args, &["p.c"]].concat());
        assert_eq!(json["findings"][0]["kind"], "use-after-free", "{args:?}: {json:#}");
    }
}

/// icb uses the happens-before cache without being asked if it sees every access.
#[test]
fn by_itself() {
    let directory = scratch();
    let body = LOCK_M.repeat(3);
    std::fs::write(directory.path().join("p.c"), program(MUTEXES, &[&body, &body]))
        .expect("the program is written");
    let executions = |args: &[&str]| {
        let json = check_json(directory.path(), &[args, &["--bound", "9", "p.c"]].concat());
        assert_eq!(
            (&json["verdict"], &json["complete"]),
            (&"clean".into(), &true.into()),
            "{args:?}: {json:#}"
        );
        json["executions"].as_u64().expect("a number")
    };
    let (all, some) = (executions(&["--reduce=off"]), executions(&["--reduce"]));
    assert!(some < all, "{some} of {all}");
    assert_eq!(executions(&[]), some);
    // If some accesses go unseen, it does not.
    assert_eq!(executions(&["--no-instrument"]), all);
    assert_eq!(executions(&["--races=off"]), all);
    assert_eq!(executions(&["--no-instrument", "--reduce"]), some);
}

/// Checks two threads that each count to `most` under a lock and run `state` after each increment. Returns
/// the result of the complete search.
fn counters(most: usize, state: &str) -> Value {
    let declarations = format!(
        "#include <heisen.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static unsigned long done[2];\n\
         static void count(int i) {{\n\
             for (int k = 0; k < {most}; k++) {{ pthread_mutex_lock(&m); done[i]++; {state} pthread_mutex_unlock(&m); }}\n\
         }}\n"
    );
    check(&declarations, &["count(0);", "count(1);"], &["--strategy", "dfs", "--no-instrument"])
}

#[test]
fn a_program_that_tells_its_state() {
    let all = "heisen_state(done[0] << 8 | done[1]);";
    let (mut before, mut growth) = (0, vec![]);
    for (most, orders) in [(2, 6), (3, 20), (4, 70), (5, 252), (6, 924)] {
        assert_eq!(counters(most, "")["classes"], orders);
        // The final classes differ in which thread was last, and in whether the other had ended by then.
        let told = counters(most, all);
        assert_eq!(told["classes"], 3, "{told:#}");
        let executions = told["executions"].as_i64().expect("a number");
        growth.push(executions - before);
        before = executions;
    }
    // The number of states is the number of pairs of counts. So the executions grow as the square of `most`.
    assert!(growth[1..].windows(2).all(|two| two[1] - two[0] == 4), "{growth:?}");
}

#[test]
fn a_bug_that_depends_on_the_reported_state_is_found() {
    let declarations = "#include <heisen.h>\n#include <assert.h>\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static unsigned long a, b;\n\
        static void lock(void) { pthread_mutex_lock(&m); }\n\
        static void unlock(void) { heisen_state(a << 8 | b); pthread_mutex_unlock(&m); }\n";
    let first = "for (int i = 0; i < 4; i++) { lock(); a++; unlock(); }";
    let second = "for (int i = 0; i < 4; i++) { lock(); b++; assert(a != 3 || b != 2); unlock(); }";
    for strategy in [&["--strategy", "dfs"][..], &["--strategy", "icb", "--bound", "4"]] {
        let directory = scratch();
        std::fs::write(directory.path().join("p.c"), program(declarations, &[first, second]))
            .expect("written");
        let json =
            check_json(directory.path(), &[strategy, &["--no-instrument", "--reduce", "p.c"]].concat());
        assert_eq!(json["verdict"], "bug", "{json:#}");
    }
}
