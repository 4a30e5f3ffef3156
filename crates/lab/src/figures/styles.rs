//! One colour, dash and marker for each discipline, on every page and in every file.
//!
//! `styles.json` has dashes, markers and the style that each discipline owns; `colours.css` has the
//! colours, which pages read. Owned styles differ in dash and marker alone, so that no colour is
//! needed to tell them apart. Of several names of one discipline, as cake with other words, the
//! bare name or else the first has its style. The others have its colour, with dashes and markers
//! of their own. Any other name gets a style that no discipline owns. As long as there are styles
//! no two names on a page share one. `site/src/styles.ts` does the same.

use std::sync::OnceLock;

use serde::Deserialize;

/// Colours where there is no style sheet: the light ones.
pub const ALONE: [&str; 8] =
    ["#b34700", "#0072b2", "#008060", "#9c4f83", "#8a6d00", "#444c55", "#0b8fa6", "#6a5acd"];

/// Dashes and markers: as many each as colours.
const EACH: usize = ALONE.len();
const ALL: usize = EACH * EACH * EACH;

/// The look of a series: numbers of a colour, a dash and a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "[usize; 3]")]
pub struct Style {
    /// Number of its colour.
    pub colour: usize,
    dash: usize,
    /// Number of its marker: circle, square, triangle, diamond, triangle that points down, plus,
    /// cross, hourglass.
    pub marker: usize,
}

impl From<[usize; 3]> for Style {
    fn from([colour, dash, marker]: [usize; 3]) -> Style {
        Style { colour, dash, marker }
    }
}

impl Style {
    /// Lengths of dashes and gaps, as SVG has them.
    pub fn dash(self) -> &'static str {
        match table().dashes[self.dash].as_str() {
            "" => "none",
            lengths => lengths,
        }
    }

    /// The marker's outline around where a path's pen stands, 7 units wide.
    pub fn outline(self) -> &'static str {
        &table().markers[self.marker]
    }

    /// All styles in the order in which they are given away: neighbours differ in colour and dash,
    /// the first have circles.
    fn nth(n: usize) -> Style {
        let dash = (n + n / EACH) % EACH;
        Style { colour: n % EACH, dash, marker: n / (EACH * EACH) % EACH }
    }
}

#[derive(Deserialize)]
struct Table {
    dashes: Vec<String>,
    markers: Vec<String>,
    disciplines: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    names: Vec<String>,
    style: Style,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        serde_json::from_str(include_str!("styles.json")).expect("dashes, markers, disciplines")
    })
}

/// The style of each of `names`; beyond 512 of them styles recur.
pub fn styles(names: &[&str]) -> Vec<Style> {
    let owned: Vec<_> = names.iter().map(|name| owned(name)).collect();
    let mut styles: Vec<Option<Style>> = vec![None; names.len()];
    for is_whole in [true, false] {
        for (n, owner) in owned.iter().enumerate() {
            if let Some(own) = owner.filter(|own| own.is_whole == is_whole) {
                if !styles.contains(&Some(own.style)) {
                    styles[n] = Some(own.style);
                }
            }
        }
    }
    let mut taken: Vec<Style> = styles.iter().flatten().copied().collect();
    let given = styles.into_iter().enumerate().map(|(n, style)| {
        style.unwrap_or_else(|| {
            let style = next(&taken, owned[n].map(|own| own.style.colour));
            let style = style.unwrap_or(Style::nth(n));
            taken.push(style);
            style
        })
    });
    given.collect()
}

/// A free style, as unlike those in `taken` as there is; in `colour`, if that has any left.
fn next(taken: &[Style], colour: Option<usize>) -> Option<Style> {
    let is_free = |style: &Style| {
        !taken.contains(style) && table().disciplines.iter().all(|owner| owner.style != *style)
    };
    let alike = |style: &Style| {
        let count = |same: &dyn Fn(&Style) -> bool| taken.iter().filter(|one| same(one)).count();
        [
            count(&|one| (one.dash, one.marker) == (style.dash, style.marker)),
            count(&|one| one.colour == style.colour),
            count(&|one| (one.colour, one.dash) == (style.colour, style.dash)),
            count(&|one| (one.colour, one.marker) == (style.colour, style.marker)),
        ]
    };
    let all = || (0..ALL).map(Style::nth).filter(is_free);
    let own = all().filter(|style| Some(style.colour) == colour).min_by_key(alike);
    own.or_else(|| all().min_by_key(alike))
}

/// A style by a name.
#[derive(Clone, Copy)]
struct Own {
    style: Style,
    /// The name is the discipline's, without further words.
    is_whole: bool,
}

/// The style that a name owns: it, or its first word, is in the table. Of a name that has the words
/// of both ways, as `up: ..., down: ...`, those of the first count.
fn owned(name: &str) -> Option<Own> {
    let name = name.to_lowercase();
    let name = name.strip_prefix("up: ").unwrap_or(&name).trim();
    let first = name.split_whitespace().next().unwrap_or_default();
    let with = |what: &str, is_whole: bool| {
        let mut owners = table().disciplines.iter();
        let owner = owners.find(|owner| owner.names.iter().any(|one| one == what))?;
        Some(Own { style: owner.style, is_whole })
    };
    with(name, true).or_else(|| with(first, false))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn disciplines_are_told_apart_without_colour_newcomers_as_well() {
        // One that the core has and the table has not, with and without words.
        let newcomers = ["newcomer", "newcomer target 5ms"];
        assert!(newcomers.iter().all(|name| owned(name).is_none()), "no entry is theirs");
        let known = simnel_core::qdisc::disciplines();
        let names: Vec<_> = known.iter().map(|one| one.name).chain(newcomers).collect();
        let styles = styles(&names);
        let without =
            |of: fn(&Style) -> (usize, usize)| styles.iter().map(of).collect::<BTreeSet<_>>().len();
        let all = names.len();
        assert_eq!(without(|one| (one.dash, one.marker)), all, "dash and marker tell them apart");
        assert_eq!(without(|one| (one.colour, one.dash)), all, "colour and dash do");
        assert_eq!(without(|one| (one.colour, one.marker)), all, "colour and marker do");
        let Table { dashes, markers, .. } = table();
        assert_eq!([dashes.len(), markers.len()], [EACH; 2]);
        assert!(markers.iter().all(|marker| marker.starts_with('m') && marker.ends_with('z')));
    }

    #[test]
    fn no_two_names_look_alike() {
        let mut names: Vec<String> =
            table().disciplines.iter().map(|o| o.names[0].clone()).collect();
        names.extend((0..40).map(|n| format!("cake bandwidth {n}mbit")));
        names.extend((0..400).map(|n| format!("flow {n}")));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = styles(&names);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), names.len());
        let shapes: BTreeSet<_> = all[..64].iter().map(|one| (one.dash, one.marker)).collect();
        assert!(shapes.len() > 55, "{} of 64 differ without colour", shapes.len());
        assert!(all[19..59].iter().all(|one| one.colour == all[1].colour), "a cake's colour");
        let many = vec!["x"; 600];
        assert_eq!(styles(&many).len(), 600);
    }

    #[test]
    fn a_discipline_has_its_style_whoever_stands_beside_it() {
        // The site's test reads the same cases.
        let cases: Vec<(Vec<&str>, Vec<Style>)> =
            serde_json::from_str(include_str!("../../tests/styles.json")).expect("names, styles");
        for (names, wanted) in cases {
            assert_eq!(styles(&names), wanted, "{names:?}");
        }
    }

    #[test]
    fn the_style_sheet_has_the_colours_of_files() {
        const STYLE: &str = include_str!("colours.css");
        for (n, colour) in ALONE.iter().enumerate() {
            assert!(STYLE.contains(&format!("--curve-{n}: {colour};")), "{n}: {colour}");
        }
    }
}
