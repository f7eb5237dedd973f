//! Formats and prints text for people: colours, numbers, paths and messages.

use crate::cli::args::Color;
use crate::render::visible;
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

    /// Without colours.
    pub fn plain() -> Paint {
        Paint { on: false }
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

/// Prints a text for people. Names in it cannot control the terminal, and lines fit into it.
pub fn print(text: &str, to_stderr: bool) {
    let text = visible::terminal(text);
    match terminal_width(to_stderr) {
        Some(width) => write(&fitted(&text, width), to_stderr),
        None => write(&text, to_stderr),
    }
}

/// Writes all of a text as it is: the output of the program, or a file for machines. Ignores errors, because the reader
/// may have closed the pipe.
pub fn write(text: &str, to_stderr: bool) {
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

/// The widest line of diagrams: the width of the terminal, at most 100 columns.
pub fn columns() -> usize {
    const WIDEST: usize = 100;
    terminal_width(false).unwrap_or(WIDEST).min(WIDEST)
}

/// The number of columns of the terminal. The environment variable `COLUMNS` takes precedence. `None` if the text goes
/// to a file or a pipe.
fn terminal_width(of_stderr: bool) -> Option<usize> {
    const LEAST: usize = 20;
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns > 0);
    let real = || {
        let size = if of_stderr {
            terminal_size::terminal_size_of(io::stderr())
        } else {
            terminal_size::terminal_size_of(io::stdout())
        };
        size.map(|(width, _)| usize::from(width.0))
    };
    set.or_else(real).map(|columns| columns.max(LEAST))
}

/// The text with each line that is too wide broken between words. The parts after the first are indented by four more
/// columns. A word that is wider than a line is not broken.
pub fn fitted(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if shown_width(line.trim_end()) <= width {
            out.push_str(line);
            continue;
        }
        let indent = line.chars().take_while(|&c| c == ' ').count();
        let further = (indent + 4).min(width / 3);
        let (mut used, mut empty) = (indent, true);
        out.extend(std::iter::repeat_n(' ', indent));
        for word in line.trim().split(' ') {
            let length = shown_width(word);
            if !empty && !word.is_empty() && used + 1 + length > width {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', further));
                (used, empty) = (further, true);
            }
            if !empty {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
            empty = false;
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// The number of columns of a text. The sequences of colours have none.
fn shown_width(text: &str) -> usize {
    let mut columns = 0;
    let mut colour = false;
    for c in text.chars() {
        match c {
            '\x1b' => colour = true,
            'm' if colour => colour = false,
            _ if colour => {}
            _ => columns += 1,
        }
    }
    columns
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

/// The command by which the user called this executable. The user can type commands that begin with it.
pub fn own_name() -> String {
    let name = std::env::args_os().next().unwrap_or_default();
    quoted(Path::new(&name))
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
    fn long_lines_are_broken_between_words() {
        let line = "       T1 reads balance = 100      account.c:27\n";
        assert_eq!(super::fitted(line, 60), line);
        assert_eq!(super::fitted(line, 40), "       T1 reads balance = 100\n           account.c:27\n");
        assert_eq!(super::fitted("  a/very/long/path/name b\n", 20), "  a/very/long/path/name\n      b\n");
        assert_eq!(super::fitted("\x1b[1mone two three\x1b[0m\n", 20), "\x1b[1mone two three\x1b[0m\n");
        assert_eq!(super::fitted("one two three four five", 20), "one two three four\n    five");
    }

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
