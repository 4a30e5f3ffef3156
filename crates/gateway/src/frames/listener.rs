//! Copies of the headers of what passes an interface, by a packet socket that holds no packet.

use std::io::{self, ErrorKind};
use std::mem::{self, size_of};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::error::FrameError;
use super::header::{segment_of, VNET_BYTES};
use super::socket::{notes, PacketSocket, CONTROL_WORDS};
use crate::sys;

/// Packets of one receive call.
const BATCH: usize = 64;
/// Bytes of each packet that are copied: what NFQUEUE does (`nfqueue.rs`), and link headers.
const COPIED: usize = 168 + 32;

/// A packet that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard<'a> {
    /// Its EtherType.
    pub(crate) protocol: u16,
    /// Its first bytes, from the network header on.
    pub(crate) bytes: &'a [u8],
    /// Its length from the network header on.
    pub(crate) len: u32,
    /// Payload of each of its segments, of a super-packet; else 0.
    pub(crate) segment: u16,
    /// True if it was sent, false if it came.
    pub(crate) is_sent: bool,
    /// Time of that, by the system's clock (CLOCK_REALTIME), since its epoch.
    pub(crate) stamp: Option<Duration>,
}

/// A socket, and room for what it hears at a time.
pub(crate) struct Listener {
    socket: PacketSocket,
    bytes: Box<[[u8; VNET_BYTES + COPIED]]>,
    names: Box<[libc::sockaddr_ll]>,
    messages: Box<[libc::mmsghdr]>,
    /// The messages point at these, and at the boxes above.
    _vectors: Box<[libc::iovec]>,
    _control: Box<[[u64; CONTROL_WORDS]]>,
}

// SAFETY: the pointers in it lead to its own boxes, which go where it goes.
unsafe impl Send for Listener {}

impl Listener {
    /// Most packets of one call of [`Listener::receive`].
    pub(crate) const BATCH: usize = BATCH;

    /// Listens to `interface`. Needs CAP_NET_RAW.
    pub(crate) fn open(interface: &str) -> Result<Listener, FrameError> {
        Ok(Listener::on(PacketSocket::listening(interface)?))
    }

    /// Listens by `socket`.
    pub(crate) fn on(socket: PacketSocket) -> Listener {
        // SAFETY: all zeroes is a valid sockaddr_ll and mmsghdr.
        let (name, message) =
            unsafe { (mem::zeroed::<libc::sockaddr_ll>(), mem::zeroed::<libc::mmsghdr>()) };
        let mut bytes = vec![[0; VNET_BYTES + COPIED]; BATCH].into_boxed_slice();
        let mut names = vec![name; BATCH].into_boxed_slice();
        let mut control = vec![[0; CONTROL_WORDS]; BATCH].into_boxed_slice();
        let mut messages = vec![message; BATCH].into_boxed_slice();
        let vector = |bytes: &mut [u8; VNET_BYTES + COPIED]| libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let mut vectors: Box<[libc::iovec]> = bytes.iter_mut().map(vector).collect();
        for (slot, message) in messages.iter_mut().enumerate() {
            let header = &mut message.msg_hdr;
            (header.msg_iov, header.msg_iovlen) = (&raw mut vectors[slot], 1);
            header.msg_name = (&raw mut names[slot]).cast();
            header.msg_control = control[slot].as_mut_ptr().cast();
        }
        Listener { socket, bytes, names, _control: control, messages, _vectors: vectors }
    }

    /// Receives what is there, without waiting: how many packets.
    pub(crate) fn receive(&mut self) -> io::Result<usize> {
        for message in &mut self.messages {
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            message.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        }
        // SAFETY: each message points at its own vector, name and control block, and the vector at
        // its own part of `bytes`, all boxes of `self`, which is borrowed mutably. With MSG_TRUNC
        // lengths are told of whole packets, but no more is written.
        match unsafe { sys::receive_many(&self.socket, &mut self.messages, libc::MSG_TRUNC) } {
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    /// Packet `index` of the last call.
    pub(crate) fn get(&self, index: usize) -> Option<Heard<'_>> {
        let message = &self.messages[index];
        let len = (message.msg_len as usize).checked_sub(VNET_BYTES)?;
        let (head, bytes) = self.bytes[index].split_first_chunk()?;
        let (auxdata, stamp) = notes(&message.msg_hdr);
        // Not every device has link headers.
        let link = auxdata.map_or(0, |auxdata| auxdata.tp_net.into());
        let network = bytes.get(..len).unwrap_or(bytes).get(link..)?;
        Some(Heard {
            protocol: u16::from_be(self.names[index].sll_protocol),
            bytes: network,
            len: (len - link) as u32,
            segment: segment_of(head),
            is_sent: self.names[index].sll_pkttype == libc::PACKET_OUTGOING,
            stamp,
        })
    }

    /// Listens to the interface with this number from now on.
    pub(crate) fn listen_to(&self, index: u32) -> io::Result<()> {
        self.socket.bind(index)
    }

    /// Packets that the kernel had no room for since the last call.
    pub(crate) fn take_drops(&self) -> u64 {
        self.socket.take_drops()
    }
}

/// Beginnings of the frames that a packet socket hears, read many at a time.
pub struct FrameReader(Listener);

impl FrameReader {
    /// Reads from `socket`, an AF_PACKET socket whose protocol and filter are its owner's.
    pub fn new(socket: OwnedFd) -> io::Result<FrameReader> {
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1i32)?;
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1i32)?;
        Ok(FrameReader(Listener::on(PacketSocket::on(socket))))
    }

    /// Hands over what has come, from the link header on, and when it came, since the epoch. The
    /// result is how many frames more the kernel had no room for since the last call.
    pub fn drain(&mut self, see: &mut dyn FnMut(&[u8], Duration)) -> io::Result<u64> {
        loop {
            let count = self.0.receive()?;
            for heard in (0..count).filter_map(|index| self.0.get(index)) {
                if let Some(stamp) = heard.stamp {
                    see(heard.bytes, stamp);
                }
            }
            if count == 0 {
                return Ok(self.0.take_drops());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn headers_are_copied_and_the_whole_length_is_told() {
        let (ours, other) = UnixDatagram::pair().unwrap();
        let mut listener = Listener::on(PacketSocket::on(ours));
        assert_eq!(listener.receive().unwrap(), 0);
        let long = [&[1, 1, 66, 0][..], &1448u16.to_ne_bytes(), &[0; 4], &[7; 3_000]].concat();
        for packet in [&[&[0; VNET_BYTES][..], &[1, 2, 3]].concat(), &long, &vec![0; 9]] {
            other.send(packet).unwrap();
        }
        assert_eq!(listener.receive().unwrap(), 3);
        let plain = Heard {
            protocol: 0,
            bytes: &[1, 2, 3],
            len: 3,
            segment: 0,
            is_sent: false,
            stamp: None,
        };
        let whole = Heard { bytes: &[7; COPIED], len: 3_000, segment: 1_448, ..plain };
        // The third has no whole virtio header.
        assert_eq!([0, 1, 2].map(|at| listener.get(at)), [Some(plain), Some(whole), None]);
        assert_eq!(listener.receive().unwrap(), 0);
    }

    /// Each frame of the loopback is heard as it is sent and as it comes, with the time of that.
    #[test]
    fn frames_are_handed_over_with_their_times() {
        crate::apart::apart("frames_are_handed_over_with_their_times", || {
            let every =
                rustix::net::Protocol::from_raw(u32::from(3u16.to_be()).try_into().unwrap());
            let (family, kind) = (rustix::net::AddressFamily::PACKET, rustix::net::SocketType::RAW);
            let socket = rustix::net::socket(family, kind, Some(every)).unwrap();
            let mut reader = FrameReader::new(socket).unwrap();
            let clock = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
            let begin = clock();
            let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            // More than are read in one call.
            for _ in 0..BATCH {
                sender.send_to(b"simnel", "127.0.0.1:9").unwrap();
            }
            let mut frames = 0;
            let mut see = |frame: &[u8], at: Duration| {
                // Others tell that nobody listens there.
                frames += usize::from(frame.len() == 14 + 20 + 8 + 6);
                assert!((begin..=clock()).contains(&at), "{at:?}");
            };
            assert_eq!(reader.drain(&mut see).unwrap(), 0);
            assert_eq!(frames, 2 * BATCH);
        });
    }
}
