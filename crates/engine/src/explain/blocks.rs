//! A schedule as a sequence of blocks, each the steps that one thread takes in a row, and the shorter sequences to
//! try instead.
//!
//! Positions in a block are counted by the steps of its thread. So a block keeps its meaning when other blocks move,
//! as long as its thread takes the same path.

use heisen_trace::{Decision, DecisionKind, Execution, Override, Plan, Policy, TouchKind};
use std::ops::Range;

/// The steps that a thread takes in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) thread: u16,
    pub(crate) start: u32,
    pub(crate) steps: u32,
}

/// How much of a schedule a person has to understand. The fields are compared in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    preemptions: u32,
    /// Decisions that are not about threads and differ from the default.
    values: usize,
    /// Decisions about threads that differ from the default, preemptions included.
    switches: usize,
    blocks: usize,
    threads: u32,
    steps: u32,
}

/// A schedule that was run.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// The decisions that differ from the default, in order.
    chosen: Vec<Decision>,
    pub(crate) blocks: Vec<Block>,
    cost: Cost,
}

impl Blocks {
    /// The blocks of an execution whose touches and decisions were all logged.
    pub(crate) fn of(execution: &Execution) -> Blocks {
        let mut blocks: Vec<Block> = Vec::new();
        for touch in execution.touches.iter().filter(|touch| touch.kind == TouchKind::Switch) {
            match blocks.last_mut() {
                Some(last) if last.thread == touch.thread => continue,
                Some(last) => last.steps = touch.step.saturating_sub(last.start),
                None => {}
            }
            blocks.push(Block { thread: touch.thread, start: touch.step, steps: 0 });
        }
        if let Some(last) = blocks.last_mut() {
            last.steps = execution.steps.saturating_sub(last.start) + 1;
        }
        let chosen: Vec<Decision> = execution.decisions.iter().filter(|d| d.chosen != 0).copied().collect();
        let cost = Cost {
            preemptions: chosen.iter().map(|d| d.cost(d.chosen)).sum(),
            values: chosen.iter().filter(|d| d.kind != DecisionKind::Thread).count(),
            switches: chosen.iter().filter(|d| d.kind == DecisionKind::Thread).count(),
            blocks: blocks.len(),
            threads: execution.threads,
            steps: execution.steps,
        };
        Blocks { chosen, blocks, cost }
    }

    /// Without the blocks after the last choice, for an execution that does not end: they only repeat.
    pub(crate) fn up_to_last_choice(mut self) -> Blocks {
        let last = self.chosen.last().map_or(0, |decision| decision.step);
        self.blocks.retain(|block| block.start <= last);
        (self.cost.blocks, self.cost.steps) = (self.blocks.len(), last);
        self
    }

    pub(crate) fn cost(&self) -> Cost {
        self.cost
    }

    pub(crate) fn preemptions(&self) -> u32 {
        self.cost.preemptions
    }

    /// How many decisions differ from the default.
    pub(crate) fn choices(&self) -> usize {
        self.chosen.len()
    }

    /// The plan that repeats the schedule.
    pub(crate) fn plan(&self) -> Plan {
        self.prefix(self.chosen.len())
    }

    /// The plan that makes the first `count` choices, and goes on by default.
    pub(crate) fn prefix(&self, count: usize) -> Plan {
        with_overrides(self.chosen[..count].iter().map(exactly).collect())
    }

    /// The plan that leaves out the choice with this index. Later choices about threads become preferences at the
    /// same steps. `None` if a later choice is not about threads, because that cannot be a preference.
    pub(crate) fn without(&self, index: usize) -> Option<Plan> {
        let (before, after) = (&self.chosen[..index], &self.chosen[index + 1..]);
        let is_thread = |d: &Decision| d.kind == DecisionKind::Thread;
        if !after.iter().all(is_thread) {
            return None;
        }
        let preferred = after.iter().filter_map(|d| Some(Override::thread(d.step, self.thread_at(d.step)?)));
        Some(with_overrides(before.iter().map(exactly).chain(preferred).collect()))
    }

    /// The thread of the block that begins at this step.
    fn thread_at(&self, step: u32) -> Option<u16> {
        let at = self.blocks.binary_search_by_key(&step, |block| block.start).ok()?;
        Some(self.blocks[at].thread)
    }

    /// The thread that took a step.
    pub(crate) fn thread_of(&self, step: u32) -> Option<u16> {
        let at = self.blocks.partition_point(|block| block.start <= step).checked_sub(1)?;
        let block = self.blocks[at];
        (step < block.start + block.steps).then_some(block.thread)
    }

    /// The number of a step among those of its thread, from 0.
    pub(crate) fn number_of(&self, step: u32) -> Option<u32> {
        let thread = self.thread_of(step)?;
        let earlier = self.blocks.iter().filter(|block| block.thread == thread && block.start <= step);
        Some(earlier.map(|block| block.steps.min(step - block.start)).sum())
    }

    /// The step with this number among those of a thread.
    pub(crate) fn numbered(&self, thread: u16, mut number: u32) -> Option<u32> {
        for block in self.blocks.iter().filter(|block| block.thread == thread) {
            if number < block.steps {
                return Some(block.start + number);
            }
            number -= block.steps;
        }
        None
    }

    /// The blocks of the steps in a range. Those at its ends are cut.
    fn within(&self, range: Range<u32>) -> impl Iterator<Item = Block> {
        self.blocks.iter().filter_map(move |block| {
            let (start, end) = (block.start.max(range.start), (block.start + block.steps).min(range.end));
            (start < end).then(|| Block { start, steps: end - start, ..*block })
        })
    }

    /// The plan in which a thread is held from a step on, until the thread of a later step has taken that one. With
    /// `all`, every other thread takes its steps up to there. `None` if a later choice is not about threads.
    pub(crate) fn held(&self, hold: u32, until: u32, all: bool) -> Option<Plan> {
        let (held, wanted) = (self.thread_of(hold)?, self.thread_of(until)?);
        let first = |block: &Block| if all { block.thread != held } else { block.thread == wanted };
        let (early, late): (Vec<Block>, Vec<Block>) = self.within(hold..until + 1).partition(first);
        self.preferring(hold, early.into_iter().chain(late).chain(self.within(until + 1..u32::MAX)))
    }

    /// The plan that makes the choices before the first of these steps, and then prefers a thread at each of them.
    pub(crate) fn choosing(&self, choices: &[(u32, u16)]) -> Plan {
        let first = choices.first().map_or(u32::MAX, |(step, _)| *step);
        let before = self.chosen.iter().filter(|d| d.step < first).map(exactly);
        let preferred = choices.iter().map(|&(step, thread)| Override::thread(step, thread));
        with_overrides(before.chain(preferred).collect())
    }

    /// The windows of a given size that lie beside each other.
    pub(crate) fn windows(&self, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let count = self.blocks.len();
        // The first block is the main thread's, and nothing can come before it.
        (1..count).step_by(size.max(1)).map(move |from| from..(from + size).min(count))
    }

    /// The plans in which the blocks of a window are sorted by thread: in the order in which the threads first run
    /// there, and in the order in which they last run there.
    pub(crate) fn sorted(&self, window: Range<usize>) -> Vec<Plan> {
        let inside = &self.blocks[window.clone()];
        let threads = |blocks: &mut dyn Iterator<Item = &Block>| {
            let mut threads: Vec<u16> = Vec::new();
            for block in blocks {
                if !threads.contains(&block.thread) {
                    threads.push(block.thread);
                }
            }
            threads
        };
        let first = threads(&mut inside.iter());
        let mut last = threads(&mut inside.iter().rev());
        last.reverse();
        let mut orders = vec![first];
        if last != orders[0] {
            orders.push(last);
        }
        let by = |order: Vec<u16>| -> Vec<Block> {
            order.iter().flat_map(|t| inside.iter().filter(move |b| b.thread == *t).copied()).collect()
        };
        orders
            .into_iter()
            .map(by)
            .filter(|new| new != inside)
            .filter_map(|new| self.moved(window.start, &new, window.end))
            .collect()
    }

    /// The plans in which one block joins the next block of its thread, or that block joins it.
    pub(crate) fn joined(&self, index: usize) -> Vec<Plan> {
        let thread = self.blocks[index].thread;
        let Some(distance) = self.blocks[index + 1..].iter().position(|b| b.thread == thread) else {
            return Vec::new();
        };
        let next = index + 1 + distance;
        let between = &self.blocks[index + 1..next];
        let (this, that) = (self.blocks[index], self.blocks[next]);
        let early: Vec<Block> = [this, that].into_iter().chain(between.iter().copied()).collect();
        let late: Vec<Block> = between.iter().copied().chain([this, that]).collect();
        [early, late].iter().filter_map(|new| self.moved(index, new, next + 1)).collect()
    }

    /// The plan in which the blocks from `from` to `to` come in a new order. `None` if a later choice is not about
    /// threads.
    fn moved(&self, from: usize, new: &[Block], to: usize) -> Option<Plan> {
        let step = self.blocks.get(from)?.start;
        self.preferring(step, new.iter().chain(&self.blocks[to..]).copied())
    }

    /// The plan that makes all choices before a step, and from there on prefers the threads of these blocks. `None` if a
    /// later choice is not about threads.
    fn preferring(&self, mut step: u32, blocks: impl Iterator<Item = Block>) -> Option<Plan> {
        let (before, after): (Vec<&Decision>, Vec<&Decision>) =
            self.chosen.iter().partition(|d| d.step < step);
        if after.iter().any(|d| d.kind != DecisionKind::Thread) {
            return None;
        }
        let mut overrides: Vec<Override> = before.into_iter().map(exactly).collect();
        let mut running = None;
        for block in blocks {
            if running != Some(block.thread) {
                overrides.push(Override::thread(step, block.thread));
            }
            running = Some(block.thread);
            step += block.steps;
        }
        Some(with_overrides(overrides))
    }
}

fn exactly(decision: &Decision) -> Override {
    Override::new(decision.step, decision.kind, decision.chosen, decision.options)
}

fn with_overrides(overrides: Vec<Override>) -> Plan {
    Plan { overrides, ..Plan::new(Policy::Default) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schedule of these blocks, in which every switch was a preemption.
    fn schedule(threads: &[(u16, u32)]) -> Blocks {
        let (mut start, mut blocks, mut chosen) = (0, Vec::new(), Vec::new());
        for &(thread, steps) in threads {
            if start > 0 {
                let kind = DecisionKind::Thread;
                chosen.push(Decision { step: start, kind, options: 3, chosen: 1, preemptive: true, hash: 0 });
            }
            blocks.push(Block { thread, start, steps });
            start += steps;
        }
        let count = chosen.len();
        let cost = Cost {
            preemptions: count as u32,
            values: 0,
            switches: count,
            blocks: count + 1,
            threads: 3,
            steps: start,
        };
        Blocks { chosen, blocks, cost }
    }

    /// The preferences of a plan: which thread from which step.
    fn preferences(plan: &Plan) -> Vec<(u32, u16)> {
        plan.overrides.iter().filter(|o| o.named).map(|o| (o.step, o.choice)).collect()
    }

    #[test]
    fn a_prefix_fixes_the_first_choices_only() {
        let blocks = schedule(&[(0, 3), (1, 2), (2, 4), (1, 1)]);
        let steps = |count| -> Vec<u32> { blocks.prefix(count).overrides.iter().map(|o| o.step).collect() };
        assert_eq!((steps(0), steps(2), steps(3)), (vec![], vec![3, 5], vec![3, 5, 9]));
        assert_eq!(blocks.plan(), blocks.prefix(3));
    }

    #[test]
    fn blocks_join_the_next_of_their_thread_and_it_joins_them() {
        let blocks = schedule(&[(0, 3), (1, 2), (2, 4), (1, 1), (0, 2)]);
        let plans = blocks.joined(1);
        // T1 goes on, then T2 runs; or T2 runs before T1 begins.
        assert_eq!(preferences(&plans[0]), [(3, 1), (6, 2), (10, 0)]);
        assert_eq!(preferences(&plans[1]), [(3, 2), (7, 1), (10, 0)]);
        assert!(blocks.joined(2).is_empty(), "T2 runs only once");
    }

    #[test]
    fn windows_are_sorted_by_thread_in_two_ways() {
        let blocks = schedule(&[(0, 1), (1, 2), (2, 2), (1, 2), (2, 2), (1, 1)]);
        let plans = blocks.sorted(1..6);
        assert_eq!(preferences(&plans[0]), [(1, 1), (6, 2)]);
        assert_eq!(preferences(&plans[1]), [(1, 2), (5, 1)]);
        assert!(blocks.sorted(1..3).is_empty(), "two threads in order");
        assert_eq!(blocks.windows(2).collect::<Vec<_>>(), [1..3, 3..5, 5..6]);
    }

    #[test]
    fn steps_are_numbered_by_thread() {
        let blocks = schedule(&[(0, 3), (1, 2), (2, 4), (1, 3)]);
        assert_eq!(
            [0, 2, 3, 8, 11, 12].map(|step| blocks.thread_of(step)),
            [Some(0), Some(0), Some(1), Some(2), Some(1), None]
        );
        assert_eq!([3, 4, 9, 11].map(|step| blocks.number_of(step)), [Some(0), Some(1), Some(2), Some(4)]);
        assert_eq!(
            [0, 1, 2, 4, 5].map(|n| blocks.numbered(1, n)),
            [Some(3), Some(4), Some(9), Some(11), None]
        );
    }

    #[test]
    fn a_thread_is_held_until_another_has_taken_a_step() {
        let blocks = schedule(&[(0, 3), (1, 2), (2, 4), (3, 1), (2, 2), (1, 1)]);
        // T1 waits at its second step until T2 has taken its first two steps.
        let plan = blocks.held(4, 6, false).expect("all choices are about threads");
        assert_eq!(preferences(&plan), [(4, 2), (6, 1), (7, 2), (9, 3), (10, 2), (12, 1)]);
        // T2 is wanted at its fifth step, which may need T3.
        let only = blocks.held(3, 10, false).expect("all choices are about threads");
        assert_eq!(preferences(&only), [(3, 2), (8, 1), (10, 3), (11, 2), (12, 1)]);
        let all = blocks.held(3, 10, true).expect("all choices are about threads");
        assert_eq!(preferences(&all), [(3, 2), (7, 3), (8, 2), (9, 1), (11, 2), (12, 1)]);
    }

    #[test]
    fn what_is_left_out_moves_later_choices_to_preferences() {
        let blocks = schedule(&[(0, 3), (1, 2), (2, 4)]);
        let plan = blocks.without(0).expect("all choices are about threads");
        assert_eq!(preferences(&plan), [(5, 2)]);
        let mut values = blocks.clone();
        values.chosen[1].kind = DecisionKind::Fault;
        assert_eq!(values.without(0), None);
        assert_eq!(values.without(1).map(|plan| plan.overrides.len()), Some(1));
    }
}
