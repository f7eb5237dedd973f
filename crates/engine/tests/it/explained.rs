//! Tests that findings are minimised and explained, whatever strategy found them.

use heisen_engine::explain::close_up::{Closeup, Recorder, TraceLine};
use heisen_engine::explain::explanation::explain_with_runs;
use heisen_engine::explain::minimise::plan_of;
use heisen_engine::explain::neighbourhood::Effort;
use heisen_engine::process::run_config::{Output, RunConfig};
use heisen_engine::process::slots::Job;
use heisen_engine::program::{Program, embedded};
use heisen_testkit::stated::{Stated, built, each, examples, stated};
use heisen_testkit::{check_json, explained_json, heisen, program, root, run, scratch, usual_or_nightly};
use heisen_trace::explanation::Moment;
use heisen_trace::{FindingKind, Op, Schedule};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The first finding of a check of this example.
#[track_caller]
fn finding(directory: &Path, example: &str, options: &[&str]) -> Value {
    let file = root().join("examples").join(example);
    let all: Vec<&str> = options.iter().copied().chain([file.to_str().expect("a plain path")]).collect();
    let json = explained_json(directory, &all);
    let finding = json["findings"][0].clone();
    assert!(finding.is_object(), "{json:#}");
    finding
}

/// Thread, value and line of each operation of the story.
fn story(finding: &Value) -> Vec<(String, Option<u64>, String)> {
    let moments = finding["explanation"]["story"].as_array().expect("a story");
    let line = |place: &str| place.rsplit(':').next().unwrap_or_default().to_owned();
    moments
        .iter()
        .map(|m| {
            let text = |field: &str| m[field].as_str().unwrap_or_default();
            (text("thread").to_owned(), m["value"].as_u64(), line(text("place")))
        })
        .collect()
}

/// Random schedules have many preemptions. The minimised ones have as many as the examples state, and replay.
#[test]
fn random_schedules_become_the_simplest() {
    for (example, fewest) in [
        ("c/account.c", 1),
        ("c/bounded_buffer.c", 0),
        ("c/channel.c", 1),
        ("c/figure2.c", 2),
        ("c/philosophers.c", 1),
        ("c/treiber.c", 1),
    ] {
        let directory = scratch();
        let random = ["--strategy", "random", "--seed", "3"];
        let found = finding(directory.path(), example, &random);
        assert_eq!(found["preemptions"], fewest, "{example}: {found:#}");
        assert!(found["minimised"]["from"].as_u64() > Some(fewest), "{example}: {found:#}");
        let schedule = found["schedule"].as_str().expect("a schedule");
        run(heisen(directory.path()).args(["replay", schedule])).expect(1);
        // Elsewhere, because a check remembers its access points.
        let elsewhere = scratch();
        let original =
            finding(elsewhere.path(), example, &[&random[..], &["--no-minimise", "--no-explain"]].concat());
        assert_eq!(original["preemptions"], found["minimised"]["from"], "{example}");
        assert_eq!(original["signature"], found["signature"], "{example}");
        assert_eq!(original["explanation"], Value::Null, "{example}");
    }
}

/// Every strategy's schedules become as simple as the examples state. Some have another bug as well, which is found first.
#[test]
fn every_example_has_its_fewest_preemptions() {
    let known = ["lock_order.c", "ticket_lock.c", "samaritan.c"];
    let all: Vec<PathBuf> = ["c", "cpp", "published", "rust"].into_iter().flat_map(examples).collect();
    let some = |(index, path): (usize, &PathBuf)| {
        let name = path.file_name().and_then(OsStr::to_str).expect("a name");
        usual_or_nightly(known.contains(&name) || index % 12 == 0, true).then(|| path.clone())
    };
    let strategies = usual_or_nightly(&["random"][..], &["random", "burst", "pct", "pos", "surw", "dpor"]);
    let compared = AtomicUsize::new(0);
    let chosen: Vec<PathBuf> = all.iter().enumerate().filter_map(some).collect();
    each(&chosen, |path| {
        let (Stated::Bug { kind, preemptions }, options) = stated(path) else { return };
        let directory = scratch();
        let program = built(directory.path(), path);
        for strategy in strategies {
            let how = ["--strategy", strategy, "--seed", "3", "--executions", "3000", "--", &program];
            let args: Vec<&str> = options.iter().map(String::as_str).chain(how).collect();
            let json = check_json(directory.path(), &args);
            let found = &json["findings"][0];
            if found["kind"] == kind.as_str() {
                assert_eq!(found["preemptions"], preemptions, "{} by {strategy}: {json:#}", path.display());
                compared.fetch_add(1, Relaxed);
            }
        }
    });
    assert!(compared.load(Relaxed) >= usual_or_nightly(4, 200), "{compared:?}");
}

/// The operations of a recorded execution: thread, operation and name of the object, and which of these equal ones it is.
fn operations(closeup: &Closeup) -> Vec<(Moment, usize)> {
    let accesses = closeup.trace.iter().any(|line| line.event.access.is_some());
    let mut counts: HashMap<(u16, u8, String), usize> = HashMap::new();
    let lines = closeup
        .trace
        .iter()
        .filter(|line| !accesses || line.event.access.is_some() || !line.event.op.is_access());
    let operation = |line: &TraceLine| {
        let event = &line.event;
        let nth = counts.entry((event.thread.0, event.op as u8, line.object.clone())).or_default();
        *nth += 1;
        let moment = Moment {
            step: event.step,
            thread: event.thread,
            op: event.op,
            object: line.object.clone(),
            value: event.access.map(|access| access.value),
            size: 0,
            text: String::new(),
            place: String::new(),
        };
        (moment, *nth)
    };
    lines.map(operation).collect()
}

/// Whether two operations have the same thread, operation and object.
fn alike(one: &Moment, other: &Moment) -> bool {
    (one.thread, one.op, &one.object) == (other.thread, other.op, &other.object)
}

/// Each necessary ordering is confirmed by an execution that is run once more here, as the names in its record show: it
/// passes, it has this ordering reversed, and no other one.
#[test]
fn each_necessary_ordering_is_confirmed_by_an_execution() {
    let confirmed = AtomicUsize::new(0);
    let all = ["c", "cpp", "published", "rust"].into_iter().flat_map(examples);
    let all: Vec<PathBuf> = all.step_by(usual_or_nightly(3, 1)).collect();
    each(&all, |path| {
        let directory = scratch();
        let (Stated::Bug { preemptions, .. }, options) = stated(path) else { return };
        let file = path.to_str().expect("a plain path");
        let bound = preemptions.to_string();
        let args: Vec<&str> = options.iter().map(String::as_str).chain(["--bound", &bound, file]).collect();
        let json = check_json(directory.path(), &args);
        let name = json["findings"][0]["schedule"].as_str().unwrap_or_else(|| panic!("{file}: {json:#}"));
        let text = std::fs::read_to_string(directory.path().join(name)).expect("the schedule");
        let schedule = Schedule::parse(&text).expect("a schedule");
        let program = OsStr::from_bytes(&schedule.program);
        let program =
            Program::find(directory.path().join(program).as_os_str(), Vec::new()).expect("the program");
        let config = RunConfig {
            steps: schedule.steps_limit,
            spurious: schedule.spurious,
            faults: schedule.faults,
            world: schedule.world.clone(),
            // Whoever runs the tests may ask for backtraces, and each takes a second.
            backtraces: false,
            ..RunConfig::default()
        };
        let runtime = embedded::runtime().expect("the runtime");
        let recorder = Recorder {
            runtime: &runtime,
            program: &program,
            config: &config,
            expect_exit: schedule.expect_exit,
            output: Output::Captured,
            trace: true,
            accesses: true,
        };
        let failing = recorder.record(Job::Schedule(&schedule)).expect("a close-up");
        if failing.too_long {
            return;
        }
        let done = operations(&failing);
        let finding = failing.into_finding(&recorder, 1).expect("it fails");
        if matches!(finding.kind, FindingKind::Livelock | FindingKind::GoodSamaritan) {
            return;
        }
        let plan = plan_of((&runtime, &program, &config), Job::Schedule(&schedule)).expect("a plan");
        let explained = explain_with_runs(&recorder, &plan, &finding, Effort::SHORT).expect("it runs");
        let Some((why, runs)) = explained.filter(|(why, _)| why.evidence.is_some()) else { return };
        assert_eq!(why.orderings.len(), runs.len(), "{file}: {why:#?}");
        // What the failing execution did not do, it would have done next. The operations of a deadlock have no step.
        let which = |index: usize| {
            let moment = &why.story[index];
            let here: Vec<&(Moment, usize)> = done.iter().filter(|(other, _)| alike(other, moment)).collect();
            // A thread that waits for a wake-up has done its operation, one that waits for a lock has not.
            let is_waiting = moment.op != Op::CondWait
                && finding.threads.iter().any(|thread| {
                    (thread.thread, thread.op, &thread.object) == (moment.thread, moment.op, &moment.object)
                });
            let nth = match moment.step {
                _ if why.pending.contains(&index) => None,
                0 if is_waiting => None,
                0 => here.last().map(|(_, nth)| *nth),
                step => here
                    .iter()
                    .find(|(other, _)| (other.step, other.value) == (step, moment.value))
                    .map(|(_, nth)| *nth),
            };
            (moment, nth.unwrap_or(here.len() + 1))
        };
        for (reversed, plan) in runs.iter().enumerate() {
            let passing = recorder.record(Job::Plan(plan)).expect("a close-up");
            assert!(
                passing.verdict.is_none() && passing.run.execution.diverged.is_none(),
                "{file}: {plan:?}"
            );
            let there = operations(&passing);
            let at = |index: usize| {
                let (moment, nth) = which(index);
                there.iter().position(|(other, number)| alike(other, moment) && *number == nth)
            };
            for (index, ordering) in why.orderings.iter().enumerate() {
                let is_reversed = matches!(
                    (at(ordering.first), at(ordering.second)),
                    (Some(first), Some(second)) if second < first
                );
                assert_eq!(is_reversed, index == reversed, "{file}: {index} in {plan:?}: {why:#?}");
            }
            confirmed.fetch_add(1, Relaxed);
        }
    });
    assert!(confirmed.load(Relaxed) > usual_or_nightly(16, 50), "{confirmed:?}");
}

#[test]
fn a_lost_update_with_its_values_and_its_lock() {
    let directory = scratch();
    let found = finding(directory.path(), "c/account.c", &[]);
    let explanation = &found["explanation"];
    assert_eq!(explanation["class"], "atomicity-violation", "{found:#}");
    assert_eq!(explanation["object"], "balance", "{found:#}");
    let expected = [("T1", 0, "23"), ("T2", 50, "29"), ("T1", 100, "29"), ("T0", 100, "45")];
    assert_eq!(story(&found), expected.map(|(t, value, line)| (t.to_owned(), Some(value), line.to_owned())));
    let remedy = &explanation["remedies"][0];
    assert_eq!((&remedy["kind"], &remedy["lock"]), (&"released-between".into(), &"lock".into()), "{found:#}");
    // T2's write must come after T1's read and before its write. Executions confirm both.
    let mut orderings: Vec<(u64, u64)> = Vec::new();
    for ordering in explanation["orderings"].as_array().expect("a list") {
        let index = |which: &str| ordering[which].as_u64().expect("an index");
        orderings.push((index("first"), index("second")));
    }
    orderings.sort_unstable();
    assert_eq!(orderings, [(0, 1), (1, 2)], "{found:#}");
    assert!(explanation["evidence"]["passing"].as_u64() > Some(2), "{found:#}");
    // Once T2 has the lock for its read, both deposits are computed from 0.
    assert_eq!(explanation["no_return"]["thread"], "T2", "{found:#}");
    assert_eq!(explanation["no_return"]["proven"], true, "{found:#}");
    let text =
        run(heisen(directory.path()).args(["explain", found["schedule"].as_str().unwrap()])).expect(1).out;
    for words in [
        "why: atomicity violation on `balance`",
        "T1 reads balance = 0",
        "<- in between",
        "releases it in between",
        "it fails:",
        "it passes:",
        "* only in this execution",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let ran = run(heisen(directory.path()).args([
        "explain",
        found["schedule"].as_str().unwrap(),
        "--quiet",
        "--html",
        "why.html",
    ]));
    assert!(ran.expect(1).out.is_empty());
    let page = std::fs::read_to_string(directory.path().join("why.html")).expect("the page");
    assert!(page.to_lowercase().contains("atomicity violation") && page.contains("sum += amount;"), "{page}");
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
}

/// Cortex (PPoPP'16), figures 2 and 7: the read of w and the write of y come between the write and the branch on y.
#[test]
fn the_figure_of_the_paper() {
    let directory = scratch();
    let found = finding(directory.path(), "c/figure2.c", &[]);
    assert_eq!(found["explanation"]["object"], "y", "{found:#}");
    // As in figure 7, by the lines of the paper: w is read at line 9 after it was counted up, y is written at 10, and
    // the branch at 5 reads it.
    let text = std::fs::read_to_string(root().join("examples/c/figure2.c")).expect("the example");
    let number = |line: String| {
        let line = text.lines().nth(line.parse::<usize>().expect("a line") - 1).expect("it is there");
        let comment = line.rsplit("/* ").next().expect("a comment");
        comment.split([' ', ',']).next().expect("a number").to_owned()
    };
    let seen: Vec<(String, Option<u64>, String)> =
        story(&found).into_iter().map(|(thread, value, line)| (thread, value, number(line))).collect();
    let expected = [
        ("T2", 1, "8"),
        ("T1", 1, "1"),
        ("T1", 1, "2"),
        ("T1", 1, "4"),
        ("T2", 1, "9"),
        ("T2", 0, "10"),
        ("T1", 0, "5"),
    ];
    assert_eq!(seen, expected.map(|(t, value, line)| (t.to_owned(), Some(value), line.to_owned())));
    assert_eq!(found["explanation"]["orderings"].as_array().map(Vec::len), Some(4), "{found:#}");
    // The complete form has both executions.
    let schedule = found["schedule"].as_str().expect("a schedule");
    let ran = run(heisen(directory.path()).args(["explain", schedule, "--json", "-"])).expect(1);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let only = |which: &str| {
        let events = found["explanation"][which].as_array().expect("events");
        events.iter().filter(|event| event["only_here"] == true).count()
    };
    // The branch: the assertion and what leads to it happen in one of the executions only.
    assert!(only("failing") > 0, "{found:#}");
}

/// The free and the use are operations of which one must come first. The wrong access has no value.
#[test]
fn a_use_after_free_names_the_free() {
    let directory = scratch();
    let found = finding(directory.path(), "published/glibc_sem_post.c", &[]);
    let why = &found["explanation"];
    let shown: Vec<[&str; 3]> = why["story"]
        .as_array()
        .expect("a story")
        .iter()
        .map(|moment| ["thread", "op", "object"].map(|field| moment[field].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        shown,
        [["T2", "free", "*semaphore"], ["T1", "atomic_load", "semaphore->waiting"]],
        "{found:#}"
    );
    assert_eq!(why["orderings"], serde_json::json!([{ "first": 0, "second": 1 }]), "{found:#}");
    assert_eq!(why["story"][1]["text"], Value::Null, "{found:#}");
}

/// Producers and consumers wait on one condition variable. The signal for a producer wakes a consumer.
#[test]
fn a_signal_that_wakes_the_wrong_thread() {
    let directory = scratch();
    let text = "#include <pthread.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
        static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;\nstatic int count;\n\
        static void change(int from) { pthread_mutex_lock(&lock);\n\
        while (count != from)\npthread_cond_wait(&changed, &lock);\ncount = !from;\n\
        pthread_cond_signal(&changed);\npthread_mutex_unlock(&lock); }\n\
        static void *put(void *a) { change(0); return a; }\nstatic void *get(void *a) { change(1); return a; }\n\
        int main(void) { void *(*all[4])(void *) = {get, get, put, put}; pthread_t t[4];\n\
        for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, all[i], 0);\n\
        for (int i = 0; i < 4; i++) pthread_join(t[i], 0); return 0; }\n";
    std::fs::write(directory.path().join("queue.c"), text).expect("a file");
    let json = explained_json(directory.path(), &["queue.c"]);
    let why = &json["findings"][0]["explanation"];
    assert_eq!((&why["class"], &why["object"]), (&"lost-wake-up".into(), &"changed".into()), "{json:#}");
    let remedy = serde_json::json!([{ "kind": "broadcast", "condition": "changed", "woken": "T2", "thread": "T4",
        "place": "queue.c:9" }]);
    assert_eq!(why["remedies"], remedy, "{json:#}");
    let ran = run(heisen(directory.path()).args(["check", "queue.c"])).expect(1);
    assert!(ran.out.contains("wakes T2, which only waits again, and not T4"), "{}", ran.out);
}

/// Three locks in a circle. What a thread waits to lock it has not locked.
#[test]
fn a_deadlock_of_three_locks() {
    let directory = scratch();
    let declarations = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,\n\
                        c = PTHREAD_MUTEX_INITIALIZER;";
    let body = |first: char, second: char| {
        format!(
            "pthread_mutex_lock(&{first}); pthread_mutex_lock(&{second});\n\
             pthread_mutex_unlock(&{second}); pthread_mutex_unlock(&{first});"
        )
    };
    let bodies = [body('a', 'b'), body('b', 'c'), body('c', 'a')];
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    std::fs::write(directory.path().join("three.c"), program(declarations, &bodies)).expect("a file");
    let ran = run(heisen(directory.path()).args(["check", "three.c"])).expect(1);
    let story = ran.out.lines().skip_while(|line| !line.contains("why: deadlock on `b`, `c` and `a`"));
    let story: Vec<&str> = story.skip(1).take(6).filter_map(|line| line.split("  three.c").next()).collect();
    let story: Vec<&str> = story.iter().map(|line| line.trim()).collect();
    let expected =
        ["T1 locks a", "T1 waits for b", "T2 locks b", "T2 waits for c", "T3 locks c", "T3 waits for a"];
    assert_eq!(story, expected, "{}", ran.out);
}

/// The ABA problem: the value is the same again. A value that an atomic operation writes is shown as it is then, whatever
/// the next operation makes of it.
#[test]
fn a_value_that_came_back() {
    let directory = scratch();
    let found = finding(directory.path(), "c/treiber.c", &[]);
    let seen: Vec<Option<u64>> = story(&found).into_iter().map(|(_, value, _)| value).take(3).collect();
    assert_eq!(seen, [Some(2), Some(2), Some(1)], "{found:#}");
    let remedy = &found["explanation"]["remedies"][0];
    let named = (&remedy["kind"], &remedy["variable"], &remedy["value"]);
    assert_eq!(named, (&"same-value-again".into(), &"top".into(), &"2".into()), "{found:#}");
}

/// What the failing thread read last is closest to the failure: the item, not the number of items.
#[test]
fn an_order_violation_is_about_what_was_read_last() {
    let directory = scratch();
    let found = finding(directory.path(), "rust/ring.rs", &[]);
    assert_eq!(found["explanation"]["object"], "ring::RING.slots[0]", "{found:#}");
}

/// Main initialises a variable, a thread sets it, main reads it: that is no violation of atomicity, whatever fails then.
/// And only locks that all three accesses hold are said to be held.
#[test]
fn nothing_is_claimed_that_no_execution_shows() {
    let directory = scratch();
    let start = "#include <assert.h>\n#include <pthread.h>\n\
                 static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic int done, x, seen;\n";
    let programs = [
        (
            "static void *one(void *a) { pthread_mutex_lock(&m); if (x) done = 1; pthread_mutex_unlock(&m); return a; }\n\
             static void *two(void *a) { pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m); return a; }\n",
            "done == 0",
        ),
        (
            "static void *one(void *a) { pthread_mutex_lock(&m); int s = x; pthread_mutex_unlock(&m);\n\
             pthread_mutex_lock(&m); x = s + 1; pthread_mutex_unlock(&m); return a; }\n\
             static void *two(void *a) { x += 1; return a; }\n",
            "x == 2",
        ),
    ];
    let ends = "static void run(void) { done = 0; pthread_t t[2]; pthread_create(&t[0], 0, one, 0);\n\
                pthread_create(&t[1], 0, two, 0); for (int i = 0; i < 2; i++) pthread_join(t[i], 0); }\n";
    for (threads, holds) in programs {
        let text =
            format!("{start}{threads}{ends}int main(void) {{ run(); assert({holds}); return seen; }}\n");
        std::fs::write(directory.path().join("p.c"), text).expect("a file");
        let json = explained_json(directory.path(), &["p.c"]);
        let why = &json["findings"][0]["explanation"];
        assert_ne!(why["object"], "done", "{json:#}");
        assert_eq!(why["remedies"], Value::Array(vec![]), "{json:#}");
        let unconfirmed = why["class"] == "atomicity-violation" && why["orderings"] == Value::Array(vec![]);
        assert!(!unconfirmed, "{json:#}");
    }
}

/// Accesses are no scheduling points here, so another order of them may avoid the failure even after the point of no
/// return. What is said of it is limited to the scheduling points.
#[test]
fn the_point_of_no_return_is_one_of_scheduling_points() {
    let directory = scratch();
    let text = "#include <assert.h>\n#include <pthread.h>\nstatic int ready;\n\
                static void *set(void *a) { ready = 1; return a; }\n\
                static void *use(void *a) { for (volatile int i = 0; i < 10; i++) {} assert(ready); return a; }\n\
                int main(void) { pthread_t t[2]; pthread_create(&t[0], 0, use, 0); pthread_create(&t[1], 0, set, 0);\n\
                pthread_join(t[0], 0); pthread_join(t[1], 0); return 0; }\n";
    std::fs::write(directory.path().join("late.c"), text).expect("a file");
    let ran = run(heisen(directory.path()).args(["check", "late.c"])).expect(1);
    let line = ran.out.lines().find(|line| line.contains("the point of no return")).expect("the point");
    assert!(line.contains("scheduling point"), "{line}");
}

/// To unmap memory is an operation on all of it. The access that crashed has no value.
#[test]
fn memory_is_used_after_it_was_unmapped() {
    let directory = scratch();
    let found = finding(directory.path(), "c/channel.c", &[]);
    let moments = found["explanation"]["story"].as_array().expect("a story");
    let deed = |m: &Value| (m["thread"].clone(), m["op"].clone(), m["object"].clone());
    let first = ("T0".into(), "unmap".into(), "*channel".into());
    assert_eq!((deed(&moments[0]), &moments[1]["object"]), (first, &"channel->lock".into()), "{found:#}");
    let text = "#include <pthread.h>\n#include <semaphore.h>\n#include <sys/mman.h>\n\
                static sem_t s;\nstatic int *p;\n\
                static void *use(void *a) { sem_post(&s); *p = 7; return a; }\n\
                int main(void) { p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
                pthread_t t; pthread_create(&t, 0, use, 0); sem_wait(&s); munmap(p, 4096); return pthread_join(t, 0); }\n";
    for end in ["munmap(p, 4096)", "mprotect(p, 4096, PROT_READ)"] {
        std::fs::write(directory.path().join("use.c"), text.replace("munmap(p, 4096)", end)).expect("a file");
        let ran = run(heisen(directory.path()).args(["check", "use.c"])).expect(1);
        let line = ran.out.lines().find(|line| line.contains("T1 writes *p"));
        assert!(line.is_some_and(|line| !line.contains(" = ")), "{end}: {}", ran.out);
    }
}

/// An execution with very many accesses is explained by its calls, as if the program were not instrumented.
#[test]
fn a_long_execution_is_explained_by_its_calls() {
    let directory = scratch();
    let text = std::fs::read_to_string(root().join("examples/c/account.c")).expect("the example");
    let long = text.replace(
        "int main(void) {",
        "static int all[1000];\nint main(void) {\n\
        for (int i = 0; i < 120; i++) for (int k = 0; k < 1000; k++) all[k] += i;\n",
    );
    std::fs::write(directory.path().join("long.c"), long).expect("a file");
    let json = explained_json(directory.path(), &["long.c"]);
    let why = &json["findings"][0]["explanation"];
    assert_eq!((&why["class"], &why["object"]), (&"atomicity-violation".into(), &"lock".into()), "{json:#}");
    assert_eq!(
        (&why["calls_only"], why["story"].as_array().map(Vec::len)),
        (&true.into(), Some(4)),
        "{json:#}"
    );
}

/// A collection of the standard library does thousands of accesses of its own. Those that several threads do are still named,
/// with places in the program.
#[test]
fn a_collection_behind_a_lock_is_named() {
    let directory = scratch();
    let text = "use std::collections::HashMap;\nuse std::sync::Mutex;\nuse std::thread;\n\
                static MADE: Mutex<u32> = Mutex::new(0);\n\
                fn get(cache: &Mutex<HashMap<u32, u32>>) {\n    if cache.lock().unwrap().get(&1).is_none() {\n        \
                *MADE.lock().unwrap() += 1;\n        cache.lock().unwrap().insert(1, 42);\n    }\n}\n\
                fn main() {\n    let cache = Mutex::new(HashMap::new());\n    \
                thread::scope(|s| { s.spawn(|| get(&cache)); get(&cache); });\n    \
                assert_eq!(*MADE.lock().unwrap(), 1);\n}\n";
    std::fs::write(directory.path().join("map.rs"), text).expect("a file");
    let json = explained_json(directory.path(), &["map.rs"]);
    let why = &json["findings"][0]["explanation"];
    assert!(why["object"].as_str().is_some_and(|object| object.starts_with("cache.")), "{json:#}");
    let moments = why["story"].as_array().expect("a story").iter().chain([&why["no_return"]]);
    for moment in moments {
        assert!(
            moment["place"].as_str().is_some_and(|place| place.contains("map.rs:")),
            "{moment} in {json:#}"
        );
    }
}

/// The accesses of atomics are in a header of the compiler; the story shows their callers.
#[test]
fn accesses_in_libraries_are_shown_at_their_callers() {
    let directory = scratch();
    let found = finding(directory.path(), "cpp/hazard_pointer.cpp", &[]);
    let places = found["explanation"]["story"].as_array().expect("a story");
    assert!(!places.is_empty(), "{found:#}");
    for moment in places {
        let place = moment["place"].as_str().expect("a place");
        assert!(place.contains("hazard_pointer.cpp:"), "{place}");
    }
}

#[test]
fn what_cannot_be_explained_is_said() {
    let directory = scratch();
    run(heisen(directory.path()).args(["explain", "nowhere.schedule"])).fails(2, &["nowhere.schedule"]);
    std::fs::write(directory.path().join("noise"), "no schedule").expect("a file");
    run(heisen(directory.path()).args(["explain", "noise"])).fails(2, &["noise"]);
    // A data race need not lead to a failure.
    let race = "#include <pthread.h>\nstatic int n;\nstatic void *f(void *a) { n++; return a; }\n\
                int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); n++; pthread_join(t, 0); return 0; }\n";
    std::fs::write(directory.path().join("race.c"), race).expect("a file");
    let json = explained_json(directory.path(), &["--races=stop", "race.c"]);
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
    run(heisen(directory.path()).args(["explain", schedule])).fails(2, &["is a schedule of a data race"]);
    // A fixed program no longer fails under the schedule, or no longer follows it.
    let text = std::fs::read_to_string(root().join("examples/c/account.c")).expect("the example");
    let source = directory.path().join("account.c");
    std::fs::write(&source, &text).expect("a file");
    let json = explained_json(directory.path(), &["account.c"]);
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
    let again = run(heisen(directory.path()).args(["explain", &schedule, "--json", "-"])).expect(1);
    let value: Value = serde_json::from_str(&again.out).expect("JSON");
    assert_eq!(value["explanation"]["class"], "atomicity-violation");
    let fixed = text.replace("    assert(balance == 150);\n", "");
    std::fs::write(&source, fixed).expect("a file");
    let program = json["program"].as_str().expect("the program");
    let compiled = std::process::Command::new("cc")
        .args(["-g", "-pthread", "-o", program, "account.c"])
        .current_dir(directory.path())
        .status();
    assert!(compiled.expect("cc starts").success());
    let ran = run(heisen(directory.path()).args(["explain", &schedule]));
    assert!(ran.err.contains("has changed since"), "{}", ran.err);
    assert!([0, 4].contains(&ran.code), "{}: {}", ran.code, ran.err);
}
