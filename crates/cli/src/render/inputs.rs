//! Shows the inputs of a schedule by name: a number as a number, and bytes as text, or as a table of bytes.

use crate::render::paint::number;
use heisen_trace::marked::piece;
use heisen_trace::schedule::{InputLine, ThreadLine};
use serde_json::{Value, json};
use std::fmt::Write;

/// The largest number of inputs shown, and of rows of a table of bytes.
const MOST: usize = 12;
/// The number of bytes in a row.
const ROW: usize = 16;
/// The number of zero bytes at the end from which on they are counted.
const ZEROS: usize = 4;

/// An input: one line, or the pieces of a larger one.
struct Group<'a> {
    name: &'a str,
    lines: &'a [InputLine],
    /// Whether it has pieces.
    is_large: bool,
}

impl Group<'_> {
    fn bytes(&self) -> Vec<u8> {
        let of = |line: &InputLine| line.value.to_le_bytes().into_iter().take(size(line));
        self.lines.iter().flat_map(of).collect()
    }
}

/// How many bytes an input has.
fn size(line: &InputLine) -> usize {
    line.width.div_ceil(8).min(8) as usize
}

/// Joins the pieces of larger inputs.
fn groups(inputs: &[InputLine]) -> Vec<Group<'_>> {
    let mut all = Vec::new();
    let mut rest = inputs;
    while let Some(first) = rest.first() {
        let name = first.name.strip_suffix("[0]");
        let (mut count, mut bytes) = (1, size(first));
        if let Some(name) = name {
            let follows = |line: &InputLine, bytes: usize| {
                line.path == first.path && line.name == piece(name, bytes as u32)
            };
            while rest.get(count).is_some_and(|line| follows(line, bytes)) {
                bytes += size(&rest[count]);
                count += 1;
            }
        }
        let (lines, others) = rest.split_at(count);
        all.push(Group { name: name.unwrap_or(&first.name), lines, is_large: name.is_some() });
        rest = others;
    }
    all
}

/// The inputs, a line or several each, without indentation. `threads` are those of the schedule.
pub fn lines(inputs: &[InputLine], threads: &[ThreadLine]) -> Vec<String> {
    let all = groups(inputs);
    let mut out: Vec<String> = all.iter().take(MOST).flat_map(|group| shown(group, threads)).collect();
    if all.len() > MOST {
        out.push(format!("and {} more, in the schedule file", number((all.len() - MOST) as u64)));
    }
    out
}

fn shown(group: &Group<'_>, threads: &[ThreadLine]) -> Vec<String> {
    let path = &group.lines[0].path;
    let thread = threads.iter().find(|line| line.path == *path).filter(|_| path != "0");
    let of = thread.map_or(String::new(), |line| format!(", in {}", line.thread));
    let name = group.name.replace('\n', "\\n");
    if !group.is_large {
        return vec![format!("{name} = {}{of}", one(&group.lines[0]))];
    }
    let bytes = group.bytes();
    if let Some(text) = text(&bytes) {
        return vec![format!("{name} = {text}{of}")];
    }
    if bytes.len() <= ROW {
        return vec![format!("{name} = {}{of}", hexadecimal(&bytes))];
    }
    let mut out = vec![format!("{name}, {} bytes{of}:", bytes.len())];
    for (row, bytes) in bytes.chunks(ROW).enumerate().take(MOST) {
        let letters: String =
            bytes.iter().map(|byte| if is_printable(*byte) { *byte as char } else { '.' }).collect();
        out.push(format!("  {:>4}  {:<47}  {letters}", row * ROW, hexadecimal(bytes)));
    }
    if bytes.len() > MOST * ROW {
        out.push(format!("  and {} more, in the schedule file", number((bytes.len() - MOST * ROW) as u64)));
    }
    out
}

/// A number, with what else it may mean: a negative number, or characters.
fn one(line: &InputLine) -> String {
    let (value, width) = (line.value, line.width.clamp(1, 64));
    if value < 10 {
        return value.to_string();
    }
    let mut more = format!("{value:#x}");
    let negative = ((value << (64 - width)) as i64) >> (64 - width);
    if negative < 0 && width % 8 == 0 {
        let _ = write!(more, ", signed {negative}");
    }
    let bytes = &value.to_le_bytes()[..size(line)];
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if bytes[..end].iter().all(|byte| is_printable(*byte)) && (end > 2 || size(line) == 1) {
        let _ = write!(more, ", {}", quoted(&bytes[..end]));
    }
    format!("{value} ({more})")
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Bytes as text in quotes, if at least half of them are text. Many zero bytes at the end are counted.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let zeros = bytes.len() - end;
    if end == 0 {
        return Some(format!("{zeros} zero byte{}", if zeros == 1 { "" } else { "s" }));
    }
    let end = if zeros < ZEROS { bytes.len() } else { end };
    let solid = bytes[..end].iter().filter(|byte| is_printable(**byte)).count();
    let then = if end < bytes.len() { format!(", then {zeros} zero bytes") } else { String::new() };
    (solid * 2 >= end).then(|| format!("{}{then}", quoted(&bytes[..end])))
}

/// Text in quotes, with the escapes of schedule files.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte as char]),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            byte if is_printable(byte) => out.push(byte as char),
            byte => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The larger inputs, as bytes.
pub fn large(inputs: &[InputLine]) -> Value {
    let value = |group: &Group<'_>| {
        let bytes = group.bytes();
        json!({
            "name": group.name,
            "thread": group.lines[0].path,
            "bytes": hexadecimal(&bytes).replace(' ', ""),
            "text": std::str::from_utf8(&bytes).ok(),
        })
    };
    groups(inputs).iter().filter(|group| group.is_large).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::ThreadId;

    fn line(path: &str, width: u32, value: u64, name: &str) -> InputLine {
        InputLine { path: path.into(), number: 0, width, value, name: name.into() }
    }

    /// The lines of an input in pieces of this width.
    fn pieces(name: &str, width: u32, bytes: &[u8]) -> Vec<InputLine> {
        let size = width as usize / 8;
        let piece = |(index, bytes): (usize, &[u8])| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            line("0", 8 * bytes.len() as u32, u64::from_le_bytes(word), &format!("{name}[{}]", index * size))
        };
        bytes.chunks(size).enumerate().map(piece).collect()
    }

    fn show(inputs: &[InputLine]) -> String {
        lines(inputs, &[]).join("\n")
    }

    #[test]
    fn numbers_are_shown_with_what_else_they_may_be() {
        for (width, value, expected) in [
            (32, 7, "x = 7"),
            (32, 1000, "x = 1000 (0x3e8)"),
            (32, 0xffff_fffe, "x = 4294967294 (0xfffffffe, signed -2)"),
            (1, 1, "x = 1"),
            (8, 72, "x = 72 (0x48, \"H\")"),
            (8, 200, "x = 200 (0xc8, signed -56)"),
            (64, 0x5349_4548, "x = 1397310792 (0x53494548, \"HEIS\")"),
        ] {
            assert_eq!(show(&[line("0", width, value, "x")]), expected);
        }
        let thread = ThreadLine { thread: ThreadId(2), path: "0.2".into(), start: "f".into() };
        assert_eq!(lines(&[line("0.2", 32, 3, "x")], &[thread]), ["x = 3, in T2"]);
    }

    #[test]
    fn pieces_are_joined() {
        assert_eq!(show(&pieces("stdin", 8, b"HE\"\n")), r#"stdin = "HE\"\n""#);
        assert_eq!(
            show(&pieces("message", 64, b"GET / HTTP/1.1\r\n")),
            r#"message = "GET / HTTP/1.1\x0d\n""#
        );
        let mut text = [0; 64];
        text[..4].copy_from_slice(b"HEIS");
        assert_eq!(show(&pieces("m", 64, &text)), "m = \"HEIS\", then 60 zero bytes");
        assert_eq!(show(&pieces("m", 8, &[0; 5])), "m = 5 zero bytes");
        // A struct: a number, a pointer, some text.
        let mut bytes = [0; 24];
        bytes[0] = 0xff;
        bytes[9] = 0x80;
        bytes[16..18].copy_from_slice(b"ab");
        let table = "s, 24 bytes:\n     0  ff 00 00 00 00 00 00 00 00 80 00 00 00 00 00 00  ................\
                     \n    16  61 62 00 00 00 00 00 00                          ab......";
        assert_eq!(show(&pieces("s", 64, &bytes)), table);
        assert_eq!(show(&pieces("s", 8, &[1, 2, 0xff])), "s = 01 02 ff");
        // Twice the same input, and one whose name looks like a piece.
        let twice = [pieces("a", 8, b"xy"), pieces("a", 8, b"z!"), vec![line("0", 8, 1, "a[7]")]].concat();
        assert_eq!(show(&twice), "a = \"xy\"\na = \"z!\"\na[7] = 1");
        assert_eq!(show(&pieces("odd\n", 8, b"ab")), "odd\\n = \"ab\"");
    }

    #[test]
    fn long_lists_end_with_their_number() {
        let many: Vec<InputLine> = (0..15).map(|value| line("0", 8, value % 3, "x")).collect();
        assert!(show(&many).ends_with("x = 2\nand 3 more, in the schedule file"), "{}", show(&many));
        let bytes: Vec<u8> = (0..=255).collect();
        let shown = show(&pieces("b", 8, &bytes));
        assert!(shown.ends_with("  and 64 more, in the schedule file"), "{shown}");
        assert_eq!(shown.lines().count(), 14);
    }

    #[test]
    fn larger_inputs_are_bytes_in_json() {
        let inputs = [pieces("a", 8, b"xy"), vec![line("0", 8, 1, "b")], pieces("c", 8, &[0xff])].concat();
        let expected = json!([
            { "name": "a", "thread": "0", "bytes": "7879", "text": "xy" },
            { "name": "c", "thread": "0", "bytes": "ff", "text": null },
        ]);
        assert_eq!(large(&inputs), expected);
    }
}
