//! The constraints of all trees in one solver, which only grows.
//!
//! "The read takes its value from one of these writes" becomes false when another write is found. Such a list is an
//! *open list*: its last alternative is "one that is not known yet". Lists belong to a *subject* (a memory cell, a mutex,
//! the ends of a thread), and a question assumes that its subjects are closed. An answer "impossible" holds until one of
//! the subjects that it depends on gets another member.

use heisen_solver::{Answer, Event, Formula, Limit, Solver, Term};

/// The number of something whose lists are closed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(usize);

/// The number of an open list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct List(usize);

/// What an answer "impossible" depends on: subjects, and how far each had grown.
pub type Core = Vec<(Subject, u32)>;

struct SubjectState {
    /// Assumed by questions: no list of the subject has an unknown member.
    closed: Term,
    version: u32,
    lists: Vec<List>,
    /// Whether a list got a member after its closing.
    grown: bool,
    /// Whether questions no longer assume anything of it.
    retired: bool,
}

struct ListState {
    subject: Subject,
    /// From this follows one of `members`, or one that is not known yet.
    last: Formula,
    members: Vec<Formula>,
    flushed: bool,
}

/// The solver, with what grows.
pub struct Clauses {
    pub solver: Solver,
    subjects: Vec<SubjectState>,
    lists: Vec<ListState>,
}

impl std::fmt::Debug for Clauses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clauses").field("solver", &self.solver).finish_non_exhaustive()
    }
}

/// The formula that a term of one bit is 1.
pub fn on(term: Term) -> Formula {
    Formula::Holds(term)
}

/// The formula that a term of one bit is 0.
pub fn off(term: Term) -> Formula {
    Formula::Holds(term).not()
}

/// The formula that one event comes before another.
pub fn before(first: Event, second: Event) -> Formula {
    Formula::Before(first, second)
}

impl Clauses {
    pub fn new() -> Clauses {
        Clauses { solver: Solver::new(), subjects: Vec::new(), lists: Vec::new() }
    }

    /// A new unknown of one bit.
    pub fn fresh(&mut self) -> Term {
        self.solver.terms.unknown(1)
    }

    /// The term that is always 1.
    pub fn truth(&mut self) -> Term {
        self.solver.terms.constant(1, 1)
    }

    /// At least one of these holds.
    pub fn clause(&mut self, formulas: impl IntoIterator<Item = Formula>) {
        self.solver.assert(&Formula::Any(formulas.into_iter().collect()));
    }

    pub fn subject(&mut self) -> Subject {
        let closed = self.fresh();
        let (version, lists, grown, retired) = (0, Vec::new(), false, false);
        self.subjects.push(SubjectState { closed, version, lists, grown, retired });
        Subject(self.subjects.len() - 1)
    }

    /// From now on nothing is known of the subject's lists.
    pub fn retire(&mut self, subject: Subject) {
        let state = &mut self.subjects[subject.0];
        state.retired = true;
        state.version += 1;
    }

    /// A new list: from `premise` follows one of its members.
    pub fn list(&mut self, subject: Subject, premise: Formula) -> List {
        let list = List(self.lists.len());
        self.lists.push(ListState { subject, last: premise, members: Vec::new(), flushed: false });
        self.subjects[subject.0].lists.push(list);
        list
    }

    /// Adds a member to a list.
    pub fn extend(&mut self, list: List, member: Formula) {
        let state = &mut self.lists[list.0];
        state.members.push(member);
        if state.flushed {
            self.subjects[state.subject.0].grown = true;
        }
    }

    /// Closes all lists as they are now.
    fn close(&mut self) {
        for number in 0..self.subjects.len() {
            if self.subjects[number].retired {
                continue;
            }
            let grown = std::mem::take(&mut self.subjects[number].grown);
            if grown {
                let closed = self.fresh();
                let state = &mut self.subjects[number];
                state.closed = closed;
                state.version += 1;
            }
            let closed = self.subjects[number].closed;
            for at in 0..self.subjects[number].lists.len() {
                let list = self.subjects[number].lists[at];
                self.close_list(list, closed, grown);
            }
        }
    }

    fn close_list(&mut self, list: List, closed: Term, again: bool) {
        let members = std::mem::take(&mut self.lists[list.0].members);
        let new = !self.lists[list.0].flushed;
        if !members.is_empty() {
            let more = self.fresh();
            let last = std::mem::replace(&mut self.lists[list.0].last, on(more));
            self.clause([last.not()].into_iter().chain(members).chain([on(more)]));
        }
        if new || again {
            self.lists[list.0].flushed = true;
            let last = self.lists[list.0].last.clone();
            self.clause([last.not(), off(closed)]);
        }
    }

    /// Whether an answer that depends on these subjects may have changed.
    pub fn has_changed(&self, core: &Core) -> bool {
        core.iter().any(|&(subject, version)| {
            let state = &self.subjects[subject.0];
            state.grown || state.version != version
        })
    }

    /// Asks for a solution in which all of these hold and nothing unknown exists.
    pub fn ask(
        &mut self,
        target: &[Formula],
        limit: &Limit<'_>,
    ) -> Result<heisen_solver::Model, Option<Core>> {
        self.close();
        let open: Vec<usize> = (0..self.subjects.len())
            .filter(|&number| !self.subjects[number].retired && !self.subjects[number].lists.is_empty())
            .collect();
        let closed = open.iter().map(|&number| on(self.subjects[number].closed));
        let assumptions: Vec<Formula> = closed.chain(target.iter().cloned()).collect();
        match self.solver.check(&assumptions, limit) {
            Answer::Yes(model) => Ok(model),
            Answer::No(core) => {
                let subjects = core.iter().filter_map(|&index| open.get(index));
                Err(Some(subjects.map(|&number| (Subject(number), self.subjects[number].version)).collect()))
            }
            Answer::Unknown => Err(None),
        }
    }
}
