//! Tests that a written schedule is read back unchanged, and that a damaged one is refused with the wrong
//! line.

use super::{Entry, InputLine, Schedule, ThreadLine};
use crate::access::{Accesses, CodePlace};
use crate::fault::{Fault, Faults};
use crate::finding::{FindingKind, SwitchKind};
use crate::marked::{Marked, Source};
use crate::op::Op;
use crate::stdin::Stdin;
use crate::thread::ThreadId;
use crate::world::World;
use std::time::Duration;

fn sample() -> Schedule {
    Schedule {
        program: b"/tmp/a b/\xff\"prog\"".to_vec(),
        args: vec![b"".to_vec(), b"x\ny\t\x01".to_vec(), "ä→".as_bytes().to_vec()],
        source: Some(b"examples/c/account.c".to_vec()),
        instrumented: true,
        with_std: true,
        symbolic: true,
        binary: "00ff".into(),
        at_ready: true,
        steps_limit: 10,
        expect_exit: -3,
        symmetry: true,
        spurious: 0,
        faults: Faults::default(),
        world: World {
            seed: u64::MAX,
            cpus: Some(3),
            real_time: true,
            timeouts: Duration::from_millis(1500),
            patience: 18,
            before: Some("echo \"$HEISEN_DIR\"".into()),
            after: Some("true".into()),
            dir: Some(b"/tmp/\xff".to_vec()),
            stdin: Some(Stdin::Bytes((*b"1 # 2\n\0\xff\r\n").into())),
            marked: vec![
                Marked { source: Source::Stdin, bytes: 4 },
                Marked { source: Source::Argument(2), bytes: 7 },
                Marked { source: Source::File(b"/a b/\xff".to_vec()), bytes: 1 },
            ],
            patch: vec!["default".into(), "lib \"x\"*.so".into()],
            heap: Some(false),
            leaks: true,
            accesses: Accesses {
                check: false,
                all: true,
                points: vec![CodePlace { module: "a b".into(), offset: 0x11d9, place: "x.c:3 f".into() }],
            },
        },
        input: Some(("a.input".into(), "0a".into())),
        inputs: vec![
            InputLine { path: "0".into(), number: 0, width: 64, value: u64::MAX, name: "a \"b\"".into() },
            InputLine { path: "0.1.2".into(), number: 3, width: 8, value: 0, name: String::new() },
        ],
        outcome: Some((FindingKind::ExitStatus, "exit \\ \"1\"".into())),
        signature: "abc".into(),
        threads: vec![ThreadLine { thread: ThreadId(1), path: "0.1".into(), start: "worker".into() }],
        entries: vec![
            Entry {
                step: 3,
                from: ThreadId(1),
                to: ThreadId(2),
                kind: SwitchKind::Preempt,
                op: Op::Lock,
                options: 3,
                object: "lock".into(),
                place: "a.c:3 f".into(),
            },
            Entry {
                step: 9,
                from: ThreadId(2),
                to: ThreadId(0),
                kind: SwitchKind::Wake,
                op: Op::CondSignal,
                options: 0,
                object: String::new(),
                place: String::new(),
            },
        ],
    }
}

/// A schedule with decisions that are not about threads.
fn with_values() -> Schedule {
    let entry = |step, kind, op, options, object: &str| Entry {
        step,
        from: ThreadId(1),
        to: ThreadId(1),
        kind,
        op,
        options,
        object: object.into(),
        place: "a.c:3 f".into(),
    };
    let values = [
        entry(10, SwitchKind::Choose(2), Op::Choose, 5, "2 of 5"),
        entry(12, SwitchKind::Spurious, Op::CondWait, 2, "ready"),
        entry(14, SwitchKind::Fault(Fault::Malloc), Op::Alloc, 2, "24 bytes"),
        entry(15, SwitchKind::Fault(Fault::TryLock), Op::TryLock, 2, "lock"),
    ];
    let faults = Faults { most: 2, kinds: Fault::Malloc.bit() | Fault::TryLock.bit() };
    let mut schedule = Schedule { spurious: 1, faults, ..sample() };
    schedule.entries.extend(values);
    schedule
}

#[test]
fn values_round_trip() {
    let text = with_values().to_text();
    assert_eq!(Schedule::parse(&text), Ok(with_values()), "{text}");
    for line in [
        "spurious 1",
        "faults 2:malloc,trylock",
        "at 10 T1 choose 2 of 5 \"a.c:3 f\"",
        "at 12 T1 spurious cond_wait \"ready\" \"a.c:3 f\"",
        "at 14 T1 fault malloc alloc \"24 bytes\" \"a.c:3 f\"",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in {text}");
    }
    assert_eq!(with_values().preemptions(), 1);
    // Without such decisions, the file does not mention the budgets.
    let plain = sample().to_text();
    assert!(!plain.contains("spurious") && !plain.contains("faults"), "{plain}");
}

#[test]
fn nonsense_values_name_their_line() {
    let text = with_values().to_text();
    let line = text.lines().position(|line| line.contains("fault trylock")).expect("the second fault") + 1;
    let second = format!("line {line}: more faults than allowed; raise \"faults 1:");
    for (old, new, want) in [
        ("choose 2 of 5", "choose two of 5", "\"two\" is not a value"),
        ("choose 2 of 5", "choose 2 off 5", "\"of\" must stand between"),
        ("choose 2 of 5", "choose 5 of 5", "5 is none of 5 choices from 0"),
        ("choose 2 of 5", "choose 2 of", "is not a number of choices"),
        ("T1 choose", "T1 pick", "choose, spurious or fault after the first"),
        ("spurious cond_wait", "spurious sleeping", "no operation is called \"sleeping\""),
        ("fault malloc", "fault fire", "no fault is called \"fire\""),
        ("fault malloc", "fault", "no fault is called \"alloc\""),
        ("fault malloc", "fault eintr", "\"faults 2:malloc,trylock\" above does not allow eintr"),
        ("faults 2:", "faults 1:", &second),
        ("faults 2:", "faults many:", "\"many\" is not a number of faults"),
        ("malloc,trylock", "malloc,fire", "no fault is called \"fire\"; there are malloc"),
        ("spurious 1\n", "", "more spurious wake-ups than allowed; raise \"spurious 0\""),
        ("spurious 1\n", "spurious x\n", "\"x\" is not a number of spurious wake-ups"),
    ] {
        assert!(text.contains(old), "{old}");
        let error = Schedule::parse(&text.replacen(old, new, 1)).expect_err(new);
        assert!(error.to_string().contains(want), "{new}: {error}");
    }
    for cut in (0..text.trim_end().len()).filter(|&i| text.is_char_boundary(i)) {
        assert!(Schedule::parse(&text[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn text_round_trips() {
    let text = sample().to_text();
    assert_eq!(Schedule::parse(&text), Ok(sample()), "{text}");
    assert_eq!(sample().preemptions(), 1);
}

#[test]
fn a_standard_input_beside_the_file() {
    let mut schedule = sample();
    let (name, hash) = ("a \"b\".stdin".to_owned(), "77aa".to_owned());
    schedule.world.stdin = Some(Stdin::Beside { name, hash });
    let text = schedule.to_text();
    assert_eq!(Schedule::parse(&text), Ok(schedule), "{text}");
    let error = Schedule::parse(&text.replace(" 77aa", "")).expect_err("no hash");
    assert!(error.to_string().contains("its hash is missing"), "{error}");
}

#[test]
fn comments_and_blank_lines_are_passed_over() {
    let text = sample().to_text().replace("\nend 2", "\n\n# mine\nend 2 # both");
    assert_eq!(Schedule::parse(&text), Ok(sample()));
}

#[test]
fn every_truncation_is_an_error() {
    let text = sample().to_text();
    for cut in (0..text.trim_end().len()).filter(|&i| text.is_char_boundary(i)) {
        assert!(Schedule::parse(&text[..cut]).is_err(), "cut at {cut}: {:?}", &text[..cut]);
    }
}

#[test]
fn nonsense_names_its_line() {
    let text = sample().to_text();
    for (old, new, want) in [
        ("heisen schedule 1", "heisen schedule 9", "reads format 1"),
        ("heisen schedule 1", "#!/bin/sh", "not a Heisen schedule"),
        ("at 3 T1", "at three T1", "is not a step"),
        ("at 3 T1", "at 3 1", "is not a thread"),
        ("at 9 ", "at 3 ", "not after the step"),
        ("preempt lock", "preempt fly", "no operation is called"),
        ("preempt lock", "kick lock", "none of preempt"),
        (" -> T2", " T2", "must stand between"),
        ("end 2", "end 7", "7 decisions announced, 2 found"),
        ("binary 00ff", "binary", "a hash is missing"),
        ("\"lock\"", "\"lock", "must be in double quotes"),
        ("f\"\nat 9", "f\nat 9", "without its closing quote"),
        ("signature abc", "signature abc def", "unexpected"),
        ("outcome exit-status", "outcome sad", "no kind of finding"),
        ("signature abc", "hello", "unknown keyword"),
        ("seed 1", "seed x1", "is not a seed"),
        ("cpus 3", "cpus -3", "is not a number of processors"),
        ("real-time", "real-time yes", "unexpected"),
        ("stdin \"1", "stdin 1", "must be in double quotes"),
        ("program ", "# program ", "no program is named"),
    ] {
        assert!(text.contains(old), "{old}");
        let error = Schedule::parse(&text.replacen(old, new, 1)).expect_err(new);
        assert!(error.to_string().contains(want), "{new}: {error}");
    }
}
