//! The testbed itself: that its network carries traffic, counts it, and leaves nothing behind.
//!
//! Needs root; says so loudly and passes without.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use simnel_testbed::probe::Probe;
use simnel_testbed::traffic::{BulkOptions, Connections, Direction};
use simnel_testbed::{Home, HomeOptions, Testbed, TestbedError};

fn home(masquerade: bool) -> Option<Home> {
    match Home::new("lk-", HomeOptions { masquerade }) {
        Ok(home) => Some(home),
        Err(TestbedError::NotRoot) => {
            eprintln!("NOT RUN: testbeds need root");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Replaces the line by a kernel bridge: no rate, no delay.
fn short_circuit(home: &Home) {
    home.isp.ip(&["link", "add", "join", "type", "bridge"]).unwrap();
    home.isp.ip(&["link", "set", "join", "up"]).unwrap();
    for end in [Home::LINE_HOME, Home::LINE_CORE] {
        home.isp.ip(&["link", "set", end, "master", "join"]).unwrap();
    }
}

#[test]
fn a_home_carries_traffic_both_ways_and_disappears() {
    let Some(home) = home(true) else { return };
    short_circuit(&home);
    let before = home.server.counters("net0").unwrap();
    let probe =
        Probe::start(&home.lan2, &home.server, Home::SERVER, Duration::from_millis(10)).unwrap();
    let bulk = |direction| {
        let options = BulkOptions { direction, flows: 2, congestion: "cubic" };
        Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap()
    };
    let (up, down) = (bulk(Direction::Upload), bulk(Direction::Download));
    let (up, down) = (up.start().unwrap(), down.start().unwrap());
    thread::sleep(Duration::from_millis(500));
    for flow in [up.received(), down.received()].concat() {
        assert!(flow > 1_000_000, "{flow} bytes in half a second");
    }
    drop((up, down));
    let echoes = probe.stop();
    assert!(echoes.len() >= 20, "{}", echoes.len());
    let back = echoes.iter().filter(|echo| echo.rtt.is_some()).count();
    assert!(back * 10 > echoes.len() * 9, "{back} of {}", echoes.len());
    let after = home.server.counters("net0").unwrap();
    assert!(after.rx_bytes - before.rx_bytes > 2_000_000);
    // Plain frames: no super-packets on the wire.
    assert!((after.rx_bytes - before.rx_bytes) / (after.rx_packets - before.rx_packets) <= 1514);

    let names: Vec<String> = [&home.lan1, &home.lan2, &home.gateway, &home.isp, &home.server]
        .map(|namespace| namespace.name().to_owned())
        .into();
    drop(home);
    for name in names {
        assert!(!Path::new("/run/netns").join(&name).exists(), "{name} is left");
    }
}

#[test]
fn programs_are_stopped_by_their_process_id() {
    let Some(home) = home(false) else { return };
    let sleeper = home.lan1.spawn("sleep", &["60"]).unwrap();
    let start = Instant::now();
    thread::sleep(Duration::from_millis(100));
    assert!(!sleeper.stop().unwrap().success());
    assert!(start.elapsed() < Duration::from_secs(2));
    let mut wrong = home.lan1.spawn("ls", &["/nowhere"]).unwrap();
    thread::sleep(Duration::from_millis(300));
    let error = wrong.failure().expect("it has ended").to_string();
    assert!(error.contains("/nowhere"), "{error}");
}

#[test]
fn what_is_left_running_ends_and_places_that_nobody_used_go() {
    let Some(mut home) = home(false) else { return };
    let name = home.gateway.name().to_owned();
    let namespaced = ["netns", "exec", &name, "sleep", "60"];
    let mut left = Command::new("ip").args(namespaced).spawn().unwrap();
    let below = std::env::temp_dir().join(format!("place-{}", std::process::id()));
    let [used, unused, old] = ["used", "unused", "old"].map(|name| below.join(name));
    std::fs::create_dir_all(&old).unwrap();
    for place in [&used, &unused, &old] {
        home.testbed.place(place).unwrap();
    }
    std::fs::write(used.join("file"), "").unwrap();
    let inside = || {
        let pids = Command::new("ip").args(["netns", "pids", &name]).output().unwrap();
        String::from_utf8_lossy(&pids.stdout).lines().any(|pid| pid == left.id().to_string())
    };
    while !inside() {
        thread::sleep(Duration::from_millis(5));
    }
    drop(home);
    assert!(!left.wait().unwrap().success(), "it was ended");
    assert_eq!([&used, &unused, &old].map(|place| place.exists()), [true, false, true]);
    std::fs::remove_dir_all(below).unwrap();
}

#[test]
fn a_failed_command_says_what_and_why() {
    let Some(mut testbed) = Testbed::new("lk-").ok() else { return };
    let namespace = testbed.namespace("x").unwrap();
    let error = namespace.address("none0", "10.0.0.1/24").unwrap_err().to_string();
    assert!(error.contains("address add 10.0.0.1/24 dev none0"), "{error}");
    assert!(error.contains("none0"), "{error}");
}
