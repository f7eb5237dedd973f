//! Problems of the size and shape of real traces: threads that read and write shared memory under locks, and two threads
//! that add each other's number.

use heisen_solver::{Event, Formula, Op, Solver, Term, Write};

/// Random numbers that are the same in every run.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }
}

fn always() -> Formula {
    Formula::All(Vec::new())
}

/// Adds a read: [`Solver::read`], or another way to say the same.
pub type AddRead = fn(&mut Solver, Event, &Formula, Term, &[Write]);

/// Two threads: one does `i += j`, the other `j += i`, both this many times, beginning with `i = j = 1`. Asserts that `i`
/// or `j` is at least `bound` in the end.
pub fn fibonacci(rounds: usize, bound: u128, eager: Option<usize>) -> Solver {
    let mut solver = Solver::new();
    if let Some(eager) = eager {
        solver.set_eager(eager);
    }
    let one = solver.terms.constant(32, 1);
    // By thread and round: the read of the other's number, with its value, and the write of the own one.
    let mut reads: [Vec<(Event, Term)>; 2] = [Vec::new(), Vec::new()];
    let mut writes: [Vec<Write>; 2] = [Vec::new(), Vec::new()];
    for thread in 0..2 {
        writes[thread].push(Write { event: None, guard: always(), value: one });
        let (mut own, mut last) = (one, None);
        for _ in 0..rounds {
            let (read, write) = (solver.event(), solver.event());
            if let Some(last) = last {
                solver.precedes(last, read);
            }
            solver.precedes(read, write);
            let other = solver.terms.unknown(32);
            own = solver.terms.apply(Op::Add, &[own, other]);
            reads[thread].push((read, other));
            writes[thread].push(Write { event: Some(write), guard: always(), value: own });
            last = Some(write);
        }
    }
    for thread in 0..2 {
        for &(read, value) in &reads[thread] {
            solver.read(read, &always(), value, &writes[1 - thread]);
        }
    }
    let limit = solver.terms.constant(32, bound);
    let large = writes.map(|writes| {
        let last = writes.last().expect("the initial value").value;
        Formula::Holds(solver.terms.apply(Op::Ule, &[limit, last]))
    });
    solver.assert(&Formula::Any(large.to_vec()));
    solver
}

/// The largest number that [`fibonacci`] can reach.
pub fn largest_sum(rounds: usize) -> u128 {
    let (mut low, mut high) = (1, 1);
    for _ in 0..2 * rounds {
        (low, high) = (high, low + high);
    }
    high
}

/// What a random trace looks like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub events: usize,
    pub threads: usize,
    pub locks: usize,
    pub locations: usize,
}

/// A random trace and its constraints.
#[derive(Debug)]
pub struct Trace {
    pub solver: Solver,
    /// For each branch that the trace took: what must be assumed so that it is reached and goes the other way.
    pub flips: Vec<Vec<Formula>>,
    /// All branches are reached, and go as they went.
    pub recorded: Vec<Formula>,
    /// How many constraints of a read, a write that it may see and another write the problem has.
    #[allow(dead_code, reason = "only the benchmark prints it")]
    pub triples: usize,
}

struct Step {
    event: Event,
    active: Formula,
}

struct Section {
    thread: usize,
    acquire: Step,
    release: Option<Step>,
}

/// Runs random threads in random order, and encodes that run.
pub fn trace(shape: Shape, seed: u64, eager: Option<usize>, add_read: AddRead) -> Trace {
    let mut random = Random(seed);
    let mut solver = Solver::new();
    if let Some(eager) = eager {
        solver.set_eager(eager);
    }
    let zero = solver.terms.constant(32, 0);
    let mut memory = vec![0_u128; shape.locations];
    let mut writes: Vec<Vec<(usize, Write)>> = vec![Vec::new(); shape.locations];
    let mut reads: Vec<(usize, usize, Event, Formula, Term)> = Vec::new();
    let mut sections: Vec<Vec<Section>> = (0..shape.locks).map(|_| Vec::new()).collect();
    let (mut flips, mut pasts) = (Vec::new(), Vec::new());
    // By thread: the last event, whether it comes this far, a value that it computed, the lock that it holds.
    let mut last: Vec<Option<Event>> = vec![None; shape.threads];
    let mut active: Vec<Formula> = vec![always(); shape.threads];
    let mut value: Vec<(Term, u128)> = vec![(zero, 0); shape.threads];
    let mut holds: Vec<Option<(usize, usize)>> = vec![None; shape.threads];
    for _ in 0..shape.events {
        let thread = random.below(shape.threads);
        let event = solver.event();
        if let Some(last) = last[thread].replace(event) {
            solver.precedes(last, event);
        }
        let step = Step { event, active: active[thread].clone() };
        let location = random.below(shape.locations);
        match random.below(10) {
            0 | 1 => match holds[thread].take() {
                Some((lock, section)) => sections[lock][section].release = Some(step),
                None => {
                    let lock = random.below(shape.locks);
                    let is_held = holds.iter().flatten().any(|(held, _)| *held == lock);
                    if !is_held {
                        holds[thread] = Some((lock, sections[lock].len()));
                        sections[lock].push(Section { thread, acquire: step, release: None });
                    }
                }
            },
            2..6 => {
                let step_value = random.below(7) as u128;
                let constant = solver.terms.constant(32, step_value);
                let sum = (value[thread].1 + step_value) & 0xffff_ffff;
                let term = solver.terms.apply(Op::Add, &[value[thread].0, constant]);
                memory[location] = sum;
                writes[location]
                    .push((thread, Write { event: Some(event), guard: step.active, value: term }));
            }
            _ => {
                let term = solver.terms.unknown(32);
                let found = memory[location];
                solver.prefer_value(term, found);
                value[thread] = (term, found);
                reads.push((thread, location, event, step.active, term));
                if random.below(3) == 0 {
                    let other = solver.terms.constant(32, found + random.below(3) as u128);
                    let test = solver.terms.apply(Op::Ult, &[term, other]);
                    let taken = Formula::Holds(test);
                    let taken = if found < solver.terms.value_of(other).expect("a constant") {
                        taken
                    } else {
                        taken.not()
                    };
                    flips.push(vec![active[thread].clone(), taken.clone().not()]);
                    // The thread comes past the branch only if the branch goes the same way.
                    let past = solver.terms.unknown(1);
                    // While formulas are built: the recorded run came this far.
                    solver.prefer_value(past, 1);
                    pasts.push(past);
                    let past = Formula::Holds(past);
                    let before = std::mem::replace(&mut active[thread], past.clone());
                    solver.assert(&past.implies(Formula::All(vec![before, taken])));
                }
            }
        }
    }
    for sections in &sections {
        for (number, one) in sections.iter().enumerate() {
            for other in &sections[..number] {
                if one.thread != other.thread {
                    exclude(&mut solver, one, other);
                }
            }
        }
    }
    let mut triples = 0;
    for (_, location, read, active, value) in reads {
        let mut seen = vec![Write { event: None, guard: always(), value: zero }];
        seen.extend(writes[location].iter().map(|(_, write)| write.clone()));
        triples += seen.len() * seen.len();
        add_read(&mut solver, read, &active, value, &seen);
    }
    // When questions are asked: no thread need come further than it must.
    pasts.into_iter().for_each(|past| solver.prefer_value(past, 0));
    Trace { solver, flips, recorded: active, triples }
}

/// Two sections of one lock do not overlap if both begin.
fn exclude(solver: &mut Solver, one: &Section, other: &Section) {
    let ends_before = |first: &Section, second: &Section| match &first.release {
        None => always().not(),
        Some(release) => {
            Formula::All(vec![release.active.clone(), Formula::Before(release.event, second.acquire.event)])
        }
    };
    solver.assert(&Formula::Any(vec![
        one.acquire.active.clone().not(),
        other.acquire.active.clone().not(),
        ends_before(one, other),
        ends_before(other, one),
    ]));
}
