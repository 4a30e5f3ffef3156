//! Rotations: circles of flows in the order in which they will be served.
//!
//! The links live in the flows, so moving a flow from one rotation to another costs no memory and
//! touches only its neighbours. The circle is closed: the turn passes to the next flow by moving
//! one index, and no flow. A flow is in at most one rotation; who keeps the flow knows which.

use super::active::Turns;
use super::links::{known, Linked, Links, NIL};

/// A circle of flows, by index into the slice that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    first: u32,
}

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation { first: NIL }
    }
}

impl Turns for Rotation {
    #[inline(always)]
    fn first(&self) -> Option<u32> {
        known(self.first)
    }

    #[inline(always)]
    fn head<'a, F>(&self, flows: &'a mut [F]) -> Option<(u32, &'a mut F)> {
        Some((self.first, flows.get_mut(self.first as usize)?))
    }

    #[inline]
    fn push<F: Linked>(&mut self, flows: &mut [F], flow: u32) {
        let mut own = Links { previous: flow, next: flow };
        match flows.get_mut(self.first as usize) {
            None => self.first = flow,
            Some(first) => {
                let last = core::mem::replace(&mut first.links().previous, flow);
                if let Some(last) = flows.get_mut(last as usize) {
                    last.links().next = flow;
                }
                own = Links { previous: last, next: self.first };
            }
        }
        if let Some(flow) = flows.get_mut(flow as usize) {
            *flow.links() = own;
        }
    }

    #[inline]
    fn pop<F: Linked>(&mut self, flows: &mut [F]) {
        if let Some(first) = self.first() {
            self.remove(flows, first);
        }
    }

    #[inline(always)]
    fn rotate<F: Linked>(&mut self, flows: &mut [F]) {
        if let Some(first) = flows.get_mut(self.first as usize) {
            self.first = first.links().next;
        }
    }

    fn append<F: Linked>(&mut self, flows: &mut [F], list: Rotation) {
        let (Some(first), Some(other)) = (self.first(), list.first()) else {
            if self.is_empty() {
                *self = list;
            }
            return;
        };
        let Some(head) = flows.get_mut(first as usize) else { return };
        let last = head.links().previous;
        let Some(head) = flows.get_mut(other as usize) else { return };
        let end = core::mem::replace(&mut head.links().previous, last);
        for (before, after) in [(last, other), (end, first)] {
            if let Some(flow) = flows.get_mut(before as usize) {
                flow.links().next = after;
            }
        }
        if let Some(head) = flows.get_mut(first as usize) {
            head.links().previous = end;
        }
    }
}

impl Rotation {
    /// All flows, the one whose turn it is first. `next` gives the flow after one.
    pub fn iter(self, next: impl Fn(u32) -> Option<u32>) -> impl Iterator<Item = u32> {
        let first = self.first();
        core::iter::successors(first, move |&flow| next(flow).filter(|&flow| first != Some(flow)))
    }

    /// Puts `flow`, which must be in no rotation, before all others.
    #[inline]
    pub fn push_front<F: Linked>(&mut self, flows: &mut [F], flow: u32) {
        self.push(flows, flow);
        self.first = flow;
    }

    /// Puts the first flow at the end, as [`Turns::rotate`] does: `next` is the one after it.
    #[inline(always)]
    pub fn pass_to(&mut self, next: u32) {
        self.first = next;
    }

    /// Takes `flow`, which must be in this rotation, out of it.
    #[inline]
    pub fn remove<F: Linked>(&mut self, flows: &mut [F], flow: u32) {
        let Some(own) = flows.get_mut(flow as usize) else { return };
        let Links { previous, next } = *own.links();
        if next == flow {
            // Alone.
            self.first = NIL;
            return;
        }
        if let Some(flow) = flows.get_mut(previous as usize) {
            flow.links().next = next;
        }
        if let Some(flow) = flows.get_mut(next as usize) {
            flow.links().previous = previous;
        }
        if self.first == flow {
            self.first = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Flow;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn goes_round_from_the_first_and_takes_others_up_behind_the_last() {
        for (one, other, all) in [(0, 0, 0), (0, 2, 2), (3, 0, 3), (1, 1, 2), (3, 2, 5), (2, 3, 5)]
        {
            let mut flows = std::vec![Flow::default(); 5];
            let (mut rotation, mut second) = (Rotation::default(), Rotation::default());
            (0..one).for_each(|flow| rotation.push(&mut flows, flow));
            (one..all).for_each(|flow| second.push(&mut flows, flow));
            rotation.append(&mut flows, second);
            let order = |rotation: Rotation, flows: &[Flow]| {
                let links: Vec<u32> =
                    flows.iter().map(|flow| flow.account.links().next()).collect();
                rotation.iter(|flow| links.get(flow as usize).copied()).collect::<Vec<_>>()
            };
            assert_eq!(order(rotation, &flows), Vec::from_iter(0..all), "{one} {other}");
            if all > 1 {
                rotation.pass_to(1);
                assert_eq!(order(rotation, &flows), Vec::from_iter((1..all).chain([0])));
                rotation.rotate(&mut flows);
                assert_eq!(rotation.first(), Some(2 % all));
            }
        }
    }

    #[test]
    fn keeps_order_through_removals() {
        let mut flows = std::vec![Flow::default(); 5];
        let mut rotation = Rotation::default();
        for flow in 0..5 {
            rotation.push(&mut flows, flow);
        }
        rotation.remove(&mut flows, 2);
        rotation.remove(&mut flows, 4);
        rotation.remove(&mut flows, 0);
        rotation.push_front(&mut flows, 2);
        rotation.rotate(&mut flows);
        rotation.rotate(&mut flows);
        rotation.rotate(&mut flows);
        rotation.rotate(&mut flows);
        let mut order = Vec::new();
        while let Some(first) = rotation.first() {
            rotation.remove(&mut flows, first);
            order.push(first);
        }
        assert_eq!(order, [1, 3, 2]);
        assert!(rotation.is_empty());
    }
}
