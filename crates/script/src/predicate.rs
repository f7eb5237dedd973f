//! Predicates: sets of events that can be combined. CONCURRIT (PLDI'13), section 3.1.
//!
//! The runtime evaluates most of them, event by event, so they are compiled to a program for it. Predicates
//! on a held thread are evaluated here. Both must agree.

use crate::event::Event;
use heisen_inspect::VariablePath;
use heisen_trace::Op;
use heisen_wire::script::{code, kind};

/// Every kind of events.
pub const ALL_KINDS: u32 = (1 << (kind::OTHER + 1)) - 1;

/// The location of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// In these bytes.
    Range(u64, u64),
    /// In a variable or a part of one; with its name, for messages.
    Variable(String, Vec<Place>),
}

/// A variable of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The program, if there may be several.
    pub program: Option<usize>,
    /// The path to the variable.
    pub way: VariablePath,
}

/// Returns the current address of a place.
pub type Follow<'f> = dyn FnMut(&Place) -> Option<u64> + 'f;

/// A set of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// Events of certain kinds, as bits.
    Kinds(u32),
    /// Events of certain kinds on a memory location or object.
    On(u32, Target),
    /// Events of one kind at a place that the script names, by its number.
    Named(u8, usize),
    /// Events of a thread that is in a function, at least this many calls deep.
    Inside(usize, u8),
    /// Events of threads of a program, by its number.
    Program(usize),
    /// Events of threads of a process.
    Process(i32),
    /// A control point with this number.
    Control(u64),
    /// Events with this operation.
    Op(Op),
    /// Events with this first argument.
    Arg0(u64),
    /// Events with this second argument.
    Arg1(u64),
    /// Accesses of memory that holds this value.
    Value(u64),
    /// A return of this value.
    Returns(u64),
    /// Events in both sets.
    And(Box<Predicate>, Box<Predicate>),
    /// Events in one of the two sets.
    Or(Box<Predicate>, Box<Predicate>),
    /// All other events.
    Not(Box<Predicate>),
}

impl Predicate {
    /// Whether an event belongs to the set. `follow` returns where a pointer path leads now.
    pub fn holds(&self, event: &Event, follow: &mut Follow<'_>) -> bool {
        match self {
            Predicate::Kinds(kinds) => kinds >> event.kind & 1 != 0,
            Predicate::On(kinds, target) => {
                let touches =
                    |(from, to)| event.address < to && event.address.wrapping_add(event.size.max(1)) > from;
                kinds >> event.kind & 1 != 0
                    && ranges(target, follow).into_iter().any(|(program, range)| {
                        program.is_none_or(|program| program == event.program) && touches(range)
                    })
            }
            Predicate::Named(kind, number) => event.kind == *kind && event.number == *number as u64,
            Predicate::Inside(function, depth) => event.depth(*function) >= *depth,
            Predicate::Control(number) => event.kind == kind::POINT && event.number == *number,
            Predicate::Program(number) => event.program == *number,
            Predicate::Process(pid) => event.process == *pid,
            Predicate::Op(op) => event.op == Some(*op),
            Predicate::Arg0(value) => event.args[0] == *value,
            Predicate::Arg1(value) => event.args[1] == *value,
            Predicate::Value(value) => event.value == *value,
            Predicate::Returns(value) => event.kind == kind::RETURN && event.returned == *value,
            Predicate::And(one, other) => one.holds(event, follow) && other.holds(event, follow),
            Predicate::Or(one, other) => one.holds(event, follow) || other.holds(event, follow),
            Predicate::Not(one) => !one.holds(event, follow),
        }
    }

    /// Compiles the predicate to a program for the runtime.
    pub fn compile(&self, follow: &mut Follow<'_>, out: &mut Vec<u64>) {
        let word = |code: u8, rest: u64| u64::from(code) | rest << 8;
        let kinds = |bits: u32| word(code::KINDS, bits.into());
        match self {
            Predicate::Kinds(bits) => out.push(kinds(*bits)),
            Predicate::On(bits, target) => {
                for (index, (program, (from, to))) in ranges(target, follow).into_iter().enumerate() {
                    out.extend([kinds(*bits), word(code::ADDRESS, 0), from, to, word(code::AND, 0)]);
                    if let Some(program) = program {
                        out.extend([word(code::PROGRAM, program as u64), word(code::AND, 0)]);
                    }
                    if index > 0 {
                        out.push(word(code::OR, 0));
                    }
                }
            }
            Predicate::Named(kind, number) => {
                out.extend([kinds(1 << kind), word(code::NAMED, *number as u64), word(code::AND, 0)])
            }
            Predicate::Inside(function, depth) => {
                out.push(word(code::INSIDE, *function as u64 | u64::from(*depth) << 8));
            }
            Predicate::Control(number) => {
                out.extend([kinds(1 << kind::POINT), word(code::CONTROL, 0), *number, word(code::AND, 0)])
            }
            Predicate::Program(number) => out.push(word(code::PROGRAM, *number as u64)),
            Predicate::Process(pid) => out.push(word(code::PROCESS, *pid as u64)),
            Predicate::Op(op) => out.push(word(code::OP, *op as u64)),
            Predicate::Arg0(value) => out.extend([word(code::ARG0, 0), *value]),
            Predicate::Arg1(value) => out.extend([word(code::ARG1, 0), *value]),
            Predicate::Value(value) => out.extend([word(code::VALUE, 0), *value]),
            Predicate::Returns(value) => {
                out.extend([kinds(1 << kind::RETURN), word(code::RETURNS, 0), *value, word(code::AND, 0)])
            }
            Predicate::And(one, other) | Predicate::Or(one, other) => {
                one.compile(follow, out);
                other.compile(follow, out);
                let both = matches!(self, Predicate::And(..));
                out.push(word(if both { code::AND } else { code::OR }, 0));
            }
            Predicate::Not(one) => {
                one.compile(follow, out);
                out.push(word(code::NOT, 0));
            }
        }
    }

    /// How many truth values its program needs on the stack at most.
    pub fn height(&self) -> usize {
        match self {
            Predicate::And(one, other) | Predicate::Or(one, other) => one.height().max(1 + other.height()),
            Predicate::Not(one) => one.height(),
            Predicate::On(..) => 3,
            Predicate::Named(..) | Predicate::Control(_) | Predicate::Returns(_) => 2,
            _ => 1,
        }
    }

    /// Whether it depends on the target of a pointer.
    pub fn follows(&self) -> bool {
        match self {
            Predicate::On(_, Target::Variable(_, places)) => {
                places.iter().any(|place| !place.way.then.is_empty())
            }
            Predicate::And(one, other) | Predicate::Or(one, other) => one.follows() || other.follows(),
            Predicate::Not(one) => one.follows(),
            _ => false,
        }
    }

    /// The elementary sets of events in it: the events that a script with this predicate mentions.
    pub fn mentions(&self) -> Vec<Predicate> {
        match self {
            Predicate::And(one, other) | Predicate::Or(one, other) => {
                let mut all = one.mentions();
                all.extend(other.mentions());
                all
            }
            // These sets are too large to stop at.
            Predicate::Not(_)
            | Predicate::Inside(..)
            | Predicate::Program(_)
            | Predicate::Process(_)
            | Predicate::Arg0(_)
            | Predicate::Arg1(_)
            | Predicate::Value(_) => Vec::new(),
            _ => vec![self.clone()],
        }
    }

    /// The kinds of events that may satisfy it, as bits.
    pub fn kinds(&self) -> u32 {
        match self {
            Predicate::Kinds(kinds) | Predicate::On(kinds, _) => *kinds,
            Predicate::Named(kind, _) => 1 << kind,
            Predicate::Control(_) => 1 << kind::POINT,
            Predicate::Op(_) => 1 << kind::LOCK | 1 << kind::UNLOCK | 1 << kind::POINT | 1 << kind::OTHER,
            Predicate::Returns(_) => 1 << kind::RETURN,
            Predicate::Arg0(_) | Predicate::Arg1(_) => 1 << kind::ENTER | 1 << kind::START,
            Predicate::Value(_) => 1 << kind::READ | 1 << kind::WRITE,
            Predicate::And(one, other) => one.kinds() & other.kinds(),
            Predicate::Or(one, other) => one.kinds() | other.kinds(),
            Predicate::Inside(..) | Predicate::Program(_) | Predicate::Process(_) | Predicate::Not(_) => {
                ALL_KINDS
            }
        }
    }
}

/// The address ranges of a target, each with its program.
fn ranges(target: &Target, follow: &mut Follow<'_>) -> Vec<(Option<usize>, (u64, u64))> {
    match target {
        Target::Range(from, to) => vec![(None, (*from, *to))],
        Target::Variable(_, places) => {
            let mut range = |place: &Place| {
                let Place { program, way } = place;
                let at = if way.then.is_empty() { Some(way.address) } else { follow(place) };
                // A null pointer: nothing is there yet.
                (*program, at.map_or((0, 0), |at| (at, at.wrapping_add(way.size.max(1)))))
            };
            places.iter().map(&mut range).collect()
        }
    }
}
