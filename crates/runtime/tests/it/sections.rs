//! Tests of atomic sections: each is one step in every strategy. The number of executions is the number of
//! their orders.

use heisen_testkit::{check_json, program, root, scratch};
use serde_json::Value;

/// Checks a program of these declarations and thread bodies.
fn check(declarations: &str, bodies: &[&str], args: &[&str]) -> Value {
    let directory = scratch();
    let header = root().join("include/heisen.h");
    let text =
        format!("#include \"{}\"\n#include <assert.h>\n{}", header.display(), program(declarations, bodies));
    std::fs::write(directory.path().join("p.c"), text).expect("it is written");
    check_json(directory.path(), &[args, &["p.c"]].concat())
}

/// The number of executions of a complete search that finds nothing.
#[track_caller]
fn count(declarations: &str, bodies: &[&str], args: &[&str]) -> u64 {
    let json = check(declarations, bodies, args);
    assert_eq!((&json["complete"], &json["verdict"]), (&true.into(), &"clean".into()), "{args:?} {json:#}");
    json["executions"].as_u64().expect("a number")
}

/// The number of schedules of `main`, which creates two threads and joins them, and these threads with
/// `steps` steps each. Counts the paths from a state in which `main` has taken `main` of its four steps and
/// the threads have taken `threads` of theirs.
fn schedules(steps: u64, main: u64, threads: [u64; 2]) -> u64 {
    let mut ways = u64::from(main == 4);
    let able = match main {
        0 | 1 => true,
        2 | 3 => threads[main as usize - 2] == steps,
        _ => false,
    };
    if able {
        ways += schedules(steps, main + 1, threads);
    }
    for thread in 0..2 {
        if main > thread as u64 && threads[thread] < steps {
            let mut next = threads;
            next[thread] += 1;
            ways += schedules(steps, main, next);
        }
    }
    ways
}

const TWO: &str = "static int i = 1, j = 1;";

/// Two threads that add to each other's variable `times` times, each time in a section.
fn adds(times: usize) -> [String; 2] {
    ["i += j;", "j += i;"]
        .map(|add| format!("heisen_atomic_begin(); {add} heisen_atomic_end(); ").repeat(times))
}

#[test]
fn as_many_executions_as_orders_of_sections() {
    let five = adds(5);
    let five = [five[0].as_str(), &five[1]];
    // C(10, 5) orders of the sections, each a class.
    assert_eq!(count(TWO, &five, &["--strategy", "dpor"]), 252);
    assert_eq!(count(TWO, &five, &["--strategy", "dpor", "--no-instrument"]), 252);
    // A thread takes one step for its start and one for each section.
    let three = adds(3);
    let three = [three[0].as_str(), &three[1]];
    let expected = schedules(4, 0, [0, 0]);
    for args in [
        &["--strategy", "dfs"][..],
        &["--strategy", "dfs", "--no-instrument"],
        &["--strategy", "icb", "--reduce=off", "--bound", "20"],
    ] {
        assert_eq!(count(TWO, &three, args), expected, "{args:?}");
    }
    // C(6, 3) classes with the other reductions, too.
    let json = check(TWO, &three, &["--strategy", "dpor", "--bound", "20"]);
    assert_eq!(json["classes"], 20, "{json:#}");
    let json = check(TWO, &three, &["--strategy", "dfs", "--reduce"]);
    assert_eq!(json["classes"], 20, "{json:#}");
}

/// The function names of verification tasks work as well.
#[test]
fn the_other_names() {
    let section = "__VERIFIER_atomic_begin(); i++; __VERIFIER_atomic_end();";
    assert_eq!(count(TWO, &[section, section], &["--strategy", "dpor"]), 2);
}

/// No thread sees the middle of a section, even if it contains calls, atomics, locks and other sections.
#[test]
fn a_section_is_one_step() {
    let declarations = "static atomic_int x, y; static sem_t s;\n\
                        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
    let middle = "x++; heisen_point(); sem_post(&s); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); \
                  heisen_atomic_begin(); heisen_atomic_end(); y++;";
    let begins = format!("heisen_atomic_begin(); {middle} heisen_atomic_end();");
    let looks = "heisen_atomic_begin(); assert(x == y); heisen_atomic_end();";
    for strategy in ["icb", "dfs", "dpor", "best"] {
        // The section comes before or after the other one.
        let executions = count(declarations, &[&begins, looks], &["--strategy", strategy]);
        assert!(strategy != "dpor" || executions == 2, "{executions}");
        // Without a section, another thread sees the middle.
        let json = check(declarations, &[middle, looks], &["--strategy", strategy]);
        assert_eq!(json["findings"][0]["kind"], "assertion", "{strategy}: {json:#}");
    }
    for strategy in ["random", "pct", "surw", "portfolio"] {
        let args = ["--strategy", strategy, "--executions", "300"];
        assert_eq!(check(declarations, &[&begins, looks], &args)["verdict"], "clean", "{strategy}");
        assert_eq!(check(declarations, &[middle, looks], &args)["verdict"], "bug", "{strategy}");
    }
}

/// A thread that has to wait in a section leaves the section there. That is not a deadlock, and the rest is
/// ordinary code.
#[test]
fn waiting_in_a_section() {
    let declarations = "static atomic_int x; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
    let waits = "heisen_atomic_begin(); pthread_mutex_lock(&m); int v = x; heisen_point(); assert(v == x); \
                 pthread_mutex_unlock(&m); heisen_atomic_end();";
    let holds = "pthread_mutex_lock(&m); heisen_point(); pthread_mutex_unlock(&m);";
    assert!(count(declarations, &[waits, holds], &["--strategy", "dfs"]) > 1);
    for strategy in ["dfs", "dpor"] {
        let json = check(declarations, &[waits, &format!("{holds} x = 1;")], &["--strategy", strategy]);
        assert_eq!(json["findings"][0]["kind"], "assertion", "{strategy}: {json:#}");
    }
    let yields = "heisen_atomic_begin(); while (!x) sched_yield(); heisen_atomic_end();";
    count(&format!("#include <sched.h>\n{declarations}"), &[yields, "x = 1;"], &["--strategy", "dfs"]);
}

#[test]
fn sections_and_data_races() {
    let section = "heisen_atomic_begin(); i++; heisen_atomic_end();";
    let races = |bodies: &[&str]| {
        let json = check(TWO, bodies, &["--strategy", "dfs", "--races"]);
        json["races"].as_array().expect("a list").len()
    };
    assert_eq!(races(&[section, section]), 0);
    assert_ne!(races(&[section, "i++;"]), 0);
}

#[test]
fn an_end_without_a_beginning() {
    let json = check(TWO, &["heisen_atomic_end();"], &[]);
    let finding = &json["findings"][0];
    assert_eq!(finding["kind"], "misuse", "{json:#}");
    assert_eq!(finding["message"], "heisen_atomic_end was called without a heisen_atomic_begin");
}
