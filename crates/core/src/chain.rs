//! A single queue of packets, in a chain of chunks: less to write than an arena's lists, and less
//! memory in use than a ring. With a ring of a long limit a discipline costs twice as much, since
//! each packet goes to memory that no cache knows.
//!
//! Where a discipline has one queue, packets lie side by side in the order of their coming, and
//! need no links. To put in or take out a packet is to advance a counter. When a chunk of `CHUNK`
//! slots is full, another is linked to the chain. When all packets of a chunk are gone, it is put
//! back. The chunk that was put back last is used next, since it is in the cache. So a short queue
//! stays in two of them, however much memory is reserved for a long one.
//!
//! Memory is either reserved at construction, and touched only as it is first used; or it is taken
//! as needed. Then that of the first chunk is reserved, so that some packets need none. That of the
//! second stays once it was needed, and that of others comes and goes. A look beyond the first two
//! is a look into those others.

use alloc::vec::Vec;

use crate::memory::{growing, reserved, Memory, NoMemory, PAGES};
use crate::packet::Packet;
use crate::room;

/// Slots of a chunk: 2 KiB.
const CHUNK: usize = 32;

/// No chunk.
const NIL: usize = usize::MAX;

/// A queue of packets.
///
/// Packets are numbered as they come. Chunks begin with multiples of `CHUNK`, and are known by
/// their numbers in the order in which they were first used.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Slots of the first chunks, as far as they were ever used.
    slots: Vec<Packet>,
    /// The other chunks by number, where memory is taken as needed. Of those that are free, the
    /// next to be used has memory.
    chunks: Vec<Vec<Packet>>,
    /// For each chunk that was ever used, the one behind it in the queue or among those that are
    /// free.
    behind: Vec<usize>,
    /// The free chunk to be used next.
    free: usize,
    /// Packets that ever came, and those of them that went: the numbers of the next to do so.
    came: u64,
    went: u64,
    /// Difference, modulo its range, of a packet's slot and its number: for the chunk of
    /// the first packet and for that of the last. Meaningless while there is no packet.
    front: usize,
    back: usize,
    /// Slots that lie in `slots`, and slots that there may be.
    first: usize,
    capacity: usize,
}

/// Place of packet `number` in its chunk.
#[inline(always)]
fn place(number: u64) -> usize {
    number as usize % CHUNK
}

#[cold]
#[inline(never)]
fn give_memory_back(packets: &mut Vec<Packet>) {
    *packets = Vec::new();
}

impl Chain {
    /// An empty queue with room for `capacity` packets.
    pub fn new(capacity: u32, memory: Memory) -> Result<Chain, NoMemory> {
        // The first packet need not be the first of its chunk.
        let chunks = (capacity as usize).div_ceil(CHUNK) + 1;
        let (first, at_once, others, behind) = match memory {
            Memory::AsNeeded if PAGES => (2, 1, growing(chunks)?, growing(chunks)?),
            _ => (chunks, chunks, Vec::new(), reserved(chunks)?),
        };
        Ok(Chain {
            slots: reserved(at_once * CHUNK)?,
            chunks: others,
            behind,
            free: NIL,
            came: 0,
            went: 0,
            front: 0,
            back: 0,
            first: first * CHUNK,
            capacity: chunks * CHUNK,
        })
    }

    /// Packets held.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        (self.came - self.went) as u32
    }

    /// True if no packet is held.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.came == self.went
    }

    /// Packets that ever came, and those of them that went.
    #[inline(always)]
    pub fn counts(&self) -> (u64, u64) {
        (self.came, self.went)
    }

    /// True if the present chunk has a slot for the next packet.
    #[inline(always)]
    pub fn has_slot(&self) -> bool {
        place(self.came) != 0
    }

    /// Makes sure that there is a slot for the next packet; None if there is no room. Otherwise
    /// gives the number of packets that will ever have come when that slot's chunk is full.
    #[inline]
    pub fn make_room(&mut self) -> Option<u64> {
        if !self.has_slot() {
            self.add_chunk()?;
        }
        Some(self.came + (CHUNK - place(self.came)) as u64)
    }

    /// Puts a copy of `packet` at the end, and gives the copy out to be changed. The chunk that
    /// [`Chain::make_room`] was called for must have a slot left.
    #[inline(always)]
    pub fn push(&mut self, packet: &Packet) -> Option<&mut Packet> {
        let slot = self.back.wrapping_add(self.came as usize);
        let slot = match self.slots.get_mut(slot) {
            Some(slot) => slot,
            None if PAGES => self.chunks.get_mut(slot / CHUNK)?.get_mut(slot % CHUNK)?,
            None => return None,
        };
        self.came += 1;
        *slot = *packet;
        Some(slot)
    }

    #[cold]
    fn add_chunk(&mut self) -> Option<()> {
        let chunk = match self.free {
            NIL => {
                let chunk = self.behind.len();
                if (chunk + 1) * CHUNK > self.capacity {
                    return None;
                }
                self.take_memory(chunk)?;
                room::push(&mut self.behind, NIL)?;
                chunk
            }
            free => {
                self.take_memory(free)?;
                self.free = *self.behind.get(free)?;
                free
            }
        };
        let offset = (chunk * CHUNK).wrapping_sub(self.came as usize - place(self.came));
        if self.is_empty() {
            self.front = offset;
        } else {
            let last = self.back.wrapping_add(self.came as usize - 1);
            *self.behind.get_mut(last / CHUNK)? = chunk;
        }
        self.back = offset;
        Some(())
    }

    /// Sees to it that `chunk` has memory; None if there is none.
    fn take_memory(&mut self, chunk: usize) -> Option<()> {
        let end = (chunk + 1) * CHUNK;
        if end <= self.first {
            while self.slots.len() < end {
                room::push(&mut self.slots, Packet::new(0, 0))?;
            }
            return Some(());
        }
        while self.chunks.len() <= chunk {
            room::push(&mut self.chunks, Vec::new())?;
        }
        let packets = self.chunks.get_mut(chunk)?;
        if packets.is_empty() {
            *packets = reserved(CHUNK).ok()?;
            while packets.len() < CHUNK {
                room::push(packets, Packet::new(0, 0))?;
            }
        }
        Some(())
    }

    /// Takes the first packet and gives it out with its slot, where it lies until the next one is
    /// put in.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(usize, &mut Packet)> {
        if self.is_empty() {
            return None;
        }
        let slot = self.front.wrapping_add(self.went as usize);
        self.went += 1;
        if place(self.went) == 0 {
            self.remove_chunk(slot / CHUNK);
        }
        Some((slot, self.get_mut(slot)?))
    }

    #[inline(always)]
    fn remove_chunk(&mut self, chunk: usize) {
        if let Some(behind) = self.behind.get_mut(chunk) {
            let next = core::mem::replace(behind, self.free);
            if PAGES {
                self.chunks.get_mut(self.free).map(give_memory_back);
            }
            self.free = chunk;
            self.front = next.wrapping_mul(CHUNK).wrapping_sub(self.went as usize);
        }
    }

    /// The packet that was taken last, if none was put in since.
    #[inline(always)]
    pub fn last_taken(&mut self) -> Option<&mut Packet> {
        let slot = match place(self.went) {
            // Its chunk has just been put back.
            0 => self.free.wrapping_mul(CHUNK) + CHUNK - 1,
            _ => self.front.wrapping_add(self.went as usize - 1),
        };
        self.get_mut(slot)
    }

    /// The first packet.
    #[inline(always)]
    pub fn head(&self) -> Option<&Packet> {
        if self.is_empty() {
            return None;
        }
        self.get(self.front.wrapping_add(self.went as usize))
    }

    /// The packet in `slot`, if there is such a slot.
    #[inline(always)]
    pub fn get(&self, slot: usize) -> Option<&Packet> {
        match self.slots.get(slot) {
            Some(packet) => Some(packet),
            None if PAGES => self.chunks.get(slot / CHUNK)?.get(slot % CHUNK),
            None => None,
        }
    }

    /// The packet in `slot`, to be changed in place.
    #[inline(always)]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Packet> {
        match self.slots.get_mut(slot) {
            Some(packet) => Some(packet),
            None if PAGES => self.chunks.get_mut(slot / CHUNK)?.get_mut(slot % CHUNK),
            None => None,
        }
    }

    /// Becomes as large as `spare`, which was never used and becomes what this one was. A chain
    /// that is as large, or too small for what is held, is left alone.
    pub fn take_room(&mut self, spare: &mut Chain) {
        if spare.capacity == self.capacity || spare.capacity < self.len() as usize + CHUNK {
            return;
        }
        if spare.chunks.capacity() > 0 {
            return self.take_table(spare);
        }
        (spare.came, spare.went) = (self.went, self.went);
        if place(self.went) != 0 {
            let added = spare.add_chunk();
            debug_assert!(added.is_some(), "there are two chunks at least");
        }
        while let Some((_, packet)) = self.pop() {
            let moved = spare.make_room().and_then(|_| spare.push(packet));
            debug_assert!(moved.is_some(), "there is room for all");
        }
        core::mem::swap(self, spare);
    }

    /// As [`Chain::take_room`], where packets stay in their chunks.
    fn take_table(&mut self, spare: &mut Chain) {
        self.capacity = spare.capacity;
        room::take_larger(&mut self.behind, &mut spare.behind);
        room::take_larger(&mut self.chunks, &mut spare.chunks);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const MEMORIES: [Memory; 2] = [Memory::Reserved, Memory::AsNeeded];

    /// Fills to `most` and empties to `least` in turns; what goes is what came, in its order.
    fn swing(chain: &mut Chain, model: &mut VecDeque<u64>, least: usize, most: usize) {
        while model.len() < most {
            let handle = chain.counts().0;
            assert!(chain.make_room().unwrap() > handle);
            chain.push(&Packet::new(handle, 64)).unwrap();
            model.push_back(handle);
        }
        while model.len() > least {
            assert_eq!(chain.head().map(|packet| packet.handle), model.front().copied());
            let taken = chain.pop().map(|(_, packet)| packet.handle);
            assert_eq!(taken, model.pop_front());
            assert_eq!(chain.last_taken().map(|packet| packet.handle), taken);
            assert_eq!(chain.len() as usize, model.len());
        }
    }

    #[test]
    fn packets_leave_in_the_order_of_their_coming() {
        for memory in MEMORIES {
            let (mut chain, mut model) = (Chain::new(100, memory).unwrap(), VecDeque::new());
            for (least, most) in [(0, 1), (1, 2), (0, 32), (7, 90), (31, 65), (0, 100), (0, 99)] {
                (0..100).for_each(|_| swing(&mut chain, &mut model, least, most));
            }
            assert!(chain.is_empty() && chain.head().is_none() && chain.pop().is_none());
            let taken = chain.chunks.iter().filter(|packets| !packets.is_empty()).count();
            assert!(taken <= 1, "{taken} chunks for nothing");
        }
    }

    #[test]
    fn a_full_chain_has_no_room() {
        for (memory, capacity) in MEMORIES.into_iter().zip([1, 32, 33, 100].repeat(2)) {
            let mut chain = Chain::new(capacity, memory).unwrap();
            let room = chain.capacity;
            assert!((capacity as usize..capacity as usize + 2 * CHUNK).contains(&room));
            for _ in 0..room {
                assert!(chain.make_room().is_some() && chain.push(&Packet::new(0, 64)).is_some());
            }
            assert!(chain.make_room().is_none() && chain.len() as usize == room, "{capacity}");
        }
    }

    #[test]
    fn a_short_queue_stays_in_two_chunks() {
        let (mut chain, mut model) =
            (Chain::new(10_000, Memory::Reserved).unwrap(), VecDeque::new());
        (0..500).for_each(|_| swing(&mut chain, &mut model, 3, 10));
        assert_eq!(chain.slots.len(), 2 * CHUNK);
    }

    #[test]
    fn packets_move_to_another_capacity() {
        for memory in MEMORIES {
            let (mut chain, mut model) = (Chain::new(40, memory).unwrap(), VecDeque::new());
            for capacity in [50, 20, 300, 17] {
                swing(&mut chain, &mut model, 13, 20);
                chain.take_room(&mut Chain::new(capacity, memory).unwrap());
                swing(&mut chain, &mut model, 0, 17);
            }
            assert!(chain.is_empty());
        }
    }

    #[test]
    fn room_is_taken_where_there_is_more_and_packets_fit() {
        for memory in MEMORIES {
            // So many are held: chunks of 32, of which the first may be begun in the middle.
            for (held, capacity, spare, room) in [
                (20, 40, 300, 11 * CHUNK),
                (20, 300, 40, 3 * CHUNK),
                (0, 40, 64, 3 * CHUNK),
                (64, 300, 40, 3 * CHUNK),
                (65, 300, 40, 11 * CHUNK),
                (64, 300, 70, 4 * CHUNK),
            ] {
                let (mut chain, mut model) =
                    (Chain::new(capacity, memory).unwrap(), VecDeque::new());
                swing(&mut chain, &mut model, 0, 7);
                swing(&mut chain, &mut model, held, held);
                let table = chain.behind.capacity();
                chain.take_room(&mut Chain::new(spare, memory).unwrap());
                assert_eq!(chain.capacity, room, "{held} of {capacity}");
                match memory {
                    Memory::Reserved => assert!(chain.slots.capacity() >= room),
                    // A table in which chunks stay does not shrink.
                    Memory::AsNeeded => assert!(chain.behind.capacity() >= table),
                }
                let full = room - CHUNK + 1;
                swing(&mut chain, &mut model, full.min(room - 7), full.min(room - 7));
                swing(&mut chain, &mut model, 0, 1);
                assert!(chain.is_empty());
            }
        }
    }
}
