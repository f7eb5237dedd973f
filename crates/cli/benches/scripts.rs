//! Measures what scripts cost: events a second in unit mode and in system mode, and the speed of threads that
//! no script holds. All measurements happen in one run on one machine:
//!
//! ```sh
//! cargo bench -p heisen-cli --bench scripts
//! ```

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of runs, of which the median counts.
const RUNS: usize = 5;

/// One thread enters a function again and again. Another thread computes, locks and copies meanwhile.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

volatile long total;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void step(long i) { total += i; }
__attribute__((noinline)) void last(void) { total += 1; }

static void *comes(void *steps) {
    for (long i = 0; i < (long)steps; i++) step(i);
    last();
    return 0;
}

static void *works(void *rounds) {
    static char from[4096], to[4096];
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < (long)rounds; i++) {
        pthread_mutex_lock(&mutex);
        memcpy(to, from, sizeof to);
        from[i % sizeof from] += to[(i + 1) % sizeof to];
        pthread_mutex_unlock(&mutex);
        char *block = malloc(64 + i % 64);
        block[0] = from[0];
        free(block);
        for (int k = 0; k < 200; k++) from[k] ^= (char)(k * i);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%ld\n", (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    pthread_t t[2];
    (void)argc;
    pthread_create(&t[0], 0, comes, (void *)atol(argv[1]));
    pthread_create(&t[1], 0, works, (void *)atol(argv[2]));
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
"#;

/// The name of the measurement, the script for a number of events, the program, and the number of events.
type Row<'a> = (&'a str, &'a dyn Fn(u64) -> String, &'static str, u64);

/// The directory of the benchmark.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file is written");
    }

    /// Runs a script with these arguments. Returns the number of events, and the time.
    fn script(&self, text: &str, args: &[&str]) -> (f64, f64) {
        self.write("s.rhai", text);
        let mut command = Command::new(env!("CARGO_BIN_EXE_heisen"));
        command.current_dir(self.directory.path()).args(["script", "--json", "-", "s.rhai"]).args(args);
        let output = command.output().expect("heisen is run");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(json["executions"], 1, "{text}: {}{json:#}", String::from_utf8_lossy(&output.stderr));
        (json["events"].as_f64().unwrap_or(0.0), json["seconds"].as_f64().unwrap_or(1.0))
    }

    /// Events a second: the difference between a run with many events and one with few, so that the start
    /// does not count.
    fn rate(&self, script: &dyn Fn(u64) -> String, args: &dyn Fn(u64) -> Vec<String>, most: u64) -> f64 {
        median(|| {
            let run = |steps: u64| {
                let args = args(steps);
                self.script(&script(steps), &args.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let ((few, short), (many, long)) = (run(most / 10), run(most));
            (many - few) / (long - short).max(1e-9)
        })
    }
}

fn median(mut measure: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..RUNS).map(|_| measure()).collect();
    all.sort_by(f64::total_cmp);
    all[RUNS / 2]
}

fn compile(directory: &Path, compiler: &[&str], out: &str) {
    let status = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-O2", "-g", "-pthread", "p.c", "-o", out])
        .current_dir(directory)
        .status()
        .expect("a compiler");
    assert!(status.success());
}

/// The time of the working thread, as the program prints it.
fn worked(output: &[u8]) -> f64 {
    String::from_utf8_lossy(output).lines().find_map(|line| line.parse().ok()).expect("a time")
}

fn main() {
    let place = Place { directory: tempfile::tempdir().expect("a directory") };
    place.write("p.c", PROGRAM);
    compile(place.directory.path(), &["cc"], "plain");
    compile(place.directory.path(), &[env!("CARGO_BIN_EXE_heisen"), "cc"], "instrumented");
    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let of = |mode: &'static str, program: &'static str| {
        move |steps: u64| {
            let count = steps.to_string();
            let words = ["--", program, &count, "0"];
            if mode == "system" { strings(&[&["--system"], &words[..]].concat()) } else { strings(&words) }
        }
    };
    println!("| what passes a script, or is stopped by it | events a second |");
    println!("| --- | --- |");
    let passes =
        |_| "let a = wait_for_thread(any, enters(\"last\"));\nlet b = enters(\"step\");\n".to_owned();
    let filtered = |_| {
        "let a = wait_for_thread(any, enters(\"last\") | writes(\"total\") & with_value(-1));\n".to_owned()
    };
    let stops = |steps: u64| {
        format!(
            "let a = wait_for_thread(any, enters(\"step\"));\nlet n = 1;\n\
             while n < {steps} {{ run_until(a, enters(\"step\")); n += 1; }}\n"
        )
    };
    for mode in ["unit", "system"] {
        let rows: [Row<'_>; 3] = [
            ("accesses of memory that are not waited for", &filtered, "./instrumented", 2_000_000),
            ("calls of a function that are not waited for", &passes, "./plain", 2_000_000),
            ("stops, with the script at work in between", &stops, "./plain", 50_000),
        ];
        for (what, script, program, most) in rows {
            let rate = place.rate(script, &of(mode, program), most);
            println!("| {mode}: {what} | {rate:.0} |");
        }
    }
    // One thread is held, and the other one works.
    const ROUNDS: &str = "1500000";
    let natively = || {
        let mut command = Command::new(place.path("plain"));
        worked(
            &command.args(["1", ROUNDS]).stderr(Stdio::null()).output().expect("the program is run").stdout,
        )
    };
    let held = || {
        let text = "let p = start(\"p\");\nlet a = wait_for_thread(any, enters(\"step\"));\ntime_limit(60);\n\
                    wait_for_output(p, \"\\n\");\nrelease(a);\nwait_for_end(p);\nprint(p.output);\nexists();\n";
        place.write("s.rhai", text);
        let mut command = Command::new(env!("CARGO_BIN_EXE_heisen"));
        command.current_dir(place.directory.path()).args(["script", "--json", "-", "s.rhai"]);
        let output =
            command.args(["--attach", &format!("p=./plain 1 {ROUNDS}")]).output().expect("heisen is run");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let trail = json["exists"].as_array().expect("the script was followed");
        let told: Option<f64> =
            trail.iter().filter_map(|step| step["what"].as_str()).find_map(|w| w.trim().parse().ok());
        told.expect("a time")
    };
    let began = Instant::now();
    // Measures both in turns, so that a change of the machine's speed affects both.
    let ratio = median(|| natively() / held());
    println!(
        "\nA thread that no script holds, while another is held: {:.0} % of its native speed",
        100.0 * ratio
    );
    assert!(began.elapsed() < Duration::from_secs(600));
}
