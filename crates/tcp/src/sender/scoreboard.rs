//! Scoreboard of the segments in flight: a ring of 16-byte records.
//!
//! Records lie in sequence order and are named by a running number, so that places in the ring stay
//! valid while it moves on. An acknowledgement in order takes records from the front. A SACK block
//! finds its first record by division, because nearly all segments are full. It touches only
//! records that no earlier block has covered (`sacked` remembers which).
//!
//! RACK must examine segments in the order in which they were last sent. First transmissions are
//! in that order by themselves, from `oldest_original` on; retransmissions queue in `resent`. So
//! no list by time is needed, and no search (RFC 8985, section 6.2, step 5).

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::ranges::Ranges;

/// State of a segment in flight, one bit each.
pub(crate) mod flag {
    /// A SACK block has covered it.
    pub(crate) const SACKED: u8 = 1;
    /// It is taken for lost.
    pub(crate) const LOST: u8 = 2;
    /// A retransmission of it is in flight and counted as such.
    pub(crate) const RESENT: u8 = 4;
    /// It was sent more than once at some time.
    pub(crate) const EVER_RESENT: u8 = 8;
    /// Carries SYN.
    pub(crate) const SYN: u8 = 16;
    /// Carries FIN.
    pub(crate) const FIN: u8 = 32;
    /// Carries PSH.
    pub(crate) const PSH: u8 = 64;
    /// Was sent while the application had no more to send.
    pub(crate) const APP_LIMITED: u8 = 128;
}

/// One segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    /// First sequence number.
    pub seq: u64,
    /// Time of the last transmission, in microseconds, wrapping.
    pub sent_us: u32,
    /// Sequence numbers that it takes: payload, SYN and FIN.
    pub len: u16,
    /// Bits of [`flag`].
    pub flags: u8,
    /// RACK has judged it lost since it was last sent, and does not look at it again.
    pub judged: bool,
}

const _: () = assert!(core::mem::size_of::<Record>() == 16);

impl Record {
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
    #[inline]
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// State when a segment left, for delivery-rate samples
/// (draft-cheng-iccrg-delivery-rate-estimation, section 3.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departure {
    /// Segments delivered by then.
    pub delivered: u32,
    /// Time of the last of these deliveries, or of leaving if nothing was in flight. Microseconds,
    /// wrapping.
    pub delivered_us: u32,
    /// Sending time of the newest segment delivered by then, or of this one if nothing was in
    /// flight. Microseconds, wrapping.
    pub first_sent_us: u32,
}

/// Name of a record: counts from the first segment of the connection, wrapping.
pub(crate) type Id = u32;

/// The ring of records with its counts.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Scoreboard {
    records: Box<[Record]>,
    mask: u32,
    head: Id,
    tail: Id,
    /// Records with SACKED.
    pub sacked_out: u32,
    /// Duplicate ACKs that stand for SACKed records, where there is no SACK.
    pub phantom_sacked: u32,
    /// Records with LOST.
    pub lost_out: u32,
    /// Records with RESENT.
    pub resent_out: u32,
    /// Record at which the search for lost segments to send again continues.
    pub resend_hint: Id,
    /// No unsacked, not lost, never resent record lies before this one.
    pub oldest_original: Id,
    /// Ranges covered by SACK.
    pub sacked: Ranges,
    /// Retransmissions in the order in which they were sent: record and time.
    pub resent: VecDeque<(Id, u32)>,
    /// Beside `records`; empty unless samples are wanted.
    departures: Box<[Departure]>,
}

/// Least number of records that the ring has room for once it needs more than one. An end that
/// sends nothing but its SYN, and later its FIN, needs no more than one.
const FIRST_ROOM: usize = 16;

impl Scoreboard {
    pub(crate) fn new(sampled: bool) -> Scoreboard {
        Scoreboard {
            records: Box::new([Record::default()]),
            mask: 0,
            departures: alloc::vec![Departure::default(); usize::from(sampled)].into(),
            head: 0,
            tail: 0,
            sacked: Ranges::default(),
            sacked_out: 0,
            phantom_sacked: 0,
            lost_out: 0,
            resent_out: 0,
            resend_hint: 0,
            oldest_original: 0,
            resent: VecDeque::new(),
        }
    }

    /// Records in the ring: segments sent and not cumulatively acknowledged.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// RFC 6675's pipe: segments believed to be in the network.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        (self.len() + self.resent_out)
            .saturating_sub(self.sacked_out + self.lost_out + self.phantom_sacked)
    }

    #[inline]
    pub(crate) fn head(&self) -> Id {
        self.head
    }

    /// True while `id` names a record in the ring.
    #[inline]
    pub(crate) fn holds(&self, id: Id) -> bool {
        id.wrapping_sub(self.head) < self.len()
    }

    /// The later of two places in the ring.
    #[inline]
    fn later(&self, a: Id, b: Id) -> Id {
        if (a.wrapping_sub(b) as i32) > 0 {
            a
        } else {
            b
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: Id) -> &Record {
        &self.records[(id & self.mask) as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: Id) -> &mut Record {
        &mut self.records[(id & self.mask) as usize]
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&Record> {
        (!self.is_empty()).then(|| self.get(self.head))
    }

    #[inline]
    pub(crate) fn last_id(&self) -> Id {
        self.tail.wrapping_sub(1)
    }

    /// The departure noted for `id`; zeros if none are kept.
    #[inline]
    pub(crate) fn departure(&self, id: Id) -> Departure {
        if self.departures.is_empty() {
            Departure::default()
        } else {
            self.departures[(id & self.mask) as usize]
        }
    }

    #[inline]
    pub(crate) fn set_departure(&mut self, id: Id, departure: Departure) {
        if !self.departures.is_empty() {
            self.departures[(id & self.mask) as usize] = departure;
        }
    }

    /// Appends a segment and returns its name.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) -> Id {
        if self.len() as usize == self.records.len() {
            self.grow();
        }
        let id = self.tail;
        *self.get_mut(id) = record;
        self.tail = id.wrapping_add(1);
        id
    }

    /// Makes the ring larger; records keep their names.
    #[cold]
    fn grow(&mut self) {
        let old = core::mem::take(&mut self.records);
        let old_departures = core::mem::take(&mut self.departures);
        let old_mask = self.mask;
        let room = (old.len() * 2).max(FIRST_ROOM);
        self.mask = (room - 1) as u32;
        self.records = alloc::vec![Record::default(); room].into();
        let sampled = !old_departures.is_empty();
        self.departures = alloc::vec![Departure::default(); if sampled { room } else { 0 }].into();
        for n in 0..self.len() {
            let id = self.head.wrapping_add(n);
            let (from, to) = ((id & old_mask) as usize, (id & self.mask) as usize);
            self.records[to] = old[from];
            if let Some(departure) = old_departures.get(from) {
                self.departures[to] = *departure;
            }
        }
    }

    /// Takes the first record out; its counts go with it.
    #[inline]
    pub(crate) fn pop(&mut self) {
        let flags = self.get(self.head).flags;
        if flags & (flag::SACKED | flag::LOST | flag::RESENT) != 0 {
            self.sacked_out -= u32::from(flags & flag::SACKED != 0);
            self.lost_out -= u32::from(flags & flag::LOST != 0);
            self.resent_out -= u32::from(flags & flag::RESENT != 0);
        }
        self.head = self.head.wrapping_add(1);
    }

    /// Call after the last of a series of [`Scoreboard::pop`]: moves what points before the front.
    #[inline]
    pub(crate) fn settle(&mut self, una: u64) {
        self.resend_hint = self.later(self.resend_hint, self.head);
        self.oldest_original = self.later(self.oldest_original, self.head);
        if !self.sacked.is_empty() {
            self.sacked.forget_below(una);
        }
        if self.is_empty() {
            self.resent.clear();
        }
    }

    /// The record that holds `seq`, which must lie in the ring's range.
    pub(crate) fn find(&self, seq: u64, mss: u32) -> Option<Id> {
        let first = self.first()?;
        if seq < first.seq || seq >= self.get(self.last_id()).end() {
            return None;
        }
        let guess = ((seq - first.seq) / u64::from(mss.max(1))).min(u64::from(self.len() - 1));
        let mut id = self.head.wrapping_add(guess as u32);
        // With full segments the guess is right; a few short ones are soon walked past.
        const STEPS: u32 = 8;
        for _ in 0..STEPS {
            let record = self.get(id);
            if seq < record.seq {
                id = id.wrapping_sub(1);
            } else if seq >= record.end() {
                id = id.wrapping_add(1);
            } else {
                return Some(id);
            }
        }
        let (mut low, mut high) = (0, self.len() - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.get(self.head.wrapping_add(middle)).seq <= seq {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Some(self.head.wrapping_add(low))
    }

    /// Takes a segment for lost; a lost retransmission is lost again. True if that is news.
    #[inline]
    pub(crate) fn mark_lost(&mut self, id: Id) -> bool {
        let record = self.get_mut(id);
        let mut news = false;
        if record.has(flag::SACKED) {
            return false;
        }
        if !record.has(flag::LOST) {
            record.flags |= flag::LOST;
            self.lost_out += 1;
            news = true;
        } else if record.has(flag::RESENT) {
            record.flags &= !flag::RESENT;
            self.resent_out -= 1;
            news = true;
        }
        if news && (id.wrapping_sub(self.resend_hint) as i32) < 0 {
            self.resend_hint = id;
        }
        news
    }

    /// The next segment that is lost and not sent again since.
    pub(crate) fn next_to_resend(&mut self) -> Option<Id> {
        if self.resent_out >= self.lost_out {
            return None;
        }
        let mut id = self.later(self.resend_hint, self.head);
        while self.holds(id) {
            let flags = self.get(id).flags;
            if flags & (flag::LOST | flag::SACKED | flag::RESENT) == flag::LOST {
                self.resend_hint = id;
                return Some(id);
            }
            id = id.wrapping_add(1);
        }
        self.resend_hint = id;
        None
    }

    /// Notes that `id` was sent again at `now_us`; `counted` if it is in flight because of a loss.
    pub(crate) fn note_resent(&mut self, id: Id, now_us: u32, counted: bool) {
        let record = self.get_mut(id);
        record.sent_us = now_us;
        record.judged = false;
        record.flags |= flag::EVER_RESENT;
        if counted && !record.has(flag::RESENT) {
            record.flags |= flag::RESENT;
            self.resent_out += 1;
        }
        self.resent.push_back((id, now_us));
    }

    /// Forgets all losses (the window's reduction is undone).
    pub(crate) fn unmark_all_lost(&mut self) {
        if self.lost_out > 0 {
            for n in 0..self.len() {
                self.get_mut(self.head.wrapping_add(n)).flags &= !flag::LOST;
            }
        }
        self.lost_out = 0;
        self.resend_hint = self.head;
        self.oldest_original = self.head;
    }

    /// Forgets all SACKs (the receiver has taken them back).
    pub(crate) fn forget_sacks(&mut self) {
        for n in 0..self.len() {
            self.get_mut(self.head.wrapping_add(n)).flags &= !flag::SACKED;
        }
        self.sacked_out = 0;
        self.sacked.clear();
        self.oldest_original = self.head;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::random::Random;
    use std::vec::Vec;

    const MSS: u32 = 100;

    /// A ring beside a plain list of the same segments.
    struct Pair {
        board: Scoreboard,
        list: VecDeque<(Id, Record, Departure)>,
        nxt: u64,
    }

    impl Pair {
        fn new() -> Pair {
            Pair { board: Scoreboard::new(true), list: VecDeque::new(), nxt: 1 }
        }

        fn push(&mut self, len: u16, us: u32) {
            let record = Record { seq: self.nxt, sent_us: us, len, ..Record::default() };
            let departure =
                Departure { delivered: us, delivered_us: us + 1, first_sent_us: us + 2 };
            let id = self.board.push(record);
            self.board.set_departure(id, departure);
            self.list.push_back((id, record, departure));
            self.nxt += u64::from(len);
        }

        fn sack(&mut self, at: usize) {
            let Some((id, record, _)) = self.list.get_mut(at) else { return };
            if !record.has(flag::SACKED | flag::LOST) {
                record.flags |= flag::SACKED;
                self.board.get_mut(*id).flags |= flag::SACKED;
                self.board.sacked_out += 1;
            }
        }

        fn lose(&mut self, at: usize) {
            let Some((id, record, _)) = self.list.get_mut(at) else { return };
            let news =
                !record.has(flag::SACKED) && (!record.has(flag::LOST) || record.has(flag::RESENT));
            if news {
                record.flags = (record.flags | flag::LOST) & !flag::RESENT;
            }
            assert_eq!(self.board.mark_lost(*id), news);
        }

        fn count(&self, flags: u8) -> u32 {
            self.list.iter().filter(|(_, record, _)| record.has(flags)).count() as u32
        }

        fn check(&mut self) {
            let Pair { board, list, nxt } = self;
            let ids: Vec<Id> = list.iter().map(|segment| segment.0).collect();
            assert_eq!((board.len() as usize, board.is_empty()), (list.len(), list.is_empty()));
            assert_eq!(board.first().map(|first| first.seq), list.front().map(|first| first.1.seq));
            for (id, record, departure) in list.iter() {
                assert!(board.holds(*id));
                let ours = board.get(*id);
                assert_eq!(
                    (ours.seq, ours.end(), ours.flags),
                    (record.seq, record.end(), record.flags)
                );
                let ours = board.departure(*id);
                let wanted = (departure.delivered, departure.delivered_us, departure.first_sent_us);
                assert_eq!((ours.delivered, ours.delivered_us, ours.first_sent_us), wanted);
                // Each of its numbers is found there.
                for seq in [record.seq, record.end() - 1] {
                    assert_eq!(board.find(seq, MSS), Some(*id));
                }
            }
            assert_eq!(board.find(*nxt, MSS), None);
            if let (Some(first), Some(last)) = (list.front(), ids.last()) {
                assert_eq!(board.find(first.1.seq - 1, MSS), None);
                assert!(
                    !board.holds(first.0.wrapping_sub(1)) && !board.holds(last.wrapping_add(1))
                );
                assert_eq!((board.head(), board.last_id()), (first.0, *last));
            }
            let next = list.iter().find(|(_, record, _)| {
                record.flags & (flag::LOST | flag::SACKED | flag::RESENT) == flag::LOST
            });
            let next = next.map(|segment| segment.0);
            assert_eq!(self.board.next_to_resend(), next);
            let (sacked, lost, resent) =
                (self.count(flag::SACKED), self.count(flag::LOST), self.count(flag::RESENT));
            let Scoreboard { sacked_out, lost_out, resent_out, .. } = self.board;
            assert_eq!((sacked_out, lost_out, resent_out), (sacked, lost, resent));
            // RFC 6675, section 4: all that is neither SACKed nor lost, and what was sent again.
            let pipe = self.list.len() as u32 - sacked - lost + resent;
            assert_eq!(self.board.in_flight(), pipe);
        }
    }

    /// The ring against a plain list, full and short segments, all that happens to them.
    #[test]
    fn the_ring_is_a_list() {
        let mut random = Random::new(7);
        let mut pair = Pair::new();
        // Names wrap.
        (pair.board.head, pair.board.tail) = (u32::MAX - 90, u32::MAX - 90);
        (pair.board.resend_hint, pair.board.oldest_original) = (u32::MAX - 90, u32::MAX - 90);
        for us in 0..3_000 {
            let at = random.below(1 + pair.list.len() as u32) as usize;
            match random.below(12) {
                0..=3 => pair.push(MSS as u16, us),
                4 => pair.push(1 + random.below(MSS) as u16, us),
                5 | 6 => pair.sack(at),
                7 | 8 => pair.lose(at),
                9 => {
                    if let Some(id) = pair.board.next_to_resend() {
                        pair.board.note_resent(id, us, true);
                        let head = pair.board.head();
                        let record = &mut pair.list[id.wrapping_sub(head) as usize].1;
                        record.flags |= flag::RESENT | flag::EVER_RESENT;
                        let ours = pair.board.get(id);
                        assert_eq!(ours.sent_us, us);
                        assert!(!ours.judged);
                        assert_eq!(pair.board.resent.back(), Some(&(id, us)));
                    }
                }
                10 => {
                    for _ in 0..random.below(4).min(pair.list.len() as u32) {
                        pair.board.pop();
                        pair.list.pop_front();
                    }
                    let una = pair.list.front().map_or(pair.nxt, |first| first.1.seq);
                    pair.board.settle(una);
                    assert!(!pair.list.is_empty() || pair.board.resent.is_empty());
                }
                _ if us % 50 == 0 => {
                    pair.board.forget_sacks();
                    pair.list.iter_mut().for_each(|segment| segment.1.flags &= !flag::SACKED);
                }
                _ => {}
            }
            pair.check();
        }
        assert!(pair.list.len() > 16 && pair.board.lost_out > 0);
    }

    /// Few segments that are much shorter than the rest do not hide one another.
    #[test]
    fn short_segments_are_found_far_from_where_full_ones_would_lie() {
        let mut pair = Pair::new();
        (0..40).for_each(|us| pair.push(1, us));
        (0..40).for_each(|us| pair.push(MSS as u16, us));
        pair.check();
        for seq in 1..pair.nxt {
            let id = pair.board.find(seq, MSS).unwrap();
            let record = pair.board.get(id);
            assert!(record.seq <= seq && seq < record.end(), "{seq}");
        }
    }

    #[test]
    fn undoing_forgets_losses_and_looks_at_all_again() {
        let mut pair = Pair::new();
        (0..20).for_each(|us| pair.push(MSS as u16, us));
        (5..9).for_each(|at| pair.lose(at));
        assert_eq!(pair.board.in_flight(), 16);
        pair.board.oldest_original = 7;
        pair.board.unmark_all_lost();
        assert_eq!((pair.board.lost_out, pair.board.in_flight()), (0, 20));
        assert_eq!((pair.board.oldest_original, pair.board.next_to_resend()), (0, None));
        pair.list.iter_mut().for_each(|segment| segment.1.flags = 0);
        pair.check();
        // What was sent again for another reason is no loss repaired.
        pair.board.note_resent(3, 99, false);
        assert_eq!((pair.board.resent_out, pair.board.get(3).flags), (0, flag::EVER_RESENT));
        // Duplicates stand for segments that have arrived.
        pair.board.phantom_sacked = 3;
        assert_eq!(pair.board.in_flight(), 17);
    }

    #[test]
    fn what_is_acknowledged_is_no_longer_remembered_as_sacked() {
        let mut board = Scoreboard::new(false);
        board.sacked.insert(101, 301);
        board.settle(201);
        assert_eq!(board.sacked.first_ref(), Some(&(201, 301)));
        board.settle(301);
        assert!(board.sacked.is_empty());
    }

    /// Searches go on where they were, or from the front if that is gone.
    #[test]
    fn what_was_looked_at_is_not_looked_at_again() {
        for (popped, from) in [(3, 5), (5, 5), (6, 6)] {
            let mut pair = Pair::new();
            (0..10).for_each(|us| pair.push(MSS as u16, us));
            let board = &mut pair.board;
            (board.resend_hint, board.oldest_original) = (5, 5);
            (0..popped).for_each(|_| board.pop());
            board.settle(1 + u64::from(MSS) * popped);
            assert_eq!((board.resend_hint, board.oldest_original), (from, from), "{popped}");
        }
    }

    #[test]
    fn a_loss_before_the_last_one_sent_again_is_found() {
        let mut pair = Pair::new();
        (0..10).for_each(|n| pair.push(MSS as u16, n));
        let board = &mut pair.board;
        for id in [5, 3, 4] {
            assert!(board.mark_lost(id));
            assert_eq!(board.next_to_resend(), Some(id));
            board.note_resent(id, 50, true);
        }
        assert_eq!(board.next_to_resend(), None);
    }
}
