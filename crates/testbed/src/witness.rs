//! The machine's load, seen from outside of what is measured: for tests that measure a gateway.
//!
//! A measurement that a busy machine spoilt says nothing, and one that a slow gateway spoilt says
//! everything. So nothing here comes from the gateway:
//!
//! * threads of their own, one on each core and above the data path, see whether timers are late;
//! * one as the sending and receiving hosts' threads are sees how long those are held up;
//! * the kernel's accounts say how much of the processor others had, that is, neither this process
//!   nor any that it started, nor the kernel's threads.
//!
//! Time that the gateway itself wastes is no excuse: hosts that it holds up count only where others
//! had their part in it.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// Above the data path's 2, below the guard's 99.
const PRIORITY: u8 = 3;
/// Time between a witness's wake-ups.
const EVERY: Duration = Duration::from_millis(2);
/// A wake-up later than this is late: a shaper's rate pays for it.
const LATE: Duration = Duration::from_millis(1);
/// Lateness of a host's thread before it counts as held up: senders have data for longer.
const HOST_LATE: Duration = Duration::from_millis(5);
/// Share of the time beyond which hosts were held up for too long.
const HELD_UP: f64 = 0.005;
/// Shares of one core beyond which others had too much of it, or the hypervisor had.
const OTHERS: f64 = 0.2;
const STOLEN: f64 = 0.02;

/// Watches from [`Witness::start`] to [`Witness::testify`].
pub struct Witness {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Lateness>>,
    host: JoinHandle<Lateness>,
    before: Accounts,
    start: Instant,
}

/// Findings of a witness.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Testimony {
    /// Seconds that were watched.
    pub seconds: f64,
    /// Wake-ups that came a millisecond too late, on any core.
    pub late: u64,
    /// The latest wake-up.
    pub latest: Duration,
    /// Share of the time by which wake-ups were too late, on the core where it was most.
    pub lost: f64,
    /// Share of the time that hosts were held up.
    pub held_up: f64,
    /// Cores that others used on average.
    pub others: f64,
    /// Cores that the hypervisor kept from this machine on average.
    pub stolen: f64,
}

impl Testimony {
    /// True if the machine may be the cause of a missed figure. That is: more than one timer in two
    /// seconds was late, the hypervisor took too much, or others held the hosts up.
    pub fn machine_was_busy(&self) -> bool {
        let late = self.late as f64 * 2.0 > self.seconds;
        late || self.stolen > STOLEN || self.held_up > HELD_UP && self.others > OTHERS
    }

    /// Share of the time that the machine may have kept from a thread, at most.
    pub fn taken(&self) -> f64 {
        self.lost.max(self.stolen)
    }
}

/// Outcome of an attempt to reach a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Try {
    /// It was reached.
    Holds,
    /// It was missed.
    Misses,
    /// It was missed, and the machine was too busy to tell why.
    Unclear,
}

/// Attempts until one holds: three at most, four with those that a busy machine spoilt. False if
/// all misses but one are the machine's: nothing is proven then.
///
/// # Panics
/// The figure was missed twice or more, and never reached.
pub fn within_tries(what: &str, mut attempt: impl FnMut() -> Try) -> bool {
    let mut misses = 0;
    for number in 1..=4 {
        let result = attempt();
        println!("{what}: try {number}: {result:?}");
        match result {
            Try::Holds => return true,
            Try::Misses => misses += 1,
            Try::Unclear => {}
        }
        if misses == 3 {
            break;
        }
    }
    assert!(misses < 2, "{what}: missed in each try that tells, with the figures above");
    false
}

impl fmt::Display for Testimony {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in {:.1} s {} timers over 1 ms late (at most {} µs, {:.2} % of the time), hosts held \
             up for {:.2} %, others had {:.2} cores, the hypervisor {:.2}: the machine was {}",
            self.seconds,
            self.late,
            self.latest.as_micros(),
            self.lost * 100.0,
            self.held_up * 100.0,
            self.others,
            self.stolen,
            if self.machine_was_busy() { "busy" } else { "quiet" }
        )
    }
}

impl Witness {
    /// Begins to watch. Without the right to SCHED_FIFO, late timers say less.
    pub fn start() -> Witness {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let watch = |core| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                // Anywhere is better than nowhere, and late timers say something in any case.
                let _ = in_real_time_on(core, PRIORITY);
                watch_for(LATE, &stop)
            })
        };
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| cores.is_set(core));
        let threads = cores.map(watch).collect();
        let host = Arc::clone(&stop);
        let host = thread::spawn(move || watch_for(HOST_LATE, &host));
        Witness { stop, threads, host, before: Accounts::read(), start: Instant::now() }
    }

    /// Ends it, and says what was seen.
    pub fn testify(self) -> Testimony {
        let seconds = self.start.elapsed().as_secs_f64();
        let after = Accounts::read();
        self.stop.store(true, Ordering::Relaxed);
        let mut seen = Lateness::default();
        for lateness in self.threads.into_iter().filter_map(|thread| thread.join().ok()) {
            seen.late += lateness.late;
            seen.latest = seen.latest.max(lateness.latest);
            seen.beyond = seen.beyond.max(lateness.beyond);
        }
        let host = self.host.join().unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second() as f64 * seconds;
        let all = after.used.saturating_sub(self.before.used);
        let ours = after.ours_since(&self.before);
        Testimony {
            seconds,
            late: seen.late,
            latest: seen.latest,
            lost: seen.beyond.as_secs_f64() / seconds,
            held_up: host.beyond.as_secs_f64() / seconds,
            others: all.saturating_sub(ours) as f64 / ticks,
            stolen: after.stolen.saturating_sub(self.before.stolen) as f64 / ticks,
        }
    }
}

/// Binds the calling thread to a core and gives it SCHED_FIFO of so high a priority, by util-linux'
/// `chrt`. False without the right to that.
#[must_use]
pub fn in_real_time_on(core: usize, priority: u8) -> bool {
    let mut only = CpuSet::new();
    only.set(core);
    let bound = sched_setaffinity(None, &only).is_ok();
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["--fifo", "--reset-on-fork", "--pid", &priority.to_string(), &thread]);
    bound && chrt.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[derive(Default)]
struct Lateness {
    late: u64,
    latest: Duration,
    /// Sum of what was beyond the limit.
    beyond: Duration,
}

/// Notes wake-ups of the calling thread that come later than `limit`.
fn watch_for(limit: Duration, stop: &AtomicBool) -> Lateness {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut seen = Lateness::default();
    while !stop.load(Ordering::Relaxed) {
        let before = Instant::now();
        thread::sleep(EVERY);
        let late = before.elapsed().saturating_sub(EVERY);
        seen.late += u64::from(late > limit);
        seen.latest = seen.latest.max(late);
        seen.beyond += late.saturating_sub(limit);
    }
    seen
}

/// Processor time in ticks, from the machine's start.
#[derive(Default)]
struct Accounts {
    /// Of all processes: user, nice and system time.
    used: u64,
    stolen: u64,
    /// Of each process that is ours, with those of its children that have ended.
    ours: BTreeMap<u32, u64>,
    /// Of each thread of the kernel's.
    kernel: BTreeMap<u32, u64>,
}

/// The process whose children are the kernel's threads.
const KTHREADD: u32 = 2;

impl Accounts {
    fn read() -> Accounts {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let all: Vec<u64> = stat.lines().next().map(numbers).unwrap_or_default();
        let of = |index: usize| all.get(index).copied().unwrap_or(0);
        let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((pid, Process::read(pid)?))
        });
        let processes: BTreeMap<u32, Process> = processes.collect();
        let descend_from = |eldest: u32| -> BTreeMap<u32, u64> {
            let descends = |pid: u32| {
                let ancestors = std::iter::successors(Some(pid), |pid| {
                    processes.get(pid).map(|process| process.parent).filter(|&parent| parent > 0)
                });
                ancestors.take(64).any(|pid| pid == eldest)
            };
            let family = processes.iter().filter(|(&pid, _)| descends(pid));
            family.map(|(&pid, process)| (pid, process.used)).collect()
        };
        Accounts {
            used: of(0) + of(1) + of(2),
            stolen: of(7),
            ours: descend_from(std::process::id()),
            kernel: descend_from(KTHREADD),
        }
    }

    /// Processor time of ours and the kernel's. A process that was not there before counts from its
    /// own start. The time of one of ours that has ended has become its parent's; that of a thread
    /// of the kernel's is nobody's.
    fn ours_since(&self, before: &Accounts) -> u64 {
        let sum = |accounts: &Accounts| accounts.ours.values().sum::<u64>();
        let kernel = self.kernel.iter().map(|(pid, used)| {
            used.saturating_sub(before.kernel.get(pid).copied().unwrap_or_default())
        });
        sum(self).saturating_sub(sum(before)) + kernel.sum::<u64>()
    }
}

struct Process {
    parent: u32,
    used: u64,
}

impl Process {
    fn read(pid: u32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything. After it: state, parent, … and from the
        // twelfth on user and system time, those of ended children likewise.
        let rest = numbers(&stat[stat.rfind(')')? + 1..]);
        Some(Process { parent: *rest.first()? as u32, used: rest.get(10..14)?.iter().sum() })
    }
}

/// The numbers of a line, words that are none left out.
fn numbers(line: &str) -> Vec<u64> {
    // Negative ones have to keep their places.
    let number = |word: &str| word.parse::<i64>().ok().map(|n| n.max(0) as u64);
    line.split_whitespace().filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use rustix::time::{clock_gettime, ClockId};

    use super::*;

    fn work(time: Duration) {
        let used = || {
            let used = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
        };
        let start = used();
        while used() - start < time {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn what_this_process_uses_is_not_what_others_have() {
        let before = Accounts::read();
        work(Duration::from_millis(300));
        let after = Accounts::read();
        // A tick is 10 ms.
        let ours = after.ours_since(&before);
        assert!(ours >= 28, "{ours} ticks of 300 ms");
        // Processes are asked after the machine: what they use meanwhile is in its next account.
        let all = Accounts::read().used - before.used;
        assert!(all + 3 >= ours, "{ours} ticks of {all} were ours");
    }

    #[test]
    fn a_thread_of_the_kernels_that_ends_takes_nothing_away() {
        let accounts = |ours: &[(u32, u64)], kernel: &[(u32, u64)]| {
            let [ours, kernel] = [ours, kernel].map(|all| all.iter().copied().collect());
            Accounts { ours, kernel, ..Accounts::default() }
        };
        let before = accounts(&[(100, 7), (101, 5)], &[(8, 3), (9, 5_000)]);
        let after = accounts(&[(100, 20), (102, 1)], &[(8, 4), (10, 2)]);
        assert_eq!(after.ours_since(&before), 9 + 3);
    }

    #[test]
    fn what_a_stranger_uses_is_seen_and_what_a_child_uses_is_ours() {
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let before = Accounts::read();
        let mut child = std::process::Command::new("sh").args(["-c", spin]).spawn().unwrap();
        child.wait().unwrap();
        let after = Accounts::read();
        assert!(after.ours_since(&before) > 5, "a child that has ended is forgotten");
        // Whose parent is not ours any more: it was left to the first process.
        let orphan = format!("({spin}) & echo $!");
        let before = Accounts::read();
        let output = std::process::Command::new("sh").args(["-c", &orphan]).output().unwrap();
        let after = Accounts::read();
        assert!(output.status.success());
        let others = (after.used - before.used).saturating_sub(after.ours_since(&before));
        assert!(others > 5, "{others} ticks were a stranger's");
    }

    #[test]
    fn a_figure_is_missed_if_it_was_missed_twice_and_never_reached() {
        let judge = |tries: &[Try]| {
            let mut tries = tries.iter();
            let judge = || within_tries("a figure", || *tries.next().expect("no further try"));
            let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(judge));
            judged.map_err(|why| why.downcast_ref::<String>().expect("a text").clone())
        };
        use Try::{Holds, Misses, Unclear};
        assert_eq!(judge(&[Misses, Unclear, Misses, Holds]), Ok(true));
        assert_eq!(judge(&[Unclear, Unclear, Misses, Unclear]), Ok(false));
        for missed in [&[Misses, Unclear, Unclear, Misses][..], &[Misses, Misses, Misses]] {
            assert!(judge(missed).is_err_and(|why| why.starts_with("a figure: missed")));
        }
    }

    #[test]
    fn busy_is_said_of_late_timers_and_of_what_others_take_from_hosts() {
        let quiet = Testimony { seconds: 5.0, late: 2, ..Testimony::default() };
        assert!(!quiet.machine_was_busy());
        assert!(Testimony { late: 3, ..quiet }.machine_was_busy());
        let held_up = Testimony { held_up: 0.1, ..quiet };
        assert!(!held_up.machine_was_busy(), "held up by nobody but ours");
        assert!(Testimony { others: 0.3, ..held_up }.machine_was_busy());
        assert!(Testimony { stolen: 0.1, ..quiet }.machine_was_busy());
    }
}
