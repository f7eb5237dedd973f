//! Renders the page for a whole check: the verdict, the findings, the coverage, and what was not controlled.

use super::{STYLE, capital, code, escaped, fill, text};
use crate::render::paint::{count, number};
use serde_json::Value;
use std::fmt::Write;

const PAGE: &str = include_str!("index.html");

/// The name of the page of a finding. The first has the number 1.
pub fn page_of(number: usize) -> String {
    format!("finding-{number}.html")
}

/// The page for the result of a check as JSON. `replays` has the commands that replay the findings, `figures` the
/// coverage as SVG.
pub fn page(result: &Value, replays: &[String], figures: Option<&str>) -> String {
    let verdict = text(&result["verdict"]);
    let findings = result["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let headline = match findings.len() {
        0 => capital(text(&result["claim"])),
        some => count(some as u64, "distinct finding"),
    };
    let (badge, end) = match verdict {
        "bug" => ("bugs found", "failed"),
        "clean" => ("nothing found", "passed"),
        _ => ("incomplete", "partial"),
    };
    fill(
        PAGE,
        &[
            ("style", STYLE),
            ("title", &escaped(&format!("{}: {badge}", text(&result["program"])))),
            ("badge", badge),
            ("end", end),
            ("headline", &escaped(&headline)),
            ("program", &code(text(&result["program"]))),
            ("version", &escaped(text(&result["heisen"]))),
            ("findings", &table(findings, replays)),
            ("facts", &facts(result)),
            ("figures", figures.unwrap_or_default()),
            ("caveats", &list(&result["not_controlled"])),
            ("hints", &hints(&result["hints"])),
        ],
    )
}

/// The findings, each with a link to its page.
fn table(findings: &[Value], replays: &[String]) -> String {
    if findings.is_empty() {
        return "<p>No execution failed.</p>\n".to_owned();
    }
    let mut out = "<table>\n<thead><tr><th scope=\"col\">Finding</th><th scope=\"col\">Place</th>\
                   <th scope=\"col\">Why</th><th scope=\"col\">Preemptions</th><th scope=\"col\">Replay it</th></tr></thead>\n<tbody>\n"
        .to_owned();
    for (index, finding) in findings.iter().enumerate() {
        let kind = escaped(&text(&finding["kind"]).replace('-', " "));
        let why = &finding["explanation"];
        let (class, object) = (text(&why["class"]).replace('-', " "), text(&why["object"]));
        let object = if object.is_empty() { String::new() } else { format!(" on {}", code(object)) };
        let class = if class == "unclassified" { String::new() } else { escaped(&class) + object.as_str() };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<tr><td><a href=\"{}\"><b>{kind}</b>: {}</a></td><td><span class=\"place\">{}</span></td><td>{class}</td>\
             <td class=\"number\">{}</td><td>{}</td></tr>",
            page_of(index + 1),
            escaped(text(&finding["message"])),
            escaped(text(&finding["place"])),
            finding["preemptions"].as_u64().map_or(String::new(), number),
            replays.get(index).map_or(String::new(), |replay| code(replay)),
        );
    }
    out + "</tbody>\n</table>\n"
}

/// What was explored.
fn facts(result: &Value) -> String {
    let counted = |name: &str| result[name].as_u64().map(number);
    let complete = match result["complete"].as_bool() {
        Some(true) => "yes",
        _ => "no",
    };
    let seconds = result["seconds"].as_f64().map(|seconds| format!("{seconds:.2} s"));
    let strategy = result["strategy"].as_str().map(str::to_owned);
    let facts = [
        ("Strategy", strategy),
        ("Seed", counted("seed")),
        ("Preemptions, at most", counted("preemption_bound")),
        ("Search complete", Some(complete.to_owned())),
        ("Executions", counted("executions")),
        ("Scheduling points", counted("steps")),
        ("Happens-before classes", counted("classes")),
        ("Places whose accesses are scheduling points", counted("access_points")),
        ("Data races", result["races"].as_array().map(|races| number(races.len() as u64))),
        ("Time", seconds),
    ];
    let mut out = "<dl>\n".to_owned();
    for (name, fact) in facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))) {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&fact));
    }
    out + "</dl>\n"
}

fn list(sentences: &Value) -> String {
    let sentences = sentences.as_array().map_or(&[][..], Vec::as_slice);
    if sentences.is_empty() {
        return "<p>Nothing: the claim has no caveat.</p>\n".to_owned();
    }
    let items: Vec<String> =
        sentences.iter().map(|sentence| format!("<li>{}</li>\n", escaped(text(sentence)))).collect();
    format!("<ul>\n{}</ul>\n", items.concat())
}

/// The predictions that no execution confirmed.
fn hints(hints: &Value) -> String {
    let mut out = String::new();
    for hint in hints.as_array().into_iter().flatten() {
        let steps = hint["steps"].as_array().into_iter().flatten();
        let steps: Vec<String> = steps.map(|step| format!("<li>{}</li>", escaped(text(step)))).collect();
        let family = escaped(&text(&hint["family"]).replace('-', " "));
        let _ = writeln!(out, "<p>{family}, which no execution confirmed:</p>\n<ol>{}</ol>", steps.concat());
    }
    if out.is_empty() { out } else { format!("<section>\n<h2>Hints</h2>\n{out}</section>\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(findings: Value) -> Value {
        json!({
            "heisen": "0.1.0", "program": "<prog>", "strategy": "icb", "verdict": "bug", "claim": "no bug <x>",
            "complete": false, "executions": 1234, "steps": 5, "seconds": 0.5, "findings": findings,
            "not_controlled": ["the program reads <time>"], "hints": [],
        })
    }

    #[test]
    fn findings_link_to_their_pages() {
        let findings = json!([{
            "kind": "use-after-free", "message": "a <b>", "place": "x.c:1", "preemptions": 2,
            "explanation": { "class": "atomicity-violation", "object": "<o>" },
        }]);
        let page = page(&result(findings), &["heisen replay x".into()], None);
        assert!(page.contains("<a href=\"finding-1.html\"><b>use after free</b>: a &lt;b&gt;</a>"), "{page}");
        assert!(page.contains("atomicity violation on <code>&lt;o&gt;</code>"), "{page}");
        assert!(
            page.contains("<code>heisen replay x</code>") && page.contains("1 distinct finding"),
            "{page}"
        );
        assert!(page.contains("<dt>Executions</dt><dd>1 234</dd>"), "{page}");
        assert!(page.contains("<li>the program reads &lt;time&gt;</li>"), "{page}");
        assert!(!page.contains("{{") && !page.contains("https:") && !page.contains("<script"), "{page}");
    }

    #[test]
    fn without_findings_the_claim_is_the_headline() {
        let mut result = result(json!([]));
        result["verdict"] = "clean".into();
        result["not_controlled"] = json!([]);
        let page = page(&result, &[], Some("<svg></svg>"));
        assert!(page.contains("<h1>No bug &lt;x&gt;</h1>") && page.contains("<svg></svg>"), "{page}");
        assert!(page.contains("No execution failed.") && page.contains("no caveat"), "{page}");
    }
}
