//! Tests of failing operations and barriers under dynamic partial-order reduction. A failed operation only
//! reads, and arrivals at a barrier commute. No outcome is lost by that.

use heisen_testkit::{Sandbox, check_json, program, scratch, usual_or_nightly};
use serde_json::Value;
use std::collections::BTreeSet;

#[allow(dead_code, reason = "the function that reads the program's own memory")]
#[path = "../../src/shim/ignored.rs"]
mod ignored;

const DPOR: &[&str] = &["--strategy", "dpor"];

/// Checks a program. The search must be complete.
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

fn findings(json: &Value) -> BTreeSet<&str> {
    let all = json["findings"].as_array().expect("a list");
    all.iter().map(|f| f["signature"].as_str().expect("a text")).collect()
}

/// Checks that there are `expected` classes with one execution each.
#[track_caller]
fn classes(declarations: &str, bodies: &[&str], expected: u64) {
    let json = check(declarations, bodies, DPOR);
    let found = ["classes", "executions", "blocked"].map(|name| number(&json, name));
    assert_eq!(found, [expected, expected, 0], "{bodies:?}");
}

/// Checks that dpor finds the same classes and bugs as dfs. Returns the number of bugs.
#[track_caller]
fn matches_dfs(declarations: &str, bodies: &[&str]) -> usize {
    let counted = check(declarations, bodies, &["--strategy", "dfs", "--reduce"]);
    let reduced = check(declarations, bodies, DPOR);
    assert_eq!(number(&reduced, "classes"), number(&counted, "classes"), "{bodies:?}");
    assert_eq!(findings(&reduced), findings(&counted), "{bodies:?}");
    if usual_or_nightly(false, true) {
        let all = check(declarations, bodies, &["--strategy", "dfs"]);
        assert_eq!(findings(&counted), findings(&all), "{bodies:?}");
    }
    findings(&counted).len()
}

/// Declarations with a barrier for `count` threads.
fn barrier(count: usize) -> String {
    format!(
        "#include <assert.h>\nstatic pthread_barrier_t b; static atomic_int x, last; static int value;\n\
         __attribute__((constructor)) static void init(void) {{ pthread_barrier_init(&b, 0, {count}); }}"
    )
}

const MEET: &str = "pthread_barrier_wait(&b);";

#[test]
fn compare_exchanges() {
    let x = "static atomic_int x;";
    let once = "int e = 0; atomic_compare_exchange_strong(&x, &e, 1);";
    let never = "int e = 7; atomic_compare_exchange_strong(&x, &e, 1);";
    // Any one of them may succeed. The others only read.
    classes(x, &[once; 5], 5);
    classes(x, &[never; 5], 1);
    // Both succeed, or the second one came too early.
    classes(x, &[once, "int e = 1; atomic_compare_exchange_strong(&x, &e, 2);"], 2);
    // A compare-exchange that stores the same value is still a write, because others may acquire it.
    let same = "int e = 0; atomic_compare_exchange_strong(&x, &e, 0);";
    classes(x, &[same; 3], 6);
    // An increment that retries.
    let add = "int v = x; while (!atomic_compare_exchange_weak(&x, &v, v + 1)) ;";
    assert_eq!(matches_dfs(x, &[add, add]), 0);
    let asserts = format!("#include <assert.h>\n{x}");
    let wins = "int e = 0; if (!atomic_compare_exchange_strong(&x, &e, 2)) assert(x != 1);";
    assert_eq!(matches_dfs(&asserts, &[once, wins, never]), 1);
}

/// The same for uninstrumented code.
#[test]
fn patched_compare_exchanges() {
    let x = "static atomic_int x;";
    let once = "int e = 0; atomic_compare_exchange_strong(&x, &e, 1);";
    let count = |bodies: &[&str]| {
        let json = check(x, bodies, &[DPOR, &["--no-instrument", "--accesses", "all"]].concat());
        number(&json, "classes")
    };
    assert_eq!(count(&[once; 4]), 4);
    assert_eq!(count(&["int e = 7; atomic_compare_exchange_strong(&x, &e, 1);"; 4]), 1);
}

#[test]
fn locks_that_are_tried() {
    let mutex = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
    let held =
        format!("{mutex} __attribute__((constructor)) static void hold(void) {{ pthread_mutex_lock(&m); }}");
    let attempt = "pthread_mutex_trylock(&m);";
    classes(&held, &[attempt; 4], 1);
    classes(mutex, &[attempt; 4], 4);
    let spin = "static pthread_spinlock_t s; __attribute__((constructor)) static void init(void) { pthread_spin_init(&s, 0); }";
    classes(spin, &["pthread_spin_trylock(&s);"; 4], 4);
    classes("static sem_t s;", &["sem_trywait(&s);"; 4], 1);
    classes("static sem_t s;", &["sem_post(&s);", "sem_trywait(&s);", "sem_trywait(&s);"], 5);
    let lock = "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;";
    let written = format!(
        "{lock} __attribute__((constructor)) static void hold(void) {{ pthread_rwlock_wrlock(&l); }}"
    );
    let (read, write) = ("pthread_rwlock_tryrdlock(&l);", "pthread_rwlock_trywrlock(&l);");
    classes(&written, &[read, write, read, write], 1);
    classes(lock, &[read; 3], 1);
    classes(lock, &[write; 3], 3);
}

/// Bugs that depend on the outcome of an attempt are found.
#[test]
fn outcomes_of_attempts() {
    let shared = "#include <assert.h>\n#include <errno.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static sem_t s;
        static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER; static atomic_int x;";
    let lock = "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);";
    let late = "x++; if (pthread_mutex_trylock(&m)) assert(x != 1); else pthread_mutex_unlock(&m);";
    assert_eq!(matches_dfs(shared, &[lock, late]), 1);
    assert_eq!(matches_dfs(shared, &["sem_post(&s);", "x++; assert(sem_trywait(&s));"]), 1);
    // The other thread does `x++` first. It may still hold the lock when the attempt comes, which then fails.
    let try_read = "if (pthread_rwlock_tryrdlock(&l)) assert(!\"read\"); else pthread_rwlock_unlock(&l);";
    let try_write = "if (pthread_rwlock_trywrlock(&l)) assert(!\"write\"); else pthread_rwlock_unlock(&l);";
    let read = "x++; pthread_rwlock_rdlock(&l); pthread_rwlock_unlock(&l);";
    let write = "x++; pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l);";
    for (attempt, other, found) in
        [(try_read, write, 1), (try_write, write, 1), (try_write, read, 1), (try_read, read, 0)]
    {
        assert_eq!(matches_dfs(shared, &[attempt, other]), found, "{attempt} {other}");
    }
    // A successful attempt makes a later attempt to write fail.
    assert_eq!(matches_dfs(shared, &["pthread_rwlock_tryrdlock(&l);", try_write]), 1);
    assert_eq!(matches_dfs(shared, &["pthread_rwlock_tryrdlock(&l);", try_read]), 0);
}

#[test]
fn arrivals_commute() {
    classes(&barrier(5), &[MEET.repeat(2).as_str(); 5], 1);
    classes(&barrier(3), &[MEET.repeat(3).as_str(); 3], 1);
    // The barrier orders the steps before it and after it: 2! and 2!.
    classes(&barrier(2), &["x++; pthread_barrier_wait(&b); x++;"; 2], 4);
    let loops = "for (int i = 0; i < 2; i++) pthread_barrier_wait(&b);";
    classes(&barrier(3), &[loops; 3], 1);
    // One thread never comes, so all others wait forever.
    let json = check(&barrier(4), &[MEET; 3], DPOR);
    assert_eq!((number(&json, "classes"), findings(&json).len()), (1, 1), "{json:#}");
}

/// If more threads come than the barrier needs, the order decides which of them meet.
#[test]
fn crowds() {
    let two = barrier(2);
    // Each of the three threads may be the one that is left alone.
    for thread in 0..3 {
        let mut bodies = ["pthread_barrier_wait(&b); x++;"; 3];
        bodies[thread] = "pthread_barrier_wait(&b); assert(0);";
        let json = check(&two, &bodies, DPOR);
        let kinds: BTreeSet<&str> =
            json["findings"].as_array().expect("a list").iter().filter_map(|f| f["kind"].as_str()).collect();
        assert_eq!(kinds, BTreeSet::from(["assertion", "deadlock"]), "{json:#}");
    }
    // Only threads that meet see the steps of the others before the barrier.
    let bodies = ["x = 1; pthread_barrier_wait(&b);", "pthread_barrier_wait(&b); assert(!x);", MEET, MEET];
    let kinds = |search: &[&str]| {
        let json = check(&two, &bodies, &[search, &["--races=off"]].concat());
        let list = json["findings"].as_array().expect("a list");
        list.iter().filter_map(|f| f["kind"].as_str().map(str::to_owned)).collect::<BTreeSet<_>>()
    };
    assert_eq!(kinds(DPOR), kinds(&["--strategy", "icb", "--bound", "1"]));
}

/// Every thread can be the one that gets the special return value, however the compiled code tests it.
#[test]
fn who_was_the_last() {
    let uses = [
        "if (pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD) assert(0);",
        "int r = pthread_barrier_wait(&b); x++; if (r) assert(0);",
        "value = pthread_barrier_wait(&b); assert(!value);",
        "assert(!result());",
        "result(); if (result_of) assert(0);",
        "int r = pthread_barrier_wait(&b); nothing(); assert(!r);",
    ];
    let declarations = format!(
        "{}\nstatic int result_of; static int result(void) {{ return result_of = pthread_barrier_wait(&b); }}\n\
         static __attribute__((noinline)) void nothing(void) {{ __asm__ volatile(\"\"); }}",
        barrier(2)
    );
    let sandbox = Sandbox::new();
    for flags in ["-O0", "-O2"] {
        for (at, used) in uses.iter().enumerate() {
            for bodies in &[[MEET, used], [used, MEET]][..usual_or_nightly(1, 2)] {
                let source = sandbox.write("p.c", program(&declarations, bodies).as_bytes());
                let name = format!("p{at}");
                let output = sandbox.path(&name).display().to_string();
                let source = source.display().to_string();
                heisen_testkit::run(
                    sandbox.command(&["cc", "-g", "-pthread", flags]).args([&source, "-o", &output]),
                )
                .expect(0);
                let json = sandbox
                    .heisen(&["check", "--strategy", "dpor", "--races=off", "--json", "-", "--", &output])
                    .json();
                assert_eq!(json["findings"][0]["kind"], "assertion", "{flags} {bodies:?}: {json:#}");
            }
        }
        // If no thread uses the return value, there is one class.
        let text = program(
            &declarations,
            &[&MEET.repeat(2), "pthread_barrier_wait(&b); nothing(); pthread_barrier_wait(&b);"],
        );
        let source = sandbox.write("q.c", text.as_bytes()).display().to_string();
        let output = sandbox.path("q").display().to_string();
        heisen_testkit::run(sandbox.command(&["cc", "-g", "-pthread", flags]).args([&source, "-o", &output]))
            .expect(0);
        let json = sandbox.heisen(&["check", "--strategy", "dpor", "--json", "-", "--", &output]).json();
        assert_eq!(number(&json, "classes"), 1, "{flags}: {json:#}");
    }
}

/// Whether code ignores the content of `rax` at its start.
fn ignores(code: &[u8]) -> bool {
    const START: usize = 0x1000;
    // Bytes outside the code are breakpoints, which `follow` does not know.
    ignored::follow(START, |at| at.checked_sub(START).and_then(|at| code.get(at).copied()).unwrap_or(0xcc))
}

#[test]
fn results_that_are_ignored() {
    for (code, expected, what) in [
        (&[0xb8, 0, 0, 0, 0][..], true, "mov eax, 0"),
        (&[0x31, 0xc0], true, "xor eax, eax"),
        (&[0x48, 0x8d, 0x05, 0, 0, 0, 0], true, "lea rax, [rip]"),
        (&[0x48, 0x8b, 0x45, 0xe8], true, "mov rax, [rbp-24]"),
        (&[0x5b, 0x58], true, "pop rbx; pop rax"),
        (&[0x0f, 0xb6, 0x45, 0xff], true, "movzx eax, byte [rbp-1]"),
        (&[0x48, 0x89, 0xdf, 0xff, 0x15, 0, 0, 0, 0], true, "mov rdi, rbx; call [rip]"),
        (&[0x44, 0x89, 0x45, 0xfc, 0x31, 0xc0], true, "mov [rbp-4], r8d; xor eax, eax"),
        (&[0x85, 0xc0], false, "test eax, eax"),
        (&[0x83, 0xf8, 0xff], false, "cmp eax, -1"),
        (&[0x89, 0x45, 0xfc], false, "mov [rbp-4], eax"),
        (&[0x89, 0xc7], false, "mov edi, eax"),
        (&[0x48, 0x8b, 0x00], false, "mov rax, [rax]"),
        (&[0x48, 0x8b, 0x0c, 0x03], false, "mov rcx, [rbx+rax]"),
        (&[0x48, 0x8b, 0x14, 0x07], false, "mov rdx, [rdi+rax]"),
        (&[0xb0, 0x01], false, "mov al, 1"),
        (&[0x66, 0xb8, 0x01, 0x00], false, "mov ax, 1"),
        (&[0x66, 0x31, 0xc0], false, "xor ax, ax"),
        (&[0xff, 0xd0], false, "call rax"),
        (&[0x50], false, "push rax"),
        (&[0xc3], false, "ret"),
        (&[0xc9, 0xc3], false, "leave; ret"),
        (&[0x0f, 0x94, 0xc0], false, "sete al"),
        (&[0xf0, 0x0f, 0xc1, 0x03], false, "lock xadd [rbx], eax"),
        (&[0x49, 0x90], false, "xchg r8, rax"),
        (&[0x41, 0x58, 0xc3], false, "pop r8; ret"),
        (&[0xeb, 0xfe], false, "an endless loop"),
        // add dword [rbp-4], 1; cmp dword [rbp-4], 2; jle to the last part; xor eax, eax; int3; and the last
        // part.
        (
            &[0x83, 0x45, 0xfc, 1, 0x83, 0x7d, 0xfc, 2, 0x7e, 3, 0x31, 0xc0, 0xcc, 0x31, 0xc0],
            true,
            "both ways overwrite it",
        ),
        (
            &[0x83, 0x45, 0xfc, 1, 0x83, 0x7d, 0xfc, 2, 0x7e, 3, 0x31, 0xc0, 0xcc, 0x85, 0xc0],
            false,
            "one way reads it",
        ),
        // dec ebx; jne to the first instruction; xor eax, eax.
        (&[0xff, 0xcb, 0x75, 0xfc, 0x31, 0xc0], true, "a loop before"),
        // call the function after the int3; test eax, eax; int3; then the function: endbr64; ret.
        (&[0xe8, 3, 0, 0, 0, 0x85, 0xc0, 0xcc, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3], false, "kept by a function"),
        (&[0xe8, 3, 0, 0, 0, 0x85, 0xc0, 0xcc, 0x31, 0xc0, 0xc3], true, "overwritten by a function"),
        (
            &[0xe8, 3, 0, 0, 0, 0x85, 0xc0, 0xcc, 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0],
            true,
            "a function of another module",
        ),
        (&[0xe8, 0xfb, 0xff, 0xff, 0xff], false, "a function that calls itself"),
    ] {
        assert_eq!(ignores(code), expected, "{what}");
    }
}
