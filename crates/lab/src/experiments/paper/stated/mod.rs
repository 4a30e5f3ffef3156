//! Statements of the papers: the only place with numbers of their results.
//!
//! Read by the judge alone, after everything has been simulated. One file a paper; names of
//! measures are those that its experiments give.

mod autorate;
mod cake;
mod codel;
mod iot;
mod performance;
mod savings;

use std::fmt::Display;

use super::claim::{Claim, Judge};
use super::measure::{of, Measure};

/// The claims about an experiment.
pub(super) fn claims(id: &str) -> Vec<Claim> {
    let mut list = List { id, claims: Vec::new() };
    match id.as_bytes().first() {
        Some(b'A') => cake::state(&mut list),
        Some(b'B') => performance::state(&mut list),
        Some(b'C') => codel::state(&mut list),
        Some(b'D') => savings::state(&mut list),
        Some(b'E') => iot::state(&mut list),
        Some(b'F') => autorate::state(&mut list),
        _ => {}
    }
    list.claims
}

/// Claims being written down.
struct List<'a> {
    id: &'a str,
    claims: Vec<Claim>,
}

impl List<'_> {
    /// A claim with a name of its own within the experiment.
    fn claim(&mut self, name: impl Display, text: impl Into<String>) -> Unjudged<'_> {
        let id = format!("{}.{name}", self.id);
        Unjudged { claims: &mut self.claims, id, text: text.into() }
    }
}

/// A claim that lacks its judge.
struct Unjudged<'a> {
    claims: &'a mut Vec<Claim>,
    id: String,
    text: String,
}

impl Unjudged<'_> {
    /// The paper's statement in words, and how it is judged.
    fn stated(self, stated: impl Into<String>, judge: Judge) {
        let Unjudged { claims, id, text } = self;
        claims.push(Claim { id, text, stated: stated.into(), judge });
    }
}

/// The first measure below the second one.
fn rising(below: Measure, above: Measure) -> Judge {
    Judge::Rising(vec![below, above])
}
