//! A sweep, as tables for the terminal and as a page of small multiples and heat maps.

use maud::{html, Markup};

use super::page;
use super::text;
use crate::experiments::sweep::{are_alike, figures, pivots, Pivot, PointResult, Words};
use crate::figures::Figure;
use crate::statistics::{number, Estimate};

/// Columns up to which a cell has its interval, too.
const WITH_INTERVALS: usize = 4;
/// Shades of a heat map; `style.css` has them.
const SHADES: f64 = 9.0;
/// Greatest ratio of values that share out the shades evenly.
const EVEN: f64 = 50.0;

/// The measures `names`, each by the axes of the sweep; no wider than `width` columns.
pub fn text(results: &[PointResult], names: &[&String], width: Option<u16>) -> String {
    let alike = are_alike(results);
    let mut out = if alike { format!("{}\n\n", text::ALIKE) } else { String::new() };
    for name in names {
        for pivot in pivots(results, name) {
            let title = if pivot.title.is_empty() { "" } else { ": " };
            out += &format!("{}{title}{}  ({name})\n", Words::of(name).whole(), pivot.title);
            let with = !alike && pivot.columns.len() <= WITH_INTERVALS;
            let cell = |one: &Option<Estimate>| match one {
                Some(one) if with => one.to_string(),
                one => mean(one),
            };
            let head = [&pivot.across].into_iter().chain(&pivot.columns).cloned().collect();
            let mut rows: Vec<Vec<String>> = vec![head];
            rows.extend(pivot.rows.iter().map(|(value, cells)| {
                [value.clone()].into_iter().chain(cells.iter().map(cell)).collect()
            }));
            out += &text::table(&rows, 1..1 + pivot.columns.len(), width);
            out.push('\n');
        }
    }
    out
}

fn mean(one: &Option<Estimate>) -> String {
    one.map_or("-".into(), |one| number(one.mean))
}

/// The page. `partial`: not all runs are there.
pub fn page(title: &str, results: &[PointResult], names: &[&String], partial: bool) -> String {
    let alike = are_alike(results);
    let body = html! {
        @if partial { (page::partial("the sweep")) }
        p .lead {
            "Each figure is a measure over the axis with the most values, a panel for each value "
            "of a second one, all on one scale; each heat map has both axes and the mean in each "
            "cell. Means of all runs at a setting; every run is a row of the CSV file beside this "
            "page."
        }
        @if alike { p .note { (text::ALIKE) } }
        @for name in names { (measure(name, results, alike)) }
    };
    page::frame(title, &body)
}

fn measure(name: &str, results: &[PointResult], alike: bool) -> Markup {
    let words = Words::of(name).whole();
    // The heading has the measure's name already.
    let short = |figure: Figure| match figure.title.strip_prefix(&format!("{words}, ")) {
        Some(title) => Figure { title: title.into(), ..figure },
        None => figure,
    };
    let panels: Vec<Figure> = figures(results, name).into_iter().map(short).collect();
    let pivots = pivots(results, name);
    let means = || {
        let cells = pivots.iter().flat_map(|pivot| pivot.rows.iter().flat_map(|row| &row.1));
        cells.flatten().map(|one| one.mean)
    };
    let range = (means().fold(f64::MAX, f64::min), means().fold(f64::MIN, f64::max));
    html! {
        section .multiples {
            h3 title=(name) { (words) }
            (page::together(&panels))
            div .heats { @for pivot in &pivots { (heat(pivot, range, alike)) } }
        }
    }
}

/// A table whose cells are the darker the larger their value; one scale for a measure.
fn heat(pivot: &Pivot, range: (f64, f64), alike: bool) -> Markup {
    html! {
        table .heat {
            caption { (pivot.title) }
            thead {
                tr { th { (pivot.across) } @for column in &pivot.columns { th { (column) } } }
            }
            tbody {
                @for (value, cells) in &pivot.rows {
                    tr {
                        th { (value) }
                        @for one in cells {
                            @let title = one.filter(|_| !alike);
                            @let title = title.map(|one| format!("{one}, {} runs", one.n));
                            @let class = one.map(|one| format!("h{}", shade(one.mean, range)));
                            td class=[class] title=[title] { (mean(one)) }
                        }
                    }
                }
            }
        }
    }
}

/// The shade of a value in the range of a measure; by ratios if that spans a large one.
fn shade(value: f64, (least, most): (f64, f64)) -> u32 {
    let share = match least > 0.0 && most > EVEN * least {
        true => (value / least).ln() / (most / least).ln(),
        false => (value - least) / (most - least),
    };
    // A range of nothing has no shares.
    if share.is_finite() {
        (share * SHADES).round() as u32
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_that_make_no_difference_are_named_once_and_have_no_interval() {
        let of = |setting: &str, values: &[f64]| PointResult {
            point: [("rtt".into(), setting.into())].into(),
            values: [("x".into(), Estimate::of(values).expect("numbers"))].into(),
            runs: [("x".into(), values.to_vec())].into(),
        };
        let name = "x".to_string();
        let said = |results: &[PointResult]| {
            let text = text(results, &[&name], None);
            let page = page("test", results, &[&name], false);
            assert_eq!(page.contains(text::ALIKE), text.contains(text::ALIKE));
            assert_eq!(page.contains("±"), text.contains('±'));
            (text.matches(text::ALIKE).count(), text.contains('±'))
        };
        let alike = [of("1ms", &[0.1; 3]), of("2ms", &[0.3; 3])];
        assert_eq!(said(&alike), (1, false));
        assert_eq!(said(&[of("1ms", &[0.1; 3]), of("2ms", &[0.3, 0.3, 0.4])]), (0, true));
        assert_eq!(said(&[of("1ms", &[0.1]), of("2ms", &[0.3])]), (0, false));
    }

    #[test]
    fn shades_are_even_or_by_ratios() {
        assert_eq!([0.0, 5.0, 10.0].map(|value| shade(value, (0.0, 10.0))), [0, 5, 9]);
        assert_eq!([1.0, 10.0, 100.0].map(|value| shade(value, (1.0, 100.0))), [0, 5, 9]);
        assert_eq!(shade(3.0, (3.0, 3.0)), 0);
    }
}
