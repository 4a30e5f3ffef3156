//! The live gateway in network namespaces of its own: everything that is promised, end to end.
//!
//! Runs as root only; otherwise it says loudly that nothing was checked. The daemon is this program
//! again, told by GW_DAEMON. Arguments choose cases by name, `--list` lists them. `GW_MEASURE=1`
//! with a release build prints figures instead: added round-trip time, throughput, processor time,
//! accuracy. With `GW_BACKEND=kernel` the kernel module does the work, in those cases that this
//! concerns. With `GW_GUEST=1` the machine is a guest of ours, whose clock may be set.

mod accuracy;
mod bridge;
mod cases;
mod cgroups;
mod clocks;
mod control;
mod flows;
mod hangs;
mod heap;
mod in_kernel;
mod kernel;
mod marked;
mod marks;
mod measure;
mod memory;
mod names;
mod others;
mod realtime;
mod rules;
mod soak;
mod steered;
mod transfer;
mod wire;
mod world;

use std::io::Write;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cases::Case;
use simnel_core::qdisc;
use simnel_gateway::daemon::{Daemon, Interface};
use simnel_gateway::{config, Backend, Error, Settings};

fn main() {
    if let Ok(interfaces) = std::env::var("GW_DAEMON") {
        return daemon(&interfaces);
    }
    if std::env::args().any(|argument| argument == "--list") {
        let all = lists().iter().flat_map(|(cases, _)| *cases);
        all.for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    // SAFETY: takes nothing.
    if unsafe { libc::geteuid() } != 0 {
        let cases: usize = lists().iter().map(|(cases, _)| cases.len()).sum();
        eprintln!("\n*** NOT RUN: {cases} tests of the live data path need root ***\n");
        println!("test result: ok. 0 passed; 0 failed; {cases} NOT RUN (no root)");
        return;
    }
    if let Some(what) = std::env::var_os("GW_MEASURE") {
        return match what.to_str() {
            Some("lanes") => measure::lanes(),
            Some("bridge") => measure::bridged(),
            _ => measure::all(),
        };
    }
    let filters: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let chosen =
        |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let each = |(cases, at_once): &(&[Case], usize)| run(cases, &chosen, *at_once);
    let results: Vec<Verdict> = lists().iter().flat_map(each).collect();
    let count = |wanted| results.iter().filter(|&&result| result == wanted).count();
    let (passed, failed) = (count(Verdict::Passed), count(Verdict::Failed));
    let (verdict, not_run) = (if failed == 0 { "ok" } else { "FAILED" }, count(Verdict::NotRun));
    println!("test result: {verdict}. {passed} passed; {failed} failed; {not_run} NOT RUN");
    if failed > 0 {
        std::process::exit(1);
    }
}

/// The cases, and how many of them at a time.
fn lists() -> &'static [(&'static [Case], usize)] {
    match (in_kernel::is_asked(), clocks::are_allowed()) {
        (true, _) => &[(cases::IN_THE_KERNEL, 1)],
        (false, false) => &[(cases::TOGETHER, 3), (cases::ALONE, 1)],
        (false, true) => &[(cases::TOGETHER, 3), (cases::ALONE, 1), (cases::OF_A_GUEST, 1)],
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    NotRun,
}

/// Runs those of `cases` that are `chosen`, so many at a time.
fn run(cases: &[Case], chosen: &(dyn Fn(&str) -> bool + Sync), at_once: usize) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        while let Some((name, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !chosen(name) {
                continue;
            }
            let (verdict, word) = match catch_unwind(case) {
                Err(_) => (Verdict::Failed, "FAILED"),
                Ok(()) if cases::was_not_run() => (Verdict::NotRun, "NOT RUN"),
                Ok(()) => (Verdict::Passed, "ok"),
            };
            println!("test {name} ... {word}");
            results.push(verdict);
        }
        results
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no case panics here")).collect()
    })
}

/// `name=download|upload;…`, `tc`'s words or nothing, with ` lanes N` after the name or without; or
/// `file` for the configuration file GW_FILE, which SIGHUP reads as well.
fn daemon(interfaces: &str) {
    if std::env::var_os("GW_CGROUPS").is_some() {
        // `ip netns exec` has mounted another /sys.
        world::run("mount -t cgroup2 none /sys/fs/cgroup");
    }
    let run = || -> Result<(), Error> {
        let file = std::env::var_os("GW_FILE").map(PathBuf::from);
        let settings = match interfaces {
            "file" => config::read(file.as_deref().expect("GW_FILE"))?,
            words => parse(words),
        };
        let served: Vec<Interface<'_>> = settings.iter().map(Interface::of).collect();
        let mut daemon = Daemon::serving(&served, None, |notice| eprintln!("{notice}"))?;
        match interfaces {
            "file" => daemon.begin(settings)?,
            _ => settings.into_iter().try_for_each(|settings| daemon.up(settings))?,
        }
        // A daemon that was started again speaks to nobody.
        let _ = std::io::stdout().write_all(b"up\n");
        daemon.run(file)
    };
    if let Err(e) = run() {
        eprintln!("error: {e}");
        std::process::exit(2);
    }
}

fn parse(interfaces: &str) -> Vec<Settings> {
    let one = |text: &str| {
        let (name, words) = text.split_once('=').unwrap();
        let (download, upload) = words.split_once('|').unwrap();
        let config = |words: &str| (!words.is_empty()).then(|| qdisc::parse(words).unwrap());
        let (name, lanes) = name.split_once(" lanes ").unwrap_or((name, "1"));
        let mut settings = Settings::new(name);
        settings.tuning.lanes.count = lanes.parse().unwrap();
        if in_kernel::is_asked() {
            settings.backend = Backend::Kernel;
        }
        settings.download = config(download);
        settings.upload = config(upload);
        settings.control_dir = PathBuf::from(std::env::var_os("GW_CONTROL").unwrap());
        settings.tuning.spin = simnel_core::Span::from_micros(
            std::env::var("GW_SPIN").map_or(0, |s| s.parse().unwrap()),
        );
        settings
    };
    interfaces.trim().split(';').filter(|s| !s.is_empty()).map(one).collect()
}
