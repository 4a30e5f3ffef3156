//! Several lanes of a direction: queues and threads that share one rate and one fairness.

use std::net::{IpAddr, Ipv4Addr};
use std::thread;

use serde_json::Value;
use simnel_gateway::control::Client;
use simnel_testbed::traffic::{Bulk, BulkOptions, Connections, Direction};
use simnel_testbed::{Home, HomeOptions, Namespace};

use crate::{text, within, within_tries, Live, Watch, SECOND, SIMNEL};

/// Mbit/s of payload that 40 Mbit/s carry in full frames.
const IDEAL: f64 = 40.0 * 1448.0 / 1514.0;
/// The server's other addresses: that all flows to them share a queue has a chance of 1 in 65,536.
const ADDRESSES: u8 = 16;

/// A flow to each of `addresses`.
fn upload(live: &Live, host: &Namespace, addresses: std::ops::Range<u8>) -> Vec<Bulk> {
    let options = BulkOptions { direction: Direction::Upload, flows: 1, congestion: "cubic" };
    let open = |last| {
        let address = IpAddr::V4(Ipv4Addr::new(10, 77, 0, last));
        let connections = Connections::open(host, &live.home.server, address, options).unwrap();
        connections.start().unwrap()
    };
    addresses.map(open).collect()
}

fn received(flows: &[Bulk]) -> u64 {
    flows.iter().flat_map(Bulk::received).sum()
}

/// Packets that each queue has had.
fn queued(live: &Live) -> Vec<u64> {
    let queues = within(&live.home.gateway, "cat", &["/proc/net/netfilter/nfnetlink_queue"]);
    let fields = |line: &str| line.split_whitespace().nth(7).and_then(|field| field.parse().ok());
    text(&queues.stdout).lines().filter_map(fields).collect()
}

/// All that arrives at both lanes is in one file, in the order of time.
fn record_both(live: &Live) {
    let name = live.home.testbed.directory().unwrap().join("lanes");
    let file = name.with_extension("upload.pcap");
    let received = || {
        let mut client = Client::connect(name.parent().unwrap(), "wan").unwrap();
        client.show().unwrap()[0].datapath.received
    };
    let words = format!("record wan {} --control-dir {}", name.display(), live.control_dir());
    let words: Vec<&str> = words.split_whitespace().collect();
    let before = received();
    let mut recording = live.home.gateway.spawn(SIMNEL, &words).unwrap();
    while !file.exists() {
        assert!(recording.failure().is_none(), "{:?}", recording.failure());
        thread::sleep(SECOND / 100);
    }
    let flows = upload(live, &live.home.lan1, 100..100 + ADDRESSES);
    thread::sleep(SECOND);
    drop(flows);
    thread::sleep(SECOND / 2);
    let after = received();
    assert!(recording.stop().is_some_and(|status| status.success()));
    let bytes = std::fs::read(&file).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut times) = (24, Vec::new());
    while at < bytes.len() {
        times.push((word(at), word(at + 4)));
        at += 16 + word(at + 8) as usize;
    }
    println!("recorded {} of {} packets", times.len(), after - before);
    assert_eq!(times.len() as u64, after - before);
    assert!(times.is_sorted(), "not in the order of time");
}

#[test]
fn lanes_share_a_rate_and_hosts_their_shares_of_it() {
    let test = "lanes_share_a_rate_and_hosts_their_shares_of_it";
    let Some(live) = Live::with(test, HomeOptions::default()) else { return };
    let home = &live.home;
    // A line without a limit of its own.
    home.isp.ip(&["link", "add", "line", "type", "bridge"]).unwrap();
    for interface in ["line", Home::LINE_HOME, Home::LINE_CORE] {
        if interface != "line" {
            home.isp.ip(&["link", "set", interface, "master", "line"]).unwrap();
        }
        home.isp.ip(&["link", "set", interface, "up"]).unwrap();
    }
    for last in 100..=100 + ADDRESSES {
        home.server.ip(&["addr", "add", &format!("10.77.0.{last}/24"), "dev", "net0"]).unwrap();
    }
    let words = "up wan upload 40mbit lanes 2 cake besteffort dual-srchost";
    let gateway = live.start("wan", words);
    within_tries("two lanes: the rate, and one host as much as the other", || {
        let watch = Watch::start();
        let many = upload(&live, &home.lan1, 100..100 + ADDRESSES);
        let one = upload(&live, &home.lan2, 100..101);
        thread::sleep(SECOND * 3);
        let before = (received(&many), received(&one));
        thread::sleep(SECOND * 6);
        let [many, one] = [received(&many) - before.0, received(&one) - before.1];
        let total = (many + one) as f64 * 8.0 / 6e6;
        let share = one as f64 / (many + one) as f64;
        println!("{total:.2} of {IDEAL:.2} Mbit/s; share {share:.3}; queued {:?}", queued(&live));
        let is_right = (0.9 * IDEAL..=1.005 * IDEAL).contains(&total);
        watch.judge(is_right && (0.43..=0.57).contains(&share))
    });
    let queued = queued(&live);
    assert!(queued.len() == 2 && queued.iter().all(|count| *count > 100), "{queued:?}");
    // One direction to whoever looks, and its counters are sums.
    let output = live.simnel("show -s wan");
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(shown.matches("qdisc cake").count(), 1, "{shown}");
    assert!(said.contains("wan: 2 lanes share the rate, by address"), "{said}");
    let json: Value = serde_json::from_str(&live.ok("show -j wan")).unwrap();
    let told = serde_json::json!({"kind": "lanes", "dev": "wan", "count": 2, "by": "address"});
    assert!(json.as_array().unwrap().contains(&told), "{json}");
    live.ok("change wan upload 20mbit cake besteffort dual-srchost");
    let refused = live.simnel("change wan upload 20mbit lanes 3");
    assert!(text(&refused.stderr).contains("`lanes` cannot change while"), "{refused:?}");
    let refused = live.simnel("change wan upload 20mbit fq_codel");
    assert!(text(&refused.stderr).contains("only cake shares a rate"), "{refused:?}");
    let refused = live.simnel("change wan upload 20mbit cake savings 15kb");
    assert!(text(&refused.stderr).contains("savings"), "{refused:?}");
    live.ok("change wan upload 20mbit cake diffserv4");
    assert_eq!(live.ok("show -s wan").matches("Voice").count(), 1);
    record_both(&live);
    assert!(gateway.stop().is_some_and(|status| status.success()));
    assert!(live.is_clean());
}
