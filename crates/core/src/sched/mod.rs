//! Scheduling: whom to serve next.
//!
//! One family, deficit round robin (Shreedhar and Varghese 1995), in the forms that disciplines
//! need. Each is a few rules over lists of flows ([`active`], [`rotation`]) and one [`Account`] in
//! each flow:
//!
//! * [`drr`]: two forms. As published, a packet is sent once its flow has saved up for it. In the
//!   other a flow may run into debt by one packet, which needs no look at the packet;
//! * [`sparse`]: DRR++, where flows without a standing queue go first;
//!   its debts, where they are many, wait in a [`wheel`];
//! * [`savings`]: DRR-LDS, where empty queues save up, too.
//!
//! [`scheduler`] is their one interface, and [`sharing`] either of two. [`ways`] finds the queue of
//! a user. `parallel` makes several schedulers, each on a core of its own, share as one.

use links::{Linked, Links};

use crate::rate::ByteTime;

pub mod active;
pub mod drr;
pub mod links;
#[cfg(target_has_atomic = "64")]
pub mod parallel;
pub mod rotation;
pub mod savings;
pub mod scheduler;
pub mod sharing;
pub mod sparse;
mod sweep;
pub mod ways;
pub mod wheel;

/// Longest packet that is paid for in full. A length beyond that is a mistake of the packet's
/// owner, and must not keep a scheduler busy for seconds.
pub const MOST_BYTES: u32 = ByteTime::MOST_BYTES;

/// Largest quantum that is paid in full, and most savings: their sum fits an `i32`.
const MOST_QUANTUM: u32 = 1 << 30;

/// List of its scheduler that a flow stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Standing {
    /// None.
    #[default]
    Idle,
    /// Limited deficit savings: empty, with full savings.
    Fresh,
    /// CAKE's DRR++: empty, kept until its AQM's state has come to rest.
    Decaying,
    /// CAKE's DRR++: among the old flows for its deficit to be paid, but empty since.
    Waiting,
    /// DRR++: flows that had been idle.
    New,
    /// DRR++: flows that have used a quantum up. Also the only list of plain DRR.
    Old,
    /// Limited deficit savings: the first packet can be paid for.
    Eligible,
    /// Limited deficit savings: all others.
    Collecting,
}

/// A scheduler's record of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    links: Links,
    /// Bytes that the flow may send; below zero it is in debt.
    pub deficit: i32,
    /// The list that it stands in.
    pub standing: Standing,
    /// Part of a quantum that it gets in a round, of 65536: kept in [`parallel`] queues only.
    pub weight: u16,
}

/// A flow that can be scheduled.
pub trait Scheduled {
    /// Its account.
    fn account(&mut self) -> &mut Account;
}

impl Standing {
    /// True if any flow may take the queue over.
    #[inline(always)]
    pub fn is_free(self) -> bool {
        self as u8 <= Standing::Fresh as u8
    }
}

impl<F: Scheduled> Linked for F {
    #[inline]
    fn links(&mut self) -> &mut Links {
        &mut self.account().links
    }
}

impl Account {
    /// The flow of `flows` whose turn comes after this one's.
    #[inline(always)]
    pub fn upcoming<'a, F>(&self, flows: &'a [F]) -> Option<&'a F> {
        flows.get(self.links.next() as usize)
    }

    /// Its neighbours in the list where it stands.
    #[inline(always)]
    pub fn links(&self) -> Links {
        self.links
    }

    /// Adds a quantum, to what does not suffice for a packet.
    #[inline]
    pub fn credit(&mut self, quantum: u32) {
        self.deficit += quantum.min(MOST_QUANTUM) as i32;
    }

    /// Takes the bytes of a packet that was sent.
    #[inline]
    pub fn charge(&mut self, len: u32) {
        self.deficit = self.deficit.saturating_sub_unsigned(len.min(MOST_BYTES));
    }

    /// True if a packet of `len` bytes can be paid for.
    #[inline]
    pub fn covers(&self, len: u32) -> bool {
        i64::from(len.min(MOST_BYTES)) <= i64::from(self.deficit)
    }

    /// Starts anew with one quantum.
    #[inline]
    pub fn open(&mut self, quantum: u32) {
        self.deficit = 0;
        self.credit(quantum);
    }
}

#[cfg(test)]
mod tests;
