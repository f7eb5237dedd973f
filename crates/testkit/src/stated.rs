//! Lists the examples, with the verdict that the head comment of each states.

use super::{check_json, root};
use std::path::{Path, PathBuf};

/// The verdict that the head comment of an example states.
#[derive(Debug, PartialEq)]
pub enum Stated {
    /// No schedule has a bug.
    Clean,
    /// The example has a bug.
    Bug {
        /// The kind of the finding.
        kind: String,
        /// The smallest number of preemptions that shows it.
        preemptions: u64,
    },
}

/// The stated verdict of an example, and the options to check it with.
pub fn stated(path: &Path) -> (Stated, Vec<String>) {
    let text = std::fs::read_to_string(path).expect("the example is readable");
    let line = text
        .lines()
        .filter_map(|l| l.trim_start_matches([' ', '*', '/']).strip_prefix("heisen: "))
        .next()
        .unwrap_or_else(|| panic!("{} states nothing", path.display()));
    let (line, options) = line.split_once(" with ").unwrap_or((line, ""));
    let options = options.split_whitespace().map(str::to_owned).collect();
    let mut words = line.split_whitespace();
    let stated = match words.next() {
        Some("clean") => Stated::Clean,
        Some(bug) => {
            let kind = bug.strip_prefix("bug=").expect("bug=KIND").to_owned();
            let preemptions =
                words.next().and_then(|w| w.strip_prefix("preemptions=")).expect("preemptions=N");
            Stated::Bug { kind, preemptions: preemptions.parse().expect("a number") }
        }
        None => panic!("{} states nothing", path.display()),
    };
    (stated, options)
}

/// The class of the bug that an example states, as explanations name it; `None` if it states none.
pub fn stated_class(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).expect("the example is readable");
    let line = text.lines().find(|line| line.contains("heisen: bug="))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("class=")).map(str::to_owned)
}

/// The examples in a directory, sorted.
pub fn examples(language: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(root().join("examples").join(language))
        .expect("the examples")
        .map(|e| e.expect("an entry").path())
        .filter(|path| path.extension().is_none_or(|e| e != "h"))
        .collect();
    all.sort();
    assert!(all.len() >= 2);
    all
}

/// Compiles an example in a directory, as a check of the source file does each time. Returns the program.
#[track_caller]
pub fn built(directory: &Path, example: &Path) -> String {
    let file = example.to_str().expect("a plain path");
    let json = check_json(directory, &["--executions", "1", "-o", "built", file]);
    json["program"].as_str().expect("a path").to_owned()
}

/// Calls `work` for each element, several in parallel, because most of the time passes in executions one
/// after the other.
pub fn each<T: Sync>(all: &[T], work: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    work(one);
                }
            });
        }
    });
}
