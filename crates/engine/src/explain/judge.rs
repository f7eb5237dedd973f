//! Judges executions: decides whether the end of one is a bug, and describes it.

use crate::process::exit_status::{describe_status, signal_name};
use crate::process::slots::Run;
use crate::process::system::{BadEnd, System};
use heisen_trace::{End, FindingKind, Note};
use heisen_wire::{end, misuse};
use std::os::unix::process::ExitStatusExt;

/// A bug, as far as the end of an execution shows it without a close-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind of bug.
    pub kind: FindingKind,
    /// The bug in one sentence.
    pub message: String,
    /// Executions with equal keys most likely have the same bug; the close-up decides.
    pub key: String,
}

impl Verdict {
    /// Whether the execution would have gone on for ever.
    pub fn is_endless(&self) -> bool {
        matches!(self.kind, FindingKind::Livelock | FindingKind::GoodSamaritan)
    }
}

/// The exit status of a Rust program that panicked.
const PANIC_STATUS: i32 = 101;

/// Whether a process of a system ended in an unexpected way. `expected` is the correct exit status.
pub fn judge_system(system: &mut System, expected: i32) -> Option<Verdict> {
    let BadEnd { program, status, output } = system.bad_end(expected)?;
    let Some(status) = status else {
        let message = format!("{program} has ended while the script was at work");
        return Some(Verdict { kind: FindingKind::Crash, key: message.clone(), message });
    };
    let said = output.trim_end().lines().last().map_or(String::new(), |line| format!("; it said: {line}"));
    let (kind, how) = match status.signal() {
        Some(signal) => (FindingKind::Crash, format!("was killed by {}", signal_name(signal))),
        None => (FindingKind::ExitStatus, format!("ended with {}, not {expected}", describe_status(status))),
    };
    let key = format!("{kind} {program} {how}");
    Some(Verdict { kind, message: format!("{program} {how}{said}"), key })
}

/// Whether the execution failed. `expected` is the correct exit status.
pub fn judge(run: &Run, expected: i32) -> Option<Verdict> {
    let tail = &run.tail;
    let verdict = |kind: FindingKind, message: String| {
        let key = format!("{kind} {message} {:x} {}", tail.pc, tail.thread);
        Some(Verdict { kind, message, key })
    };
    if let Some((what @ misuse::HEAP..=misuse::HEAP_LAST, thread, pc, _)) = tail.misuse {
        let (kind, message) = memory_error(what);
        let key = format!("{kind} {what} {thread} {pc:x}");
        return Some(Verdict { kind, message: message.to_owned(), key });
    }
    match run.execution.end {
        End::Deadlock => verdict(FindingKind::Deadlock, "no thread can go on".into()),
        End::StepLimit if tail.code < 0 => verdict(
            FindingKind::Livelock,
            "every thread that can run waits in a loop for memory that nobody changes".into(),
        ),
        // The runtime reports a thread that never yielded while others could run; see `runtime::sched::fair`.
        End::StepLimit if tail.code > 0 => verdict(
            FindingKind::GoodSamaritan,
            format!(
                "T{} spins without yielding while others could run: the program did not end within {} steps of a fair \
                 schedule",
                tail.code - 1,
                run.execution.steps
            ),
        ),
        End::StepLimit => verdict(
            FindingKind::Livelock,
            format!("the program did not end within {} steps of a fair schedule", run.execution.steps),
        ),
        End::Stuck => None,
        End::Signal(libc::SIGABRT) if tail.end == end::ASSERT => {
            let expression = tail.texts.first().map_or("", String::as_str);
            verdict(FindingKind::Assertion, format!("assertion `{expression}` failed"))
        }
        End::Signal(libc::SIGABRT) if tail.panic.is_some() => {
            verdict(FindingKind::Panic, "a thread panicked and the process aborted".into())
        }
        End::Signal(signal) => {
            verdict(FindingKind::Crash, format!("the program was killed by {}", signal_name(signal)))
        }
        End::Exit(PANIC_STATUS) if expected != PANIC_STATUS && tail.panic.is_some() => {
            verdict(FindingKind::Panic, "a thread panicked".into())
        }
        End::Exit(code) if code != expected && !run.execution.notes.contains(&Note::Assumed) => verdict(
            FindingKind::ExitStatus,
            format!("the program ended with exit status {code}, not {expected}"),
        ),
        End::Exit(_) if tail.misuse.is_none() => {
            let message = tail.after.clone()?;
            let key = format!("after {message}");
            Some(Verdict { kind: FindingKind::ExitStatus, message, key })
        }
        End::Exit(_) => {
            let (what, thread, pc, _) = tail.misuse?;
            let message = misuse_text(what).to_owned();
            let key = format!("misuse {what} {thread} {pc:x}");
            Some(Verdict { kind: FindingKind::Misuse, message, key })
        }
    }
}

/// Whether the execution reached the step limit. A close-up decides whether it is a livelock or only long.
pub fn is_too_long(run: &Run) -> bool {
    run.execution.end == End::StepLimit && run.tail.code >= 0
}

/// The kind of a heap error, and a message that does not need the block.
fn memory_error(what: u32) -> (FindingKind, &'static str) {
    match what {
        misuse::USE_AFTER_FREE_READ => (FindingKind::UseAfterFree, "memory was read after it was freed"),
        misuse::USE_AFTER_FREE_WRITE => (FindingKind::UseAfterFree, "memory was written after it was freed"),
        misuse::REALLOC_FREED => (FindingKind::UseAfterFree, "realloc was called with memory that was freed"),
        misuse::DOUBLE_FREE => (FindingKind::DoubleFree, "memory was freed that was freed before"),
        misuse::INVALID_FREE => (FindingKind::InvalidFree, "an address was freed that was never allocated"),
        misuse::HEAP_OVERFLOW_READ => (FindingKind::HeapOverflow, "memory beside a block was read"),
        misuse::HEAP_TRAMPLED => {
            (FindingKind::HeapOverflow, "when a block was freed, memory beside it had been overwritten")
        }
        misuse::LEAK => (FindingKind::Leak, "memory was unreachable at the end"),
        _ => (FindingKind::HeapOverflow, "memory beside a block was written"),
    }
}

fn misuse_text(what: u32) -> &'static str {
    match what {
        misuse::UNLOCK_NOT_OWNER => "a lock was unlocked by a thread that does not hold it",
        misuse::UNLOCK_FREE => "a lock was unlocked that nobody holds",
        misuse::DESTROY_HELD => "a lock was destroyed while a thread holds it",
        misuse::DESTROY_WAITED => "a synchronisation object was destroyed while a thread waits on it",
        misuse::DOUBLE_JOIN => "a thread was joined twice, or joined though it is detached",
        misuse::WAIT_UNLOCKED => {
            "a condition variable was waited on with a mutex that the caller does not hold"
        }
        misuse::DOUBLE_DETACH => "a thread was detached twice, or detached though it is joined",
        misuse::USE_DESTROYED => "a synchronisation object was used after it was destroyed",
        misuse::NOT_INITIALISED => "a barrier was used that is not initialised",
        misuse::INIT_WAITED => "a synchronisation object was initialised while a thread waits on it",
        misuse::INIT_TWICE => "a barrier was initialised that is initialised already",
        misuse::ALLOCATION_SIZE => {
            "more memory was asked for than PTRDIFF_MAX bytes: the size may be a negative number"
        }
        misuse::ALIGNMENT => "memory was asked for with an alignment that is not a power of two",
        misuse::INPUT_SIZE => "an input of more than 512 KiB was asked for",
        misuse::DEAD_STACK => {
            "memory of another thread's stack was used after its function had returned, or the thread had ended"
        }
        misuse::NO_PREEMPT_END => "heisen_no_preempt_end was called without a heisen_no_preempt_begin",
        misuse::ATOMIC_END => "heisen_atomic_end was called without a heisen_atomic_begin",
        _ => "a synchronisation object was misused",
    }
}
