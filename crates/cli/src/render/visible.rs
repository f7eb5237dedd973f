//! Makes characters visible that would control a terminal or hide in text. Names of a program may contain any character.

use std::fmt::Write;

/// The sequences that [`Paint`](crate::render::paint::Paint) writes. A name that contains one can do no harm.
const COLOURS: [&str; 6] = ["\x1b[1;31m", "\x1b[1;32m", "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"];

/// Text for a terminal: all characters that control it are visible, except newlines, tabs and our colours.
pub fn terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(colour) = COLOURS.iter().find(|colour| rest.starts_with(**colour)) {
            out.push_str(colour);
            rest = &rest[colour.len()..];
            continue;
        }
        push(&mut out, c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Appends a character, or a visible form such as `\u{1b}` if it is unsafe.
pub fn push(out: &mut String, c: char) {
    if is_unsafe(c) && !matches!(c, '\n' | '\t') {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", c as u32);
    } else {
        out.push(c);
    }
}

/// Whether a character controls a terminal, ends a line in JavaScript, is invisible, or changes the direction of
/// text. All of them have at most four hexadecimal digits.
pub fn is_unsafe(c: char) -> bool {
    let invisible = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || invisible || matches!(c, '\u{61c}' | '\u{2028}'..='\u{202e}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_control_the_terminal() {
        assert_eq!(terminal("a\x1b[2Jb\r\u{9b}1m\u{202e}\n\tc"), "a\\u{1b}[2Jb\\u{d}\\u{9b}1m\\u{202e}\n\tc");
        assert_eq!(terminal("\x1b[1;31mbug:\x1b[0m"), "\x1b[1;31mbug:\x1b[0m");
    }
}
