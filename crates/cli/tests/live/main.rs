//! The gateway's promises, through the program and with real traffic in namespaces.
//!
//! Needs root; without, each test says loudly that it did not run. A test that measures a fast
//! line, or fractions of a millisecond, is the only one at its time. Those that only look, or
//! measure a slow line, run beside each other, and first (`machine.rs`). With as many threads as
//! tests (`RUST_TEST_THREADS=64`) all takes the least time. A busy machine may spoil a measurement.
//! So each test that has a figure to reach is allowed some tries, and prints what it saw in each.
//! It fails only if all of them missed and the machine was quiet in two of them.

mod accuracy;
mod attacks;
mod autorate;
mod emulated;
mod fail_open;
mod flood;
mod lanes;
mod latency;
mod link;
mod machine;
mod measure;
mod record;
mod trial;
mod user;
mod waiting;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use machine::{alone, beside_others, Right};
use simnel_testbed::probe::Echo;
use simnel_testbed::witness::{self, Testimony, Try, Witness};
use simnel_testbed::{Home, HomeOptions, Namespace, Process, TestbedError};

const SIMNEL: &str = env!("CARGO_BIN_EXE_simnel");
const SECOND: Duration = Duration::from_secs(1);

/// A home for one test, and its right to the machine.
struct Live {
    home: Home,
    _right: Right,
}

impl Live {
    /// For a test that measures closely. None, and loud words, where namespaces cannot be made.
    fn new(test: &str) -> Option<Live> {
        Live::with(test, HomeOptions { masquerade: true })
    }

    /// The same with other options.
    fn with(test: &str, options: HomeOptions) -> Option<Live> {
        let right = alone();
        Some(Live { home: home(test, options)?, _right: right })
    }

    /// For a test that only looks or measures a slow line.
    fn beside_others(test: &str) -> Option<Live> {
        let right = beside_others();
        Some(Live { home: home(test, HomeOptions { masquerade: true })?, _right: right })
    }

    fn control_dir(&self) -> String {
        self.home.testbed.directory().unwrap().to_string_lossy().into_owned()
    }

    /// Starts the line between home and Internet; `words` say what it is like.
    fn line(&self, words: &str) -> Process {
        let words = format!("link {} {} {words}", Home::LINE_HOME, Home::LINE_CORE);
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut line = self.home.isp.spawn(SIMNEL, &words).unwrap();
        thread::sleep(Duration::from_millis(300));
        assert!(line.failure().is_none(), "{:?}", line.failure());
        line
    }

    /// Starts a command of the gateway that keeps running, such as `up wan upload 3mbit`, and waits
    /// until it manages `interface`.
    fn start(&self, interface: &str, words: &str) -> Process {
        self.start_in(&self.control_dir(), interface, words)
    }

    /// The same with another directory of locks and sockets.
    fn start_in(&self, directory: &str, interface: &str, words: &str) -> Process {
        let socket = Path::new(directory).join(format!("{interface}.sock"));
        let mut process = self.spawn_in(directory, words);
        let start = Instant::now();
        while !socket.exists() {
            if let Some(error) = process.failure() {
                panic!("{error}");
            }
            assert!(start.elapsed() < SECOND * 5, "`{words}` does not come up");
            thread::sleep(Duration::from_millis(10));
        }
        process
    }

    /// The same without waiting for anything.
    fn spawn_in(&self, directory: &str, words: &str) -> Process {
        let mut all: Vec<&str> = words.split_whitespace().collect();
        all.extend(["--control-dir", directory]);
        self.home.gateway.spawn(SIMNEL, &all).unwrap()
    }

    /// Runs a command on the gateway to its end.
    fn simnel(&self, words: &str) -> Output {
        self.simnel_in(&self.control_dir(), words)
    }

    /// The same with another directory of locks and sockets.
    fn simnel_in(&self, directory: &str, words: &str) -> Output {
        let mut all: Vec<&str> = words.split_whitespace().collect();
        all.extend(["--control-dir", directory]);
        within(&self.home.gateway, SIMNEL, &all)
    }

    /// Runs a command that must succeed; returns what it printed.
    fn ok(&self, words: &str) -> String {
        let output = self.simnel(words);
        assert!(output.status.success(), "`{words}`: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Nothing of ours is left in the gateway's kernel.
    fn is_clean(&self) -> bool {
        let tables = within(&self.home.gateway, "nft", &["list", "tables"]);
        let queues = within(&self.home.gateway, "cat", &["/proc/net/netfilter/nfnetlink_queue"]);
        !text(&tables.stdout).contains("simnel") && text(&queues.stdout).trim().is_empty()
    }
}

/// None, and loud words, where namespaces cannot be made.
fn home(test: &str, options: HomeOptions) -> Option<Home> {
    match Home::new("lv-", options) {
        Ok(home) => Some(home),
        Err(TestbedError::NotRoot) => {
            eprintln!("NOT RUN: {test} needs root");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Threads of a process and of all that it has started, by their directories in /proc.
fn threads(process: u32) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let own: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let children = |task: &PathBuf| -> Vec<u32> {
        let text = std::fs::read_to_string(task.join("children")).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    let below: Vec<PathBuf> = own.iter().flat_map(children).flat_map(threads).collect();
    own.into_iter().chain(below).collect()
}

fn within(namespace: &Namespace, program: &str, arguments: &[&str]) -> Output {
    Command::new("ip")
        .args(["netns", "exec", namespace.name(), program])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Round-trip times in milliseconds, sorted; a lost echo is later than any.
fn round_trips<'a>(echoes: impl Iterator<Item = &'a Echo>) -> Vec<f64> {
    let mut times: Vec<f64> =
        echoes.map(|echo| echo.rtt.map_or(f64::INFINITY, |rtt| rtt.as_secs_f64() * 1e3)).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The value that `percent` of 100 do not exceed.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

/// Tries until a figure holds; where a busy machine spoilt too many tries, that is said.
fn within_tries(what: &str, attempt: impl FnMut() -> Try) {
    if !witness::within_tries(what, attempt) {
        eprintln!("NOT RUN: {what}: the machine was too busy in four tries");
    }
}

/// Tells a busy machine from a wrong figure, by a witness from outside of the gateway.
struct Watch(Witness);

impl Watch {
    fn start() -> Watch {
        Watch(Witness::start())
    }

    /// Meaning of a figure that was reached or missed.
    fn judge(self, reached: bool) -> Try {
        self.judge_unless(reached, |_| false)
    }

    /// The same, but a miss that is `beyond` all excuse by such a machine stays a miss.
    fn judge_unless(self, reached: bool, beyond: impl Fn(&Testimony) -> bool) -> Try {
        let machine = self.0.testify();
        println!("  {machine}");
        match reached {
            true => Try::Holds,
            false if machine.machine_was_busy() && !beyond(&machine) => Try::Unclear,
            false => Try::Misses,
        }
    }
}
