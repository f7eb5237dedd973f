//! One chart as a part of an SVG: axes with ticks and labels, and a line for each series. Colours are classes, which the style
//! of the whole ([`drawing`]) gives a meaning, so that they fit light and dark surroundings.

mod drawing;

pub use drawing::drawing;

use std::fmt::Write;

/// How values become lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From 0 to that.
    Linear(f64),
    /// From 1 to that, each power of ten as long as the others.
    Log(f64),
}

impl Scale {
    /// From 0 to a round number that is at least this.
    pub fn linear(largest: f64) -> Scale {
        let step = step(largest.max(1.0));
        Scale::Linear((largest.max(1.0) / step).ceil() * step)
    }

    /// From 1 to 1, 2 or 5 times a power of ten that is at least this.
    pub fn log(largest: f64) -> Scale {
        Scale::Log(round_up(largest.max(10.0)))
    }

    /// Where a value lies, from 0 to 1.
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

/// The distance of ticks: 1, 2 or 5 times a power of ten, at most ten of them, and nothing between whole numbers.
fn step(largest: f64) -> f64 {
    round_up((largest / 10.0).max(1.0))
}

/// The next number, of those that are 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powi(value.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|round| *round >= value).unwrap_or(value)
}

/// A point: its place, and what it says when it is pointed at.
#[derive(Clone, Debug)]
pub struct Point {
    /// Along the axis to the right.
    pub x: f64,
    /// Along the axis upwards.
    pub y: f64,
    /// What it says.
    pub says: String,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is called.
    pub label: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its name in the drawing.
    pub id: &'static str,
    /// What stands above it.
    pub title: &'static str,
    /// The axis to the right: what it is of, and its scale.
    pub x: (&'static str, Scale),
    /// The axis upwards.
    pub y: (&'static str, Scale),
    /// A height to compare with.
    pub mark: Option<f64>,
    /// The lines.
    pub series: Vec<Series>,
}

/// The size of the area that the lines are in.
const WIDTH: f64 = 370.0;
const HEIGHT: f64 = 260.0;
/// Colours, after which lines are told apart by dashes.
const COLOURS: usize = 8;

/// The class of a line: its colour, and its dashes.
fn class(number: usize) -> String {
    format!("c{} d{}", number % COLOURS, number / COLOURS % 3)
}

impl Plot {
    /// Draws it with the upper left corner of the area at that place.
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

/// A number as it stands at an axis.
fn label(value: f64) -> String {
    crate::render::paint::number(value as u64)
}

/// Text as XML and HTML take it.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        // No form of XML has room for these.
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
        // What is nothing lies on the axis.
        assert_eq!(Scale::log(100.0).part(0.0), 0.0);
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a<b>&\"\u{1}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
    }
}
