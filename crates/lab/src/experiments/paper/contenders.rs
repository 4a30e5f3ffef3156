//! Disciplines beyond the papers' own that take part wherever disciplines compete.
//!
//! A discipline says so itself in [`CONTENDERS`](simnel_core::qdisc::Described::CONTENDERS). It is
//! then in every experiment and figure of A2, A3, A5, all of B but B8, all of E, and C1 to C6.
//! Claims are about the papers' own and stay as they are. docs/LAB.md walks through adding one.

use simnel_core::qdisc;

/// Name and words of all newcomers. `{rate}` stands for the line's rate; what does not shape itself
/// gets each experiment's shaper.
fn newcomers() -> Vec<(&'static str, &'static str)> {
    of(qdisc::disciplines())
}

fn of(disciplines: &[qdisc::Discipline]) -> Vec<(&'static str, &'static str)> {
    disciplines.iter().flat_map(|discipline| discipline.contenders).copied().collect()
}

/// The names of `own` and then of the newcomers.
pub fn names<'a>(own: &[&'a str]) -> Vec<&'a str> {
    own.iter().copied().chain(newcomers().into_iter().map(|(name, _)| name)).collect()
}

/// The words of the newcomer called `name`, if it is one.
pub fn words(name: &str) -> Option<&'static str> {
    newcomers().into_iter().find(|(known, _)| *known == name).map(|(_, words)| words)
}

/// Name and words of `own` and then of the newcomers.
pub fn all<'a>(own: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    own.iter().copied().chain(newcomers()).collect()
}

/// True if a discipline with these words, in which `{rate}` stands for the line's rate, shapes.
pub(super) fn shapes(words: &str) -> bool {
    let config = qdisc::parse(&words.replace("{rate}", "1mbit")).expect("a discipline's words");
    config.rate().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discipline_that_says_so_takes_part() {
        let mut disciplines = qdisc::disciplines().to_vec();
        let fq_pie = disciplines.iter_mut().find(|known| known.name == "fq_pie").unwrap();
        fq_pie.contenders = &[("fq_pie", "fq_pie"), ("saving", "fq_pie savings 15kb")];
        let found = of(&disciplines);
        assert_eq!(found.len(), newcomers().len() + 2);
        assert!(found.contains(&("saving", "fq_pie savings 15kb")));
    }

    #[test]
    fn newcomers_have_names_of_their_own_and_words_that_are_read() {
        let mut names: Vec<_> = newcomers().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for (name, words) in newcomers() {
            let read = qdisc::parse(&words.replace("{rate}", "10mbit"));
            assert!(read.is_ok(), "{name}: {words}");
        }
    }
}
