//! Compares answers on random formulas with z3, where it is installed.

use crate::problem::below;
use heisen_solver::term::Node;
use heisen_solver::{Answer, Formula, Limit, Op, Solver, Term};
use heisen_testkit::usual_or_nightly;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// A term in SMT-LIB, and what must hold so that it has a value: everywhere, and where it is chosen.
struct Text {
    value: String,
    defined: String,
    proper: String,
}

/// A comparison as a bit-vector of one bit.
fn bit(test: String) -> String {
    format!("(ite {test} #b1 #b0)")
}

fn text(solver: &Solver, term: Term) -> Text {
    let (op, width, operands) = match solver.terms.node(term) {
        Node::Constant { width, value } => {
            let value = format!("(_ bv{value} {width})");
            return Text { value, defined: "true".into(), proper: "true".into() };
        }
        Node::Unknown { number, .. } => {
            return Text { value: format!("x{number}"), defined: "true".into(), proper: "true".into() };
        }
        Node::Apply { op, width, operands } => (*op, *width, operands),
    };
    let from = solver.terms.width(*operands.last().expect("an operand"));
    let texts: Vec<Text> = operands.iter().map(|&operand| text(solver, operand)).collect();
    let a = &texts[0].value;
    let b = texts.get(1).map_or("", |text| text.value.as_str());
    let extended = |kind: &str, text: &str| format!("((_ {kind} {from}) {text})");
    let overflows = |name: &str, kind: &str| {
        let (a, b) = (extended(kind, a), extended(kind, b));
        let exact = format!("({name} {a} {b})");
        let cut = extended(kind, &format!("((_ extract {} 0) {exact})", from - 1));
        bit(format!("(distinct {exact} {cut})"))
    };
    let plain = |name: &str| format!("({name} {a} {b})");
    let value = match op {
        Op::Add => plain("bvadd"),
        Op::Sub => plain("bvsub"),
        Op::Mul => plain("bvmul"),
        Op::UDiv => plain("bvudiv"),
        Op::SDiv => plain("bvsdiv"),
        Op::URem => plain("bvurem"),
        Op::SRem => plain("bvsrem"),
        Op::Shl => plain("bvshl"),
        Op::LShr => plain("bvlshr"),
        Op::AShr => plain("bvashr"),
        Op::And => plain("bvand"),
        Op::Or => plain("bvor"),
        Op::Xor => plain("bvxor"),
        Op::Eq => bit(plain("=")),
        Op::Ult => bit(plain("bvult")),
        Op::Ule => bit(plain("bvule")),
        Op::Slt => bit(plain("bvslt")),
        Op::Sle => bit(plain("bvsle")),
        Op::UAddOverflow => overflows("bvadd", "zero_extend"),
        Op::SAddOverflow => overflows("bvadd", "sign_extend"),
        Op::USubOverflow => overflows("bvsub", "zero_extend"),
        Op::SSubOverflow => overflows("bvsub", "sign_extend"),
        Op::UMulOverflow => overflows("bvmul", "zero_extend"),
        Op::SMulOverflow => overflows("bvmul", "sign_extend"),
        Op::Not => format!("(bvnot {a})"),
        Op::ZExt => format!("((_ zero_extend {}) {a})", width - from),
        Op::SExt => format!("((_ sign_extend {}) {a})", width - from),
        Op::Trunc => format!("((_ extract {} 0) {a})", width - 1),
        Op::Select => format!("(ite (= {a} #b1) {b} {})", texts[2].value),
        _ => unreachable!("not among the random operations"),
    };
    let all = |of: fn(&Text) -> &String| {
        let parts: Vec<&str> = texts.iter().map(|text| of(text).as_str()).collect();
        format!("(and true {})", parts.join(" "))
    };
    let (mut defined, mut proper) = (all(|text| &text.defined), all(|text| &text.proper));
    match op {
        Op::Shl | Op::LShr | Op::AShr if from == 1 => proper = format!("(and {proper} (= {b} #b0))"),
        Op::Shl | Op::LShr | Op::AShr => proper = format!("(and {proper} (bvult {b} (_ bv{from} {from})))"),
        Op::Select => {
            let [yes, no] = [&texts[1].proper, &texts[2].proper];
            proper = format!("(and {} (ite (= {a} #b1) {yes} {no}))", texts[0].proper);
        }
        Op::UDiv | Op::URem | Op::SDiv | Op::SRem => {
            defined = format!("(and {defined} {} (distinct {b} (_ bv0 {from})))", texts[1].proper);
            if matches!(op, Op::SDiv | Op::SRem) {
                let least = format!("(_ bv{} {from})", 1_u128 << (from - 1));
                let fits = format!("(and {} (distinct {a} {least}))", texts[0].proper);
                defined = format!("(and {defined} (or {fits} (distinct (bvnot {b}) (_ bv0 {from}))))");
            }
        }
        _ => {}
    }
    Text { value, defined, proper }
}

fn formula_text(solver: &Solver, formula: &Formula, positive: bool) -> String {
    let all = |formulas: &[Formula]| -> String {
        formulas.iter().map(|formula| format!(" {}", formula_text(solver, formula, positive))).collect()
    };
    match formula {
        Formula::Holds(term) => {
            let Text { value, defined, proper } = text(solver, *term);
            format!("(and {defined} {proper} (= {value} #b{}))", u32::from(positive))
        }
        Formula::Not(formula) => formula_text(solver, formula, !positive),
        Formula::All(formulas) if positive => format!("(and true{})", all(formulas)),
        Formula::All(formulas) => format!("(or false{})", all(formulas)),
        Formula::Any(formulas) if positive => format!("(or false{})", all(formulas)),
        Formula::Any(formulas) => format!("(and true{})", all(formulas)),
        Formula::Before(..) | Formula::Exactly(..) => unreachable!("not among the random formulas"),
    }
}

struct Generator {
    solver: Solver,
    unknowns: Vec<Term>,
}

const WIDTHS: [u32; 5] = [1, 4, 7, 8, 16];

impl Generator {
    fn new() -> Generator {
        let mut solver = Solver::new();
        let unknowns = WIDTHS.iter().flat_map(|&width| [width; 2]).map(|width| solver.terms.unknown(width));
        Generator { unknowns: unknowns.collect(), solver }
    }

    fn term(&mut self, random: &mut TestRng, width: u32, depth: usize) -> Term {
        const OPS: [Op; 14] = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::UDiv,
            Op::SDiv,
            Op::URem,
            Op::SRem,
            Op::Shl,
            Op::LShr,
            Op::AShr,
            Op::And,
            Op::Or,
            Op::Xor,
            Op::Not,
        ];
        match below(random, if depth == 0 { 2 } else { 7 }) {
            0 => self.solver.terms.constant(width, u128::from(random.next_u64() >> below(random, 64))),
            1 => {
                let at = WIDTHS.iter().position(|&other| other == width).expect("one of the widths");
                self.unknowns[2 * at + below(random, 2)]
            }
            2 if width == 1 => self.test(random, depth - 1),
            2 => {
                let from = WIDTHS[below(random, WIDTHS.len())];
                let term = self.term(random, from, depth - 1);
                let op = if below(random, 2) == 0 { Op::ZExt } else { Op::SExt };
                self.solver.terms.resize(op, width, term)
            }
            3 => {
                let test = self.test(random, depth - 1);
                let arms = [(); 2].map(|()| self.term(random, width, depth - 1));
                self.solver.terms.apply(Op::Select, &[test, arms[0], arms[1]])
            }
            _ => {
                let op = OPS[below(random, OPS.len())];
                // Wide products and divisions are circuits that take both solvers long.
                let op = if width > 8 && matches!(op, Op::Mul | Op::UDiv | Op::SDiv | Op::URem | Op::SRem) {
                    Op::Add
                } else {
                    op
                };
                let operands: Vec<Term> =
                    (0..op.operands()).map(|_| self.term(random, width, depth - 1)).collect();
                self.solver.terms.apply(op, &operands)
            }
        }
    }

    fn test(&mut self, random: &mut TestRng, depth: usize) -> Term {
        let tests: Vec<Op> = Op::ALL.into_iter().filter(|op| op.is_test()).collect();
        let width = WIDTHS[below(random, WIDTHS.len())];
        let operands = [(); 2].map(|()| self.term(random, width, depth));
        self.solver.terms.apply(tests[below(random, tests.len())], &operands)
    }

    fn formula(&mut self, random: &mut TestRng, depth: usize) -> Formula {
        if depth == 0 {
            return Formula::Holds(self.test(random, 2));
        }
        let kind = below(random, 3);
        let count = if kind == 0 { 1 } else { 1 + below(random, 3) };
        let mut parts: Vec<Formula> = (0..count).map(|_| self.formula(random, depth - 1)).collect();
        match kind {
            0 => parts.remove(0).not(),
            1 => Formula::All(parts),
            _ => Formula::Any(parts),
        }
    }
}

#[test]
fn answers_are_those_of_z3() {
    let started = Command::new("z3").arg("-in").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut z3 = match started {
        Ok(z3) => z3,
        Err(error) => return println!("skipped: z3 does not start: {error}"),
    };
    let mut input = z3.stdin.take().expect("a pipe");
    let mut output = BufReader::new(z3.stdout.take().expect("a pipe")).lines();
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut yes, mut no) = (0, 0);
    for round in 0..usual_or_nightly(150, 1500) {
        let mut generator = Generator::new();
        let mut script = String::from("(reset)\n(set-logic QF_BV)\n");
        for &unknown in &generator.unknowns {
            let width = generator.solver.terms.width(unknown);
            let name = text(&generator.solver, unknown).value;
            writeln!(script, "(declare-const {name} (_ BitVec {width}))").expect("memory");
        }
        writeln!(input, "{script}").expect("z3 runs");
        // What was asserted stays; what was assumed does not.
        for _ in 0..4 {
            let [asserted, assumed] = [(); 2].map(|()| generator.formula(&mut random, 2));
            generator.solver.assert(&asserted);
            let [fixed, now] =
                [&asserted, &assumed].map(|formula| formula_text(&generator.solver, formula, true));
            writeln!(input, "(assert {fixed})\n(push)\n(assert {now})\n(check-sat)\n(pop)").expect("z3 runs");
            let expected = output.next().expect("an answer").expect("z3 runs");
            let answer = generator.solver.check(std::slice::from_ref(&assumed), &Limit::default());
            match answer {
                Answer::Yes(model) => {
                    yes += 1;
                    assert_eq!(expected, "sat", "{round}: {asserted:?} {assumed:?}");
                    let value = |unknown: Term| model.value(unknown);
                    let bit = |term: Term| Some(generator.solver.terms.evaluate(term, &value)? == 1);
                    assert!(assumed.evaluate(&|_, _| false, &bit), "{round}: {assumed:?}");
                }
                Answer::No(_) => {
                    no += 1;
                    assert_eq!(expected, "unsat", "{round}: {asserted:?} {assumed:?}");
                }
                Answer::Unknown => panic!("there is no limit"),
            }
        }
    }
    drop(input);
    z3.wait().expect("z3 ends");
    assert!(yes > 50 && no > 50, "{yes} {no}");
}
