//! Tests that the documents are true: every command in a `console` block runs and must print what the page
//! shows.
//!
//! The pages are listed in [`pages!`], each with a test of its own. The commands of a page run in order, in a
//! directory with the examples. `cd` applies to all commands after it. In the output, `[..]` stands for
//! anything, and times are not compared. A line `? N` gives the exit code if it is 2 or more.
//!
//! `HEISEN_BLESS=1 cargo test -p heisen-cli docs` writes the output into the pages instead of comparing it.
//! Lines that still fit remain unchanged. A line with `[..]` that no longer fits is replaced by the command's
//! output. Look at the difference before you commit it.

use crate::symbolic::has_clang;
use heisen_testkit::{root, scratch};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a test for each page, and the list of all pages.
macro_rules! pages {
    ($($test:ident = $page:literal,)*) => {
        /// The pages whose commands run here.
        const PAGES: &[&str] = &[$($page),*];

        /// One test for each page.
        mod page {
            $(
                #[test]
                fn $test() {
                    super::check_page($page);
                }
            )*
        }
    };
}

pages! {
    readme = "README.md",
    evidence_coverage = "docs/evidence/coverage.md",
    how_it_works_explanations = "docs/how-it-works/explanations.md",
    how_it_works_samplers = "docs/how-it-works/samplers.md",
    how_it_works_spin_loops = "docs/how-it-works/spin-loops.md",
    how_it_works_time_and_io = "docs/how-it-works/time-and-io.md",
    how_to_check_a_program = "docs/how-to/check-a-program.md",
    how_to_ci = "docs/how-to/ci.md",
    how_to_data_races = "docs/how-to/data-races.md",
    how_to_focus = "docs/how-to/focus.md",
    how_to_inputs = "docs/how-to/inputs.md",
    how_to_instrument = "docs/how-to/instrument.md",
    how_to_library = "docs/how-to/library.md",
    how_to_long_search = "docs/how-to/long-search.md",
    how_to_regressions = "docs/how-to/regressions.md",
    how_to_rust_crate = "docs/how-to/rust-crate.md",
    how_to_script = "docs/how-to/script.md",
    how_to_server = "docs/how-to/server.md",
    how_to_system_script = "docs/how-to/system-script.md",
    reference_options = "docs/reference/options.md",
    reference_script_language = "docs/reference/script-language.md",
    reference_verdicts = "docs/reference/verdicts.md",
    tutorial_c = "docs/tutorial/c.md",
    tutorial_rust = "docs/tutorial/rust.md",
}

/// The pages whose commands build symbolically.
const NEED_CLANG: &[&str] = &["docs/how-to/inputs.md"];

/// One command of a page, and the lines of the page that show its output.
#[derive(Debug)]
struct Shown {
    command: String,
    lines: Range<usize>,
}

/// The commands in the `console` blocks of a page, which is given as its lines.
fn commands(page: &[String]) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut inside = false;
    for (number, line) in page.iter().enumerate() {
        if !inside {
            inside = line == "```console";
        } else if line == "```" {
            inside = false;
        } else if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown { command: command.into(), lines: number + 1..number + 1 });
        } else if let Some(shown) = all.last_mut() {
            shown.lines.end = number + 1;
        }
    }
    all
}

/// The exit code that a line of a page states.
fn exit_code(line: &str) -> Option<i32> {
    Some(line.strip_prefix("? ")?.parse().expect("an exit code"))
}

/// The first fenced block of a language.
fn first_block(text: &str, language: &str) -> String {
    let after = text.split_once(&format!("\n```{language}\n")).expect("a block").1;
    after.split_once("```\n").expect("the end of the block").0.into()
}

/// Takes the times out of a line, and the numbers of executions that depend on the time.
fn timeless(line: &str) -> String {
    let mut out = Vec::new();
    let counts = line.contains(" run with th") || line.contains(" that were run fail");
    let is_minimised = line.contains(" minimised from ");
    let words: Vec<&str> = line.split(' ').collect();
    for (i, word) in words.iter().enumerate() {
        let seconds =
            words.get(i + 1).is_some_and(|next| *next == "s" || next.starts_with("s,") || *next == "s)");
        out.push(match word.parse::<f64>() {
            Ok(_) if seconds => "TIME",
            Ok(_) if counts || is_minimised && i > 0 && words[i - 1] == "by" => "COUNT",
            _ => word,
        });
    }
    out.join(" ")
}

/// Whether a line fits the shown one, where `[..]` stands for anything and times are not compared.
fn fits(shown: &str, line: &str) -> bool {
    let (shown, line) = (timeless(shown), timeless(line));
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

/// The printed lines, where each line that fits a shown one has the text of the page. Lines are matched in
/// order, as many as possible.
fn blessed(shown: &[String], printed: &[String]) -> Vec<String> {
    // best[i][j] is how many lines of shown[i..] and printed[j..] can be matched.
    let mut best = vec![vec![0; printed.len() + 1]; shown.len() + 1];
    for i in (0..shown.len()).rev() {
        for j in (0..printed.len()).rev() {
            let skip = best[i + 1][j].max(best[i][j + 1]);
            best[i][j] = if fits(&shown[i], &printed[j]) { skip.max(best[i + 1][j + 1] + 1) } else { skip };
        }
    }
    let (mut i, mut new) = (0, Vec::new());
    for (j, line) in printed.iter().enumerate() {
        while i < shown.len() && best[i + 1][j] == best[i][j] {
            i += 1;
        }
        if i < shown.len() && fits(&shown[i], line) && best[i][j] == best[i + 1][j + 1] + 1 {
            new.push(shown[i].clone());
            i += 1;
        } else {
            new.push(line.clone());
        }
    }
    new
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

/// A directory with the examples, and with the command at the place where `cargo build --release` puts it.
fn directory_of_a_reader() -> tempfile::TempDir {
    let directory = scratch();
    let here = directory.path();
    copy(&root().join("examples"), &here.join("examples"));
    // An example uses the crate `heisen`, which takes its version from the workspace.
    for name in ["crates", "Cargo.toml"] {
        std::os::unix::fs::symlink(root().join(name), here.join(name)).expect("a link");
    }
    std::fs::create_dir_all(here.join("target/release")).expect("a directory");
    for (name, built) in
        [("heisen", heisen_testkit::heisen_path()), ("cargo-heisen", heisen_testkit::cargo_heisen_path())]
    {
        std::os::unix::fs::symlink(built, here.join("target/release").join(name)).expect("a link");
    }
    directory
}

/// Runs the commands of a page. Compares their output with the page, or writes it into the page.
fn check_page(name: &str) {
    if NEED_CLANG.contains(&name) && !has_clang() {
        return;
    }
    let bless = std::env::var_os("HEISEN_BLESS").is_some_and(|value| value == "1");
    let directory = directory_of_a_reader();
    let here = directory.path().canonicalize().expect("it exists");
    let path =
        format!("{}:{}", here.join("target/release").display(), std::env::var("PATH").unwrap_or_default());
    let text = std::fs::read_to_string(root().join(name)).expect("the page");
    let page: Vec<String> = text.lines().map(str::to_owned).collect();
    let all = commands(&page);
    assert!(!all.is_empty(), "{name} shows nothing");
    let mut at = here.clone();
    let mut new: Vec<String> = Vec::new();
    let mut copied = 0;
    for Shown { command, lines } in all {
        if let Some(directory) = command.strip_prefix("cd ") {
            at.push(directory);
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(&at)
            .env("PATH", &path)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .env_remove("RUST_BACKTRACE")
            .env_remove("COLUMNS")
            .env_remove("HEISEN_BLESS")
            .env("CC", "cc")
            .output()
            .expect("a shell");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let context = format!("{name}: {command}\n--- out\n{out}\n--- err\n{err}");
        let code = output.status.code();
        let stated = page[lines.clone()].iter().find_map(|line| exit_code(line));
        let shown: Vec<String> =
            page[lines.clone()].iter().filter(|line| exit_code(line).is_none()).cloned().collect();
        let printed: Vec<String> = out.lines().map(str::to_owned).collect();
        let anything = shown == ["[..]"];
        if bless {
            new.extend_from_slice(&page[copied..lines.start]);
            copied = lines.end;
            new.extend(if anything { shown } else { blessed(&shown, &printed) });
            match code.unwrap_or_else(|| panic!("ended by a signal: {context}")) {
                0 | 1 if stated.is_none() => {}
                code => new.push(format!("? {code}")),
            }
            continue;
        }
        match stated {
            Some(stated) => assert_eq!(code, Some(stated), "{context}"),
            None => assert!(code.is_some_and(|code| code < 2), "{context}"),
        }
        if anything {
            continue;
        }
        assert_eq!(printed.len(), shown.len(), "{context}");
        for (shown, line) in shown.iter().zip(&printed) {
            assert!(fits(shown, line), "shown: {shown}\nis:    {line}\n{context}");
        }
    }
    if bless {
        new.extend_from_slice(&page[copied..]);
        let new = new.join("\n") + "\n";
        if new != text {
            std::fs::write(root().join(name), new).expect("the page is written");
        }
    }
}

/// Every Markdown file below a directory.
fn markdown(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_page_with_commands_is_listed() {
    let root = root();
    let mut shows: Vec<String> = Vec::new();
    for path in markdown(&root.join("docs")).into_iter().chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&path).expect("a page");
        if text.lines().any(|line| line == "```console") {
            shows.push(path.strip_prefix(&root).expect("below").to_string_lossy().into_owned());
        }
    }
    shows.sort();
    let mut listed: Vec<&str> = PAGES.to_vec();
    listed.sort_unstable();
    assert_eq!(listed, shows, "the list `pages!`, and the pages that have commands");
}

/// The two commands in the README are the ones that CI and the first session use.
#[test]
fn the_two_commands() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let first = first_block(&text, "sh");
    assert_eq!(first, "cargo run --release -- check examples/c/account.c\ncargo test --workspace\n");
    let ci = std::fs::read_to_string(root().join(".ci/run")).expect("the CI script");
    assert!(ci.contains("\ncargo test --workspace\n"));
}

#[test]
fn the_reference_has_every_exit_code_and_every_option() {
    let help =
        Command::new(heisen_testkit::heisen_path()).args(["check", "--help"]).output().expect("heisen");
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
    assert!(fits("[..], 0.05 s", "9 executions, 1.25 s"));
    assert_eq!(
        timeless("9 executions, 126 scheduling points, 0.05 s"),
        "9 executions, 126 scheduling points, TIME s"
    );
}

#[test]
fn blessing_keeps_what_fits() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let shown = lines("verdict: clean\nin [..]/a.c\n9 executions, 0.05 s\nend\n");
    let printed = lines("verdict: no bug\nin /tmp/x/a.c\nmore\n9 executions, 0.15 s\nend\n");
    let new = lines("verdict: no bug\nin [..]/a.c\nmore\n9 executions, 0.05 s\nend\n");
    assert_eq!(blessed(&shown, &printed), new);
    assert_eq!(blessed(&[], &printed), printed);
    assert_eq!(blessed(&shown, &shown[..1]), shown[..1]);
}
