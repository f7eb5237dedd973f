//! The visible operations of a thread: what it is about to do at a scheduling point.

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// One visible operation. The numbers are part of the wire format and are never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
        #[repr(u8)]
        pub enum Op { $($(#[$doc])* $name = $code,)* }

        impl Op {
            /// Every operation, in the order of its number.
            pub const ALL: &'static [Op] = &[$(Op::$name,)*];

            /// The operation with this number.
            #[inline]
            pub const fn from_code(code: u8) -> Option<Op> {
                match code { $($code => Some(Op::$name),)* _ => None }
            }

            /// How the operation is written in schedules and reports.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$name => $text,)* }
            }
        }
    };
}

ops! {
    /// First step of a thread.
    Start = 1, "start";
    /// `pthread_create`.
    Create = 2, "create";
    /// `pthread_join` and its timed forms.
    Join = 3, "join";
    /// A thread's last step.
    End = 4, "end";
    /// Acquire a mutex.
    Lock = 5, "lock";
    /// Try to acquire a mutex, never blocks.
    TryLock = 6, "trylock";
    /// Acquire a mutex or time out.
    TimedLock = 7, "timedlock";
    /// Release a mutex.
    Unlock = 8, "unlock";
    /// Start waiting on a condition variable.
    CondWait = 9, "cond_wait";
    /// Start waiting on a condition variable, with a timeout.
    CondTimedWait = 10, "cond_timedwait";
    /// Acquire the mutex again after waiting on a condition variable.
    Relock = 11, "relock";
    /// Wake one waiter of a condition variable.
    CondSignal = 12, "cond_signal";
    /// Wake all waiters of a condition variable.
    CondBroadcast = 13, "cond_broadcast";
    /// Decrement a semaphore.
    SemWait = 14, "sem_wait";
    /// Decrement a semaphore if it is positive; never blocks.
    SemTryWait = 15, "sem_trywait";
    /// Decrement a semaphore or time out.
    SemTimedWait = 16, "sem_timedwait";
    /// Increment a semaphore.
    SemPost = 17, "sem_post";
    /// `pthread_once`.
    Once = 18, "once";
    /// `sched_yield`.
    Yield = 19, "yield";
    /// Any form of sleeping.
    Sleep = 20, "sleep";
    /// Wait on a futex.
    FutexWait = 21, "futex_wait";
    /// Wake waiters of a futex.
    FutexWake = 22, "futex_wake";
    /// Move waiters from one futex to another.
    FutexRequeue = 23, "futex_requeue";
    /// `exit`, or a return from `main`.
    Exit = 24, "exit";
    /// `abort`.
    Abort = 25, "abort";
    /// A failed `assert`.
    Assert = 26, "assert";
    /// A Rust panic or a C++ exception starts to unwind.
    Throw = 27, "throw";
    /// A decision which waiter is woken.
    Wake = 28, "wake";
    /// Acquire a read-write lock for reading.
    ReadLock = 29, "rdlock";
    /// Acquire a read-write lock for writing.
    WriteLock = 30, "wrlock";
    /// Release a read-write lock.
    RwUnlock = 31, "rwunlock";
    /// Arrive at a barrier.
    Barrier = 32, "barrier_wait";
    /// Read or receive.
    Read = 33, "read";
    /// Write or send.
    Write = 34, "write";
    /// Accept a connection.
    Accept = 35, "accept";
    /// Connect a socket.
    Connect = 36, "connect";
    /// Wait for one of several descriptors.
    Poll = 37, "poll";
    /// Close a descriptor, or one direction of it.
    Close = 38, "close";
    /// Lock a file.
    FileLock = 39, "file_lock";
    /// Set a timer of a descriptor.
    TimerFd = 40, "timerfd";
    /// Wait for another process.
    WaitChild = 41, "wait_child";
    /// Change a System V semaphore, or send or receive a System V message.
    SystemV = 42, "system_v";
    /// A timer is set, or fires.
    Timer = 54, "timer";
    /// A signal is sent.
    Kill = 55, "kill";
    /// Wait for a signal, or for its handler to run.
    SigWait = 56, "sigwait";
    /// Change which signals a thread blocks.
    SigMask = 57, "sigmask";
    /// A handler of a signal runs.
    Handler = 58, "handler";
    /// `heisen_choose`.
    Choose = 46, "choose";
    /// Allocate memory.
    Alloc = 47, "alloc";
    /// End a wait without a wake-up.
    Spurious = 48, "spurious";
    /// A scheduling point of the program, by `heisen_point`.
    Point = 51, "point";
    /// Request the cancellation of a thread.
    Cancel = 59, "cancel";
    /// Check whether cancellation was requested.
    TestCancel = 60, "testcancel";
    /// Read the value of a semaphore.
    SemGetValue = 61, "sem_getvalue";
    /// Acquire a stream of the C library, or wait for it.
    StreamLock = 62, "flockfile";
    /// Release a stream.
    StreamUnlock = 63, "funlockfile";
    /// Wait for the end of another thread's `fork`.
    Fork = 64, "fork";
    /// Replace the program of the process.
    Exec = 65, "exec";
    /// Begin an atomic section.
    Section = 66, "atomic_begin";
    /// Read an atomic variable.
    AtomicLoad = 70, "atomic_load";
    /// Write an atomic variable.
    AtomicStore = 71, "atomic_store";
    /// Read and write an atomic variable in one step.
    AtomicRmw = 72, "atomic_rmw";
    /// Compare an atomic variable and exchange it.
    AtomicCas = 73, "atomic_cas";
    /// Read memory that another thread writes.
    MemRead = 74, "mem_read";
    /// Write memory that another thread reads or writes.
    MemWrite = 75, "mem_write";
    /// Free a block of the checked heap. No scheduling point of its own; logged where accesses are.
    Free = 84, "free";
    /// Unmap memory, or map other memory over it. Not a scheduling point of its own; logged where accesses are.
    Unmap = 85, "unmap";
    /// Forbid writes, or all accesses, of memory. Otherwise as [`Op::Unmap`].
    Protect = 86, "protect";
    /// Access memory that another operation has ended, or that does not belong to a block. Only symbolic traces have this
    /// operation.
    WrongAccess = 87, "wrong_access";
    /// Initialise a semaphore. Only symbolic traces have this operation and those below; it is not a scheduling point.
    SemInit = 76, "sem_init";
    /// Acquire a read-write lock for reading, or give up.
    TryReadLock = 77, "tryrdlock";
    /// Acquire a read-write lock for writing, or give up.
    TryWriteLock = 78, "trywrlock";
    /// Acquire a read-write lock for reading that lets writers go first.
    PolitelyReadLock = 79, "rdlock_prefer_writer";
    /// Join a thread, or give up.
    TryJoin = 80, "tryjoin";
    /// The call of a `pthread_once` is over, or that of its initialiser.
    OnceEnd = 81, "once_end";
    /// Go on after all threads have arrived at a barrier.
    BarrierLeave = 82, "barrier_leave";
    /// Whether the thread was the last to arrive at the barrier that it has just left.
    BarrierLast = 83, "barrier_last";
}

impl Op {
    /// Whether its object is the number of a descriptor.
    pub const fn is_on_descriptor(self) -> bool {
        matches!(
            self,
            Op::Read
                | Op::Write
                | Op::Accept
                | Op::Connect
                | Op::Poll
                | Op::Close
                | Op::FileLock
                | Op::TimerFd
        )
    }

    /// Whether later accesses of its memory fail.
    pub const fn ends_memory(self) -> bool {
        matches!(self, Op::Free | Op::Unmap | Op::Protect)
    }

    /// Whether this is an atomic access of memory.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas)
    }

    /// Whether it is a memory access, plain or atomic.
    pub const fn is_access(self) -> bool {
        matches!(
            self,
            Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas | Op::MemRead | Op::MemWrite
        )
    }

    /// Whether it changes nothing, so that the order of two such operations on one object does not matter.
    pub const fn only_reads(self) -> bool {
        matches!(self, Op::AtomicLoad | Op::MemRead | Op::ReadLock | Op::SemGetValue)
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Op;

    #[test]
    fn names_and_codes_are_unique_and_round_trip() {
        for (i, &op) in Op::ALL.iter().enumerate() {
            assert_eq!(Op::from_code(op as u8), Some(op));
            assert_eq!(Op::from_name(op.name()), Some(op));
            assert!(Op::ALL[..i].iter().all(|o| o.name() != op.name()));
        }
        assert_eq!(Op::from_code(0), None);
        assert_eq!(Op::from_name("nonsense"), None);
    }
}
