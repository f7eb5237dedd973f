//! Tests that read the drawings back: each point is where the axes say.

use super::{SECTIONS, each, record};
use heisen_testkit::{check_json, heisen, run, scratch};

/// Reads a chart back. Returns the values of the points of each series, computed from the ticks of the axes.
fn read_chart(svg: &str, id: &str, log: (bool, bool)) -> Vec<Vec<(f64, f64)>> {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|e| panic!("{e}\n{svg}"));
    let node = |n: &roxmltree::Node<'_, '_>| n.attribute("id") == Some(id);
    let chart = document.descendants().find(node).expect("the chart");
    let value = |text: &str| text.replace(' ', "").parse::<f64>().expect("a number");
    // Two ticks define the scale.
    let scale = |class: &str, place: &str, log: bool| {
        let ticks: Vec<(f64, f64)> = chart
            .descendants()
            .filter(|n| n.attribute("class") == Some(class))
            .map(|n| (value(n.attribute(place).expect("a place")), value(n.text().expect("a label"))))
            .map(|(at, value)| (at, if log { value.log10() } else { value }))
            .collect();
        assert!(ticks.len() >= 2, "{ticks:?}");
        let ((a, va), (b, vb)) = (ticks[0], ticks[ticks.len() - 1]);
        move |at: f64| {
            let found = va + (at - a) / (b - a) * (vb - va);
            if log { 10f64.powf(found) } else { found }
        }
    };
    let (x, y) = (scale("xtick", "x", log.0), scale("ytick", "y", log.1));
    let points = |text: &str| {
        let pair = |pair: &str| {
            let (a, b) = pair.split_once(',').expect("a pair");
            (x(value(a)), y(value(b)))
        };
        text.split(' ').map(pair).collect()
    };
    let lines = chart.descendants().filter(|n| n.has_tag_name("polyline"));
    lines.map(|n| points(n.attribute("points").expect("points"))).collect()
}

#[track_caller]
fn close(found: &[(f64, f64)], wanted: &[(f64, f64)]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        let near = |a: f64, b: f64| (a - b).abs() <= 0.002 * b.abs().max(1.0) + 0.02;
        assert!(near(found.0, wanted.0) && near(found.1, wanted.1), "{found:?} is not {wanted:?}");
    }
}

#[test]
fn the_figures_show_what_is_recorded() {
    let directory = scratch();
    let at = directory.path();
    std::fs::write(at.join("p.c"), SECTIONS).expect("the program");
    let runs = ["icb.json", "dfs.json", "random.json"];
    for name in runs {
        let strategy = name.trim_end_matches(".json");
        let bound: &[&str] = if strategy == "icb" { &["--bound", "20"] } else { &[] };
        let args = ["--strategy", strategy, "--executions", "600", "--coverage", name, "p.c"];
        check_json(at, &[bound, &args].concat());
    }
    for file in ["all.svg", "all.html"] {
        let ran = run(heisen(at).args(["coverage", "-o", file]).args(runs)).expect(0);
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
        let text = std::fs::read_to_string(at.join(file)).expect("a drawing");
        let svg = &text[text.find("<svg").expect("a drawing")..text.find("</svg>").expect("its end") + 6];
        let (bounds, growth) =
            (read_chart(svg, "bounds", (false, false)), read_chart(svg, "growth", (true, true)));
        assert_eq!((bounds.len(), growth.len()), (3, 3));
        for (index, name) in runs.iter().enumerate() {
            let record = record(at, name);
            let pairs = |list: &str, x: &str, share: f64| -> Vec<(f64, f64)> {
                let ys = each(&record, list, "classes").into_iter().map(|y| y as f64 * share);
                each(&record, list, x).into_iter().map(|x| x as f64).zip(ys).collect()
            };
            let all = *each(&record, "growth", "classes").last().expect("a sample") as f64;
            close(&bounds[index], &pairs("bounds", "preemptions", 100.0 / all));
            close(&growth[index], &pairs("growth", "executions", 1.0));
            let label = name.trim_end_matches(".json");
            assert!(svg.contains(&format!(">{label}")), "{label}");
        }
        // The file loads nothing from the network.
        let links = text.matches("http").count();
        assert_eq!(links, text.matches("http://www.w3.org/2000/svg").count());
    }
    let ran = run(heisen(at).args(["coverage"]).args(runs)).expect(0);
    assert!(ran.out.contains("\nClasses over executions\n"), "{}", ran.out);
    let rows: Vec<Vec<&str>> =
        ran.out.lines().filter(|l| l.contains('≤')).map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..6], ["≤", "0", "3", "2", "10.0", "%"], "{}", ran.out);
}
