//! Tests of bugs in lock-free code that need a preemption at an atomic instruction. With `--patch none` no
//! schedule shows the bug. With patching it is found in the stripped program and replays on both carriers.

use heisen_testkit::Sandbox;
use serde_json::Value;

const BOTH: &str = "
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
static void *run(void *);
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, run, (void *)1);
    run((void *)0);
    pthread_join(t, 0);
    end();
}
";

/// The text of a program. `before` comes before `run` and contains a function `end`, which `main` calls last.
fn program(before: &str, run: &str) -> String {
    format!("#include <assert.h>\n#include <stddef.h>\n{before}{BOTH}{run}")
}

/// Compiles a program and checks that it has a bug with `preemptions`, which only patching finds.
#[track_caller]
fn finds(name: &str, text: &str, flags: &[&str], preemptions: u64) -> Value {
    let sandbox = Sandbox::new();
    let path = sandbox.compile(name, text, &[flags, &["-s"]].concat());
    let path = path.to_str().unwrap();
    sandbox.clean(&["--patch", "none", "--strategy", "dfs", "--", path]);
    let finding = sandbox.finds("assertion", &["--patch", "default", "--", path]);
    assert_eq!(finding["preemptions"], preemptions, "{finding:#}");
    let schedule = finding["schedule"].as_str().unwrap();
    let text = std::fs::read_to_string(sandbox.path(schedule)).unwrap();
    assert!(text.contains("patch \"default\"\n") && text.contains(" atomic_"), "{text}");
    sandbox.heisen(&["replay", "--carrier", "kernel", schedule]).expect(1);
    finding
}

#[track_caller]
fn is_clean(name: &str, text: &str, flags: &[&str]) -> Value {
    let sandbox = Sandbox::new();
    let path = sandbox.compile(name, text, &[flags, &["-s"]].concat());
    sandbox.clean(&["--patch", "default", "--", path.to_str().unwrap()])
}

#[test]
fn a_spin_lock_that_is_released_by_who_does_not_hold_it() {
    // The critical section also uses atomic instructions, so they are scheduling points.
    let lock = |release: &str| {
        program(
            "static int lock, inside; static void end(void) { assert(!inside); }",
            &format!(
                "static void *run(void *arg) {{
    for (int i = 0; i < 2; i++) {{
        int taken = !__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE);
        if (taken) {{
            int before = __atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
            assert(before == 0);
            __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
        }}
        {release}
    }}
    return arg;
}}"
            ),
        )
    };
    let wrong = "__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE);";
    for flags in [["-O2"], ["-O0"]] {
        finds("spin.c", &lock(wrong), &flags, 1);
        is_clean("spin.c", &lock(&format!("if (taken) {wrong}")), &flags);
    }
}

#[test]
fn a_ticket_that_is_drawn_in_two_steps() {
    let lock = |draw: &str| {
        program(
            "static unsigned short next, used[4]; static void end(void) {}",
            &format!(
                "static void *run(void *arg) {{
    unsigned short mine = 0;
    {draw}
    unsigned short before = __atomic_fetch_add(&used[mine], 1, __ATOMIC_SEQ_CST);
    assert(before == 0);
    return arg;
}}"
            ),
        )
    };
    // A builtin function would be a plain load here, which is not a scheduling point.
    let wrong = "__asm__ volatile(\"lock xaddw %0, %1\" : \"+r\"(mine), \"+m\"(next));
    __atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST);";
    finds("ticket.c", &lock(wrong), &["-O2"], 1);
    finds("ticket.c", &lock(wrong), &["-O0", "-no-pie"], 1);
    is_clean("ticket.c", &lock("mine = __atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST);"), &["-O2"]);
}

/// A stack of nodes with a compare-exchange of its head (Treiber). Main pops the top node. Meanwhile the
/// other thread pops two and pushes the first one back. If only the pointer is compared, main sees no change
/// and installs a node that is no longer in the stack.
fn treiber(counted: bool) -> String {
    let (head, swap) = if counted {
        (
            "struct head { struct node *top; unsigned long count; } __attribute__((aligned(16)));",
            "({ struct head o = (old), n = {(new), o.count + 1}; unsigned char done; \
             __asm__ volatile(\"lock cmpxchg16b %1\\n\\tsete %0\" : \"=q\"(done), \"+m\"(head), \"+a\"(o.top), \
             \"+d\"(o.count) : \"b\"(n.top), \"c\"(n.count) : \"memory\", \"cc\"); done; })",
        )
    } else {
        (
            "struct head { struct node *top; };",
            "({ struct node *o = (old).top; \
             __atomic_compare_exchange_n(&head.top, &o, (new), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); })",
        )
    };
    program(
        &format!(
            "struct node {{ struct node *next; int taken; }};
{head}
static struct node nodes[3] = {{ {{&nodes[1], 0}}, {{&nodes[2], 0}}, {{NULL, 0}} }};
static struct head head = {{ &nodes[0] }};
#define SWAP(old, new) {swap}
static struct node *pop(void) {{
    for (;;) {{
        struct head old = *(volatile struct head *)&head;
        if (!old.top) return NULL;
        struct node *next = old.top->next;
        if (SWAP(old, next)) {{ old.top->taken++; return old.top; }}
    }}
}}
static void push(struct node *node) {{
    node->taken--;
    for (;;) {{
        struct head old = *(volatile struct head *)&head;
        node->next = old.top;
        if (SWAP(old, node)) return;
    }}
}}
static void end(void) {{
    for (struct node *n = head.top; n; n = n->next) assert(n->taken == 0);
}}"
        ),
        "static void *run(void *arg) {
    struct node *first = pop();
    if (arg) {
        pop();
        if (first) push(first);
    }
    return arg;
}",
    )
}

#[test]
fn a_stack_that_takes_one_head_for_another() {
    finds("treiber.c", &treiber(false), &["-O2"], 1);
    finds("treiber.c", &treiber(false), &["-O0"], 1);
    is_clean("treiber.c", &treiber(true), &["-O2"]);
    is_clean("treiber.c", &treiber(true), &["-O0", "-no-pie"]);
}

#[test]
fn atomics_of_cpp() {
    let text = |draw: &str| {
        format!(
            "#include <atomic>\n#include <cassert>\n#include <thread>
std::atomic<long> total{{0}};
void add() {{ {draw} }}
int main() {{
    std::thread other(add);
    add();
    other.join();
    assert(total == 2);
}}"
        )
    };
    // The increment is two steps: a read, and an exchange that writes the value plus one.
    let wrong = "long seen = 0; total.compare_exchange_strong(seen, 0); total.exchange(seen + 1);";
    let finding = finds("total.cpp", &text(wrong), &["-O2"], 1);
    assert_eq!(finding["message"], "assertion `total == 2` failed");
    is_clean("total.cpp", &text("total.fetch_add(1);"), &["-O2"]);
}

#[test]
fn atomics_of_rust() {
    let text = |draw: &str| {
        format!(
            "use std::sync::atomic::{{AtomicU64, Ordering::SeqCst}};
static TOTAL: AtomicU64 = AtomicU64::new(0);
fn add() {{ {draw} }}
fn main() {{
    let other = std::thread::spawn(add);
    add();
    other.join().unwrap();
    if TOTAL.load(SeqCst) != 2 {{ std::process::exit(3); }}
}}"
        )
    };
    let wrong = "let seen = TOTAL.compare_exchange(0, 0, SeqCst, SeqCst).unwrap_or_else(|v| v); \
                 TOTAL.swap(seen + 1, SeqCst);";
    for flags in [&["-Copt-level=2", "-Cstrip=symbols"][..], &["-Copt-level=0"]] {
        let sandbox = Sandbox::new();
        let path = sandbox.compile("total.rs", &text(wrong), flags);
        let path = path.to_str().unwrap();
        sandbox.clean(&["--patch", "none", "--bound", "1", "--", path]);
        let finding = sandbox.finds("exit-status", &["--patch", "default", "--bound", "1", "--", path]);
        assert_eq!(finding["preemptions"], 1, "{finding:#}");
        let path = sandbox.compile("total.rs", &text("TOTAL.fetch_add(1, SeqCst);"), flags);
        sandbox.clean(&["--patch", "default", "--bound", "1", "--", path.to_str().unwrap()]);
    }
}

/// A loop waits with an atomic instruction for a held lock. Each round is a scheduling point, but a failed
/// round counts as a yield, so the search ends.
#[test]
fn a_loop_around_an_atomic_instruction() {
    let lock = |take: &str| {
        program(
            "static int lock, inside; static void end(void) {}",
            &format!(
                "static void *run(void *arg) {{
    {take}
    assert(inside++ == 0);
    inside--;
    __atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE);
    return arg;
}}"
            ),
        )
    };
    let ways = [
        "while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) ;",
        "while (__atomic_fetch_or(&lock, 1, __ATOMIC_ACQUIRE) & 1) ;",
        "for (int free = 0; !__atomic_compare_exchange_n(&lock, &free, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);) free = 0;",
    ];
    for way in ways {
        let json = is_clean("waits.c", &lock(way), &["-O2"]);
        assert_eq!((&json["complete"], &json["diverged"]), (&true.into(), &0.into()), "{way}: {json:#}");
        // The loop takes some rounds, not half a million.
        assert!(json["steps"].as_u64().unwrap() < 2000, "{way}: {json:#}");
    }
}

#[test]
fn a_hot_loop() {
    let text = program(
        "static long n; static void end(void) { assert(n == 200000); }",
        "static void *run(void *arg) {
    for (int i = 0; i < 100000; i++) __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED);
    return arg;
}",
    );
    let sandbox = Sandbox::new();
    let path = sandbox.compile("hot.c", &text, &["-O2"]);
    let json = sandbox.clean(&[
        "--patch",
        "default",
        "--strategy",
        "random",
        "--executions",
        "5",
        "--",
        path.to_str().unwrap(),
    ]);
    assert!(json["steps"].as_u64().unwrap() > 1_000_000, "{json:#}");
}

/// The program has its own allocator, which the C library calls while it holds the lock of a stream.
#[test]
fn an_allocator_of_its_own() {
    let text = program(
        "#include <stdio.h>
#include <string.h>
static char pool[1 << 20]; static size_t used;
static void end(void) {}
void *malloc(size_t n) { return pool + __atomic_fetch_add(&used, (n + 31) & ~15ul, __ATOMIC_SEQ_CST); }
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return memset(malloc(a * b), 0, a * b); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }",
        "static void *run(void *arg) {
    void *volatile p = malloc(8);
    printf(\"%p %.2000f\\n\", p, 1.0 / 3);
    return arg;
}",
    );
    let sandbox = Sandbox::new();
    let path = sandbox.compile("own.c", &text, &["-O2", "-fno-builtin"]);
    // Only the program's own call is a scheduling point. One step of `main` interleaves with two of the other
    // thread.
    let json = sandbox.clean(&["--patch", "default", "--strategy", "dfs", "--", path.to_str().unwrap()]);
    assert_eq!((&json["complete"], &json["executions"]), (&true.into(), &3.into()), "{json:#}");
}
