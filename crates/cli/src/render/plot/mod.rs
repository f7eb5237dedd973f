//! Draws one chart as a part of an SVG: axes with ticks and labels, and a line for each series.
//!
//! Colours are CSS classes. The style sheet of the drawing ([`drawing`]) defines them for light and dark
//! backgrounds.

mod drawing;

pub use drawing::drawing;

use std::fmt::Write;

/// Maps values to positions on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Linear, from 0 to this value.
    Linear(f64),
    /// Logarithmic, from 1 to this value.
    Log(f64),
}

impl Scale {
    /// A linear scale from 0 to a round number that is not below `largest`.
    pub fn linear(largest: f64) -> Scale {
        let step = step(largest.max(1.0));
        Scale::Linear((largest.max(1.0) / step).ceil() * step)
    }

    /// A logarithmic scale from 1 to 1, 2 or 5 times a power of ten that is not below `largest`.
    pub fn log(largest: f64) -> Scale {
        Scale::Log(round_up(largest.max(10.0)))
    }

    /// The position of a value on the axis, from 0 to 1.
    fn part(self, value: f64) -> f64 {
        match self {
            Scale::Linear(largest) => value / largest,
            Scale::Log(largest) => value.max(1.0).log10() / largest.log10(),
        }
    }

    fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear(largest) => {
                let step = step(largest);
                (0..=(largest / step).round() as u32).map(|n| f64::from(n) * step).collect()
            }
            Scale::Log(largest) => (0..=largest.log10().floor() as i32).map(|n| 10f64.powi(n)).collect(),
        }
    }
}

/// The distance between ticks: 1, 2 or 5 times a power of ten. It is at least 1 and makes at most ten
/// intervals.
fn step(largest: f64) -> f64 {
    round_up((largest / 10.0).max(1.0))
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powi(value.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|round| *round >= value).unwrap_or(value)
}

/// A point of a line, with its tooltip.
#[derive(Clone, Debug)]
pub struct Point {
    /// The value on the horizontal axis.
    pub x: f64,
    /// The value on the vertical axis.
    pub y: f64,
    /// The text of the tooltip.
    pub says: String,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name of the line.
    pub label: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The id of the SVG element.
    pub id: &'static str,
    /// The title above the chart.
    pub title: &'static str,
    /// The horizontal axis: its label and scale.
    pub x: (&'static str, Scale),
    /// The vertical axis: its label and scale.
    pub y: (&'static str, Scale),
    /// A value that a dashed horizontal line marks, for comparison.
    pub mark: Option<f64>,
    /// The lines.
    pub series: Vec<Series>,
}

/// The size of the area in which the lines are drawn, without labels.
const WIDTH: f64 = 370.0;
const HEIGHT: f64 = 260.0;
/// The number of colours. Further lines reuse the colours with dashes.
const COLOURS: usize = 8;

/// The CSS classes of a line: its colour and its dashes.
fn class(number: usize) -> String {
    format!("c{} d{}", number % COLOURS, number / COLOURS % 3)
}

impl Plot {
    /// Draws the chart with the upper left corner of its area at this position.
    fn draw(&self, out: &mut String, left: f64, top: f64) {
        // Writing to a String cannot fail.
        let _ = self.write(out, left, top);
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.1.part(x) * WIDTH, (1.0 - self.y.1.part(y)) * HEIGHT)
    }

    fn write(&self, out: &mut String, left: f64, top: f64) -> std::fmt::Result {
        writeln!(out, r#"<g id="{}" transform="translate({left} {top})">"#, self.id)?;
        writeln!(out, r#"<text class="title" x="0" y="-18">{}</text>"#, escaped(self.title))?;
        for tick in self.x.1.ticks() {
            let x = self.x.1.part(tick) * WIDTH;
            writeln!(out, r#"<line class="grid" x1="{x:.2}" y1="0" x2="{x:.2}" y2="{HEIGHT}"/>"#)?;
            let y = HEIGHT + 18.0;
            writeln!(out, r#"<text class="xtick" x="{x:.2}" y="{y}">{}</text>"#, label(tick))?;
        }
        for tick in self.y.1.ticks() {
            let y = (1.0 - self.y.1.part(tick)) * HEIGHT;
            writeln!(out, r#"<line class="grid" x1="0" y1="{y:.2}" x2="{WIDTH}" y2="{y:.2}"/>"#)?;
            writeln!(out, r#"<text class="ytick" x="-8" y="{y:.2}" dy="4">{}</text>"#, label(tick))?;
        }
        if let Some(mark) = self.mark {
            let (_, y) = self.at(0.0, mark);
            writeln!(out, r#"<line class="mark" x1="0" y1="{y:.2}" x2="{WIDTH}" y2="{y:.2}"/>"#)?;
        }
        writeln!(out, r#"<path class="axis" d="M0 0V{HEIGHT}H{WIDTH}"/>"#)?;
        let (x, y) = (WIDTH / 2.0, HEIGHT + 40.0);
        writeln!(out, r#"<text class="name" x="{x}" y="{y}">{}</text>"#, escaped(self.x.0))?;
        let y = HEIGHT / 2.0;
        let turned = format!("translate(-54 {y}) rotate(-90)");
        writeln!(out, r#"<text class="name" transform="{turned}">{}</text>"#, escaped(self.y.0))?;
        for (number, series) in self.series.iter().enumerate() {
            self.line(out, number, series)?;
        }
        writeln!(out, "</g>")
    }

    fn line(&self, out: &mut String, number: usize, series: &Series) -> std::fmt::Result {
        let place = |point: &Point| {
            let (x, y) = self.at(point.x, point.y);
            format!("{x:.2},{y:.2}")
        };
        let points: Vec<String> = series.points.iter().map(place).collect();
        writeln!(out, r#"<g class="series {}"><title>{}</title>"#, class(number), escaped(&series.label))?;
        writeln!(out, r#"<polyline points="{}"/>"#, points.join(" "))?;
        for point in &series.points {
            let (x, y) = self.at(point.x, point.y);
            let says = escaped(&point.says);
            writeln!(out, r#"<circle cx="{x:.2}" cy="{y:.2}" r="2.5"><title>{says}</title></circle>"#)?;
        }
        writeln!(out, "</g>")
    }
}

/// The largest value of all points.
pub fn largest(series: &[Series], value: impl Fn(&Point) -> f64) -> f64 {
    series.iter().flat_map(|series| &series.points).map(value).fold(0.0, f64::max)
}

/// The text of a tick.
fn label(value: f64) -> String {
    crate::render::paint::number(value as u64)
}

/// Text with the special characters of XML and HTML escaped.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        // XML cannot represent most control characters, not even escaped.
        c if c.is_control() => "\u{fffd}".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Scale::linear(4.0).ticks(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Scale::linear(0.0).ticks(), [0.0, 1.0]);
        assert_eq!(Scale::linear(13.0).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
        assert_eq!(Scale::linear(100.0).ticks().len(), 11);
        assert_eq!(Scale::log(7.0).ticks(), [1.0, 10.0]);
        assert_eq!(Scale::log(1000.0).ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(Scale::log(1001.0), Scale::Log(2_000.0));
        assert_eq!(Scale::log(2001.0).ticks(), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn places() {
        assert_eq!(Scale::linear(4.0).part(1.0), 0.25);
        assert_eq!(Scale::log(100.0).part(10.0), 0.5);
        // Values below 1 lie at the start of a logarithmic axis.
        assert_eq!(Scale::log(100.0).part(0.0), 0.0);
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a<b>&\"\u{1}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
    }
}
