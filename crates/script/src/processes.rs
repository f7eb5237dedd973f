//! Script functions for the processes of a system: start the programs of the command line, wait for their
//! end, read their output.

use crate::event::Event;
use crate::language::{Shared, with};
use crate::predicate::Predicate;
use crate::run::{Run, Stop};
use rhai::{Dynamic, Engine, INT, ImmutableString, NativeCallContext};

/// A process that was started, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process(usize);

/// The number of a program.
fn program(run: &mut Run, name: &str) -> Result<usize, Stop> {
    let system = run.system("of_program")?;
    let found = system.names().position(|known| known == name);
    let names: Vec<&str> = system.names().collect();
    found.ok_or_else(|| {
        Stop::Wrong(format!("the command line names no program {name}, only {}", names.join(", ")))
    })
}

/// Whether a process listens on a port of this machine, according to the kernel's tables.
fn is_listened_on(port: u16) -> bool {
    const LISTENS: &str = "0A";
    ["tcp", "tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace();
            let local = words.nth(1).and_then(|address| address.rsplit_once(':'));
            let state = words.nth(1);
            local.is_some_and(|(_, number)| u16::from_str_radix(number, 16) == Ok(port))
                && state == Some(LISTENS)
        })
    })
}

/// Registers the functions with rhai.
pub fn register(engine: &mut Engine, state: &Shared) {
    engine.register_type_with_name::<Process>("Process");
    let at = state.clone();
    engine.register_fn("start", move |context: NativeCallContext<'_>, name: ImmutableString| {
        with(&at, &context, |run| {
            let started = run.system("start")?.start(&name);
            started.map(Process).map_err(|error| match error {
                heisen_engine::Error::Input(text) => Stop::Wrong(text),
                error => Stop::Engine(error),
            })
        })
    });
    let at = state.clone();
    engine.register_fn("stop", move |context: NativeCallContext<'_>, process: Process| {
        with(&at, &context, |run| {
            run.release(&crate::threads::Threads::any())?;
            let asked = run.system("stop")?.ask_to_end(process.0);
            run.wait_until("stop", |system| system.has_stopped(process.0, asked))
        })
    });
    let at = state.clone();
    engine.register_fn("wait_for_end", move |context: NativeCallContext<'_>, process: Process| {
        with(&at, &context, |run| {
            run.wait_until("wait_for_end", |system| system.status(process.0).is_some())?;
            Ok(run.system("wait_for_end")?.status(process.0).map_or(0, INT::from))
        })
    });
    let at = state.clone();
    engine.register_fn("wait_for_port", move |context: NativeCallContext<'_>, port: INT| {
        with(&at, &context, |run| {
            let port = u16::try_from(port)
                .map_err(|_| Stop::Wrong("a port is a number from 0 to 65535".to_owned()))?;
            run.wait_until("wait_for_port", |_| is_listened_on(port))
        })
    });
    let at = state.clone();
    engine.register_fn(
        "wait_for_output",
        move |context: NativeCallContext<'_>, process: Process, text: ImmutableString| {
            with(&at, &context, |run| {
                run.wait_until("wait_for_output", |system| system.output(process.0).contains(text.as_str()))
            })
        },
    );
    let at = state.clone();
    engine.register_fn("of_program", move |context: NativeCallContext<'_>, name: ImmutableString| {
        with(&at, &context, |run| program(run, &name).map(Predicate::Program))
    });
    let at = state.clone();
    engine.register_fn("in_process", move |context: NativeCallContext<'_>, process: Process| {
        with(&at, &context, |run| Ok(Predicate::Process(run.system("in_process")?.pid(process.0))))
    });
    let (output, status, ended, text) = (state.clone(), state.clone(), state.clone(), state.clone());
    let system = |state: &Shared, work: &mut dyn FnMut(&mut heisen_engine::process::system::System)| {
        if let Ok(system) = state.borrow_mut().run.system("a process") {
            work(system);
        }
    };
    engine
        .register_get("output", move |process: &mut Process| {
            let mut out = String::new();
            system(&output, &mut |system| out = system.output(process.0));
            out
        })
        .register_get("status", move |process: &mut Process| {
            let mut out = Dynamic::UNIT;
            system(&status, &mut |system| {
                out = system.status(process.0).map_or(Dynamic::UNIT, |status| INT::from(status).into());
            });
            out
        })
        .register_get("has_ended", move |process: &mut Process| {
            let mut out = false;
            system(&ended, &mut |system| out = system.status(process.0).is_some());
            out
        })
        .register_fn("to_string", move |process: &mut Process| {
            let mut out = String::new();
            system(&text, &mut |system| out = system.name(process.0).to_owned());
            out
        })
        .register_fn("==", |one: Process, other: Process| one == other)
        .register_get("pid", |event: &mut Event| INT::from(event.process));
}
