//! Tests that explanations show values as their types say: enum constants, truth values, pointers to variables.

use heisen_testkit::{explained_json, scratch};
use serde_json::Value;
use std::collections::BTreeSet;

/// The values of an object in both executions of the explanation of the first finding.
#[track_caller]
fn values(file: &str, text: &str, object: &str) -> BTreeSet<String> {
    let directory = scratch();
    std::fs::write(directory.path().join(file), text).expect("a file");
    let json = explained_json(directory.path(), &[file]);
    let why = &json["findings"][0]["explanation"];
    let events =
        ["failing", "passing", "story"].into_iter().filter_map(|name| why[name].as_array()).flatten();
    let of = events.filter(|event| event["object"] == object);
    let shown: BTreeSet<String> = of.filter_map(|event| event["text"].as_str()).map(str::to_owned).collect();
    assert!(!shown.is_empty(), "no {object} in {why:#}");
    shown
}

/// A C program in which a thread reads and then writes a variable, and another one comes between.
fn overwritten(declarations: &str, variable: &str, setup: &str, mine: &str, others: &str) -> String {
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdbool.h>\n#include <stdlib.h>\n{declarations}\n\
         pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *one(void *p) {{ (void)p;\n\
           pthread_mutex_lock(&m); int same = {variable} == {mine}; pthread_mutex_unlock(&m);\n\
           pthread_mutex_lock(&m); if (same) assert({variable} == {mine}); pthread_mutex_unlock(&m); return 0; }}\n\
         static void *two(void *p) {{ (void)p;\n\
           pthread_mutex_lock(&m); {variable} = {others}; pthread_mutex_unlock(&m); return 0; }}\n\
         int main(void) {{ pthread_t a, b; {setup}\n\
           pthread_create(&a, 0, one, 0); pthread_create(&b, 0, two, 0);\n\
           pthread_join(a, 0); pthread_join(b, 0); return 0; }}\n"
    )
}

fn texts<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.map(str::to_owned).into()
}

#[test]
fn constants_of_an_enumeration() {
    let program = overwritten(
        "enum state { READY, STOPPED = 7 } state;",
        "state",
        "state = READY;",
        "READY",
        "STOPPED",
    );
    assert_eq!(values("enumeration.c", &program, "state"), texts(["READY", "STOPPED"]));
}

#[test]
fn truth_values_of_a_field() {
    let program = overwritten("struct { int n; bool open; } door;", "door.open", "", "false", "true");
    assert_eq!(values("truth.c", &program, "door.open"), texts(["false", "true"]));
}

/// On a stack. The write is the last access of the execution, and both are scheduling points.
#[test]
fn truth_values_of_a_local_variable() {
    let text = "#include <pthread.h>\n#include <stdbool.h>\n\
        struct pool { pthread_mutex_t lock; pthread_cond_t wake; bool stopped; };\n\
        static void *worker(void *arg) {\nstruct pool *pool = arg;\npthread_mutex_lock(&pool->lock);\n\
        if (!pool->stopped)\npthread_cond_wait(&pool->wake, &pool->lock);\n\
        pthread_mutex_unlock(&pool->lock); return arg; }\n\
        int main(void) {\nstruct pool pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};\n\
        pthread_t t; pthread_create(&t, 0, worker, &pool);\npool.stopped = true;\n\
        pthread_cond_signal(&pool.wake);\npthread_join(t, 0); return 0; }\n";
    let directory = scratch();
    std::fs::write(directory.path().join("pool.c"), text).expect("a file");
    let json = explained_json(directory.path(), &["pool.c"]);
    let story = json["findings"][0]["explanation"]["story"].as_array().expect("a story");
    let of = |moment: &&Value| moment["object"] == "pool.stopped";
    let seen: Vec<(&Value, &Value)> =
        story.iter().filter(of).map(|moment| (&moment["op"], &moment["text"])).collect();
    assert_eq!(
        seen,
        [(&"mem_read".into(), &"false".into()), (&"mem_write".into(), &"true".into())],
        "{json:#}"
    );
}

#[test]
fn pointers_to_variables() {
    let program = overwritten("int queue, *now;", "now", "", "NULL", "&queue");
    assert_eq!(values("pointer.c", &program, "now"), texts(["NULL", "&queue"]));
}

#[test]
fn values_on_the_heap() {
    let declarations = "enum state { READY, STOPPED }; struct job { long id; enum state state; } *job;";
    let setup = "job = calloc(1, sizeof *job);";
    let program = overwritten(declarations, "job->state", setup, "READY", "STOPPED");
    assert_eq!(values("heap.c", &program, "job->state"), texts(["READY", "STOPPED"]));
}

#[test]
fn unsigned_and_floating_point_numbers() {
    let program = overwritten("unsigned long left;", "left", "", "0ul", "left - 1");
    assert_eq!(values("unsigned.c", &program, "left"), texts(["0", "18446744073709551615"]));
    let program = overwritten("double rate;", "rate", "", "0.0", "0.25");
    assert_eq!(values("float.c", &program, "rate"), texts(["0", "0.25"]));
}

#[test]
fn atomics_and_enums_of_rust() {
    let program = "use std::sync::atomic::{AtomicBool, Ordering::SeqCst};\n\
         static OPEN: AtomicBool = AtomicBool::new(false);\n\
         fn main() {\n\
             let other = std::thread::spawn(|| OPEN.store(true, SeqCst));\n\
             let same = !OPEN.load(SeqCst);\n\
             if same { assert!(!OPEN.load(SeqCst)); }\n\
             other.join().unwrap();\n\
         }\n";
    assert_eq!(values("atomic.rs", program, "atomic::OPEN"), texts(["false", "true"]));
    let program = "use std::sync::Mutex;\n\
         #[derive(Clone, Copy, PartialEq, Debug)]\n\
         pub enum State { Ready, Stopped }\n\
         static STATE: Mutex<State> = Mutex::new(State::Ready);\n\
         fn main() {\n\
             let other = std::thread::spawn(|| *STATE.lock().unwrap() = State::Stopped);\n\
             let before = *STATE.lock().unwrap();\n\
             let after = *STATE.lock().unwrap();\n\
             assert_eq!(before, after);\n\
             other.join().unwrap();\n\
         }\n";
    assert_eq!(values("state.rs", program, "state::STATE"), texts(["Ready", "Stopped"]));
}
