//! Script functions for decisions that are not about threads: waiters, spurious wake-ups, faults and
//! `heisen_choose`.
//!
//! Without a promise each decision is the default, as in a search: the longest waiter wakes, no wait ends
//! without a wake-up, no call fails, and `heisen_choose` returns 0.

use crate::language::{Shared, Thread, from_one, threads, unknown, with, wrong};
use crate::run::Stop;
use heisen_trace::{DecisionKind, Fault};
use rhai::{Dynamic, Engine, EvalAltResult, INT, ImmutableString, NativeCallContext};

type Answer = Result<(), Box<EvalAltResult>>;

/// Fixes the n-th decision of some threads.
fn promise(
    state: &Shared,
    context: &NativeCallContext<'_>,
    kind: DecisionKind,
    of: Dynamic,
    nth: INT,
    value: impl FnOnce() -> Result<u32, Stop>,
) -> Answer {
    with(state, context, |run| {
        let nth = u32::try_from(from_one(nth, "of decisions")?).unwrap_or(u32::MAX);
        run.promise(kind, &threads(of)?, value()?, nth)
    })
}

fn fault(name: &str) -> Result<u32, Stop> {
    let found = Fault::ALL.iter().find(|fault| fault.name() == name);
    let names = || Fault::ALL.iter().map(|fault| fault.name().to_owned());
    found.map(|fault| *fault as u32).ok_or_else(|| wrong(unknown("fault", name, names())))
}

fn choice(value: INT) -> Result<u32, Stop> {
    u32::try_from(value).map_err(|_| wrong(format!("{value} is no value of heisen_choose")))
}

/// Registers the functions with rhai. The last argument of each says which decision is meant.
pub fn register(engine: &mut Engine, state: &Shared) {
    use DecisionKind::{Choose, Fault, Spurious, Waiter};
    type Context<'c> = NativeCallContext<'c>;
    let at = state.clone();
    engine.register_fn("let_fail", move |context: Context<'_>, of: Dynamic, name: ImmutableString| {
        promise(&at, &context, Fault, of, 1, || fault(&name))
    });
    let at = state.clone();
    engine.register_fn(
        "let_fail",
        move |context: Context<'_>, of: Dynamic, name: ImmutableString, nth: INT| {
            promise(&at, &context, Fault, of, nth, || fault(&name))
        },
    );
    let at = state.clone();
    engine.register_fn("let_wake_early", move |context: Context<'_>, of: Dynamic| {
        promise(&at, &context, Spurious, of, 1, || Ok(1))
    });
    let at = state.clone();
    engine.register_fn("let_wake_early", move |context: Context<'_>, of: Dynamic, nth: INT| {
        promise(&at, &context, Spurious, of, nth, || Ok(1))
    });
    let at = state.clone();
    engine.register_fn("let_wake", move |context: Context<'_>, of: Dynamic, whom: Thread| {
        promise(&at, &context, Waiter, of, 1, || Ok(whom.0 as u32))
    });
    let at = state.clone();
    engine.register_fn("let_wake", move |context: Context<'_>, of: Dynamic, whom: Thread, nth: INT| {
        promise(&at, &context, Waiter, of, nth, || Ok(whom.0 as u32))
    });
    let at = state.clone();
    engine.register_fn("let_choose", move |context: Context<'_>, of: Dynamic, value: INT| {
        promise(&at, &context, Choose, of, 1, || choice(value))
    });
    let at = state.clone();
    engine.register_fn("let_choose", move |context: Context<'_>, of: Dynamic, value: INT, nth: INT| {
        promise(&at, &context, Choose, of, nth, || choice(value))
    });
}
