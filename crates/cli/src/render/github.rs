//! Renders results as workflow commands of GitHub Actions, which shows them as annotations of source lines.
//!
//! An annotation is one line: `::error file=F,line=N,title=T::TEXT`.

use crate::render::finding::Screen;
use crate::render::paint::{Paint, quoted};
use crate::render::place::of_finding;
use crate::render::visible;
use heisen_engine::check::Outcome;
use heisen_trace::Finding;
use std::path::{Component, Path, PathBuf};

/// An annotation for each finding. `name` is the program or the test; `replay` is the command that replays a schedule
/// file.
pub fn findings(name: &str, outcome: &Outcome, schedules: &[PathBuf], replay: &str) -> String {
    let mut out = String::new();
    for (index, finding) in outcome.findings().enumerate() {
        let replay = schedules.get(index).map(|path| format!("{replay} {}", quoted(path)));
        out += &of_finding_with(name, finding, replay.as_deref().unwrap_or_default());
    }
    out
}

/// The annotation of a finding: the screen that a person would see.
fn of_finding_with(name: &str, finding: &Finding, replay: &str) -> String {
    let screen = Screen { paint: Paint::plain(), replay, time: None };
    let title = format!("{}: {name}", finding.kind.name());
    let places = of_finding(finding);
    let place = places.first().map(|(_, place)| (place.file.as_path(), place.line));
    annotation(place, &title, &screen.render(finding))
}

/// The annotation of a program or test that could not be explored.
pub fn error(name: &str, text: &str) -> String {
    annotation(None, &format!("not explored: {name}"), text)
}

fn annotation(place: Option<(&Path, u32)>, title: &str, text: &str) -> String {
    let place = place.map_or(String::new(), |(file, line)| {
        // GitHub compares the text with the path in the repository.
        let file: PathBuf = file.components().filter(|part| *part != Component::CurDir).collect();
        format!("file={},line={line},", property(&file.display().to_string()))
    });
    format!("::error {place}title={}::{}\n", property(title), data(text.trim_end()))
}

/// The text after the second `::`. GitHub restores line ends; other control characters are shown.
fn data(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '\n' => out.push_str("%0A"),
            c => visible::push(&mut out, c),
        }
    }
    out
}

/// The value of a property, in which `:` and `,` have a meaning, too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::{NASTY, finding};

    /// Reads a command as the runner of GitHub does.
    fn read(line: &str) -> (Vec<(String, String)>, String) {
        let (head, text) =
            line.strip_prefix("::error ").expect("a command").split_once("::").expect("a text");
        let plain = |text: &str| text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
        let value = |text: &str| plain(&text.replace("%3A", ":").replace("%2C", ","));
        let pair = |pair: &str| pair.split_once('=').map(|(name, text)| (name.to_owned(), value(text)));
        (head.split(',').map(|part| pair(part).expect("a property")).collect(), plain(text))
    }

    #[test]
    fn an_annotation_is_one_line_with_the_screen() {
        let text = of_finding_with("./prog", &finding("balance"), "heisen replay a.schedule");
        assert!(
            text.starts_with(
                "::error file=account.c,line=40,title=assertion%3A ./prog::bug: assertion failed"
            ),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
        let (_, shown) = read(text.trim_end());
        assert!(shown.contains("\n  why: atomicity violation on `balance`\n"), "{shown}");
        assert!(shown.ends_with("\n  replay it: heisen replay a.schedule"), "{shown}");
        assert_eq!(error("a::b", "it hangs"), "::error title=not explored%3A a%3A%3Ab::it hangs\n");
    }

    #[test]
    fn names_never_become_commands() {
        let file = Path::new("./a,b:c\n%.c");
        let text = annotation(Some((file, 3)), NASTY, NASTY);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.trim_end().contains(|c: char| c.is_control()), "{text}");
        let (properties, shown) = read(text.trim_end());
        let names: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["file", "line", "title"]);
        assert_eq!(properties[0].1, "a,b:c\n%.c");
        assert_eq!(properties[2].1, shown);
        assert!(shown.contains("%0A ::error::x, y:z"), "{shown}");
    }
}
