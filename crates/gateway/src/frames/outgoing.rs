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
            match self.tolerate(&error, &is_gone) {
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
    fn tolerate(&mut self, error: &io::Error, is_gone: impl Fn() -> bool) -> Option<bool> {
        match error.raw_os_error() {
            Some(libc::EINTR) => Some(false),
            Some(libc::EAGAIN) => {
                self.blocked = Blocked::Socket;
                Some(false)
            }
            // The device's queue is full, or (veth) nobody is at its other end.
            Some(libc::ENOBUFS) => match self.blocked {
                Blocked::Dead => Some(true),
                Blocked::Device(since) if sys::now().since(since) > PATIENCE => {
                    self.blocked = Blocked::Dead;
                    Some(true)
                }
                Blocked::Device(_) => Some(false),
                _ => {
                    self.blocked = Blocked::Device(sys::now());
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
