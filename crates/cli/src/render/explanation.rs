//! Renders an explanation: the short form that a finding shows, and the complete one with a diagram of the threads.

use crate::render::html::words::verb;
use crate::render::paint::{self, Paint, count};
use heisen_trace::explanation::{
    BugClass, Compared, Evidence, Explanation, Moment, NoReturn, Ordering, Remedy,
};
use heisen_trace::{Op, ThreadId};
use serde_json::Value;
use std::fmt::Write;

/// The indent of diagrams.
const MARGIN: usize = 4;
/// The largest number of events of one diagram.
const MAX_LINES: usize = 60;

/// The short form: some indented lines that begin with `why:`.
pub fn short(explanation: &Explanation, paint: Paint) -> String {
    let mut out = String::new();
    let about = match explanation.object.as_str() {
        "" => String::new(),
        objects => format!(" on {}", names(&objects.split(", ").collect::<Vec<_>>())),
    };
    let is_lock = |moment: &Moment| moment.op == Op::Lock;
    let about = match explanation.class {
        // Without accesses, all that is known are the sections.
        BugClass::AtomicityViolation if explanation.story.iter().all(is_lock) => {
            format!(": two sections{}", about.replacen(" on ", " of ", 1))
        }
        _ => about,
    };
    let orders = explanation.orderings.is_empty();
    if explanation.out_of_time && explanation.class == BugClass::Unclassified && orders {
        line(&mut out, &format!("\n  why: unknown: {NOT_COMPARED}"));
        return out;
    }
    if let (true, Some(found)) = (orders, explanation.evidence) {
        line(&mut out, &format!("\n  why: unknown: {} (heisen explain runs more)", evidence(found, 0)));
        return out;
    }
    let class = match explanation.class {
        // The finding says that itself, and there is nothing to add.
        BugClass::UseAfterFree | BugClass::Unclassified if orders => return out,
        BugClass::Deadlock | BugClass::DataRace | BugClass::Livelock
            if orders && explanation.remedies.is_empty() =>
        {
            return out;
        }
        BugClass::Unclassified => "the order of some operations",
        class => class.name(),
    };
    line(&mut out, &format!("\n  why: {}", paint.strong(format!("{class}{about}"))));
    // A deadlock lists its threads and locks already.
    if explanation.class != BugClass::Deadlock || !orders {
        story(&mut out, explanation, paint);
    }
    for sentence in sentences(explanation) {
        line(&mut out, &format!("       {sentence}"));
    }
    out
}

/// "`a`, `b` and `c`".
fn names(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// The operations that matter, one a line. Those of other threads than the first are indented.
fn story(out: &mut String, explanation: &Explanation, paint: Paint) {
    let Some(first) = explanation.story.first() else { return };
    let words = |(index, moment): (usize, &Moment)| {
        let indent = if moment.thread == first.thread { "" } else { "  " };
        let deed = match explanation.waiting.contains(&index) {
            true => format!("waits for {}", moment.object),
            false => deed(moment),
        };
        format!("{indent}{} {deed}", moment.thread)
    };
    let all = || explanation.story.iter().enumerate();
    let width = all().map(|moment| words(moment).chars().count()).max().unwrap_or(0);
    let mut last = String::new();
    let between = explanation.story.iter().position(|moment| moment.thread != first.thread);
    for (index, moment) in all() {
        let mark = match explanation.class {
            _ if explanation.pending.contains(&index) => "   <- had not happened yet",
            BugClass::AtomicityViolation if between == Some(index) => "   <- in between",
            _ => "",
        };
        let text = format!("       {:width$}   {}{mark}", words((index, moment)), paint.faint(&moment.place));
        // A statement may do the same operation twice.
        if text != last {
            line(out, text.trim_end());
        }
        last = text;
    }
}

/// What a thread does: `reads balance = 100`.
pub fn deed(moment: &Moment) -> String {
    let verb = match moment.op {
        Op::MemRead | Op::AtomicLoad if moment.is_access() => "reads",
        Op::MemWrite | Op::AtomicStore if moment.is_access() => "writes",
        Op::AtomicRmw | Op::AtomicCas if moment.is_access() => "updates",
        Op::CondSignal | Op::CondBroadcast => "signals",
        Op::CondWait => "waits for",
        Op::Lock => "locks",
        Op::Unlock => "unlocks",
        op => verb(op),
    };
    let object = if moment.object.is_empty() { String::new() } else { format!(" {}", moment.object) };
    match moment.shown_value() {
        Some(value) => format!("{verb}{object} = {value}"),
        None => format!("{verb}{object}"),
    }
}

/// "T2's write", or "T2's write of `x`".
fn whose(moment: &Moment, with_object: bool) -> String {
    let what = match moment.op {
        Op::MemRead | Op::AtomicLoad => "read",
        Op::MemWrite | Op::AtomicStore => "write",
        Op::AtomicRmw | Op::AtomicCas => "update",
        Op::CondWait | Op::CondTimedWait => "wait",
        Op::CondSignal | Op::CondBroadcast => "signal",
        op => op.name(),
    };
    match moment.object.as_str() {
        object if with_object && !object.is_empty() => {
            let of = if what == "wait" { "for" } else { "of" };
            format!("{}'s {what} {of} `{object}`", moment.thread)
        }
        _ => format!("{}'s {what}", moment.thread),
    }
}

/// What distinguishes an operation from others of the story that are called the same: its place, or its value. Empty if
/// there are none.
fn distinction(moment: &Moment, story: &[Moment]) -> String {
    let same: Vec<&Moment> =
        story.iter().filter(|other| *other != moment && whose(other, true) == whose(moment, true)).collect();
    let differs = |what: fn(&Moment) -> &String| same.iter().all(|other| what(other) != what(moment));
    if same.is_empty() {
        String::new()
    } else if !moment.place.is_empty() && differs(|moment| &moment.place) {
        format!(" ({})", moment.place)
    } else if let Some(value) = moment.shown_value()
        && differs(|moment| &moment.text)
    {
        format!(" (value {value})")
    } else {
        let called_so = |other: &&Moment| *other == moment || same.contains(other);
        let number = story.iter().filter(called_so).position(|other| other == moment);
        const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
        let ordinal = number.and_then(|number| ORDINALS.get(number));
        ordinal.map_or(String::new(), |ordinal| format!(" (the {ordinal})"))
    }
}

/// The orders with which an execution passed, and what would prevent the bug.
fn sentences(explanation: &Explanation) -> Vec<String> {
    let moment = |index: usize| explanation.story.get(index);
    let mut out = Vec::new();
    let one_object = explanation.story.windows(2).all(|pair| pair[0].object == pair[1].object);
    let reversed = explanation.orderings.iter().filter_map(|&Ordering { first, second }| {
        let (first, second) = (moment(first)?, moment(second)?);
        let which = |moment| distinction(moment, &explanation.story);
        let (later, earlier) = (whose(second, !one_object), whose(first, false));
        Some(format!("{later}{} before {earlier}{}", which(second), which(first)))
    });
    let reversed: Vec<String> = reversed.collect();
    match reversed.len() {
        0 => {}
        1 | 2 => out.push(format!("it passed with {}", reversed.join(", and with "))),
        _ => {
            out.push("it passed with each of these alone:".to_owned());
            out.extend(reversed.iter().map(|order| format!("  {order}")));
        }
    }
    out.extend(explanation.evidence.map(|found| evidence(found, explanation.orderings.len())));
    out.extend(explanation.no_return.as_ref().map(no_return));
    out.extend(explanation.out_of_time.then(|| OUT_OF_TIME.to_owned()));
    for remedy in &explanation.remedies {
        out.push(match remedy {
            Remedy::ReleasedBetween { lock, thread, place } => {
                let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
                format!("all three hold `{lock}`, but {thread} releases it in between{place}")
            }
            Remedy::LockMissing { lock, thread, place } if explanation.class == BugClass::DataRace => {
                format!("the other access holds `{lock}`, {thread} does not ({place})")
            }
            Remedy::LockMissing { lock, thread, place } => {
                format!("the access in between holds `{lock}`, {thread} does not ({place})")
            }
            Remedy::WaitInLoop { thread, variable, place } => format!(
                "{thread} does not check `{variable}` again after its wait ({place}); a loop around the wait would"
            ),
            Remedy::Broadcast { condition, woken, thread, place } => format!(
                "the signal of `{condition}` ({place}) wakes {woken}, which only waits again, and not {thread}; a \
                 broadcast would wake both"
            ),
            Remedy::SameValueAgain { variable, value, thread, place } => format!(
                "{thread} compares `{variable}` and finds {value} again ({place}), but it was changed in between (ABA); \
                 a counter in `{variable}` would show that"
            ),
            Remedy::LockOrder { locks } => {
                let locks: Vec<&str> = locks.iter().map(String::as_str).collect();
                format!("all threads should take {} in the same order", names(&locks))
            }
        });
    }
    out
}

/// The sentence for a failure for which the time was over before anything was found to compare it with.
const NOT_COMPARED: &str =
    "the time was over before Heisen had found an execution that passes (heisen explain takes more time)";

/// The sentence for an explanation that had not enough time.
pub const OUT_OF_TIME: &str =
    "the time was over before all executions were compared; with more time this may become more precise";

/// What confirms so many orderings, in a sentence.
pub fn evidence(found: Evidence, orderings: usize) -> String {
    let with = match orderings {
        0 => return format!("{} that Heisen has run nearby failed, too", executions(found.failing)),
        1 => "this order",
        _ => "these orders",
    };
    let passed = paint::number(found.passing as u64);
    format!("{} run with {with} failed, {passed} passed without", executions(found.failing))
}

/// The point of no return in a sentence.
pub fn no_return(point: &NoReturn) -> String {
    let NoReturn { moment, runs, proven } = point;
    let place = if moment.place.is_empty() { String::new() } else { format!(" ({})", moment.place) };
    let after = match (runs, proven) {
        (0, _) => "no scheduling point has another choice".to_owned(),
        (1, true) => "the only other way through its scheduling points fails, too".to_owned(),
        (2, true) => "both other ways through its scheduling points fail, too".to_owned(),
        (runs, true) => {
            format!("all {} other ways through its scheduling points fail, too", paint::number(*runs as u64))
        }
        (runs, false) => format!("{} that were run fail, too", executions(*runs)),
    };
    format!("the point of no return: {} {}{place}; after it {after}", moment.thread, deed(moment))
}

/// "the only execution", "all 12 executions".
fn executions(n: usize) -> String {
    match n {
        1 => "the only execution".to_owned(),
        n => format!("all {} executions", paint::number(n as u64)),
    }
}

/// The explanation as JSON, with threads and operations named as elsewhere in JSON. The compared executions may be long,
/// so only the complete form has them.
pub fn json(explanation: &Explanation, complete: bool) -> Value {
    // The fields are numbers, strings, lists and structures of these.
    let mut value = serde_json::to_value(explanation).unwrap_or_default();
    if let (false, Value::Object(fields)) = (complete, &mut value) {
        fields.remove("failing");
        fields.remove("passing");
    }
    name_all(&mut value);
    value
}

/// Names threads and operations in JSON as elsewhere.
pub fn name_all(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(name_all),
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field.as_u64()) {
                    ("thread" | "woken", Some(number)) => *field = format!("T{number}").into(),
                    ("op", _) => {
                        if let Ok(op) = serde_json::from_value::<Op>(field.clone()) {
                            *field = op.name().into();
                        }
                    }
                    _ => name_all(field),
                }
            }
        }
        _ => {}
    }
}

/// The complete form: the short one, and both executions as diagrams of what differs, of at most this width.
pub fn complete(explanation: &Explanation, paint: Paint, width: usize) -> String {
    if let (true, Some(found), false) =
        (explanation.orderings.is_empty(), explanation.evidence, explanation.out_of_time)
    {
        return format!("\n  why: unknown: {}, so there is nothing to compare with\n", evidence(found, 0));
    }
    let mut out = short(explanation, paint);
    if explanation.failing.is_empty() && explanation.passing.is_empty() {
        if !explanation.out_of_time {
            line(&mut out, "\n  no execution nearby passes, so there is nothing to compare with");
        }
        return out;
    }
    let reduction = explanation.reduction;
    let _ = writeln!(
        out,
        "\n  compared with the nearest execution that passes: {} in common, then {} of {} and {} of {} differ",
        count(explanation.common as u64, "event"),
        reduction.events_shown,
        count(reduction.events as u64, "event"),
        reduction.flows_shown,
        count(reduction.flows as u64, "data flow"),
    );
    for (title, events) in [("it fails", &explanation.failing), ("it passes", &explanation.passing)] {
        let _ = writeln!(out, "\n  {}:", paint.strong(title));
        diagram(&mut out, events, paint, width);
    }
    out
}

/// A column for each thread, time downward. Events that are the same in both executions are folded.
fn diagram(out: &mut String, events: &[Compared], paint: Paint, width: usize) {
    // Without accesses there are no data flows: the order of the calls is all that is known.
    let calls_only = events.len() <= MAX_LINES && events.iter().all(|event| !event.moment.is_access());
    let mut wanted: Vec<bool> =
        events.iter().map(|event| calls_only || event.only_here || event.flow_differs).collect();
    for event in events.iter().filter(|event| event.flow_differs) {
        if let Some(write) = event.from {
            wanted[write] = true;
        }
    }
    let mut threads: Vec<ThreadId> = Vec::new();
    for (event, _) in events.iter().zip(&wanted).filter(|(_, wanted)| **wanted) {
        if !threads.contains(&event.moment.thread) {
            threads.push(event.moment.thread);
        }
    }
    threads.sort();
    if threads.is_empty() {
        line(out, "    every event is also in the other execution; only their order differs");
        return;
    }
    // Narrow columns, so that deeply nested names still fit: each thread begins some characters further right.
    let indent = (width / 3 / threads.len()).clamp(2, 16);
    let heads: Vec<String> = threads.iter().map(|thread| format!("{:indent$}", thread.to_string())).collect();
    line(out, &format!("    {}", paint.strong(heads.concat().trim_end())));
    let (mut folded, mut lines) = (0, 0);
    for (event, wanted) in events.iter().zip(&wanted) {
        if !wanted || lines >= MAX_LINES {
            folded += 1;
            continue;
        }
        fold(out, &mut folded, paint);
        lines += 1;
        let column = threads.iter().position(|&thread| thread == event.moment.thread).unwrap_or(0) * indent;
        let mark = if event.only_here { "*" } else { " " };
        let text = format!("{:column$}{mark}{}", "", deed(&event.moment));
        let place = &event.moment.place;
        let room = width.saturating_sub(MARGIN + 2 + place.chars().count()).min(60);
        if text.chars().count() <= room {
            line(out, format!("    {text:room$}  {}", paint.faint(place)).trim_end());
            continue;
        }
        line(out, &format!("    {}", beginning(&text, width.saturating_sub(MARGIN))));
        if !place.is_empty() {
            let indent = MARGIN + (column + 4).min(width / 2);
            line(out, &format!("{:indent$}{}", "", paint.faint(end(place, width.saturating_sub(indent)))));
        }
    }
    fold(out, &mut folded, paint);
    if events.iter().any(|event| event.only_here) {
        line(out, &format!("    {}", paint.faint("* only in this execution")));
    }
}

/// The text, or its beginning if it is wider.
fn beginning(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The text, or its end if it is wider: the end of a path says most.
pub fn end(text: &str, width: usize) -> String {
    match text.chars().count().checked_sub(width) {
        None | Some(0) => text.to_owned(),
        Some(extra) => "…".chars().chain(text.chars().skip(extra + 1)).collect(),
    }
}

fn fold(out: &mut String, folded: &mut u64, paint: Paint) {
    if *folded > 0 {
        line(out, &format!("    {}", paint.faint(format!("… {}", count(*folded, "event")))));
    }
    *folded = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Color;
    use heisen_trace::explanation::untyped;

    fn moment(thread: u16, op: Op, value: u64, place: &str) -> Moment {
        Moment {
            step: 1,
            thread: ThreadId(thread),
            op,
            object: "balance".into(),
            value: Some(value),
            size: 4,
            text: untyped(value, 4),
            place: place.into(),
        }
    }

    fn explanation() -> Explanation {
        Explanation {
            class: BugClass::AtomicityViolation,
            object: "balance".into(),
            story: vec![
                moment(1, Op::MemRead, 100, "account.c:27"),
                moment(2, Op::MemWrite, 150, "account.c:31"),
                moment(1, Op::MemWrite, 0xffff_ffff, "account.c:31"),
            ],
            orderings: vec![Ordering { first: 0, second: 1 }, Ordering { first: 1, second: 2 }],
            remedies: vec![Remedy::ReleasedBetween {
                lock: "lock".into(),
                thread: ThreadId(1),
                place: "account.c:28".into(),
            }],
            ..Explanation::default()
        }
    }

    #[test]
    fn the_short_form() {
        let expected = "\n  why: atomicity violation on `balance`\n\
            \x20      T1 reads balance = 100      account.c:27\n\
            \x20        T2 writes balance = 150   account.c:31   <- in between\n\
            \x20      T1 writes balance = -1      account.c:31\n\
            \x20      it passed with T2's write before T1's read, and with T1's write before T2's write\n\
            \x20      all three hold `lock`, but T1 releases it in between (account.c:28)\n";
        assert_eq!(short(&explanation(), Paint::new(Color::Never)), expected);
    }

    #[test]
    fn what_confirms_an_explanation() {
        let point = |runs, proven| {
            no_return(&NoReturn { moment: moment(2, Op::MemWrite, 150, "account.c:31"), runs, proven })
        };
        let start = "the point of no return: T2 writes balance = 150 (account.c:31); after it ";
        assert_eq!(point(0, true), format!("{start}no scheduling point has another choice"));
        assert_eq!(
            point(1, true),
            format!("{start}the only other way through its scheduling points fails, too")
        );
        assert_eq!(
            point(1_200, true),
            format!("{start}all 1 200 other ways through its scheduling points fail, too")
        );
        assert_eq!(point(16, false), format!("{start}all 16 executions that were run fail, too"));
        let found = |failing, passing| evidence(Evidence { failing, passing }, 2);
        assert_eq!(found(5, 39), "all 5 executions run with these orders failed, 39 passed without");
        assert_eq!(found(1, 1), "the only execution run with these orders failed, 1 passed without");
        let mut early = explanation();
        (early.pending, early.orderings) = (vec![2], vec![Ordering { first: 0, second: 1 }; 3]);
        let text = short(&early, Paint::plain());
        assert!(
            text.contains("T1 writes balance = -1      account.c:31   <- had not happened yet\n"),
            "{text}"
        );
        assert!(
            text.contains("it passed with each of these alone:\n         T2's write before T1's read\n"),
            "{text}"
        );
    }

    #[test]
    fn operations_that_are_called_the_same_are_distinguished() {
        let mut two = explanation();
        two.story.push(moment(1, Op::MemWrite, 7, "account.c:33"));
        let text = short(&two, Paint::plain());
        assert!(text.contains("and with T1's write (account.c:31) before T2's write\n"), "{text}");
        two.story[3].place = "account.c:31".into();
        let text = short(&two, Paint::plain());
        assert!(text.contains("and with T1's write (value -1) before T2's write\n"), "{text}");
    }

    #[test]
    fn that_nothing_passes_is_said() {
        let evidence = Some(Evidence { failing: 49, passing: 0 });
        let nothing = Explanation { evidence, ..Explanation::default() };
        let fails = "\n  why: unknown: all 49 executions that Heisen has run nearby failed, too";
        assert_eq!(short(&nothing, Paint::plain()), format!("{fails} (heisen explain runs more)\n"));
        let complete = complete(&nothing, Paint::plain(), 100);
        assert_eq!(complete, format!("{fails}, so there is nothing to compare with\n"));
    }

    #[test]
    fn too_little_time_is_said() {
        let text = short(&Explanation { out_of_time: true, ..explanation() }, Paint::plain());
        assert!(text.contains(&format!("       {OUT_OF_TIME}\n")), "{text}");
        let nothing = Explanation { out_of_time: true, ..Explanation::default() };
        assert_eq!(short(&nothing, Paint::plain()), format!("\n  why: unknown: {NOT_COMPARED}\n"));
        assert!(!complete(&nothing, Paint::plain(), 100).contains("no execution nearby passes"));
    }

    #[test]
    fn the_diagram_fits_and_folds() {
        let event = |thread, only_here, place: &str| Compared {
            only_here,
            ..Compared::new(moment(thread, Op::MemWrite, 1, place))
        };
        let long = "x".repeat(90);
        let events = [event(1, true, "a.c:1"), event(1, false, "a.c:2"), event(2, true, &long)];
        let mut out = String::new();
        diagram(&mut out, &events, Paint::new(Color::Never), 100);
        assert!(out.contains("… 1 event\n"), "{out}");
        assert!(out.contains("* only in this execution"), "{out}");
        for width in [40, 60, 100] {
            out.clear();
            diagram(&mut out, &events, Paint::new(Color::Never), width);
            assert!(out.lines().all(|line| line.chars().count() <= width), "{out}");
        }
        out.clear();
        diagram(&mut out, &events[..1], Paint::new(Color::Never), 25);
        assert_eq!(out, "    T1\n    *writes balance = 1\n        a.c:1\n    * only in this execution\n");
        let mut many = Vec::new();
        many.resize(500, event(1, true, "a.c:1"));
        out.clear();
        diagram(&mut out, &many, Paint::new(Color::Never), 100);
        assert!(out.lines().count() < MAX_LINES + 5 && out.contains("… 440 events"), "{out}");
    }

    #[test]
    fn json_names_threads_and_operations() {
        let value = json(&explanation(), false);
        assert_eq!(
            (&value["story"][0]["thread"], &value["story"][0]["op"]),
            (&"T1".into(), &"mem_read".into())
        );
        assert_eq!(value["remedies"][0]["thread"], "T1");
        assert!(value.get("failing").is_none() && json(&explanation(), true)["failing"].is_array());
    }
}
