//! The exit codes. `--help` and `docs/reference/exit-codes.md` document them. Their meaning never changes.

use heisen_engine::Error;

pub const CLEAN: u8 = 0;
pub const FOUND: u8 = 1;
pub const INPUT: u8 = 2;
pub const UNCONTROLLED: u8 = 3;
pub const DIVERGED: u8 = 4;
pub const INTERNAL: u8 = 5;
pub const CAVEAT: u8 = 6;
pub const INTERRUPTED: u8 = 130;

/// The table of exit codes in help texts.
pub const TABLE: &str = "\
Exit codes:
  0    nothing found
  1    found: a bug, or for replay the same bug again
  2    usage or bad input
  3    the program could not be controlled
  4    replay diverged: the schedule could not be followed, or led elsewhere; or no schedule follows a script
  5    internal error
  6    with --strict: nothing found, but the verdict has a caveat or the search is incomplete
  130  interrupted (the search is saved; the message says how to continue)";

/// The exit code for an error.
pub fn of(error: &Error) -> u8 {
    match error {
        Error::Input(_) => INPUT,
        Error::Uncontrolled(_) => UNCONTROLLED,
        Error::Internal(_) => INTERNAL,
        Error::Interrupted => INTERRUPTED,
        Error::TimeOver => UNCONTROLLED,
    }
}
