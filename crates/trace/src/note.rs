//! What an execution did that Heisen does not control or has not explored. The sentences of verdicts are the reporter's.

macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        /// One thing that was not controlled; the number is its bit in the wire's note word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Note { $($(#[$doc])* $name = $bit,)* }

        impl Note {
            /// Every note.
            pub const ALL: &'static [Note] = &[$(Note::$name,)*];
        }
    };
}

notes! {
    /// `fork` was called.
    Fork = 0;
    /// The exec family was called in the controlled process.
    Exec = 1;
    /// A process was started by `posix_spawn`, `system` or `popen`.
    Spawn = 2;
    /// A priority-inheriting or -protecting mutex.
    PriorityMutex = 4;
    /// A mutex, semaphore or futex shared with other processes.
    ProcessShared = 5;
    /// A futex operation that is not modelled.
    FutexOp = 7;
    /// More threads than the runtime has room for.
    TooManyThreads = 8;
    /// The step limit forced a fair tail that was not branched from.
    FairTail = 9;
    /// More choices at one point than a decision can hold.
    TooManyChoices = 10;
    /// The log of decisions was full.
    LogFull = 11;
    /// Something came from outside the program.
    Outside = 13;
    /// Nothing came from outside for long, and no thread could go on.
    OutsideSilent = 14;
    /// A call that blocks was run on a kernel thread of its own.
    Aside = 15;
    /// Input from outside with a finding that could not be recorded.
    Unrecorded = 16;
    /// `signalfd`.
    SignalFd = 17;
    /// A signal that no thread of the program sent.
    OutsideSignal = 37;
    /// SIGSTOP and its like, sent by the program to itself.
    StopSignal = 38;
    /// A timer that counts processor time.
    CpuTimer = 39;
    /// More signals were pending than there is room for.
    TooManySignals = 40;
    /// More timers than the runtime has room for.
    TooManyTimers = 41;
    /// `heisen_no_preempt_begin`.
    NoPreempt = 20;
    /// `heisen_ready` in a program that was parked already.
    Ready = 21;
    /// A clock of processor time was read: `clock`, `times`, `getrusage`, CLOCK_PROCESS_CPUTIME_ID and the like.
    CpuClock = 24;
    /// `--real-time`.
    RealTime = 25;
    /// A file was opened that had been written while the check ran. Seen only in a close look.
    ChangedFile = 26;
    /// `pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS)`.
    AsyncCancel = 31;
    /// A thread that yields was held back until another had its turn. Noted only where every touch is told.
    GaveWay = 52;
    /// `--symmetry`, where threads that are alike do not stay so.
    ToldApart = 53;
    /// A loop tried the same call again and again.
    Spin = 42;
    /// A loop waited for memory to change.
    SpinOnMemory = 43;
    /// A loop was made to yield of which it is not known that it waits.
    ForcedYield = 29;
    /// Something else is where the heap belongs.
    NoHeap = 50;
    /// Futex operations on priority-inheriting words.
    FutexPi = 32;
    /// Those that move waiters to such a word.
    FutexRequeuePi = 33;
    /// `FUTEX_FD`, which Linux does not have any more either.
    FutexFd = 34;
    /// An atomic access with an order below sequential consistency.
    WeakOrders = 44;
    /// More conflicts of accesses in one execution than are told.
    TooManyConflicts = 45;
    /// The table of accesses that are scheduling points was full.
    TooManyPoints = 46;
    /// A wait or a timer whose deadline is further away than `--timeouts`, while other threads could go on.
    FarTimeout = 47;
    /// A `timerfd` was armed.
    TimerFd = 27;
    /// A timer whose signal would end the program was kept from firing, within `--timeouts`.
    Watchdog = 28;
    /// A choice other than of threads: a value, a waiter, a fault. It limits nothing.
    OtherChoice = 48;
    /// A thread could be preempted at a place that `--focus` and `--no-preempt` allow. It limits nothing.
    InScope = 49;
    /// A thread was not preempted at a place, as `--focus` or `--no-preempt` say. The verdict says so by itself.
    OutOfScope = 54;
    /// `kill` and its like, at a process that does not belong to the program.
    OtherProcess = 63;
    /// `reboot` and its like.
    Reboot = 62;
    /// `sethostname`, `setdomainname`.
    HostName = 61;
    /// `mount` and its like.
    Mount = 60;
    /// Swap space, quotas, accounting.
    Accounting = 59;
    /// Kernel modules and the like.
    KernelCode = 58;
    /// Ports, the kernel's log, terminals.
    Devices = 57;
    /// `adjtimex`, for more than the time.
    ClockRate = 56;
    /// A file whose name has the process id in it.
    FileOfPid = 55;
    /// More accesses to one place in memory than are remembered.
    TooManyAccesses = 51;
}

impl Note {
    /// Whether a verdict lists it, as it limits what the verdict claims.
    pub fn is_caveat(self) -> bool {
        !matches!(self, Note::OtherChoice | Note::InScope | Note::OutOfScope)
    }

    /// Its bit in a word of notes.
    pub const fn bit(self) -> u64 {
        1 << (self as u8)
    }

    /// The notes whose bits are set in `word`.
    pub fn in_word(word: u64) -> impl Iterator<Item = Note> {
        // Mostly there are none, and this is asked of every execution.
        let all: &[Note] = if word == 0 { &[] } else { Note::ALL };
        all.iter().copied().filter(move |n| word & (1 << (*n as u8)) != 0)
    }
}
