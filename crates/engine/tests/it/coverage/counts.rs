//! Tests of coverage numbers: they match those computed by hand, and do not depend on workers, processes or
//! interruptions.

use super::{SECTIONS, covered, each, record, without_times};
use heisen_testkit::{Sandbox, check_json, root, scratch, timeless};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// The numbers of orders of the two threads' sections with at most 0, 1, 2 ... preemptions. The function
/// enumerates all orders. A switch counts as a preemption if the thread it leaves has sections left.
fn orders(sections: usize) -> Vec<u64> {
    let mut least: BTreeMap<usize, u64> = BTreeMap::new();
    for bits in 0..1u32 << (2 * sections) {
        let order: Vec<usize> = (0..2 * sections).map(|n| (bits >> n & 1) as usize).collect();
        if order.iter().sum::<usize>() != sections {
            continue;
        }
        let left = |thread: usize, from: usize| order[from..].contains(&thread);
        let preempts = |&n: &usize| order[n - 1] != order[n] && left(order[n - 1], n);
        *least.entry((1..order.len()).filter(preempts).count()).or_default() += 1;
    }
    let mut total = 0;
    least
        .values()
        .map(|count| {
            total += count;
            total
        })
        .collect()
}

#[test]
fn classes_by_bound_are_those_computed_by_hand() {
    let directory = scratch();
    let wanted = orders(3);
    assert_eq!(wanted, [2, 6, 14, 18, 20]);
    std::fs::write(directory.path().join("p.c"), SECTIONS).expect("the program");
    let (icb, result) = covered(directory.path(), "p.c", &["--bound", "20", "--reduce=off"]);
    let (dfs, _) = covered(directory.path(), "p.c", &["--strategy", "dfs"]);
    let (reduced, _) = covered(directory.path(), "p.c", &["--bound", "20", "--reduce"]);
    for record in [&icb, &dfs, &reduced] {
        assert_eq!(record["whole"], true);
        let classes = each(record, "bounds", "classes");
        assert_eq!(classes[..5], wanted);
        assert!(classes[5..].iter().all(|&all| all == 20), "{classes:?}");
        let bounds = each(record, "bounds", "preemptions");
        assert_eq!(bounds, (0..bounds.len() as u64).collect::<Vec<_>>());
        // The two pairs are "g locks after f" and "f locks after g". The two schedules without a preemption
        // already show both.
        assert_eq!(each(record, "bounds", "sync_pairs")[..2], [2, 2]);
        assert_eq!(each(record, "bounds", "location_pairs").last(), Some(&0));
        assert_eq!(each(record, "bounds", "races").last(), Some(&0));
    }
    // Both explore each schedule once, in different orders.
    assert_eq!(icb["bounds"], dfs["bounds"]);
    assert_eq!(each(&icb, "bounds", "executions").last(), result["executions"].as_u64().as_ref());
    assert!(each(&reduced, "bounds", "executions").last() < each(&icb, "bounds", "executions").last());
    assert_eq!(result["classes"], 20);
    // icb explores one bound after the other. After all executions of a bound, all its classes were seen.
    let executions = each(&icb, "bounds", "executions");
    let (at, classes) = (each(&icb, "growth", "executions"), each(&icb, "growth", "classes"));
    for (&executed, &seen) in at.iter().zip(&classes) {
        let below = executions.iter().rposition(|&all| all <= executed);
        let (least, most) = match below {
            None => (1, 2),
            Some(bound) => (wanted[bound.min(4)], wanted[(bound + 1).min(4)]),
        };
        assert!((least..=most).contains(&seen), "{seen} after {executed}");
    }
}

#[test]
fn a_bound_covers_its_part() {
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), SECTIONS).expect("the program");
    let (record, _) = covered(directory.path(), "p.c", &["--bound", "1"]);
    assert_eq!(each(&record, "bounds", "classes"), [2, 6]);
    assert_eq!((&record["bound"], &record["whole"]), (&json!(1), &json!(false)));
}

#[test]
fn pairs_of_places() {
    let program = |declarations: &str, first: &str, second: &str| {
        format!(
            "#include <pthread.h>\n#include <semaphore.h>\n#include <stdatomic.h>\n{declarations}\n\
             static void *f(void *u) {{ {first} return u; }}\nstatic void *g(void *u) {{ {second} return u; }}\n\
             int main(void) {{ pthread_t x, y;\n pthread_create(&x, 0, f, 0); pthread_create(&y, 0, g, 0);\n\
             pthread_join(x, 0); pthread_join(y, 0); return 0; }}\n"
        )
    };
    let atomic = "static atomic_int x;";
    for (text, races, sync, location) in [
        // The store comes before or after the load.
        (program(atomic, "x = 1;", "int v = x; (void)v;"), 0, 0, 2),
        // Two loads do not make a pair.
        (program(atomic, "int v = x; (void)v;", "int v = x; (void)v;"), 0, 0, 0),
        // `x = 1` comes before or after `x = 2`, and before or after the load: four pairs.
        (program(atomic, "x = 1;", "x = 2; int v = x; (void)v;"), 0, 0, 4),
        (program("static int x;", "x = 1;", "x = 2;"), 1, 0, 2),
        // Only one order is possible: the wait follows the post.
        (program("static sem_t s;", "sem_post(&s);", "sem_wait(&s);"), 0, 1, 0),
    ] {
        let directory = scratch();
        std::fs::write(directory.path().join("p.c"), &text).expect("the program");
        let (record, _) = covered(directory.path(), "p.c", &["--strategy", "dfs"]);
        let last = |field| *each(&record, "bounds", field).last().expect("a bound");
        let found = (last("races"), last("sync_pairs"), last("location_pairs"));
        assert_eq!(found, (races, sync, location), "{text}\n{record:#}");
        assert_eq!(record["race_check"], true);
    }
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), SECTIONS).expect("the program");
    assert_eq!(covered(directory.path(), "p.c", &["--no-instrument"]).0["race_check"], false);
}

#[test]
fn the_same_search_covers_the_same_however_it_is_run() {
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), SECTIONS).expect("the program");
    for strategy in [&["--bound", "3"][..], &["--strategy", "portfolio", "--executions", "700"]] {
        let with =
            |more: &[&str]| without_times(covered(directory.path(), "p.c", &[strategy, more].concat()).0);
        let one = with(&["--jobs", "1"]);
        assert_eq!(one, with(&["--jobs", "2"]));
        assert_eq!(one, with(&["--jobs", "2", "--fork"]));
    }
}

#[test]
fn counting_changes_nothing_of_a_search() {
    let directory = scratch();
    std::fs::write(directory.path().join("p.c"), SECTIONS).expect("the program");
    for strategy in ["portfolio", "pct", "surw", "random"] {
        let args = ["--strategy", strategy, "--executions", "5000", "p.c"];
        let plain = timeless(check_json(directory.path(), &args));
        let counted =
            timeless(check_json(directory.path(), &[&["--coverage", "run.json"], &args[..]].concat()));
        assert_eq!(plain, counted, "{strategy}");
        assert_eq!(record(directory.path(), "run.json")["seed"], 0);
    }
}

#[test]
fn counting_begins_anew_with_more_scheduling_points() {
    let directory = scratch();
    let file = root().join("examples/c/bluetooth_fixed.c");
    let args = ["--bound", "20", "--reduce"];
    let file = file.to_str().expect("a plain path");
    let (first, result) = covered(directory.path(), file, &args);
    // The second check knows the access points from the first.
    let (second, _) = covered(directory.path(), file, &args);
    assert!(first["restarts"].as_u64() > Some(0) && second["restarts"] == 0);
    assert_eq!(first["bounds"], second["bounds"]);
    assert!(each(&first, "bounds", "executions").last() < result["executions"].as_u64().as_ref());
}

#[test]
fn an_interrupted_check_keeps_its_record_and_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("p.c", SECTIONS);
    sandbox.compile("q.c", SECTIONS, &[]);
    let args = [
        "check",
        "--quiet",
        "--bound",
        "20",
        "--before",
        "test -e fast || sleep 0.05",
        "--coverage",
        "run.json",
        "--",
        "./q",
    ];
    let mut child = sandbox.plain_command(&args).stderr(Stdio::null()).spawn().expect("heisen starts");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let part = record(&sandbox.path(""), "run.json");
    assert_eq!(part["whole"], false);
    assert!(
        each(&part, "bounds", "executions").last().is_some_and(|&all| (1..703).contains(&all)),
        "{part:#}"
    );
    sandbox.heisen(&["coverage", "run.json"]).expect(0);
    sandbox.write("fast", "");
    sandbox
        .heisen(&["check", "--quiet", "--resume", ".heisen/search.json", "--coverage", "all.json"])
        .expect(0);
    sandbox.heisen(&["check", "--quiet", "--bound", "20", "--coverage", "once.json", "--", "./q"]).expect(0);
    let [all, once] = ["all.json", "once.json"].map(|name| record(&sandbox.path(""), name));
    assert_eq!((&all["bounds"], &all["whole"]), (&once["bounds"], &json!(true)));
}

#[test]
fn a_search_without_it_cannot_be_continued_with_it() {
    let sandbox = Sandbox::new();
    sandbox.compile("q.c", SECTIONS, &[]);
    let args = ["check", "--quiet", "--before", "sleep 0.05", "--", "./q"];
    let mut child = sandbox.plain_command(&args).stderr(Stdio::null()).spawn().expect("heisen starts");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let resume = ["check", "--resume", ".heisen/search.json", "--coverage", "c.json"];
    sandbox.heisen(&resume).fails(2, &["--coverage c.json", "begun without it", "start the check again"]);
}
