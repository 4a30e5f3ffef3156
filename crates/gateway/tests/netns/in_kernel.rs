//! Interfaces that the kernel shapes: what holds whoever does the work, and what is different
//! there. With GW_BACKEND=kernel, where the module is loaded.

use std::time::Duration;

use simnel_core::qdisc;
use simnel_gateway::kernel::{self, Shaped};
use simnel_gateway::Direction;

use crate::cases::assert_rate;
use crate::transfer::Transfer;
use crate::world::{address, World};

const SECOND: Duration = Duration::from_secs(1);

/// True if the kernel is to do the work.
pub fn is_asked() -> bool {
    std::env::var_os("GW_BACKEND").is_some_and(|backend| backend == "kernel")
}

/// Directions of `wan0` that the kernel shapes.
fn shaped(world: &World) -> Vec<Shaped> {
    world.within("g", || kernel::shaped(Some("wan0")).unwrap())
}

/// Packets that the upload's discipline has sent.
pub fn sent(world: &World) -> u64 {
    let upload = shaped(world).into_iter().find(|shaped| shaped.direction == Direction::Upload);
    upload.unwrap().listed.common.sent_packets
}

/// Settings change in place and to another discipline, and a refusal changes nothing.
pub fn show_change_and_down() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    std::thread::sleep(SECOND / 2);
    let now = shaped(&world);
    let told: Vec<_> =
        now.iter().map(|shaped| (shaped.direction, shaped.words().unwrap())).collect();
    let settings = |words: &str| qdisc::parse(words).unwrap();
    for ((direction, words), expected) in told.iter().zip([
        (Direction::Download, "cake bandwidth 20mbit"),
        (Direction::Upload, "cake bandwidth 8mbit"),
    ]) {
        assert_eq!((*direction, settings(words)), (expected.0, settings(expected.1)));
    }
    assert_eq!(now.len(), 2);
    assert!(now.iter().all(|shaped| shaped.listed.is_ours()));

    let change = |words: &str| world.within("g", || kernel::change(&now[1], &settings(words)));
    change("cake bandwidth 16mbit").unwrap();
    std::thread::sleep(SECOND);
    assert_rate("changed", 16e6, || world.wire_rate("s", "wan0", SECOND));
    let error = change("fq_codel").unwrap_err().to_string();
    println!("  {error}");
    assert_rate("after a refusal", 16e6, || world.wire_rate("s", "wan0", SECOND));

    world.within("g", || kernel::down("wan0").unwrap());
    assert!(shaped(&world).is_empty());
    std::thread::sleep(SECOND);
    assert!(upload.rate(SECOND) > 50e6, "still shaped");
    upload.end();
    world.stop();
}

/// No process is needed: the interface is shaped whatever becomes of the daemon, and given back to
/// whoever asks.
pub fn a_killed_daemon_leaves_the_kernel_shaping() {
    let mut world = World::new();
    world.start(&["wan0=|cake bandwidth 8mbit"]);
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    std::thread::sleep(SECOND * 3);
    world.signal(libc::SIGKILL);
    world.reap();
    assert_rate("without a daemon", 8e6, || world.wire_rate("s", "wan0", SECOND * 2));
    // Another one finds what is there, and sets it as it is told.
    world.start(&["wan0=|cake bandwidth 4mbit"]);
    std::thread::sleep(SECOND * 2);
    assert_rate("with another", 4e6, || world.wire_rate("s", "wan0", SECOND * 2));
    world.stop();
    assert!(shaped(&world).is_empty());
    upload.end();
}
