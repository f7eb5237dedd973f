//! The log of symbolic traces: appends nodes and events to the mapping that `heisen_wire::symbolic` describes.
//!
//! An execution logs a trace if its plan asks for it and the engine has passed the mapping. Once the mapping is full,
//! nothing more is logged.

use crate::platform::baton::{Flag, Guarded};
use crate::platform::sys;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use heisen_wire::symbolic::{Chosen, Event, Header, MAGIC, Node, pack, size};

struct SymbolicLog {
    /// The address of the mapping; 0 if there is none.
    at: Cell<usize>,
    /// The number of the last event of a visible operation, plus 1.
    synced: Cell<u64>,
}

static LOG: Guarded<SymbolicLog> = Guarded::new(SymbolicLog { at: Cell::new(0), synced: Cell::new(0) });

/// Whether the execution that runs logs a trace, and there is room.
static ON: Flag = Flag::new(false);

/// The content of an event, except for its step and its thread.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    /// One of `heisen_wire::symbolic::kind`.
    pub kind: u8,
    /// The number of an operation, or 0.
    pub op: u8,
    /// The address or object.
    pub address: u64,
    pub value: u64,
    /// The expression.
    pub id: u32,
    pub size: u32,
    pub pc: usize,
}

/// Maps the file of the engine at an address. Returns whether it is a symbolic trace.
pub fn attach(fd: i32, at: usize) -> bool {
    let Some(length) = sys::map_shared_at(fd, at) else { return false };
    if length < size_of::<Header>() {
        return false;
    }
    LOG.at.set(at);
    let header = header();
    let (nodes, events) = (header.nodes_room.load(Relaxed), header.events_room.load(Relaxed));
    let fits = nodes.max(events) < 1 << 32 && size(nodes, events) <= length as u64;
    if header.magic.load(Relaxed) != MAGIC || !fits {
        LOG.at.set(0);
    }
    is_attached()
}

/// Whether the engine has passed a mapping.
pub fn is_attached() -> bool {
    LOG.at.get() != 0
}

/// The start of the mapping. Must only be called if there is one.
#[inline(always)]
pub fn header() -> &'static Header {
    // SAFETY: `attach` has mapped it for as long as the process lives; all its fields are atomics.
    unsafe { &*(LOG.at.get() as *const Header) }
}

/// The room for nodes, and behind it that for events.
fn nodes() -> &'static [Node] {
    let count = header().nodes_room.load(Relaxed) as usize;
    // SAFETY: `attach` has checked that the mapping has room for so many.
    unsafe { core::slice::from_raw_parts((LOG.at.get() + size_of::<Header>()) as *const Node, count) }
}

fn events() -> &'static [Event] {
    let count = header().events_room.load(Relaxed) as usize;
    // SAFETY: as above.
    unsafe { core::slice::from_raw_parts(nodes().as_ptr_range().end.cast::<Event>(), count) }
}

/// Whether the execution that runs logs a trace, and there is room.
#[inline(always)]
pub fn is_on() -> bool {
    ON.get()
}

/// Begins the trace of an execution, or sees to it that there is none.
pub fn begin(wanted: bool) {
    ON.set(wanted && is_attached());
    LOG.synced.set(0);
    if is_attached() {
        let header = header();
        for count in [&header.nodes, &header.events, &header.overwritten, &header.names_length] {
            count.store(0, Relaxed);
        }
        header.threads.store(0, Relaxed);
        header.called_count.store(0, Relaxed);
        header.unchosen.store(0, Relaxed);
        header.pinned.iter().for_each(|count| count.store(0, Relaxed));
        header.full.store(0, Relaxed);
        header.incomplete.store(0, Relaxed);
    }
}

/// Logs nothing more: the mapping is full.
#[cold]
pub fn fill() {
    header().full.store(1, Relaxed);
    ON.set(false);
}

/// Logs nothing more, because the process is no longer controlled.
pub fn leave() {
    ON.set(false);
}

/// Adds one to a count of the header.
pub fn count(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

/// A function without instrumentation is called, or looked up, whose name is at this address.
pub fn called(name: u64) {
    let header = header();
    let count = header.called_count.load(Relaxed) as usize;
    if header.called.iter().take(count).any(|known| known.load(Relaxed) == name) {
        return;
    }
    if let Some(place) = header.called.get(count) {
        place.store(name, Relaxed);
    }
    header.called_count.store(count as u64 + 1, Relaxed);
}

/// A thread exists.
pub fn thread(number: usize, parent: u16, child: u16) {
    let header = header();
    if let Some(place) = header.parents.get(number) {
        place.store(u32::from(parent) | u32::from(child) << 16, Relaxed);
        header.threads.store(number as u64 + 1, Relaxed);
    }
}

/// Whether there is room for `nodes` more nodes and `events` more events; if not, the trace ends.
#[inline]
fn has_room(nodes: u64, events: u64) -> bool {
    let header = header();
    let has = header.nodes.load(Relaxed) + nodes <= header.nodes_room.load(Relaxed)
        && header.events.load(Relaxed) + events <= header.events_room.load(Relaxed);
    if !has {
        fill();
    }
    has
}

/// The node with this id, which is not 0.
#[inline(always)]
pub fn node(id: u32) -> [u64; 4] {
    nodes()[id as usize - 1].each_ref().map(|word| word.load(Relaxed))
}

/// How many nodes there are. Ids from 1 up to this number are valid.
#[inline(always)]
pub fn node_count() -> u32 {
    header().nodes.load(Relaxed) as u32
}

/// Appends a node and returns its id; 0 if there is no room.
pub fn push_node(words: [u64; 4]) -> u32 {
    if !has_room(1, 0) {
        return 0;
    }
    let count = header().nodes.load(Relaxed);
    for (place, word) in nodes()[count as usize].iter().zip(words) {
        place.store(word, Relaxed);
    }
    header().nodes.store(count + 1, Relaxed);
    count as u32 + 1
}

/// Appends an event of a thread at a step. Returns whether there was room.
pub fn push_event(step: u32, thread: u16, event: Logged) -> bool {
    if !has_room(0, 1) {
        return false;
    }
    let count = header().events.load(Relaxed);
    let words = [
        pack(step, thread, event.kind, event.op),
        event.address,
        event.value,
        u64::from(event.id) | u64::from(event.size) << 32,
        event.pc as u64,
    ];
    for (place, word) in events()[count as usize].iter().zip(words) {
        place.store(word, Relaxed);
    }
    header().events.store(count + 1, Relaxed);
    true
}

/// Appends an event together with its unknown, a node of `bits` bits. Returns the node's id; 0 if there is no room.
pub fn push_unknown(step: u32, thread: u16, bits: u32, event: Logged) -> u32 {
    if !has_room(1, 1) {
        return 0;
    }
    let index = header().events.load(Relaxed);
    let id = push_node([heisen_abi::symbolic::operation(0, 0, bits).into(), index, 0, 0]);
    push_event(step, thread, Logged { id, ..event });
    id
}

/// Appends an event of a visible operation.
pub fn push_operation(step: u32, thread: u16, event: Logged) {
    if push_event(step, thread, event) {
        LOG.synced.set(header().events.load(Relaxed));
    }
}

/// What comes next is no visible operation that may fail.
pub fn no_operation() {
    LOG.synced.set(0);
}

/// Marks the last visible operation as failed.
pub fn failed() {
    let last = LOG.synced.get();
    if is_on() && last != 0 {
        let word = &events()[last as usize - 1][3];
        word.store(word.load(Relaxed) & u64::from(u32::MAX), Relaxed);
    }
}

/// The position and length of a name among the names, which gets it if it is new. A name that has no room is cut off.
pub fn name(bytes: &[u8]) -> u64 {
    let header = header();
    let used = header.names_length.load(Relaxed) as usize;
    let bytes = &bytes[..bytes.len().min(header.names.len())];
    let is_at = |&at: &usize| {
        header.names[at..at + bytes.len()].iter().zip(bytes).all(|(a, b)| a.load(Relaxed) == *b)
    };
    let known = (0..(used + 1).saturating_sub(bytes.len())).find(is_at);
    let (at, length) = match known {
        Some(at) => (at, bytes.len()),
        None => {
            let room = bytes.len().min(header.names.len() - used);
            for (place, byte) in header.names[used..].iter().zip(&bytes[..room]) {
                place.store(*byte, Relaxed);
            }
            header.names_length.store((used + room) as u64, Relaxed);
            (used, room)
        }
    };
    at as u64 | (length as u64) << 32
}

/// The value that the engine has chosen for an input, which the program reads with so many bits: the key of its thread, and
/// its number among the inputs of that thread.
pub fn chosen(thread: u64, number: u64, bits: u32) -> Option<u64> {
    if !is_attached() {
        return None;
    }
    let header = header();
    let count = header.chosen_count.load(Relaxed) as usize;
    let all = &header.chosen[..count.min(header.chosen.len())];
    let key = |one: &Chosen| (one.thread.load(Relaxed), one.number.load(Relaxed));
    let Some(found) = all.binary_search_by_key(&(thread, number), key).ok().map(|at| &all[at]) else {
        self::count(&header.unchosen);
        return None;
    };
    found.read.store(bits.into(), Relaxed);
    Some(found.value.load(Relaxed))
}
