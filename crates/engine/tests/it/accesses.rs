//! Tests of memory accesses as scheduling points. The executions of small instrumented programs are counted
//! by hand. Loops that wait for memory to change must not keep a search from finishing.

use heisen_testkit::{check_json, scratch};
use serde_json::Value;
use std::path::Path;

/// Checks a C program of some declarations and the bodies of two threads, `first` and `second`.
fn check(declarations: &str, bodies: [&str; 2], args: &[&str]) -> Value {
    let directory = scratch();
    let file = directory.path().join("p.c");
    write(&file, declarations, bodies);
    let all: Vec<&str> = args.iter().copied().chain(["p.c"]).collect();
    check_json(directory.path(), &all)
}

fn write(file: &Path, declarations: &str, [first, second]: [&str; 2]) {
    let text = format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <sched.h>\n#include <stdatomic.h>\n{declarations}\n\
         static void *first(void *unused) {{ {first}; return unused; }}\n\
         static void *second(void *unused) {{ {second}; return unused; }}\n\
         int main(void) {{\n\
             pthread_t threads[2];\n\
             pthread_create(&threads[0], 0, first, 0);\n\
             pthread_create(&threads[1], 0, second, 0);\n\
             pthread_join(threads[0], 0);\n\
             pthread_join(threads[1], 0);\n\
             return 0;\n\
         }}\n"
    );
    std::fs::write(file, text).expect("the program is written");
}

/// The number of executions of a complete search that finds nothing.
fn executions(declarations: &str, bodies: [&str; 2], args: &[&str]) -> u64 {
    let json = check(declarations, bodies, args);
    assert_eq!(json["verdict"], "clean", "{bodies:?}: {json:#}");
    assert_eq!(json["complete"], true, "{bodies:?}: {json:#}");
    json["executions"].as_u64().expect("a number")
}

/// The number of executions of two threads with `k` scheduling points each, and a main thread that creates
/// and joins them. `bound` is that of icb, or `None` for dfs. The steps are c (the second create; no other
/// thread exists before the first one), j and J (the joins), and for each thread k points and its end.
///
/// **dfs**: the interleavings of "k points, end, j" and "c, k points, end". Each of the two has k + 2 steps.
/// One interleaving is impossible: all of the first before all of the second, because j comes after c. J is
/// always last. That makes C(2k + 4, k + 2) - 1.
///
/// **0 preemptions**: 3. Main continues to j and waits for the first thread. If the first thread is chosen,
/// it ends, and main (j) or the second may be next: 2. If the second is chosen, it ends, then the first ends,
/// then main continues: 1.
///
/// **1 preemption**: 1 + k + k + 2k more. A thread can be preempted in these ways:
/// - Main, before c: the first ends, main continues to c and j, and waits for the second: 1.
/// - The first, chosen at j, before each of its k + 1 steps but the first: the second ends, the first
///   continues: k.
/// - The second, chosen when the first has ended, before the same steps: main does j and waits, the second
///   continues: k.
/// - The second, chosen at j, before the same steps: the first ends, and main or the second may be next: 2k.
///
/// **2 preemptions**: (3k + 1) + 2kk + kk + k(k - 1)/2 more.
/// - Main before c, and then the first at one of k steps: main does c and waits, and the rest is as with 0
///   preemptions: 3k. Or, if the first ends, main again, before j: 1.
/// - The first at one of k steps, the second at one of k; the first ends, and main or the second may be next:
///   2kk.
/// - The second, chosen at j, at one of k steps, the first at one of k; the second ends, then the first: kk.
/// - The same, but the first ends, and the second is next. It is preempted once more, where main does j. If
///   its first preemption came after i steps, k - i steps are left: k(k - 1)/2.
fn by_hand(k: u64, bound: Option<u32>) -> u64 {
    let more = [3, 4 * k + 1, (3 * k + 1) + 3 * k * k + k * k.saturating_sub(1) / 2];
    match bound {
        Some(bound) => more[..=bound as usize].iter().sum(),
        None => (1..=k + 2).fold(1, |product, i| product * (k + 2 + i) / i) - 1,
    }
}

const SEARCHES: [(&[&str], Option<u32>); 4] = [
    (&["--bound", "0", "--reduce=off"], Some(0)),
    (&["--bound", "1", "--reduce=off"], Some(1)),
    (&["--bound", "2", "--reduce=off"], Some(2)),
    (&["--strategy", "dfs"], None),
];

#[test]
fn conflicting_stores_are_points() {
    for k in 1..=3 {
        let body = "atomic_store(&x, 1);".repeat(k);
        for (args, bound) in SEARCHES {
            // One more: the first execution finds the conflict, and then the search starts over.
            let expected = 1 + by_hand(k as u64, bound);
            assert_eq!(
                executions("static atomic_int x;", [&body, &body], args),
                expected,
                "{k} stores, {args:?}"
            );
        }
    }
}

/// The read and the write are one scheduling point each.
#[test]
fn plain_accesses_that_race_are_points() {
    for (args, bound) in SEARCHES {
        assert_eq!(executions("static int x;", ["x++", "x++"], args), 1 + by_hand(2, bound), "{args:?}");
    }
}

/// A read-modify-write is one scheduling point. So is a compare-exchange, whether it succeeds or not.
#[test]
fn updates_are_one_point() {
    let cas = "int e = 0; atomic_compare_exchange_strong(&x, &e, 1)";
    for (body, other) in
        [("x++", "x++"), (cas, cas), ("x++", "assert(x < 2)"), ("atomic_exchange(&x, 1)", "x--")]
    {
        for (args, bound) in SEARCHES {
            let expected = 1 + by_hand(1, bound);
            assert_eq!(executions("static atomic_int x;", [body, other], args), expected, "{body}, {args:?}");
        }
    }
}

#[test]
fn what_does_not_conflict_is_no_point() {
    let pair = "static struct { _Alignas(8) atomic_int a, b; } s;";
    let local = "int x = 0; int *volatile p = &x; ++*p";
    for (declarations, bodies) in [
        ("static atomic_int x, y;", ["x++", "y++"]),
        (pair, ["s.a++", "s.b++"]),
        ("static atomic_int x;", ["assert(x == 0)", "assert(x == 0)"]),
        ("static int x, y;", ["x++", "y++"]),
        ("static int x;", ["assert(x == 0)", "assert(x == 0)"]),
        ("static char x[8];", ["x[3] = 1", "x[4] = 1"]),
        ("", [local, local]),
    ] {
        for (args, bound) in SEARCHES {
            assert_eq!(executions(declarations, bodies, args), by_hand(0, bound), "{bodies:?}, {args:?}");
        }
    }
}

/// Accesses that a lock always orders are not scheduling points. Only the calls on the lock are.
#[test]
fn what_a_lock_orders_is_no_point() {
    let lock = "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static int x; static atomic_int y;";
    let with = "pthread_mutex_lock(&lock); x++; y++; pthread_mutex_unlock(&lock)";
    let without = "pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock)";
    for (args, _) in SEARCHES {
        assert_eq!(
            executions(lock, [with, with], args),
            executions(lock, [without, without], args),
            "{args:?}"
        );
    }
}

/// Two adjacent atomics order threads independently of each other, as two distant ones do.
#[test]
fn neighbours_are_apart() {
    let bodies = ["while (!s.a || !s.b) ; assert(data == 1)", "data = 1; s.a = 1; s.b = 1"];
    let [near, far] = ["", "long between;"].map(|between| {
        let declarations = format!(
            "static struct {{ _Alignas(8) atomic_int a; {between} atomic_int b; }} s; static int data;"
        );
        executions(&declarations, bodies, &["--bound", "2"])
    });
    assert_eq!(near, far);
}

/// A thread that waits for memory to change gives way to the threads that may change it, in whatever form the
/// loop is written.
#[test]
fn loops_that_wait_end() {
    let declarations = "
        static atomic_int flag, other, flags[12], lock, ticket, serving, rounds;
        static volatile int old_flag;
        static int plain_flag, plain_rounds, data;";
    let until = [
        ("while (!flag) ;", "flag = 1"),
        ("while (!atomic_load_explicit(&flag, memory_order_acquire)) ;", "flag = 1"),
        ("while (!flag) __builtin_ia32_pause();", "flag = 1"),
        ("while (!flag) sched_yield();", "flag = 1"),
        ("while (!flag) plain_rounds++;", "flag = 1"),
        ("while (!flag) rounds++;", "flag = 1"),
        ("for (int wait = 1; !flag; wait *= 2) for (volatile int i = 0; i < wait % 100; i++) ;", "flag = 1"),
        ("while (!flag || !other) ;", "flag = 1; other = 1"),
        ("while (!(flag & other)) ;", "other = 1; flag = 1"),
        ("while (atomic_fetch_add(&flag, 0) == 0) ;", "flag = 1"),
        ("while (!old_flag) ;", "old_flag = 1"),
        ("while (!plain_flag) ;", "plain_flag = 1"),
        ("for (int i = 0; i < 12; i++) while (!flags[i]) ;", "for (int i = 0; i < 12; i++) flags[i] = 1"),
        (
            "for (int all = 0; !all;) { all = 1; for (int i = 0; i < 12; i++) if (!flags[i]) all = 0; }",
            "flags[0] = 1; for (int i = 1; i < 12; i++) atomic_store_explicit(&flags[i], 1, memory_order_release)",
        ),
    ];
    for (wait, set) in until {
        let bodies = [&*format!("{wait} assert(data == 1)"), &*format!("data = 1; {set}")];
        executions(declarations, bodies, &["--bound", "1"]);
    }
    for (lock, unlock) in [
        ("int e; do e = 0; while (!atomic_compare_exchange_strong(&lock, &e, 1))", "lock = 0"),
        ("int e; do e = 0; while (!atomic_compare_exchange_weak(&lock, &e, 1))", "lock = 0"),
        ("while (atomic_exchange(&lock, 1)) ", "lock = 0"),
        ("while (atomic_exchange(&lock, 1)) while (lock)", "lock = 0"),
        ("while (atomic_fetch_or(&lock, 1) & 1)", "atomic_fetch_and(&lock, ~1)"),
        ("int mine = ticket++; while (serving != mine)", "serving++"),
        ("int mine = ticket++; while (serving != mine) __builtin_ia32_pause()", "serving++"),
        ("int mine = ticket++; while (serving != mine) sched_yield()", "serving++"),
    ] {
        let body = format!(
            "for (int i = 0; i < 2; i++) {{ {lock} ; int d = data; data = d + 1; assert(data == d + 1); {unlock}; }}"
        );
        executions(declarations, [&body, &body], &["--bound", "2"]);
    }
}

/// If no thread changes the memory, the loop is a livelock.
#[test]
fn a_loop_that_waits_in_vain_is_a_livelock() {
    for wait in [
        "while (!flag) ;",
        "while (!flag) sched_yield();",
        "int e; do e = 1; while (!atomic_compare_exchange_strong(&flag, &e, 0));",
    ] {
        let json = check("static atomic_int flag;", [wait, ""], &["--bound", "0", "--steps", "2000"]);
        assert_eq!(json["findings"][0]["kind"], "livelock", "{wait}: {json:#}");
        assert_eq!(json["findings"][0]["preemptions"], 0, "{wait}: {json:#}");
    }
}
