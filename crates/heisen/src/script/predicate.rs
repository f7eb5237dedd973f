//! Predicates, which are sets of events, stored as text of the script language.

use super::quoted;
use std::ops::{BitAnd, BitOr, Not, RangeFull};

/// A set of events. Predicates combine: `p & q`, `p | q`, `!p`.
///
/// ```
/// # use heisen::script::*;
/// let write = writes("total") & in_func("add");
/// let pause = at_control(..) | ends() | !in_func("add") & calls(..);
/// let either = &write | &pause;
/// ```
#[derive(Clone, Debug)]
pub struct Predicate(pub(super) String);

impl From<&Predicate> for Predicate {
    fn from(predicate: &Predicate) -> Predicate {
        predicate.clone()
    }
}

macro_rules! combined {
    ($($of:ty),*) => {$(
        impl<P: Into<Predicate>> BitAnd<P> for $of {
            type Output = Predicate;
            fn bitand(self, other: P) -> Predicate {
                Predicate(format!("({} & {})", self.0, other.into().0))
            }
        }

        impl<P: Into<Predicate>> BitOr<P> for $of {
            type Output = Predicate;
            fn bitor(self, other: P) -> Predicate {
                Predicate(format!("({} | {})", self.0, other.into().0))
            }
        }

        impl Not for $of {
            type Output = Predicate;
            fn not(self) -> Predicate {
                Predicate(format!("(!{})", self.0))
            }
        }
    )*};
}

combined!(Predicate, &Predicate);

mod sealed {
    /// An argument of a predicate.
    pub trait Argument {
        /// The argument as text of the script language.
        fn text(&self) -> String;
    }
}

use sealed::Argument;

impl Argument for RangeFull {
    fn text(&self) -> String {
        String::new()
    }
}

impl Argument for &str {
    fn text(&self) -> String {
        quoted(self)
    }
}

impl Argument for &String {
    fn text(&self) -> String {
        quoted(self)
    }
}

impl Argument for u64 {
    fn text(&self) -> String {
        // The script language has only signed numbers.
        format!("({})", *self as i64)
    }
}

/// A function by its name, or any function (`..`).
pub trait OfFunction: Argument {}
impl OfFunction for &str {}
impl OfFunction for &String {}
impl OfFunction for RangeFull {}

/// A variable by its name, an address, or any memory (`..`).
pub trait OfMemory: Argument {}
impl OfMemory for &str {}
impl OfMemory for &String {}
impl OfMemory for u64 {}
impl OfMemory for RangeFull {}

/// The number of a control point, or any control point (`..`).
pub trait OfNumber: Argument {}
impl OfNumber for u64 {}
impl OfNumber for RangeFull {}

macro_rules! predicates {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        $(#[$doc])*
        pub fn $name($($argument: $kind),*) -> Predicate {
            let arguments: &[String] = &[$(Argument::text(&$argument)),*];
            Predicate(format!("{}({})", stringify!($name), arguments.join(", ")))
        }
    )*};
}

predicates! {
    /// A thread enters a function. The name is its symbol or the end of its path: `deposit`,
    /// `Account::deposit`.
    enters(function: impl OfFunction);
    /// A thread is about to return from a function.
    returns(function: impl OfFunction);
    /// Calls of instrumented functions, of functions that the script names, and all calls that are scheduling
    /// points in any program.
    calls(function: impl OfFunction);
    /// All events inside a function.
    in_func(function: &str);
    /// A thread is at this line, as in `lib.rs:120`.
    at(line: &str);
    /// An operation, by its name in schedules and traces.
    operation(name: &str);
    /// A thread is about to acquire a mutex, read-write lock or semaphore of the C library.
    locks(object: impl OfMemory);
    /// A thread is about to release a mutex, read-write lock or semaphore of the C library.
    unlocks(object: impl OfMemory);
    /// Reads of memory. The program must be instrumented.
    reads(memory: impl OfMemory);
    /// Writes of memory. The program must be instrumented.
    writes(memory: impl OfMemory);
    /// Reads and writes of memory. The program must be instrumented.
    accesses(memory: impl OfMemory);
    /// A thread calls [`crate::point_at`].
    at_control(number: impl OfNumber);
    /// A thread other than the main thread starts.
    starts();
    /// A thread has ended.
    ends();
    /// A thread calls [`crate::test_start`].
    test_start();
    /// A thread calls [`crate::test_end`].
    test_end();
    /// Functions entered with this first argument, and threads that start with it.
    with_arg0(value: u64);
    /// Functions entered with this second argument.
    with_arg1(value: u64);
    /// Accesses of memory that holds this value before the access.
    with_value(value: u64);
    /// Returns of this value.
    returns_value(value: u64);
}

/// All events inside a function that is at least `times` calls deep in its own recursion.
pub fn in_func_times(function: &str, times: usize) -> Predicate {
    Predicate(format!("in_func({}, {times})", quoted(function)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let p = reads("x") & in_func("g") | !at_control(3) & ends();
        assert_eq!(p.0, "((reads(\"x\") & in_func(\"g\")) | ((!at_control((3))) & ends()))");
        assert_eq!((enters(..) | &reads(u64::MAX)).0, "(enters() | reads((-1)))");
        assert_eq!((!&in_func_times("f", 2)).0, "(!in_func(\"f\", 2))");
        assert_eq!(with_arg0(7).0, "with_arg0((7))");
    }
}
