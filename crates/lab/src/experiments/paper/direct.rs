//! Experiments on a discipline alone: its hash table (A1), its shaper (A7).
//!
//! No network and no TCP: packets are handed in and taken out at times that this file chooses.
//! The sizes on the wire are computed here by the papers' rules, not by the shaper's own code.

use simnel_core::qdisc::{self, Detail, Device, Discard, Managed, Qdisc};
use simnel_core::random::Random;
use simnel_core::{Packet, Span, Time};

use super::measure::{of, quantities, Measures, Sample};
use super::plots::{arms_dots, sweep};
use super::Arm;
use crate::figures::{Axis, Figure};

quantities! {
    /// Quantities of a discipline alone.
    Quantity {
        Flows(number: u32) = "{number} flows", Measured = "measured", Formula = "formula",
        GreatestShare = "greatest share", LeastShare = "least share", Burst = "burst packets",
    }
}

/// Queues of both tables.
const QUEUES: u32 = 1024;
/// Ways of a set.
const WAYS: u32 = 8;
/// Tables that one repetition fills.
const TRIALS: u32 = 4000;
/// Numbers of active flows are sampled so far apart.
pub(super) const STEP: u32 = 32;

/// Probability that a new flow collides with one of `n` in a plain table.
pub fn plain_formula(n: u32) -> f64 {
    1.0 - (1.0 - 1.0 / f64::from(QUEUES)).powi(n as i32)
}

/// The same in a set-associative table. A new flow collides if at least as many of the `n` as a set
/// has ways are in its set. Binomial, term by term.
pub fn set_associative_formula(n: u32) -> f64 {
    let p = f64::from(WAYS) / f64::from(QUEUES);
    let mut term = (1.0 - p).powi(n as i32);
    let mut below = 0.0;
    for k in 0..WAYS {
        below += term;
        term *= f64::from(n.saturating_sub(k)) / f64::from(k + 1) * p / (1.0 - p);
    }
    (1.0 - below).max(0.0)
}

/// Numbers of flows at which collisions are counted.
pub(super) fn points() -> impl Iterator<Item = u32> {
    (1..=QUEUES / STEP).map(|n| n * STEP)
}

/// A repetition with fq_codel's table: a newcomer that finds an empty queue counts as a new flow.
pub(super) fn plain_table(seed: u64) -> Sample {
    table(seed, "fq_codel limit 4000 noecn", plain_formula, |qdisc| match qdisc.snapshot().detail {
        Detail::FqCodel(stats) => u64::from(stats.new_flow_count),
        _ => 0,
    })
}

/// A repetition with cake's table.
pub(super) fn set_associative_table(seed: u64) -> Sample {
    let words = "cake unlimited besteffort flows";
    table(seed, words, set_associative_formula, |qdisc| match qdisc.snapshot().detail {
        Detail::Cake(stats) => u64::from(stats.tins[0].way_misses),
        _ => 0,
    })
}

/// Fills tables flow by flow and counts how often the newcomer got no queue of its own. `owned`
/// counts newcomers that did.
fn table(
    seed: u64,
    words: &str,
    formula: fn(u32) -> f64,
    owned: fn(&dyn Managed) -> u64,
) -> Sample {
    let mut sample = Sample::default();
    let mut random = Random::derive(seed, 1);
    let mut qdisc = build(words, seed);
    let points: Vec<u32> = points().collect();
    let mut collisions = vec![0u32; points.len()];
    for _ in 0..TRIALS {
        let mut point = 0;
        for active in 0..=QUEUES {
            let mut packet = Packet::new(0, 1514);
            packet.flow = random.u64();
            if points.get(point) == Some(&active) {
                let before = owned(qdisc.as_ref());
                qdisc.enqueue(&packet, Time::ZERO, &mut Discard);
                collisions[point] += u32::from(owned(qdisc.as_ref()) == before);
                point += 1;
            } else {
                qdisc.enqueue(&packet, Time::ZERO, &mut Discard);
            }
        }
        qdisc.reset(&mut Discard);
    }
    let measured =
        points.iter().zip(&collisions).map(|(n, c)| (*n, f64::from(*c) / f64::from(TRIALS)));
    let measured: Vec<(u32, f64)> = measured.collect();
    for (n, share) in &measured {
        sample.value(Quantity::Flows(*n), *share);
    }
    let curve = measured.iter().map(|(n, share)| [f64::from(*n), *share]);
    sample.curve(Quantity::Measured, curve.collect());
    let curve = points.iter().map(|n| [f64::from(*n), formula(*n)]);
    sample.curve(Quantity::Formula, curve.collect());
    sample
}

fn build(words: &str, seed: u64) -> Box<dyn Managed + Send> {
    let config = qdisc::parse(words).unwrap_or_else(|error| panic!("{words}: {error}"));
    let device = Device { seed, ..Device::default() };
    qdisc::build(&config, &device).unwrap_or_else(|error| panic!("{words}: {error}"))
}

/// Carrier of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Plain,
    Atm,
    Ptm,
}

/// A way to say how large packets are on the wire, from the manual of tc-cake. In order: words,
/// bytes added to the network packet (None: the frame counts as it is), least size, carrier.
const FRAMINGS: &[(&str, Option<u32>, u32, Carrier)] = &[
    ("raw", None, 0, Carrier::Plain),
    ("conservative", Some(48), 0, Carrier::Atm),
    ("overhead 0", Some(0), 0, Carrier::Plain),
    ("overhead 34 atm", Some(34), 0, Carrier::Atm),
    ("overhead 34 ptm", Some(34), 0, Carrier::Ptm),
    ("overhead 34 noatm", Some(34), 0, Carrier::Plain),
    ("overhead 18 mpu 84 atm", Some(18), 84, Carrier::Atm),
    ("ipoa-vcmux", Some(8), 0, Carrier::Atm),
    ("ipoa-llcsnap", Some(16), 0, Carrier::Atm),
    ("bridged-vcmux", Some(24), 0, Carrier::Atm),
    ("bridged-llcsnap", Some(32), 0, Carrier::Atm),
    ("pppoa-vcmux", Some(10), 0, Carrier::Atm),
    ("pppoa-llc", Some(14), 0, Carrier::Atm),
    ("pppoe-vcmux", Some(32), 0, Carrier::Atm),
    ("pppoe-llcsnap", Some(40), 0, Carrier::Atm),
    ("pppoe-ptm", Some(30), 0, Carrier::Ptm),
    ("bridged-ptm", Some(22), 0, Carrier::Ptm),
    ("docsis", Some(18), 64, Carrier::Plain),
    ("docsis atm", Some(18), 64, Carrier::Atm),
    ("ethernet", Some(38), 84, Carrier::Plain),
    ("ethernet ether-vlan", Some(42), 84, Carrier::Plain),
    ("ethernet ptm", Some(38), 84, Carrier::Ptm),
];

/// Rates in bits a second, and their words.
pub(super) const RATES: [(f64, &str); 6] = [
    (64e3, "64kbit"),
    (1e6, "1mbit"),
    (10e6, "10mbit"),
    (100e6, "100mbit"),
    (1e9, "1gbit"),
    (10e9, "10gbit"),
];

/// Of a rate: the greatest and the least share of it over any second.
const SHARES: [Quantity; 2] = [Quantity::GreatestShare, Quantity::LeastShare];

/// One arm for each rate, and the bursts after an idle time.
pub(super) fn shaper_arms() -> Vec<Arm> {
    let rates =
        RATES.map(|(rate, words)| Arm::direct(words, SHARES, move |s| shaper(rate, words, s)));
    let burst = |name: &str, words: &'static str| {
        Arm::direct(name, [Quantity::Burst], move |seed| burst_after_idle(words, seed))
    };
    let mut arms = Vec::from(rates);
    arms.push(burst("cake", "cake bandwidth 10mbit besteffort"));
    arms.push(burst("htb", "htb rate 10mbit burst 15k cburst 15k pfifo limit 1000"));
    arms
}

/// Saturates a shaper with every framing, and measures over every second: the greatest and least
/// share of the rate.
fn shaper(rate: f64, words: &str, seed: u64) -> Sample {
    let (mut most, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
    for (framing, overhead, mpu, carrier) in FRAMINGS {
        let wire = |packet: &Packet| wire_len(packet, *overhead, *mpu, *carrier);
        let line = format!("cake bandwidth {words} besteffort flowblind {framing}");
        let mut qdisc = build(&line, seed);
        let shares = saturate(qdisc.as_mut(), rate, seed, &wire);
        (most, least) = (most.max(shares.0), least.min(shares.1));
    }
    let mut sample = Sample::default();
    sample.value(SHARES[0], most);
    sample.value(SHARES[1], least);
    sample
}

/// Bytes on the wire (Piece of CAKE, algorithm 1, with the least size before cells).
fn wire_len(packet: &Packet, overhead: Option<u32>, mpu: u32, carrier: Carrier) -> u32 {
    let bytes = match overhead {
        None => packet.len,
        Some(overhead) => (packet.len - u32::from(packet.network_offset) + overhead).max(mpu),
    };
    match carrier {
        Carrier::Plain => bytes,
        Carrier::Atm => bytes.div_ceil(48) * 53,
        Carrier::Ptm => bytes + bytes.div_ceil(64),
    }
}

/// Keeps a few packets queued, and takes one out whenever one may leave. Returns the greatest and
/// the least share of `rate`, each over a span of a second or little more from departure to
/// departure.
fn saturate(
    qdisc: &mut dyn Qdisc,
    rate: f64,
    seed: u64,
    wire: &dyn Fn(&Packet) -> u32,
) -> (f64, f64) {
    const SECOND: u64 = 1_000_000_000;
    let mut random = Random::derive(seed, 2);
    let slowest = rate < 1e6;
    let end = Time(if slowest { 60 } else { 2 } * SECOND);
    let mut now = Time::ZERO;
    // Departures: when, and bytes until then, of the packets of the last second.
    let mut log: std::collections::VecDeque<(Time, u64)> = Default::default();
    let (mut bytes, mut queued) = (0u64, 0);
    let (mut most, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
    while now < end {
        while queued < 3 {
            let len = 60 + random.below(1455);
            qdisc.enqueue(&Packet::new(0, len), now, &mut Discard);
            queued += 1;
        }
        let before = qdisc.backlog().packets;
        if let Some(packet) = qdisc.dequeue(now, &mut Discard) {
            log.push_back((now, bytes));
            bytes += u64::from(wire(packet));
            // The first departure from which on a second has passed, and its bytes.
            while let Some(&(from, sent)) = log.front() {
                let span = now.since(from).0;
                if span < SECOND {
                    break;
                }
                let (_, until) = log[log.len() - 1];
                let share = (until - sent) as f64 * 8e9 / (span as f64 * rate);
                (most, least) = (most.max(share), least.min(share));
                log.pop_front();
            }
        } else if let Some(next) = qdisc.next_event() {
            now = next.max(now + Span(1));
        } else {
            break;
        }
        queued -= before.saturating_sub(qdisc.backlog().packets).min(queued);
    }
    (most, least)
}

/// Packets that leave in the instant in which forty arrive after an idle time.
fn burst_after_idle(words: &str, seed: u64) -> Sample {
    let mut sample = Sample::default();
    let mut qdisc = build(words, seed);
    let now = Time::ZERO + Span::from_secs(10);
    for handle in 0..40 {
        qdisc.enqueue(&Packet::new(handle, 1514), now, &mut Discard);
    }
    let mut at_once = 0;
    while qdisc.dequeue(now, &mut Discard).is_some() {
        at_once += 1;
    }
    sample.value(Quantity::Burst, f64::from(at_once));
    sample
}

pub(super) fn shaper_figures(measures: &Measures) -> Vec<Figure> {
    let name = |rate: f64| RATES.iter().find(|(known, _)| *known == rate).map_or("", |one| one.1);
    let series = SHARES.map(|share| (share.to_string(), move |rate| of(name(rate), share)));
    let plot = sweep(measures, &RATES.map(|(rate, _)| rate), &series);
    let axes = (Axis::log("rate (bit/s)"), Axis::linear("share of the rate, over any second"));
    let title = "The shaper under saturation, over all framings";
    let id = ("A7-burst", "Packets that leave at once after an idle time");
    let (y, arms) = (Axis::linear("packets"), ["cake", "htb"]);
    let bursts = arms_dots(id, y, measures, &arms, &[Quantity::Burst]);
    vec![Figure::new(("A7", title), axes, plot), bursts]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formulas_are_those_of_the_paper() {
        assert!((plain_formula(1024) - 0.632_3).abs() < 1e-3);
        // Seven others can never fill a set; eight in one set of 128 almost never.
        assert_eq!(set_associative_formula(7), 0.0);
        assert!(set_associative_formula(8) < 1e-12);
        // Binomial(1024, 1/128) has its mean at 8: about even odds.
        assert!((set_associative_formula(1024) - 0.547).abs() < 5e-3);
    }

    #[test]
    fn sizes_on_the_wire_are_counted_in_cells() {
        let packet = Packet::new(0, 1514);
        assert_eq!(wire_len(&packet, None, 0, Carrier::Plain), 1514);
        assert_eq!(wire_len(&packet, Some(40), 0, Carrier::Atm), 33 * 53);
        assert_eq!(wire_len(&packet, Some(22), 0, Carrier::Ptm), 1522 + 24);
        assert_eq!(wire_len(&Packet::new(0, 60), Some(18), 84, Carrier::Atm), 106);
    }
}
