//! The control socket and the files beside it, against those who mean harm.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use simnel_gateway::control::{socket_path, Client};
use simnel_gateway::daemon::MAX_CONNECTIONS;

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

/// Supervisor, guard and daemon keep three capabilities; the daemon's threads are confined further.
pub fn privileges_are_given_up() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    assert_eq!(world.client("wan0").show().unwrap().len(), 2);
    let supervisor = world.daemon.as_ref().unwrap().id().to_string();
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    let children = std::fs::read_to_string(children).unwrap();
    const NET_ADMIN: u64 = 1 << 12;
    const AT_START: u64 = NET_ADMIN | 1 << 14 | 1 << 23;
    let (mut data_path, mut control) = (0, 0);
    for pid in [supervisor.as_str()].into_iter().chain(children.split_whitespace()) {
        for (name, value) in of_threads(pid, "CapPrm") {
            let capabilities = u64::from_str_radix(&value, 16).unwrap();
            let threads = name.starts_with("simnel-up") || name.starts_with("simnel-down");
            data_path += usize::from(threads);
            let most = if threads { NET_ADMIN } else { AT_START };
            assert_eq!(capabilities & !most, 0, "{pid} {name}: {value}");
        }
        assert!(of_threads(pid, "NoNewPrivs").iter().all(|(_, value)| value == "1"));
        let filtered = of_threads(pid, "Seccomp");
        control += filtered.iter().filter(|(_, value)| value == "2").count();
    }
    assert_eq!((data_path, control), (2, 3), "threads of the data path; threads with a filter");
    world.stop();
}
