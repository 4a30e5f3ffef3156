//! Rules with host names: addresses learnt from answers of DNS that pass, and kept as promised.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::hangs::{family_where, kill};
use crate::in_kernel;
use crate::marked;
use crate::rules::{exchange, reload, reset, start, tiers, words, EACH};
use crate::world::{address, bound, listener, World};

/// The server's addresses, as its own resolver tells them.
const V4: &str = "10.77.2.2";
const V6: &str = "fd77:2::2";
const SECOND: Duration = Duration::from_secs(1);
/// Place of `voice` in the statistics of `diffserv4`.
const VOICE: usize = 3;

fn name(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[label.len() as u8], label.as_bytes()].concat();
    [name.split('.').map(label).collect::<Vec<_>>().concat(), vec![0]].concat()
}

fn query(id: u16, asked: &str, kind: u8) -> Vec<u8> {
    let header = [id, 0x0100, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
    [header, name(asked), vec![0, kind, 0, 1]].concat()
}

/// An answer to `query`: an alias, and the address of that, for 30 seconds.
fn answer(query: &[u8], to: IpAddr) -> Vec<u8> {
    let record = |owner: &[u8], kind: u8, data: &[u8]| {
        let fixed = [0, kind, 0, 1, 0, 0, 0, 30, 0, data.len() as u8];
        [owner, &fixed, data].concat()
    };
    let (kind, data) = match to {
        IpAddr::V4(to) => (1, to.octets().to_vec()),
        IpAddr::V6(to) => (28, to.octets().to_vec()),
    };
    let mut bytes = query.to_vec();
    (bytes[2], bytes[7]) = (0x81, 2);
    let alias = name("edge.cdn.example");
    [bytes, record(&[0xc0, 12], 5, &alias), record(&alias, kind, &data)].concat()
}

/// Asks the server's resolver by UDP.
fn ask(world: &World, id: u16) {
    let far = address(V4, 53);
    let resolver = world.within("s", || bound(far));
    let client = world.within("c", || UdpSocket::bind("0.0.0.0:0").unwrap());
    for socket in [&resolver, &client] {
        socket.set_read_timeout(Some(2 * SECOND)).unwrap();
    }
    client.send_to(&query(id, "Video.Example.org", 1), far).unwrap();
    let mut bytes = [0; 512];
    let (length, from) = resolver.recv_from(&mut bytes).expect("the query was lost");
    resolver.send_to(&answer(&bytes[..length], V4.parse().unwrap()), from).unwrap();
    client.recv(&mut bytes).expect("the answer was lost");
}

/// Asks for the address of IPv6 by TCP.
fn ask_by_tcp(world: &World) {
    let far = address(V6, 53);
    let listener = world.within("s", || listener(far));
    let mut client = world.within("c", || TcpStream::connect(far).unwrap());
    let (mut server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(2 * SECOND)).unwrap();
    }
    let framed = |bytes: Vec<u8>| [&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat();
    let query = query(9, "www.video.example.org", 28);
    client.write_all(&framed(query.clone())).unwrap();
    let mut bytes = [0; 512];
    assert_eq!(server.read(&mut bytes).unwrap(), query.len() + 2);
    server.write_all(&framed(answer(&query, V6.parse().unwrap()))).unwrap();
    assert!(client.read(&mut bytes).unwrap() > query.len());
    // Otherwise its last packets would count for the address that is known by then.
    reset(client, server);
}

/// Packets of `voice` that an exchange with `server` makes, each way.
fn in_voice(world: &World, server: &str) -> Vec<u64> {
    let sent = || match in_kernel::is_asked() {
        true => marked::tins(world).map(|tins| tins[VOICE]).to_vec(),
        false => world.client("wan0").show().unwrap().iter().map(|e| tiers(e)[VOICE]).collect(),
    };
    let before: Vec<u64> = sent();
    exchange(world, server, 7_001, 0);
    let made = sent().into_iter().zip(before).map(|(after, before)| after - before);
    // The kernel's disciplines see neighbours asked for, too.
    made.map(|packets| packets - if in_kernel::is_asked() { packets % EACH } else { 0 }).collect()
}

fn set(world: &World, family: &str) -> String {
    let name = format!("host_example.org_{family}");
    world.nft(&["list", "set", "inet", "simnel_wan0", &name])
}

/// Waits until the kernel knows `address`.
fn wait_for(world: &World, family: &str, address: &str) -> Duration {
    let start = Instant::now();
    while !set(world, family).contains(address) {
        assert!(start.elapsed() < 3 * SECOND, "{address} is not learnt");
        std::thread::sleep(Duration::from_millis(1));
    }
    start.elapsed()
}

pub fn rules_follow_host_names() {
    let mut world = World::new();
    if in_kernel::is_asked() && !marked::has_ctinfo(&world) {
        return crate::cases::not_run("this kernel lacks the action ctinfo");
    }
    let words = &words("cake diffserv4");
    let rules = "[[rule]]\nhost = \"example.org\"\ntier = \"voice\"\n";
    start(&mut world, words, rules);
    assert_eq!(in_voice(&world, V4), [0, 0], "nobody has asked");

    // What nobody asked for changes nothing, nor does an answer to another question.
    let client = world.within("c", || bound("10.77.1.2:7053"));
    let stranger = world.within("s", || bound(address(V4, 53)));
    let to = address("10.77.1.2", 7_053);
    for id in 0..50 {
        let forged = answer(&query(id, "video.example.org", 1), V4.parse().unwrap());
        stranger.send_to(&forged, to).unwrap();
    }
    client.send_to(&query(1, "example.net", 1), address(V4, 53)).unwrap();
    let forged = answer(&query(1, "video.example.org", 1), V4.parse().unwrap());
    stranger.send_to(&forged, to).unwrap();
    // Nor does noise.
    for length in 0..200 {
        stranger.send_to(&vec![0xc0; length], to).unwrap();
    }
    drop(stranger);
    // So many copies are read in some fifth of a second.
    std::thread::sleep(SECOND);
    assert_eq!(in_voice(&world, V4), [0, 0]);
    assert!(!set(&world, "v4").contains("elements"));

    ask(&world, 0xffff);
    println!("  learnt from an answer by UDP after {:?}", wait_for(&world, "v4", V4));
    assert_eq!(in_voice(&world, V4), [EACH; 2]);
    assert_eq!(in_voice(&world, V6), [0, 0]);
    ask_by_tcp(&world);
    println!("  learnt from an answer by TCP after {:?}", wait_for(&world, "v6", V6));
    assert_eq!(in_voice(&world, V6), [EACH; 2]);
    // Ten minutes at least, and hours once it is used.
    let shown = set(&world, "v4");
    let left = shown.split("expires ").nth(1).unwrap().split(' ').next().unwrap();
    println!("  kept for another {left}");
    assert!(left.starts_with("5h59m"), "{left}");
    let told = world.client("wan0").rules().unwrap().remove(0);
    assert_eq!((told.traffic.as_str(), told.addresses), ("host example.org", Some(2)));

    // A list with the name has its addresses at once; of one address by either name.
    let listed = rules.replace("\"example.org\"", "[\"cdn.example\", \"example.org\"]");
    reload(&world, words, &listed, "host cdn.example,example.org");
    assert_eq!([in_voice(&world, V4), in_voice(&world, V6)], [[EACH; 2]; 2]);
    ask(&world, 7);
    assert_eq!(in_voice(&world, V4), [EACH; 2]);

    // Other rules leave what was learnt; also those that come with hours later.
    let others = format!("[[rule]]\nport = 7009\ntier = \"bulk\"\n{rules}");
    reload(&world, words, &others, "port 7009");
    assert_eq!(in_voice(&world, V4), [EACH; 2]);

    // So does the daemon's end, once it has written what it knows.
    let file = world.control.join("wan0.names");
    let begin = Instant::now();
    while !std::fs::read_to_string(&file).unwrap_or_default().contains(V6) {
        assert!(begin.elapsed() < 8 * SECOND, "nothing is written");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (daemon, _) = family_where(&world, |_| true);
    kill(daemon, libc::SIGKILL);
    family_where(&world, |(other, _)| other != daemon);
    let begin = Instant::now();
    while !world.serves("wan0") {
        assert!(begin.elapsed() < 5 * SECOND, "no other daemon");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(in_voice(&world, V4), [EACH; 2]);
    assert_eq!(in_voice(&world, V6), [EACH; 2]);
    world.stop();
}
