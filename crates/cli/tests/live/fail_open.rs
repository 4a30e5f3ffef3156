//! Traffic never depends on the daemon: not when it is killed, not when it is told to go.

use std::thread;
use std::time::Duration;

use simnel_testbed::probe::Probe;
use simnel_testbed::traffic::{Bulk, BulkOptions, Connections, Direction};
use simnel_testbed::Home;

use crate::{Live, SECOND};

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
