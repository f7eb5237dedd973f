//! Renders the figures of `heisen coverage` as one SVG or HTML file, which loads nothing from elsewhere.

use crate::render::coverage::Run;
use crate::render::paint::{count, number};
use crate::render::plot::{Plot, Point, Scale, Series, drawing, escaped, largest};
use std::fmt::Write;

/// Figures 1 and 4 of the ICB paper: the share of the classes that executions within a number of preemptions
/// show.
fn by_bound(runs: &[Run]) -> Plot {
    let series = runs.iter().map(|run| {
        let point = |within: &heisen_engine::check::coverage::Within| {
            let share = run.share(within.counts.classes);
            let says = format!(
                "at most {}: {} of {} classes, {share:.1} %",
                count(within.preemptions.into(), "preemption"),
                number(within.counts.classes),
                number(run.record.total().counts.classes)
            );
            Point { x: f64::from(within.preemptions), y: share, says }
        };
        Series { label: run.label.clone(), points: run.record.bounds.iter().map(point).collect() }
    });
    let series: Vec<Series> = series.collect();
    Plot {
        id: "bounds",
        title: "Share of the classes within a number of preemptions",
        x: ("preemptions, at most", Scale::linear(largest(&series, |point| point.x))),
        y: ("% of the classes seen", Scale::linear(100.0)),
        mark: Some(90.0),
        series,
    }
}

/// Figures 2, 5 and 6 of the ICB paper: the number of classes after a number of executions.
fn growth(runs: &[Run]) -> Plot {
    let series = runs.iter().map(|run| {
        let point = |sample: &heisen_engine::check::coverage::Sample| {
            let (executions, classes) = (sample.executions, sample.counts.classes);
            let says = format!("{}: {} classes", count(executions, "execution"), number(classes));
            Point { x: executions as f64, y: classes as f64, says }
        };
        Series { label: run.label.clone(), points: run.record.growth.iter().map(point).collect() }
    });
    let series: Vec<Series> = series.collect();
    Plot {
        id: "growth",
        title: "Classes over executions",
        x: ("executions", Scale::log(largest(&series, |point| point.x))),
        y: ("classes", Scale::log(largest(&series, |point| point.y))),
        mark: None,
        series,
    }
}

/// The figures as SVG.
pub fn svg(runs: &[Run]) -> String {
    let legend: Vec<String> = runs.iter().map(Run::sentence).collect();
    drawing("Coverage", &[by_bound(runs), growth(runs)], &legend)
}

/// The figures as an HTML page, with tables of the counts by preemptions below.
pub fn html(runs: &[Run]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Coverage</title>\n<style>\n\
         :root {{ color-scheme: light dark; }}\n\
         body {{ font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; }}\n\
         svg {{ max-width: 100%; height: auto; }}\n\
         table {{ border-collapse: collapse; }}\n\
         th, td {{ text-align: right; padding: .2em .8em; border-bottom: 1px solid #8884; }}\n\
         </style>\n</head>\n<body>\n<h1>Coverage</h1>\n{}",
        svg(runs)
    );
    for run in runs {
        let _ = write!(out, "{}", table(run));
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn table(run: &Run) -> String {
    let mut out = format!(
        "<h2>{}</h2>\n<table>\n<tr><th>preemptions</th><th>executions</th><th>classes</th><th>share</th>\
         <th>racing pairs</th><th>sync pairs</th><th>location pairs</th></tr>\n",
        escaped(&run.sentence())
    );
    for within in &run.record.bounds {
        let counts = &within.counts;
        let races = if run.record.race_check { number(counts.races) } else { "-".to_owned() };
        let _ = writeln!(
            out,
            "<tr><td>≤ {}</td><td>{}</td><td>{}</td><td>{:.1} %</td><td>{races}</td><td>{}</td><td>{}</td></tr>",
            within.preemptions,
            number(within.executions),
            number(counts.classes),
            run.share(counts.classes),
            number(counts.sync_pairs),
            number(counts.location_pairs)
        );
    }
    out + "</table>\n"
}
