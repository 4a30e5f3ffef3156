//! flent's usual plots of a data file: everything at a glance, throughput and latency over time,
//! latency's distribution.

use super::Data;
use crate::figures::{Axis, Boxes, Figure, Line, Plot};
use crate::statistics::{five_numbers, quantile};

/// The plots of `data`, in the order in which flent lists them. Series that are derived from
/// others (sums, averages) have plots of their own.
pub fn plots(data: &Data) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (prefix, id, title) in [
        ("TCP download", "download", "Download"),
        ("TCP upload", "upload", "Upload"),
        ("UDP ", "udp", "Datagrams"),
    ] {
        let lines = lines(data, |name| name.starts_with(prefix) && !derived(name));
        let axes = (Axis::linear("time (s)"), scaled(Axis::linear("Mbit/s"), &lines));
        push(&mut figures, (id, title), axes, lines);
    }
    let totals = lines(data, |name| name.ends_with(" sum") || name == "TCP totals");
    let axes = (Axis::linear("time (s)"), Axis::linear("Mbit/s"));
    push(&mut figures, ("totals", "Totals"), axes, totals.clone());
    let pings = |name: &str| name.starts_with("Ping (ms)") && !name.contains("::");
    let pings = lines(data, pings);
    let axes = (Axis::linear("time (s)"), scaled(Axis::linear("round-trip time (ms)"), &pings));
    push(&mut figures, ("ping", "Latency"), axes, pings.clone());
    let cdf: Vec<Line> = pings.iter().cloned().map(cumulative).collect();
    let axes = (Axis::log("round-trip time (ms)"), Axis::linear("share of samples"));
    push(&mut figures, ("ping_cdf", "Latency, distribution"), axes, cdf);
    boxes(&mut figures, ("box_ping", "Latency, quartiles"), "round-trip time (ms)", pings);
    boxes(&mut figures, ("box_totals", "Totals, quartiles"), "Mbit/s", totals);
    figures
}

/// The [`plots`] of several files, drawn over each other. A series is named by its file, and by its
/// own name, too, where a file has several.
pub fn overlaid(files: impl IntoIterator<Item = (String, Vec<Figure>)>) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    for (file, figures) in files {
        for mut figure in figures {
            name_by(&file, &mut figure.plot);
            match all.iter_mut().find(|known| known.id == figure.id) {
                Some(known) => lay_over(known, figure),
                None => all.push(figure),
            }
        }
    }
    all
}

fn name_by(file: &str, plot: &mut Plot) {
    match plot {
        Plot::Lines(lines) if lines.len() == 1 => lines[0].name = file.into(),
        Plot::Lines(lines) => {
            lines.iter_mut().for_each(|line| line.name = format!("{file} · {}", line.name));
        }
        Plot::Boxes(_, series) => series.iter_mut().for_each(|boxes| boxes.name = file.into()),
        Plot::Dots(..) => {}
    }
}

/// Adds what `other` shows to `figure`, whose axes then hold both.
fn lay_over(figure: &mut Figure, other: Figure) {
    for (axis, more) in [(&mut figure.x, other.x), (&mut figure.y, other.y)] {
        axis.limits = axis.limits.zip(more.limits).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
    }
    match (&mut figure.plot, other.plot) {
        (Plot::Lines(lines), Plot::Lines(more)) => lines.extend(more),
        (Plot::Boxes(names, series), Plot::Boxes(theirs, more)) => {
            let new = theirs.iter().filter(|name| !names.contains(name)).cloned();
            let new: Vec<String> = new.collect();
            names.extend(new);
            series.iter_mut().for_each(|boxes| boxes.values.resize(names.len(), None));
            series.extend(more.into_iter().map(|boxes| {
                let value = |name: &String| {
                    let at = theirs.iter().position(|one| one == name)?;
                    boxes.values.get(at).copied().flatten()
                };
                Boxes { values: names.iter().map(value).collect(), name: boxes.name.clone() }
            }));
        }
        _ => {}
    }
}

/// A box for each of `lines`: quartiles over all its samples.
fn boxes(figures: &mut Vec<Figure>, name: (&str, &str), unit: &str, lines: Vec<Line>) {
    if lines.is_empty() {
        return;
    }
    let five = |line: Line| {
        let values: Vec<f64> = line.points.iter().map(|point| point[1]).collect();
        (line.name, five_numbers(&values))
    };
    let (names, values) = lines.into_iter().map(five).unzip();
    let plot = Plot::Boxes(names, vec![Boxes { name: "all samples".into(), values }]);
    figures.push(Figure::new(name, (Axis::linear(""), Axis::linear(unit)), plot));
}

/// True for series that were made of others (sums, fairness), and for what was sampled beside a
/// flow (`TCP upload BE::tcp_cwnd`). With a number after the colons a series is a flow (`TCP
/// upload::7`).
fn derived(name: &str) -> bool {
    let beside = name.rsplit_once("::").is_some_and(|(_, what)| what.parse::<u32>().is_err());
    beside || [" sum", " avg", " fairness"].iter().any(|end| name.ends_with(end))
}

/// The axis of flent's `all_scaled`: it ends where nineteen of twenty values lie, so that a few
/// outliers do not press everything else flat.
fn scaled(axis: Axis, lines: &[Line]) -> Axis {
    let values: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|point| point[1])).collect();
    match (quantile(&values, 0.0), quantile(&values, 0.95)) {
        (Some(least), Some(most)) if most > least => axis.within(least, 1.15 * most),
        _ => axis,
    }
}

fn lines(data: &Data, wanted: impl Fn(&str) -> bool) -> Vec<Line> {
    let line = |(name, values): (&String, &Vec<Option<f64>>)| {
        let points: Vec<[f64; 2]> =
            data.x_values.iter().zip(values).filter_map(|(x, y)| Some([*x, (*y)?])).collect();
        (!points.is_empty()).then(|| Line { name: name.clone(), points })
    };
    data.results.iter().filter(|(name, _)| wanted(name)).filter_map(line).collect()
}

fn cumulative(line: Line) -> Line {
    let mut values: Vec<f64> = line.points.iter().map(|point| point[1]).collect();
    values.sort_by(f64::total_cmp);
    let all = values.len() as f64;
    let share = |(n, value): (usize, f64)| [value, (n + 1) as f64 / all];
    Line { name: line.name, points: values.into_iter().enumerate().map(share).collect() }
}

fn push(figures: &mut Vec<Figure>, name: (&str, &str), axes: (Axis, Axis), lines: Vec<Line>) {
    if !lines.is_empty() {
        figures.push(Figure::new(name, axes, Plot::Lines(lines)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(ping: &[f64]) -> Data {
        let values: Vec<Option<f64>> = ping.iter().copied().map(Some).collect();
        Data {
            version: super::super::VERSION,
            x_values: (0..ping.len()).map(|n| n as f64).collect(),
            results: [("Ping (ms) ICMP".to_string(), values)].into(),
            metadata: serde_json::Map::new(),
            raw_values: serde_json::Map::new(),
        }
    }

    #[test]
    fn files_are_drawn_over_each_other() {
        let files = [("a", data(&[1.0, 2.0])), ("b", data(&[30.0, 40.0]))];
        let figures = overlaid(files.map(|(name, data)| (name.into(), plots(&data))));
        let cdf = figures.iter().find(|figure| figure.id == "ping_cdf").expect("a distribution");
        let Plot::Lines(lines) = &cdf.plot else { panic!("lines") };
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let ping = figures.iter().find(|figure| figure.id == "ping").expect("latency");
        assert!(ping.y.limits.is_some_and(|(low, high)| low <= 1.0 && high >= 40.0));
        let boxes = figures.iter().find(|figure| figure.id == "box_ping").expect("quartiles");
        assert!(
            matches!(&boxes.plot, Plot::Boxes(names, two) if names.len() == 1 && two.len() == 2)
        );
    }
}
