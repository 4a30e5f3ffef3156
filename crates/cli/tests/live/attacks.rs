//! One host of the home against the others: what a call and a transfer of another host keep.
//!
//! Figures are taken at the victim: echoes of its own, its transfer's goodput. The gateway's own
//! books decide nothing. How long a core is held is seen by a real-time thread of ours on each
//! core, with less priority than the gateway's.
//!
//!     cargo test --release -p simnel --test live -- --nocapture attacks
//!
//! `ATTACK_FLOWS=30000` tries so many flows of one host, at 10 and 100 Mbit/s.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use simnel_testbed::probe::{Echo, Probe};
use simnel_testbed::traffic::{BulkOptions, Connections, Direction};
use simnel_testbed::witness::in_real_time_on;
use simnel_testbed::{Home, HomeOptions, Process};

use crate::flood::{Attack, Flood, Packets};
use crate::{quantile, round_trips, threads, within_tries, Live, Try, Watch, SECOND};

/// The victim's packets: twice as many as a call's.
const PROBE_INTERVAL: Duration = Duration::from_millis(10);
/// Time for the attack to fill the queue and for the transfer to find its share.
const RAMP: Duration = SECOND;
const TIME: Duration = Duration::from_secs(3);
/// Routed to the server's side of the line and dropped there: nothing answers.
const NOBODY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The victims' loss and delay under an attack.
#[derive(Debug)]
struct Suffered {
    /// Of the packets that were to be sent.
    attack: f64,
    /// Of the victim's echoes, lost.
    lost: f64,
    /// Milliseconds above the idle line's median.
    p99: f64,
    worst: f64,
    /// The transfer's part of the line.
    share: f64,
    /// Processor time of the gateway's threads, in cores.
    cpu: f64,
    /// The same for one of the attack's packets, in microseconds.
    each: f64,
    /// Longest time that a core was not to be had for a real-time thread.
    held: Duration,
}

/// Attacks the line, of so many megabits, of a gateway started with `words`.
fn suffer(live: &Live, words: &str, megabits: f64, attack: Attack, transfer: bool) -> Suffered {
    let home = &live.home;
    let up = live.start("wan", words);
    let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, PROBE_INTERVAL).unwrap();
    thread::sleep(SECOND / 2);
    let idle_end = probe.elapsed();
    let bulk = transfer.then(|| {
        let options = BulkOptions { direction: Direction::Upload, flows: 1, congestion: "cubic" };
        Connections::open(&home.lan2, &home.server, Home::SERVER, options).unwrap()
    });
    let bulk = bulk.map(|connections| connections.start().unwrap());
    let received = || bulk.iter().flat_map(|bulk| bulk.received()).sum::<u64>();
    let flood = Flood::start(&home.lan1, attack);
    thread::sleep(RAMP);

    let cores = Cores::watch();
    let (from, start, before) = (probe.elapsed(), Instant::now(), received());
    let (cpu, sent) = (processor_time(&up), flood.sent());
    thread::sleep(TIME);
    let seconds = start.elapsed().as_secs_f64();
    let payload = (received() - before) as f64;
    let cpu = (processor_time(&up) - cpu).as_secs_f64() / seconds;
    let sent = (flood.sent() - sent) as f64 / seconds;
    let attack = sent / f64::from(attack.rate);
    let to = probe.elapsed();
    let held = cores.longest();
    drop(flood);
    // What is still under way comes back.
    thread::sleep(SECOND / 2);
    let echoes = probe.stop();
    drop(bulk);
    up.stop();

    let idle = round_trips(echoes.iter().filter(|echo| echo.sent < idle_end));
    let idle = quantile(&idle, 50);
    let during = |echo: &&Echo| (from..to).contains(&echo.sent);
    let times = round_trips(echoes.iter().filter(during));
    let back = times.iter().filter(|time| time.is_finite()).count();
    Suffered {
        attack,
        lost: 1.0 - back as f64 / times.len() as f64,
        p99: quantile(&times, 99) - idle,
        worst: times[..back].last().map_or(f64::NAN, |worst| worst - idle),
        share: payload * 8.0 * 1514.0 / 1448.0 / seconds / megabits / 1e6,
        cpu,
        each: cpu * 1e6 / sent,
        held,
    }
}

/// Processor time of a process and its children.
fn processor_time(process: &Process) -> Duration {
    let nanoseconds = threads(process.id()).into_iter().map(|task| {
        let first = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        first.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// A thread on each core that sleeps a millisecond at a time, under SCHED_FIFO with the least
/// priority. Only a real-time thread, an interrupt or the hypervisor keeps it from the core.
struct Cores {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Cores {
    fn watch() -> Cores {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..cores)
            .map(|core| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || Cores::longest_wait(core, &stop))
            })
            .collect();
        Cores { stop, threads }
    }

    fn longest_wait(core: usize, stop: &AtomicBool) -> Duration {
        const STEP: Duration = Duration::from_millis(1);
        assert!(in_real_time_on(core, 1), "chrt cannot make a thread a real-time one");
        let mut longest = Duration::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let before = Instant::now();
            thread::sleep(STEP);
            longest = longest.max(before.elapsed() - STEP);
        }
        longest
    }

    fn longest(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap_or_default()
    }
}

/// Processor time of an attack's packet with the first of two words of cake, as a multiple of that
/// with the second. They take turns: a machine that is slower for a while is so for both.
fn cost_of(live: &Live, words: &str, two: [&str; 2], attack: Attack) -> f64 {
    const TURNS: u32 = 8;
    const TURN: Duration = Duration::from_millis(300);
    let up = live.start("wan", words);
    let flood = Flood::start(&live.home.lan1, attack);
    thread::sleep(RAMP);
    let mut spent = [Duration::ZERO; 2];
    let mut packets = [0; 2];
    for _ in 0..TURNS {
        for (side, word) in two.into_iter().enumerate() {
            live.ok(&format!("change wan upload cake {word}"));
            // The change itself is no packet's.
            thread::sleep(TURN / 6);
            let (cpu, sent) = (processor_time(&up), flood.sent());
            thread::sleep(TURN);
            spent[side] += processor_time(&up) - cpu;
            packets[side] += flood.sent() - sent;
        }
    }
    drop(flood);
    up.stop();
    let each = |side: usize| spent[side].as_secs_f64() / packets[side] as f64;
    each(0) / each(1)
}

/// Tries until the victim keeps what it is promised.
fn withstands(
    live: &Live,
    words: &str,
    megabits: f64,
    attack: Attack,
    transfer: bool,
    promise: impl Fn(&Suffered) -> bool,
) {
    let what = format!("{words}; {attack:?}");
    within_tries(&what, || {
        let watch = Watch::start();
        let suffered = suffer(live, words, megabits, attack, transfer);
        let Suffered { attack, lost, p99, worst, share, cpu, each, held } = &suffered;
        println!(
            "{what}: {:.0} % of it sent; echoes: {:.1} % lost, p99 +{p99:.1} ms, worst \
             +{worst:.1} ms; transfer: {:.1} % of the line; gateway: {cpu:.2} cores, \
             {each:.1} µs a packet, one held for {:.1} ms",
            attack * 100.0,
            lost * 100.0,
            share * 100.0,
            held.as_secs_f64() * 1e3,
        );
        let lost = *lost;
        match watch.judge_unless(promise(&suffered), |machine| lost > 0.1 + machine.taken()) {
            // Less of an attack than was meant proves nothing.
            Try::Holds if *attack <= 0.5 => Try::Unclear,
            result => result,
        }
    });
}

/// A home whose attacker and victim are not kept waiting by what else the machine does.
fn attacked(test: &str) -> Option<Live> {
    // Threads and programs inherit it. Refused only to those who cannot make namespaces either.
    let _ = rustix::process::nice(-19);
    // Without translation: the table of connections is not what is attacked.
    Live::with(test, HomeOptions { masquerade: false })
}

#[test]
fn attacks_by_acknowledgements_that_fall() {
    let Some(live) = attacked("attacks_by_acknowledgements_that_fall") else { return };
    let line = live.line("delay 1ms fifo 2000p");
    let words = "up wan upload 3mbit cake besteffort";
    let attack = Attack { to: NOBODY, packets: Packets::FallingAcks, rate: 40_000 };
    let filtered = format!("{words} ack-filter");
    withstands(&live, &filtered, 3.0, attack, false, |suffered| {
        let times = cost_of(&live, words, ["ack-filter", "no-ack-filter"], attack);
        println!("{filtered}: {times:.2} times the processor time of a packet without the filter");
        suffered.lost <= 0.005 && suffered.p99 <= 20.0 && times < 1.5
    });
    line.stop();
}

/// Ten times the line in packets of 1400 bytes, to the victim's own server and elsewhere.
#[test]
fn attacks_by_many_flows_of_one_host() {
    let Some(live) = attacked("attacks_by_many_flows_of_one_host") else { return };
    let line = live.line("delay 1ms fifo 2000p");
    let wanted = std::env::var("ATTACK_FLOWS").ok().map(|text| text.parse().expect("a number"));
    let cases = match wanted {
        Some(flows) => vec![(10.0, flows, SERVER), (100.0, flows, SERVER)],
        None => vec![
            (10.0, 100, SERVER),
            (10.0, 1000, SERVER),
            (10.0, 1000, NOBODY),
            (100.0, 1000, SERVER),
        ],
    };
    for (megabits, flows, to) in cases {
        let words = format!("up wan upload {megabits}mbit cake");
        let rate = (megabits * 1e7 / 8.0 / 1414.0) as u32;
        let attack = Attack { to, packets: Packets::Udp { length: 1400, flows }, rate };
        withstands(&live, &words, megabits, attack, true, |suffered| {
            suffered.lost <= 0.005 && suffered.p99 <= 20.0 && suffered.share >= 0.45
        });
    }
    line.stop();
}

#[test]
fn attacks_by_floods_of_small_packets() {
    let Some(live) = attacked("attacks_by_floods_of_small_packets") else { return };
    let line = live.line("delay 1ms fifo 2000p");
    let words = "up wan upload 20mbit cake";
    for (flows, rate) in [(1, 200_000), (1_000_000, 200_000)] {
        let attack = Attack { to: NOBODY, packets: Packets::Udp { length: 60, flows }, rate };
        withstands(&live, words, 20.0, attack, false, |suffered| {
            let free = suffered.held <= Duration::from_millis(10);
            suffered.lost <= 0.005 && suffered.p99 <= 20.0 && free
        });
    }
    line.stop();
}
