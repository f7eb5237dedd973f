//! Renders the results as JUnit XML: a suite for each executable, and a case for each test.

use super::line::REPLAY;
use super::result::{Tested, Verdict};
use crate::render::junit::{self, Case, CaseResult, Suite};
use crate::render::place::from_here;
use std::path::PathBuf;

/// The document.
pub fn document(all: &[Tested]) -> String {
    let mut suites: Vec<Suite> = Vec::new();
    for tested in all {
        let case = Case { name: tested.name.clone(), time: tested.time, result: result(&tested.verdict) };
        match suites.last_mut() {
            Some(suite) if suite.name == tested.binary => suite.cases.push(case),
            _ => suites.push(Suite { name: tested.binary.clone(), cases: vec![case] }),
        }
    }
    junit::document("cargo heisen", &suites)
}

fn result(verdict: &Verdict) -> CaseResult {
    match verdict {
        Verdict::Explored(explored, schedules) => {
            let schedules: Vec<PathBuf> = schedules.iter().map(|path| from_here(path)).collect();
            CaseResult::of(&explored.options, &explored.outcome, &schedules, REPLAY)
        }
        Verdict::Ignored => CaseResult::Skipped,
        Verdict::Interrupted(_) => CaseResult::Error("interrupted".to_owned()),
        Verdict::Error(error) => CaseResult::Error(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_engine::Error;
    use std::time::Duration;

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
        let text = document(&all);
        let suites = "<testsuites name=\"cargo heisen\" tests=\"3\" failures=\"0\" errors=\"1\" skipped=\"2\" time=\"4.500\">";
        let queue =
            "<testsuite name=\"queue\" tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"1\" time=\"3.000\">";
        let net = "<testcase name=\"c\" classname=\"queue::net\" time=\"1.500\">";
        for part in [suites, queue, net] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
}
