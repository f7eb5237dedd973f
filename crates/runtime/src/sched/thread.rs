//! The record of one thread: what it is about to do, what it waits for, its memory and its place in the tree
//! of creation.
//!
//! It is a plain table. Several parts of the runtime write to it, each to its own fields. So there is one
//! place to look up a thread, and the fields that every scheduling point uses lie together.

use super::epoch::Epoch;
use super::queue::MANY;
use super::{me, policy, thread};
use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use heisen_trace::Op;

/// One thread of the program. The main thread has number 0. The fields that every scheduling point uses come
/// first, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Thread {
    /// The saved stack pointer; valid while another thread runs.
    pub sp: Cell<usize>,
    /// The base of its thread-local storage, which is also its `pthread_t`.
    pub fs: Cell<usize>,
    /// The operation that it is about to do, as a number. So an unused slot is all zeros and takes no space
    /// in the library.
    pub(super) op: Cell<u8>,
    /// Its cancellation state, as bits; see `shim::cancel`.
    pub cancel: Cell<u8>,
    /// Whether it has stopped at a patched instruction, in the middle of a function, instead of at a call;
    /// see `memory::patch`.
    pub mid_function: Cell<bool>,
    /// The object of the operation in `op`.
    pub object: Cell<usize>,
    /// The address from which the operation in `op` was called.
    pub pc: Cell<usize>,
    /// The virtual time at which its wait ends; `u64::MAX` if never.
    pub deadline: Cell<u64>,
    /// For `fair`: the step at which it was last switched to.
    pub scheduled_at: Cell<u32>,
    /// For the race check: its epoch, with no bytes set.
    pub epoch: Cell<Epoch>,

    /// Its start function, its argument and, once it has ended, its result.
    pub start: Cell<usize>,
    pub arg: Cell<usize>,
    pub result: Cell<usize>,
    /// Its place in the tree of creation: its parent, its index among the parent's children, the number of
    /// its own children.
    pub parent: Cell<u16>,
    pub child: Cell<u16>,
    pub children: Cell<u16>,
    pub begun: Cell<bool>,
    pub ended: Cell<bool>,
    pub detached: Cell<bool>,
    /// Whether destructors of thread-local objects are registered for its end.
    pub has_destructors: Cell<bool>,
    /// Whether a thread has joined it, or is about to.
    pub joined: Cell<bool>,

    /// The condition variable or futex in whose queue it waits; 0 if none.
    pub queue: Cell<usize>,
    /// Its order of arrival in that queue.
    pub ticket: Cell<u64>,
    /// The wakes of a futex that it listens to; all bits for a condition variable.
    pub mask: Cell<u32>,
    /// The mutex that it acquires after it has left the queue of a condition variable.
    pub relock: Cell<usize>,
    /// The descriptors that it waits for: an array of `pollfd`, and its length. See `blocking::descriptors`.
    pub polls: Cell<usize>,
    pub polls_count: Cell<usize>,
    /// The operation as which the symbolic trace logs its next lock of a read-write lock.
    pub(super) logged_as: Cell<u8>,
    /// Whether it is in a wait such as [`wait_in_queue`](super::wait_in_queue).
    pub(super) waits: Cell<bool>,
    /// The queue in which it remains while a signal handler runs; 0 if none.
    pub(super) parked: Cell<usize>,

    /// The signals that it blocks, as bits; and the signals that it waits for in `sigwait` and similar calls.
    pub blocked: Cell<u64>,
    pub awaits: Cell<u64>,
    /// Whether this is not a thread of the program but a timer (see `shim::timer`).
    pub timer: Cell<bool>,
    /// The futexes that it waits for if its queue is [`MANY`]: the address of their list, and their number.
    pub many: Cell<usize>,
    pub many_count: Cell<usize>,
    /// The robust mutex that it acquired last and still holds, as the head of a list; 0 if none.
    pub robust: Cell<usize>,

    /// Its stack as mapped: the lowest address, the size without the guard, the size of the guard. The main
    /// thread has size 0.
    pub stack: Cell<usize>,
    pub stack_size: Cell<usize>,
    pub guard_size: Cell<usize>,
    /// Whether the program has provided the stack.
    pub stack_foreign: Cell<bool>,
    /// The lowest address of its stack at which the race check has seen another thread; 0 if there is none.
    pub shared_from: Cell<usize>,
    /// For `kernel_threads`: a futex word, 1 if it may run, 0 while it waits for the baton.
    pub baton: AtomicU32,
    /// For `kernel_threads`: whether it has to take signals when it runs again, and its stack for signal
    /// handlers.
    pub diverted: Cell<bool>,
    pub handler_stack: Cell<usize>,
    /// For `kernel_threads`: whether the kernel thread must not end although the thread has ended.
    pub stays: Cell<bool>,
    /// The alternate signal stack that the program believes to have set: base and size; size 0 if none.
    pub alt_base: Cell<usize>,
    pub alt_size: Cell<usize>,
    /// Its name, terminated by a zero.
    pub name: [Cell<u8>; 16],

    /// For `fair`, in steps: since when it has been enabled, when it last yielded (0 if never), when it was
    /// last disabled, and by which thread.
    pub enabled_since: Cell<u32>,
    pub yielded_at: Cell<u32>,
    /// For `fair`: how often it has yielded.
    pub yields: Cell<u32>,
    pub disabled_at: Cell<u32>,
    pub disabled_by: Cell<u16>,
    /// For `fair`: the step at which it last let others run, 0 if never. It yielded, its wait timed out, or
    /// it waited for something other than a lock. Unlike `yielded_at`, this does not include yields that the
    /// runtime forced because it spins.
    pub gave_way_at: Cell<u32>,
    /// For `spin`: whether its last attempt failed, and how many failed in a row.
    pub failed: Cell<bool>,
    pub failures: Cell<u32>,
    /// For `patch`: how many calls of [`uncontrolled`] it is in.
    pub uncontrolled: Cell<u32>,
    /// For `word_lock`: whether the lock that it is about to take or release is a word in memory.
    pub takes_word: Cell<bool>,
    /// For `scope`: the number of regions without preemption that it is in.
    pub no_preempt: Cell<u32>,
    /// For `atomic_section`: the number of atomic sections that it is in.
    pub sections: Cell<u32>,
    /// The data of the policies about it.
    pub mark: policy::Mark,
}

impl Thread {
    /// The offset of `op`, for a debugger.
    pub const OP: usize = core::mem::offset_of!(Thread, op);

    pub(super) const fn new() -> Thread {
        Thread {
            sp: Cell::new(0),
            fs: Cell::new(0),
            op: Cell::new(0),
            cancel: Cell::new(0),
            mid_function: Cell::new(false),
            object: Cell::new(0),
            pc: Cell::new(0),
            start: Cell::new(0),
            arg: Cell::new(0),
            result: Cell::new(0),
            parent: Cell::new(0),
            child: Cell::new(0),
            children: Cell::new(0),
            begun: Cell::new(false),
            ended: Cell::new(false),
            detached: Cell::new(false),
            has_destructors: Cell::new(false),
            joined: Cell::new(false),
            queue: Cell::new(0),
            ticket: Cell::new(0),
            mask: Cell::new(0),
            relock: Cell::new(0),
            polls: Cell::new(0),
            polls_count: Cell::new(0),
            logged_as: Cell::new(0),
            waits: Cell::new(false),
            parked: Cell::new(0),
            blocked: Cell::new(0),
            awaits: Cell::new(0),
            timer: Cell::new(false),
            many: Cell::new(0),
            many_count: Cell::new(0),
            robust: Cell::new(0),
            deadline: Cell::new(0),
            stack: Cell::new(0),
            stack_size: Cell::new(0),
            guard_size: Cell::new(0),
            stack_foreign: Cell::new(false),
            shared_from: Cell::new(0),
            baton: AtomicU32::new(0),
            diverted: Cell::new(false),
            handler_stack: Cell::new(0),
            stays: Cell::new(false),
            alt_base: Cell::new(0),
            alt_size: Cell::new(0),
            name: [const { Cell::new(0) }; 16],
            enabled_since: Cell::new(0),
            scheduled_at: Cell::new(0),
            epoch: Cell::new(Epoch::NONE),
            yielded_at: Cell::new(0),
            yields: Cell::new(0),
            disabled_at: Cell::new(0),
            disabled_by: Cell::new(0),
            gave_way_at: Cell::new(0),
            failed: Cell::new(false),
            failures: Cell::new(0),
            uncontrolled: Cell::new(0),
            takes_word: Cell::new(false),
            no_preempt: Cell::new(0),
            sections: Cell::new(0),
            mark: policy::Mark::new(),
        }
    }

    /// The operation that it is about to do.
    pub fn op(&self) -> Op {
        Op::from_code(self.op.get()).unwrap_or(Op::Start)
    }

    /// Whether it waits in this queue, alone or among several.
    #[inline]
    pub fn waits_in(&self, queue: usize) -> bool {
        let own = self.queue.get();
        own == queue || own == MANY && self.several().iter().any(|one| one.get() == queue)
    }

    /// The queues that it waits in if its queue is [`MANY`].
    #[cold]
    pub fn several(&self) -> &[Cell<usize>] {
        // SAFETY: the thread itself has set them to an array in a frame that it does not leave while it
        // waits.
        unsafe { core::slice::from_raw_parts(self.many.get() as *const Cell<usize>, self.many_count.get()) }
    }

    /// Sets the operation that it is about to do, its object, and the address of the call.
    #[inline]
    pub fn about_to(&self, op: Op, object: usize, pc: usize) {
        self.op.set(op as u8);
        self.object.set(object);
        self.pc.set(pc);
    }

    /// The lowest address and the size of its stack, and the size of its guard; `None` for the main thread.
    pub fn stack_bounds(&self) -> Option<(usize, usize, usize)> {
        (self.stack_size.get() != 0)
            .then(|| (self.stack.get() + self.guard_size.get(), self.stack_size.get(), self.guard_size.get()))
    }
}

/// Does work of the runtime that may call code of the program, such as the program's own allocator. Patched
/// atomic instructions in that code are not scheduling points.
pub fn uncontrolled<T>(work: impl FnOnce() -> T) -> T {
    let t = thread(me());
    t.uncontrolled.set(t.uncontrolled.get() + 1);
    let done = work();
    t.uncontrolled.set(t.uncontrolled.get() - 1);
    done
}
