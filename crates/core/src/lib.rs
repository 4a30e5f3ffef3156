//! Queue disciplines, active queue management, shapers and schedulers as pure state machines.
//!
//! Time is passed in, never read; packets are 64-byte descriptors ([`Packet`]) whose bytes stay
//! with their owner; nothing allocates after construction. Every discipline is driven through
//! [`qdisc::Qdisc`] and nothing else, by the live gateway and by the simulator alike.
//!
//! No standard library (only `alloc`, for construction), no dependencies, no unsafe code, no
//! floats.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod aqm;
pub mod arena;
pub mod dscp;
pub mod flow;
pub mod framing;
pub mod packet;
pub mod printable;
pub mod qdisc;
pub mod random;
pub mod rate;
pub mod sched;
pub mod shaper;
pub mod steps;
pub mod tc;
pub mod tick;
pub mod time;
pub mod wire;

pub use packet::Packet;
pub use qdisc::Qdisc;
pub use rate::Rate;
pub use time::{Span, Time};
