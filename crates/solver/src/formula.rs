//! Formulas: what must hold of the order of events and of the values of terms.

use crate::order::Event;
use crate::term::Term;

/// A formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The first event comes before the second. No two events are at the same time, so its negation is the opposite
    /// order.
    Before(Event, Event),
    /// A term of one bit is 1. This formula and its negation both exclude assignments for which the term has no value:
    /// see [`Terms::evaluate`](crate::term::Terms::evaluate).
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

    /// Whether it holds, given what is before what, and which terms are 1. `holds` returns `None` for a term without a
    /// value.
    pub fn evaluate(
        &self,
        before: &dyn Fn(Event, Event) -> bool,
        holds: &dyn Fn(Term) -> Option<bool>,
    ) -> bool {
        self.side(true, before, holds)
    }

    /// Whether the formula, or its negation, holds. Neither does where a term that decides has no value.
    fn side(
        &self,
        positive: bool,
        before: &dyn Fn(Event, Event) -> bool,
        holds: &dyn Fn(Term) -> Option<bool>,
    ) -> bool {
        let of = |formula: &Formula, positive: bool| formula.side(positive, before, holds);
        match self {
            Formula::Before(first, second) => before(*first, *second) == positive,
            Formula::Holds(term) => holds(*term) == Some(positive),
            Formula::Not(formula) => of(formula, !positive),
            Formula::All(formulas) if positive => formulas.iter().all(|formula| of(formula, true)),
            Formula::All(formulas) => formulas.iter().any(|formula| of(formula, false)),
            Formula::Any(formulas) if positive => formulas.iter().any(|formula| of(formula, true)),
            Formula::Any(formulas) => formulas.iter().all(|formula| of(formula, false)),
            Formula::Exactly(count, formulas) => {
                let holding = formulas.iter().filter(|formula| of(formula, true)).count();
                let decided = formulas.iter().all(|formula| of(formula, true) || of(formula, false));
                decided && (holding == *count) == positive
            }
        }
    }
}
