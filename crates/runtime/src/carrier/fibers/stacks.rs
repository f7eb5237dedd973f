//! Stacks of threads: mapped with a guard below them, pooled and reused.

use super::FIBERS;
use crate::platform::sys;
use crate::sched::{Thread, hooks};
use core::cell::Cell;

/// The largest number of stacks in the pool.
pub(super) const POOL: usize = 64;

/// A stack: its lowest address, its size without the guard, and the size of the guard below it.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    pub(super) base: usize,
    pub(super) size: usize,
    pub(super) guard: usize,
    /// Whether no thread has ever used it, and it was mapped before any access was remembered.
    pub(super) fresh: bool,
}

/// The stack that `pthread_create` asks for.
#[derive(Debug)]
pub struct Wish {
    /// The stack that the program provides: lowest address and size.
    pub stack: Option<(usize, usize)>,
    /// The size of the stack, and of the guard.
    pub size: usize,
    pub guard: usize,
}

impl Wish {
    /// The stack of a thread without attributes.
    pub fn usual() -> Wish {
        Wish { stack: None, size: FIBERS.stack_size.get(), guard: FIBERS.guard_size.get() }
    }
}

pub(super) fn map_stack(size: usize, guard: usize) -> Option<Stack> {
    // The engine limits the data size of the program. Stacks shall not count: natively they hardly do,
    // because only touched pages of a stack take memory.
    sys::raise_data_limit(size as isize);
    let Some(base) = sys::map_stack(guard + size) else {
        sys::raise_data_limit(-(size as isize));
        return None;
    };
    sys::protect_none(base, guard);
    hooks::stack_mapped(size, guard);
    Some(Stack { base, size, guard, fresh: false })
}

/// Maps this many more stacks for the pool, or fewer if there is no room.
pub fn add_to_pool(count: usize, size: usize, guard: usize) {
    for _ in 0..count.min(POOL - FIBERS.pooled.get()) {
        let Some(stack) = map_stack(size, guard) else { break };
        give_back(stack);
    }
}

/// Takes a stack from the pool: the latest that fits.
pub(super) fn take_from_pool(size: usize, guard: usize) -> Option<Stack> {
    let fits = |stack: &Cell<Stack>| (stack.get().size, stack.get().guard) == (size, guard);
    let pooled = &FIBERS.pool[..FIBERS.pooled.get()];
    let found = pooled.iter().rposition(fits)?;
    let stack = pooled[found].get();
    let last = pooled.len() - 1;
    pooled[found].set(pooled[last].get());
    FIBERS.pooled.set(last);
    Some(stack)
}

/// The stacks in the pool: where each begins and ends.
pub fn spare_stacks() -> impl Iterator<Item = (usize, usize)> {
    let ends = |Stack { base, size, guard, .. }: Stack| (base, base + guard + size);
    FIBERS.pool[..FIBERS.pooled.get()].iter().map(move |stack| ends(stack.get()))
}

/// Puts a stack into the pool. If the pool is full, another stack is unmapped. Otherwise a program that
/// creates threads one after the other would run out of memory.
pub(super) fn give_back(stack: Stack) {
    if FIBERS.pooled.get() < POOL {
        FIBERS.pool[FIBERS.pooled.get()].set(stack);
        FIBERS.pooled.set(FIBERS.pooled.get() + 1);
    } else {
        let other = FIBERS.pool[0].replace(stack);
        sys::unmap(other.base, other.guard + other.size);
        sys::raise_data_limit(-(other.size as isize));
    }
}

/// Puts the stack of a thread into the pool when the thread no longer needs it, unless the program has
/// provided it.
pub fn give_back_of(t: &Thread) {
    if !t.stack_foreign.get() && t.stack_size.get() != 0 {
        let (base, size, guard) = (t.stack.get(), t.stack_size.get(), t.guard_size.get());
        give_back(Stack { base, size, guard, fresh: false });
    }
}
