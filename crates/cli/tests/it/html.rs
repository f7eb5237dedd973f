//! Tests of the HTML page of a finding in headless Chromium. They are skipped, with a message, if `chromium` is
//! not on the PATH.

use heisen_cli::html;
use heisen_testkit::{Sandbox, explained_json, root, usual_or_nightly};
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
        text: value.map_or_else(String::new, |value| value.to_string()),
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
    let clocks = [[3, 1, 0], [3, 0, 1], [3, 0, 2], [3, 2, 0], [4, 2, 2], [5, 2, 2]];
    for (event, clock) in events.iter_mut().zip(clocks) {
        event.clock = clock.to_vec();
    }
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
        Shown::open_page(&html::page(document), fragment, script)
    }

    /// Opens a page of a finding.
    fn open_page(page: &str, fragment: &str, script: &str) -> Option<Shown> {
        let shown = Shown::open_any(page, fragment, script)?;
        assert_eq!(shown.data("errors"), None);
        assert_eq!(shown.data("ready"), Some("true"));
        Some(shown)
    }

    fn open_any(page: &str, fragment: &str, script: &str) -> Option<Shown> {
        let sandbox = Sandbox::new();
        let (before, after) = page.rsplit_once("</body>").expect("a body");
        let file = sandbox.write("page.html", format!("{before}<script>{script}</script></body>{after}"));
        let result = Command::new("timeout")
            .args([PATIENCE, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .args(["--window-size=1400,1000", "--virtual-time-budget=3000", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
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
        Some(Shown(String::from_utf8(result.stdout).expect("UTF-8")))
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
    assert!(row.contains("6 writes balance = 150 account.c:3, T2, only in this execution"), "{row}");
    assert!(page.after("id=\"failing-1\"").starts_with(
        " data-index=\"1\" aria-label=\"5 reads balance = 100 account.c:2, T2, another thread runs"
    ));
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
    assert!(details.contains(">T0: 4, T1: 2, T2: 2</span>"), "{details}");
    let after = details.split_once("<dt>Happens after</dt>").expect("earlier events").1;
    assert!(after.split_once("</dd>").expect("the end").0.contains("step 6: T2 writes"), "{details}");
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
    let count: u32 = usual_or_nightly(10_000, 100_000);
    let (middle, last) = (count / 10 * 7, count - 1);
    let events: Vec<Compared> = (0..count)
        .map(|i| event(i + 10, (i % 5) as u16, Op::AtomicRmw, "balance", Some(i.into()), 1 + i % 5))
        .collect();
    let mut document = document("balance", events.clone(), events);
    document["explanation"]["story"] = json!([]);
    // The last event is drawn after a jump to the end, and the middle is gone.
    let script = r#"
        document.documentElement.dataset.opened = document.documentElement.dataset.open;
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "G", bubbles: true }));
        document.documentElement.dataset.elements = document.getElementsByTagName("*").length;
    "#;
    let Some(page) = Shown::open(&document, &format!("#event={middle}"), script) else { return };
    assert_eq!(
        (page.data("failing-rows"), page.data("lanes")),
        (Some(count.to_string().as_str()), Some("5"))
    );
    assert_eq!(
        (page.data("opened"), page.data("open")),
        (Some(format!("failing:{middle}").as_str()), Some(format!("failing:{last}").as_str()))
    );
    assert!((20..500).contains(&page.rows()), "{} rows", page.rows());
    assert!(
        page.0.contains(&format!("id=\"failing-{last}\""))
            && !page.0.contains(&format!("id=\"failing-{middle}\""))
    );
    let elements: usize = page.data("elements").and_then(|text| text.parse().ok()).expect("a number");
    assert!(elements < 1500, "{elements} elements");
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

/// A program whose file and output try to be markup and to control the terminal.
#[test]
fn hostile_programs_never_become_markup() {
    let sandbox = Sandbox::new();
    let act = "document.documentElement.dataset.nasty=1";
    let file = format!("<img src=x onerror={act}>.c");
    let output =
        format!("</script><script>{act}</script><img src=x onerror={act}><!--\\033[2J\\033]0;x\\007");
    let text = std::fs::read_to_string(root().join("examples/c/account.c")).expect("the example");
    let text = text.replace(
        "int main(void) {",
        &format!("#include <stdio.h>\nint main(void) {{ fputs(\"{output}\\n\", stderr);"),
    );
    sandbox.write(&file, text);
    let json = explained_json(&sandbox.path(""), &["--html", "pages", &file]);
    let schedule = json["findings"][0]["schedule"].as_str().expect("a schedule");
    let ran = sandbox.heisen(&["explain", schedule, "--html", "why.html"]).expect(1);
    assert!(ran.out.contains("\\u{1b}[2J") && !ran.out.contains(['\x1b', '\x07']), "{}", ran.out);
    for name in ["why.html", "pages/finding-1.html", "pages/index.html"] {
        let page = std::fs::read_to_string(sandbox.path(name)).expect("the page");
        assert!(!page.contains("<img") && !page.contains(['\x1b', '\x07']), "{name}");
        if name == "why.html" {
            let (_, static_part) =
                page.split_once("<noscript>").expect("a part for browsers without scripts");
            let report = static_part.split_once("</noscript>").expect("its end").0;
            assert!(report.contains("bug: assertion `balance == 150` failed") && report.contains("&lt;img"));
            let Some(page) = Shown::open_page(&page, "#event=1", "") else { return };
            assert_eq!((page.data("nasty"), page.data("open")), (None, Some("failing:1")));
        }
    }
}

/// Names, roles, contrast and focus of everything in view, in both themes. Problems go to `data-problems`.
const AUDIT: &str = r#"
    const problems = new Set();
    let texts = 0;
    const parts = (colour) => {
        const numbers = colour.match(/[\d.]+(?:e-?\d+)?/g).map(Number);
        const scale = colour.startsWith("color(") ? 255 : 1;
        return [...numbers.slice(0, 3).map((n) => n * scale), numbers[3] ?? 1];
    };
    const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
    const background = (element) => {
        const layers = [];
        for (let at = element; at; at = at.parentElement) layers.unshift(parts(getComputedStyle(at).backgroundColor));
        return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    };
    const luminance = (colour) => {
        const [r, g, b] = colour.slice(0, 3).map((n) => (n /= 255) <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (element, pseudo) => {
        const below = background(element);
        const one = luminance(over(parts(getComputedStyle(element, pseudo).color), below));
        const other = luminance(below);
        return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    };
    const named = (e) => `${e.tagName}#${e.id}.${e.className}`;
    const isSeen = (e) => e.checkVisibility() && !e.closest("script, style, noscript, option, svg");
    const name = (e) => [e.getAttribute("aria-label"), document.getElementById(e.getAttribute("aria-labelledby"))?.textContent,
        e.labels?.[0]?.textContent, e.textContent].find((text) => text?.trim());
    function audit(inside) {
        const walker = document.createTreeWalker(inside, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const { parentElement, data } = walker.currentNode;
            if (!data.trim() || !isSeen(parentElement)) continue;
            texts++;
            const ratio = contrast(parentElement);
            if (ratio < 4.5) problems.add(`contrast ${ratio.toFixed(2)}: ${named(parentElement)} ${data.slice(0, 20)}`);
        }
        for (const input of inside.querySelectorAll("input[placeholder]")) {
            if (contrast(input, "::placeholder") < 4.5) problems.add(`contrast of the placeholder: ${named(input)}`);
        }
        const controls = [...inside.querySelectorAll("button, input, select, a[href], summary, [tabindex]")].filter(isSeen);
        for (const control of controls) {
            // The details follow the focus of the panels, so they are looked at once more at the end.
            if (!control.isConnected) continue;
            if (!name(control)) problems.add(`no name: ${named(control)}`);
            if (control.tabIndex > 0 || control.tabIndex < 0 && control.id !== "details") problems.add(`tabindex: ${named(control)}`);
            control.focus({ focusVisible: true });
            if (document.activeElement !== control) problems.add(`no focus: ${named(control)}`);
            const panel = control.closest(".panel");
            const ring = () => getComputedStyle(control).outlineStyle !== "none"
                || panel && getComputedStyle(panel).boxShadow !== "none";
            // A busy machine may take the focus from the page, and the page may draw the control anew.
            if (!document.hasFocus() || !control.isConnected) continue;
            if (control.id !== "details" && !ring()) problems.add(`focus not visible: ${named(control)}`);
        }
        return controls.length;
    }
    const root = document.documentElement;
    let controls = 0;
    for (const theme of ["light", "dark"]) {
        root.dataset.theme = theme;
        controls += audit(document.body);
        const details = document.getElementById("details");
        if (details) controls += audit(details);
        const help = document.getElementById("help");
        help?.showModal();
        if (help) controls += audit(help);
        help?.close();
    }
    const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
    if (new Set(ids).size < ids.length) problems.add("two elements have one id");
    for (const e of document.querySelectorAll("[aria-labelledby], [aria-activedescendant]")) {
        const wanted = [e.getAttribute("aria-labelledby"), e.getAttribute("aria-activedescendant")].filter(Boolean);
        if (!wanted.every((id) => document.getElementById(id))) problems.add(`refers to nothing: ${named(e)}`);
    }
    for (const option of document.querySelectorAll("[role=option]")) {
        if (!option.closest("[role=listbox]") || !name(option)) problems.add(`option: ${named(option)}`);
    }
    if (document.querySelectorAll("h1").length !== 1 || !document.querySelector("main") || !root.lang) problems.add("landmarks");
    root.dataset.problems = [...problems].join(" | ");
    root.dataset.texts = texts;
    root.dataset.controls = controls;
"#;

#[test]
fn pages_are_accessible() {
    // As many threads as there are colours.
    let mut all = failing("balance");
    all.extend((3..10).map(|thread| event(9, thread, Op::Lock, "m", None, 3)));
    let mut document = document("balance", all.clone(), all);
    document["report"] = "bug: it failed".into();
    document["notes"] = json!(["a note"]);
    let Some(page) = Shown::open(&document, "#event=4", AUDIT) else { return };
    let counted = |name: &str| page.data(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    assert_eq!(page.data("problems"), Some(""));
    assert!(counted("texts") > 200 && counted("controls") > 40, "{:?}", page.data("texts"));

    let result = json!({
        "heisen": "0.1.0", "program": "prog", "strategy": "icb", "verdict": "bug", "complete": false,
        "executions": 1234, "steps": 5, "seconds": 0.5, "not_controlled": ["the program reads the time"],
        "findings": [{ "kind": "assertion", "message": "x", "place": "x.c:1", "preemptions": 2 }], "hints": [],
    });
    let index = html::index::page(&result, &["heisen replay x".into()], None);
    // The index has no script of its own, and forbids any.
    let index = index.replace("default-src 'none'; ", "");
    let page = Shown::open_any(&index, "", AUDIT).expect("Chromium was there before");
    assert_eq!(page.data("problems"), Some(""));
}
