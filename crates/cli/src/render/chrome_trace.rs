//! Renders the compared executions in the trace event format of Chrome, which <https://ui.perfetto.dev> opens.
//!
//! Each execution is a process, each thread a track, each event a slice of one millisecond: executions have an order,
//! but no real time. Arrows lead from writes to the reads that saw them, and from preempted threads to those that ran.

use crate::render::explanation::deed;
use crate::render::finding::operation;
use crate::render::visible;
use heisen_trace::Finding;
use heisen_trace::explanation::{Compared, Moment};
use serde_json::{Value, json};

/// The duration of an event in microseconds, and the distance between two events.
const DURATION: usize = 900;
const DISTANCE: usize = 1_000;

/// The document.
pub fn document(finding: &Finding) -> Value {
    let mut events = Vec::new();
    let mut arrows = 0;
    for (process, title, execution) in executions(finding) {
        events.push(json!({
            "ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": { "name": title },
        }));
        for line in &finding.schedule.threads {
            let thread = line.thread;
            let name =
                if line.start.is_empty() { thread.to_string() } else { format!("{thread} ({})", line.start) };
            events.push(json!({
                "ph": "M", "pid": process, "tid": thread.0, "name": "thread_name", "args": { "name": shown(&name) },
            }));
            events.push(json!({
                "ph": "M", "pid": process, "tid": thread.0, "name": "thread_sort_index",
                "args": { "sort_index": thread.0 },
            }));
        }
        for (index, event) in execution.iter().enumerate() {
            events.push(slice(process, index, event));
            let mut arrow = |name: &str, from: usize| {
                arrows += 1;
                events.extend(ends(process, name, arrows, (from, &execution[from]), (index, event)));
            };
            if let Some(from) = event.from.filter(|&from| from < index) {
                arrow(if event.flow_differs { "data flow, only here" } else { "data flow" }, from);
            }
            if event.preempts && index > 0 {
                arrow("preemption", index - 1);
            }
        }
    }
    json!({
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": { "heisen": env!("CARGO_PKG_VERSION"), "finding": shown(&finding.message) },
    })
}

/// The executions with their number and title. Without an explanation, the switches of the schedule.
fn executions(finding: &Finding) -> Vec<(u32, &'static str, Vec<Compared>)> {
    match &finding.explanation {
        Some(why) if !why.failing.is_empty() => {
            vec![(1, "it fails", why.failing.clone()), (2, "it passes", why.passing.clone())]
        }
        _ => vec![(1, "it fails: the switches of the schedule", switches(finding))],
    }
}

/// The switches of a schedule as events.
pub fn switches(finding: &Finding) -> Vec<Compared> {
    let events = finding.switches.iter().map(|switch| {
        Compared::new(Moment {
            step: switch.step,
            thread: switch.from,
            op: switch.op,
            object: switch.object.clone(),
            value: None,
            size: 0,
            text: String::new(),
            place: switch.stack.place().map_or(String::new(), |frame| frame.place()),
        })
    });
    events.collect()
}

fn slice(process: u32, index: usize, event: &Compared) -> Value {
    let moment = &event.moment;
    let name = if moment.is_access() { deed(moment) } else { operation(moment.op, &moment.object) };
    let locks: Vec<String> = event.locks.iter().map(|lock| shown(lock)).collect();
    json!({
        "ph": "X",
        "pid": process,
        "tid": moment.thread.0,
        "ts": index * DISTANCE,
        "dur": DURATION,
        "name": shown(&name),
        "cat": if event.only_here { "only here" } else { "in both" },
        "args": {
            "step": moment.step,
            "operation": moment.op.name(),
            "object": shown(&moment.object),
            "value": moment.value,
            "place": shown(&moment.place),
            "function": shown(&event.function),
            "locks": locks,
            "only_here": event.only_here,
        },
    })
}

/// Both ends of an arrow. They lie inside of the slices that they connect.
fn ends(process: u32, name: &str, id: u32, from: (usize, &Compared), to: (usize, &Compared)) -> [Value; 2] {
    let end = |phase: &str, (index, event): (usize, &Compared)| {
        json!({
            "ph": phase, "id": id, "pid": process, "tid": event.moment.thread.0,
            "ts": index * DISTANCE + DURATION / 2, "name": name, "cat": name, "bp": "e",
        })
    };
    [end("s", from), end("f", to)]
}

/// Text with all unsafe characters visible.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| visible::push(&mut out, c));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::{NASTY, finding};

    /// The events of a phase.
    fn of<'a>(document: &'a Value, phase: &str) -> Vec<&'a Value> {
        let events = document["traceEvents"].as_array().expect("a list");
        events.iter().filter(|event| event["ph"] == phase).collect()
    }

    #[test]
    fn tracks_slices_and_arrows() {
        let document = document(&finding("balance"));
        let names: Vec<&Value> = of(&document, "M").iter().map(|event| &event["args"]["name"]).collect();
        assert!(names.contains(&&"it fails".into()) && names.contains(&&"T1 (balance)".into()), "{names:?}");
        let slices = of(&document, "X");
        assert_eq!(slices.len(), 8);
        assert_eq!((&slices[2]["name"], &slices[2]["tid"]), (&"writes balance = 150".into(), &2.into()));
        let (starts, ends) = (of(&document, "s"), of(&document, "f"));
        let arrows: Vec<(&Value, &Value, &Value)> =
            starts.iter().zip(&ends).map(|(from, to)| (&from["name"], &from["tid"], &to["tid"])).collect();
        let text = |text: &str| Value::from(text);
        assert_eq!(
            arrows,
            [
                (&text("preemption"), &1.into(), &2.into()),
                (&text("data flow, only here"), &1.into(), &0.into())
            ]
        );
        for end in starts.iter().chain(&ends) {
            let inside = |slice: &&&Value| {
                let (at, begin) = (end["ts"].as_u64(), slice["ts"].as_u64());
                slice["pid"] == end["pid"]
                    && slice["tid"] == end["tid"]
                    && at > begin
                    && at < begin.map(|begin| begin + DURATION as u64)
            };
            assert_eq!(slices.iter().filter(inside).count(), 1, "{end}");
        }
    }

    #[test]
    fn without_an_explanation_switches_are_shown() {
        let document = document(&Finding { explanation: None, ..finding("balance") });
        assert_eq!(of(&document, "X").len(), 1);
        assert_eq!(of(&document, "X")[0]["name"], "mem_write(balance)");
    }

    #[test]
    fn names_are_shown() {
        let text = document(&finding(NASTY)).to_string();
        assert!(!text.contains("\\u001b") && !text.contains(['\u{9b}', '\u{202e}']), "{text}");
    }
}
