//! Which accesses are scheduling points makes no difference to what a search can find: small random programs with locks of all
//! kinds, nested and crossed, flags and counters, against a search in which every access is a scheduling point.
//!
//! The rule and its proof are in `runtime::memory::race`. Each program appends its final state to a file, so the outcomes of a search are a
//! set of lines, and "deadlock" if it found one. The reference is `dpor` with `--accesses all`, for which the rule plays no part and
//! which is itself held against brute force in `search`. For the reference, the mutexes of Rust are not recognised as locks,
//! either, but are the atomic instructions that they are made of (`--patch instructions`).

mod generate;

use generate::Language;
use heisen_testkit::{heisen, run, scratch, usual_or_nightly};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The searches that must find whatever the reference finds.
const SYSTEMATIC: [&[&str]; 4] = [
    &["--strategy", "icb", "--bound", "30"],
    &["--strategy", "icb", "--bound", "30", "--reduce"],
    &["--strategy", "dfs"],
    &["--strategy", "dpor"],
];

/// Every access is a scheduling point, and no lock is recognised.
const REFERENCE: [&str; 6] = ["--strategy", "dpor", "--accesses", "all", "--patch", "instructions"];

/// More executions than this are too many for a test: such a program is left out, and another takes its place.
const MOST: &str = "3000";

/// A file of programs, compiled with instrumentation, in a directory of its own.
struct Programs {
    directory: tempfile::TempDir,
    program: PathBuf,
    text: String,
}

impl Programs {
    fn new(language: Language, seeds: impl Iterator<Item = u64>) -> Programs {
        let directory = scratch();
        let text = generate::file(language, seeds);
        let source = directory.path().join(language.file_name());
        fs::write(&source, &text).expect("the source is written");
        let program = directory.path().join("programs");
        let built = match language {
            Language::C => run(heisen(directory.path())
                .args(["cc", "-g", "-O1", "-pthread"])
                .arg(&source)
                .arg("-o")
                .arg(&program)),
            Language::Rust => {
                // `heisen check` compiles a source itself; what it made is used again for all programs in the file.
                let ran = run(heisen(directory.path())
                    .args(["check", "--executions", "1", "--quiet"])
                    .arg(&source));
                let made = fs::read_dir(directory.path().join(".heisen/build"))
                    .and_then(|mut all| all.next().expect("a build"))
                    .unwrap_or_else(|e| panic!("{e}\n{}{}", ran.out, ran.err));
                let stem = source.file_stem().expect("a name");
                fs::copy(made.path().join(stem), &program).unwrap_or_else(|e| panic!("{e}\n{}", ran.err));
                ran
            }
        };
        if language == Language::C {
            built.expect(0);
        }
        Programs { directory, program, text }
    }

    /// All outcomes that a search finds of one program; none if that takes too many executions.
    fn outcomes(&self, seed: u64, search: &[&str]) -> Option<BTreeSet<String>> {
        let results = self.directory.path().join("results");
        let _ = fs::remove_file(&results);
        // Points that an earlier search has learned would be used again.
        let output = scratch();
        let mut command = heisen(self.directory.path());
        command.args(["check", "--quiet", "--json", "-", "--keep-going", "--executions", MOST]);
        command.arg("--output").arg(output.path()).args(search);
        command.arg("--").arg(&self.program).arg(seed.to_string()).env("RESULTS", &results);
        let ran = run(&mut command);
        let json = ran.json();
        assert!(matches!(ran.code, 0 | 1), "{json:#}\n{}\n{}", ran.err, self.listing(seed));
        if json["complete"] != true {
            return None;
        }
        let text = fs::read_to_string(&results).unwrap_or_default();
        let mut outcomes: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        for finding in json["findings"].as_array().expect("findings") {
            assert_eq!(finding["kind"], "deadlock", "{finding:#}\n{}", self.listing(seed));
            outcomes.insert("deadlock".to_owned());
        }
        Some(outcomes)
    }

    /// The text of one program.
    fn listing(&self, seed: u64) -> &str {
        let begin = self.text.find(&generate::heading(seed)).unwrap_or(0);
        let rest = &self.text[begin..];
        rest.find(generate::END).map_or(rest, |end| &rest[..end])
    }

    /// Compares all searches on one program; whether it was small enough for that.
    fn agree(&self, seed: u64) -> bool {
        let Some(expected) = self.outcomes(seed, &REFERENCE) else {
            return false;
        };
        let found = SYSTEMATIC.map(|search| (search, self.outcomes(seed, search)));
        for (search, found) in found {
            if let Some(found) = found {
                let listing = self.listing(seed);
                assert_eq!(found, expected, "seed {seed}, {search:?}\n{listing}");
            }
        }
        true
    }
}

/// Compares the searches on programs with these seeds, of which half must be small enough.
fn compare(language: Language, seeds: std::ops::Range<u64>) {
    let programs = Programs::new(language, seeds.clone());
    let compared = seeds.clone().filter(|&seed| programs.agree(seed)).count();
    assert!(compared * 2 >= seeds.count(), "only {compared} programs are small enough");
}

#[test]
fn programs_in_c() {
    compare(Language::C, 0..usual_or_nightly(6, 10));
}

#[test]
fn programs_in_rust() {
    compare(Language::Rust, 0..6);
}

#[test]
#[ignore = "takes half an hour"]
fn five_hundred_programs() {
    for part in 0..10 {
        compare(Language::C, 100 + part * 30..130 + part * 30);
        compare(Language::Rust, 100 + part * 20..120 + part * 20);
    }
}

/// What every systematic search says of a program in Rust, compiled by `heisen check`.
fn verdicts(name: &str) -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scheduling_points/programs").join(name);
    let directory = scratch();
    SYSTEMATIC
        .iter()
        .map(|search| {
            let ran = run(heisen(directory.path())
                .args(["check", "--quiet", "--json", "-", "--executions", "100000"])
                .args(*search)
                .arg(&source));
            let json = ran.json();
            json["findings"][0]["kind"].as_str().unwrap_or("nothing").to_owned()
        })
        .collect()
}

#[test]
fn mutexes_of_rust_that_are_locked_crosswise() {
    assert_eq!(verdicts("crossed_mutexes.rs"), ["deadlock"; 4]);
}

#[test]
fn read_write_locks_of_rust_that_are_locked_crosswise() {
    assert_eq!(verdicts("crossed_rwlocks.rs"), ["deadlock"; 4]);
}

#[test]
fn a_notification_between_the_check_of_a_flag_and_the_wait() {
    assert_eq!(verdicts("lost_notification.rs"), ["deadlock"; 4]);
}
