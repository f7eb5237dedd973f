//! The symbolic trace of an execution: what each thread read, wrote and branched on, as expressions.
//!
//! A read of memory that other threads access, and an input, is an *unknown*. The value of everything else that
//! depends on it is a [`Node`] over unknowns. Events are listed in the order in which they happened: one thread runs at
//! a time, so this order is that of memory.
//!
//! The local behaviour of a thread depends on its unknowns only. Memory that one thread alone uses has no events; its
//! expressions are carried along by the instrumented program.

use crate::Op;
use crate::hash::{EMPTY, thread_key};
use crate::schedule::InputLine;
use crate::value_op::{ValueOp, mask};
use serde::{Deserialize, Serialize};

/// The number of a node of a [`SymbolicTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// An operand of a node: a constant, or another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operand {
    /// A number below 2 to the power of its width.
    Constant(u128),
    /// The value of an earlier node.
    Node(NodeId),
}

/// An expression. Its operands come before it in the trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The value that the event with this index has read.
    Read {
        /// The index of an [`EventKind::Read`] or an [`EventKind::FutexWake`].
        event: u32,
        /// Its bits.
        width: u32,
    },
    /// The value of the input that the event with this index has read.
    Input {
        /// The index of an [`EventKind::Input`].
        event: u32,
        /// Its bits.
        width: u32,
    },
    /// The result of an operation.
    Apply {
        /// The operation.
        op: ValueOp,
        /// The bits of its operands; of a [`ValueOp::Select`], of its second and third.
        from: u32,
        /// The bits of its result.
        width: u32,
        /// Its operands, as many as the operation has.
        operands: Vec<Operand>,
    },
}

/// Why an expression was replaced by the value that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PinReason {
    /// It is the address of an access.
    Address = 1,
    /// It is the size of a block of memory.
    Size = 2,
    /// A floating-point operation takes it.
    Float = 3,
    /// A vector operation takes it.
    Vector = 4,
    /// An integer of more than 64 bits.
    Wide = 5,
    /// A function that is not instrumented takes it.
    Foreign = 6,
    /// Inline assembly takes it.
    Assembly = 7,
    /// A value that the trace has no operation for.
    Other = 8,
    /// The operand of a `switch`. Nothing is lost: each value is a way of its own.
    Switch = 9,
    /// A block of memory was allocated whose address may depend on other threads.
    Allocation = 10,
    /// What a descriptor gives: bytes that are no inputs, or that several threads read.
    Descriptor = 11,
}

impl PinReason {
    /// The reason with this number.
    pub fn from_code(code: u8) -> PinReason {
        match code {
            1 => PinReason::Address,
            2 => PinReason::Size,
            3 => PinReason::Float,
            4 => PinReason::Vector,
            5 => PinReason::Wide,
            6 => PinReason::Foreign,
            7 => PinReason::Assembly,
            9 => PinReason::Switch,
            10 => PinReason::Allocation,
            11 => PinReason::Descriptor,
            _ => PinReason::Other,
        }
    }

    /// Whether the trace still says all: the values that were not taken are ways of their own, which a search can ask
    /// for one by one.
    pub const fn is_exact(self) -> bool {
        matches!(self, PinReason::Address | PinReason::Size | PinReason::Switch)
    }
}

/// What a thread does in the queue of a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FutexAct {
    /// It begins to wait. That the word has the expected value is a read and a branch before, in the same step.
    Waits {
        /// Whether the wait may time out.
        timed: bool,
    },
    /// It goes on, because another thread woke it.
    Woken,
    /// It goes on, although no thread woke it.
    TimedOut,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Shared memory was read.
    Read {
        /// The address.
        address: u64,
        /// The size in bytes, 1 to 8.
        size: u8,
        /// The value that was read.
        value: u64,
        /// Its unknown: a [`Node::Read`].
        node: NodeId,
        /// Whether the next event of this thread belongs to the same step: the write of an atomic update, or the branch
        /// on the result of a compare-exchange.
        update: bool,
    },
    /// Shared memory was written.
    Write {
        /// The address.
        address: u64,
        /// The size in bytes, 1 to 8.
        size: u8,
        /// The value that was written.
        value: u64,
        /// Its expression.
        operand: Operand,
    },
    /// A branch on an expression of one bit. Before an operation that may have no result, such as a division, comes a
    /// branch on whether it has one.
    Branch {
        /// The condition.
        condition: NodeId,
        /// Its value.
        taken: bool,
    },
    /// An expression was replaced by its value.
    Pin {
        /// The expression.
        node: NodeId,
        /// Its value.
        value: u64,
        /// Why.
        reason: PinReason,
    },
    /// The program read an input.
    Input {
        /// Its name. A piece of a larger input has its first byte in the name, as in `message[8]`.
        name: String,
        /// Which of the inputs of this name, from 0.
        number: u32,
        /// Its bits.
        width: u32,
        /// Its value.
        value: u64,
        /// Its unknown: a [`Node::Input`].
        node: NodeId,
    },
    /// From here on the execution counts only if the condition holds.
    Assume {
        /// The condition.
        condition: NodeId,
        /// Its value.
        holds: bool,
    },
    /// Another visible operation: a lock, a wait, a creation, an end. The last event of a thread that a signal kills is
    /// an [`Op::Abort`].
    Sync {
        /// The operation. A waiting thread has logged an [`Op::Wake`] by the thread that ended its wait, if one did.
        op: Op,
        /// The object; of a [`Op::Create`] the number of the created thread, of a [`Op::Join`] that of the joined one, of
        /// an [`Op::Wake`] that of the thread whose wait ended.
        object: u64,
        /// Whether it succeeded.
        ok: bool,
    },
    /// A wait on a futex. Operations on futexes that are not like these two are a [`EventKind::Sync`].
    Futex {
        /// The address of the word.
        word: u64,
        /// What the thread does.
        act: FutexAct,
    },
    /// Threads that wait on a futex are woken.
    FutexWake {
        /// The address of the word.
        word: u64,
        /// At most so many threads are woken.
        most: u32,
        /// How many were.
        woken: u64,
        /// The unknown of that number, of 16 bits: a [`Node::Read`].
        node: NodeId,
    },
    /// From this step on the thread runs, until the next event of this kind. The main thread runs first.
    Runs,
    /// The execution has ended, and this thread was about to do an operation. Nothing else of this thread follows.
    Pending {
        /// The operation; it may be an access of memory.
        op: Op,
        /// The object, as of [`EventKind::Sync`].
        object: u64,
        /// Whether the thread could not do the operation: a lock that another thread holds, a wait that nobody ended.
        blocked: bool,
    },
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SymbolicEvent {
    /// The number of the thread.
    pub thread: u16,
    /// The step to which the event belongs: the last scheduling point before it.
    pub step: u32,
    /// The place in the code; of a pin that is [`PinReason::Foreign`], the function that takes the value.
    pub pc: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What made a trace say less than the execution did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// How often an expression was replaced by its value where other values are not ways of their own, by reason.
    pub pinned: Vec<(PinReason, u64)>,
    /// The functions of which [`PinReason::Foreign`] counts the arguments, as far as they are known, and how many of each.
    pub functions: Vec<(String, u64)>,
    /// How often memory no longer held the value of its expression: code that is not instrumented has written it.
    pub overwritten: u64,
    /// Whether the trace outgrew its memory. It ends at a whole event.
    pub full: bool,
    /// Whether memory was found to be shared only in this execution, so that earlier events of it are missing. The same
    /// plan has to run again.
    pub incomplete: bool,
}

impl Losses {
    /// Whether the trace says all of what its threads did.
    pub fn is_exact(&self) -> bool {
        self.pinned.is_empty() && self.overwritten == 0 && !self.full && !self.incomplete
    }
}

/// Which input of a program: it is the same in all executions in which its thread has done the same before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputKey {
    /// The key of the thread, see [`thread_key`].
    pub thread: u64,
    /// The number of the [`EventKind::Input`] among those of the thread, from 0.
    pub number: u64,
}

/// The value of an input that a plan fixes. Inputs that it does not fix have the value that the program gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChosenInput {
    /// The input.
    pub key: InputKey,
    /// Its value.
    pub value: u64,
}

/// The symbolic trace of one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolicTrace {
    /// The expressions. Operands come before what uses them.
    pub nodes: Vec<Node>,
    /// The events, in the order in which they happened.
    pub events: Vec<SymbolicEvent>,
    /// By thread number: the thread that created it, and its number among the threads of that thread, from 1. The first
    /// is the main thread.
    pub threads: Vec<Option<(u16, u16)>>,
    /// How many granules of memory were known to be shared: accesses of others have no events. It never decreases.
    pub shared: u64,
    /// The shared memory as it was when the execution began: addresses of bytes, in ascending order. Memory that was not
    /// there is missing.
    pub initial: Vec<(u64, u8)>,
    /// The counts of semaphores and barriers before their first [`EventKind::Sync`], by object, in ascending order.
    pub counts: Vec<(u64, u64)>,
    /// The places of atomic accesses in the code, in ascending order.
    pub atomics: Vec<u64>,
    /// The functions without instrumentation that were called while there was more than one thread, or looked up.
    pub called: Vec<String>,
    /// What the trace does not say.
    pub losses: Losses,
}

impl SymbolicTrace {
    /// The key of a thread, by its number. Threads that are not listed count as the main thread.
    pub fn thread_key(&self, thread: u16) -> u64 {
        match self.threads.get(usize::from(thread)) {
            // A thread is created by an earlier one.
            Some(Some((parent, child))) if *parent < thread => thread_key(self.thread_key(*parent), *child),
            _ => EMPTY,
        }
    }

    /// The input that an event has read; `None` if it is not an [`EventKind::Input`].
    pub fn input_key(&self, event: usize) -> Option<InputKey> {
        let of = self.events.get(event)?;
        let is_input = |event: &SymbolicEvent| matches!(event.kind, EventKind::Input { .. });
        let before = self.events[..event].iter().filter(|other| other.thread == of.thread && is_input(other));
        is_input(of).then(|| InputKey { thread: self.thread_key(of.thread), number: before.count() as u64 })
    }

    /// The creation path of a thread, by its number.
    fn path(&self, thread: u16) -> String {
        match self.threads.get(usize::from(thread)) {
            Some(Some((parent, child))) if *parent < thread => format!("{}.{child}", self.path(*parent)),
            _ => "0".to_owned(),
        }
    }

    /// The inputs that the program has asked for, as a schedule file lists them.
    pub fn inputs(&self) -> Vec<InputLine> {
        let line = |index: usize| {
            let event = &self.events[index];
            let EventKind::Input { name, width, value, .. } = &event.kind else { return None };
            let number = self.input_key(index)?.number;
            let path = self.path(event.thread);
            Some(InputLine { path, number, width: *width, value: *value, name: name.clone() })
        };
        (0..self.events.len()).filter_map(line).collect()
    }

    /// Whether the program has asked for an input.
    pub fn reads_inputs(&self) -> bool {
        self.events.iter().any(|event| matches!(event.kind, EventKind::Input { .. }))
    }

    /// The bits of a node.
    pub fn width(&self, node: NodeId) -> u32 {
        match self.nodes[node.0 as usize] {
            Node::Read { width, .. } | Node::Input { width, .. } | Node::Apply { width, .. } => width,
        }
    }

    /// The values of all nodes in this execution. `None` where an operation has no result.
    pub fn values(&self) -> Vec<Option<u128>> {
        let mut values: Vec<Option<u128>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = match node {
                Node::Read { event, width } | Node::Input { event, width } => {
                    let value = match &self.events[*event as usize].kind {
                        EventKind::Read { value, .. } | EventKind::Input { value, .. } => Some(*value),
                        EventKind::FutexWake { woken, .. } => Some(*woken),
                        _ => None,
                    };
                    value.map(|value| u128::from(value) & mask(*width))
                }
                Node::Apply { op, from, width, operands } => {
                    let operands: Option<Vec<u128>> = operands
                        .iter()
                        .map(|operand| match operand {
                            Operand::Constant(value) => Some(*value),
                            Operand::Node(node) => values[node.0 as usize],
                        })
                        .collect();
                    operands.and_then(|operands| op.apply(*from, *width, &operands))
                }
            };
            values.push(value);
        }
        values
    }

    /// The indices of events whose expressions do not have the values that the execution had. There is none unless the
    /// instrumentation is wrong.
    pub fn wrong_events(&self) -> Vec<usize> {
        let values = self.values();
        let is = |node: &NodeId, value: u64| values[node.0 as usize] == Some(u128::from(value));
        let wrong = |(_, event): &(usize, &SymbolicEvent)| match &event.kind {
            EventKind::Write { operand: Operand::Node(node), value, .. } => !is(node, *value),
            EventKind::Write { operand: Operand::Constant(constant), value, .. } => {
                *constant != u128::from(*value)
            }
            EventKind::Branch { condition, taken } => !is(condition, (*taken).into()),
            EventKind::Assume { condition, holds } => !is(condition, (*holds).into()),
            EventKind::Pin { node, value, .. } => !is(node, *value),
            EventKind::Read { .. }
            | EventKind::Input { .. }
            | EventKind::Sync { .. }
            | EventKind::Futex { .. }
            | EventKind::FutexWake { .. }
            | EventKind::Runs
            | EventKind::Pending { .. } => false,
        };
        self.events.iter().enumerate().filter(wrong).map(|(index, _)| index).collect()
    }
}
