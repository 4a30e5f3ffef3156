//! Search for the queue with most bytes, for disciplines that take from the longest of many.
//!
//! Up to [`PER_LOOP`] queues are looked at one by one when the question comes. For more, a
//! tournament is kept: a binary tree over the queues, each node with the larger weight of its two
//! children. A change costs a step for each level. Answers are the same.

use alloc::boxed::Box;

use super::store::Queue;
use crate::memory::{filled, NoMemory};
use crate::steps::{step, PER_LOOP};

/// Knows the longest of some queues.
#[derive(Clone, Debug)]
pub(crate) struct Longest {
    queues: u32,
    /// Weights: of the root at 1, of the children of node n at 2n and 2n + 1. None for few queues.
    tree: Option<Box<[u64]>>,
}

/// A packet may have no bytes, but not be overlooked for that.
fn weight(queue: &Queue) -> u64 {
    if queue.is_empty() {
        0
    } else {
        queue.bytes + 1
    }
}

impl Longest {
    /// For so many queues, all empty.
    pub fn of(queues: u32) -> Result<Longest, NoMemory> {
        let nodes = 2 * queues.next_power_of_two() as usize;
        let tree = if queues > PER_LOOP { Some(filled(nodes, 0)?) } else { None };
        Ok(Longest { queues, tree })
    }

    /// For so many queues, which are looked at one by one however many they are.
    pub fn searched(queues: u32) -> Longest {
        Longest { queues, tree: None }
    }

    /// All queues are empty.
    pub fn clear(&mut self) {
        self.tree.iter_mut().for_each(|tree| tree.fill(0));
    }

    /// Steps that [`Longest::changed`] takes at most.
    pub fn cost(&self) -> u32 {
        self.tree.as_ref().map_or(0, |tree| tree.len().checked_ilog2().unwrap_or(0))
    }

    /// The queue of number `index` has got or lost packets. `queue` gives it.
    #[inline(always)]
    pub fn changed<'a>(&mut self, index: u32, queue: impl FnOnce(u32) -> Option<&'a Queue>) {
        if let Some(tree) = &mut self.tree {
            play(tree, index, queue(index).map_or(0, weight));
        }
    }

    /// The number of the queue with most bytes; None if all are empty. Of several, the first from
    /// number `start` on, where the first queue follows the last. `queue` gives a queue by its
    /// number.
    #[cold]
    pub fn from<'a>(&self, start: u32, queue: impl Fn(u32) -> Option<&'a Queue>) -> Option<u32> {
        let start = if start < self.queues { start } else { 0 };
        if let Some(tree) = &self.tree {
            return winner_from(tree, start);
        }
        let (mut most, mut found) = (0, None);
        for range in [start..self.queues, 0..start] {
            for index in range {
                step();
                let weight = queue(index).map_or(0, weight);
                if weight > most {
                    (most, found) = (weight, Some(index));
                }
            }
        }
        found
    }
}

/// Sets the weight of queue `index`, and those above it as far as they change. Cold, for those that
/// have few queues.
#[cold]
#[inline(never)]
fn play(tree: &mut [u64], index: u32, weight: u64) {
    let mut larger = weight;
    let mut node = tree.len() / 2 + index as usize;
    let Some(leaf) = tree.get_mut(node) else { return };
    *leaf = larger;
    while node > 1 {
        step();
        larger = tree.get(node ^ 1).map_or(larger, |sibling| larger.max(*sibling));
        node /= 2;
        match tree.get_mut(node) {
            Some(parent) if *parent != larger => *parent = larger,
            _ => return,
        }
    }
}

/// The first queue from `start` on with the weight of the root; before `start` if there is none.
/// None if all are empty.
fn winner_from(tree: &[u64], start: u32) -> Option<u32> {
    let (&most, leaves) = (tree.get(1)?, tree.len() / 2);
    if most == 0 {
        return None;
    }
    let mut node = leaves + start as usize;
    // Up to the first subtree from there on with a winner, and round to the whole tree behind the
    // last one.
    while *tree.get(node)? != most {
        step();
        while node & 1 == 1 && node > 1 {
            node /= 2;
        }
        node = if node == 1 { 1 } else { node + 1 };
    }
    while node < leaves {
        step();
        node *= 2;
        node += usize::from(*tree.get(node)? != most);
    }
    Some((node - leaves) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::packet::Packet;
    use crate::qdisc::store::Store;
    use crate::qdisc::{Discard, DropReason};
    use crate::random::Random;
    use crate::time::Time;
    use std::vec::Vec;

    /// Winners alone, in pairs and at both ends; whoever asks starts there, around, and behind.
    #[test]
    fn a_tournament_finds_the_first_winner_from_anywhere() {
        let mut store: Store = Store::new(10, Memory::Reserved).unwrap();
        let (mut one, none) = (Queue::default(), Queue::default());
        store.insert(&mut one, &Packet::new(0, 500), Time::ZERO);
        for winners in [&[0][..], &[1_024], &[7, 8], &[0, 511, 512, 1_024], &[255, 1_023]] {
            let all = |index| Some(if winners.contains(&index) { &one } else { &none });
            for queues in [1_025, 2_048] {
                let mut longest = Longest::of(queues).unwrap();
                (0..queues).for_each(|index| longest.changed(index, all));
                let starts = [0, 1, 6, 7, 8, 9, 254, 255, 256, 510, 511, 512, 513, 1_023, 1_024];
                for start in starts.into_iter().chain([queues]) {
                    let behind = winners.iter().find(|winner| **winner >= start);
                    let found = longest.from(start, all);
                    assert_eq!(found, behind.or(winners.first()).copied(), "{winners:?} {start}");
                }
            }
        }
        assert_eq!((Longest::of(1_024).unwrap().cost(), Longest::searched(5_000).cost()), (0, 0));
    }

    #[test]
    fn a_tournament_finds_what_a_search_finds() {
        for queues in [1_025, 1_500, 4_096] {
            let mut random = Random::new(queues.into());
            let mut store: Store = Store::new(100_000, Memory::Reserved).unwrap();
            let mut all: Vec<Queue> = std::vec![Queue::default(); queues as usize];
            let mut longest = Longest::of(queues).unwrap();
            let search = Longest { queues, tree: None };
            assert!(longest.tree.is_some());
            for _ in 0..500 {
                let index = random.below(queues);
                let queue = &mut all[index as usize];
                if random.below(3) > 0 {
                    // Few lengths, so that many queues are equally long; one is of no bytes.
                    store.insert(queue, &Packet::new(0, random.below(3) * 500), Time::ZERO);
                } else {
                    store.drop_first(queue, DropReason::Overlimit, &mut Discard);
                }
                longest.changed(index, |_| Some(&*queue));
                let start = random.below(queues);
                let found = |longest: &Longest| longest.from(start, |n| all.get(n as usize));
                assert_eq!(found(&longest), found(&search));
            }
            crate::steps::take();
            longest.changed(7, |_| all.get(7));
            // A tree of 2,048 or 4,096 leaves; each level at most once, and as far as it changes.
            let levels = if queues > 2_048 { 12 } else { 11 };
            assert_eq!(u64::from(longest.cost()), levels + 1);
            assert!(crate::steps::take() <= levels);
            longest.from(7, |n| all.get(n as usize));
            assert!(crate::steps::take() < 64);
            longest.clear();
            assert_eq!(longest.from(7, |n| all.get(n as usize)), None);
        }
    }
}
