//! A delay stage: every packet waits a set time, more or less, and none overtakes another.
//!
//! netem's `delay TIME JITTER` (man tc-netem), with two differences. The deviation is uniform in
//! ±jitter, and packets never change places: one whose draw is shorter than its predecessor's
//! leaves together with it. (That shifts the mean up by part of the jitter when packets come closer
//! together than the jitter is wide.)
//!
//! A FIFO of packets beside a FIFO of their release times. These are fixed on arrival: a change of
//! settings holds for packets that come after it. `next_event` is the head's release time.
//! Invariants: both FIFOs have the same length; release times never decrease.

pub(in crate::qdisc) mod words;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::memory::reserved_queue;
use crate::packet::Packet;
use crate::qdisc::fifo::{self, Fifo};
use crate::qdisc::{
    prepared, spare_of, Backlog, Config, ConfigError, Device, Managed, PacketOwner, Qdisc, Snapshot,
};
use crate::random::Random;
use crate::room;
use crate::time::{Span, Time};

/// Settings: time that packets wait, and limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Fixed part.
    pub delay: Span,
    /// Largest deviation either way; never reorders.
    pub jitter: Span,
    /// Packets that may be under way; the newcomer is dropped. At most [`fifo::MAX_PACKETS`].
    pub limit: u32,
}

impl Params {
    fn storage(&self) -> fifo::Params {
        fifo::Params { kind: fifo::Kind::Pfifo, limit: Some(self.limit) }
    }
}

/// A delay stage.
#[derive(Clone, Debug)]
pub struct Delay {
    params: Params,
    device: Device,
    packets: Fifo,
    releases: VecDeque<Time>,
    /// Release time of the packet that came last.
    last_release: Time,
    random: Random,
}

impl Delay {
    /// Number of the generator that the device's seed is split into for this stage.
    const RANDOM_STREAM: u64 = 0x64_656c_6179;

    /// A delay stage in which nothing is under way.
    pub fn new(params: &Params, device: &Device) -> Result<Delay, ConfigError> {
        let storage = params.storage();
        Ok(Delay {
            params: *params,
            device: *device,
            packets: Fifo::new(&storage, device)?,
            releases: reserved_queue(storage.max_packets(device) as usize)?,
            last_release: Time::ZERO,
            random: Random::derive(device.seed, Delay::RANDOM_STREAM),
        })
    }

    /// Takes in a packet, queued since `enqueued`, that sets out at `departure`; says whether it is
    /// now under way. For disciplines of which a delay is a part.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        packet: &Packet,
        enqueued: Time,
        departure: Time,
        owner: &mut dyn PacketOwner,
    ) -> bool {
        if !self.packets.admit(packet, enqueued, owner) {
            return false;
        }
        let wait = self.draw();
        self.last_release = self.last_release.max(departure + wait);
        room::push_back(&mut self.releases, self.last_release).is_some()
    }

    /// Takes over the settings of `spare` for packets to come.
    pub(crate) fn change(&mut self, spare: &mut Delay, owner: &mut dyn PacketOwner) {
        self.packets.change(&mut spare.packets, owner);
        let kept = self.packets.backlog().packets as usize;
        while let Some(release) = self.releases.pop_front() {
            if self.releases.len() < kept {
                let moved = room::push_back(&mut spare.releases, release);
                debug_assert!(moved.is_some(), "there is room for all");
            }
        }
        core::mem::swap(&mut self.releases, &mut spare.releases);
        self.params = spare.params;
    }

    /// The next packet's wait: uniform in delay ± jitter, and not negative.
    #[inline]
    fn draw(&mut self) -> Span {
        let Params { delay, jitter, .. } = self.params;
        if jitter == Span::ZERO {
            return delay;
        }
        let range = u128::from(jitter.0) * 2 + 1;
        let deviation = (u128::from(self.random.u64()) * range) >> 64;
        (delay + Span(deviation as u64)).saturating_sub(jitter)
    }
}

impl Qdisc for Delay {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.admit(packet, now, now, owner);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if *self.releases.front()? > now {
            return None;
        }
        self.releases.pop_front();
        self.packets.dequeue(now, owner)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.releases.front().copied()
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.packets.reset(owner);
        self.releases.clear();
        self.last_release = Time::ZERO;
    }
}

impl Managed for Delay {
    fn snapshot(&self) -> Snapshot {
        self.packets.snapshot()
    }

    fn config(&self) -> Config {
        Config::Delay(self.params)
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, _: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of(spare) else { return };
        self.change(spare, owner);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::qdisc::{Discard, DropReason};

    fn stage(delay: u64, jitter: u64, limit: u32) -> Delay {
        let params = Params { delay: Span(delay), jitter: Span(jitter), limit };
        Delay::new(&params, &Device::default()).unwrap()
    }

    #[test]
    fn packets_leave_exactly_after_the_delay() {
        let mut stage = stage(500, 0, 10);
        stage.enqueue(&Packet::new(1, 100), Time(0), &mut Discard);
        stage.enqueue(&Packet::new(2, 100), Time(20), &mut Discard);
        assert_eq!(stage.next_event(), Some(Time(500)));
        assert!(stage.dequeue(Time(499), &mut Discard).is_none());
        assert_eq!(stage.dequeue(Time(500), &mut Discard).unwrap().handle, 1);
        assert_eq!(stage.next_event(), Some(Time(520)));
        assert_eq!(stage.dequeue(Time(900), &mut Discard).unwrap().handle, 2);
        assert_eq!(stage.next_event(), None);
    }

    #[test]
    fn jitter_fills_its_range_keeps_its_mean_and_does_not_reorder() {
        // Packets further apart than the jitter is wide are independent draws.
        let mut stage = stage(1000, 300, 4);
        let mut waits = Vec::new();
        for i in 0..20_000u64 {
            let now = Time(i * 10_000);
            stage.enqueue(&Packet::new(i, 100), now, &mut Discard);
            waits.push(stage.next_event().unwrap().since(now).0);
            stage.dequeue(Time(i * 10_000 + 5_000), &mut Discard).unwrap();
        }
        assert_eq!((*waits.iter().min().unwrap(), *waits.iter().max().unwrap()), (700, 1300));
        let mean = waits.iter().sum::<u64>() / waits.len() as u64;
        assert!(mean.abs_diff(1000) <= 5, "{mean}");

        let mut crowd = self::stage(1000, 900, 1000);
        (0..1000).for_each(|i| crowd.enqueue(&Packet::new(i, 100), Time(i), &mut Discard));
        let mut last = Time::ZERO;
        for handle in 0..1000 {
            let at = crowd.next_event().unwrap();
            assert!(at >= last);
            last = at;
            assert_eq!(crowd.dequeue(at, &mut Discard).unwrap().handle, handle);
        }
    }

    #[test]
    fn a_jitter_beyond_the_delay_is_cut_at_zero() {
        let mut stage = stage(10, 1000, 100);
        for i in 0..100 {
            stage.enqueue(&Packet::new(i, 100), Time(1_000_000 * i), &mut Discard);
            assert!(stage.next_event().unwrap() >= Time(1_000_000 * i));
            stage.dequeue(Time(1_000_000 * i + 5000), &mut Discard).unwrap();
        }
    }

    #[test]
    fn the_limit_drops_newcomers_and_a_change_keeps_release_times() {
        let mut stage = stage(500, 0, 3);
        (0..5).for_each(|i| stage.enqueue(&Packet::new(i, 100), Time(i), &mut Discard));
        let totals = stage.snapshot().totals;
        assert_eq!((totals.enqueued_packets, totals.drops(), stage.backlog().packets), (5, 2, 3));
        let slower = Params { delay: Span(9000), jitter: Span::ZERO, limit: 2 };
        stage.configure(&Config::Delay(slower), Time(5), &mut Discard).unwrap();
        assert_eq!(stage.next_event(), Some(Time(501)));
        assert_eq!(stage.dequeue(Time(501), &mut Discard).unwrap().handle, 1);
        stage.enqueue(&Packet::new(7, 100), Time(510), &mut Discard);
        assert_eq!(stage.dequeue(Time(502), &mut Discard).unwrap().handle, 2);
        assert_eq!(stage.next_event(), Some(Time(9510)));
        stage.reset(&mut Discard);
        assert_eq!(stage.snapshot().totals.dropped[DropReason::Reset as usize], 1);
        assert_eq!(stage.next_event(), None);
    }
}
