//! Tests of threads that are not joined. In every strategy the process may end before, between and after
//! their steps. The end is a scheduling point if another thread can still continue. It depends on every step
//! of every other thread.

use heisen_testkit::{check_json, scratch};
use serde_json::Value;
use std::path::Path;

/// The beginning of every program here.
const HEAD: &str = "#define _GNU_SOURCE\n#include <assert.h>\n#include <pthread.h>\n#include <semaphore.h>\n\
                    #include <stdatomic.h>\n#include <stdlib.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
                    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;\n";

/// A program whose `main` creates a detached thread for each of the bodies and then runs `end`.
fn program(declarations: &str, bodies: &[&str], end: &str) -> String {
    let mut text = format!("{HEAD}{declarations}\n");
    for (number, body) in bodies.iter().enumerate() {
        text += &format!("static void *t{number}(void *unused) {{ {body} return unused; }}\n");
    }
    text += "int main(void) {\n pthread_attr_t attributes; pthread_t t;\n pthread_attr_init(&attributes);\n\
              pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);\n";
    for number in 0..bodies.len() {
        text += &format!(" pthread_create(&t, &attributes, t{number}, 0);\n");
    }
    text + end + "\n return 0;\n}\n"
}

fn write(directory: &Path, text: &str) {
    std::fs::write(directory.join("p.c"), text).expect("the program is written");
}

/// All kinds of searches: exhaustive ones, ones with a reduction, and samplers.
const STRATEGIES: [&[&str]; 12] = [
    &["--strategy", "icb"],
    &["--strategy", "icb", "--reduce=off"],
    &["--strategy", "icb", "--fork"],
    &["--strategy", "dfs"],
    &["--strategy", "dfs", "--reduce"],
    &["--strategy", "dpor"],
    &["--strategy", "dpor", "--bound", "1"],
    &["--strategy", "best"],
    &["--strategy", "random", "--executions", "200"],
    &["--strategy", "pct", "--executions", "200"],
    &["--strategy", "surw", "--executions", "200"],
    &["--strategy", "portfolio", "--executions", "400"],
];

/// Checks that each of these strategies finds a bug of this kind.
#[track_caller]
fn is_found(kind: &str, text: &str, strategies: &[&[&str]]) {
    let directory = scratch();
    write(directory.path(), text);
    for strategy in strategies {
        let json = check_json(directory.path(), &[strategy, &["p.c"][..]].concat());
        assert_eq!(json["findings"][0]["kind"], kind, "{strategy:?}\n{text}\n{json:#}");
    }
}

/// A search without instrumentation, and one with it.
const BOTH: &[&[&str]] = &[&["--strategy", "icb", "--no-instrument"], &["--strategy", "dpor"]];

#[test]
fn every_strategy_runs_a_thread_that_main_does_not_wait_for() {
    is_found("assertion", &program("", &["assert(!\"reached\");"], ""), &STRATEGIES);
    is_found("crash", &program("", &["abort();"], "exit(0);"), BOTH);
}

#[test]
fn every_way_to_end_a_process() {
    for end in [
        "return 0;",
        "exit(0);",
        "_exit(0);",
        "_Exit(0);",
        "quick_exit(0);",
        "syscall(SYS_exit_group, 0);",
        "pthread_exit(0);",
        "execl(\"/bin/true\", \"true\", (char *)0);",
        "char *a[] = { \"true\", 0 }; execv(\"/bin/true\", a);",
        "char *a[] = { \"true\", 0 }; execve(\"/bin/true\", a, environ);",
    ] {
        is_found("assertion", &program("", &["assert(!\"reached\");"], end), BOTH);
    }
}

#[test]
fn any_thread_may_end_the_process() {
    // Either thread may be first. The end of the process cuts off the other thread.
    let text = program("", &["exit(3);", "_exit(4);"], "pthread_exit(0);");
    let directory = scratch();
    write(directory.path(), &text);
    for strategy in ["icb", "dfs", "dpor"] {
        let json = check_json(directory.path(), &["--strategy", strategy, "--keep-going", "p.c"]);
        let mut messages: Vec<&str> = json["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|finding| finding["message"].as_str().expect("a text"))
            .collect();
        messages.sort_unstable();
        assert_eq!(
            messages,
            ["the program ended with exit status 3, not 0", "the program ended with exit status 4, not 0"],
            "{strategy}"
        );
    }
}

/// Exit handlers run while other threads still do. Another thread can run before a handler and after it.
#[test]
fn handlers_and_other_threads() {
    let seen = "pthread_mutex_lock(&m); pthread_mutex_unlock(&m); if (done == SEEN) abort();";
    let declarations = "static volatile int done; static void handler(void) { done = 1; }\n\
                        static void late(int s, void *a) { (void)s; (void)a; done = 1; }\n\
                        __attribute__((unused)) static sem_t s;";
    for (register, end) in [
        ("(void)late; atexit(handler);", "return 0;"),
        ("(void)handler; on_exit(late, 0);", "exit(0);"),
        ("(void)late; at_quick_exit(handler);", "quick_exit(0);"),
    ] {
        let text = program(declarations, &[&seen.replace("SEEN", "1")], &format!("{register} {end}"));
        is_found("crash", &text, BOTH);
        // Before the handler, but after all steps of `main`.
        let before = "sem_wait(&s); if (!done) abort();";
        let text =
            program(declarations, &[before], &format!("sem_init(&s, 0, 0); {register} sem_post(&s); {end}"));
        is_found("crash", &text, BOTH);
    }
    let text = program(
        "static volatile int done; __attribute__((destructor)) static void last(void) { done = 1; }",
        &[&seen.replace("SEEN", "1")],
        "",
    );
    is_found("crash", &text, BOTH);
}

/// Checks the number of executions of a complete search.
#[track_caller]
fn counts(text: &str, expected: u64, args: &[&str]) {
    let directory = scratch();
    write(directory.path(), text);
    for how in [&["p.c"][..], &["--fork", "p.c"]] {
        let json: Value = check_json(directory.path(), &[args, how].concat());
        assert_eq!(json["complete"], true, "{args:?}\n{text}\n{json:#}");
        assert_eq!(json["verdict"], "clean", "{args:?}\n{text}\n{json:#}");
        assert_eq!(json["executions"], expected, "{args:?} {how:?}\n{text}\n{json:#}");
    }
}

const DFS: &[&str] = &["--strategy", "dfs"];
const DPOR: &[&str] = &["--strategy", "dpor"];
/// All schedules, with a bound that excludes none.
const ICB: &[&str] = &["--strategy", "icb", "--reduce=off", "--bound", "20"];
const LOCK: &str = "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);";
const LOCK_N: &str = "pthread_mutex_lock(&n); pthread_mutex_unlock(&n);";

/// The numbers are computed by hand. A thread that locks and unlocks twice takes five steps; the first one is
/// its start.
#[test]
fn as_many_executions_as_there_are_places_for_the_end() {
    let two = LOCK.repeat(2);
    // The end comes after 0 to 5 steps of the thread. Each of these is a class.
    let one_thread = program("", &[&two], "");
    for args in [DFS, ICB, DPOR] {
        counts(&one_thread, 6, args);
    }
    // Two threads of one step. If the first runs before the second is created, the end comes before or after
    // the second: 2. Otherwise the end is first: 1; or one of the threads is first, and then the end or the
    // other thread: 2 * 2. The classes differ only in which threads ran.
    let two_threads = program("", &["", ""], "");
    for args in [DFS, ICB] {
        counts(&two_threads, 7, args);
    }
    counts(&two_threads, 4, DPOR);
    // With different locks the threads are independent, but the end depends on both: after 0 to 3 steps of
    // each, 4 * 4.
    counts(&program("", &[LOCK, LOCK_N], ""), 16, DPOR);
    // With one lock there are 16 classes. In 12 of them at most one thread has locked it. In 2 the second
    // thread to lock holds it, and in 2 both are done.
    counts(&program("", &[LOCK, LOCK], ""), 16, DPOR);
}

/// `exit` is one step before its handlers and one after them.
#[test]
fn exits_with_handlers() {
    let handler = "__attribute__((unused)) static void handler(void) {}";
    let count = |declarations: &str, end: &str, expected: u64, args: &[&str]| {
        counts(&program(declarations, &[&LOCK.repeat(2)], end), expected, args);
    };
    // The two steps of `main`, in this order, at six positions each: 6 * 7 / 2. For classes only the last one
    // counts.
    for args in [DFS, ICB] {
        count(handler, "atexit(handler);", 21, args);
    }
    count(handler, "atexit(handler);", 6, DPOR);
    // The same holds for `quick_exit`. Handlers of the other function add no step.
    count(handler, "at_quick_exit(handler); quick_exit(0);", 21, DFS);
    count(handler, "at_quick_exit(handler);", 6, DFS);
    count(handler, "atexit(handler); quick_exit(0);", 6, DFS);
    count(handler, "atexit(handler); _exit(0);", 6, DFS);
    // A handler with two steps makes four steps of `main`, at six positions each: 6 * 7 * 8 * 9 / 4!.
    let locks = format!("static void handler(void) {{ {LOCK_N} }}");
    count(&locks, "atexit(handler);", 126, DFS);
    count(&locks, "atexit(handler);", 6, DPOR);
}

/// If no other thread can continue, the end is not a decision.
#[test]
fn an_end_that_cuts_nothing_off() {
    // All threads have ended.
    let join = "pthread_t j; pthread_create(&j, 0, t0, 0); pthread_join(j, 0); ";
    let text = program("", &[LOCK], "").replace("pthread_create(&t, &attributes, t0, 0);", join);
    for args in [DFS, ICB, DPOR] {
        counts(&text, 1, args);
    }
    // The last thread ends the process and cuts off nothing. Either thread may be the last.
    let text = program("", &[LOCK], "pthread_exit(0);");
    counts(&text, 2, DPOR);
    // A thread that waits forever.
    let text = program("static sem_t s;", &["sem_wait(&s);"], "");
    for args in [DFS, ICB, DPOR] {
        // The end comes before or after its start.
        counts(&text, 2, args);
    }
}
