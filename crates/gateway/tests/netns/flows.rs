//! The table of flows, against what sender and receiver counted; and names of the hosts in it.

use std::net::{IpAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use simnel_core::qdisc::Detail;
use simnel_gateway::flows::{FlowEntry, LineEntry};
use simnel_gateway::view::{Look, Naming, Viewer};
use simnel_gateway::Direction;

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
    println!("  100 ms: {} sent, {} dropped, {} queued", flow.packets, flow.drops, {
        flow.backlog_packets
    });
    assert!(flow.backlog_packets > 0);
    assert_eq!(flow.backlog_bytes, u64::from(flow.backlog_packets) * (PAYLOAD + HEADERS) as u64);
    assert_eq!(flow.packets + flow.drops + u64::from(flow.backlog_packets), SENT);
    assert!(flow.sojourn_ns > 20_000_000 && flow.sojourn_ns < flow.age_ns, "{flow:?}");
    let mut received = 0;
    let mut buffer = [0; 2 * PAYLOAD];
    while let Ok(length) = server.recv(&mut buffer) {
        assert_eq!(length, PAYLOAD);
        received += 1;
    }
    let (line, flow) = look(&world);
    let flow = flow.expect("a flow of the last minute");
    println!("  {received} of {SENT} received; {flow:?}");
    assert_eq!((flow.packets, flow.packets + flow.drops), (received, SENT));
    assert!(flow.drops > 0, "300 kB do not fit 200 kB");
    assert_eq!(flow.bytes, received * (PAYLOAD + HEADERS) as u64);
    assert_eq!((flow.backlog_packets, flow.backlog_bytes), (0, 0));
    assert_eq!((flow.protocol, flow.dscp), (17, EF));
    assert_eq!(flow.source, address("10.77.1.2", 0).ip());
    assert_eq!(flow.destination, address("10.77.2.2", 0).ip());
    assert_eq!(flow.sport, client.local_addr().unwrap().port());
    assert!(flow.idle_ns >= 900_000_000, "silent since the last datagram: {flow:?}");
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
                println!("  waits {} ns, RTT {:?} ns", up.sojourn_ns, up.rtt_ns);
                assert_eq!(up.rtt_ns, down.rtt_ns);
                // Another round trip than one that waits in line: on a busy machine, too.
                if up.sojourn_ns > 100_000_000 && up.rtt_ns.is_some_and(|ns| ns < 25_000_000) {
                    break;
                }
            }
            assert!(begin.elapsed() < Duration::from_secs(15), "timestamps {timestamps}");
        }
        upload.end();
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
    let look = Look::take(&world.control, "wan0").unwrap();
    let view = viewer.see(look, &naming.names());
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
