//! Reads suppressions: known races that are not to be reported. The format is ThreadSanitizer's, so that a
//! project can use its existing file. There are three kinds of lines:
//!
//! - `race:PATTERN` matches if any frame of either stack, or the name of the memory, matches.
//! - `race_top:PATTERN` matches if the innermost frame matches.
//! - `called_from_lib:PATTERN` matches if the library of a frame matches.
//!
//! A pattern may match anywhere in the name of a function, a source file or a module. `^` ties it to the
//! beginning and `$` to the end; `*` stands for any characters.

use crate::error::{Error, Result};
use crate::platform::glob::glob;
use heisen_trace::{Frame, Race};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Race,
    RaceTop,
    CalledFromLib,
}

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    kind: Kind,
    pattern: String,
    /// `file:line: text`, for messages.
    shown: String,
}

/// The suppressions of a check.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Suppressions(Vec<Line>);

impl Suppressions {
    /// Reads a suppressions file.
    pub fn read(path: &Path) -> Result<Suppressions> {
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::Input(format!("{shown}: not found; name a suppressions file"))
            }
            std::io::ErrorKind::IsADirectory => {
                Error::Input(format!("{shown} is a directory, not a suppressions file; name a file in it"))
            }
            _ => Error::Input(format!("{shown}: {e}")),
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::Input(format!("{shown} is not a suppressions file: it is not text")))?;
        Suppressions::parse(&text, &shown.to_string())
    }

    fn parse(text: &str, shown: &str) -> Result<Suppressions> {
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let shown = format!("{shown}:{}: {line}", number + 1);
            let (kind, pattern) = line.split_once(':').unwrap_or((line, ""));
            let kind = match kind {
                "race" => Kind::Race,
                "race_top" => Kind::RaceTop,
                "called_from_lib" => Kind::CalledFromLib,
                // Lines for ThreadSanitizer's other reports have no meaning here.
                "thread" | "mutex" | "signal" | "deadlock" if line.contains(':') => continue,
                _ => {
                    return Err(Error::Input(format!(
                        "{shown}: not a suppression; write race:PATTERN, race_top:PATTERN or called_from_lib:PATTERN"
                    )));
                }
            };
            if pattern.is_empty() {
                return Err(Error::Input(format!(
                    "{shown}: a suppression without a pattern; write one after the colon"
                )));
            }
            lines.push(Line { kind, pattern: pattern.to_owned(), shown });
        }
        Ok(Suppressions(lines))
    }

    /// The number of the first line that matches a race.
    pub fn fits(&self, race: &Race) -> Option<usize> {
        self.0.iter().position(|line| line.fits(race))
    }

    /// The lines whose numbers do not satisfy `numbers`, as shown to the user.
    pub fn others(&self, numbers: impl Fn(usize) -> bool) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .enumerate()
            .filter(move |(number, _)| !numbers(*number))
            .map(|(_, line)| line.shown.as_str())
    }
}

impl Line {
    fn fits(&self, race: &Race) -> bool {
        let stacks = [&race.first.stack, &race.second.stack];
        let is = |text: &str| is_in(&self.pattern, text);
        let frame = |f: &Frame| is(&f.function) || f.file.as_deref().is_some_and(is) || is(&f.module);
        match self.kind {
            Kind::Race => is(&race.object) || stacks.iter().any(|stack| stack.0.iter().any(frame)),
            Kind::RaceTop => stacks.iter().any(|stack| stack.0.first().is_some_and(frame)),
            Kind::CalledFromLib => stacks.iter().any(|stack| stack.0.iter().any(|f| is(&f.module))),
        }
    }
}

/// Whether a pattern matches a text.
fn is_in(pattern: &str, text: &str) -> bool {
    let (begin, pattern) = match pattern.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => ("*", pattern),
    };
    let (pattern, end) = match pattern.strip_suffix('$') {
        Some(rest) => (rest, ""),
        None => (pattern, "*"),
    };
    !text.is_empty() && glob(format!("{begin}{pattern}{end}").as_bytes(), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::race::Access;
    use heisen_trace::{Stack, ThreadId};

    fn race() -> Race {
        let frame = |function: &str, file: &str, module: &str| Frame {
            function: function.into(),
            file: Some(file.into()),
            line: Some(1),
            own: true,
            dependency: false,
            module: module.into(),
        };
        let access = |stack| Access {
            thread: ThreadId(1),
            write: true,
            atomic: false,
            size: 4,
            holds: Vec::new(),
            stack: Stack(stack),
        };
        Race {
            first: access(vec![frame("push", "src/queue.c", "prog"), frame("run", "src/main.c", "prog")]),
            second: access(vec![frame("std::pop", "src/queue.c", "libqueue.so.1")]),
            object: "queue.head".into(),
            executions: 0,
        }
    }

    #[track_caller]
    fn fits(text: &str, expected: bool) {
        let suppressions = Suppressions::parse(text, "s").expect("a suppressions file");
        assert_eq!(suppressions.fits(&race()).is_some(), expected, "{text}");
    }

    #[test]
    fn patterns_fit_anywhere_unless_anchored() {
        for text in
            ["race:push", "race:us", "race:^push$", "race:queue.c", "race:queue.head", "race:^std::*p$"]
        {
            fits(text, true);
        }
        for text in ["race:^us", "race:pus$", "race:pull", "race:^queue.c", "race:queue.hea$"] {
            fits(text, false);
        }
        fits("race:libqueue", true);
        fits("race_top:push", true);
        fits("race_top:run", false);
        fits("race_top:queue.head", false);
        fits("called_from_lib:libqueue.so", true);
        fits("called_from_lib:push", false);
        fits("  race:run  \n", true);
        fits("# race:run\n\nthread:x\ndeadlock:y\nmutex:z\nsignal:w\n", false);
    }

    #[test]
    fn what_is_no_suppression_is_refused_with_its_line() {
        for (text, words) in [
            ("race:a\nrase:b", "s:2: rase:b: not a suppression"),
            ("race", "s:1: race: a suppression without a pattern"),
            ("\n\nrace:", "s:3: race:: a suppression without a pattern"),
            ("hello world", "s:1: hello world: not a suppression"),
            ("thread", "s:1: thread: not a suppression"),
        ] {
            let error = Suppressions::parse(text, "s").expect_err(text).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn lines_that_fit_nothing_are_known() {
        let suppressions = Suppressions::parse("race:push\nrace:pull\n", "s").expect("a suppressions file");
        let fit = suppressions.fits(&race());
        assert_eq!(fit, Some(0));
        assert_eq!(suppressions.others(|n| Some(n) == fit).collect::<Vec<_>>(), ["s:2: race:pull"]);
    }
}
