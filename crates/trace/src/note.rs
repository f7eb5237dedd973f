//! What an execution did that Heisen does not control or has not explored. Verdicts list these as sentences.

macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        /// One thing that was not controlled; the number is its bit in the wire's note word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Note { $($(#[$doc])* $name = $bit,)* }

        impl Note {
            /// Every note.
            pub const ALL: &'static [Note] = &[$(Note::$name,)*];

            /// The sentence a verdict shows.
            pub const fn text(self) -> &'static str {
                match self { $(Note::$name => $text,)* }
            }
        }
    };
}

notes! {
    /// `fork` was called.
    Fork = 0, "fork: the child process ran uncontrolled";
    /// The exec family was called in the controlled process.
    Exec = 1, "exec: what runs after it is not controlled";
    /// A process was started by `posix_spawn`, `system` or `popen`.
    Spawn = 2, "another process was started and ran uncontrolled";
    /// A priority-inheriting or -protecting mutex.
    PriorityMutex = 4, "priority mutex: treated as a plain one";
    /// A mutex, semaphore or futex shared with other processes.
    ProcessShared = 5, "process-shared synchronisation: other processes are not scheduled";
    /// A futex operation that is not modelled.
    FutexOp = 7, "an unmodelled futex operation: refused with ENOSYS";
    /// More threads than the runtime has room for.
    TooManyThreads = 8, "more threads than Heisen has room for: pthread_create returned EAGAIN";
    /// The step limit forced a fair tail that was not branched from.
    FairTail = 9, "a long execution was ended under a fair schedule that was not searched";
    /// More choices at one point than a decision can hold.
    TooManyChoices = 10, "a point with more choices than Heisen records: the rest was not searched";
    /// The log of decisions was full.
    LogFull = 11, "an execution with more decisions than the log holds: its tail was not searched";
    /// Something came from outside the program.
    Outside = 13, "input from outside: when it came, and what it was, is not up to the schedule";
    /// Nothing came from outside for long, and no thread could go on.
    OutsideSilent = 14, "a thread waited for input from outside until Heisen gave up waiting";
    /// A call that blocks was run on a kernel thread of its own.
    Aside = 15, "a call that blocks in the kernel ran aside: when it came back is not up to the schedule";
    /// Input from outside with a finding that could not be recorded.
    Unrecorded = 16, "input from outside that could not be recorded: to replay a finding, it has to come again";
    /// `signalfd`.
    SignalFd = 17, "signalfd: only signals from outside arrive there, not those that the program sends itself";
    /// A signal that no thread of the program sent.
    OutsideSignal = 37, "a signal from outside the program: when it comes is not controlled";
    /// SIGSTOP and its like, sent by the program to itself.
    StopSignal = 38, "a signal that stops the program, sent by itself: ignored";
    /// A timer that counts processor time.
    CpuTimer = 39, "a timer of processor time: ITIMER_VIRTUAL and ITIMER_PROF run by the real clock, timer_create is refused";
    /// More signals were pending than there is room for.
    TooManySignals = 40, "more pending signals than Heisen has room for: sigqueue returned EAGAIN";
    /// More timers than the runtime has room for.
    TooManyTimers = 41, "more timers than Heisen has room for: timer_create returned EAGAIN";
    /// `heisen_no_preempt_begin`.
    NoPreempt = 20, "preemptions between heisen_no_preempt_begin and heisen_no_preempt_end: not searched";
    /// `heisen_ready` in a program that was parked already.
    Ready = 21, "heisen_ready: did nothing, as the program was parked already (--at-ready parks it at the first call)";
    /// A clock of processor time was read: `clock`, `times`, `getrusage`, CLOCK_PROCESS_CPUTIME_ID and the like.
    CpuClock = 24, "processor time: the program reads a clock of it, which differs from run to run";
    /// `--real-time`.
    RealTime = 25, "time: real, as --real-time asks for; what depends on it differs from run to run";
    /// A file was opened that had been written while the check ran. Seen only in a close look.
    ChangedFile = 26, "files: the program reads a file that was written while the check ran";
    /// `pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS)`.
    AsyncCancel = 31, "asynchronous cancellation: refused with ENOTSUP, threads are cancelled at cancellation points only";
    /// A thread that yields was held back until another had its turn. Noted only where every touch is told.
    GaveWay = 52, "fairness: a thread that yields again gives way to the others first, which a partial order does not know";
    /// `--symmetry`, where threads that are alike do not stay so.
    ToldApart = 53, "threads that are alike: the program tells them apart, by joining one before it does something else, or by its handle or number; with --symmetry not all of their orders were explored";
    /// A loop tried the same call again and again.
    Spin = 42, "a loop that tries the same call again and again without a yield: treated as one that yields, from its fourth attempt on";
    /// A loop waited for memory to change.
    SpinOnMemory = 43, "a loop that waits for memory to change, without a yield: treated as one that yields in each round";
    /// A loop was made to yield of which it is not known that it waits.
    ForcedYield = 29, "a loop that ran for longer than --hang without a scheduling point: treated as one that waits for memory, and yields in each round; if it computes, when it yields differs from run to run";
    /// Something else is where the heap belongs.
    NoHeap = 50, "the heap: its addresses are taken or cannot be reserved, so memory errors are not looked for (is there a limit on virtual memory, ulimit -v?)";
    /// Futex operations on priority-inheriting words.
    FutexPi = 32, "futex operation LOCK_PI, LOCK_PI2, TRYLOCK_PI or UNLOCK_PI: refused with ENOSYS";
    /// Those that move waiters to such a word.
    FutexRequeuePi = 33, "futex operation WAIT_REQUEUE_PI or CMP_REQUEUE_PI: refused with ENOSYS";
    /// `FUTEX_FD`, which Linux does not have any more either.
    FutexFd = 34, "futex operation FD: refused with ENOSYS, as Linux does";
    /// An atomic access with an order below sequential consistency.
    WeakOrders = 44, "memory orders: executions are sequentially consistent; what relaxed, acquire and release atomics allow beyond that was not explored";
    /// More conflicts of accesses in one execution than are told.
    TooManyConflicts = 45, "an execution with more conflicting accesses than Heisen records: not all of them became scheduling points";
    /// The table of accesses that are scheduling points was full.
    TooManyPoints = 46, "more conflicting accesses than Heisen has room for: the rest are no scheduling points";
    /// A wait or a timer whose deadline is further away than `--timeouts`, while other threads could go on.
    FarTimeout = 47, "time-outs: one that is further away than --timeouts never came while another thread could go on (a larger one, such as --timeouts 2h, explores it)";
    /// A `timerfd` was armed.
    TimerFd = 27, "timerfd: a timer that is read from a descriptor expires only when no thread can go on; that it comes earlier was not explored";
    /// A timer whose signal would end the program was kept from firing, within `--timeouts`.
    Watchdog = 28, "a timer whose signal ends the program: taken for a watchdog, which fires only when everything else waits longer";
    /// A choice other than of threads: a value, a waiter, a fault. It limits nothing.
    OtherChoice = 48, "a choice other than of threads";
    /// A thread could be preempted at a place that `--focus` and `--no-preempt` allow. It limits nothing.
    InScope = 49, "a place in the scope of --focus and --no-preempt";
    /// A thread was not preempted at a place, as `--focus` or `--no-preempt` say. The verdict says so by itself.
    OutOfScope = 54, "a place out of the scope of --focus and --no-preempt";
    /// `kill` and its like, at a process that does not belong to the program.
    OtherProcess = 63, "a call that changes a process of others (kill, sigqueue, setpriority, prlimit and the like): refused with EPERM";
    /// `reboot` and its like.
    Reboot = 62, "reboot or kexec: refused with EPERM, see docs/reference/machine.md";
    /// `sethostname`, `setdomainname`.
    HostName = 61, "sethostname or setdomainname: refused with EPERM, see docs/reference/machine.md";
    /// `mount` and its like.
    Mount = 60, "mount, umount or pivot_root: refused with EPERM, see docs/reference/machine.md";
    /// Swap space, quotas, accounting.
    Accounting = 59, "swapon, swapoff, quotactl or acct: refused with EPERM, see docs/reference/machine.md";
    /// Kernel modules and the like.
    KernelCode = 58, "init_module, delete_module or bpf: refused with EPERM, see docs/reference/machine.md";
    /// Ports, the kernel's log, terminals.
    Devices = 57, "iopl, ioperm, syslog(2), vhangup or an ioctl that takes over a terminal: refused with EPERM, see docs/reference/machine.md";
    /// `adjtimex`, for more than the time.
    ClockRate = 56, "adjtimex: the rate of the virtual clock cannot be changed, refused with EPERM";
    /// A file whose name has the process id in it.
    FileOfPid = 55, "a file is named by the process id, which is the same in all executions: parallel ones share the file (use --jobs 1, or --dir and a relative path)";
    /// More accesses to one place in memory than are remembered.
    TooManyAccesses = 51, "more accesses to one place in memory than Heisen remembers: conflicts with some of them were not looked for";
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
