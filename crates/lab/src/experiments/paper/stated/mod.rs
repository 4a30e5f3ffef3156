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
    fn named(&mut self, name: &str, text: &str, stated: &str, judge: Judge) {
        let id = format!("{}.{name}", self.id);
        self.claims.push(Claim { id, text: text.into(), stated: stated.into(), judge });
    }
}

/// The first measure below the second one.
fn rising(below: Measure, above: Measure) -> Judge {
    Judge::Rising(vec![below, above])
}
