//! Rotations: lists of flows in the order in which they will be served.
//!
//! The links live in the flows, so moving a flow from one rotation to another costs no memory and
//! touches only its neighbours. A flow is in at most one rotation; who keeps the flow knows which.

/// No flow.
const NIL: u32 = u32::MAX;

/// A flow's neighbours in its rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    previous: u32,
    next: u32,
}

/// A flow that can stand in a rotation.
pub trait Linked {
    /// Its links.
    fn links(&mut self) -> &mut Links;
}

/// A list of flows, by index into the slice that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    first: u32,
    last: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links { previous: NIL, next: NIL }
    }
}

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation { first: NIL, last: NIL }
    }
}

impl Rotation {
    /// The flow whose turn it is.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        match self.first {
            NIL => None,
            first => Some(first),
        }
    }

    /// The flow at the end.
    #[inline]
    pub fn last(&self) -> Option<u32> {
        match self.last {
            NIL => None,
            last => Some(last),
        }
    }

    /// True if no flow is waiting.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first == NIL
    }

    /// True if `flow` is first and last.
    #[inline]
    pub fn is_only(&self, flow: u32) -> bool {
        self.first == flow && self.last == flow
    }

    /// Puts `flow`, which must be in no rotation, at the end.
    #[inline]
    pub fn push<F: Linked>(&mut self, flows: &mut [F], flow: u32) {
        *flows[flow as usize].links() = Links { previous: self.last, next: NIL };
        match self.last {
            NIL => self.first = flow,
            last => flows[last as usize].links().next = flow,
        }
        self.last = flow;
    }

    /// Puts the first flow at the end.
    #[inline(always)]
    pub fn rotate<F: Linked>(&mut self, flows: &mut [F]) {
        let first = self.first;
        if first != self.last {
            self.remove_first(flows, first);
            self.push(flows, first);
        }
    }

    /// Takes `flow`, which must be the first, out of the rotation.
    #[inline(always)]
    pub fn remove_first<F: Linked>(&mut self, flows: &mut [F], flow: u32) {
        debug_assert_eq!(self.first, flow, "another flow comes first");
        self.first = flows[flow as usize].links().next;
        match self.first {
            NIL => self.last = NIL,
            first => flows[first as usize].links().previous = NIL,
        }
    }

    /// Takes `flow`, which must be in this rotation, out of it.
    #[inline]
    pub fn remove<F: Linked>(&mut self, flows: &mut [F], flow: u32) {
        let Links { previous, next } = *flows[flow as usize].links();
        match previous {
            NIL => self.first = next,
            previous => flows[previous as usize].links().next = next,
        }
        match next {
            NIL => self.last = previous,
            next => flows[next as usize].links().previous = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[derive(Clone, Default)]
    struct Flow(Links);
    impl Linked for Flow {
        fn links(&mut self) -> &mut Links {
            &mut self.0
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
        rotation.push(&mut flows, 2);
        rotation.rotate(&mut flows);
        rotation.rotate(&mut flows);
        rotation.rotate(&mut flows);
        let mut order = Vec::new();
        while let Some(first) = rotation.first() {
            rotation.remove_first(&mut flows, first);
            order.push(first);
        }
        assert_eq!(order, [1, 3, 2]);
        assert!(rotation.is_empty());
    }
}
