//! The record of one thread: what it is about to do, what it waits for, its place in memory and in the tree of creation.
//!
//! It is a plain table that several parts of the runtime write to, each its own fields, so that there is one place where
//! all that is known of a thread is found, and what every scheduling point touches lies together.

use super::epoch::Epoch;
use super::queue::MANY;
use super::{me, policy, thread};
use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use heisen_trace::Op;

/// One thread of the program. The main thread is number 0. What every scheduling point touches comes first, in one
/// cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Thread {
    /// Saved stack pointer; meaningful while another thread runs.
    pub sp: Cell<usize>,
    /// Base of its thread-local storage, which is also its `pthread_t`.
    pub fs: Cell<usize>,
    /// What it is about to do, as a number so that an unused slot is all zeros and costs no space in the library.
    pub(super) op: Cell<u8>,
    /// What `shim::cancel` knows of it, as bits.
    pub cancel: Cell<u8>,
    /// Whether it is in the middle of a function of the program's, rather than at a call: see `patch`.
    pub amid: Cell<bool>,
    /// On what.
    pub object: Cell<usize>,
    /// Called from where.
    pub pc: Cell<usize>,
    /// Virtual time at which its wait ends; `u64::MAX` if never.
    pub deadline: Cell<u64>,
    /// For `fair`: when it was last switched to.
    pub scheduled_at: Cell<u32>,
    /// For the race check: its epoch, without any bytes.
    pub epoch: Cell<Epoch>,

    /// Start function, argument and, once ended, result.
    pub start: Cell<usize>,
    pub arg: Cell<usize>,
    pub result: Cell<usize>,
    /// Its place in the tree of creation.
    pub parent: Cell<u16>,
    pub child: Cell<u16>,
    pub children: Cell<u16>,
    pub begun: Cell<bool>,
    pub ended: Cell<bool>,
    pub detached: Cell<bool>,
    /// Whether destructors of thread-local objects were registered for its end.
    pub has_destructors: Cell<bool>,
    /// Someone has joined it, or is about to.
    pub joined: Cell<bool>,

    /// Condition variable or futex in whose queue it waits; 0 if none.
    pub queue: Cell<usize>,
    /// Order of arrival there.
    pub ticket: Cell<u64>,
    /// Which wakes of a futex it listens to; all bits for a condition variable.
    pub mask: Cell<u32>,
    /// The mutex to acquire after being taken off a condition variable's queue.
    pub relock: Cell<usize>,
    /// Descriptors it waits for, see `blocking::descriptors`: an array of so many `pollfd`.
    pub polls: Cell<usize>,
    pub polls_count: Cell<usize>,
    /// Whether it is in the middle of [`wait_in_queue`](super::wait_in_queue) or its like.
    pub(super) waits: Cell<bool>,
    /// The queue in which it stays while a handler of a signal runs; 0 if none.
    pub(super) parked: Cell<usize>,

    /// Signals that it blocks, as bits; those it waits for in `sigwait` and its like.
    pub blocked: Cell<u64>,
    pub awaits: Cell<u64>,
    /// Whether it is no thread of the program but a timer (see `shim::timer`).
    pub timer: Cell<bool>,
    /// The futexes that it waits on if its queue is [`MANY`]: where they are listed, and how many.
    pub many: Cell<usize>,
    pub many_count: Cell<usize>,
    /// The robust mutex that it acquired last and still holds, the head of a list; 0 if none.
    pub robust: Cell<usize>,

    /// Stack, as mapped: lowest address, size without and of the guard; size 0 for the main thread.
    pub stack: Cell<usize>,
    pub stack_size: Cell<usize>,
    pub guard_size: Cell<usize>,
    /// Whether the program brought the stack.
    pub stack_foreign: Cell<bool>,
    /// For `kernel_threads`: 1 when it may run, 0 while it waits for that; a futex word.
    pub baton: AtomicU32,
    /// For `kernel_threads`: whether it has signals to take when it runs again, and its stack for signal handlers.
    pub diverted: Cell<bool>,
    pub handler_stack: Cell<usize>,
    /// For `kernel_threads`: the kernel thread must not end, though the thread has ended.
    pub stays: Cell<bool>,
    /// What the program believes its alternate signal stack to be: base, size; size 0 if none.
    pub alt_base: Cell<usize>,
    pub alt_size: Cell<usize>,
    /// Name, zero-terminated.
    pub name: [Cell<u8>; 16],

    /// For `fair`: since when it has been enabled, last yielded (0 if never), last disabled and by whom; all in steps.
    pub enabled_since: Cell<u32>,
    pub yielded_at: Cell<u32>,
    pub disabled_at: Cell<u32>,
    pub disabled_by: Cell<u16>,
    /// For `fair`: when it last let others run, 0 if never: it yielded, its time ran out, or it waited for something
    /// else than a lock. Unlike `yielded_at`, not when it was found to spin.
    pub gave_way_at: Cell<u32>,
    /// For `spin`: whether its last attempt failed, and how many in a row did.
    pub failed: Cell<bool>,
    pub failures: Cell<u32>,
    /// For `patch`: in how many places it is where atomic instructions are no scheduling points.
    pub uncontrolled: Cell<u32>,
    /// For `word_lock`: whether the lock that it is about to take or give up is a word in memory.
    pub takes_word: Cell<bool>,
    /// For `scope`: how many regions without preemption it is in.
    pub no_preempt: Cell<u32>,
    /// For `atomic_section`: how many atomic sections it is in.
    pub sections: Cell<u32>,
    /// For `policy`.
    pub mark: policy::Mark,
}

impl Thread {
    /// The offset of what it is about to do, for a debugger.
    pub const OP: usize = core::mem::offset_of!(Thread, op);

    pub(super) const fn new() -> Thread {
        Thread {
            sp: Cell::new(0),
            fs: Cell::new(0),
            op: Cell::new(0),
            cancel: Cell::new(0),
            amid: Cell::new(false),
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

    /// What it is about to do.
    pub fn op(&self) -> Op {
        Op::from_code(self.op.get()).unwrap_or(Op::Start)
    }

    /// Whether it waits in that queue, or in several of which that is one.
    #[inline]
    pub fn waits_in(&self, queue: usize) -> bool {
        let own = self.queue.get();
        own == queue || own == MANY && self.several().iter().any(|one| one.get() == queue)
    }

    /// The queues it waits in if they are [`MANY`].
    #[cold]
    pub fn several(&self) -> &[Cell<usize>] {
        // SAFETY: set by the thread itself to an array in a frame that it does not leave while it waits.
        unsafe { core::slice::from_raw_parts(self.many.get() as *const Cell<usize>, self.many_count.get()) }
    }

    /// Sets what it is about to do, on what, called from where.
    #[inline]
    pub fn about_to(&self, op: Op, object: usize, pc: usize) {
        self.op.set(op as u8);
        self.object.set(object);
        self.pc.set(pc);
    }

    /// The lowest address and the size of its stack, and the size of its guard; none for the main thread.
    pub fn stack_bounds(&self) -> Option<(usize, usize, usize)> {
        (self.stack_size.get() != 0)
            .then(|| (self.stack.get() + self.guard_size.get(), self.stack_size.get(), self.guard_size.get()))
    }
}

/// Does something for the runtime itself that may call code of the program's, such as an allocator that it brings along:
/// nothing in there is a scheduling point.
pub fn uncontrolled<T>(work: impl FnOnce() -> T) -> T {
    let t = thread(me());
    t.uncontrolled.set(t.uncontrolled.get() + 1);
    let done = work();
    t.uncontrolled.set(t.uncontrolled.get() - 1);
    done
}
