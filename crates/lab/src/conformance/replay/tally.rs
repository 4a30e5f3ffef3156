//! A replay summed up: how many were sent, dropped and marked, how long they waited, who got what.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hdrhistogram::Histogram;
use serde::Serialize;
use simnel_core::flow::Addresses;
use simnel_core::wire::FlowKeys;
use simnel_core::{Packet, Time};

use super::drive::{Sink, Waiting};
use super::shares::{Counts, Entry, Found, Table, CAPACITY};
use super::source::Source;
use crate::conformance::golden::Fate;

/// Digits to which times in the queue are kept.
const DIGITS: u8 = 3;
/// EtherType of ARP.
const ARP: u16 = 0x0806;

/// A flow, for its name and its hosts.
#[derive(Clone, Copy, Debug)]
struct Flow {
    keys: FlowKeys,
    hosts: [u32; 2],
}

/// Sums.
pub struct Tally {
    totals: Counts,
    dropped_at_enqueue: u64,
    ack_filtered: u64,
    sojourn: Histogram<u64>,
    longest: u64,
    flows: Table<Flow>,
    /// Sources and destinations. Only what the table of flows no longer holds is in here.
    hosts: [Table<IpAddr>; 2],
    first: Option<Time>,
    last: Time,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Tally {
        Tally::with_capacity(CAPACITY)
    }

    /// As [`new`](Self::new), but with room for `capacity` flows.
    pub fn with_capacity(capacity: usize) -> Tally {
        // It grows with the longest time: half a megabyte for any.
        let sojourn = Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("three digits"));
        Tally {
            totals: Counts::default(),
            dropped_at_enqueue: 0,
            ack_filtered: 0,
            sojourn,
            longest: 0,
            flows: Table::new(capacity),
            hosts: [Table::new(capacity), Table::new(capacity)],
            first: None,
            last: Time::ZERO,
        }
    }

    /// A packet of the flow `keys` arrives.
    #[inline]
    pub fn arrival(
        &mut self,
        time: Time,
        packet: &Packet,
        keys: impl FnOnce() -> FlowKeys,
    ) -> Found {
        self.first.get_or_insert(time);
        self.last = time;
        self.totals.packets += 1;
        let hosts = [packet.src_host, packet.dst_host];
        let table = &mut self.hosts;
        let found = self.flows.find(
            packet.flow,
            || Flow { keys: keys(), hosts },
            |entry| host_shares(table, entry),
        );
        self.flows.counts(found).packets += 1;
        found
    }

    /// A packet leaves that arrived at `arrived`.
    #[inline]
    pub fn departure(&mut self, time: Time, waiting: &Waiting<Found>, fate: Fate) {
        self.last = time;
        let flow = self.flows.counts(waiting.note);
        match fate {
            Fate::Sent { marked, .. } => {
                let sojourn = time.since(waiting.arrived).0;
                self.sojourn += sojourn;
                self.longest = self.longest.max(sojourn);
                for counts in [flow, &mut self.totals] {
                    counts.sent += 1;
                    counts.bytes += u64::from(waiting.len);
                    counts.marked += u64::from(marked);
                }
            }
            Fate::Dropped | Fate::DroppedAtEnqueue | Fate::AckFiltered => {
                flow.dropped += 1;
                self.totals.dropped += 1;
                self.dropped_at_enqueue += u64::from(fate == Fate::DroppedAtEnqueue);
                self.ack_filtered += u64::from(fate == Fate::AckFiltered);
            }
        }
    }

    /// The result, with the `top` largest flows and hosts named.
    pub fn summary(mut self, qdisc: &str, line_bits: Option<u64>, top: usize) -> Summary {
        let flows = Shares::of(&self.flows, top, self.totals.bytes, flow_line);
        for entry in self.flows.entries() {
            host_shares(&mut self.hosts, entry);
        }
        let [sources, destinations] =
            self.hosts.each_ref().map(|hosts| Shares::of(hosts, top, self.totals.bytes, host_line));
        let quantile = |q| self.sojourn.value_at_quantile(q).min(self.longest);
        Summary {
            qdisc: qdisc.to_owned(),
            line_bits,
            packets: self.totals.packets,
            sent: self.totals.sent,
            sent_bytes: self.totals.bytes,
            dropped: self.totals.dropped - self.ack_filtered,
            dropped_at_enqueue: self.dropped_at_enqueue,
            ack_filtered: self.ack_filtered,
            marked: self.totals.marked,
            queued: self.totals.packets - self.totals.sent - self.totals.dropped,
            duration_ns: self.first.map_or(0, |first| self.last.since(first).0),
            sojourn_ns: (self.totals.sent > 0).then(|| Quantiles {
                p50: quantile(0.5),
                p95: quantile(0.95),
                p99: quantile(0.99),
                max: self.longest,
            }),
            flows,
            sources,
            destinations,
        }
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

impl Sink for Tally {
    type Note = Found;

    #[inline]
    fn arrived(&mut self, time: Time, packet: &Packet, source: &dyn Source) -> Found {
        self.arrival(time, packet, || source.keys())
    }

    #[inline]
    fn left(&mut self, time: Time, waiting: &Waiting<Found>, fate: Fate) {
        self.departure(time, waiting, fate);
    }
}

/// Credits what a flow got to its two hosts.
fn host_shares(hosts: &mut [Table<IpAddr>; 2], flow: &Entry<Flow>) {
    let FlowKeys { addresses, protocol, .. } = flow.label.keys;
    if protocol.is_none() {
        return;
    }
    let addresses = ends(addresses);
    for (side, table) in hosts.iter_mut().enumerate() {
        let found = table.find(flow.label.hosts[side].into(), || addresses[side], |_| {});
        table.counts(found).add(&flow.counts);
    }
}

/// Effects of a discipline on a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The discipline's words.
    pub qdisc: String,
    /// Bits per second of the line that took packets out; None if that took all at once.
    pub line_bits: Option<u64>,
    /// Packets that arrived.
    pub packets: u64,
    /// Packets sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets dropped, before and in the queue.
    pub dropped: u64,
    /// Of those, when a packet arrived.
    pub dropped_at_enqueue: u64,
    /// Acknowledgements filtered.
    pub ack_filtered: u64,
    /// Packets that the discipline marked.
    pub marked: u64,
    /// Packets still queued at the end.
    pub queued: u64,
    /// From the first arrival to the last event.
    pub duration_ns: u64,
    /// Time in the discipline, of the packets sent; None if none was.
    pub sojourn_ns: Option<Quantiles>,
    /// Shares of the flows.
    pub flows: Shares,
    /// Shares of the hosts that sent.
    pub sources: Shares,
    /// Shares of the hosts that received.
    pub destinations: Shares,
}

/// Times to three digits; the longest exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Median.
    pub p50: u64,
    /// 95 % were shorter.
    pub p95: u64,
    /// 99 % were shorter.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// Shares of the bytes sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shares {
    /// Number of flows or hosts.
    pub count: u64,
    /// Jain's index of their bytes; none below two.
    pub jain: Option<f64>,
    /// The largest, in order.
    pub top: Vec<ShareLine>,
    /// Of all, how many were summed up to save memory: not told apart, and counted again when they
    /// came again.
    pub summed_up: u64,
}

/// One flow or host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShareLine {
    /// Address, or addresses with ports and protocol.
    pub name: String,
    /// Packets that arrived.
    pub packets: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped, filtered acknowledgements included.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Of all bytes sent, from 0 to 1.
    pub share: f64,
}

impl Shares {
    fn of<L: Copy>(table: &Table<L>, top: usize, all: u64, name: fn(&L) -> String) -> Shares {
        let mut largest: Vec<&Entry<L>> = table.entries().iter().collect();
        // Stable: equals stay in the order in which they came.
        largest.sort_by_key(|entry| std::cmp::Reverse(entry.counts.bytes));
        let line = |entry: &&Entry<L>| {
            let Counts { packets, sent, bytes, dropped, marked } = entry.counts;
            let share = if all == 0 { 0.0 } else { bytes as f64 / all as f64 };
            ShareLine { name: name(&entry.label), packets, sent, dropped, marked, bytes, share }
        };
        Shares {
            count: table.entries().len() as u64 + table.rest().entries,
            jain: table.jain(),
            top: largest.iter().take(top).map(line).collect(),
            summed_up: table.rest().entries,
        }
    }
}

fn host_line(address: &IpAddr) -> String {
    address.to_string()
}

/// Source and destination.
fn ends(addresses: Addresses) -> [IpAddr; 2] {
    match addresses {
        Addresses::V4(src, dst) => [Ipv4Addr::from(src).into(), Ipv4Addr::from(dst).into()],
        Addresses::V6(src, dst) => [Ipv6Addr::from(src).into(), Ipv6Addr::from(dst).into()],
    }
}

/// `src,dst,sport,dport,proto`, as the recordings write flows; without IP the EtherType.
fn flow_line(flow: &Flow) -> String {
    let FlowKeys { addresses, protocol, ports: [a, b, c, d] } = flow.keys;
    let (sport, dport) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let Some(protocol) = protocol else {
        return match sport {
            ARP => "ARP".into(),
            other => format!("EtherType 0x{other:04x}"),
        };
    };
    let [src, dst] = ends(addresses);
    format!("{src},{dst},{sport},{dport},{protocol}")
}
