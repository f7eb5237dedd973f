//! Renders two executions side by side: a column for each, time downward, and only what differs.

use crate::render::explanation::{deed, end, name_all};
use crate::render::paint::{Paint, count};
use heisen_trace::explanation::{Compared, Comparison};
use heisen_trace::{FindingKind, ThreadId};
use serde_json::{Value, json};
use std::fmt::Write;

/// The largest number of rows. The page and the JSON have all of them.
const MAX_ROWS: usize = 200;
/// The narrowest terminal with two columns. A narrower one lists both executions in one column.
const TWO_COLUMNS: usize = 60;
/// A longer run of events that the other execution has at another place is folded: this many remain at each end.
const RUN_END: usize = 3;

/// One of the two executions.
#[derive(Debug)]
pub struct Side {
    /// The path of its schedule file.
    pub schedule: String,
    /// How it ended. `None` if it ended well.
    pub outcome: Option<(FindingKind, String)>,
    /// Its threads with their start functions.
    pub threads: Vec<(ThreadId, String)>,
}

impl Side {
    /// How the execution ended, in words.
    pub fn end(&self) -> String {
        match &self.outcome {
            None => "ends well".to_owned(),
            Some((kind, message)) if message.starts_with(&kind.to_string()) => message.clone(),
            Some((kind, message)) => format!("{kind}: {message}"),
        }
    }
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
enum Row {
    /// Events of the two executions, as indices. Both if it is the same event with another value or another data flow.
    Events(Option<usize>, Option<usize>),
    /// So many events that both executions have, in the same order.
    Common(u64),
    /// So many events of one execution that the other has at another place.
    Moved(usize, u64),
}

/// The two executions as a table of at most this width.
pub fn table(sides: &[Side; 2], comparison: &Comparison, paint: Paint, width: usize) -> String {
    let mut out = String::new();
    for (name, side) in ["A", "B"].iter().zip(sides) {
        line(&mut out, &format!("{}  {}: {}", paint.strong(name), side.schedule, side.end()));
    }
    let common = count(comparison.common as u64, "event");
    if comparison.executions.iter().all(Vec::is_empty) {
        line(&mut out, &format!("\nthe executions are the same: {common}"));
        return out;
    }
    let [one, other] = comparison.reductions.map(|reduction| {
        format!("{} of {}", reduction.events_shown, count(reduction.events as u64, "event"))
    });
    line(
        &mut out,
        &format!(
            "\nboth begin with the same {common}\nbesides the order, {one} of A and {other} of B differ"
        ),
    );
    let threads: Vec<String> =
        sides[0].threads.iter().map(|(thread, start)| format!("{thread} {start}")).collect();
    if !threads.is_empty() {
        line(&mut out, &paint.faint(format!("threads: {}", threads.join(", "))));
    }
    out.push('\n');
    let [one, other] = &comparison.executions;
    let rows = rows(one, other);
    let layout = Layout { paint, width };
    layout.head(&mut out);
    if comparison.common > 0 {
        layout.middle(&mut out, &format!("… {common} in common"));
    }
    for row in rows.iter().take(MAX_ROWS) {
        match *row {
            Row::Events(left, right) => {
                layout.events(&mut out, left.map(|i| &one[i]), right.map(|i| &other[i]));
            }
            Row::Common(events) => {
                layout.middle(&mut out, &format!("… {} in common", count(events, "event")))
            }
            Row::Moved(side, events) => {
                let (here, there) = if side == 0 { ("A", "B") } else { ("B", "A") };
                let text = format!("… {} of {here} that {there} has elsewhere", count(events, "event"));
                layout.middle(&mut out, &text);
            }
        }
    }
    if rows.len() > MAX_ROWS {
        let more = count((rows.len() - MAX_ROWS) as u64, "more row");
        layout.middle(&mut out, &format!("… {more} (--html and --json have all)"));
    }
    if [one, other].iter().any(|events| events.iter().any(|event| event.only_here)) {
        line(&mut out, &paint.faint("* only in this execution"));
    }
    out
}

/// Aligns the two executions. Of the events that both have, as many as possible are in one row; the others stand alone.
fn rows(one: &[Compared], other: &[Compared]) -> Vec<Row> {
    let aligned = aligned(one);
    let mut rows = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (left, right) in
        aligned.into_iter().map(Some).chain([None]).map(|pair| pair.unwrap_or((one.len(), other.len())))
    {
        alone(&mut rows, one, i..left, 0);
        alone(&mut rows, other, j..right, 1);
        if let (Some(a), Some(b)) = (one.get(left), other.get(right)) {
            let same = a.moment.value == b.moment.value && !a.flow_differs && !b.flow_differs;
            match (same, rows.last_mut()) {
                (true, Some(Row::Common(events))) => *events += 1,
                (true, _) => rows.push(Row::Common(1)),
                (false, _) => rows.push(Row::Events(Some(left), Some(right))),
            }
        }
        (i, j) = (left + 1, right + 1);
    }
    rows
}

/// The events that only one side has in this place. Long runs without a difference are folded.
fn alone(rows: &mut Vec<Row>, events: &[Compared], range: std::ops::Range<usize>, side: usize) {
    let row = |index: usize| {
        if side == 0 { Row::Events(Some(index), None) } else { Row::Events(None, Some(index)) }
    };
    let mut start = range.start;
    while start < range.end {
        let differs = |index: &usize| events[*index].only_here || events[*index].flow_differs;
        let end = (start..range.end).find(differs).unwrap_or(range.end);
        if end - start > 2 * RUN_END + 1 {
            rows.extend((start..start + RUN_END).map(row));
            rows.push(Row::Moved(side, (end - start - 2 * RUN_END) as u64));
            rows.extend((end - RUN_END..end).map(row));
        } else {
            rows.extend((start..end).map(row));
        }
        if end < range.end {
            rows.push(row(end));
        }
        start = end + 1;
    }
}

/// The longest list of events that both executions have in the same order, as pairs of indices: a longest increasing
/// subsequence of the partners.
fn aligned(one: &[Compared]) -> Vec<(usize, usize)> {
    let pairs: Vec<(usize, usize)> =
        one.iter().enumerate().filter_map(|(index, event)| Some((index, event.partner?))).collect();
    // By length: the last pair of the list of that length whose end is smallest.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, partner)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < *partner);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut list: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |&at| before[at]).map(|at| pairs[at]).collect();
    list.reverse();
    list
}

/// Writes rows of at most this width.
struct Layout {
    paint: Paint,
    width: usize,
}

impl Layout {
    fn column(&self) -> usize {
        (self.width - 3) / 2
    }

    fn head(&self, out: &mut String) {
        if self.width >= TWO_COLUMNS {
            let column = self.column();
            let text = format!("{:column$}   B", "A");
            line(out, &self.paint.strong(text));
        }
    }

    /// A remark about both executions.
    fn middle(&self, out: &mut String, text: &str) {
        line(out, &self.paint.faint(text));
    }

    fn events(&self, out: &mut String, left: Option<&Compared>, right: Option<&Compared>) {
        if self.width < TWO_COLUMNS {
            for (name, event) in [("A", left), ("B", right)] {
                let Some(event) = event else { continue };
                for (number, text) in cell(event, self.width - 2).iter().enumerate() {
                    let name = if number == 0 { self.paint.strong(name) } else { " ".to_owned() };
                    line(out, &format!("{name} {text}"));
                }
            }
            return;
        }
        let column = self.column();
        let [left, right] = [left, right].map(|event| event.map_or(Vec::new(), |event| cell(event, column)));
        for number in 0..left.len().max(right.len()) {
            let text = |cell: &[String]| cell.get(number).cloned().unwrap_or_default();
            line(out, format!("{:column$} │ {}", text(&left), text(&right)).trim_end());
        }
    }
}

/// The lines of one event: what the thread does, and where. Both are in one line if they fit.
fn cell(event: &Compared, width: usize) -> Vec<String> {
    let mark = if event.only_here { '*' } else { ' ' };
    let text = format!("{mark}{} {}", event.moment.thread, deed(&event.moment));
    let place = &event.moment.place;
    let (length, place_length) = (text.chars().count(), place.chars().count());
    if place.is_empty() {
        return broken(&text, width);
    }
    if length + 2 + place_length <= width {
        return vec![format!("{text}{:gap$}{place}", "", gap = width - length - place_length)];
    }
    let mut lines = broken(&text, width);
    lines.push(format!("    {}", end(place, width.saturating_sub(4))));
    lines
}

/// A text in lines of exactly this width at most. Names may be longer than a line.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (number, c) in text.chars().enumerate() {
        let last = lines.len() - 1;
        if number > 0 && lines[last].chars().count() == width {
            lines.push("    ".to_owned());
        }
        let last = lines.len() - 1;
        lines[last].push(c);
    }
    lines
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

/// The comparison as JSON.
pub fn json(program: &str, sides: &[Side; 2], comparison: &Comparison) -> Value {
    let schedules = sides.iter().zip(&comparison.executions).zip(&comparison.reductions);
    let schedules: Vec<Value> = schedules
        .map(|((side, events), reduction)| {
            let mut events = serde_json::to_value(events).unwrap_or_default();
            name_all(&mut events);
            json!({
                "schedule": side.schedule,
                "outcome": side.outcome.as_ref().map(|(kind, message)| json!({ "kind": kind, "message": message })),
                "reduction": reduction,
                "events": events,
            })
        })
        .collect();
    json!({
        "heisen": env!("CARGO_PKG_VERSION"),
        "program": program,
        "common": comparison.common,
        "executions": schedules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Color;
    use heisen_trace::Op;
    use heisen_trace::explanation::{Moment, Reduction};

    fn event(thread: u16, value: u64, partner: Option<usize>) -> Compared {
        let moment = Moment {
            step: 1,
            thread: ThreadId(thread),
            op: Op::MemWrite,
            object: "balance".into(),
            value: Some(value),
            size: 4,
            text: value.to_string(),
            place: format!("src/account.c:{value}"),
        };
        Compared { only_here: partner.is_none(), partner, ..Compared::new(moment) }
    }

    fn side(schedule: &str, outcome: Option<(FindingKind, String)>) -> Side {
        Side { schedule: schedule.into(), outcome, threads: vec![(ThreadId(0), "main".into())] }
    }

    fn text(executions: [Vec<Compared>; 2], width: usize) -> String {
        let reduction = Reduction { events: 9, events_shown: 2, flows: 1, flows_shown: 1 };
        let comparison = Comparison { executions, common: 5, reductions: [reduction; 2] };
        let sides =
            [side("a.schedule", Some((FindingKind::Deadlock, "2 threads".into()))), side("b.schedule", None)];
        table(&sides, &comparison, Paint::new(Color::Never), width)
    }

    #[test]
    fn only_what_differs_is_shown() {
        // T2's write of 3 moves before the two writes of T1, and B has a write of its own.
        let one =
            vec![event(1, 1, Some(1)), event(1, 2, Some(2)), event(2, 3, Some(0)), event(1, 4, Some(4))];
        let other = vec![
            event(2, 3, Some(2)),
            event(1, 1, Some(0)),
            event(1, 2, Some(1)),
            event(2, 9, None),
            event(1, 7, Some(3)),
        ];
        let expected = "\
A  a.schedule: deadlock: 2 threads
B  b.schedule: ends well

both begin with the same 5 events
besides the order, 2 of 9 events of A and 2 of 9 events of B differ
threads: T0 main

A                                                  B
… 5 events in common
                                                 │  T2 writes balance = 3           src/account.c:3
… 2 events in common
 T2 writes balance = 3           src/account.c:3 │
                                                 │ *T2 writes balance = 9           src/account.c:9
 T1 writes balance = 4           src/account.c:4 │  T1 writes balance = 7           src/account.c:7
* only in this execution
";
        assert_eq!(text([one, other], 100), expected);
    }

    #[test]
    fn narrow_terminals_have_one_column() {
        let text = text([vec![event(1, 1, None)], vec![event(2, 123_456_789, None)]], 40);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(['A', 'B', ' '])).skip(2).collect();
        let expected = [
            "A *T1 writes balance = 1",
            "      src/account.c:1",
            "B *T2 writes balance = 123456789",
            "      src/account.c:123456789",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn long_names_and_runs_fit() {
        let moved: Vec<Compared> = (0..100).map(|i| event(1, i, Some(100 + i as usize))).collect();
        let mut one = moved.clone();
        let mut other: Vec<Compared> = (0..100).map(|_| event(2, 1, None)).collect();
        one.push(Compared { partner: Some(100), ..event(1, 1, None) });
        one[100].moment.object = "x".repeat(300);
        other.extend((0..100).map(|i| event(1, i, Some(i as usize))));
        for width in [20, 40, 60, 100] {
            let text = text([one.clone(), other.clone()], width);
            let table = text.split_once("main\n").expect("a table").1;
            assert!(table.lines().all(|line| line.chars().count() <= width.max(42)), "{width}: {text}");
        }
    }

    #[test]
    fn equal_executions_have_no_table() {
        assert!(text([vec![], vec![]], 80).ends_with("the executions are the same: 5 events\n"));
    }

    #[test]
    fn json_names_threads_and_operations() {
        let comparison =
            Comparison { executions: [vec![event(1, 1, None)], vec![]], ..Comparison::default() };
        let value = json("prog", &[side("a", None), side("b", None)], &comparison);
        assert_eq!(value["executions"][0]["events"][0]["thread"], "T1");
        assert_eq!(value["executions"][1]["outcome"], Value::Null);
    }
}
