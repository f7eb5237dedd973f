//! Says why an execution has no explanation, and compares the calls of an execution that has too many accesses.

use crate::error::Result;
use crate::explain::close_up::Recorder;
use crate::explain::compare::comparison;
use crate::explain::difference::{MAX_EVENTS, flow};
use crate::explain::twin::twins;
use crate::process::slots::Job;
use heisen_trace::explanation::{BugClass, Explanation};
use heisen_trace::{Finding, Plan};

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unexplained {
    /// The execution has more than [`MAX_EVENTS`] events. Without the accesses of memory, it may still be compared.
    TooLong(Option<Box<Explanation>>),
    /// The execution failed in another way when it was recorded again.
    Unsteady,
    /// No execution nearby passes.
    Alone,
}

/// Why the execution of this plan has no explanation.
pub fn reason(recorder: &Recorder<'_>, plan: &Plan, finding: &Finding) -> Result<Unexplained> {
    let accesses = Recorder { trace: true, accesses: true, ..*recorder };
    let failing = accesses.record(Job::Plan(plan))?;
    Ok(if failing.signature() != finding.signature {
        Unexplained::Unsteady
    } else if failing.trace.len() > MAX_EVENTS {
        drop(failing);
        Unexplained::TooLong(calls(recorder, plan)?.map(Box::new))
    } else {
        Unexplained::Alone
    })
}

/// Compares the calls of the execution with those of the nearest one that passes.
fn calls(recorder: &Recorder<'_>, plan: &Plan) -> Result<Option<Explanation>> {
    let recorder = Recorder { trace: true, accesses: false, ..*recorder };
    let mut symbols = recorder.symbols();
    let failing = recorder.record_with(&mut symbols, Job::Plan(plan), None, None)?;
    if failing.trace.len() > MAX_EVENTS {
        return Ok(None);
    }
    let target = (recorder.runtime, recorder.program, recorder.config);
    for twin in twins(target, recorder.expect_exit, plan)? {
        let passing = recorder.record_with(&mut symbols, Job::Plan(&twin), None, None)?;
        if passing.verdict.is_some() || passing.trace.len() > MAX_EVENTS {
            continue;
        }
        let compared = comparison(&flow(&failing), &flow(&passing));
        let ([failing, passing], [reduction, _]) = (compared.executions, compared.reductions);
        return Ok(Some(Explanation {
            class: BugClass::Unclassified,
            object: String::new(),
            story: Vec::new(),
            orderings: Vec::new(),
            remedies: Vec::new(),
            reduction,
            failing,
            passing,
            common: compared.common,
        }));
    }
    Ok(None)
}
