//! The notes of an execution, such as what Heisen did not control or did not explore. Their sentences are in
//! the command line's renderer, not here.

macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        /// A note of an execution. Its number is its bit in the word of notes on the wire.
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
    /// The program called `fork`.
    Fork = 0;
    /// The controlled process called a function of the exec family.
    Exec = 1;
    /// The program started a process with `posix_spawn`, `system` or `popen`.
    Spawn = 2;
    /// The program used a mutex with priority inheritance or priority protection.
    PriorityMutex = 4;
    /// The program used a mutex, semaphore or futex that is shared with other processes.
    ProcessShared = 5;
    /// The program used a futex operation that Heisen does not model.
    FutexOp = 7;
    /// The program started more threads than the runtime has room for.
    TooManyThreads = 8;
    /// The execution passed half of its step limit. From there it followed one fair schedule, and no other
    /// was explored.
    FairTail = 9;
    /// There were more choices at one point than a decision can hold.
    TooManyChoices = 10;
    /// The log of decisions was full.
    LogFull = 11;
    /// The program received input from outside.
    Outside = 13;
    /// No thread could run, and no input came from outside until the runtime gave up.
    OutsideSilent = 14;
    /// A blocking call ran on a kernel thread of its own.
    HelperThread = 15;
    /// The input from outside of a finding could not be recorded.
    Unrecorded = 16;
    /// The program called `signalfd`.
    SignalFd = 17;
    /// A signal came that no thread of the program had sent.
    OutsideSignal = 37;
    /// The program sent itself a signal that stops it, such as SIGSTOP.
    StopSignal = 38;
    /// The program used a timer that counts processor time.
    CpuTimer = 39;
    /// More signals were pending than the runtime has room for.
    TooManySignals = 40;
    /// The program made more timers than the runtime has room for.
    TooManyTimers = 41;
    /// The program called `heisen_no_preempt_begin`.
    NoPreempt = 20;
    /// The program called `heisen_ready` after the execution had begun.
    Ready = 21;
    /// The program read a clock of processor time: `clock`, `times`, `getrusage`, CLOCK_PROCESS_CPUTIME_ID
    /// and the like.
    CpuClock = 24;
    /// The execution ended at an assumption that does not hold. It does not limit the verdict.
    Assumed = 30;
    /// The execution ran in real time (`--real-time`).
    RealTime = 25;
    /// The program opened a file that had been written while the check ran. Noted only in executions that log
    /// their events.
    ChangedFile = 26;
    /// The program called `pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS)`.
    AsyncCancel = 31;
    /// Fairness barred a thread that yields until another thread had run. Noted only in executions that log
    /// touches.
    GaveWay = 52;
    /// With `--symmetry`: the program treated interchangeable threads differently, by join order, handle or
    /// number.
    ThreadsDistinguished = 53;
    /// A loop repeated the same call without effect.
    Spin = 42;
    /// A loop waited for memory to change.
    SpinOnMemory = 43;
    /// Heisen forced a loop to yield without knowing that the loop waits.
    ForcedYield = 29;
    /// The addresses of the checked heap could not be reserved.
    NoHeap = 50;
    /// The program used a futex operation on a priority-inheriting word, such as `FUTEX_LOCK_PI`.
    FutexPi = 32;
    /// The program used a futex operation that moves waiters to a priority-inheriting word.
    FutexRequeuePi = 33;
    /// The program used `FUTEX_FD`, which Linux no longer has.
    FutexFd = 34;
    /// The program made an atomic access with an order weaker than sequential consistency.
    WeakOrders = 44;
    /// The execution had more conflicts than the wire has room for.
    TooManyConflicts = 45;
    /// The table of access points was full.
    TooManyPoints = 46;
    /// A wait or a timer had a deadline beyond `--timeouts` while other threads could run.
    FarTimeout = 47;
    /// The program armed a `timerfd`.
    TimerFd = 27;
    /// Heisen delayed a timer whose signal would end the program, although its deadline was within
    /// `--timeouts`.
    Watchdog = 28;
    /// There was a decision other than which thread runs: a value, a waiter or a fault. It does not limit the
    /// verdict.
    OtherChoice = 48;
    /// A thread could be preempted at a place that `--focus` and `--no-preempt` allow. It does not limit the
    /// verdict.
    InScope = 49;
    /// A thread was not preempted at a place because of `--focus` or `--no-preempt`. The verdict has another
    /// caveat for that.
    OutOfScope = 54;
    /// The program used `kill` or a similar call on a process that does not belong to it.
    OtherProcess = 63;
    /// The program called `reboot` or `kexec`.
    Reboot = 62;
    /// The program called `sethostname` or `setdomainname`.
    HostName = 61;
    /// The program called `mount` or a similar call.
    Mount = 60;
    /// The program tried to change swap space, quotas or accounting.
    Accounting = 59;
    /// The program tried to load or remove kernel code: modules or bpf.
    KernelCode = 58;
    /// The program tried to use ports or the kernel's log, or to take over a terminal.
    Devices = 57;
    /// The program called `adjtimex` to change more than the time.
    ClockRate = 56;
    /// The program created a file whose name contains the process id.
    FileOfPid = 55;
    /// A memory location had more accesses than the race check remembers.
    TooManyAccesses = 51;
}

impl Note {
    /// Whether it limits what a verdict claims, so that the verdict lists it.
    pub fn is_caveat(self) -> bool {
        !matches!(self, Note::OtherChoice | Note::InScope | Note::OutOfScope | Note::Assumed)
    }

    /// Its bit in a word of notes.
    pub const fn bit(self) -> u64 {
        1 << (self as u8)
    }

    /// The notes whose bits are set in `word`.
    pub fn in_word(word: u64) -> impl Iterator<Item = Note> {
        // This runs for every execution, and most executions have no notes.
        let all: &[Note] = if word == 0 { &[] } else { Note::ALL };
        all.iter().copied().filter(move |n| word & (1 << (*n as u8)) != 0)
    }
}
