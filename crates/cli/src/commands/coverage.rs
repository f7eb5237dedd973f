//! `heisen coverage`: renders the figures of "Iterative context bounding" (PLDI'07) for recorded searches.
//!
//! `heisen check --coverage` records a search. The figures are the share of classes by preemptions (figures 1
//! and 4) and classes over executions (figures 2, 5 and 6).

use crate::cli::args::CoverageArgs;
use crate::cli::exit;
use crate::render::coverage::Run;
use crate::render::paint::{Paint, print};
use crate::render::result_file::check_file;
use crate::render::{coverage_figure as figure, coverage_table as table};
use heisen_engine::Error;
use heisen_engine::check::coverage::Record;
use heisen_engine::platform::atomic_file;
use std::collections::BTreeSet;
use std::path::PathBuf;

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
        Some((path, form)) => atomic_file::write(path, form(&runs).as_bytes())?,
        None => print(&table::render(&runs, Paint::new(args.color)), false),
    }
    Ok(exit::CLEAN)
}

/// Labels each record with those of program, strategy and seed in which the records differ. If they do not
/// differ, the label is the program and strategy. The path is added if labels are equal.
fn labelled(records: Vec<Record>, paths: &[PathBuf]) -> Vec<Run> {
    let strategy = |record: &Record| {
        let reduced = if record.reduce { " --reduce" } else { "" };
        format!("{}{reduced}", record.strategy)
    };
    let seed = |record: &Record| record.seed.map_or(String::new(), |seed| format!("seed {seed}"));
    let parts: Vec<[String; 3]> = records.iter().map(|r| [r.program.clone(), strategy(r), seed(r)]).collect();
    let differs = |part: usize| parts.iter().any(|p| p[part] != parts[0][part]);
    // Only samplers have a seed.
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
