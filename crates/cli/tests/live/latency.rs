//! Delay: what load adds for a sparse flow, and what the gateway itself adds.

use std::thread;
use std::time::Duration;

use simnel_testbed::probe::{Echo, Probe};
use simnel_testbed::traffic::{BulkOptions, Connections, Direction};
use simnel_testbed::Home;

use crate::{quantile, round_trips, within_tries, Live, Watch, SECOND};

const PROBE_INTERVAL: Duration = Duration::from_millis(10);
/// Flows have started and met their first losses.
const RAMP: Duration = Duration::from_secs(4);

/// Echoes of a probe during `time` of load with four flows each way, in milliseconds above the idle
/// line's median.
fn added(live: &Live, time: Duration, drain: Duration) -> Vec<f64> {
    let home = &live.home;
    let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, PROBE_INTERVAL).unwrap();
    thread::sleep(SECOND);
    let idle_end = probe.elapsed();
    let bulk = |direction| {
        let options = BulkOptions { direction, flows: 4, congestion: "cubic" };
        Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap()
    };
    let (up, down) = (bulk(Direction::Upload), bulk(Direction::Download));
    let load = (up.start().unwrap(), down.start().unwrap());
    thread::sleep(RAMP);
    let from = probe.elapsed();
    thread::sleep(time);
    let to = probe.elapsed();
    drop(load);
    thread::sleep(drain);
    let echoes = probe.stop();
    let idle = round_trips(echoes.iter().filter(|echo| echo.sent < idle_end));
    let idle = quantile(&idle, 50);
    let loaded = |echo: &&Echo| (from..to).contains(&echo.sent);
    round_trips(echoes.iter().filter(loaded)).iter().map(|time| time - idle).collect()
}

#[test]
fn load_adds_little_to_a_sparse_flow() {
    let Some(live) = Live::new("load_adds_little_to_a_sparse_flow") else { return };
    // The line as it is: its own queue, at both ends.
    let line = live.line("rate 3mbit delay 45ms fifo 1000p reverse rate 20mbit");
    let fifo = added(&live, SECOND * 4, SECOND * 5);
    println!("20/3 Mbit/s, 90 ms, FIFO of 1000 packets: median +{:.0} ms", quantile(&fifo, 50));
    assert!(quantile(&fifo, 50) >= 200.0);
    line.stop();
    // The gateway is the same line's bottleneck: nothing is left for another queue.
    let line = live.line("delay 45ms fifo 1000p");
    within_tries("load adds at most 3 ms (median) and 15 ms (p99)", || {
        let up = live.start("wan", "up wan download 20mbit upload 3mbit");
        let watch = Watch::start();
        let added = added(&live, SECOND * 8, SECOND / 2);
        let [median, p99] = [50, 99].map(|percent| quantile(&added, percent));
        println!("20/3 Mbit/s, 90 ms, Simnel: median +{median:.2} ms, p99 +{p99:.2} ms");
        let result = watch.judge(median <= 3.0 && p99 <= 15.0);
        up.stop();
        result
    });
    line.stop();
}

#[test]
fn an_idle_gateway_adds_next_to_nothing() {
    let Some(live) = Live::new("an_idle_gateway_adds_next_to_nothing") else { return };
    let line = live.line("delay 0ms");
    let median = || {
        let home = &live.home;
        let interval = Duration::from_millis(3);
        let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, interval).unwrap();
        thread::sleep(SECOND * 2);
        quantile(&round_trips(probe.stop().iter()), 50) * 1e3
    };
    // On a slow machine: as long as the way without it, on which the line and the hosts wake four
    // times. With it two more wake.
    within_tries("an idle gateway adds at most 150 µs, or what is there without", || {
        let watch = Watch::start();
        let without = median();
        let up = live.start("wan", "up wan download 100mbit upload 100mbit");
        let with = median();
        up.stop();
        println!("idle RTT, median: {without:.0} µs without, {with:.0} µs with");
        watch.judge_unless(with - without <= without.max(150.0), |_| with > 4.0 * without)
    });
    line.stop();
}
