//! Frames that are due: in their order, as fast as the other interface takes them.
//!
//! A device whose own queue is full is asked again every [`RETRY`], for [`PATIENCE`]; then frames
//! count as refused, until it takes one again.

use std::collections::VecDeque;
use std::io;

use simnel_core::{Span, Time};

use super::header::{Handle, VNET_BYTES};
use super::pool::{Pool, BATCH};
use super::socket::{Outbox, PacketSocket};
use crate::sys;

/// Time until a device whose queue was full is asked again.
pub(crate) const RETRY: Span = Span::from_micros(50);
/// Time for which it is asked for the same frame.
const PATIENCE: Span = Span::from_millis(5);

/// A frame in a pool's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) handle: Handle,
    /// Its bytes, from the Ethernet header on.
    pub(crate) len: u32,
}

/// Fates of frames in one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Frames that the interface took.
    pub(crate) packets: u64,
    /// Bytes of them.
    pub(crate) bytes: u64,
    /// Frames that it would not take: down, too large for its MTU, or stuck.
    pub(crate) refused: u64,
}

/// True if the sending side stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    No,
    /// The socket's send buffer is full: it says when it has room.
    Socket,
    /// The device's queue has been full since then.
    Device(Time),
    /// The device has taken nothing for longer than [`PATIENCE`].
    Dead,
}

/// Frames that are due and not yet taken by the kernel.
pub(crate) struct Outgoing {
    frames: VecDeque<Frame>,
    outbox: Outbox,
    /// Frames in the outbox; those from `next` on are the first of `frames`.
    loaded: usize,
    next: usize,
    blocked: Blocked,
}

impl Outgoing {
    /// None, and room for `most`.
    pub(crate) fn new(most: usize) -> Outgoing {
        Outgoing {
            frames: VecDeque::with_capacity(most),
            outbox: Outbox::new(),
            loaded: 0,
            next: 0,
            blocked: Blocked::No,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn blocked(&self) -> Blocked {
        self.blocked
    }

    /// Another frame that is due.
    #[inline]
    pub(crate) fn push(&mut self, frame: Frame) {
        self.frames.push_back(frame);
    }

    /// Gives up what was not sent; says how many frames.
    pub(crate) fn clear(&mut self, pool: &mut Pool) -> u64 {
        (self.loaded, self.next) = (0, 0);
        let given_up = self.frames.len() as u64;
        self.frames.drain(..).for_each(|frame| pool.release(frame.handle.chunk));
        given_up
    }

    /// Sends until all are gone or the sending side stands still.
    ///
    /// # Errors
    /// The interface is gone: `is_gone` is asked where an error may mean that.
    pub(crate) fn send(
        &mut self,
        to: &PacketSocket,
        pool: &mut Pool,
        is_gone: impl Fn() -> bool,
    ) -> (Sent, io::Result<()>) {
        let mut sent = Sent::default();
        while !self.frames.is_empty() {
            if self.next == self.loaded {
                self.load(pool);
            }
            let error = match to.send(&mut self.outbox, self.next) {
                Ok(count) => {
                    self.blocked = Blocked::No;
                    sent.packets += count as u64;
                    for _ in 0..count {
                        sent.bytes += self.advance(pool);
                    }
                    continue;
                }
                Err(error) => error,
            };
            match self.tolerate(&error, sys::now(), &is_gone) {
                Some(true) => {
                    sent.refused += 1;
                    self.advance(pool);
                }
                Some(false) => {}
                None => return (sent, Err(error)),
            }
            if matches!(self.blocked, Blocked::Socket | Blocked::Device(_)) {
                break;
            }
        }
        (sent, Ok(()))
    }

    fn load(&mut self, pool: &Pool) {
        let first = self.frames.iter().take(BATCH).map(|frame| {
            let Handle { chunk, start } = frame.handle;
            (chunk, usize::from(start), frame.len as usize + VNET_BYTES)
        });
        self.outbox.fill(first, pool);
        (self.loaded, self.next) = (self.frames.len().min(BATCH), 0);
    }

    /// Decides what an error in sending means: this frame is lost, or not; or nothing can be sent
    /// any more.
    fn tolerate(
        &mut self,
        error: &io::Error,
        now: Time,
        is_gone: impl Fn() -> bool,
    ) -> Option<bool> {
        match error.raw_os_error() {
            Some(libc::EINTR) => Some(false),
            Some(libc::EAGAIN) => {
                self.blocked = Blocked::Socket;
                Some(false)
            }
            // The device's queue is full, or (veth) nobody is at its other end.
            Some(libc::ENOBUFS) => match self.blocked {
                Blocked::Dead => Some(true),
                Blocked::Device(since) if now.since(since) > PATIENCE => {
                    self.blocked = Blocked::Dead;
                    Some(true)
                }
                Blocked::Device(_) => Some(false),
                _ => {
                    self.blocked = Blocked::Device(now);
                    Some(false)
                }
            },
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) if is_gone() => None,
            // Too large, not understood, or the interface is down: this frame only.
            _ => {
                if self.blocked != Blocked::Dead {
                    self.blocked = Blocked::No;
                }
                Some(true)
            }
        }
    }

    /// Frees the first frame; tells its bytes.
    fn advance(&mut self, pool: &mut Pool) -> u64 {
        self.next += 1;
        let Some(frame) = self.frames.pop_front() else { return 0 };
        pool.release(frame.handle.chunk);
        frame.len.into()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::frames::TAG_BYTES;

    /// A frame of `len` bytes in chunks of the pool.
    fn frame(pool: &mut Pool, len: u32) -> Frame {
        let count = (TAG_BYTES + VNET_BYTES + len as usize).div_ceil(crate::frames::CHUNK_BYTES);
        let chunks: Vec<u32> = (0..count).map(|_| pool.take().unwrap()).collect();
        pool.chain(&chunks);
        Frame { handle: Handle { chunk: chunks[0], start: TAG_BYTES as u8 }, len }
    }

    fn free(pool: &mut Pool) -> usize {
        let taken: Vec<u32> = std::iter::from_fn(|| pool.take()).collect();
        taken.iter().for_each(|chunk| pool.release(*chunk));
        taken.len()
    }

    #[test]
    fn frames_leave_in_their_order_and_are_counted() {
        let mut pool = Pool::new(256).unwrap();
        let before = free(&mut pool);
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let to = PacketSocket::on(ours);
        let mut outgoing = Outgoing::new(1);
        // More than one load. No datagram is as long as that of the middle.
        let lengths = (0..40).map(|n| if n == 20 { 400_000 } else { 100 + n });
        for len in lengths.clone() {
            outgoing.push(frame(&mut pool, len));
        }
        let mut all = Sent::default();
        let mut came = Vec::new();
        let mut bytes = [0; 4_096];
        while !outgoing.is_empty() {
            let (sent, result) = outgoing.send(&to, &mut pool, || panic!("it is not"));
            assert!(result.is_ok());
            all.packets += sent.packets;
            all.bytes += sent.bytes;
            all.refused += sent.refused;
            while let Ok(length) = theirs.recv(&mut bytes) {
                came.push((length - VNET_BYTES) as u32);
            }
        }
        let expected: Vec<u32> = lengths.filter(|len| *len < 4_096).collect();
        assert_eq!(came, expected);
        let total = came.iter().map(|len| u64::from(*len)).sum();
        assert_eq!(all, Sent { packets: 39, bytes: total, refused: 1 });
        assert_eq!(free(&mut pool), before, "buffers are free again");
        for len in [60, 3_000] {
            outgoing.push(frame(&mut pool, len));
        }
        assert_eq!((outgoing.clear(&mut pool), outgoing.is_empty()), (2, true));
        assert_eq!((outgoing.clear(&mut pool), free(&mut pool)), (0, before));
    }

    #[test]
    fn a_full_device_is_asked_again_for_a_while() {
        let mut outgoing = Outgoing::new(1);
        let mut says = |code, at, is_gone| {
            let error = io::Error::from_raw_os_error(code);
            let fate = outgoing.tolerate(&error, Time(at), || is_gone);
            (fate, outgoing.blocked())
        };
        let (full, patience) = (libc::ENOBUFS, PATIENCE.0);
        assert_eq!(says(libc::EINTR, 1, false), (Some(false), Blocked::No));
        assert_eq!(says(libc::EAGAIN, 2, false), (Some(false), Blocked::Socket));
        assert_eq!(says(full, 3, false), (Some(false), Blocked::Device(Time(3))));
        assert_eq!(says(full, 3 + patience, false), (Some(false), Blocked::Device(Time(3))));
        // A frame that it would not take in any case changes nothing for the next...
        assert_eq!(says(libc::EMSGSIZE, 9, false), (Some(true), Blocked::No));
        assert_eq!(says(full, 10, false), (Some(false), Blocked::Device(Time(10))));
        assert_eq!(says(full, 11 + patience, false), (Some(true), Blocked::Dead));
        // ...and once nothing leaves, nothing is waited for.
        assert_eq!(says(full, 11 + patience, false), (Some(true), Blocked::Dead));
        assert_eq!(says(libc::EMSGSIZE, 12 + patience, false), (Some(true), Blocked::Dead));
        assert_eq!(says(libc::ENETDOWN, 13 + patience, false), (Some(true), Blocked::Dead));
        for code in [libc::ENETDOWN, libc::ENXIO, libc::ENODEV] {
            assert_eq!(says(code, 14 + patience, true).0, None);
        }
    }
}
