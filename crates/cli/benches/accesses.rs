//! Measures instrumented programs, as ratios within one run on one machine: `cargo bench --features peers
//! --bench accesses`.
//!
//! - a program with many memory accesses, with the race check, against the same under clang's
//!   ThreadSanitizer;
//! - the same without the race check, against a native run on one processor;
//! - executions a second of a racy counter and a Treiber stack, against loom and shuttle on the same logic.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize as Counter;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Four threads sort arrays of their own, and add to a shared table under locks.
const HEAVY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define N 400000
static pthread_mutex_t locks[16];
static long table[1024];
static unsigned *arrays[4];
static unsigned next(unsigned *s) { *s = *s * 1664525u + 1013904223u; return *s >> 8; }
static void sort(unsigned *a, long lo, long hi) {
    while (lo < hi) {
        unsigned p = a[(lo + hi) / 2];
        long i = lo, j = hi;
        while (i <= j) {
            while (a[i] < p) i++;
            while (a[j] > p) j--;
            if (i <= j) { unsigned t = a[i]; a[i] = a[j]; a[j] = t; i++; j--; }
        }
        if (j - lo < hi - i) { sort(a, lo, j); lo = i; } else { sort(a, i, hi); hi = j; }
    }
}
static void *work(void *arg) {
    long me = (long)arg;
    unsigned seed = 7 + me, *a = arrays[me];
    for (int round = 0; round < 6; round++) {
        for (long i = 0; i < N; i++) a[i] = next(&seed);
        sort(a, 0, N - 1);
        for (long i = 0; i < N; i += 64) {
            unsigned k = a[i] & 1023;
            pthread_mutex_lock(&locks[k & 15]);
            table[k] += a[i];
            pthread_mutex_unlock(&locks[k & 15]);
        }
    }
    return 0;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 16; i++) pthread_mutex_init(&locks[i], 0);
    for (long i = 0; i < 4; i++) arrays[i] = malloc(N * sizeof(unsigned));
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

const COUNTER: &str = r#"
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
fn main() {
    let total = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..2).map(|_| {
        let total = total.clone();
        std::thread::spawn(move || { let seen = total.load(SeqCst); total.store(seen + 1, SeqCst); })
    }).collect();
    for thread in threads { thread.join().unwrap(); }
}
"#;

/// The same logic for all three, with the atomics and threads of each crate.
macro_rules! treiber {
    ($atomic:path, $order:expr) => {
        const NONE: usize = usize::MAX;
        struct Stack {
            head: $atomic,
            next: [$atomic; 4],
        }
        impl Stack {
            fn push(&self, node: usize) {
                loop {
                    let head = self.head.load($order);
                    self.next[node].store(head, $order);
                    if self.head.compare_exchange(head, node, $order, $order).is_ok() {
                        return;
                    }
                }
            }
            fn pop(&self) -> Option<usize> {
                loop {
                    let head = self.head.load($order);
                    if head == NONE {
                        return None;
                    }
                    let next = self.next[head].load($order);
                    if self.head.compare_exchange(head, next, $order, $order).is_ok() {
                        return Some(head);
                    }
                }
            }
        }
    };
}

const STACK: &str = r#"
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
const NONE: usize = usize::MAX;
struct Stack { head: AtomicUsize, next: [AtomicUsize; 4] }
impl Stack {
    fn push(&self, node: usize) {
        loop {
            let head = self.head.load(SeqCst);
            self.next[node].store(head, SeqCst);
            if self.head.compare_exchange(head, node, SeqCst, SeqCst).is_ok() { return; }
        }
    }
    fn pop(&self) -> Option<usize> {
        loop {
            let head = self.head.load(SeqCst);
            if head == NONE { return None; }
            let next = self.next[head].load(SeqCst);
            if self.head.compare_exchange(head, next, SeqCst, SeqCst).is_ok() { return Some(head); }
        }
    }
}
fn main() {
    let stack = Arc::new(Stack { head: AtomicUsize::new(NONE), next: std::array::from_fn(|_| AtomicUsize::new(NONE)) });
    let threads: Vec<_> = (0..2).map(|id| {
        let stack = stack.clone();
        std::thread::spawn(move || { stack.push(id); stack.pop(); })
    }).collect();
    for thread in threads { thread.join().unwrap(); }
}
"#;

/// The number of executions of a random search.
const WALKS: usize = 5000;

fn shuttle(test: impl Fn() + Send + Sync + 'static) -> f64 {
    let start = Instant::now();
    shuttle::check_random(test, WALKS);
    WALKS as f64 / start.elapsed().as_secs_f64()
}

/// Executions a second of loom, which explores all schedules up to its own reduction.
fn loom(test: impl Fn() + Send + Sync + 'static) -> f64 {
    static RUNS: Counter = Counter::new(0);
    RUNS.store(0, Relaxed);
    let start = Instant::now();
    loom::model(move || {
        RUNS.fetch_add(1, Relaxed);
        test();
    });
    RUNS.load(Relaxed) as f64 / start.elapsed().as_secs_f64()
}

macro_rules! count {
    ($krate:ident) => {
        || {
            use $krate::sync::Arc;
            use $krate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
            let total = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let total = total.clone();
                    $krate::thread::spawn(move || {
                        let seen = total.load(SeqCst);
                        total.store(seen + 1, SeqCst);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        }
    };
}

macro_rules! stack {
    ($krate:ident) => {
        || {
            use $krate::sync::Arc;
            use $krate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
            treiber!(AtomicUsize, SeqCst);
            let stack = Arc::new(Stack {
                head: AtomicUsize::new(NONE),
                next: std::array::from_fn(|_| AtomicUsize::new(NONE)),
            });
            let threads: Vec<_> = (0..2)
                .map(|id| {
                    let stack = stack.clone();
                    $krate::thread::spawn(move || {
                        stack.push(id);
                        stack.pop();
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        }
    };
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it can be started");
    assert!(status.success(), "{command:?}: {status}");
}

fn seconds(command: &mut Command) -> f64 {
    let start = Instant::now();
    run(command);
    start.elapsed().as_secs_f64()
}

/// The smallest of three measurements.
fn least(mut measure: impl FnMut() -> f64) -> f64 {
    (0..3).map(|_| measure()).fold(f64::MAX, f64::min)
}

fn heisen(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heisen"));
    command.current_dir(directory);
    command
}

fn check(directory: &Path, args: &[&str]) -> Value {
    let output = heisen(directory)
        .args(["check", "--jobs", "1", "--json", "-"])
        .args(args)
        .output()
        .expect("heisen runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn rate(directory: &Path, name: &str, text: &str) -> f64 {
    std::fs::write(directory.join(name), text).expect("the source is written");
    let walks = WALKS.to_string();
    let json = check(directory, &["--strategy", "random", "--executions", &walks, name]);
    assert_eq!(json["executions"], WALKS, "{json:#}");
    WALKS as f64 / json["seconds"].as_f64().expect("a number")
}

fn heavy(directory: &Path) {
    let source: PathBuf = directory.join("heavy.c");
    std::fs::write(&source, HEAVY).expect("the source is written");
    let build = |command: &mut Command, to: &str| {
        run(command.current_dir(directory).args(["-O2", "-g", "-pthread", "heavy.c", "-o", to]));
    };
    build(&mut Command::new("cc"), "native");
    let clang = Command::new("clang").arg("--version").output().is_ok();
    let compiler = if clang { "clang" } else { "cc" };
    build(heisen(directory).env("HEISEN_CC", compiler).arg("cc"), "instrumented");
    let one = |program: &str| {
        least(|| seconds(Command::new("taskset").args(["1", program]).current_dir(directory)))
    };
    let under = |options: &[&str]| {
        least(|| {
            let args = [&["--executions", "1", "--hang", "1m"], options, &["--", "./instrumented"]].concat();
            check(directory, &args)["seconds"].as_f64().expect("a number")
        })
    };
    let native = one("./native");
    let off = under(&["--races=off", "--heap", "off"]);
    let on = under(&[]);
    println!("heavy on memory: natively on one processor {native:.2} s");
    println!("  instrumented, no race check: {off:.2} s, {:.2} times native", off / native);
    println!("  with race check and heap: {on:.2} s, {:.2} times native", on / native);
    if clang {
        build(Command::new("clang").arg("-fsanitize=thread"), "tsan");
        let both = least(|| seconds(Command::new("./tsan").current_dir(directory)));
        let alone = one("./tsan");
        println!("  ThreadSanitizer: {both:.2} s on all processors, {alone:.2} s on one");
        println!("  race check against it: {:.2} and {:.2}", on / both, on / alone);
    } else {
        println!("  ThreadSanitizer: skipped, clang is not installed");
    }
}

fn main() {
    // `cargo test` runs a bench with this option.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    heavy(directory.path());
    for (name, text, by_shuttle, by_loom) in [
        ("counter.rs", COUNTER, shuttle(count!(shuttle)), loom(count!(loom))),
        ("treiber.rs", STACK, shuttle(stack!(shuttle)), loom(stack!(loom))),
    ] {
        let ours = rate(directory.path(), name, text);
        println!("{name}: {ours:.0} executions a second; shuttle {by_shuttle:.0}, loom {by_loom:.0}");
        println!("  against shuttle {:.2}, against loom {:.2}", ours / by_shuttle, ours / by_loom);
    }
}
