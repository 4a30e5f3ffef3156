//! Placeholder.
use super::List;
pub(super) fn state(_: &mut List<'_>) {}
