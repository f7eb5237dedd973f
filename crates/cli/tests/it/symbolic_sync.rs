//! Tests of the solver-driven search on real programs that synchronise by other means than mutexes: the bug of each is found
//! and replayed, and its twin without the bug is proven, in at most as many executions as there are classes.

use crate::symbolic::{has_clang, searched};
use heisen_testkit::Sandbox;
use serde_json::json;

/// A program of two threads, with what they share, and what `main` does before and after.
fn program(shared: &str, first: &str, second: &str, before: &str, after: &str) -> String {
    format!(
        "#define _GNU_SOURCE
        #include <assert.h>
        #include <pthread.h>
        #include <semaphore.h>
        #include <stdint.h>
        #include <time.h>
        {shared}
        static void *one(void *a) {{ {first} return a; }}
        static void *two(void *a) {{ {second} return a; }}
        int main(void) {{
            pthread_t a, b;
            {before}
            pthread_create(&a, 0, one, (void *)1);
            pthread_create(&b, 0, two, (void *)2);
            {after}
            return 0;
        }}"
    )
}

const JOINS: &str = "pthread_join(a, 0); pthread_join(b, 0);";

/// Searches the program with the bug and the one without.
#[track_caller]
fn finds_and_proves(kind: &str, bug: &str, fixed: &str) {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("bug.c", bug);
    sandbox.write("fixed.c", fixed);
    let json = searched(&sandbox, 1, &["--strategy", "causal", "bug.c"]);
    assert_eq!(json["findings"][0]["kind"], kind, "{json:#}");
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule file");
    sandbox.heisen(&["replay", schedule]).expect(1);
    let causal = searched(&sandbox, 0, &["--strategy", "causal", "--races=off", "fixed.c"]);
    assert_eq!((&causal["verdict"], &causal["complete"]), (&json!("clean"), &json!(true)), "{causal:#}");
    assert_eq!(causal["diverged"], 0, "{causal:#}");
    let dpor = searched(&sandbox, 0, &["--strategy", "dpor", "fixed.c"]);
    assert!(causal["executions"].as_u64() <= dpor["executions"].as_u64(), "{causal:#} {dpor:#}");
}

#[test]
fn semaphores_guard_sections() {
    let with = |count: u32| {
        let section = "sem_wait(&s); x++; assert(x == 1); x--; sem_post(&s);";
        program(
            "static sem_t s; static int x;",
            section,
            section,
            &format!("sem_init(&s, 0, {count});"),
            JOINS,
        )
    };
    finds_and_proves("assertion", &with(2), &with(1));
}

#[test]
fn semaphores_say_what_was_done_before() {
    let waits = |wait: &str, checks: &str| {
        let first = "x = 1; sem_post(&s); x = 2; sem_post(&s);";
        let second = format!("{wait} {checks}");
        program("static sem_t s; static int x;", first, &second, "sem_init(&s, 0, 0);", JOINS)
    };
    finds_and_proves(
        "assertion",
        &waits("sem_wait(&s);", "assert(x == 2);"),
        &waits("sem_wait(&s); sem_wait(&s);", "assert(x == 2);"),
    );
    finds_and_proves(
        "assertion",
        &waits("", "if (sem_trywait(&s)) assert(x != 1);"),
        &waits("", "if (!sem_trywait(&s)) assert(x);"),
    );
    let timed = "struct timespec soon; clock_gettime(CLOCK_REALTIME, &soon);";
    let timed = |checks: &str| waits(timed, &format!("int late = sem_timedwait(&s, &soon); {checks}"));
    if has_clang() {
        let sandbox = Sandbox::new();
        sandbox.write("late.c", timed("if (late) assert(x != 1);"));
        searched(&sandbox, 1, &["--strategy", "causal", "late.c"]);
    }
    finds_and_proves(
        "deadlock",
        &waits("sem_wait(&s); sem_wait(&s); sem_wait(&s);", ""),
        &waits("sem_wait(&s); sem_wait(&s);", ""),
    );
}

#[test]
fn a_semaphore_that_is_initialised_again_is_not_proven() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    let again = program(
        "static sem_t s;",
        "sem_wait(&s);",
        "sem_post(&s);",
        "sem_init(&s, 0, 1);",
        "pthread_join(a, 0); sem_init(&s, 0, 0); pthread_join(b, 0);",
    );
    sandbox.write("again.c", again);
    let json = searched(&sandbox, 0, &["--strategy", "causal", "again.c"]);
    assert_eq!(json["complete"], false, "{json:#}");
    assert!(json["not_controlled"].to_string().contains("may have been in use"), "{json:#}");
}

#[test]
fn read_write_locks_let_readers_in_together() {
    let shared = "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER; static int x;";
    let with = |lock: &str| {
        let adds = format!("pthread_rwlock_{lock}(&l); int now = x; x = now + 1; pthread_rwlock_unlock(&l);");
        let after = format!("{JOINS} assert(x == 2);");
        program(shared, &adds, &adds, "", &after)
    };
    finds_and_proves("assertion", &with("rdlock"), &with("wrlock"));
    let tries = |lock: &str, kind: &str| {
        let first = format!("pthread_rwlock_{lock}(&l); pthread_rwlock_unlock(&l);");
        let second = format!("assert(!pthread_rwlock_try{kind}(&l)); pthread_rwlock_unlock(&l);");
        program(shared, &first, &second, "", JOINS)
    };
    finds_and_proves("assertion", &tries("wrlock", "rdlock"), &tries("rdlock", "rdlock"));
    let upgrades = |second: &str| {
        let first = "pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l);";
        let second = format!("pthread_rwlock_rdlock(&l); {second} pthread_rwlock_unlock(&l);");
        program(shared, first, &second, "", JOINS)
    };
    finds_and_proves("deadlock", &upgrades("pthread_rwlock_wrlock(&l);"), &upgrades(""));
}

#[test]
fn locks_that_let_writers_go_first_are_not_proven() {
    if !has_clang() {
        return;
    }
    let sandbox = Sandbox::new();
    let polite = program(
        "static pthread_rwlock_t l = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;",
        "pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l);",
        "pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l);",
        "",
        JOINS,
    );
    sandbox.write("polite.c", polite);
    let json = searched(&sandbox, 0, &["--strategy", "causal", "polite.c"]);
    assert_eq!(json["complete"], false, "{json:#}");
    assert!(json["not_controlled"].to_string().contains("rdlock_prefer_writer"), "{json:#}");
}

#[test]
fn barriers_separate_rounds() {
    let shared = "static pthread_barrier_t p; static int x, y;";
    let with = |first: &str, checks: &str| {
        let second = format!("int last = pthread_barrier_wait(&p); {checks}");
        program(shared, first, &second, "pthread_barrier_init(&p, 0, 2);", JOINS)
    };
    let meets = "x = 1; pthread_barrier_wait(&p); y = 1;";
    finds_and_proves("assertion", &with(meets, "assert(x && !y);"), &with(meets, "assert(x);"));
    finds_and_proves("assertion", &with(meets, "assert(last);"), &with(meets, "if (last) assert(x);"));
    let again = "pthread_barrier_wait(&p); pthread_barrier_wait(&p);";
    finds_and_proves("deadlock", &with(again, ""), &with(again, "pthread_barrier_wait(&p);"));
}

#[test]
fn initialisers_run_once() {
    let with = |control: &str| {
        let shared = "static pthread_once_t o = PTHREAD_ONCE_INIT, o2 = PTHREAD_ONCE_INIT; static int x;
            static void adds(void) { x++; }
            static void unused(void) { (void)o2; }";
        let second = format!("pthread_once(&{control}, adds); unused(); assert(x == 1);");
        let after = format!("{JOINS} assert(x == 1);");
        program(shared, "pthread_once(&o, adds); assert(x == 1);", &second, "", &after)
    };
    finds_and_proves("assertion", &with("o2"), &with("o"));
}

#[test]
fn results_of_threads_are_known() {
    let with = |excluded: u32| {
        let first = "int seen = x; x = 1; a = (void *)(intptr_t)(seen + 5);";
        let second = "x = 2; int seen = x; pthread_exit((void *)(intptr_t)(seen == 1 ? 7 : 8));";
        let after = format!(
            "void *r, *q; pthread_join(a, &r); pthread_join(b, &q); assert((intptr_t)r + (intptr_t)q != {excluded});"
        );
        program("static int x;", first, second, "", &after)
    };
    // 5 or 7, and 7 or 8.
    finds_and_proves("assertion", &with(14), &with(11));
}
