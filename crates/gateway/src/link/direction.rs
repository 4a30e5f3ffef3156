//! One direction of a link: receive, queue, send when due, wait.
//!
//! The loop takes what has arrived, offers it to the discipline at the time that the kernel stamped
//! on it (so that a late wake-up does not lengthen the line), sends what is due in one batch, and
//! sleeps until the next frame arrives or is due. A late wake-up makes a small burst and never a
//! lower rate, because the line's clock is virtual. When frames are due less than [`COALESCE`]
//! apart for a while (above some 200 Mbit/s), they are sent in batches that far apart: measured, a
//! wake-up per frame costs 11 µs of CPU a frame, batches of six 7 µs.
//!
//! Invariants: received = delivered + dropped + refused + truncated + queued; frames keep their
//! order; nothing allocates once the loop runs.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use simnel_core::packet::Packet;
use simnel_core::qdisc::{DropReason, Managed, PacketOwner};
use simnel_core::time::{Span, Time};

use super::error::LinkError;
use super::frame::{self, Handle, TAG_BYTES, VNET_BYTES};
use super::moment::Moment;
use super::pool::{Pool, BATCH};
use super::socket::{wait, Inbox, Outbox, PacketSocket};
use crate::sys;

/// Above ordinary threads, below the kernel's own (50) and audio servers.
const PRIORITY: u8 = 10;
/// Frames due closer together than this go in batches.
const COALESCE: Span = Span::from_micros(50);
/// Short waits in a row after which batches begin: a chance pair of frames is not delayed.
const COALESCE_AFTER: u32 = 8;
/// How soon `stop` is noticed.
const STOP_CHECK: Span = Span::from_millis(100);
/// A device whose own queue is full is asked again so often, for so long; then frames count as
/// refused, until it takes one again.
const RETRY: Span = Span::from_micros(50);
const PATIENCE: Span = Span::from_millis(5);

/// A real-time thread that never sleeps keeps all others from its core until the kernel stops it
/// for 50 ms at a time. So of each such window ...
const BUSY_WINDOW: Span = Span::from_millis(10);
/// ... at least this much is left to others: the kernel's 5 %, in small pieces.
const LEAST_REST: Span = Span::from_micros(500);

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Frames that came in, super-packets counted once.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames handed to the other interface.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Frames that the line dropped: at its limits, or on their way when the link stopped.
    pub dropped: u64,
    /// Frames that the other interface would not take: down, too large for its MTU, or stuck.
    pub refused: u64,
    /// Frames too large for any buffer, or without contents.
    pub truncated: u64,
    /// Frames that the kernel dropped before we saw them, its receive buffer being full.
    pub missed: u64,
}

/// [`DirectionStats`] as written by the direction's thread and read by others.
#[derive(Debug, Default)]
pub(super) struct Counters {
    received_packets: AtomicU64,
    received_bytes: AtomicU64,
    delivered_packets: AtomicU64,
    delivered_bytes: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
    truncated: AtomicU64,
    missed: AtomicU64,
}

impl Counters {
    /// All counters; `from` is the socket that the direction receives from.
    pub(super) fn read(&self, from: &PacketSocket) -> DirectionStats {
        // The kernel's counter restarts at each reading, whoever reads.
        let news = from.take_drops();
        let missed = self.missed.fetch_add(news, Ordering::Relaxed) + news;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DirectionStats {
            received_packets: get(&self.received_packets),
            received_bytes: get(&self.received_bytes),
            delivered_packets: get(&self.delivered_packets),
            delivered_bytes: get(&self.delivered_bytes),
            dropped: get(&self.dropped),
            refused: get(&self.refused),
            truncated: get(&self.truncated),
            missed,
        }
    }
}

/// Adds to a counter that only this thread writes.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// One direction.
pub(super) struct Direction<'a> {
    from: &'a PacketSocket,
    to: &'a PacketSocket,
    counters: &'a Counters,
    discipline: Box<dyn Managed + Send>,
    pool: Pool,
    inbox: Inbox,
    outbox: Outbox,
    /// Frames that are due and not yet taken by the kernel: `pending[sent..]`.
    pending: Vec<Packet>,
    sent: usize,
    blocked: Blocked,
    /// The latest time that the discipline was told.
    told: Time,
    short_waits: u32,
    /// Start of the present [`BUSY_WINDOW`], and how much of it was spent waiting.
    window: Time,
    rested: Span,
}

/// True if the sending side stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    No,
    /// The socket's send buffer is full: it says when it has room.
    Socket,
    /// The device's queue has been full since then.
    Device(Time),
    /// The device has taken nothing for longer than [`PATIENCE`].
    Dead,
}

/// Frees the buffers of dropped packets.
struct Owner<'a> {
    pool: &'a mut Pool,
    dropped: &'a AtomicU64,
}

impl PacketOwner for Owner<'_> {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.pool.release(Handle::unpack(packet.handle).chunk);
        add(self.dropped, 1);
    }
}

impl<'a> Direction<'a> {
    pub(super) fn new(
        from: &'a PacketSocket,
        to: &'a PacketSocket,
        discipline: Box<dyn Managed + Send>,
        mut pool: Pool,
        counters: &'a Counters,
    ) -> Direction<'a> {
        Direction {
            from,
            to,
            counters,
            discipline,
            inbox: Inbox::new(&mut pool),
            pool,
            outbox: Outbox::new(),
            pending: Vec::with_capacity(BATCH),
            sent: 0,
            blocked: Blocked::No,
            told: Time::ZERO,
            short_waits: 0,
            window: sys::now(),
            rested: Span::ZERO,
        }
    }

    /// Forwards until `stop` says so or an interface is gone.
    pub(super) fn run(&mut self, stop: impl Fn() -> bool) -> Result<(), LinkError> {
        // Without CAP_SYS_NICE, the thread stays in its own class and wakes later.
        sys::precise_timers();
        let _ = sys::realtime(PRIORITY);
        let result = loop {
            if stop() {
                break Ok(());
            }
            let received = match self.receive() {
                Ok(received) => received,
                Err(error) => break Err(error),
            };
            if let Err(error) = self.send_due() {
                break Err(error);
            }
            if received < BATCH {
                self.sleep();
            }
            self.rest();
        };
        let mut owner = Owner { pool: &mut self.pool, dropped: &self.counters.dropped };
        for packet in self.pending.drain(self.sent..) {
            owner.dropped(packet, DropReason::Reset);
        }
        self.discipline.reset(&mut owner);
        result
    }

    /// Takes one batch in; says how many frames came.
    fn receive(&mut self) -> Result<usize, LinkError> {
        self.inbox.refill(&mut self.pool);
        let count = match self.from.receive(&mut self.inbox) {
            Ok(count) => count,
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => 0,
                // The interface went down; it may come back unless it was removed.
                Some(libc::ENETDOWN) if !self.from.is_gone() => 0,
                _ => return Err(self.from.error("receive", error)),
            },
        };
        if count == 0 {
            return Ok(0);
        }
        let moment = Moment::now();
        let mut bytes = 0;
        for slot in 0..count {
            let arrival = self.inbox.arrival(slot);
            let chunk = self.inbox.claim(&arrival, &mut self.pool);
            let mut len = arrival.len.saturating_sub(VNET_BYTES);
            bytes += len as u64;
            if !arrival.complete {
                self.pool.release(chunk);
                add(&self.counters.truncated, 1);
                continue;
            }
            let head = self.pool.bytes_mut(chunk);
            let mut start = TAG_BYTES;
            if let Some((protocol, tag)) = arrival.tag {
                frame::insert_tag(head, protocol, tag);
                (start, len) = (0, len + TAG_BYTES);
            }
            let handle = Handle { chunk, start: start as u8 };
            let packet = frame::describe(handle, &head[start..], len);
            let mut owner = Owner { pool: &mut self.pool, dropped: &self.counters.dropped };
            // A frame that came while we were at work is stamped before our last look at the
            // clock; disciplines are never told of the past.
            self.told = self.told.max(moment.of(arrival.stamp));
            self.discipline.enqueue(&packet, self.told, &mut owner);
        }
        add(&self.counters.received_packets, count as u64);
        add(&self.counters.received_bytes, bytes);
        Ok(count)
    }

    /// Sends everything that is due, unless the device stands still.
    fn send_due(&mut self) -> Result<(), LinkError> {
        loop {
            if self.pending.is_empty() {
                let now = sys::now();
                self.told = now;
                let mut owner = Owner { pool: &mut self.pool, dropped: &self.counters.dropped };
                while self.pending.len() < BATCH {
                    let Some(packet) = self.discipline.dequeue(now, &mut owner) else { break };
                    self.pending.push(*packet);
                }
                if self.pending.is_empty() {
                    return Ok(());
                }
                let frames = self.pending.iter().map(|packet| {
                    let Handle { chunk, start } = Handle::unpack(packet.handle);
                    (chunk, usize::from(start), packet.len as usize + VNET_BYTES)
                });
                self.outbox.fill(frames, &self.pool);
            }
            self.send_pending()?;
            if self.sent < self.pending.len() {
                return Ok(());
            }
            self.pending.clear();
            self.sent = 0;
        }
    }

    /// Sends `pending[sent..]` until all are gone or the sending side stands still.
    fn send_pending(&mut self) -> Result<(), LinkError> {
        while self.sent < self.pending.len() {
            let error = match self.to.send(&mut self.outbox, self.sent) {
                Ok(count) => {
                    self.blocked = Blocked::No;
                    let taken = self.sent..self.sent + count;
                    let bytes: u64 =
                        self.pending[taken.clone()].iter().map(|p| u64::from(p.len)).sum();
                    add(&self.counters.delivered_packets, count as u64);
                    add(&self.counters.delivered_bytes, bytes);
                    taken.for_each(|_| self.advance());
                    continue;
                }
                Err(error) => error,
            };
            if !self.tolerate(&error) {
                return Err(self.to.error("send", error));
            }
            if matches!(self.blocked, Blocked::Socket | Blocked::Device(_)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Decides what an error in sending means: wait, lose this frame, or (false) give up.
    fn tolerate(&mut self, error: &io::Error) -> bool {
        let refuse = |direction: &mut Self| {
            add(&direction.counters.refused, 1);
            direction.advance();
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN) => self.blocked = Blocked::Socket,
            // The device's queue is full, or (veth) nobody is at its other end.
            Some(libc::ENOBUFS) => match self.blocked {
                Blocked::Dead => refuse(self),
                Blocked::Device(since) if sys::now().since(since) > PATIENCE => {
                    self.blocked = Blocked::Dead;
                    refuse(self);
                }
                Blocked::Device(_) => {}
                _ => self.blocked = Blocked::Device(sys::now()),
            },
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) if self.to.is_gone() => return false,
            // Too large, not understood, or the interface is down: this frame only.
            _ => {
                if self.blocked != Blocked::Dead {
                    self.blocked = Blocked::No;
                }
                refuse(self);
            }
        }
        true
    }

    /// Frees the first pending frame.
    fn advance(&mut self) {
        self.pool.release(Handle::unpack(self.pending[self.sent].handle).chunk);
        self.sent += 1;
    }

    /// Waits for the next thing to do.
    fn sleep(&mut self) {
        let now = sys::now();
        let due = match self.blocked {
            Blocked::Device(_) => Some(now + RETRY),
            Blocked::Socket => None,
            Blocked::No | Blocked::Dead => self.discipline.next_event(),
        };
        // Due at the last look already: it has stopped to let others work, and goes on at once.
        if due.is_some_and(|due| due <= self.told) {
            return;
        }
        let mut span = due.map_or(STOP_CHECK, |due| due.since(now)).min(STOP_CHECK);
        let short = due.is_some() && span < COALESCE;
        self.short_waits = if short { self.short_waits.saturating_add(1) } else { 0 };
        let coalesce = short && self.short_waits > COALESCE_AFTER;
        if coalesce {
            span = COALESCE;
        } else if span == Span::ZERO {
            return;
        }
        let readable = self.inbox.is_ready() && !coalesce;
        let writable = self.blocked == Blocked::Socket;
        wait(self.from, readable, self.to, writable, span);
        self.rested += sys::now().since(now);
    }

    /// Leaves the core to others if this thread has not done so for a while.
    fn rest(&mut self) {
        let now = sys::now();
        if now.since(self.window) < BUSY_WINDOW {
            return;
        }
        if self.rested < LEAST_REST {
            wait(self.from, false, self.to, false, LEAST_REST);
        }
        (self.window, self.rested) = (now, Span::ZERO);
    }
}
