//! Computes the outcome of a check: what was explored, and the caveats: what was not.

use super::caveat::{Caveat, Differs};
use super::confirm::MAX_FINDINGS;
use super::options::Kind;
use super::outcome::{Empty, Ended, Outcome, Reach};
use super::predictions;
use super::state::State;
use crate::error::Result;
use crate::program::{foreign, uninstrumented};
use heisen_search::{Status, Strategy};
use heisen_trace::Note;

/// How many functions a caveat names.
const SHOWN: usize = 5;

/// Notes without a meaning if only one thread ran.
const OF_THREADS: u64 =
    Note::WeakOrders.bit() | Note::FarTimeout.bit() | Note::TimerFd.bit() | Note::Watchdog.bit();

impl State<'_> {
    /// The outcome of a search that has ended.
    pub(super) fn conclude(mut self, ended: Ended) -> Result<Outcome> {
        let mut status = self.search.status();
        let dependent = self.dependent_functions();
        if dependent.is_some() || !self.tally.all_judged() {
            status.rounds_completed = None;
        }
        status.missing.extend(dependent);
        status.exhaustive &= status.missing.is_empty();
        let alone = self.is_alone() && self.tally.all_judged();
        let blind = if alone { Vec::new() } else { uninstrumented::uninstrumented_code(self.case.program) };
        let all_followed = !status.has_gaps() && self.tally.all_judged();
        let accesses_explored = self.is_sound(ended) && all_followed && blind.is_empty();
        let reach = self.reach(!blind.is_empty());
        let out_of_time = ended == Ended::Limit && self.executions_left(0) != Some(0);
        let mut caveats: Vec<Caveat> = Vec::new();
        if !alone {
            caveats.extend(self.about_accesses(ended));
            caveats.extend(self.about_races());
            caveats.extend((!blind.is_empty()).then_some(Caveat::PartlyInstrumented(blind)));
            let scope = &self.case.options.scope;
            caveats.extend((!scope.is_empty()).then(|| Caveat::OutOfScope(scope.clone())));
        }
        if out_of_time && self.search.samples() {
            caveats.push(Caveat::OutOfTime(self.tally.executions));
        }
        self.tally.notes &= if alone { !OF_THREADS } else { u64::MAX };
        if status.rounds.is_some() {
            // The number of rounds says it all: threads yield only behind the rounds that the search asks for.
            self.tally.notes &= !Note::Spin.bit();
        }
        caveats.extend(self.about_executions(&status));
        caveats.extend(self.left_open(ended));
        let regions = self.tally.notes & Note::NoPreempt.bit() != 0;
        let patterns = !self.case.options.scope.is_empty();
        let contradiction = self.tally.assumed > 0 && self.tally.assumed == self.tally.executions;
        let empty = match self.tally.notes & (Note::InScope.bit() | Note::OutOfScope.bit()) {
            _ if contradiction => Some(Empty::Contradiction),
            _ if alone && ended == Ended::Exhausted && self.case.ran_no_test() => Some(Empty::NoTest),
            _ if alone => Some(Empty::OneThread),
            only if patterns && only == Note::OutOfScope.bit() => Some(Empty::NoPointInScope),
            _ => None,
        };
        let hints = if ended == Ended::Interrupted {
            Vec::new()
        } else {
            predictions::hints(self.case, &self.tally)?
        };
        self.tally.time = self.time();
        let State { tally, search, .. } = self;
        Ok(Outcome {
            ended,
            tally,
            status,
            caveats,
            hints,
            scoped: regions || patterns,
            accesses_explored,
            reach,
            empty,
            out_of_time,
            search,
            error: None,
        })
    }

    /// Which accesses occur in any order in the explored schedules.
    fn reach(&self, blind: bool) -> Reach {
        let accesses = &self.case.options.world.accesses;
        match self.case.config.patches.patched().is_empty() {
            _ if self.tally.instrumented && !accesses.check && !accesses.all => Reach::Atomics,
            _ if self.tally.instrumented && blind => Reach::Partly,
            _ if self.tally.instrumented => Reach::All,
            false => Reach::Patched,
            true => Reach::Calls,
        }
    }

    /// Whether every access that conflicts in any execution within the bound is a scheduling point. Then the
    /// bound was explored soundly (ICB, PLDI'07, theorem 2).
    fn is_sound(&self, ended: Ended) -> bool {
        let accesses = &self.case.options.world.accesses;
        let partly = [Note::TooManyConflicts, Note::TooManyPoints, Note::TooManyAccesses];
        self.tally.instrumented
            && (accesses.check || accesses.all)
            && ended == Ended::Exhausted
            && !self.search.samples()
            && partly.iter().all(|&note| !self.tally.has_note(note))
    }

    /// The caveat about memory accesses, if any.
    fn about_accesses(&self, ended: Ended) -> Option<Caveat> {
        let accesses = &self.case.options.world.accesses;
        if !self.tally.instrumented {
            let patched = self.case.config.patches.patched();
            return Some(if patched.is_empty() { Caveat::CallsOnly } else { Caveat::PatchedOnly(patched) });
        }
        if accesses.all || self.tally.points.all {
            return None;
        }
        if !accesses.check {
            return Some(Caveat::AtomicsOnly);
        }
        // A search that ends with a finding has done what it was asked for.
        let cut = matches!(ended, Ended::Limit | Ended::Interrupted | Ended::Failed);
        (cut && !self.search.samples()).then_some(Caveat::StoppedEarly)
    }

    /// The caveat about races that are not listed although the user asked for races.
    fn about_races(&self) -> Option<Caveat> {
        let more = self.tally.races.unlisted();
        (self.case.options.reports_races() && more > 0)
            .then_some(Caveat::MoreRaces { listed: MAX_FINDINGS, more })
    }

    /// The caveats that follow from what executions did.
    fn about_executions(&self, status: &Status) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let options = self.case.options;
        if options.reports_races() && !self.tally.instrumented && !self.is_alone() {
            caveats.push(Caveat::NoRaces);
        }
        if self.case.program.at_ready {
            caveats.push(Caveat::BeforeReady);
        }
        // Executions that run one after the other share no file that is named by a process id.
        let shared = |note: &Note| *note != Note::FileOfPid || options.jobs > 1;
        let notes = Note::in_word(self.tally.notes).filter(|note| note.is_caveat() && shared(note));
        caveats.extend(notes.map(Caveat::Note));
        if matches!(options.strategy, Kind::Dpor | Kind::Bpor) && status.diverged > 0 {
            caveats.push(Caveat::DporUnfit);
        }
        if status.cut > 0 {
            caveats.push(Caveat::DporCut { events: heisen_search::MOST_EVENTS, executions: status.cut });
        }
        caveats.extend(status.missing.iter().cloned().map(Caveat::NotExact));
        if self.tally.asks_for_inputs && !options.inputs {
            caveats.push(Caveat::InputsKept);
        }
        if status.diverged > 0 {
            caveats.push(Caveat::Diverged(self.differs(status.diverged)));
        }
        if self.tally.unconfirmed > 0 {
            caveats.push(Caveat::Unconfirmed(self.differs(self.tally.unconfirmed)));
        }
        if let Some(hang) = self.case.computed.get() {
            caveats.push(Caveat::Computed { hang: self.case.config.hang, place: hang.place() });
        }
        if self.tally.too_long > 0 {
            caveats.push(Caveat::TooLong { executions: self.tally.too_long, steps: options.steps });
        }
        if self.tally.lost > 0 {
            caveats.push(Caveat::Lost(self.tally.lost));
        }
        caveats
    }

    /// For a search that takes what threads do for a function of their reads and inputs: the functions for which that may be wrong.
    fn dependent_functions(&self) -> Option<String> {
        if self.case.options.strategy != Kind::Causal {
            return None;
        }
        let bytes = std::fs::read(&self.case.program.path).unwrap_or_default();
        let has_heap = self.case.options.world.heap != Some(false) && !self.tally.has_note(Note::NoHeap);
        let divided = self.case.program.symbolic && has_heap;
        let reads = !self.case.options.world.marked.is_empty();
        let all_code = uninstrumented::uninstrumented_code(self.case.program).is_empty();
        let names = foreign::dependent(&bytes, divided, &self.tally.called, (all_code, reads));
        let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!names.is_empty()).then(|| format!("results of {shown}{more} may depend on other threads or inputs"))
    }

    /// Describes so many executions that differ although they have the same schedule.
    fn differs(&self, executions: u64) -> Differs {
        let at = self.tally.diverged_at.clone().unwrap_or_default();
        Differs { executions, at, notes: Note::in_word(self.tally.notes).collect() }
    }

    /// The caveats for what the end of the time, or silence from outside, has left open.
    fn left_open(&self, ended: Ended) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let tally = &self.tally;
        if tally.unexamined > 0 {
            caveats.push(Caveat::NoTimeToConfirm {
                executions: tally.unexamined,
                seemed: tally.seemed.clone().unwrap_or_default(),
                interrupted: ended == Ended::Interrupted,
            });
        }
        if tally.cut > 0 {
            caveats.push(Caveat::Cut(tally.cut));
        }
        if let Some(awaited) = tally.awaited.clone() {
            // The runtime waits a quarter of the time after which an execution counts as stuck.
            let silence = (tally.idle > 0).then(|| self.case.config.hang / 4);
            caveats.push(Caveat::Awaited { awaited, silence });
        }
        if ended == Ended::Limit && tally.executions == 0 && tally.cut == 0 {
            caveats.push(Caveat::NoTime);
        }
        caveats
    }
}
