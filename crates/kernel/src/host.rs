//! The functions of the C side that the core's owner calls.

use core::ffi::c_void;

use simnel_core::packet::Packet;
use simnel_core::qdisc::{DropReason, PacketOwner};
use simnel_core::wire::{ack_view, AckView, LinkLayer};

extern "C" {
    /// Takes `packet` back, which left the discipline without being sent.
    fn simnel_host_dropped(context: *mut c_void, packet: u64, reason: u32);
    /// The headers of `packet` from that of the network on, which the descriptor has at `offset`;
    /// how many bytes there are goes to `length`. They stay until C is asked again.
    fn simnel_host_headers(
        context: *mut c_void,
        packet: u64,
        offset: u32,
        length: *mut u32,
    ) -> *const u8;
    /// Linux's hash of `packet`'s flow under a key.
    fn simnel_host_keyed_hash(packet: u64, first: u64, second: u64) -> u32;
}

/// The C side.
pub(crate) struct Host {
    /// C's own pointer.
    pub(crate) context: *mut c_void,
    /// A recording of Linux is replayed, whose hashes are Linux's.
    pub(crate) is_recorded: bool,
}

impl PacketOwner for Host {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        // SAFETY: C's own pointer goes back to it, with the handle that it gave for this packet.
        unsafe { simnel_host_dropped(self.context, packet.handle, reason as u32) }
    }

    fn keyed_hash(&mut self, packet: &Packet, [first, second]: [u64; 2]) -> Option<u32> {
        // SAFETY: the handle is of a packet that C still holds.
        self.is_recorded.then(|| unsafe { simnel_host_keyed_hash(packet.handle, first, second) })
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        let mut length = 0;
        // SAFETY: the handle is of a packet that C still holds; it gives as much as it says.
        let headers = unsafe {
            let offset = packet.network_offset.into();
            let start = simnel_host_headers(self.context, packet.handle, offset, &mut length);
            bytes(start, length)?
        };
        let link_header = packet.network_offset;
        ack_view(LinkLayer::Ip { link_header }, headers)
    }

    #[inline(always)]
    fn expect(&mut self, _next: &Packet, after: &Packet) {
        prefetch(after.handle);
    }
}

/// `length` bytes at `start`; None if `start` is null.
///
/// # Safety
/// Unless `start` is null, the bytes must be readable and stay as they are for `'a`.
pub(crate) unsafe fn bytes<'a>(start: *const u8, length: u32) -> Option<&'a [u8]> {
    if start.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { core::slice::from_raw_parts(start, length as usize) })
}

/// Fetches the line at `address` into the cache. Nothing depends on it, any address will do.
#[inline(always)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn prefetch(address: u64) {
    use core::arch::asm;
    // SAFETY: a prefetch reads nothing that the program sees and never faults.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags));
    }
}
