//! Renders results as JUnit XML, which most services for continuous integration read.
//!
//! No XML library is used, because the document is simple.

use crate::render::check::screens;
use crate::render::claim::claim;
use crate::render::paint::Paint;
use heisen_engine::check::{Ended, Options, Outcome};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The cases of one executable.
#[derive(Debug)]
pub struct Suite {
    pub name: String,
    pub cases: Vec<Case>,
}

/// A test, or a program.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub time: Duration,
    pub result: CaseResult,
}

#[derive(Debug)]
pub enum CaseResult {
    /// No finding. The text says what was explored.
    Passed(String),
    Failed {
        kind: String,
        message: String,
        text: String,
    },
    Skipped,
    Error(String),
}

impl CaseResult {
    /// The result of a check. With `--strict`, a caveat is a failure.
    pub fn of(options: &Options, outcome: &Outcome, schedules: &[PathBuf], replay: &str) -> CaseResult {
        if let Some(finding) = outcome.findings().next() {
            return CaseResult::Failed {
                kind: finding.kind.name().to_owned(),
                message: finding.message.clone(),
                text: screens(Paint::plain(), outcome, schedules, replay),
            };
        }
        if let Some(error) = &outcome.error {
            return CaseResult::Error(error.to_string());
        }
        if outcome.ended == Ended::Interrupted {
            return CaseResult::Error("interrupted".to_owned());
        }
        let claim = claim(options, outcome);
        if options.strict && outcome.has_caveats() {
            let text = crate::render::caveat::sentences(outcome).join("\n");
            return CaseResult::Failed { kind: "caveat".to_owned(), message: claim, text };
        }
        CaseResult::Passed(claim)
    }
}

/// The document. `name` is the command.
pub fn document(name: &str, suites: &[Suite]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&Case> = suites.iter().flat_map(|suite| &suite.cases).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "<testsuites name=\"{}\" {}>", escaped(name), counts(&all));
    for suite in suites {
        let cases: Vec<&Case> = suite.cases.iter().collect();
        let _ = writeln!(out, "  <testsuite name=\"{}\" {}>", escaped(&suite.name), counts(&cases));
        for case in cases {
            write_case(&mut out, &suite.name, case);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts(cases: &[&Case]) -> String {
    let counted = |which: fn(&CaseResult) -> bool| cases.iter().filter(|case| which(&case.result)).count();
    let time: Duration = cases.iter().map(|case| case.time).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        cases.len(),
        counted(|result| matches!(result, CaseResult::Failed { .. })),
        counted(|result| matches!(result, CaseResult::Error(_))),
        counted(|result| matches!(result, CaseResult::Skipped)),
        time.as_secs_f64()
    )
}

fn write_case(out: &mut String, class: &str, case: &Case) {
    let _ = write!(
        out,
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3}\"",
        escaped(&case.name),
        escaped(class),
        case.time.as_secs_f64()
    );
    let inner = match &case.result {
        CaseResult::Passed(text) if text.is_empty() => String::new(),
        CaseResult::Passed(text) => format!("<system-out>{}</system-out>", escaped(text)),
        CaseResult::Failed { kind, message, text } => format!(
            "<failure type=\"{}\" message=\"{}\">{}</failure>",
            escaped(kind),
            escaped(message),
            escaped(text.trim_end())
        ),
        CaseResult::Skipped => "<skipped/>".to_owned(),
        CaseResult::Error(message) => format!("<error message=\"{}\"/>", escaped(message)),
    };
    let _ = match inner.is_empty() {
        false => writeln!(out, ">\n      {inner}\n    </testcase>"),
        true => writeln!(out, "/>"),
    };
}

/// Text, escaped for an element or an attribute. A character that XML cannot represent, even escaped, becomes
/// U+FFFD, the replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Unescaped, these characters would become spaces in an attribute.
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            c if c < ' ' || c == '\u{fffe}' || c == '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::NASTY;

    fn case(name: &str, result: CaseResult) -> Case {
        Case { name: name.to_owned(), time: Duration::from_millis(1_500), result }
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a < b && c > \"d\""), "a &lt; b &amp;&amp; c &gt; &quot;d&quot;");
        assert_eq!(escaped("\x1b[1m\0é\n"), "\u{fffd}[1m\u{fffd}é&#10;");
    }

    #[test]
    fn all_results() {
        let cases = vec![
            case("a", CaseResult::Skipped),
            case("b<T>", CaseResult::Error("it \"hangs\"".to_owned())),
            case("c", CaseResult::Passed("all schedules".to_owned())),
        ];
        let suites = [
            Suite { name: "queue".to_owned(), cases },
            Suite {
                name: "queue::net".to_owned(),
                cases: vec![case("d", CaseResult::Passed(String::new()))],
            },
        ];
        assert_eq!(
            document("cargo heisen", &suites),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"cargo heisen\" tests=\"4\" failures=\"0\" errors=\"1\" skipped=\"1\" time=\"6.000\">\n  \
             <testsuite name=\"queue\" tests=\"3\" failures=\"0\" errors=\"1\" skipped=\"1\" time=\"4.500\">\n    \
             <testcase name=\"a\" classname=\"queue\" time=\"1.500\">\n      <skipped/>\n    </testcase>\n    \
             <testcase name=\"b&lt;T&gt;\" classname=\"queue\" time=\"1.500\">\n      \
             <error message=\"it &quot;hangs&quot;\"/>\n    </testcase>\n    \
             <testcase name=\"c\" classname=\"queue\" time=\"1.500\">\n      \
             <system-out>all schedules</system-out>\n    </testcase>\n  </testsuite>\n  \
             <testsuite name=\"queue::net\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"1.500\">\n    \
             <testcase name=\"d\" classname=\"queue::net\" time=\"1.500\"/>\n  \
             </testsuite>\n</testsuites>\n"
        );
    }

    #[test]
    fn names_never_become_markup() {
        let nasty = || NASTY.to_owned();
        let failed = CaseResult::Failed { kind: nasty(), message: nasty(), text: nasty() };
        let cases = vec![
            case(NASTY, failed),
            case(NASTY, CaseResult::Error(nasty())),
            case("p", CaseResult::Passed(nasty())),
        ];
        let text = document(NASTY, &[Suite { name: nasty(), cases }]);
        let xml = roxmltree::Document::parse(&text).expect("XML");
        let shown: String =
            NASTY.chars().map(|c| if c < ' ' && !"\r\n".contains(c) { '\u{fffd}' } else { c }).collect();
        let failure = xml.descendants().find(|node| node.has_tag_name("failure")).expect("a failure");
        assert_eq!(
            (failure.attribute("message"), failure.text()),
            (Some(shown.as_str()), Some(shown.as_str()))
        );
        assert_eq!(xml.descendants().filter(|node| node.is_element()).count(), 8);
    }
}
