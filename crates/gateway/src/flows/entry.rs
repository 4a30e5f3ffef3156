//! Flows as the control socket tells of them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use simnel_core::flow::Addresses;
use simnel_core::wire::FlowKeys;
use simnel_core::{Span, Time};

use super::{Flow, Part};
use crate::direction::Direction;

/// One flow in one direction. All counters are since the flow was first seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEntry {
    /// The interface.
    pub dev: String,
    /// Direction of these packets.
    pub direction: Direction,
    /// Address of the sender, before masquerading if the upload's.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Port of the sender; 0 if the protocol has none.
    pub sport: u16,
    /// Port of the receiver; 0 if the protocol has none.
    pub dport: u16,
    /// Number of the IP protocol: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// Packets released; a super-packet counts as one.
    pub packets: u64,
    /// Bytes released, with 14 bytes of Ethernet each.
    pub bytes: u64,
    /// Smoothed RTT of a TCP connection between here and its far end, without our own queue. None
    /// until one is seen, which begins with the first question.
    pub rtt_ns: Option<u64>,
    /// Number of its connection, where connection tracking tells of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked: Option<u32>,
    /// Its packets as whoever holds them sees them; None where the kernel shapes.
    #[serde(flatten)]
    pub held: Option<HeldFlow>,
}

/// A flow's packets, by whoever holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFlow {
    /// Code point of the last packet that arrived.
    pub dscp: u8,
    /// Firewall mark of the last packet that arrived.
    #[serde(default)]
    pub mark: u32,
    /// Packets dropped, but for redundant acknowledgements.
    pub drops: u64,
    /// Redundant acknowledgements dropped.
    pub ack_drops: u64,
    /// Packets released with a mark for CE.
    pub marks: u64,
    /// Packets queued.
    pub backlog_packets: u32,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// Sojourn time of the last released packet.
    pub sojourn_ns: u64,
    /// 99th percentile of the sojourn of the last 128 to 256 packets; a quarter too high at most.
    pub sojourn_p99_ns: u64,
    /// Time since the first packet arrived.
    pub age_ns: u64,
    /// Time since the last packet arrived.
    pub idle_ns: u64,
}

impl FlowEntry {
    /// The entry of `flow` at `now`.
    fn of(
        dev: &str,
        direction: Direction,
        flow: &Flow,
        (rtt, now): (Option<Span>, Time),
    ) -> FlowEntry {
        let (source, destination): (IpAddr, IpAddr) = match flow.keys.addresses {
            Addresses::V4(source, destination) => (source.into(), destination.into()),
            Addresses::V6(source, destination) => (source.into(), destination.into()),
        };
        let [s0, s1, d0, d1] = flow.keys.ports;
        FlowEntry {
            dev: dev.to_owned(),
            direction,
            source,
            destination,
            sport: u16::from_be_bytes([s0, s1]),
            dport: u16::from_be_bytes([d0, d1]),
            protocol: flow.keys.protocol.unwrap_or_default(),
            packets: flow.packets,
            bytes: flow.bytes,
            rtt_ns: rtt.map(|rtt| rtt.0),
            tracked: None,
            held: Some(HeldFlow::of(flow, now)),
        }
    }
}

impl HeldFlow {
    /// The state of `flow` at `now`.
    fn of(flow: &Flow, now: Time) -> HeldFlow {
        HeldFlow {
            dscp: flow.dscp,
            mark: flow.mark,
            drops: flow.drops,
            ack_drops: flow.ack_drops,
            marks: flow.marks,
            backlog_packets: flow.backlog_packets,
            backlog_bytes: flow.backlog_bytes,
            sojourn_ns: flow.sojourn.0,
            sojourn_p99_ns: flow.sojourn_p99().0,
            age_ns: now.since(flow.first).0,
            idle_ns: now.since(flow.last).0,
        }
    }
}

/// The entries of `directions` of `dev`, with the RTT of each that `rtt` knows.
pub(crate) fn entries(
    dev: &str,
    directions: &[(Direction, Part)],
    rtt: impl Fn(FlowKeys) -> Option<Span>,
) -> (Vec<LineEntry>, Vec<FlowEntry>) {
    let line = |(direction, part): &(Direction, Part)| LineEntry::of(dev, *direction, part);
    let lines = directions.iter().map(line).collect();
    let flows = directions.iter().flat_map(|(direction, part)| {
        let entry = |flow: &Flow| FlowEntry::of(dev, *direction, flow, (rtt(flow.keys), part.now));
        part.flows.iter().map(entry)
    });
    (lines, flows.collect())
}

/// All packets of one direction. Counters are since the direction came up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineEntry {
    /// The interface.
    pub dev: String,
    /// The direction.
    pub direction: Direction,
    /// Time at which this was told, by the discipline's clock, which never goes back.
    pub now_ns: u64,
    /// Sojourn time of the last released packet.
    pub sojourn_ns: u64,
    /// Packets released by sojourn: 64 buckets, whose ends
    /// [`bucket_limit`](simnel_core::sojourns::bucket_limit) gives. The difference of two looks has
    /// the quantiles of the time in between.
    pub sojourns: Vec<u64>,
    /// Arrivals that found no place for their flow.
    pub untracked: u64,
    /// Flows that gave their place up to another.
    pub evicted: u64,
}

impl LineEntry {
    fn of(dev: &str, direction: Direction, part: &Part) -> LineEntry {
        let whole = &part.whole;
        LineEntry {
            dev: dev.to_owned(),
            direction,
            now_ns: part.now.0,
            sojourn_ns: whole.sojourns.last.0,
            sojourns: whole.sojourns.counts.to_vec(),
            untracked: whole.untracked,
            evicted: whole.evicted,
        }
    }
}
