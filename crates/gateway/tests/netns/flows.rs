//! The table of flows, against what sender and receiver counted; and names of the hosts in it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use simnel_core::qdisc::Detail;
use simnel_gateway::flows::{FlowEntry, LineEntry};
use simnel_gateway::kernel::Tracked;
use simnel_gateway::view::{Naming, Viewer};
use simnel_gateway::Direction;

use crate::cases::not_run;
use crate::transfer::Transfer;
use crate::world::{address, bound, option, World};

const PORT: u16 = 7000;
const PAYLOAD: usize = 1000;
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
const EF: u8 = 46;

/// The upload's flow to [`PORT`], and the upload.
fn look(world: &World) -> (LineEntry, Option<FlowEntry>) {
    let (lines, flows) = world.client("wan0").flows().unwrap();
    let line = lines.into_iter().find(|line| line.direction == Direction::Upload).unwrap();
    let ours = |flow: &FlowEntry| flow.direction == Direction::Upload && flow.dport == PORT;
    (line, flows.into_iter().find(ours))
}

/// Datagrams faster than the line: what waits, what was lost and what came is in the table.
pub fn flows_are_told_of() {
    const SENT: u64 = 300;
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 2mbit memlimit 200kb"]);
    let server = world.within("s", || bound(address("10.77.2.2", PORT)));
    server.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let client = world.within("c", || UdpSocket::bind(address("10.77.1.2", 0)).unwrap());
    option(&client, libc::IPPROTO_IP, libc::IP_TOS, i32::from(EF) << 2);
    for _ in 0..SENT {
        client.send_to(&[0; PAYLOAD], address("10.77.2.2", PORT)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    let (_, flow) = look(&world);
    let flow = flow.expect("a flow with packets queued");
    let held = flow.held.unwrap();
    let queued = u64::from(held.backlog_packets);
    println!("  100 ms: {} sent, {} dropped, {queued} queued", flow.packets, held.drops);
    assert!(queued > 0);
    assert_eq!(held.backlog_bytes, queued * (PAYLOAD + HEADERS) as u64);
    assert_eq!(flow.packets + held.drops + queued, SENT);
    assert!(held.sojourn_ns > 20_000_000 && held.sojourn_ns < held.age_ns, "{flow:?}");
    let mut received = 0;
    let mut buffer = [0; 2 * PAYLOAD];
    while let Ok(length) = server.recv(&mut buffer) {
        assert_eq!(length, PAYLOAD);
        received += 1;
    }
    let (line, flow) = look(&world);
    let flow = flow.expect("a flow of the last minute");
    println!("  {received} of {SENT} received; {flow:?}");
    let held = flow.held.unwrap();
    assert_eq!((flow.packets, flow.packets + held.drops), (received, SENT));
    assert!(held.drops > 0, "300 kB do not fit 200 kB");
    assert_eq!(flow.bytes, received * (PAYLOAD + HEADERS) as u64);
    assert_eq!((held.backlog_packets, held.backlog_bytes), (0, 0));
    assert_eq!((flow.protocol, held.dscp), (17, EF));
    assert_eq!(flow.source, address("10.77.1.2", 0).ip());
    assert_eq!(flow.destination, address("10.77.2.2", 0).ip());
    assert_eq!(flow.sport, client.local_addr().unwrap().port());
    assert!(held.idle_ns >= 900_000_000, "silent since the last datagram: {flow:?}");
    assert!(line.sojourns.iter().sum::<u64>() >= received);
    assert_eq!((line.untracked, line.evicted), (0, 0));
    world.stop();
}

/// An upload waits long in our queue, and its RTT is what lies behind; with timestamps and without.
pub fn round_trips_leave_our_own_queue_out() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|line rate 4mbit fifo 100p"]);
    for (port, timestamps) in [(PORT, "1"), (PORT + 1, "0")] {
        world.shell("c", &format!("echo {timestamps} > /proc/sys/net/ipv4/tcp_timestamps"));
        let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", port), false);
        let begin = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let (_, flows) = world.client("wan0").flows().unwrap();
            let of = |direction| {
                let ours = |flow: &&FlowEntry| {
                    flow.direction == direction && (flow.dport == port || flow.sport == port)
                };
                flows.iter().find(ours)
            };
            if let Some((up, down)) = of(Direction::Upload).zip(of(Direction::Download)) {
                let waits = up.held.unwrap().sojourn_ns;
                println!("  waits {waits} ns, RTT {:?} ns", up.rtt_ns);
                assert_eq!(up.rtt_ns, down.rtt_ns);
                // Another round trip than one that waits in line: on a busy machine, too.
                if waits > 100_000_000 && up.rtt_ns.is_some_and(|ns| ns < 25_000_000) {
                    break;
                }
            }
            assert!(begin.elapsed() < Duration::from_secs(15), "timestamps {timestamps}");
        }
        upload.end();
    }
    world.stop();
}

/// Connections begun here and there, with their addresses translated and without. Connection
/// tracking tells the flows that the data path's own table has, with the same counts.
pub fn connection_tracking_tells_the_same_flows() {
    let mut world = World::new();
    world.shell("g", "echo 1 > /proc/sys/net/netfilter/nf_conntrack_acct");
    world.nft(&["add table inet home"]);
    world.nft(&["add chain inet home out { type nat hook postrouting priority srcnat; }"]);
    world.nft(&["add rule inet home out meta nfproto ipv4 oifname != lan0 masquerade"]);
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let other = "10.77.3.2";
    let transfers = [
        ("c", "s", "10.77.2.2", PORT),
        ("c", "s", "fd77:2::2", PORT + 1),
        ("s", "c", "10.77.1.2", PORT + 2),
        ("s", "c", "fd77:1::2", PORT + 3),
        ("c", "s", other, PORT + 4),
    ];
    let begun = transfers
        .map(|(from, to, at, port)| Transfer::start(&world, from, to, address(at, port), false));
    std::thread::sleep(Duration::from_secs(1));
    begun.into_iter().for_each(|transfer| transfer.end());
    // What was queued, and the last acknowledgements.
    std::thread::sleep(Duration::from_millis(500));
    let about = |flows: Vec<FlowEntry>| {
        let ours = |port: &u16| (PORT..PORT + 5).contains(port);
        let told = flows.into_iter().filter(|flow| ours(&flow.sport) || ours(&flow.dport));
        let told = told.map(|flow| {
            let ends = (flow.source, flow.sport, flow.destination, flow.dport, flow.protocol);
            ((flow.direction.name(), ends), (flow.bytes, flow.held.map_or(0, |held| held.drops)))
        });
        told.collect::<BTreeMap<_, _>>()
    };
    let told = world.within("g", || Tracked::default().flows("wan0", |_| true));
    if let Some(why) = told.untold {
        return not_run(&why);
    }
    let uploads = |way| way == Direction::Upload;
    let shaped = world.within("g", || Tracked::default().flows("wan0", uploads)).flows;
    assert!(shaped.iter().all(|flow| uploads(flow.direction)));
    assert_eq!(2 * shaped.len(), told.flows.len());
    let (told, own) = (about(told.flows), about(world.client("wan0").flows().unwrap().1));
    println!("  {} flows", own.len());
    assert_eq!(own.len(), 2 * (transfers.len() - 1), "that to {other} passes by: {own:?}");
    assert_eq!(told.keys().collect::<Vec<_>>(), own.keys().collect::<Vec<_>>());
    for (key, (bytes, _)) in &told {
        let (sent, drops) = own[key];
        println!("  {key:?}: {bytes} bytes, here {sent} and {drops} dropped");
        // What is dropped here was counted before, or never; and super-packets count as one there.
        let about = sent + drops * 1514;
        assert!(*bytes >= about / 10 * 9 && *bytes <= about / 10 * 11, "{key:?}");
    }
    world.stop();
}

/// A datagram that the kernel cuts up behind the queue costs what its fragments occupy.
pub fn fragments_are_paid_for() {
    const LONG: usize = 8_000;
    let mut world = World::new();
    world.start(&["wan0=|cake bandwidth 20mbit"]);
    let sender = world.within("g", || UdpSocket::bind(address("10.77.2.1", 0)).unwrap());
    let server = world.within("s", || bound(address("10.77.2.2", PORT)));
    server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    sender.send_to(&[0; LONG], address("10.77.2.2", PORT)).unwrap();
    let mut buffer = [0; 2 * LONG];
    assert_eq!(server.recv(&mut buffer).expect("all fragments"), LONG);
    let shown = world.client("wan0").show().unwrap().remove(0);
    let Detail::Cake(stats) = shown.stats.detail else { panic!("{shown:?}") };
    // Five whole ones, and 600 bytes in the last; for UDP's header in each there is some room.
    let on_the_wire = 5 * (14 + 20 + 1480) + 14 + 20 + 608;
    let paid = i32::from(stats.max_adj_size) - on_the_wire;
    println!("  {paid} bytes beyond {on_the_wire}");
    assert!((0..=5 * 8).contains(&paid), "{paid}");
    world.stop();
}

/// Port of multicast DNS.
const MDNS: u16 = 5353;

/// A responder at the client, in the group `group` of multicast DNS.
fn responder(world: &World, group: &str) -> UdpSocket {
    let group: IpAddr = group.parse().unwrap();
    let index = world.ip("c", "-o link show lan0");
    let index = index.split(':').next().unwrap().parse().unwrap();
    let at = match group {
        IpAddr::V4(_) => address("0.0.0.0", MDNS),
        // The whole port would be that of IPv4 as well.
        IpAddr::V6(group) => SocketAddrV6::new(group, MDNS, 0, index).into(),
    };
    let socket = world.within("c", || bound(at));
    match group {
        IpAddr::V4(group) => socket.join_multicast_v4(&group, &"10.77.1.2".parse().unwrap()),
        IpAddr::V6(group) => socket.join_multicast_v6(&group, index),
    }
    .unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket
}

/// Answers the query that has come, if one has: the host is `Laptop.local`.
fn answer(responder: &UdpSocket) {
    let mut bytes = [0; 512];
    let Ok((length, from)) = responder.recv_from(&mut bytes) else { return };
    let mut bytes = bytes[..length].to_vec();
    (bytes[2], bytes[7]) = (0x84, 1);
    bytes.extend(b"\xc0\x0c\0\x0c\0\x01\0\0\0\x0a\0\x0e\x06Laptop\x05local\0");
    responder.send_to(&bytes, from).unwrap();
}

/// The client's addresses, and the server's.
const OWN: [&str; 2] = ["10.77.1.2", "fd77:1::2"];
const FAR: [&str; 2] = ["10.77.2.2", "fd77:2::2"];

/// Addresses of the client that are seen, and their names; they are asked if `naming` asks.
fn named(world: &World, viewer: &mut Viewer, naming: &mut Naming) -> Vec<(IpAddr, Option<String>)> {
    let view = viewer.look(&world.control, "wan0", &naming.names()).unwrap();
    world.within("g", || naming.ask([&view]));
    let own = OWN.map(|text| text.parse::<IpAddr>().unwrap());
    let hosts = view.hosts.into_iter().filter(|host| own.contains(&host.address));
    hosts.map(|host| (host.address, host.name)).collect()
}

/// A host is asked by IPv4 and IPv6 what it is called, unless that is not wanted.
pub fn hosts_say_their_names_by_mdns() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    for (from, to) in OWN.into_iter().zip(FAR) {
        let client = world.within("c", || UdpSocket::bind(address(from, 0)).unwrap());
        client.send_to(&[0; 100], address(to, PORT)).unwrap();
    }
    let mut viewer = Viewer::new();
    let begin = Instant::now();
    while named(&world, &mut viewer, &mut Naming::new(false)).len() < OWN.len() {
        assert!(begin.elapsed() < Duration::from_secs(5), "no hosts are seen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let responders = ["224.0.0.251", "ff02::fb"].map(|group| responder(&world, group));
    let silent = named(&world, &mut viewer, &mut Naming::new(false));
    assert!(silent.iter().all(|(_, name)| name.is_none()), "{silent:?}");
    for responder in &responders {
        assert!(responder.recv(&mut [0; 512]).is_err(), "a host was asked");
    }
    let mut naming = Naming::new(true);
    let begin = Instant::now();
    loop {
        let hosts = named(&world, &mut viewer, &mut naming);
        if hosts.iter().all(|(_, name)| name.as_deref() == Some("laptop")) {
            println!("  {hosts:?} after {:?}", begin.elapsed());
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{hosts:?}");
        responders.iter().for_each(answer);
    }
    world.stop();
}
