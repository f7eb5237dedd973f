//! Tests of symbolic traces: what programs log that call the callbacks by hand, as instrumented code would.

mod events;
mod expressions;
mod inputs;
mod library;
mod limits;
mod programs;

use heisen_engine::process::run_config::{Output, RunConfig, Symbolic};
use heisen_engine::process::slots::{Detail, Job, Run};
use heisen_engine::process::zygote::Zygote;
use heisen_engine::program::Program;
use heisen_engine::program::embedded;
use heisen_testkit::{compile_once, root};
use heisen_trace::symbolic::{EventKind, SymbolicEvent, SymbolicTrace};
use heisen_trace::{End, Execution, Override, Plan, Policy};
use std::path::PathBuf;
use std::sync::Arc;

/// What threads learn of each other by calls of the C library has an address of at least this number.
const NO_MEMORY: u64 = 1 << 61;
/// Results of threads have an address of at least this number.
const RESULTS: u64 = 1 << 62;

/// A parked program.
struct Parked(Zygote);

impl Parked {
    /// Compiles a program and parks it.
    fn new(text: &str) -> Parked {
        Parked::with(text, Symbolic::default(), true)
    }

    fn with(text: &str, symbolic: Symbolic, in_process: bool) -> Parked {
        let config = RunConfig { symbolic: Some(symbolic), in_process, ..RunConfig::default() };
        let runtime = embedded::runtime().expect("the runtime is written");
        let program = Program::find(compiled(text).as_os_str(), Vec::new()).expect("a program");
        Parked(Zygote::start(&runtime, &program, &config, Output::Dropped).expect("the program is parked"))
    }

    /// Runs a plan with a trace.
    fn run(&mut self, plan: &Plan) -> Run {
        self.0.run(Job::Plan(plan), Detail::Symbolic, None).expect("the execution ends")
    }

    /// The trace of the default schedule, which must be complete, and whose expressions must have the values that the
    /// execution had.
    #[track_caller]
    fn trace(&mut self) -> Arc<SymbolicTrace> {
        self.ended(&Plan::new(Policy::Default), 0)
    }

    /// Likewise for a plan after which the program exits with this status.
    #[track_caller]
    fn ended(&mut self, plan: &Plan, status: i32) -> Arc<SymbolicTrace> {
        let Execution { end, symbolic, .. } = self.run(plan).execution;
        let trace = symbolic.expect("a trace");
        assert_eq!(end, End::Exit(status), "{trace:#?}");
        assert!(!trace.losses.incomplete, "{:?}", trace.losses);
        assert_eq!(trace.wrong_events(), Vec::<usize>::new(), "{trace:#?}");
        trace
    }
}

/// The trace of a program whose threads run one after the other.
#[track_caller]
fn trace(text: &str) -> Arc<SymbolicTrace> {
    Parked::new(text).trace()
}

fn compiled(text: &str) -> PathBuf {
    let include = format!("-I{}", root().join("include").display());
    let prelude = include_str!("by_hand.h");
    compile_once(
        "symbolic.c",
        &format!("{prelude}\n{text}"),
        &["-O1", "-Wall", "-Wno-unused-function", "-ldl", &include],
    )
}

/// A plan that prefers these threads at these steps.
fn switches(all: &[(u32, u16)]) -> Plan {
    let overrides = all.iter().map(|&(step, thread)| Override::thread(step, thread)).collect();
    Plan { overrides, ..Plan::new(Policy::Default) }
}

/// The reads and writes: thread, whether it writes, size and value.
fn accesses(trace: &SymbolicTrace) -> Vec<(u16, bool, u8, u64)> {
    let access = |event: &SymbolicEvent| match event.kind {
        EventKind::Read { address, .. } | EventKind::Write { address, .. } if address >= NO_MEMORY => None,
        EventKind::Read { size, value, .. } => Some((event.thread, false, size, value)),
        EventKind::Write { size, value, .. } => Some((event.thread, true, size, value)),
        _ => None,
    };
    trace.events.iter().filter_map(access).collect()
}

/// The branches: thread and outcome.
fn branches(trace: &SymbolicTrace) -> Vec<(u16, bool)> {
    let branch = |event: &SymbolicEvent| match event.kind {
        EventKind::Branch { taken, .. } => Some((event.thread, taken)),
        _ => None,
    };
    trace.events.iter().filter_map(branch).collect()
}
