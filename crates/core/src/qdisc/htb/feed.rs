//! Classes of `htb` that take turns: a row of a level, or what feeds an inner class.
//!
//! Members stand in the order of their ids. When a class leaves a row, its turn goes to the next at
//! once. In a feed the next is looked for when somebody comes by, as in Linux.

use alloc::vec::Vec;

use crate::memory::{reserved, NoMemory};
use crate::room;
use crate::time::Time;

/// Priorities.
pub(super) const PRIORITIES: usize = 8;

/// Classes that take turns, in the order of their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    pub members: Vec<u16>,
    /// Class whose turn it is.
    pub turn: Option<u16>,
    /// Class that had the turn when it was taken out.
    pub lost: Option<u16>,
}

/// One level.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub rows: [Feed; PRIORITIES],
    /// Rows that are not empty.
    pub mask: u8,
    /// Classes that wait, with the times at which they are looked at; the earliest is the last.
    pub waiting: Vec<(Time, u16)>,
}

impl Feed {
    pub fn with_room(members: usize) -> Result<Feed, NoMemory> {
        Ok(Feed { members: reserved(members)?, turn: None, lost: None })
    }

    pub fn clear(&mut self) {
        self.members.clear();
        (self.turn, self.lost) = (None, None);
    }

    // Each asks first whether it is about the last member, often the only one.

    pub fn insert(&mut self, class: u16) {
        if self.members.last().is_none_or(|last| *last < class) {
            let _ = room::push(&mut self.members, class);
        } else if let Err(at) = self.members.binary_search(&class) {
            let _ = room::insert(&mut self.members, at, class);
        }
    }

    pub fn erase(&mut self, class: u16) {
        if self.members.last() == Some(&class) {
            self.members.pop();
        } else if let Ok(at) = self.members.binary_search(&class) {
            room::remove(&mut self.members, at);
        }
    }

    /// The first member from `class` on.
    pub fn from(&self, class: u16) -> Option<u16> {
        if self.members.last().is_none_or(|last| *last < class) {
            return None;
        }
        self.members.get(self.members.partition_point(|member| *member < class)).copied()
    }

    /// Class whose turn it is, if nothing was lost; the first one after the last.
    #[inline(always)]
    pub fn plain_turn(&mut self) -> Option<u16> {
        if self.lost.is_some() {
            return None;
        }
        if self.turn.is_none() {
            self.turn = self.members.first().copied();
        }
        self.turn
    }

    /// The turn goes to the next; to nobody after the last.
    #[inline]
    pub fn advance(&mut self) {
        self.turn = self.turn.and_then(|class| self.from(class + 1));
    }
}

impl Level {
    /// `class` has packets of priority `prio`.
    #[inline(always)]
    pub fn join(&mut self, prio: usize, class: u16) {
        self.mask |= 1 << prio;
        self.rows[prio % PRIORITIES].insert(class);
    }

    /// `class` has none any more.
    #[inline(always)]
    pub fn leave(&mut self, prio: usize, class: u16) {
        let row = &mut self.rows[prio % PRIORITIES];
        if row.turn == Some(class) {
            row.advance();
        }
        row.erase(class);
        if row.members.is_empty() {
            self.mask &= !(1 << prio);
        }
    }
}
