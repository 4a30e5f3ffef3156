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
