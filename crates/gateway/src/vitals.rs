//! Signs of life, in memory that supervisor, daemon and guard share.
//!
//! Each thread that matters counts its turns here; whoever watches compares two looks. A count that
//! stays the same over several looks means a thread without progress. Plain stores and loads: no
//! thread waits for another, and a watcher that is stopped meanwhile has only fewer looks.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::direction::Direction;
use crate::sys::{self, ZeroIsValid};

/// Interfaces of one daemon.
pub(crate) const SLOTS: usize = 31;
/// Lanes of a direction at most.
pub(crate) const MOST_LANES: usize = 4;
/// Lanes of an interface at most: two directions.
pub(crate) const SLOT_LANES: usize = 2 * MOST_LANES;
/// Lanes of all interfaces.
const LANES: usize = SLOT_LANES * SLOTS;
/// A thread of the data path takes a turn at least so often, idle or not.
pub(crate) const BEAT: simnel_core::Span = simnel_core::Span::from_millis(100);

/// Signs of life of one data-path thread; a cache line of its own.
#[repr(align(64))]
pub(crate) struct Lane {
    turns: AtomicU32,
    /// The kernel's number of the last packet that was received.
    last_id: AtomicU32,
}

/// The shared memory. All zero is the state before anything has happened.
pub(crate) struct Board {
    /// Turns of the daemon's main loop.
    pub(crate) daemon: AtomicU32,
    /// Turns of the guard.
    pub(crate) guard: AtomicU32,
    /// 1 if the guard was refused real-time priority.
    pub(crate) guard_refused: AtomicU32,
    /// The lane that made the guard step in, counted from 1; 0 for none.
    pub(crate) hung: AtomicU32,
    lanes: [Lane; LANES],
}

// SAFETY: atomic integers only.
unsafe impl ZeroIsValid for Board {}

impl Board {
    /// Memory that processes forked from now on share, until the last of them ends.
    pub(crate) fn shared() -> std::io::Result<&'static Board> {
        sys::shared_memory::<Board>()
    }

    /// One lane.
    pub(crate) fn lane(&self, index: usize) -> &Lane {
        &self.lanes[index]
    }
}

impl Lane {
    /// Another turn, with all verdicts given.
    pub(crate) fn progress(&self, last_id: u32) {
        self.last_id.store(last_id, Ordering::Relaxed);
        self.turns.store(self.turns().wrapping_add(1), Ordering::Relaxed);
    }

    /// Turns so far.
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }

    /// The kernel's number of the last packet that was received.
    pub(crate) fn last_id(&self) -> u32 {
        self.last_id.load(Ordering::Relaxed)
    }
}

/// Place of a direction's lane on the board.
pub(crate) fn lane_index(slot: usize, direction: Direction, number: usize) -> usize {
    SLOT_LANES * slot + MOST_LANES * usize::from(direction == Direction::Upload) + number
}

/// The slot and the direction whose lane has that place.
pub(crate) fn whose_lane(index: usize) -> (usize, Direction) {
    let direction = match index % SLOT_LANES / MOST_LANES {
        0 => Direction::Download,
        _ => Direction::Upload,
    };
    (index / SLOT_LANES, direction)
}

/// A count that is looked at now and then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pulse {
    seen: u32,
    /// Looks since it last changed.
    pub(crate) still: u32,
}

impl Pulse {
    /// Begins with a count that was just seen to be alive.
    pub(crate) fn new(seen: u32) -> Pulse {
        Pulse { seen, still: 0 }
    }

    /// Another look; says how many in a row saw the same.
    pub(crate) fn look(&mut self, count: u32) -> u32 {
        self.still = if count == self.seen { self.still + 1 } else { 0 };
        self.seen = count;
        self.still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pulse_counts_looks_without_change() {
        let mut pulse = Pulse::new(7);
        assert_eq!([7, 7, 8, 8, 9].map(|count| pulse.look(count)), [1, 2, 0, 1, 0]);
    }

    #[test]
    fn every_lane_of_every_interface_has_a_place_of_its_own() {
        let board = Board::shared().unwrap();
        for slot in 0..SLOTS {
            for direction in Direction::BOTH {
                for number in 0..MOST_LANES {
                    let index = lane_index(slot, direction, number);
                    assert_eq!(whose_lane(index), (slot, direction));
                    let lane = board.lane(index);
                    assert_eq!(lane.turns(), 0);
                    lane.progress(9);
                    assert_eq!((lane.turns(), lane.last_id()), (1, 9));
                }
            }
        }
    }
}
