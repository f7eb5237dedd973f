//! The figures as one drawing, which is whole in itself: nothing is loaded from elsewhere.

use super::Run;
use super::plot::{HEIGHT, Plot, Point, Scale, Series, WIDTH, class, escaped};
use crate::paint::{count, number};
use std::fmt::Write;

/// Around the charts.
const LEFT: f64 = 80.0;
const TOP: f64 = 50.0;
const BETWEEN: f64 = 90.0;
/// From the charts to the legend, and from line to line of it.
const BELOW: f64 = 70.0;
const LINE: f64 = 20.0;

const STYLE: &str = "\
svg { font: 13px system-ui, 'DejaVu Sans', sans-serif; }
.paper { fill: #fff; }
text { fill: #24292f; }
.title { font-weight: 600; font-size: 14px; }
.xtick, .name { text-anchor: middle; }
.ytick { text-anchor: end; }
.xtick, .ytick { font-size: 11px; }
.grid { stroke: #e4e7eb; }
.axis { fill: none; stroke: #57606a; }
.mark { stroke: #57606a; stroke-dasharray: 2 4; }
.series polyline, .key { fill: none; stroke-width: 2; }
.d1 polyline, .key.d1 { stroke-dasharray: 8 4; }
.d2 polyline, .key.d2 { stroke-dasharray: 2 3; }
.c0 { stroke: #0969da; } .c0 circle { fill: #0969da; }
.c1 { stroke: #bc4c00; } .c1 circle { fill: #bc4c00; }
.c2 { stroke: #1a7f37; } .c2 circle { fill: #1a7f37; }
.c3 { stroke: #8250df; } .c3 circle { fill: #8250df; }
.c4 { stroke: #bf3989; } .c4 circle { fill: #bf3989; }
.c5 { stroke: #7d6a00; } .c5 circle { fill: #7d6a00; }
.c6 { stroke: #24292f; } .c6 circle { fill: #24292f; }
.c7 { stroke: #0a9396; } .c7 circle { fill: #0a9396; }
circle { stroke: none; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; }
text { fill: #e6edf3; }
.grid { stroke: #262c36; }
.axis, .mark { stroke: #9198a1; }
.c0 { stroke: #58a6ff; } .c0 circle { fill: #58a6ff; }
.c1 { stroke: #f0883e; } .c1 circle { fill: #f0883e; }
.c2 { stroke: #3fb950; } .c2 circle { fill: #3fb950; }
.c3 { stroke: #bc8cff; } .c3 circle { fill: #bc8cff; }
.c4 { stroke: #ff7eb6; } .c4 circle { fill: #ff7eb6; }
.c5 { stroke: #d4b106; } .c5 circle { fill: #d4b106; }
.c6 { stroke: #e6edf3; } .c6 circle { fill: #e6edf3; }
.c7 { stroke: #39c5cf; } .c7 circle { fill: #39c5cf; }
}
";

/// Figures 1 and 4: the share of the classes that executions with at most so many preemptions show.
fn by_bound(runs: &[Run]) -> Plot {
    let series = runs.iter().map(|run| {
        let point = |within: &heisen_engine::coverage::Within| {
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

/// Figures 2, 5 and 6: how many classes there are after a number of executions.
fn growth(runs: &[Run]) -> Plot {
    let series = runs.iter().map(|run| {
        let point = |sample: &heisen_engine::coverage::Sample| {
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

fn largest(series: &[Series], value: impl Fn(&Point) -> f64) -> f64 {
    series.iter().flat_map(|series| &series.points).map(value).fold(0.0, f64::max)
}

/// The drawing.
pub fn svg(runs: &[Run]) -> String {
    let width = LEFT + 2.0 * WIDTH + BETWEEN + LEFT / 2.0;
    let height = TOP + HEIGHT + BELOW + LINE * runs.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"Coverage\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
    );
    by_bound(runs).draw(&mut out, LEFT, TOP);
    growth(runs).draw(&mut out, LEFT + WIDTH + BETWEEN, TOP);
    for (number, run) in runs.iter().enumerate() {
        let y = TOP + HEIGHT + BELOW + LINE * number as f64;
        let (from, to, text) = (LEFT, LEFT + 28.0, LEFT + 38.0);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<line class=\"key {}\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>\n\
             <text class=\"legend\" x=\"{text}\" y=\"{y}\" dy=\"4\">{}</text>",
            class(number),
            escaped(&run.sentence())
        );
    }
    out.push_str("</svg>\n");
    out
}

/// The drawing on a page, with the numbers by preemptions below.
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
