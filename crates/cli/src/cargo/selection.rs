//! Lists the tests of an executable and selects those to explore.

use super::args::{AfterDashes, FilterArgs, TestArgs};
use super::build::Executable;
use super::expr::{Expr, Subject};
use clap::Parser;
use heisen_engine::Error;
use std::collections::HashSet;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    pub name: String,
    /// Whether it is marked `#[ignore]`.
    pub ignored: bool,
}

/// The tests of an executable, in the order in which it lists them. An executable without a test harness is
/// one test.
pub fn list(executable: &Executable) -> Result<Vec<Test>, Error> {
    if executable.own_main {
        return Ok(vec![Test { name: executable.name.clone(), ignored: false }]);
    }
    let ignored: HashSet<String> = names(executable, &["--ignored"])?.into_iter().collect();
    let all = names(executable, &[])?;
    Ok(all.into_iter().map(|name| Test { ignored: ignored.contains(&name), name }).collect())
}

fn names(executable: &Executable, more: &[&str]) -> Result<Vec<String>, Error> {
    let shown = executable.path.display();
    let output = Command::new(&executable.path)
        .args(["--list", "--format", "terse"])
        .args(more)
        .envs(executable.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&executable.directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::Uncontrolled(format!("{shown} cannot be started: {e}")))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Uncontrolled(format!(
            "{shown} does not list its tests ({}); if it has its own main, set harness = false in Cargo.toml{}{}",
            output.status,
            if words.is_empty() { "" } else { "; it said:\n" },
            words.trim_end()
        )));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// The filters that select tests.
#[derive(Debug)]
pub struct Selection {
    filters: FilterArgs,
    expressions: Vec<Expr>,
}

/// Whether a test is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Yes,
    /// The test is not explored, and is shown as ignored.
    Ignored,
    /// The test is neither explored nor shown.
    No,
}

impl Selection {
    /// Reads the filters before and after `--`.
    pub fn new(args: &TestArgs) -> Result<Selection, Error> {
        let mut expressions = Vec::new();
        for text in &args.expressions {
            let wrong = |mistake: super::expr::Mistake| {
                Error::Input(format!("the filter expression is wrong: {}", mistake.show(text)))
            };
            expressions.push(Expr::parse(text).map_err(wrong)?);
        }
        let after = AfterDashes::try_parse_from(&args.for_tests).map_err(|error| {
            let words = error.render().to_string();
            let words = words.lines().next().unwrap_or_default();
            let words = words.strip_prefix("error: ").unwrap_or(words);
            Error::Input(format!(
                "after --: {words}; there may be filters, --skip, --exact, --ignored and --include-ignored"
            ))
        })?;
        Ok(Selection { filters: args.filters.clone().and(after.filters), expressions })
    }

    pub fn wants(&self, executable: &Executable, test: &Test) -> Wanted {
        let FilterArgs { names, skip, exact, ignored, include_ignored } = &self.filters;
        let fits = |filter: &String| if *exact { test.name == *filter } else { test.name.contains(filter) };
        let subject = Subject {
            test: &test.name,
            package: &executable.package,
            binary: &executable.name,
            kind: &executable.kind,
        };
        let named = names.is_empty() || names.iter().any(fits);
        let expressed = self.expressions.is_empty() || self.expressions.iter().any(|e| e.fits(&subject));
        if !named || !expressed || skip.iter().any(fits) || *ignored && !test.ignored {
            Wanted::No
        } else if test.ignored && !ignored && !include_ignored {
            Wanted::Ignored
        } else {
            Wanted::Yes
        }
    }
}

/// The arguments that make an executable run only this test.
pub fn arguments(executable: &Executable, test: &Test, for_tests: &[OsString]) -> Vec<OsString> {
    if executable.own_main {
        return for_tests.to_vec();
    }
    let mut words = vec![OsString::from(&test.name)];
    // Without colours: with them, the harness would look for a terminal description in each execution.
    words.extend(["--exact", "--nocapture", "--test-threads=1", "--color=never"].map(OsString::from));
    if test.ignored {
        words.push("--include-ignored".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::args::{Args, Command};

    fn selection(words: &[&str]) -> Result<Selection, Error> {
        let args = Args::parse_from(["cargo-heisen", "test"].iter().chain(words));
        let Command::Test(args) = args.command else { panic!("not test") };
        Selection::new(&args)
    }

    fn executable() -> Executable {
        Executable {
            path: "/w/target/deps/queue-0123456789abcdef".into(),
            package: "queue".into(),
            name: "loopback".into(),
            kind: "test".into(),
            source: "tests/loopback.rs".into(),
            own_main: false,
            default_run: false,
            directory: "/w".into(),
            environment: Vec::new(),
        }
    }

    #[test]
    fn selections() {
        use Wanted::{Ignored, No, Yes};
        let tests = [("push", false), ("push_pop", false), ("slow", true)];
        for (words, expected) in [
            (&[][..], [Yes, Yes, Ignored]),
            (&["push"], [Yes, Yes, No]),
            (&["push", "--exact"], [Yes, No, No]),
            (&["pop", "slow"], [No, Yes, Ignored]),
            (&["--skip", "pop"], [Yes, No, Ignored]),
            (&["--ignored"], [No, No, Yes]),
            (&["--include-ignored"], [Yes, Yes, Yes]),
            (&["--", "--include-ignored", "slow", "--nocapture", "--test-threads=4"], [No, No, Yes]),
            (&["push", "--", "--skip", "pop"], [Yes, No, No]),
            (&["-E", "test(pop) & kind(test)"], [No, Yes, No]),
            (&["-E", "test(=push)", "-E", "binary(loopback) & test(slow)"], [Yes, No, Ignored]),
            (&["pop", "-E", "test(=push)"], [No, No, No]),
        ] {
            let selection = selection(words).expect("a selection");
            let found = tests
                .map(|(name, ignored)| selection.wants(&executable(), &Test { name: name.into(), ignored }));
            assert_eq!(found, expected, "{words:?}");
        }
        let wrong = selection(&["-E", "test(push) package(x)"]).expect_err("a mistake");
        assert!(wrong.to_string().ends_with("\n  test(push) package(x)\n             ^"), "{wrong}");
        let wrong = selection(&["--", "--shuffle"]).expect_err("a mistake");
        assert!(wrong.to_string().contains("'--shuffle'"), "{wrong}");
    }

    #[test]
    fn names_of_executables() {
        assert_eq!(executable().id(), "queue::loopback");
        assert_eq!(Executable { kind: "lib".into(), ..executable() }.id(), "queue");
        assert_eq!(Executable { kind: "bin".into(), ..executable() }.id(), "queue::bin/loopback");
        assert_eq!(Executable::stem(&executable().path), "queue");
        assert_eq!(Executable::stem("/w/my-tool".as_ref()), "my-tool");
    }
}
