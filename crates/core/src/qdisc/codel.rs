//! `codel`: one queue under CoDel (man tc-codel; RFC 8289; facts D.1).
//!
//! A newcomer that finds `limit` packets is dropped; all else is decided when packets leave, in
//! `aqm/codel.rs`. Beside what every discipline counts, CoDel's own state is shown as `tc` shows
//! it, as of the last call.

use crate::aqm::codel::{Codel as Aqm, Counters, Law, Params as AqmParams};
use crate::packet::Packet;
use crate::qdisc::store::{Outlet, Queue, Store, MAX_PACKETS};
use crate::qdisc::{Backlog, ConfigError, Device, DropReason, PacketOwner, Qdisc};
use crate::tc::stats::{CodelStats, Detail, Snapshot};
use crate::tc::Config;
use crate::time::Time;

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued.
    pub limit: u32,
    /// CoDel's own.
    pub aqm: AqmParams,
}

impl Default for Params {
    fn default() -> Params {
        Params { limit: 1000, aqm: AqmParams::default() }
    }
}

/// A queue under CoDel.
#[derive(Clone, Debug)]
pub struct Codel {
    params: Params,
    device: Device,
    law: Law,
    limit: u32,
    queue: Queue,
    store: Store,
    aqm: Aqm,
    counters: Counters,
    overlimit: u32,
    /// The last time that was passed in.
    now: Time,
}

impl Codel {
    /// An empty queue for `device`.
    pub fn new(params: &Params, device: &Device) -> Codel {
        Codel {
            params: *params,
            device: *device,
            law: Law::new(&params.aqm, device.mtu, device.arithmetic),
            limit: params.limit.min(MAX_PACKETS),
            queue: Queue::default(),
            store: Store::new(params.limit),
            aqm: Aqm::default(),
            counters: Counters::default(),
            overlimit: 0,
            now: Time::ZERO,
        }
    }
}

impl Qdisc for Codel {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.store.totals.enqueued_packets += 1;
        self.now = now;
        packet.enqueued = now;
        let refused = if self.store.len() < self.limit {
            self.store.insert(&mut self.queue, packet).err()
        } else {
            Some(packet)
        };
        if let Some(packet) = refused {
            self.overlimit += 1;
            self.store.give_up(packet, DropReason::Overlimit, owner);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<Packet> {
        self.now = now;
        let mut outlet = Outlet { store: &mut self.store, queue: &mut self.queue, owner };
        let packet = self.aqm.dequeue(&self.law, &mut self.counters, &mut outlet, now)?;
        self.store.sent(&packet);
        Some(packet)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.store.head(&self.queue).map(|packet| packet.enqueued)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn snapshot(&self) -> Snapshot {
        let (count, lastcount) = self.aqm.counts();
        let drop_next = self.aqm.drop_next(&self.law);
        let mut totals = self.store.totals;
        totals.marked = u64::from(self.counters.ecn_marks) + u64::from(self.counters.ce_marks);
        Snapshot {
            totals,
            backlog: self.backlog(),
            detail: Detail::Codel(CodelStats {
                count,
                lastcount,
                last_delay: self.counters.last_delay,
                dropping: self.aqm.is_dropping(),
                drop_next_us: signed_micros(drop_next, self.now),
                max_packet: self.counters.max_packet,
                ecn_mark: self.counters.ecn_marks,
                drop_overlimit: self.overlimit,
                ce_mark: self.counters.ce_marks,
            }),
        }
    }

    fn config(&self) -> Config {
        Config::Codel(self.params)
    }

    fn configure(
        &mut self,
        config: &Config,
        _: Time,
        owner: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        let Config::Codel(params) = config else { return Err(ConfigError::OtherDiscipline) };
        self.params = *params;
        self.law = Law::new(&params.aqm, self.device.mtu, self.device.arithmetic);
        self.limit = params.limit.min(MAX_PACKETS);
        while self.store.len() > self.limit {
            let Some(packet) = self.store.take(&mut self.queue) else { break };
            self.store.give_up(packet, DropReason::Overlimit, owner);
        }
        self.store.resize(params.limit, core::iter::once(&mut self.queue));
        Ok(())
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.store.clear(&mut self.queue, owner);
        self.aqm = Aqm::default();
    }
}

/// `time - now` in microseconds, rounded towards zero.
fn signed_micros(time: Time, now: Time) -> i32 {
    let ahead = time.since(now).as_micros().min(i32::MAX as u64) as i32;
    let behind = now.since(time).as_micros().min(i32::MAX as u64) as i32;
    ahead - behind
}
