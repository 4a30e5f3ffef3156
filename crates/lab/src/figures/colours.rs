//! One colour and dash for each discipline, on every page and in every file.
//!
//! `disciplines.json` has the names that own each slot and `colours.css` the slots' colours, which
//! pages read. A name that owns no slot, or comes when its slot is
//! taken, gets the next free one.

use std::sync::OnceLock;

/// Colours of the slots where there is no style sheet: the light ones.
pub const ALONE: [&str; 8] =
    ["#b34700", "#0072b2", "#008060", "#9c4f83", "#8a6d00", "#444c55", "#0b8fa6", "#6a5acd"];

/// Dashes of the slots, beside the colours, for eyes that cannot tell these apart.
pub const DASHES: [&str; 8] = ["", "9 4", "2 3", "12 3 2 3", "5 2", "1 5", "7 2 1 2", "3 1"];

/// Names that own slots.
fn owners() -> &'static [Vec<String>] {
    static OWNERS: OnceLock<Vec<Vec<String>>> = OnceLock::new();
    OWNERS.get_or_init(|| {
        serde_json::from_str(include_str!("disciplines.json")).expect("a list of lists of names")
    })
}

/// The slot of each of `names`; beyond eight names slots recur.
pub fn slots(names: &[&str]) -> Vec<usize> {
    let all = ALONE.len();
    let mut free: Vec<usize> = (0..all).collect();
    let mut slots: Vec<Option<usize>> = vec![None; names.len()];
    for (slot, name) in slots.iter_mut().zip(names) {
        if let Some(at) = owned(name).and_then(|owned| free.iter().position(|one| *one == owned)) {
            *slot = Some(free.remove(at));
        }
    }
    let mut rest = free.into_iter().chain((0..all).cycle());
    slots.into_iter().map(|slot| slot.or_else(|| rest.next()).unwrap_or(0)).collect()
}

/// The slot that a name owns: it, or its first word, is in the list. Of a name that has the words
/// of both ways, as `up: ..., down: ...`, those of the first count.
fn owned(name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let name = name.strip_prefix("up: ").unwrap_or(&name);
    let first = name.split_whitespace().next().unwrap_or_default();
    let with = |what: &str| owners().iter().position(|names| names.iter().any(|one| one == what));
    with(name).or_else(|| with(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discipline_has_its_colour_whoever_stands_beside_it() {
        assert_eq!(slots(&["cake bandwidth {rate}", "pfifo limit 100"]), [1, 0]);
        assert_eq!(slots(&["FIFO", "x", "FQ-CoDel", "cake", "cake nat"]), [0, 3, 2, 1, 4]);
        let ways = "up: cake bandwidth 3mbit, down: cake bandwidth 20mbit";
        assert_eq!(slots(&["cobalt", "sfq", "dualpi2", ways]), [7, 0, 2, 1]);
        let many: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(slots(&many)[8..10], [0, 1]);
    }

    #[test]
    fn the_style_sheet_has_the_colours_of_files() {
        const STYLE: &str = include_str!("colours.css");
        for (n, colour) in ALONE.iter().enumerate() {
            assert!(STYLE.contains(&format!("--curve-{n}: {colour};")), "{n}: {colour}");
        }
    }
}
