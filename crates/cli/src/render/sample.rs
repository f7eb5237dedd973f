//! A finding for the tests of formats. Its names may contain anything.

use heisen_trace::explanation::{BugClass, Compared, Explanation, Moment, Ordering, Reduction, Remedy};
use heisen_trace::finding::{Switch, SwitchKind};
use heisen_trace::schedule::ThreadLine;
use heisen_trace::{Finding, FindingKind, Frame, Op, Schedule, Stack, ThreadId};

/// A text that contains whatever a format could take for its own syntax.
pub const NASTY: &str = "</script><b title=\"'x'\">&amp; {0} [a](1) %0A ::error::x, y:z \\N \\\" ]]> \r\n::stop::\
    \u{1b}[31m \0 \u{9b} \u{2028}\u{202e}";

pub fn stack(function: &str, file: &str, line: u32) -> Stack {
    let (function, file) = (function.to_owned(), Some(file.to_owned()));
    Stack(vec![Frame {
        function,
        file,
        line: Some(line),
        own: true,
        dependency: false,
        module: String::new(),
    }])
}

fn event(step: u32, thread: u16, op: Op, object: &str, value: Option<u64>, line: u32) -> Compared {
    let size = if value.is_some() { 4 } else { 0 };
    let (object, place) = (object.to_owned(), format!("account.c:{line}"));
    let text = value.map_or_else(String::new, |value| value.to_string());
    Compared::new(Moment { step, thread: ThreadId(thread), op, object, value, size, text, place })
}

/// A lost update: T2 writes between the read and the write of T1.
pub fn finding(name: &str) -> Finding {
    let mut failing = vec![
        event(4, 1, Op::MemRead, name, Some(100), 27),
        event(5, 2, Op::MemRead, name, Some(100), 27),
        event(6, 2, Op::MemWrite, name, Some(150), 31),
        event(7, 1, Op::MemWrite, name, Some(120), 31),
        event(8, 0, Op::MemRead, name, Some(120), 40),
        event(9, 0, Op::Assert, "", None, 40),
    ];
    failing[1].preempts = true;
    failing[2].only_here = true;
    failing[4].from = Some(3);
    failing[4].flow_differs = true;
    let passing =
        vec![event(4, 1, Op::MemRead, name, Some(100), 27), event(5, 1, Op::MemWrite, name, Some(120), 31)];
    let explanation = Explanation {
        class: BugClass::AtomicityViolation,
        object: name.to_owned(),
        story: [0, 2, 3].map(|index: usize| failing[index].moment.clone()).into(),
        orderings: vec![Ordering { first: 0, second: 1 }],
        remedies: vec![Remedy::ReleasedBetween {
            lock: name.to_owned(),
            thread: ThreadId(1),
            place: "account.c:28".to_owned(),
        }],
        reduction: Reduction { events: 10, events_shown: 1, flows: 3, flows_shown: 1 },
        failing,
        passing,
        common: 4,
        ..Explanation::default()
    };
    let start = |thread, start: &str| ThreadLine {
        thread: ThreadId(thread),
        path: thread.to_string(),
        start: start.to_owned(),
    };
    Finding {
        kind: FindingKind::Assertion,
        message: format!("assertion failed: {name}"),
        preemptions: 1,
        executions_to_find: 7,
        thread: Some(ThreadId(0)),
        stack: stack("main", "account.c", 40),
        switches: vec![Switch {
            step: 5,
            from: ThreadId(1),
            op: Op::MemWrite,
            object: name.to_owned(),
            to: ThreadId(2),
            kind: SwitchKind::Preempt,
            options: 2,
            stack: stack("deposit", "account.c", 31),
        }],
        threads: Vec::new(),
        cycle: None,
        race: None,
        block: None,
        predicted: None,
        globals: Vec::new(),
        minimised: None,
        explanation: Some(Box::new(explanation)),
        output: name.to_owned(),
        signature: "assertion-0123456789abcdef".to_owned(),
        schedule: Schedule {
            threads: vec![start(0, "main"), start(1, name), start(2, "withdraw")],
            ..Schedule::default()
        },
        input: None,
    }
}
