//! Thread expressions: single threads and sets of threads.

use super::session::ask;
use super::{listed, quoted};
use std::fmt::{self, Display};
use std::ops::{Add, Sub};

/// A thread of the program, as the commands return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread(pub(super) usize);

impl Thread {
    /// The number of the thread: 1 for `T1`.
    pub fn number(self) -> usize {
        self.0
    }

    /// Returns whether the thread has ended.
    #[track_caller]
    pub fn has_ended(self) -> bool {
        ask(format!("{}.has_ended", self.text())).bool()
    }

    /// Returns whether the thread is held inside a function. False when it is about to return.
    #[track_caller]
    pub fn in_func(self, function: &str) -> bool {
        self.in_func_times(function, 1)
    }

    /// Returns whether the thread is held inside a function, at least `times` calls deep in its recursion.
    #[track_caller]
    pub fn in_func_times(self, function: &str, times: usize) -> bool {
        ask(format!("{}.in_func({}, {times})", self.text(), quoted(function))).bool()
    }

    pub(super) fn text(self) -> String {
        format!("t({})", self.0)
    }
}

impl Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// A set of threads: `[a, b]`, `a + b`, `any() - a`.
#[derive(Clone, Debug)]
pub struct Threads(pub(super) String);

/// All threads, also future ones.
pub fn any() -> Threads {
    Threads("any".to_owned())
}

impl From<&[Thread]> for Threads {
    fn from(threads: &[Thread]) -> Threads {
        Threads(format!("threads({})", listed(threads.iter().map(|thread| thread.0.to_string()))))
    }
}

impl From<Thread> for Threads {
    fn from(thread: Thread) -> Threads {
        [thread].as_slice().into()
    }
}

impl<const N: usize> From<[Thread; N]> for Threads {
    fn from(threads: [Thread; N]) -> Threads {
        threads.as_slice().into()
    }
}

impl<const N: usize> From<&[Thread; N]> for Threads {
    fn from(threads: &[Thread; N]) -> Threads {
        threads.as_slice().into()
    }
}

impl From<&Vec<Thread>> for Threads {
    fn from(threads: &Vec<Thread>) -> Threads {
        threads.as_slice().into()
    }
}

impl From<Vec<Thread>> for Threads {
    fn from(threads: Vec<Thread>) -> Threads {
        threads.as_slice().into()
    }
}

impl From<&Threads> for Threads {
    fn from(threads: &Threads) -> Threads {
        threads.clone()
    }
}

impl<T: Into<Threads>> Add<T> for Threads {
    type Output = Threads;
    fn add(self, others: T) -> Threads {
        Threads(format!("({} + {})", self.0, others.into().0))
    }
}

impl<T: Into<Threads>> Sub<T> for Threads {
    type Output = Threads;
    fn sub(self, others: T) -> Threads {
        Threads(format!("({} - {})", self.0, others.into().0))
    }
}

impl<T: Into<Threads>> Add<T> for Thread {
    type Output = Threads;
    fn add(self, others: T) -> Threads {
        Threads::from(self) + others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let (a, b) = (Thread(1), Thread(2));
        assert_eq!((any() - a + b).0, "((any - threads([1])) + threads([2]))");
        assert_eq!((a + b).0, "(threads([1]) + threads([2]))");
        assert_eq!((any() - [a, b]).0, "(any - threads([1, 2]))");
        assert_eq!(Threads::from(vec![a]).0, Threads::from(&[a]).0);
        assert_eq!(a.to_string(), "T1");
    }
}
