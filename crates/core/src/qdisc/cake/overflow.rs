//! The longest queue of all tiers, for when the buffer overflows.
//!
//! A binary max-heap over all queues by their bytes. Keeping it costs something with each packet,
//! so it is built at the first overflow and kept up only while overflows recur (Linux gives up
//! after 65535 packets without one). Between queues of equal length the heap's shape decides; it
//! starts as Linux's does, tier by tier within queue by queue over all eight tiers. (Facts A.9.)
//!
//! As in Linux, a queue that has shrunk moves down only until the first queue that is no longer
//! than what it has just let pass, in general one level. So the top is the longest queue whenever
//! the heap was just built, and later may be merely a long one; an empty one there makes the heap
//! be built anew.

use alloc::boxed::Box;
use alloc::vec;

use super::flows::Flows;
use crate::tc::stats::MAX_TINS;

/// Packets sent without an overflow after which the heap is no longer kept up.
const PATIENCE: u32 = 65_535;

/// The heap.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    /// Queues by tier and number within it, each not shorter than the two below it while
    /// `patience` lasts.
    order: Box<[(u8, u32)]>,
    /// Where each queue stands in `order`: index is queue * MAX_TINS + tier.
    places: Box<[u32]>,
    patience: u32,
}

impl Heap {
    /// A heap over `queues` queues of each of eight tiers.
    pub(super) fn new(queues: u32) -> Heap {
        let all = queues as usize * MAX_TINS;
        let mut heap = Heap {
            order: vec![(0, 0); all].into_boxed_slice(),
            places: vec![0; all].into_boxed_slice(),
            patience: 0,
        };
        heap.clear();
        heap
    }

    /// Begins as new.
    pub(super) fn clear(&mut self) {
        self.patience = 0;
        for (index, (queue, place)) in (0..).zip(self.order.iter_mut().zip(&mut self.places)) {
            *queue = ((index % MAX_TINS as u32) as u8, index / MAX_TINS as u32);
            *place = index;
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
        let (tin, queue) = self.order[0];
        flows.base(usize::from(tin)) + queue
    }

    /// The queue at the top turned out to be empty: build the heap anew at the next need.
    pub(super) fn distrust(&mut self) {
        self.patience = 0;
    }

    /// `queue` has grown.
    #[inline]
    pub(super) fn grown(&mut self, queue: u32, flows: &Flows) {
        if self.patience > 0 {
            self.rise(queue, flows);
        }
    }

    /// `queue` has shrunk.
    #[inline]
    pub(super) fn shrunk(&mut self, queue: u32, flows: &Flows) {
        if self.patience > 0 {
            self.sink(queue, flows);
        }
    }

    /// `queue` has sent a packet.
    #[inline(always)]
    pub(super) fn sent(&mut self, queue: u32, flows: &Flows) {
        if self.patience > 0 {
            self.sink(queue, flows);
            self.patience -= 1;
        }
    }

    #[inline(never)]
    fn rise(&mut self, queue: u32, flows: &Flows) {
        self.sift_up(self.place(queue, flows), flows);
    }

    #[inline(never)]
    fn sink(&mut self, queue: u32, flows: &Flows) {
        self.sift_down(self.place(queue, flows), flows);
    }

    fn place(&self, queue: u32, flows: &Flows) -> usize {
        self.places[flows.within_tin(queue) as usize * MAX_TINS + flows.tin_of(queue)] as usize
    }

    fn backlog(&self, place: usize, flows: &Flows) -> u32 {
        let (tin, queue) = self.order[place];
        let queue = flows.base(usize::from(tin)) + queue;
        flows.queues.get(queue as usize).map_or(0, |flow| flow.backlog)
    }

    fn sift_down(&mut self, mut place: usize, flows: &Flows) {
        let mut most = self.backlog(place, flows);
        loop {
            let mut largest = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.order.len() && self.backlog(child, flows) > most {
                    (largest, most) = (child, self.backlog(child, flows));
                }
            }
            if largest == place {
                return;
            }
            self.swap(place, largest);
            place = largest;
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
        self.order.swap(a, b);
        for place in [a, b] {
            let (tin, queue) = self.order[place];
            self.places[queue as usize * MAX_TINS + usize::from(tin)] = place as u32;
        }
    }
}
