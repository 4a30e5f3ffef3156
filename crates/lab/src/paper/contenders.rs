//! Disciplines beyond the papers' own that take part wherever disciplines compete.
//!
//! A line here is a new discipline's ticket to every experiment and figure of A2, A3, A5, all of B
//! and E, and C1 to C6: name and `tc`'s words. Claims are about the papers' own and stay as they
//! are. docs/LAB.md walks through adding one.

/// Name and words; `{rate}` stands for the line's rate. What does not shape itself gets each
/// experiment's shaper.
pub const MORE: &[(&str, &str)] = &[];

/// The names of `own` and then of [`MORE`].
pub fn names<'a>(own: &[&'a str]) -> Vec<&'a str> {
    own.iter().copied().chain(MORE.iter().map(|(name, _)| *name)).collect()
}

/// The words of the newcomer called `name`, if it is one.
pub fn words(name: &str) -> Option<&'static str> {
    MORE.iter().find(|(known, _)| *known == name).map(|(_, words)| *words)
}

/// Name and words of `own` and then of [`MORE`].
pub fn all<'a>(own: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    own.iter().chain(MORE).copied().collect()
}
