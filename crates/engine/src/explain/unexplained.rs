//! Says why an execution has no explanation, and compares the calls of an execution that has too many accesses.

use crate::error::Result;
use crate::explain::close_up::Recorder;
use crate::explain::compare::comparison;
use crate::explain::difference::{MAX_EVENTS, flow};
use crate::explain::neighbourhood::{Effort, Runner, neighbourhood};
use crate::process::slots::{Detail, Job};
use heisen_trace::explanation::Explanation;
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
    let Some(failure) = failing.verdict.clone().filter(|_| failing.trace.len() <= MAX_EVENTS) else {
        return Ok(None);
    };
    let target = (recorder.runtime, recorder.program, recorder.config);
    let mut runner = Runner::start(target, recorder.expect_exit)?;
    let near = neighbourhood(&mut runner, plan, (&failure, None), Effort::SHORT, Detail::Touches)?;
    for twin in near.map_or_else(Vec::new, |near| near.twins) {
        let passing = recorder.record_with(&mut symbols, Job::Plan(&twin), None, None)?;
        if passing.verdict.is_some() || passing.trace.len() > MAX_EVENTS {
            continue;
        }
        let compared = comparison(&flow(&failing), &flow(&passing));
        let ([failing, passing], [reduction, _]) = (compared.executions, compared.reductions);
        let common = compared.common;
        return Ok(Some(Explanation { reduction, failing, passing, common, ..Explanation::default() }));
    }
    Ok(None)
}
