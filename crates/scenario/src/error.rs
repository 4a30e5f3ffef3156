//! Errors in a scenario file: the place, the fault, and a correct form.

use std::ops::Range;

/// A scenario that cannot be read or run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ScenarioError {
    /// The fault.
    pub what: String,
    /// The expected form.
    pub expected: String,
    /// Bytes of the text that it is about; None if it is about none in particular.
    pub span: Option<Range<usize>>,
}

impl ScenarioError {
    pub(crate) fn at(
        span: Range<usize>,
        what: impl Into<String>,
        expected: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError { what: what.into(), expected: expected.into(), span: Some(span) }
    }

    /// About no place in particular.
    pub fn whole(what: impl Into<String>, expected: impl Into<String>) -> ScenarioError {
        ScenarioError { what: what.into(), expected: expected.into(), span: None }
    }

    /// Line and column, both from 1, of the place in `text`.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
        let start = self.span.as_ref()?.start.min(text.len());
        let before = text.get(..start)?;
        let line = before.matches('\n').count() + 1;
        Some((line, before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1))
    }
}
