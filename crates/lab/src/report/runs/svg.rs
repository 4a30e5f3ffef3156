//! Line charts as SVG, small and without scripts: a legend, axes with round numbers, lines.

use std::fmt::Write;

use crate::figures::svg::escape;

/// A named line: its points, x ascending.
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 48.0;
const BOTTOM: f64 = 36.0;
const TOP: f64 = 10.0;
/// Room for half of the last number of the x axis.
const RIGHT: f64 = 20.0;
/// Colours that are told apart also by those who see few (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8a800", "#777777"];

/// A chart of `series` with named axes. An x axis of durations spans decades: `logarithmic`.
pub fn chart(series: &[Series], x_axis: &str, y_axis: &str, logarithmic: bool) -> String {
    let scale = |x: f64| if logarithmic { x.max(1e-3).log10() } else { x };
    let points = || series.iter().flat_map(|series| &series.points);
    let (mut low, mut high) = points()
        .map(|(x, _)| scale(*x))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    if !low.is_finite() || !high.is_finite() {
        return String::new();
    }
    if logarithmic {
        (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    } else {
        low = 0.0;
    }
    let top = points().map(|(_, y)| *y).fold(0.0, f64::max).max(1e-9);
    let (step, top) = ticks(top);
    let x_of = |x: f64| LEFT + (scale(x) - low) / (high - low).max(1e-9) * (WIDTH - LEFT - RIGHT);
    let y_of = |y: f64| HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - TOP);

    let mut out = String::new();
    let _ = write!(
        out,
        "<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{y_axis} over {x_axis}'>"
    );
    let mut y = 0.0;
    while y <= top * 1.0001 {
        let at = y_of(y);
        let _ = write!(
            out,
            "<line class='grid' x1='{LEFT}' x2='{:.1}' y1='{at:.1}' y2='{at:.1}'/>\
             <text x='{:.1}' y='{:.1}' text-anchor='end'>{}</text>",
            WIDTH - RIGHT,
            LEFT - 4.0,
            at + 4.0,
            plain(y)
        );
        y += step;
    }
    let marks: Vec<f64> = if logarithmic {
        (low as i32..=high as i32).map(|power| 10f64.powi(power)).collect()
    } else {
        let (step, _) = ticks(high.max(1e-9));
        (0..).map(|n| f64::from(n) * step).take_while(|x| *x <= high * 1.0001).collect()
    };
    for x in marks {
        let _ = write!(
            out,
            "<text x='{:.1}' y='{:.1}' text-anchor='middle'>{}</text>",
            x_of(x),
            HEIGHT - BOTTOM + 14.0,
            plain(x)
        );
    }
    let _ = write!(
        out,
        "<text x='{:.1}' y='{:.1}' text-anchor='middle'>{x_axis}</text>\
         <text x='12' y='{:.1}' text-anchor='middle' transform='rotate(-90 12 {:.1})'>{y_axis}\
         </text>",
        (LEFT + WIDTH) / 2.0,
        HEIGHT - 4.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0
    );
    for (n, series) in series.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        // Beyond the last colour, the same ones again, dashed.
        let dashes = if n < COLOURS.len() { "none" } else { "5 3" };
        let _ = write!(
            out,
            "<polyline fill='none' stroke='{colour}' stroke-dasharray='{dashes}' points='"
        );
        for (x, y) in &series.points {
            let _ = write!(out, "{:.1},{:.1} ", x_of(*x), y_of(*y));
        }
        let _ = write!(out, "'><title>{}</title></polyline>", escape(&series.name));
    }
    out.push_str("</svg><p class='legend'>");
    for (n, series) in series.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let name = escape(&series.name);
        let sample = match n < COLOURS.len() {
            true => colour.to_string(),
            false => format!("repeating-linear-gradient(90deg,{colour} 0 3px,#fff 3px 5px)"),
        };
        let _ = write!(out, "<span><i style='background:{sample}'></i>{name}</span> ");
    }
    out.push_str("</p>");
    out
}

/// A round step that divides 0..=`top` into four to ten parts, and the round number above `top`.
fn ticks(top: f64) -> (f64, f64) {
    let power = 10f64.powf(top.log10().floor());
    let step = [0.2, 0.5, 1.0].into_iter().find(|step| top / power <= step * 10.0).unwrap_or(1.0);
    let step = step * power;
    (step, (top / step).ceil() * step)
}

fn plain(number: f64) -> String {
    let text = format!("{number:.3}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(ticks(9.3), (1.0, 10.0));
        assert_eq!(ticks(1.7), (0.2, 1.8));
        assert_eq!(ticks(48.0), (5.0, 50.0));
        let chart = chart(
            &[Series { name: "a<b".into(), points: vec![(0.0, 1.0), (10.0, 5.0)] }],
            "s",
            "Mbit/s",
            false,
        );
        assert!(chart.contains("a&lt;b") && chart.starts_with("<svg") && !chart.contains("NaN"));
    }
}
