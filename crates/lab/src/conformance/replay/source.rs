//! Sources of packets: one interface over all kinds of file.

use simnel_core::wire::tcp::AckView;
use simnel_core::wire::FlowKeys;
use simnel_core::{Packet, Time};

use super::error::TraceError;

/// Packets of a trace, one after the other.
pub trait Source {
    /// Goes to the next packet. Returns when it arrives, never earlier than the one before; None at
    /// the end. Whatever can be wrong with the packet is found here.
    fn advance(&mut self) -> Result<Option<Time>, TraceError>;

    /// The present packet; its handle is left at 0.
    fn describe(&self) -> Packet;

    /// Header fields that tell the present packet's flow.
    fn keys(&self) -> FlowKeys;

    /// The present packet's TCP header, if it has one.
    fn ack_view(&self) -> Option<AckView>;

    /// At the end: until when the line runs. None if until nothing is queued.
    fn end(&self) -> Option<Time> {
        None
    }

    /// Packets whose time lay before that of the packet before them, and that were taken as
    /// arriving together with it.
    fn out_of_order(&self) -> u64 {
        0
    }

    /// IP packets of which so little was captured that their flows cannot be told apart.
    fn cut_short(&self) -> u64 {
        0
    }
}
