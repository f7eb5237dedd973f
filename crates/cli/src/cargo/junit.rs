//! Renders the results as JUnit XML, which most services for continuous integration read.
//!
//! There is a suite for each executable and a case for each test. No XML library is used, because the
//! document is simple.

use super::line::details;
use super::result::{Tested, Verdict};
use crate::cli::args::Color;
use crate::render::paint::Paint;
use std::fmt::Write;
use std::time::Duration;

/// The document.
pub fn document(all: &[Tested]) -> String {
    let mut suites: Vec<(&str, Vec<&Tested>)> = Vec::new();
    for tested in all {
        match suites.last_mut() {
            Some((binary, tests)) if *binary == tested.binary => tests.push(tested),
            _ => suites.push((&tested.binary, vec![tested])),
        }
    }
    let everything: Vec<&Tested> = all.iter().collect();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(out, "<testsuites name=\"cargo heisen\" {}>", counts(&everything));
    for (binary, tests) in suites {
        let _ = writeln!(out, "  <testsuite name=\"{}\" {}>", escaped(binary), counts(&tests));
        for tested in tests {
            case(&mut out, tested);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts(tests: &[&Tested]) -> String {
    let counted = |which: fn(&&&Tested) -> bool| tests.iter().filter(which).count();
    let time: Duration = tests.iter().map(|tested| tested.time).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        tests.len(),
        counted(|tested| tested.failed()),
        counted(|tested| matches!(tested.verdict, Verdict::Error(_) | Verdict::Interrupted(_))),
        counted(|tested| matches!(tested.verdict, Verdict::Ignored)),
        time.as_secs_f64()
    )
}

fn case(out: &mut String, tested: &Tested) {
    let _ = write!(
        out,
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3}\"",
        escaped(&tested.name),
        escaped(&tested.binary),
        tested.time.as_secs_f64()
    );
    let inner = match &tested.verdict {
        Verdict::Explored(explored, _) => explored.outcome.findings().next().map(|finding| {
            let text = details(Paint::new(Color::Never), tested).unwrap_or_default();
            format!(
                "<failure type=\"{}\" message=\"{}\">{}</failure>",
                finding.kind,
                escaped(&finding.message),
                escaped(text.trim_end())
            )
        }),
        Verdict::Ignored => Some("<skipped/>".to_owned()),
        Verdict::Interrupted(_) => Some("<error message=\"interrupted\"/>".to_owned()),
        Verdict::Error(error) => Some(format!("<error message=\"{}\"/>", escaped(&error.to_string()))),
    };
    let _ = match inner {
        Some(inner) => writeln!(out, ">\n      {inner}\n    </testcase>"),
        None => writeln!(out, "/>"),
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
    use heisen_engine::Error;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a < b && c > \"d\""), "a &lt; b &amp;&amp; c &gt; &quot;d&quot;");
        assert_eq!(escaped("\x1b[1m\0é\n"), "\u{fffd}[1m\u{fffd}é&#10;");
    }

    #[test]
    fn a_suite_for_each_executable() {
        let tested = |binary: &str, name: &str, verdict| Tested {
            package: "queue".into(),
            binary: binary.into(),
            name: name.into(),
            time: Duration::from_millis(1_500),
            verdict,
        };
        let all = [
            tested("queue", "a", Verdict::Ignored),
            tested("queue", "b<T>", Verdict::Error(Error::Uncontrolled("it \"hangs\"".into()))),
            tested("queue::net", "c", Verdict::Ignored),
        ];
        assert_eq!(
            document(&all),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"cargo heisen\" tests=\"3\" failures=\"0\" errors=\"1\" skipped=\"2\" time=\"4.500\">\n  \
             <testsuite name=\"queue\" tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"1\" time=\"3.000\">\n    \
             <testcase name=\"a\" classname=\"queue\" time=\"1.500\">\n      <skipped/>\n    </testcase>\n    \
             <testcase name=\"b&lt;T&gt;\" classname=\"queue\" time=\"1.500\">\n      \
             <error message=\"it &quot;hangs&quot;\"/>\n    </testcase>\n  </testsuite>\n  \
             <testsuite name=\"queue::net\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\" time=\"1.500\">\n    \
             <testcase name=\"c\" classname=\"queue::net\" time=\"1.500\">\n      <skipped/>\n    </testcase>\n  \
             </testsuite>\n</testsuites>\n"
        );
    }
}
