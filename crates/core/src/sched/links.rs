//! Places of flows in lists: the neighbours of each, which live in the flow.

/// No flow.
pub(super) const NIL: u32 = u32::MAX;

/// The flow of this number, unless it is [`NIL`].
#[inline(always)]
pub(super) fn known(flow: u32) -> Option<u32> {
    (flow != NIL).then_some(flow)
}

/// A flow's neighbours in its rotation: itself, if it is the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    pub(super) previous: u32,
    pub(super) next: u32,
}

impl Links {
    /// The flow that comes next; none of any slice if the flow stands nowhere.
    #[inline(always)]
    pub fn next(&self) -> u32 {
        self.next
    }
}

impl Default for Links {
    fn default() -> Links {
        Links { previous: NIL, next: NIL }
    }
}

/// A flow that can stand in a rotation.
pub trait Linked {
    /// Its links.
    fn links(&mut self) -> &mut Links;
}
