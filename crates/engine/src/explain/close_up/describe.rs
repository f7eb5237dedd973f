//! Describes threads, objects and events of a paused program in terms of its source: functions, variables,
//! places, lock holders.

use super::TraceLine;
use super::blocked::{holders, is_sleep, missed_wakeup, takes};
use super::namer::Namer;
use crate::explain::cycle;
use crate::process::slots::{Event, report_of, saved_registers};
use heisen_inspect::View;
use heisen_inspect::value::ValueType;
use heisen_trace::cycle::{Cycle, Repeated};
use heisen_trace::explanation::untyped;
use heisen_trace::finding::{Held, ThreadEnd};
use heisen_trace::{Op, Stack, ThreadId};
use heisen_wire::{MUTEX_OWNER, NO_THREAD, TID_BASE, Thread, WITHOUT_OWNER, Wire, state};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// The stack of a thread that is switched out, from the registers that the switch left on it.
pub(super) fn paused_stack(view: &mut View<'_>, t: &Thread) -> Stack {
    if t.state.load(Relaxed) == state::NEW {
        return Stack(view.frame_at(t.start.load(Relaxed), false));
    }
    let registers = saved_registers(view, t.sp.load(Relaxed));
    registers.map_or_else(Stack::default, |registers| view.stack(registers))
}

/// The given stack. If it has no place, because a signal made the thread yield, the place of its last step.
pub(super) fn or_place(stack: Stack, view: &mut View<'_>, t: &Thread) -> Stack {
    let op = t.op.load(Relaxed);
    if op != Op::Yield as u32 || stack.place().is_some() {
        return stack;
    }
    Stack(view.frame_at(t.pc.load(Relaxed), true))
}

/// Whether this is a timer of the program. A timer runs only code of the runtime.
pub(super) fn is_timer(view: &mut View<'_>, t: &Thread) -> bool {
    let start = view.frame_at(t.start.load(Relaxed), false);
    start.iter().any(|f| f.function.contains("heisen_runtime"))
}

/// The function that a thread runs: its start function or, if that belongs to a library, the program's
/// outermost function.
pub(super) fn thread_name(view: &mut View<'_>, t: &Thread, stack: &Stack) -> String {
    let start = view.frame_at(t.start.load(Relaxed), false);
    let own = start.iter().chain(stack.0.iter().rev()).find(|f| f.own);
    own.map_or(String::new(), |f| f.function.clone())
}

/// The creation path of a thread, such as `0.1.3`.
pub(super) fn path_of(wire: &Wire, number: usize) -> String {
    let t = &wire.threads[number];
    match t.parent.load(Relaxed) {
        NO_THREAD => "0".to_owned(),
        parent if (parent as usize) < number => {
            format!("{}.{}", path_of(wire, parent as usize), t.child.load(Relaxed))
        }
        _ => "?".to_owned(),
    }
}

/// The name of an operation's object: a variable, a thread, or an address.
pub(super) fn object_name(
    view: &mut View<'_>,
    wire: &Wire,
    namer: &mut Namer,
    op: Op,
    object: u64,
) -> String {
    let memory = |view: &mut View<'_>| namer.name(view, wire, object);
    name_with(view, wire, op, object, memory)
}

/// The name of an operation's object. `memory` names an object in memory.
fn name_with(
    view: &mut View<'_>,
    wire: &Wire,
    op: Op,
    object: u64,
    memory: impl FnOnce(&mut View<'_>) -> String,
) -> String {
    if object == 0 || op == Op::Assert {
        return String::new();
    }
    match op {
        Op::Point => object.to_string(),
        Op::Choose => format!("{} of {}", object & 0xffff, object >> 16),
        Op::Alloc => format!("{object} bytes"),
        Op::WaitChild => match object as i32 {
            process @ 1.. => format!("process {process}"),
            _ => "any process".to_owned(),
        },
        op if op.is_on_descriptor() => format!("descriptor {object}"),
        Op::Create | Op::Handler => {
            view.frame_at(object, false).last().map_or(String::new(), |f| f.function.clone())
        }
        Op::Join | Op::Kill => match thread_of_handle(wire, object) {
            Some(id) => id.to_string(),
            None => format!("{object:#x}"),
        },
        _ => memory(view),
    }
}

/// The name of a block, by that of its first bytes: `*queue` for `queue->items`.
pub(super) fn block_name(first: &str) -> String {
    let (name, number) =
        first.split_once(" #").map_or((first, String::new()), |(n, k)| (n, format!(" #{k}")));
    match name.rsplit_once("->") {
        Some((pointer, _)) => format!("*{pointer}{number}"),
        None => first.to_owned(),
    }
}

/// The thread with this handle.
fn thread_of_handle(wire: &Wire, handle: u64) -> Option<ThreadId> {
    let count = report_of(wire).threads.load(Relaxed) as usize;
    let number = wire.threads.iter().take(count).position(|t| t.handle.load(Relaxed) == handle)?;
    Some(ThreadId(number as u16))
}

pub(super) fn describe_thread(
    view: &mut View<'_>,
    wire: &Wire,
    namer: &mut Namer,
    number: usize,
    stack: Stack,
    events: &[Event],
) -> ThreadEnd {
    let t = &wire.threads[number];
    let id = ThreadId(number as u16);
    let op = Op::from_code(t.op.load(Relaxed) as u8).unwrap_or(Op::Start);
    let object = t.object.load(Relaxed);
    ThreadEnd {
        thread: id,
        op,
        object: object_name(view, wire, namer, op, object),
        holder: None,
        holder_ended: false,
        missed_wakeup: is_sleep(op) && missed_wakeup(events, id, object),
        blocked: t.state.load(Relaxed) == state::BLOCKED,
        holds: held_by(view, wire, namer, id, events).into_iter().map(|lock| lock.held).collect(),
        stack,
    }
}

/// The threads that hold what a thread waits for: one by the words of a mutex, otherwise all by the log.
pub(super) fn holders_for(view: &View<'_>, t: &Thread, events: &[Event]) -> Vec<ThreadId> {
    let needs = t.needs.load(Relaxed);
    match Op::from_code(t.op.load(Relaxed) as u8) {
        Some(Op::Lock) if needs & WITHOUT_OWNER != 0 => holders(events, needs & !WITHOUT_OWNER),
        Some(Op::Lock | Op::TimedLock | Op::Relock) if needs != 0 => {
            holder_of(view, needs).map_or_else(|| holders(events, needs), |holder| vec![holder])
        }
        Some(Op::ReadLock | Op::WriteLock) if needs != 0 => holders(events, t.object.load(Relaxed)),
        _ => Vec::new(),
    }
}

fn holder_of(view: &View<'_>, mutex: u64) -> Option<ThreadId> {
    let mut word = [0];
    // The first word of a held mutex is not 0.
    view.read_words(mutex, &mut word).ok().filter(|()| word[0] as u32 != 0)?;
    view.read_words(mutex + MUTEX_OWNER as u64, &mut word).ok()?;
    let number = (word[0] as u32 as i32).checked_sub(TID_BASE)?;
    u16::try_from(number).ok().map(ThreadId)
}

/// A lock that a thread holds, with the event by which it took the lock.
pub(crate) struct HeldSince {
    pub(crate) held: Held,
    /// The index of the event.
    pub(crate) event: usize,
    /// Whether the place is in the program's own code.
    pub(crate) own: bool,
}

/// The locks that a thread holds, by the log.
pub(super) fn held_by(
    view: &mut View<'_>,
    wire: &Wire,
    namer: &mut Namer,
    thread: ThreadId,
    events: &[Event],
) -> Vec<HeldSince> {
    let mut held: Vec<usize> = Vec::new();
    for (index, event) in events.iter().enumerate().filter(|(_, e)| e.thread == thread && e.ok) {
        match takes(event) {
            Some(true) => held.push(index),
            Some(false) => {
                if let Some(at) = held.iter().rposition(|&taken| events[taken].object == event.object) {
                    held.remove(at);
                }
            }
            None => {}
        }
    }
    // A thread that waits for a lock has no event for it yet: the event is logged when it gets the lock.
    let describe = |index: usize| {
        let stack = Stack(view.frame_at(events[index].pc, true));
        let frame = stack.place();
        let object = object_name(view, wire, namer, Op::Lock, events[index].object);
        let held = Held { object, place: frame.map_or(String::new(), |f| f.place()) };
        HeldSince { held, event: index, own: frame.is_some_and(|f| f.own) }
    };
    held.into_iter().map(describe).collect()
}

/// The global variables or functions that begin at addresses; `None` where none begins.
pub(super) type Pointed = HashMap<u64, Option<String>>;

/// All events with their names and places, as far as the end of the execution shows them, and which of them use memory
/// that has no name of its own.
pub(super) fn describe_events(
    view: &mut View<'_>,
    wire: &Wire,
    events: Vec<Event>,
    pointed: &mut Pointed,
) -> (Vec<TraceLine>, Vec<bool>) {
    let mut places: HashMap<u64, (String, String, bool)> = HashMap::new();
    let mut objects: HashMap<(u64, Op), (String, bool)> = HashMap::new();
    let mut types: HashMap<(u64, u8), Option<ValueType>> = HashMap::new();
    events
        .into_iter()
        .map(|event| {
            let place = places.entry(event.pc).or_insert_with(|| {
                let starts = event.op == Op::Start;
                let stack = Stack(view.frame_at(event.pc, !starts));
                stack.place().map_or_else(Default::default, |f| (f.place(), f.function.clone(), f.own))
            });
            let (place, function, own) = place.clone();
            let (object, unnamed) = objects
                .entry((event.object, event.op))
                .or_insert_with(|| {
                    let mut unnamed = false;
                    let name = name_with(view, wire, event.op, event.object, |view| {
                        let global = view.global_name(event.object);
                        unnamed = global.is_none();
                        global.unwrap_or_else(|| format!("{:#x}", event.object))
                    });
                    (name, unnamed)
                })
                .clone();
            let value = event.access.map_or_else(String::new, |access| {
                if access.size == 8 && !pointed.contains_key(&access.value) {
                    pointed.insert(access.value, view.symbol_at(access.value));
                }
                let pointed = |address| pointed.get(&address).cloned().flatten();
                let key = (event.object, access.size);
                let of = types.entry(key).or_insert_with(|| view.global_type(event.object, access.size));
                match of {
                    Some(of) => of.text(access.value, access.size, pointed),
                    None => untyped(access.value, access.size),
                }
            });
            (TraceLine { event, object, value, place, function, own }, unnamed)
        })
        .unzip()
}

pub(super) fn describe_cycle(
    view: &mut View<'_>,
    wire: &Wire,
    namer: &mut Namer,
    found: cycle::Found,
) -> Cycle {
    let describe = |(event, times): (Event, u32)| Repeated {
        thread: event.thread,
        op: event.op,
        object: object_name(view, wire, namer, event.op, event.object),
        ok: event.ok,
        times,
        stack: Stack(view.frame_at(event.pc, true)),
    };
    let steps = found.events.into_iter().map(describe).collect();
    Cycle { order: found.order, of: found.of as u32, length: found.length as u32, steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_named_by_the_pointer_to_it() {
        let names = ["semaphore->value", "a->b->c #2", "*hint #2", "heap block of 8 bytes"];
        assert_eq!(names.map(block_name), ["*semaphore", "*a->b #2", "*hint #2", "heap block of 8 bytes"]);
    }
}
