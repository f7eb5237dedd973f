//! Formats and prints text for people: colours, numbers, paths and messages.

use crate::cli::args::Color;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Colours text, if colours are on.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    pub fn new(color: Color) -> Paint {
        let wanted =
            || io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Paint { on: color == Color::Always || color == Color::Auto && wanted() }
    }

    fn with(self, code: &str, text: impl Display) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    pub fn bad(self, text: impl Display) -> String {
        self.with("1;31", text)
    }

    pub fn good(self, text: impl Display) -> String {
        self.with("1;32", text)
    }

    pub fn strong(self, text: impl Display) -> String {
        self.with("1", text)
    }

    pub fn faint(self, text: impl Display) -> String {
        self.with("2", text)
    }

    pub fn thread(self, text: impl Display) -> String {
        self.with("36", text)
    }
}

/// Writes all of a text. Ignores errors, because the reader may have closed the pipe.
pub fn print(text: &str, to_stderr: bool) {
    let _ = if to_stderr {
        io::stderr().write_all(text.as_bytes())
    } else {
        io::stdout().write_all(text.as_bytes())
    };
}

/// Prints a message to standard error. `eprintln` would panic if the reader has closed the pipe.
pub fn say(message: impl Display) {
    print(&format!("heisen: {message}\n"), true);
}

/// A number with a space between groups of three digits.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// "1 execution", "2 executions".
pub fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", number(n), if n == 1 { "" } else { "s" })
}

/// A path, quoted for a shell if necessary.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(super::number(0), "0");
        assert_eq!(super::number(999), "999");
        assert_eq!(super::number(1284), "1 284");
        assert_eq!(super::number(1_000_000), "1 000 000");
        assert_eq!(super::count(1, "step"), "1 step");
        assert_eq!(super::count(2, "step"), "2 steps");
    }
}
