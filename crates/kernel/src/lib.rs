//! The core as a Linux kernel module calls it: C functions around one discipline.
//!
//! The C side (`kernel/`) owns the packets, the clock, the lock and netlink sockets; here are the
//! disciplines. A packet's handle is the address of its `sk_buff`, which is never looked into. C
//! calls `simnel_enqueue` and the rest with the discipline's lock held, except
//! where a function says otherwise.
//!
//! All unsafe code of the module's Rust part is in this crate. Pointers from C are trusted: both
//! sides are one module. Bytes of packets and of netlink messages are not.
//!
//! Built for the kernel (`target_os = "none"`) it stands alone, with the kernel's allocator;
//! elsewhere it is an ordinary library, so that its functions can be tested.

#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

mod arrival;
mod below;
mod host;
mod inspect;
mod line;
mod parallel;
#[cfg(target_os = "none")]
mod runtime;
mod settings;
mod shown;
#[cfg(test)]
mod tests;
mod waits;

pub use arrival::{Arrival, Translation, Unusual};
pub use inspect::Hashes;
pub use line::{Line, Surroundings};
