//! Events: the next operation of a thread. CONCURRIT (PLDI'13), section 3.1, calls them records from fields
//! to values.

use heisen_trace::Op;
use heisen_wire::script::{self, MAX_NAMED, kind};
use std::sync::atomic::Ordering::Relaxed;

/// The next operation of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The thread.
    pub thread: usize,
    /// Its process; 0 if there is only one.
    pub process: i32,
    /// The number of its program; 0 if there is only one.
    pub program: usize,
    /// One of `heisen_wire::script::kind`.
    pub kind: u8,
    /// The size of the access in bytes.
    pub size: u64,
    /// The address of the memory or object.
    pub address: u64,
    /// The value in memory.
    pub value: u64,
    /// The number of a named function or line, or of a control point.
    pub number: u64,
    /// Arguments of a function.
    pub args: [u64; 2],
    /// The returned value.
    pub returned: u64,
    /// The address from which the function was called.
    pub caller: u64,
    /// The address of the code.
    pub pc: u64,
    /// The step of the execution.
    pub step: u32,
    /// The operation, for events that are scheduling points in any program.
    pub op: Option<Op>,
    /// For each function that the script names: how many calls deep the thread is in it.
    pub inside: Vec<u8>,
}

impl Event {
    /// Reads an event that the runtime has written, of a thread of this process and program.
    pub fn read(thread: usize, (process, program): (i32, usize), told: &script::Event) -> Event {
        Event {
            thread,
            process,
            program,
            kind: told.kind.load(Relaxed) as u8,
            size: told.size.load(Relaxed).into(),
            address: told.address.load(Relaxed),
            value: told.value.load(Relaxed),
            number: told.number.load(Relaxed),
            args: [told.args[0].load(Relaxed), told.args[1].load(Relaxed)],
            returned: told.returned.load(Relaxed),
            caller: told.caller.load(Relaxed),
            pc: told.pc.load(Relaxed),
            step: told.step.load(Relaxed),
            op: Op::from_code(told.op.load(Relaxed) as u8),
            inside: told.inside.iter().map(|times| times.load(Relaxed)).collect(),
        }
    }

    /// How many calls deep the thread is in the function with this number.
    pub fn depth(&self, function: usize) -> u8 {
        self.inside.get(function % MAX_NAMED).copied().unwrap_or(0)
    }

    /// The number of its control point; 0 for other events.
    pub fn control(&self) -> u64 {
        if self.kind == kind::POINT { self.number } else { 0 }
    }

    /// The name of its kind.
    pub fn word(&self) -> &'static str {
        word(self.kind)
    }
}

/// The name of a kind of events.
pub fn word(kind: u8) -> &'static str {
    match kind {
        kind::READ => "read",
        kind::WRITE => "write",
        kind::ENTER => "enter",
        kind::RETURN => "return",
        kind::CALL => "call",
        kind::POINT => "control",
        kind::LOCK => "lock",
        kind::UNLOCK => "unlock",
        kind::START => "start",
        kind::END => "end",
        kind::TEST_START => "test_start",
        kind::TEST_END => "test_end",
        kind::LINE => "line",
        _ => "operation",
    }
}
