//! From a finding to a script: the refinement that CONCURRIT's authors did by hand (PLDI'13, section 2.4).
//!
//! *Strengthen*: the events of a failing execution become lines, one for each stretch that a thread runs alone: it runs until it
//! is about to do what it does first when it runs again, in words of the program and not as a number of a step. *Weaken*: lines are
//! dropped, and what is left loosened, as long as every run still fails.

use heisen_engine::confirm::TraceLine;
use heisen_trace::Op;
use heisen_trace::finding::ThreadEnd;
use std::fmt::Write;

/// An event in the words of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Words {
    /// The predicate without an object: `locks`.
    word: &'static str,
    /// What is between the parentheses.
    argument: String,
}

impl Words {
    fn text(&self) -> String {
        format!("{}({})", self.word, self.argument)
    }

    /// Whether an event satisfies it.
    fn fits(&self, other: &Words) -> bool {
        self.word == other.word && (self.argument.is_empty() || self.argument == other.argument)
    }
}

/// A line: a thread runs until so many such events have come.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    thread: usize,
    until: Words,
    times: usize,
}

/// A script that is being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Whether the main thread is held, too.
    main: bool,
    /// How many other threads there are.
    threads: usize,
    lines: Vec<Line>,
}

/// What an event is called, if a script can wait for it. `object` is its name, if that is one of a variable.
fn words(op: Op, object: &str, number: u64) -> Option<Words> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_.[]->:".contains(c);
    let is_name = !object.is_empty()
        && object.chars().all(is_path)
        && object.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !is_thread(object);
    let named = if is_name { format!("\"{object}\"") } else { String::new() };
    let of = |word, argument| Some(Words { word, argument });
    match op {
        Op::Lock | Op::TryLock | Op::TimedLock | Op::Relock | Op::ReadLock | Op::WriteLock => {
            of("locks", named)
        }
        Op::SemWait | Op::SemTryWait | Op::SemTimedWait | Op::StreamLock => of("locks", named),
        Op::Unlock | Op::SemPost | Op::RwUnlock | Op::StreamUnlock => of("unlocks", named),
        Op::MemRead | Op::AtomicLoad => of("reads", named),
        Op::MemWrite | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas => of("writes", named),
        Op::Point => of("at_control", number.to_string()),
        Op::End => of("ends", String::new()),
        Op::Start | Op::Exit | Op::Assert | Op::Abort | Op::Throw | Op::Wake => None,
        op => of("operation", format!("\"{}\"", op.name())),
    }
}

/// Whether this is the name of a thread, such as `T1`.
fn is_thread(name: &str) -> bool {
    name.strip_prefix('T').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The name of a thread in a script.
fn name(thread: usize) -> String {
    match thread {
        0 => "main".to_owned(),
        number if number <= 26 => char::from(b'a' + number as u8 - 1).to_string(),
        number => format!("t{number}"),
    }
}

impl Draft {
    /// A script that leads to the end of an execution, by its events and the threads that were alive then. The main thread runs as
    /// it can, or as it did.
    pub fn strengthen(trace: &[TraceLine], alive: &[ThreadEnd], main: bool) -> Draft {
        let told: Vec<(usize, Option<Words>)> = trace
            .iter()
            .map(|line| {
                let thread = usize::from(line.event.thread.0);
                (thread, words(line.event.op, &line.object, line.event.object))
            })
            .collect();
        let threads = told.iter().map(|(thread, _)| *thread).max().unwrap_or(0);
        let mut lines = Vec::new();
        let mut at = 0;
        while at < told.len() {
            let thread = told[at].0;
            let length = told[at..].iter().take_while(|(other, _)| *other == thread).count();
            let stretch = &told[at..at + length];
            let next = told[at + length..].iter().find(|(other, _)| *other == thread);
            let until = match next {
                Some((_, words)) => words.clone(),
                // One that waits for ever is brought to where it does, unless it is in the middle of that.
                None => match alive.iter().find(|end| usize::from(end.thread.0) == thread && end.blocked) {
                    Some(end) => {
                        let last = &trace[at + length - 1];
                        let amid = (last.event.op, &last.object) == (end.op, &end.object);
                        words(end.op, &end.object, 0).filter(|_| !amid)
                    }
                    None => words(Op::End, "", 0),
                },
            };
            // What it begins with is what it was held at.
            let passed = |until: &Words| {
                stretch.iter().skip(1).filter(|(_, w)| w.as_ref().is_some_and(|w| until.fits(w))).count()
            };
            if let Some(until) = until.filter(|_| thread != 0 || main) {
                let times = 1 + passed(&until);
                lines.push(Line { thread, until, times });
            }
            at += length;
        }
        Draft { main, threads, lines }
    }

    /// The script.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut known: Vec<usize> = Vec::new();
        if self.main {
            out.push_str("let main = wait_for_thread(any, enters(\"main\"));\n");
            known.push(0);
        } else if self.threads == 1 {
            out.push_str("let a = wait_for_thread(any, starts());\n");
        } else if self.threads > 1 {
            let names: Vec<String> = (1..=self.threads).map(name).collect();
            let _ = writeln!(
                out,
                "let [{}] = wait_for_distinct_threads({}, starts());",
                names.join(", "),
                self.threads
            );
        }
        if !self.main {
            known.extend(1..=self.threads);
        }
        for line in &self.lines {
            // Threads come to be known in the order of their creation.
            for new in known.iter().max().map_or(0, |last| last + 1)..=line.thread {
                let others: Vec<String> = known.iter().map(|thread| name(*thread)).collect();
                let _ = writeln!(
                    out,
                    "let {} = wait_for_thread(any - {}, starts());",
                    name(new),
                    others.join(" - ")
                );
                known.push(new);
            }
            let (thread, until) = (name(line.thread), line.until.text());
            let _ = match line.times {
                1 => writeln!(out, "run_until({thread}, {until});"),
                times => writeln!(out, "for i in 0..{times} {{ run_until({thread}, {until}); }}"),
            };
        }
        out
    }

    /// Drops lines and loosens what is left, while `fails` says that every run does. None if it does not fail to begin with.
    pub fn weaken<E>(self, fails: &mut dyn FnMut(&str) -> Result<bool, E>) -> Result<Option<Draft>, E> {
        if !fails(&self.text())? {
            return Ok(None);
        }
        let mut best = self;
        loop {
            let mut better = None;
            for other in best.weaker() {
                if fails(&other.text())? {
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
    fn weaker(&self) -> Vec<Draft> {
        let mut out = Vec::new();
        let with = |lines: Vec<Line>| Draft { lines, ..self.clone() };
        let count = self.lines.len();
        // Halves, then quarters, and so on: long scripts get short soon.
        let mut size = count;
        while size > 0 {
            for from in (0..count).step_by(size).rev() {
                let mut lines = self.lines.clone();
                lines.drain(from..(from + size).min(count));
                out.push(with(lines));
            }
            size /= 2;
        }
        for at in 0..count {
            let line = &self.lines[at];
            let changed = |change: &dyn Fn(&mut Line)| {
                let mut lines = self.lines.clone();
                change(&mut lines[at]);
                with(lines)
            };
            if line.times > 1 {
                out.push(changed(&|line| line.times = 1));
            }
        }
        let used = self.lines.iter().map(|line| line.thread).max().unwrap_or(0);
        if !self.main && used < self.threads {
            out.push(Draft { threads: self.threads - 1, ..self.clone() });
        }
        if self.main && self.lines.iter().all(|line| line.thread != 0) {
            out.push(Draft { main: false, threads: used, ..self.clone() });
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(thread: usize, word: &'static str, argument: &str, times: usize) -> Line {
        Line { thread, until: Words { word, argument: argument.into() }, times }
    }

    fn draft(main: bool, threads: usize, lines: &[Line]) -> Draft {
        Draft { main, threads, lines: lines.to_vec() }
    }

    #[test]
    fn texts() {
        let lines = [line(1, "locks", "\"m\"", 1), line(2, "ends", "", 1), line(1, "unlocks", "", 3)];
        assert_eq!(
            draft(false, 2, &lines).text(),
            "let [a, b] = wait_for_distinct_threads(2, starts());\nrun_until(a, locks(\"m\"));\nrun_until(b, ends());\n\
             for i in 0..3 { run_until(a, unlocks()); }\n"
        );
        assert_eq!(
            draft(true, 2, &[line(0, "locks", "", 1), line(2, "ends", "", 1)]).text(),
            "let main = wait_for_thread(any, enters(\"main\"));\nrun_until(main, locks());\n\
             let a = wait_for_thread(any - main, starts());\nlet b = wait_for_thread(any - main - a, starts());\n\
             run_until(b, ends());\n"
        );
    }

    #[test]
    fn names_of_objects() {
        let text = |op, object| words(op, object, 0).map(|words| words.text());
        assert_eq!(text(Op::Lock, "q.slots[3].m").as_deref(), Some("locks(\"q.slots[3].m\")"));
        assert_eq!(text(Op::MemWrite, "0x7fff").as_deref(), Some("writes()"));
        assert_eq!(text(Op::Join, "T1").as_deref(), Some("operation(\"join\")"));
        assert_eq!(text(Op::Start, ""), None);
    }

    /// What is needed stays, whatever else goes.
    #[test]
    fn weakening_keeps_what_is_needed() {
        let needed = line(2, "writes", "\"x\"", 1);
        let lines: Vec<Line> =
            (0..9).map(|i| if i == 4 { needed.clone() } else { line(1, "locks", "", i + 1) }).collect();
        let mut asked = 0;
        let mut fails = |text: &str| {
            asked += 1;
            Ok::<bool, ()>(text.contains("run_until(b, writes(\"x\"))"))
        };
        let weak = draft(false, 3, &lines).weaken(&mut fails).expect("no error").expect("it fails");
        assert_eq!(weak, draft(false, 2, &[needed]));
        assert!(asked < 100, "{asked}");
        assert_eq!(draft(false, 1, &[]).weaken(&mut |_| Ok::<bool, ()>(false)), Ok(None));
    }
}
