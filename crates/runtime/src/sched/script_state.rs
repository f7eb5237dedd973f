//! The state of a script that the scheduler needs: which threads the script holds, and which choices it has
//! fixed.
//!
//! `script::unit_mode` follows the script and sets this state.

use super::decision::Choices;
use super::me;
use crate::platform::baton::Flag;
use crate::wire_log;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::DecisionKind;
use heisen_wire::script::{ANYONE, MAX_PROMISES, Promise, Script, Set};

struct State {
    on: Flag,
    /// Whether the script has fixed any choice. Such promises also hold after the script's end.
    promised: Flag,
}

static STATE: State = State { on: Flag::new(false), promised: Flag::new(false) };

fn script() -> &'static Script {
    &wire_log::wire().script
}

/// Whether a thread is in a set of the script.
pub fn has(set: &Set, number: usize) -> bool {
    set[number / 64].load(Relaxed) >> (number % 64) & 1 != 0
}

/// Whether a script controls the execution.
#[inline]
pub fn is_on() -> bool {
    STATE.on.get()
}

/// Sets whether a script controls the execution.
pub fn set_on(on: bool) {
    STATE.on.set(on);
}

/// Sets whether the script has fixed any choice; returns whether that has changed.
pub fn set_promised(promised: bool) -> bool {
    let before = STATE.promised.get();
    STATE.promised.set(promised);
    before != promised
}

/// A word of the set of threads that the script holds.
pub fn held(word: usize) -> u64 {
    if is_on() { script().held[word].load(Relaxed) } else { 0 }
}

/// Whether the script has also selected threads that do not exist yet.
pub fn waits_for_new(script: &Script) -> bool {
    has(&script.select, heisen_wire::MAX_THREADS - 1)
}

/// The choice for the next step: the first thread that the script has selected by name, or the default.
pub fn choose(choices: Choices) -> usize {
    let script = script();
    if !is_on() || waits_for_new(script) {
        return 0;
    }
    choices.iter().position(|number| has(&script.select, number)).unwrap_or(0)
}

fn promises() -> &'static [Promise] {
    if !STATE.promised.get() {
        return &[];
    }
    let script = script();
    &script.promises[..(script.promised.load(Relaxed) as usize).min(MAX_PROMISES)]
}

/// Whether the script has a promise left about a decision of this kind.
pub fn promises_any(kind: DecisionKind) -> bool {
    promises().iter().any(|promise| promise.kind.load(Relaxed) == kind as u32)
}

/// The choice that the script has promised for a decision of the running thread, as an index. `find` returns
/// the index of a choice by its name. A promise that matches no choice is about a later decision.
pub fn promised(kind: DecisionKind, find: impl Fn(usize) -> Option<usize>) -> Option<usize> {
    let mut kept = None;
    for promise in promises() {
        let Promise { kind: of, thread, value, nth } = promise;
        let whose = thread.load(Relaxed);
        if of.load(Relaxed) != kind as u32 || whose != ANYONE && whose as usize != me() {
            continue;
        }
        let Some(index) = find(value.load(Relaxed) as usize) else { continue };
        match nth.load(Relaxed) {
            0 | 1 if kept.is_none() => {
                of.store(0, Relaxed);
                kept = Some(index);
            }
            0 | 1 => {}
            left => nth.store(left - 1, Relaxed),
        }
    }
    kept
}
