//! A box between router and modem: what passes it is bridged, and shaped.

use std::time::Duration;

use crate::cases::not_run;
use crate::hangs;
use crate::transfer::{round_trips, Transfer};
use crate::world::{address, World};

pub fn frames_of_a_bridge_are_shaped_and_pass_when_the_daemon_dies() {
    let mut world = World::new();
    world.nft(&["add", "table", "bridge", "try"]);
    world.nft(&["add", "chain", "bridge", "try", "c"]);
    let rule = world.try_nft(&["add", "rule", "bridge", "try", "c", "queue", "num", "9"]);
    if let Err(reason) = rule {
        let reason = reason.lines().next().unwrap_or_default();
        return not_run(&format!("this kernel has no nft_queue for a bridge's frames: {reason}"));
    }
    world.ip("c", "addr add 10.88.0.1/24 dev lan0");
    world.ip("s", "addr add 10.88.0.2/24 dev wan0");
    world.within("g", || {
        simnel_gateway::join("lan0", "wan0").unwrap().keep();
        drop(simnel_gateway::join("lan0", "wan0").expect("they are joined already"));
        let error = simnel_gateway::join("lan0", "wan1").err().unwrap().to_string();
        assert!(error.contains("`lan0` is a port of the bridge `simnel-br`"), "{error}");
    });
    let (server, client) = (address("10.88.0.2", 5100), address("10.88.0.1", 5101));
    round_trips(&world, address("10.88.0.2", 6100), 5, Duration::from_millis(1));

    // Slow enough for a kernel that runs as a user process.
    world.start(&["wan0=cake bandwidth 1mbit|cake bandwidth 500kbit"]);
    for (from, to, at, mbit) in [("c", "s", server, 0.5), ("s", "c", client, 1.0)] {
        let transfer = Transfer::start(&world, from, to, at, false);
        std::thread::sleep(Duration::from_secs(2));
        let rate = transfer.rate(Duration::from_secs(4)) / 1e6;
        transfer.end();
        println!("  bridged from {from} to {to}: {rate:.3} Mbit/s of {mbit}");
        // A busy machine may make it less, but not more.
        assert!((mbit * 0.3..mbit).contains(&rate), "{rate} of {mbit} Mbit/s");
    }
    let shown = world.client("wan0").show().unwrap();
    assert!(shown.iter().all(|entry| entry.datapath.unknown == 0), "{shown:?}");

    let upload = Transfer::start(&world, "c", "s", server, false);
    std::thread::sleep(Duration::from_secs(1));
    // Nobody is to start another one.
    let (daemon, _) = hangs::family_where(&world, |_| true);
    world.signal(libc::SIGSTOP);
    hangs::kill(daemon, libc::SIGKILL);
    std::thread::sleep(Duration::from_secs(1));
    let rate = upload.rate(Duration::from_secs(1)) / 1e6;
    upload.end();
    println!("  after the daemon was killed: {rate:.0} Mbit/s");
    assert!(rate > 0.5, "{rate} Mbit/s");
}
