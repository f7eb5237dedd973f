//! Functions of the C library: expressions pass through them, and have the values that the library computes.

use super::*;
use heisen_engine::program::symbolic::{C, Output as Said, clang, run};
use heisen_trace::symbolic::PinReason;

/// The program of these tests, if there is a clang that can build it.
fn built() -> Option<PathBuf> {
    let Ok(clang) = clang(C, &[]) else {
        eprintln!("skipped: no clang (scripts/install-programs installs it)");
        return None;
    };
    let source = root().join("crates/runtime/tests/it/symbolic/library.c");
    let program = std::env::temp_dir().join(format!("heisen-library-{}", std::process::id()));
    let include = format!("-I{}", root().join("include").display());
    let args = ["-w", "-g", &include, &source.display().to_string(), "-o", &program.display().to_string()];
    let args: Vec<std::ffi::OsString> = args.map(Into::into).to_vec();
    let ran = run(&clang, &args, Said::Captured).expect("it is built");
    assert!(ran.success, "{}", String::from_utf8_lossy(&ran.said));
    Some(program)
}

/// Checks so many rounds of it.
fn checks(rounds: &str) {
    let Some(path) = built() else { return };
    let config = RunConfig { symbolic: Some(Symbolic::default()), ..RunConfig::default() };
    let runtime = embedded::runtime().expect("the runtime is written");
    let program = Program::find(path.as_os_str(), vec![rounds.into()]).expect("a program");
    let mut parked =
        Parked(Zygote::start(&runtime, &program, &config, Output::Dropped).expect("the program is parked"));
    let _ = std::fs::remove_file(path);
    let Execution { end, symbolic, .. } = parked.run(&Plan::new(Policy::Default)).execution;
    let trace = symbolic.expect("a trace");
    assert_eq!(end, End::Exit(0));
    assert!(!trace.losses.full, "{:?}", trace.losses);
    let wrong: Vec<_> = trace.wrong_events().into_iter().map(|at| &trace.events[at]).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}: {:#?}",
        wrong.len(),
        trace.events.len(),
        &wrong[..3.min(wrong.len())]
    );
    // Nothing is lost.
    assert!(trace.losses.is_exact(), "{:?}", trace.losses);
    let count =
        |pinned: fn(&SymbolicEvent) -> bool| trace.events.iter().filter(|event| pinned(event)).count();
    let compared = count(|event| matches!(event.kind, EventKind::Branch { .. }));
    assert!(compared > 1000, "{compared}");
    // Tables of characters pin what they are looked up by; everything else is an expression.
    let pinned = count(|event| matches!(event.kind, EventKind::Pin { reason: PinReason::Address, .. }));
    eprintln!("{compared} branches, {pinned} pinned, {} nodes", trace.nodes.len());
}

#[test]
fn results_of_library_functions_are_expressions_with_the_library_s_values() {
    checks("12");
}

#[test]
#[ignore = "a minute: many random strings, and all corner cases"]
fn results_of_library_functions_hold_for_many_strings() {
    checks("300");
}
