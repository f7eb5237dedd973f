//! Turns a finding into a script: the refinement that CONCURRIT's authors did by hand (PLDI'13, section 2.4).
//!
//! *Strengthen*: the events of a failing execution become lines, one for each run of a thread without a
//! switch. A line runs the thread until it is about to do the operation at which it stops. It names the
//! operation in words of the program, not by a step number. *Weaken*: lines are dropped and the others are
//! relaxed, as long as every execution still fails.
//!
//! A line says which of the events that it names is meant, the n-th. This number follows from the recording
//! and the lines before, so a line stays exact when others are dropped.

use crate::record::{Recording, Wording};
use heisen_trace::finding::SwitchKind;
use heisen_wire::script::kind;
use std::fmt::Write;

/// Where a script first names its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Each thread at its first stop, from the first decision on that is not the default. Everything before
    /// is the default.
    Stops,
    /// All threads except the main thread at their start, before anything else; their number. The main thread
    /// is not controlled.
    Starts(usize),
    /// The main thread before `main`, the others at their start as soon as a line needs one of them.
    Main,
}

/// What a line does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The thread runs until the event at this index of the recording.
    Until(usize),
    /// The thread runs to its end, or until the bug shows.
    Ends,
    /// The thread makes a decision that is not about threads: the entry of the schedule, and the n-th such
    /// decision.
    Decides(usize, usize),
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    thread: usize,
    what: What,
    /// Whether the line means the first such event, whatever the recording says.
    first: bool,
}

/// A script that is being made.
#[derive(Clone, Debug)]
pub struct Draft<'r> {
    recording: &'r Recording,
    naming: Naming,
    lines: Vec<Line>,
}

/// The state of a script at some point of the recording.
struct Place {
    /// The threads that have names, in the order in which they got them, each with the event at which it is
    /// held.
    known: Vec<(usize, Option<usize>)>,
    /// The last event that is over.
    last: Option<usize>,
}

impl Place {
    fn name(&self, thread: usize) -> Option<String> {
        let index =
            self.known.iter().filter(|(known, _)| *known != 0).position(|(known, _)| *known == thread);
        match (thread, index) {
            (0, _) => self.known.iter().any(|(known, _)| *known == 0).then(|| "main".to_owned()),
            (_, Some(index)) if index < 26 => Some(char::from(b'a' + index as u8).to_string()),
            (_, Some(index)) => Some(format!("t{index}")),
            (_, None) => None,
        }
    }

    /// A thread expression for the threads without a name.
    fn others(&self) -> String {
        let names: Vec<String> = self.known.iter().filter_map(|(thread, _)| self.name(*thread)).collect();
        match names.as_slice() {
            [] => "any".to_owned(),
            [one] => format!("any - {one}"),
            several => format!("any - [{}]", several.join(", ")),
        }
    }

    fn is_known(&self, thread: usize) -> bool {
        self.known.iter().any(|(known, _)| *known == thread)
    }

    /// A thread has reached an event, and has a name from here on.
    fn comes(&mut self, thread: usize, at: Option<usize>) {
        match self.known.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, held)) => *held = at.or(*held),
            None => self.known.push((thread, at)),
        }
        self.last = self.last.max(at);
    }
}

/// Folds repeated lines, or repeated pairs of lines, into loops.
fn folded(text: String) -> String {
    const LEAST: usize = 3;
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let times = |length: usize| {
            let turn = lines.get(at..at + length).unwrap_or_default();
            let same = lines[at..].chunks(length).take_while(|other| *other == turn);
            if turn.iter().all(|line| line.starts_with("run_until")) { same.count() } else { 1 }
        };
        match [1, 2].into_iter().map(|length| (length, times(length))).find(|(_, times)| *times >= LEAST) {
            Some((length, times)) => {
                let turn = lines[at..at + length].join(" ");
                let _ = writeln!(out, "for i in 0..{times} {{ {turn} }}");
                at += length * times;
            }
            None => {
                let _ = writeln!(out, "{}", lines[at]);
                at += 1;
            }
        }
    }
    out
}

/// The argument that says which event is meant, unless it is the first.
fn also(nth: usize) -> String {
    if nth > 1 { format!(", {nth}") } else { String::new() }
}

impl<'r> Draft<'r> {
    /// A script that repeats the recording. `nth` says which decision is meant where it is not about threads,
    /// counted among those that the thread makes from its last event on.
    pub fn strengthen(recording: &'r Recording, naming: Naming, nth: usize) -> Draft<'r> {
        let mut draft = Draft { recording, naming, lines: Vec::new() };
        let decisions = recording.decisions();
        let from = match naming {
            Naming::Stops => decisions.iter().map(|(at, _)| *at).min().unwrap_or(usize::MAX),
            _ => 0,
        };
        for (&at, _) in recording.stops.range(from..) {
            let event = &recording.events[at];
            let thread = event.thread;
            let started = naming != Naming::Stops && event.kind == kind::START;
            let free = matches!(naming, Naming::Starts(_)) && thread == 0;
            if !free && !started {
                draft.lines.push(Line { thread, what: What::Until(at), first: false });
            }
        }
        draft.decide(&decisions, nth);
        draft
    }

    /// Adds the decisions that are not about threads, each after the line that holds its thread.
    fn decide(&mut self, decisions: &[(usize, usize)], nth: usize) {
        for (at, number) in decisions {
            let entry = &self.recording.entries[*number];
            let thread = self.recording.events[*at].thread;
            let values = entry.kind.is_value() || entry.kind == SwitchKind::Wake;
            if !values || thread != usize::from(entry.from.0) {
                continue;
            }
            let nth = if entry.kind.is_value() { nth } else { 1 };
            let after = |line: &Line| matches!(line.what, What::Until(place) if place <= *at);
            let behind = self.lines.iter().rposition(after).map_or(0, |index| index + 1);
            self.lines.insert(behind, Line { thread, what: What::Decides(*number, nth), first: false });
        }
    }

    /// The best wording of an event, and which of the events with that wording it is, from 1.
    fn say(&self, place: &Place, thread: usize, at: usize, first: bool) -> Option<(&'r Wording, usize)> {
        let events = &self.recording.events;
        let known = place.known.iter().find(|(known, _)| *known == thread);
        let since = match known {
            Some((_, held)) => *held,
            None => place.last,
        };
        let counts = |wording: &Wording| {
            let from = since.map_or(0, |since| since + 1);
            let whose = |number: usize| match known {
                Some(_) => number == thread,
                None => !place.is_known(number),
            };
            let is = |event: &&crate::event::Event| {
                whose(event.thread) && wording.predicate.holds(event, &mut |_| None)
            };
            events.get(from..=at).unwrap_or_default().iter().filter(is).count().max(1)
        };
        let ways = self.recording.stops.get(&at)?.iter().map(|wording| (wording, counts(wording)));
        // The first of the best wordings, because it is the clearest.
        let (wording, nth) = ways.reduce(|best, next| if next.1 < best.1 { next } else { best })?;
        Some((wording, if first { 1 } else { nth }))
    }

    /// The text of the script.
    pub fn text(&self) -> String {
        folded(self.lines_of_text())
    }

    fn lines_of_text(&self) -> String {
        let mut out = String::new();
        let mut place = Place { known: Vec::new(), last: None };
        let start = |thread: usize| {
            self.recording.events.iter().position(|event| event.thread == thread && event.kind == kind::START)
        };
        match self.naming {
            Naming::Stops | Naming::Starts(0) => {}
            Naming::Starts(1) => {
                place.comes(1, start(1));
                out.push_str("let a = wait_for_thread(any, starts());\n");
            }
            Naming::Starts(count) => {
                (1..=count).for_each(|thread| place.comes(thread, start(thread)));
                let names: Vec<String> = (1..=count).filter_map(|thread| place.name(thread)).collect();
                let names = names.join(", ");
                let _ = writeln!(out, "let [{names}] = wait_for_distinct_threads({count}, starts());");
            }
            Naming::Main => {
                place.comes(0, None);
                out.push_str("let main = wait_for_thread(any, enters(\"main\"));\n");
            }
        }
        for line in &self.lines {
            if self.naming == Naming::Main {
                // Threads start in the order of their creation.
                for new in place.known.iter().map(|(thread, _)| thread + 1).max().unwrap_or(0)..=line.thread {
                    let others = place.others();
                    place.comes(new, start(new));
                    let name = place.name(new).unwrap_or_default();
                    let _ = writeln!(out, "let {name} = wait_for_thread({others}, starts());");
                }
            }
            self.write(line, &mut place, &mut out);
        }
        out
    }

    fn write(&self, line: &Line, place: &mut Place, out: &mut String) {
        let thread = line.thread;
        let (until, nth, at) = match line.what {
            What::Ends => ("ends()", 1, None),
            What::Until(at) => match self.say(place, thread, at, line.first) {
                Some((wording, nth)) => (wording.text.as_str(), nth, Some(at)),
                None => return,
            },
            What::Decides(number, nth) => {
                let entry = &self.recording.entries[number];
                let who = place.name(thread).unwrap_or_else(|| "any".to_owned());
                let whom = place.name(usize::from(entry.to.0));
                let nth = also(nth);
                let _ = match (entry.kind, whom) {
                    (SwitchKind::Wake, Some(whom)) => writeln!(out, "let_wake({who}, {whom});"),
                    (SwitchKind::Choose(value), _) => writeln!(out, "let_choose({who}, {value}{nth});"),
                    (SwitchKind::Spurious, _) => writeln!(out, "let_wake_early({who}{nth});"),
                    (SwitchKind::Fault(fault), _) => {
                        writeln!(out, "let_fail({who}, \"{}\"{nth});", fault.name())
                    }
                    _ => Ok(()),
                };
                return;
            }
        };
        let nth = also(nth);
        let others = place.others();
        let known = place.is_known(thread);
        place.comes(thread, at);
        let name = place.name(thread).unwrap_or_default();
        let _ = match known {
            true => writeln!(out, "run_until({name}, {until}{nth});"),
            false => writeln!(out, "let {name} = wait_for_thread({others}, {until}{nth});"),
        };
    }

    /// Drops lines and relaxes others while `fails` says that every execution still fails. `None` if the
    /// script does not fail to begin with.
    pub fn weaken<E>(self, fails: &mut dyn FnMut(&str) -> Result<bool, E>) -> Result<Option<Self>, E> {
        if !fails(&self.text())? {
            return Ok(None);
        }
        let mut best = self;
        loop {
            let mut better = None;
            let text = best.text();
            for other in best.weaker() {
                let other_text = other.text();
                if other_text != text && fails(&other_text)? {
                    better = Some(other);
                    break;
                }
            }
            match better {
                Some(other) => best = other,
                None => return Ok(Some(best)),
            }
        }
    }

    /// Scripts that say less, the shortest first.
    fn weaker(&self) -> Vec<Self> {
        let mut out = Vec::new();
        let with = |lines: Vec<Line>| Draft { lines, ..self.clone() };
        let count = self.lines.len();
        // Halves, then quarters, and so on: long scripts get short early.
        let mut size = count;
        while size > 0 {
            for from in (0..count).step_by(size).rev() {
                let mut lines = self.lines.clone();
                lines.drain(from..(from + size).min(count));
                out.push(with(lines));
            }
            size /= 2;
        }
        let text = self.text();
        for at in (0..count).filter(|at| !self.lines[*at].first) {
            let mut lines = self.lines.clone();
            lines[at].first = true;
            let loose = with(lines.clone());
            if loose.text() == text {
                continue;
            }
            out.push(loose);
            // If the line needs one of many such events, it may not matter at all where the thread stops.
            lines[at].what = What::Ends;
            out.push(with(lines));
        }
        let used = self.lines.iter().map(|line| line.thread).max().unwrap_or(0);
        match self.naming {
            Naming::Starts(threads) if used < threads => {
                out.push(Draft { naming: Naming::Starts(threads - 1), ..self.clone() });
            }
            Naming::Main if self.lines.iter().all(|line| line.thread != 0) => {
                out.push(Draft { naming: Naming::Starts(used), ..self.clone() });
            }
            _ => {}
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::predicate::Predicate;
    use heisen_trace::schedule::Entry;
    use heisen_trace::{Fault, Op, ThreadId};

    fn event(thread: usize, kind: u8, number: u64) -> Event {
        Event { thread, kind, number, ..Event::default() }
    }

    /// A recording of control points, each given by thread, kind and number.
    fn recording(told: &[(usize, u8, u64)], entries: &[(u32, SwitchKind)]) -> Recording {
        let mut events: Vec<Event> = told.iter().map(|(t, kind, number)| event(*t, *kind, *number)).collect();
        for (at, event) in events.iter_mut().enumerate() {
            event.step = 10 * at as u32;
        }
        let stop = |at: usize| {
            let event = &events[at];
            let (text, predicate) = match event.kind {
                kind::POINT => (format!("at_control({})", event.number), Predicate::Control(event.number)),
                kind::START => ("starts()".to_owned(), Predicate::Kinds(1 << kind::START)),
                _ => ("ends()".to_owned(), Predicate::Kinds(1 << kind::END)),
            };
            (at, vec![Wording { text, predicate }])
        };
        let ends = |at: &usize| events.get(at + 1).is_none_or(|next| next.thread != events[*at].thread);
        let entry = |(at, kind): &(u32, SwitchKind)| Entry {
            step: 10 * at + u32::from(kind.is_value()),
            from: ThreadId(told[*at as usize].0 as u16),
            to: ThreadId(told[*at as usize].0 as u16),
            kind: *kind,
            op: Op::Point,
            options: 0,
            object: String::new(),
            place: String::new(),
        };
        let entries = entries.iter().map(entry).collect();
        let stops = (0..events.len()).filter(ends).map(stop).collect();
        Recording { events, stops, entries }
    }

    const START: u8 = kind::START;
    const POINT: u8 = kind::POINT;
    const END: u8 = kind::END;

    #[test]
    fn texts() {
        let told = [
            (1, START, 0),
            (1, POINT, 5),
            (1, POINT, 5),
            (2, START, 0),
            (2, POINT, 5),
            (2, END, 0),
            (1, POINT, 6),
            (1, END, 0),
        ];
        let recording = recording(&told, &[(2, SwitchKind::Preempt)]);
        let text = |naming| Draft::strengthen(&recording, naming, 1).text();
        assert_eq!(
            text(Naming::Stops),
            "let a = wait_for_thread(any, at_control(5), 2);\nlet b = wait_for_thread(any - a, ends());\nrun_until(a, ends());\n"
        );
        assert_eq!(
            text(Naming::Starts(2)),
            "let [a, b] = wait_for_distinct_threads(2, starts());\nrun_until(a, at_control(5), 2);\nrun_until(b, ends());\n\
             run_until(a, ends());\n"
        );
        assert_eq!(
            text(Naming::Main),
            "let main = wait_for_thread(any, enters(\"main\"));\nlet a = wait_for_thread(any - main, starts());\n\
             run_until(a, at_control(5), 2);\nlet b = wait_for_thread(any - [main, a], starts());\nrun_until(b, ends());\n\
             run_until(a, ends());\n"
        );
    }

    #[test]
    fn decisions_on_values() {
        let told = [(1, START, 0), (1, POINT, 5), (2, START, 0), (2, END, 0)];
        let recording = recording(&told, &[(1, SwitchKind::Fault(Fault::Malloc))]);
        let text = |nth| Draft::strengthen(&recording, Naming::Stops, nth).text();
        let expected = "let a = wait_for_thread(any, at_control(5));\nlet_fail(a, \"malloc\");\n\
                        let b = wait_for_thread(any - a, ends());\n";
        assert_eq!(text(1), expected);
        assert_eq!(text(2), expected.replace("\"malloc\"", "\"malloc\", 2"));
    }

    /// Weakening preserves the lines that are needed, and counts anew which event is meant.
    #[test]
    fn weakening_keeps_what_is_needed() {
        let mut told = Vec::new();
        for round in 0..9 {
            told.extend([(1, POINT, 7), (2, POINT, round)]);
        }
        let recording = recording(&told, &[(0, SwitchKind::Preempt)]);
        let mut asked = 0;
        let mut fails = |text: &str| {
            asked += 1;
            Ok::<bool, ()>(text.contains("at_control(4)"))
        };
        let draft = Draft::strengthen(&recording, Naming::Stops, 1);
        let weak = draft.weaken(&mut fails).expect("no error").expect("it fails");
        assert_eq!(weak.text(), "let a = wait_for_thread(any, at_control(4));\n");
        // Alone, the line of the last round is about the tenth such event, because the other thread also has
        // one.
        let mut draft = Draft::strengthen(&recording, Naming::Stops, 1);
        draft.lines.retain(|line| line.what == What::Until(16));
        assert_eq!(draft.text(), "let a = wait_for_thread(any, at_control(7), 10);\n");
        let never = Draft::strengthen(&recording, Naming::Stops, 1).weaken(&mut |_| Ok::<bool, ()>(false));
        assert!(never.is_ok_and(|weak| weak.is_none()));
        assert!(asked < 100, "{asked}");
    }

    #[test]
    fn turns_are_folded() {
        let text = "let a = 1;\nrun_until(a, x);\nrun_until(b, x);\n";
        let turn = "run_until(a, x);\nrun_until(b, x);\n";
        assert_eq!(folded(text.to_owned()), text);
        assert_eq!(
            folded(format!("{text}{turn}{turn}end();\n")),
            "let a = 1;\nfor i in 0..3 { run_until(a, x); run_until(b, x); }\nend();\n"
        );
        assert_eq!(folded("run_until(a, x);\n".repeat(4)), "for i in 0..4 { run_until(a, x); }\n");
        assert_eq!(folded("let a = 1;\n".repeat(4)), "let a = 1;\n".repeat(4));
    }
}
