//! Tests of the HTML page of a finding in headless Chromium. They are skipped, with a message, if `chromium` is
//! not on the PATH.

use heisen_cli::html;
use heisen_testkit::Sandbox;
use heisen_trace::explanation::{BugClass, Compared, Explanation, Moment, Ordering, Reduction, Remedy};
use heisen_trace::{Op, ThreadId};
use serde_json::{Value, json};
use std::process::Command;

/// The seconds after which a browser that hangs is ended.
const PATIENCE: &str = "120";

fn event(step: u32, thread: u16, op: Op, object: &str, value: Option<u64>, line: u32) -> Compared {
    let moment = Moment {
        step,
        thread: ThreadId(thread),
        op,
        object: object.to_owned(),
        value,
        size: if value.is_some() { 4 } else { 0 },
        place: format!("account.c:{line}"),
    };
    Compared::new(moment)
}

/// A lost update: T2 writes between the read and the write of T1. The object has the given name.
fn failing(object: &str) -> Vec<Compared> {
    let mut events = vec![
        event(4, 1, Op::MemRead, object, Some(100), 2),
        event(5, 2, Op::MemRead, object, Some(100), 2),
        event(6, 2, Op::MemWrite, object, Some(150), 3),
        event(7, 1, Op::MemWrite, object, Some(150), 3),
        event(8, 0, Op::MemRead, object, Some(150), 5),
        event(9, 0, Op::Assert, "", None, 5),
    ];
    events[2].only_here = true;
    events[4].from = Some(3);
    events[4].flow_differs = true;
    events
}

fn document(object: &str, failing: Vec<Compared>, passing: Vec<Compared>) -> Value {
    let story = failing.iter().filter(|event| event.moment.step < 8).map(|event| event.moment.clone());
    let explanation = Explanation {
        class: BugClass::AtomicityViolation,
        object: object.to_owned(),
        story: story.collect(),
        orderings: vec![Ordering { first: 0, second: 2 }],
        remedies: vec![Remedy::LockOrder { locks: vec![object.to_owned(), "b".to_owned()] }],
        reduction: Reduction { events: 10, events_shown: 1, flows: 3, flows_shown: 1 },
        failing,
        passing,
        common: 4,
        ..Explanation::default()
    };
    json!({
        "heisen": "0.1.0",
        "program": object,
        "replay": format!("heisen replay {object}.schedule"),
        "finding": {
            "kind": "assertion", "message": object, "thread": "T0", "place": "account.c:5", "preemptions": 1,
        },
        "threads": [{ "thread": "T0", "start": "main" }, { "thread": "T1", "start": object }],
        "explanation": explanation,
        "sources": { "account.c": {
            "1": "int sum;", "2": "sum = balance;", "3": object, "4": "", "5": "assert(balance == 200);",
        } },
    })
}

/// The page after its script has run.
struct Shown(String);

impl Shown {
    /// Opens the page of a document with a fragment and a script of the test. `None` without Chromium.
    fn open(document: &Value, fragment: &str, script: &str) -> Option<Shown> {
        let sandbox = Sandbox::new();
        let page = html::page(document);
        let (before, after) = page.rsplit_once("</body>").expect("a body");
        let file = sandbox.write("page.html", format!("{before}<script>{script}</script></body>{after}"));
        let result = Command::new("timeout")
            .args([PATIENCE, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .args(["--window-size=1400,1000", "--virtual-time-budget=3000"])
            .arg(format!("--user-data-dir={}", sandbox.path("profile").display()))
            .arg(format!("file://{}{fragment}", file.display()))
            .output()
            .expect("`timeout` is part of every system");
        if result.status.code() == Some(127) {
            eprintln!("skipped, as `chromium` is not on the PATH");
            return None;
        }
        let errors = String::from_utf8_lossy(&result.stderr);
        assert!(result.status.success(), "chromium: {}: {errors}", result.status);
        let shown = Shown(String::from_utf8(result.stdout).expect("UTF-8"));
        assert_eq!(shown.data("errors"), None);
        assert_eq!(shown.data("ready"), Some("true"));
        Some(shown)
    }

    /// A data attribute of the root element.
    fn data(&self, name: &str) -> Option<&str> {
        let root = self.0.split_once("<html")?.1.split_once('>')?.0;
        root.split_once(&format!(" data-{name}=\""))?.1.split_once('"').map(|(value, _)| value)
    }

    /// The text with markup after the first element that begins with `start`.
    #[track_caller]
    fn after(&self, start: &str) -> &str {
        self.0.split_once(start).unwrap_or_else(|| panic!("no {start}")).1
    }

    /// The number of rows in the document.
    fn rows(&self) -> usize {
        self.0.matches("role=\"option\"").count()
    }
}

#[test]
fn lanes_have_a_row_for_each_event() {
    let passing = failing("balance").split_off(2);
    let Some(page) = Shown::open(&document("balance", failing("balance"), passing), "", "") else { return };
    assert_eq!(page.data("lanes"), Some("3"));
    assert_eq!((page.data("failing-rows"), page.data("passing-rows")), (Some("6"), Some("4")));
    assert_eq!(page.data("open"), None);
    assert_eq!(page.rows(), 10);
    let row = page.after("id=\"failing-2\"").split_once("</div>").expect("the end of the row").0;
    assert!(row.contains("step 6: T2 writes balance = 150, at account.c:3, only in this execution"), "{row}");
    assert!(
        page.after("id=\"failing-1\"").starts_with(" data-index=\"1\" aria-label=\"thread change to T2, ")
    );
    assert!(page.after("<svg class=\"arrows\"").contains("<path d=\"M"), "no arrow to the read that differs");
}

#[test]
fn fragment_opens_the_details_of_an_event() {
    let Some(page) = Shown::open(&document("balance", failing("balance"), vec![]), "#event=4", "") else {
        return;
    };
    assert_eq!(page.data("open"), Some("failing:4"));
    let details = page.after("<section id=\"details\"").split_once("</section>").expect("the end").0;
    assert!(details.contains("<dt>Value</dt><dd>150 (0x96), 4 bytes</dd>"), "{details}");
    assert!(details.contains("step 7: T1 writes balance = 150 at account.c:3</button>"), "{details}");
    let line = details.split_once("class=\"here\"").expect("a marked line").1;
    assert!(line.split_once("</div>").expect("the end").0.ends_with("assert(balance == 200);"), "{line}");
}

#[test]
fn keys_move_and_filters_hide_events() {
    let script = r#"
        const key = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        ["n", "n", "Enter", "j"].forEach(key);
        document.documentElement.dataset.first = document.documentElement.dataset.open;
        ["k", "k", "Escape", "?"].forEach(key);
        document.documentElement.dataset.help = document.getElementById("help").open;
        document.getElementById("search").value = "T2 balance";
        document.getElementById("search").dispatchEvent(new Event("input", { bubbles: true }));
    "#;
    let document = document("balance", failing("balance"), failing("balance"));
    let Some(page) = Shown::open(&document, "", script) else { return };
    assert_eq!(page.data("first"), Some("failing:5"));
    assert_eq!((page.data("open"), page.data("help")), (None, Some("true")));
    assert_eq!((page.data("failing-rows"), page.rows()), (Some("2"), 4));
}

#[test]
fn only_rows_in_view_are_elements() {
    let events: Vec<Compared> = (0..100_000)
        .map(|i| event(i + 10, (i % 5) as u16, Op::AtomicRmw, "balance", Some(i.into()), 1 + i % 5))
        .collect();
    let mut document = document("balance", events.clone(), events);
    document["explanation"]["story"] = json!([]);
    let Some(page) = Shown::open(&document, "#event=70000", "") else { return };
    assert_eq!((page.data("failing-rows"), page.data("lanes")), (Some("100000"), Some("5")));
    assert_eq!(page.data("open"), Some("failing:70000"));
    assert!((20..500).contains(&page.rows()), "{} rows", page.rows());
    assert!(page.0.contains("id=\"failing-70000\""));
}

#[test]
fn names_never_become_markup() {
    let act = "document.documentElement.dataset.nasty = 1";
    let name = format!(
        "</script><script>{act}</script><img src=x onerror='{act}'>\" onfocus=\"{act}\" <!-- \u{1b}[2J\u{202e}"
    );
    let Some(page) = Shown::open(&document(&name, failing(&name), failing(&name)), "#event=2", "") else {
        return;
    };
    assert_eq!(page.data("nasty"), None);
    assert_eq!((page.data("open"), page.rows()), (Some("failing:2"), 12));
    assert_eq!(page.0.matches("<script").count(), 4, "three of the page, one of the test");
    assert!(!page.0.contains(['\u{1b}', '\u{202e}']));
}
