//! Merging of full segments before TCP sees them, as a network card or driver does (GRO).
//!
//! Segments of one connection become one if they follow each other in sequence and agree in
//! acknowledgement, window, ECN and timestamps. Merging goes up to a number of segments and lasts a
//! short time; PSH or a shorter segment ends it. The receiver then acknowledges the whole at once:
//! this is what thins ACKs on fast links.

use alloc::boxed::Box;

use simnel_core::time::{Span, Time};

use crate::segment::{Segment, TcpFlags};

/// A merged segment, with the payload of one of its parts.
pub(crate) type Merged = (Segment, u32);

/// The merger: a pointer's room where it is off.
#[derive(Clone, Debug)]
pub(crate) struct Gro(Option<Box<Merger>>);

#[derive(Clone, Debug)]
struct Merger {
    most: u32,
    window: Span,
    held: Option<Merged>,
    count: u32,
    due: Time,
}

impl Gro {
    /// Merges up to `most` segments that come within `window`; 1 switches it off.
    pub(crate) fn new(most: u8, window: Span) -> Gro {
        let merger = Merger { most: most.into(), window, held: None, count: 0, due: Time::MAX };
        Gro((most > 1).then(|| Box::new(merger)))
    }

    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(crate) fn next_timer(&self) -> Time {
        self.0.as_ref().map_or(Time::MAX, |merger| merger.due)
    }

    /// Data that wait.
    pub(crate) fn flush(&mut self) -> Option<Merged> {
        self.0.as_mut()?.flush()
    }

    /// Takes in a segment; returns up to two that TCP may see now, in order.
    pub(crate) fn push(&mut self, segment: &Segment, now: Time) -> [Option<Merged>; 2] {
        let Some(merger) = &mut self.0 else { return [None, Some((*segment, segment.len))] };
        merger.push(segment, now)
    }
}

impl Merger {
    fn flush(&mut self) -> Option<Merged> {
        self.due = Time::MAX;
        self.held.take()
    }

    fn push(&mut self, segment: &Segment, now: Time) -> [Option<Merged>; 2] {
        let plain = segment.flags.0 & !TcpFlags::PSH.0 == TcpFlags::ACK.0;
        if !plain || segment.len == 0 || segment.sack_count > 0 {
            return [self.flush(), Some((*segment, segment.len))];
        }
        let mut first = None;
        match &mut self.held {
            Some((held, unit)) if Merger::joins(held, *unit, segment) => {
                held.len += segment.len;
                held.flags.set(segment.flags);
                held.ts_val = segment.ts_val;
                self.count += 1;
            }
            _ => {
                first = self.flush();
                self.held = Some((*segment, segment.len));
                self.count = 1;
                self.due = now + self.window;
            }
        }
        let last = self.held.is_some_and(|(held, unit)| {
            held.flags.has(TcpFlags::PSH) || segment.len < unit || self.count >= self.most
        });
        let second = if last { self.flush() } else { None };
        [first, second]
    }

    fn joins(held: &Segment, unit: u32, segment: &Segment) -> bool {
        segment.seq == held.end_seq()
            && segment.len <= unit
            && segment.ack == held.ack
            && segment.window == held.window
            && segment.ecn == held.ecn
            && segment.ts_echo == held.ts_echo
            && segment.ts_val == held.ts_val
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Span = Span::from_micros(20);

    fn data(seq: u64, len: u32) -> Segment {
        Segment { len, ..Segment::new(TcpFlags::ACK, seq, 7) }
    }

    /// Sequence numbers and lengths of what TCP sees of segments that come together.
    fn seen(segments: &[Segment]) -> std::vec::Vec<(u64, u32)> {
        let mut gro = Gro::new(4, WINDOW);
        let mut seen = std::vec::Vec::new();
        for segment in segments {
            seen.extend(gro.push(segment, Time(1_000)).into_iter().flatten());
        }
        seen.extend(gro.flush());
        seen.iter().map(|(segment, _)| (segment.seq, segment.len)).collect()
    }

    #[test]
    fn full_segments_in_sequence_become_one_up_to_a_number() {
        let row: std::vec::Vec<Segment> = (0..6).map(|n| data(n * 100, 100)).collect();
        assert_eq!(seen(&row), [(0, 400), (400, 200)]);
        // A shorter one, or one that pushes, is the last; a longer one begins anew.
        assert_eq!(seen(&[data(0, 100), data(100, 99), data(199, 99)]), [(0, 199), (199, 99)]);
        assert_eq!(seen(&[data(0, 100), data(100, 101), data(201, 101)]), [(0, 100), (100, 202)]);
        let mut push = data(100, 100);
        push.flags.set(TcpFlags::PSH);
        assert_eq!(seen(&[data(0, 100), push, data(200, 100)]), [(0, 200), (200, 100)]);
        assert_eq!(seen(&[data(0, 100), data(200, 100)]), [(0, 100), (200, 100)]);
    }

    #[test]
    fn what_says_something_else_is_not_merged() {
        let other = |change: fn(&mut Segment)| {
            let mut segment = data(100, 100);
            change(&mut segment);
            seen(&[data(0, 100), segment]).len()
        };
        assert_eq!(other(|_| {}), 1);
        assert_eq!(other(|segment| segment.ack = 8), 2);
        assert_eq!(other(|segment| segment.window += 1), 2);
        assert_eq!(other(|segment| segment.ecn = simnel_core::packet::Ecn::Ce), 2);
        assert_eq!(other(|segment| segment.ts_echo = 3), 2);
        assert_eq!(other(|segment| segment.ts_val = 3), 2);
        assert_eq!(other(|segment| segment.sack_count = 1), 2);
        assert_eq!(other(|segment| segment.flags.set(TcpFlags::FIN)), 2);
        assert_eq!(other(|segment| segment.flags.set(TcpFlags::ECE)), 2);
        assert_eq!(other(|segment| segment.len = 0), 2);
    }

    #[test]
    fn data_wait_for_the_window_and_nothing_else_does() {
        let mut gro = Gro::new(4, WINDOW);
        assert!(!gro.is_off() && gro.next_timer() == Time::MAX);
        assert_eq!(gro.push(&data(0, 100), Time(1_000)), [None, None]);
        assert_eq!(gro.next_timer(), Time(21_000));
        assert_eq!(gro.push(&data(100, 100), Time(9_000)), [None, None]);
        assert_eq!(gro.next_timer(), Time(21_000));
        // Two segments, with the payload of one of them.
        assert_eq!(gro.flush().map(|(segment, unit)| (segment.len, unit)), Some((200, 100)));
        assert_eq!((gro.next_timer(), gro.flush()), (Time::MAX, None));
        gro.push(&data(0, 100), Time(1_000));
        let bare = Segment::new(TcpFlags::ACK, 100, 9);
        let [first, second] = gro.push(&bare, Time(2_000));
        assert_eq!((first, second), (Some((data(0, 100), 100)), Some((bare, 0))));

        let mut off = Gro::new(1, WINDOW);
        assert!(off.is_off() && off.next_timer() == Time::MAX);
        assert_eq!(off.push(&data(0, 100), Time(1)), [None, Some((data(0, 100), 100))]);
        assert_eq!(off.flush(), None);
        assert!(!Gro::new(2, WINDOW).is_off());
    }
}
