//! Predicates: sets of events, as text of the language.

use super::quoted;
use std::ops::{BitAnd, BitOr, Not, RangeFull};

/// A set of events. `p & q`, `p | q` and `!p` are others.
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
    /// What may stand between the parentheses of a predicate.
    pub trait Argument {
        /// As the language writes it.
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
        // The language has signed numbers only.
        format!("({})", *self as i64)
    }
}

/// A function by its name, or any of them (`..`).
pub trait OfFunction: Argument {}
impl OfFunction for &str {}
impl OfFunction for &String {}
impl OfFunction for RangeFull {}

/// A variable by its name, an address, or any of them (`..`).
pub trait OfMemory: Argument {}
impl OfMemory for &str {}
impl OfMemory for &String {}
impl OfMemory for u64 {}
impl OfMemory for RangeFull {}

/// The number of a control point, or any of them (`..`).
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
    /// A function is entered. It is named as the program's symbols have it, or by the end of its path: `deposit`, `Account::deposit`.
    enters(function: impl OfFunction);
    /// A function is about to return.
    returns(function: impl OfFunction);
    /// Calls: of instrumented functions, of those that the script names, and of those that are scheduling points in any program.
    calls(function: impl OfFunction);
    /// What happens within a function.
    in_func(function: &str);
    /// At a line, `lib.rs:120`.
    at(line: &str);
    /// An operation by the name that schedules and traces have for it.
    operation(name: &str);
    /// Locks of the C library's mutexes and their like.
    locks(object: impl OfMemory);
    /// Unlocks.
    unlocks(object: impl OfMemory);
    /// Reads of memory, in an instrumented program.
    reads(memory: impl OfMemory);
    /// Writes of memory, in an instrumented program.
    writes(memory: impl OfMemory);
    /// Reads and writes of memory, in an instrumented program.
    accesses(memory: impl OfMemory);
    /// At [`crate::point_at`].
    at_control(number: impl OfNumber);
    /// A thread starts.
    starts();
    /// A thread ends.
    ends();
    /// At [`crate::test_start`].
    test_start();
    /// At [`crate::test_end`].
    test_end();
    /// Functions that are entered with this as their first argument; threads that start with it.
    with_arg0(value: u64);
    /// Functions that are entered with this as their second argument.
    with_arg1(value: u64);
    /// Accesses of memory with this value in it, before.
    with_value(value: u64);
    /// Returns of this value.
    returns_value(value: u64);
}

/// What happens within a function that has called itself at least so often, less one.
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
