//! When a check must end by its `--time`, and how long its results may take after that.
//!
//! Every phase that runs the program asks one question, [`RunConfig::over`](crate::process::run_config::RunConfig::over): whether the user
//! wants to stop, or the deadline has passed. A close look at a failure asks it with the [extended](Deadline::extended)
//! deadline, so that a failure found in the last moment can still be confirmed.

use std::time::{Duration, Instant};

/// The shortest and the longest time that a close look may take after the deadline. In between, it may take as long as the
/// search.
const SHORTEST_GRACE: Duration = Duration::from_secs(2);
const LONGEST_GRACE: Duration = Duration::from_secs(10);

/// A moment after which nothing more is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    grace: Duration,
}

impl Deadline {
    /// So long after a moment. None if that is too far away to matter.
    pub fn after(from: Instant, time: Duration) -> Option<Deadline> {
        let grace = time.clamp(SHORTEST_GRACE, LONGEST_GRACE);
        Some(Deadline { at: from.checked_add(time)?, grace })
    }

    /// The deadline of close looks at what was found.
    pub fn extended(self) -> Deadline {
        Deadline { at: self.at + self.grace, grace: Duration::ZERO }
    }

    /// Whether it has passed.
    pub fn has_passed(self) -> bool {
        self.at <= Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_look_may_take_as_long_as_the_search_within_bounds() {
        let now = Instant::now();
        let extended = |seconds| {
            let deadline = Deadline::after(now, Duration::from_secs(seconds)).expect("a deadline");
            (deadline.extended().at - now).as_secs()
        };
        assert_eq!([0, 1, 5, 60].map(extended), [2, 3, 10, 70]);
        let once = Deadline::after(now, Duration::from_secs(5)).expect("a deadline").extended();
        assert_eq!(once.extended(), once, "an extended deadline is not extended again");
    }

    #[test]
    fn a_time_beyond_all_clocks_is_no_deadline() {
        assert_eq!(Deadline::after(Instant::now(), Duration::MAX), None);
    }

    #[test]
    fn it_passes() {
        let past = Instant::now().checked_sub(Duration::from_secs(1)).expect("a second ago");
        assert!(Deadline::after(past, Duration::ZERO).expect("a deadline").has_passed());
        let far = Duration::from_secs(3600);
        assert!(!Deadline::after(past, far).expect("a deadline").has_passed());
    }
}
