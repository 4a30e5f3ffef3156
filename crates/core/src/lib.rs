//! Queue disciplines, active queue management, shapers and schedulers as pure state machines.
//!
//! Time is passed in, never read; packets are 64-byte descriptors ([`Packet`]) whose bytes stay
//! with their owner; nothing allocates after construction. Every discipline is driven through
//! [`qdisc::Qdisc`] and nothing else, by the live gateway and by the simulator alike.
//!
//! ```
//! use simnel_core::qdisc::{build, parse, Device, Discard};
//! use simnel_core::{Packet, Time};
//!
//! let mut cake = build(&parse("cake bandwidth 1mbit")?, &Device::default())?;
//! cake.enqueue(&Packet::new(7, 1514), Time::ZERO, &mut Discard);
//! cake.enqueue(&Packet::new(8, 1514), Time::ZERO, &mut Discard);
//! assert_eq!(cake.dequeue(Time::ZERO, &mut Discard).map(|packet| packet.handle), Some(7));
//! // The second has to wait for 12 ms, the first one's time on the line.
//! assert!(cake.dequeue(Time::ZERO, &mut Discard).is_none());
//! let due = cake.next_event().expect("a packet waits");
//! assert_eq!(due.0 / 1_000_000, 12);
//! assert_eq!(cake.dequeue(due, &mut Discard).map(|packet| packet.handle), Some(8));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! No standard library (only `alloc`, for construction) and no unsafe code. No floats but to read
//! and print numbers as C does (`tc`'s words). No dependencies but, if asked for, `serde`, for
//! statistics.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod aqm;
pub mod arena;
pub mod chain;
pub mod dscp;
pub mod flow;
pub mod framing;
pub mod memory;
pub mod netlink;
pub mod packet;
pub mod printable;
pub mod qdisc;
pub mod random;
pub mod rate;
mod room;
pub mod sched;
pub mod shaper;
pub mod sojourns;
pub mod steps;
pub mod tc;
pub mod tick;
pub mod time;
mod wide;
pub mod wire;

pub use packet::Packet;
pub use qdisc::Qdisc;
pub use rate::Rate;
pub use time::{Span, Time};
