//! Tests scripts, command lines and schedules that are wrong, or that cannot be followed.

use super::{points, script, scripted};
use heisen_testkit::{check_json, heisen, root, run, scratch};
use serde_json::Value;
use std::path::Path;

#[test]
fn bad_scripts() {
    let program = points(2);
    let cases = [
        ("\nlet a = ;", "line 2: Unexpected ';'"),
        ("\nfoo(1);", "line 2: there is no function foo for these arguments: foo (i64)"),
        ("\nrun_util(1);", "line 2: there is no function run_util; did you mean run_until?"),
        ("\nrun_until(1);", "line 2: there is no function run_until for these arguments: run_until (i64)"),
        ("\nwait_for_thread(any, ends(), 0);", "line 2: 0 is no number of events"),
        (
            "\nwait_for_thread(any, reads(\"all.in[2]\"));",
            "line 2: all.in[2]: there is no [2], only [0] to [1]",
        ),
        ("\nlet_fail(any, \"maloc\");", "line 2: there is no fault maloc; did you mean malloc?"),
        ("\nlet_fail(1, \"malloc\");", "line 2: a thread or an array of threads is needed"),
        (
            "let [a, b] = wait_for_distinct_threads(2, starts());\nlet_wake_early([a, b]);",
            "line 2: one thread is needed, or any",
        ),
        ("\nlet_wake_early(any, 0);", "line 2: 0 is no number of decisions"),
        ("\nlet_choose(any, -1);", "line 2: -1 is no value of heisen_choose"),
        ("for i in 0..99 { let_wake_early(any); }", "line 1: 64 promises are the most"),
        ("\nx + 1;", "line 2: there is no variable x"),
        (
            "\nwait_for_thread(any, enters(\"ad\"));",
            "line 2: the program has no function ad; did you mean add",
        ),
        (
            "let f = \"a\" + \"dx\";\nwait_for_thread(any, enters(f));",
            "the program has no function adx; did you mean add",
        ),
        (
            "\nwait_for_thread(any, reads(\"all.firs\"));",
            "line 2: all.firs: there is no firs, only first, in",
        ),
        (
            "\nwait_for_thread(any, reads(\"al\"));",
            "line 2: the program has no global or static variable for al; did you mean all",
        ),
        ("\nwait_for_thread(any, at(\"p.c:999\"));", "line 2: there is no code at p.c:999"),
        ("\nwait_for_thread(any, at(\"p.c\"));", "line 2: at(\"p.c\") is no line"),
        ("\nloop { }", "line 2: an endless loop"),
        (
            "let e = select(any, starts());\nloop { e = select(e.thread); }",
            "line 2: the script loops: it receives the same events again",
        ),
        ("\nrun_until(5, ends());", "line 2: a thread or an array of threads is needed"),
        ("\nrun_until(any, ends());", "line 2: run_until needs threads by name"),
        ("\nlet [a, b, c] = [1, 2];", "line 2: 3 names for an array of 2"),
        ("\nwait_for_distinct_threads(0, starts());", "line 2: 0 is no number of threads"),
        ("\nchoose([]);", "line 2: there is nothing to choose from"),
        ("\nimport \"x\" as y;", "line 2: Module not found"),
        (
            "\nwait_for_thread(any, operation(\"joyn\"));",
            "line 2: there is no operation joyn; did you mean join?",
        ),
        ("\nthrow \"up\";", "line 2: Runtime error: up"),
    ];
    for (text, expected) in cases {
        let (code, _, said) = script(text, &program, &[]);
        assert_eq!(code, 2, "{text}: {said}");
        assert!(said.starts_with("heisen: s.rhai: ") && said.contains(expected), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{text}: {said}");
    }
}

#[test]
fn what_cannot_be_followed() {
    let cases = [
        ("\nwait_for_thread(any, at_control(9));", "the program has ended before such an event came"),
        (
            "let t = wait_for_thread(any, starts());\nrun_until(t, ends());\nrun_until(t, ends());",
            "T1 has ended",
        ),
        ("let t = wait_for_thread(any, starts());\nrun_until(t, at_control(9));", "T1 has ended before"),
        (
            "let [a, b] = wait_for_distinct_threads(2, starts());\nrun_until(a, unlocks());\nrun_until(b, unlocks());",
            "no thread can go on: T2 waits in lock of m (p.c:11); T0 waits in join (p.c:19); \
             T1 is held, as it is about to unlock m (p.c:13)",
        ),
    ];
    for (text, expected) in cases {
        let (code, json, said) = script(text, &points(1), &[]);
        assert_eq!((code, &json["infeasible"]), (4, &1.into()), "{text}: {said}{json:#}");
        assert_eq!(json["why"]["what"], expected, "{text}");
        assert_eq!(json["why"]["line"], text.lines().count(), "{text}");
    }
    // The program computes forever, and the script has a shorter time limit.
    let endless = "#include <pthread.h>\nstatic volatile int go = 1;\nint main(void) { for (;;) go++; }\n";
    let (code, json, said) =
        script("time_limit(1);\nwait_for_thread(any, ends());", endless, &["--no-instrument"]);
    assert_eq!(code, 4, "{said}{json:#}");
    assert_eq!(json["why"]["what"], "no such event came within 1s", "{json:#}");
}

#[test]
fn bad_command_lines() {
    let directory = scratch();
    let said = |args: &[&str]| {
        let (code, _, said) = scripted(directory.path(), args);
        assert_eq!(code, 2, "{args:?}: {said}");
        said
    };
    assert!(said(&["none.rhai", "p.c"]).contains("none.rhai cannot be read"));
    assert!(said(&["/", "p.c"]).contains("/ cannot be read: Is a directory"));
    std::fs::write(directory.path().join("s.rhai"), "").expect("written");
    assert!(said(&["s.rhai"]).contains("nothing to run; write: heisen script SCRIPT.rhai -- PROG"));
    assert!(said(&["s.rhai", "p.txt"]).contains("p.txt is not a .c"));
    assert!(said(&["s.rhai", "--choices", "1,x", "--", "true"]).contains("--choices"));
    assert!(said(&["s.rhai", "--choices", "1", "--reduce", "--", "true"]).contains("cannot be used with"));
    std::fs::write(directory.path().join("s.rhai"), [0xff, 0xfe]).expect("written");
    assert!(said(&["s.rhai", "--", "true"]).contains("s.rhai cannot be read"));
}

/// The schedule of the bug in an example.
fn schedule_of(directory: &Path, program: &Path) -> String {
    let ran = run(heisen(directory).args(["check", "--json", "-"]).arg(program));
    let json: Value = serde_json::from_str(&ran.out).expect("a result");
    json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned()
}

#[test]
fn scripts_from_bad_schedules() {
    let directory = scratch();
    let fails = |args: &[&str], words: &[&str]| {
        run(heisen(directory.path()).arg("script").args(args)).fails(2, words);
    };
    fails(&["--from", "none.schedule"], &["none.schedule"]);
    std::fs::write(directory.path().join("bad.schedule"), "not a schedule").expect("written");
    fails(&["--from", "bad.schedule"], &["bad.schedule"]);
    let schedule = schedule_of(directory.path(), &root().join("examples/c/account.c"));
    fails(&["--from", &schedule, "-o", "."], &["is a directory"]);
    fails(&["--from", &schedule, "-o", "nowhere/s.rhai"], &["nowhere is not a directory"]);
    // An execution under a script cannot show a data race.
    let racing = "#include <pthread.h>\nstatic int n;\nstatic void *work(void *a) { n++; return a; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); n++; return pthread_join(t, 0); }\n";
    std::fs::write(directory.path().join("p.c"), racing).expect("written");
    let json = check_json(directory.path(), &["--races", "p.c"]);
    assert_eq!(json["findings"][0]["kind"], "data-race", "{json:#}");
    let race = json["findings"][0]["schedule"].as_str().expect("a schedule");
    fails(&["--from", race], &["is a schedule of a data race"]);
    // The bug does not occur in this schedule.
    let text = std::fs::read_to_string(directory.path().join(&schedule)).expect("the schedule");
    let other: String =
        text.lines().filter(|line| !line.contains("preempt")).map(|line| format!("{line}\n")).collect();
    assert_ne!(text, other);
    std::fs::write(directory.path().join("other.schedule"), other).expect("written");
    let ran = run(heisen(directory.path()).args(["script", "--from", "other.schedule"]));
    assert_eq!((ran.code, ran.messages().len()), (2, 1), "{}", ran.err);
}

/// Ctrl-C ends a script that waits for an event, and leaves nothing behind.
#[test]
fn an_interrupt() {
    let directory = scratch();
    let program = "#include <fcntl.h>\nstatic volatile long n;\n\
        int main(void) { creat(\"running\", 0600); for (;;) n++; }\n";
    std::fs::write(directory.path().join("p.c"), program).expect("written");
    std::fs::write(directory.path().join("s.rhai"), "wait_for_thread(any, ends());").expect("written");
    let mut child = heisen(directory.path())
        .args(["script", "--no-instrument", "--hang", "60s", "s.rhai", "p.c"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("heisen starts");
    while !directory.path().join("running").exists() {
        assert_eq!(child.try_wait().expect("a child"), None, "it has ended");
        std::thread::yield_now();
    }
    run(std::process::Command::new("kill").args(["-INT", &child.id().to_string()])).expect(0);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
