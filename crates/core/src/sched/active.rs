//! Active lists: flows with packets in the order of their turns, as deficit round robin keeps them.
//!
//! Flows join at the end and are served at the front. Only the first one ever leaves, so a flow is
//! linked to the one behind it and to no other. A turn costs half the stores that a
//! [`Rotation`](super::rotation::Rotation) needs, from whose middle flows may leave at any time.

use super::links::{known, Linked, NIL};

/// Flows in the order of their turns, by index into the slice that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveList {
    first: u32,
    /// The last flow; meaningless while the list is empty.
    last: u32,
}

impl Default for ActiveList {
    fn default() -> ActiveList {
        ActiveList { first: NIL, last: NIL }
    }
}

/// Flows that take turns: what a scheduler asks of a list.
pub trait Turns: Copy + Default {
    /// The flow whose turn it is.
    fn first(&self) -> Option<u32>;

    /// The same with its number; none either if `flows` has none of that number.
    fn head<'a, F>(&self, flows: &'a mut [F]) -> Option<(u32, &'a mut F)>;

    /// True if no flow is waiting.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Puts `flow`, which must be in no list, at the end.
    fn push<F: Linked>(&mut self, flows: &mut [F], flow: u32);

    /// Takes the first flow out, if there is one.
    fn pop<F: Linked>(&mut self, flows: &mut [F]);

    /// Puts the first flow, if there is one, at the end.
    fn rotate<F: Linked>(&mut self, flows: &mut [F]);

    /// Puts all flows of `list`, which must not be used any more, at the end.
    fn append<F: Linked>(&mut self, flows: &mut [F], list: Self);
}

impl Turns for ActiveList {
    #[inline(always)]
    fn first(&self) -> Option<u32> {
        known(self.first)
    }

    #[inline(always)]
    fn head<'a, F>(&self, flows: &'a mut [F]) -> Option<(u32, &'a mut F)> {
        // One comparison: `NIL` is out of range.
        Some((self.first, flows.get_mut(self.first as usize)?))
    }

    #[inline(always)]
    fn push<F: Linked>(&mut self, flows: &mut [F], flow: u32) {
        match self.first {
            NIL => self.first = flow,
            _ => {
                if let Some(last) = flows.get_mut(self.last as usize) {
                    last.links().next = flow;
                }
            }
        }
        self.last = flow;
    }

    fn append<F: Linked>(&mut self, flows: &mut [F], list: ActiveList) {
        match (self.first, list.first) {
            (_, NIL) => {}
            (NIL, _) => *self = list,
            (_, first) => {
                if let Some(last) = flows.get_mut(self.last as usize) {
                    last.links().next = first;
                }
                self.last = list.last;
            }
        }
    }

    #[inline(always)]
    fn pop<F: Linked>(&mut self, flows: &mut [F]) {
        self.first = match flows.get_mut(self.first as usize) {
            Some(first) if self.first != self.last => first.links().next,
            _ => NIL,
        };
    }

    #[inline(always)]
    fn rotate<F: Linked>(&mut self, flows: &mut [F]) {
        let ActiveList { first, last } = *self;
        if first == last {
            return;
        }
        let Some(flow) = flows.get_mut(first as usize) else { return };
        let next = flow.links().next;
        if let Some(last) = flows.get_mut(last as usize) {
            last.links().next = first;
        }
        *self = ActiveList { first: next, last: first };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Flow;
    use super::*;
    use std::vec::Vec;

    fn of(count: u32) -> (ActiveList, Vec<Flow>) {
        let (mut list, mut flows) = (ActiveList::default(), std::vec![Flow::default(); 9]);
        (0..count).for_each(|flow| list.push(&mut flows, flow));
        (list, flows)
    }

    fn order(mut list: ActiveList, flows: &mut [Flow]) -> Vec<u32> {
        core::iter::from_fn(|| {
            let first = list.first();
            list.pop(flows);
            first
        })
        .collect()
    }

    #[test]
    fn flows_take_turns() {
        let (mut list, mut flows) = of(3);
        list.rotate(&mut flows);
        assert_eq!(order(list, &mut flows), [1, 2, 0]);
        list.pop(&mut flows);
        list.push(&mut flows, 7);
        list.rotate(&mut flows);
        assert_eq!(order(list, &mut flows), [0, 7, 2]);
        let (mut alone, mut flows) = of(1);
        alone.rotate(&mut flows);
        assert_eq!(order(alone, &mut flows), [0]);
        alone.pop(&mut flows);
        alone.rotate(&mut flows);
        assert!(alone.is_empty());
    }
}
