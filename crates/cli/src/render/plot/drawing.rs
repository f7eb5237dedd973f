//! Draws charts side by side, with a legend below, as one SVG that loads nothing from elsewhere.

use super::{HEIGHT, Plot, WIDTH, class, escaped};
use std::fmt::Write;

/// The margins to the left of the charts (`LEFT`), above them (`TOP`) and between them (`BETWEEN`).
const LEFT: f64 = 80.0;
const TOP: f64 = 50.0;
const BETWEEN: f64 = 90.0;
/// The distance from the charts to the legend (`BELOW`), and between the lines of the legend (`LINE`).
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

/// Draws the charts. The legend has one line for each series; all charts have the same series in the same
/// order.
pub fn drawing(label: &str, plots: &[Plot], legend: &[String]) -> String {
    let width = LEFT + (WIDTH + BETWEEN) * plots.len() as f64 - BETWEEN + LEFT / 2.0;
    let height = TOP + HEIGHT + BELOW + LINE * legend.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
        escaped(label)
    );
    for (number, plot) in plots.iter().enumerate() {
        plot.draw(&mut out, LEFT + (WIDTH + BETWEEN) * number as f64, TOP);
    }
    for (number, words) in legend.iter().enumerate() {
        let y = TOP + HEIGHT + BELOW + LINE * number as f64;
        let (from, to, text) = (LEFT, LEFT + 28.0, LEFT + 38.0);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<line class=\"key {}\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>\n\
             <text class=\"legend\" x=\"{text}\" y=\"{y}\" dy=\"4\">{}</text>",
            class(number),
            escaped(words)
        );
    }
    out.push_str("</svg>\n");
    out
}
