//! Merging of full segments before TCP sees them, as a network card or driver does (GRO).
//!
//! Segments of one connection that follow each other in sequence, acknowledge the same and carry
//! the same flags become one, up to a number and for a short time. The receiver then acknowledges
//! the whole at once: this is what thins ACKs on fast links.

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
