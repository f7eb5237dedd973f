//! Tests that findings name memory as a debugger does: on the heap, on stacks, in thread-local memory.

use heisen_testkit::{compile, explained_json, heisen, run, scratch};
use serde_json::Value;
use std::path::Path;

/// The first finding of a check of this program.
#[track_caller]
fn finding(directory: &Path, file: &str, text: &str, options: &[&str]) -> Value {
    std::fs::write(directory.join(file), text).expect("a file");
    let all: Vec<&str> = options.iter().copied().chain([file]).collect();
    let json = explained_json(directory, &all);
    let finding = json["findings"][0].clone();
    assert!(finding.is_object(), "{json:#}");
    finding
}

/// The objects of the explanation, of its story, of the locks and of the switches, each once.
fn objects(finding: &Value) -> Vec<String> {
    let why = &finding["explanation"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let story = list(&why["story"]).into_iter().map(|moment| moment["object"].clone());
    let locks = list(&why["remedies"]).into_iter().map(|remedy| remedy["lock"].clone());
    let switches = list(&finding["switches"]).into_iter().map(|switch| switch["object"].clone());
    let all = [why["object"].clone()].into_iter().chain(story).chain(locks).chain(switches);
    let mut all: Vec<String> =
        all.filter_map(|name| name.as_str().map(str::to_owned)).filter(|name| !name.is_empty()).collect();
    all.sort();
    all.dedup();
    all
}

/// A C program in which two threads lose an update of `COUNTER` under the lock `LOCK`. Each gets `ARGUMENT`.
fn lost_update(
    declarations: &str,
    begin: &str,
    counter: &str,
    lock: &str,
    setup: &str,
    argument: &str,
) -> String {
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdint.h>\n#include <stdlib.h>\n{declarations}\n\
         static void *add(void *p) {{ {begin}\n\
         pthread_mutex_lock({lock}); int n = {counter}; pthread_mutex_unlock({lock});\n\
         pthread_mutex_lock({lock}); {counter} = n + 1; pthread_mutex_unlock({lock}); return 0; }}\n\
         int main(void) {{ {setup}\npthread_t t[2];\n\
         for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, add, {argument});\n\
         for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n"
    )
}

const QUEUE: &str = "struct queue { pthread_mutex_t lock; int done; int slots[4]; };";

/// A program that is not instrumented: its global variables say that a thread waits for what is already true.
#[test]
fn globals_of_a_program_that_is_not_instrumented() {
    let directory = scratch();
    let text = "#include <pthread.h>\n#include <stdbool.h>\n\
        static struct { enum { IDLE, READY } phase; int constant; pthread_mutex_t lock; } state;\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
        static pthread_cond_t cv = PTHREAD_COND_INITIALIZER;\n\
        static bool stop; static short negative;\n\
        static void *wait(void *a) { pthread_mutex_lock(&m); bool go_on = !stop; pthread_mutex_unlock(&m);\n\
        if (go_on) { pthread_mutex_lock(&m); pthread_cond_wait(&cv, &m); pthread_mutex_unlock(&m); } return a; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, wait, 0); pthread_mutex_lock(&m);\n\
        stop = true; state.phase = READY; negative--; pthread_cond_signal(&cv); pthread_mutex_unlock(&m);\n\
        pthread_join(t, 0); return 0; }\n";
    compile(directory.path(), "waits.c", text, &[]);
    let ran = run(heisen(directory.path()).args(["check", "--json", "out.json", "--", "./waits"])).expect(1);
    let shown = "\n  global variables at these switches, and at the end:\n";
    let shown = ran.out.split_once(shown).unwrap_or_else(|| panic!("{}", ran.out)).1;
    let mut lines: Vec<&str> = shown.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.sort_unstable();
    let expected = [
        "negative = 0 at 1, 0 at 2, -1 at the end",
        "state.phase = IDLE at 1, IDLE at 2, READY at the end",
        "stop = false at 1, false at 2, true at the end",
    ];
    assert_eq!(lines, expected, "{}", ran.out);
    let text = std::fs::read_to_string(directory.path().join("out.json")).expect("the file");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        json["findings"][0]["globals"][0]["at_end"].as_str().map(str::is_empty),
        Some(false),
        "{json:#}"
    );
    // What an instrumented program reads and writes is part of its explanation.
    let finding = finding(
        directory.path(),
        "instrumented.c",
        &std::fs::read_to_string(directory.path().join("waits.c")).expect("it"),
        &[],
    );
    assert_eq!(finding["globals"], Value::Array(Vec::new()), "{finding:#}");
}

#[test]
fn a_struct_on_the_heap_by_a_global_pointer() {
    let directory = scratch();
    let text = lost_update(
        &format!("{QUEUE} struct queue *shared;"),
        "struct queue *q = p;",
        "q->slots[2]",
        "&q->lock",
        "shared = calloc(1, sizeof *shared); pthread_mutex_init(&shared->lock, 0);",
        "shared",
    ) + "assert(shared->slots[2] == 2); }\n";
    let found = finding(directory.path(), "p.c", &text, &[]);
    assert_eq!(objects(&found), ["shared->lock", "shared->slots[2]"], "{found:#}");
}

#[test]
fn a_struct_on_the_heap_by_a_local_pointer() {
    let directory = scratch();
    let text = lost_update(
        QUEUE,
        "struct queue *q = p;",
        "q->done",
        "&q->lock",
        "struct queue *mine = calloc(1, sizeof *mine); pthread_mutex_init(&mine->lock, 0);",
        "mine",
    ) + "assert(mine->done == 2); }\n";
    let found = finding(directory.path(), "p.c", &text, &[]);
    assert_eq!(objects(&found), ["mine->done", "mine->lock"], "{found:#}");
}

#[test]
fn an_element_of_an_array_on_the_heap_and_a_struct_on_the_stack() {
    let directory = scratch();
    let text = lost_update(
        "struct cell { long id; int value; }; struct table { pthread_mutex_t lock; struct cell *cells; };",
        "struct table *t = p;",
        "t->cells[3].value",
        "&t->lock",
        "struct table table = {.cells = calloc(8, sizeof(struct cell))}; pthread_mutex_init(&table.lock, 0);",
        "&table",
    ) + "assert(table.cells[3].value == 2); }\n";
    let found = finding(directory.path(), "p.c", &text, &[]);
    assert_eq!(objects(&found), ["table.cells[3].value", "table.lock"], "{found:#}");
}

/// Neither a global nor a local variable of `main` leads to the memory, only the place of its allocation is known.
#[test]
fn memory_that_no_variable_leads_to_is_named_by_its_allocation() {
    let directory = scratch();
    let text = lost_update(
        "static uintptr_t hidden; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;",
        "",
        "((int *)(hidden ^ 255))[2]",
        "&m",
        "hidden =\n(uintptr_t)calloc(1, 40)\n^ 255;",
        "0",
    ) + "assert(((int *)(hidden ^ 255))[2] == 2); }\n";
    let found = finding(directory.path(), "p.c", &text, &[]);
    let line = text.lines().position(|line| line.contains("calloc")).expect("the line") + 1;
    let block = format!("heap block allocated at p.c:{line} (offset 8)");
    assert_eq!(objects(&found), [block.as_str(), "m"], "{found:#}");
}

/// A block is freed, and its memory becomes another object, which the old pointer still points to.
#[test]
fn a_reused_block_does_not_keep_its_name() {
    let directory = scratch();
    let text = lost_update(
        "struct cell { long next; int value; }; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static struct cell *second;",
        "struct cell *c = p;",
        "c->value",
        "&m",
        "struct cell *old = malloc(sizeof *old); old->value = 7; free(old);\n\
         second = malloc(sizeof *second); second->value = 0;",
        "second",
    ) + "assert(second->value == 2); }\n";
    for heap in ["--heap=on", "--heap=off"] {
        let found = finding(directory.path(), "p.c", &text, &[heap]);
        assert_eq!(objects(&found), ["m", "second->value"], "{found:#}");
    }
}

#[test]
fn members_of_classes() {
    let directory = scratch();
    let start = "#include <cassert>\n#include <memory>\n#include <mutex>\n#include <thread>\n\
        struct Base { std::mutex m_; int count_ = 0; };\n\
        template <class A, class B> struct Pool : Base {\n\
        void work() { int n; { std::lock_guard<std::mutex> g(m_); n = count_; }\n\
        { std::lock_guard<std::mutex> g(m_); count_ = n + 1; } } };\n\
        using Long = Pool<int, std::unique_ptr<long>>;\n";
    let threads = |pool: &str| {
        format!(
            "std::thread a([&] {{ {pool}work(); }}), b([&] {{ {pool}work(); }}); a.join(); b.join();\n\
             assert({pool}count_ == 2); }}\n"
        )
    };
    let programs = [
        ("int main() { Long pool; ", threads("pool."), ["pool.count_", "pool.m_"]),
        (
            "int main() { auto pool = std::make_unique<Long>(); ",
            threads("pool->"),
            ["pool->count_", "pool->m_"],
        ),
        (
            "template <class T> struct Only { static T instance; }; template <class T> T Only<T>::instance;\n\
             int main() { ",
            threads("Only<Long>::instance."),
            ["Only<…>::instance.count_", "Only<…>::instance.m_"],
        ),
    ];
    for (begin, rest, names) in programs {
        let found = finding(directory.path(), "p.cpp", &format!("{start}{begin}{rest}"), &[]);
        assert_eq!(objects(&found), names, "{found:#}");
    }
}

/// Only `this` leads to the object: the thread gets its address as a number.
#[test]
fn a_member_through_this() {
    let directory = scratch();
    let text = "#include <cassert>\n#include <cstdint>\n#include <pthread.h>\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
        struct Pool { long pad; int count = 0; void work() { pthread_mutex_lock(&m); int n = count; pthread_mutex_unlock(&m);\n\
        pthread_mutex_lock(&m); count = n + 1; pthread_mutex_unlock(&m); } int get() { return count; } };\n\
        static void *run(void *a) { ((Pool *)a)->work(); return nullptr; }\n\
        int main() { void *pool = new Pool; pthread_t t[2]; for (auto &x : t) pthread_create(&x, 0, run, pool);\n\
        for (auto x : t) pthread_join(x, 0); assert(((Pool *)pool)->get() == 2); }\n";
    let found = finding(directory.path(), "p.cpp", text, &[]);
    assert_eq!(objects(&found), ["m", "this->count"], "{found:#}");
}

#[test]
fn shared_state_of_rust() {
    let directory = scratch();
    let start = "use std::sync::{Arc, Mutex, atomic::{AtomicU32, Ordering::SeqCst}};\n\
        struct Account { balance: Mutex<i64>, hits: AtomicU32 }\n\
        impl Account {\nfn deposit(&self) { let b = *self.balance.lock().unwrap();\n*self.balance.lock().unwrap() = b + 50; }\n\
        fn hit(&self) { let h = self.hits.load(SeqCst);\nself.hits.store(h + 1, SeqCst); } }\n\
        fn new() -> Account { Account { balance: Mutex::new(0), hits: AtomicU32::new(0) } }\n";
    let arc = "fn main() { let account = Arc::new(new()); let other = account.clone();\n\
        let t = std::thread::spawn(move || other.deposit()); account.deposit(); t.join().unwrap();\n\
        assert_eq!(*account.balance.lock().unwrap(), 100); assert_eq!(account.hits.load(SeqCst), 0); account.hit(); }\n";
    let found = finding(directory.path(), "p.rs", &format!("{start}{arc}"), &[]);
    assert_eq!(objects(&found), ["account.balance"], "{found:#}");
    let scope = "fn main() { let shared = new(); std::thread::scope(|s| { s.spawn(|| shared.hit()); shared.hit(); });\n\
        assert_eq!(shared.hits.load(SeqCst), 2); shared.deposit(); let _ = Arc::new(0); }\n";
    let found = finding(directory.path(), "p.rs", &format!("{start}{scope}"), &[]);
    assert_eq!(objects(&found), ["shared.hits"], "{found:#}");
    // Atomics are in the standard library; what counts is where the program uses them.
    for moment in found["explanation"]["story"].as_array().expect("a story") {
        assert!(moment["place"].as_str().expect("a place").starts_with("p.rs:"), "{found:#}");
    }
}

/// The places of a deadlock and of a cycle are those of the program, not of the standard library.
#[test]
fn places_of_rust() {
    let directory = scratch();
    let deadlock = "use std::sync::Mutex;\nstruct Account { balance: Mutex<i64> }\n\
        fn transfer(from: &Account, to: &Account) {\nlet mut f = from.balance.lock().unwrap();\n\
        let mut t = to.balance.lock().unwrap();\n*f -= 1; *t += 1; }\nfn new() -> Account { Account { balance: Mutex::new(1) } }\n\
        fn main() { let (one, two) = (new(), new());\n\
        std::thread::scope(|s| { s.spawn(|| transfer(&one, &two)); transfer(&two, &one); }); }\n";
    let found = finding(directory.path(), "p.rs", deadlock, &[]);
    let message = "T0 waits for one.balance, held by T1; T1 waits for two.balance, held by T0";
    assert_eq!(found["message"], message, "{found:#}");
    let text = run(heisen(directory.path()).args(["replay", found["schedule"].as_str().expect("a file")]))
        .expect(1)
        .out;
    for words in ["holds two.balance since p.rs:4", "holds one.balance since p.rs:4"] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let spin = "use std::sync::atomic::{AtomicBool, Ordering::SeqCst};\nfn main() { let flag = AtomicBool::new(false);\n\
        std::thread::scope(|s| { s.spawn(|| {\nwhile !flag.load(SeqCst) { std::thread::yield_now(); } }); }); }\n";
    let found = finding(directory.path(), "p.rs", spin, &["--steps", "20000"]);
    for step in found["cycle"]["steps"].as_array().expect("steps") {
        assert_eq!(step["place"], "p.rs:4", "{found:#}");
    }
}

#[test]
fn thread_local_variables() {
    let directory = scratch();
    let text = "#include <pthread.h>\nstatic __thread int before; static __thread int local; static int *where;\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
        static void *run(void *a) { pthread_mutex_lock(&m); where = &local; before = 1; pthread_mutex_unlock(&m); local++; return a; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, run, 0);\n\
        pthread_mutex_lock(&m); if (where) (*where)++; pthread_mutex_unlock(&m); pthread_join(t, 0); return 0; }\n";
    let found = finding(directory.path(), "p.c", text, &["--races=stop"]);
    assert!(found["message"].as_str().is_some_and(|m| m.starts_with("local of T1: ")), "{found:#}");
}

/// Without debug information there are the names of the symbol table, and blocks of the heap.
#[test]
fn a_program_without_debug_information() {
    let directory = scratch();
    let text = lost_update(
        "pthread_mutex_t visible = PTHREAD_MUTEX_INITIALIZER;",
        "int *c = p;",
        "c[1]",
        "&visible",
        "int *numbers = calloc(2, sizeof *numbers);",
        "numbers",
    ) + "assert(numbers[1] == 2); }\n";
    std::fs::write(directory.path().join("p.c"), text).expect("a file");
    run(heisen(directory.path()).args(["cc", "-O0", "-g0", "-o", "p", "p.c", "-pthread"])).expect(0);
    let json = explained_json(directory.path(), &["--", "./p"]);
    let found = &json["findings"][0];
    assert_eq!(objects(found), ["a block of 8 bytes from malloc (offset 4)", "visible"], "{json:#}");
}

/// A program that prints as googletest does: the report has the failure, not only the summary.
#[test]
fn the_output_of_a_test_framework() {
    let directory = scratch();
    let text = r#"#include <cstdio>
#include <thread>
static int x;
int main() {
    std::thread t([] { x++; });
    t.join();
    std::puts("Running main() from gtest_main.cc\n[==========] Running 1 test from 1 test suite.");
    for (int i = 0; i < 12; i++) std::puts("[       OK ] Queue.Other (0 ms)");
    std::puts("queue_test.cc:12: Failure\nExpected equality of these values:\n  queue.size()\n    Which is: 1\n  2\n");
    std::puts("[  FAILED  ] Queue.Order (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)");
    std::puts("[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Queue.Order\n\n 1 FAILED TEST");
    return 1;
}
"#;
    std::fs::write(directory.path().join("p.cpp"), text).expect("a file");
    let text = run(heisen(directory.path()).args(["check", "p.cpp"])).expect(1).out;
    for words in ["… 14 lines before", "queue_test.cc:12: Failure", "Which is: 1", "1 FAILED TEST"] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    assert!(!text.contains("Queue.Other"), "{text}");
}
