//! `simnel link` on one interface.

use std::thread;
use std::time::Duration;

use simnel_testbed::probe::Probe;
use simnel_testbed::traffic::{BulkOptions, Connections, Direction};
use simnel_testbed::{wire, Home};

use crate::{quantile, round_trips, within_tries, Live, Watch, SECOND};

#[test]
fn a_line_on_one_interface_has_its_rates_and_delay() {
    let Some(live) = Live::beside_others("a_line_on_one_interface_has_its_rates_and_delay") else {
        return;
    };
    let home = &live.home;
    let wire = live.line("delay 0ms");
    within_tries("rates within 0.5 %, delay within 2 ms", || {
        let words = "link wan rate 3mbit delay 20ms fifo 100p reverse rate 20mbit";
        let line = live.start("wan", words);
        let shown = live.ok("show wan");
        assert!(shown.contains("qdisc line") && shown.contains("delay 20ms"), "{shown}");
        let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, Duration::from_millis(20));
        thread::sleep(SECOND);
        let idle = quantile(&round_trips(probe.unwrap().stop().iter()), 50);
        let rate = |direction, ideal: f64| {
            let options = BulkOptions { direction, flows: 1, congestion: "cubic" };
            let bulk = Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap();
            let bulk = bulk.start().unwrap();
            thread::sleep(SECOND * 3);
            let samples = match direction {
                Direction::Upload => home.isp.watch_rx(Home::LINE_HOME, SECOND),
                Direction::Download => home.lan1.watch_rx("net0", SECOND),
            };
            thread::sleep(SECOND * 3);
            let rate = wire::rate(&samples.stop()) as f64 * 8.0;
            drop(bulk);
            rate / ideal - 1.0
        };
        let watch = Watch::start();
        let errors = [rate(Direction::Upload, 3e6), rate(Direction::Download, 20e6)];
        println!("idle RTT {idle:.2} ms, rates off by {errors:+.4?}");
        let exact = errors.iter().all(|error| error.abs() < 0.005);
        let result = watch.judge((40.0..42.5).contains(&idle) && exact);
        line.stop();
        result
    });
    assert!(live.is_clean());
    wire.stop();
}
