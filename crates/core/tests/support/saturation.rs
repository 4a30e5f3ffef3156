//! A discipline with packets of every flow always waiting, and a driver that is never late.

use simnel_core::packet::Flags;
use simnel_core::qdisc::{DropReason, PacketOwner};
use simnel_core::{Packet, Qdisc, Span, Time};

/// A flow that never runs dry.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Its hash.
    pub hash: u64,
    /// Its hosts.
    pub hosts: (u32, u32),
    /// Octet of DSCP and ECN.
    pub tos: u8,
    /// Bytes of each of its packets.
    pub len: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub at: Time,
    /// Of which flow: index.
    pub flow: usize,
    /// Its bytes on the line.
    pub adj_len: u32,
}

/// Packets of each flow that wait.
const DEPTH: u32 = 8;

/// Counts what waits of each flow; a packet's handle is its flow.
struct Waiting(Vec<u32>);

impl PacketOwner for Waiting {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0[packet.handle as usize] -= 1;
    }
}

/// A flow with hosts of its own.
pub fn lone_flow(number: u32, len: u32) -> Flow {
    // Multiplied so that neighbours do not lie in one set of queues.
    let hash = u64::from((number + 1).wrapping_mul(0x9e37_79b1));
    Flow { hash, hosts: (number * 97 + 1, number * 89 + 1), tos: 0, len }
}

/// Sends `packets` from `flows`, each of which always has packets waiting. An unshaped discipline
/// is taken at 1 Gbit/s.
pub fn saturate(qdisc: &mut dyn Qdisc, flows: &[Flow], packets: usize) -> Vec<Sent> {
    saturate_deeply(qdisc, flows, packets, DEPTH)
}

/// The same with `depth` packets of each flow that wait.
pub fn saturate_deeply(
    qdisc: &mut dyn Qdisc,
    flows: &[Flow],
    packets: usize,
    depth: u32,
) -> Vec<Sent> {
    let mut waiting = Waiting(vec![0; flows.len()]);
    let mut sent = Vec::with_capacity(packets);
    let mut now = Time(100_000_000_000);
    let mut calls = 0;
    while sent.len() < packets {
        for (index, flow) in flows.iter().enumerate() {
            // A discipline that drops the newcomer must not keep this from ending.
            for _ in waiting.0[index]..depth {
                let mut packet = Packet::new(index as u64, flow.len);
                packet.flow = flow.hash;
                (packet.src_host, packet.dst_host) = flow.hosts;
                packet.tos = flow.tos;
                packet.flags = Flags::IPV4;
                waiting.0[index] += 1;
                qdisc.enqueue(&packet, now, &mut waiting);
            }
        }
        now = now.max(qdisc.next_event().expect("packets wait"));
        if let Some(&mut packet) = qdisc.dequeue(now, &mut waiting) {
            let flow = packet.handle as usize;
            waiting.0[flow] -= 1;
            sent.push(Sent { at: now, flow, adj_len: packet.adj_len });
            if qdisc.next_event().is_none_or(|next| next <= now) {
                now += Span(u64::from(packet.len) * 8);
            }
        }
        calls += 1;
        assert!(calls < packets * 16, "{} of {packets} packets in {calls} calls", sent.len());
    }
    sent
}

/// Bytes on the line for each value of `key`, as parts of the whole in 1/10,000.
pub fn shares<const N: usize>(sent: &[Sent], key: impl Fn(usize) -> usize) -> [u64; N] {
    let mut sums = [0; N];
    for packet in sent {
        sums[key(packet.flow)] += u64::from(packet.adj_len);
    }
    let all: u64 = sums.iter().sum();
    sums.map(|sum| (sum * 10_000 + all / 2) / all)
}
