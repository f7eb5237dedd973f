//! Writes steps as programs for the stub, see `heisen_abi::symbolic::program`.

use crate::symbolic::plan::Plan;
use crate::symbolic::step::{Concrete, Group, Id, Operand, Rest, Step};
use heisen_abi::symbolic::{operation, program};
use heisen_trace::value_op::ValueOp;
use std::collections::{HashMap, HashSet};

/// The variables of a function, see `heisen_abi::symbolic::program`.
#[derive(Clone, Copy, Debug)]
pub struct AreaSize {
    /// The number of values of 8 bytes.
    pub values: usize,
    /// The number of ids that outlive a program.
    pub ids: usize,
    /// The number of ids that do not.
    pub passing: usize,
}

/// The program of a group.
#[derive(Debug)]
pub struct Encoded {
    /// Its words.
    pub words: Vec<u32>,
    /// The values that it needs.
    pub values: Vec<Concrete>,
}

/// The programs of a function.
pub fn encode(plan: &Plan) -> (AreaSize, Vec<Encoded>) {
    let places: HashMap<Id, u32> = plan.slots.iter().copied().zip(0..).collect();
    let mut most_passing = 0;
    // The ids come after the values, whose number shows only in the end.
    let mut drafts: Vec<Encoder<'_>> = Vec::new();
    for group in &plan.groups {
        let mut encoder =
            Encoder { places: &places, passing: HashMap::new(), words: Vec::new(), values: Vec::new() };
        encoder.group(group);
        most_passing = most_passing.max(encoder.passing.len());
        drafts.push(encoder);
    }
    let more = |draft: &Encoder<'_>| draft.values.len().saturating_sub(program::ARGUMENTS as usize);
    let values = drafts.iter().map(more).max().unwrap_or(0);
    let size = AreaSize { values, ids: plan.slots.len(), passing: most_passing };
    let first = 2 * values as u32 + 1;
    let programs = drafts.into_iter().map(|draft| {
        let word = |word| match word {
            Word::Number(number) => number,
            Word::Id(index) => first + index,
        };
        Encoded { words: draft.words.into_iter().map(word).collect(), values: draft.values }
    });
    (size, programs.collect())
}

/// A word, or an id whose place is not known yet.
#[derive(Clone, Copy, Debug)]
enum Word {
    Number(u32),
    Id(u32),
}

#[derive(Debug)]
struct Encoder<'a> {
    /// The places of ids that outlive this program.
    places: &'a HashMap<Id, u32>,
    /// The places of others, after those.
    passing: HashMap<Id, u32>,
    words: Vec<Word>,
    values: Vec<Concrete>,
}

impl Encoder<'_> {
    fn group(&mut self, group: &Group) {
        group.steps.iter().for_each(|step| self.step(step));
        self.number(program::END);
    }

    fn number(&mut self, number: u32) {
        self.words.push(Word::Number(number));
    }

    fn id(&mut self, id: Id) {
        let word = match self.places.get(&id) {
            _ if !id.is_some() => Word::Number(0),
            Some(&place) => Word::Id(place),
            None => {
                let next = (self.places.len() + self.passing.len()) as u32;
                Word::Id(*self.passing.entry(id).or_insert(next))
            }
        };
        self.words.push(word);
    }

    fn value(&mut self, value: Concrete) {
        match value {
            Concrete::Constant(number) => match u32::try_from(number) {
                Ok(small) if small & program::TAG == 0 => self.number(program::SMALL | small),
                _ => {
                    self.number(program::LARGE);
                    self.number(number as u32);
                    self.number((number >> 32) as u32);
                }
            },
            Concrete::Sum => self.number(program::SUM),
            Concrete::Address(base, offset) => {
                let index = self.index(Concrete::Leaf(base, 0));
                self.number(program::VALUE | program::OFFSET | index);
                self.number(offset.cast_unsigned());
            }
            value => {
                let index = self.index(value);
                self.number(program::VALUE | index);
            }
        }
    }

    /// The number of a value.
    fn index(&mut self, value: Concrete) -> u32 {
        let known = self.values.iter().position(|known| *known == value);
        let index = known.unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        index as u32
    }

    fn ids(&mut self, operands: &[Operand]) {
        operands.iter().for_each(|operand| self.id(operand.id));
    }

    fn values(&mut self, operands: &[Operand]) {
        operands.iter().for_each(|operand| self.value(operand.value));
    }

    fn both(&mut self, operand: Operand) {
        self.id(operand.id);
        self.value(operand.value);
    }

    /// The address of a function, or of what is passed by value.
    fn address(&mut self, of: crate::symbolic::ir::Value) {
        self.value(Concrete::Leaf(of, 0));
    }

    fn operation(&mut self, step: u32, word: u32, operands: &[Operand], out: Id) {
        self.number(step);
        self.number(word);
        self.ids(operands);
        self.values(operands);
        self.id(out);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Unary { word, a, out } => self.operation(program::UNARY, *word, &[*a], *out),
            Step::Binary { word, a, b, out } => self.operation(program::BINARY, *word, &[*a, *b], *out),
            Step::Select { word, condition, a, b, out } => {
                self.operation(program::SELECT, *word, &[*condition, *a, *b], *out);
            }
            Step::Choose { condition, a, b, out } => {
                self.number(program::CHOOSE);
                self.address(*condition);
                [a, b, out].into_iter().for_each(|id| self.id(*id));
            }
            Step::Compose { word, operands, out } => self.operation(program::COMPOSE, *word, operands, *out),
            Step::Address { .. } => self.computed_address(step),
            Step::Load { address, size, value, out } => {
                self.number(program::LOAD);
                self.number(*size);
                self.both(*address);
                self.value(*value);
                self.id(*out);
            }
            Step::Store { address, size, value } => {
                self.number(program::STORE);
                self.number(*size as u32);
                self.both(*address);
                self.both(*value);
            }
            Step::Clear { address, bytes } => {
                self.number(program::STORE);
                self.number(*bytes as u32);
                self.both(*address);
                self.both(Operand::constant(0));
            }
            Step::Update { how, address, size, value, old, out } => {
                self.number(program::UPDATE);
                self.number(*how);
                self.number(*size);
                self.both(*address);
                self.both(*value);
                self.value(*old);
                self.id(*out);
            }
            Step::Compare { address, size, expected, value, old, out } => {
                self.number(program::COMPARE);
                self.number(*size);
                self.both(*address);
                self.both(*expected);
                self.both(*value);
                self.value(*old);
                self.id(*out);
            }
            Step::Copy { to, from, bytes } => {
                self.number(program::COPY);
                self.ids(&[*to, *from, *bytes]);
                self.values(&[*to, *from, *bytes]);
            }
            Step::Fill { to, bytes, byte } => {
                self.number(program::FILL);
                self.ids(&[*to, *bytes, *byte]);
                self.values(&[*to, *bytes, *byte]);
            }
            Step::Concretise { address, bytes, reason } => {
                self.number(program::CONCRETISE);
                self.address(*address);
                self.number(*bytes as u32);
                self.number(*reason);
            }
            Step::Branch { condition } => {
                self.number(program::BRANCH);
                self.both(*condition);
            }
            Step::Pin { operand, reason } => {
                self.number(program::PIN);
                self.both(*operand);
                self.number(*reason);
            }
            Step::TakesValues { callee, operands } => {
                self.number(program::FOREIGN);
                self.address(*callee);
                self.number(operands.len() as u32);
                operands.iter().for_each(|operand| self.both(*operand));
            }
            Step::Foreign { name } => {
                self.number(program::PIN);
                self.id(Id::NONE);
                self.address(*name);
                self.number(heisen_abi::symbolic::CALLED);
            }
            Step::Unseen { reason } => {
                self.number(program::PIN);
                self.both(Operand::constant(0));
                self.number(heisen_abi::symbolic::UNSEEN + reason);
            }
            Step::Phis(pairs) => self.moves(pairs),
            Step::Enter { function, arguments, by_value } => {
                for (number, structure, bytes) in by_value {
                    self.number(program::TAKE_STRUCTURE);
                    self.number(*number as u32);
                    self.address(*function);
                    self.address(*structure);
                    self.number(*bytes as u32);
                }
                self.number(program::ENTER);
                self.address(*function);
                self.numbered(arguments);
            }
            Step::Arguments { callee, arguments, by_value } => {
                for (number, structure) in by_value {
                    self.number(program::PASS_STRUCTURE);
                    self.number(*number as u32);
                    self.address(*structure);
                }
                self.number(program::PASS);
                self.address(*callee);
                self.numbered(arguments);
            }
            Step::Results { callee, results, foreign } => {
                self.number(program::RESULTS);
                self.address(*callee);
                let taken: Vec<(usize, Id)> =
                    results.iter().copied().enumerate().filter(|(_, id)| id.is_some()).collect();
                self.number(taken.len() as u32);
                self.number(foreign.len() as u32);
                for (number, id) in taken {
                    self.number(number as u32);
                    self.id(id);
                }
                foreign.iter().for_each(|operand| self.both(*operand));
            }
            Step::Return { function, results } => {
                self.number(program::RETURN);
                self.address(*function);
                self.number(results.len() as u32);
                results.iter().for_each(|id| self.id(*id));
            }
            Step::Forget => self.number(program::FORGET),
        }
    }

    /// How many ids, and each with its number.
    fn numbered(&mut self, ids: &[(usize, Id)]) {
        self.number(ids.len() as u32);
        for (number, id) in ids {
            self.number(*number as u32);
            self.id(*id);
        }
    }

    /// One step for each summand of an address, and one for the rest.
    fn computed_address(&mut self, step: &Step) {
        let Step::Address { base, summands, rest, out } = step else { return };
        let mut at = *base;
        for (index, summand) in summands.iter().enumerate() {
            let last = index + 1 == summands.len() && matches!(rest, Rest::Fixed(0));
            self.number(program::INDEX);
            self.ids(&[at, summand.index]);
            self.values(&[at, summand.index]);
            self.value(Concrete::Constant(summand.scale));
            self.number(summand.bits);
            self.id(*out);
            if last {
                return;
            }
            at = Operand { id: *out, value: Concrete::Sum };
        }
        match rest {
            Rest::Fixed(bytes) => {
                let word = operation(ValueOp::Add as u8, 64, 64);
                self.operation(program::BINARY, word, &[at, Operand::constant(*bytes)], *out);
            }
            Rest::UpTo(end) => {
                self.number(program::REST);
                self.both(at);
                self.address(*end);
                self.id(*out);
            }
        }
    }

    /// Copies ids, all at once.
    fn moves(&mut self, pairs: &[(Id, Id)]) {
        let mut one = |from: Id, to: Id| {
            self.number(program::MOVE);
            self.id(from);
            self.id(to);
        };
        let mut written: HashSet<Id> = HashSet::new();
        let overlap = pairs.iter().any(|(from, to)| {
            let overlaps = written.contains(from);
            written.insert(*to);
            overlaps
        });
        if !overlap {
            return pairs.iter().for_each(|(from, to)| one(*from, *to));
        }
        // By ids that no value has.
        let between = |index: usize| Id(u32::MAX - index as u32);
        pairs.iter().enumerate().for_each(|(index, (from, _))| one(*from, between(index)));
        pairs.iter().enumerate().for_each(|(index, (_, to))| one(between(index), *to));
    }
}
