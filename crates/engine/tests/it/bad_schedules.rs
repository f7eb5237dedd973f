//! Tests of files from `heisen` that are missing, damaged, edited, or older than the program: schedules for
//! `replay` and `show`, and saved searches for `check --resume`.

use heisen_testkit::{Ran, Sandbox, root};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A sandbox with a program and a schedule under which it fails.
struct Recorded {
    sandbox: Sandbox,
    program: PathBuf,
    text: String,
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples/c").join(name)).expect("the example")
}

impl Recorded {
    fn new() -> Recorded {
        let sandbox = Sandbox::new();
        let program = sandbox.compile("account.c", &example("account.c"), &[]);
        let finding = sandbox.finds("assertion", &["--", "./account"]);
        let path = sandbox.path(finding["schedule"].as_str().expect("a schedule"));
        let text = fs::read_to_string(path).expect("the schedule");
        // The edits below rely on this line.
        assert!(text.contains("\nat 6 T1 -> T2 preempt lock 2 "), "{text}");
        Recorded { sandbox, program, text }
    }

    /// The schedule with one part replaced.
    #[track_caller]
    fn edited(&self, from: &str, to: &str) -> String {
        assert_eq!(self.text.matches(from).count(), 1, "{from:?} in {}", self.text);
        self.text.replace(from, to)
    }

    #[track_caller]
    fn replay(&self, text: impl AsRef<[u8]>) -> Ran {
        self.sandbox.write("edited", text);
        self.sandbox.heisen(&["replay", "edited"])
    }

    /// Checks that both `replay` and `show` reject the file.
    #[track_caller]
    fn refused(&self, text: impl AsRef<[u8]>, words: &[&str]) {
        self.replay(text).fails(2, words);
        self.sandbox.heisen(&["show", "edited"]).fails(2, words);
    }

    /// Replays an edited schedule that the program cannot follow.
    #[track_caller]
    fn diverges(&self, from: &str, to: &str, words: &[&str]) {
        self.replay(self.edited(from, to)).fails(4, words);
    }
}

#[test]
fn the_schedule_is_no_file() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("dir")).expect("a directory");
    for command in ["replay", "show"] {
        sandbox.heisen(&[command, "none"]).fails(2, &["none: not found", "name a schedule file"]);
        sandbox
            .heisen(&[command, "dir"])
            .fails(2, &["dir is a directory, not a schedule file", "name a file"]);
    }
}

#[test]
fn the_schedule_is_something_else() {
    let recorded = Recorded::new();
    recorded.refused("", &["edited: line 1: not a Heisen schedule", "heisen schedule 1"]);
    recorded.refused("hello\n", &["edited: line 1: not a Heisen schedule", "heisen schedule 1"]);
    recorded.refused(
        [0x7f, 0xff, 0, 0x80, b'\n'],
        &["edited is not a schedule file", "heisen check has written"],
    );
    let other = recorded.edited("heisen schedule 1\n", "heisen schedule 2\n");
    recorded.refused(other, &["edited: line 1: schedule format 2", "reads format 1"]);
}

#[test]
fn the_schedule_is_truncated() {
    let recorded = Recorded::new();
    let whole = recorded.text.trim_end();
    // Cuts the file in the middle of words and strings, and between lines.
    for length in (1..whole.len()).step_by(29).chain([whole.len() - 1, whole.len() - 6]) {
        let ran = recorded.replay(&whole[..length]).fails(2, &["heisen: edited: line "]);
        assert!(ran.out.is_empty(), "{length}: {}", ran.out);
    }
    let (before_end, _) = whole.rsplit_once('\n').expect("lines");
    recorded.refused(before_end, &["the file is truncated: its end line is missing"]);
}

#[test]
fn the_schedule_is_edited_to_nonsense() {
    let recorded = Recorded::new();
    let line = "at 6 T1 -> T2 preempt lock 2";
    let number = recorded.text.lines().position(|l| l.starts_with(line)).expect("the decision") + 1;
    let number = format!("edited: line {number}: ");
    for (edited, words) in [
        ("at six T1 -> T2 preempt lock 2", "\"six\" is not a step"),
        ("at -6 T1 -> T2 preempt lock 2", "\"-6\" is not a step"),
        ("at 99999999999 T1 -> T2 preempt lock 2", "\"99999999999\" is not a step"),
        ("at 6 T1 -> 2 preempt lock 2", "\"2\" is not a thread"),
        ("at 6 T1 -> T99999 preempt lock 2", "\"T99999\" is not a thread"),
        ("at 6 T1 T2 preempt lock 2", "\"->\" must stand between"),
        ("at 6 T1 -> T2 jump lock 2", "\"jump\" is none of preempt, free, wake"),
        ("at 6 T1 -> T2 preempt look 2", "no operation is called \"look\""),
        ("at 6 T1 -> T2 preempt lock two", "\"two\" is not a number of choices"),
        ("when 6 T1 -> T2 preempt lock 2", "unknown keyword \"when\""),
    ] {
        recorded.refused(recorded.edited(line, edited), &[&number, words]);
    }
    recorded.refused(recorded.edited("\nend 1", "\nend 2"), &["2 decisions announced, 1 found"]);
    recorded.refused(format!("{}at 1 2 3", recorded.text), &["text after the end line"]);
    recorded.refused(recorded.edited("\noutcome assertion", "\noutcome surprise"), &["no kind of finding"]);
    let program = format!("program \"{}\"\n", recorded.program.display());
    recorded.refused(recorded.edited(&program, ""), &["no program is named"]);
    recorded.refused(recorded.edited(&program, "program /bin/ls\n"), &["line 2: ", "in double quotes"]);
}

#[test]
fn the_program_is_gone() {
    let recorded = Recorded::new();
    fs::remove_file(&recorded.program).expect("the program is removed");
    recorded.replay(&recorded.text).fails(2, &["account: not found", "build it first"]);
    // `show` does not need the program.
    recorded.sandbox.heisen(&["show", "edited"]).expect(0);
}

#[test]
fn the_compiled_program_is_gone() {
    let sandbox = Sandbox::new();
    sandbox.write("account.c", example("account.c"));
    let ran = sandbox.heisen(&["check", "--json", "-", "account.c"]).expect(1);
    let json = ran.json();
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
    fs::remove_dir_all(sandbox.path(".heisen/build")).expect("the build is removed");
    // The program is compiled again, into the same directory.
    sandbox.heisen(&["replay", schedule]).expect(1);
    assert!(sandbox.path("").join(json["program"].as_str().expect("the program")).is_file());
    fs::remove_dir_all(sandbox.path(".heisen/build")).expect("the build is removed");
    fs::remove_file(sandbox.path("account.c")).expect("the source is removed");
    sandbox.heisen(&["replay", schedule]).fails(2, &["account.c: not found"]);
}

#[test]
fn the_program_has_changed() {
    let recorded = Recorded::new();
    recorded.sandbox.compile("account.c", &example("account.c"), &["-DCHANGED", "-O1"]);
    let ran = recorded.replay(&recorded.text).expect(1);
    assert_eq!(ran.messages().len(), 1, "{}", ran.err);
    assert!(ran.err.contains("heisen: warning: ") && ran.err.contains("account has changed"), "{}", ran.err);
    assert!(ran.out.contains("balance == 150"), "{}", ran.out);
}

#[test]
fn the_schedule_is_of_another_program() {
    let recorded = Recorded::new();
    let other = recorded.sandbox.compile("clean.c", "int main(void) { return 0; }\n", &[]);
    let program = recorded.program.display().to_string();
    let ran = recorded.replay(recorded.edited(&program, &other.display().to_string())).expect(4);
    assert_eq!(ran.messages().len(), 2, "{}", ran.err);
    assert!(ran.messages()[0].contains("warning: ") && ran.err.contains("clean has changed"), "{}", ran.err);
    assert!(ran.messages()[1].contains("diverged at step 6"), "{}", ran.err);
    assert!(ran.messages()[1].contains("found the end of the execution"), "{}", ran.err);
}

#[test]
fn the_execution_ends_before_the_step() {
    let recorded = Recorded::new();
    for step in ["40", "5000000"] {
        let words = [
            &format!("diverged at step {step}: expected T1 about to lock")[..],
            "found the end of the execution",
        ];
        recorded.diverges("at 6 ", &format!("at {step} "), &words);
    }
}

#[test]
fn the_step_is_another() {
    let recorded = Recorded::new();
    let expected = "diverged at step 6: expected T1 about to lock(lock) at account.c:28 deposit, then ";
    for thread in ["T0", "T9", "T60000"] {
        let words = [&format!("{expected}{thread};")[..], "the chosen thread cannot run"];
        recorded.diverges("-> T2 ", &format!("-> {thread} "), &words);
    }
    recorded.diverges("at 6 T1", "at 6 T2", &["diverged at step 6: expected T2", "found T1 about to lock"]);
    recorded.diverges("at 6 T1", "at 7 T1", &["diverged at step 7: expected T1", "found T1 about to unlock"]);
    recorded.diverges(
        "preempt lock 2",
        "preempt unlock 2",
        &["expected T1 about to unlock", "found T1 about to lock"],
    );
    recorded.diverges("preempt lock 2", "preempt lock 3", &[expected, "with 2 choices"]);
    recorded.diverges("preempt lock 2", "wake lock 2", &[expected, "no such choice"]);
    recorded.diverges("steps-limit 1000000", "steps-limit 0", &[expected]);
}

#[test]
fn the_outcome_is_another() {
    let recorded = Recorded::new();
    let failed = "found assertion: assertion `balance == 150` failed";
    recorded.diverges(
        "-> T2 ",
        "-> T1 ",
        &["another outcome", "expected assertion", "the program ended well"],
    );
    recorded.diverges(
        "outcome assertion",
        "outcome deadlock",
        &["another outcome: expected deadlock", failed],
    );
    recorded.diverges("\nsignature ", "\nsignature 0", &["another outcome", failed, "at another place"]);
}

/// Fails only if the value is 2 and `malloc` returns null.
const PICKS_AND_ALLOCATES: &str = "\
#include <assert.h>
#include <stdlib.h>
__attribute__((weak)) int heisen_choose(int options);
int main(void) {
    int value = heisen_choose ? heisen_choose(4) : 0;
    int *number = malloc(sizeof *number);
    assert(value != 2 || number);
    return 0;
}
";

#[test]
fn choices_that_are_not_of_threads() {
    let sandbox = Sandbox::new();
    let program = sandbox.compile("picks.c", PICKS_AND_ALLOCATES, &[]);
    let finding = sandbox.finds("assertion", &["--faults", "1", "--", "./picks"]);
    let path = sandbox.path(finding["schedule"].as_str().expect("a schedule"));
    let text = fs::read_to_string(path).expect("the schedule");
    assert!(text.contains("\nat 1 T0 choose 2 of 4 "), "{text}");
    assert!(text.contains("\nat 2 T0 fault malloc alloc \"4 bytes\" "), "{text}");
    let recorded = Recorded { sandbox, program, text };

    let whole = recorded.text.trim_end();
    for length in (1..whole.len()).step_by(17) {
        recorded.replay(&whole[..length]).fails(2, &["heisen: edited: line "]);
    }
    for (from, to, words) in [
        ("choose 2 of 4", "choose 4 of 4", "4 is none of 4 choices from 0"),
        ("choose 2 of 4", "choose two of 4", "\"two\" is not a value"),
        ("choose 2 of 4", "choose 2", "must stand between the value and the number"),
        ("fault malloc", "fault fire", "no fault is called \"fire\""),
        ("\nfaults 1\n", "\n", "more faults than allowed; raise \"faults 0\""),
        ("\nfaults 1\n", "\nfaults 1:trylock\n", "does not allow malloc"),
        ("\nfaults 1\n", "\nfaults some\n", "\"some\" is not a number of faults"),
        ("fault malloc", "spurious", "more spurious wake-ups than allowed; raise \"spurious 0\""),
    ] {
        recorded.refused(recorded.edited(from, to), &["edited: line ", words]);
    }
    // Larger budgets than needed do no harm.
    recorded.replay(recorded.edited("\nfaults 1\n", "\nfaults 7:trylock,malloc\nspurious 3\n")).expect(1);
    recorded.replay(recorded.edited("choose 2 of 4", "choose 2 of 0")).expect(1);
    let expected = "then heisen_choose(5) returns 2; found T0 about to choose, with 4 choices";
    recorded.diverges("choose 2 of 4", "choose 2 of 5", &["diverged at step 1", expected]);
    recorded.diverges("choose 2 of 4", "choose 3 of 4", &["another outcome", "the program ended well"]);
    recorded.diverges("choose 2 of 4", "choose 9 of 0", &["diverged at step 1", "that cannot be chosen"]);
    let expected = "then malloc returns NULL; found the end of the execution";
    recorded.diverges("at 2 T0", "at 3 T0", &["diverged at step 3", expected]);
    let words =
        ["diverged at step 2", "then trylock fails; found T0 about to alloc, where that cannot be chosen"];
    recorded.diverges("fault malloc", "fault trylock", &words);
    recorded.diverges("T0 fault", "T1 fault", &["diverged at step 2: expected T1 about to alloc(4 bytes)"]);
    let both =
        recorded.edited("\nfaults 1\n", "\nspurious 1\n").replace("fault malloc alloc", "spurious alloc");
    let words = [
        "diverged at step 2",
        "then its wait ends although nobody wakes it",
        "found the end of the execution",
    ];
    recorded.replay(both).fails(4, &words);
}

// Saved searches.

/// A sandbox with a program `fixed` and an interrupted search of it.
fn interrupted() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.compile("fixed.c", &example("account_fixed.c"), &[]);
    let args = ["check", "--strategy", "random", "--executions", "100000000", "--", "./fixed"];
    let child = sandbox.plain_command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("heisen starts");
    assert!(heisen_testkit::soon(|| !sandbox.processes().is_empty()));
    std::thread::sleep(Duration::from_millis(100));
    let kill = Command::new("sh").args(["-c", &format!("kill -s INT {}", child.id())]).status();
    assert!(kill.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("heisen ends").code(), Some(130));
    sandbox
}

const SAVED: &str = ".heisen/search.json";

#[test]
fn the_saved_search_is_no_search() {
    let sandbox = Sandbox::new();
    let name = "the search file that the interrupted check has written";
    sandbox.heisen(&["check", "--resume", "none"]).fails(2, &["none: No such file", name]);
    sandbox.heisen(&["check", "--resume", "."]).fails(2, &[".: Is a directory", name]);
    for bytes in [&b""[..], b"\xff\x00garbage", b"{}", b"[1, 2]", b"{\"version\": 1}"] {
        sandbox.write("file", bytes);
        let words = ["file is not a search that this Heisen has saved", "start the check again"];
        sandbox.heisen(&["check", "--resume", "file"]).fails(2, &words);
    }
}

#[test]
fn the_saved_search_does_not_fit() {
    let sandbox = interrupted();
    let resume = |file: &str| sandbox.heisen(&["check", "--resume", file, "--executions", "100"]);
    let text = fs::read_to_string(sandbox.path(SAVED)).expect("the search");
    for length in [text.len() / 3, text.len() - 1] {
        sandbox.write("cut", &text[..length]);
        resume("cut").fails(2, &["cut is not a search that this Heisen has saved", "start the check again"]);
    }
    // The changed digit still makes a valid number, so only the checksum shows the damage.
    let count = text.find("\"steps\":").expect("how many steps") + "\"steps\":".len();
    let digit = if text.as_bytes()[count] == b'1' { "2" } else { "1" };
    sandbox.write("damaged", format!("{}{digit}{}", &text[..count], &text[count + 1..]));
    resume("damaged").fails(2, &["damaged is not a search that this Heisen has saved", "its sum is wrong"]);
    sandbox.write("longer", format!("{text}0"));
    resume("longer")
        .fails(2, &["longer is not a search that this Heisen has saved", "start the check again"]);
    let version = "\"version\":7,";
    assert!(text.contains(version));
    sandbox.write("other", text.replace(version, "\"version\":8,"));
    resume("other").fails(2, &["other was saved by another version", "start the check again"]);
    // A file of an older version may also have other fields.
    let older = text.replace(version, "\"version\":2,").replace("\"memory\":", "\"remembered\":");
    sandbox.write("older", older);
    resume("older").fails(2, &["older was saved by another version", "start the check again"]);
    resume(SAVED).expect(0);

    sandbox.compile("fixed.c", &example("account_fixed.c"), &["-O1"]);
    resume(SAVED).fails(2, &["fixed has changed since", "start the check again"]);
    fs::remove_file(sandbox.path("fixed")).expect("the program is removed");
    resume(SAVED).fails(2, &["fixed: not found", "build it first"]);
}

#[test]
fn a_resumed_search_keeps_its_options() {
    let sandbox = interrupted();
    for other in
        [&["--bound", "1"][..], &["--seed", "3"], &["--strategy", "dfs"], &["--", "./fixed"], &["a.c"]]
    {
        let ran = sandbox.heisen(&[&["check", "--resume", SAVED], other].concat());
        ran.fails(2, &["--resume", "cannot be used with"]);
    }
    // The limits count from the resumption, however large they are.
    let ran =
        sandbox.heisen(&["check", "--resume", SAVED, "--time", "1s", "--executions", "18446744073709551615"]);
    ran.expect(0);
    let most = "5000000000000000h";
    sandbox.heisen(&["check", "--resume", SAVED, "--time", most, "--executions", "1"]).expect(0);
}
