//! Runs a script against `heisen script --remote`, which holds the engine, over two pipes.
//!
//! `heisen_script::remote` is the other end and documents the protocol.

use super::threads::Thread;
use std::any::Any;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus};
use std::thread::JoinHandle;

thread_local! {
    /// The session of the script that this thread runs.
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// The payload that unwinds a script whose execution is over. It does not call the panic hook.
struct Left;

struct Session {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Heisen has reported that this run of the script is over.
    left: bool,
}

/// How a session ended.
pub(crate) enum Ended {
    /// The command `heisen` has ended.
    Heisen {
        /// Its exit status.
        status: ExitStatus,
        /// Whether it has written its report.
        reported: bool,
        /// The report, or other output in its place, followed by its standard error.
        said: String,
    },
    /// The script has panicked.
    Script(Box<dyn Any + Send>),
}

/// The result of a statement, field by field.
#[derive(Debug)]
pub(super) struct Answer(std::vec::IntoIter<String>);

impl Answer {
    pub(super) fn text(&mut self) -> String {
        self.0.next().expect("Heisen answers with too little")
    }

    pub(super) fn number(&mut self) -> u64 {
        self.text().parse().expect("Heisen answers with a number")
    }

    pub(super) fn thread(&mut self) -> Thread {
        Thread(self.number() as usize)
    }

    pub(super) fn bool(mut self) -> bool {
        self.text() == "true"
    }
}

/// Evaluates a statement. If that ends this run of the script, it unwinds instead of returning.
#[track_caller]
pub(super) fn ask(statement: String) -> Answer {
    let place = Location::caller();
    let answer =
        SESSION.with_borrow_mut(|session| session.as_mut().map(|session| session.ask(place, &statement)));
    match answer {
        Some(Some(answer)) => answer,
        Some(None) => resume_unwind(Box::new(Left)),
        None => panic!(
            "heisen::script works only in the script of a #[heisen::test(script = …)], on the thread that runs it"
        ),
    }
}

impl Session {
    fn ask(&mut self, place: &Location<'_>, statement: &str) -> Option<Answer> {
        if self.left {
            return None;
        }
        let line = format!("call\t{}:{}\t{statement}", place.file(), place.line());
        let answer = self.say(&line).and_then(|()| self.hear());
        let mut fields = answer.as_deref().unwrap_or_default().split('\t');
        if fields.next() != Some("value") {
            // Either `stop`, or Heisen has ended, which `follow` notices.
            self.left = true;
            return None;
        }
        Some(Answer(fields.map(unescaped).collect::<Vec<_>>().into_iter()))
    }

    fn say(&mut self, line: &str) -> Option<()> {
        self.to.write_all(format!("{line}\n").as_bytes()).ok()
    }

    fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        self.from.read_line(&mut line).ok()?;
        line.strip_suffix('\n').map(str::to_owned)
    }
}

/// Runs a script for `heisen script --remote`, whose standard streams are pipes, until the command ends.
pub(crate) fn follow(mut child: Child, script: &dyn Fn()) -> Ended {
    let (to, from, words) = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(to), Some(from), Some(words)) => (to, BufReader::new(from), words),
        _ => panic!("the standard streams of heisen are no pipes"),
    };
    // A thread reads standard error, so that a long output does not block Heisen.
    let words = std::thread::spawn(move || text(words));
    SESSION.set(Some(Session { to, from, left: false }));
    loop {
        let line = SESSION.with_borrow_mut(|session| session.as_mut().and_then(Session::hear));
        match line.as_deref() {
            Some("begin") => {
                if let Err(panic) = once(script) {
                    // Heisen ends when our end of its input pipe closes.
                    SESSION.take();
                    let _ = (child.wait(), words.join());
                    return Ended::Script(panic);
                }
            }
            // Heisen says `stop` after the last statement, or when the script has caught the unwinding.
            Some("stop") => {}
            other => return ended(child, other, words),
        }
    }
}

/// Runs a script once.
fn once(script: &dyn Fn()) -> Result<(), Box<dyn Any + Send>> {
    let set =
        |left: bool| SESSION.with_borrow_mut(|session| session.as_mut().map(|session| session.left = left));
    set(false);
    match catch_unwind(AssertUnwindSafe(script)) {
        Ok(()) => {
            SESSION.with_borrow_mut(|session| {
                session.as_mut().filter(|session| !session.left).map(|session| session.say("done"))
            });
            Ok(())
        }
        Err(panic) if panic.is::<Left>() => Ok(()),
        Err(panic) => Err(panic),
    }
}

/// Reads the rest of the output, which after `end` is the report. `last` is the last line that was read.
fn ended(mut child: Child, last: Option<&str>, words: JoinHandle<String>) -> Ended {
    let reported = last == Some("end");
    let first = last.filter(|_| !reported);
    let mut said = first.map_or(String::new(), |line| format!("{line}\n"));
    // Closing the input pipe earlier would interrupt Heisen.
    if let Some(session) = SESSION.take() {
        said += &text(session.from);
        drop(session.to);
    }
    let status = child.wait().expect("a child can be waited for");
    said += &words.join().unwrap_or_default();
    Ended::Heisen { status, reported, said }
}

/// Reads a stream to its end.
fn text(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Undoes the escaping that makes a field fit into one line.
fn unescaped(field: &str) -> String {
    let mut out = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                other => other.unwrap_or('\\'),
            },
            c => c,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        assert_eq!(unescaped("a\\tb\\\\n\\nc\\r"), "a\tb\\n\nc\r");
    }

    #[test]
    fn out_of_place() {
        let panic = catch_unwind(|| ask("exists()".to_owned())).expect_err("nobody answers");
        let said = panic.downcast_ref::<&str>().expect("words");
        assert!(said.contains("works only in the script"), "{said}");
    }
}
