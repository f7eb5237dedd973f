//! The script language: its functions and types, registered with rhai.
//!
//! A script reads no files and starts nothing: rhai has no such functions, and modules are disabled.

use crate::event::Event;
use crate::library;
use crate::predicate::{Predicate, Target};
use crate::processes;
use crate::promises;
use crate::run::{Done, Run, Stop, What};
use crate::threads::Threads;
use heisen_engine::patch::Named;
use heisen_inspect::nearest;
use heisen_trace::Op;
use heisen_wire::script::kind;
use rhai::{Array, Dynamic, Engine, EvalAltResult, INT, ImmutableString, NativeCallContext, Position};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// After this many rhai operations without a command to the program, a script counts as an endless loop.
const MOST_OPERATIONS: u64 = 20_000_000;
/// After this many repeated events, because the script released no thread, a script counts as an endless
/// loop.
const MOST_IDLE: u64 = 100_000;

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(pub usize);

/// The state of a running script.
#[derive(Debug)]
pub struct State {
    /// The execution.
    pub run: Run,
    /// The place of a remote script, used instead of the line.
    pub place: Option<usize>,
    /// Why the script was stopped, and at which line.
    pub stopped: Option<(Stop, Option<usize>)>,
    /// Whether one good execution is enough.
    pub exists: bool,
    operations: u64,
}

impl State {
    /// The state before the first command.
    pub fn new(run: Run) -> State {
        State { run, place: None, stopped: None, exists: false, operations: 0 }
    }
}

pub(crate) type Shared = Rc<RefCell<State>>;
type Answer<T> = Result<T, Box<EvalAltResult>>;

/// Does something with the execution. If that stops the script, it terminates rhai.
pub(crate) fn with<T>(
    state: &Shared,
    context: &NativeCallContext<'_>,
    work: impl FnOnce(&mut Run) -> Result<T, Stop>,
) -> Answer<T> {
    let mut state = state.borrow_mut();
    let position = context.call_position();
    let line = state.place.or(position.line());
    state.run.line = line;
    if state.run.idle > MOST_IDLE {
        let why = "the script loops: it receives the same events again, as it releases no thread";
        state.stopped = Some((Stop::Wrong(why.into()), line));
        return Err(terminated(position));
    }
    work(&mut state.run).map_err(|stop| {
        state.stopped = Some((stop, line));
        terminated(position)
    })
}

pub(crate) fn terminated(position: Position) -> Box<EvalAltResult> {
    // Unlike other errors, a script cannot catch this one.
    Box::new(EvalAltResult::ErrorTerminated(Dynamic::UNIT, position))
}

pub(crate) fn wrong(what: String) -> Stop {
    Stop::Wrong(what)
}

/// Converts a thread, a set of threads or an array of threads.
pub(crate) fn threads(value: Dynamic) -> Result<Threads, Stop> {
    if let Some(thread) = value.clone().try_cast::<Thread>() {
        return Ok(Threads::one(thread.0));
    }
    if let Some(threads) = value.clone().try_cast::<Threads>() {
        return Ok(threads);
    }
    Ok(Threads { any: false, list: list(value)?.into_iter().collect() })
}

/// Converts an array of threads, in order.
fn list(value: Dynamic) -> Result<Vec<usize>, Stop> {
    let kind = value.type_name().to_owned();
    let Some(array) = value.try_cast::<Array>() else {
        return Err(wrong(format!("a thread or an array of threads is needed, not a value of type {kind}")));
    };
    array
        .into_iter()
        .map(|one| {
            let kind = one.type_name().to_owned();
            let thread = one.try_cast::<Thread>().map(|thread| thread.0);
            thread.ok_or_else(|| {
                wrong(format!("an array of threads is needed, and it has a value of type {kind}"))
            })
        })
        .collect()
}

fn names(array: Array) -> Result<Vec<String>, Stop> {
    let name =
        |one: Dynamic| one.into_string().map_err(|kind| wrong(format!("a name is needed, not {kind}")));
    array.into_iter().map(name).collect()
}

/// The message that there is no such thing, with similar names.
pub(crate) fn unknown(what: &str, name: &str, all: impl IntoIterator<Item = String>) -> String {
    match nearest(name, all).join(" or ") {
        near if near.is_empty() => format!("there is no {what} {name}"),
        near => format!("there is no {what} {name}; did you mean {near}?"),
    }
}

fn count(number: INT) -> Result<usize, Stop> {
    from_one(number, "of threads")
}

pub(crate) fn from_one(number: INT, of: &str) -> Result<usize, Stop> {
    usize::try_from(number)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| wrong(format!("{number} is no number {of}")))
}

/// A rhai engine with the script language.
pub fn engine(state: &Shared) -> Engine {
    let mut engine = Engine::new();
    engine.set_module_resolver(rhai::module_resolvers::DummyModuleResolver::new());
    engine.set_max_expr_depths(128, 64);
    engine.set_max_call_levels(64);
    engine.set_max_string_size(1 << 20);
    engine.set_max_array_size(1 << 16);
    let watched = state.clone();
    engine.on_progress(move |operations| {
        let mut state = watched.try_borrow_mut().ok()?;
        // Counted from the last command on.
        if state.run.idle == 0 && state.run.line.is_some() {
            state.run.idle = 1;
            state.operations = operations;
        }
        (operations.saturating_sub(state.operations) > MOST_OPERATIONS).then(|| {
            state.stopped = Some((
                wrong("an endless loop: the script no longer asks anything of the program".into()),
                None,
            ));
            Dynamic::UNIT
        })
    });
    types(&mut engine, state);
    predicates(&mut engine, state);
    commands(&mut engine, state);
    promises::register(&mut engine, state);
    patterns(&mut engine, state);
    processes::register(&mut engine, state);
    engine
}

fn types(engine: &mut Engine, state: &Shared) {
    engine
        .register_type_with_name::<Thread>("Thread")
        .register_type_with_name::<Threads>("Threads")
        .register_type_with_name::<Predicate>("Predicate")
        .register_type_with_name::<Event>("Event")
        .register_fn("==", |one: Thread, other: Thread| one == other)
        .register_fn("!=", |one: Thread, other: Thread| one != other)
        .register_fn("to_string", |thread: &mut Thread| format!("T{}", thread.0))
        .register_fn("to_debug", |thread: &mut Thread| format!("T{}", thread.0))
        .register_get("number", |thread: &mut Thread| thread.0 as INT)
        .register_fn("+", |one: Thread, other: Thread| Threads::one(one.0).plus(&Threads::one(other.0)))
        .register_fn("+", |one: Threads, other: Thread| one.plus(&Threads::one(other.0)))
        .register_fn("+", |one: Threads, other: Threads| one.plus(&other))
        .register_fn("-", |one: Threads, other: Thread| one.minus(&Threads::one(other.0)))
        .register_fn("-", |one: Threads, other: Threads| one.minus(&other));
    let at = state.clone();
    engine.register_fn("-", move |context: NativeCallContext<'_>, one: Threads, others: Array| {
        with(&at, &context, |_| Ok(one.minus(&threads(others.into())?)))
    });
    let (get, call) = (state.clone(), state.clone());
    engine
        .register_get("has_ended", move |thread: &mut Thread| get.borrow_mut().run.has_ended(thread.0))
        .register_fn("has_ended", move |thread: Thread| call.borrow_mut().run.has_ended(thread.0));
    engine
        .register_get("kind", |event: &mut Event| event.word().to_owned())
        .register_get("thread", |event: &mut Event| Thread(event.thread))
        .register_get("tid", |event: &mut Event| Thread(event.thread))
        .register_get("address", |event: &mut Event| event.address as INT)
        .register_get("size", |event: &mut Event| event.size as INT)
        .register_get("value", |event: &mut Event| event.value as INT)
        .register_get("arg0", |event: &mut Event| event.args[0] as INT)
        .register_get("arg1", |event: &mut Event| event.args[1] as INT)
        .register_get("returned", |event: &mut Event| event.returned as INT)
        .register_get("caller", |event: &mut Event| event.caller as INT)
        .register_get("control", |event: &mut Event| event.control() as INT);
    let (function, file, line, is, text) =
        (state.clone(), state.clone(), state.clone(), state.clone(), state.clone());
    engine
        .register_get("function", move |event: &mut Event| function.borrow().run.function(event).to_owned())
        .register_get("file", move |event: &mut Event| {
            file.borrow_mut().run.place(event).map_or_else(String::new, |(file, _)| file)
        })
        .register_get("line", move |event: &mut Event| {
            let place = line.borrow_mut().run.place(event);
            place.and_then(|(_, line)| line).map_or(0, INT::from)
        })
        .register_fn("satisfies", move |event: Event, predicate: Predicate| {
            is.borrow_mut().run.holds(&predicate, &event)
        })
        .register_fn("to_string", move |event: &mut Event| text.borrow_mut().run.describe(event));
}

/// Calls of instrumented functions, of functions that the script names, and all calls that are scheduling
/// points in any program.
pub const CALLS: u32 = 1 << kind::CALL
    | 1 << kind::ENTER
    | 1 << kind::LOCK
    | 1 << kind::UNLOCK
    | 1 << kind::POINT
    | 1 << kind::OTHER;
const ACCESSES: u32 = 1 << kind::READ | 1 << kind::WRITE;

fn predicates(engine: &mut Engine, state: &Shared) {
    engine
        .register_fn("&", |one: Predicate, other: Predicate| Predicate::And(one.into(), other.into()))
        .register_fn("|", |one: Predicate, other: Predicate| Predicate::Or(one.into(), other.into()))
        .register_fn("!", |one: Predicate| Predicate::Not(one.into()));
    for (name, kinds) in [
        ("calls", CALLS),
        ("enters", 1 << kind::ENTER),
        ("returns", 1 << kind::RETURN),
        ("at_control", 1 << kind::POINT),
        ("starts", 1 << kind::START),
        ("ends", 1 << kind::END),
        ("test_start", 1 << kind::TEST_START),
        ("test_end", 1 << kind::TEST_END),
    ] {
        engine.register_fn(name, move || Predicate::Kinds(kinds));
    }
    for (name, kinds) in [
        ("reads", 1 << kind::READ),
        ("writes", 1 << kind::WRITE),
        ("accesses", ACCESSES),
        ("locks", 1 << kind::LOCK),
        ("unlocks", 1 << kind::UNLOCK),
    ] {
        engine.register_fn(name, move || Predicate::Kinds(kinds));
        engine.register_fn(name, move |address: INT| {
            Predicate::On(kinds, Target::Range(address as u64, (address as u64).wrapping_add(1)))
        });
        let at = state.clone();
        engine.register_fn(name, move |context: NativeCallContext<'_>, path: ImmutableString| {
            with(&at, &context, |run| {
                Ok(Predicate::On(kinds, Target::Variable(path.to_string(), run.ways_to(&path)?)))
            })
        });
    }
    for (name, kind) in [("enters", kind::ENTER), ("calls", kind::ENTER), ("returns", kind::RETURN)] {
        let at = state.clone();
        engine.register_fn(name, move |context: NativeCallContext<'_>, function: ImmutableString| {
            with(&at, &context, |run| {
                Ok(Predicate::Named(kind, run.number(&Named::Function(function.to_string()))?))
            })
        });
    }
    let at = state.clone();
    engine.register_fn("operation", move |context: NativeCallContext<'_>, name: ImmutableString| {
        with(&at, &context, |_| {
            let op = Op::ALL.iter().find(|op| op.name() == name.as_str());
            let names = || Op::ALL.iter().map(|op| op.name().to_owned());
            op.map(|op| Predicate::Op(*op)).ok_or_else(|| wrong(unknown("operation", &name, names())))
        })
    });
    let at = state.clone();
    engine.register_fn("at", move |context: NativeCallContext<'_>, line: ImmutableString| {
        with(&at, &context, |run| {
            Ok(Predicate::Named(kind::LINE, run.number(&Named::Line(line.to_string()))?))
        })
    });
    let inside = |run: &mut Run, function: &str, depth: INT| {
        let depth = u8::try_from(depth).ok().filter(|depth| *depth > 0);
        let depth = depth.ok_or_else(|| wrong("the depth is a number from 1 on".into()))?;
        Ok(Predicate::Inside(run.number(&Named::Function(function.to_owned()))?, depth))
    };
    let at = state.clone();
    engine.register_fn("in_func", move |context: NativeCallContext<'_>, function: ImmutableString| {
        with(&at, &context, |run| inside(run, &function, 1))
    });
    let at = state.clone();
    engine.register_fn(
        "in_func",
        move |context: NativeCallContext<'_>, function: ImmutableString, depth: INT| {
            with(&at, &context, |run| inside(run, &function, depth))
        },
    );
    let is_in = |run: &mut Run, thread: Thread, function: &str, depth: INT| {
        let number = run.number(&Named::Function(function.to_owned()))?;
        Ok(INT::from(run.depth(thread.0, number)) >= depth)
    };
    let at = state.clone();
    engine.register_fn(
        "in_func",
        move |context: NativeCallContext<'_>, thread: Thread, function: ImmutableString| {
            with(&at, &context, |run| is_in(run, thread, &function, 1))
        },
    );
    let at = state.clone();
    engine.register_fn(
        "in_func",
        move |context: NativeCallContext<'_>, thread: Thread, function: ImmutableString, depth: INT| {
            with(&at, &context, |run| is_in(run, thread, &function, depth))
        },
    );
    engine
        .register_fn("at_control", |number: INT| Predicate::Control(number as u64))
        .register_fn("with_arg0", |value: INT| Predicate::Arg0(value as u64))
        .register_fn("with_arg1", |value: INT| Predicate::Arg1(value as u64))
        .register_fn("with_value", |value: INT| Predicate::Value(value as u64))
        .register_fn("returns_value", |value: INT| Predicate::Returns(value as u64));
}

fn commands(engine: &mut Engine, state: &Shared) {
    let at = state.clone();
    engine.register_fn("select", move |context: NativeCallContext<'_>, of: Dynamic| {
        with(&at, &context, |run| run.select(&threads(of)?, None))
    });
    let at = state.clone();
    engine.register_fn("select", move |context: NativeCallContext<'_>, of: Dynamic, until: Predicate| {
        with(&at, &context, |run| run.select(&threads(of)?, Some(&until)))
    });
    let at = state.clone();
    engine.register_fn("release", move |context: NativeCallContext<'_>, of: Dynamic| {
        with(&at, &context, |run| run.release(&threads(of)?))
    });
    let at = state.clone();
    engine.register_fn(
        "wait_for_thread",
        move |context: NativeCallContext<'_>, of: Dynamic, until: Predicate| {
            with(&at, &context, |run| library::wait_for_thread(run, &threads(of)?, &until).map(Thread))
        },
    );
    let at = state.clone();
    engine.register_fn(
        "wait_for_distinct_threads",
        move |context: NativeCallContext<'_>, number: INT, until: Predicate| {
            with(&at, &context, |run| {
                let found = library::wait_for_distinct_threads(run, count(number)?, &until)?;
                Ok(found.into_iter().map(|thread| Dynamic::from(Thread(thread))).collect::<Array>())
            })
        },
    );
    let at = state.clone();
    engine.register_fn("run_until", move |context: NativeCallContext<'_>, of: Dynamic, until: Predicate| {
        with(&at, &context, |run| library::run_until(run, &threads(of)?, &until))
    });
    let at = state.clone();
    engine.register_fn(
        "wait_for_thread",
        move |context: NativeCallContext<'_>, of: Dynamic, until: Predicate, nth: INT| {
            with(&at, &context, |run| {
                library::wait_for_nth(run, &threads(of)?, &until, from_one(nth, "of events")?).map(Thread)
            })
        },
    );
    let at = state.clone();
    engine.register_fn(
        "run_until",
        move |context: NativeCallContext<'_>, of: Dynamic, until: Predicate, nth: INT| {
            with(&at, &context, |run| {
                library::run_until_nth(run, &threads(of)?, &until, from_one(nth, "of events")?)
            })
        },
    );
    let at = state.clone();
    engine.register_fn(
        "run_through",
        move |context: NativeCallContext<'_>, of: Dynamic, until: Predicate| {
            with(&at, &context, |run| library::run_through(run, &threads(of)?, &until))
        },
    );
    let at = state.clone();
    engine.register_fn("choose_thread", move |context: NativeCallContext<'_>, of: Array| {
        with(&at, &context, |run| library::choose_thread(run, &list(of.into())?).map(Thread))
    });
    let choose = |run: &mut Run, values: Array| {
        if values.is_empty() {
            return Err(wrong("there is nothing to choose from".into()));
        }
        let chosen = if values.len() > 1 { run.oracle.choose(values.len()) } else { 0 };
        Ok(values[chosen].clone())
    };
    let at = state.clone();
    engine.register_fn("choose", move |context: NativeCallContext<'_>, values: Array| {
        with(&at, &context, |run| choose(run, values))
    });
    let at = state.clone();
    engine.register_fn("choose", move |context: NativeCallContext<'_>, one: Dynamic, other: Dynamic| {
        with(&at, &context, |run| choose(run, vec![one, other]))
    });
    let at = state.clone();
    engine.register_fn(
        "choose",
        move |context: NativeCallContext<'_>, one: Dynamic, other: Dynamic, third: Dynamic| {
            with(&at, &context, |run| choose(run, vec![one, other, third]))
        },
    );
    let at = state.clone();
    engine.register_fn("permute", move |context: NativeCallContext<'_>, values: Array| {
        with(&at, &context, |run| {
            let order = library::permute(run, values.len());
            Ok(order.into_iter().map(|number| values[number].clone()).collect::<Array>())
        })
    });
    let at = state.clone();
    engine.register_fn("end_run", move |context: NativeCallContext<'_>| {
        with::<()>(&at, &context, |_| Err(Stop::EndRun))
    });
    let at = state.clone();
    engine.register_fn("assume", move |context: NativeCallContext<'_>, holds: bool| {
        with(&at, &context, |_| if holds { Ok(()) } else { Err(Stop::Assumed) })
    });
    let asserted =
        |holds: bool, what: &str| if holds { Ok(()) } else { Err(Stop::Asserted(what.to_owned())) };
    let at = state.clone();
    engine.register_fn("assert", move |context: NativeCallContext<'_>, holds: bool| {
        with(&at, &context, |_| asserted(holds, "an assertion of the script does not hold"))
    });
    let at = state.clone();
    engine.register_fn(
        "assert",
        move |context: NativeCallContext<'_>, holds: bool, what: ImmutableString| {
            with(&at, &context, |_| asserted(holds, &what))
        },
    );
    let at = state.clone();
    engine.register_fn("time_limit", move |context: NativeCallContext<'_>, seconds: INT| {
        with(&at, &context, |run| {
            let seconds =
                u64::try_from(seconds).map_err(|_| wrong("a time limit is a number of seconds".into()))?;
            run.limit = (seconds > 0).then(|| Duration::from_secs(seconds));
            Ok(())
        })
    });
    let at = state.clone();
    // `source` rewrites `print` to this function.
    engine.register_fn("tell", move |context: NativeCallContext<'_>, value: Dynamic| -> Answer<()> {
        let text: ImmutableString = context.call_native_fn("to_string", (value,))?;
        let mut state = at.borrow_mut();
        let line = state.place.or(context.call_position().line());
        state.run.trail.push(Done { line, what: What::Said(text.to_string()) });
        Ok(())
    });
    let at = state.clone();
    engine.register_fn("exists", move || at.borrow_mut().exists = true);
    let at = state.clone();
    engine.register_fn("forall", move || at.borrow_mut().exists = false);
    // `source` rewrites `let [a, b] = …` to this function.
    let at = state.clone();
    engine.register_fn("part", move |context: NativeCallContext<'_>, whole: Array, number: INT, of: INT| {
        with(&at, &context, |_| {
            if whole.len() as INT == of {
                return Ok(whole[number as usize].clone());
            }
            Err(wrong(format!("{of} names for an array of {}", whole.len())))
        })
    });
}

fn patterns(engine: &mut Engine, state: &Shared) {
    let at = state.clone();
    engine.register_fn("search_all", move |context: NativeCallContext<'_>, number: INT| {
        with(&at, &context, |run| library::search_all(run, count(number)?))
    });
    let at = state.clone();
    engine.register_fn("search_seq", move |context: NativeCallContext<'_>, number: INT| {
        with(&at, &context, |run| library::search_seq(run, count(number)?))
    });
    let at = state.clone();
    engine.register_fn(
        "search_in_func",
        move |context: NativeCallContext<'_>, number: INT, functions: Array| {
            with(&at, &context, |run| library::search_in_func(run, count(number)?, &names(functions)?))
        },
    );
    let at = state.clone();
    engine.register_fn(
        "search_in_func_large_steps",
        move |context: NativeCallContext<'_>, number: INT, functions: Array| {
            with(&at, &context, |run| {
                library::search_in_func_large_steps(run, count(number)?, &names(functions)?)
            })
        },
    );
    let at = state.clone();
    engine.register_fn(
        "search_in_buggy",
        move |context: NativeCallContext<'_>, of: Array, functions: Array| {
            with(&at, &context, |run| library::search_in_buggy(run, &list(of.into())?, &names(functions)?))
        },
    );
    let at = state.clone();
    engine.register_fn(
        "context_bounded",
        move |context: NativeCallContext<'_>, bound: INT, number: INT, functions: Array| {
            with(&at, &context, |run| {
                library::context_bounded(run, count(bound)?, count(number)?, &names(functions)?)
            })
        },
    );
    let at = state.clone();
    engine.register_fn("exact_schedule", move |context: NativeCallContext<'_>, steps: Array| {
        with(&at, &context, |run| {
            let steps: Result<Vec<(BTreeSet<usize>, Predicate)>, Stop> =
                steps.into_iter().map(step).collect();
            library::exact_schedule(run, &steps?)
        })
    });
}

/// `[thread, predicate]`.
fn step(value: Dynamic) -> Result<(BTreeSet<usize>, Predicate), Stop> {
    let bad = || wrong("a step is [thread, predicate]".into());
    let mut parts = value.try_cast::<Array>().ok_or_else(bad)?;
    let until = parts.pop().and_then(|until| until.try_cast::<Predicate>()).ok_or_else(bad)?;
    let thread = parts.pop().filter(|_| parts.is_empty()).ok_or_else(bad)?;
    Ok((threads(thread)?.list, until))
}
