//! Settings of an endpoint; the defaults are Linux's (6.1, HZ=1000).

use simnel_core::time::Span;

/// Congestion control of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControl {
    /// New Reno (RFC 5681, RFC 6582).
    Reno,
    /// CUBIC (RFC 9438), Linux's default.
    #[default]
    Cubic,
    /// LEDBAT (RFC 6817): yields to everyone else.
    Ledbat,
    /// BBR version 1. Paces itself.
    Bbr,
    /// Data Center TCP (RFC 8257): needs accurate feedback from the receiver, switch
    /// [`EcnMode::Accurate`] on at both ends.
    Dctcp,
}

impl CongestionControl {
    /// All of them, in the order of the declaration.
    pub const ALL: [CongestionControl; 5] = [
        CongestionControl::Reno,
        CongestionControl::Cubic,
        CongestionControl::Ledbat,
        CongestionControl::Bbr,
        CongestionControl::Dctcp,
    ];

    /// The name by which Linux's sysctl knows it.
    pub const fn name(self) -> &'static str {
        match self {
            CongestionControl::Reno => "reno",
            CongestionControl::Cubic => "cubic",
            CongestionControl::Ledbat => "ledbat",
            CongestionControl::Bbr => "bbr",
            CongestionControl::Dctcp => "dctcp",
        }
    }

    /// The control of that name.
    pub fn from_name(name: &str) -> Option<CongestionControl> {
        CongestionControl::ALL.into_iter().find(|control| control.name() == name)
    }

    /// Windows for which Linux makes a send buffer: two, in case of losses; three for BBR, whose
    /// window stays while losses are repaired (`tcp_sndbuf_expand`).
    pub(crate) const fn buffered_windows(self) -> u32 {
        match self {
            CongestionControl::Bbr => 3,
            _ => 2,
        }
    }
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// Neither asks for it nor agrees to it.
    Off,
    /// Agrees if the other side asks (Linux's default, `tcp_ecn=2`).
    #[default]
    Passive,
    /// Asks for it and uses it (RFC 3168, `tcp_ecn=1`).
    On,
    /// Asks, and echoes every mark as DCTCP does (RFC 8257, section 3.2) instead of one a round
    /// trip.
    Accurate,
}

/// Rule by which CUBIC leaves slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartExit {
    /// On the first loss or mark only.
    LossOnly,
    /// HyStart by ACK train and delay increase, as in Linux.
    #[default]
    HyStart,
    /// HyStart++ (RFC 9406): delay increase, then a conservative phase.
    HyStartPlusPlus,
}

/// Condition under which the sender spreads its segments over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Never, unless the congestion control demands it (Linux without `fq`).
    #[default]
    Off,
    /// At Linux's pacing rate (twice the window a round trip in slow start, 1.2 times after), as
    /// the `fq` discipline on the sender would.
    On,
}

/// The settings of one endpoint. Copy one and change what differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Largest IP packet in bytes; the MSS is 40 less (IPv4), 52 with timestamps.
    pub mtu: u16,
    /// Bytes of IP header: 20 for IPv4, 40 for IPv6.
    pub ip_header: u8,
    /// Congestion control.
    pub congestion: CongestionControl,
    /// Leaving slow start (CUBIC only).
    pub slow_start_exit: SlowStartExit,
    /// CUBIC halves what it remembers if a loss comes below the last maximum (RFC 9438, 4.7).
    pub fast_convergence: bool,
    /// CUBIC never falls below what Reno would get (RFC 9438, 4.3).
    pub reno_friendly: bool,
    /// Initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// Selective acknowledgement (RFC 2018) and with it RACK-TLP.
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Window scaling (RFC 7323); without it no window exceeds 65,535 bytes.
    pub window_scaling: bool,
    /// Receive buffer at the start, in bytes of memory (half of it becomes window).
    pub rcvbuf: u32,
    /// Cap of the receive buffer's autotuning (`tcp_rmem[2]`); equal to `rcvbuf` switches it off.
    pub rcvbuf_max: u32,
    /// Payload bytes that may be in flight at most, as an application may ask for (0: no limit).
    pub in_flight_max: u32,
    /// Cap of the send buffer in bytes of memory (`tcp_wmem[2]`), which an application fills and
    /// refills as a blocking writer does (0: no limit).
    pub sndbuf_max: u32,
    /// Memory of a segment in either buffer beside its payload: its headers' room
    /// (`MAX_TCP_HEADER`) and bookkeeping, in sizes of the allocator. 1280 where the kernel knows
    /// wireless devices or tunnels, as distributions' do; 768 where it does not.
    pub segment_overhead: u32,
    /// Delayed acknowledgements; without them every segment is acknowledged at once.
    pub delayed_ack: bool,
    /// Initial (and least) delayed-ACK time.
    pub delayed_ack_time: Span,
    /// Segments acknowledged at once when data first arrives, at most.
    pub quick_acks: u8,
    /// Duplicate ACKs after the third are held back up to 1 ms or 5 % of the RTT (Linux's
    /// `tcp_comp_sack_*`).
    pub sack_compression: bool,
    /// Full segments that a receiving network card merges before TCP sees them (GRO): at most one
    /// ACK for so many that arrive within `gro_window`. 1 switches merging off.
    pub gro_segments: u8,
    /// Longest time that merging waits for further segments, counted from the first.
    pub gro_window: Span,
    /// Small writes wait for what is in flight (RFC 896).
    pub nagle: bool,
    /// Pacing.
    pub pacing: Pacing,
    /// Segments that leave together when TSO is in use, at most; 1 switches TSO off.
    pub tso_segments: u8,
    /// Least retransmission timeout.
    pub min_rto: Span,
    /// Retransmission timeout before the first measurement.
    pub initial_rto: Span,
    /// Forward RTO recovery (RFC 5682).
    pub frto: bool,
    /// Tail loss probe (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// The window decays while a connection is idle (RFC 5681, section 4.1).
    pub slow_start_after_idle: bool,
    /// Kernel timers fire on ticks of this length, and late by the granularity of Linux's timer
    /// wheel; zero gives exact timers.
    pub tick: Span,
    /// LEDBAT's target delay.
    pub ledbat_target: Span,
    /// Seed of the endpoint's random choices (BBR's cycle phase).
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mtu: 1500,
            ip_header: 20,
            congestion: CongestionControl::Cubic,
            slow_start_exit: SlowStartExit::HyStart,
            fast_convergence: true,
            reno_friendly: true,
            initial_window: 10,
            ecn: EcnMode::Passive,
            sack: true,
            timestamps: true,
            window_scaling: true,
            rcvbuf: 128 << 10,
            rcvbuf_max: 6 << 20,
            in_flight_max: 0,
            sndbuf_max: 4 << 20,
            segment_overhead: 1_280,
            delayed_ack: true,
            delayed_ack_time: Span::from_millis(40),
            quick_acks: 16,
            sack_compression: true,
            gro_segments: 1,
            gro_window: Span::from_micros(20),
            nagle: true,
            pacing: Pacing::Off,
            tso_segments: 1,
            min_rto: Span::from_millis(200),
            initial_rto: Span::from_secs(1),
            frto: true,
            tail_loss_probe: true,
            slow_start_after_idle: true,
            tick: Span::from_millis(1),
            ledbat_target: Span::from_millis(100),
            seed: 1,
        }
    }
}

impl Config {
    /// Largest payload announced to the other side: the MTU less the fixed headers.
    pub const fn advertised_mss(&self) -> u16 {
        self.mtu.saturating_sub(self.ip_header as u16 + 20)
    }

    /// Bytes of memory that Linux assumes for a full segment when it sizes a send buffer. It takes
    /// the segment to lie in one piece, rounded up to a size of the allocator.
    pub(crate) const fn segment_sizing(&self) -> u32 {
        let linear = self.advertised_mss() as u32 + self.segment_overhead.saturating_sub(SK_BUFF);
        linear.next_power_of_two() + SK_BUFF
    }
}

/// Bookkeeping apart from a segment's bytes (`struct sk_buff` of x86-64).
const SK_BUFF: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_have_the_names_of_linuxs_sysctl() {
        let names = ["reno", "cubic", "ledbat", "bbr", "dctcp"];
        assert_eq!(CongestionControl::ALL.map(CongestionControl::name), names);
        for control in CongestionControl::ALL {
            assert_eq!(CongestionControl::from_name(control.name()), Some(control));
        }
        assert_eq!(CongestionControl::from_name("vegas"), None);
    }

    /// Linux: 1460 bytes and 1024 of overhead fill a piece of 4096, beside 256 of bookkeeping.
    #[test]
    fn segments_take_sizes_of_the_allocator() {
        let of = |mtu, segment_overhead| {
            let config = Config { mtu, segment_overhead, ..Config::default() };
            (config.advertised_mss(), config.segment_sizing())
        };
        assert_eq!(of(1500, 1_280), (1_460, 4_352));
        assert_eq!(of(1500, 768), (1_460, 2_304));
        assert_eq!(of(9000, 1_280), (8_960, 16_640));
        assert_eq!(Config { ip_header: 40, ..Config::default() }.advertised_mss(), 1_440);
    }
}
