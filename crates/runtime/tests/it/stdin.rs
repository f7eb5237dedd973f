//! Tests of standard input. Each execution gets it from the start, and it is saved with a schedule, so a
//! replay needs no other file.

use heisen_testkit::{Ran, Sandbox, soon};
use std::fs;
use std::process::Stdio;

/// One thread reads lines and passes them to two others. Two lines that each take all the money overdraw the
/// account.
const BANK: &str = include_str!("input/bank.c");
const TOO_MUCH: &str = "take 100\ntake 100\n";
const HARMLESS: &str = "give 100\ntake 50\n";

fn bank() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.compile("bank.c", BANK, &[]);
    sandbox
}

/// The result files with this extension.
fn results(sandbox: &Sandbox, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path(".heisen")).into_iter().flatten().flatten();
    let names = entries.map(|entry| format!(".heisen/{}", entry.file_name().to_string_lossy()));
    names.filter(|name| name.ends_with(ending)).collect()
}

/// Checks with input from a file and then removes the file. Returns the name of the schedule.
#[track_caller]
fn recorded(sandbox: &Sandbox, input: &str) -> String {
    sandbox.write("input", input);
    let ran = sandbox.heisen(&["check", "--stdin", "input", "--", "./bank"]).expect(1);
    assert!(ran.out.contains("assertion `balance >= 0` failed"), "{}", ran.out);
    fs::remove_file(sandbox.path("input")).expect("the input is removed");
    let [schedule] = &results(sandbox, ".schedule")[..] else { panic!("{:?}", ran.made) };
    schedule.clone()
}

/// An input that is too large to be stored in a schedule file.
fn large() -> String {
    format!("{}{TOO_MUCH}", "a line that means nothing\n".repeat(400))
}

#[test]
fn what_is_found_depends_on_the_input() {
    let sandbox = bank();
    sandbox.clean(&["--bound", "1", "--", "./bank"]);
    sandbox.write("input", HARMLESS);
    let json = sandbox.clean(&["--bound", "1", "--stdin", "input", "--", "./bank"]);
    // Each execution read the complete input.
    let said = json["not_controlled"].to_string();
    assert!(!said.contains("outside") && json["diverged"] == 0, "{json:#}");
}

#[test]
fn a_small_input_is_in_the_schedule() {
    let sandbox = bank();
    let schedule = recorded(&sandbox, TOO_MUCH);
    let text = fs::read_to_string(sandbox.path(&schedule)).expect("the schedule");
    assert!(text.contains("\nstdin \"take 100\\ntake 100\\n\"\n"), "{text}");
    assert_eq!(results(&sandbox, ".stdin"), [""; 0]);
    for carrier in ["fibers", "kernel"] {
        sandbox.heisen(&["replay", "--carrier", carrier, &schedule]).expect(1);
    }
    // An edited schedule has another input.
    sandbox.write(&schedule, text.replace("take 100\\ntake 100", "take 100\\ntake 0"));
    sandbox.heisen(&["replay", &schedule]).fails(4, &["another outcome", "ended well"]);
}

#[test]
fn a_large_input_is_beside_the_schedule() {
    let sandbox = bank();
    let schedule = recorded(&sandbox, &large());
    let [input] = &results(&sandbox, ".stdin")[..] else { panic!("no input is kept") };
    assert_eq!(fs::read_to_string(sandbox.path(input)).expect("the input"), large());
    sandbox.heisen(&["replay", &schedule]).expect(1);
    // The input file is looked up in the directory of the schedule, wherever that is.
    fs::rename(sandbox.path(".heisen"), sandbox.path("elsewhere")).expect("renamed");
    let schedule = schedule.replace(".heisen", "elsewhere");
    let input = input.replace(".heisen", "elsewhere");
    sandbox.heisen(&["replay", &schedule]).expect(1);
    sandbox.write(&input, large().replace("take 100", "take 101"));
    sandbox.heisen(&["replay", &schedule]).fails(2, &[&input, "has changed", "put that back"]);
    fs::remove_file(sandbox.path(&input)).expect("the input is removed");
    sandbox.heisen(&["replay", &schedule]).fails(2, &[&input, "No such file", "put it back"]);
    // `show` does not need the input.
    sandbox.heisen(&["show", &schedule]).expect(0);
}

#[test]
fn our_own_input_is_read_to_its_end() {
    let sandbox = bank();
    let ran =
        sandbox.run(&mut sandbox.shell("printf 'take 100\\ntake 100\\n' | \"$0\" check --stdin - -- ./bank"));
    ran.expect(1);
    sandbox.heisen(&["replay", &results(&sandbox, ".schedule")[0]]).expect(1);
    let harmless = "printf 'take 1' | \"$0\" check --bound 1 --stdin - --quiet -- ./bank";
    sandbox.run(&mut sandbox.shell(harmless)).expect(0);
}

#[test]
fn executions_begin_where_the_parked_program_was() {
    let sandbox = Sandbox::new();
    let header = sandbox.heisen(&["header"]).expect(0).out;
    sandbox.write("heisen.h", header);
    sandbox.compile("ready.c", include_str!("input/ready.c"), &[]);
    sandbox.write("input", "abcd");
    let arguments = ["--stdin", "input", "--strategy", "random", "--executions", "100", "--", "./ready"];
    sandbox.clean(&[&["--at-ready"], &arguments[..]].concat());
    sandbox.clean(&arguments);
}

#[test]
fn an_interrupted_search_keeps_its_input() {
    let sandbox = bank();
    sandbox.write("input", format!("{}{HARMLESS}", "a line that means nothing\n".repeat(400)));
    let arguments = ["check", "--strategy", "random", "--time", "60s", "--stdin", "input", "--", "./bank"];
    let mut child = sandbox.plain_command(&arguments).stderr(Stdio::null()).spawn().expect("heisen starts");
    assert!(soon(|| !sandbox.processes().is_empty()));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill").success());
    assert_eq!(child.wait().expect("heisen ends").code(), Some(130));
    fs::remove_file(sandbox.path("input")).expect("the input is removed");
    let resume = || sandbox.heisen(&["check", "--resume", ".heisen/search.json", "--executions", "50"]);
    resume().expect(0);
    let [input] = &results(&sandbox, ".stdin")[..] else { panic!("no input is kept") };
    fs::remove_file(sandbox.path(input)).expect("the input is removed");
    resume().fails(2, &["No such file", "search.json was made with"]);
}

#[test]
fn bad_inputs() {
    let sandbox = bank();
    let check = |file: &str| -> Ran { sandbox.heisen(&["check", "--stdin", file, "--", "./bank"]) };
    check("none").fails(2, &["--stdin none: not found", "name the file"]);
    check(".").fails(2, &["--stdin . is a directory", "name a file"]);
    check("/dev/zero").fails(2, &["--stdin /dev/zero has more than 64 MiB", "use a smaller input"]);
    let huge = fs::File::create(sandbox.path("huge")).expect("a file");
    huge.set_len(1 << 30).expect("a gigabyte");
    check("huge").fails(2, &["--stdin huge has more than 64 MiB", "use a smaller input"]);
    check("/dev/null").expect(0);
}
