//! Decides when a check must end by its `--time`, and how much longer its close-ups may take.
//!
//! Every phase that runs the program calls [`RunConfig::over`](crate::process::run_config::RunConfig::over).
//! It says whether the user wants to stop or the deadline has passed. A close-up of a failure uses the
//! [extended](Deadline::extended) deadline, so that a failure found in the last moment can still be
//! confirmed.

use std::time::{Duration, Instant};

/// The shortest and the longest time that close-ups may take after the deadline. In between, they may take as
/// long as the search.
const SHORTEST_GRACE: Duration = Duration::from_secs(2);
const LONGEST_GRACE: Duration = Duration::from_secs(10);

/// A point in time after which no new execution begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    grace: Duration,
}

impl Deadline {
    /// The deadline `time` after `from`. `None` if that is too far in the future to represent.
    pub fn after(from: Instant, time: Duration) -> Option<Deadline> {
        let grace = time.clamp(SHORTEST_GRACE, LONGEST_GRACE);
        Some(Deadline { at: from.checked_add(time)?, grace })
    }

    /// The later deadline for close-ups of failures.
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
