//! A SAT solver with conflict-driven clause learning and a theory that adds its own implications.
//!
//! The search is that of MiniSat (Eén and Sörensson, "An extensible SAT-solver", 2003): two watched literals per clause,
//! activities of variables, saved phases, clauses learnt at the first unique implication point and minimised. Learnt
//! clauses are kept by the number of decision levels in them (Audemard and Simon, "Predicting learnt clauses quality in
//! modern SAT solvers", 2009). Reasons of a theory are asked for only when a conflict needs them.
//!
//! Everything is deterministic. This module knows nothing of events or terms.

use std::ops::Not;

/// A variable of the SAT solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);

/// A variable or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lit(u32);

impl Var {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Lit {
    pub fn new(var: Var, positive: bool) -> Lit {
        Lit(var.0 << 1 | u32::from(!positive))
    }

    pub fn var(self) -> Var {
        Var(self.0 >> 1)
    }

    /// Whether it is the variable, not its negation.
    pub fn sign(self) -> bool {
        self.0 & 1 == 0
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl Not for Lit {
    type Output = Lit;

    fn not(self) -> Lit {
        Lit(self.0 ^ 1)
    }
}

/// What else restricts assignments: it sees the literals of its variables as they become true.
pub trait Theory {
    /// A literal of the theory became true. Adds the literals that follow, each of which [`Theory::explain`] can explain
    /// until this literal is retracted. If the literal contradicts others, writes them and the literal to `conflict`,
    /// returns false, and forgets the literal.
    fn assign(&mut self, lit: Lit, implied: &mut Vec<Lit>, conflict: &mut Vec<Lit>) -> bool;

    /// The literal that became true last is no longer so.
    fn retract(&mut self);

    /// Writes the true literals from which an implied literal follows.
    fn explain(&mut self, lit: Lit, reasons: &mut Vec<Lit>);

    /// All variables have values. Called before they are retracted.
    fn complete(&mut self) {}
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Satisfiable,
    Unsatisfiable,
    Stopped,
}

/// The place of a clause in the memory of clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clause(u32);

/// Words before the literals of a clause: its length, its marks, its activity.
const HEADER: usize = 3;
const LEARNT: u32 = 1 << 31;
const DELETED: u32 = 1 << 30;
const LEVELS: u32 = DELETED - 1;

/// Why a literal is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Decision,
    Clause(Clause),
    /// The theory implied it and was not asked for the reasons yet.
    Theory,
    /// The theory gave reasons: a range of `Sat::explained`.
    Explained(u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    clause: Clause,
    /// Another literal of the clause. If it is true, the clause need not be read.
    blocker: Lit,
}

/// When a decision gives a variable a value, if nothing implies one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// In order of activity.
    Decided,
    /// After all others: its value follows from theirs most of the time. Once it was in a conflict, it is decided like
    /// others.
    Dependent,
    /// Like these, but nothing determines it alone: all inputs get their values together, which rarely fails.
    Input,
    /// Never, except to meet a demand.
    Choice,
}

const TRUE: i8 = 1;
const FALSE: i8 = -1;
const UNASSIGNED: i8 = 0;

/// What the searches did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Searches, each from the first decision on; a question may need several.
    pub searches: u64,
    /// Literals that were chosen.
    pub decisions: u64,
    /// Literals that became true.
    pub propagations: u64,
    /// Contradictions, each of which taught a clause.
    pub conflicts: u64,
}

/// The solver.
#[derive(Debug, Default)]
pub struct Sat {
    pub statistics: Statistics,
    /// All clauses, each with its header.
    memory: Vec<u32>,
    clauses: Vec<Clause>,
    learnts: Vec<Clause>,
    /// Words of `memory` in deleted clauses.
    wasted: usize,
    /// By literal: the clauses to look at when it becomes false.
    watches: Vec<Vec<Watch>>,
    /// By literal.
    values: Vec<i8>,
    /// By variable: the literal's level of decision and reason.
    level: Vec<u32>,
    reason: Vec<Reason>,
    /// By variable: the value that a decision tries, and the one that it tries first in a new question.
    phase: Vec<bool>,
    first_phase: Vec<bool>,
    is_theory: Vec<bool>,
    /// By variable: when a decision gives it a value.
    role: Vec<Role>,
    /// Clauses of which a literal must be chosen once all decided variables have values, if none is true.
    demands: Vec<Vec<Lit>>,
    /// The demands before this one have a true literal.
    met: usize,
    /// The variables before this one that are not choices have values.
    swept: usize,
    /// The level at which all inputs got their values to try first at once, if there is one.
    together: Option<usize>,
    /// That failed, so they get values one by one until something changes.
    one_by_one: bool,
    /// The assumptions whose levels are kept from the last search to the next one.
    kept: Vec<Lit>,
    /// Clauses that were added while levels were kept.
    pending: Vec<Vec<Lit>>,
    trail: Vec<Lit>,
    /// For each level: the length of the trail when it began.
    levels: Vec<usize>,
    /// How many literals of the trail were propagated through clauses, and through the theory.
    head: usize,
    theory_head: usize,
    activity: Vec<f64>,
    activity_step: f64,
    clause_step: f32,
    heap: Heap,
    /// There is no solution whatever is assumed.
    contradiction: bool,
    /// The literals of the last conflict, all false.
    conflict: Vec<Lit>,
    explained: Vec<Lit>,
    /// The assumptions that exclude each other, after an unsatisfiable search.
    core: Vec<Lit>,
    /// By variable, for conflict analysis.
    seen: Vec<u8>,
    cleared: Vec<Var>,
    stack: Vec<(Lit, u32)>,
    implied: Vec<Lit>,
    /// By level: in which count of levels it was last counted.
    counted: Vec<u32>,
    count: u32,
    /// Units of level 0 when satisfied clauses were last removed.
    simplified: usize,
    reductions: u64,
    model: Vec<bool>,
}

/// Marks of variables during conflict analysis.
const SEEN: u8 = 1;
const REMOVABLE: u8 = 2;
const NEEDED: u8 = 3;

impl Sat {
    pub fn new() -> Sat {
        Sat { activity_step: 1.0, clause_step: 1.0, ..Sat::default() }
    }

    /// Adds a variable with the value to try first.
    pub fn new_var(&mut self, phase: bool) -> Var {
        let var = Var(u32::try_from(self.level.len()).expect("fewer than 2^31 variables"));
        self.level.push(0);
        self.reason.push(Reason::Decision);
        self.phase.push(phase);
        self.first_phase.push(phase);
        self.is_theory.push(false);
        self.role.push(Role::Decided);
        self.activity.push(0.0);
        self.seen.push(0);
        self.values.extend([UNASSIGNED; 2]);
        self.watches.extend([Vec::new(), Vec::new()]);
        self.heap.add(var);
        self.heap.insert(var, &self.activity);
        var
    }

    /// Adds a variable that may stay without a value: it must occur positively only in clauses that are demanded.
    pub fn new_choice(&mut self, phase: bool) -> Var {
        let var = self.new_var(phase);
        self.role[var.index()] = Role::Choice;
        var
    }

    /// Adds a variable whose value other variables determine, most of the time.
    pub fn new_dependent(&mut self, phase: bool) -> Var {
        let var = self.new_var(phase);
        self.role[var.index()] = Role::Dependent;
        var
    }

    /// Adds a clause, for whose choices the search looks only if nothing else makes it true.
    pub fn demand(&mut self, clause: &[Lit]) {
        self.add(clause);
        self.demands.push(clause.to_vec());
    }

    /// Adds a variable that others depend on.
    pub fn new_input(&mut self, phase: bool) -> Var {
        let var = self.new_var(phase);
        self.role[var.index()] = Role::Input;
        var
    }

    /// Sets the value to try first.
    pub fn set_phase(&mut self, var: Var, phase: bool) {
        self.phase[var.index()] = phase;
        self.first_phase[var.index()] = phase;
    }

    /// Forgets the values that earlier searches ended with: the next one begins near those to try first.
    pub fn reset_phases(&mut self) {
        self.phase.clone_from(&self.first_phase);
    }

    /// Whether the value to try first makes a literal true.
    pub fn phase(&self, lit: Lit) -> bool {
        self.first_phase[lit.var().index()] == lit.sign()
    }

    /// Hands the literals of a variable to the theory.
    pub fn set_theory(&mut self, var: Var) {
        self.is_theory[var.index()] = true;
    }

    /// About how many bytes of memory its variables and clauses take, and what the theory has for each variable.
    pub fn bytes(&self) -> usize {
        const VARIABLE: usize = 224;
        let watches = 2 * size_of::<Watch>() * (self.clauses.len() + self.learnts.len());
        self.memory.len() * size_of::<u32>() + watches + self.level.len() * VARIABLE
    }

    /// The number of variables and of clauses.
    pub fn size(&self) -> (usize, usize) {
        (self.level.len(), self.clauses.len())
    }

    fn value(&self, lit: Lit) -> i8 {
        self.values[lit.index()]
    }

    /// Whether a literal is true in every solution, or false, as far as is known.
    pub fn fixed(&self, lit: Lit) -> Option<bool> {
        let value = self.value(lit);
        (value != UNASSIGNED && self.level[lit.var().index()] == 0).then_some(value == TRUE)
    }

    /// The value in the last solution.
    pub fn model(&self, lit: Lit) -> bool {
        self.model.get(lit.var().index()).copied().unwrap_or(false) == lit.sign()
    }

    /// The assumptions that exclude each other.
    pub fn core(&self) -> &[Lit] {
        &self.core
    }

    /// Adds a clause. Not during a search.
    pub fn add(&mut self, clause: &[Lit]) {
        if self.contradiction {
            return;
        }
        if !self.levels.is_empty() {
            return self.pending.push(clause.to_vec());
        }
        let mut lits: Vec<Lit> = clause.to_vec();
        lits.sort_unstable();
        lits.dedup();
        let is_true = lits.iter().any(|&lit| self.value(lit) == TRUE);
        if is_true || lits.windows(2).any(|pair| pair[0] == !pair[1]) {
            return;
        }
        lits.retain(|&lit| self.value(lit) != FALSE);
        match lits[..] {
            [] => self.contradiction = true,
            [unit] => self.enqueue(unit, Reason::Decision),
            _ => {
                let clause = self.allocate(&lits, None);
                self.clauses.push(clause);
            }
        }
    }

    fn allocate(&mut self, lits: &[Lit], levels: Option<u32>) -> Clause {
        let clause = Clause(u32::try_from(self.memory.len()).expect("fewer than 2^32 words of clauses"));
        self.memory.push(lits.len() as u32);
        self.memory.push(levels.map_or(0, |levels| LEARNT | levels.min(LEVELS)));
        self.memory.push(0);
        self.memory.extend(lits.iter().map(|lit| lit.0));
        self.watches[lits[0].index()].push(Watch { clause, blocker: lits[1] });
        self.watches[lits[1].index()].push(Watch { clause, blocker: lits[0] });
        clause
    }

    fn lits(&self, clause: Clause) -> &[u32] {
        let at = clause.0 as usize;
        &self.memory[at + HEADER..at + HEADER + self.memory[at] as usize]
    }

    fn enqueue(&mut self, lit: Lit, reason: Reason) {
        debug_assert_eq!(self.value(lit), UNASSIGNED);
        self.values[lit.index()] = TRUE;
        self.values[(!lit).index()] = FALSE;
        let var = lit.var().index();
        self.level[var] = self.levels.len() as u32;
        self.reason[var] = reason;
        self.trail.push(lit);
    }

    /// Follows clauses and the theory. Returns false, and sets `conflict`, on a contradiction.
    fn propagate(&mut self, theory: &mut impl Theory) -> bool {
        loop {
            if !self.propagate_clauses() {
                return false;
            }
            let Some(&lit) = self.trail.get(self.theory_head) else { return true };
            self.theory_head += 1;
            if self.is_theory[lit.var().index()] && !self.propagate_theory(theory, lit) {
                return false;
            }
        }
    }

    fn propagate_theory(&mut self, theory: &mut impl Theory, lit: Lit) -> bool {
        let mut implied = std::mem::take(&mut self.implied);
        implied.clear();
        self.conflict.clear();
        let mut possible = theory.assign(lit, &mut implied, &mut self.conflict);
        if !possible {
            self.theory_head -= 1;
            self.conflict.iter_mut().for_each(|lit| *lit = !*lit);
        }
        for &lit in implied.iter().filter(|_| possible) {
            match self.value(lit) {
                UNASSIGNED => self.enqueue(lit, Reason::Theory),
                FALSE => {
                    theory.explain(lit, &mut self.conflict);
                    self.conflict.iter_mut().for_each(|lit| *lit = !*lit);
                    self.conflict.push(lit);
                    possible = false;
                    break;
                }
                _ => {}
            }
        }
        self.implied = implied;
        possible
    }

    fn propagate_clauses(&mut self) -> bool {
        while let Some(&lit) = self.trail.get(self.head) {
            self.head += 1;
            self.statistics.propagations += 1;
            let gone = !lit;
            let mut watches = std::mem::take(&mut self.watches[gone.index()]);
            let (mut read, mut kept, mut possible) = (0, 0, true);
            'watches: while let Some(&watch) = watches.get(read) {
                read += 1;
                if self.values[watch.blocker.index()] == TRUE {
                    watches[kept] = watch;
                    kept += 1;
                    continue;
                }
                let at = watch.clause.0 as usize;
                let length = self.memory[at] as usize;
                let lits = &mut self.memory[at + HEADER..at + HEADER + length];
                if lits[0] == gone.0 {
                    lits.swap(0, 1);
                }
                let first = Lit(lits[0]);
                let watch = Watch { clause: watch.clause, blocker: first };
                if self.values[first.index()] == TRUE {
                    watches[kept] = watch;
                    kept += 1;
                    continue;
                }
                for next in 2..length {
                    let other = Lit(lits[next]);
                    if self.values[other.index()] != FALSE {
                        lits.swap(1, next);
                        self.watches[other.index()].push(watch);
                        continue 'watches;
                    }
                }
                watches[kept] = watch;
                kept += 1;
                if self.values[first.index()] == FALSE {
                    self.conflict.clear();
                    self.conflict.extend(lits.iter().map(|&lit| Lit(lit)));
                    let clause = watch.clause;
                    self.bump_clause(clause);
                    possible = false;
                    break;
                }
                self.enqueue(first, Reason::Clause(watch.clause));
            }
            watches.copy_within(read.., kept);
            watches.truncate(kept + watches.len() - read);
            self.watches[gone.index()] = watches;
            if !possible {
                return false;
            }
        }
        true
    }

    fn backtrack(&mut self, theory: &mut impl Theory, level: usize) {
        let Some(&length) = self.levels.get(level) else { return };
        for at in (length..self.trail.len()).rev() {
            let lit = self.trail[at];
            let var = lit.var();
            self.values[lit.index()] = UNASSIGNED;
            self.values[(!lit).index()] = UNASSIGNED;
            self.phase[var.index()] = lit.sign();
            if self.role[var.index()] == Role::Decided {
                self.heap.insert(var, &self.activity);
            }
            if at < self.theory_head && self.is_theory[var.index()] {
                theory.retract();
            }
        }
        self.trail.truncate(length);
        self.levels.truncate(level);
        (self.met, self.swept) = (0, 0);
        self.together = self.together.filter(|&together| together < level);
        self.head = self.head.min(length);
        self.theory_head = self.theory_head.min(length);
        if level == 0 {
            self.explained.clear();
        }
    }

    /// The reason of a true literal. One of the theory is asked for now.
    fn explain(&mut self, theory: &mut impl Theory, var: Var) -> Reason {
        if self.reason[var.index()] == Reason::Theory {
            let lit = Lit::new(var, self.values[Lit::new(var, true).index()] == TRUE);
            let from = self.explained.len();
            theory.explain(lit, &mut self.explained);
            self.explained[from..].iter_mut().for_each(|lit| *lit = !*lit);
            self.reason[var.index()] = Reason::Explained(from as u32, self.explained.len() as u32);
        }
        self.reason[var.index()]
    }

    /// The number of literals that a reason has; of a clause, one of them is the implied literal.
    fn antecedents(&self, reason: Reason) -> u32 {
        match reason {
            Reason::Decision | Reason::Theory => 0,
            Reason::Clause(clause) => self.memory[clause.0 as usize],
            Reason::Explained(from, to) => to - from,
        }
    }

    fn antecedent(&self, reason: Reason, at: u32) -> Lit {
        match reason {
            Reason::Clause(clause) => Lit(self.memory[clause.0 as usize + HEADER + at as usize]),
            Reason::Explained(from, _) => self.explained[(from + at) as usize],
            Reason::Decision | Reason::Theory => unreachable!("it has no antecedents"),
        }
    }

    /// Learns a clause from the conflict and returns to the level at which it implies its first literal. Returns false
    /// if the conflict needs no decision.
    fn learn(&mut self, theory: &mut impl Theory) -> bool {
        let highest = self.conflict.iter().map(|lit| self.level[lit.var().index()]).max().unwrap_or(0);
        if highest == 0 {
            return false;
        }
        self.backtrack(theory, highest as usize);
        let mut clause = vec![self.conflict[0]];
        let mut open = 0;
        let mut at = self.trail.len();
        let conflict = std::mem::take(&mut self.conflict);
        conflict.iter().for_each(|&lit| self.mark(lit, highest, &mut open, &mut clause));
        self.conflict = conflict;
        loop {
            at -= 1;
            let lit = self.trail[at];
            if self.seen[lit.var().index()] != SEEN || self.level[lit.var().index()] != highest {
                continue;
            }
            open -= 1;
            if open == 0 {
                clause[0] = !lit;
                break;
            }
            let reason = self.explain(theory, lit.var());
            if let Reason::Clause(clause) = reason {
                self.bump_clause(clause);
            }
            for number in 0..self.antecedents(reason) {
                let other = self.antecedent(reason, number);
                if other != lit {
                    self.mark(other, highest, &mut open, &mut clause);
                }
            }
        }
        let mut kept = 1;
        for at in 1..clause.len() {
            if !self.is_redundant(theory, clause[at]) {
                clause[kept] = clause[at];
                kept += 1;
            }
        }
        clause.truncate(kept);
        self.cleared.drain(..).for_each(|var| self.seen[var.index()] = 0);
        let levels = self.count_levels(&clause);
        // The second literal is one of those that are assigned last.
        let second = (1..clause.len()).max_by_key(|&at| self.level[clause[at].var().index()]);
        let back = second.map_or(0, |second| {
            clause.swap(1, second);
            self.level[clause[1].var().index()] as usize
        });
        self.backtrack(theory, back);
        let reason = if clause.len() == 1 {
            Reason::Decision
        } else {
            let learnt = self.allocate(&clause, Some(levels));
            self.learnts.push(learnt);
            self.bump_clause(learnt);
            Reason::Clause(learnt)
        };
        self.enqueue(clause[0], reason);
        self.activity_step /= 0.95;
        self.clause_step /= 0.999;
        true
    }

    fn mark(&mut self, lit: Lit, highest: u32, open: &mut usize, clause: &mut Vec<Lit>) {
        let var = lit.var();
        let level = self.level[var.index()];
        if self.seen[var.index()] != 0 || level == 0 {
            return;
        }
        self.seen[var.index()] = SEEN;
        self.cleared.push(var);
        self.bump(var);
        if level == highest {
            *open += 1;
        } else {
            clause.push(lit);
        }
    }

    /// Whether a literal of a learnt clause follows from the other ones.
    fn is_redundant(&mut self, theory: &mut impl Theory, lit: Lit) -> bool {
        if self.reason[lit.var().index()] == Reason::Decision {
            return false;
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.push((lit, 0));
        let mut redundant = true;
        'stack: while let Some(&mut (lit, ref mut next)) = stack.last_mut() {
            let reason = self.explain(theory, lit.var());
            let count = self.antecedents(reason);
            while *next < count {
                let other = self.antecedent(reason, *next);
                *next += 1;
                let var = other.var();
                let mark = self.seen[var.index()];
                let is_root = self.level[var.index()] == 0;
                if var == lit.var() || is_root || mark == SEEN || mark == REMOVABLE {
                    continue;
                }
                if mark == NEEDED || self.reason[var.index()] == Reason::Decision {
                    redundant = false;
                    break 'stack;
                }
                stack.push((other, 0));
                continue 'stack;
            }
            let var = lit.var();
            if self.seen[var.index()] == 0 {
                self.seen[var.index()] = REMOVABLE;
                self.cleared.push(var);
            }
            stack.pop();
        }
        if !redundant {
            for &(lit, _) in &stack {
                if self.seen[lit.var().index()] == 0 {
                    self.seen[lit.var().index()] = NEEDED;
                    self.cleared.push(lit.var());
                }
            }
        }
        self.stack = stack;
        redundant
    }

    fn count_levels(&mut self, clause: &[Lit]) -> u32 {
        self.count += 1;
        let mut levels = 0;
        for lit in clause {
            let level = self.level[lit.var().index()] as usize;
            if self.counted.len() <= level {
                self.counted.resize(level + 1, 0);
            }
            if self.counted[level] != self.count {
                self.counted[level] = self.count;
                levels += 1;
            }
        }
        levels
    }

    fn bump(&mut self, var: Var) {
        const LARGE: f64 = 1e100;
        self.activity[var.index()] += self.activity_step;
        if matches!(self.role[var.index()], Role::Dependent | Role::Input) {
            self.role[var.index()] = Role::Decided;
        }
        if self.activity[var.index()] > LARGE {
            self.activity.iter_mut().for_each(|activity| *activity /= LARGE);
            self.activity_step /= LARGE;
        }
        self.heap.raise(var, &self.activity);
    }

    fn bump_clause(&mut self, clause: Clause) {
        const LARGE: f32 = 1e20;
        if self.memory[clause.0 as usize + 1] & LEARNT == 0 {
            return;
        }
        let activity = self.clause_activity(clause) + self.clause_step;
        self.memory[clause.0 as usize + 2] = activity.to_bits();
        if activity > LARGE {
            for at in 0..self.learnts.len() {
                let clause = self.learnts[at];
                let activity = self.clause_activity(clause) / LARGE;
                self.memory[clause.0 as usize + 2] = activity.to_bits();
            }
            self.clause_step /= LARGE;
        }
    }

    fn clause_activity(&self, clause: Clause) -> f32 {
        f32::from_bits(self.memory[clause.0 as usize + 2])
    }

    /// The assumptions from which the negation of an assumption follows.
    fn find_core(&mut self, theory: &mut impl Theory, failed: Lit) {
        self.core = vec![failed];
        if self.level[failed.var().index()] == 0 {
            return;
        }
        self.seen[failed.var().index()] = SEEN;
        for at in (self.levels[0]..self.trail.len()).rev() {
            let lit = self.trail[at];
            if self.seen[lit.var().index()] == 0 {
                continue;
            }
            self.seen[lit.var().index()] = 0;
            let reason = self.explain(theory, lit.var());
            if reason == Reason::Decision {
                if lit != !failed {
                    self.core.push(lit);
                } else {
                    // The assumptions have a literal and its negation.
                    self.core.push(!failed);
                }
            }
            for number in 0..self.antecedents(reason) {
                let other = self.antecedent(reason, number);
                if other != lit && self.level[other.var().index()] > 0 {
                    self.seen[other.var().index()] = SEEN;
                }
            }
        }
    }

    fn is_locked(&self, clause: Clause) -> bool {
        let first = Lit(self.lits(clause)[0]);
        self.value(first) == TRUE && self.reason[first.var().index()] == Reason::Clause(clause)
    }

    fn delete(&mut self, clause: Clause) {
        self.memory[clause.0 as usize + 1] |= DELETED;
        self.wasted += HEADER + self.memory[clause.0 as usize] as usize;
    }

    fn is_deleted(&self, clause: Clause) -> bool {
        self.memory[clause.0 as usize + 1] & DELETED != 0
    }

    /// Deletes half of the learnt clauses that neither are short nor were of use.
    fn reduce(&mut self) {
        const ALWAYS_KEPT: u32 = 4;
        self.reductions += 1;
        let levels = |sat: &Sat, clause: Clause| sat.memory[clause.0 as usize + 1] & LEVELS;
        let mut candidates: Vec<Clause> = self
            .learnts
            .iter()
            .copied()
            .filter(|&clause| levels(self, clause) > ALWAYS_KEPT && !self.is_locked(clause))
            .collect();
        candidates.sort_by(|&a, &b| {
            let by_levels = levels(self, b).cmp(&levels(self, a));
            by_levels.then(self.clause_activity(a).total_cmp(&self.clause_activity(b)))
        });
        candidates.truncate(candidates.len() / 2);
        candidates.into_iter().for_each(|clause| self.delete(clause));
        self.forget_deleted();
    }

    /// Removes clauses that are satisfied whatever is assumed.
    fn simplify(&mut self) {
        if self.trail.len() == self.simplified {
            return;
        }
        self.simplified = self.trail.len();
        for at in 0..self.trail.len() {
            self.reason[self.trail[at].var().index()] = Reason::Decision;
        }
        for clause in self.clauses.iter().chain(&self.learnts).copied().collect::<Vec<_>>() {
            if self.lits(clause).iter().any(|&lit| self.value(Lit(lit)) == TRUE) {
                self.delete(clause);
            }
        }
        let mut demands = std::mem::take(&mut self.demands);
        demands.retain(|clause| !clause.iter().any(|&lit| self.value(lit) == TRUE));
        self.demands = demands;
        self.met = 0;
        self.forget_deleted();
    }

    fn forget_deleted(&mut self) {
        let mut watches = std::mem::take(&mut self.watches);
        for list in &mut watches {
            list.retain(|watch| !self.is_deleted(watch.clause));
        }
        self.watches = watches;
        let mut clauses = std::mem::take(&mut self.clauses);
        clauses.retain(|&clause| !self.is_deleted(clause));
        self.clauses = clauses;
        let mut learnts = std::mem::take(&mut self.learnts);
        learnts.retain(|&clause| !self.is_deleted(clause));
        self.learnts = learnts;
        if self.wasted > self.memory.len() / 2 {
            self.collect();
        }
    }

    /// Moves all clauses together. The old place of a clause holds the new one meanwhile.
    fn collect(&mut self) {
        let mut memory = Vec::with_capacity(self.memory.len() - self.wasted);
        for clause in self.clauses.iter_mut().chain(&mut self.learnts) {
            let at = clause.0 as usize;
            let length = HEADER + self.memory[at] as usize;
            let moved = memory.len() as u32;
            memory.extend_from_slice(&self.memory[at..at + length]);
            self.memory[at] = moved;
            *clause = Clause(moved);
        }
        for watch in self.watches.iter_mut().flatten() {
            watch.clause = Clause(self.memory[watch.clause.0 as usize]);
        }
        for lit in &self.trail {
            if let Reason::Clause(clause) = &mut self.reason[lit.var().index()] {
                *clause = Clause(self.memory[clause.0 as usize]);
            }
        }
        self.memory = memory;
        self.wasted = 0;
    }

    /// Takes all assumptions back. Afterwards the theory may be changed.
    pub fn take_back(&mut self, theory: &mut impl Theory) {
        self.backtrack(theory, 0);
        for clause in std::mem::take(&mut self.pending) {
            self.add(&clause);
        }
    }

    /// Searches for a solution in which the assumptions hold. `stop` is asked at each conflict and decision. What follows
    /// from the assumptions is kept, and taken over by the next search as far as its assumptions begin with the same ones.
    pub fn solve(
        &mut self,
        theory: &mut impl Theory,
        assumptions: &[Lit],
        stop: &mut dyn FnMut() -> bool,
    ) -> Outcome {
        self.core.clear();
        if !self.pending.is_empty() {
            self.take_back(theory);
        }
        if self.contradiction {
            return Outcome::Unsatisfiable;
        }
        let common = self.kept.iter().zip(assumptions).take_while(|(kept, assumed)| kept == assumed).count();
        self.backtrack(theory, common);
        self.statistics.searches += 1;
        let outcome = self.search(theory, assumptions, stop);
        if outcome == Outcome::Satisfiable {
            theory.complete();
            self.model = self.values.iter().step_by(2).map(|&value| value == TRUE).collect();
        }
        self.backtrack(theory, assumptions.len());
        self.kept.clear();
        self.kept.extend(&assumptions[..self.levels.len().min(assumptions.len())]);
        outcome
    }

    fn search(
        &mut self,
        theory: &mut impl Theory,
        assumptions: &[Lit],
        stop: &mut dyn FnMut() -> bool,
    ) -> Outcome {
        const RESTART: u64 = 128;
        const REDUCE: u64 = 2000;
        let (mut restarts, mut conflicts, mut unreduced) = (0, 0, 0);
        loop {
            if !self.propagate(theory) {
                if let Some(level) = self.together.filter(|&level| level < self.levels.len()) {
                    self.backtrack(theory, level);
                    self.one_by_one = true;
                    continue;
                }
                self.one_by_one = false;
                self.statistics.conflicts += 1;
                conflicts += 1;
                unreduced += 1;
                if !self.learn(theory) {
                    self.contradiction = true;
                    return Outcome::Unsatisfiable;
                }
                if stop() {
                    return Outcome::Stopped;
                }
                continue;
            }
            if conflicts >= RESTART * luby(restarts) {
                restarts += 1;
                conflicts = 0;
                self.backtrack(theory, 0);
                continue;
            }
            if self.levels.is_empty() {
                self.simplify();
            }
            if unreduced >= REDUCE + 300 * self.reductions {
                unreduced = 0;
                self.reduce();
            }
            let next = loop {
                match assumptions.get(self.levels.len()) {
                    Some(&lit) if self.value(lit) == TRUE => self.levels.push(self.trail.len()),
                    Some(&lit) if self.value(lit) == FALSE => {
                        self.find_core(theory, lit);
                        return Outcome::Unsatisfiable;
                    }
                    Some(&lit) => break Some(lit),
                    None => break self.decide(),
                }
            };
            if self.levels.len() >= assumptions.len() && self.begin_together(next) {
                continue;
            }
            let Some(next) = next else { return Outcome::Satisfiable };
            if stop() {
                return Outcome::Stopped;
            }
            self.statistics.decisions += 1;
            self.levels.push(self.trail.len());
            self.enqueue(next, Reason::Decision);
        }
    }

    /// If only inputs and what depends on them are open, gives all inputs their values to try first, in one level.
    fn begin_together(&mut self, next: Option<Lit>) -> bool {
        let is_input = next.is_some_and(|lit| self.role[lit.var().index()] == Role::Input);
        if !is_input || self.one_by_one || self.together.is_some() {
            return false;
        }
        self.together = Some(self.levels.len());
        self.levels.push(self.trail.len());
        for at in self.swept..self.role.len() {
            let lit = Lit::new(Var(at as u32), self.phase[at]);
            if self.role[at] == Role::Input && self.value(lit) == UNASSIGNED {
                self.enqueue(lit, Reason::Decision);
            }
        }
        true
    }

    fn decide(&mut self) -> Option<Lit> {
        while let Some(var) = self.heap.pop(&self.activity) {
            if self.value(Lit::new(var, true)) == UNASSIGNED && self.role[var.index()] == Role::Decided {
                return Some(Lit::new(var, self.phase[var.index()]));
            }
        }
        while let Some(clause) = self.demands.get(self.met) {
            if !clause.iter().any(|&lit| self.value(lit) == TRUE) {
                let open = clause.iter().copied().filter(|&lit| self.value(lit) == UNASSIGNED);
                let rank = |lit: &Lit| (self.phase(*lit), self.activity[lit.var().index()]);
                return open.reduce(|best, lit| if rank(&lit) > rank(&best) { lit } else { best });
            }
            self.met += 1;
        }
        while let Some(&role) = self.role.get(self.swept) {
            let lit = Lit::new(Var(self.swept as u32), self.phase[self.swept]);
            if matches!(role, Role::Dependent | Role::Input) && self.value(lit) == UNASSIGNED {
                return Some(lit);
            }
            self.swept += 1;
        }
        None
    }
}

/// The sequence 1, 1, 2, 1, 1, 2, 4, ... (Luby, Sinclair and Zuckerman, 1993).
fn luby(number: u64) -> u64 {
    let (mut size, mut power, mut at) = (1, 0, number);
    while size < at + 1 {
        power += 1;
        size = 2 * size + 1;
    }
    while size - 1 != at {
        size = (size - 1) / 2;
        power -= 1;
        at %= size;
    }
    1 << power
}

/// The variables to decide, the most active one first. Of equally active ones the oldest comes first in a new heap.
#[derive(Debug, Default)]
struct Heap {
    vars: Vec<Var>,
    /// By variable: its place in `vars`, or `ABSENT`.
    place: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Heap {
    fn add(&mut self, var: Var) {
        debug_assert_eq!(var.index(), self.place.len());
        self.place.push(ABSENT);
    }

    fn insert(&mut self, var: Var, activity: &[f64]) {
        if self.place[var.index()] == ABSENT {
            self.place[var.index()] = self.vars.len() as u32;
            self.vars.push(var);
            self.up(self.vars.len() - 1, activity);
        }
    }

    fn raise(&mut self, var: Var, activity: &[f64]) {
        let place = self.place[var.index()];
        if place != ABSENT {
            self.up(place as usize, activity);
        }
    }

    fn pop(&mut self, activity: &[f64]) -> Option<Var> {
        let top = *self.vars.first()?;
        let last = self.vars.pop()?;
        self.place[top.index()] = ABSENT;
        if last != top {
            self.vars[0] = last;
            self.place[last.index()] = 0;
            self.down(0, activity);
        }
        Some(top)
    }

    fn up(&mut self, mut at: usize, activity: &[f64]) {
        let var = self.vars[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            let other = self.vars[parent];
            if activity[other.index()] >= activity[var.index()] {
                break;
            }
            self.vars[at] = other;
            self.place[other.index()] = at as u32;
            at = parent;
        }
        self.vars[at] = var;
        self.place[var.index()] = at as u32;
    }

    fn down(&mut self, mut at: usize, activity: &[f64]) {
        let var = self.vars[at];
        loop {
            let left = 2 * at + 1;
            let Some(&first) = self.vars.get(left) else { break };
            let (child, other) = match self.vars.get(left + 1) {
                Some(&second) if activity[second.index()] > activity[first.index()] => (left + 1, second),
                _ => (left, first),
            };
            if activity[var.index()] >= activity[other.index()] {
                break;
            }
            self.vars[at] = other;
            self.place[other.index()] = at as u32;
            at = child;
        }
        self.vars[at] = var;
        self.place[var.index()] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batsat::SolverInterface;

    /// Nothing follows from nothing.
    struct Free;

    impl Theory for Free {
        fn assign(&mut self, _: Lit, _: &mut Vec<Lit>, _: &mut Vec<Lit>) -> bool {
            true
        }
        fn retract(&mut self) {}
        fn explain(&mut self, _: Lit, _: &mut Vec<Lit>) {}
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }

        fn clause(&mut self, vars: u64, length: u64) -> Vec<Lit> {
            (0..length).map(|_| Lit::new(Var(self.below(vars) as u32), self.below(2) == 0)).collect()
        }
    }

    /// Questions to a growing set of clauses, under assumptions, have the answers that another solver gives. Near 4.2
    /// clauses of three literals per variable, questions are hardest.
    #[test]
    fn answers_are_those_of_another_solver() {
        let (mut yes, mut no, mut short_cores) = (0, 0, 0);
        for seed in 0..60 {
            let mut random = Random(seed);
            let vars = 20 + random.below(100);
            let mut sat = Sat::new();
            let mut other = batsat::BasicSolver::default();
            let theirs: Vec<_> = (0..vars).map(|_| other.new_var_default()).collect();
            let their = |lit: Lit| batsat::Lit::new(theirs[lit.var().index()], lit.sign());
            for _ in 0..vars {
                sat.new_var(random.below(2) == 0);
            }
            let mut clauses = Vec::new();
            for _ in 0..12 {
                for _ in 0..vars * 2 / 5 {
                    let length = 2 + random.below(5).min(1);
                    let clause = random.clause(vars, length);
                    sat.add(&clause);
                    other.add_clause_reuse(&mut clause.iter().map(|&lit| their(lit)).collect());
                    clauses.push(clause);
                }
                let count = random.below(8);
                let assumed = random.clause(vars, count);
                let expected =
                    other.solve_limited(&assumed.iter().map(|&lit| their(lit)).collect::<Vec<_>>());
                match sat.solve(&mut Free, &assumed, &mut || false) {
                    Outcome::Satisfiable => {
                        yes += 1;
                        assert_eq!(expected, batsat::lbool::TRUE);
                        let is_true = |lit: &Lit| sat.model(*lit);
                        assert!(clauses.iter().all(|clause| clause.iter().any(is_true)));
                        assert!(assumed.iter().all(is_true));
                    }
                    Outcome::Unsatisfiable => {
                        no += 1;
                        assert_eq!(expected, batsat::lbool::FALSE);
                        let core = sat.core().to_vec();
                        assert!(core.iter().all(|lit| assumed.contains(lit)));
                        short_cores += usize::from(core.len() < assumed.len());
                        assert_eq!(sat.solve(&mut Free, &core, &mut || false), Outcome::Unsatisfiable);
                    }
                    Outcome::Stopped => panic!("nothing stops it"),
                }
            }
        }
        assert!(yes > 100 && no > 100 && short_cores > 50, "{yes} {no} {short_cores}");
    }

    /// Enough conflicts that clauses are deleted and memory is collected, several times.
    #[test]
    fn long_searches_end_with_the_right_answer() {
        let mut collected = 0;
        for seed in 0..4 {
            let (mut random, vars) = (Random(seed), 170);
            let mut sat = Sat::new();
            let mut other = batsat::BasicSolver::default();
            let theirs: Vec<_> = (0..vars).map(|_| other.new_var_default()).collect();
            for _ in 0..vars {
                sat.new_var(false);
            }
            for _ in 0..vars * 43 / 10 {
                let clause = random.clause(vars, 3);
                sat.add(&clause);
                let their = |lit: &Lit| batsat::Lit::new(theirs[lit.var().index()], lit.sign());
                other.add_clause_reuse(&mut clause.iter().map(their).collect());
            }
            let is_possible = sat.solve(&mut Free, &[], &mut || false) == Outcome::Satisfiable;
            assert_eq!(is_possible, other.solve_limited(&[]) == batsat::lbool::TRUE);
            collected += sat.reductions;
        }
        assert!(collected > 1, "{collected}");
    }

    #[test]
    fn restarts_follow_the_sequence() {
        assert_eq!((0..15).map(luby).collect::<Vec<_>>(), [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
