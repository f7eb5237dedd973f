//! Tests that the book is complete: `docs/SUMMARY.md` lists every page, and every relative link leads to a
//! file and a heading.

use heisen_testkit::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Markdown files outside `docs/` whose links are checked, too, if they exist.
const BESIDE: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

const SUMMARY: &str = "docs/SUMMARY.md";

/// The Markdown files below a directory, relative to the root of the repository.
fn markdown_below(directory: &str) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(root().join(directory)).expect("a directory").flatten() {
        let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files.append(&mut markdown_below(&name));
        } else if name.ends_with(".md") {
            files.insert(name.into());
        }
    }
    files
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// The lines outside fenced code blocks, with their numbers from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let ticks = &start[..start.len() - start.trim_start_matches('`').len()];
        match fence {
            // A block ends at a line that consists of at least as many backquotes.
            Some(open) if ticks.len() >= open.len() && start.trim_end() == ticks => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => lines.push((number + 1, line)),
        }
    }
    lines
}

/// A line without its code spans.
fn without_code(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let after = &rest[at + ticks..];
        match after.find(&rest[at..at + ticks]) {
            Some(end) => rest = &after[end + ticks..],
            None => rest = after,
        }
    }
    out.push_str(rest);
    out
}

/// The targets of a line's links and images: `[text](target)`, and definitions, `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let mut found = Vec::new();
    for after in line.split("](").skip(1) {
        if let Some(target) = after.split([')', ' ']).next() {
            found.push(target.to_owned());
        }
    }
    if line.starts_with('[')
        && let Some((_, target)) = line.split_once("]: ")
    {
        found.extend(target.split(' ').next().map(str::to_owned));
    }
    found
}

/// The anchors of a page's headings. GitHub and mdBook make them by the same rule.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let anchor = slug(heading.trim());
        let earlier = used.entry(anchor.clone()).or_default();
        all.insert(if *earlier == 0 { anchor } else { format!("{anchor}-{earlier}") });
        *earlier += 1;
    }
    all
}

/// The anchor of one heading: letters, digits, `-` and `_` in lower case, and `-` for a space. Only the text
/// of a link counts.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c => c.is_alphanumeric().then_some(c),
        })
        .collect()
}

/// A path relative to the root of the repository, without `.` and `..`; `None` if it leads out of it.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// The error in a link of a file, if there is one.
fn broken(file: &Path, target: &str) -> Option<String> {
    let scheme =
        target.split_once(':').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphabetic()));
    if scheme {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let there = if path.is_empty() {
        file.to_owned()
    } else {
        match normal(&file.parent().expect("a file has a directory").join(path)) {
            Some(there) => there,
            None => return Some("leads out of the repository".into()),
        }
    };
    if !root().join(&there).exists() {
        return Some(format!("there is no {}", there.display()));
    }
    match anchor {
        Some(anchor) if there.extension().is_none_or(|e| e != "md") => {
            Some(format!("#{anchor}, but {} is not Markdown", there.display()))
        }
        Some(anchor) if !anchors(&read(&there)).contains(anchor) => {
            Some(format!("{} has no heading for #{anchor}", there.display()))
        }
        _ => None,
    }
}

#[test]
fn every_page_is_in_the_summary() {
    let mut pages = markdown_below("docs");
    assert!(pages.remove(Path::new(SUMMARY)), "there is no {SUMMARY}");
    let text = read(Path::new(SUMMARY));
    let mut listed = BTreeSet::new();
    for (number, line) in prose(&text) {
        for target in targets(line) {
            let page = normal(&Path::new("docs").join(&target)).expect("a page below docs/");
            assert!(listed.insert(page), "{SUMMARY}:{number} lists {target} a second time");
        }
    }
    let missing: Vec<_> = pages.difference(&listed).collect();
    let absent: Vec<_> = listed.difference(&pages).collect();
    assert!(missing.is_empty(), "{SUMMARY} does not list {missing:?}");
    assert!(absent.is_empty(), "{SUMMARY} lists pages that do not exist: {absent:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let mut files = markdown_below("docs");
    files.extend(BESIDE.iter().map(PathBuf::from).filter(|file| root().join(file).exists()));
    let mut wrong = Vec::new();
    let mut links = 0;
    for file in files {
        for (number, line) in prose(&read(&file)) {
            for target in targets(line) {
                links += 1;
                if let Some(why) = broken(&file, &target) {
                    wrong.push(format!("{}:{number}: ({target}): {why}", file.display()));
                }
            }
        }
    }
    assert!(links > 100, "only {links} links were found");
    assert!(wrong.is_empty(), "{} broken links:\n{}", wrong.len(), wrong.join("\n"));
}

/// mdBook and this test read the same pages.
#[test]
fn the_book_is_made_of_docs() {
    let book = read(Path::new("book.toml"));
    assert!(book.lines().any(|line| line == "src = \"docs\""), "{book}");
    assert!(book.lines().any(|line| line == "build-dir = \"target/book\""), "{book}");
}

#[test]
fn reading_markdown() {
    let text = "# A `heisen.h` page\n\n[a](b.md#c) and `[no](x)`\n```sh\n# not a heading, [no](y)\n```\n## Twice\n## Twice\n";
    let links: Vec<String> = prose(text).iter().flat_map(|(_, line)| targets(line)).collect();
    assert_eq!(links, ["b.md#c"]);
    assert_eq!(anchors(text), ["a-heisenh-page", "twice", "twice-1"].map(str::to_owned).into());
    assert_eq!(slug("In Rust: #[heisen::test]"), "in-rust-heisentest");
    assert_eq!(slug("See [the guide](x.md) first"), "see-the-guide-first");
    assert_eq!(normal(Path::new("docs/how-to/../x.md")), Some("docs/x.md".into()));
    assert_eq!(normal(Path::new("../x.md")), None);
    assert_eq!(targets("[1]: page.md"), ["page.md"]);
    assert_eq!(broken(Path::new("README.md"), "https://example.org/#x"), None);
}
