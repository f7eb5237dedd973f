//! `heisen coverage`: the figures of "Iterative context bounding" (PLDI'07), of searches that `heisen check --coverage` has
//! recorded: the share of classes by preemptions (figures 1 and 4), and classes over executions (figures 2, 5 and 6).
//!
//! | module | what it is |
//! | --- | --- |
//! | `text` | both as tables in the terminal |
//! | `figure` | both as one drawing |

mod figure;
mod text;

use crate::args::CoverageArgs;
use crate::check::check_file;
use crate::exit;
use crate::paint::{Paint, count, number, print};
use heisen_engine::Error;
use heisen_engine::check::coverage::Record;
use heisen_engine::check::saved::write_whole;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A record, and what it is called among the others.
#[derive(Debug)]
struct Run {
    record: Record,
    label: String,
}

impl Run {
    /// What is to be known of it besides the lines: `work_stealing_fixed: 52 classes in 80 executions; all schedules explored`.
    fn sentence(&self) -> String {
        let total = self.record.total();
        let classes = match total.counts.classes {
            1 => "1 class".to_owned(),
            many => format!("{} classes", number(many)),
        };
        let how_far = match (self.record.whole, self.record.bound) {
            (true, _) => "all schedules explored".to_owned(),
            (_, Some(bound)) => {
                format!("all schedules with at most {} explored", count(bound.into(), "preemption"))
            }
            _ => "not all schedules explored".to_owned(),
        };
        format!("{}: {classes} in {}; {how_far}", self.label, count(total.executions, "execution"))
    }

    /// The share of its classes, in percent.
    fn share(&self, classes: u64) -> f64 {
        100.0 * classes as f64 / self.record.total().counts.classes.max(1) as f64
    }
}

pub fn run(args: &CoverageArgs) -> Result<u8, Error> {
    let form = args.output.as_deref().map(|path| {
        let form = match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => figure::svg,
            Some("html") => figure::html,
            _ => {
                let shown = path.display();
                return Err(Error::Input(format!("-o {shown}: write FILE.svg or FILE.html")));
            }
        };
        check_file("-o", path)?;
        Ok((path, form))
    });
    let form = form.transpose()?;
    let records = args.runs.iter().map(|path| Record::read(path)).collect::<Result<Vec<_>, _>>()?;
    let runs = labelled(records, &args.runs);
    match form {
        Some((path, form)) => write_whole(path, form(&runs).as_bytes())?,
        None => print(&text::render(&runs, Paint::new(args.color)), false),
    }
    Ok(exit::CLEAN)
}

/// Gives each its name: what it does not have in common with the others, and of a single one the program and strategy.
fn labelled(records: Vec<Record>, paths: &[PathBuf]) -> Vec<Run> {
    let strategy = |record: &Record| {
        let reduced = if record.reduce { " --reduce" } else { "" };
        format!("{}{reduced}", record.strategy)
    };
    let seed = |record: &Record| record.seed.map_or(String::new(), |seed| format!("seed {seed}"));
    let parts: Vec<[String; 3]> = records.iter().map(|r| [r.program.clone(), strategy(r), seed(r)]).collect();
    let differs = |part: usize| parts.iter().any(|p| p[part] != parts[0][part]);
    // Those that do not sample have none.
    let seeds = parts.iter().map(|p| &p[2]).filter(|seed| !seed.is_empty()).collect::<BTreeSet<_>>();
    let mut shown = [differs(0), differs(1), seeds.len() > 1];
    if shown == [false; 3] {
        shown = [true, true, false];
    }
    let label = |parts: &[String; 3]| {
        let words = parts.iter().zip(shown).filter(|(word, shown)| *shown && !word.is_empty());
        words.map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(", ")
    };
    let labels: Vec<String> = parts.iter().map(label).collect();
    let distinct = labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
    let whole = |(label, path): (String, &PathBuf)| {
        if distinct { label } else { format!("{label} ({})", path.display()) }
    };
    let labels = labels.into_iter().zip(paths).map(whole);
    labels.zip(records).map(|(label, record)| Run { record, label }).collect()
}
