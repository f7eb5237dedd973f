//! Decisions: the points of an execution with more than one choice.
//!
//! The choices of a decision are ordered, and choice 0 is the one that the default policy takes:
//!
//! - the running thread continues; if it is disabled, the next enabled thread in cyclic order of creation,
//!   threads that would have to time out last;
//! - of several waiters, the one that has waited longest;
//! - of several values, 0;
//! - no spurious wake-up and no fault.
//!
//! A schedule is therefore the list of decisions with a choice other than 0.

/// The kind of a decision.
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
    /// Whether a wait may end without a wake-up.
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

/// How often a thread may repeat itself in vain before it has to give way, unless the world says otherwise. If it gives up
/// after one more attempt, it is searched as if no attempt were a yield.
pub const PATIENCE: u32 = 3;

/// The largest number of choices of one decision. Further choices are left out, with a note.
pub const MAX_OPTIONS: usize = 4095;

/// One decision of a finished execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Decision {
    /// The step of the decision; no two decisions of an execution share one.
    pub step: u32,
    /// The kind of the decision.
    pub kind: DecisionKind,
    /// How many choices there were, at least 2.
    pub options: u16,
    /// The choice that was taken, less than `options`.
    pub chosen: u16,
    /// Whether every choice except 0 preempts an enabled thread.
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

    /// The decision in two words of the wire's log, if they hold a decision.
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
