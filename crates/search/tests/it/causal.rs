//! The solver-driven search as a strategy: executions with symbolic traces, without, and searches that are saved.

use heisen_causal::Options;
use heisen_search::{Causal, Halt, Portfolio, Room, Search, SpillFile, Status, Strategy};
use heisen_trace::symbolic::{EventKind, Node, NodeId, Operand, SymbolicEvent, SymbolicTrace};
use heisen_trace::{End, Execution, Op, Plan, ValueOp};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A program of one thread that reads an input of 4 bits, and fails for each of these values with its own status.
fn run(plan: &Plan, fails_for: &[u64]) -> Execution {
    let value = plan.inputs.first().map_or(0, |input| input.value);
    let mut nodes = vec![Node::Input { event: 0, width: 4 }];
    let input = NodeId(0);
    let mut kinds = vec![EventKind::Input { name: "input".into(), number: 0, width: 4, value, node: input }];
    let mut status = 0;
    for (nth, &number) in fails_for.iter().enumerate() {
        let operands = vec![Operand::Node(input), Operand::Constant(number.into())];
        nodes.push(Node::Apply { op: ValueOp::Eq, from: 4, width: 1, operands });
        let condition = NodeId(nodes.len() as u32 - 1);
        kinds.push(EventKind::Branch { condition, taken: value == number });
        if value == number {
            status = nth as i32 + 1;
            break;
        }
    }
    kinds.push(EventKind::Sync { op: Op::Exit, object: 0, ok: true });
    let places = (0..).zip(kinds);
    let events = places.map(|(pc, kind)| SymbolicEvent { thread: 0, step: 0, pc, kind }).collect();
    let trace = SymbolicTrace { nodes, events, threads: vec![None], ..SymbolicTrace::default() };
    Execution { symbolic: Some(Arc::new(trace)), ..plain(End::Exit(status)) }
}

/// An execution without a trace.
fn plain(end: End) -> Execution {
    Execution {
        steps: 1,
        threads: 1,
        decisions: vec![],
        touches: vec![],
        end,
        notes: vec![],
        diverged: None,
        fingerprint: None,
        counted: vec![],
        symbolic: None,
    }
}

const FAILS_FOR: [u64; 4] = [3, 14, 7, 9];

/// Runs up to so many plans. Returns how the executions ended.
fn drive(search: &mut Search, most: usize) -> Vec<End> {
    let mut ends = Vec::new();
    while ends.len() < most
        && let Some(plan) = search.next()
    {
        let execution = run(&plan, &FAILS_FOR);
        ends.push(execution.end.clone());
        search.done(&plan, &execution);
    }
    ends
}

fn sorted(ends: &[End]) -> Vec<i32> {
    let mut all: Vec<i32> =
        ends.iter().map(|end| if let End::Exit(status) = end { *status } else { -1 }).collect();
    all.sort_unstable();
    all
}

#[test]
fn every_path_is_run_once() {
    let mut search = Search::from(Causal::new(Options::default()));
    assert!(search.needs_symbolic());
    assert!(!search.status().exhausted);
    let ends = drive(&mut search, 100);
    assert_eq!(sorted(&ends), [0, 1, 2, 3, 4]);
    let Status { exhausted, exhaustive, executions, missing, .. } = search.status();
    assert_eq!((exhausted, exhaustive, executions), (true, true, 5));
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a_saved_search_runs_its_executions_again_and_goes_on() {
    for cut in 0..=5 {
        let mut search = Search::from(Causal::new(Options::default()));
        let before = drive(&mut search, cut);
        let out = search.next();
        let text = serde_json::to_string(&search).unwrap();
        let mut resumed: Search = serde_json::from_str(&text).unwrap();
        assert!(!resumed.status().exhausted);
        let again = drive(&mut resumed, cut);
        assert_eq!(again, before, "after {cut}");
        let rest = drive(&mut resumed, 100);
        let all: Vec<End> = before.into_iter().chain(rest).collect();
        assert_eq!(sorted(&all), [0, 1, 2, 3, 4], "after {cut}");
        assert!(resumed.status().exhaustive);
        assert_eq!(resumed.status().executions, 5, "executions that run again do not count, after {cut}");
        assert_eq!(out.is_none(), cut == 5);
    }
}

#[test]
fn plans_given_back_run_again() {
    let mut search = Search::from(Causal::new(Options::default()));
    let plan = search.next().unwrap();
    search.give_back_unrun(&plan);
    assert_eq!(sorted(&drive(&mut search, 2)).len(), 2);
    let plan = search.next().unwrap();
    search.give_back_unrun(&plan);
    assert_eq!(search.next(), Some(plan.clone()));
    search.done(&plan, &run(&plan, &FAILS_FOR));
    drive(&mut search, 100);
    assert_eq!((search.status().exhaustive, search.status().executions), (true, 5));
}

#[test]
fn a_program_without_symbolic_traces_proves_nothing() {
    let mut search = Search::from(Causal::new(Options::default()));
    let plan = search.next().unwrap();
    search.done(&plan, &plain(End::Exit(0)));
    assert_eq!(search.next(), None);
    let Status { exhausted, exhaustive, missing, .. } = search.status();
    assert_eq!((exhausted, exhaustive), (true, false));
    assert!(missing[0].contains("not built symbolically"), "{missing:?}");
}

/// Runs so many plans of a portfolio with a solver. Returns how often which status was found by whom: `true` for the
/// solver.
fn drive_portfolio(search: &mut Search, most: usize) -> Vec<(bool, End)> {
    let mut ends = Vec::new();
    while ends.len() < most {
        let plan = search.next().expect("samplers never end");
        let of_solver = search.needs_symbolic();
        if of_solver {
            assert_eq!(search.next(), None, "its plan runs alone");
        }
        let execution = if of_solver { run(&plan, &FAILS_FOR) } else { plain(End::Exit(0)) };
        ends.push((of_solver, execution.end.clone()));
        search.done(&plan, &execution);
    }
    ends
}

fn portfolio() -> Search {
    Portfolio::new(1).with_solver(Options::default()).into()
}

#[test]
fn the_portfolio_gives_the_solver_its_turns() {
    let mut search = portfolio();
    let all = drive_portfolio(&mut search, 40);
    let turns: Vec<usize> = (0..40).filter(|&at| all[at].0).collect();
    // Two, three, four ... executions of samplers lie between them.
    assert_eq!(turns, [1, 4, 8, 13, 19]);
    let found: Vec<End> = all.into_iter().filter(|(of_solver, _)| *of_solver).map(|(_, end)| end).collect();
    assert_eq!(sorted(&found), [0, 1, 2, 3, 4]);
    let Status { exhausted, exhaustive, executions, .. } = search.status();
    assert_eq!((exhausted, exhaustive, executions), (false, false, 40), "samplers prove nothing");
}

#[test]
fn a_saved_portfolio_goes_on_with_its_solver() {
    let expected = drive_portfolio(&mut portfolio(), 40);
    for cut in 0..20 {
        let mut search = portfolio();
        drive_portfolio(&mut search, cut);
        // Saved while a plan is out.
        search.next();
        let mut resumed: Search = serde_json::from_str(&serde_json::to_string(&search).unwrap()).unwrap();
        let again = expected[..cut].iter().filter(|(of_solver, _)| *of_solver).count();
        let rerun = drive_portfolio(&mut resumed, again);
        assert!(rerun.iter().all(|(of_solver, _)| *of_solver), "after {cut}");
        assert_eq!(drive_portfolio(&mut resumed, 40 - cut), expected[cut..], "after {cut}");
    }
}

/// Two threads that each acquire one mutex this often, one after the other.
fn sections(count: u32) -> Execution {
    let mut events = Vec::new();
    let mut add = |thread: u16, op: Op, object: u64| {
        let (step, pc) = (events.len() as u32 + 1, 1 + u64::from(thread));
        events.push(SymbolicEvent { thread, step, pc, kind: EventKind::Sync { op, object, ok: true } });
    };
    for thread in 1..=2 {
        add(0, Op::Create, thread);
    }
    for thread in 1..=2 {
        for _ in 0..count {
            add(thread, Op::Lock, 64);
            add(thread, Op::Unlock, 64);
        }
        add(thread, Op::End, 0);
    }
    for thread in 1..=2 {
        add(0, Op::Join, thread);
    }
    add(0, Op::Exit, 0);
    let runs = |event: &SymbolicEvent| SymbolicEvent { kind: EventKind::Runs, ..event.clone() };
    let mut all = Vec::new();
    let mut running = 0;
    for event in events {
        if event.thread != running {
            running = event.thread;
            all.push(runs(&event));
        }
        all.push(event);
    }
    let threads = vec![None, Some((0, 1)), Some((0, 2))];
    let trace = SymbolicTrace { events: all, threads, ..SymbolicTrace::default() };
    Execution { symbolic: Some(Arc::new(trace)), threads: 3, ..plain(End::Exit(0)) }
}

/// What no spill file can help with.
fn room(bytes: usize) -> Room {
    #[derive(Debug)]
    struct None;
    impl SpillFile for None {
        fn put(&self, _: &[u8]) -> std::io::Result<u64> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn get(&self, _: u64, _: usize) -> std::io::Result<Vec<u8>> {
            Err(std::io::ErrorKind::NotFound.into())
        }
        fn free(&self, _: u64, _: usize) {}
    }
    Room { bytes, spill: Arc::new(None) }
}

#[test]
fn a_search_that_outgrows_its_memory_ends_and_proves_nothing() {
    for (bytes, fits) in [(1 << 30, true), (1 << 20, false)] {
        let mut search = Search::from(Causal::new(Options::default()));
        search.bound_memory(room(bytes));
        let mut executions = 0;
        while let Some(plan) = search.next() {
            search.done(&plan, &sections(60));
            executions += 1;
        }
        let Status { exhausted, exhaustive, missing, .. } = search.status();
        assert_eq!((executions, exhausted, exhaustive), (1, true, fits), "{bytes}: {missing:?}");
        let named = missing.iter().any(|reason| reason.contains("outgrew the memory"));
        assert_eq!(named, !fits, "{missing:?}");
    }
}

#[test]
fn a_search_that_is_halted_asks_nothing_and_goes_on_later() {
    let halted = Arc::new(AtomicBool::new(false));
    let mut search = Search::from(Causal::new(Options::default()));
    let asked = halted.clone();
    search.heed(Halt::when(move || asked.load(Relaxed)));
    assert_eq!(drive(&mut search, 2).len(), 2);
    halted.store(true, Relaxed);
    assert_eq!(search.next(), None);
    assert!(!search.status().exhausted);
    halted.store(false, Relaxed);
    drive(&mut search, 100);
    assert_eq!((search.status().exhaustive, search.status().executions), (true, 5));
}
