//! Figures as SVG: lines, bars with intervals, boxes, on linear and logarithmic axes.
//!
//! Two forms of one drawing: in the page, where colours come from its style sheet, the legend is
//! made of buttons and a script shows values; and as a file of its own, with legend and colours.
//! Every series is a group `s N` (N its number), so that a legend can switch it. Lines carry no
//! more points than a reader can see: a curve is thinned to the extremes of short stretches.

use maud::{html, Markup, PreEscaped};

use super::{Axis, Figure, Plot};
use crate::statistics::number;

/// Colours that are told apart also by those who see few (Okabe and Ito 2008).
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#9a8700", "#777777"];

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// More room below for names of categories that are written aslant.
const ASLANT: f64 = 44.0;
/// Least width of a bar or box.
const BAR: f64 = 7.0;
/// A mark so close to the right edge is written to the left of it.
const EDGE: f64 = 6.0;
/// Points of a line in a drawing, at most (twice as many extremes).
const POINTS: usize = 150;

/// The colour of series `n`: in the page a variable of its style sheet, which knows light and dark.
pub fn colour(n: usize, alone: bool) -> String {
    let n = n % COLOURS.len();
    if alone {
        COLOURS[n].into()
    } else {
        format!("var(--c{n})")
    }
}

/// True if series `n` is dashed, as all are beyond the colours there are.
pub fn dashed(n: usize) -> bool {
    n >= COLOURS.len()
}

/// The names of a figure's series.
pub fn series(figure: &Figure) -> Vec<&str> {
    match &figure.plot {
        Plot::Lines(lines) => lines.iter().map(|line| line.name.as_str()).collect(),
        Plot::Bars(_, bars) => bars.iter().map(|bars| bars.name.as_str()).collect(),
        Plot::Boxes(_, boxes) => boxes.iter().map(|boxes| boxes.name.as_str()).collect(),
    }
}

/// A scale of one axis.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale for `values` on `axis`; None if there are none. Bars stand on zero.
    fn new(values: &[f64], axis: &Axis, on_zero: bool, (from, to): (f64, f64)) -> Option<Scale> {
        let shown = |value: &&f64| value.is_finite() && (!axis.log || **value > 0.0);
        let all = || values.iter().filter(shown).copied();
        let (mut low, mut high) =
            (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        if !low.is_finite() {
            return None;
        }
        if let Some(limits) = axis.limits {
            (low, high) = limits;
        }
        if axis.log {
            // The shortest bar must still be seen: half a decade at least.
            low = if on_zero { low / 3.0 } else { usual_least(all().collect(), low) };
            (low, high) = (low.log10().floor(), high.log10().ceil());
            // Seven decades show everything that matters above.
            low = low.max(high - 7.0);
            if high <= low {
                high = low + 1.0;
            }
        } else {
            if on_zero || low < 0.35 * high {
                low = low.min(0.0);
            }
            if high <= low {
                high = low + low.abs().max(1.0);
            }
            let step = step(high - low);
            (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        }
        Some(Scale { low, high, log: axis.log, from, to })
    }

    /// A scale for coordinates across: as `new`, but it ends where a linear one's values end.
    fn across(values: &[f64], axis: &Axis, ends: (f64, f64)) -> Option<Scale> {
        let mut scale = Scale::new(values, axis, false, ends)?;
        if !axis.log {
            let greatest =
                values.iter().copied().filter(|x| x.is_finite()).fold(f64::MIN, f64::max);
            if greatest > scale.low {
                scale.high = greatest;
            }
        }
        Some(scale)
    }

    fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.max(1e-12).log10() } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(-0.02, 1.02);
        self.from + share * (self.to - self.from)
    }

    /// Both ends as values and as pixels, and whether it is logarithmic.
    fn numbers(&self) -> String {
        let Scale { low, high, from, to, log } = self;
        format!("{low} {high} {from} {to} {}", u8::from(*log))
    }

    fn marks(&self) -> Vec<f64> {
        if self.log {
            let decades = self.low.round() as i32..=self.high.round() as i32;
            return decades.map(|decade| 10f64.powi(decade)).collect();
        }
        let step = step(self.high - self.low);
        // Multiples of the step, with room for rounding at both ends.
        let first = (self.low / step - 1e-6).ceil() as i64;
        let last = (self.high / step + 1e-6).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }
}

/// The least value that a logarithmic axis must show: of many values the lowest fiftieth are left
/// to its edge, or a distribution's few fastest packets would take half of it.
fn usual_least(mut values: Vec<f64>, least: f64) -> f64 {
    const MANY: usize = 100;
    if values.len() < MANY {
        return least;
    }
    values.sort_by(f64::total_cmp);
    values[values.len() / 50]
}

/// A round step that divides `span` into four to eight parts.
fn step(span: f64) -> f64 {
    let rough = span / 5.0;
    let decade = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| rough <= factor * decade);
    factor.unwrap_or(10.0) * decade
}

/// A mark's label.
fn mark(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size < 1e-9 => "0".into(),
        _ if size >= 1e9 => format!("{}G", trim(value / 1e9)),
        _ if size >= 1e6 => format!("{}M", trim(value / 1e6)),
        _ if size >= 1e4 => format!("{}k", trim(value / 1e3)),
        _ => trim(value),
    }
}

fn trim(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The drawing; None if there is nothing to draw. `alone`: as a file of its own.
pub fn draw(figure: &Figure, alone: bool) -> Option<Markup> {
    let categories: &[String] = match &figure.plot {
        Plot::Lines(_) => &[],
        Plot::Bars(categories, _) | Plot::Boxes(categories, _) => categories,
    };
    let names = series(figure);
    let bars = categories.len() * names.len();
    let width = WIDTH.max(LEFT + RIGHT + bars as f64 * BAR + categories.len() as f64 * 8.0);
    let room = (width - LEFT - RIGHT) / categories.len().max(1) as f64;
    let longest = categories.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let aslant = longest as f64 * 6.0 > room;
    let height = HEIGHT + if aslant { ASLANT } else { 0.0 };
    let floor = HEIGHT - BOTTOM;
    let y = y_scale(figure, (floor, TOP))?;
    let wide = (room - 8.0) / names.len().max(1) as f64;
    let left = |at: usize, n: usize| LEFT + at as f64 * room + 4.0 + n as f64 * wide;
    let title = |at: usize, n: usize| format!("{} · {}", categories[at], names[n]);

    let drawn = match &figure.plot {
        Plot::Lines(lines) => {
            let xs: Vec<f64> =
                lines.iter().flat_map(|line| line.points.iter().map(|point| point[0])).collect();
            let x = Scale::across(&xs, &figure.x, (LEFT, width - RIGHT))?;
            html! {
                (x_marks(&x, floor))
                text .axis x=(tenths((LEFT + width - RIGHT) / 2.0)) y=(tenths(height - 6.0))
                    text-anchor="middle" { (figure.x.label) }
                @for (n, line) in lines.iter().enumerate() {
                    g class={ "s s" (n) } style=(style(n, false, alone)) {
                        polyline fill="none" points=(coordinates(&line.points, &x, &y)) {}
                    }
                }
                // For the page's script: pixels to values.
                desc { (x.numbers()) " " (y.numbers()) }
            }
        }
        Plot::Bars(_, series) => html! {
            (category_names(categories, room, aslant, floor))
            @for (n, bars) in series.iter().enumerate() {
                g class={ "s s" (n) } style=(style(n, true, alone)) {
                    @for (at, value) in bars.values.iter().enumerate() {
                        @if let Some(value) = value {
                            (bar(left(at, n), wide, *value, &y, &title(at, n)))
                        }
                    }
                }
            }
        },
        Plot::Boxes(_, series) => html! {
            (category_names(categories, room, aslant, floor))
            @for (n, boxes) in series.iter().enumerate() {
                g class={ "s s" (n) } style=(style(n, true, alone)) {
                    @for (at, five) in boxes.values.iter().enumerate() {
                        @if let Some(five) = five {
                            (five_box(left(at, n), wide, five, &y, &title(at, n)))
                        }
                    }
                }
            }
        },
    };
    let across = tenths((floor + TOP) / 2.0);
    let body = html! {
        (grid(&y, width))
        (drawn)
        text .axis transform={ "translate(11 " (across) ") rotate(-90)" } text-anchor="middle" {
            (figure.y.label)
        }
    };
    Some(if alone {
        framed(figure, width, height, &body)
    } else {
        html! {
            svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(figure.title)
                style={ "min-width:" (tenths(width * 0.8)) "px" } { (body) }
        }
    })
}

/// A coordinate to a tenth of a unit.
fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// Colours and dashes of the group of series `n`.
fn style(n: usize, filled: bool, alone: bool) -> String {
    let colour = colour(n, alone);
    let fill = if filled { format!("fill:{colour};") } else { String::new() };
    let dash = if dashed(n) { "stroke-dasharray:4 2;" } else { "" };
    format!("{fill}stroke:{colour};{dash}")
}

/// Style of a drawing without a page around it.
const ALONE: &str = ".grid{stroke:#ddd}.s{stroke-width:1.4}polyline{fill:none}\
    .box{fill-opacity:.35}.whisker{stroke:#333}desc{display:none}";

/// A file of its own: title, legend, colours.
fn framed(figure: &Figure, width: f64, height: f64, body: &Markup) -> Markup {
    let (mut places, mut x, mut y) = (Vec::new(), LEFT, 38.0);
    for name in series(figure) {
        let long = name.chars().count() as f64 * 6.2 + 26.0;
        if x + long > width && x > LEFT {
            (x, y) = (LEFT, y + 16.0);
        }
        places.push((name, x, y));
        x += long;
    }
    let head = y + 8.0;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height + head) }
            width=(width) height=(height + head) font-family="DejaVu Sans, sans-serif"
            font-size="11" {
            style { (PreEscaped(ALONE)) }
            rect width="100%" height="100%" fill="#fff" {}
            text x=(LEFT) y="18" font-size="13" { (figure.title) }
            @for (n, (name, x, y)) in places.into_iter().enumerate() {
                @let (colour, dashed) = (colour(n, true), dashed(n));
                rect x=(tenths(x)) y=(tenths(y - 9.0)) width="10" height="10"
                    fill=(if dashed { "none" } else { &colour })
                    stroke=[dashed.then_some(&colour)] stroke-dasharray=[dashed.then_some("3 2")] {}
                text x=(tenths(x + 14.0)) y=(tenths(y)) { (name) }
            }
            g transform={ "translate(0 " (head) ")" } { (body) }
        }
    }
}

fn y_scale(figure: &Figure, ends: (f64, f64)) -> Option<Scale> {
    let (values, on_zero): (Vec<f64>, bool) = match &figure.plot {
        Plot::Lines(lines) => {
            let points = lines.iter().flat_map(|line| line.points.iter().map(|point| point[1]));
            (points.collect(), false)
        }
        Plot::Bars(_, series) => {
            let tops = series.iter().flat_map(|bars| bars.values.iter().flatten());
            (tops.flat_map(|(value, half)| [*value, value + half]).collect(), true)
        }
        Plot::Boxes(_, series) => {
            let all = series.iter().flat_map(|boxes| boxes.values.iter().flatten());
            (all.flatten().copied().collect(), false)
        }
    };
    Scale::new(&values, &figure.y, on_zero, ends)
}

fn grid(y: &Scale, width: f64) -> Markup {
    html! {
        @for value in y.marks() {
            @let at = y.at(value);
            line .grid x1=(LEFT) x2=(tenths(width - RIGHT)) y1=(tenths(at)) y2=(tenths(at)) {}
            text x=(LEFT - 5.0) y=(tenths(at + 4.0)) text-anchor="end" { (mark(value)) }
        }
    }
}

fn x_marks(x: &Scale, floor: f64) -> Markup {
    let marks = x.marks();
    html! {
        @for value in marks.iter().step_by(marks.len().div_ceil(8).max(1)) {
            @let at = x.at(*value);
            line .grid x1=(tenths(at)) x2=(tenths(at)) y1=(TOP) y2=(floor) {}
            // The last one must not leave the drawing.
            @let last = at > x.to - EDGE;
            text x=(tenths(if last { x.to + RIGHT - 2.0 } else { at })) y=(floor + 15.0)
                text-anchor=(if last { "end" } else { "middle" }) { (mark(*value)) }
        }
    }
}

fn category_names(names: &[String], room: f64, aslant: bool, floor: f64) -> Markup {
    let x = |n: usize| tenths(LEFT + (n as f64 + 0.5) * room);
    html! {
        @for (n, name) in names.iter().enumerate() {
            @if aslant {
                text transform={ "translate(" (x(n)) " " (floor + 13.0) ") rotate(-35)" }
                    text-anchor="end" { (name) }
            } @else {
                text x=(x(n)) y=(floor + 16.0) text-anchor="middle" { (name) }
            }
        }
    }
}

/// Points as SVG's polylines have them.
fn coordinates(points: &[[f64; 2]], x: &Scale, y: &Scale) -> String {
    let shown = |[px, py]: &[f64; 2]| px.is_finite() && py.is_finite() && (!x.log || *px > 0.0);
    let place = |[px, py]: [f64; 2]| format!("{:.1},{:.1} ", x.at(px), y.at(py));
    thinned(points).into_iter().filter(shown).map(place).collect()
}

/// At most about twice [`POINTS`] points: of every stretch the least and the greatest, in order.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    if points.len() <= 2 * POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(POINTS);
    let mut out = Vec::with_capacity(2 * POINTS);
    for part in points.chunks(stretch) {
        let by = |a: &usize, b: &usize| part[*a][1].total_cmp(&part[*b][1]);
        let least = (0..part.len()).min_by(by).unwrap_or(0);
        let greatest = (0..part.len()).max_by(by).unwrap_or(0);
        let (first, second) = (least.min(greatest), least.max(greatest));
        out.push(part[first]);
        if second != first {
            out.push(part[second]);
        }
    }
    out
}

fn bar(left: f64, wide: f64, (value, half): (f64, f64), y: &Scale, title: &str) -> Markup {
    let base = if y.log { y.from } else { y.at(0.0) };
    let top = y.at(value);
    let x = tenths(left + wide / 2.0 - 0.5);
    let least = (value - half).max(if y.log { value / 10.0 } else { f64::MIN });
    html! {
        rect x=(tenths(left)) width=(tenths((wide - 1.0).max(1.0))) y=(tenths(top.min(base)))
            height=(tenths((base - top).abs())) stroke="none" {
            title { (title) ": " (number(value)) @if half > 0.0 { " ± " (number(half)) } }
        }
        @if half > 0.0 {
            line .whisker x1=(x) x2=(x) y1=(tenths(y.at(least))) y2=(tenths(y.at(value + half))) {}
        }
    }
}

fn five_box(left: f64, wide: f64, five: &[f64; 5], y: &Scale, title: &str) -> Markup {
    let [least, low, median, high, greatest] = five.map(|value| y.at(value));
    let (x, right) = (tenths(left + wide / 2.0 - 0.5), left + (wide - 1.0).max(1.0));
    let [a, b, c, d, e] = five.map(number);
    html! {
        g {
            title { (title) ": " (a) " | " (b) " " (c) " " (d) " | " (e) }
            line .whisker x1=(x) x2=(x) y1=(tenths(least)) y2=(tenths(greatest)) {}
            rect .box x=(tenths(left)) width=(tenths(right - left)) y=(tenths(high))
                height=(tenths((low - high).max(0.5))) {}
            line x1=(tenths(left)) x2=(tenths(right)) y1=(tenths(median)) y2=(tenths(median))
                stroke-width="2" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Line;

    fn figure(points: Vec<[f64; 2]>, y: Axis) -> Figure {
        let plot = Plot::Lines(vec![Line { name: "a<b".into(), points }]);
        Figure::new(("f", "A & B"), (Axis::linear("x"), y), plot)
    }

    #[test]
    fn names_are_escaped_and_values_drawn() {
        let svg = draw(&figure(vec![[0.0, 1.0], [1.0, 2.0]], Axis::linear("y")), true);
        let svg = svg.expect("two points").into_string();
        assert!(svg.contains("a&lt;b") && svg.contains("A &amp; B") && !svg.contains("NaN"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(draw(&figure(Vec::new(), Axis::linear("y")), false).is_none());
        assert!(draw(&figure(vec![[0.0, 0.0]], Axis::log("y")), false).is_none());
    }

    #[test]
    fn thinning_keeps_peaks() {
        let mut points: Vec<[f64; 2]> = (0..10_000).map(|n| [f64::from(n), 1.0]).collect();
        points[5_003][1] = 99.0;
        let thin = thinned(&points);
        assert!(thin.len() <= 2 * POINTS && thin.iter().any(|point| point[1] == 99.0));
        assert!(thin.windows(2).all(|pair| pair[0][0] < pair[1][0]));
    }

    #[test]
    fn marks_are_round() {
        let scale = Scale::new(&[0.0, 9.7], &Axis::linear(""), true, (0.0, 1.0)).expect("values");
        assert_eq!(scale.marks(), vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let scale = Scale::new(&[0.3, 70.0], &Axis::log(""), false, (0.0, 1.0)).expect("values");
        assert_eq!(scale.marks(), vec![0.1, 1.0, 10.0, 100.0]);
    }
}
