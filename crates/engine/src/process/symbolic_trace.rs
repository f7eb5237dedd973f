//! The memory for symbolic traces, which the runtime fills, and the reader of what it has written there.
//!
//! The reader trusts nothing: the program under test may overwrite any memory. A trace ends before the first node or event
//! that makes no sense, and then counts as cut off.

use crate::error::{Error, Result};
use crate::platform::sys::Mapping;
use crate::process::named_places::{self, NamedPlaces};
use crate::process::run_config::Symbolic;
use crate::program::foreign;
use heisen_trace::marked::{self, Marked, Source};
use heisen_trace::schedule::InputLine;
use heisen_trace::symbolic::{
    ChosenInput, EventKind, FutexAct, InputKey, Losses, Node, NodeId, Operand, PinReason, SymbolicEvent,
    SymbolicTrace,
};
use heisen_trace::value_op::mask;
use heisen_trace::{Op, ValueOp};
use heisen_wire::symbolic::{
    CALLED_ALONE, ENV_FD, GRANULE, Header, MAX_CALLED, MAX_CHOSEN, MAX_MARKED, MAX_SHARED, futex, kind,
    rooms, source, unpack,
};
use heisen_wire::{MAX_THREADS, NO_THREAD};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The memory for the symbolic traces of one parked program.
#[derive(Debug)]
pub(crate) struct TraceMemory {
    mapping: Mapping<Header>,
    /// The inputs of executions whose plan chooses none.
    inputs: Vec<ChosenInput>,
    shared: Arc<Mutex<BTreeSet<u64>>>,
    /// Shared memory as it is in the parked program, by granule; `None` where there is none.
    initial: Mutex<BTreeMap<u64, Option<[u8; GRANULE as usize]>>>,
    names: NamedPlaces,
    /// Whether to compare each expression with the value that the program had.
    checks: bool,
}

/// The variable of the environment for that.
const CHECKS: &str = "HEISEN_CHECK_EXPRESSIONS";

impl TraceMemory {
    /// Reserves the memory.
    pub(crate) fn new(config: &Symbolic, marked: &[Marked]) -> Result<TraceMemory> {
        let (nodes, events) = rooms(config.memory);
        // Numbers of nodes and events have 32 bits.
        let (nodes, events) = (nodes.min(u32::MAX.into()), events.min(u32::MAX.into()));
        let mapping = Mapping::for_trace(nodes, events).map_err(|e| {
            Error::Internal(format!("no shared memory for symbolic traces: {e}; lower --trace-memory"))
        })?;
        write_marked(mapping.header(), marked);
        Ok(TraceMemory {
            mapping,
            inputs: config.inputs.iter().filter_map(InputLine::chosen).collect(),
            shared: config.shared.clone(),
            initial: Mutex::default(),
            names: NamedPlaces::default(),
            checks: std::env::var_os(CHECKS).is_some_and(|value| value == "1"),
        })
    }

    /// Passes the memory to the program that `command` starts.
    pub(crate) fn pass_to(&self, command: &mut Command) {
        let fd = self.mapping.pass_to(command);
        command.env(ENV_FD, fd.to_string());
    }

    /// Prepares it for an execution whose plan chooses these inputs.
    pub(crate) fn prepare(&self, inputs: &[ChosenInput]) {
        let header = self.mapping.header();
        let mut inputs = if inputs.is_empty() { self.inputs.clone() } else { inputs.to_vec() };
        inputs.sort_by_key(|input| input.key);
        for (out, input) in header.chosen.iter().zip(&inputs) {
            out.read.store(0, Relaxed);
            out.thread.store(input.key.thread, Relaxed);
            out.number.store(input.key.number, Relaxed);
            out.value.store(input.value, Relaxed);
        }
        header.chosen_count.store(inputs.len().min(MAX_CHOSEN) as u64, Relaxed);
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        for (out, granule) in header.shared.iter().zip(shared.iter()) {
            out.store(*granule, Relaxed);
        }
        header.shared_count.store(shared.len().min(MAX_SHARED) as u64, Relaxed);
        header.incomplete.store(0, Relaxed);
    }

    /// After an execution that read chosen inputs: which of them it has not read, or with another number of bits than the
    /// schedule says, and how many it has read that the schedule does not have. `inputs` are those of the schedule.
    pub(crate) fn misfit(&self, inputs: &[InputLine]) -> Option<Misfit> {
        let header = self.mapping.header();
        let count = (header.chosen_count.load(Relaxed) as usize).min(MAX_CHOSEN);
        let read: HashMap<InputKey, u64> = header.chosen[..count]
            .iter()
            .map(|one| {
                let key = InputKey { thread: one.thread.load(Relaxed), number: one.number.load(Relaxed) };
                (key, one.read.load(Relaxed))
            })
            .collect();
        let misfits = |line: &InputLine| {
            let bits = line.chosen().and_then(|chosen| read.get(&chosen.key).copied()).unwrap_or(0);
            match bits {
                0 => Some(Misfit::Unread(line.clone())),
                bits if bits != u64::from(line.width) => Some(Misfit::Width(line.clone(), bits)),
                _ => None,
            }
        };
        let unchosen = header.unchosen.load(Relaxed);
        let width =
            inputs.iter().filter_map(misfits).max_by_key(|misfit| matches!(misfit, Misfit::Width(..)));
        width.or((unchosen > 0).then_some(Misfit::Missing(unchosen)))
    }

    /// After an execution: remembers the shared granules that it has found. Whether it found any, so that its plan must run
    /// again.
    pub(crate) fn must_run_again(&self) -> bool {
        let found = shared(self.mapping.header());
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shared.len();
        shared.extend(found);
        self.mapping.header().incomplete.load(Relaxed) != 0 && shared.len() > before
    }

    /// Reads the trace of the last execution. `parked` is the process of the parked program.
    pub(crate) fn read(&self, parked: i32) -> Result<SymbolicTrace> {
        let header = self.mapping.header();
        let initial = self.initial(parked, shared(header));
        let mut trace = read(header, self.mapping.words(), initial);
        trace.called = called(header, parked);
        trace.losses.functions = self.functions(parked, &trace);
        let first_wrong = if self.checks { trace.wrong_events().first().copied() } else { None };
        match first_wrong {
            Some(at) => Err(wrong(parked, &trace, at)),
            None => Ok(trace),
        }
    }

    /// The functions without instrumentation that have taken expressions, and how many.
    fn functions(&self, parked: i32, trace: &SymbolicTrace) -> Vec<(String, u64)> {
        let mut functions = BTreeMap::new();
        for event in &trace.events {
            if let EventKind::Pin { reason: PinReason::Foreign, .. } = event.kind
                && let Some(name) = self.names.function(parked, event.pc)
            {
                *functions.entry(name).or_insert(0) += 1;
            }
        }
        functions.into_iter().collect()
    }

    /// The content of these granules when an execution begins: that in the parked program.
    fn initial(&self, parked: i32, granules: impl Iterator<Item = u64>) -> Vec<(u64, u8)> {
        let memory = File::open(format!("/proc/{parked}/mem"));
        let mut known = self.initial.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = BTreeMap::new();
        for granule in granules {
            let Some(address) = granule.checked_mul(GRANULE) else { continue };
            let content = known.entry(granule).or_insert_with(|| {
                let mut content = [0; GRANULE as usize];
                let memory = memory.as_ref().ok()?;
                memory.read_exact_at(&mut content, address).ok().map(|()| content)
            });
            bytes.extend((address..).zip(content.iter().flatten().copied()));
        }
        bytes.into_iter().collect()
    }
}

/// The error for an event whose expression has another value than the program had.
fn wrong(parked: i32, trace: &SymbolicTrace, at: usize) -> Error {
    let event = &trace.events[at];
    let (expression, value) = match event.kind {
        EventKind::Branch { condition, taken } => (Some(condition), u64::from(taken)),
        EventKind::Assume { condition, holds } => (Some(condition), u64::from(holds)),
        EventKind::Pin { node, value, .. } => (Some(node), value),
        EventKind::Write { operand: Operand::Node(node), value, .. } => (Some(node), value),
        _ => (None, 0),
    };
    let known = expression.and_then(|node| trace.values()[node.0 as usize]);
    let known = known.map_or("no value".into(), |known| format!("{known:#x}"));
    Error::Internal(format!(
        "{CHECKS}: an expression has {known}, and the program had {value:#x}, in T{} at {}; this is a bug of Heisen, please \
         report it with the program",
        event.thread,
        named_places::place(parked, event.pc),
    ))
}

/// The functions that were called, by name, unless they cannot depend on threads or inputs. One whose name cannot be read has another.
fn called(header: &Header, parked: i32) -> Vec<String> {
    const LONGEST: usize = 128;
    let count = header.called_count.load(Relaxed) as usize;
    let memory = File::open(format!("/proc/{parked}/mem"));
    let name = |address: u64| {
        let mut bytes = Vec::new();
        // A name may end shortly before memory that cannot be read.
        while bytes.len() < LONGEST {
            let mut byte = [0];
            let at = address.checked_add(bytes.len() as u64)?;
            memory.as_ref().ok()?.read_exact_at(&mut byte, at).ok()?;
            if byte[0] == 0 {
                break;
            }
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    };
    let names = header.called[..count.min(MAX_CALLED)].iter().filter_map(|at| {
        let at = at.load(Relaxed);
        let name = name(at & !CALLED_ALONE).unwrap_or_else(|| "?".into());
        (at & CALLED_ALONE == 0 || foreign::may_depend_on_inputs(&name)).then_some(name)
    });
    names.chain((count > MAX_CALLED).then(|| "others".into())).collect()
}

/// How the inputs of a schedule do not fit what the program has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The program has read this input with so many bits.
    Width(InputLine, u64),
    /// The program has not read it.
    Unread(InputLine),
    /// The program has read so many inputs that the schedule does not have.
    Missing(u64),
}

/// Tells the runtime which bytes from outside are inputs.
fn write_marked(header: &Header, marked: &[Marked]) {
    let mut used = 0;
    let mut write = |text: &[u8]| {
        let at = used;
        for (place, byte) in header.marked_text[at..].iter().zip(text) {
            place.store(*byte, Relaxed);
        }
        used = (at + text.len() + 1).min(header.marked_text.len());
        at as u32
    };
    for (out, mark) in header.marked.iter().zip(marked) {
        let name = mark.name(marked);
        out.bytes.store(mark.bytes as u32, Relaxed);
        out.name.store(write(name.as_bytes()), Relaxed);
        out.name_length.store(name.len() as u32, Relaxed);
        out.source.store(
            match &mark.source {
                Source::Stdin => source::STDIN,
                Source::Argument(index) => {
                    out.index.store(*index, Relaxed);
                    source::ARGUMENT
                }
                Source::File(path) => {
                    out.path.store(write(path), Relaxed);
                    source::FILE
                }
            },
            Relaxed,
        );
    }
    header.marked_count.store(marked.len().min(MAX_MARKED) as u64, Relaxed);
}

fn shared(header: &Header) -> impl Iterator<Item = u64> {
    let count = header.shared_count.load(Relaxed).min(MAX_SHARED as u64) as usize;
    header.shared[..count].iter().map(|granule| granule.load(Relaxed))
}

/// So many words of each entry of a list.
fn entries<const N: usize>(words: &[AtomicU64], count: u64) -> impl Iterator<Item = [u64; N]> {
    let (entries, _) = words.as_chunks::<N>();
    let count = count.min(entries.len() as u64) as usize;
    entries[..count].iter().map(|entry| entry.each_ref().map(|word| word.load(Relaxed)))
}

/// An event as it lies in memory.
struct Raw {
    step: u32,
    thread: u16,
    kind: u8,
    op: u8,
    address: u64,
    value: u64,
    id: u32,
    size: u32,
    pc: u64,
}

impl Raw {
    fn of([head, address, value, last, pc]: [u64; 5]) -> Raw {
        let (step, thread, kind, op) = unpack(head);
        Raw { step, thread, kind, op, address, value, id: last as u32, size: (last >> 32) as u32, pc }
    }

    /// The size of an access in bytes.
    fn bytes(&self) -> Option<u8> {
        u8::try_from(self.size).ok().filter(|size| (1..=8).contains(size))
    }
}

/// Reads a trace; `initial` is the content of shared memory at its beginning.
fn read(header: &Header, words: &[AtomicU64], initial: Vec<(u64, u8)>) -> SymbolicTrace {
    let (nodes, events) = split(header, words);
    let raw: Vec<Raw> = entries(events, header.events.load(Relaxed)).map(Raw::of).collect();
    let mut raw = without_outdated(raw);
    let shared = header.shared_count.load(Relaxed);
    let mut trace =
        SymbolicTrace { initial, shared, threads: read_threads(header), ..SymbolicTrace::default() };
    let cut = read_nodes(&mut trace, nodes, header.nodes.load(Relaxed), &mut raw);
    let cut = read_events(&mut trace, header, &raw) || cut;
    // Without the events of unknowns there are no unknowns.
    let lost = |node: &Node| matches!(node, Node::Read { event, .. } | Node::Input { event, .. } if *event as usize >= trace.events.len());
    if let Some(first) = trace.nodes.iter().position(lost) {
        trace.nodes.truncate(first);
    }
    let pinned = (1u8..)
        .zip(&header.pinned[1..])
        .map(|(code, count)| (PinReason::from_code(code), count.load(Relaxed)));
    let mut by_reason = BTreeMap::new();
    for (reason, count) in pinned.filter(|(reason, count)| *count != 0 && !reason.is_exact()) {
        *by_reason.entry(reason).or_insert(0) += count;
    }
    trace.losses = Losses {
        pinned: by_reason.into_iter().collect(),
        functions: Vec::new(),
        overwritten: header.overwritten.load(Relaxed),
        full: cut || header.full.load(Relaxed) != 0,
        incomplete: header.incomplete.load(Relaxed) != 0,
    };
    if !trace.losses.incomplete {
        trace.losses.overwritten += unseen_writes(&trace);
    }
    let (counts, unseen) = read_counts(&raw);
    trace.counts = counts;
    trace.losses.overwritten += unseen;
    trace.atomics = atomic_places(&raw);
    trace
}

/// The words of the nodes, and those of the events.
fn split<'a>(header: &Header, words: &'a [AtomicU64]) -> (&'a [AtomicU64], &'a [AtomicU64]) {
    let nodes = header.nodes_room.load(Relaxed).saturating_mul(4);
    words.split_at(nodes.min(words.len() as u64) as usize)
}

/// Removes what threads were about to do at the end where they have done something since. Unknowns are never removed, but
/// their events may have other indices now: the second part says which.
fn without_outdated(raw: Vec<Raw>) -> Events {
    let mut busy = BTreeSet::new();
    let mut kept: Vec<bool> = raw
        .iter()
        .rev()
        .map(|event| {
            let later = !busy.insert(event.thread);
            event.kind != kind::PENDING || !later
        })
        .collect();
    kept.reverse();
    let mut indices = Vec::with_capacity(raw.len());
    let mut next = 0;
    for kept in &kept {
        indices.push(next);
        next += u32::from(*kept);
    }
    let list = raw.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(event, _)| event).collect();
    Events { list, indices }
}

/// The events, and for each index in memory the index in the list.
struct Events {
    list: Vec<Raw>,
    indices: Vec<u32>,
}

fn read_threads(header: &Header) -> Vec<Option<(u16, u16)>> {
    let count = header.threads.load(Relaxed).min(MAX_THREADS as u64) as usize;
    let parents = header.parents[..count].iter().map(|parent| parent.load(Relaxed));
    parents
        .map(|parent| (parent & 0xffff != NO_THREAD).then_some((parent as u16, (parent >> 16) as u16)))
        .collect()
}

/// Reads the nodes. Returns whether one of them makes no sense, and ends the list.
fn read_nodes(trace: &mut SymbolicTrace, words: &[AtomicU64], count: u64, events: &mut Events) -> bool {
    for words in entries(words, count) {
        match read_node(trace, words, events) {
            Some(node) => trace.nodes.push(node),
            None => return true,
        }
    }
    trace.nodes.len() as u64 != count
}

fn read_node(
    trace: &SymbolicTrace,
    [first, second, third, fourth]: [u64; 4],
    events: &Events,
) -> Option<Node> {
    let (code, from, width) = heisen_abi::symbolic::unpack_operation(first as u32);
    if !(1..=64).contains(&width) {
        return None;
    }
    if code == 0 {
        let event = *events.indices.get(usize::try_from(second).ok()?)?;
        return match events.list.get(event as usize)?.kind {
            kind::READ | kind::FUTEX => Some(Node::Read { event, width }),
            kind::INPUT => Some(Node::Input { event, width }),
            _ => None,
        };
    }
    let op = ValueOp::from_code(code)?;
    let mut constants = [third, fourth].into_iter();
    let mut operands = Vec::with_capacity(op.operands());
    let ids = [(first >> 32) as u32, second as u32, (second >> 32) as u32];
    for (index, id) in ids.into_iter().take(op.operands()).enumerate() {
        let bits = if op == ValueOp::Select && index == 0 { 1 } else { from };
        operands.push(match id {
            0 => Operand::Constant(u128::from(constants.next()?) & mask(bits)),
            id => Operand::Node(node_of(trace, id, bits)?),
        });
    }
    let fits = match op {
        op if op.is_test() => width == 1,
        ValueOp::ZExt | ValueOp::SExt => from <= width,
        ValueOp::Trunc => from >= width,
        ValueOp::ByteSwap => from == width && from % 16 == 0,
        _ => from == width,
    };
    (fits && (1..=64).contains(&from)).then_some(Node::Apply { op, from, width, operands })
}

/// The node with this id in memory, if it has this many bits.
fn node_of(trace: &SymbolicTrace, id: u32, bits: u32) -> Option<NodeId> {
    let node = NodeId(id.checked_sub(1)?);
    ((node.0 as usize) < trace.nodes.len() && trace.width(node) == bits).then_some(node)
}

/// Reads the events. Returns whether one of them makes no sense, and ends the list.
fn read_events(trace: &mut SymbolicTrace, header: &Header, events: &Events) -> bool {
    let mut names: HashMap<String, u32> = HashMap::new();
    for (index, raw) in events.list.iter().enumerate() {
        let Some(kind) = read_kind(trace, header, raw, index, &mut names) else { return true };
        trace.events.push(SymbolicEvent { thread: raw.thread, step: raw.step, pc: raw.pc, kind });
    }
    events.indices.len() as u64 != header.events.load(Relaxed)
}

fn read_kind(
    trace: &SymbolicTrace,
    header: &Header,
    raw: &Raw,
    index: usize,
    names: &mut HashMap<String, u32>,
) -> Option<EventKind> {
    let unknown = |bits: u32| {
        let node = node_of(trace, raw.id, bits)?;
        let of = match trace.nodes[node.0 as usize] {
            Node::Read { event, .. } | Node::Input { event, .. } => event as usize,
            Node::Apply { .. } => return None,
        };
        (of == index).then_some(node)
    };
    Some(match raw.kind {
        kind::READ => {
            let size = raw.bytes()?;
            let update = matches!(Op::from_code(raw.op)?, Op::AtomicRmw | Op::AtomicCas);
            let (value, node) = (raw.value & mask(8 * u32::from(size)) as u64, unknown(8 * u32::from(size))?);
            EventKind::Read { address: raw.address, size, value, node, update }
        }
        kind::WRITE => {
            let size = raw.bytes()?;
            let value = raw.value & mask(8 * u32::from(size)) as u64;
            let operand = match raw.id {
                0 => Operand::Constant(value.into()),
                id => Operand::Node(node_of(trace, id, 8 * u32::from(size))?),
            };
            EventKind::Write { address: raw.address, size, value, operand }
        }
        kind::BRANCH => EventKind::Branch { condition: node_of(trace, raw.id, 1)?, taken: raw.value != 0 },
        kind::ASSUME => EventKind::Assume { condition: node_of(trace, raw.id, 1)?, holds: raw.value != 0 },
        kind::PIN => {
            let node = NodeId(raw.id.checked_sub(1)?);
            trace.nodes.get(node.0 as usize)?;
            let reason = PinReason::from_code(raw.size.try_into().unwrap_or(0));
            EventKind::Pin { node, value: raw.value, reason }
        }
        kind::INPUT => {
            let (bits, first) = (raw.size & 0xff, raw.size >> 8);
            let name = read_name(header, raw.address)?;
            let name = if first == 0 { name } else { marked::piece(&name, first - 1) };
            let node = unknown(bits)?;
            let numbers = names.entry(name.clone()).or_insert(0);
            let number = *numbers;
            *numbers += 1;
            EventKind::Input { name, number, width: bits, value: raw.value, node }
        }
        kind::SYNC => EventKind::Sync { op: Op::from_code(raw.op)?, object: raw.address, ok: raw.size != 0 },
        kind::FUTEX if raw.size & ((1 << futex::MOST_SHIFT) - 1) == futex::WAKES => EventKind::FutexWake {
            word: raw.address,
            most: raw.size >> futex::MOST_SHIFT,
            woken: raw.value & mask(futex::COUNT_BITS) as u64,
            node: unknown(futex::COUNT_BITS)?,
        },
        kind::FUTEX => {
            let act = match raw.size {
                futex::WAITS => FutexAct::Waits { timed: false },
                futex::WAITS_TIMED => FutexAct::Waits { timed: true },
                futex::WOKEN => FutexAct::Woken,
                futex::TIMED_OUT => FutexAct::TimedOut,
                _ => return None,
            };
            EventKind::Futex { word: raw.address, act }
        }
        kind::RUNS => EventKind::Runs,
        kind::PENDING => {
            EventKind::Pending { op: Op::from_code(raw.op)?, object: raw.address, blocked: raw.size != 0 }
        }
        _ => return None,
    })
}

fn read_name(header: &Header, at: u64) -> Option<String> {
    let (from, length) = (at as u32 as usize, (at >> 32) as usize);
    let bytes = header.names.get(from..)?.get(..length)?;
    let bytes: Vec<u8> = bytes.iter().map(|byte| byte.load(Relaxed)).collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// How often a read of shared memory had another value than what was written before: code that is not instrumented has
/// written it.
fn unseen_writes(trace: &SymbolicTrace) -> u64 {
    let mut memory: HashMap<u64, u8> = trace.initial.iter().copied().collect();
    let mut unseen = 0;
    for event in &trace.events {
        let (address, size, value, is_read) = match event.kind {
            EventKind::Read { address, size, value, .. } => (address, size, value, true),
            EventKind::Write { address, size, value, .. } => (address, size, value, false),
            _ => continue,
        };
        let mut differs = false;
        for (index, byte) in value.to_le_bytes().into_iter().take(size.into()).enumerate() {
            let before = memory.insert(address.wrapping_add(index as u64), byte);
            differs |= before.is_some_and(|before| before != byte);
        }
        unseen += u64::from(is_read && differs);
    }
    unseen
}

/// The places of atomic accesses.
fn atomic_places(events: &Events) -> Vec<u64> {
    let is_atomic = |raw: &&Raw| {
        matches!(raw.kind, kind::READ | kind::WRITE) && Op::from_code(raw.op).is_some_and(Op::is_atomic)
    };
    let places: BTreeSet<u64> = events.list.iter().filter(is_atomic).map(|raw| raw.pc).collect();
    places.into_iter().collect()
}

/// The counts of semaphores and barriers before their first operation, and how often a later one found another count than
/// the operations before it say: code that is not instrumented has written it.
fn read_counts(events: &Events) -> (Vec<(u64, u64)>, u64) {
    let mut first = BTreeMap::new();
    let mut now = BTreeMap::new();
    let mut unseen = 0;
    for raw in events.list.iter().filter(|raw| matches!(raw.kind, kind::SYNC | kind::PENDING)) {
        let (object, count) = (raw.address, raw.value);
        let did = Op::from_code(raw.op).filter(|_| raw.kind == kind::SYNC && raw.size != 0);
        let after = match Op::from_code(raw.op) {
            Some(Op::SemWait | Op::SemTryWait | Op::SemTimedWait) if did.is_some() => count.wrapping_sub(1),
            Some(Op::SemPost) if did.is_some() => count + 1,
            Some(Op::SemWait | Op::SemTryWait | Op::SemTimedWait | Op::SemPost) => count,
            Some(Op::SemInit | Op::SemGetValue | Op::Barrier) => count,
            _ => continue,
        };
        first.entry(object).or_insert(count);
        let before = now.insert(object, after);
        let is_new = Some(Op::SemInit) == did;
        unseen += u64::from(!is_new && before.is_some_and(|before| before != count));
    }
    (first.into_iter().collect(), unseen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::hash::scatter;
    use heisen_wire::symbolic::pack;

    const ROOM: u64 = 100;

    /// A mapping with these nodes and events. It is large, so it does not lie on the stack.
    fn mapping(nodes: &[[u64; 4]], events: &[[u64; 5]]) -> Mapping<Header> {
        let mapping = Mapping::for_trace(ROOM, ROOM).expect("memory");
        let (of_nodes, of_events) = split(mapping.header(), mapping.words());
        of_nodes.iter().zip(nodes.as_flattened()).for_each(|(to, from)| to.store(*from, Relaxed));
        of_events.iter().zip(events.as_flattened()).for_each(|(to, from)| to.store(*from, Relaxed));
        mapping.header().nodes.store(nodes.len() as u64, Relaxed);
        mapping.header().events.store(events.len() as u64, Relaxed);
        mapping
    }

    fn read_all(mapping: &Mapping<Header>) -> SymbolicTrace {
        read(mapping.header(), mapping.words(), Vec::new())
    }

    fn unknown(bits: u32, event: u64) -> [u64; 4] {
        [heisen_abi::symbolic::operation(0, 0, bits).into(), event, 0, 0]
    }

    fn event(step: u32, kind: u8, op: Op, address: u64, value: u64, id: u64, size: u64) -> [u64; 5] {
        [pack(step, 0, kind, op as u8), address, value, id | size << 32, 7]
    }

    fn binary(op: ValueOp, a: u64, b: u64, constant: u64) -> [u64; 4] {
        [u64::from(heisen_abi::symbolic::operation(op as u8, 32, 32)) | a << 32, b, constant, 0]
    }

    #[test]
    fn reads_what_the_layout_says() {
        let nodes = [unknown(32, 0), binary(ValueOp::Sub, 0, 1, 9)];
        let events = [
            event(1, kind::READ, Op::MemRead, 0x1000, 5, 1, 4),
            event(2, kind::WRITE, Op::MemWrite, 0x1000, 4, 2, 4),
        ];
        let trace = read_all(&mapping(&nodes, &events));
        assert!(trace.losses.is_exact());
        let operands = vec![Operand::Constant(9), Operand::Node(NodeId(0))];
        let sub = Node::Apply { op: ValueOp::Sub, from: 32, width: 32, operands };
        assert_eq!(trace.nodes, [Node::Read { event: 0, width: 32 }, sub]);
        assert_eq!((trace.events.len(), trace.wrong_events()), (2, vec![]));
        assert_eq!((trace.events[1].step, trace.events[1].pc), (2, 7));
    }

    #[test]
    fn what_threads_were_about_to_do_is_removed_if_they_went_on() {
        let nodes = [unknown(32, 1)];
        let events = [
            event(1, kind::PENDING, Op::Lock, 0x1000, 0, 0, 1),
            event(2, kind::READ, Op::MemRead, 0x1000, 5, 1, 4),
            event(3, kind::PENDING, Op::Lock, 0x1000, 0, 0, 1),
        ];
        let trace = read_all(&mapping(&nodes, &events));
        assert_eq!(trace.nodes, [Node::Read { event: 0, width: 32 }]);
        assert_eq!(trace.events.iter().map(|event| event.step).collect::<Vec<_>>(), [2, 3]);
        assert!(trace.losses.is_exact());
    }

    #[test]
    fn a_trace_ends_where_it_makes_no_sense() {
        let read = event(1, kind::READ, Op::MemRead, 0x1000, 5, 1, 4);
        let short = event(1, kind::READ, Op::MemRead, 0x1000, 5, 1, 2);
        let damaged = [
            // An operand that does not come before, has other bits, or an operation that does not exist.
            (vec![unknown(32, 0), binary(ValueOp::Sub, 2, 0, 9)], vec![read], 1, 1),
            (vec![unknown(16, 0), binary(ValueOp::Sub, 1, 0, 9)], vec![short], 1, 1),
            (vec![unknown(32, 0), [200 | 32 << 8 | 32 << 16, 0, 0, 0]], vec![read], 1, 1),
            // An unknown whose event is another, or is missing.
            (vec![unknown(32, 0)], vec![event(1, kind::WRITE, Op::MemWrite, 1, 1, 1, 4)], 0, 0),
            (vec![unknown(32, 9)], vec![read], 0, 0),
            (vec![unknown(32, 0)], vec![event(1, kind::READ, Op::MemRead, 1, 1, 1, 9)], 0, 0),
            // A branch on 32 bits, and a kind that does not exist.
            (vec![unknown(32, 0)], vec![read, event(1, kind::BRANCH, Op::MemRead, 0, 1, 1, 0)], 1, 1),
            (vec![unknown(32, 0)], vec![read, event(1, 99, Op::MemRead, 0, 1, 1, 0)], 1, 1),
        ];
        for (number, (nodes, events, nodes_left, events_left)) in damaged.into_iter().enumerate() {
            let trace = read_all(&mapping(&nodes, &events));
            assert_eq!((trace.nodes.len(), trace.events.len()), (nodes_left, events_left), "case {number}");
            assert!(trace.losses.full, "case {number}");
        }
    }

    #[test]
    fn counts_that_are_too_large_end_a_trace() {
        let mapping = mapping(&[], &[]);
        let header = mapping.header();
        for count in
            [&header.nodes, &header.events, &header.nodes_room, &header.threads, &header.shared_count]
        {
            count.store(u64::MAX, Relaxed);
            let trace = read_all(&mapping);
            assert!(trace.losses.full);
            assert!(trace.threads.len() <= MAX_THREADS && shared(header).count() <= MAX_SHARED);
        }
    }

    #[test]
    fn any_content_is_read() {
        /// Words that are likely to make sense in part.
        fn word(state: &mut u64) -> u64 {
            *state = scatter(*state + 1);
            let field = |from: u32, below: u64| (*state >> from) % below;
            match *state % 8 {
                0 => *state >> 8,
                1 => u64::MAX,
                2 | 3 => [(8, 40, 0), (20, 70, 8), (30, 70, 16), (40, 9, 32)]
                    .into_iter()
                    .fold(0, |word, (from, below, to)| word | (field(from, below) << to)),
                4 | 5 => pack(1, 0, field(8, 10) as u8, field(20, 80) as u8),
                _ => field(8, 12) | (field(40, 12) << 32),
            }
        }
        let read_event = event(1, kind::READ, Op::MemRead, 0x1000, 5, 1, 4);
        let others = [
            event(2, kind::WRITE, Op::MemWrite, 0x1000, 4, 2, 4),
            event(3, kind::PIN, Op::MemWrite, 0, 4, 3, 8),
            event(4, kind::SYNC, Op::Lock, 0x2000, 0, 0, 1),
            event(5, kind::PENDING, Op::Lock, 0x2000, 0, 0, 1),
        ];
        // Traces that make sense, except for some words.
        let run = |seed: u64| {
            let mut state = seed << 32;
            let subs = (2..ROOM).map(|id| binary(ValueOp::ALL[(seed + id) as usize % 36], id - 1, id / 2, 3));
            let mut nodes: Vec<[u64; 4]> = [unknown(32, 0)].into_iter().chain(subs).collect();
            let mut events = vec![read_event];
            events.extend(others.iter().cycle().take(ROOM as usize - 1));
            for _ in 0..seed % 16 {
                let (place, value) = (word(&mut state) as usize, word(&mut state));
                nodes[place % 90][(place >> 8) & 3] = value;
                events[place % 90][(place >> 10) & 3] = value;
            }
            let trace = read_all(&mapping(&nodes, &events));
            trace.wrong_events();
            let inputs = (0..trace.events.len()).filter_map(|event| trace.input_key(event));
            assert!(inputs.count() <= trace.events.len());
            (trace.nodes.len(), trace.events.len())
        };
        let read: BTreeSet<(usize, usize)> = (0..2000).map(run).collect();
        assert!(read.len() > 20, "all traces ended alike: {read:?}");
    }
}
