//! A deterministic packet-level simulator of a home's bottleneck.
//!
//! [`Setup`] says what is to be simulated, [`Run`] simulates it from a seed, [`Results`] is what it
//! showed. The disciplines are the core's, driven through the same trait as in the gateway; TCP is
//! `simnel-tcp`. Same set-up, same seed: the same results to the last bit, on every machine.
//!
//! The way of a packet: an endpoint sends it (`network`) into the pipe of its host (`pipe`). That
//! leads to the bottleneck: discipline and line (`line`). From there it goes through the pipe of
//! the other host to the other endpoint. While it is under way it is a slot of the `pool`. Nothing
//! allocates per packet, and only the head of each pipe has an event (`event`).
//!
//! A home's ping through two FIFOs of 10 Mbit/s, 25 ms to the other end and back:
//!
//! ```
//! use simnel_core::{qdisc, Rate, Span};
//! use simnel_sim::setup::{Access, Host, LineSetup, Recording};
//! use simnel_sim::{Direction, Kind, Run, Setup, Traffic};
//!
//! let config = qdisc::parse("pfifo limit 100").expect("words of pfifo");
//! let line = LineSetup::wire(config, Some(Rate::from_bits(10_000_000)));
//! let half = Access { delay: Span::from_micros(12_500), rate: None };
//! let near = Access::default();
//! let ping = Kind::Ping { size: 64, interval: Span::from_millis(100), icmp: true };
//! let setup = Setup {
//!     duration: Span::from_secs(2),
//!     warmup: Span::ZERO,
//!     lines: [line.clone(), line],
//!     hosts: vec![
//!         Host { address: [10, 0, 1, 1], home: true, egress: near, ingress: near },
//!         Host { address: [10, 0, 2, 1], home: false, egress: half, ingress: half },
//!     ],
//!     traffic: vec![Traffic::one("ping", ping, Direction::Up)],
//!     recording: Recording::default(),
//! };
//! let results = Run::new(&setup, 1)?.finish();
//! assert!(results.conservation.holds());
//! assert_eq!(results.hash, Run::new(&setup, 1)?.finish().hash);
//! # Ok::<(), simnel_sim::SetupError>(())
//! ```

#![forbid(unsafe_code)]

pub mod apps;
pub mod capture;
mod distribution;
mod draw;
mod event;
mod flow;
mod line;
mod memory;
mod network;
mod pipe;
mod pool;
mod record;
mod results;
mod run;
pub mod schedule;
pub mod setup;
pub mod tandem;

pub use apps::over_time::Moment;
pub use apps::ping::PATIENCE;
pub use apps::Outcome;
pub use distribution::Distribution;
pub use flow::{TcpTotals, WindowSample};
pub use memory::Memory;
pub use network::Waiting;
pub use pool::Fates;
pub use results::{Conservation, FlowResult, LineResult, Results};
pub use run::{start, Run};
pub use setup::{Direction, Kind, Setup, SetupError, Traffic};
