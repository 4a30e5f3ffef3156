//! Ethernet frames of interfaces through AF_PACKET sockets with `PACKET_VNET_HDR`. Super-packets
//! and partial checksums of local senders pass as they are. VLAN tags that the kernel took off are
//! put back.
//!
//! Two parts use it: an emulated line between two interfaces (`link`), and the data path of a
//! bridge whose frames the kernel cannot queue (`passage`). A [`Listener`] takes no frame: it has
//! copies of the headers (`kernel/arrivals.rs`, `passing/overheard.rs`).

mod calendar;
mod error;
mod header;
mod listener;
mod outgoing;
mod pool;
mod socket;
mod split;

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use calendar::Calendar;
pub use error::FrameError;
pub(crate) use header::{
    describe, is_plain_tcp, with_tag, Handle, ETHERNET_HEADER, TAG_BYTES, VNET_BYTES,
};
pub use listener::FrameReader;
pub(crate) use listener::{Heard, Listener};
pub(crate) use outgoing::{Blocked, Frame, Outgoing, RETRY};
pub(crate) use pool::{Pool, BATCH, CHUNKS_PER_FRAME, CHUNK_BYTES};
pub(crate) use socket::{Inbox, PacketSocket};
pub(crate) use split::{split, MOST_SEGMENTS};

/// Adds to a counter that only this thread writes.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}
