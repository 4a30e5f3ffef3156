//! The longest queue of all tins, for when the buffer overflows.
//!
//! A binary max-heap over all queues by their bytes. Keeping it costs something with each packet,
//! so it is built at the first overflow and kept up only while overflows recur. (Linux gives up
//! after 65535 packets without one.) Between queues of equal length the heap's shape decides. It
//! starts as Linux's does, tin by tin within queue by queue over all eight tins. (Facts A.9.)
//!
//! As in Linux, a queue that has shrunk changes places with the longer of the two below it, if that
//! is longer than itself. It moves on only past queues that are longer than the one just passed, so
//! in general by one level. The top is the longest queue whenever the heap was just built; later it
//! may be merely a long one. If an empty queue is found there, the heap is built anew.
//!
//! With more queues than Linux has, the heap is kept up from the beginning, and in order.

use alloc::boxed::Box;

use super::flows::Flows;
use super::MAX_TINS;
use crate::memory::{filled, NoMemory};
use crate::steps::step;

/// Queues of a tin in Linux. Building a heap over more of them takes too long for one call.
const LINUX_QUEUES: u32 = 1024;

/// Packets sent without an overflow after which the heap is no longer kept up.
const PATIENCE: u32 = 65_535;

/// The heap.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    /// All queues of eight tins by number, each not shorter than the two below it while `patience`
    /// lasts.
    order: Box<[u32]>,
    /// Position of each queue in `order`.
    places: Box<[u32]>,
    patience: u32,
    /// Kept up from the beginning.
    is_kept: bool,
}

impl Heap {
    /// Price of keeping the heap up after a packet has gone: its levels, or nearly so.
    pub(super) const STEPS: u32 = 10;

    /// A heap over `queues` queues of each of eight tins.
    #[inline(never)]
    pub(super) fn new(queues: u32) -> Result<Heap, NoMemory> {
        let all = queues as usize * MAX_TINS;
        let mut heap = Heap {
            order: filled(all, 0)?,
            places: filled(all, 0)?,
            patience: 0,
            is_kept: queues > LINUX_QUEUES,
        };
        heap.clear();
        Ok(heap)
    }

    /// Begins as new.
    pub(super) fn clear(&mut self) {
        self.patience = u32::from(self.is_kept);
        let (tins, all) = (MAX_TINS as u32, self.order.len() as u32);
        for (index, flow_index) in (0..).zip(&mut self.order) {
            *flow_index = index % tins * (all / tins) + index / tins;
            if let Some(place) = self.places.get_mut(*flow_index as usize) {
                *place = index;
            }
        }
    }

    /// The longest queue. Builds the heap if it was not kept up.
    pub(super) fn longest(&mut self, flows: &Flows) -> u32 {
        if self.patience == 0 {
            for place in (0..self.order.len() / 2).rev() {
                self.sift_down(place, flows);
            }
        }
        self.patience = PATIENCE;
        self.order.first().copied().unwrap_or(0)
    }

    /// The queue at the top turned out to be empty: build the heap anew at the next need.
    pub(super) fn distrust(&mut self) {
        self.patience = 0;
    }

    /// Queues were filled behind its back: one that is kept up is built at once.
    pub(super) fn renew(&mut self, flows: &Flows) {
        if self.is_kept {
            self.distrust();
            self.longest(flows);
        }
    }

    /// The queue has grown.
    #[inline]
    pub(super) fn grown(&mut self, flow_index: u32, flows: &Flows) {
        if self.patience > 0 {
            self.rise(flow_index, flows);
        }
    }

    /// The queue has shrunk.
    #[inline]
    pub(super) fn shrunk(&mut self, flow_index: u32, flows: &Flows) {
        if self.patience > 0 {
            self.sink(flow_index, flows);
        }
    }

    /// The queue has sent a packet.
    #[inline(always)]
    pub(super) fn sent(&mut self, flow_index: u32, flows: &Flows) {
        if self.patience > 0 {
            self.sink(flow_index, flows);
            self.patience = (self.patience - 1).max(u32::from(self.is_kept));
        }
    }

    #[inline(never)]
    fn rise(&mut self, flow_index: u32, flows: &Flows) {
        self.sift_up(self.place(flow_index), flows);
    }

    #[inline(never)]
    fn sink(&mut self, flow_index: u32, flows: &Flows) {
        self.sift_down(self.place(flow_index), flows);
    }

    fn place(&self, flow_index: u32) -> usize {
        self.places.get(flow_index as usize).map_or(0, |&place| place as usize)
    }

    #[inline(always)]
    fn backlog(&self, place: usize, flows: &Flows) -> u32 {
        // Tins that are not in use have no queues.
        let flow = self.order.get(place).and_then(|&index| flows.get(index));
        flow.map_or(0, |flow| flow.backlog)
    }

    fn sift_down(&mut self, mut place: usize, flows: &Flows) {
        let own = self.backlog(place, flows);
        let mut most = own;
        loop {
            let mut largest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                let backlog = self.backlog(child, flows);
                if backlog > most {
                    (largest, most) = (child, backlog);
                }
            }
            if largest == place {
                return;
            }
            self.swap(place, largest);
            place = largest;
            if self.is_kept {
                most = own;
            }
        }
    }

    fn sift_up(&mut self, mut place: usize, flows: &Flows) {
        let own = self.backlog(place, flows);
        while place > 0 {
            let parent = (place - 1) / 2;
            if own <= self.backlog(parent, flows) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        if self.patience > 0 {
            step();
        }
        let (Some(&at_a), Some(&at_b)) = (self.order.get(a), self.order.get(b)) else { return };
        for (place, flow_index) in [(a, at_b), (b, at_a)] {
            if let Some(entry) = self.order.get_mut(place) {
                *entry = flow_index;
            }
            if let Some(entry) = self.places.get_mut(flow_index as usize) {
                *entry = place as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A heap over eight tins of so many queues, and queues of random lengths.
    fn filled_with(queues: u32, seed: u64) -> (Heap, Flows, Random) {
        let mut flows = Flows::new(MAX_TINS, queues).unwrap();
        let mut random = Random::new(seed);
        flows.queues.iter_mut().for_each(|flow| flow.backlog = 1 + random.below(1_000_000));
        (Heap::new(queues).unwrap(), flows, random)
    }

    fn most(flows: &Flows) -> u32 {
        flows.queues.iter().map(|flow| flow.backlog).max().unwrap()
    }

    fn longest(heap: &mut Heap, flows: &Flows) -> u32 {
        let index = heap.longest(flows);
        flows.get(index).map_or(0, |flow| flow.backlog)
    }

    #[test]
    fn a_heap_that_was_just_built_has_the_longest_queue_on_top() {
        for seed in 0..50 {
            let (mut heap, flows, _) = filled_with(8, seed);
            assert_eq!(longest(&mut heap, &flows), most(&flows));
        }
    }

    #[test]
    fn a_heap_that_is_kept_up_from_the_beginning_is_in_order() {
        let (mut heap, mut flows, mut random) = filled_with(2 * LINUX_QUEUES, 3);
        heap.renew(&flows);
        let all = flows.queues.len() as u32;
        for step in 0..3_000 {
            let index = if step % 2 == 0 { heap.longest(&flows) } else { random.below(all) };
            let before = flows.queues[index as usize].backlog;
            let after = random.below(1_000_000);
            flows.queues[index as usize].backlog = after;
            match (after > before, step % 3) {
                (true, _) => heap.grown(index, &flows),
                (false, 0) => heap.shrunk(index, &flows),
                (false, _) => heap.sent(index, &flows),
            }
            assert_eq!(longest(&mut heap, &flows), most(&flows), "step {step}");
        }
        // Whatever is sent.
        (0..PATIENCE + 9).for_each(|_| heap.sent(0, &flows));
        assert_eq!(heap.patience, 1);
    }

    #[test]
    fn queues_that_grow_rise_and_those_that_shrink_sink() {
        let (mut heap, mut flows, _) = filled_with(8, 4);
        let top = heap.longest(&flows);
        let other = (top + 9) % 64;
        flows.queues[other as usize].backlog = 2_000_000;
        heap.grown(other, &flows);
        assert_eq!(heap.longest(&flows), other);
        flows.queues[other as usize].backlog = 0;
        heap.shrunk(other, &flows);
        assert_eq!(heap.longest(&flows), top);
        flows.queues[top as usize].backlog = 0;
        heap.sent(top, &flows);
        assert_ne!(heap.longest(&flows), top);
        // Found empty: built anew.
        heap.distrust();
        assert_eq!(longest(&mut heap, &flows), most(&flows));
    }

    #[test]
    fn a_heap_is_kept_up_only_while_overflows_recur() {
        for (sent, is_kept) in [(PATIENCE - 1, true), (PATIENCE, false)] {
            let (mut heap, mut flows, _) = filled_with(8, 5);
            let top = heap.longest(&flows);
            (0..sent).for_each(|_| heap.sent(top, &flows));
            let order = heap.order.clone();
            // One that has grown behind its back is found by building anew only.
            let other = (top + 9) % 64;
            flows.queues[other as usize].backlog = 2_000_000;
            assert_eq!(heap.longest(&flows) == top, is_kept, "{sent}");
            assert_eq!(heap.order == order, is_kept);
        }
        // Until the first overflow it costs nothing, and starts in Linux's order.
        let (mut heap, flows, _) = filled_with(8, 5);
        let order = heap.order.clone();
        assert_eq!(order[..3], [0, 8, 16]);
        heap.grown(63, &flows);
        heap.shrunk(0, &flows);
        heap.sent(0, &flows);
        heap.renew(&flows);
        assert!(heap.order == order && heap.patience == 0);
    }
}
