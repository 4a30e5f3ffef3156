//! `red`: one queue under RED (man tc-red; facts D.7), Linux's or the simulators'.
//!
//! `aqm/red` decides first, also about arrivals that the limit then refuses. That is as in Linux,
//! where the limit is that of a FIFO below. What the limit refuses counts as `pdrop`. Linux's RED
//! is limited in bytes, the simulators' in packets.

pub(in crate::qdisc) mod netlink;
mod stats;
pub(in crate::qdisc) mod words;

use crate::aqm::red::{ns, Law, RedParams, RedState, RedVerdict, Unfit, ADAPT_EVERY};
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Fate, Limit, Single};
use crate::qdisc::{Backlog, ConfigError, Detail, Device, DropReason, PacketOwner, Totals};
use crate::random::Random;
use crate::tick::Periodic;
use crate::time::Time;

pub use stats::Stats;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Bytes that may be queued; packets for [`Kind::Ns`].
    pub limit: u32,
    /// Linux's RED or ns-2's.
    pub kind: Kind,
}

/// Linux's RED or ns-2's, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Linux's.
    Linux(RedParams),
    /// The simulators'.
    Ns(ns::NsParams),
}

/// A queue under RED.
pub type Red = Single<Early>;

/// RED with its dice and its counters.
#[derive(Clone, Debug)]
pub struct Early {
    controller: Controller,
    random: Random,
    /// The last time that was passed in, or when the queue was made.
    now: Time,
    overlimits: u64,
    stats: Stats,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // There is one, and the larger one is the one in use.
enum Controller {
    Linux(Law, RedState),
    Ns(ns::Law, ns::NsState),
}

impl Controller {
    fn new(kind: &Kind, device: &Device, now: Time) -> Result<Controller, ConfigError> {
        let timer = Periodic::new(device.tick, now, ADAPT_EVERY, ADAPT_EVERY);
        Ok(match kind {
            Kind::Linux(params) => {
                let law = Law::new(params)?;
                let state = RedState::new(params, &law, now, timer);
                Controller::Linux(law, state)
            }
            Kind::Ns(params) => {
                Controller::Ns(ns::Law::new(params), ns::NsState::new(params, now, timer))
            }
        })
    }
}

impl Early {
    /// The average that decides: in bytes, or for the simulators' RED in packets, Q32.
    pub fn average(&self) -> u64 {
        match &self.controller {
            Controller::Linux(law, state) => state.average(law),
            Controller::Ns(_, state) => state.average(),
        }
    }
}

impl From<Unfit> for ConfigError {
    fn from(unfit: Unfit) -> ConfigError {
        let (option, expected) = match unfit {
            Unfit::Range => ("max", "at least `min`"),
            Unfit::Burst => ("burst", "at least `min` / `avpkt` packets"),
            Unfit::Probability => ("probability", "more than (`max` - `min`) / 2^31"),
            Unfit::Bandwidth => ("bandwidth", "more: the average would take hours to fall"),
        };
        ConfigError::OutOfRange { option, expected }
    }
}

impl Aqm for Early {
    const SEES_OVERFLOW: bool = true;
    const LEAVES_ALL: bool = true;
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Early, ConfigError> {
        Ok(Early {
            controller: Controller::new(&params.kind, device, device.now)?,
            random: Random::new(device.seed),
            now: device.now,
            overlimits: 0,
            stats: Stats::default(),
        })
    }

    fn limit(params: &Params, _: &Device) -> Limit {
        match params.kind {
            Kind::Linux(_) => Limit::bytes(params.limit),
            Kind::Ns(_) => Limit::packets(params.limit),
        }
    }

    /// The average starts again: it is bound to the settings.
    fn change(&mut self, _: &Params, _: &Device, spare: &mut Early) {
        core::mem::swap(&mut self.controller, &mut spare.controller);
    }

    #[inline]
    fn admits(&mut self, _: &Packet, backlog: Backlog, now: Time) -> bool {
        self.now = now;
        match &mut self.controller {
            Controller::Linux(law, state) => state.admits(law, backlog.bytes, now),
            Controller::Ns(..) => false,
        }
    }

    fn arrives(
        &mut self,
        packet: &Packet,
        backlog: Backlog,
        now: Time,
        _: &mut dyn PacketOwner,
    ) -> Fate {
        self.now = now;
        let random = &mut self.random;
        let decision = match &mut self.controller {
            Controller::Linux(law, state) => state.arrives(law, packet, backlog.bytes, now, random),
            Controller::Ns(law, state) => state.arrives(law, packet, backlog.packets, now, random),
        };
        if decision == RedVerdict::Pass {
            return Fate::Pass;
        }
        self.overlimits += 1;
        match decision {
            RedVerdict::Pass | RedVerdict::Spared => Fate::Pass,
            RedVerdict::Early { marked: true } | RedVerdict::Forced { marked: true } => {
                self.stats.marked += 1;
                Fate::Marked
            }
            RedVerdict::Early { marked: false } | RedVerdict::Forced { marked: false } => {
                self.stats.early += 1;
                Fate::Drop(DropReason::Congested)
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        matches!(&self.controller, Controller::Linux(_, state) if state.is_at_rest())
    }

    fn refused(&mut self, _: Time) {
        self.stats.pdrop += 1;
    }

    #[inline]
    fn passes(&mut self, _: &Packet, _: Backlog, now: Time) -> bool {
        self.now = now;
        true
    }

    fn found_empty(&mut self, now: Time) {
        self.now = now;
        match &mut self.controller {
            Controller::Linux(_, state) => state.found_empty(now),
            Controller::Ns(_, state) => state.found_empty(now),
        }
    }

    fn restart(&mut self, params: &Params, device: &Device) {
        let timer = Periodic::new(device.tick, self.now, ADAPT_EVERY, ADAPT_EVERY);
        match (&mut self.controller, &params.kind) {
            (Controller::Linux(law, state), Kind::Linux(params)) => {
                *state = RedState::new(params, law, self.now, timer);
            }
            (Controller::Ns(_, state), Kind::Ns(params)) => {
                *state = ns::NsState::new(params, self.now, timer);
            }
            _ => {}
        }
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        totals.marked = self.stats.marked.into();
        totals.overlimits = self.overlimits;
        Detail::Red(self.stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{self, Config, Discard, Managed, Qdisc};

    fn red(words: &str) -> Red {
        let Ok(Config::Red(params)) = qdisc::parse(words) else { panic!("{words}") };
        Red::new(&params, &Device::default()).unwrap()
    }

    /// A link of 1000 bytes a millisecond, offered a tenth more; the mean backlog in packets over
    /// the second half.
    fn offered_too_much(red: &mut Red, seconds: u64) -> u64 {
        let (mut sum, steps) = (0, seconds * 10_000);
        for tick in 0..steps {
            let now = Time(tick * 100_000);
            if tick * 11 / 100 != (tick + 1) * 11 / 100 {
                red.enqueue(&Packet::new(tick, 1000), now, &mut Discard);
            }
            if tick % 10 == 0 {
                red.dequeue(now, &mut Discard);
            }
            if tick > steps / 2 {
                sum += u64::from(red.backlog().packets);
            }
        }
        sum / (steps / 2)
    }

    #[test]
    fn the_queue_stays_between_the_thresholds() {
        let mut red = red("red limit 400000 min 30000 max 90000 avpkt 1000 bandwidth 8mbit \
                           probability 0.2");
        let mean = offered_too_much(&mut red, 20);
        assert!((30..90).contains(&mean), "{mean}");
        let Snapshots { early, overlimits, drops } = counters(&red);
        assert!(early > 1000 && u64::from(early) == overlimits && drops == overlimits);
    }

    struct Snapshots {
        early: u32,
        overlimits: u64,
        drops: u64,
    }

    fn counters(red: &Red) -> Snapshots {
        let snapshot = red.snapshot();
        let Detail::Red(stats) = snapshot.detail else { panic!() };
        let totals = snapshot.totals;
        Snapshots { early: stats.early, overlimits: totals.overlimits, drops: totals.drops() }
    }

    #[test]
    fn adaptation_moves_the_queue_to_the_middle() {
        let words = "limit 400000 min 30000 max 90000 avpkt 1000 bandwidth 8mbit probability 0.01";
        let mut plain = red(&std::format!("red {words}"));
        let mut adaptive = red(&std::format!("red {words} adaptive"));
        let (above, middle) =
            (offered_too_much(&mut plain, 60), offered_too_much(&mut adaptive, 60));
        // A chance of 1 % is not enough for a tenth too much.
        assert!(above >= 85, "{above}");
        assert!((50..=70).contains(&middle), "{middle}");
    }

    #[test]
    fn the_simulators_red_configures_itself() {
        let mut red = red("red ns bandwidth 8mbit avpkt 1000");
        let mean = offered_too_much(&mut red, 60);
        // 5 ms are 5 packets: min 5, max 15, and a gentle slope to 30.
        assert!((5..=15).contains(&mean), "{mean}");
        let Snapshots { early, drops, .. } = counters(&red);
        assert_eq!(u64::from(early), drops);
    }

    /// Light load, too much, and silence in turns. What passes one queue while it is at rest is
    /// seen by the other, which decides the same about all.
    #[test]
    fn at_rest_nothing_is_missed_of_what_passes() {
        for more in ["", " adaptive"] {
            let words = "red limit 60000 min 5000 max 15000 avpkt 1000 burst 10 bandwidth 8mbit \
                         probability 0.1";
            let words = std::format!("{words}{more}");
            let (mut seeing, mut resting) = (red(&words), red(&words));
            let mut random = Random::new(5);
            let (mut now, mut passed) = (Time(1), 0);
            for n in 0..60_000 {
                let is_busy = n / 1000 % 2 == 1;
                let gap =
                    if n % 1000 == 0 { 100_000_000_000 } else { random.below(2_000_000).into() };
                now += crate::time::Span(gap);
                let packet = Packet::new(n, 1000);
                seeing.enqueue(&packet, now, &mut Discard);
                if !is_busy && resting.is_at_rest() {
                    assert_eq!(seeing.dequeue(now, &mut Discard).map(|p| p.handle), Some(n));
                    passed += 1;
                } else {
                    resting.enqueue(&packet, now, &mut Discard);
                }
                let most = if is_busy && n % 1000 < 999 { random.below(2) } else { 100 };
                for _ in 0..most {
                    let left = seeing.dequeue(now, &mut Discard).map(|p| p.handle);
                    assert_eq!(left, resting.dequeue(now, &mut Discard).map(|p| p.handle));
                    if left.is_none() {
                        break;
                    }
                }
                assert_eq!(seeing.backlog(), resting.backlog());
            }
            let Snapshots { early, .. } = counters(&seeing);
            assert!(passed > 1000 && early > 1000, "{passed} {early}");
            assert_eq!(early, counters(&resting).early);
        }
    }

    /// The average of ten packets that stand: 10,000 bytes, or ten packets of 2^32.
    #[test]
    fn the_average_begins_anew_where_the_queue_does() {
        let linux =
            "red limit 400000 min 30000 max 90000 avpkt 1000 bandwidth 8mbit probability 0.2";
        for (words, ten) in [(linux, 10_000), ("red ns weight 0.1 min 50 max 90", 10 << 32)] {
            let mut red = red(words);
            (0..10).for_each(|n| red.enqueue(&Packet::new(n, 1000), Time(n), &mut Discard));
            for n in 10..400 {
                red.enqueue(&Packet::new(n, 1000), Time(n), &mut Discard);
                red.dequeue(Time(n), &mut Discard);
            }
            let average = red.aqm().average();
            assert!(average.abs_diff(ten) < ten / 50, "{words}: {average}");
            while red.dequeue(Time(500), &mut Discard).is_some() {}
            assert!(!Managed::is_at_rest(&red), "{words}");
            red.reset(&mut Discard);
            assert_eq!(red.aqm().average(), 0, "{words}");
            // The simulators' passes nothing by: it counts packets.
            assert_eq!(Managed::is_at_rest(&red), words == linux);
        }
    }

    #[test]
    fn after_a_reset_adaptation_is_due_half_a_second_after_the_last_packet_left() {
        let mut red = red("red limit 400000 min 30000 max 90000 avpkt 1000 adaptive");
        let Config::Red(Params { kind: Kind::Linux(params), .. }) = red.config() else { panic!() };
        red.enqueue(&Packet::new(1, 1000), Time(1), &mut Discard);
        let now = Time(2_000_000_000);
        assert!(red.dequeue(now, &mut Discard).is_some());
        red.reset(&mut Discard);
        let Controller::Linux(law, state) = &red.aqm().controller else { panic!() };
        let timer = Periodic::new(crate::tick::Tick::Exact, now, ADAPT_EVERY, ADAPT_EVERY);
        assert_eq!(*state, RedState::new(&params, law, now, timer));
    }

    #[test]
    fn a_full_queue_counts_as_pdrop() {
        let mut red = red("red limit 5000 min 3000 max 4999 avpkt 1000 burst 4");
        (0..9).for_each(|n| red.enqueue(&Packet::new(n, 1000), Time(n), &mut Discard));
        let Detail::Red(stats) = red.snapshot().detail else { panic!() };
        assert_eq!(red.backlog().bytes, 5000);
        assert_eq!(stats.early + stats.pdrop, 4);
        assert!(stats.pdrop > 0);
    }

    /// Packets that wait elsewhere, in a queue like its own: it decides the same.
    #[test]
    fn a_queue_elsewhere_is_as_good_as_its_own() {
        let words = "red limit 12000 min 5000 max 15000 avpkt 1000 burst 10 bandwidth 8mbit \
                     probability 0.1 ecn";
        let (mut whole, mut parted) = (red(words), red(words));
        let mut random = Random::new(7);
        let (mut now, mut below, mut fates) = (Time(1), Backlog::default(), [0; 4]);
        for n in 0..60_000 {
            now += crate::time::Span(random.below(2_000_000).into());
            let mut packet = Packet::new(n, 1000);
            packet.flags = crate::packet::Flags::IPV4;
            packet.tos = [0, 2][n as usize % 2];
            let before = whole.snapshot().totals;
            whole.enqueue(&packet, now, &mut Discard);
            let fate = parted.gate().unwrap().decide(&packet, below, now, &mut Discard);
            let after = whole.snapshot().totals;
            let is_marked = after.marked > before.marked;
            let is_dropped = after.drops() > before.drops();
            let is_congested = !is_marked && after.overlimits > before.overlimits;
            let expected = match (is_marked, is_congested) {
                (true, _) => Fate::Marked,
                (_, true) => Fate::Drop(DropReason::Congested),
                _ => Fate::Pass,
            };
            assert_eq!(fate, expected, "{n}");
            let is_refused = is_dropped && !is_congested;
            if is_refused {
                parted.gate().unwrap().refused(now);
            } else if !is_dropped {
                below = Backlog { packets: below.packets + 1, bytes: below.bytes + 1000 };
            }
            fates[usize::from(is_marked) + 2 * usize::from(is_refused)] += 1;
            for _ in 0..random.below(if n / 1000 % 2 == 1 { 2 } else { 4 }) {
                let left = whole.dequeue(now, &mut Discard).is_some();
                assert_eq!(left, below.packets > 0);
                match below.packets.checked_sub(1) {
                    None => parted.gate().unwrap().found_empty(now),
                    Some(packets) => {
                        below = Backlog { packets, bytes: below.bytes - 1000 };
                        parted.gate().unwrap().left(packets);
                    }
                }
            }
        }
        assert!(fates.iter().all(|count| *count > 50), "{fates:?}");
        assert_eq!(whole.snapshot().detail, parted.snapshot().detail);
        assert_eq!(whole.snapshot().totals.overlimits, parted.snapshot().totals.overlimits);
    }
}
