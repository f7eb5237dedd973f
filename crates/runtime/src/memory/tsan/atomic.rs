//! Atomic operations of instrumented code. They run one at a time and sequentially consistent, whatever memory
//! order they ask for; the memory order matters to the race check.

use crate::memory::race;
use crate::memory::race::atomic_order;
use crate::memory::race::atomic_order::Does;
use crate::memory::race::mode;
use crate::memory::tsan::plain;
use crate::memory::word_lock;
use crate::platform::program_memory;
use crate::sched::SCHED;
use crate::sched::{dependence, faults, spin};
use crate::script::{system_mode, unit_mode};
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use heisen_trace::Op;

/// A value that can be read, and compared and exchanged, atomically.
pub trait Word: Copy + PartialEq {
    /// Reads.
    ///
    /// # Safety
    /// The address is that of an atomic variable of this size.
    unsafe fn load(at: *mut Self) -> Self;

    /// Writes `new` if the old value is the expected one; returns the old value in any case.
    ///
    /// # Safety
    /// As for `load`.
    unsafe fn exchange_if(at: *mut Self, expected: Self, new: Self) -> Self;

    /// Its lowest 64 bits.
    fn low(self) -> u64;
}

macro_rules! words {
    ($($ty:ident $atomic:ident)*) => {$(
        impl Word for $ty {
            unsafe fn load(at: *mut $ty) -> $ty {
                program_memory::probe(at as usize);
                // SAFETY: as the caller says.
                unsafe { $atomic::from_ptr(at) }.load(SeqCst)
            }

            unsafe fn exchange_if(at: *mut $ty, expected: $ty, new: $ty) -> $ty {
                program_memory::probe(at as usize);
                // SAFETY: as the caller says.
                match unsafe { $atomic::from_ptr(at) }.compare_exchange(expected, new, SeqCst, SeqCst) {
                    Ok(old) | Err(old) => old,
                }
            }

            fn low(self) -> u64 {
                self as u64
            }
        }
    )*};
}
words! { u8 AtomicU8 u16 AtomicU16 u32 AtomicU32 u64 AtomicU64 }

impl Word for u128 {
    unsafe fn load(at: *mut u128) -> u128 {
        // SAFETY: as the caller says. It writes back the value that is there, like every way to read 16 bytes
        // at once on old processors.
        unsafe { u128::exchange_if(at, 0, 0) }
    }

    unsafe fn exchange_if(at: *mut u128, expected: u128, new: u128) -> u128 {
        // SAFETY: as the caller says; the library is built for processors that have the instruction.
        unsafe { core::arch::x86_64::cmpxchg16b(at, expected, new, SeqCst, SeqCst) }
    }

    fn low(self) -> u64 {
        self as u64
    }
}

/// Replaces the old value by the result of `make`; returns both.
fn replace<T: Word>(at: *mut T, make: impl Fn(T) -> T) -> (T, T) {
    // SAFETY: the program passes the address of an atomic variable of this size.
    let mut old = unsafe { T::load(at) };
    loop {
        let new = make(old);
        // SAFETY: as above.
        let found = unsafe { T::exchange_if(at, old, new) };
        if found == old {
            return (old, new);
        }
        old = found;
    }
}

/// Before an atomic operation that, as things are, changes the variable. `changes` is asked again after the
/// scheduling point: a comparison that fails is a read, and the order of reads does not matter.
fn before(op: Op, address: usize, size: usize, pc: usize, changes: impl Fn() -> bool) {
    if race::is_on(mode::SCRIPT) {
        unit_mode::accesses(address, size, true, plain::peek(address, size), pc);
    }
    if race::is_atomic_point(pc) {
        // A change that no other thread reads is not progress to them: a waiting loop may count its rounds.
        spin::change(op, address, pc, plain::peek(address, size));
        dependence::memory(address, size, changes());
    } else {
        spin::unscheduled_change(op, address, pc, plain::peek(address, size));
    }
    plain::checked(|| logged(op, changes), address, size, true, pc);
}

/// Before an atomic operation that, as things are, only reads the variable; `changes` is as for [`before`].
fn before_look<T: Word>(op: Op, at: *mut T, pc: usize, changes: impl Fn() -> bool) {
    // SAFETY: as in `replace`.
    let value = || unsafe { T::load(at) }.low();
    if race::is_on(mode::SCRIPT) {
        unit_mode::accesses(at as usize, size_of::<T>(), op != Op::AtomicLoad, value(), pc);
    }
    if race::is_atomic_point(pc) {
        spin::look(op, at as usize, pc, value());
        dependence::memory(at as usize, size_of::<T>(), changes());
    } else {
        spin::glance(op, at as usize, pc, value);
    }
    plain::checked(|| logged(op, changes), at as usize, size_of::<T>(), op != Op::AtomicLoad, pc);
}

/// The operation in the log of accesses: a comparison that fails is a read.
fn logged(op: Op, changes: impl Fn() -> bool) -> Op {
    if changes() { op } else { Op::AtomicLoad }
}

/// After an atomic operation.
fn after<T>(does: Does, at: *mut T, order: i32, pc: usize) {
    after_as(does.op(), does, at, order, pc);
}

/// As [`after`], with the operation in the log of accesses.
fn after_as<T>(op: Op, does: Does, at: *mut T, order: i32, pc: usize) {
    if race::is_on(mode::WATCH) {
        plain::watch(op, at as usize, size_of::<T>(), pc);
    }
    if does != Does::Load {
        word_lock::has_changed(at as usize);
    }
    // gcc puts hints into the higher bits.
    atomic_order::done(does, at as usize, size_of::<T>(), order & 0xff, pc);
}

/// Whether the process is controlled, and an execution runs.
fn on() -> bool {
    SCHED.active.get() && SCHED.running.get()
}

/// In system mode: an event before the operation, and nothing else.
fn alone<T: Word>(at: *mut T, write: bool, pc: usize) {
    if system_mode::is_on() && race::is_on(mode::SCRIPT) {
        unit_mode::accesses(at as usize, size_of::<T>(), write, plain::peek(at as usize, size_of::<T>()), pc);
    }
}

/// `load`.
pub fn load<T: Word>(at: *mut T, order: i32, pc: usize) -> T {
    if on() {
        before_look(Op::AtomicLoad, at, pc, || false);
    } else {
        alone(at, false, pc);
    }
    // SAFETY: as in `replace`.
    let value = unsafe { T::load(at) };
    if on() {
        after(Does::Load, at, order, pc);
    }
    value
}

/// `store`.
pub fn store<T: Word>(at: *mut T, value: T, order: i32, pc: usize) {
    if on() {
        before(Op::AtomicStore, at as usize, size_of::<T>(), pc, || true);
    } else {
        alone(at, true, pc);
    }
    replace(at, |_| value);
    if on() {
        after(Does::Store, at, order, pc);
    }
}

/// All other operations except those that compare.
pub fn update<T: Word>(at: *mut T, order: i32, pc: usize, make: impl Fn(T) -> T) -> T {
    if !on() {
        alone(at, true, pc);
        return replace(at, make).0;
    }
    // SAFETY: as in `replace`.
    let seen = unsafe { T::load(at) };
    if make(seen) == seen {
        // For example, a lock that is held already is set once more.
        before_look(Op::AtomicRmw, at, pc, || true);
    } else {
        before(Op::AtomicRmw, at as usize, size_of::<T>(), pc, || true);
    }
    let (old, _) = replace(at, make);
    after(Does::Update, at, order, pc);
    old
}

/// Compares and exchanges; returns the old value.
pub fn compare_exchange<T: Word>(
    at: *mut T,
    expected: T,
    new: T,
    orders: (i32, i32),
    weak: bool,
    pc: usize,
) -> Result<T, T> {
    if on() {
        // SAFETY: as in `replace`.
        let succeeds = || unsafe { T::load(at) } == expected;
        if succeeds() && new != expected {
            before(Op::AtomicCas, at as usize, size_of::<T>(), pc, succeeds);
        } else {
            before_look(Op::AtomicCas, at, pc, succeeds);
        }
        // SAFETY: as in `replace`.
        let seen = unsafe { T::load(at) };
        if weak && seen == expected && faults::spurious(Op::AtomicCas, at as usize, pc) {
            after(Does::Load, at, orders.1, pc);
            return Err(seen);
        }
    } else {
        alone(at, true, pc);
    }
    // SAFETY: as in `replace`.
    let old = unsafe { T::exchange_if(at, expected, new) };
    let done = old == expected;
    if on() {
        let (op, does, order) = match done {
            true => (Op::AtomicCas, Does::Update, orders.0),
            false => (Op::AtomicLoad, Does::Load, orders.1),
        };
        after_as(op, does, at, order, pc);
    }
    if done { Ok(old) } else { Err(old) }
}

/// A fence.
pub fn thread_fence(order: i32) {
    core::sync::atomic::fence(SeqCst);
    if on() {
        atomic_order::fence(order & 0xff);
    }
}

macro_rules! loads {
    ($name:ident, $ty:ident) => {
        /// An atomic read: a scheduling point if it is known to conflict with an access of another thread.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(at: *mut $ty, order: i32) -> $ty {
            atomic::load(at, order, $crate::platform::registers::caller!())
        }
    };
}
pub(super) use loads;

macro_rules! stores {
    ($name:ident, $ty:ident) => {
        /// An atomic write: a scheduling point if it is known to conflict with an access of another thread.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(at: *mut $ty, value: $ty, order: i32) {
            atomic::store(at, value, order, $crate::platform::registers::caller!());
        }
    };
}
pub(super) use stores;

macro_rules! updates {
    ($name:ident, $ty:ident, |$old:ident, $operand:ident| $make:expr) => {
        /// An atomic read-modify-write: a scheduling point if it is known to conflict with an access of another
        /// thread.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(at: *mut $ty, $operand: $ty, order: i32) -> $ty {
            atomic::update(at, order, $crate::platform::registers::caller!(), |$old: $ty| $make)
        }
    };
}
pub(super) use updates;

macro_rules! compares {
    ($name:ident, $ty:ident) => {
        /// An atomic compare-and-exchange: a scheduling point if it is known to conflict with an access of
        /// another thread. With `--spurious`, whether the weak form fails although it could succeed is a
        /// decision.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut $ty,
            expected: *mut $ty,
            new: $ty,
            order: i32,
            order_if_not: i32,
        ) -> i32 {
            let pc = $crate::platform::registers::caller!();
            const WEAK: bool = stringify!($name).as_bytes()[stringify!($name).len() - 1] == b'k';
            // SAFETY: instrumented code passes the address of the expected value.
            unsafe {
                match atomic::compare_exchange(at, *expected, new, (order, order_if_not), WEAK, pc) {
                    Ok(_) => 1,
                    Err(old) => {
                        *expected = old;
                        0
                    }
                }
            }
        }
    };
}
pub(super) use compares;

macro_rules! compares_val {
    ($name:ident, $ty:ident) => {
        /// An atomic compare-and-exchange: a scheduling point if it is known to conflict with an access of
        /// another thread.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut $ty,
            expected: $ty,
            new: $ty,
            order: i32,
            order_if_not: i32,
        ) -> $ty {
            let pc = $crate::platform::registers::caller!();
            match atomic::compare_exchange(at, expected, new, (order, order_if_not), false, pc) {
                Ok(old) | Err(old) => old,
            }
        }
    };
}
pub(super) use compares_val;

macro_rules! fences {
    ($name:ident) => {
        /// A fence: not a scheduling point, since it changes nothing that others see; it orders for the race
        /// check.
        ///
        /// # Safety
        /// Called by instrumented code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(order: i32) {
            atomic::thread_fence(order);
        }
    };
}
pub(super) use fences;
