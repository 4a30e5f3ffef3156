//! A box between router and modem: what passes it is bridged, and shaped. Where the kernel cannot
//! queue a bridge's frames, they pass through the daemon's memory.

use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::cases::{marks_and_washing, not_run};
use crate::hangs;
use crate::transfer::{round_trips, Transfer};
use crate::world::{address, bound, option, packet_socket, run, World};

const SECOND: Duration = Duration::from_secs(1);

pub fn frames_of_a_bridge_are_shaped_and_pass_when_the_daemon_dies() {
    let mut world = World::bridged();
    world.within("g", || {
        drop(simnel_gateway::join("lan0", "wan0").expect("they are joined already"));
        let error = simnel_gateway::join("lan0", "wan1").err().unwrap().to_string();
        assert!(error.contains("`lan0` is a port of the bridge `simnel-br`"), "{error}");
    });
    let (server, client) = (address("10.77.2.2", 5100), address("10.77.2.3", 5101));
    round_trips(&world, address("10.77.2.2", 6100), 5, Duration::from_millis(1));

    // Slow enough for a kernel that runs as a user process.
    world.start(&["wan0=cake bandwidth 1mbit|cake bandwidth 500kbit"]);
    for (from, to, at, mbit) in [("c", "s", server, 0.5), ("s", "c", client, 1.0)] {
        let transfer = Transfer::start(&world, from, to, at, false);
        std::thread::sleep(SECOND * 2);
        let rate = transfer.rate(SECOND * 4) / 1e6;
        transfer.end();
        println!("  bridged from {from} to {to}: {rate:.3} Mbit/s of {mbit}");
        // A busy machine may make it less, but not more.
        assert!((mbit * 0.3..mbit).contains(&rate), "{rate} of {mbit} Mbit/s");
    }
    let shown = world.client("wan0").show().unwrap();
    for entry in &shown {
        let (counters, kernel) = (entry.datapath, entry.kernel);
        assert_eq!((counters.unknown, counters.stale_verdicts, kernel.queue_dropped), (0, 0, 0));
        // What waits was received, and nothing is forgotten.
        let left = counters.released + counters.dropped + u64::from(entry.stats.backlog.packets);
        assert_eq!(counters.received, left, "{entry:?}");
    }

    let upload = Transfer::start(&world, "c", "s", server, false);
    std::thread::sleep(SECOND);
    // Nobody is to start another one.
    let (daemon, _) = hangs::family_where(&world, |_| true);
    world.signal(libc::SIGSTOP);
    hangs::kill(daemon, libc::SIGKILL);
    std::thread::sleep(SECOND);
    let rate = upload.rate(SECOND) / 1e6;
    upload.end();
    println!("  after the daemon was killed: {rate:.0} Mbit/s");
    assert!(rate > 0.5, "{rate} Mbit/s");
}

/// Between client and server, also with a VLAN tag; and between either and the machine itself.
pub fn a_bridge_passes_each_frame_once() {
    let mut world = World::bridged();
    // What the machine itself sends by the line's port, or gets there: the kernel's queue has it
    // as well, and it goes past the daemon's own sockets.
    let own = if queues_frames(&world) { 200 } else { 0 };
    let ways = [
        ("c", "s", "10.77.2.2"),
        ("s", "c", "10.77.2.3"),
        ("c", "s", "fd77:2::2"),
        ("c", "g", "10.77.2.1"),
        ("s", "g", "10.77.2.1"),
        ("g", "s", "10.77.2.2"),
    ];
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    for (from, to, bind) in ways {
        assert_eq!(copies(&world, (from, to), bind), [1; 200], "{from} to {bind}");
    }
    let received = |world: &World| {
        let shown = world.client("wan0").show().unwrap();
        shown.iter().map(|entry| entry.datapath.received).sum::<u64>()
    };
    let passed = received(&world);
    println!("  {passed} frames were shaped");
    let least = 3 * 200 + 2 * own;
    assert!((least..least + 200).contains(&passed), "{passed}");
    for ends in [[("c", "lan0"), ("s", "wan0")], [("s", "wan0"), ("c", "lan0")]] {
        assert_eq!(tagged(&world, ends), 50);
    }

    // One direction alone; the other is the kernel's.
    world.stop();
    world.start(&["wan0=|cake bandwidth 8mbit"]);
    for (from, to, bind) in ways {
        assert_eq!(copies(&world, (from, to), bind), [1; 200], "{from} to {bind}");
    }
    assert!((2 * 200..3 * 200).contains(&(received(&world) - own)));
    // Nothing is left for a port that nobody listens to.
    let sockets = world.within("g", || std::fs::read_to_string("/proc/thread-self/net/packet"));
    for line in sockets.unwrap().lines().skip(1) {
        assert_eq!(line.split_whitespace().nth(6), Some("0"), "{line}");
    }
    world.stop();
    for (from, to, bind) in ways {
        assert_eq!(copies(&world, (from, to), bind), [1; 200], "{from} to {bind}, unshaped");
    }
}

/// True if the kernel's own bridge can hand frames to a queue.
fn queues_frames(world: &World) -> bool {
    world.nft(&["add", "table", "bridge", "try"]);
    world.nft(&["add", "chain", "bridge", "try", "c"]);
    let rule = ["add", "rule", "bridge", "try", "c", "queue", "num", "9"];
    let queues = world.try_nft(&rule).is_ok();
    world.nft(&["delete", "table", "bridge", "try"]);
    queues
}

/// Frames that wait when the daemon ends in good order leave.
pub fn what_waits_between_ports_leaves_at_the_end() {
    let mut world = World::bridged();
    world.start(&["wan0=|tbf rate 500kbit burst 2000 limit 1000000"]);
    let arrived = std::thread::scope(|scope| {
        let copies = scope.spawn(|| copies(&world, ("c", "s"), "10.77.2.2"));
        // 200 datagrams take a second; some 150 of them wait.
        std::thread::sleep(SECOND / 2);
        let shown = world.client("wan0").show().unwrap();
        let (queued, held) = (shown[0].stats.backlog.packets, shown[0].kernel.waiting);
        println!("  {queued} packets wait");
        assert!(queued > 20 && queued.abs_diff(held) < 5, "{queued} of {held}");
        world.client("wan0").down().unwrap();
        copies.join().unwrap()
    });
    // In the moment of the change both may pass a frame on.
    assert!(arrived.iter().all(|&count| count > 0), "{arrived:?}");
    assert!(arrived.iter().sum::<u32>() < 205, "{arrived:?}");
    assert!(world.reap().success());
}

/// Super-packets reach a port that cannot cut them itself, in segments.
pub fn a_port_without_segmentation_gets_segments() {
    let mut world = World::bridged();
    if !world.try_shell("g", "ethtool -K wan0 tso off 2>/dev/null") {
        return not_run("there is no ethtool to take segmentation from a port");
    }
    // From here on cake takes super-packets whole.
    world.start(&["wan0=|cake bandwidth 1gbit"]);
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5100), false);
    std::thread::sleep(SECOND / 2);
    let rate = upload.rate(SECOND) / 1e6;
    upload.end();
    println!("  without segmentation: {rate:.0} Mbit/s");
    assert!(rate > 30.0, "{rate} Mbit/s");
    world.stop();
}

/// A port that is made anew is received from, and while a third one is there the kernel's bridge
/// passes everything on.
pub fn a_bridges_ports_may_change() {
    let mut world = World::bridged();
    if queues_frames(&world) {
        return not_run("this kernel has nft_queue, which queues any bridge's frames");
    }
    let said = world.start_heard(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let shaped = |world: &World| {
        let received = || -> u64 {
            let shown = world.client("wan0").show().unwrap();
            shown.iter().map(|entry| entry.datapath.received).sum()
        };
        let before = received();
        assert_eq!(copies(world, ("c", "s"), "10.77.2.2"), [1; 200]);
        assert_eq!(copies(world, ("s", "c"), "10.77.2.3"), [1; 200]);
        received() - before
    };
    assert!(shaped(&world) >= 400);

    world.ip("g", "link set wan1 master simnel-br");
    said.wait_for("`simnel-br` has 3");
    assert!(shaped(&world) < 100);
    world.ip("g", "link set wan1 nomaster");
    said.wait_for("frames of the bridge are shaped again");
    assert!(shaped(&world) >= 400);

    world.ip("g", "link del lan0");
    said.wait_for("`simnel-br` has 1");
    let [gateway, client] = ["g", "c"].map(|place| world.ns(place));
    run(&format!("ip link add lan0 netns {gateway} type veth peer name lan0 netns {client}"));
    world.ip("c", "addr add 10.77.2.3/24 dev lan0");
    world.ip("c", "link set lan0 up");
    world.ip("s", "neigh flush dev wan0");
    world.ip("g", "link set lan0 up");
    world.ip("g", "link set lan0 master simnel-br");
    let start = Instant::now();
    while said.count("frames of the bridge are shaped again") < 2 {
        assert!(start.elapsed() < SECOND * 5, "the port is not found");
        std::thread::sleep(SECOND / 20);
    }
    assert!(shaped(&world) >= 400);
    world.stop();
}

/// Copies that arrive of each of 200 datagrams, one way.
fn copies(world: &World, (from, to): (&str, &str), bind: &str) -> [u32; 200] {
    let at = address(bind, 6001);
    let (ready, wait) = std::sync::mpsc::channel();
    let receiver = world.spawn(to, move || {
        let socket = bound(at);
        socket.set_read_timeout(Some(SECOND)).unwrap();
        ready.send(()).unwrap();
        let (mut copies, mut bytes) = ([0; 200], [0; 256]);
        // The first asks for the neighbour; the last may have a copy behind it.
        while let Ok(length) = socket.recv(&mut bytes) {
            if length == 200 {
                copies[usize::from(bytes[0])] += 1;
                if copies.iter().all(|&count| count > 0) {
                    socket.set_read_timeout(Some(SECOND / 10)).unwrap();
                }
            }
        }
        copies
    });
    wait.recv().unwrap();
    world.within(from, move || {
        let any = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        let _ = socket.send_to(&[0; 10], at);
        std::thread::sleep(Duration::from_millis(50));
        for number in 0..200 {
            let mut bytes = [0x5a; 200];
            bytes[0] = number;
            socket.send_to(&bytes, at).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    receiver.join().unwrap()
}

/// Frames, of 50 with a tag of IEEE 802.1Q, that arrive with it from one end to the other.
fn tagged(world: &World, [from, to]: [(&str, &'static str); 2]) -> usize {
    const TAG: u16 = 0x2007;
    const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 0x81, 0]);
    frame.extend(TAG.to_be_bytes());
    frame.extend(EXPERIMENTAL);
    frame.extend([0x5a; 100]);
    let socket = world.within(to.0, || packet_socket(to.1));
    option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1);
    world.within(from.0, || {
        let socket = packet_socket(from.1);
        for _ in 0..50 {
            // SAFETY: pointer and length describe the frame.
            let sent =
                unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
            assert_eq!(sent, frame.len() as isize);
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    std::thread::sleep(SECOND / 5);
    // The kernel has taken the tag off the bytes.
    let whole = [&frame[..12], &frame[16..]].concat();
    let arrived = std::iter::from_fn(|| tag_and_frame(&socket));
    arrived.filter(|(tag, bytes)| *tag == Some(TAG) && *bytes == whole).count()
}

/// The next frame in a socket: its tag, and its bytes.
fn tag_and_frame(socket: &OwnedFd) -> Option<(Option<u16>, Vec<u8>)> {
    let (mut bytes, mut control) = (vec![0u8; 2048], [0u64; 16]);
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the header points at live buffers with their true sizes; the kernel's control message
    // is what its type says.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        (header.msg_iov, header.msg_iovlen) = (&mut vector, 1);
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = std::mem::size_of_val(&control) as _;
        let n = libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_DONTWAIT);
        bytes.truncate(usize::try_from(n).ok()?);
        let message = libc::CMSG_FIRSTHDR(&header);
        let auxdata = libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned();
        let has_tag = auxdata.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
        Some((has_tag.then_some(auxdata.tp_vlan_tci), bytes))
    }
}

pub fn marks_and_washing_pass_a_bridge() {
    marks_and_washing(
        World::bridged(),
        &[
            ("c", "s", "10.77.2.2"),
            ("c", "s", "fd77:2::2"),
            ("s", "c", "10.77.2.3"),
            ("s", "c", "fd77:2::3"),
        ],
    );
}

pub fn a_stopped_daemon_lets_a_bridges_frames_pass() {
    hangs::survives_in(World::bridged(), 1, hangs::stop);
}

/// A bridge that decides by more than addresses of two sides is not taken over.
pub fn bridges_that_do_more_are_refused() {
    let world = World::bridged();
    let said = |lanes: &str| {
        let mut command = world.daemon_command(
            &[&format!("wan0{lanes}=|cake bandwidth 8mbit")],
            &world.control.clone(),
        );
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    if queues_frames(&world) {
        return not_run("this kernel has nft_queue, which queues any bridge's frames");
    }
    assert!(said(" lanes 2").contains("have one lane: leave `lanes` out"), "{}", said(" lanes 2"));
    world.ip("g", "link set simnel-br type bridge stp_state 1");
    assert!(said("").contains("`simnel-br` has STP: `modprobe nft_queue`, or turn that off"));
    world.ip("g", "link set simnel-br type bridge stp_state 0");
    world.ip("g", "link set wan1 master simnel-br");
    assert!(said("").contains("`simnel-br` has 3: `modprobe nft_queue`, or leave two"));
    // Nothing was left behind.
    assert!(!world.nft(&["list", "tables"]).contains("simnel_"));
}
