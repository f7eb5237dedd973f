//! Measures what a program without steps does: whether it computes, and for how much processor time, or
//! blocks.
//!
//! Wall-clock time says little on a busy machine, where a ready program may not run for seconds.

use super::running;
use crate::platform::sys;
use std::time::{Duration, Instant};

/// The processor time that a process has used since the program's last step.
#[derive(Debug)]
pub(super) struct Effort {
    pid: i32,
    /// Processor time at the last step, and now.
    before: Duration,
    now: Duration,
    /// When the process was last seen to use processor time.
    busy: Instant,
}

/// Why a program takes no steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// It computes.
    Computes,
    /// It waits in the kernel.
    Blocks,
}

impl Effort {
    pub(super) fn new() -> Effort {
        Effort { pid: 0, before: Duration::ZERO, now: Duration::ZERO, busy: Instant::now() }
    }

    /// Records that the program has taken a step.
    pub(super) fn moved(&mut self, pid: i32) {
        let now = sys::processor_time(pid).unwrap_or_default();
        *self = Effort { pid, before: now, now, busy: Instant::now() };
    }

    /// Records that the program has taken no step. If this has lasted longer than `limit`, returns why.
    pub(super) fn exceeds(&mut self, pid: i32, limit: Duration) -> Option<Idle> {
        if pid != self.pid {
            self.moved(pid);
        }
        let now = sys::processor_time(pid).unwrap_or(self.now);
        if now > self.now {
            self.now = now;
            self.busy = Instant::now();
        }
        if self.now.saturating_sub(self.before) > limit {
            return Some(Idle::Computes);
        }
        // A thread that is ready but does not get a processor is not blocked.
        (self.busy.elapsed() > limit && running(pid).is_none()).then_some(Idle::Blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Runs a process until a verdict. Returns it with the processor time used by then.
    fn watch(program: &str, args: &[&str], limit: Duration) -> (Idle, Duration) {
        let mut child = Command::new(program).args(args).stdout(Stdio::null()).spawn().expect("it starts");
        let pid = child.id() as i32;
        let mut effort = Effort::new();
        let found = loop {
            if let Some(found) = effort.exceeds(pid, limit) {
                break found;
            }
            std::thread::sleep(Duration::from_millis(4));
        };
        let time = sys::processor_time(pid).expect("it still runs");
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        (found, time)
    }

    #[test]
    fn processor_time_counts() {
        let limit = Duration::from_millis(200);
        let (found, time) = watch("sh", &["-c", "while :; do :; done"], limit);
        assert_eq!(found, Idle::Computes);
        assert!(time > limit, "{time:?}");
        let (found, time) = watch("sleep", &["100"], limit);
        assert_eq!(found, Idle::Blocks);
        assert!(time < limit, "{time:?}");
    }
}
