//! Runs a parked program itself, in system mode, instead of forking executions from it: see `system`.

use super::Zygote;
use crate::platform::sys;
use crate::process::capture::Capture;
use heisen_wire::turn;
use std::process::ExitStatus;
use std::sync::atomic::Ordering::SeqCst;

impl Zygote {
    /// Lets a parked program go on, with its threads in parallel.
    pub(crate) fn let_go(&self) {
        self.wire().turn.store(turn::ZYGOTE, SeqCst);
        sys::futex_wake(&self.wire().turn);
    }

    /// The descriptor of the wire.
    pub(crate) fn descriptor(&self) -> i32 {
        self.mapping.descriptor()
    }

    /// How the program has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks the program to end.
    pub(crate) fn ask_to_end(&self) {
        sys::kill(self.pid(), libc::SIGTERM);
    }

    /// The captured output of the program: all of it once the program has ended, otherwise what there is so
    /// far.
    pub(crate) fn output(&self, ended: bool) -> String {
        let text = if ended { Capture::text } else { Capture::text_so_far };
        self.capture.as_ref().map(text).unwrap_or_default()
    }
}
