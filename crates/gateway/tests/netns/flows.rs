//! The table of flows, against what sender and receiver counted.

use std::net::UdpSocket;
use std::time::Duration;

use simnel_gateway::flows::{FlowEntry, LineEntry};
use simnel_gateway::Direction;

use crate::world::{address, option, World};

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
    let server = world.within("s", || UdpSocket::bind(address("10.77.2.2", PORT)).unwrap());
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
