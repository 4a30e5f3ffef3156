//! Measuring a line as its user feels it: latency idle and under load, throughput, loss, a grade.
//!
//! [`measure`] runs the client: an echo every 20 ms without a pause, and beside it nothing, then
//! downloads, uploads, both. The peer is [`server::Server`] (`simnel serve --test`), or one of the
//! public kinds: irtt for echoes, iperf3 for load. [`wire`] has our own protocol. A second echo, to
//! the default gateway, tells what of the delay arises at home (WiFi) from what the line adds.
//!
//! Needs no privileges. Threads and blocking sockets: a test has a dozen of each.
//!
//! ```
//! use simnel_measure::server::{Limits, Server};
//! use simnel_measure::{measure, Options, Peer, Way};
//! use std::time::Duration;
//!
//! let server = Server::bind(([127, 0, 0, 1], 0).into(), None, Limits::default())?;
//! let address = server.address();
//! std::thread::spawn(move || server.run());
//! let mut options = Options::new(Peer::simnel(address));
//! (options.idle, options.ramp, options.load) =
//!     (Duration::from_millis(200), Duration::from_millis(100), Duration::from_millis(200));
//! options.ways = vec![Way::Down];
//! let report = measure(&options, &mut |_| {})?;
//! assert!(report.phases[0].download_mbit.unwrap() > 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod checksum;
mod client;
mod error;
pub mod grade;
pub mod icmp;
pub mod irtt;
pub mod report;
pub mod server;
mod way;
pub mod wire;

pub use client::{idle_delay, iperf3, measure, Options, Peer, Progress};
pub use error::Error;
pub use grade::Grade;
pub use report::Report;
pub use way::Way;
