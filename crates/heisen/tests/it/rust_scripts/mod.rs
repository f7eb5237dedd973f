//! Tests `#[heisen::test(script = …)]`: scripts in Rust, in a crate outside of this workspace. Each script
//! also runs in the script language with the same test, and both must give the same result.

mod pairs;

use heisen_testkit::package::{cargo, package, path_without_heisen};
use heisen_testkit::{Ran, Sandbox, run, soon, usual_or_nightly};
use pairs::{PAIRS, Pair};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// The programs.
const LIBRARY: &str = r#"
use std::sync::Mutex;

#[inline(never)]
pub fn visit(number: u64) -> u64 {
    heisen::point_at(1);
    heisen::point_at(2);
    number + 1
}

pub fn deposit(balance: &Mutex<i32>) {
    let seen = *balance.lock().unwrap();
    heisen::point_at(1);
    *balance.lock().unwrap() = seen + 1;
}

pub fn down(depth: u64) -> u64 {
    if depth == 0 { 0 } else { 1 + down(depth - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen::script::*;

    fn visits(threads: u64) {
        std::thread::scope(|scope| {
            for number in 1..=threads {
                scope.spawn(move || visit(number));
            }
        });
    }

    fn deposits() {
        let balance = Mutex::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| deposit(&balance));
            scope.spawn(|| deposit(&balance));
        });
        assert_eq!(balance.into_inner().unwrap(), 2, "a deposit is lost");
    }
"#;

/// Scripts without an equivalent in the other language.
const OTHERS: &str = r#"
    /// An execution that is over is over, also for who catches it.
    #[heisen::test(script = || {
        let t = wait_for_thread(any(), enters("visit"));
        run_until(t, ends());
        assert!(std::panic::catch_unwind(|| run_until(t, ends())).is_err());
        assert!(std::panic::catch_unwind(|| run_until(t, ends())).is_err());
    })]
    fn caught() { visits(1); }

    #[heisen::test(script = || { wait_for_thread(any(), enters("vissit")); })]
    fn misspelt() { visits(1); }

    #[heisen::test(script = || context_bounded(1, 1, &["tests::vissits"]))]
    fn misspelt_in_a_list() { visits(1); }

    #[heisen::test(script = || { wait_for_thread(any(), reads("x\"\\")); })]
    fn no_variable() { visits(1); }

    #[heisen::test(script = || { wait_for_thread(any(), reads(..)); })]
    fn not_instrumented() { visits(1); }

    #[heisen::test(script = || { choose::<u8>([]); })]
    fn nothing_to_choose() { visits(1); }

    #[heisen::test(script = || {
        let t = wait_for_thread(any(), enters("visit"));
        panic!("my own mistake with {t}");
    })]
    fn panics() { visits(1); }

    #[heisen::test(script = || std::thread::scope(|s| s.spawn(|| exists()).join().unwrap()))]
    fn in_another_thread() { visits(1); }

    /// The wrapper has written the number of Heisen's process.
    #[heisen::test(script = || {
        wait_for_thread(any(), enters("visit"));
        let pid = std::fs::read_to_string("pid").unwrap();
        assert!(std::process::Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap().success());
        loop { release(wait_for_thread(any(), at_control(..))); }
    })]
    #[ignore]
    fn killed() { visits(1); }
}
"#;

/// The pairs that are compared, among them those that other tests below use.
fn pairs() -> impl Iterator<Item = &'static Pair> {
    let every = usual_or_nightly(4, 1);
    let compared = move |(number, pair): &(usize, &Pair)| {
        number % every == 0 || ["in_turn", "finds", "exact"].contains(&pair.name)
    };
    PAIRS.iter().enumerate().filter(compared).map(|(_, pair)| pair)
}

/// Scripts that Heisen stops only after very many steps.
const LOOPS: &str = r#"
    #[heisen::test(script = || {
        let t = wait_for_thread(any(), enters("visit"));
        loop { select(t, ..); }
    })]
    fn circles() { visits(1); }

    #[heisen::test(script = || {
        let t = wait_for_thread(any(), enters("visit"));
        while !t.has_ended() {}
    })]
    fn endless() { visits(1); }
"#;

fn library() -> String {
    let mut text = LIBRARY.to_owned();
    for Pair { name, program, rust, options: (options, _), .. } in pairs() {
        text +=
            &format!("    #[heisen::test({options}{} script = ", if options.is_empty() { "" } else { "," });
        text += &format!("|| {{\n{rust}\n}})]\n    fn {name}() {{ {program} }}\n\n");
    }
    text + usual_or_nightly("", LOOPS) + OTHERS
}

/// The output that the harness shows for each test.
fn sections(out: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut name = None;
    for line in out.lines() {
        if let Some(next) =
            line.strip_prefix("---- tests::").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            name = Some(next.to_owned());
        } else if ["failures:", "successes:"].contains(&line) {
            name = None;
        } else if let Some(name) = &name {
            *all.entry(name.clone()).or_insert_with(String::new) += &format!("{line}\n");
        }
    }
    all
}

/// A report without its time, and with placeholders for all places in the script.
fn placeless(report: &str) -> String {
    let place = |text: &str| {
        let words: Vec<&str> = text.split(' ').collect();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let mut out: Vec<String> = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let bare = words[at].trim_end_matches(':');
            let colon = &words[at][bare.len()..];
            if words[at] == "line" && words.get(at + 1).is_some_and(|n| is_number(n.trim_end_matches(':'))) {
                let number = words[at + 1];
                out.push(format!("PLACE{}", &number[number.trim_end_matches(':').len()..]));
                at += 1;
            } else if bare.strip_prefix("src/lib.rs:").is_some_and(is_number) {
                out.push(format!("PLACE{colon}"));
            } else if words[at].starts_with("0x") {
                // An address on the heap, which depends on the environment.
                out.push("ADDRESS".to_owned());
            } else {
                out.push(words[at].to_owned());
            }
            at += 1;
        }
        out.join(" ")
    };
    let mut lines: Vec<String> = Vec::new();
    for line in report.lines() {
        let line = match line.strip_prefix("  ") {
            // A step of the script. Blanks align the places, and rhai gives no place for `print`.
            Some(step) => {
                let step = place(&step.split_whitespace().collect::<Vec<_>>().join(" "));
                format!("  {}", step.trim_start_matches("PLACE: "))
            }
            None => line.to_owned(),
        };
        let line = match line.find(" event").filter(|_| line.ends_with(" s")) {
            Some(at) => line[..at].to_owned(),
            None => line,
        };
        if !line.starts_with("replays: ") {
            lines.push(place(&line));
        }
    }
    lines.join("\n") + "\n"
}

/// The executable of the crate's tests.
fn executable(sandbox: &Sandbox) -> PathBuf {
    let all = std::fs::read_dir(sandbox.path("target/debug/deps")).expect("cargo has built it").flatten();
    let mut all = all.map(|entry| entry.path()).filter(|path| {
        path.extension().is_none()
            && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("bank-"))
    });
    all.next().expect("the tests")
}

/// Runs a script in the other language with a test.
fn in_rhai(sandbox: &Sandbox, executable: &str, pair: &Pair) -> Ran {
    sandbox.write("s.rhai", pair.rhai);
    let name = format!("tests::{}", pair.name);
    let program = ["--", executable, &name, "--exact", "--nocapture", "--test-threads=1"];
    sandbox.heisen(&[&["script"], pair.options.1, &["s.rhai"], &program].concat())
}

#[test]
fn both_languages_come_to_the_same() {
    let sandbox = package(&library());
    let ran = run(cargo(&sandbox, &["--", "--test-threads=2", "--show-output"])
        .env("HEISEN", heisen_testkit::heisen_path()));
    let said = format!("{}\n{}", ran.out, ran.err);
    assert_eq!(ran.code, 101, "{said}");
    let sections = sections(&ran.out);
    let passed = |name: &str| ran.out.contains(&format!("test tests::{name} ... ok\n"));
    let executable = executable(&sandbox);
    for pair in pairs() {
        let section = sections.get(pair.name).unwrap_or_else(|| panic!("{} in {said}", pair.name));
        let rhai = in_rhai(&sandbox, executable.to_str().expect("a path"), pair);
        let wanted = placeless(&rhai.out);
        let is = placeless(section);
        assert!(is.contains(&wanted), "{}: wanted\n{wanted}\nis\n{is}\n{}", pair.name, rhai.err);
        let (report, code) = pair.report;
        assert!(
            wanted.starts_with(&placeless(report)[..placeless(report).len() - 1]),
            "{}: {wanted}",
            pair.name
        );
        assert_eq!((rhai.code, passed(pair.name)), (code, code == 0), "{}: {}\n{is}", pair.name, rhai.err);
        let head = match code {
            0 => "",
            1 => "the script has failed\n",
            _ => "heisen script failed (exit status: 4)\n",
        };
        assert!(is.contains(head), "{}: {is}", pair.name);
    }

    // The report shows the places of the commands. The hint for a replay uses the words of the attribute.
    let text = library();
    let line = |words: &str| 1 + text.lines().position(|line| line.contains(words)).expect(words);
    let shown = format!("  src/lib.rs:{}: T2 has ended\n", line("exact_schedule("));
    assert!(
        !sections["exact"].contains("line ") && sections["exact"].contains(&shown),
        "{}",
        sections["exact"]
    );
    let again = "replays: #[heisen::test(choices = \"0,1,0\", script = …)]\n";
    assert!(sections["finds"].contains(again), "{}", sections["finds"]);

    let line = |words: &str| format!("src/lib.rs:{}: ", line(words));
    let loops = || {
        let circles = line("loop { select") + "the script loops: it receives the same events again";
        let endless = "an endless loop: the script no longer asks anything of the program\n";
        vec![
            ("circles", format!("heisen: {circles}")),
            ("endless", format!("heisen: {}{endless}", line("while !t"))),
        ]
    };
    let loops = if usual_or_nightly(false, true) { loops() } else { Vec::new() };
    let others = [
        ("caught", format!("; the last: {}T2 has ended\n", line("catch_unwind"))),
        (
            "misspelt",
            format!(
                "heisen: {}the program has no function vissit; did you mean visit or visits?\n",
                line("\"vissit\"")
            ),
        ),
        (
            "misspelt_in_a_list",
            format!(
                "heisen: {}the program has no function tests::vissits; did you mean tests::visits",
                line("::vissits")
            ),
        ),
        (
            "no_variable",
            format!("heisen: {}the program has no global or static variable for x\"\\", line("reads(\"x")),
        ),
        (
            "not_instrumented",
            "the program is not instrumented, so its memory accesses and calls are not events".into(),
        ),
        ("nothing_to_choose", format!("heisen: {}there is nothing to choose from\n", line("<u8>"))),
        ("panics", "my own mistake with T2\n".into()),
        ("in_another_thread", "heisen::script works only in the script of".into()),
    ];
    for (name, words) in others.into_iter().chain(loops) {
        assert!(
            !passed(name) && sections[name].contains(&words),
            "{name}: {words:?} is not in\n{}",
            sections[name]
        );
        assert_eq!(
            sections[name].contains("heisen script failed"),
            !["panics", "in_another_thread"].contains(&name)
        );
    }
    assert!(soon(|| sandbox.processes().is_empty()), "still running: {:?}", sandbox.processes());

    // The command is killed in the middle, is missing, or is another program.
    let real = heisen_testkit::heisen_path();
    let with = |name: &str, heisen: &str| {
        let wrapper = sandbox.write("heisen", format!("#!/bin/sh\n{heisen}\n"));
        run(Command::new("chmod").arg("+x").arg(&wrapper)).expect(0);
        let mut command = cargo(&sandbox, &[name, "--", "--include-ignored"]);
        let ran = run(command.env("HEISEN", &wrapper)).expect(101);
        assert!(soon(|| sandbox.processes().is_empty()), "still running: {:?}", sandbox.processes());
        ran.out
    };
    let killed = with("killed", &format!("echo $$ > pid; exec {real} \"$@\""));
    assert!(killed.contains("heisen script failed (signal: 9 (SIGKILL))"), "{killed}");
    let other = with("in_turn", "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"");
    assert!(other.contains("does not control this test"), "{other}");
    let silent = with("in_turn", "exit 0");
    assert!(silent.contains("heisen does not understand the crate heisen"), "{silent}");
    let ran = run(cargo(&sandbox, &["in_turn"]).env("PATH", path_without_heisen())).expect(101);
    assert!(ran.out.contains("heisen: not found; install Heisen"), "{}", ran.out);
}

#[test]
fn mistakes_are_named() {
    let sandbox = package(
        "fn s() {}\n#[heisen::test(script = s, bound = 2)]\nfn a() {}\n#[heisen::test(oracle = \"few\")]\nfn b() {}\n\
         #[heisen::test(script = )]\nfn c() {}\n#[heisen::test(script = s, script = s)]\nfn d() {}\n\
         #[heisen::test(script = s, reduce = 1)]\nfn e() {}\n#[heisen::test(script = s, seed = true)]\nfn f() {}\n\
         #[heisen::test(script = s, oracle = few)]\nfn g() {}\n#[heisen::test(script = s, time = -1)]\nfn h() {}\n",
    );
    let ran = run(&mut cargo(&sandbox, &["--no-run"])).expect(101);
    for (words, times) in [
        ("no option bound with a script; there are oracle, seed", 1),
        ("no option oracle; there are strategy, bound", 1),
        ("script needs one function", 2),
        ("reduce needs true or false", 1),
        ("seed needs a number", 1),
        ("oracle needs a string", 1),
        ("time needs a literal", 1),
    ] {
        assert_eq!(ran.err.matches(words).count(), times, "{words:?} in\n{}", ran.err);
    }
}

/// Tests the command alone, with a foreign program at the other end of the pipe.
#[test]
fn strangers_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.compile("p.c", "int main(void) { return 0; }\n", &[]);
    // The other end sends one line and keeps the pipe open.
    let says = |words: &str| {
        let script =
            "mkfifo f; exec 3<>f; printf \"$1\" >&3; \"$0\" script --remote -- ./p <&3; c=$?; rm f; exit $c";
        sandbox.run(sandbox.shell(script).arg(words))
    };
    let ran = says("nonsense\n");
    assert_eq!(ran.out, "begin\nstop\n", "{}", ran.err);
    ran.fails(2, &["heisen: \"nonsense\" is no statement"]);
    says("call\ta.rs:1\tfoo(1)\n")
        .fails(2, &["heisen: a.rs:1: there is no function foo for these arguments"]);
    says("call\ta.rs:7\tany\n").fails(2, &["heisen: a.rs:7: a statement gives a value of type Threads"]);
    let ran = says("done\n").expect(0);
    assert!(
        ran.out.starts_with("begin\nend\nok: no bug in the only schedule of the script\n"),
        "{}",
        ran.out
    );
    // The other end is missing, or closes the pipe.
    sandbox.run(&mut sandbox.shell("\"$0\" script --remote -- ./p < /dev/null")).expect(130);
    let script = "mkfifo i o; \"$0\" script --remote -- ./p <i >o & exec 4>i 5<o; read line <&5; echo $line; exec 4>&-; \
                  wait $!; c=$?; rm i o; exit $c";
    let ran = sandbox.run(&mut sandbox.shell(script)).expect(130);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("begin\n", "heisen: interrupted\n"));
    for other in [&["s.rhai"][..], &["--json", "-"], &["--system"], &["--from", "x"]] {
        let ran = sandbox.heisen(&[&["script", "--remote"], other, &["--", "./p"]].concat());
        ran.fails(2, &["cannot be used with"]);
    }
}
