//! The words of the page for operations, values and bug classes.

use heisen_trace::Op;
use heisen_trace::explanation::BugClass;

/// The verb of an operation, as in "T1 reads balance".
pub fn verb(op: Op) -> &'static str {
    match op {
        Op::Start => "starts",
        Op::Create => "creates",
        Op::Join => "joins",
        Op::End => "ends",
        Op::Lock => "locks",
        Op::TryLock => "tries to lock",
        Op::TimedLock => "tries for some time to lock",
        Op::Unlock | Op::RwUnlock => "unlocks",
        Op::CondWait | Op::SemWait => "waits on",
        Op::CondTimedWait | Op::SemTimedWait => "waits for some time on",
        Op::Relock => "locks again",
        Op::CondSignal => "signals",
        Op::CondBroadcast => "broadcasts",
        Op::SemTryWait => "tries to decrement",
        Op::SemPost => "posts",
        Op::Once => "runs once",
        Op::Yield => "yields",
        Op::Sleep => "sleeps",
        Op::FutexWait => "waits on futex",
        Op::FutexWake => "wakes futex",
        Op::FutexRequeue => "requeues futex",
        Op::Exit => "exits",
        Op::Abort => "aborts",
        Op::Assert => "fails an assertion",
        Op::Throw => "throws",
        Op::Wake => "wakes",
        Op::ReadLock | Op::PolitelyReadLock => "read-locks",
        Op::WriteLock => "write-locks",
        Op::TryReadLock => "tries to read-lock",
        Op::TryWriteLock => "tries to write-lock",
        Op::Barrier => "arrives at",
        Op::Read => "reads from",
        Op::Write => "writes to",
        Op::Accept => "accepts on",
        Op::Connect => "connects",
        Op::Poll => "polls",
        Op::Close => "closes",
        Op::FileLock => "locks file",
        Op::TimerFd => "sets timer",
        Op::WaitChild => "waits for process",
        Op::SystemV => "uses",
        Op::Timer => "sets or fires timer",
        Op::Kill => "sends a signal to",
        Op::SigWait => "waits for signal",
        Op::SigMask => "changes its signal mask",
        Op::Handler => "runs handler",
        Op::Choose => "chooses",
        Op::Alloc => "allocates",
        Op::Free => "frees",
        Op::Unmap => "unmaps",
        Op::Protect => "protects",
        Op::WrongAccess => "accesses",
        Op::Spurious => "wakes spuriously from",
        Op::Point => "reaches point",
        Op::Cancel => "cancels",
        Op::TestCancel => "tests for cancellation",
        Op::SemGetValue => "reads the value of",
        Op::SemInit => "initialises",
        Op::OnceEnd => "has run once",
        Op::BarrierLeave => "leaves",
        Op::BarrierLast => "is the last at",
        Op::TryJoin => "tries to join",
        Op::StreamLock => "locks stream",
        Op::StreamUnlock => "unlocks stream",
        Op::Fork => "waits for fork",
        Op::Exec => "executes",
        Op::Section => "begins an atomic section",
        Op::AtomicLoad | Op::MemRead => "reads",
        Op::AtomicStore | Op::MemWrite => "writes",
        Op::AtomicRmw => "updates",
        Op::AtomicCas => "compares and exchanges",
    }
}

/// The kind of an operation, as the filter of the page lists it.
pub fn kind(op: Op) -> &'static str {
    match op {
        Op::MemRead | Op::AtomicLoad => "memory reads",
        Op::MemWrite | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas => "memory writes",
        Op::Lock
        | Op::TryLock
        | Op::TimedLock
        | Op::Unlock
        | Op::Relock
        | Op::ReadLock
        | Op::WriteLock
        | Op::TryReadLock
        | Op::TryWriteLock
        | Op::PolitelyReadLock
        | Op::RwUnlock
        | Op::StreamLock
        | Op::StreamUnlock
        | Op::FileLock => "locks",
        Op::CondWait
        | Op::CondTimedWait
        | Op::CondSignal
        | Op::CondBroadcast
        | Op::SemWait
        | Op::SemTryWait
        | Op::SemTimedWait
        | Op::SemPost
        | Op::SemGetValue
        | Op::SemInit
        | Op::FutexWait
        | Op::FutexWake
        | Op::FutexRequeue
        | Op::Barrier
        | Op::BarrierLeave
        | Op::BarrierLast
        | Op::Once
        | Op::OnceEnd
        | Op::Wake
        | Op::Spurious
        | Op::SystemV => "waits and wake-ups",
        Op::Start
        | Op::Create
        | Op::Join
        | Op::TryJoin
        | Op::End
        | Op::Exit
        | Op::Abort
        | Op::Assert
        | Op::Throw
        | Op::Cancel
        | Op::TestCancel
        | Op::Fork
        | Op::Exec
        | Op::WaitChild => "threads and processes",
        Op::Read | Op::Write | Op::Accept | Op::Connect | Op::Poll | Op::Close => "files and sockets",
        Op::Kill | Op::SigWait | Op::SigMask | Op::Handler | Op::Timer | Op::TimerFd | Op::Sleep => {
            "signals and time"
        }
        Op::Yield
        | Op::Choose
        | Op::Alloc
        | Op::Free
        | Op::Unmap
        | Op::Protect
        | Op::WrongAccess
        | Op::Point
        | Op::Section => "other operations",
    }
}

/// The sentence that says what a class of bugs means.
pub fn meaning(class: BugClass, object: &str) -> String {
    let of = if object.is_empty() { String::new() } else { format!(" of {object}") };
    match class {
        BugClass::AtomicityViolation => {
            format!("Another thread came between two accesses{of} that should have been one step.")
        }
        BugClass::OrderViolation => format!("An access{of} ran before the access that it needs."),
        BugClass::Deadlock => "Threads wait for each other.".to_owned(),
        BugClass::LostWakeUp => {
            format!("A wake-up{of} came before the wait that it should have ended, or woke another thread.")
        }
        BugClass::UseAfterFree if object.is_empty() => {
            "A thread used memory after it was freed, or freed it twice.".to_owned()
        }
        BugClass::UseAfterFree => format!("A thread used {object} after it was freed, or freed it twice."),
        BugClass::MissedRecheck => {
            "A thread went on after a wait although what it waited for was not true.".to_owned()
        }
        BugClass::DataRace => {
            format!("Two threads access memory{of} at the same time, and at least one writes.")
        }
        BugClass::Livelock => "The threads run for ever without getting anywhere.".to_owned(),
        BugClass::Unclassified => {
            "The failing execution differs from the passing one, but matches no known pattern.".to_owned()
        }
    }
}
