//! Makes the documents that pages embed: the executions with their threads, outcomes and source lines.

use crate::render::difference::Side;
use crate::render::finding::Screen;
use crate::render::limits;
use crate::render::paint::{Paint, count};
use crate::render::source::is_newer;
use heisen_trace::Finding;
use heisen_trace::explanation::{Comparison, Moment, Reduction};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The lines of source before and after a place that the page can show. `script/details.js` shows as many.
const CONTEXT: u32 = 12;

/// The document of one finding. `replay` is the command that replays it, `notes` say what limits its explanation.
pub fn of_finding(finding: &Finding, replay: &str, program: &Path, notes: &[String]) -> Value {
    let threads = finding.schedule.threads.iter();
    let threads: Vec<Value> =
        threads.map(|line| json!({ "thread": line.thread.to_string(), "start": line.start })).collect();
    let explanation = finding.explanation.as_deref();
    let moments = explanation.into_iter().flat_map(|why| {
        why.story.iter().chain(why.failing.iter().chain(&why.passing).map(|event| &event.moment))
    });
    let report = Screen { paint: Paint::plain(), replay: "", time: None };
    let (sources, newer) = sources(moments, program);
    let notes: Vec<String> = notes.iter().cloned().chain(limits::missing(&missing(finding))).collect();
    json!({
        "heisen": env!("CARGO_PKG_VERSION"),
        "program": program.display().to_string(),
        "replay": replay,
        "finding": {
            "kind": finding.kind,
            "message": finding.message,
            "thread": finding.thread.map(|thread| thread.to_string()),
            "place": finding.stack.place().map(|frame| frame.place()),
            "preemptions": finding.preemptions,
        },
        "report": report.render(finding),
        "threads": threads,
        "explanation": finding.explanation,
        "sources": sources,
        "newer": newer,
        "notes": notes,
    })
}

/// The files of the finding's places and of the story that cannot be read. Other events may be in libraries, whose
/// sources nobody expects.
fn missing(finding: &Finding) -> Vec<String> {
    let place = finding.stack.place().filter(|frame| frame.own).map(|frame| frame.place());
    let story = finding.explanation.iter().flat_map(|why| &why.story).map(|moment| moment.place.clone());
    let mut files: Vec<String> = Vec::new();
    for place in place.into_iter().chain(story) {
        if let Some((file, line)) = place.rsplit_once(':')
            && line.parse::<u32>().is_ok()
            && !Path::new(file).exists()
            && !files.iter().any(|known| known == file)
        {
            files.push(file.to_owned());
        }
    }
    files
}

/// The document of two executions. They take the places of the failing and the passing one.
pub fn of_difference(sides: &[Side; 2], comparison: Comparison, program: &Path) -> Value {
    let threads: BTreeMap<_, _> = sides.iter().flat_map(|side| &side.threads).cloned().collect();
    let threads: Vec<Value> = threads
        .into_iter()
        .map(|(thread, start)| json!({ "thread": thread.to_string(), "start": start }))
        .collect();
    let moments = comparison.executions.iter().flatten().map(|event| &event.moment);
    let (sources, newer) = sources(moments, program);
    let panel = |name: &str, side: &Side, reduction: &Reduction| {
        let differ =
            format!("{} of {} differ", reduction.events_shown, count(reduction.events as u64, "event"));
        json!({
            "title": format!("{name}: {}", side.schedule),
            "end": side.end(),
            "failed": side.outcome.is_some(),
            "differ": differ,
        })
    };
    let [first, second] = &comparison.reductions;
    let panels = [panel("A", &sides[0], first), panel("B", &sides[1], second)];
    let Comparison { executions: [failing, passing], common, .. } = comparison;
    json!({
        "heisen": env!("CARGO_PKG_VERSION"),
        "program": program.display().to_string(),
        "replay": "",
        "panels": panels,
        "threads": threads,
        "explanation": { "failing": failing, "passing": passing, "common": common },
        "sources": sources,
        "newer": newer,
    })
}

/// The lines of source near these moments, by file and number; and the files that are newer than the program.
fn sources<'a>(moments: impl Iterator<Item = &'a Moment>, program: &Path) -> (Value, Vec<String>) {
    let mut places: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for moment in moments {
        if let Some((file, line)) = moment.place.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            places.entry(file).or_default().insert(line);
        }
    }
    let mut files = Map::new();
    let mut newer = Vec::new();
    for (file, wanted) in places {
        let Ok(bytes) = std::fs::read(file) else { continue };
        if is_newer(Path::new(file), program) {
            newer.push(file.to_owned());
        }
        let text = String::from_utf8_lossy(&bytes);
        let near = |number: u32| {
            wanted.range(number.saturating_sub(CONTEXT)..=number.saturating_add(CONTEXT)).next().is_some()
        };
        let lines = (1..).zip(text.lines()).filter(|(number, _)| near(*number));
        let lines: Map<String, Value> =
            lines.map(|(number, line)| (number.to_string(), line.into())).collect();
        files.insert(file.to_owned(), lines.into());
    }
    (files.into(), newer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::{Op, ThreadId};

    fn moment(place: String) -> Moment {
        Moment {
            step: 1,
            thread: ThreadId(0),
            op: Op::Lock,
            object: String::new(),
            value: None,
            size: 0,
            text: String::new(),
            place,
        }
    }

    #[test]
    fn lines_near_the_places_are_in_the_document() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/render/html/document.rs");
        let moments = [moment(format!("{file}:1")), moment("missing.c:3".into()), moment("unknown".into())];
        let (files, newer) = sources(moments.iter(), Path::new("/nonexistent"));
        let lines = files[file].as_object().expect("lines");
        assert!(lines["1"].as_str().is_some_and(|line| line.starts_with("//! Makes")), "{files}");
        assert_eq!((lines.len(), files.as_object().map(Map::len)), (13, Some(1)));
        assert!(newer.is_empty());
    }
}
