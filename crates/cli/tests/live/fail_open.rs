//! Traffic never depends on the daemon: not when it is killed, not when it is told to go.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Signal};
use simnel_testbed::probe::Probe;
use simnel_testbed::traffic::{Bulk, BulkOptions, Connections, Direction};
use simnel_testbed::Home;

use crate::trial::daemon_of;
use crate::{text, Live, SECOND};

const FLOWS: usize = 2;

/// Two transfers each way.
fn transfers(live: &Live) -> [Bulk; 2] {
    [Direction::Upload, Direction::Download].map(|direction| {
        let options = BulkOptions { direction, flows: FLOWS, congestion: "cubic" };
        let (client, server) = (&live.home.lan1, &live.home.server);
        Connections::open(client, server, Home::SERVER, options).unwrap().start().unwrap()
    })
}

fn received(transfers: &[Bulk; 2]) -> Vec<u64> {
    transfers.iter().flat_map(Bulk::received).collect()
}

/// All transfers get on, faster than the gateway let them.
fn assert_they_go_on(transfers: &[Bulk; 2]) {
    let before = received(transfers);
    thread::sleep(SECOND * 2);
    let after = received(transfers);
    let progress: Vec<u64> =
        after.iter().zip(&before).map(|(after, before)| after - before).collect();
    println!("bytes of each transfer in two seconds: {progress:?}");
    assert!(progress.iter().all(|&bytes| bytes > 0), "a transfer broke: {progress:?}");
    // Ten megabits were shared by two each way.
    assert!(progress.iter().sum::<u64>() > 10_000_000, "still shaped: {progress:?}");
}

/// Ends the gateway by `end` in the middle of four transfers.
fn ends_gracefully(live: &Live, end: impl FnOnce(&Live)) {
    let transfers = transfers(live);
    thread::sleep(SECOND * 2);
    let shaped = received(&transfers).iter().sum::<u64>();
    assert!(shaped < 8_000_000, "not shaped: {shaped} bytes");
    let (home, interval) = (&live.home, Duration::from_millis(2));
    let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, interval).unwrap();
    thread::sleep(SECOND / 2);
    let ended = probe.elapsed();
    end(live);
    thread::sleep(SECOND);
    assert!(live.is_clean(), "tables or queues are left");
    let echoes = probe.stop();
    // The first that came through with the gateway gone or going.
    let back = echoes
        .iter()
        .filter(|echo| echo.sent >= ended)
        .filter_map(|echo| Some(echo.sent + echo.rtt?))
        .min()
        .expect("no echo came back");
    println!("traffic flows {:?} after the end", back - ended);
    assert!(back - ended < Duration::from_millis(100));
    assert_they_go_on(&transfers);
}

#[test]
fn a_killed_daemon_leaves_nothing_and_breaks_nothing() {
    let Some(live) = Live::new("a_killed_daemon_leaves_nothing_and_breaks_nothing") else { return };
    let line = live.line("delay 2ms fifo 2000p");
    let mut up = live.start("wan", "up wan download 10mbit upload 10mbit");
    ends_gracefully(&live, |_| up.kill());
    for nothing in ["show wan", "show"] {
        assert!(!live.simnel(nothing).status.success(), "`{nothing}` shows what is not there");
    }
    live.start("wan", "up wan download 10mbit upload 10mbit").stop();
    assert!(live.is_clean());
    line.stop();
}

#[test]
fn down_leaves_nothing_and_breaks_nothing() {
    let Some(live) = Live::new("down_leaves_nothing_and_breaks_nothing") else { return };
    let line = live.line("delay 2ms fifo 2000p");
    let mut up = live.start("wan", "up wan download 10mbit upload 10mbit");
    ends_gracefully(&live, |live| {
        let said = live.ok("down wan");
        assert!(said.contains("wan: down, "), "{said}");
    });
    thread::sleep(SECOND / 5);
    let ended = up.failure().expect("`up` still runs");
    assert!(ended.to_string().contains("exit status: 0"), "{ended}");
    line.stop();
}

/// Kills the daemon of `up`, and waits until the supervisor has the lock of `wan`.
fn kill_daemon(live: &Live, up: u32) {
    let lock = live.home.testbed.directory().unwrap().join("wan.lock");
    kill_process(daemon_of(up), Signal::KILL).unwrap();
    let killed = Instant::now();
    while fs::read_to_string(&lock).unwrap().trim() != up.to_string() {
        assert!(killed.elapsed() < SECOND * 5, "the interface is nobody's");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn in_the_pause_before_a_restart_the_interface_has_an_owner() {
    let Some(live) =
        Live::beside_others("in_the_pause_before_a_restart_the_interface_has_an_owner")
    else {
        return;
    };
    let mut up = live.start("wan", "up wan upload 10mbit --for 60s");
    live.ok("change wan upload 5mbit");
    // From life to life the pause is longer: a second, and four.
    for _ in 0..2 {
        kill_daemon(&live, up.id());
        let killed = Instant::now();
        while !live.simnel("show wan").status.success() {
            assert!(killed.elapsed() < SECOND * 10, "no other daemon");
            thread::sleep(SECOND / 20);
        }
    }
    kill_daemon(&live, up.id());
    let shown = live.simnel("show wan");
    let second = live.simnel("up wan upload 1mbit");
    assert!(text(&second.stderr).contains("is already managed"), "{}", text(&second.stderr));
    // Both are true on any machine; on one that is not stuck they are seen in the pause.
    assert!(shown.status.success() || text(&shown.stderr).contains("about to start"));
    let said = live.ok("down wan");
    assert!(said.contains("wan: down, "), "{said}");
    let told = Instant::now();
    let ended = loop {
        if let Some(ended) = up.failure() {
            break ended.to_string();
        }
        assert!(told.elapsed() < SECOND * 5, "`up` still runs");
        thread::sleep(SECOND / 20);
    };
    assert!(ended.contains("exit status: 0"), "{ended}");
    // Each daemon tells what holds then: the third began more than a second after the first.
    let told = |what: &str| ended.matches(what).count();
    assert_eq!((told("cake bandwidth 10Mbit"), told("cake bandwidth 5Mbit")), (1, 3), "{ended}");
    assert!(told("ends in 60 s") < told("ends in"), "{ended}");
    assert!(live.is_clean());
}
