//! Touches: records of what each step of an execution reads, writes or enables, if a search asks for them.
//!
//! A step is everything that a thread does from one scheduling point to the next. Two steps are *dependent*
//! if
//!
//! - they belong to the same thread,
//! - they touch the same object and at least one of them writes it, or
//! - one enables the thread of the other.
//!
//! Other steps can be swapped without any difference. The reductions of the search are built on this
//! (Godefroid: Partial-Order Methods for the Verification of Concurrent Systems, 1996; CHESS, OSDI 2008,
//! section 4.4).

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum TouchKind {
    /// The thread has read the object `word`.
    Read = 0,
    /// The thread has changed the object `word`, as locking and unlocking a mutex do.
    Write = 1,
    /// The thread has enabled the thread `word`: it has created or woken it, or it has ended and `word` joins
    /// it. Unlocking a mutex is not such a record: lock and unlock both write the mutex.
    Enables = 2,
    /// From this step on the thread runs, until the next record of this kind.
    Switch = 3,
    /// The candidates of the thread decision at this step are the threads in the set `word`. Choice 0 is
    /// `thread`; the others follow in cyclic order of thread number. With more than 64 threads there are
    /// several records, and `op` is the index of the word in the set.
    Choices = 4,
    /// `word` is the hash of the happens-before graph of all steps before this one: equal for equivalent prefixes.
    State = 5,
    /// At the end of the execution, a deadlock or not, the thread still waits at `op` for the object `word`:
    /// a mutex, a semaphore, a thread to join, a condition variable. Its next step matters for other orders,
    /// but no step of this execution shows it.
    Waits = 6,
    /// The next record belongs to the operation `op`, called from the address `word`. Only records of
    /// operations have one, and only if places are asked for.
    At = 7,
    /// The step depends on all others; `op` says why. [`Op::Sleep`](crate::Op::Sleep): no thread was enabled,
    /// so virtual time was advanced, and this step followed. [`Op::Lock`](crate::Op::Lock): threads wait for
    /// each other, and the execution ends here. Then `word` is 1 if other threads were enabled. It is 0 if
    /// none was: then the step depends on no more than any other deadlock.
    All = 8,
}

impl TouchKind {
    /// Every kind, in the order of its number.
    pub const ALL: [TouchKind; 9] = [
        TouchKind::Read,
        TouchKind::Write,
        TouchKind::Enables,
        TouchKind::Switch,
        TouchKind::Choices,
        TouchKind::State,
        TouchKind::Waits,
        TouchKind::At,
        TouchKind::All,
    ];

    /// The kind with this number.
    pub const fn from_code(code: u8) -> Option<TouchKind> {
        match code {
            0 => Some(TouchKind::Read),
            1 => Some(TouchKind::Write),
            2 => Some(TouchKind::Enables),
            3 => Some(TouchKind::Switch),
            4 => Some(TouchKind::Choices),
            5 => Some(TouchKind::State),
            6 => Some(TouchKind::Waits),
            7 => Some(TouchKind::At),
            8 => Some(TouchKind::All),
            _ => None,
        }
    }
}

/// The granularity of memory objects in bytes, a power of two.
pub const WORD: u64 = 4;
/// Objects without an address have numbers from here on. No program has memory there.
pub const NOWHERE: u64 = 0x08_0000_0000;
/// The end of those numbers.
pub const NOWHERE_END: u64 = NOWHERE + (1 << 27);

/// One record of what a step touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Touch {
    /// The step.
    pub step: u32,
    /// The thread that takes it, less than 16384. For [`TouchKind::Choices`], the thread of choice 0.
    pub thread: u16,
    /// The meaning of `word`.
    pub kind: TouchKind,
    /// The number of the [`Op`](crate::Op). For [`TouchKind::Choices`], the index of the word.
    pub op: u8,
    /// The object, the other thread, 64 candidates, the hash, or the address.
    pub word: u64,
}

/// Added to the last three bits of the number of a [`TouchKind`], so that it differs from every kind of
/// decision.
const CODE: u64 = 8;

impl Touch {
    /// The record as two words of the wire's log, which also holds decisions.
    pub const fn pack(&self) -> [u64; 2] {
        let word = (self.step as u64)
            | ((self.thread as u64 & 0x3fff) << 32)
            | ((self.op as u64) << 46)
            | ((CODE + (self.kind as u64 & 7)) << 56)
            | ((self.kind as u64 >> 3) << 60);
        [word, self.word]
    }

    /// The record in two words of the wire's log, if they hold a record.
    pub const fn unpack(words: [u64; 2]) -> Option<Touch> {
        let word = words[0];
        let code = (word >> 56) & 0xf;
        if code < CODE {
            return None;
        }
        let kind = (code - CODE) | (word >> 60 & 1) << 3;
        let Some(kind) = TouchKind::from_code(kind as u8) else { return None };
        Some(Touch {
            step: word as u32,
            thread: (word >> 32) as u16 & 0x3fff,
            kind,
            op: (word >> 46) as u8,
            word: words[1],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decision, DecisionKind};

    #[test]
    fn packing_round_trips_and_is_no_decision() {
        for kind in TouchKind::ALL {
            for (step, thread, op) in [(0, 0, 0), (u32::MAX, 16383, 255), (7, 64, 70)] {
                let t = Touch { step, thread, kind, op, word: 0xdead_beef_0bad_cafe };
                assert_eq!(Touch::unpack(t.pack()), Some(t));
                assert_eq!(Decision::unpack(t.pack()), None);
            }
        }
    }

    #[test]
    fn a_decision_is_no_touch() {
        for kind in DecisionKind::ALL {
            for preemptive in [false, true] {
                let d = Decision {
                    step: u32::MAX,
                    kind,
                    options: 4095,
                    chosen: 4094,
                    preemptive,
                    hash: u64::MAX,
                };
                assert_eq!(Touch::unpack(d.pack()), None);
            }
        }
        for code in [0x7, 0x19] {
            assert_eq!(Touch::unpack([code << 56, 0]), None);
        }
    }
}
