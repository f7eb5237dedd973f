//! Numbers of formulas that hold, of which more may be added: sequential counters.

use crate::clauses::{Clauses, List, Subject, off, on};
use heisen_solver::{Formula, Term};

/// At most so many terms hold.
#[derive(Debug)]
pub struct AtMost {
    limit: usize,
    /// `reached[k]`: follows from more than `k` of the terms.
    reached: Vec<Term>,
}

impl AtMost {
    pub fn new(limit: usize) -> AtMost {
        AtMost { limit, reached: Vec::new() }
    }

    pub fn add(&mut self, clauses: &mut Clauses, term: Term) {
        let Some(last) = self.limit.checked_sub(1) else { return clauses.clause([off(term)]) };
        let before = std::mem::take(&mut self.reached);
        if let Some(&all) = before.get(last) {
            clauses.clause([off(term), off(all)]);
        }
        for number in 0..self.limit.min(before.len() + 1) {
            let more = clauses.fresh();
            if let Some(&so_far) = before.get(number) {
                clauses.clause([off(so_far), on(more)]);
            }
            let fewer = number.checked_sub(1).map(|fewer| off(before[fewer]));
            clauses.clause([off(term), on(more)].into_iter().chain(fewer));
            self.reached.push(more);
        }
    }
}

/// From something follows that at least so many formulas hold.
#[derive(Debug)]
pub struct AtLeast {
    needed: usize,
    /// `reached[k]`: from it follows that more than `k` of the formulas hold.
    reached: Vec<Term>,
    list: Option<List>,
}

impl AtLeast {
    pub fn new(clauses: &mut Clauses, subject: Subject, needed: usize, premise: Formula) -> AtLeast {
        let list = (needed > 0).then(|| clauses.list(subject, premise));
        AtLeast { needed, reached: Vec::new(), list }
    }

    pub fn add(&mut self, clauses: &mut Clauses, formula: &Formula) {
        let Some(list) = self.list else { return };
        let before = std::mem::take(&mut self.reached);
        for number in 0..self.needed.min(before.len() + 1) {
            let more = clauses.fresh();
            let so_far = before.get(number).map(|&term| on(term));
            clauses.clause([off(more), formula.clone()].into_iter().chain(so_far.clone()));
            if let Some(fewer) = number.checked_sub(1) {
                clauses.clause([off(more), on(before[fewer])].into_iter().chain(so_far));
            }
            self.reached.push(more);
        }
        if let Some(&all) = self.reached.get(self.needed - 1) {
            clauses.extend(list, on(all));
        }
    }
}
