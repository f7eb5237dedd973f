//! A sequence of events on its way into a wake-up tree.
//!
//! The tree already covers most sequences, and it stores only the end of the others. The steps are therefore
//! borrowed from the execution, and removed steps are only marked. Vector clocks of the execution say whether
//! a step could come first, so that it need not be compared with every step before it.

use crate::analysis::relation::{Clocks, Footprint};
use crate::systematic::dpor::wakeup_tree::Step;
use std::borrow::Cow;

/// A step of the sequence.
#[derive(Debug)]
struct Moved<'a> {
    foot: Cow<'a, Footprint>,
    /// The number of the event. `None` for the step that is moved before an event it depended on.
    event: Option<usize>,
    /// Whether the step may turn out to be impossible.
    perhaps: bool,
    gone: bool,
}

/// The steps of one thread.
#[derive(Debug)]
struct Own {
    thread: u16,
    /// Their positions in the sequence, in order. The first `gone` of them were removed.
    steps: Vec<usize>,
    gone: usize,
    /// The number of the first of them among the events of the thread, from 1.
    first: usize,
}

/// A sequence: events of an execution that do not happen after some event e, in order, then a step that is
/// moved before e.
#[derive(Debug)]
pub(crate) struct Sequence<'a> {
    clocks: &'a Clocks,
    steps: Vec<Moved<'a>>,
    threads: Vec<Own>,
    /// The position of the first step that was not removed.
    from: usize,
}

impl<'a> Sequence<'a> {
    /// An empty sequence of events with these clocks.
    pub fn new(clocks: &'a Clocks) -> Sequence<'a> {
        Sequence { clocks, steps: Vec::new(), threads: Vec::new(), from: 0 }
    }

    /// Adds an event. The sequence must contain all events that happen before it, from the first event of the
    /// sequence on.
    pub fn push_event(&mut self, event: usize, foot: Cow<'a, Footprint>) {
        self.push(Moved { foot, event: Some(event), perhaps: false, gone: false });
    }

    /// Adds a step that the execution did not take there: the moved event.
    pub fn push_moved(&mut self, foot: Cow<'a, Footprint>, perhaps: bool) {
        self.push(Moved { foot, event: None, perhaps, gone: false });
    }

    fn push(&mut self, step: Moved<'a>) {
        let (thread, at) = (step.foot.thread, self.steps.len());
        match self.threads.iter_mut().find(|own| own.thread == thread) {
            Some(own) => own.steps.push(at),
            None => {
                let first = step.event.map_or(0, |event| self.clocks.count(event, thread.into()));
                self.threads.push(Own { thread, steps: vec![at], gone: 0, first });
            }
        }
        self.steps.push(step);
    }

    fn left(&self) -> impl Iterator<Item = &Moved<'a>> {
        self.steps[self.from..].iter().filter(|step| !step.gone)
    }

    pub fn is_empty(&self) -> bool {
        self.from == self.steps.len()
    }

    /// The thread of the first step.
    pub fn first_thread(&self) -> Option<u16> {
        self.left().next().map(|step| step.foot.thread)
    }

    /// The position of a thread's first step.
    pub fn first_of(&self, thread: u16) -> Option<usize> {
        let own = self.threads.iter().find(|own| own.thread == thread)?;
        own.steps.get(own.gone).copied()
    }

    /// Whether no step before this one, the first of its thread, has to come before it.
    pub fn is_initial(&self, at: usize) -> bool {
        let step = &self.steps[at];
        let by_comparison =
            || !self.steps[self.from..at].iter().any(|s| !s.gone && s.foot.precedes(&step.foot));
        let Some(event) = step.event else { return by_comparison() };
        let others = self.threads.iter().filter(|own| own.thread != step.foot.thread);
        let initial = others
            .filter(|own| own.first > 0)
            .all(|own| self.clocks.count(event, own.thread.into()) < own.first + own.gone);
        debug_assert_eq!(initial, by_comparison(), "what happens before a step is among the steps before it");
        initial
    }

    /// Whether the next step of a thread is a weak initial of the sequence. Returns its position, or
    /// `Some(None)` if it is not in the sequence.
    pub fn weak_initial(&self, step: &Footprint) -> Option<Option<usize>> {
        match self.first_of(step.thread) {
            Some(at) => self.is_initial(at).then_some(Some(at)),
            None => (!self.left().any(|s| s.foot.rivals(step))).then_some(None),
        }
    }

    /// Whether a step that was explored, with all its outcomes, is a weak initial of the sequence. In the
    /// sequence the thread may take another step, or have another outcome, so the footprint decides.
    pub fn is_covered_by(&self, explored: &Footprint) -> bool {
        let mut before = self.left().take_while(|s| s.foot.thread != explored.thread);
        !before.any(|s| s.foot.rivals(explored))
    }

    /// Removes a step, the first of its thread.
    pub fn remove(&mut self, at: usize) {
        let thread = self.steps[at].foot.thread;
        self.steps[at].gone = true;
        if let Some(own) = self.threads.iter_mut().find(|own| own.thread == thread) {
            own.gone += 1;
        }
        while self.steps.get(self.from).is_some_and(|step| step.gone) {
            self.from += 1;
        }
    }

    /// The steps that are left. Only the moved step may turn out to be a different one in its new place.
    pub fn into_steps(self) -> impl DoubleEndedIterator<Item = Step> {
        self.steps.into_iter().filter(|step| !step.gone).map(|step| Step {
            foot: step.foot.into_owned(),
            sure: step.event.is_some(),
            perhaps: step.perhaps,
        })
    }
}
