//! Formulas: what must hold of the order of events and of the values of terms.

use crate::order::Event;
use crate::term::Term;

/// A formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The first event comes before the second. No two events are at the same time, so its negation is the opposite
    /// order.
    Before(Event, Event),
    /// A term of one bit is 1.
    Holds(Term),
    /// The formula does not hold.
    Not(Box<Formula>),
    /// All hold.
    All(Vec<Formula>),
    /// At least one holds.
    Any(Vec<Formula>),
    /// Exactly this many hold.
    Exactly(usize, Vec<Formula>),
}

impl Formula {
    /// The negation.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Formula {
        Formula::Not(Box::new(self))
    }

    /// If this holds, the other holds, too.
    pub fn implies(self, then: Formula) -> Formula {
        Formula::Any(vec![self.not(), then])
    }

    /// Whether it holds, given what is before what, and which terms are 1.
    pub fn evaluate(&self, before: &dyn Fn(Event, Event) -> bool, holds: &dyn Fn(Term) -> bool) -> bool {
        let of = |formula: &Formula| formula.evaluate(before, holds);
        match self {
            Formula::Before(first, second) => before(*first, *second),
            Formula::Holds(term) => holds(*term),
            Formula::Not(formula) => !of(formula),
            Formula::All(formulas) => formulas.iter().all(of),
            Formula::Any(formulas) => formulas.iter().any(of),
            Formula::Exactly(count, formulas) => {
                formulas.iter().filter(|formula| of(formula)).count() == *count
            }
        }
    }
}
