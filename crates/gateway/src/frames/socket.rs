//! AF_PACKET sockets, each on one interface (man 7 packet), and batches of frames through it.
//!
//! Options, and the purpose of each:
//!
//! * `PACKET_VNET_HDR`: super-packets and partial checksums pass;
//! * `PACKET_IGNORE_OUTGOING`: what we send is not received;
//! * `PACKET_QDISC_BYPASS`: no second queue behind the line's;
//! * `PACKET_AUXDATA`: the VLAN tag that the kernel took off;
//! * `SO_TIMESTAMPNS`: the time when a frame came, however late we wake;
//! * promiscuous mode: frames are for others.
//!
//! Needs CAP_NET_RAW; the larger receive buffer CAP_NET_ADMIN.

use std::io::{self, ErrorKind};
use std::mem::{self, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::error::FrameError;
use super::header::{TAG_BYTES, VNET_BYTES};
use super::pool::{Pool, BATCH, CHUNKS_PER_FRAME, CHUNK_BYTES};
use crate::offload;
use crate::sys::{self, Query};

/// Frames that arrive while we sleep wait here: 16 MB are 10 ms at 10 Gbit/s.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;

/// Room for two control messages with their headers and alignment: `tpacket_auxdata` (20 bytes) and
/// `timespec` (16).
pub(super) const CONTROL_WORDS: usize = 10;

/// A socket for the frames of one interface, once it is attached to that.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    /// Number of the interface by which it receives; 0 for none.
    index: AtomicU32,
    /// The device cuts super-packets of TCP itself. Without a queue the kernel does not do it for
    /// one that does not, but drops them.
    cuts: AtomicBool,
}

/// Frames on their way in: slots with room for a super-packet each.
pub(crate) struct Inbox {
    chunks: Vec<[u32; CHUNKS_PER_FRAME]>,
    vectors: Vec<[libc::iovec; CHUNKS_PER_FRAME]>,
    control: Vec<[u64; CONTROL_WORDS]>,
    messages: Vec<libc::mmsghdr>,
    /// The first `ready` slots have all their chunks.
    ready: usize,
}

/// A frame that arrived in slot `slot` of an [`Inbox`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) slot: usize,
    /// Bytes, the virtio header included.
    pub(crate) len: usize,
    /// False if the frame was larger than any buffer and has been cut off.
    pub(crate) complete: bool,
    /// Protocol and tag control information of the VLAN tag that was taken off.
    pub(crate) tag: Option<(u16, u16)>,
    /// Time of its receipt by the kernel, by the system's clock (CLOCK_REALTIME), since its epoch.
    pub(crate) stamp: Option<Duration>,
}

/// Frames on their way out.
pub(crate) struct Outbox {
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in both lead into the same value's own heap blocks and into the pool of the
// same direction, and all of them move to its thread together.
unsafe impl Send for Inbox {}
// SAFETY: as above.
unsafe impl Send for Outbox {}

impl PacketSocket {
    /// A socket of no interface yet: nothing arrives. This alone needs CAP_NET_RAW.
    pub(crate) fn unattached() -> Result<PacketSocket, FrameError> {
        let more = [
            (libc::PACKET_IGNORE_OUTGOING, "ignore own frames (PACKET_IGNORE_OUTGOING)"),
            (libc::PACKET_QDISC_BYPASS, "send without a queue (PACKET_QDISC_BYPASS)"),
        ];
        PacketSocket::open(&more, RECEIVE_BUFFER)
    }

    /// A socket of no interface yet, for copies of the packets that `filter` takes. Copies that
    /// wait fill so many bytes of `room`, and the kernel drops what comes then. This alone needs
    /// CAP_NET_RAW.
    pub(crate) fn overhearing(
        filter: &mut [libc::sock_filter],
        room: libc::c_int,
    ) -> Result<PacketSocket, FrameError> {
        let socket = PacketSocket::open(&[], room)?;
        let program =
            libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
        sys::set_option(&socket.fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program).map_err(
            |source| FrameError::Socket { what: "choose packets (SO_ATTACH_FILTER)", source },
        )?;
        Ok(socket)
    }

    /// The same socket once more.
    pub(crate) fn again(&self) -> io::Result<PacketSocket> {
        Ok(PacketSocket::on(self.fd.try_clone()?))
    }

    /// A socket that listens to what `interface` sends.
    pub(super) fn listening(interface: &str) -> Result<PacketSocket, FrameError> {
        let socket = PacketSocket::open(&[], RECEIVE_BUFFER)?;
        let index = sys::interface(interface, Query::Index)
            .map_err(|_| FrameError::NoInterface { interface: interface.into() })?;
        let failed = |source| FrameError::System {
            interface: interface.into(),
            what: "listen to it",
            source,
        };
        socket.bind(index).map_err(failed)?;
        Ok(socket)
    }

    fn open(
        more: &[(libc::c_int, &'static str)],
        room: libc::c_int,
    ) -> Result<PacketSocket, FrameError> {
        let system =
            |what: &'static str| move |source: io::Error| FrameError::Socket { what, source };
        // No protocol: nothing arrives before `bind` says from which interface.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|error| system("open a packet socket")(error.into()))?;
        let stamped = "have arrivals stamped (SO_TIMESTAMPNS)";
        sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32)
            .map_err(system(stamped))?;
        let all = [
            (libc::PACKET_VNET_HDR, "pass super-packets (PACKET_VNET_HDR)"),
            (libc::PACKET_AUXDATA, "see VLAN tags (PACKET_AUXDATA)"),
        ];
        for (option, what) in all.iter().chain(more) {
            sys::set_option(&fd, libc::SOL_PACKET, *option, 1i32).map_err(system(what))?;
        }
        // Without CAP_NET_ADMIN, as much as net.core.rmem_max allows.
        let buffer = |option| sys::set_option(&fd, libc::SOL_SOCKET, option, room);
        let _ = buffer(libc::SO_RCVBUFFORCE).or_else(|_| buffer(libc::SO_RCVBUF));
        Ok(PacketSocket { fd, index: AtomicU32::new(0), cuts: AtomicBool::new(false) })
    }

    /// Frames leave by `interface` from now on, and by no other; if it `receives`, those that come
    /// there arrive.
    pub(crate) fn attach(&self, interface: &str, receives: bool) -> Result<(), FrameError> {
        let system = |what: &'static str| {
            move |source| FrameError::System { interface: interface.into(), what, source }
        };
        self.stop_receiving();
        self.look_at(interface);
        let index = sys::interface(interface, Query::Index)
            .map_err(|_| FrameError::NoInterface { interface: interface.into() })?;
        self.bind(index).map_err(system("bind to it"))?;
        self.index.store(index, Ordering::Relaxed);
        if receives {
            self.membership(libc::PACKET_ADD_MEMBERSHIP, index)
                .map_err(system("make the interface promiscuous"))?;
            sys::set_option(&self.fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0i32)
                .map_err(system("receive from it"))?;
        }
        Ok(())
    }

    fn look_at(&self, interface: &str) {
        let has = |feature| offload::feature(interface, feature).unwrap_or(false);
        let cuts = has("tx-tcp-segmentation") && has("tx-tcp6-segmentation");
        self.cuts.store(cuts, Ordering::Relaxed);
    }

    /// True if its device cuts super-packets of TCP itself.
    #[inline]
    pub(crate) fn cuts(&self) -> bool {
        self.cuts.load(Ordering::Relaxed)
    }

    /// Follows what the device does; attaches it anew if `interface` is another one than it was.
    pub(crate) fn follow(&self, interface: &str, receives: bool) -> Result<(), FrameError> {
        self.look_at(interface);
        match sys::interface(interface, Query::Index) {
            Ok(index) if index != self.index() => self.attach(interface, receives),
            _ => Ok(()),
        }
    }

    /// Nothing arrives any more; frames may still leave.
    pub(crate) fn stop_receiving(&self) {
        // Without an interface none would leave.
        let mut nothing = sys::NOTHING;
        let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
        let _ = sys::set_option(&self.fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program);
        let index = self.index.swap(0, Ordering::Relaxed);
        let _ = self.membership(libc::PACKET_DROP_MEMBERSHIP, index);
        // What waits is for nobody, and was for somebody else if another process had the socket.
        let mut start = [0; VNET_BYTES];
        while !sys::receive(&self.fd, &mut start).is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
        {
        }
    }

    fn membership(&self, what: libc::c_int, index: u32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        sys::set_option(&self.fd, libc::SOL_PACKET, what, membership)
    }

    /// Receives from the interface with this number from now on, and from no other.
    pub(crate) fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: all zeroes is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as libc::c_int;
        // SAFETY: `address` is a sockaddr_ll of the length given and outlives the call.
        let bound = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Number of the interface that it was attached to, until it stopped to receive.
    pub(crate) fn index(&self) -> u32 {
        self.index.load(Ordering::Relaxed)
    }

    /// Frames that the kernel dropped since the last call because the receive buffer was full.
    pub(crate) fn take_drops(&self) -> u64 {
        // SAFETY: all zeroes is a valid tpacket_stats.
        let mut stats: libc::tpacket_stats = unsafe { mem::zeroed() };
        let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `stats` is writable for `len` bytes during the call.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                ptr::from_mut(&mut stats).cast(),
                &mut len,
            )
        };
        if result < 0 {
            0
        } else {
            u64::from(stats.tp_drops)
        }
    }

    /// Receives what is there, up to the inbox's ready slots; calls `each` for every frame, which
    /// must take the slot's chunks with [`Inbox::claim`]. Says how many came.
    pub(crate) fn receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        if inbox.ready == 0 {
            return Ok(0);
        }
        for (message, control) in inbox.messages.iter_mut().zip(&mut inbox.control) {
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
            message.msg_hdr.msg_flags = 0;
        }
        // SAFETY: the first `ready` messages point to vectors and control blocks in boxes that this
        // inbox owns, and those to chunks that no frame uses; all outlive the call.
        unsafe { sys::receive_many(&self.fd, &mut inbox.messages[..inbox.ready], 0) }
    }

    /// Sends the frames in `outbox` from number `from` on. Says how many the kernel took; an error
    /// concerns the first.
    pub(crate) fn send(&self, outbox: &mut Outbox, from: usize) -> io::Result<usize> {
        let messages = &mut outbox.messages[from..];
        // SAFETY: every message points to vectors that the outbox owns, and those to chunks of
        // frames that are still held; all outlive the call.
        let count = unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(count as usize)
    }
}

#[cfg(test)]
impl PacketSocket {
    /// The device cuts super-packets of TCP from now on, or not.
    pub(crate) fn set_cuts(&self, cuts: bool) {
        self.cuts.store(cuts, Ordering::Relaxed);
    }
}

impl PacketSocket {
    /// A socket of somebody else's, bound to no one interface, or for tests to nothing at all. Each
    /// datagram is a frame behind a virtio header.
    pub(crate) fn on(datagrams: impl Into<OwnedFd>) -> PacketSocket {
        PacketSocket {
            fd: datagrams.into(),
            index: AtomicU32::new(0),
            cuts: AtomicBool::new(false),
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Inbox {
    /// An inbox whose slots are filled from `pool`.
    pub(crate) fn new(pool: &mut Pool) -> Inbox {
        // SAFETY: all zeroes is a valid mmsghdr and iovec.
        let (message, vector) =
            unsafe { (mem::zeroed::<libc::mmsghdr>(), mem::zeroed::<libc::iovec>()) };
        let mut inbox = Inbox {
            chunks: vec![[u32::MAX; CHUNKS_PER_FRAME]; BATCH],
            vectors: vec![[vector; CHUNKS_PER_FRAME]; BATCH],
            control: vec![[0; CONTROL_WORDS]; BATCH],
            messages: vec![message; BATCH],
            ready: 0,
        };
        for slot in 0..BATCH {
            inbox.messages[slot].msg_hdr.msg_iov = inbox.vectors[slot].as_mut_ptr();
            inbox.messages[slot].msg_hdr.msg_iovlen = CHUNKS_PER_FRAME as _;
        }
        inbox.refill(pool);
        inbox
    }

    /// True if a frame could be received.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready > 0
    }

    /// Gives new chunks to slots that lack some, as far as the pool goes.
    pub(crate) fn refill(&mut self, pool: &mut Pool) {
        self.ready = 0;
        for (chunks, vectors) in self.chunks.iter_mut().zip(&mut self.vectors) {
            for (at, (chunk, vector)) in chunks.iter_mut().zip(vectors).enumerate() {
                if *chunk != u32::MAX {
                    // Chunks are taken from the front: the rest is there.
                    break;
                }
                let Some(fresh) = pool.take() else { return };
                *chunk = fresh;
                let skipped = if at == 0 { TAG_BYTES } else { 0 };
                *vector = libc::iovec {
                    // In bounds: a chunk is larger than a tag.
                    iov_base: pool.address(fresh).wrapping_add(skipped).cast(),
                    iov_len: CHUNK_BYTES - skipped,
                };
            }
            self.ready += 1;
        }
    }

    /// Frame that arrived in `slot` at the last `receive`.
    pub(crate) fn arrival(&self, slot: usize) -> Arrival {
        let message = &self.messages[slot];
        let (auxdata, stamp) = notes(&message.msg_hdr);
        Arrival {
            slot,
            len: message.msg_len as usize,
            complete: message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0
                && message.msg_len as usize > VNET_BYTES,
            tag: auxdata.and_then(|auxdata| tag_of(&auxdata)),
            stamp,
        }
    }

    /// Takes the chunks of an arrival out of its slot, as one chain; returns the first.
    pub(crate) fn claim(&mut self, arrival: &Arrival, pool: &mut Pool) -> u32 {
        let used = (arrival.len + TAG_BYTES).div_ceil(CHUNK_BYTES).clamp(1, CHUNKS_PER_FRAME);
        let chunks = &mut self.chunks[arrival.slot][..used];
        pool.chain(chunks);
        let first = chunks[0];
        chunks.fill(u32::MAX);
        first
    }
}

/// Auxiliary data and the time stamp among a received message's control messages.
pub(super) fn notes(header: &libc::msghdr) -> (Option<libc::tpacket_auxdata>, Option<Duration>) {
    let (mut auxdata, mut stamp) = (None, None);
    // SAFETY: the kernel has filled the control block that `header` points to.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: both functions yield null or a control message within the block.
    while let Some(control) = unsafe { next.as_ref() } {
        match (control.cmsg_level, control.cmsg_type) {
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                auxdata = read::<libc::tpacket_auxdata>(control);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                stamp = read::<libc::timespec>(control)
                    .map(|time| Duration::new(time.tv_sec as u64, time.tv_nsec as u32));
            }
            _ => {}
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(header, control) };
    }
    (auxdata, stamp)
}

/// Payload of a control message, if it is as long as a `T`, which must be valid as any bytes.
fn read<T: Copy>(control: &libc::cmsghdr) -> Option<T> {
    // SAFETY: CMSG_LEN only computes.
    let needed = unsafe { libc::CMSG_LEN(size_of::<T>() as _) };
    // SAFETY: the length says that a `T` follows the header; alignment is not relied upon; both
    // `T`s used here are integers all through.
    (control.cmsg_len >= needed as _)
        .then(|| unsafe { ptr::read_unaligned(libc::CMSG_DATA(control).cast::<T>()) })
}

fn tag_of(auxdata: &libc::tpacket_auxdata) -> Option<(u16, u16)> {
    if auxdata.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let protocol = if auxdata.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        libc::ETH_P_8021Q as u16
    } else {
        auxdata.tp_vlan_tpid
    };
    Some((protocol, auxdata.tp_vlan_tci))
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            vectors: Vec::with_capacity(BATCH * CHUNKS_PER_FRAME),
            messages: Vec::with_capacity(BATCH),
        }
    }

    /// Makes the outbox hold exactly `frames` (at most [`BATCH`]): first chunk, where the virtio
    /// header begins in it, and the bytes from there on.
    pub(crate) fn fill(&mut self, frames: impl Iterator<Item = (u32, usize, usize)>, pool: &Pool) {
        self.vectors.clear();
        self.messages.clear();
        for (first, mut start, mut left) in frames.take(BATCH) {
            // Capacity is never exceeded, so that vectors do not move under their messages.
            let vectors = self.vectors.as_mut_ptr().wrapping_add(self.vectors.len());
            let mut count = 0;
            let mut chunk = Some(first);
            while let Some(index) = chunk.filter(|_| left > 0) {
                let len = left.min(CHUNK_BYTES - start);
                debug_assert!(self.vectors.len() < self.vectors.capacity());
                self.vectors.push(libc::iovec {
                    // In bounds: `start` is less than a chunk.
                    iov_base: pool.address(index).wrapping_add(start).cast(),
                    iov_len: len,
                });
                (start, left, count) = (0, left - len, count + 1);
                chunk = pool.following(index);
            }
            // SAFETY: all zeroes is a valid mmsghdr.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_iov = vectors;
            message.msg_hdr.msg_iovlen = count;
            self.messages.push(message);
        }
    }
}
