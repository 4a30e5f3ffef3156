//! Parallel queues: the bounds that `sched::parallel` states, over a hostile order of queues.

mod ingress;
mod run;
mod tins;
mod traffic;
mod turns;

use simnel_core::qdisc::cake::{DiffservMode, Member, Params};
use simnel_core::qdisc::{
    Config, ConfigError, Detail, Device, Discard, DropReason, Managed, PacketOwner,
};
use simnel_core::sched::parallel::{Timing, LOT};
use simnel_core::{Packet, Qdisc, Rate, Span, Time};

use run::{run, FULL};
use traffic::{RATE, WINDOWS};

/// Most time by which queues wake late.
const LATENESS: Span = Span::from_micros(20);
/// Length of the windows in which shares are compared.
const WINDOW_SECONDS: f64 = 0.1;
/// Largest deviation from the ideal share over a window.
const TOLERANCE: f64 = 0.05;

/// Bytes by which an interval of `count` queues may hold more than its length at `rate`.
fn most_excess(count: u64, rate: u64, timing: &Timing) -> u64 {
    // Two full packets, where they take longer than that.
    let ahead = (timing.ahead.0 * rate / 1_000_000_000).max(2 * u64::from(FULL));
    rate * (timing.late.0 + count * LOT.0) / 1_000_000_000 + ahead + count * u64::from(FULL)
}

#[test]
fn hosts_and_flows_share_over_all_queues() {
    for count in [2, 4, 8] {
        for (name, flows) in traffic::all(count) {
            let [(_, mut parallel), (_, mut alone)] =
                traffic::schemes(count, RATE, &Timing::KERNEL);
            let report = run(&mut parallel, &flows, RATE, WINDOWS, LATENESS);
            let (hosts, within) = traffic::worst(&flows, &report);
            let case = format!("{name} over {count}: {hosts:.3} of hosts, {within:.3} of flows");
            assert!(hosts <= TOLERANCE && within <= TOLERANCE, "{case}");
            assert!(
                report.excess <= most_excess(count as u64, RATE, &Timing::KERNEL),
                "{name}: {} B",
                report.excess
            );
            assert!(report.least_rate >= 0.95, "{name} over {count}: {}", report.least_rate);
            // No other packet delays a sparse flow, but those that left at the same instant.
            assert!(report.worst_sparse <= LATENESS, "{name}: {:?}", report.worst_sparse);

            let report = run(&mut alone, &flows, RATE, 2, LATENESS);
            let (hosts, _) = traffic::worst(&flows, &report);
            assert!(hosts > 0.4, "{name} over {count}: {hosts} where only the rate is shared");
        }
    }
}

#[test]
fn queues_that_are_asked_late_do_not_exceed_the_rate() {
    for lateness in [300, 2_000] {
        for (name, flows) in traffic::all(8) {
            let [(_, mut queues), _] = traffic::schemes(8, RATE, &Timing::KERNEL);
            let report = run(&mut queues, &flows, RATE, 2, Span::from_micros(lateness));
            assert!(
                report.excess <= most_excess(8, RATE, &Timing::KERNEL),
                "{name}: {} B",
                report.excess
            );
        }
    }
}

/// Threads at 1 Gbit/s that wake when batches are due, on a quiet machine and on a busy one.
#[test]
fn threads_that_wake_late_keep_rate_and_shares() {
    let rate = 125_000_000;
    let timing = &Timing::THREADS;
    for lateness in [100, 1_500].map(Span::from_micros) {
        for (count, (name, flows)) in [2, 4].into_iter().flat_map(|n| {
            let all = traffic::all(n);
            all.into_iter().map(move |traffic| (n, traffic))
        }) {
            let [(_, mut queues), _] = traffic::schemes(count, rate, timing);
            let report = run(&mut queues, &flows, rate, WINDOWS, lateness);
            let (hosts, within) = traffic::worst(&flows, &report);
            let sums = report.windows.iter().skip(1).map(|window| window.iter().sum::<u64>());
            let used = sums.min().unwrap_or(0) as f64 / (rate as f64 * WINDOW_SECONDS);
            let case = format!(
                "{name} over {count}, {} us late: {hosts:.3} of hosts, {within:.3} of flows, \
                 {used:.3} of the rate, excess {} B",
                lateness.as_micros(),
                report.excess
            );
            println!("{case}");
            assert!(hosts <= TOLERANCE && within <= TOLERANCE, "{case}");
            assert!(used >= 0.98, "{case}");
            assert!(report.excess <= most_excess(count as u64, rate, timing), "{case}");
        }
    }
}

/// A packet of one flow of a host.
fn packet(flow: u64, host: u32) -> Packet {
    let mut packet = Packet::new(flow, FULL);
    (packet.flow, packet.src_host, packet.dst_host) = (flow, 77 + host, 5 + host);
    packet
}

/// Queues so many copies of `packet`.
fn fill(member: &mut Member, packets: usize, packet: &Packet, now: Time) {
    (0..packets).for_each(|_| member.enqueue(packet, now, &mut Discard));
}

/// Members that share 1 Gbit/s, with packets of one flow of a host of its own in each.
fn backlogged(count: usize) -> Vec<Member> {
    let params = Params {
        bandwidth: Rate::from_bits(1_000_000_000),
        diffserv: DiffservMode::Besteffort,
        ..Params::default()
    };
    let mut members =
        Member::all(&params, &Device::default(), count, &Timing::KERNEL).expect("parallel queues");
    for (number, member) in members.iter_mut().enumerate() {
        fill(member, 6_000, &packet(number as u64, number as u32), Time::ZERO);
    }
    members
}

/// Bytes that members send between two times in microseconds, asked at each of them in turn.
fn sent(members: &mut [Member], from: u64, to: u64) -> Vec<u64> {
    let mut bytes = vec![0; members.len()];
    for micros in from..to {
        for (member, bytes) in members.iter_mut().zip(&mut bytes) {
            let packet = member.dequeue(Time(micros * 1_000), &mut Discard);
            *bytes += packet.map_or(0, |packet| u64::from(packet.len));
        }
    }
    bytes
}

#[test]
fn a_queue_that_nobody_asks_stops_no_other_and_catches_nothing_up() {
    let mut members = backlogged(2);
    let at = |millis: u64| millis * 1_000;
    let near = |bytes: u64, ideal: u64| bytes.abs_diff(ideal) * 20 <= ideal;
    let both = sent(&mut members, at(0), at(20));
    assert!(both.iter().all(|&bytes| near(bytes, 1_250_000)), "{both:?}");
    // The second one's device stands still.
    let first = sent(&mut members[..1], at(20), at(40));
    assert!(near(first[0], 2_500_000), "{first:?}");
    let both = sent(&mut members, at(40), at(60));
    assert!(both.iter().all(|&bytes| near(bytes, 1_250_000)), "{both:?}");
}

#[test]
fn a_host_counts_over_all_queues_and_no_longer_than_its_flows() {
    let mut members = backlogged(3);
    // The second host has a flow in the first queue, too.
    fill(&mut members[0], 6_000, &packet(9, 1), Time::ZERO);
    let is_near = |bytes: &[u64], ideal: &[u64]| {
        bytes.iter().zip(ideal).all(|(bytes, ideal)| bytes.abs_diff(*ideal) < ideal / 20)
    };
    let shared = sent(&mut members, 0, 40_000);
    assert!(is_near(&shared, &[2_500_000, 833_333, 1_666_667]), "{shared:?}");
    // Without the first queue it is one of two with a flow each.
    members.remove(0);
    let shared = sent(&mut members, 40_000, 60_000);
    assert!(is_near(&shared, &[1_250_000, 1_250_000]), "{shared:?}");
}

/// Packets that were dropped.
struct Lost(u32);

impl PacketOwner for Lost {
    fn dropped(&mut self, _: Packet, _: DropReason) {
        self.0 += 1;
    }
}

/// A queue whose last packet leaves after others were dropped contends no longer: the others have
/// the line as soon as they may ask again.
#[test]
fn a_queue_that_congestion_control_empties_holds_nobody_up() {
    let (mut thinned, mut longest) = (0, Span::ZERO);
    for packets in 400..440 {
        let mut members = backlogged(2);
        members[0].reset(&mut Discard);
        fill(&mut members[0], packets, &packet(0, 0), Time::ZERO);
        // Soon each turn drops some.
        configure(&mut members[..1], 0, |params| params.set_rtt(Span::from_micros(100)));
        let (mut lost, mut free) = (Lost(0), Time::ZERO);
        for now in (1..12_000).map(|micros| Time(micros * 1_000)) {
            // As a kernel does: what is empty is not asked.
            for member in members.iter_mut().filter(|member| member.backlog().packets > 0) {
                let before = lost.0;
                let Some(packet) = member.dequeue(now, &mut lost) else { continue };
                longest = longest.max(now.since(free));
                free = now.max(free) + Span(u64::from(packet.len) * 8);
                let is_thinned = member.backlog().packets == 0 && lost.0 > before;
                thinned += u32::from(is_thinned);
            }
        }
        assert_eq!(members[0].backlog().packets, 0, "{packets}");
        assert!(members[1].backlog().packets > 0, "{packets}");
    }
    assert!(thinned >= 10, "{thinned} of 40");
    assert!(longest <= Span::from_micros(20), "the line stood still for {longest:?}");
}

/// Changes the settings of all members.
fn configure(members: &mut [Member], now: u64, amend: impl Fn(&mut Params)) {
    for member in members {
        let Config::Cake(mut params) = member.config() else { panic!("cake") };
        amend(&mut params);
        member.configure(&params.into(), Time(now * 1_000), &mut Discard).expect("settings");
    }
}

#[test]
fn settings_change_while_packets_wait_and_shares_stay() {
    let mut members = backlogged(2);
    let near = |bytes: &[u64], ideal: u64| bytes.iter().all(|b| b.abs_diff(ideal) * 20 <= ideal);
    let both = sent(&mut members, 0, 20_000);
    assert!(near(&both, 1_250_000), "{both:?}");
    configure(&mut members, 20_000, |params| params.bandwidth = Rate::from_bits(500_000_000));
    let both = sent(&mut members, 20_000, 40_000);
    assert!(near(&both, 625_000), "{both:?}");
    // All packets are sorted anew, and every host is still counted once.
    configure(&mut members, 40_000, |params| params.queues = 64);
    let both = sent(&mut members, 40_000, 60_000);
    assert!(near(&both, 625_000), "{both:?}");
    let of = |member: &Member| match member.snapshot().detail {
        Detail::Cake(stats) => stats,
        _ => panic!("cake"),
    };
    let mut all = of(&members[0]);
    all.join(&of(&members[1]));
    assert_eq!(all.tins[0].backlog_bytes, members.iter().map(|m| m.backlog().bytes).sum::<u64>());
    assert_eq!(all.tins[0].bulk_flows, 2);

    // A queue that was emptied keeps to the shared rate, too.
    members[0].reset(&mut Discard);
    fill(&mut members[0], 6_000, &packet(0, 0), Time(60_000_000));
    let both = sent(&mut members, 60_000, 80_000);
    assert!(near(&both, 625_000), "{both:?}");

    // Other tins, into which all packets are sorted anew.
    configure(&mut members, 80_000, |params| params.diffserv = DiffservMode::Diffserv4);
    let both = sent(&mut members, 80_000, 100_000);
    assert!(near(&both, 625_000), "{both:?}");

    let Config::Cake(params) = members[0].config() else { panic!("cake") };
    let saving = Params { savings: Some(15_000), ..params };
    let refused = members[0].configure(&saving.into(), Time(100_000_000), &mut Discard);
    assert!(matches!(refused, Err(ConfigError::OutOfRange { option: "savings", .. })));
}

#[test]
fn what_is_not_shared_yet_is_refused() {
    let bandwidth = Rate::from_bits(1_000_000_000);
    let plain = Params { bandwidth, diffserv: DiffservMode::Besteffort, ..Params::default() };
    let of = |params: Params, count| {
        Member::all(&params, &Device::default(), count, &Timing::KERNEL).map(drop)
    };
    assert_eq!(of(plain, 4), Ok(()));
    let refused = [
        (Params { bandwidth: Rate(0), ..plain }, 4, "bandwidth"),
        (Params { ingress: true, autorate_ingress: true, ..plain }, 4, "autorate-ingress"),
        (Params { savings: Some(15_000), ..plain }, 4, "savings"),
        (plain, 0, "mq"),
        (plain, 257, "mq"),
    ];
    for (params, count, named) in refused {
        let error = of(params, count);
        let names = matches!(error, Err(ConfigError::OutOfRange { option, .. }) if option == named);
        assert!(names, "{named}: {error:?}");
    }
}
