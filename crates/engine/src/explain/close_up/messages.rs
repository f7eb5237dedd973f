//! Finds the words of a verdict that only a close-up can know: the kind of a deadlock, why a library aborted,
//! the message of a panic.

use heisen_trace::finding::ThreadEnd;
use heisen_trace::{Op, ThreadId};

/// The threads that wait for each other in a circle, in this order. Empty if there is no circle.
pub(crate) fn circle(threads: &[ThreadEnd]) -> Vec<&ThreadEnd> {
    let find = |id: ThreadId| threads.iter().find(|t| t.thread == id);
    for start in threads {
        let mut path = vec![start];
        while let Some(next) = path.last().and_then(|t| t.holder).and_then(find) {
            if next.thread == start.thread {
                return path;
            }
            if path.iter().any(|t| t.thread == next.thread) {
                break;
            }
            path.push(next);
        }
    }
    Vec::new()
}

/// Describes the kind of a deadlock: a cycle, a lock whose thread has ended, or a wake-up that no thread is
/// left to give.
pub(super) fn describe_deadlock(threads: &[ThreadEnd]) -> String {
    match &circle(threads)[..] {
        [] => {}
        [only] => return format!("{} locks {}, which it holds already", only.thread, only.object),
        path => {
            let link = |t: &&ThreadEnd| {
                let holder = t.holder.map_or(String::new(), |h| h.to_string());
                format!("{} waits for {}, held by {holder}", t.thread, t.object)
            };
            return path.iter().map(link).collect::<Vec<_>>().join("; ");
        }
    }
    if let Some(t) = threads.iter().find(|t| t.holder_ended) {
        let holder = t.holder.map_or(String::new(), |h| h.to_string());
        return format!("{} waits for {}, which {holder} still held when it ended", t.thread, t.object);
    }
    if let Some(words) = describe_sleepers(threads) {
        return words;
    }
    let waits = |t: &&ThreadEnd| {
        matches!(t.op, Op::SemWait | Op::Once | Op::Barrier | Op::SigWait) || t.op.is_on_descriptor()
    };
    if let Some(t) = threads.iter().find(waits) {
        let what = match t.op {
            Op::SigWait => "{T} waits for a signal, and no thread or timer is left to send it",
            Op::SemWait => "{T} waits for semaphore {O}, and no thread is left to post it",
            Op::Read => "{T} waits to read from {O}, and no thread is left to write to it",
            Op::Write => "{T} waits to write to {O}, and no thread is left to read from it",
            Op::Accept => "{T} waits on {O} for a connection, and nobody is left to connect",
            Op::Poll => "{T} waits for {O} to be ready, and no thread is left to make it so",
            Op::Once => "{T} waits for the initialiser of pthread_once {O}, which cannot go on",
            _ => "{T} waits at {O}, and no thread is left to release it",
        };
        return what.replace("{T}", &t.thread.to_string()).replace("{O}", &t.object);
    }
    match threads.first() {
        Some(t) => format!("{} waits ({} {}), and no thread can go on", t.thread, t.op.name(), t.object),
        None => "no thread can go on".to_owned(),
    }
}

/// Describes the threads that sleep on condition variables and futexes. A wake-up was lost only if one was
/// given earlier, when nobody slept. For futexes, all must also sleep on the same one: threads that sleep in
/// several locks may wait for each other.
fn describe_sleepers(threads: &[ThreadEnd]) -> Option<String> {
    let on_condition = threads.iter().find(|t| t.op == Op::CondWait);
    let on_futex: Vec<&ThreadEnd> = threads.iter().filter(|t| t.op == Op::FutexWait).collect();
    let same = on_futex.iter().all(|t| t.object == on_futex[0].object);
    let lost = |t: &ThreadEnd| if t.missed_wakeup { "lost wake-up: " } else { "" };
    match (on_condition, on_futex.as_slice()) {
        (Some(t), _) => {
            let blocks: Vec<String> = threads
                .iter()
                .filter(|other| other.holder == Some(t.thread))
                .map(|other| format!("; {} waits for {}, held by {}", other.thread, other.object, t.thread))
                .collect();
            // The thread that would signal may wait for a lock that the sleeper holds.
            let lost = if blocks.is_empty() { lost(t) } else { "" };
            Some(format!(
                "{lost}{} waits on condition variable {}, and no thread is left to signal it{}",
                t.thread,
                t.object,
                blocks.concat()
            ))
        }
        (None, []) => None,
        (None, [first, ..]) if same => Some(format!(
            "{}{} is asleep (futex {}), and no thread is left to wake it",
            lost(first),
            first.thread,
            first.object
        )),
        (None, several) => {
            let sleepers: Vec<String> =
                several.iter().map(|t| format!("{} on futex {}", t.thread, t.object)).collect();
            Some(format!("asleep, with no thread left to wake them: {}", sleepers.join(", ")))
        }
    }
}

/// What a library wrote before it aborted, cut to a sensible length: the message of C++'s `terminate`, Rust's
/// message about missing memory, or the last line.
pub(super) fn abort_words(output: &str) -> Option<String> {
    const LONGEST: usize = 200;
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    if let Some(memory) = lines.iter().find(|l| l.starts_with("memory allocation of ")) {
        return Some(memory.chars().take(LONGEST).collect());
    }
    let first =
        lines.iter().rposition(|l| l.starts_with("terminate called")).unwrap_or(lines.len().checked_sub(1)?);
    Some(lines[first..].join("; ").chars().take(LONGEST).collect())
}

/// Rust's message about the first panic: place and message.
pub fn panic_words(output: &str) -> Option<String> {
    let mut lines = output.lines().skip_while(|l| !l.contains("panicked at "));
    let first = lines.next()?;
    let place = first[first.find("panicked at ")?..].trim_end_matches(':');
    match lines.next().map(str::trim) {
        Some(message) if !message.is_empty() && !message.starts_with("note: ") => {
            Some(format!("{place}: {message}"))
        }
        _ => Some(place.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::Stack;

    fn waiting(thread: u16, op: Op, object: &str, holder: Option<u16>) -> ThreadEnd {
        ThreadEnd {
            thread: ThreadId(thread),
            op,
            object: object.into(),
            holder: holder.map(ThreadId),
            holder_ended: false,
            missed_wakeup: false,
            blocked: true,
            holds: Vec::new(),
            stack: Stack::default(),
        }
    }

    #[test]
    fn a_cycle_is_reported_from_end_to_end() {
        let threads = [
            waiting(0, Op::Join, "T1", None),
            waiting(1, Op::Lock, "b", Some(2)),
            waiting(2, Op::Lock, "a", Some(1)),
        ];
        assert_eq!(describe_deadlock(&threads), "T1 waits for b, held by T2; T2 waits for a, held by T1");
        assert_eq!(
            describe_deadlock(&[waiting(3, Op::Lock, "m", Some(3))]),
            "T3 locks m, which it holds already"
        );
    }

    #[test]
    fn other_deadlocks_are_named() {
        let mut ended = waiting(1, Op::Lock, "m", Some(2));
        ended.holder_ended = true;
        assert_eq!(describe_deadlock(&[ended]), "T1 waits for m, which T2 still held when it ended");
        let mut lost = [waiting(0, Op::Join, "T1", None), waiting(1, Op::CondWait, "ready", None)];
        assert!(describe_deadlock(&lost).starts_with("T1 waits on condition variable ready"));
        lost[1].missed_wakeup = true;
        assert!(describe_deadlock(&lost).starts_with("lost wake-up: T1 waits on condition variable ready"));
        // The thread that would signal again cannot.
        lost[0] = waiting(0, Op::Lock, "m", Some(1));
        assert!(describe_deadlock(&lost).starts_with("T1 waits on condition variable ready"));
        assert!(describe_deadlock(&lost).ends_with("; T0 waits for m, held by T1"));
        assert!(describe_deadlock(&[waiting(0, Op::Join, "T1", None)]).starts_with("T0 waits (join T1)"));
    }

    #[test]
    fn threads_asleep_in_different_locks_have_lost_nothing() {
        let mut asleep = [waiting(1, Op::FutexWait, "a", None), waiting(2, Op::FutexWait, "a", None)];
        asleep[0].missed_wakeup = true;
        assert!(describe_deadlock(&asleep).starts_with("lost wake-up: T1 is asleep (futex a)"));
        asleep[1].object = "b".into();
        let words = "asleep, with no thread left to wake them: T1 on futex a, T2 on futex b";
        assert_eq!(describe_deadlock(&asleep), words);
        assert!(describe_deadlock(&asleep[1..]).starts_with("T2 is asleep (futex b)"));
    }

    #[test]
    fn what_the_library_said_before_it_aborted() {
        let thrown = "hello\nterminate called after throwing an instance of 'E'\n  what():  x\n";
        let words = "terminate called after throwing an instance of 'E'; what():  x";
        assert_eq!(abort_words(thrown).as_deref(), Some(words));
        assert_eq!(
            abort_words("one\nfree(): invalid pointer\n\n").as_deref(),
            Some("free(): invalid pointer")
        );
        assert_eq!(abort_words(&"x".repeat(9999)).map(|w| w.len()), Some(200));
        let rust = "hello\nmemory allocation of 24 bytes failed\nstack backtrace:\n  0: main\n";
        assert_eq!(abort_words(rust).as_deref(), Some("memory allocation of 24 bytes failed"));
        assert_eq!(abort_words("\n"), None);
    }

    #[test]
    fn the_first_panic_is_quoted() {
        let output = "hello\n\nthread 'main' (12) panicked at src/main.rs:3:5:\nindex out of bounds\nnote: run with\n\
                      thread 'x' panicked at b.rs:1:1:\nother\n";
        assert_eq!(panic_words(output).as_deref(), Some("panicked at src/main.rs:3:5: index out of bounds"));
        assert_eq!(panic_words("nothing"), None);
    }
}
