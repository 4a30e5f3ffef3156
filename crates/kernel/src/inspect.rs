//! Functions that only tests call (`kernel/test/replay`, and `kernel/books.c` in debug builds): a
//! packet with given hashes, where a packet stood, what is queued.
//!
//! They stand in the library that is installed, so that the object that is tested is the one that
//! decides about packets.

use simnel_core::time::Time;

use crate::arrival::Unusual;
use crate::line::Line;

/// Hashes as they were recorded, in place of those of the packet's headers
/// (`struct simnel_hashes`).
#[repr(C)]
#[derive(Debug)]
pub struct Hashes {
    /// As [`Packet::flow`](simnel_core::packet::Packet::flow).
    pub flow: u64,
    /// Of the source address.
    pub src_host: u32,
    /// Of the destination address.
    pub dst_host: u32,
}

/// Takes a packet in as `simnel_enqueue` does, with given hashes.
///
/// # Safety
/// As [`simnel_enqueue`](crate::line::simnel_enqueue).
#[no_mangle]
pub unsafe extern "C" fn simnel_enqueue_hashed(
    line: &mut Line,
    unusual: Option<&Unusual>,
    hashes: &Hashes,
    now: u64,
) {
    // SAFETY: the caller's promise.
    unsafe { line.describe(unusual) };
    let packet = &mut line.arrival.packet;
    packet.flow = hashes.flow;
    packet.src_host = hashes.src_host;
    packet.dst_host = hashes.dst_host;
    line.qdisc.enqueue(packet, Time(now), &mut line.owner);
}

/// Tier and queue of the packet that was dequeued last, in the upper and the lower half; `u64::MAX`
/// if the discipline has none.
#[no_mangle]
pub extern "C" fn simnel_placement(line: &Line) -> u64 {
    line.qdisc
        .placement()
        .map_or(u64::MAX, |(tier, queue)| u64::from(tier) << 32 | u64::from(queue))
}

/// Packets queued; their bytes go to `bytes`.
#[no_mangle]
pub extern "C" fn simnel_backlog(line: &Line, bytes: &mut u64) -> u32 {
    let backlog = line.qdisc.backlog();
    *bytes = backlog.bytes;
    backlog.packets
}
