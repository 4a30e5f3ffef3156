//! TCP endpoints that behave as Linux's, without sockets, clocks or bytes.
//!
//! An [`Endpoint`] is one end of a connection. It is told of segments that arrive, of time that
//! passes and of what the application writes. It is asked for segments to send and for the time of
//! its next timer. Segments are numbers ([`Segment`]): headers in full, payload as a length.
//!
//! The model covers what shapes queues: SACK recovery with PRR and RACK-TLP, delayed
//! acknowledgements, window growth and validation, receive-window autotuning, and ECN. Congestion
//! controls stand behind one trait (`congestion`).
//!
//! Two ends without a network between them: what one gives out, the other gets.
//!
//! ```
//! use simnel_core::Time;
//! use simnel_tcp::{Config, Endpoint, State};
//!
//! let [mut here, mut there] = [(); 2].map(|()| Endpoint::new(&Config::default()));
//! let now = Time(1);
//! there.listen();
//! here.connect(now);
//! here.write(100_000);
//! for _ in 0..100 {
//!     while let Some(segment) = here.poll_transmit(now) {
//!         there.on_segment(&segment, now);
//!     }
//!     while let Some(segment) = there.poll_transmit(now) {
//!         here.on_segment(&segment, now);
//!     }
//! }
//! assert_eq!((here.state(), there.state()), (State::Established, State::Established));
//! assert!(there.received() > 10_000);
//! ```
//!
//! No standard library (only `alloc`), no unsafe code, no floats. Nothing allocates once the
//! rings have grown to the window.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod clock;
pub mod config;
mod congestion;
pub mod endpoint;
mod gro;
pub mod path;
mod ranges;
mod receiver;
pub mod segment;
mod sender;
pub mod state;
mod windowed;

pub use clock::Now;
pub use config::{Config, CongestionControl, EcnMode, Pacing, SlowStartExit};
pub use endpoint::Endpoint;
pub use path::Path;
pub use segment::{Segment, TcpFlags};
pub use state::{Events, State, Stats};
