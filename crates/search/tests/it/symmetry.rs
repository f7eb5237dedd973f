//! Tests of `--symmetry`. Executions that differ only in the order of interchangeable threads count once, and
//! no bug is lost. A program that treats such threads differently gets a caveat.

use heisen_testkit::{check_json, heisen, run, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// A program that creates and then joins `threads` threads of one function, and then runs `last`.
fn identical_threads(declarations: &str, body: &str, threads: usize, last: &str) -> String {
    program(
        declarations,
        body,
        &format!(
            "for (int i = 0; i < {threads}; i++) pthread_create(&t[i], 0, f, 0);
             for (int i = 0; i < {threads}; i++) pthread_join(t[i], 0);
             {last}"
        ),
    )
}

fn program(declarations: &str, body: &str, main: &str) -> String {
    format!(
        "#define _GNU_SOURCE
         #include <assert.h>
         #include <pthread.h>
         #include <semaphore.h>
         #include <signal.h>
         #include <stdatomic.h>
         #include <unistd.h>
         {declarations}
         static void *f(void *u) {{ {body} return u; }}
         static void *g(void *u) {{ {body} return u; }}
         int main(void) {{ pthread_t t[4]; (void)t; (void)g; {main} return 0; }}"
    )
}

fn check(directory: &Path, text: &str, args: &[&str]) -> Value {
    std::fs::write(directory.join("p.c"), text).expect("it is written");
    check_json(directory, &[args, &["--keep-going", "p.c"]].concat())
}

/// Checks the numbers of classes without and with `--symmetry`.
#[track_caller]
fn classes(text: &str, expected: [u64; 2]) {
    let directory = scratch();
    let found = [&["--strategy", "dpor"][..], &["--strategy", "dpor", "--symmetry"]].map(|args| {
        let json = check(directory.path(), text, args);
        assert_eq!(
            (&json["complete"], &json["verdict"]),
            (&true.into(), &"clean".into()),
            "{args:?} {text}: {json:#}"
        );
        json["classes"].as_u64().expect("a number")
    });
    assert_eq!(found, expected, "{text}");
}

const X: &str = "static atomic_int x;";
const LOCK: &str = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n;";

#[test]
fn orders_of_identical_threads_are_one() {
    // n! orders of one increment each. Of two increments each, only the orders in which the first thread
    // begins: half of C(4, 2).
    classes(&identical_threads(X, "x++;", 2, ""), [2, 1]);
    classes(&identical_threads(X, "x++;", 3, ""), [6, 1]);
    classes(&identical_threads(X, "x++;", 4, ""), [24, 1]);
    classes(&identical_threads(X, "x++; x++;", 2, ""), [6, 3]);
    classes(
        &identical_threads(LOCK, "pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m);", 3, ""),
        [6, 1],
    );
}

#[test]
fn others_are_distinguished() {
    // Threads are not interchangeable if they differ in function or argument, if `main` acts between their
    // creations, or if they have attributes.
    let join = "pthread_join(t[0], 0); pthread_join(t[1], 0);";
    for make in [
        "pthread_create(&t[0], 0, f, 0); pthread_create(&t[1], 0, g, 0);",
        "pthread_create(&t[0], 0, f, 0); pthread_create(&t[1], 0, f, t);",
        "pthread_create(&t[0], 0, f, 0); y++; pthread_create(&t[1], 0, f, 0);",
        "pthread_attr_t a; pthread_attr_init(&a); pthread_create(&t[0], &a, f, 0); pthread_create(&t[1], &a, f, 0);",
    ] {
        let text = program("static atomic_int x, y;", "x++;", &format!("{make}{join}"));
        let expected = if make.contains("y++") { "x++; y++;" } else { "x++;" };
        let text = text.replace("{ x++; return", &format!("{{ {expected} return"));
        let directory = scratch();
        let [plain, same] = [&["--strategy", "dpor"][..], &["--strategy", "dpor", "--symmetry"]]
            .map(|args| check(directory.path(), &text, args)["classes"].clone());
        assert_eq!(plain, same, "{text}");
    }
}

#[test]
fn every_strategy_has_fewer() {
    let directory = scratch();
    let text = identical_threads(X, "int v = x; x = v + 1;", 3, "");
    for strategy in [
        &["--strategy", "dfs"][..],
        &["--bound", "1"],
        &["--bound", "2", "--reduce"],
        &["--strategy", "dpor", "--bound", "2"],
    ] {
        let plain = check(directory.path(), &text, strategy);
        let json = check(directory.path(), &text, &[strategy, &["--symmetry"]].concat());
        let executions = |json: &Value| json["executions"].as_u64().expect("a number");
        assert_eq!(json["complete"], true, "{json:#}");
        assert!(2 * executions(&json) < executions(&plain), "{strategy:?}: {json:#} {plain:#}");
    }
}

#[test]
fn no_end_is_lost_and_none_takes_more_preemptions() {
    let directory = scratch();
    let text =
        identical_threads(X, "int v = x; x = v + 1;", 3, "assert(x != 1);\nassert(x != 2);\nassert(x != 3);");
    for (bound, ends) in [("0", 1), ("1", 3), ("2", 3)] {
        let [plain, same] = [&["--bound", bound][..], &["--bound", bound, "--symmetry"]].map(|args| {
            let json = check(directory.path(), &text, args);
            let told = |f: &Value| (f["signature"].to_string(), f["preemptions"].to_string());
            json["findings"].as_array().expect("a list").iter().map(told).collect::<BTreeSet<_>>()
        });
        assert_eq!((plain.len(), &plain), (ends, &same), "bound {bound}");
    }
}

#[test]
fn bugs_are_found_and_replayed() {
    let directory = scratch();
    for (text, kind) in [
        (identical_threads(X, "int v = x; x = v + 1;", 2, "assert(x == 2);"), "assertion"),
        (identical_threads("static sem_t s;", "sem_wait(&s);", 2, ""), "deadlock"),
        (
            identical_threads("static sem_t s;", "sem_wait(&s);", 2, "").replace(
                "for (int i = 0; i < 2; i++) pthread_join",
                "sem_post(&s); for (int i = 0; i < 2; i++) pthread_join",
            ),
            "deadlock",
        ),
    ] {
        let json = check(directory.path(), &text, &["--symmetry"]);
        assert_eq!(json["findings"][0]["kind"], kind, "{text}: {json:#}");
        let schedule = json["findings"][0]["schedule"].as_str().expect("a file");
        let written = std::fs::read_to_string(directory.path().join(schedule)).expect("it is there");
        assert!(written.contains("\nsymmetry\n"), "{written}");
        run(heisen(directory.path()).args(["replay", schedule])).expect(1);
    }
}

#[test]
fn threads_that_need_each_other_are_not_held_for_good() {
    let directory = scratch();
    let barrier = "static pthread_barrier_t b; __attribute__((constructor)) static void init(void) { pthread_barrier_init(&b, 0, 3); }";
    let json = check(
        directory.path(),
        &identical_threads(barrier, "pthread_barrier_wait(&b);", 3, ""),
        &["--symmetry"],
    );
    assert_eq!((&json["verdict"], &json["complete"]), (&"clean".into(), &true.into()), "{json:#}");
    let json = check(directory.path(), &identical_threads("", "", 4, ""), &["--symmetry"]);
    assert_eq!((&json["verdict"], &json["complete"]), (&"clean".into(), &true.into()), "{json:#}");
}

#[test]
fn distinguishing_threads_is_a_caveat() {
    let directory = scratch();
    let two = "pthread_create(&t[0], 0, f, 0); pthread_create(&t[1], 0, f, 0);";
    let join = "pthread_join(t[0], 0); pthread_join(t[1], 0);";
    for (body, rest) in [
        ("x++;", "pthread_join(t[0], 0); x = 5; pthread_join(t[1], 0);".to_owned()),
        ("x++;", format!("pthread_kill(t[1], 0); {join}")),
        ("x += gettid();", join.to_owned()),
    ] {
        let text = program(X, body, &format!("{two}{rest}"));
        let json = check(directory.path(), &text, &["--symmetry"]);
        assert_eq!(json["complete"], false, "{text}: {json:#}");
        assert!(
            json["not_controlled"]
                .to_string()
                .contains("the program treats interchangeable threads differently"),
            "{json:#}"
        );
        assert_eq!(check(directory.path(), &text, &[])["complete"], true, "{text}");
    }
}
