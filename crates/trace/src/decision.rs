//! Decisions: the points of an execution that had more than one choice.
//!
//! The choices of a decision are ordered, and number 0 is always what the default policy takes: the running thread
//! goes on; where it can't, the next enabled thread in cyclic order of creation, those that would have to time out
//! last; of several waiters the one that has waited longest; of several values 0; no spurious wake-up and no fault. So
//! a schedule is just the list of decisions with a choice other than 0.

/// What is being chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum DecisionKind {
    /// Which thread takes the next step.
    Thread = 0,
    /// Which waiter is woken.
    Waiter = 1,
    /// Which value `heisen_choose` returns.
    Choose = 2,
    /// Whether a wait may end though nobody wakes it.
    Spurious = 3,
    /// Whether a call fails that could succeed.
    Fault = 4,
}

impl DecisionKind {
    /// Every kind, in the order of its number.
    pub const ALL: [DecisionKind; 5] = [
        DecisionKind::Thread,
        DecisionKind::Waiter,
        DecisionKind::Choose,
        DecisionKind::Spurious,
        DecisionKind::Fault,
    ];

    /// The kind with this number.
    pub const fn from_code(code: u8) -> Option<DecisionKind> {
        match code {
            0 => Some(DecisionKind::Thread),
            1 => Some(DecisionKind::Waiter),
            2 => Some(DecisionKind::Choose),
            3 => Some(DecisionKind::Spurious),
            4 => Some(DecisionKind::Fault),
            _ => None,
        }
    }

    /// How the kind is written in schedules.
    pub const fn name(self) -> &'static str {
        match self {
            DecisionKind::Thread => "thread",
            DecisionKind::Waiter => "waiter",
            DecisionKind::Choose => "choose",
            DecisionKind::Spurious => "spurious",
            DecisionKind::Fault => "fault",
        }
    }
}

/// The most choices one decision can offer; further ones are left out, with a note.
pub const MAX_OPTIONS: usize = 4095;

/// One decision of a finished execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Decision {
    /// The step it was taken at; no two decisions of an execution share one.
    pub step: u32,
    /// What was chosen.
    pub kind: DecisionKind,
    /// How many choices there were, at least 2.
    pub options: u16,
    /// The one taken, less than `options`.
    pub chosen: u16,
    /// Whether every choice but 0 preempts a thread that could have gone on.
    pub preemptive: bool,
    /// The running hash of the execution just before this decision.
    pub hash: u64,
}

impl Decision {
    /// How many preemptions choosing `choice` here costs.
    pub const fn cost(&self, choice: u16) -> u32 {
        (self.preemptive && choice != 0) as u32
    }

    /// The decision as two words of the wire's log.
    pub const fn pack(&self) -> [u64; 2] {
        let word = (self.step as u64)
            | ((self.options as u64 & 0xfff) << 32)
            | ((self.chosen as u64 & 0xfff) << 44)
            | ((self.kind as u64 & 0xf) << 56)
            | ((self.preemptive as u64) << 60);
        [word, self.hash]
    }

    /// The decision in two words of the wire's log, if they hold one.
    pub const fn unpack(words: [u64; 2]) -> Option<Decision> {
        let word = words[0];
        let Some(kind) = DecisionKind::from_code((word >> 56) as u8 & 0xf) else { return None };
        Some(Decision {
            step: word as u32,
            kind,
            options: (word >> 32) as u16 & 0xfff,
            chosen: (word >> 44) as u16 & 0xfff,
            preemptive: word >> 60 & 1 != 0,
            hash: words[1],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_round_trips() {
        for kind in DecisionKind::ALL {
            for (options, chosen) in [(2, 1), (4095, 4094), (7, 0)] {
                for preemptive in [false, true] {
                    let d = Decision {
                        step: u32::MAX - 3,
                        kind,
                        options,
                        chosen,
                        preemptive,
                        hash: 0xdead_beef_0bad_cafe,
                    };
                    assert_eq!(Decision::unpack(d.pack()), Some(d));
                }
            }
        }
        assert_eq!(Decision::unpack([0xf << 56, 0]), None);
    }

    #[test]
    fn only_other_threads_cost_a_preemption() {
        let d = Decision {
            step: 1,
            kind: DecisionKind::Thread,
            options: 3,
            chosen: 0,
            preemptive: true,
            hash: 0,
        };
        assert_eq!((d.cost(0), d.cost(1), d.cost(2)), (0, 1, 1));
        assert_eq!(Decision { preemptive: false, ..d }.cost(2), 0);
    }
}
