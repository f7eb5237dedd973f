//! Checks the rule of each room of a crate: which other rooms its modules may name.
//!
//! It reads the sources, not the compiled crate. A room is a folder or a file directly below `src`. A path in
//! code that begins with `crate::` is a use of a room. It may stand in a `use`, also with nested braces, in
//! an expression, or in a macro as `$crate::`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A room, and the other rooms that it may use.
pub type Rule = (&'static str, &'static [&'static str]);

/// Fails with file and line of each use that the rules forbid, and if the rules themselves have a cycle.
#[track_caller]
pub fn assert_rules(src: &str, rules: &[Rule]) {
    let cycle = cycle(rules);
    assert!(cycle.is_empty(), "the rules have a cycle: {cycle:?}");
    let found = violations(Path::new(src), rules);
    assert!(found.is_empty(), "{} uses that the rules forbid:\n{}", found.len(), found.join("\n"));
}

/// Fails if two modules of a crate have the same name.
#[track_caller]
pub fn assert_names_once(src: &str) {
    let found = names_twice(Path::new(src));
    assert!(found.is_empty(), "modules of the same name:\n{}", found.join("\n"));
}

/// All uses of rooms in `src` that the rules do not allow, as `file:line: what`. Also reports rooms without a
/// rule and rules without a room. Files directly below `src` that have no rule, such as `lib.rs`, may use
/// every room.
pub fn violations(src: &Path, rules: &[Rule]) -> Vec<String> {
    let mut found = Vec::new();
    for folder in entries(src).iter().filter(|path| path.is_dir()) {
        let room = name_of(folder);
        if !rules.iter().any(|(ruled, _)| *ruled == room) {
            found.push(format!("{}: a room without a rule", folder.display()));
        }
    }
    for (room, allowed) in rules {
        for name in allowed.iter().filter(|name| !rules.iter().any(|(ruled, _)| ruled == *name)) {
            found.push(format!("the rule of {room} names {name}, which is not a room"));
        }
        let files = files_of(src, room);
        if files.is_empty() {
            found.push(format!("{room}: a rule without a room"));
        }
        for file in files {
            let text = fs::read_to_string(&file).expect("sources can be read");
            for (line, used) in uses(&text) {
                let is_room = rules.iter().any(|(ruled, _)| *ruled == used);
                if is_room && used != *room && !allowed.contains(&used.as_str()) {
                    let shown = file.strip_prefix(src).unwrap_or(&file).display();
                    found.push(format!("{shown}:{line}: {room} must not use {used}"));
                }
            }
        }
    }
    found
}

/// The rooms that make it impossible to order the rules so that each room uses only earlier ones. Empty if
/// there is such an order.
pub fn cycle(rules: &[Rule]) -> Vec<&'static str> {
    let mut left: Vec<&Rule> = rules.iter().collect();
    loop {
        let waits = |rule: &&Rule| rule.1.iter().any(|name| left.iter().any(|(room, _)| room == name));
        let rest: Vec<&Rule> = left.iter().copied().filter(waits).collect();
        if rest.len() == left.len() {
            return rest.iter().map(|(room, _)| *room).collect();
        }
        left = rest;
    }
}

/// The module names that occur more than once in a crate, with their files.
pub fn names_twice(src: &Path) -> Vec<String> {
    let mut all = Vec::new();
    collect(src, &mut all);
    let mut names: Vec<(String, String)> = Vec::new();
    for file in all {
        let shown = file.strip_prefix(src).unwrap_or(&file).display().to_string();
        match name_of(&file).as_str() {
            "lib" | "main" => {}
            "mod" => names.push((name_of(file.parent().expect("a module has a folder")), shown)),
            name => names.push((name.to_string(), shown)),
        }
    }
    names.sort();
    let same = |pair: &&[(String, String)]| pair[0].0 == pair[1].0;
    names
        .windows(2)
        .filter(same)
        .map(|pair| format!("{}: {} and {}", pair[0].0, pair[0].1, pair[1].1))
        .collect()
}

/// The rooms that a source names, each with its line. Comments and strings do not count.
fn uses(text: &str) -> BTreeSet<(usize, String)> {
    let code = without_comments(text);
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        for (offset, name) in first_names(rest) {
            let line = code[..at + "crate::".len() + offset].matches('\n').count() + 1;
            found.insert((line, name));
        }
    }
    found
}

/// The first name of each path after `crate::`: one name, or one for each branch of the braces.
fn first_names(rest: &str) -> Vec<(usize, String)> {
    let name_at = |at: usize| -> String {
        rest[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    if !rest.starts_with('{') {
        return vec![(0, name_at(0))];
    }
    let (mut depth, mut begins, mut names) = (0, false, Vec::new());
    for (at, c) in rest.char_indices() {
        match c {
            '{' => {
                depth += 1;
                begins = depth == 1;
            }
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => begins = true,
            _ if begins && (c.is_alphanumeric() || c == '_') => {
                names.push((at, name_at(at)));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// The same text with blanks instead of comments and the contents of strings, so that lines and columns do
/// not move.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            string_end(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    out
}

/// The end of the string that begins here.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn files_of(src: &Path, room: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(&src.join(room), &mut files);
    let file = src.join(format!("{room}.rs"));
    if file.is_file() {
        files.push(file);
    }
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_in_code_only() {
        let text = "use crate::{\n    a::b,\n    c::{d, e},\n    self,\n};\n// crate::f\nlet x = crate::g::h(\"crate::i\");\n\
                    $crate::j!();\n";
        let found: Vec<(usize, String)> = uses(text).into_iter().collect();
        let expected = [(2, "a"), (3, "c"), (4, "self"), (7, "g"), (8, "j")];
        assert_eq!(found, expected.map(|(line, name)| (line, name.to_string())));
    }

    #[test]
    fn finds_cycles() {
        assert!(cycle(&[("a", &[]), ("b", &["a"])]).is_empty());
        assert_eq!(cycle(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]), ["a", "b"]);
    }
}
