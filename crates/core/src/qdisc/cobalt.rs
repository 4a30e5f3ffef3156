//! `cobalt`: one queue under COBALT, cake's CoDel and BLUE, without the rest of cake. Ours.
//!
//! An arrival that finds `limit` packets is dropped, as in cake's overflow from the queue that is
//! longest, and tells COBALT so; all else is decided when packets leave, in `aqm/cobalt.rs`. As in
//! cake, the last packet of the queue may be marked but is never dropped by CoDel or BLUE.

use crate::aqm::cobalt::{Cobalt as State, Params as AqmParams, Verdict as Decision};
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Limit, Single, Verdict};
use crate::qdisc::{Backlog, ConfigError, Device, DropReason};
use crate::random::Random;
use crate::tc::stats::{CobaltStats, Detail, Totals};
use crate::tc::Config;
use crate::time::{Span, Time};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued.
    pub limit: u32,
    /// Standing delay that is accepted.
    pub target: Span,
    /// A worst-case round-trip time.
    pub interval: Span,
}

impl Default for Params {
    /// CoDel's own.
    fn default() -> Params {
        Params { limit: 1000, target: Span::from_millis(5), interval: Span::from_millis(100) }
    }
}

/// A queue under COBALT.
pub type Cobalt = Single<Controlled>;

/// COBALT with its dice and its counters.
#[derive(Clone, Debug)]
pub struct Controlled {
    state: State,
    law: AqmParams,
    random: Random,
    stats: CobaltStats,
}

/// The law of `params`. One queue of unknown rate: a few packets of it take no time.
fn law(params: &Params, device: &Device) -> AqmParams {
    AqmParams {
        target: params.target,
        interval: params.interval,
        mtu_time: Span::ZERO,
        arithmetic: device.arithmetic,
    }
}

impl Aqm for Controlled {
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Controlled, ConfigError> {
        Ok(Controlled {
            state: State::NEW,
            law: law(params, device),
            random: Random::new(device.seed),
            stats: CobaltStats::default(),
        })
    }

    fn params(config: &Config) -> Option<&Params> {
        match config {
            Config::Cobalt(params) => Some(params),
            _ => None,
        }
    }

    fn config(params: &Params) -> Config {
        Config::Cobalt(*params)
    }

    fn limit(params: &Params, _: &Device) -> Limit {
        Limit::packets(params.limit)
    }

    fn change(&mut self, params: &Params, device: &Device) -> Result<(), ConfigError> {
        self.law = law(params, device);
        Ok(())
    }

    #[inline]
    fn arrives(&mut self, _: &Packet, _: Backlog, _: Time) -> Verdict {
        Verdict::Pass
    }

    #[cold]
    fn refused(&mut self, now: Time) {
        self.state.queue_full(&self.law, now);
        self.stats.overlimit += 1;
    }

    #[inline]
    fn passes(&mut self, packet: &Packet, _: Backlog, now: Time) -> bool {
        self.state.passes(&self.law, packet, now, 0)
    }

    fn leaves(&mut self, packet: &mut Packet, left: Backlog, now: Time) -> Verdict {
        let decision = self.state.decide(&self.law, packet, now, 0, &mut self.random);
        self.stats.ecn_mark += u32::from(decision.is_marked());
        match decision {
            Decision::Congested if left.packets > 0 => {
                self.stats.dropped += 1;
                Verdict::Drop(DropReason::Congested)
            }
            Decision::Flood { .. } if left.packets > 0 => {
                self.stats.flooded += 1;
                Verdict::Drop(DropReason::Flood)
            }
            decision if decision.is_marked() => Verdict::Marked,
            _ => Verdict::Pass,
        }
    }

    #[inline]
    fn found_empty(&mut self, now: Time) {
        self.state.queue_empty(&self.law, now);
    }

    fn restart(&mut self, _: &Params, _: &Device) {
        self.state = State::NEW;
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        totals.marked = self.stats.ecn_mark.into();
        Detail::Cobalt(CobaltStats { unresponsive: self.state.is_unresponsive(), ..self.stats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;
    use crate::qdisc::{Discard, Qdisc};
    use crate::tc;

    fn run(words: &str, tos: u8, load: u64) -> (CobaltStats, Span) {
        let Ok(Config::Cobalt(params)) = tc::parse(words) else { panic!("{words}") };
        let mut cobalt = Cobalt::new(&params, &Device::default()).unwrap();
        let mut delay = Span::ZERO;
        // A line of a packet a millisecond for twenty seconds.
        for tick in 0..200_000u64 {
            let now = Time(tick * 100_000);
            if tick * load / 100 != (tick + 1) * load / 100 {
                let mut packet = Packet::new(tick, 1000);
                (packet.flags, packet.tos) = (Flags::IPV4, tos);
                cobalt.enqueue(&packet, now, &mut Discard);
            }
            if tick % 10 == 0 {
                if let Some(packet) = cobalt.dequeue(now, &mut Discard) {
                    delay = now.since(packet.enqueued);
                }
            }
        }
        let Detail::Cobalt(stats) = cobalt.snapshot().detail else { panic!() };
        (stats, delay)
    }

    #[test]
    fn codel_holds_what_is_a_little_too_much() {
        let (stats, delay) = run("cobalt", 0, 11);
        assert!(stats.dropped > 1500 && stats.overlimit == 0 && !stats.unresponsive, "{stats:?}");
        assert!(delay < Span::from_millis(50), "{delay:?}");
        // Marks alone do not move a sender that does not listen.
        let (stats, _) = run("cobalt limit 5000", 2, 11);
        assert!(stats.ecn_mark > 1500 && stats.dropped == 0, "{stats:?}");
    }

    #[test]
    fn blue_wakes_where_the_queue_overflows() {
        let (stats, _) = run("cobalt limit 100", 2, 30);
        assert!(stats.overlimit > 100 && stats.flooded > 1000, "{stats:?}");
        assert!(stats.unresponsive);
    }
}
