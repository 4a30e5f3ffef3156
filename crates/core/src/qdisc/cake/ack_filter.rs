//! Search for a queued acknowledgement that a new packet of the same connection makes redundant.
//!
//! On a line with a slow uplink, acknowledgements of downloads can fill it. TCP's are cumulative,
//! so all but the last few that wait in a queue say nothing new. An acknowledgement may go if the
//! packet just queued says all that it does and more. That is a later number or more SACKed bytes,
//! and every range that was SACKed. No flag, option or payload may be lost with it. The
//! conservative filter drops the older of two such. The aggressive one also drops a single one
//! directly before the newcomer, if their ECN echoes are alike. (Piece of CAKE, section III-D;
//! facts A.10.)
//!
//! One scan of one queue a packet, from its head. Acknowledgements that cover each other go as they
//! come, so the first few packets decide; only [`MOST_LOOKS`] are looked at. Otherwise a sender
//! whose acknowledgements fall would make each arrival cost as much as its queue is long. (Linux
//! looks at all; so do we where `Device` asks for its decisions.)

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::params::AckFilter;
use crate::arena::{Arena, List};
use crate::memory::{filled, Memory, NoMemory, PAGES};
use crate::rate::Arithmetic;
use crate::room;
use crate::steps::step;
use crate::wire::tcp::AckView;

/// ECN echo and its answer: two acknowledgements that differ in these both mean something.
const ECN_ECHO: u16 = AckView::ECE | AckView::CWR;
/// All flags but the ECN echo: three reserved bits and AE, URG, PSH, RST, SYN, FIN, ACK.
const OTHER_FLAGS: u16 = 0xfff & !ECN_ECHO;

/// Most packets that are looked at for an arrival.
const MOST_LOOKS: usize = 256;

/// Packets whose headers share a piece of memory, as a power of two, where it is taken as needed.
const PAGE_SHIFT: u32 = 5;
/// The same where all memory is reserved: one piece for all packets.
const WHOLE_SHIFT: u32 = 31;

/// The TCP headers of queued packets, by arena slot. As in the arena, room is reserved for all and
/// touched as it is first used, or taken by the page. A page stays: acknowledgements come again.
#[derive(Clone, Debug)]
pub(super) struct AckStore {
    pages: Box<[Vec<Option<AckView>>]>,
    /// A slot shifted by this is its page.
    shift: u32,
    /// Slots in a page.
    size: usize,
}

impl AckStore {
    /// Room for the headers of `capacity` packets.
    #[inline(never)]
    pub(super) fn new(capacity: u32, memory: Memory) -> Result<AckStore, NoMemory> {
        let (shift, size) = match memory {
            Memory::AsNeeded if PAGES => (PAGE_SHIFT, 1 << PAGE_SHIFT),
            _ => (WHOLE_SHIFT, capacity as usize),
        };
        let mut pages = filled((capacity >> shift) as usize + 1, Vec::new())?;
        if shift == WHOLE_SHIFT {
            pages.iter_mut().try_for_each(|page| page.try_reserve_exact(size))?;
        }
        Ok(AckStore { pages, shift, size })
    }

    /// Notes the header of the packet in `slot`: None if it has none that matters. Without memory
    /// for it, the packet is not filtered.
    #[inline(always)]
    pub(super) fn set(&mut self, slot: u32, view: Option<&AckView>) {
        match view {
            Some(view) => self.keep(slot, view),
            None => self.forget(slot),
        }
    }

    fn keep(&mut self, slot: u32, view: &AckView) {
        let (number, within) = self.place(slot);
        let Some(page) = self.pages.get_mut(number) else { return };
        if page.len() <= within {
            if page.try_reserve_exact(self.size.saturating_sub(page.len())).is_err() {
                return;
            }
            while page.len() <= within && room::push(page, None).is_some() {}
        }
        if let Some(entry) = page.get_mut(within) {
            *entry = Some(*view);
        }
    }

    #[inline(always)]
    fn forget(&mut self, slot: u32) {
        // What was never noted is none already.
        let (number, within) = self.place(slot);
        if let Some(entry) = self.pages.get_mut(number).and_then(|page| page.get_mut(within)) {
            *entry = None;
        }
    }

    /// Page of a slot, and its place there.
    #[inline(always)]
    fn place(&self, slot: u32) -> (usize, usize) {
        ((slot >> self.shift) as usize, (slot & !(u32::MAX << self.shift)) as usize)
    }

    fn view(&self, slot: u32) -> Option<&AckView> {
        let (number, within) = self.place(slot);
        self.pages.get(number)?.get(within)?.as_ref()
    }

    /// The packet that the last one of `list` makes redundant, if any, as the slot before it (None
    /// within: it is the first). Call after the new packet was queued and its header noted.
    pub(super) fn redundant(
        &self,
        mode: AckFilter,
        arithmetic: Arithmetic,
        arena: &Arena,
        list: &List,
    ) -> Option<Option<u32>> {
        let newest = list.tail()?;
        let trigger = self.view(newest)?;
        if trigger.flags & (AckView::ACK | AckView::SYN) != AckView::ACK {
            return None;
        }
        let connection = arena.get(newest)?.flow;

        /// The eligible packet nearest to the head.
        struct Eligible {
            before: Option<u32>,
            slot: u32,
            echo: u16,
        }
        let mut eligible: Option<Eligible> = None;
        let mut before = None;
        let mut slot = list.head()?;
        let looks = match arithmetic {
            Arithmetic::Exact => MOST_LOOKS,
            Arithmetic::Linux(_) => usize::MAX,
        };
        for _ in 0..looks {
            step();
            if slot == newest {
                break;
            }
            let is_of_connection = arena.get(slot)?.flow == connection;
            if let Some(candidate) = self.view(slot).filter(|_| is_of_connection) {
                let echo = candidate.flags & ECN_ECHO;
                if eligible.as_ref().is_some_and(|eligible| eligible.echo != echo) {
                    eligible = None;
                }
                if is_covered(candidate, trigger) {
                    match eligible {
                        Some(eligible) => return Some(eligible.before),
                        None => eligible = Some(Eligible { before, slot, echo }),
                    }
                }
            }
            before = Some(slot);
            slot = arena.next(slot)?;
        }
        let last = eligible?;
        let adjacent = arena.next(last.slot) == Some(newest);
        let same_echo = last.echo == trigger.flags & ECN_ECHO;
        (mode == AckFilter::Aggressive && adjacent && same_echo).then_some(last.before)
    }
}

/// True if `candidate` is a pure acknowledgement and `trigger` says all that it says.
fn is_covered(candidate: &AckView, trigger: &AckView) -> bool {
    let pure = candidate.flags & OTHER_FLAGS == AckView::ACK
        && !candidate.has_payload
        && candidate.expendable_options;
    if !pure
        || is_after(candidate.timestamp.0, trigger.timestamp.0)
        || is_after(candidate.timestamp.1, trigger.timestamp.1)
        || is_after(candidate.ack, trigger.ack)
    {
        return false;
    }
    match compare_sack(candidate, trigger) {
        Sack::Loses => false,
        Sack::Equal => candidate.ack != trigger.ack,
        Sack::Gains => true,
    }
}

/// Change of the sender's knowledge when `b` replaces `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sack {
    /// Something that `a` SACKs is not in `b`.
    Loses,
    Equal,
    /// `b` SACKs all of `a` and more.
    Gains,
}

fn compare_sack(a: &AckView, b: &AckView) -> Sack {
    fn blocks(view: &AckView) -> &[(u32, u32)] {
        view.sack.get(..usize::from(view.sack_count)).unwrap_or(&view.sack)
    }
    let (of_a, of_b) = (blocks(a), blocks(b));
    if of_a.is_empty() {
        return if of_b.is_empty() { Sack::Equal } else { Sack::Gains };
    }
    for &(left, right) in of_a {
        // A block below the cumulative point reports a duplicate (RFC 2883): it is said only once.
        let duplicate = is_after(a.ack, left);
        let covered = of_b.iter().any(|&(l, r)| !is_after(l, left) && !is_after(right, r));
        if duplicate || !covered {
            return Sack::Loses;
        }
    }
    let bytes = |blocks: &[(u32, u32)]| {
        blocks.iter().fold(0u32, |sum, &(l, r)| sum.wrapping_add(r.wrapping_sub(l)))
    };
    if bytes(of_b) > bytes(of_a) {
        Sack::Gains
    } else {
        Sack::Equal
    }
}

/// True if sequence number `a` comes after `b` (RFC 9293, section 3.4).
#[inline]
fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "pages")]
    fn memory_follows_the_acknowledgements() {
        let capacity = 1 << 22;
        let mut store = AckStore::new(capacity, Memory::AsNeeded).unwrap();
        let room = |store: &AckStore| store.pages.iter().map(Vec::capacity).sum::<usize>();
        for slot in [0, 31, 32, capacity - 1, capacity] {
            store.set(slot, None);
        }
        assert_eq!(room(&store), 0, "packets without a header take none");
        let view = Some(AckView { ack: 7, ..AckView::default() });
        for slot in [31, 32, capacity - 1] {
            store.set(slot, view.as_ref());
            assert_eq!(store.view(slot).map(|view| view.ack), Some(7));
            assert!(store.view(slot - 1).is_none_or(|_| slot == 32));
        }
        assert_eq!(room(&store), 3 * 32);
        store.set(32, None);
        assert!(store.view(32).is_none() && store.view(31).is_some());
        store.set(u32::MAX, view.as_ref());
        assert!(store.view(u32::MAX).is_none());
    }
}
