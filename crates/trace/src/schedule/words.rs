//! The words of one line of a schedule file: numbers, names, quoted strings, and entries made of them.

use super::{Entry, InputLine, ParseError};
use crate::fault::Fault;
use crate::finding::SwitchKind;
use crate::marked::{Marked, Source};
use crate::op::Op;
use crate::thread::ThreadId;

/// The words of one line.
pub(super) struct Words<'a> {
    pub(super) rest: &'a str,
    pub(super) line: usize,
}

impl<'a> Words<'a> {
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        let rest = self.rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if end == 0 {
            return error(self.line, format!("{what} is missing"));
        }
        self.rest = &rest[end..];
        Ok(&rest[..end])
    }

    pub(super) fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, ParseError> {
        let word = self.word(what)?;
        word.parse().or_else(|_| error(self.line, format!("{word:?} is not {what}")))
    }

    pub(super) fn hexadecimal(&mut self, what: &str) -> Result<u64, ParseError> {
        let word = self.word(what)?;
        let digits = word.strip_prefix("0x").unwrap_or_default();
        u64::from_str_radix(digits, 16)
            .or_else(|_| error(self.line, format!("{word:?} is not {what}, such as 0x11d9")))
    }

    pub(super) fn thread(&mut self) -> Result<ThreadId, ParseError> {
        let word = self.word("a thread")?;
        word.parse().or_else(|()| error(self.line, format!("{word:?} is not a thread (they are T0, T1, …)")))
    }

    pub(super) fn input(&mut self) -> Result<InputLine, ParseError> {
        let input = InputLine {
            path: self.word("the creation path of a thread")?.to_owned(),
            number: self.number("the number of an input")?,
            width: self.number("a number of bits")?,
            value: self.number("a value")?,
            name: self.text("the name of the input")?,
        };
        if input.chosen().is_none() {
            return error(
                self.line,
                format!("{:?} is not the creation path of a thread, such as 0.1", input.path),
            );
        }
        Ok(input)
    }

    pub(super) fn mark(&mut self) -> Result<Marked, ParseError> {
        let kind = self.word("stdin, argv or file")?;
        let bytes = self.number("a number of bytes")?;
        let source = match kind {
            "stdin" => Source::Stdin,
            "argv" => Source::Argument(self.number("the number of an argument")?),
            "file" => Source::File(self.string("the path of a file")?),
            other => return error(self.line, format!("{other:?} is none of stdin, argv, file")),
        };
        Ok(Marked { source, bytes })
    }

    pub(super) fn entry(&mut self) -> Result<Entry, ParseError> {
        let step = self.number("a step")?;
        let from = self.thread()?;
        match self.word("-> and a thread, choose, spurious or fault")? {
            "->" => {}
            word @ ("choose" | "spurious" | "fault") => return self.value_entry(step, from, word),
            _ => {
                return error(
                    self.line,
                    "\"->\" must stand between the two threads, or choose, spurious or fault after the first",
                );
            }
        }
        let to = self.thread()?;
        let kind = match self.word("preempt, free or wake")? {
            "preempt" => SwitchKind::Preempt,
            "free" => SwitchKind::Free,
            "wake" => SwitchKind::Wake,
            other => return error(self.line, format!("{other:?} is none of preempt, free, wake")),
        };
        let op = self.operation()?;
        let options = self.number("a number of choices")?;
        let object = self.text("the object")?;
        let place = self.text("the place")?;
        Ok(Entry { step, from, to, kind, op, options, object, place })
    }

    /// The rest of an entry whose decision is not about threads.
    fn value_entry(&mut self, step: u32, from: ThreadId, word: &str) -> Result<Entry, ParseError> {
        let mut entry = Entry {
            step,
            from,
            to: from,
            kind: SwitchKind::Spurious,
            op: Op::Choose,
            options: 2,
            object: String::new(),
            place: String::new(),
        };
        match word {
            "choose" => {
                let value = self.number("a value")?;
                if self.word("of")? != "of" {
                    return error(self.line, "\"of\" must stand between the value and the number of choices");
                }
                entry.options = self.number("a number of choices")?;
                if entry.options != 0 && value >= entry.options {
                    return error(self.line, format!("{value} is none of {} choices from 0", entry.options));
                }
                entry.kind = SwitchKind::Choose(value);
                entry.object = format!("{value} of {}", entry.options);
            }
            "fault" => {
                let name = self.word("a fault")?;
                let Some(&fault) = Fault::ALL.iter().find(|f| f.name() == name) else {
                    return error(self.line, format!("no fault is called {name:?}"));
                };
                entry.kind = SwitchKind::Fault(fault);
            }
            _ => {}
        }
        if word != "choose" {
            entry.op = self.operation()?;
            entry.object = self.text("the object")?;
        }
        entry.place = self.text("the place")?;
        Ok(entry)
    }

    fn operation(&mut self) -> Result<Op, ParseError> {
        let name = self.word("an operation")?;
        Op::from_name(name).map_or_else(|| error(self.line, format!("no operation is called {name:?}")), Ok)
    }

    pub(super) fn text(&mut self, what: &str) -> Result<String, ParseError> {
        let bytes = self.string(what)?;
        String::from_utf8(bytes).or_else(|_| error(self.line, format!("{what} is not UTF-8")))
    }

    pub(super) fn string(&mut self, what: &str) -> Result<Vec<u8>, ParseError> {
        let rest = self.rest.trim_start();
        let Some(body) = rest.strip_prefix('"') else {
            return error(self.line, format!("{what} must be in double quotes"));
        };
        let mut out = Vec::new();
        let mut chars = body.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &body[at + 1..];
                    return Ok(out);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push(b'\n'),
                    Some('t') => out.push(b'\t'),
                    Some(c @ ('"' | '\\')) => out.push(c as u8),
                    Some('x') => {
                        let hex = body.get(at + 2..at + 4).and_then(|h| u8::from_str_radix(h, 16).ok());
                        let Some(byte) = hex else {
                            return error(self.line, "\\x needs two hexadecimal digits");
                        };
                        out.push(byte);
                        chars.nth(1);
                    }
                    _ => return error(self.line, "unknown escape in a string"),
                },
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        error(self.line, "a string without its closing quote")
    }

    pub(super) fn nothing_more(&self) -> Result<(), ParseError> {
        match self.rest.trim() {
            "" => Ok(()),
            rest if rest.starts_with('#') => Ok(()),
            rest => error(self.line, format!("unexpected {rest:?} at the end of the line")),
        }
    }
}

/// An error at that line.
pub(super) fn error<T>(line: usize, what: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError { line, what: what.into() })
}
