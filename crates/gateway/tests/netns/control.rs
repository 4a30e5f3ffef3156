//! The control socket and the files beside it, against those who mean harm.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use simnel_gateway::control::{socket_path, Client};
use simnel_gateway::daemon::MAX_CONNECTIONS;

use crate::cases::not_run;
use crate::hangs::{family_where, kill};
use crate::world::World;

/// Clients that ask and never read, and such that never ask: others are answered all the same.
pub fn deaf_clients_keep_nobody_waiting() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let path = socket_path(&world.control, "wan0");
    let requests = b"{\"cmd\":\"show\"}\n".repeat(4_000);
    let deaf: Vec<UnixStream> = (0..MAX_CONNECTIONS * 2)
        .map(|number| {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            if number % 2 == 0 {
                let _ = stream.write_all(&requests);
            }
            stream
        })
        .collect();
    for _ in 0..5 {
        let start = Instant::now();
        let shown = Client::connect(&world.control, "wan0").and_then(|mut client| client.show());
        let time = start.elapsed();
        println!("  beside {} deaf clients, `show` took {time:?}", deaf.len());
        assert_eq!(shown.unwrap().len(), 2);
        assert!(time < Duration::from_secs(1), "`show` took {time:?}");
    }
    world.stop();
}

/// The value of `key` that the kernel tells of each thread of a process.
fn of_threads(pid: &str, key: &str) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .map(|task| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let value = |key: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(key));
                line.unwrap().trim_start_matches(':').trim().to_owned()
            };
            (value("Name"), value(key))
        })
        .collect()
}

/// Supervisor, guard and daemon keep two capabilities and a filter; the guard and the daemon's data
/// threads are confined further. Memory is locked all the same. So it is when the supervisor has
/// started both again.
pub fn privileges_are_given_up() {
    if !std::fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp_filters:") {
        return not_run("this kernel has no filters of system calls (CONFIG_SECCOMP_FILTER)");
    }
    for locked in [false, true] {
        let mut world = World::new();
        let text = format!(
            "control_dir = \"{}\"\n[[interface]]\nname = \"wan0\"\ndownload = \"20mbit\"\n\
             upload = \"8mbit\"\nlock_memory = {locked}\n",
            world.control.display()
        );
        std::fs::write(world.file(), text).unwrap();
        let mut command = world.daemon_command(&["file"], &world.control);
        world.daemon = Some(command.spawn().unwrap());
        let is_there = |guard| world.serves("wan0") && is_confined(&world, guard);
        let (daemon, guard) = family_where(&world, |(_, guard)| is_there(guard));
        assert_confined(&world, (daemon, guard), locked);
        kill(daemon, libc::SIGKILL);
        let is_new = |(new, other)| new != daemon && other != guard && is_there(other);
        let family = family_where(&world, is_new);
        assert_confined(&world, family, locked);
        world.stop();
    }
}

/// True once the guard has filters of its own, its last act, beside those of the family.
fn is_confined(world: &World, guard: i32) -> bool {
    let supervisor = world.daemon.as_ref().unwrap().id() as i32;
    let [of_family, all] = [supervisor, guard].map(|process| {
        let (_, filters) = of_threads(&process.to_string(), "Seccomp_filters").remove(0);
        filters.parse::<u32>().unwrap()
    });
    all == of_family + 2
}

fn assert_confined(world: &World, (daemon, guard): (i32, i32), locked: bool) {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_NICE: u64 = 1 << 23;
    const IPC_LOCK: u64 = 1 << 14;
    let supervisor = world.daemon.as_ref().unwrap().id() as i32;
    let limits = std::fs::read_to_string(format!("/proc/{supervisor}/limits")).unwrap();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    // Where the limit could not be lifted, whoever is to lock memory, or starts such, needs more.
    let to_lock = if limit.unwrap().trim().starts_with("unlimited") { 0 } else { IPC_LOCK };
    let mut data_path = 0;
    for process in [supervisor, daemon, guard] {
        let pid = process.to_string();
        for (name, value) in of_threads(&pid, "CapPrm") {
            let capabilities = u64::from_str_radix(&value, 16).unwrap();
            let threads = name.starts_with("simnel-up") || name.starts_with("simnel-down");
            data_path += usize::from(threads);
            let most = match () {
                () if process == guard => NET_ADMIN,
                () if threads => NET_ADMIN | if locked { to_lock } else { 0 },
                () if process == daemon && !locked => NET_ADMIN | SYS_NICE,
                () => NET_ADMIN | SYS_NICE | to_lock,
            };
            assert_eq!(capabilities & !most, 0, "{pid} {name}: {value}");
        }
        for (key, expected) in [("NoNewPrivs", "1"), ("Seccomp", "2")] {
            for (name, value) in of_threads(&pid, key) {
                assert_eq!(value, expected, "{key} of {pid} {name}");
            }
        }
    }
    assert_eq!(data_path, 2, "threads of the data path");
    for (process, expected) in [(daemon, locked), (guard, true)] {
        let (_, locked) = of_threads(&process.to_string(), "VmLck").remove(0);
        let kilobytes: u64 = locked.trim_end_matches(" kB").parse().unwrap();
        assert_eq!(kilobytes > 1_000, expected, "{process} has locked {locked}");
    }
}
