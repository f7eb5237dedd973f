//! What the documents show is true: every command in a `console` block is run, in order, in a directory that holds the
//! examples, and must print what is shown. `cd` holds for all that follow. `[..]` stands for anything, times are not compared, and a line `? N` gives an
//! exit code other than what the output alone would let one expect.

mod common;

use common::{root, scratch};
use std::path::Path;
use std::process::Command;

/// One command with what it is to print.
#[derive(Debug)]
struct Shown {
    command: String,
    output: Vec<String>,
    code: Option<i32>,
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match &mut block {
            Some(_) if line == "```" => found.extend(block.take()),
            Some(lines) => {
                lines.push_str(line);
                lines.push('\n');
            }
            None if line == format!("```{language}") => block = Some(String::new()),
            None => {}
        }
    }
    found
}

fn commands(block: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown { command: command.into(), output: Vec::new(), code: None });
        } else if let Some(shown) = all.last_mut() {
            match line.strip_prefix("? ") {
                Some(code) => shown.code = Some(code.parse().expect("an exit code")),
                None => shown.output.push(line.into()),
            }
        }
    }
    all
}

/// Takes the times out of a line.
fn timeless(line: &str) -> String {
    let mut out = Vec::new();
    let words: Vec<&str> = line.split(' ').collect();
    for (i, word) in words.iter().enumerate() {
        let seconds =
            words.get(i + 1).is_some_and(|next| *next == "s" || next.starts_with("s,") || *next == "s)");
        out.push(if seconds && word.parse::<f64>().is_ok() { "TIME" } else { word });
    }
    out.join(" ")
}

/// Whether a line is as shown, where `[..]` stands for anything.
fn fits(shown: &str, line: &str) -> bool {
    let parts: Vec<&str> = shown.split("[..]").collect();
    let Some((first, rest)) = parts.split_first() else { return false };
    let Some(mut line) = line.strip_prefix(first) else { return false };
    for (i, part) in rest.iter().enumerate() {
        let last = i + 1 == rest.len();
        match if last { line.rfind(part) } else { line.find(part) } {
            Some(at) if !last || at + part.len() == line.len() => line = &line[at + part.len()..],
            _ => return false,
        }
    }
    line.is_empty()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("the examples").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(std::fs::copy(entry.path(), target))
        }
    }
}

fn run_document(name: &str) {
    let directory = scratch();
    let here = directory.path().canonicalize().expect("it exists");
    copy(&root().join("examples"), &here.join("examples"));
    // An example uses the crate `heisen`, which takes its version from the workspace.
    for name in ["crates", "Cargo.toml"] {
        std::os::unix::fs::symlink(root().join(name), here.join(name)).expect("a link");
    }
    std::fs::create_dir_all(here.join("target/release")).expect("a directory");
    for (name, built) in
        [("heisen", env!("CARGO_BIN_EXE_heisen")), ("cargo-heisen", env!("CARGO_BIN_EXE_cargo-heisen"))]
    {
        std::os::unix::fs::symlink(built, here.join("target/release").join(name)).expect("a link");
    }
    let path =
        format!("{}:{}", here.join("target/release").display(), std::env::var("PATH").unwrap_or_default());
    let text = std::fs::read_to_string(root().join(name)).expect("the document");
    let shown: Vec<Shown> = blocks(&text, "console").iter().flat_map(|b| commands(b)).collect();
    assert!(!shown.is_empty(), "{name} shows nothing");
    let mut at = here.clone();
    for shown in shown {
        if let Some(directory) = shown.command.strip_prefix("cd ") {
            at.push(directory);
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", &shown.command])
            .current_dir(&at)
            .env("PATH", &path)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .env_remove("RUST_BACKTRACE")
            .env("CC", "cc")
            .output()
            .expect("a shell");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let context = format!("{name}: {}\n--- out\n{out}\n--- err\n{err}", shown.command);
        match shown.code {
            Some(code) => assert_eq!(output.status.code(), Some(code), "{context}"),
            None => assert!(output.status.code().is_some_and(|code| code < 2), "{context}"),
        }
        if shown.output == ["[..]"] {
            continue;
        }
        let lines: Vec<String> = out.lines().map(timeless).collect();
        let wanted: Vec<String> = shown.output.iter().map(|l| timeless(l)).collect();
        assert_eq!(lines.len(), wanted.len(), "{context}");
        for (wanted, line) in wanted.iter().zip(&lines) {
            assert!(fits(wanted, line), "shown: {wanted}\nis:    {line}\n{context}");
        }
    }
}

#[test]
fn the_readme_is_true() {
    run_document("README.md");
}

#[test]
fn the_guide_is_true() {
    run_document("docs/guide.md");
}

#[test]
fn the_reference_of_options_is_true() {
    run_document("docs/reference/options.md");
}

#[test]
fn the_reference_of_scripts_is_true() {
    run_document("docs/reference/script-language.md");
}

#[test]
fn the_page_about_verdicts_is_true() {
    run_document("docs/reference/verdicts.md");
}

#[test]
fn the_chapter_on_instrumentation_is_true() {
    run_document("docs/instrumentation.md");
}

#[test]
fn the_page_about_cargo_is_true() {
    run_document("docs/cargo.md");
}

#[test]
fn the_page_about_coverage_is_true() {
    run_document("docs/coverage.md");
}

#[test]
fn the_chapter_on_scripts_is_true() {
    run_document("docs/scripts.md");
}

#[test]
fn the_chapter_on_systems_is_true() {
    run_document("docs/systems.md");
}

/// The two commands of the README are the ones that CI and the first session use.
#[test]
fn the_two_commands() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let first = &blocks(&text, "sh")[0];
    assert_eq!(first, "cargo run --release -- check examples/c/account.c\ncargo test --workspace\n");
    let ci = std::fs::read_to_string(root().join(".ci/run")).expect("the CI script");
    assert!(ci.contains("\ncargo test --workspace\n"));
}

#[test]
fn the_reference_has_every_exit_code_and_every_option() {
    let help = Command::new(env!("CARGO_BIN_EXE_heisen")).args(["check", "--help"]).output().expect("heisen");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let page =
        |name: &str| std::fs::read_to_string(root().join("docs/reference").join(name)).expect("a page");
    let (codes, options) = (page("exit-codes.md"), page("options.md"));
    for code in ["0", "1", "2", "3", "4", "5", "6", "130"] {
        assert!(help.lines().any(|l| l.trim_start().starts_with(&format!("{code} "))), "{code} in\n{help}");
        assert!(codes.contains(&format!("\n| {code} | ")), "{code} in exit-codes.md");
    }
    // A row of a table begins with the option.
    let rows: Vec<&str> =
        options.lines().filter_map(|l| l.strip_prefix("| `")?.split(" | ").next()).collect();
    for option in help.lines().filter_map(|l| l.trim_start().strip_prefix("--").or(l.split(", --").nth(1))) {
        let name = option.split([' ', '[', ':']).next().unwrap_or_default();
        let long = format!("--{name}");
        let named = |row: &&str| row.split(['`', ' ', '=', ',']).any(|word| word == long);
        assert!(name == "help" || rows.iter().any(named), "{long} has no row in options.md");
    }
}

#[test]
fn comparing_lines() {
    assert!(fits("a [..] c", "a b b c"));
    assert!(fits("[..]", "anything"));
    assert!(fits("x[..]y", "xy"));
    assert!(!fits("a [..] c", "a b d"));
    assert!(!fits("abc", "abcd"));
    assert_eq!(
        timeless("9 executions, 126 scheduling points, 0.05 s"),
        "9 executions, 126 scheduling points, TIME s"
    );
}
