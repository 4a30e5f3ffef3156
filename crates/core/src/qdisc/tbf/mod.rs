//! `tbf`: a token bucket before any discipline (man tc-tbf; facts D.8).
//!
//! A packet is sent when the bucket holds its time at `rate`. With a `peakrate`, a second, small
//! bucket must hold its time at that, too. Packets longer than `burst` could never be sent and are
//! dropped on arrival. A super-packet, whose segments could, is sent when the bucket is full and
//! leaves it in debt. Below stands a FIFO of `limit` bytes, or what the words say.
//!
//! Invariants: the first packet is never overtaken; over any span at most `rate * span + burst`
//! bytes and one super-packet.

mod words;

use alloc::boxed::Box;

use crate::framing::Framing;
use crate::packet::Packet;
use crate::qdisc::child::{Child, Tally};
use crate::qdisc::{
    fifo, prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, DropReason, Managed,
    PacketOwner, Qdisc, Snapshot, Totals,
};
use crate::rate::{Arithmetic, ByteTime, Rate};
use crate::shaper::token_bucket::TokenBucket;
use crate::time::{Span, Time};

/// Settings, with the names of `tc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Rate on average.
    pub rate: Rate,
    /// Bytes that may be sent at once.
    pub burst: u32,
    /// A second, higher rate, and the bytes that may be sent at once at that.
    pub peak: Option<(Rate, u32)>,
    /// Bytes that may be queued, where nothing else is below.
    pub limit: u32,
    /// Framing: a packet's size on the line.
    pub framing: Framing,
    /// Discipline below; a `bfifo` of `limit` if None.
    pub child: Option<Box<Config>>,
}

impl Params {
    /// The discipline below.
    pub fn below(&self) -> Config {
        let fifo = fifo::Params { kind: fifo::Kind::Bfifo, limit: Some(self.limit) };
        self.child.as_ref().map_or(Config::Fifo(fifo), |config| Config::clone(config))
    }

    /// Longest packet that can be sent. Longer ones than a shaper can charge do not come.
    fn max_size(&self) -> u32 {
        let size = self.peak.map_or(self.burst, |(_, mtu)| self.burst.min(mtu));
        size.min(ByteTime::MOST_BYTES)
    }

    /// The buckets for `rate` and for the peak rate.
    pub(crate) fn buckets(&self, arithmetic: Arithmetic) -> (TokenBucket, Option<TokenBucket>) {
        let bucket = |rate, burst| TokenBucket::new(rate, self.framing.wire_len(burst), arithmetic);
        (bucket(self.rate, self.burst), self.peak.map(|(rate, mtu)| bucket(rate, mtu)))
    }
}

/// A token bucket and the discipline below it.
#[derive(Debug)]
pub struct Tbf {
    rate: TokenBucket,
    peak: Option<TokenBucket>,
    /// Time as of which the buckets' levels hold.
    filled: Time,
    framing: Framing,
    max_size: u32,
    child: Child,
    /// But for `sent_packets`, which the others tell.
    totals: Totals,
    params: Params,
    device: Device,
}

impl Tbf {
    /// Full buckets, and nothing queued.
    pub fn new(params: &Params, device: &Device) -> Result<Tbf, ConfigError> {
        let (rate, peak) = params.buckets(device.arithmetic);
        Ok(Tbf {
            rate,
            peak,
            filled: device.now,
            framing: params.framing,
            max_size: params.max_size(),
            child: Child::new(&params.below(), device)?,
            totals: Totals::default(),
            params: params.clone(),
            device: *device,
        })
    }

    /// Time from `filled` until the buckets hold what a packet of `wire_len` bytes needs.
    #[inline(always)]
    fn wait(&self, wire_len: u32) -> Span {
        let wait = self.rate.wait(wire_len);
        self.peak.as_ref().map_or(wait, |peak| wait.max(peak.wait(wire_len)))
    }

    /// True if a packet of `wire_len` bytes may be sent at `now`, for which it then pays.
    #[inline(always)]
    fn pays(&mut self, wire_len: u32, now: Time) -> bool {
        let elapsed = now.since(self.filled);
        if elapsed < self.wait(wire_len) {
            self.totals.overlimits += 1;
            return false;
        }
        // Time beyond what the larger bucket holds is lost to both, as in Linux.
        let elapsed = elapsed.min(self.rate.depth());
        self.rate.pay(elapsed, wire_len, i64::MIN);
        if let Some(peak) = &mut self.peak {
            peak.pay(elapsed, wire_len, i64::MIN);
        }
        self.filled = self.filled.max(now);
        true
    }

    /// As `enqueue`, for any packet and any discipline below.
    #[inline(never)]
    fn enqueue_any(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let clamped = packet.clamped(ByteTime::MOST_BYTES);
        let packet = clamped.as_ref().unwrap_or(packet);
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        let segment = match packet.segments() {
            1 => packet.len,
            _ => u32::from(packet.gso_size) + u32::from(packet.header_len),
        };
        if segment > self.max_size {
            return tally.dropped(*packet, DropReason::Overlimit);
        }
        self.child.enqueue(packet, now, &mut tally);
    }

    /// As `dequeue`, for any packet and any discipline below.
    #[inline(never)]
    fn dequeue_any(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        let wire_len = self.child.front(now, &mut tally, |packet| self.framing.charge(packet))?;
        if !self.pays(wire_len, now) {
            return None;
        }
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        let packet = self.child.dequeue(now, &mut tally)?;
        packet.adj_len = wire_len;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }
}

impl Qdisc for Tbf {
    // The common case, an ordinary packet and a FIFO below and one bucket, calls nothing, and does
    // with the registers that need not be saved.

    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.totals.enqueued_packets += 1;
        let is_common = packet.segments() == 1
            && packet.is_chargeable(self.max_size)
            && self.child.fifo().is_some_and(|fifo| fifo.admits(packet, now));
        if !is_common {
            self.enqueue_any(packet, now, owner);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let Some(fifo) = self.child.fifo() else { return self.dequeue_any(now, owner) };
        let packet = fifo.head()?;
        if packet.segments() > 1 || self.peak.is_some() {
            return self.dequeue_any(now, owner);
        }
        let wire_len = self.framing.charge_ordinary(packet);
        if wire_len > ByteTime::MOST_BYTES {
            return self.dequeue_any(now, owner);
        }
        if !self.pays(wire_len, now) {
            return None;
        }
        let packet = self.child.fifo()?.take()?;
        packet.adj_len = wire_len;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        let event = self.child.next_event()?;
        let Some(packet) = self.child.known_front() else { return Some(event) };
        Some(event.max(self.filled + self.wait(self.framing.charge(packet))))
    }

    fn placement(&self) -> Option<(u8, u32)> {
        self.child.qdisc().placement()
    }

    fn backlog(&self) -> Backlog {
        self.child.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.child.reset(&mut Tally { owner, dropped: &mut self.totals.dropped });
        (self.rate, self.peak) = self.params.buckets(self.device.arithmetic);
    }
}

impl Managed for Tbf {
    fn below(&self, n: usize) -> Option<(u32, &dyn Managed)> {
        (n == 0).then(|| (1, self.child.qdisc()))
    }

    fn snapshot(&self) -> Snapshot {
        let marked = self.marked();
        let totals = Totals { marked, ..self.totals.settled(self.backlog().packets) };
        Snapshot { totals, backlog: self.backlog(), detail: Detail::Tbf(()) }
    }

    fn marked(&self) -> u64 {
        self.child.qdisc().marked()
    }

    fn config(&self) -> Config {
        Config::Tbf(self.params.clone())
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Tbf>(spare) else { return };
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        self.child.adopt(&mut spare.child, now, &mut tally);
        let elapsed = now.since(self.filled);
        self.rate.fill(elapsed);
        spare.rate.inherit(&self.rate);
        if let (Some(new), Some(old)) = (&mut spare.peak, &mut self.peak) {
            old.fill(elapsed);
            new.inherit(old);
        }
        (self.rate, self.peak, self.filled) = (spare.rate, spare.peak, self.filled.max(now));
        (self.framing, self.max_size) = (spare.framing, spare.max_size);
        core::mem::swap(&mut self.params, &mut spare.params);
    }
}

#[cfg(test)]
mod tests;
