use simnel_core::sojourns::{bucket_limit, Sojourns, BUCKETS};
use simnel_core::Span;

use super::*;
use crate::kernel::Own;

const SECOND_NS: u64 = 1_000_000_000;

fn flow(direction: Direction, host: u8, port: u16, bytes: u64) -> FlowEntry {
    let (home, far) = (IpAddr::from([10, 0, 0, host]), IpAddr::from([192, 0, 2, 1]));
    let (source, destination) = match direction {
        Direction::Upload => (home, far),
        Direction::Download => (far, home),
    };
    FlowEntry {
        dev: "wan".to_owned(),
        direction,
        source,
        destination,
        sport: port,
        dport: 443,
        protocol: 6,
        packets: bytes / 1500,
        bytes,
        rtt_ns: None,
        tracked: None,
        held: Some(HeldFlow {
            sojourn_ns: 5_000_000,
            sojourn_p99_ns: 6_000_000,
            age_ns: SECOND_NS,
            ..HeldFlow::default()
        }),
    }
}

fn held(flow: &mut FlowEntry) -> &mut HeldFlow {
    flow.held.as_mut().unwrap()
}

fn entry(direction: Direction, bytes: u64) -> Entry {
    let config = "cake bandwidth 10mbit diffserv4".to_owned();
    let qdisc = qdisc::build(&qdisc::parse(&config).unwrap(), &qdisc::Device::default()).unwrap();
    let mut stats = qdisc.snapshot();
    stats.totals.sent_bytes = bytes;
    Entry {
        dev: "wan".to_owned(),
        direction,
        at_ns: None,
        config,
        stats,
        below: Vec::new(),
        datapath: crate::Counters::default(),
        lanes: crate::Lanes::default(),
        queue: 0,
        kernel: crate::KernelCounters::default(),
    }
}

/// A look at the upload: bytes of the line, packets in bucket 40, flows that began at zero.
fn look(at_ns: u64, bytes: u64, packets: u64, mut flows: Vec<FlowEntry>) -> Look {
    flows.iter_mut().for_each(|flow| held(flow).age_ns = at_ns);
    let mut sojourns = vec![0; BUCKETS];
    sojourns[40] = packets;
    let line = LineEntry {
        dev: "wan".to_owned(),
        direction: Direction::Upload,
        now_ns: at_ns,
        sojourn_ns: 3_000_000,
        sojourns,
        untracked: 0,
        evicted: 0,
    };
    let entries = vec![entry(Direction::Upload, bytes)];
    Look { at_ns, entries, lines: vec![line], flows, ..Look::default() }
}

#[test]
fn rates_are_differences_of_two_looks() {
    let mut viewer = Viewer::new();
    let up = |bytes| flow(Direction::Upload, 2, 1000, bytes);
    let first = viewer.see(look(5, 7_000, 9, vec![up(4_000)]), &Names::none());
    assert_eq!((first.lines[0].rate_bps, first.flows[0].rate_bps), (0, 0));
    assert_eq!(first.lines[0].limit_bps, Some(10_000_000));
    let two = look(5 + 2 * SECOND_NS, 2_507_000, 100, vec![up(2_004_000)]);
    let second = viewer.see(two, &Names::none());
    assert_eq!(second.lines[0].rate_bps, 10_000_000);
    assert_eq!(second.flows[0].rate_bps, 8_000_000);
    assert_eq!(second.flows[0].class.as_deref(), Some("Best Effort"));
    assert_eq!(second.hosts[0].upload_bps, 8_000_000);
    assert_eq!(second.lines[0].tiers.len(), 4);
    assert_eq!(second.lines[0].delay.unwrap().p50_ns, bucket_limit(40).0);
    assert_eq!(
        second.words,
        ["the upload is full: 10.0.0.2, 1 flow"],
        "a flow that fills the line is not one that waits for others"
    );
}

/// A look takes its time: a line's rate is over that between the daemon's own answers.
#[test]
fn a_line_s_rate_is_by_the_daemon_s_time() {
    let mut viewer = Viewer::new();
    let mut rate = |asked: u64, answered: u64, bytes| {
        let mut look = look(asked, bytes, 1, Vec::new());
        look.entries[0].at_ns = Some(answered);
        viewer.see(look, &Names::none()).lines[0].rate_bps
    };
    rate(SECOND_NS, SECOND_NS + 500, 0);
    assert_eq!(rate(2 * SECOND_NS, 3 * SECOND_NS + 500, 2_500_000), 10_000_000);
}

/// Of more flows than there are places each is counted anew, mostly with as many bytes as before.
#[test]
fn a_flow_that_came_again_counts_from_zero() {
    let mut viewer = Viewer::new();
    let one = || vec![flow(Direction::Upload, 2, 1000, 1_000)];
    viewer.see(look(5 * SECOND_NS, 1_000, 1, one()), &Names::none());
    let mut again = look(6 * SECOND_NS, 2_000, 2, one());
    let view = viewer.see(again.clone(), &Names::none());
    assert_eq!(view.hosts[0].upload_bps, 0, "it has stood still");
    (again.at_ns, again.lines[0].now_ns) = (7 * SECOND_NS, 7 * SECOND_NS);
    held(&mut again.flows[0]).age_ns = SECOND_NS / 2;
    let view = viewer.see(again, &Names::none());
    assert_eq!((view.hosts[0].upload_bps, view.hosts[0].active_flows), (8_000, 1));
}

#[test]
fn tiers_rates_are_of_what_left_them() {
    let mut viewer = Viewer::new();
    let mut at = |n: u64| {
        let mut look = look(n * SECOND_NS, n * 1_000_000, n, Vec::new());
        let Detail::Cake(stats) = &mut look.entries[0].stats.detail else { panic!() };
        let tin = &mut stats.tins[1];
        (tin.sent_bytes, tin.dropped_bytes, tin.backlog_bytes) =
            (n * 3_000_000, n * 1_900_000, n * 100_000);
        viewer.see(look, &Names::none())
    };
    at(1);
    let view = at(2);
    assert_eq!(view.lines[0].rate_bps, 8_000_000);
    assert_eq!(view.lines[0].tiers[1].rate_bps, 8_000_000);
}

#[test]
fn words_name_the_host_and_what_calls_wait() {
    let mut viewer = Viewer::new();
    let mut call = flow(Direction::Upload, 3, 5004, 0);
    (held(&mut call).dscp, held(&mut call).sojourn_p99_ns) = (46, 4_200_000);
    let at = |n: u64| {
        let mut flows: Vec<FlowEntry> =
            (1..=3).map(|port| flow(Direction::Upload, 2, port, n * 400_000)).collect();
        flows.push(FlowEntry { bytes: n * 10_000, ..call.clone() });
        look(n * SECOND_NS, n * 1_200_000, n, flows)
    };
    let mut names = Names::none();
    names.insert([10, 0, 0, 2].into(), "laptop");
    viewer.see(at(1), &names);
    let view = viewer.see(at(2), &names);
    assert_eq!(view.words, ["the upload is full: laptop, 3 flows; calls wait 4.2 ms"]);
    let laptop = &view.hosts[0];
    assert_eq!((laptop.name.as_deref(), laptop.active_flows), (Some("laptop"), 3));
}

#[test]
fn a_daemon_that_counts_anew_makes_no_wild_rates() {
    let mut viewer = Viewer::new();
    viewer.see(look(SECOND_NS, 5_000_000, 1_000, Vec::new()), &Names::none());
    let view = viewer.see(look(2 * SECOND_NS, 1_000, 3, Vec::new()), &Names::none());
    assert_eq!(view.lines[0].rate_bps, 0);
    assert_eq!(view.words, ["the upload is quiet"]);
}

#[test]
fn the_kernels_lines_have_counters_only() {
    let kernel = |bytes| KernelEntry {
        dev: "wan".to_owned(),
        direction: Direction::Upload,
        config: "fq_codel".to_owned(),
        common: qdisc::Common { sent_bytes: bytes, ..qdisc::Common::default() },
        own: Own::default(),
    };
    let mut viewer = Viewer::new();
    for n in 1..=2 {
        let look = Look::in_kernel(n * SECOND_NS, vec![kernel(n * 625_000)], Flows::default());
        let view = viewer.see(look, &Names::none());
        let line = &view.lines[0];
        assert_eq!((line.in_kernel, line.delay, line.marks), (true, None, None));
        assert_eq!(line.rate_bps, (n - 1) * 5_000_000);
    }
}

/// The module counts how long packets wait. Another discipline counts anew.
#[test]
fn what_the_module_shapes_has_quantiles_of_delay() {
    let kernel = |packets| {
        let mut sojourns = Sojourns { last: Span::from_millis(7), ..Sojourns::default() };
        sojourns.counts[40] = packets;
        KernelEntry {
            dev: "wan".to_owned(),
            direction: Direction::Upload,
            config: "fq_codel".to_owned(),
            common: qdisc::Common::default(),
            own: Own { sojourns: Some(sojourns), ..Own::default() },
        }
    };
    let mut viewer = Viewer::new();
    let mut delay = |n: u64, packets| {
        let look = Look::in_kernel(n * SECOND_NS, vec![kernel(packets)], Flows::default());
        let delay = viewer.see(look, &Names::none()).lines[0].delay;
        delay.map(|delay| (delay.now_ns, delay.p99_ns, delay.last_p99_ns))
    };
    let limit = bucket_limit(40).0;
    assert_eq!(delay(1, 100), Some((7_000_000, limit, 0)), "when they waited nobody knows");
    assert_eq!(delay(2, 200), Some((7_000_000, limit, limit)));
    assert_eq!(delay(3, 200), Some((0, limit, 0)), "nothing waits any more");
    delay(4, 0);
    assert_eq!(delay(5, 0), Some((0, 0, 0)));
}

/// Connections that the kernel tells have rates, and so have their hosts; of what waits it says
/// nothing.
#[test]
fn the_kernels_flows_are_its_connections() {
    let upload = KernelEntry {
        dev: "wan".to_owned(),
        direction: Direction::Upload,
        config: "cake bandwidth 10mbit".to_owned(),
        common: qdisc::Common::default(),
        own: Own::default(),
    };
    let connection = |id, direction, bytes| FlowEntry {
        tracked: Some(id),
        held: None,
        ..flow(direction, 2, 1000, bytes)
    };
    let mut viewer = Viewer::new();
    let mut see = |n: u64, flows: Vec<FlowEntry>| {
        let mut entry = upload.clone();
        entry.common.sent_bytes = n * 1_250_000;
        let told = Flows { flows, untold: Some("why".into()) };
        viewer.see(Look::in_kernel(n * SECOND_NS, vec![entry], told), &Names::none())
    };
    see(1, vec![connection(1, Direction::Upload, 500_000)]);
    let view = see(2, vec![connection(1, Direction::Upload, 1_500_000)]);
    let (flow, host) = (&view.flows[0], &view.hosts[0]);
    assert_eq!((flow.rate_bps, flow.is_active(), flow.class.as_deref()), (8_000_000, true, None));
    assert_eq!((host.upload_bps, host.active_flows, host.held), (8_000_000, 1, None));
    assert_eq!(view.words, ["the upload is full: 10.0.0.2, 1 flow"]);
    assert_eq!(view.untold.as_deref(), Some("why"));
    // Another connection with the same ends counts for itself.
    let view = see(3, vec![connection(2, Direction::Upload, 2_000_000)]);
    assert_eq!(view.flows[0].rate_bps, 16_000_000);
}

#[test]
fn the_kernels_cake_tells_tiers_and_marks() {
    let kernel = |n: u64, tins: usize| {
        let tin = |tin: u64| cake::TinStats {
            sent_bytes: n * tin * 125_000,
            dropped_bytes: n * tin * 1_000,
            drops: (n * tin) as u32,
            ecn_mark: n as u32,
            avg_delay: Span::from_millis(tin),
            ..cake::TinStats::default()
        };
        KernelEntry {
            dev: "wan".to_owned(),
            direction: Direction::Upload,
            config: "cake bandwidth 10mbit".to_owned(),
            common: qdisc::Common::default(),
            own: Own {
                marks: Some(3 * n),
                tins: (1..=tins as u64).map(tin).collect(),
                ..Own::default()
            },
        }
    };
    let mut viewer = Viewer::new();
    let mut see = |n, tins| {
        let look = Look::in_kernel(n * SECOND_NS, vec![kernel(n, tins)], Flows::default());
        viewer.see(look, &Names::none()).lines.remove(0)
    };
    see(1, 3);
    let line = see(2, 3);
    assert_eq!((line.marks, line.new_marks), (Some(6), Some(3)));
    let told = |tier: &TierView| (tier.name.clone(), tier.rate_bps, tier.drops, tier.marks);
    let names = ["Bulk", "Best Effort", "Voice"].map(String::from);
    let expected =
        [1, 2, 3].map(|tin| (names[tin as usize - 1].clone(), tin * 992_000, 2 * tin, 2));
    assert_eq!(line.tiers.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(line.tiers[2].delay_ns, 3_000_000);
    // Other settings came: nothing is known of its rates yet.
    let line = see(3, 1);
    assert_eq!((line.tiers.len(), &*line.tiers[0].name, line.tiers[0].rate_bps), (1, "all", 0));
}

/// From half the limit on a line is busy, from nine tenths on full.
#[test]
fn words_say_how_much_of_the_limit_is_used() {
    let told = |bytes: u64| {
        let mut viewer = Viewer::new();
        let at = |n: u64| {
            look(n * SECOND_NS, n * bytes, n, vec![flow(Direction::Upload, 2, 9, n * bytes)])
        };
        viewer.see(at(1), &Names::none());
        viewer.see(at(2), &Names::none()).words.remove(0)
    };
    assert_eq!(told(1_125_000), "the upload is full: 10.0.0.2, 1 flow");
    assert_eq!(told(1_112_500), "the upload is at 89 %: 10.0.0.2, 1 flow");
    assert_eq!(told(625_000), "the upload is at 50 %: 10.0.0.2, 1 flow");
    assert_eq!(told(612_500), "the upload carries 4.90 Mbit/s");
    // A flow that asks for a twentieth waits for others.
    assert_eq!(told(62_500), "the upload carries 500 kbit/s; sparse flows wait 6.0 ms");
    assert_eq!(told(62_501), "the upload carries 500 kbit/s");
    // What is dropped is not sent: a line may be full below its limit.
    let losing = |bytes: u64, drops: u64| {
        let mut viewer = Viewer::new();
        let at = |n: u64| {
            let mut look =
                look(n * SECOND_NS, n * bytes, n, vec![flow(Direction::Upload, 2, 9, n * bytes)]);
            look.entries[0].stats.totals.dropped[DropReason::Overlimit as usize] = n * drops;
            look
        };
        viewer.see(at(1), &Names::none());
        viewer.see(at(2), &Names::none()).words.remove(0)
    };
    assert_eq!(losing(1_000_000, 9), "the upload is full: 10.0.0.2, 1 flow; 9 dropped");
    assert_eq!(losing(1_000_000, 0), "the upload is at 80 %: 10.0.0.2, 1 flow");
    assert_eq!(losing(612_500, 9), "the upload carries 4.90 Mbit/s; 9 dropped");
    assert_eq!(told(0), "the upload is quiet");
    // What nobody was seen to send counts from 10 kbit/s on.
    let unseen = |bytes: u64| {
        let mut viewer = Viewer::new();
        let at = |n: u64| look(n * SECOND_NS, n * bytes, n, Vec::new());
        viewer.see(at(1), &Names::none());
        viewer.see(at(2), &Names::none()).words.remove(0)
    };
    assert_eq!(unseen(1_249), "the upload is quiet");
    assert_eq!(unseen(1_250), "the upload carries 10.0 kbit/s");
}

#[test]
fn where_nothing_runs_there_is_nothing_to_look_at() {
    let directory = tempfile::tempdir().unwrap();
    let view = Viewer::new().look(directory.path(), "no-such-device", &Names::none());
    assert!(matches!(view, Err(Error::NotUp { .. })));
}

/// The host with most traffic, whichever has most flows.
#[test]
fn the_busiest_host_is_named() {
    let mut viewer = Viewer::new();
    let at = |n: u64| {
        let flows =
            [(2, 1, 500_000), (2, 2, 400_000), (3, 3, 100_000), (3, 4, 90_000), (3, 5, 90_000)];
        let flows = flows.map(|(host, port, bytes)| flow(Direction::Upload, host, port, n * bytes));
        look(n * SECOND_NS, n * 1_180_000, n, flows.to_vec())
    };
    viewer.see(at(1), &Names::none());
    assert_eq!(viewer.see(at(2), &Names::none()).words, ["the upload is full: 10.0.0.2, 2 flows"]);
}

#[test]
fn hosts_have_what_their_flows_have() {
    let mut viewer = Viewer::new();
    let at = |n: u64| {
        let mut flows = vec![
            flow(Direction::Upload, 2, 1, n * 1_000),
            flow(Direction::Upload, 2, 2, n * 2_000),
            flow(Direction::Download, 2, 3, n * 4_000),
            flow(Direction::Upload, 3, 4, 8_000),
            flow(Direction::Upload, 3, 5, n * 16_000),
        ];
        for (index, flow) in flows.iter_mut().enumerate() {
            let held = held(flow);
            (held.drops, held.marks) = (1 << index, 32 << index);
            held.sojourn_p99_ns = 1_000 << index;
        }
        held(&mut flows[3]).backlog_packets = 7;
        for address in
            ["169.254.0.9", "255.255.255.255", "224.0.0.1", "0.0.0.0", "fe80::1", "ff02::1", "::"]
        {
            let source = address.parse().unwrap();
            flows.push(FlowEntry { source, ..flow(Direction::Upload, 9, 9, n * 64_000) });
        }
        look(n * SECOND_NS, n * 1_000_000, n, flows)
    };
    viewer.see(at(1), &Names::none());
    let view = viewer.see(at(2), &Names::none());
    let told: Vec<_> = view
        .hosts
        .iter()
        .map(|host| {
            let rates = (host.upload_bps, host.download_bps);
            let queued = host.held.unwrap().backlog_packets;
            (host.address.to_string(), rates, (host.flows, host.active_flows, queued))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("10.0.0.3".into(), (128_000, 0), (2, 2, 7)),
            ("10.0.0.2".into(), (24_000, 32_000), (3, 3, 0)),
        ]
    );
    let counted = |at: usize| {
        let held = view.hosts[at].held.unwrap();
        (held.drops, held.marks, held.sojourn_p99_ns)
    };
    assert_eq!(counted(0), (0b11000, 0b11000 << 5, 16_000));
    assert_eq!(counted(1), (0b00111, 0b00111 << 5, 4_000));
}

/// Quantiles are of the packets of ten intervals; at the first look, of all since the beginning.
#[test]
fn delays_are_of_the_last_looks() {
    let mut viewer = Viewer::new();
    let limit = |bucket| bucket_limit(bucket).0;
    for n in 0..=WINDOW as u64 + 2 {
        let mut look = look((n + 1) * SECOND_NS, n, n, Vec::new());
        look.lines[0].sojourns[10] = if n == 0 { 0 } else { 1_000 };
        let delay = viewer.see(look, &Names::none()).lines[0].delay.unwrap();
        let expected = match n {
            0 => 0,
            1..=10 => limit(10),
            _ => limit(40),
        };
        assert_eq!(delay.p50_ns, expected, "{n}");
    }
    let first = Viewer::new().see(look(SECOND_NS, 1, 9, Vec::new()), &Names::none());
    let delay = first.lines[0].delay.unwrap();
    assert_eq!((delay.p50_ns, delay.now_ns), (limit(40), 3_000_000));
}

#[test]
fn nothing_waits_while_nothing_comes() {
    let mut viewer = Viewer::new();
    let mut now = |n: u64, packets| {
        viewer.see(look(n * SECOND_NS, 0, packets, Vec::new()), &Names::none()).lines[0]
            .delay
            .unwrap()
            .now_ns
    };
    assert_eq!([now(1, 0), now(2, 5), now(3, 5), now(4, 6)], [3_000_000, 3_000_000, 0, 3_000_000]);
}

#[test]
fn what_counts_anew_begins_anew() {
    let delay = |second: Look| {
        let mut viewer = Viewer::new();
        viewer.see(look(SECOND_NS, 1, 9, Vec::new()), &Names::none());
        viewer.see(second, &Names::none()).lines[0].delay.unwrap().p50_ns
    };
    let at = |packets| look(2 * SECOND_NS, 1, packets, Vec::new());
    let since_the_beginning = bucket_limit(40).0;
    assert_eq!(delay(at(9)), 0, "nothing came");
    assert_eq!(delay(at(8)), since_the_beginning);
    let mut other = at(9);
    other.entries.push(entry(Direction::Download, 0));
    assert_eq!(delay(other), since_the_beginning);
}

#[test]
fn counters_of_a_line_are_told_with_what_is_new() {
    let mut viewer = Viewer::new();
    let mut at = |n: u64| {
        let mut look = look(n * SECOND_NS, 0, n, Vec::new());
        let line = &mut look.entries[0];
        line.datapath.cpu = simnel_core::Span(n * SECOND_NS / 4);
        line.datapath.marked = 3 * n;
        line.stats.totals.sent_packets = 100 * n;
        line.stats.totals.dropped[DropReason::AckFilter as usize] = 50 * n;
        line.stats.totals.dropped[DropReason::Overlimit as usize] = 7 * n;
        viewer.see(look, &Names::none()).lines.remove(0)
    };
    let first = at(1);
    assert_eq!((first.drops, first.new_drops, first.new_marks), (7, 0, Some(0)));
    let second = at(2);
    assert_eq!((second.drops, second.new_drops), (14, 7), "filtered acknowledgements are no loss");
    assert_eq!((second.marks, second.new_marks), (Some(6), Some(3)));
    assert_eq!((second.packets_per_s, second.cpu_permille), (100, Some(250)));
}

/// A packet's cost now tells how many more there is time for, on each lane's core.
#[test]
fn headroom_is_what_the_rest_of_the_cores_would_carry() {
    let headroom = |packets: u64, lanes: u16| {
        let mut viewer = Viewer::new();
        let mut at = |n: u64| {
            let mut look = look(n * SECOND_NS, 0, n, Vec::new());
            let line = &mut look.entries[0];
            line.lanes.count = lanes;
            line.datapath.cpu = simnel_core::Span(n * SECOND_NS / 5);
            line.stats.totals.sent_packets = n * packets;
            line.stats.totals.sent_bytes = n * 1_250_000;
            viewer.see(look, &Names::none()).lines.remove(0).headroom_bps
        };
        assert_eq!(at(1), None, "nothing is known yet");
        at(2)
    };
    // 10 Mbit/s for a fifth of a core.
    assert_eq!((headroom(800, 1), headroom(800, 2)), (Some(40_000_000), Some(90_000_000)));
    assert_eq!(headroom(99, 1), None, "idle");
}

#[test]
fn tiers_of_a_flow_are_those_of_the_first_cake() {
    let told = |words: &str| {
        let mut look = look(SECOND_NS, 0, 1, vec![flow(Direction::Upload, 2, 1, 1)]);
        (held(&mut look.flows[0]).dscp, held(&mut look.flows[0]).mark) = (46, 0x35);
        look.entries[0].config = words.into();
        let config = qdisc::parse(words).unwrap();
        let qdisc = qdisc::build(&config, &qdisc::Device::default()).unwrap();
        look.entries[0].stats = qdisc.snapshot();
        let view = Viewer::new().see(look, &Names::none());
        let tiers: Vec<String> = view.lines[0].tiers.iter().map(|tier| tier.name.clone()).collect();
        (view.flows[0].class.clone(), tiers)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (class, tiers) = told("cake bandwidth 10mbit diffserv4");
    assert_eq!(
        (class.as_deref(), tiers),
        (Some("Voice"), names(&["Bulk", "Best Effort", "Video", "Voice"]))
    );
    // A rule's mark comes first, where it names a tier.
    for (mask, expected) in
        [("0xf0", "Video"), ("0x1", "Bulk"), ("0xf", "Voice"), ("0xff", "Voice")]
    {
        let (class, _) = told(&format!("cake bandwidth 10mbit diffserv4 fwmark {mask}"));
        assert_eq!(class.as_deref(), Some(expected), "{mask}");
    }
    assert_eq!(told("cake bandwidth 10mbit besteffort"), (None, names(&["all"])));
    assert_eq!(told("fq_codel"), (None, names(&[])));
}

#[test]
fn a_rate_that_follows_the_line_is_told_with_the_reason() {
    use crate::autorate::{Following, Reflector, Report};
    let reflector = |active, rtt_us| Reflector {
        address: [192, 0, 2, 1].into(),
        kind: Default::default(),
        port: None,
        active,
        answered: 0,
        lost: 0,
        rtt_us,
        tells_time: false,
        refusal: None,
    };
    let told = |reflectors: Vec<Reflector>, reason: Option<&str>| {
        let following = Following {
            direction: Direction::Upload,
            floor_bps: 2_000_000,
            ceiling_bps: 20_000_000,
            rate_bps: 10_000_000,
            known_bps: None,
            phase: "holding".to_owned(),
            reason: reason.map(str::to_owned),
            changed_ms: None,
        };
        let report = Report {
            dev: "wan".to_owned(),
            delay_us: Some(4_000),
            baseline_us: None,
            shifts: 0,
            connections: 0,
            by_passing: false,
            directions: vec![following],
            reflectors,
        };
        let mut look = look(SECOND_NS, 0, 0, Vec::new());
        look.autorate = Some(report);
        Viewer::new().see(look, &Names::none()).words.remove(0)
    };
    let follows = "the upload is quiet; autorate 10.0 Mbit/s of 2.00 Mbit/s to 20.0 Mbit/s";
    let all = [(true, Some(9)), (false, Some(9)), (true, None)]
        .map(|(active, rtt)| reflector(active, rtt));
    assert_eq!(told(all.to_vec(), None), follows);
    assert_eq!(told(all.to_vec(), Some("the delay rose")), format!("{follows} (the delay rose)"));
    // One that is not asked, and one that does not answer, are none.
    let none = told(all[1..].to_vec(), Some("the delay rose"));
    assert_eq!(none, format!("{follows} (no reflector answers)"));
    // Where nobody is asked, nobody owes an answer.
    assert_eq!(told(Vec::new(), None), follows);
}

#[test]
fn what_was_dropped_and_who_is_at_its_limit_are_told() {
    let mut viewer = Viewer::new();
    let mut at = |n: u64| {
        let mut look = look(n * SECOND_NS, 0, 0, vec![flow(Direction::Upload, 2, 1, 0)]);
        held(&mut look.flows[0]).backlog_packets = 1;
        look.entries[0].datapath.cpu = simnel_core::Span(n * SECOND_NS * 8 / 10);
        look.entries[0].stats.totals.dropped[DropReason::Overlimit as usize] = 7 * n;
        viewer.see(look, &Names::none()).words.remove(0)
    };
    // A flow that waits is there, however little comes.
    assert_eq!(at(1), "the upload carries 0 bit/s; sparse flows wait 6.0 ms");
    let second = at(2);
    let expected = "the upload carries 0 bit/s; sparse flows wait 6.0 ms; 7 dropped; \
                    its thread has next to no time left";
    assert_eq!(second, expected);
}
