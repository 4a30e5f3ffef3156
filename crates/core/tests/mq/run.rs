//! Many transmit queues in virtual time: who sends how much, when, and how long sparse flows wait.
//!
//! The driver is hostile within what hardware does. At one instant it asks queues in random order,
//! one of them always last. Each wakes late by a time of its own. A queue that may send sends until
//! it may no longer.

use simnel_core::packet::Flags;
use simnel_core::qdisc::{DropReason, PacketOwner};
use simnel_core::random::Random;
use simnel_core::{Packet, Qdisc, Span, Time};

/// Length of every full packet, and of every packet of a sparse flow.
pub const FULL: u32 = 1514;
const SPARSE: u32 = 200;
/// Packets that a bulk flow keeps queued.
const STANDING: usize = 8;
/// Windows over which shares are compared.
pub const WINDOW: Span = Span::from_millis(100);
/// Packets that a queue may send at one instant.
const BATCH: usize = 64;

/// One flow of the traffic.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Its source host.
    pub host: u32,
    /// Its transmit queue.
    pub queue: usize,
    /// Its packets' DSCP.
    pub dscp: u8,
    /// Time between its packets, if it is sparse; else it always has some queued.
    pub gap: Option<Span>,
    /// Time at which it begins to send.
    pub from: Time,
    /// Time at which it ends.
    pub until: Time,
}

impl Flow {
    /// A flow with a standing queue from the beginning to the end.
    pub fn bulk(host: u32, queue: usize) -> Flow {
        Flow { host, queue, dscp: 0, gap: None, from: Time::ZERO, until: Time::MAX }
    }
}

/// A run's results.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Bytes of each flow in each window.
    pub windows: Vec<Vec<u64>>,
    /// Most bytes by which any interval held more than its length at the rate.
    pub excess: u64,
    /// Least bytes in any 10 ms, as a part of the rate.
    pub least_rate: f64,
    /// Longest delay of a packet of a sparse flow, after the first window.
    pub worst_sparse: Span,
    /// Times that a queue was asked, for each packet sent.
    pub asked: f64,
}

/// Packets that were dropped, by flow.
#[derive(Default)]
struct Dropped(Vec<usize>);

impl PacketOwner for Dropped {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0.push(packet.handle as usize);
    }
}

/// Packets of a flow, under hashes as a keyed hash gives them.
fn packet_of(number: usize, flow: &Flow) -> Packet {
    let mut packet = Packet::new(number as u64, if flow.gap.is_some() { SPARSE } else { FULL });
    packet.flow = Random::derive(7, number as u64).u64();
    packet.src_host = Random::derive(8, u64::from(flow.host)).u32();
    packet.dst_host = Random::derive(9, number as u64).u32();
    packet.flags = Flags::IPV4;
    packet.tos = flow.dscp << 2;
    packet
}

/// Runs `flows` over `queues` that share `rate` bytes a second, for so many windows. Each queue
/// wakes up to `lateness` late.
pub fn run(
    queues: &mut [Box<dyn Qdisc>],
    flows: &[Flow],
    rate: u64,
    windows: usize,
    lateness: Span,
) -> Report {
    let mut random = Random::new(0x5eed_0001);
    let end = Time(WINDOW.0 * windows as u64);
    let mut report = Report { windows: vec![vec![0; flows.len()]; windows], ..Report::default() };
    let mut wake = vec![Time::MAX; queues.len()];
    let mut arrivals: Vec<Time> = flows.iter().map(|flow| flow.from).collect();
    let mut tens = vec![0u64; windows * 10];
    let (mut level, mut level_at, mut asked, mut sent) = (0.0f64, Time::ZERO, 0u64, 0u64);
    let mut owner = Dropped::default();
    let mut refill = Vec::new();
    loop {
        let next = wake.iter().chain(&arrivals).copied().min().unwrap_or(Time::MAX);
        if next >= end {
            break;
        }
        let now = next;
        for (number, flow) in flows.iter().enumerate() {
            if arrivals[number] > now {
                continue;
            }
            let count = if flow.gap.is_some() { 1 } else { STANDING };
            for _ in 0..count {
                queues[flow.queue].enqueue(&packet_of(number, flow), now, &mut owner);
            }
            wake[flow.queue] = now;
            arrivals[number] = match flow.gap {
                Some(gap) if now + gap < flow.until => now + gap,
                _ => Time::MAX,
            };
        }
        let mut order: Vec<usize> = (0..queues.len()).filter(|queue| wake[*queue] <= now).collect();
        // Queue 0 last, the others in any order.
        order.sort_by_cached_key(|queue| if *queue == 0 { u32::MAX } else { random.u32() >> 1 });
        for queue in order {
            let qdisc = &mut queues[queue];
            for _ in 0..BATCH {
                asked += 1;
                let packet = qdisc.dequeue(now, &mut owner).copied();
                refill.append(&mut owner.0);
                if let Some(packet) = packet {
                    let number = packet.handle as usize;
                    refill.push(number);
                    sent += 1;
                    report.windows[(now.0 / WINDOW.0) as usize][number] += u64::from(packet.len);
                    tens[(now.0 / 10_000_000) as usize] += u64::from(packet.len);
                    let drained = now.since(level_at).0 as f64 * rate as f64 / 1e9;
                    level = (level - drained).max(0.0) + f64::from(packet.len);
                    level_at = now;
                    report.excess = report.excess.max(level as u64);
                    if flows[number].gap.is_some() && now.0 >= WINDOW.0 {
                        let waited = now.since(packet.enqueued);
                        report.worst_sparse = report.worst_sparse.max(waited);
                    }
                }
                for number in refill.drain(..) {
                    let flow = &flows[number];
                    if flow.gap.is_none() && now < flow.until {
                        qdisc.enqueue(&packet_of(number, flow), now, &mut owner);
                    }
                }
                if packet.is_none() {
                    break;
                }
            }
            let late = match queue {
                0 => lateness,
                _ => Span(u64::from(random.below(lateness.0 as u32 + 1))),
            };
            // What is due now has not done yet.
            let due = qdisc.next_event().unwrap_or(Time::MAX);
            wake[queue] = if due <= now { now + Span(1) } else { due + late };
        }
    }
    // The first window is for flows to find their places.
    let least = tens.iter().skip(10).min().copied().unwrap_or(0);
    report.least_rate = least as f64 / (rate as f64 / 100.0);
    report.asked = asked as f64 / sent.max(1) as f64;
    report
}

/// Largest deviations of a window's shares from the ideal, as parts of that: of hosts, and of flows
/// within their host. All hosts are to be equal, and so are all flows of a host. Only bulk flows
/// that stood through all of the window count.
pub fn unfairness(flows: &[Flow], window: usize, bytes: &[u64]) -> (f64, f64) {
    let (begin, end) = (Time(WINDOW.0 * window as u64), Time(WINDOW.0 * (window as u64 + 1)));
    let stood = |flow: &Flow| flow.gap.is_none() && flow.from <= begin && flow.until >= end;
    let mut hosts = std::collections::BTreeMap::<u32, Vec<u64>>::new();
    for (flow, &bytes) in flows.iter().zip(bytes).filter(|(flow, _)| stood(flow)) {
        hosts.entry(flow.host).or_default().push(bytes);
    }
    let sums: Vec<u64> = hosts.values().map(|flows| flows.iter().sum()).collect();
    let within = hosts.values().map(|flows| deviation(flows)).fold(0.0, f64::max);
    (deviation(&sums), within)
}

/// Largest distance from the mean, as a part of it.
fn deviation(values: &[u64]) -> f64 {
    let mean = values.iter().sum::<u64>() as f64 / values.len().max(1) as f64;
    values.iter().map(|value| (*value as f64 - mean).abs() / mean.max(1.0)).fold(0.0, f64::max)
}
