//! Tests of `heisen diff`, `heisen check --html` and `heisen explain` on programs: places, terminals and sources.

use heisen_testkit::{Sandbox, check_json, heisen_path, root, send, soon};
use std::fs;

/// A sandbox with `account.c`, its failing schedule, and one that passes.
fn compared() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let text = fs::read_to_string(root().join("examples/c/account.c")).expect("the example");
    sandbox.write("account.c", text);
    let ran = sandbox.heisen(&["check", "account.c", "--json", "-", "--html", "pages"]).expect(1);
    let schedule = ran.json()["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();
    let text = fs::read_to_string(sandbox.path(&schedule)).expect("the schedule");
    let wanted = |line: &&str| !["at ", "outcome ", "signature ", "end "].iter().any(|w| line.starts_with(w));
    let lines: Vec<&str> = text.lines().filter(wanted).collect();
    sandbox.write("pass.schedule", lines.join("\n") + "\nend 0\n");
    (sandbox, schedule)
}

#[test]
fn two_schedules_are_compared_and_a_check_has_pages() {
    let (sandbox, schedule) = compared();
    let index = fs::read_to_string(sandbox.path("pages/index.html")).expect("the index");
    assert!(index.contains("href=\"finding-1.html\"") && index.contains("atomicity violation"), "{index}");
    let finding = fs::read_to_string(sandbox.path("pages/finding-1.html")).expect("the page of the finding");
    assert!(finding.contains("heisen replay") && finding.contains("Atomicity violation"));

    let ran = sandbox.heisen(&["diff", &schedule, "pass.schedule", "--html", "diff.html"]).expect(0);
    assert!(ran.out.contains("pass.schedule: ends well") && !ran.out.contains('\x1b'), "{}", ran.out);
    assert!(ran.out.contains("reads balance = 0") && ran.out.contains("reads balance = 100"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let page = fs::read_to_string(sandbox.path("diff.html")).expect("the page");
    assert!(page.contains("B: pass.schedule</h2>"));
    let json = sandbox.heisen(&["diff", &schedule, "pass.schedule", "--json", "-"]).expect(0).json();
    assert_eq!(json["executions"][0]["outcome"]["kind"], "assertion");
    assert!(json["executions"][1]["events"][0]["thread"].is_string());

    // On a terminal of 40 columns, lines are broken between words.
    let narrow = sandbox.run(sandbox.command(&["explain", &schedule]).env("COLUMNS", "40")).expect(1);
    let wide = |line: &&str| line.chars().count() > 40 && line.trim().contains(' ');
    assert_eq!(narrow.out.lines().find(wide), None, "{}", narrow.out);

    // The source is changed, and then missing.
    let note = "account.c is newer than the program; the lines shown may be wrong";
    assert!(!narrow.out.contains("newer"), "{}", narrow.out);
    let source = fs::read_to_string(sandbox.path("account.c")).expect("the source");
    sandbox.write("account.c", format!("\n{source}"));
    let ran = sandbox.heisen(&["explain", &schedule, "--html", "why.html"]).expect(1);
    assert!(ran.out.contains(note), "{}", ran.out);
    let page = fs::read_to_string(sandbox.path("why.html")).expect("the page");
    assert!(page.contains("is newer than the program. The lines shown may be wrong."));
    fs::remove_file(sandbox.path("account.c")).expect("the source is removed");
    let ran = sandbox.heisen(&["explain", &schedule, "--html", "why.html"]).expect(1);
    assert!(ran.out.contains("account.c:45") && !ran.out.contains("45 |"), "{}", ran.out);
    let missing = "account.c was not found, so its lines are not shown";
    assert_eq!(ran.out.matches(missing).count(), 1, "{}", ran.out);
    let page = fs::read_to_string(sandbox.path("why.html")).expect("the page");
    assert!(page.contains(&format!("<p class=\"note\">A{}.</p>", &missing[1..])), "{page}");

    // A schedule that does not fit, and one of another program.
    let text = fs::read_to_string(sandbox.path(&schedule)).expect("the schedule");
    sandbox.write("off.schedule", text.replace("at 6 T1 -> T2 preempt", "at 7 T2 -> T1 preempt"));
    sandbox
        .heisen(&["diff", "pass.schedule", "off.schedule"])
        .fails(4, &["off.schedule no longer fits", "step 7"]);
    let binary = |line: &str| line.starts_with("program ").then_some("program \"/bin/true\"");
    let lines: Vec<&str> =
        text.lines().filter(|l| !l.starts_with("source ")).map(|l| binary(l).unwrap_or(l)).collect();
    sandbox.write("other.schedule", lines.join("\n") + "\n");
    let ran = sandbox.heisen(&["diff", "pass.schedule", "other.schedule"]).expect(2);
    assert!(ran.err.contains("are schedules of different programs") && ran.err.contains("has changed since"));
}

#[test]
fn programs_without_debug_information_are_explained() {
    let sandbox = Sandbox::new();
    let text = fs::read_to_string(root().join("examples/c/lock_order.c")).expect("the example");
    sandbox.compile("plain.c", &text, &["-g0", "-s"]);
    let finding = sandbox.finds("deadlock", &["--", "./plain"]);
    let schedule = finding["schedule"].as_str().expect("a schedule");
    let ran = sandbox.heisen(&["explain", schedule, "--html", "why.html"]).expect(1);
    assert!(ran.out.contains("deadlock") && ran.out.contains("waits: lock("), "{}", ran.out);
    // The locks of a deadlock are known without instrumentation.
    assert!(ran.out.contains("compile it with -g") && !ran.out.contains("instrumented"), "{}", ran.out);
    assert!(fs::read_to_string(sandbox.path("why.html")).expect("the page").contains("</html>"));
}

#[test]
fn places_for_pages_are_checked_first() {
    let sandbox = Sandbox::new();
    sandbox.compile("zero.c", "int main(void) { return 0; }", &[]);
    sandbox.write("file", "");
    sandbox.write("full/notes.txt", "");
    let check = |place: &str| sandbox.heisen(&["check", "--html", place, "--", "./zero"]);
    check("file").fails(2, &["file is a file", "name a directory for --html"]);
    check("full").fails(2, &["full has other files, such as notes.txt", "new or empty directory"]);
    check("file/sub").fails(2, &["file/sub cannot be written", "choose another directory for --html"]);
    check("pages").expect(0);
    let again = check("pages").expect(0);
    assert!(again.made.is_empty() && sandbox.path("pages/index.html").exists());
}

#[test]
fn a_changed_program_is_not_explained_as_if_it_were_the_same() {
    let sandbox = Sandbox::new();
    let text = fs::read_to_string(root().join("examples/c/account.c")).expect("the example");
    sandbox.compile("prog.c", &text, &[]);
    let finding = sandbox.finds("assertion", &["--", "./prog"]);
    let schedule = finding["schedule"].as_str().expect("a schedule").to_owned();
    let uninstrumented = sandbox.heisen(&["explain", &schedule]).expect(1);
    let words =
        "the program is not instrumented, so its accesses of memory are unknown; build it with heisen cc";
    assert_eq!(uninstrumented.out.matches(words).count(), 1, "{}", uninstrumented.out);
    // The order of calls is all that is known.
    assert!(uninstrumented.out.contains("locks lock"), "{}", uninstrumented.out);
    assert!(!uninstrumented.out.contains("-g"), "{}", uninstrumented.out);

    let explain = || sandbox.heisen(&["explain", &schedule, "--html", "why.html"]);
    let then = "when the schedule was made: assertion `balance == 150` failed";
    sandbox.compile("prog.c", &text.replace("balance == 150", "balance <= 150"), &[]);
    let fixed = explain().expect(0);
    assert!(
        fixed.err.contains("no longer fails under this schedule") && fixed.err.contains(then),
        "{}",
        fixed.err
    );
    assert!(!sandbox.path("why.html").exists() && fixed.out.is_empty(), "{}", fixed.out);

    let crash = text.replace("assert(balance == 150)", "if (balance != 150) __builtin_trap()");
    sandbox.compile("prog.c", &crash, &[]);
    let other = explain().expect(1);
    let now = "fails in another way than recorded; now: the program was killed by SIGILL";
    assert!(other.err.contains(now) && other.err.contains(then), "{}", other.err);

    let off = fs::read_to_string(sandbox.path(&schedule)).expect("the schedule");
    sandbox.write("off.schedule", off.replace("at 6 T1 -> T2 preempt", "at 7 T2 -> T1 preempt"));
    let diverged = sandbox.heisen(&["explain", "off.schedule"]).expect(4);
    assert!(diverged.err.contains("the schedule no longer fits: diverged at step 7"), "{}", diverged.err);
}

/// A lost update after so many accesses that they are not compared.
const LONG: &str = "#include <assert.h>\n#include <pthread.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic int balance; static volatile int work[2];\n\
    static void *deposit(void *a) {\n\
      for (int i = 0; i < 100000; i++) *(volatile int *)a += i;\n\
      pthread_mutex_lock(&m); int sum = balance; pthread_mutex_unlock(&m);\n\
      pthread_mutex_lock(&m); balance = sum + 1; pthread_mutex_unlock(&m);\n\
      return a;\n}\n\
    int main(void) {\n\
      pthread_t t[2];\n\
      for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, deposit, (void *)&work[i]);\n\
      for (int i = 0; i < 2; i++) pthread_join(t[i], 0);\n\
      assert(balance == 2);\n}\n";

#[test]
fn long_executions_are_compared_as_far_as_possible_and_can_be_interrupted() {
    let sandbox = Sandbox::new();
    sandbox.write("long.c", LONG);
    let json = check_json(&sandbox.path(""), &["--no-minimise", "long.c"]);
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule").to_owned();

    // An interrupted command leaves no file and no process.
    let args = ["explain", &schedule, "--html", "why.html", "--json", "why.json"];
    let mut running = sandbox.command(&args).spawn().expect("heisen starts");
    assert!(soon(|| !sandbox.processes().is_empty()), "the program does not run");
    send("INT", running.id());
    let code = running.wait().expect("heisen ends").code();
    assert!(soon(|| sandbox.processes().is_empty()), "{:?}", sandbox.processes());
    assert_eq!(code, Some(130));
    assert!(!sandbox.path("why.html").exists() && !sandbox.path("why.json").exists());
    sandbox.assert_tidy();

    // On a terminal there is a progress line.
    let explain = format!("{} explain {schedule} --html why.html", heisen_path());
    let ran = heisen_testkit::run(
        &mut sandbox.shell(&format!("COLUMNS=300 script -qefc '{explain}' /dev/null </dev/null")),
    )
    .expect(1);
    assert!(ran.out.contains("\r\x1b[Kcomparing with executions that pass, "), "{}", ran.out);
    let limit = "the execution has more than 100 000 events, so Heisen compared its calls";
    assert!(ran.out.contains(limit) && ran.out.contains("locks m"), "{}", ran.out);
    let page = fs::read_to_string(sandbox.path("why.html")).expect("the page");
    assert!(page.contains("The execution has more than 100 000 events"), "{page}");

    // Elsewhere there is none.
    let ran = sandbox.heisen(&["explain", &schedule]).expect(1);
    assert!(ran.err.is_empty() && ran.out.contains(limit), "{}{}", ran.err, ran.out);
}
