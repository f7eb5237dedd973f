//! Renders self-contained HTML pages: one finding with its explanation, two executions, or a whole check.
//!
//! The summary is static HTML. The files of `script` add the swim lanes from the document that the page embeds as JSON.
//! Every text of the program is hostile here: a name or a line of source may contain markup.

pub mod document;
pub mod index;
pub mod words;

use crate::render::explanation;
use crate::render::paint::{count, number};
use crate::render::visible::{self, is_unsafe};
use heisen_trace::Op;
use heisen_trace::explanation::{BugClass, Evidence, Moment, NoReturn, Ordering, Reduction, Remedy};
use serde_json::{Map, Value, json};
use std::fmt::Write;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// The parts of the script share one scope.
const SCRIPT: &str = concat!(
    "\"use strict\";\n\n{\n",
    include_str!("script/document.js"),
    "\n",
    include_str!("script/lanes.js"),
    "\n",
    include_str!("script/details.js"),
    "\n",
    include_str!("script/controls.js"),
    "}\n",
);
/// The largest number of events of an execution that the page lists without its script.
const MAX_FALLBACK: usize = 200;

/// The page for a document of [`document`].
pub fn page(document: &Value) -> String {
    let finding = &document["finding"];
    let panels = document["panels"].as_array().map_or(&[][..], Vec::as_slice);
    let (kind, message, about, summary) = match panels {
        [one, other] => (
            "difference".to_owned(),
            format!("{} and {}", text(&one["title"]), text(&other["title"])),
            format!("Two executions of {}, compared", code(text(&document["program"]))),
            ends(panels),
        ),
        _ => (
            text(&finding["kind"]).replace('-', " "),
            text(&finding["message"]).to_owned(),
            format!("{} fails{}. Found", code(text(&document["program"])), escaped(&place_of(finding))),
            Summary::read(document).render(),
        ),
    };
    let panel = |index: usize, title: &str, failed: bool| {
        let panel = panels.get(index);
        let title = panel.map_or(title, |panel| text(&panel["title"]));
        let failed = panel.map_or(Some(failed), |panel| panel["failed"].as_bool()).unwrap_or_default();
        (escaped(title), if failed { "failed" } else { "passed" })
    };
    let (left, right) = (panel(0, "Failing execution", true), panel(1, "Passing execution", false));
    let replay = text(&document["replay"]).replace('\n', "\\u{a}");
    fill(
        PAGE,
        &[
            ("style", STYLE),
            ("script", SCRIPT),
            ("title", &escaped(&format!("{}: {message}", text(&document["program"])))),
            ("kind", &escaped(&kind)),
            ("message", &escaped(&message)),
            ("about", &about),
            ("left", &left.0),
            ("left_end", left.1),
            ("right", &right.0),
            ("right_end", right.1),
            ("version", &escaped(text(&document["heisen"]))),
            ("replay", &escaped(&replay)),
            ("without_replay", if replay.is_empty() { "hidden" } else { "" }),
            ("summary", &(summary + notes(document).as_str())),
            ("fallback", &fallback(document, [&left.0, &right.0])),
            ("words", &embedded(&operations())),
            ("document", &embedded(document)),
        ],
    )
}

/// How the two compared executions ended.
fn ends(panels: &[Value]) -> String {
    let mut out = "<ul id=\"ends\">\n".to_owned();
    for panel in panels {
        let (title, end) = (escaped(text(&panel["title"])), escaped(text(&panel["end"])));
        let _ = writeln!(out, "<li><b>{title}</b>: {end}; {}</li>", escaped(text(&panel["differ"])));
    }
    out + "</ul>\n"
}

/// What limits the explanation, and the report as the terminal shows it.
fn notes(document: &Value) -> String {
    let mut out = String::new();
    for file in document["newer"].as_array().into_iter().flatten() {
        let file = code(text(file));
        let _ = writeln!(
            out,
            "<p class=\"note\">{file} is newer than the program. The lines shown may be wrong.</p>"
        );
    }
    for note in document["notes"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "<p class=\"note\">{}.</p>", escaped(&capital(text(note))));
    }
    let report = text(&document["report"]);
    if !report.is_empty() {
        let _ = writeln!(
            out,
            "<details id=\"report\" hidden><summary>Report as in the terminal</summary><pre class=\"report\" tabindex=\"0\">{}</pre></details>",
            escaped(report)
        );
    }
    out
}

/// The page without its script: the report, and the events that differ as lists.
fn fallback(document: &Value, titles: [&str; 2]) -> String {
    let mut out = String::new();
    let report = text(&document["report"]);
    if !report.is_empty() {
        let _ =
            writeln!(out, "<h2>Report</h2>\n<pre class=\"report\" tabindex=\"0\">{}</pre>", escaped(report));
    }
    for (title, name) in titles.into_iter().zip(["failing", "passing"]) {
        let events = document["explanation"][name].as_array().map_or(&[][..], Vec::as_slice);
        if events.is_empty() {
            continue;
        }
        let differs = |event: &&Value| event["only_here"] == true || event["flow_differs"] == true;
        let _ = writeln!(out, "<h2>{title}: events that differ</h2>\n<ol>");
        for event in events.iter().filter(differs).take(MAX_FALLBACK) {
            let Ok(moment) = serde_json::from_value::<Moment>(event.clone()) else { continue };
            let (thread, action, value) = (moment.thread, action(&moment), value(&moment));
            let _ = writeln!(out, "<li>{thread} {action}{value}{}</li>", at(&moment.place));
        }
        let more = events.iter().filter(differs).count().saturating_sub(MAX_FALLBACK) as u64;
        let more =
            if more > 0 { format!("<p>and {}</p>\n", count(more, "more event")) } else { String::new() };
        let _ = writeln!(out, "</ol>\n{more}");
    }
    out
}

/// The parts of an explanation that the static summary shows.
struct Summary {
    class: BugClass,
    object: String,
    story: Vec<Moment>,
    /// For each operation of the story: its index in the failing execution.
    events: Vec<Option<usize>>,
    orderings: Vec<Ordering>,
    evidence: Option<Evidence>,
    no_return: Option<NoReturn>,
    out_of_time: bool,
    remedies: Vec<Remedy>,
    waiting: Vec<usize>,
    reduction: Reduction,
    /// Whether the document has an explanation.
    explained: bool,
}

impl Summary {
    /// Reads the summary. A part that cannot be read is empty: the rest of the page is still useful.
    fn read(document: &Value) -> Summary {
        let explanation = &document["explanation"];
        let part = |name: &str| explanation[name].clone();
        let story: Vec<Moment> = serde_json::from_value(part("story")).unwrap_or_default();
        let failing = explanation["failing"].as_array().map_or(&[][..], Vec::as_slice);
        let is = |event: &Value, moment: &Moment| {
            event["step"] == moment.step
                && event["thread"] == moment.thread.0
                && event["object"] == moment.object.as_str()
        };
        Summary {
            class: serde_json::from_value(part("class")).unwrap_or(BugClass::Unclassified),
            object: text(&explanation["object"]).to_owned(),
            events: story.iter().map(|moment| failing.iter().position(|event| is(event, moment))).collect(),
            story,
            orderings: serde_json::from_value(part("orderings")).unwrap_or_default(),
            evidence: serde_json::from_value(part("evidence")).unwrap_or_default(),
            no_return: serde_json::from_value(part("no_return")).unwrap_or_default(),
            out_of_time: explanation["out_of_time"] == true,
            remedies: serde_json::from_value(part("remedies")).unwrap_or_default(),
            waiting: serde_json::from_value(part("waiting")).unwrap_or_default(),
            reduction: serde_json::from_value(part("reduction")).unwrap_or_default(),
            explained: explanation.is_object(),
        }
    }

    fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        if !self.explained {
            return writeln!(out, "<p>This finding has no explanation.</p>");
        }
        let of = if self.object.is_empty() { String::new() } else { format!(" of {}", code(&self.object)) };
        writeln!(out, "<div class=\"happened\">\n<h2 id=\"class\">{}{of}</h2>", capital(self.class.name()))?;
        writeln!(out, "<p>{}</p>", escaped(&words::meaning(self.class, &self.object)))?;
        if !self.story.is_empty() {
            writeln!(out, "<ol id=\"story\" aria-label=\"Operations that cause the failure\">")?;
            for i in 0..self.story.len() {
                self.write_moment(out, i)?;
            }
            writeln!(out, "</ol>")?;
        }
        let Reduction { events, events_shown, flows, flows_shown } = self.reduction;
        if events > 0 {
            writeln!(
                out,
                "<p class=\"faint\">{} of {} and {} of {} differ from the passing execution.</p>",
                number(events_shown as u64),
                count(events as u64, "event"),
                number(flows_shown as u64),
                count(flows as u64, "data flow"),
            )?;
        }
        writeln!(out, "</div>\n<div class=\"advice\">")?;
        if !self.orderings.is_empty() {
            writeln!(out, "<h3>Orders that matter</h3>\n<ul id=\"orderings\">")?;
            for ordering in &self.orderings {
                self.write_ordering(out, ordering)?;
            }
            writeln!(out, "</ul>")?;
        }
        let confirmed = self.evidence.map(|found| explanation::evidence(found, self.orderings.len()));
        let out_of_time = self.out_of_time.then(|| explanation::OUT_OF_TIME.to_owned());
        let no_return = self.no_return.as_ref().map(explanation::no_return);
        let sentences = confirmed.into_iter().chain(no_return).chain(out_of_time);
        for sentence in sentences {
            writeln!(out, "<p>{}.</p>", escaped(&capital(&sentence)))?;
        }
        if !self.remedies.is_empty() {
            writeln!(out, "<h3>Possible fixes</h3>\n<ul id=\"remedies\">")?;
            for remedy in &self.remedies {
                writeln!(out, "<li>{}</li>", self.remedy(remedy))?;
            }
            writeln!(out, "</ul>")?;
        }
        writeln!(out, "</div>")
    }

    /// One operation of the story. It links to its event, whose details the script opens.
    fn write_moment(&self, out: &mut String, i: usize) -> std::fmt::Result {
        let moment = &self.story[i];
        let between = self.is_between(i);
        write!(out, "<li{}>", if between { " class=\"between\"" } else { "" })?;
        if let Some(event) = self.events[i] {
            write!(out, "<a href=\"#event={event}\">")?;
        }
        let action = match self.waiting.contains(&i) {
            true => format!("waits for {}", code(&moment.object)),
            false => action(moment),
        };
        let (thread, value) = (moment.thread, value(moment));
        write!(out, "<span class=\"thread\" data-thread=\"{thread}\">{thread}</span> {action}{value}")?;
        if between {
            write!(out, " <em>between</em>")?;
        }
        if self.events[i].is_some() {
            write!(out, "</a>")?;
        }
        if !moment.place.is_empty() {
            write!(out, " <span class=\"place\">{}</span>", escaped(&moment.place))?;
        }
        writeln!(out, "</li>")
    }

    /// Whether one other thread has operations both before and after this one.
    fn is_between(&self, i: usize) -> bool {
        let (before, after) = (&self.story[..i], &self.story[i + 1..]);
        before
            .iter()
            .filter(|moment| moment.thread != self.story[i].thread)
            .any(|moment| after.iter().any(|later| later.thread == moment.thread))
    }

    fn write_ordering(&self, out: &mut String, ordering: &Ordering) -> std::fmt::Result {
        let (Some(first), Some(second)) = (self.story.get(ordering.first), self.story.get(ordering.second))
        else {
            return Ok(());
        };
        writeln!(
            out,
            "<li>It failed with this order: {} {}{}, then {} {}{}. In the opposite order the program passed.</li>",
            first.thread,
            action(first),
            at(&first.place),
            second.thread,
            action(second),
            at(&second.place),
        )
    }

    fn remedy(&self, remedy: &Remedy) -> String {
        match remedy {
            Remedy::ReleasedBetween { lock, thread, place } => {
                let lock = code(lock);
                format!(
                    "{thread} releases {lock}{} between its two accesses. Hold {lock} until after the second access.",
                    at(place)
                )
            }
            Remedy::LockMissing { lock, thread, place } => {
                let (lock, object) = (code(lock), code(&self.object));
                format!(
                    "{thread} accesses {object}{} without {lock}, which other accesses hold. Acquire {lock} before this access.",
                    at(place)
                )
            }
            Remedy::WaitInLoop { thread, variable, place } => format!(
                "{thread} does not check {} again after its wait{}. Wait in a loop that checks the condition again.",
                code(variable),
                at(place)
            ),
            Remedy::Broadcast { condition, woken, thread, place } => format!(
                "The signal of {}{} wakes {woken}, which only waits again, and not {thread}. A broadcast would wake both.",
                code(condition),
                at(place)
            ),
            Remedy::SameValueAgain { variable, value, thread, place } => format!(
                "{thread} compares {}{} and finds {} again, but it was changed in between (the ABA problem). \
                 A counter in the variable would show that.",
                code(variable),
                at(place),
                code(value)
            ),
            Remedy::LockOrder { locks } => {
                let locks: Vec<String> = locks.iter().map(|lock| code(lock)).collect();
                format!(
                    "The threads acquire {} in different orders. Acquire these locks in one order everywhere.",
                    locks.join(" and ")
                )
            }
        }
    }
}

/// An operation with its object, as in "reads balance".
fn action(moment: &Moment) -> String {
    let object = if moment.object.is_empty() { String::new() } else { format!(" {}", code(&moment.object)) };
    format!("{}{object}", words::verb(moment.op))
}

/// The value of an access, as in " = 100".
fn value(moment: &Moment) -> String {
    moment.shown_value().map_or(String::new(), |value| format!(" = {}", escaped(value)))
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" at {}", escaped(place)) }
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escaped(text))
}

/// The thread, the place and the preemptions of a finding, as the end of a sentence.
fn place_of(finding: &Value) -> String {
    let mut out = String::new();
    let (thread, place) = (text(&finding["thread"]), text(&finding["place"]));
    if !thread.is_empty() {
        out += &format!(" in {thread}");
    }
    if !place.is_empty() {
        out += &format!(" at {place}");
    }
    if let Some(preemptions) = finding["preemptions"].as_u64() {
        out += &format!(", with {}", count(preemptions, "preemption"));
    }
    out
}

/// The words of each operation by its name in the document.
fn operations() -> Value {
    let entry = |&op: &Op| {
        let words = json!({ "name": op.name(), "verb": words::verb(op), "kind": words::kind(op) });
        (format!("{op:?}"), words)
    };
    Value::Object(Op::ALL.iter().map(entry).collect::<Map<_, _>>())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// Replaces each `{{name}}` of the template. The texts are not searched, as they may contain braces, too.
fn fill(template: &str, texts: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        out.push_str(before);
        out.extend(texts.iter().find(|(n, _)| *n == name).map(|(_, text)| *text));
        rest = after;
    }
    out + rest
}

/// Text for HTML, also inside an attribute. Characters that are invisible or reorder a line become visible.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => visible::push(&mut out, c),
        }
    }
    out
}

/// JSON for a `script` element. In JSON these characters occur only inside strings, where an escape means
/// the same. Without them no text can end the element or start a comment.
fn embedded(value: &Value) -> String {
    let json = value.to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '<' | '>' | '&') || is_unsafe(c) {
            let _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, embedded, escaped, page, words};
    use heisen_trace::Op;
    use serde_json::{Value, json};

    const NASTY: &str = "</script><script>alert(1)</script><!-- <b title=\"'x'\">&amp; {{script}} \
        \u{1b}[31m \0 \u{9b} \u{2028}\u{202e}";

    fn moment(thread: u16, op: Op, text: &str) -> Value {
        json!({
            "step": 3, "thread": thread, "op": format!("{op:?}"), "object": text, "value": u64::MAX, "size": 8, "text": "-1",
            "place": text, "only_here": true, "from": null, "flow_differs": false,
        })
    }

    /// A document in which every text of the program is `text`.
    fn document(text: &str) -> Value {
        let events =
            [moment(1, Op::MemRead, text), moment(2, Op::MemWrite, text), moment(1, Op::MemWrite, text)];
        let mut sources = serde_json::Map::new();
        sources.insert(text.to_owned(), json!([text]));
        json!({
            "heisen": "0.1.0", "program": text, "replay": text,
            "finding": { "kind": text, "message": text, "thread": "T0", "place": text, "preemptions": 1 },
            "threads": [{ "thread": "T1", "start": text }],
            "explanation": {
                "class": "atomicity-violation", "object": text, "story": events,
                "orderings": [{ "first": 0, "second": 1 }, { "first": 7, "second": 8 }],
                "remedies": [
                    { "kind": "released-between", "lock": text, "thread": 1, "place": text },
                    { "kind": "lock-missing", "lock": text, "thread": 1, "place": text },
                    { "kind": "lock-order", "locks": [text, text] },
                ],
                "reduction": { "events": 10, "events_shown": 3, "flows": 2, "flows_shown": 1 },
                "failing": events, "passing": events, "common": 0,
            },
            "sources": sources,
        })
    }

    /// The JSON in the page's element of this id.
    fn json_of<'a>(page: &'a str, id: &str) -> &'a str {
        let start = format!("<script type=\"application/json\" id=\"{id}\">");
        let (_, rest) = page.split_once(&start).expect("an element with JSON");
        rest.split_once("</script>").expect("the end of the element").0
    }

    #[test]
    fn texts_never_become_markup() {
        let (plain, nasty) = (page(&document("x")), page(&document(NASTY)));
        for markup in ["<script", "</script", "<!--", "<b"] {
            assert_eq!(plain.matches(markup).count(), nasty.matches(markup).count(), "{markup}");
        }
        assert!(!nasty.contains(['\u{1b}', '\0', '\u{9b}', '\u{2028}', '\u{202e}']));
        assert_eq!(escaped("<\u{1b}\u{202e}\"'&"), "&lt;\\u{1b}\\u{202e}&quot;&#39;&amp;");
    }

    #[test]
    fn embedded_json_parses_back_equal() {
        for text in ["x", NASTY, ""] {
            let document = document(text);
            let page = page(&document);
            assert_eq!(serde_json::from_str::<Value>(json_of(&page, "document")).expect("JSON"), document);
            let words: Value = serde_json::from_str(json_of(&page, "words")).expect("JSON");
            assert_eq!(words["MemRead"]["verb"], "reads");
            assert_eq!(words.as_object().map(|words| words.len()), Some(Op::ALL.len()));
        }
        assert_eq!(embedded(&json!("<")), r#""\u003c""#);
    }

    #[test]
    fn page_needs_nothing_else() {
        let page = page(&document("x"));
        for reference in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(reference), "{reference}");
        }
        assert!(!page.contains("{{") && !SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("insertAdjacentHTML"));
    }

    #[test]
    fn summary_is_static() {
        let page = page(&document("balance"));
        let (_, summary) = page.split_once("<h2 id=\"class\">").expect("a summary");
        assert!(summary.starts_with("Atomicity violation of <code>balance</code></h2>"));
        assert!(summary.contains(
            "</span> reads <code>balance</code> = -1</a> <span class=\"place\">balance</span></li>"
        ));
        assert!(summary.contains("</span> writes <code>balance</code> = -1 <em>between</em></a>"));
        assert_eq!(summary.matches("<li>It failed with this order: ").count(), 1);
        assert!(summary.contains(
            ": T1 reads <code>balance</code> at balance, then T2 writes <code>balance</code> at balance."
        ));
        assert!(
            summary.contains("<li>T1 releases <code>balance</code> at balance between its two accesses.")
        );
        assert!(summary.contains("3 of 10 events and 1 of 2 data flows differ"));
    }

    #[test]
    fn documents_without_an_explanation_have_a_page() {
        assert!(
            page(&json!({ "program": "x", "explanation": null })).contains("This finding has no explanation")
        );
        assert!(page(&Value::Null).contains("</html>"));
    }

    #[test]
    fn every_operation_has_words() {
        assert!(Op::ALL.iter().all(|&op| !words::verb(op).is_empty() && !words::kind(op).is_empty()));
    }
}
