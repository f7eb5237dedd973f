//! Renders the failing execution as a graph for Graphviz: a cluster for each thread, edges for data flows and
//! preemptions.
//!
//! It has the events that differ from the passing execution and their neighbours on edges. An edge between two events
//! of a thread says how many events lie between them.

use crate::render::chrome_trace::switches;
use crate::render::explanation::deed;
use crate::render::finding::operation;
use crate::render::visible;
use heisen_trace::explanation::Compared;
use heisen_trace::{Finding, ThreadId};
use std::fmt::Write;

/// The largest number of events shown: the last ones. Graphviz takes long for more.
const MAX_EVENTS: usize = 300;

/// The graph.
pub fn document(finding: &Finding) -> String {
    let events = match &finding.explanation {
        Some(why) if !why.failing.is_empty() => why.failing.clone(),
        _ => switches(finding),
    };
    let shown = shown(finding, &events);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, finding, &events, &shown);
    out
}

/// The indices of the events to show, in order.
fn shown(finding: &Finding, events: &[Compared]) -> Vec<usize> {
    let story = finding.explanation.iter().flat_map(|why| &why.story);
    let mut wanted = vec![false; events.len()];
    for moment in story {
        if let Some(index) = events.iter().position(|event| event.moment == *moment) {
            wanted[index] = true;
        }
    }
    for (index, event) in events.iter().enumerate() {
        if event.only_here || event.flow_differs {
            wanted[index] = true;
            if let Some(from) = event.from.filter(|from| *from < events.len()) {
                wanted[from] = true;
            }
        }
        if event.preempts {
            wanted[index.saturating_sub(1)] = true;
            wanted[index] = true;
        }
    }
    // The last event is the failure.
    if let Some(last) = wanted.last_mut() {
        *last = true;
    }
    let all: Vec<usize> = (0..events.len()).filter(|index| wanted[*index]).collect();
    // If nothing differs but the order, all events are as interesting.
    let all = if all.len() > 1 { all } else { (0..events.len()).collect() };
    all[all.len().saturating_sub(MAX_EVENTS)..].to_vec()
}

fn write(out: &mut String, finding: &Finding, events: &[Compared], shown: &[usize]) -> std::fmt::Result {
    writeln!(out, "digraph heisen {{")?;
    writeln!(out, "  label={}; labelloc=t; fontname=\"sans-serif\";", quoted(&finding.message))?;
    writeln!(out, "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\"];")?;
    writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=10];")?;
    let mut threads: Vec<ThreadId> = shown.iter().map(|index| events[*index].moment.thread).collect();
    threads.sort();
    threads.dedup();
    for thread in threads {
        let line = finding.schedule.threads.iter().find(|line| line.thread == thread);
        let start = line.map_or("", |line| &line.start);
        let name = if start.is_empty() { thread.to_string() } else { format!("{thread} ({start})") };
        writeln!(out, "  subgraph cluster_{thread} {{\n    label={}; color=grey;", quoted(&name))?;
        let own: Vec<usize> =
            shown.iter().copied().filter(|index| events[*index].moment.thread == thread).collect();
        for &index in &own {
            write_node(out, index, &events[index])?;
        }
        for pair in own.windows(2) {
            let between =
                events[pair[0] + 1..pair[1]].iter().filter(|event| event.moment.thread == thread).count();
            let label = match between {
                0 => String::new(),
                1 => " [label=\"1 event\"]".to_owned(),
                n => format!(" [label=\"{n} events\"]"),
            };
            writeln!(out, "    e{} -> e{}{label};", pair[0], pair[1])?;
        }
        writeln!(out, "  }}")?;
    }
    for &index in shown {
        let event = &events[index];
        if let Some(from) = event.from.filter(|from| shown.contains(from)) {
            let style = if event.flow_differs { ", penwidth=2" } else { "" };
            writeln!(out, "  e{from} -> e{index} [color=blue, fontcolor=blue, label=\"data flow\"{style}];")?;
        }
        if event.preempts && index > 0 && shown.contains(&(index - 1)) {
            let style = "color=red, fontcolor=red, style=dashed, label=\"preemption\"";
            writeln!(out, "  e{} -> e{index} [{style}];", index - 1)?;
        }
    }
    writeln!(out, "}}")
}

fn write_node(out: &mut String, index: usize, event: &Compared) -> std::fmt::Result {
    let moment = &event.moment;
    let what = if moment.is_access() { deed(moment) } else { operation(moment.op, &moment.object) };
    let place = if moment.place.is_empty() { String::new() } else { format!("\n{}", moment.place) };
    let style = if event.only_here { ", fillcolor=lightyellow, penwidth=2" } else { "" };
    writeln!(out, "    e{index} [label={}{style}];", quoted(&format!("{}. {what}{place}", index + 1)))
}

/// Text in quotes. A backslash begins an escape such as `\N`, the name of the node, so each is doubled.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\\' => out.push_str("\\\\"),
            c if visible::is_unsafe(c) => {
                let mut escape = String::new();
                visible::push(&mut escape, c);
                out += &escape.replace('\\', "\\\\");
            }
            // Graphviz reads HTML entities in labels.
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::{NASTY, finding};
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// The graph as SVG. `None` without Graphviz.
    fn drawn(graph: &str) -> Option<String> {
        let dot = Command::new("dot").arg("-Tsvg").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut dot) = dot else {
            eprintln!("not drawn, as `dot` is not on the PATH");
            return None;
        };
        dot.stdin.take().expect("a pipe").write_all(graph.as_bytes()).expect("dot reads");
        let result = dot.wait_with_output().expect("dot ends");
        assert!(result.status.success(), "{}\n{graph}", result.status);
        Some(String::from_utf8(result.stdout).expect("UTF-8"))
    }

    #[test]
    fn clusters_and_edges() {
        let graph = document(&finding("balance"));
        for part in [
            "  subgraph cluster_T1 {\n    label=\"T1 (balance)\"; color=grey;\n",
            "    e2 [label=\"3. writes balance = 150\\naccount.c:31\", fillcolor=lightyellow, penwidth=2];\n",
            "    e0 -> e3;\n",
            "  e3 -> e4 [color=blue, fontcolor=blue, label=\"data flow\", penwidth=2];\n",
            "  e0 -> e1 [color=red, fontcolor=red, style=dashed, label=\"preemption\"];\n",
        ] {
            assert!(graph.contains(part), "no {part}in\n{graph}");
        }
        if let Some(svg) = drawn(&graph) {
            assert_eq!(svg.matches("class=\"cluster\"").count(), 3);
            assert_eq!(svg.matches("class=\"node\"").count(), 6);
        }
    }

    #[test]
    fn events_in_common_are_folded() {
        let mut long = finding("balance");
        let why = long.explanation.as_mut().expect("an explanation");
        let mut same = why.failing[3].clone();
        same.moment.step = 100;
        why.failing.splice(4..4, vec![same; 1000]);
        why.failing[1004].from = Some(3);
        let graph = document(&long);
        assert!(graph.lines().count() < 40, "{graph}");
        long.explanation = None;
        assert!(document(&long).contains("1. mem_write(balance)"), "{}", document(&long));
    }

    #[test]
    fn names_never_become_syntax() {
        let graph = document(&finding(NASTY));
        assert!(!graph.contains(|c: char| visible::is_unsafe(c) && c != '\n'), "{graph}");
        // Outside of strings there is only our own text.
        let mut outside = String::new();
        let (mut inside, mut escaped) = (false, false);
        for c in graph.chars() {
            match (inside, escaped, c) {
                (true, false, '\\') => escaped = true,
                (_, false, '"') => inside = !inside,
                (true, ..) => escaped = false,
                (false, ..) => outside.push(c),
            }
        }
        assert!(!inside && !outside.contains(['<', '&', '%']), "{outside}");
        drawn(&graph);
    }
}
