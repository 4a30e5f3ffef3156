//! One discipline alone under load that does not answer: what explains its algorithm.
//!
//! There is no congestion control: each load sends at its rate whatever is dropped. So what is seen
//! is the discipline's own law. The driver is the contract's (`qdisc`): a packet arrives, and the
//! line takes the next when it is free. What the discipline says of itself is noted in even steps.

use serde::{Deserialize, Serialize};
use simnel_core::packet::Flags;
use simnel_core::qdisc::{
    self, cobalt, red, sfb, show_own_json, Device, Discard, DropReason, Managed, PacketOwner,
};
use simnel_core::{Packet, Span, Time};
use std::any::Any;
use std::collections::BTreeMap;

use crate::ScenarioError;

/// Looks at a discipline in one exhibit.
const LOOKS: u64 = 300;
/// Packets of an exhibit, all loads together.
const MOST_PACKETS: usize = 200_000;
/// Drops and marks that are told one by one.
const MOST_EVENTS: usize = 4000;
/// Arrivals at each length of [`chances`]: before it counts, and while it does.
const SETTLING: u32 = 1000;
const COUNTED: u32 = 3000;
/// Handle of the discipline: classes of loads are below it.
const HANDLE: u32 = 0x1_0000;

/// One discipline under load, to be shown.
#[derive(Clone, Debug, Deserialize)]
pub struct Exhibit {
    /// The discipline in `tc`'s words.
    pub words: String,
    /// The line's rate in Mbit/s; zero where the discipline is the shaper.
    pub line_mbps: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// The arrivals.
    pub loads: Vec<Load>,
}

/// Packets of one flow at a rate of their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Mbit/s.
    pub mbps: f64,
    /// Bytes of a packet, link header included.
    pub bytes: u32,
    /// Packets at once.
    pub burst: u32,
    /// From and until when, in seconds.
    pub from_s: f64,
    /// See `from_s`; zero for the end.
    pub until_s: f64,
    /// Differentiated services code point.
    pub dscp: u8,
    /// The ECN field: 0 cannot be marked, 1 is ECT(1), 2 ECT(0).
    pub ecn: u8,
    /// The host that sends it, from 1.
    pub host: u32,
    /// The class that it belongs to (minor number); zero for none.
    pub class: u32,
}

impl Default for Load {
    fn default() -> Load {
        Load {
            mbps: 1.0,
            bytes: 1514,
            burst: 1,
            from_s: 0.0,
            until_s: 0.0,
            dscp: 0,
            ecn: 0,
            host: 1,
            class: 0,
        }
    }
}

/// Results of an exhibit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// Milliseconds from look to look; the first is after one of them.
    pub interval_ms: f64,
    /// Looks at the discipline, in order.
    pub looks: Vec<Look>,
    /// Drops and marks: milliseconds, load, and why. The first of many.
    pub events: Vec<(f64, usize, &'static str)>,
}

/// The discipline at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Look {
    /// Of each load.
    pub loads: Vec<Seen>,
    /// The discipline's own statistics: a JSON object, as `tc -s -j` has them.
    pub own: String,
    /// Values that it does not show there: `average_kb` of `red`, `count` and `p_drop` of `cobalt`.
    pub inside: BTreeMap<&'static str, f64>,
    /// Packets in each bin and its probability, level by level: of `sfb`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<(u16, f64)>,
}

/// One load at one moment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Seen {
    /// Packets that wait.
    pub waiting: u32,
    /// Mean delay in milliseconds of the packets sent since the last look; None if none was sent.
    pub delay_ms: Option<f64>,
    /// Mbit/s sent since the last look.
    pub sent_mbps: f64,
    /// Dropped since the beginning.
    pub dropped: u32,
    /// Marked since the beginning.
    pub marked: u32,
    /// Its queue's own figures, where it has one.
    pub queue: Option<Queue>,
}

/// A flow's queue.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Queue {
    /// True if it goes first because it does not stand.
    pub is_sparse: bool,
    /// Bytes that it may send in its turn.
    pub deficit: i32,
    /// Signals in the present or last spell.
    pub count: u32,
    /// BLUE's probability.
    pub p_drop: f64,
}

impl Exhibit {
    /// Runs it. Fails on wrong words, and on more than 200,000 packets.
    pub fn run(&self) -> Result<Record, ScenarioError> {
        let mut discipline = build(&self.words)?;
        let arrivals = self.arrivals()?;
        let end = time(self.seconds);
        let interval = Span((end.0 / LOOKS).max(1));
        let mut watch = Watch::of(&self.loads);
        let mut record = Record { interval_ms: interval.0 as f64 / 1e6, ..Record::default() };
        let mut arrivals = arrivals.into_iter().peekable();
        // When the line, and the discipline, may give the next packet; none while nothing waits.
        let mut free = Time::ZERO;
        let mut next_look = Time::ZERO + interval;
        loop {
            // An event in the past means now.
            let due = discipline.next_event().map(|due| due.max(free).max(watch.now));
            let arrival = arrivals.peek().map(|(at, _)| *at);
            let now = [due, arrival].into_iter().flatten().min().unwrap_or(end).min(next_look);
            if now >= end && next_look > end {
                break;
            }
            watch.now = now;
            if now == next_look {
                record.looks.push(watch.look(discipline.as_ref(), &self.loads, interval));
                next_look += interval;
            } else if arrival == Some(now) {
                let Some((_, load)) = arrivals.next() else { break };
                let packet = packet(load, &self.loads[load]);
                watch.waiting[load] += 1;
                discipline.enqueue(&packet, now, &mut watch);
            } else {
                let sent = discipline.dequeue(now, &mut watch).copied();
                let Some(packet) = sent else {
                    // Called again at once it goes on; a nanosecond keeps time moving.
                    free = free.max(now + Span(1));
                    continue;
                };
                watch.sent(&packet, now);
                let bits = f64::from(packet.len) * 8.0;
                let takes = if self.line_mbps > 0.0 { bits / self.line_mbps * 1e3 } else { 1.0 };
                free = now + Span(takes as u64);
            }
        }
        record.events = watch.events;
        Ok(record)
    }

    /// Arrival time of each packet, and the index of its load.
    fn arrivals(&self) -> Result<Vec<(Time, usize)>, ScenarioError> {
        let mut all = Vec::new();
        for (n, load) in self.loads.iter().enumerate() {
            let until = if load.until_s > 0.0 { load.until_s } else { self.seconds };
            let spacing = f64::from(load.bytes) * 8.0 * f64::from(load.burst.max(1))
                / (load.mbps.max(1e-6) * 1e6);
            // Loads of one rate do not come in step.
            let mut at = load.from_s + spacing * (0.13 + 0.29 * n as f64).fract();
            while load.mbps > 0.0 && at < until.min(self.seconds) {
                all.extend((0..load.burst.max(1)).map(|_| (time(at), n)));
                if all.len() > MOST_PACKETS {
                    let what = format!("more than {MOST_PACKETS} packets");
                    return Err(ScenarioError::whole(what, "lower rates or a shorter time"));
                }
                at += spacing;
            }
        }
        all.sort();
        Ok(all)
    }
}

/// A packet of load number `n`; its handle says so.
fn packet(n: usize, load: &Load) -> Packet {
    let mut packet = Packet::new(n as u64, load.bytes);
    // Spread over all bits, as a hash is.
    packet.flow = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    packet.src_host = load.host;
    packet.dst_host = 1000 + n as u32;
    packet.tos = load.dscp << 2 | load.ecn & 3;
    packet.flags = Flags::IPV4;
    packet.class = if load.class > 0 { HANDLE | load.class } else { 0 };
    packet
}

/// The share of arrivals that a discipline drops, or marks, while 0, 1, … `most` packets stand in
/// its queue. That is what remains of its law once averages have settled. One packet of 1514 bytes
/// comes a millisecond.
pub fn chances(words: &str, most: u32) -> Result<Vec<f64>, ScenarioError> {
    (0..=most.min(400)).map(|standing| chance(words, standing)).collect()
}

fn chance(words: &str, standing: u32) -> Result<f64, ScenarioError> {
    let mut discipline = build(words)?;
    let mut before = 0;
    for n in 0..SETTLING + COUNTED {
        let now = Time::ZERO + Span::from_millis(u64::from(n) + 1);
        let mut packet = Packet::new(0, 1514);
        packet.flags = Flags::IPV4;
        discipline.enqueue(&packet, now, &mut Discard);
        if discipline.backlog().packets > standing {
            discipline.dequeue(now, &mut Discard);
        }
        if n + 1 == SETTLING {
            before = discipline.snapshot().totals.drops();
        }
    }
    let drops = discipline.snapshot().totals.drops() - before;
    Ok(drops as f64 / f64::from(COUNTED))
}

fn build(words: &str) -> Result<Box<dyn Managed + Send>, ScenarioError> {
    let config = crate::values::discipline(words, None, None)?;
    let device = Device { handle: HANDLE, ..Device::default() };
    qdisc::build(&config, &device)
        .map_err(|error| ScenarioError::whole(error.to_string(), "settings that can run"))
}

fn time(seconds: f64) -> Time {
    Time((seconds.clamp(0.0, 3600.0) * 1e9) as u64)
}

/// The owner of the packets, and what it has seen.
struct Watch {
    now: Time,
    waiting: Vec<u32>,
    dropped: Vec<u32>,
    marked: Vec<u32>,
    /// Since the last look: packets, their bytes and their time.
    sent: Vec<(u64, u64, u64)>,
    events: Vec<(f64, usize, &'static str)>,
}

impl Watch {
    fn of(loads: &[Load]) -> Watch {
        Watch {
            now: Time::ZERO,
            waiting: vec![0; loads.len()],
            dropped: vec![0; loads.len()],
            marked: vec![0; loads.len()],
            sent: vec![(0, 0, 0); loads.len()],
            events: Vec::new(),
        }
    }

    fn tell(&mut self, load: usize, what: &'static str) {
        if self.events.len() < MOST_EVENTS {
            self.events.push((self.now.0 as f64 / 1e6, load, what));
        }
    }

    fn sent(&mut self, packet: &Packet, now: Time) {
        let load = packet.handle as usize;
        self.waiting[load] = self.waiting[load].saturating_sub(1);
        let (packets, bytes, waited) = &mut self.sent[load];
        *packets += 1;
        *bytes += u64::from(packet.len);
        *waited += now.since(packet.enqueued).0;
        if packet.flags.has(Flags::MARKED) {
            self.marked[load] += 1;
            self.tell(load, "mark");
        }
    }

    fn look(&mut self, discipline: &dyn Managed, loads: &[Load], interval: Span) -> Look {
        let mut own = String::new();
        // Writing to a text cannot fail.
        let _ = show_own_json(&discipline.snapshot(), &mut own);
        let seen = loads.iter().enumerate().map(|(load, settings)| {
            let (packets, bytes, waited) = std::mem::take(&mut self.sent[load]);
            let class =
                discipline.queue_of(&packet(load, settings)).and_then(|n| discipline.class(n));
            Seen {
                waiting: self.waiting[load],
                delay_ms: (packets > 0).then(|| waited as f64 / packets as f64 / 1e6),
                sent_mbps: bytes as f64 * 8e3 / interval.0 as f64,
                dropped: self.dropped[load],
                marked: self.marked[load],
                queue: class.map(|class| Queue {
                    is_sparse: class.is_sparse,
                    deficit: class.deficit,
                    count: class.count,
                    p_drop: share(class.p_drop),
                }),
            }
        });
        let (inside, bins) = (inside(discipline), bins(discipline));
        Look { loads: seen.collect(), own, inside, bins }
    }
}

/// State that is no statistic.
fn inside(discipline: &dyn Managed) -> BTreeMap<&'static str, f64> {
    let any = discipline as &dyn Any;
    if let Some(red) = any.downcast_ref::<red::Red>() {
        return BTreeMap::from([("average_kb", red.aqm().average() as f64 / 1e3)]);
    }
    let Some(cobalt) = any.downcast_ref::<cobalt::Cobalt>() else { return BTreeMap::new() };
    let state = cobalt.aqm().state();
    let (count, p_drop) = (f64::from(state.spell().0), share(state.blue().0));
    BTreeMap::from([("count", count), ("p_drop", p_drop)])
}

/// Of Q0.32.
fn share(p: u32) -> f64 {
    f64::from(p) / f64::from(u32::MAX)
}

/// The bins of `sfb`.
fn bins(discipline: &dyn Managed) -> Vec<(u16, f64)> {
    let Some(sfb) = (discipline as &dyn Any).downcast_ref::<sfb::Sfb>() else { return Vec::new() };
    let whole = f64::from(sfb::MAX_PROB);
    sfb.aqm().bins().map(|(packets, prob)| (packets, f64::from(prob) / whole)).collect()
}

impl PacketOwner for Watch {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        let load = packet.handle as usize;
        self.waiting[load] = self.waiting[load].saturating_sub(1);
        self.dropped[load] += 1;
        self.tell(load, reason.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exhibit(words: &str, line_mbps: f64, seconds: f64, loads: &[Load]) -> Record {
        let loads = loads.to_vec();
        Exhibit { words: words.into(), line_mbps, seconds, loads }.run().expect(words)
    }

    #[test]
    fn codel_drops_by_its_control_law() {
        let load = Load { mbps: 11.0, ..Load::default() };
        let record = exhibit("codel", 10.0, 3.0, &[load]);
        let times: Vec<f64> = record.events.iter().map(|event| event.0).collect();
        assert!(times.len() > 8, "{times:?}");
        for (n, pair) in times.windows(2).take(8).enumerate() {
            let law = 100.0 / ((n + 1) as f64).sqrt();
            // A packet of 1514 bytes takes 1.2 ms; a drop waits for one to leave.
            assert!((pair[1] - pair[0] - law).abs() < 2.5, "{n}: {pair:?}, the law says {law}");
        }
        assert!(record.looks.last().expect("looks").own.contains("\"count\":"));
    }

    #[test]
    fn pie_drops_the_share_that_is_too_much() {
        let record = exhibit("pie", 10.0, 20.0, &[Load { mbps: 12.5, ..Load::default() }]);
        let last = record.looks.last().expect("looks");
        let before = &record.looks[record.looks.len() / 2];
        let dropped = f64::from(last.loads[0].dropped - before.loads[0].dropped);
        let came = 12.5e6 / 8.0 / 1514.0 * 10.0;
        assert!((dropped / came - 0.2).abs() < 0.03, "{dropped} of {came}");
        assert!(last.loads[0].delay_ms.is_some_and(|delay| delay < 40.0));
    }

    #[test]
    fn sparse_flows_are_told_from_bulk() {
        let loads = [
            Load { mbps: 12.0, ..Load::default() },
            Load { mbps: 0.1, bytes: 200, ..Load::default() },
        ];
        let record = exhibit("fq_codel", 10.0, 2.0, &loads);
        let queue = |look: &Look, load: usize| look.loads[load].queue.expect("a queue");
        assert!(record.looks[50..].iter().all(|look| !queue(look, 0).is_sparse));
        let delays = record.looks.iter().filter_map(|look| look.loads[1].delay_ms);
        assert!(delays.fold(0.0, f64::max) < 3.0, "at most a packet of the other's");
        let late = &record.looks[100..];
        let goodput = late.iter().map(|look| look.loads[0].sent_mbps).sum::<f64>();
        assert!((goodput / late.len() as f64 - 9.9).abs() < 0.1, "the line is full");
    }

    #[test]
    fn an_idle_line_saves_nothing_up() {
        let loads = [
            Load { mbps: 5.4, ..Load::default() },
            Load { mbps: 5.4, from_s: 1.0, ..Load::default() },
        ];
        let record = exhibit("pfifo", 10.0, 2.0, &loads);
        let sent = |look: &Look| look.loads.iter().map(|seen| seen.sent_mbps).sum::<f64>();
        let late = &record.looks[180..];
        let mean = late.iter().map(sent).sum::<f64>() / late.len() as f64;
        assert!((mean - 10.0).abs() < 0.1, "{mean} Mbit/s on a line of 10");
        assert!(late.last().expect("looks").loads[0].delay_ms > Some(50.0));
    }

    #[test]
    fn sfb_shows_the_bins_of_the_flow_that_does_not_answer() {
        let record =
            exhibit("sfb increment 0.01", 10.0, 5.0, &[Load { mbps: 30.0, ..Load::default() }]);
        let bins = &record.looks.last().expect("looks").bins;
        assert_eq!(bins.len(), sfb::LEVELS * sfb::BINS);
        for level in bins.chunks(sfb::BINS) {
            assert_eq!(level.iter().filter(|(_, prob)| *prob > 0.5).count(), 1, "{level:?}");
        }
    }

    #[test]
    fn reds_chance_rises_from_min_to_max() {
        let words = "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.1";
        let chances = chances(words, 70).expect("red");
        assert_eq!(chances[..18].iter().sum::<f64>(), 0.0, "below min nothing is dropped");
        assert!(chances[50] > chances[30] && chances[30] > 0.0, "{chances:?}");
        assert!(chances[66] > 0.9, "above max all is: {}", chances[66]);
    }

    #[test]
    fn what_cannot_be_shown_is_told() {
        let wrong = Exhibit { words: "caek".into(), line_mbps: 1.0, seconds: 1.0, loads: vec![] };
        assert!(wrong.run().expect_err("no discipline").what.contains("caek"));
        let much = Load { mbps: 1e6, ..Load::default() };
        let words = "pfifo".into();
        let much = Exhibit { words, line_mbps: 1.0, seconds: 9.0, loads: vec![much] };
        assert!(much.run().expect_err("too much").what.contains("200000 packets"));
    }
}
