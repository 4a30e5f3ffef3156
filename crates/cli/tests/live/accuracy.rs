//! The set rate: reached, and in no second exceeded.
//!
//! Bytes are counted where the line begins (uploads) and ends (downloads). The gateway's own tests
//! have finer ones, with the kernel's time of every frame.

use std::thread;
use std::time::{Duration, Instant};

use simnel_testbed::traffic::{BulkOptions, Connections, Direction};
use simnel_testbed::Home;

use crate::{within_tries, Live, Try, Watch, SECOND};

/// Flows that share the rate. What waits behind a gap in one of them, to be counted later, is the
/// less the more there are.
const FLOWS: usize = 4;
/// Long enough that it does not matter.
const TIME: Duration = Duration::from_secs(5);

/// Bytes received on an interface: no earlier than the first time and no later than the second.
type Count = (Instant, u64, Instant);

/// The most bits per second in any window of at least a second. The counts' times are taken such
/// that a window is never longer than said.
fn most_in_a_second(counts: &[Count]) -> f64 {
    let mut most = 0.0f64;
    for (index, (_, bytes, begin)) in counts.iter().enumerate() {
        // From after the first count to before the last: what came in between, in that time.
        let window = counts[index..].iter().find(|(end, ..)| end.duration_since(*begin) >= SECOND);
        if let Some((_, later, end)) = window {
            let time = end.duration_since(counts[index].0).as_secs_f64();
            most = most.max((later - bytes) as f64 * 8.0 / time);
        }
    }
    most
}

fn accurate(live: &Live, direction: Direction, megabits: f64, words: &str, charged: f64) -> Try {
    let home = &live.home;
    let up = live.start("wan", words);
    let options = BulkOptions { direction, flows: FLOWS, congestion: "cubic" };
    let bulk = Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap();
    let bulk = bulk.start().unwrap();
    let received = bulk.counter();
    thread::sleep(SECOND * 2);
    let (namespace, interface) = match direction {
        Direction::Upload => (&home.isp, Home::LINE_HOME),
        Direction::Download => (&home.lan1, "net0"),
    };
    let watch = Watch::start();
    let (start, before) = (Instant::now(), received());
    let mut counts: Vec<Count> = Vec::new();
    while start.elapsed() < TIME {
        let begin = Instant::now();
        let bytes = namespace.counters(interface).unwrap().rx_bytes;
        counts.push((begin, bytes, Instant::now()));
        thread::sleep(Duration::from_millis(20));
    }
    let goodput = (received() - before) as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e6;
    let line = {
        let (first, last) = (counts[0], counts[counts.len() - 1]);
        let time = last.0.duration_since(first.0).as_secs_f64();
        (last.1 - first.1) as f64 * 8.0 / time / 1e6
    };
    let ideal = megabits * 1448.0 / charged;
    let error = goodput / ideal - 1.0;
    let above = most_in_a_second(&counts) / megabits / 1e6 - 1.0;
    println!(
        "{words}, {direction:?}: goodput {goodput:.3} of {ideal:.3} Mbit/s ({:+.2} %), on the wire \
         {line:.3}, most in a second {:+.3} % of the rate",
        error * 100.0,
        above * 100.0
    );
    let result = watch.judge_unless(error.abs() < 0.005 && above <= 0.0, |machine| {
        // What the line held back meanwhile may come in the next second.
        let burst = machine.latest.as_secs_f64();
        error.abs() > 0.05 + machine.taken() || above > 0.01 + burst
    });
    drop(bulk);
    up.stop();
    result
}

#[test]
fn rates_are_as_set() {
    let Some(live) = Live::new("rates_are_as_set") else { return };
    let line = live.line("delay 1ms fifo 2000p");
    for (direction, megabits, words, charged) in [
        (Direction::Upload, 10.0, "up wan upload 10mbit", 1514.0),
        (Direction::Upload, 100.0, "up wan upload 100mbit", 1514.0),
        // 38 bytes more than the IP packet's 1500: preamble, header, checksum, gap.
        (Direction::Upload, 10.0, "up wan upload 10mbit cake ethernet", 1538.0),
        // Without the default for downloads, which charges for what it drops, too.
        (Direction::Download, 10.0, "up wan download 10mbit cake egress", 1514.0),
    ] {
        within_tries(words, || accurate(&live, direction, megabits, words, charged));
    }
    line.stop();
}
