//! The table: whose packets pass it, and the message that creates it.

/// Sequence number of the message that creates the table.
pub(super) const TABLE_SEQUENCE: u32 = 1;

/// Family of a table: the packets that pass it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    /// Those that the machine routes, sends or takes.
    #[default]
    Routed,
    /// Frames of a bridge's ports.
    Bridged,
}
