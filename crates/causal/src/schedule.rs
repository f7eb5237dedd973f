//! From a solution of the solver to a plan: which thread takes which step, and which inputs it reads.

use crate::encode::Encoding;
use crate::tree::{Key, NodeId, Outcome, ThreadRoot};
use heisen_solver::{Event, Model};
use heisen_trace::decision::DecisionKind;
use heisen_trace::hash::{EMPTY, thread_key};
use heisen_trace::symbolic::{ChosenInput, FutexAct, InputKey};
use heisen_trace::{Op, Override, Plan, Policy};
use std::collections::{BTreeMap, HashMap};

/// The plan that takes the steps of a solution, in its order, and then so many of each of these threads. The last one goes
/// on.
pub fn plan(encoding: &Encoding, model: &Model, goes_on: &[(ThreadRoot, u32)]) -> Plan {
    let tree = &encoding.tree;
    let is_active = |node: &NodeId| match tree[*node].key {
        // The main thread exists in every solution; created threads share the term of their creation.
        Key::Begin => false,
        _ => model.value(tree[*node].active) == 1,
    };
    let mut active: Vec<NodeId> = (0..tree.nodes.len()).map(NodeId).filter(is_active).collect();
    // Nodes of one step share an event, and come in their order.
    let position: HashMap<Event, usize> = model.order().iter().copied().zip(0..).collect();
    active.sort_by_key(|node| (position.get(&tree[*node].event), *node));
    let mut schedule = Schedule::new();
    for node in active {
        schedule.take(encoding, model, node);
    }
    for (root, steps) in goes_on {
        let Some(&thread) = schedule.numbers.get(root) else { continue };
        if thread != schedule.running {
            schedule.overrides.push(Override::thread(schedule.step + 1, thread));
            schedule.running = thread;
        }
        schedule.step += steps;
    }
    let mut plan = Plan::new(Policy::Default);
    plan.overrides = schedule.overrides;
    plan.inputs = schedule.inputs;
    plan
}

struct Schedule {
    overrides: Vec<Override>,
    inputs: Vec<ChosenInput>,
    /// The number of the last step, and the thread that took it.
    step: u32,
    running: u16,
    numbers: BTreeMap<ThreadRoot, u16>,
    /// By number of a thread: its key, and how many threads it has created.
    threads: Vec<(u64, u16)>,
    /// By condition variable or futex: the threads that wait, in the order in which they came, with the nodes of their waits.
    waiting: BTreeMap<u64, Vec<(u16, NodeId)>>,
}

impl Schedule {
    fn new() -> Schedule {
        let (overrides, inputs, waiting) = Default::default();
        let numbers = BTreeMap::from([(NodeId(0), 0)]);
        let threads = vec![(EMPTY, 0)];
        Schedule { overrides, inputs, step: 0, running: 0, numbers, threads, waiting }
    }

    fn take(&mut self, encoding: &Encoding, model: &Model, id: NodeId) {
        let tree = &encoding.tree;
        let node = &tree[id];
        let Some(&thread) = self.numbers.get(&node.thread) else { return };
        if node.steps > 0 {
            // By default, a thread that yields or whose wait times out comes after all others, also if it is the one that ran.
            let gives_way = match node.key {
                Key::Futex { act, .. } => act == FutexAct::TimedOut,
                Key::Sync { op, .. } => node.outcome == Outcome::Is(0) || matches!(op, Op::Yield | Op::Sleep),
                // It may be one of these.
                Key::Unknown => true,
                _ => false,
            };
            if thread != self.running || gives_way {
                self.overrides.push(Override::thread(self.step + 1, thread));
                self.running = thread;
            }
            self.step += node.steps;
        }
        if let (Key::Input { .. }, Some(unknown)) = (&node.key, node.unknown) {
            // Values of inputs have at most 64 bits in traces.
            let value = model.value(unknown) as u64;
            let key =
                InputKey { thread: self.threads[usize::from(thread)].0, number: u64::from(node.inputs) - 1 };
            self.inputs.push(ChosenInput { key, value });
        }
        let (op, object) = match node.key {
            Key::Sync { op, object } => (op, object),
            Key::Futex { word, act: FutexAct::Waits { .. } } => {
                return self.waiting.entry(word).or_default().push((thread, id));
            }
            Key::Futex { word, act: FutexAct::TimedOut } => return self.forget(word, thread),
            Key::FutexWake { word, most } => {
                return self.wake(word, most, |wait| encoding.futexes.wakes(model, word, id, wait));
            }
            _ => return,
        };
        match op {
            Op::Create => {
                let (key, children) = &mut self.threads[usize::from(thread)];
                *children += 1;
                let key = thread_key(*key, *children);
                if let Some(root) = tree.created_by(id) {
                    self.numbers.insert(root, self.threads.len() as u16);
                    self.threads.push((key, 0));
                }
            }
            Op::CondWait | Op::CondTimedWait if node.waits == Some(id) => {
                self.waiting.entry(object).or_default().push((thread, id));
            }
            Op::CondTimedWait => self.forget(object, thread),
            Op::CondBroadcast => {
                self.waiting.remove(&object);
            }
            Op::CondSignal => self.wake(object, 1, |wait| encoding.conditions.wakes(model, object, id, wait)),
            _ => {}
        }
    }

    /// A thread leaves a queue although it was not woken.
    fn forget(&mut self, queue: u64, thread: u16) {
        self.waiting.entry(queue).or_default().retain(|(other, _)| *other != thread);
    }

    /// At most so many waiters are woken. Where there are more, each choice takes a step.
    fn wake(&mut self, queue: u64, most: u32, wakes: impl Fn(NodeId) -> bool) {
        let waiting = self.waiting.entry(queue).or_default();
        let most = most as usize;
        if waiting.len() <= most {
            return waiting.clear();
        }
        for _ in 0..most {
            let woken = waiting.iter().position(|(_, wait)| wakes(*wait)).unwrap_or(0);
            self.step += 1;
            let (choice, options) = (woken as u16, waiting.len() as u16);
            if choice > 0 {
                self.overrides.push(Override::new(self.step, DecisionKind::Waiter, choice, options));
            }
            waiting.remove(woken);
        }
    }
}
