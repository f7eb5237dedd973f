//! The sentences of notes: what an execution did that limits the verdict, and what to do about it.

use heisen_trace::Note;

/// The sentence of a note; `None` for a note that does not limit the verdict.
pub fn sentence(note: Note) -> Option<&'static str> {
    Some(match note {
        Note::Fork => "fork: the child process ran uncontrolled (check its code as a program of its own)",
        Note::Exec => "exec: the new program ran uncontrolled (check it by itself)",
        Note::Spawn => "another process was started and ran uncontrolled (check it by itself)",
        Note::PriorityMutex => {
            "priority mutex: treated as an ordinary mutex, so priorities were not explored"
        }
        Note::ProcessShared => {
            "process-shared synchronisation: threads of other processes were not scheduled"
        }
        Note::FutexOp => "futex: an operation that Heisen does not model was refused with ENOSYS",
        Note::FutexPi => "futex LOCK_PI, LOCK_PI2, TRYLOCK_PI or UNLOCK_PI: refused with ENOSYS",
        Note::FutexRequeuePi => "futex WAIT_REQUEUE_PI or CMP_REQUEUE_PI: refused with ENOSYS",
        Note::FutexFd => "futex FD: refused with ENOSYS, as Linux does",
        Note::TooManyThreads => {
            "threads: the program started more than Heisen has room for, and pthread_create returned EAGAIN (start fewer)"
        }
        Note::TooManyChoices => {
            "choices: a decision had more of them than Heisen records, and the rest were not explored (start fewer threads, or choose among fewer values)"
        }
        Note::TooManySignals => {
            "signals: more were pending than Heisen has room for, and sigqueue returned EAGAIN (send fewer)"
        }
        Note::TooManyTimers => {
            "timers: the program made more than Heisen has room for, and timer_create returned EAGAIN (make fewer)"
        }
        Note::TooManyConflicts => {
            "conflicts: an execution had more of them than Heisen records, so not all became scheduling points (make the test shorter)"
        }
        Note::TooManyPoints => {
            "access points: there are more of them than Heisen has room for, and accesses at the rest were not explored"
        }
        Note::TooManyAccesses => {
            "accesses: a location had more of them than Heisen remembers, so some conflicts may have been missed"
        }
        Note::FairTail => {
            "long executions: their ends followed one fair schedule, and no other was explored (make the test shorter)"
        }
        Note::LogFull => {
            "long executions: one had more decisions than its log holds, and later ones were not explored (make the test shorter)"
        }
        Note::Outside => {
            "input from outside: the schedule controls neither when it came nor what it was (let a thread of the test send it)"
        }
        Note::OutsideSilent => {
            "input from outside: a thread waited for it until Heisen gave up (start the sender with --before, or raise --hang)"
        }
        Note::Unrecorded => {
            "input from outside: it could not be recorded, so it must come again when a finding is replayed"
        }
        Note::HelperThread => {
            "a blocking call ran on a kernel thread of its own: the schedule does not control when it returned"
        }
        Note::OutsideSignal => "a signal came from outside: the schedule does not control when",
        Note::SignalFd => {
            "signalfd: it receives signals from outside, but not those that the program sends itself"
        }
        Note::StopSignal => "the program sent itself a signal that stops it, such as SIGSTOP: ignored",
        Note::CpuTimer => {
            "processor-time timers: ITIMER_VIRTUAL and ITIMER_PROF follow the real clock, and timer_create is refused"
        }
        Note::CpuClock => "processor time: the program reads a clock of it, which differs from run to run",
        Note::RealTime => "real time: what depends on it differs from run to run (leave out --real-time)",
        Note::ChangedFile => {
            "files: the program read a file that was written while the check ran, so runs may differ (use --dir)"
        }
        Note::FileOfPid => {
            "files: one is named by the process id, which is the same in all executions, so parallel ones share it (use --jobs 1, or --dir and a relative path)"
        }
        Note::AsyncCancel => {
            "asynchronous cancellation: refused with ENOTSUP; threads are cancelled at cancellation points only"
        }
        Note::NoPreempt => {
            "preemptions between heisen_no_preempt_begin and heisen_no_preempt_end: not explored"
        }
        Note::Ready => {
            "heisen_ready: ignored, as executions begin before main (--at-ready makes them begin there)"
        }
        Note::GaveWay => {
            "fairness: a thread that yields again and again waits for the others, which a partial-order reduction does not see (use --strategy icb)"
        }
        Note::ThreadsDistinguished => {
            "symmetry: the program treats interchangeable threads differently, by join order, handle or number, so some orders were not explored (leave out --symmetry)"
        }
        Note::Spin => {
            "a loop repeats the same steps without effect: Heisen lets each further round yield (if the loop waits, let it yield)"
        }
        Note::SpinOnMemory => {
            "a loop waits for memory to change: Heisen lets each round yield (let it call sched_yield)"
        }
        Note::ForcedYield => {
            "a loop ran for longer than --hang without a scheduling point: Heisen lets each round yield, at a moment that may differ from run to run (let it yield, or raise --hang if it computes)"
        }
        Note::NoHeap => {
            "memory errors: not looked for, as the addresses of the checked heap are taken or cannot be reserved (is there a limit on virtual memory, ulimit -v?)"
        }
        Note::WeakOrders => {
            "memory orders: only sequentially consistent executions were explored; relaxed, acquire and release atomics allow more"
        }
        Note::FarTimeout => {
            "time-outs: those beyond --timeouts did not fire while another thread could run (--timeouts 2h explores up to two hours)"
        }
        Note::TimerFd => {
            "timerfd: its timer expired only when no thread could run; earlier moments were not explored"
        }
        Note::Watchdog => {
            "a timer whose signal ends the program: taken for a watchdog, which fires only when every thread waits for longer"
        }
        Note::OtherProcess => {
            "kill, sigqueue, setpriority, prlimit or the like at a process of others: refused with EPERM"
        }
        Note::Reboot => "reboot or kexec: refused with EPERM (docs/reference/machine.md)",
        Note::HostName => "sethostname or setdomainname: refused with EPERM (docs/reference/machine.md)",
        Note::Mount => "mount, umount or pivot_root: refused with EPERM (docs/reference/machine.md)",
        Note::Accounting => {
            "swapon, swapoff, quotactl or acct: refused with EPERM (docs/reference/machine.md)"
        }
        Note::KernelCode => {
            "init_module, delete_module or bpf: refused with EPERM (docs/reference/machine.md)"
        }
        Note::Devices => {
            "iopl, ioperm, syslog(2), vhangup or an ioctl that takes over a terminal: refused with EPERM (docs/reference/machine.md)"
        }
        Note::ClockRate => {
            "adjtimex: it cannot change the rate of the virtual clock, and was refused with EPERM"
        }
        Note::OtherChoice | Note::InScope | Note::OutOfScope | Note::Assumed => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caveat_has_a_sentence_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for &note in Note::ALL {
            let text = sentence(note);
            assert_eq!(text.is_some(), note.is_caveat(), "{note:?}");
            assert!(text.is_none_or(|text| seen.insert(text)), "{note:?}");
        }
    }
}
