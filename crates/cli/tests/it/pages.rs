//! Tests of `heisen diff`, `heisen check --html` and `heisen explain` on programs: places, terminals and sources.

use heisen_testkit::{Sandbox, root};
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
