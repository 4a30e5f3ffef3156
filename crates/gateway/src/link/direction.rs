//! One direction of a link: receive, queue, send when due, wait.
//!
//! The loop takes what has arrived, sends what is due in one batch, and sleeps until the next frame
//! arrives or is due. An arrival is offered to the discipline at the time that the kernel stamped
//! on it, so a late wake-up does not lengthen the line. A late wake-up makes a small burst and
//! never a lower rate, because the line's clock is virtual. When frames are due less than
//! [`COALESCE`] apart for a while (above some 200 Mbit/s), they are sent in batches that far apart.
//! Measured, a wake-up per frame costs 11 µs of CPU a frame, batches of six 7 µs.
//!
//! Invariants: received = delivered + dropped + refused + truncated + queued; frames keep their
//! order; nothing allocates once the loop runs.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use simnel_core::packet::Packet;
use simnel_core::qdisc::{DropReason, Managed, PacketOwner};
use simnel_core::time::{Span, Time};

use super::error::LinkError;
use super::moment::Moment;
use super::port::Port;
use crate::frames::{
    self, add, Blocked, Frame, Handle, Inbox, Outgoing, PacketSocket, Pool, BATCH, MOST_SEGMENTS,
    RETRY, VNET_BYTES,
};
use crate::sys;

/// Above ordinary threads, below the kernel's own (50) and audio servers.
const PRIORITY: u8 = 10;
/// Frames due closer together than this go in batches.
const COALESCE: Span = Span::from_micros(50);
/// Short waits in a row after which batches begin: a chance pair of frames is not delayed.
const COALESCE_AFTER: u32 = 8;
/// Longest sleep before a look at `stop`.
const STOP_CHECK: Span = Span::from_millis(100);
/// A real-time thread that never sleeps keeps all others from its core until the kernel stops it
/// for 50 ms at a time. So of each such window ...
const BUSY_WINDOW: Span = Span::from_millis(10);
/// ... at least this much is left to others: the kernel's 5 %, in small pieces.
const LEAST_REST: Span = Span::from_micros(500);

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Frames that came in, super-packets counted once unless they have to be cut.
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

/// One direction.
pub(super) struct Direction<'a> {
    from: &'a Port,
    to: &'a Port,
    counters: &'a Counters,
    discipline: Box<dyn Managed + Send>,
    pool: Pool,
    inbox: Inbox,
    outgoing: Outgoing,
    /// Those of a super-packet that the other device does not cut.
    segments: Vec<Frame>,
    /// The latest time that the discipline was told.
    told: Time,
    short_waits: u32,
    /// Start of the present [`BUSY_WINDOW`], and how much of it was spent waiting.
    window: Time,
    rested: Span,
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
        from: &'a Port,
        to: &'a Port,
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
            outgoing: Outgoing::new(BATCH),
            segments: Vec::with_capacity(MOST_SEGMENTS),
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
        add(&self.counters.dropped, self.outgoing.clear(&mut self.pool));
        let mut owner = Owner { pool: &mut self.pool, dropped: &self.counters.dropped };
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
                _ => return Err(self.from.error("receive", error).into()),
            },
        };
        if count == 0 {
            return Ok(0);
        }
        let moment = Moment::now();
        for slot in 0..count {
            let arrival = self.inbox.arrival(slot);
            let chunk = self.inbox.claim(&arrival, &mut self.pool);
            let len = arrival.len.saturating_sub(VNET_BYTES);
            // A frame that came while we were at work is stamped before our last look at the
            // clock; disciplines are never told of the past.
            self.told = self.told.max(moment.of(arrival.stamp));
            if !arrival.complete {
                self.pool.release(chunk);
                add(&self.counters.truncated, 1);
                self.count(len as u32);
                continue;
            }
            let (start, len) = frames::with_tag(self.pool.bytes_mut(chunk), arrival.tag, len);
            let handle = Handle { chunk, start: start as u8 };
            self.take(Frame { handle, len: len as u32 });
        }
        Ok(count)
    }

    /// Offers a frame to the discipline; a super-packet in segments if nobody behind it cuts it.
    fn take(&mut self, frame: Frame) {
        let packet = self.packet(frame);
        let stays_whole = packet.gso_size == 0 || self.to.cuts();
        if stays_whole || !frames::split(&mut self.pool, frame, &mut self.segments) {
            return self.enqueue(&packet);
        }
        self.pool.release(frame.handle.chunk);
        for number in 0..self.segments.len() {
            self.enqueue(&self.packet(self.segments[number]));
        }
        self.segments.clear();
    }

    fn packet(&self, frame: Frame) -> Packet {
        let bytes = &self.pool.bytes(frame.handle.chunk)[usize::from(frame.handle.start)..];
        frames::describe(frame.handle, bytes, frame.len as usize)
    }

    fn enqueue(&mut self, packet: &Packet) {
        self.count(packet.len);
        let mut owner = Owner { pool: &mut self.pool, dropped: &self.counters.dropped };
        self.discipline.enqueue(packet, self.told, &mut owner);
    }

    fn count(&self, bytes: u32) {
        add(&self.counters.received_packets, 1);
        add(&self.counters.received_bytes, bytes.into());
    }

    /// Sends everything that is due, unless the device stands still.
    fn send_due(&mut self) -> Result<(), LinkError> {
        loop {
            if self.outgoing.is_empty() {
                let now = sys::now();
                self.told = now;
                let mut owner = Owner { pool: &mut self.pool, dropped: &self.counters.dropped };
                for _ in 0..BATCH {
                    let Some(packet) = self.discipline.dequeue(now, &mut owner) else { break };
                    let handle = Handle::unpack(packet.handle);
                    self.outgoing.push(Frame { handle, len: packet.len });
                }
                if self.outgoing.is_empty() {
                    return Ok(());
                }
            }
            let (sent, result) = self.outgoing.send(self.to, &mut self.pool, || self.to.is_gone());
            add(&self.counters.delivered_packets, sent.packets);
            add(&self.counters.delivered_bytes, sent.bytes);
            add(&self.counters.refused, sent.refused);
            result.map_err(|error| self.to.error("send", error))?;
            if !self.outgoing.is_empty() {
                return Ok(());
            }
        }
    }

    /// Waits for the next thing to do.
    fn sleep(&mut self) {
        let now = sys::now();
        let due = match self.outgoing.blocked() {
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
        let writable = self.outgoing.blocked() == Blocked::Socket;
        let (from, to) = (readable.then(|| self.from.as_fd()), writable.then(|| self.to.as_fd()));
        sys::wait_both(from, to, span);
        self.rested += sys::now().since(now);
    }

    /// Leaves the core to others if this thread has not done so for a while.
    fn rest(&mut self) {
        let now = sys::now();
        if now.since(self.window) < BUSY_WINDOW {
            return;
        }
        if self.rested < LEAST_REST {
            sys::wait_both(None, None, LEAST_REST);
        }
        (self.window, self.rested) = (now, Span::ZERO);
    }
}
