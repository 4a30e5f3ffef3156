//! A clock that others set, and a machine that sleeps: the line stays shaped by the same processes.
//!
//! These cases set the machine's clock and suspend it, so they are for guests of ours alone
//! (`conformance/live-on-debian.sh`).

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{clock_settime, ClockId, Timespec};
use simnel_gateway::view::{Names, Viewer};
use simnel_gateway::Direction;

use crate::cases::not_run;
use crate::hangs::{family_where, Pings, PROMISED};
use crate::rules;
use crate::transfer::{round_trips, Transfer};
use crate::world::{address, Said, World};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: i64 = 3600;
/// Ten years.
const DECADE: i64 = 3652 * 24 * HOUR;
/// Upload of the line.
const RATE: f64 = 8e6;
/// Bits that a window may hold beyond the rate: four full packets, since clock and counter are not
/// read at one moment.
const SLACK: f64 = 4.0 * 1514.0 * 8.0;
/// Length of a sleep.
const SLEEP: Duration = Duration::from_secs(20);
/// The daemon's time between looks at the local clock.
const LOOK: Duration = Duration::from_millis(500);

/// True if this machine's clock may be set and the machine suspended: GW_GUEST.
pub fn are_allowed() -> bool {
    std::env::var_os("GW_GUEST").is_some()
}

/// Time since 1970 by the machine's clock.
fn calendar() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn set_clock(to: Duration) {
    let time = Timespec { tv_sec: to.as_secs() as _, tv_nsec: to.subsec_nanos().into() };
    clock_settime(ClockId::Realtime, time).unwrap();
}

/// Steps the machine's clock by so many seconds.
fn step_clock(seconds: i64) {
    let now = calendar();
    let to = now.as_secs().checked_add_signed(seconds).unwrap();
    set_clock(Duration::new(to, now.subsec_nanos()));
}

/// Bytes that the server has from the line, by time.
struct Meter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(Instant, u64)>>,
}

impl Meter {
    fn start(world: &World) -> Meter {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = world.spawn("s", move || {
            let mut looks = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
                let line = text.lines().find_map(|line| line.trim().strip_prefix("wan0:")).unwrap();
                let bytes = line.split_whitespace().next().unwrap().parse().unwrap();
                looks.push((Instant::now(), bytes));
                thread::sleep(SECOND / 50);
            }
            looks
        });
        Meter { stop, thread }
    }

    /// Ends it. The line must have been full since the start, and no window of it above the rate.
    fn assert_shaped(self, what: &str) {
        self.stop.store(true, Ordering::Relaxed);
        let looks = self.thread.join().unwrap();
        let bits = |(start, before): (Instant, u64), (end, after): (Instant, u64)| {
            ((end - start).as_secs_f64(), (after - before) as f64 * 8.0)
        };
        let windows = looks
            .iter()
            .enumerate()
            .flat_map(|(at, &first)| looks[at + 1..].iter().map(move |&last| bits(first, last)));
        let most = windows.map(|(time, bits)| bits - RATE * time).fold(0.0, f64::max);
        let (time, all) = bits(looks[0], *looks.last().unwrap());
        let beyond = most / 8e3;
        println!("  {what}: {:.3} Mbit/s, at most {beyond:.1} kB beyond", all / time / 1e6);
        assert!(most < SLACK, "{what}: {most} bits beyond the rate");
        assert!(all / time > 0.97 * RATE, "{what}: {} Mbit/s", all / time / 1e6);
    }
}

/// A daemon with an upload under way.
struct Shaped {
    world: World,
    said: Said,
    family: (i32, i32),
    upload: Transfer,
}

impl Shaped {
    fn start() -> Shaped {
        let mut world = World::new();
        let said = world.start_heard(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
        let family = family_where(&world, |_| true);
        let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
        thread::sleep(SECOND * 3);
        Shaped { world, said, family, upload }
    }

    /// The median round-trip time beside the upload.
    fn round_trip(&self) -> Duration {
        let times = round_trips(&self.world, address("10.77.2.2", 7001), 60, SECOND / 100);
        times[times.len() / 2]
    }

    /// Ends it. Nothing was ended, started again or warned of meanwhile.
    fn end(mut self) {
        assert_eq!(family_where(&self.world, |_| true), self.family, "other processes");
        self.upload.end();
        self.world.stop();
        let all = self.said.all();
        let expected = ["wan0: up", "changed", "the trial has ended", "wan0: down"];
        let others = all.lines().filter(|line| !expected.iter().any(|text| line.contains(text)));
        let others: Vec<&str> = others.collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

/// Rate, latency, what `top` shows and the end of a trial know nothing of the machine's clock.
pub fn a_clock_that_is_set_changes_nothing() {
    let shaped = Shaped::start();
    let world = &shaped.world;
    let mut viewer = Viewer::new();
    let mut top = |time: Duration| {
        viewer.look(&world.control, "wan0", &Names::default()).unwrap();
        thread::sleep(time);
        viewer.look(&world.control, "wan0", &Names::default()).unwrap()
    };
    let before = shaped.round_trip();
    for (what, step) in [("+1 h", HOUR), ("-1 h", -HOUR), ("+10 years", DECADE), ("back", -DECADE)]
    {
        let (meter, calendar_before) = (Meter::start(world), calendar());
        thread::sleep(SECOND);
        step_clock(step);
        let view = top(SECOND);
        let shown = view.lines.iter().find(|line| line.direction == Direction::Upload).unwrap();
        let flow = view.flows.iter().find(|flow| flow.entry.dport == 5001).unwrap();
        let age = flow.entry.held.unwrap().age_ns;
        let [rate, flows] = [shown.rate_bps, flow.rate_bps].map(|rate| rate as f64 / RATE);
        let delay = shown.delay.unwrap();
        println!("  {what}: top has {rate:.3} and {flows:.3} of the rate, {delay:?}, age {age} ns");
        assert!((0.9..1.05).contains(&rate) && (0.9..1.05).contains(&flows));
        assert!(delay.last_p99_ns < 500_000_000 && age < 120_000_000_000);
        meter.assert_shaped(what);
        let after = shaped.round_trip();
        println!("  {what}: round trips of {after:?}, {before:?} before");
        // Two full packets at 8 Mbit/s.
        assert!(after < before + Duration::from_millis(3), "{after:?} after {before:?}");
        let went = calendar().as_secs() as i64 - calendar_before.as_secs() as i64;
        assert!((step..step + 60).contains(&went), "the clock was not set: {went}");
    }

    let trial = Instant::now();
    let upload = || world.client("wan0").show().unwrap()[1].config.clone();
    world.client("wan0").try_out(Direction::Upload, "cake bandwidth 4mbit", SECOND * 4).unwrap();
    for (at, step) in [(1, HOUR), (2, -HOUR), (3, -HOUR)] {
        thread::sleep((SECOND * at).saturating_sub(trial.elapsed()));
        step_clock(step);
        assert!(upload().contains("4Mbit"));
    }
    while upload().contains("4Mbit") {
        assert!(trial.elapsed() < SECOND * 5, "the trial does not end");
        thread::sleep(SECOND / 50);
    }
    let lasted = trial.elapsed();
    println!("  a trial of 4 s lasted {lasted:?}");
    assert!((SECOND * 4..SECOND * 9 / 2).contains(&lasted), "{lasted:?}");
    step_clock(HOUR);
    shaped.end();
}

/// Shares that have hours have those of the clock as it is set.
pub fn hours_follow_a_clock_that_is_set() {
    let mut world = World::new();
    let at = |hour: u64| {
        let day = calendar().as_secs() / 86_400 * 86_400;
        // The guest's time zone is UTC.
        set_clock(Duration::from_secs(day + 3600 * hour));
    };
    at(10);
    let share = "[[share]]\nname = \"tv\"\naddress = \"10.77.1.2\"\nupload = \"1mbit..2mbit\"\n\
                 hours = \"12:00-13:00\"";
    rules::start(&mut world, "qdisc = \"cake besteffort\"", share);
    let family = family_where(&world, |_| true);
    // What the device sends passes whole, or its cap.
    let (all, cap) = (5.0..6.4, 1.7..2.1);
    for (hour, expected) in [(10, &all), (12, &cap), (14, &all), (12, &cap), (10, &all)] {
        at(hour);
        thread::sleep(LOOK);
        let rate = rules::flood(&world, &["10.77.1.2"])[0] / 1e6;
        println!("  at {hour} {rate:.2} Mbit/s");
        assert!(expected.contains(&rate), "at {hour}: {rate} Mbit/s");
    }
    assert_eq!(family_where(&world, |_| true), family, "other processes");
    world.stop();
}

/// Suspended to memory and woken up by its alarm, twice. The alarm of QEMU does not end the other
/// kind of sleep, `freeze`.
pub fn a_machine_that_slept_shapes_as_before() {
    const ALARM: &str = "/sys/class/rtc/rtc0/wakealarm";
    let deep = fs::read_to_string("/sys/power/mem_sleep").is_ok_and(|ways| ways.contains("deep"));
    if !deep || fs::metadata(ALARM).is_err() {
        return not_run("this machine cannot be suspended to memory, or has no alarm");
    }
    fs::write("/sys/power/mem_sleep", "deep").unwrap();
    let shaped = Shaped::start();
    let world = &shaped.world;
    let before = shaped.round_trip();
    for turn in ["first sleep", "second sleep"] {
        let (meter, pings) = (Meter::start(world), Pings::start(world));
        thread::sleep(SECOND);
        let upload = || world.client("wan0").show().unwrap()[1].config.clone();
        let words = "cake bandwidth 8mbit wash";
        world.client("wan0").try_out(Direction::Upload, words, SECOND * 5).unwrap();
        let (start, calendar_before) = (Instant::now(), calendar());
        fs::write(ALARM, "0").unwrap();
        fs::write(ALARM, format!("+{}", SLEEP.as_secs())).unwrap();
        fs::write("/sys/power/state", "mem").unwrap();
        let (awake, went) = (start.elapsed(), calendar() - calendar_before);
        assert!(went > SLEEP * 4 / 5 && awake < SECOND, "no sleep: {went:?}, {awake:?} awake");
        thread::sleep(SECOND * 3);
        let silence = pings.silence(start);
        println!("  {turn}: of {went:?} {awake:?} awake; nothing passed for {silence:?}");
        assert!(silence < PROMISED, "{silence:?}");
        assert!(upload().contains(" wash"), "time asleep counted in a trial");
        thread::sleep((SECOND * 11 / 2).saturating_sub(start.elapsed()));
        assert!(!upload().contains(" wash"), "the trial does not end");
        meter.assert_shaped(turn);
        pings.end();
        let after = shaped.round_trip();
        println!("  {turn}: round trips of {after:?}, {before:?} before");
        assert!(after < before + Duration::from_millis(3), "{after:?} after {before:?}");
        assert_eq!(family_where(world, |_| true), shaped.family, "other processes");
    }
    shaped.end();
}
