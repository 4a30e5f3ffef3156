//! A deterministic packet-level simulator of a home's bottleneck.
//!
//! [`Setup`] says what is to be simulated, [`Run`] simulates it from a seed, [`Results`] is what it
//! showed. The disciplines are the core's, driven through the same trait as in the gateway; TCP is
//! `simnel-tcp`. Same set-up, same seed: the same results to the last bit, on every machine.
//!
//! The way of a packet: an endpoint sends it (`network`) into the pipe of its host (`pipe`), which
//! leads to the bottleneck: discipline and line (`line`); from there through the pipe of the other
//! host to the other endpoint. While it is under way it is a slot of the `pool`. Nothing allocates
//! per packet, and only the head of each pipe has an event (`event`).

#![forbid(unsafe_code)]

pub mod apps;
pub mod capture;
mod distribution;
mod draw;
mod event;
mod flow;
mod line;
mod network;
mod pipe;
mod pool;
mod record;
mod results;
mod run;
pub mod schedule;
pub mod setup;

pub use apps::over_time::Moment;
pub use apps::Outcome;
pub use distribution::Distribution;
pub use flow::{TcpTotals, WindowSample};
pub use pool::Fates;
pub use results::{Conservation, FlowResult, LineResult, Results};
pub use run::{start_time, Run};
pub use setup::{Direction, Kind, Setup, SetupError, Traffic};
