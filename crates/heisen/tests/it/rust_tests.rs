//! Tests `#[heisen::test]` in a crate outside of this workspace: its `cargo test` explores its tests.

use heisen_testkit::package::{cargo, package, path_without_heisen};
use heisen_testkit::run;
use std::process::Command;

const BANK: &str = r#"
use std::sync::Mutex;

pub fn deposit(balance: &Mutex<i32>) {
    let seen = *balance.lock().unwrap();
    heisen::point();
    *balance.lock().unwrap() = seen + 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice(deposit: impl Fn(&Mutex<i32>) + Sync) {
        let balance = Mutex::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| deposit(&balance));
            deposit(&balance);
        });
        assert_eq!(balance.into_inner().unwrap(), 2, "a deposit is lost");
    }

    #[heisen::test]
    fn loses_a_deposit() {
        assert!(heisen::running());
        twice(deposit);
    }

    #[heisen::test(strategy = "random", seed = 1, executions = 1_000)]
    fn loses_one_at_random() {
        twice(deposit);
    }

    #[heisen::test(bound = 1, executions = 500)]
    fn keeps_all() {
        twice(|balance| *balance.lock().unwrap() += 1);
    }

    #[heisen::test]
    fn keeps_all_in_a_region() {
        twice(|balance| heisen::no_preempt(|| deposit(balance)));
    }

    #[heisen::test]
    fn keeps_all_in_a_section() {
        twice(|balance| heisen::atomic(|| deposit(balance)));
    }

    /// Not optimised, `lock` is called through the standard library.
    #[heisen::test(no_preempt = "bank::deposit")]
    fn keeps_all_out_of_scope() {
        twice(deposit);
    }

    #[heisen::test]
    #[ignore]
    fn returns_an_error() -> Result<(), String> {
        Err("not today".into())
    }

    #[heisen::test(bound = 0)]
    fn returns_no_error() -> Result<(), String> {
        Ok(())
    }

    #[heisen::test(focus = "nowhere")]
    #[ignore]
    fn asks_too_much() {}

    #[test]
    fn ordinary() {
        assert!(!heisen::running());
        assert_eq!(heisen::choose(5), 0);
        twice(|balance| heisen::no_preempt(|| *balance.lock().unwrap() += 1));
    }
}
"#;

#[test]
fn tests_are_explored() {
    let sandbox = package(BANK);
    let heisen = heisen_testkit::heisen_path();
    let ran = run(cargo(&sandbox, &["--", "--test-threads=2"]).env("HEISEN", heisen));
    let said = format!("{}\n{}", ran.out, ran.err);
    assert_eq!(ran.code, 101, "{said}");
    assert!(said.contains("6 passed; 2 failed; 2 ignored"), "{said}");
    for words in [
        "test tests::loses_a_deposit ... FAILED",
        "test tests::loses_one_at_random ... FAILED",
        "Heisen found a bug",
        "a deposit is lost",
        "1 preemption in 3 threads",
        "T1 is preempted before lock(",
        "minimised from ",
        "at src/lib.rs:7",
    ] {
        assert!(said.contains(words), "{words:?} is not in\n{said}");
    }
    // The schedule replays without cargo.
    let schedules = std::fs::read_dir(sandbox.path("target/heisen")).expect("schedules");
    let schedules: Vec<_> = schedules.flatten().map(|entry| entry.path()).collect();
    assert!(!schedules.is_empty());
    for schedule in schedules {
        let schedule = schedule.display().to_string();
        sandbox.run(&mut sandbox.command(&["replay", &schedule])).expect(1);
    }

    // These tests are ignored by default.
    let ran = run(cargo(&sandbox, &["returns_an_error", "--", "--ignored"]).env("HEISEN", heisen));
    assert!(ran.code == 101 && ran.out.contains("the test returned an error: \"not today\""), "{}", ran.out);
    let ran = run(cargo(&sandbox, &["asks_too_much", "--", "--ignored"]).env("HEISEN", heisen));
    assert!(ran.code == 101 && ran.out.contains("--focus \"nowhere\" matches no module"), "{}", ran.out);
    // A test without a finding also prints its verdict.
    let ran = run(cargo(&sandbox, &["keeps_all_out", "--", "--nocapture"]).env("HEISEN", heisen)).expect(0);
    assert!(ran.out.contains("preemptions at calls in bank::deposit: not explored"), "{}", ran.out);

    // Heisen is missing, or another program has its name.
    let ran = run(cargo(&sandbox, &["keeps_all_in"]).env("PATH", path_without_heisen()));
    assert!(
        ran.code == 101 && ran.out.contains("heisen: not found; install Heisen"),
        "{}\n{}",
        ran.out,
        ran.err
    );
    let script =
        sandbox.write("fake", "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n");
    run(Command::new("chmod").arg("+x").arg(&script)).expect(0);
    let ran = run(cargo(&sandbox, &["keeps_all_in"]).env("HEISEN", &script));
    assert!(ran.code == 101 && ran.out.contains("does not control this test"), "{}\n{}", ran.out, ran.err);
    let ran = run(cargo(&sandbox, &["ordinary"]).env("HEISEN", "/nowhere")).expect(0);
    assert!(ran.out.contains("1 passed"), "{}", ran.out);
}

#[test]
fn mistakes_are_named() {
    let sandbox = package(
        "#[heisen::test(bund = 2)]\nfn a() {}\n#[heisen::test(bound = \"2\")]\nfn b() {}\n\
         #[heisen::test(strategy = 2)]\nfn c() {}\n#[heisen::test(bound)]\nfn d() {}\n\
         #[heisen::test]\nfn e(x: i32) {}\n#[heisen::test]\nasync fn f() {}\n#[heisen::test]\nfn g<T>() {}\n\
         #[heisen::test]\n#[should_panic]\nfn h() {}\n#[heisen::test]\n#[test]\nfn i() {}\n\
         #[heisen::test]\nstruct J;\n#[heisen::test(bound = 1 seed = 2)]\nfn k() {}\n#[heisen::test(3)]\nfn l() {}\n",
    );
    let ran = run(&mut cargo(&sandbox, &["--no-run"])).expect(101);
    for words in [
        "no option bund; there are strategy, bound",
        "bound needs a number",
        "strategy needs a string",
        "write bound = and its value",
        "must not be async",
        "cannot expect a panic",
        "leave out #[test]",
        "goes before a function",
        "expected a comma",
        "expected the name of an option",
    ] {
        assert_eq!(ran.err.matches(words).count(), 1, "{words:?} in\n{}", ran.err);
    }
    assert_eq!(ran.err.matches("a test takes no arguments").count(), 2, "{}", ran.err);
}
