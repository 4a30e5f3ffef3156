//! Memory that is short: the kernel kills the daemon in its control group.

use std::fs::{read_to_string, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cases::not_run;
use crate::cgroups::Group;
use crate::hangs::survives_in;
use crate::world::World;

/// More than a daemon's own; less than what the group's other program wants.
const LIMIT: u64 = 32 << 20;

/// A group of either version with a limit of memory, and its file of events.
struct Limited {
    group: Group,
    events: &'static str,
}

impl Limited {
    /// None where no group can have a limit.
    fn make() -> Option<Limited> {
        let name = format!("simnel-memory-{}", std::process::id());
        let mounts = read_to_string("/proc/self/mounts").unwrap();
        let first = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| {
            words[2] == "cgroup" && words[3].split(',').any(|option| option == "memory")
        });
        let (root, events, limits) = match first {
            Some(words) => {
                let limits = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
                (PathBuf::from(words[1]), "memory.oom_control", limits)
            }
            None => {
                let root = Group::root()?;
                write(root.join("cgroup.subtree_control"), "+memory").ok()?;
                (root, "memory.events", ["memory.max", "memory.swap.max"])
            }
        };
        std::fs::create_dir(root.join(&name)).ok()?;
        let group = Group(root.join(name));
        write(group.0.join(limits[0]), LIMIT.to_string()).ok()?;
        // Not everywhere is swap counted; then none is likely to be there.
        let _ = write(group.0.join(limits[1]), LIMIT.to_string());
        Some(Limited { group, events })
    }

    fn take(&self, process: u32) {
        write(self.group.0.join("cgroup.procs"), process.to_string()).unwrap();
    }

    /// Processes that the kernel has killed here.
    fn killed(&self) -> u64 {
        let events = read_to_string(self.group.0.join(self.events)).unwrap();
        let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.expect("a counter of kills").parse().unwrap()
    }

    /// Has the kernel kill `daemon`, beside a program that fills the group.
    fn starve(&self, daemon: i32, time: Duration) {
        let begin = Instant::now();
        println!("  the daemon's {}", locked(daemon));
        self.take(daemon as u32);
        // It goes first, however large the other is.
        write(format!("/proc/{daemon}/oom_score_adj"), "1000").unwrap();
        let line = format!("read go; head -c {} /dev/zero | tail -c {0}", 4 * LIMIT);
        let mut filling = Command::new("sh")
            .args(["-c", &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.take(filling.id());
        // What it waits for ends.
        drop(filling.stdin.take());
        while Path::new(&format!("/proc/{daemon}/exe")).exists() {
            assert!(begin.elapsed() < Duration::from_secs(10), "the daemon lives");
            std::thread::sleep(Duration::from_millis(5));
        }
        filling.wait().unwrap();
        println!("  killed for memory: {}, after {:?}", self.killed(), begin.elapsed());
        assert!(self.killed() >= 1, "by somebody else");
        std::thread::sleep(time.saturating_sub(begin.elapsed()));
    }
}

/// The line of /proc about memory that is never swapped out.
fn locked(process: i32) -> String {
    let status = read_to_string(format!("/proc/{process}/status")).unwrap();
    status.lines().find(|line| line.starts_with("VmLck")).unwrap_or("VmLck unknown").to_owned()
}

pub fn a_daemon_killed_for_memory_lets_traffic_pass() {
    let Some(limited) = Limited::make() else {
        return not_run("no control group can have a limit of memory here");
    };
    survives_in(World::new(), 1, |daemon, time| limited.starve(daemon, time));
}
