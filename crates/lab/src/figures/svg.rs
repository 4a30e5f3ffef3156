//! Figures as SVG: lines, runs as dots with their median, boxes, on linear and logarithmic axes.
//!
//! One drawing has two forms. In the page, colours come from the page's style sheet, the legend is
//! made of buttons, and a script shows values. As a file of its own, it holds legend and colours.
//! Every series is a group `s N` (N its number), so that a legend can switch it. Lines carry no
//! more points than a reader can see: a curve is thinned to the extremes of short stretches.

use maud::{html, Markup, PreEscaped};

use super::styles::{styles, Style, ALONE};
use super::{Axis, Dots, Figure, Plot, Stated};
use crate::statistics::{number, quantile};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// More room below for names of categories that are written aslant.
const ASLANT: f64 = 44.0;
/// Least width of a group of dots or a box.
const BAR: f64 = 9.0;
/// A mark so close to the right edge is written to the left of it.
const EDGE: f64 = 6.0;
/// Marks of clipped points are as far apart, in pixels.
const CLIPS: f64 = 7.0;
/// Markers along a line that has many points.
const MARKS: usize = 6;
/// Points of a line in a drawing, at most (twice as many extremes).
const POINTS: usize = 150;

/// The names of a figure's series.
pub fn series(figure: &Figure) -> Vec<&str> {
    match &figure.plot {
        Plot::Lines(lines) => lines.iter().map(|line| line.name.as_str()).collect(),
        Plot::Dots(_, dots) => dots.iter().map(|dots| dots.name.as_str()).collect(),
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
    /// A scale for `values` on `axis`; None if there are none.
    fn new(values: &[f64], axis: &Axis, (from, to): (f64, f64)) -> Option<Scale> {
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
            low = usual_least(all().collect(), low);
            (low, high) = (round_below(low).log10(), (1.0 / round_below(1.0 / high)).log10());
            // Seven decades show everything that matters above.
            low = low.max(high - 7.0);
            if high <= low {
                high = low + 1.0;
            }
        } else {
            if low < 0.35 * high {
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
        let mut scale = Scale::new(values, axis, ends)?;
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

    /// The same, and never beyond its ends.
    fn inside(&self, value: f64) -> f64 {
        self.at(value).clamp(self.from.min(self.to), self.from.max(self.to))
    }

    /// Both ends as values and as pixels, and whether it is logarithmic.
    fn numbers(&self) -> String {
        let Scale { low, high, from, to, log } = self;
        format!("{low} {high} {from} {to} {}", u8::from(*log))
    }

    fn marks(&self) -> Vec<f64> {
        if self.log {
            // Where there are few decades, round numbers between them too.
            let factors: &[f64] = match self.high - self.low {
                span if span > 2.2 => &[1.0],
                span if span > 0.9 => &[1.0, 2.0, 5.0],
                _ => &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            };
            let decades = self.low.floor() as i32..=self.high.ceil() as i32;
            let all =
                decades.flat_map(|decade| factors.iter().map(move |n| n * 10f64.powi(decade)));
            let shown = |value: &f64| (self.low - 1e-6..=self.high + 1e-6).contains(&value.log10());
            return all.filter(shown).collect();
        }
        let step = step(self.high - self.low);
        // Multiples of the step, with room for rounding at both ends.
        let first = (self.low / step - 1e-6).ceil() as i64;
        let last = (self.high / step + 1e-6).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }
}

/// The least value that a logarithmic axis must show. Of 100 values or more, the lowest fiftieth
/// are left to its edge, or a distribution's few fastest packets would take half of it.
fn usual_least(mut values: Vec<f64>, least: f64) -> f64 {
    const MANY: usize = 100;
    if values.len() < MANY {
        return least;
    }
    values.sort_by(f64::total_cmp);
    values[values.len() / 50]
}

/// The greatest of 1, 2, 5, 10, and so on that is not above `value`.
fn round_below(value: f64) -> f64 {
    let decade = 10f64.powf((value.log10() + 1e-9).floor());
    let fits = |factor: &f64| factor * decade <= value * (1.0 + 1e-9);
    [5.0, 2.0].into_iter().find(fits).unwrap_or(1.0) * decade
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
        Plot::Dots(categories, _) | Plot::Boxes(categories, _) => categories,
    };
    let names = series(figure);
    let styles = styles(&names);
    let columns = categories.len() * names.len();
    let width = WIDTH.max(LEFT + RIGHT + columns as f64 * BAR + categories.len() as f64 * 8.0);
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
                    @let style = styles[n];
                    g class=(class(n, style)) stroke-dasharray=(style.dash())
                        style=[inks(style, alone)] {
                        @let places = places(&line.points, &x, &y);
                        polyline fill="none" points=(coordinates(&places)) {}
                        path .mark d=(markers(&places, n, style)) stroke="none" {}
                        (clipped(&line.points, &x, &y))
                    }
                }
                // For the page's script: pixels to values.
                desc { (x.numbers()) " " (y.numbers()) }
            }
        }
        Plot::Dots(_, series) => html! {
            (category_names(categories, room, aslant, floor))
            @for (n, dots) in series.iter().enumerate() {
                @let style = styles[n];
                g class=(class(n, style)) stroke-dasharray=(style.dash())
                    style=[inks(style, alone)] {
                    @for at in 0..dots.values.len() {
                        @let place = (left(at, n), wide, style);
                        (runs(place, dots, at, &y, &title(at, n), figure.y.unit()))
                    }
                }
            }
        },
        Plot::Boxes(_, series) => html! {
            (category_names(categories, room, aslant, floor))
            @for (n, boxes) in series.iter().enumerate() {
                @let style = styles[n];
                g class=(class(n, style)) stroke-dasharray=(style.dash())
                    style=[inks(style, alone)] {
                    @for (at, five) in boxes.values.iter().enumerate() {
                        @if let Some(five) = five {
                            @let place = (left(at, n), wide, style);
                            (five_box(place, five, &y, &title(at, n), figure.y.unit()))
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
                tabindex="0" data-x=(figure.x.unit()) data-y=(figure.y.unit())
                class=(if width > 1.2 * WIDTH { "wide" } else { "" }) { (body) }
        }
    })
}

/// A coordinate to a tenth of a unit.
fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// Classes of a group of series: on a page its style sheet has the colours.
fn class(n: usize, style: Style) -> String {
    format!("s s{n} c{}", style.colour)
}

/// Colours of a group of series in a file of its own.
fn inks(style: Style, alone: bool) -> Option<String> {
    let colour = ALONE[style.colour];
    alone.then(|| format!("fill:{colour};stroke:{colour}"))
}

/// A style's marker at a place.
fn marker(style: Style, x: f64, y: f64) -> String {
    format!("M{x:.1} {y:.1}{}", style.outline())
}

/// Style of a drawing without a page around it.
const LONE: &str = ".grid{stroke:#ddd}.s{stroke-width:1.4}polyline{fill:none}\
    .box{fill-opacity:.35}.whisker{stroke:#333}desc{display:none}\
    .run{fill-opacity:.45;stroke:none}.whisker,.box,.tick{stroke-dasharray:none}\
    .band{fill-opacity:.16;stroke:none}.compared{fill-opacity:.06;stroke:inherit;\
    stroke-width:.8;stroke-dasharray:3 3}.tick{stroke:#1c1d1f;stroke-width:1.5}";

/// The line and the marker with which a style is drawn, as a legend shows them.
pub fn swatch(style: Style) -> Markup {
    html! {
        svg viewBox="0 0 30 8" aria-hidden="true" class={ "swatch c" (style.colour) } {
            line x1="0" x2="30" y1="4" y2="4" stroke-dasharray=(style.dash()) {}
            path d=(marker(style, 15.0, 4.0)) stroke="none" {}
        }
    }
}

/// A file of its own: title, legend, colours.
fn framed(figure: &Figure, width: f64, height: f64, body: &Markup) -> Markup {
    let (mut places, mut x, mut y) = (Vec::new(), LEFT, 38.0);
    for name in series(figure) {
        let long = name.chars().count() as f64 * 6.2 + 31.0;
        if x + long > width && x > LEFT {
            (x, y) = (LEFT, y + 16.0);
        }
        places.push((name, x, y));
        x += long;
    }
    let head = y + 8.0;
    let styles = styles(&series(figure));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height + head) }
            width=(width) height=(height + head) font-family="DejaVu Sans, sans-serif"
            font-size="11" {
            style { (PreEscaped(LONE)) }
            rect width="100%" height="100%" fill="#fff" {}
            text x=(LEFT) y="18" font-size="13" { (figure.title) }
            @for (n, (name, x, y)) in places.into_iter().enumerate() {
                @let style = styles[n];
                line x1=(tenths(x - 10.0)) x2=(tenths(x + 11.0)) y1=(tenths(y - 4.0))
                    y2=(tenths(y - 4.0)) stroke=(ALONE[style.colour]) stroke-width="2.5"
                    stroke-dasharray=(style.dash()) {}
                path d=(marker(style, x, y - 4.0)) fill=(ALONE[style.colour]) {}
                text x=(tenths(x + 14.0)) y=(tenths(y)) { (name) }
            }
            g transform={ "translate(0 " (head) ")" } { (body) }
        }
    }
}

fn y_scale(figure: &Figure, ends: (f64, f64)) -> Option<Scale> {
    let values: Vec<f64> = match &figure.plot {
        Plot::Lines(lines) => {
            let points = lines.iter().flat_map(|line| line.points.iter().map(|point| point[1]));
            points.collect()
        }
        Plot::Dots(_, series) => {
            let runs = series.iter().flat_map(|dots| dots.values.iter().flatten().copied());
            let stated = series.iter().flat_map(|dots| dots.stated.iter().flatten());
            let ends = stated.flat_map(|one| {
                let (low, high) = one.within;
                [Some(low), one.value, Some(high)].into_iter().flatten()
            });
            runs.chain(ends).collect()
        }
        Plot::Boxes(_, series) => {
            let all = series.iter().flat_map(|boxes| boxes.values.iter().flatten());
            all.flatten().copied().collect()
        }
    };
    Scale::new(&values, &figure.y, ends)
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

/// A curve's points in the drawing, thinned.
fn places(points: &[[f64; 2]], x: &Scale, y: &Scale) -> Vec<[f64; 2]> {
    let shown = |[px, py]: &[f64; 2]| px.is_finite() && py.is_finite() && (!x.log || *px > 0.0);
    thinned(points).into_iter().filter(shown).map(|[px, py]| [x.at(px), y.at(py)]).collect()
}

/// Places as SVG's polylines have them.
fn coordinates(places: &[[f64; 2]]) -> String {
    places.iter().map(|[x, y]| format!("{x:.1},{y:.1} ")).collect()
}

/// Markers along curve number `n`: at all of few points, otherwise [`MARKS`] of them, at other
/// places for each curve.
fn markers(places: &[[f64; 2]], n: usize, style: Style) -> String {
    let at = |[x, y]: &[f64; 2]| marker(style, *x, *y);
    let (Some([from, _]), Some([to, _])) = (places.first(), places.last()) else {
        return String::new();
    };
    if places.len() <= 2 * MARKS {
        return places.iter().map(at).collect();
    }
    let share = |k: usize| (k as f64 + 0.2 + (n as f64 * 0.382).fract() * 0.6) / MARKS as f64;
    let nearest = |x: f64| {
        let distance = |place: &&[f64; 2]| (place[0] - x).abs();
        places.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    };
    (0..MARKS).filter_map(|k| nearest(from + share(k) * (to - from))).map(at).collect()
}

/// Marks where points lie beyond the axis across which they are drawn: a triangle at its end.
fn clipped(points: &[[f64; 2]], x: &Scale, y: &Scale) -> Markup {
    let value = |py: f64| if y.log { py.max(1e-12).log10() } else { py };
    let beyond = |[px, py]: &[f64; 2]| {
        let edge = if value(*py) > y.high + 1e-9 * y.high.abs() {
            (y.to, 6.0)
        } else if value(*py) < y.low - 1e-9 * y.low.abs() {
            (y.from, -6.0)
        } else {
            return None;
        };
        (px.is_finite() && py.is_finite()).then_some((x.at(*px), edge, *py))
    };
    let mut last = f64::NEG_INFINITY;
    let places: Vec<_> = points.iter().filter_map(beyond).collect();
    let most = places.iter().map(|place| place.2).fold(f64::NEG_INFINITY, f64::max);
    let marks: String = places
        .iter()
        .filter(|(at, ..)| {
            at - last >= CLIPS && {
                last = *at;
                true
            }
        })
        .map(|(at, (edge, tall), _)| format!("M{at:.1} {edge:.1}l-3 {tall}h6z"))
        .collect();
    html! {
        @if !places.is_empty() {
            path .clip d=(marks) stroke="none" {
                title {
                    (places.len()) " of " (points.len()) " points are beyond the axis, up to "
                    (number(most))
                }
            }
        }
    }
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

/// One category's runs as dots, their median as a line, and what is stated: a tick and a band.
fn runs(
    (left, wide, style): (f64, f64, Style),
    dots: &Dots,
    at: usize,
    y: &Scale,
    title: &str,
    unit: &str,
) -> Markup {
    let values = &dots.values[at];
    let stated = dots.stated.get(at).map_or(&[][..], Vec::as_slice);
    let Some(middle) = quantile(values, 0.5) else { return html! {} };
    let (width, centre) = ((wide - 1.0).max(2.0), left + wide / 2.0 - 0.5);
    // Beside each other, not on top: a third of the room to either side, by turns.
    let x = |n: usize| centre + width * [0.0, -0.2, 0.2, -0.32, 0.32][n % 5];
    let ends = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f).unwrap_or(middle);
    let (least, most) = (ends(f64::min), ends(f64::max));
    let line = y.at(middle);
    html! {
        g {
            title {
                (title) ": " (number(middle)) " " (unit)
                @if values.len() > 1 {
                    " (median of " (values.len()) " runs, " (number(least)) " to " (number(most))
                    ")"
                }
                @for one in stated {
                    "; stated" @if one.compared { " by comparison" } ": " (told(one)) " " (unit)
                }
            }
            // For the pointer: dots are small.
            rect .reach x=(tenths(left)) width=(tenths(width)) y=(tenths(y.to))
                height=(tenths(y.from - y.to)) fill-opacity="0" stroke="none" {}
            @for Stated { value, within, compared } in stated {
                @let (top, bottom) = (y.inside(within.1), y.inside(within.0));
                rect .band .compared[*compared] x=(tenths(left)) width=(tenths(width))
                    y=(tenths(top)) height=(tenths((bottom - top).max(1.0))) {}
                @if let Some(value) = value {
                    line .tick x1=(tenths(left - 2.0)) x2=(tenths(left + width + 2.0))
                        y1=(tenths(y.at(*value))) y2=(tenths(y.at(*value))) {}
                }
            }
            @for (n, value) in values.iter().enumerate() {
                path .run d=(marker(style, x(n), y.at(*value))) {}
            }
            line .median x1=(tenths(left)) x2=(tenths(left + width)) y1=(tenths(line))
                y2=(tenths(line)) stroke-width="2.2" {}
        }
    }
}

/// A statement in words.
fn told(Stated { value, within: (low, high), .. }: &Stated) -> String {
    let range = match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{} to {}", number(*low), number(*high)),
        (true, false) => format!("at least {}", number(*low)),
        _ => format!("at most {}", number(*high)),
    };
    match value {
        Some(value) => format!("{} ({range} holds)", number(*value)),
        None => range,
    }
}

fn five_box(
    (left, wide, style): (f64, f64, Style),
    five: &[f64; 5],
    y: &Scale,
    title: &str,
    unit: &str,
) -> Markup {
    let [least, low, median, high, greatest] = five.map(|value| y.at(value));
    let (centre, right) = (left + wide / 2.0 - 0.5, left + (wide - 1.0).max(1.0));
    let x = tenths(centre);
    let [a, b, c, d, e] = five.map(number);
    html! {
        g {
            title {
                (title) ": median " (c) " " (unit) ", quartiles " (b) " and " (d) ", least " (a)
                ", greatest " (e)
            }
            line .whisker x1=(x) x2=(x) y1=(tenths(least)) y2=(tenths(greatest)) {}
            rect .box x=(tenths(left)) width=(tenths(right - left)) y=(tenths(high))
                height=(tenths((low - high).max(0.5))) {}
            line x1=(tenths(left)) x2=(tenths(right)) y1=(tenths(median)) y2=(tenths(median))
                stroke-width="2" {}
            path d=(marker(style, centre, median)) stroke="none" {}
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
    fn what_is_clipped_is_marked() {
        let points = (0..100).map(|n| [f64::from(n), if n == 50 { 900.0 } else { 1.0 }]).collect();
        let drawn = draw(&figure(points, Axis::linear("y").within(0.0, 10.0)), false);
        let drawn = drawn.expect("points").into_string();
        assert!(drawn.contains("1 of 100 points are beyond the axis, up to 900"), "{drawn}");
        let whole = draw(&figure(vec![[0.0, 1.0], [1.0, 10.0]], Axis::linear("y")), false);
        assert!(!whole.expect("points").into_string().contains("clip"));
    }

    #[test]
    fn a_band_ends_where_its_axis_does() {
        let stated = |within| Stated { value: None, within, compared: true };
        let no_ends = stated((f64::NEG_INFINITY, f64::INFINITY));
        let dots =
            Dots { values: vec![vec![1.0, 9.0]], stated: vec![vec![no_ends]], ..Dots::default() };
        let plot = Plot::Dots(vec!["a".into()], vec![dots]);
        let figure = Figure::new(("f", "F"), (Axis::linear(""), Axis::linear("ms")), plot);
        let drawn = draw(&figure, false).expect("runs").into_string();
        let (_, band) = drawn.split_once("band compared").expect("a band");
        let (band, _) = band.split_once('>').expect("an element");
        let whole = format!("y=\"{TOP:.1}\" height=\"{:.1}\"", HEIGHT - BOTTOM - TOP);
        assert!(band.contains(&whole), "{band}");
    }

    #[test]
    fn marks_are_round() {
        let scale = Scale::new(&[0.0, 9.7], &Axis::linear(""), (0.0, 1.0)).expect("values");
        assert_eq!(scale.marks(), vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let logarithmic = |ends: [f64; 2]| {
            let scale = Scale::new(&ends, &Axis::log(""), (0.0, 1.0)).expect("values");
            scale.marks().into_iter().map(mark).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(logarithmic([0.3, 700.0]), "1 10 100 1000");
        assert_eq!(logarithmic([0.3, 7.0]), "0.2 0.5 1 2 5 10");
        assert_eq!(logarithmic([52.0, 68.0]), "50 60 70 80 90 100");
        assert_eq!(logarithmic([1.0, 100.0]), "1 2 5 10 20 50 100");
    }
}
