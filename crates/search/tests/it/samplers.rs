//! Tests of the samplers. Each one finds a bug, repeats itself for the same seed, and has the distribution
//! that its paper states. The portfolio finds bugs that single samplers miss. The verdict has the numbers of
//! each sampler.

use heisen_engine::process::run_config::{Output, RunConfig};
use heisen_engine::process::slots::{Detail, Job};
use heisen_engine::process::zygote::Zygote;
use heisen_engine::program::compile as engine_compile;
use heisen_engine::program::compile::Extent;
use heisen_engine::program::embedded;
use heisen_testkit::stated::built;
use heisen_testkit::{check_json, compile, heisen, processes_of, root, run, scratch, soon, usual_or_nightly};
use heisen_trace::{End, Plan, Policy};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// All samplers, some of them also with their own parameters.
const SAMPLERS: [&[&str]; 14] = [
    &["random"],
    &["burst"],
    &["burst", "--burst", "3"],
    &["pct"],
    &["pct", "--depth", "2"],
    &["fair-pct"],
    &["fair-pct", "--depth", "2"],
    &["pos"],
    &["surw"],
    &["delay"],
    &["delay", "--delays", "1"],
    &["guided"],
    &["directed"],
    &["portfolio"],
];

/// Checks a program with a sampler.
#[track_caller]
fn sample(directory: &Path, strategy: &[&str], options: &[&str], program: &str) -> Value {
    check_json(directory, &[&["--strategy"], strategy, options, &["--", program]].concat())
}

/// Compiles an example in this directory.
fn build(directory: &Path, file: &str) -> String {
    built(directory, &root().join("examples").join(file))
}

#[test]
fn each_finds_a_bug() {
    let directory = scratch();
    for file in &["c/account.c", "c/bounded_buffer.c", "c/treiber.c"][..usual_or_nightly(1, 3)] {
        // Some bugs are too deep for one change of priority, or for one delay.
        let deep =
            |strategy: &&&[&str]| *file == "c/account.c" || !matches!(strategy.last(), Some(&"1" | &"2"));
        let program = build(directory.path(), file);
        for strategy in SAMPLERS.iter().filter(deep) {
            let json = sample(directory.path(), strategy, &["--executions", "5000"], &program);
            assert_eq!(json["verdict"], "bug", "{file} {strategy:?}: {json:#}");
            assert_eq!(json["strategy"], strategy[0]);
            let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
            run(heisen(directory.path()).args(["replay", schedule])).expect(1);
        }
    }
}

#[test]
fn none_finds_what_is_not_there() {
    let directory = scratch();
    for file in &["c/account_fixed.c", "c/bounded_buffer_fixed.c"][..usual_or_nightly(1, 2)] {
        let program = build(directory.path(), file);
        for strategy in SAMPLERS {
            let json = sample(directory.path(), strategy, &["--executions", "200"], &program);
            assert_eq!(json["verdict"], "clean", "{file} {strategy:?}: {json:#}");
            assert_eq!((&json["executions"], &json["complete"]), (&200.into(), &false.into()));
            assert_eq!((&json["diverged"], &json["findings"]), (&0.into(), &Value::Array(vec![])));
        }
    }
}

/// A result without its duration, paths and counts that depend on the number of processes.
fn result(mut json: Value) -> Value {
    for other in ["seconds", "program", "undone", "ahead", "skipped", "forked"] {
        assert!(json.as_object_mut().expect("an object").remove(other).is_some());
    }
    json
}

#[test]
fn the_same_seed_gives_the_same_whatever_the_number_of_workers() {
    let with_program = scratch();
    let program = build(with_program.path(), "c/channel.c");
    for strategy in SAMPLERS {
        let all = |seed: &str, jobs: &str| {
            let directory = scratch();
            // In fewer executions `directed` finds no bug.
            let executions = usual_or_nightly("60", "400");
            let search = ["--keep-going", "--executions", executions, "--seed", seed, "--jobs", jobs];
            let options = [&search[..], usual_or_nightly(&["--no-minimise"], &[])].concat();
            result(sample(directory.path(), strategy, &options, &program))
        };
        let first = all("11", "1");
        assert_eq!(first["verdict"], "bug", "{strategy:?}");
        for jobs in usual_or_nightly(&["2"][..], &["1", "2"]) {
            assert_eq!(all("11", jobs), first, "{strategy:?}");
        }
        assert_ne!(all("12", "2"), first, "{strategy:?}");
    }
}

/// Two threads post semaphores and append their letters in the same step. The program writes the order of the
/// letters to a file.
const LETTERS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>
static sem_t shared, own;
static char order[64];
static int length;
static void does(const char *what) {
    for (; *what; what++) {
        sem_post(*what == '-' ? &own : &shared);
        if (*what != '-') order[length++] = *what;
    }
}
static void *first(void *arg) { does(arg); return arg; }
int main(int argc, char **argv) {
    pthread_t a, b;
    sem_init(&shared, 0, 0);
    sem_init(&own, 0, 0);
    pthread_create(&a, NULL, first, argv[1]);
    if (argv[3]) pthread_create(&b, NULL, first, argv[2]);
    else does(argv[2]);
    pthread_join(a, NULL);
    if (argv[3]) pthread_join(b, NULL);
    order[length++] = '\n';
    int file = open("results", O_WRONLY | O_CREAT | O_APPEND, 0600);
    return write(file, order, length) != length;
}
"#;

/// How often each order of letters came in `executions` executions. If `two` is set, a created thread also
/// handles the second word, instead of `main`.
fn orders(strategy: &[&str], words: [&str; 2], two: bool, executions: u64) -> BTreeMap<String, u64> {
    let directory = scratch();
    compile(directory.path(), "letters.c", LETTERS, &[]);
    let count = executions.to_string();
    let mut args = vec!["--strategy"];
    args.extend(strategy);
    args.extend(["--seed", "1", "--executions", &count, "--", "./letters"]);
    args.extend(words);
    args.extend(two.then_some("two"));
    let json = check_json(directory.path(), &args);
    assert_eq!(json["executions"], executions, "{json:#}");
    let text = std::fs::read_to_string(directory.path().join("results")).expect("results");
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    assert_eq!(counts.values().sum::<u64>(), executions);
    counts
}

/// The chi-square statistic of the counts against the expected shares. An order without an expected share
/// fails the test.
fn chi_square(counts: &BTreeMap<String, u64>, expected: &[(&str, f64)]) -> f64 {
    let total: u64 = counts.values().sum();
    assert!(counts.keys().all(|order| expected.iter().any(|(e, _)| e == order)), "{counts:?}");
    let square = |(order, share): &(&str, f64)| {
        let right = share * total as f64;
        (counts.get(*order).copied().unwrap_or(0) as f64 - right).powi(2) / right
    };
    expected.iter().map(square).sum()
}

/// All interleavings of two words.
fn interleavings(a: &str, b: &str) -> Vec<String> {
    match (a.chars().next(), b.chars().next()) {
        (None, _) => vec![b.to_owned()],
        (_, None) => vec![a.to_owned()],
        (Some(first), Some(second)) => {
            let of_a = interleavings(&a[1..], b).into_iter().map(|rest| format!("{first}{rest}"));
            let of_b = interleavings(a, &b[1..]).into_iter().map(|rest| format!("{second}{rest}"));
            of_a.chain(of_b).collect()
        }
    }
}

#[test]
fn surw_is_uniform_over_interleavings() {
    // The chi-square bounds for 19, 20 and 5 degrees of freedom. A correct sampler exceeds one of them once
    // in a thousand times.
    for (words, two, bound) in
        [(["aaa", "bbb"], true, 43.8), (["aaaaa", "bb"], true, 45.3), (["aa", "bb"], false, 20.5)]
            .into_iter()
            .step_by(usual_or_nightly(2, 1))
    {
        let all = interleavings(words[0], words[1]);
        let share = 1.0 / all.len() as f64;
        let expected: Vec<(&str, f64)> = all.iter().map(|order| (order.as_str(), share)).collect();
        let counts = orders(&["surw"], words, two, 4000);
        let square = chi_square(&counts, &expected);
        assert!(square < bound, "{words:?}: {square} {counts:?}");
        // A random walk exceeds the bound by far, so the test can tell the two apart.
        let walk = chi_square(&orders(&["random"], words, two, 4000), &expected);
        assert!(walk > 10.0 * bound, "{words:?}: {walk}");
    }
}

/// Two threads write eight letters each. `all` counts the letters written while both threads have begun and
/// neither has ended. `switches` counts those where the other thread wrote the letter before. The exit code
/// is 16 * `all` + `switches`.
const SWITCHES: &str = r#"
#include <pthread.h>
#include <semaphore.h>
static sem_t shared;
static int written[2], last, free_to_switch, all, switches;
static void *writes(void *arg) {
    long me = (long)arg;
    for (int i = 0; i < 8; i++) {
        sem_post(&shared);
        all += free_to_switch;
        switches += free_to_switch && last != me;
        written[me]++;
        last = me;
        free_to_switch = written[0] % 8 && written[1] % 8;
    }
    return arg;
}
int main(void) {
    pthread_t a, b;
    sem_init(&shared, 0, 0);
    pthread_create(&a, NULL, writes, (void *)0);
    pthread_create(&b, NULL, writes, (void *)1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 16 * all + switches;
}
"#;

#[test]
fn surw_has_runs_of_the_given_length() {
    let directory = scratch();
    let path = directory.path().join("switches.c");
    std::fs::write(&path, SWITCHES).expect("written");
    let program =
        engine_compile::compile(&path, vec![], directory.path(), Extent::Program).expect("it compiles");
    let runtime = embedded::runtime().expect("the runtime");
    let mut zygote =
        Zygote::start(&runtime, &program, &RunConfig::default(), Output::Dropped).expect("it starts");
    for length in [1, 2, 4, 16] {
        let policy = |seed| Policy::Surw { seed, part: 0, length, expected: [].into() };
        let plans: Vec<Plan> = (0..4000).map(|seed| Plan::new(policy(seed << 32))).collect();
        let (mut all, mut switches, mut left) = (0, 0, &plans[..]);
        while !left.is_empty() {
            let jobs: Vec<Job<'_>> = left.iter().map(Job::Plan).collect();
            let runs = zygote.run_all(&jobs, Detail::End, None).expect("the program runs");
            for run in &runs {
                let End::Exit(code) = run.execution.end else { panic!("{:?}", run.execution.end) };
                (all, switches) = (all + code / 16, switches + code % 16);
            }
            left = &left[runs.len()..];
        }
        // A run ends with probability 1 / length. No thread has expected events, so the walk then chooses the
        // other thread half of the time.
        let p = 0.5 / f64::from(length);
        let right = p * f64::from(all);
        // A correct sampler is off by more than this once in ten thousand times.
        let off = 3.9 * (right * (1.0 - p)).sqrt();
        assert!(all > 1000 && (f64::from(switches) - right).abs() < off, "{length}: {switches} of {all}");
    }
}

/// Tests two properties from the POS paper (Yuan, Yang, Gu). Unlike in a random walk, the probability of an
/// order does not depend on unrelated events. A thread that lost a race draws a new priority and is as likely
/// as others to win the next one.
#[test]
fn pos_samples_as_its_paper_says() {
    // The created thread has 8 events: its start and seven posts. The main thread's one event is after the
    // last of them only if its priority is the lowest of all 9: 1/9.
    let counts = orders(&["pos"], ["------a", "b"], false, 4000);
    let square = chi_square(&counts, &[("ab", 1.0 / 9.0), ("ba", 8.0 / 9.0)]);
    assert!(square < 10.8, "{square} {counts:?}");
    // A random walk would have to choose the created thread 8 times in a row.
    let walk = orders(&["random"], ["------a", "b"], false, 4000);
    assert!(chi_square(&walk, &[("ab", 1.0 / 256.0), ("ba", 255.0 / 256.0)]) < 10.8, "{walk:?}");
    // The main thread's event loses against the start and the first letter with probability 1/3. Then its
    // priority is drawn again, and it is between the letters or last with 1/2 each. Without the new draw it
    // would be last in 1/4 of all executions and between the letters in 1/12.
    let counts = orders(&["pos"], ["aa", "b"], false, 4000);
    let (right, undrawn) = ([2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0], [2.0 / 3.0, 1.0 / 12.0, 1.0 / 4.0]);
    let squares = [right, undrawn].map(|shares| {
        let expected: Vec<(&str, f64)> = ["baa", "aba", "aab"].into_iter().zip(shares).collect();
        chi_square(&counts, &expected)
    });
    assert!(squares[0] < 13.8 && squares[1] > 138.0, "{squares:?} {counts:?}");
}

#[test]
fn burst_length_is_respected() {
    let words = ["aaaaaaaa", "bbbbbbbb"];
    let ahead = |length: &str| {
        let counts = orders(&["burst", "--burst", length], words, true, 1000);
        let times = |order: &str| counts.get(order).copied().unwrap_or(0);
        times("aaaaaaaabbbbbbbb") + times("bbbbbbbbaaaaaaaa")
    };
    // The first thread keeps running only if it goes on at each of some ten decisions.
    assert!(ahead("1000") > 950);
    assert!((400..800).contains(&ahead("10")));
    // A burst of length 1 is a random walk. The first thread has three events before the other's first one,
    // so one thread finishes before the other in 3.3 % of executions.
    assert!((15..60).contains(&ahead("1")));
}

/// The portfolio must find the bug with every seed, within as many executions as the other samplers get
/// without finding it.
#[track_caller]
fn the_portfolio_finds(directory: &Path, program: &str) {
    for seed in 1..=usual_or_nightly(3, 10) {
        let options = ["--executions", "3000", "--seed", &seed.to_string()];
        assert_eq!(sample(directory, &["portfolio"], &options, program)["verdict"], "bug", "seed {seed}");
    }
}

/// The bug needs hundreds of uninterrupted steps before a few switches. See the head comment of the example.
#[test]
fn the_portfolio_finds_what_random_never_does() {
    let directory = scratch();
    let program = build(directory.path(), "samplers/far_ahead.c");
    the_portfolio_finds(directory.path(), &program);
    let json = sample(directory.path(), &["random"], &["--executions", "3000"], &program);
    assert_eq!(json["verdict"], "clean");
}

/// The bug needs more ordered switches than pct's depth. See the head comment of the example.
#[test]
fn the_portfolio_finds_what_pct_never_does() {
    let directory = scratch();
    let program = build(directory.path(), "samplers/in_turn.c");
    the_portfolio_finds(directory.path(), &program);
    for depth in ["2", "3", "5"] {
        let json = sample(directory.path(), &["pct", "--depth", depth], &["--executions", "3000"], &program);
        assert_eq!(json["verdict"], "clean", "depth {depth}");
    }
}

/// Each of the two examples has a bug that some sampler never finds.
#[test]
fn guided_finds_them_as_well() {
    let directory = scratch();
    for (file, most) in [("samplers/far_ahead.c", "300"), ("samplers/in_turn.c", "5000")] {
        let program = build(directory.path(), file);
        for seed in &["1", "2", "3", "4", "5"][..usual_or_nightly(2, 5)] {
            let options = ["--executions", most, "--seed", seed];
            let json = sample(directory.path(), &["guided"], &options, &program);
            assert_eq!(
                (&json["verdict"], &json["diverged"]),
                (&"bug".into(), &0.into()),
                "{file}, seed {seed}"
            );
        }
    }
}

/// Two threads lock, increment and unlock three times each. The only behaviours are the 20 orders of the
/// critical sections.
const LOCKED: &str = r#"
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;
static void *adds(void *arg) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        total++;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, adds, NULL);
    pthread_create(&b, NULL, adds, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return total != 6;
}
"#;

#[test]
fn the_verdict_has_numbers() {
    let directory = scratch();
    compile(directory.path(), "locked.c", LOCKED, &[]);
    let check = |options: &[&str]| check_json(directory.path(), &[options, &["--", "./locked"]].concat());
    for strategy in ["random", "pos", "surw", "portfolio"] {
        let json = check(&["--strategy", strategy, "--executions", "3001"]);
        let unseen = &json["unseen"];
        // The first execution does not count, because it only measures how long executions are.
        assert_eq!(unseen["executions"], 3000, "{strategy}: {json:#}");
        assert_eq!((&unseen["kinds"], &unseen["once"]), (&20.into(), &0.into()), "{strategy}: {json:#}");
        assert_eq!(unseen["chance"], 0.0);
    }
    // There are 3 threads. The guarantee uses the steps of the longest execution; here all executions have
    // equally many.
    let json = check(&["--strategy", "pct", "--depth", "2", "--executions", "101"]);
    let guarantee = &json["guarantee"];
    let (threads, steps) = (3.0, guarantee["steps"].as_f64().expect("a number"));
    assert_eq!(steps * 101.0, json["steps"].as_f64().expect("a number"), "{json:#}");
    assert_eq!((&guarantee["threads"], &guarantee["depth"]), (&3.into(), &2.into()));
    assert_eq!(guarantee["executions"], 100);
    let (each, all) = (&guarantee["per_execution"], &guarantee["total"]);
    let p = 1.0 / (threads * steps);
    assert!((each.as_f64().expect("a number") - p).abs() < 1e-12, "{json:#}");
    assert!((all.as_f64().expect("a number") - (1.0 - (1.0 - p).powi(100))).abs() < 1e-9, "{json:#}");
    // A systematic search has neither estimate.
    let json = check(&["--strategy", "icb"]);
    assert_eq!((&json["unseen"], &json["guarantee"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_screen_has_the_numbers_too() {
    let directory = scratch();
    compile(directory.path(), "locked.c", LOCKED, &[]);
    let shown = |options: &[&str]| {
        let mut command = heisen(directory.path());
        run(command.arg("check").args(options).args(["--", "./locked"])).expect(0).out
    };
    let out = shown(&["--strategy", "random", "--executions", "2001"]);
    let words = "20 behaviours in 2 000 executions; the next execution shows a new one with probability less than 1 in 2 000";
    assert!(out.contains(words), "{out}");
    let out = shown(&["--strategy", "random", "--executions", "2"]);
    let words =
        "1 behaviour in 1 execution; the next execution shows a new one with probability about 99.99 %";
    assert!(out.contains(words), "{out}");
    let out = shown(&["--strategy", "portfolio", "--executions", "300"]);
    assert!(out.contains("no bug in 300 executions of portfolio (seed 0); with 3 threads"), "{out}");
    assert!(out.contains("by pct find a bug of depth 2 with probability at least"), "{out}");
}

#[test]
fn who_limits_the_time_gets_the_portfolio() {
    let directory = scratch();
    compile(directory.path(), "locked.c", LOCKED, &[]);
    let check = |options: &[&str]| check_json(directory.path(), &[options, &["--", "./locked"]].concat());
    let json = check(&["--time", "300ms"]);
    assert_eq!(
        (&json["strategy"], &json["verdict"]),
        (&"portfolio".into(), &"incomplete".into()),
        "{json:#}"
    );
    // If the user names a strategy, or an option of one, a time limit does not select the portfolio.
    assert_eq!(check(&["--time", "10s", "--bound", "1"])["strategy"], "icb");
    assert_eq!(check(&["--time", "10s", "--reduce"])["strategy"], "icb");
    assert_eq!(check(&["--time", "10s", "--strategy", "dfs"])["strategy"], "dfs");
    assert_eq!(check(&["--executions", "100"])["strategy"], "icb");
}

#[test]
fn a_sampling_search_that_is_interrupted_goes_on() {
    let directory = scratch();
    let program = compile(directory.path(), "locked.c", LOCKED, &[]);
    for strategy in SAMPLERS {
        let mut command = heisen(directory.path());
        command.args(["check", "--strategy"]).args(strategy).args(["--time", "60s", "--", "./locked"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("heisen starts");
        assert!(soon(|| !processes_of(&program).is_empty()), "{strategy:?}");
        std::thread::sleep(Duration::from_millis(100));
        run(Command::new("kill").args(["-INT", &child.id().to_string()])).expect(0);
        let ran = child.wait_with_output().expect("heisen ends");
        let ran = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let both = ran.concat();
        let (_, saved) = both.split_once("--resume ").unwrap_or_else(|| panic!("{strategy:?}: {both}"));
        let saved = saved.split_whitespace().next().expect("a file");
        let before = heisen_testkit::saved_executions(&directory.path().join(saved));
        let json = check_json(directory.path(), &["--resume", saved, "--executions", "50", "--time", "60s"]);
        assert_eq!(json["executions"], before + 50, "{strategy:?}: {json:#}");
        assert_eq!(json["strategy"], strategy[0]);
    }
}

/// Threads that lock, wait with a time limit, yield, sleep and send each other signals. Executions are long,
/// and nothing is recorded of them. The program writes a hash of what the threads saw of each other to a
/// file.
const VARIED: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static pthread_t threads[3];
static unsigned long order;
static void sees(int who, int what) { order = order * 1099511628211ul + 4 * what + who; }
static void handler(int signal) { sees(3, signal); }
static void *works(void *arg) {
    int id = (int)(long)arg;
    for (int i = 0; i < 5500; i++) {
        pthread_mutex_lock(&m);
        sees(id, 1);
        if (i % 40 == id) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 1000;
            sees(id, 2 + (pthread_cond_timedwait(&c, &m, &until) != 0));
        } else if (i % 40 == 20 + id) {
            pthread_cond_signal(&c);
        }
        pthread_mutex_unlock(&m);
        if (pthread_mutex_trylock(&n) == 0) {
            sees(id, 4);
            sem_post(&s);
            pthread_mutex_unlock(&n);
        }
        if (sem_trywait(&s) == 0) sees(id, 5);
        if (i % 50 == 7) sched_yield();
        if (i % 90 == 8) usleep(10);
        if (i == 1000 + 500 * id) pthread_kill(threads[(id + 1) % 3], SIGUSR1);
    }
    return arg;
}
int main(void) {
    signal(SIGUSR1, handler);
    sem_init(&s, 0, 0);
    pthread_mutex_lock(&m);
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, works, (void *)i);
    pthread_mutex_unlock(&m);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    char line[32];
    int length = sprintf(line, "%lx\n", order), file = open("results", O_WRONLY | O_CREAT | O_APPEND, 0600);
    return write(file, line, length) != length;
}
"#;

/// In a long execution by priorities, the runtime determines most choices in advance. With `--coverage` every
/// touch is recorded, so the runtime makes each choice at its own step. The outcome must be the same.
#[test]
fn choices_that_are_known_beforehand_are_the_same() {
    let directory = scratch();
    compile(directory.path(), "varied.c", VARIED, &[]);
    let seen = |options: &[&str]| {
        let given = ["--seed", "3", "--executions", "6", "--steps", "4000000", "--", "./varied"];
        let json = check_json(directory.path(), &[options, &given].concat());
        let results = directory.path().join("results");
        let text = std::fs::read_to_string(&results).expect("results");
        std::fs::remove_file(results).expect("it is there");
        (json["steps"].clone(), text.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    for strategy in [["--strategy", "pct", "--depth", "4"], ["--strategy", "fair-pct", "--depth", "5"]] {
        let all = [&strategy[..], &["--jobs", "1"]].concat();
        let (steps, known) = seen(&all);
        assert!(steps.as_u64().is_some_and(|steps| steps > 6 << 16), "{steps}");
        assert_eq!(known.iter().collect::<BTreeSet<_>>().len(), 6, "{known:?}");
        assert_eq!(seen(&[&all[..], &["--coverage", "coverage"]].concat()), (steps, known));
    }
}
