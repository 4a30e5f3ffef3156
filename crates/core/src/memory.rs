//! Memory of any size, or an error: what is large is allocated here and nowhere else.
//!
//! A kernel gives small pieces to whoever can wait for them, and refuses large ones when memory is
//! short. So all that grows with settings is asked for in a way that can be refused, and
//! [`build`](crate::qdisc::build) fails where it is.

use alloc::boxed::Box;
use alloc::collections::{TryReserveError, VecDeque};
use alloc::vec::Vec;

/// Time at which memory for packets is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// At construction, for all packets that the limits allow: nothing allocates later.
    #[default]
    Reserved,
    /// As packets come, and given back as they go. When there is none, the queue counts as full.
    /// Only with the feature `pages`; else all is reserved.
    AsNeeded,
}

/// Memory can be taken as needed. Where it never is, no access looks whether it was.
pub(crate) const PAGES: bool = cfg!(feature = "pages");

/// An allocation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

impl From<TryReserveError> for NoMemory {
    fn from(_: TryReserveError) -> NoMemory {
        NoMemory
    }
}

/// `count` times `value`.
pub fn filled<T: Clone>(count: usize, value: T) -> Result<Box<[T]>, NoMemory> {
    let mut all = reserved(count)?;
    all.resize(count, value);
    Ok(all.into_boxed_slice())
}

/// Nothing, with room for `count`.
pub fn reserved<T>(count: usize) -> Result<Vec<T>, NoMemory> {
    let mut room = Vec::new();
    room.try_reserve_exact(count)?;
    Ok(room)
}

/// Entries of a table for which there is room at first, and up to which it grows.
const FEW: usize = 8;
const MANY: usize = 512;

/// A table of pages that come as needed: nothing, with room for few of `count`. It grows with use;
/// where that would move more than can be moved at once, there is room for all.
pub(crate) fn growing<T>(count: usize) -> Result<Vec<T>, NoMemory> {
    reserved(if count > MANY { count } else { count.min(FEW) })
}

/// A queue of nothing, with room for `count`.
pub fn reserved_queue<T>(count: usize) -> Result<VecDeque<T>, NoMemory> {
    let mut room = VecDeque::new();
    room.try_reserve_exact(count)?;
    Ok(room)
}

/// A copy of `all`.
pub fn copied<T: Clone>(all: &[T]) -> Result<Vec<T>, NoMemory> {
    let mut copy = reserved(all.len())?;
    copy.extend_from_slice(all);
    Ok(copy)
}
