//! Tests and generates `docs/reference/functions.md`, the table of intercepted functions. The table has a row
//! for each function that the runtime exports. The row is the function's doc comment, which says what the
//! function means for the scheduler. The tests report four kinds of errors: an export without a row, a row
//! without an export, a row that no program calls, and an outdated table.
//!
//! `HEISEN_BLESS=1 cargo test -p heisen-runtime --test it api` rewrites the table.

use heisen_testkit::root;
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The text above the table.
const HEAD: &str = "\
# Intercepted functions

This page lists every function that Heisen intercepts, and what it means for the scheduler: what a thread waits for, which
threads it enables, what is a decision, and what a refused call returns. Where a row says nothing about the result, the result
is glibc's.

- A function *waits* by disabling its thread until the awaited condition holds. That is a scheduling point, too.
- A *scheduling point* is a moment at which another thread may run instead. Which thread runs is always a decision if more than
  one can run; the rows do not repeat that.
- *Noted* means that the verdict lists it under `not controlled`.
- A *misuse* is a finding of that kind.
- All times are those of the virtual clock.

A test generates this page from the doc comments in the code: `HEISEN_BLESS=1 cargo test -p heisen-runtime --test it api` writes it.
";

/// The file of the runtime with the symbols for the debugger's script, and the prefix of their names. No
/// program calls them, so they have no rows. But the script must use all of them.
const DEBUGGER: &str = "debugger.rs";
const FOR_DEBUGGER: &str = "heisen_gdb";

/// An intercepted function.
#[derive(Debug)]
struct Row {
    name: String,
    meaning: String,
}

/// The functions of one file of the runtime.
#[derive(Debug)]
struct Family {
    title: String,
    /// The first sentence of the file, if it says more than the title.
    introduction: Option<String>,
    rows: Vec<Row>,
}

/// The files below a directory with one of these extensions, sorted.
fn files(directory: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path, endings));
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|ending| endings.contains(&ending)) {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// The lines of a doc comment up to the first empty one, joined.
fn paragraph<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn title_and_introduction(text: &str) -> (String, Option<String>) {
    let head = paragraph(text.lines().map_while(|line| line.strip_prefix("//!")));
    let sentence = match head.find(". ") {
        Some(end) => &head[..=end],
        None => &head,
    };
    let title = sentence.split(['.', ':', ',']).next().unwrap_or_default().to_owned();
    let more = sentence.trim_end_matches('.') != title;
    (title, more.then(|| sentence.to_owned()))
}

/// The name that a line exports, if any. Inside a macro of the runtime it is a function or `name = …;`. If
/// `unmangled`, it is any function.
fn exported(line: &str, in_macro: bool, unmangled: bool) -> Option<&str> {
    let text = line.trim_start();
    let word =
        |text: &'_ str| text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    if unmangled || in_macro && text.starts_with("fn ") {
        let after = &text[text.find("fn ")? + 3..];
        return Some(&after[..word(after)]);
    }
    let name = &text[..word(text)];
    (in_macro && !name.is_empty() && text[name.len()..].starts_with(" = ")).then_some(name)
}

/// The meaning of a function without its name in front, which the row shows already.
fn meaning(name: &str, comment: &str) -> String {
    let quoted = format!("`{name}`");
    let text = comment.strip_prefix(&quoted).unwrap_or(comment).trim_start_matches([':', '.', ',', ' ']);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The family of a file of the runtime, if it exports anything.
fn family(text: &str) -> Option<Family> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut comment, mut in_macro, mut unmangled) = (Vec::new(), false, false);
    for line in text.lines() {
        let trimmed = line.trim_start();
        let at_the_margin = trimmed.len() == line.len();
        if let Some(words) = trimmed.strip_prefix("///") {
            comment.push(words);
            continue;
        }
        if trimmed.starts_with("#[") || trimmed.starts_with("//") {
            unmangled |= trimmed.contains("no_mangle") && at_the_margin;
            continue;
        }
        if at_the_margin && trimmed == "}" {
            in_macro = false;
        }
        // Inside a macro call, the lines of the call itself are indented once, and those of function bodies
        // deeper.
        let inside = in_macro && line.len() - trimmed.len() == 4;
        if let Some(name) = exported(line, inside, unmangled) {
            rows.push(Row { name: name.to_owned(), meaning: meaning(name, &paragraph(comment.drain(..))) });
        }
        if at_the_margin && trimmed.ends_with("! {") && !trimmed.starts_with("macro_rules!") {
            in_macro = true;
        }
        unmangled = false;
        comment.clear();
    }
    let (title, introduction) = title_and_introduction(text);
    (!rows.is_empty()).then_some(Family { title, introduction, rows })
}

/// All families except the one for the debugger. They include the start of a process, which is outside the
/// shim.
fn families() -> Vec<Family> {
    let sources = files(&root().join("crates/runtime/src"), &["rs"]);
    let shown = sources.iter().filter(|path| !path.ends_with(DEBUGGER));
    shown.filter_map(|path| family(&std::fs::read_to_string(path).expect("a source"))).collect()
}

fn render(families: &[Family]) -> String {
    let mut text = HEAD.to_owned();
    for family in families {
        text += &format!("\n## {}\n\n", family.title);
        if let Some(introduction) = &family.introduction {
            // Links to items of the code do not work on this page.
            let introduction = introduction.replace("[`", "`").replace("`]", "`");
            text += &format!("{introduction}\n\n");
        }
        text += "| function | meaning |\n| --- | --- |\n";
        for row in &family.rows {
            text += &format!("| `{}` | {} |\n", row.name, row.meaning.replace('|', "\\|"));
        }
    }
    text
}

/// The names in the runtime's table of dynamic symbols.
fn exports() -> BTreeSet<String> {
    let path = heisen_engine::program::embedded::runtime().expect("the runtime is unpacked");
    let bytes = std::fs::read(path).expect("the runtime is read");
    let file = object::File::parse(&*bytes).expect("a shared library");
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    defined.map(|symbol| symbol.name().expect("a name").to_owned()).collect()
}

#[test]
fn every_export_has_a_row_and_every_row_an_export() {
    let families = families();
    let rows: BTreeSet<&str> = families.iter().flat_map(|f| &f.rows).map(|row| row.name.as_str()).collect();
    let exports = exports();
    // The callbacks of instrumented code are in a list of their own and have no rows.
    let callbacks: BTreeSet<&str> =
        heisen_abi::NAMES.iter().copied().chain(["heisen_tsan_table", "heisen_symbolic_table"]).collect();
    let missing: Vec<_> = callbacks.iter().filter(|name| !exports.contains(**name)).collect();
    assert!(missing.is_empty(), "callbacks that are not exported: {missing:?}");
    let for_programs =
        exports.iter().filter(|name| !name.starts_with(FOR_DEBUGGER) && !callbacks.contains(name.as_str()));
    let without_row: Vec<_> = for_programs.filter(|name| !rows.contains(name.as_str())).collect();
    assert!(without_row.is_empty(), "exported without a doc comment to make a row of: {without_row:?}");
    let without_export: Vec<_> = rows.iter().filter(|name| !exports.contains(**name)).collect();
    assert!(without_export.is_empty(), "rows of what is not exported: {without_export:?}");
    assert_eq!(rows.len(), families.iter().map(|f| f.rows.len()).sum::<usize>(), "a function has two rows");
}

#[test]
fn the_debugger_uses_what_is_exported_for_it() {
    let script = std::fs::read_to_string(root().join("crates/cli/src/gdb/gdb.py")).expect("the script");
    let exports = exports();
    let for_it: Vec<_> = exports.iter().filter(|name| name.starts_with(FOR_DEBUGGER)).collect();
    assert!(!for_it.is_empty(), "nothing is exported for the debugger");
    for name in for_it {
        let used = [format!("(\"{name}\""), format!("('{name}'")].iter().any(|call| script.contains(call));
        assert!(used, "the debugger's script does not use {name}");
    }
}

#[test]
fn every_row_has_a_meaning() {
    for row in families().iter().flat_map(|f| &f.rows) {
        let words = row.meaning.split_whitespace().count();
        assert!(
            words >= 2 && row.meaning.ends_with('.'),
            "{}: say what it means: {:?}",
            row.name,
            row.meaning
        );
    }
}

#[test]
fn the_table_is_up_to_date() {
    let (path, text) = (root().join("docs/reference/functions.md"), render(&families()));
    if std::env::var_os("HEISEN_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the table is written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = there.lines().zip(text.lines()).find(|(a, b)| a != b);
    assert!(
        there == text,
        "docs/reference/functions.md is out of date, write it with HEISEN_BLESS=1; first {differs:?}"
    );
}

/// The text by which a program calls the function.
fn written_as(name: &str) -> &str {
    match name {
        "__libc_start_main" => "main",
        "__assert_fail" => "assert",
        "__cxa_atexit" => "atexit",
        "__cxa_at_quick_exit" => "at_quick_exit",
        "__register_atfork" => "pthread_atfork",
        "_Unwind_RaiseException" => "panic!",
        "_ZNSt13random_device9_M_getvalEv" => "random_device",
        // A static variable in a C++ function.
        "__cxa_guard_acquire" | "__cxa_guard_release" => "made_once",
        "__cxa_guard_abort" => "an_exception_leaves_it_to_the_next",
        "heisen_assert_fail" => "heisen_assert",
        name => name,
    }
}

#[test]
fn every_row_has_a_program_that_calls_it() {
    let crates = root().join("crates");
    let families = families();
    // Refused functions need no program that calls them.
    let rows = families.iter().flat_map(|f| &f.rows).filter(|row| !row.meaning.starts_with("Refused"));
    let mut called: BTreeMap<&str, bool> = rows.map(|row| (written_as(&row.name), false)).collect();
    let in_tests = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "tests");
    for path in files(&crates, &["c", "cpp", "rs"]).into_iter().filter(in_tests) {
        // Both the tests and some programs are in Rust. Only the programs count.
        let is_program = path.parent().is_some_and(|parent| parent.ends_with("programs"));
        if path.extension().is_some_and(|ending| ending == "rs") && !is_program {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a program");
        for (name, called) in called.iter_mut().filter(|(_, called)| !**called) {
            *called = calls(&text, name);
        }
    }
    let never: Vec<_> = called.iter().filter(|(_, called)| !**called).map(|(name, _)| name).collect();
    assert!(never.is_empty(), "no program of the tests below {} calls {never:?}", crates.display());
}

/// Whether the name occurs with an argument list, and is not the end of a longer name.
fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        text[at + name.len()..].starts_with('(') && before != '_' && !before.is_ascii_alphanumeric()
    })
}

#[test]
fn comments_become_rows() {
    let text = "//! Locks: of all kinds. More.\n\nmacro_rules! m {\n    /// No.\n    fn none() {}\n}\n\nshims! {\n    \
                /// Waits; | then\n    /// goes on.\n    ///\n    /// More.\n    #[inline]\n    fn lock(a: usize) -> c_int = pc {\n        \
                a = b;\n    }\n    /// `go`: runs.\n    go = Note::Fork, true;\n    fn bare() = pc { 0 }\n}\n\n\
                /// Hidden.\nfn helper() {}\n\n/// Ends.\n///\n/// # Safety\n/// None.\n#[unsafe(no_mangle)]\n\
                pub unsafe extern \"C\" fn end() {}\n";
    let family = family(text).expect("a family");
    assert_eq!(
        (family.title.as_str(), family.introduction.as_deref()),
        ("Locks", Some("Locks: of all kinds."))
    );
    let rows: Vec<_> = family.rows.iter().map(|row| (row.name.as_str(), row.meaning.as_str())).collect();
    assert_eq!(rows, [("lock", "Waits; | then goes on."), ("go", "Runs."), ("bare", ""), ("end", "Ends.")]);
    assert!(render(&[family]).contains("| `lock` | Waits; \\| then goes on. |\n"));
}
