//! CAKE's settings, with the names, units and defaults of `tc` (man tc-cake, facts A.1).

use super::tin_map::{tin_map, DiffservMode};
use crate::framing::Framing;
use crate::packet::Packet;
use crate::qdisc::ConfigError;
use crate::rate::{Arithmetic, Rate};
use crate::time::Span;
use crate::wide::quotient;

/// Full-sized packets that may wait when nothing else limits memory.
const PACKET_LIMIT: u64 = 10_240;
/// Memory that a shaped line may always use: 4 MiB.
const LEAST_MEMORY: u64 = 4 << 20;
/// Least memory that a packet takes: more packets than the limit divided by this never fit.
const LEAST_TRUESIZE: u64 = Packet::typical_truesize(0) as u64;
/// Most packets held, whatever `memlimit` says: 1 GiB of descriptors.
const MOST_PACKETS: u64 = 1 << 24;

/// Everything that `tc qdisc change ... cake` can set, and settings of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Shaped rate; zero is `unlimited`: the tins are then served by weighted DRR.
    pub bandwidth: Rate,
    /// Follow 15/16 of the estimated arrival rate; `bandwidth` is the first estimate.
    pub autorate_ingress: bool,
    /// The map from code points to tins.
    pub diffserv: DiffservMode,
    /// Units that share the line equally.
    pub flow_mode: FlowMode,
    /// Look through network address translation.
    pub nat: bool,
    /// Clear the DSCP after reading it.
    pub wash: bool,
    /// The queue stands behind the bottleneck: charge dropped packets too, and drop earlier.
    pub ingress: bool,
    /// Drop acknowledgements that newer ones in the same queue make redundant.
    pub ack_filter: AckFilter,
    /// Cut super-packets into their segments before queueing.
    pub split_gso: bool,
    /// Expected round-trip time: COBALT's interval. Whole microseconds.
    pub rtt: Span,
    /// Acceptable standing delay: COBALT's target. Whole microseconds.
    pub target: Span,
    /// Link overhead and cells.
    pub framing: Framing,
    /// Memory for packets in bytes; zero computes it from rate and RTT.
    pub memlimit: u32,
    /// Firewall-mark bits that choose the tin; zero for none.
    pub fwmark: u32,
    /// Flow queues in each tin: a power of two, 8..=32768. Ours; Linux has 1024.
    pub queues: u32,
    /// Leading bits of an IPv6 address that make a host, 1..=128. Ours; Linux uses all.
    pub host_prefix: u8,
    /// Bytes that an empty queue may save up (limited deficit savings), if queues save at all.
    pub savings: Option<u32>,
    /// The flows that count as a host's load. Ours; Linux counts bulk flows.
    pub host_load: HostLoad,
    /// Protection of hosts from one host's many flows. Ours; Linux has no such guard.
    pub host_guard: HostGuard,
    /// Forget the packet sizes that were seen, once, when these settings come into force, as Linux
    /// whenever a request names overhead or `raw`.
    pub forget_sizes: bool,
}

/// Contents of a queue, and the parties between whom it is fair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowMode {
    /// One queue for all.
    Flowblind,
    /// A queue for each source address.
    Srchost,
    /// A queue for each destination address.
    Dsthost,
    /// A queue for each pair of addresses.
    Hosts,
    /// A queue for each five-tuple.
    Flows,
    /// Fair between source addresses, then between their flows.
    DualSrchost,
    /// Fair between destination addresses, then between their flows.
    DualDsthost,
    /// Fair to both ends, by the larger of their loads.
    #[default]
    TripleIsolate,
}

/// Dropping of redundant acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckFilter {
    /// Never.
    #[default]
    Off,
    /// Two are always kept.
    Conservative,
    /// Only the newest is kept.
    Aggressive,
}

/// The flows of a host that divide its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostLoad {
    /// Those with a standing queue, as Linux since 2019.
    #[default]
    Bulk,
    /// All that are active, as Piece of CAKE, Algorithm 2.
    Active,
}

/// The hosts that are guarded against each other, in flow modes that isolate hosts and have flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostGuard {
    /// None.
    #[default]
    Off,
    /// Those that the flow mode isolates; under `triple-isolate` those of the end that has fewer.
    On,
    /// Under `triple-isolate` the sources.
    Source,
    /// Under `triple-isolate` the destinations.
    Destination,
}

impl FlowMode {
    /// Bits as in `TCA_CAKE_FLOW_MODE`: 1 source, 2 destination, 4 flows.
    #[inline]
    pub const fn bits(self) -> u8 {
        self as u8
    }
    /// The hash that picks the queue of `packet`.
    #[inline]
    pub(super) const fn queue_hash(self, packet: &Packet) -> u32 {
        let bits = self.bits();
        if bits & 4 != 0 {
            return packet.flow as u32;
        }
        let src = if bits & 1 != 0 { packet.src_host } else { 0 };
        let dst = if bits & 2 != 0 { packet.dst_host } else { 0 };
        src ^ dst
    }
    /// Flows of one source host share that host's part.
    #[inline]
    pub const fn isolates_sources(self) -> bool {
        self.bits() & 5 == 5
    }
    /// Flows of one destination host share that host's part.
    #[inline]
    pub const fn isolates_destinations(self) -> bool {
        self.bits() & 6 == 6
    }
}

impl Params {
    /// The preset `internet`: an RTT of 100 ms.
    pub const DEFAULT_RTT: Span = Span::from_millis(100);

    /// Sets the RTT and the target that goes with it: a twentieth, at least 1 µs (`rtt TIME`).
    pub fn set_rtt(&mut self, rtt: Span) {
        self.rtt = Span::from_micros(rtt.as_micros().max(1));
        self.target = Span::from_micros((self.rtt.as_micros() / 20).max(1));
    }

    /// The tin that packets with this code point and firewall mark fall into, as a place in the
    /// order of statistics. A packet's class, which could ask for another, is not looked at.
    pub fn listed_tin(&self, dscp: u8, mark: u32) -> usize {
        let map = tin_map(self.diffserv);
        map.place(map.marked(self.fwmark, mark).unwrap_or_else(|| map.tin_index_of(dscp)))
    }

    /// Checks what the grammar cannot know to be wrong.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok: bool, option, expected| {
            ok.then_some(()).ok_or(ConfigError::OutOfRange { option, expected })
        };
        check(
            self.queues.is_power_of_two() && (8..=32_768).contains(&self.queues),
            "queues",
            "a power of two from 8 to 32768",
        )?;
        check(
            self.savings.is_none() || self.host_guard == HostGuard::Off,
            "savings",
            "no `host-guard` beside it: say `no-host-guard`",
        )?;
        check((1..=128).contains(&self.host_prefix), "host-prefix", "1 to 128 bits")?;
        check((-64..=256).contains(&self.framing.overhead), "overhead", "-64 to 256 bytes")?;
        check(self.framing.mpu <= 256, "mpu", "0 to 256 bytes")?;
        check(self.rtt.0 > 0 && self.target.0 > 0, "rtt", "at least 1us")
    }

    /// Memory limit for a rate (facts A.9). Of the bytes that follow from rate and RTT, Linux keeps
    /// 32 bits.
    pub(super) fn memory_limit(&self, rate: Rate, mtu: u32, arithmetic: Arithmetic) -> u64 {
        let configured = u64::from(self.memlimit);
        let limit = if configured != 0 {
            configured
        } else if rate.is_unlimited() {
            u64::MAX
        } else {
            // Four bandwidth-delay products.
            let bytes = quotient(u128::from(rate.0) * u128::from(self.rtt.as_micros()), 250_000);
            let bytes = match arithmetic {
                Arithmetic::Exact => bytes.min(u128::from(u32::MAX)) as u32,
                Arithmetic::Linux(_) => bytes as u32,
            };
            u64::from(bytes).max(LEAST_MEMORY)
        };
        limit.min((PACKET_LIMIT * u64::from(mtu)).max(configured))
    }

    /// Packets to reserve room for: what the limit can ever become while these settings hold.
    pub(super) fn capacity(&self, mtu: u32) -> u32 {
        let rate = if self.autorate_ingress { Rate(0) } else { self.bandwidth };
        let limit = self.memory_limit(rate, mtu, Arithmetic::Exact);
        (limit / LEAST_TRUESIZE + 2).min(MOST_PACKETS) as u32
    }
}

impl Default for Params {
    fn default() -> Params {
        Params {
            bandwidth: Rate(0),
            autorate_ingress: false,
            diffserv: DiffservMode::default(),
            flow_mode: FlowMode::default(),
            nat: false,
            wash: false,
            ingress: false,
            ack_filter: AckFilter::default(),
            split_gso: true,
            rtt: Params::DEFAULT_RTT,
            target: Span::from_millis(5),
            framing: Framing::default(),
            memlimit: 0,
            fwmark: 0,
            queues: 1024,
            host_prefix: 128,
            savings: None,
            host_load: HostLoad::default(),
            host_guard: HostGuard::default(),
            forget_sizes: false,
        }
    }
}
