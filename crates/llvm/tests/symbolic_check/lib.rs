//! A runtime for tests of symbolic builds. It records expressions, evaluates each, and compares it with the value that
//! the program has wherever it is used. When the program ends, it says what it has seen.

use heisen_abi::symbolic::{
    ARGUMENTS, COUNT, Frame, RESULTS, Table, VERSION, operation, unpack_operation, update,
};
use heisen_trace::symbolic::PinReason;
use heisen_trace::value_op::{ValueOp, mask};
use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap};
use std::ptr::addr_of_mut;
use std::sync::{Mutex, MutexGuard};

/// The frame, which programs write.
struct Shared(UnsafeCell<Frame>);

// SAFETY: the programs of the tests use one thread where expressions are.
unsafe impl Sync for Shared {}

static FRAME: Shared = Shared(UnsafeCell::new(Frame {
    live: 0,
    pad: 0,
    callee: 0,
    returner: 0,
    arguments: [0; ARGUMENTS],
    results: [0; RESULTS],
    place: 0,
}));

/// A byte of memory that belongs to an expression.
#[derive(Clone, Copy)]
struct Byte {
    id: u32,
    number: u32,
    value: u8,
}

/// What is known.
#[derive(Default)]
struct State {
    /// Bits and value of each expression; the value is missing where the operation has none.
    nodes: Vec<(u32, Option<u128>)>,
    memory: BTreeMap<u64, Byte>,
    wrong: Vec<String>,
    lost: Vec<u64>,
    expected: u64,
    branches: u64,
    overwritten: u64,
    pinned: BTreeMap<u8, u64>,
    known: HashMap<(u32, [u32; 3], [u64; 3]), u32>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

struct Access(MutexGuard<'static, Option<State>>);

impl Access {
    fn get(&mut self) -> &mut State {
        self.0.get_or_insert_default()
    }
}

fn state() -> Access {
    Access(STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

impl State {
    /// Adds an expression.
    fn add(&mut self, bits: u32, value: Option<u128>) -> u32 {
        self.nodes.push((bits, value));
        self.nodes.len() as u32
    }

    /// An expression of this many bits has this value in the program.
    fn check(&mut self, id: u32, bits: Option<u32>, value: u64, place: &str) {
        if id == 0 {
            return;
        }
        let Some(&(has, known)) = self.nodes.get(id as usize - 1) else {
            self.wrong.push(format!("{place}: there is no expression {id}"));
            return;
        };
        if bits.is_some_and(|bits| bits != has) {
            self.wrong.push(format!("{place}: {id} has {has} bits, not {bits:?}"));
        }
        if known.is_some_and(|known| known != u128::from(value)) {
            self.wrong.push(format!("{place}: {id} is {known:x?}, not {value:x}"));
        }
    }

    /// The result of an operation.
    fn apply(&mut self, word: u32, ids: [u32; 3], values: [u64; 3]) -> u32 {
        let (code, from, to) = unpack_operation(word);
        let Some(op) = ValueOp::from_code(code) else {
            self.wrong.push(format!("no operation {code}"));
            return 0;
        };
        let count = op.operands();
        if ids[..count].iter().all(|id| *id == 0) {
            self.wrong.push(format!("{op:?} of no expression"));
            return 0;
        }
        let place = format!("{op:?} {from} {to}");
        for (index, (&id, &value)) in ids.iter().zip(&values).enumerate().take(count) {
            let bits = if op == ValueOp::Select && index == 0 { 1 } else { from };
            if u128::from(value) > mask(bits) {
                self.wrong.push(format!("{place}: operand {index} is {value:x}"));
            }
            self.check(id, Some(bits), value, &place);
        }
        let key = (word, ids, values);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let operands = values.map(u128::from);
        let value = op.apply(from, to, &operands[..count]);
        let id = self.add(to, value);
        self.known.insert(key, id);
        id
    }

    fn value(&self, id: u32, otherwise: u64) -> u64 {
        let known = (id != 0).then(|| self.nodes[id as usize - 1].1).flatten();
        known.map_or(otherwise, |known| known as u64)
    }

    fn unary(&mut self, op: ValueOp, from: u32, to: u32, id: u32, value: u64) -> u32 {
        self.apply(operation(op as u8, from, to), [id, 0, 0], [value, 0, 0])
    }

    fn binary(&mut self, op: ValueOp, bits: u32, a: (u32, u64), b: (u32, u64)) -> u32 {
        if a.0 == 0 && b.0 == 0 {
            return 0;
        }
        let to = if op.is_test() { 1 } else { bits };
        self.apply(operation(op as u8, bits, to), [a.0, b.0, 0], [a.1, b.1, 0])
    }

    fn clear(&mut self, address: u64, size: u64) {
        let keys: Vec<u64> =
            self.memory.range(address..address.saturating_add(size)).map(|(key, _)| *key).collect();
        for key in keys {
            self.memory.remove(&key);
        }
    }

    fn write(&mut self, address: u64, size: u32, id: u32, value: u64) {
        self.clear(address, size.into());
        if id != 0 {
            self.check(id, Some(size * 8), value, "store");
            for number in 0..size {
                let byte = Byte { id, number, value: (value >> (8 * number)) as u8 };
                self.memory.insert(address + u64::from(number), byte);
            }
        }
    }

    fn read(&mut self, address: u64, size: u32, value: u64) -> u32 {
        let mut bytes: Vec<Option<Byte>> = Vec::new();
        for number in 0..size {
            let key = address + u64::from(number);
            let byte = self.memory.get(&key).copied();
            if byte.is_some_and(|byte| byte.value != (value >> (8 * number)) as u8) {
                self.overwritten += 1;
                self.memory.remove(&key);
                bytes.push(None);
            } else {
                bytes.push(byte);
            }
        }
        if bytes.iter().all(Option::is_none) {
            return 0;
        }
        // The whole of one expression.
        if let Some(first) = bytes[0]
            && self.nodes[first.id as usize - 1].0 == size * 8
            && bytes.iter().enumerate().all(|(index, byte)| {
                byte.is_some_and(|byte| byte.id == first.id && byte.number == index as u32)
            })
        {
            self.check(first.id, None, value, "load");
            return first.id;
        }
        let bits = size * 8;
        let mut all = (0, 0);
        for (index, byte) in bytes.into_iter().enumerate() {
            let by = 8 * index as u32;
            let number = (value >> by) & 0xff;
            let mut id = 0;
            if let Some(byte) = byte {
                let whole = self.nodes[byte.id as usize - 1].0;
                let known = self.value(byte.id, 0);
                let shift = 8 * byte.number;
                id = byte.id;
                if shift != 0 {
                    id = self.binary(ValueOp::LShr, whole, (id, known), (0, shift.into()));
                }
                if whole > 8 {
                    id = self.unary(ValueOp::Trunc, whole, 8, id, known >> shift);
                }
                if bits > 8 {
                    id = self.unary(ValueOp::ZExt, 8, bits, id, number);
                }
                if by > 0 {
                    id = self.binary(ValueOp::Shl, bits, (id, number), (0, by.into()));
                }
            }
            let part = (id, number << by);
            all = if index == 0 { part } else { (self.binary(ValueOp::Or, bits, all, part), all.1 | part.1) };
        }
        self.check(all.0, Some(bits), value, "load of parts");
        all.0
    }

    fn pin(&mut self, id: u32, value: u64, reason: u32, place: &str) {
        if id != 0 {
            self.check(id, None, value, place);
            *self.pinned.entry(reason as u8).or_default() += 1;
        }
    }
}

extern "C" fn unary(word: u32, id: u32, value: u64) -> u32 {
    state().get().apply(word, [id, 0, 0], [value, 0, 0])
}

extern "C" fn binary(word: u32, a: u32, b: u32, va: u64, vb: u64) -> u32 {
    state().get().apply(word, [a, b, 0], [va, vb, 0])
}

extern "C" fn select(word: u32, condition: u32, chosen: u32, a: u32, b: u32, va: u64, vb: u64) -> u32 {
    state().get().apply(word, [condition, a, b], [chosen.into(), va, vb])
}

extern "C" fn load(address: u64, size: u32, address_id: u32, value: u64) -> u32 {
    let mut state = state();
    state.get().pin(address_id, address, 1, "address of a load");
    state.get().read(address, size, value)
}

extern "C" fn store(address: u64, size: u64, address_id: u32, id: u32, value: u64) {
    let mut state = state();
    state.get().pin(address_id, address, 1, "address of a store");
    if size > 8 {
        state.get().clear(address, size);
    } else {
        state.get().write(address, size as u32, id, value);
    }
}

extern "C" fn update(
    how: u32,
    address: u64,
    size: u32,
    address_id: u32,
    id: u32,
    value: u64,
    old: u64,
) -> u32 {
    let mut state = state();
    let state = state.get();
    state.pin(address_id, address, 1, "address of an update");
    let bits = size * 8;
    let full = mask(bits) as u64;
    let was = state.read(address, size, old);
    let (a, b) = ((was, old), (id, value));
    let (op, result) = match how {
        update::EXCHANGE => {
            state.write(address, size, id, value);
            return was;
        }
        update::ADD => (ValueOp::Add, old.wrapping_add(value)),
        update::SUB => (ValueOp::Sub, old.wrapping_sub(value)),
        update::AND => (ValueOp::And, old & value),
        update::OR => (ValueOp::Or, old | value),
        update::XOR => (ValueOp::Xor, old ^ value),
        _ => {
            state.clear(address, size.into());
            return was;
        }
    };
    let now = state.binary(op, bits, a, b);
    state.write(address, size, now, result & full);
    was
}

extern "C" fn compare(
    address: u64,
    size: u32,
    address_id: u32,
    expected_id: u32,
    expected: u64,
    id: u32,
    value: u64,
    old: u64,
) -> u32 {
    let mut state = state();
    let state = state.get();
    state.pin(address_id, address, 1, "address of a compare-exchange");
    state.check(expected_id, Some(size * 8), expected, "compare-exchange");
    let was = state.read(address, size, old);
    if old == expected {
        state.write(address, size, id, value);
    }
    was
}

extern "C" fn copy(to: u64, from: u64, bytes: u64, to_id: u32, from_id: u32, bytes_id: u32) {
    let mut state = state();
    let state = state.get();
    state.pin(to_id, to, 1, "target of a copy");
    state.pin(from_id, from, 1, "source of a copy");
    state.pin(bytes_id, bytes, 2, "size of a copy");
    let moved: Vec<(u64, Byte)> =
        state.memory.range(from..from + bytes).map(|(key, byte)| (key - from + to, *byte)).collect();
    state.clear(to, bytes);
    state.memory.extend(moved);
}

extern "C" fn fill(to: u64, bytes: u64, to_id: u32, bytes_id: u32, id: u32, value: u64) {
    let mut state = state();
    let state = state.get();
    state.pin(to_id, to, 1, "target of a fill");
    state.pin(bytes_id, bytes, 2, "size of a fill");
    state.check(id, Some(8), value & 0xff, "fill");
    state.clear(to, bytes);
    for address in to..if id == 0 { to } else { to + bytes } {
        state.memory.insert(address, Byte { id, number: 0, value: value as u8 });
    }
}

extern "C" fn branch(id: u32, taken: u32) {
    let mut state = state();
    state.get().check(id, Some(1), taken.into(), "branch");
    state.get().branches += 1;
}

extern "C" fn pin(id: u32, value: u64, reason: u32) {
    state().get().pin(id, value, reason, "pin");
}

/// The table that stubs look for.
#[unsafe(no_mangle)]
pub static heisen_symbolic_table: Table = Table {
    version: VERSION,
    length: COUNT as u32,
    frame: FRAME.0.get(),
    callbacks: [
        unary as *const (),
        binary as *const (),
        select as *const (),
        load as *const (),
        store as *const (),
        update as *const (),
        compare as *const (),
        copy as *const (),
        fill as *const (),
        branch as *const (),
        pin as *const (),
    ],
};

/// Makes memory unknown, in parts of at most 8 bytes.
///
/// # Safety
/// There is as much memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heisen_input(address: *const u8, bytes: usize, _name: *const u8) {
    // SAFETY: the program has one thread here.
    unsafe { (*FRAME.0.get()).live = 1 };
    let mut state = state();
    let mut at = 0;
    while at < bytes {
        let size = (bytes - at).min(8);
        let size = if size == 8 { 8 } else { 1 << size.ilog2() };
        let mut value = 0;
        for number in (0..size).rev() {
            // SAFETY: as the caller promises.
            value = value << 8 | u64::from(unsafe { address.add(at + number).read() });
        }
        let id = state.get().add(8 * size as u32, Some(value.into()));
        state.get().write(address as u64 + at as u64, size as u32, id, value);
        at += size;
    }
}

/// The argument is expected to be an expression. It takes ids like an instrumented function.
///
/// # Safety
/// It is called with a line number and a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn expect_expression(line: u64, value: u64) {
    // SAFETY: the program has one thread here.
    let frame = unsafe { &mut *addr_of_mut!(*FRAME.0.get()) };
    let own = expect_expression as *const () as u64;
    let id = if frame.callee == own { frame.arguments[1] } else { 0 };
    frame.callee = 0;
    frame.returner = own;
    frame.results[0] = 0;
    let mut state = state();
    let state = state.get();
    state.expected += 1;
    if id == 0 {
        state.lost.push(line);
    }
    state.check(id, Some(64), value, "expectation");
}

/// Says what was seen.
extern "C" fn report() {
    let mut state = state();
    let state = state.get();
    let mut text = format!(
        "nodes {} branches {} expected {} overwritten {} wrong {} lost {:?}",
        state.nodes.len(),
        state.branches,
        state.expected,
        state.overwritten,
        state.wrong.len(),
        state.lost
    );
    for (reason, count) in &state.pinned {
        text += &format!(" {:?} {count}", PinReason::from_code(*reason));
    }
    for wrong in state.wrong.iter().take(20) {
        text += &format!("\n  {wrong}");
    }
    match std::env::var_os("SYMBOLIC_REPORT") {
        Some(path) => drop(std::fs::write(path, text + "\n")),
        None => eprintln!("{text}"),
    }
}

/// Runs when the library is unloaded.
#[used]
#[unsafe(link_section = ".fini_array")]
static REPORT: extern "C" fn() = report;
