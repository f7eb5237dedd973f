//! Runs executions for a debugger. Each waits at its beginning until the debugger has attached and says where
//! to go. When one ends, or is killed because the user goes back, the next one begins.

use crate::error::{Error, Result};
use crate::platform::sys;
use crate::process::slots::{Detail, Job};
use crate::process::zygote::Zygote;
pub use heisen_wire::end;
use heisen_wire::{flag, turn, want};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// How often the debugger is polled.
const LOOK: Duration = Duration::from_millis(10);

/// The constants of the wire that the debugger's script needs, by name.
pub const WANTS: [(&str, u32); 6] = [
    ("switch", want::SWITCH),
    ("preempt", want::PREEMPTION),
    ("end", want::END),
    ("throw", want::THROW),
    ("misuse", want::MISUSE),
    ("step", want::STEP),
];

impl Zygote {
    /// Runs one execution after the other for a debugger, on kernel threads. `began` receives the process id
    /// of each, which waits for the debugger. `over` is called often; when it returns true, everything ends.
    pub fn debug(
        &mut self,
        job: Job<'_>,
        began: &mut dyn FnMut(i32) -> Result<()>,
        over: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        loop {
            self.begin(&[job], Detail::Decisions, flag::KERNEL | flag::DEBUGGER)?;
            let mut told = 0;
            loop {
                if over()? {
                    return Ok(());
                }
                if self.interrupted() {
                    return Err(Error::Interrupted);
                }
                let wire = self.wire();
                let rung = wire.bell.load(SeqCst);
                if wire.turn.load(SeqCst) == turn::ENGINE {
                    if wire.slots[0].status.load(Relaxed) == u32::MAX {
                        return Err(Error::Uncontrolled(
                            "the program could not be forked: too many processes or too little memory".into(),
                        ));
                    }
                    break;
                }
                let pid = wire.child.load(SeqCst) as i32;
                if pid != 0 && pid != told {
                    told = pid;
                    began(pid)?;
                }
                sys::futex_wait(&wire.bell, rung, LOOK);
            }
        }
    }
}
