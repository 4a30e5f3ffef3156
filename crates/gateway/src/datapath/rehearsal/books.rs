//! Invariants after every step, whatever goes wrong.
//!
//! * No packet is held longer than its discipline may, plus the time that the kernel or the machine
//!   kept the loop from working.
//! * Each packet gets one verdict, or the kernel has lost it and says so.
//! * No second holds more than the rate.
//! * When nothing arrives any more, all that is queued leaves at the rate.

use std::collections::{HashMap, VecDeque};

use simnel_core::{Span, Time};

/// Window in which no more may leave than the rate allows.
const SECOND: Span = Span::from_secs(1);
/// The largest packet, link header included.
pub(super) const FULL: u64 = 1_514;
/// Beyond a discipline's own longest: wake-ups, batches, verdicts on their way.
const SLACK: Span = Span::from_millis(20);

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) String);

/// Limits of the discipline that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes a second.
    pub(super) rate: u64,
    /// Bytes that it sends at once after a silence.
    pub(super) burst: u64,
    /// Bytes that it queues at most.
    pub(super) limit: u64,
    /// A packet's flow gets at least the rate divided by this.
    pub(super) shares: u64,
}

impl Bounds {
    /// Until `bytes` have left.
    fn time_of(&self, bytes: u64) -> Span {
        Span((u128::from(bytes) * 1_000_000_000 / u128::from(self.rate)) as u64)
    }

    /// The longest that a packet may be queued. A percent for the clock that is a little slow.
    fn longest(&self) -> Span {
        let time = self.time_of(self.limit * self.shares);
        Span(time.0 + time.0 / 50) + SLACK
    }
}

/// A packet that awaits its verdict.
#[derive(Clone, Copy)]
struct Held {
    len: u32,
    arrived: Time,
    /// Time that had been excused by then.
    excused: Span,
}

/// All packets that the kernel holds, and what became of the others.
pub(super) struct Books {
    held: HashMap<u32, Held>,
    bytes: u64,
    /// In the order of arrival, with some that are gone.
    order: VecDeque<u32>,
    /// Packets that the kernel lost, or told of twice, with their bytes each time. The loop still
    /// has them, and its verdict on them finds nothing.
    ghosts: HashMap<u32, Vec<u32>>,
    ghost_bytes: u64,
    bounds: Bounds,
    /// A packet that left at an earlier rate is paid for by then: a change leaves the debt. With
    /// what had been excused: the loop forfeits time in which it cannot work.
    paid: (Time, Span),
    /// The longest that any packet held now may be queued: it came under these bounds or later.
    longest: Span,
    /// Time in which the loop could not work.
    excused: Span,
    /// Verdicts are given, and not taken.
    refused: bool,
    /// Such verdicts are of other bounds: what they let go then is not counted.
    given_before: bool,
    uncounted: Time,
    /// Packets that left in the last second, by the bounds that hold now.
    window: VecDeque<(Time, u32)>,
    in_window: u64,
    /// Nothing arrives: by then all has left.
    quiet_until: Option<(Time, Span)>,
    /// Packets that got their verdict.
    pub(super) judged: u64,
    /// Packets that passed without one.
    pub(super) passed: u64,
}

impl Books {
    pub(super) fn new(bounds: Bounds) -> Books {
        Books {
            held: HashMap::new(),
            bytes: 0,
            order: VecDeque::new(),
            ghosts: HashMap::new(),
            ghost_bytes: 0,
            bounds,
            paid: (Time::ZERO, Span::ZERO),
            longest: bounds.longest(),
            excused: Span::ZERO,
            refused: false,
            given_before: false,
            uncounted: Time::ZERO,
            window: VecDeque::new(),
            in_window: 0,
            quiet_until: None,
            judged: 0,
            passed: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Other settings hold from `now` on.
    pub(super) fn follow(&mut self, bounds: Bounds, now: Time) {
        let debt = now + self.bounds.time_of(FULL);
        self.paid = (self.paid().max(debt), self.excused);
        self.bounds = bounds;
        self.longest = self.longest.max(bounds.longest());
        self.window.clear();
        self.in_window = 0;
        self.given_before |= self.refused;
        if let Some((_, excused)) = self.quiet_until {
            self.quiet_until = Some((Time(u64::MAX), excused));
        }
    }

    fn paid(&self) -> Time {
        let (time, excused) = self.paid;
        time + Span(self.excused.0 - excused.0)
    }

    /// The loop was kept from its work.
    pub(super) fn excuse(&mut self, time: Span) {
        self.excused += time;
    }

    /// The kernel takes verdicts at `now`, or does not.
    pub(super) fn sent(&mut self, taken: bool, now: Time) {
        self.refused = !taken;
        if taken && std::mem::take(&mut self.given_before) {
            self.uncounted = now;
        }
    }

    /// The kernel holds another packet.
    pub(super) fn hold(&mut self, id: u32, len: u32, now: Time) {
        self.held.insert(id, Held { len, arrived: now, excused: self.excused });
        self.bytes += u64::from(len);
        self.order.push_back(id);
        self.quiet_until = None;
    }

    /// The kernel has lost a packet.
    pub(super) fn lose(&mut self, id: u32) {
        if let Some(held) = self.remove(id) {
            self.repeat(id, held.len);
        }
    }

    /// The kernel has told of a packet once more than there are.
    pub(super) fn repeat(&mut self, id: u32, len: u32) {
        self.ghosts.entry(id).or_default().push(len);
        self.ghost_bytes += u64::from(len);
    }

    /// True if there was such a ghost.
    fn exorcise(&mut self, id: u32) -> bool {
        let Some(lengths) = self.ghosts.get_mut(&id) else { return false };
        let len = lengths.pop();
        if lengths.is_empty() {
            self.ghosts.remove(&id);
        }
        self.ghost_bytes -= u64::from(len.unwrap_or(0));
        len.is_some()
    }

    /// Gives memory back that busier times took; packets that are held, and ghosts.
    pub(super) fn tidy(&mut self) -> [usize; 2] {
        self.held.shrink_to_fit();
        self.order.shrink_to_fit();
        self.ghosts.shrink_to_fit();
        self.window.shrink_to_fit();
        [self.held.len(), self.ghosts.len()]
    }

    /// Packets that are held, oldest first.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().copied().filter(|&id| self.held.contains_key(&id))
    }

    /// All that is held passes: somebody opened the line.
    pub(super) fn open(&mut self) {
        let ids: Vec<u32> = self.ids().collect();
        for id in ids {
            self.remove(id);
            self.passed += 1;
        }
        self.ghosts.clear();
        self.ghost_bytes = 0;
        (self.refused, self.given_before) = (false, false);
    }

    fn remove(&mut self, id: u32) -> Option<Held> {
        let held = self.held.remove(&id)?;
        self.bytes -= u64::from(held.len);
        if self.held.is_empty() {
            self.order.clear();
            self.longest = self.bounds.longest();
        }
        Some(held)
    }

    /// A verdict; false if there is no such packet.
    pub(super) fn judge(&mut self, id: u32, accepted: bool, now: Time) -> Result<bool, Violation> {
        let Some(held) = self.remove(id) else {
            return match self.exorcise(id) {
                true => Ok(false),
                false => Err(Violation(format!("a second verdict on packet {id}"))),
            };
        };
        self.judged += 1;
        if accepted && now > self.uncounted {
            self.window.push_back((now, held.len));
            self.in_window += u64::from(held.len);
        }
        Ok(true)
    }

    /// Nothing arrives from now on.
    pub(super) fn quiet(&mut self, now: Time) {
        // What left last may just have begun to.
        let time = self.bounds.time_of(self.bytes + self.ghost_bytes + FULL);
        let time = Span(time.0 + time.0 / 50) + SLACK;
        self.quiet_until = Some((now.max(self.paid()) + time, self.excused));
    }

    /// Looks whether all holds. With `drained`, all may leave at once.
    pub(super) fn check(&mut self, now: Time, drained: bool) -> Result<(), Violation> {
        while let Some(&(time, len)) = self.window.front() {
            if now.since(time) < SECOND {
                break;
            }
            self.window.pop_front();
            self.in_window -= u64::from(len);
        }
        let (left, most) = (self.in_window, self.bounds.rate + self.bounds.burst);
        if left > most && !drained {
            return Err(Violation(format!("{left} bytes in a second, {most} at most")));
        }
        while self.order.front().is_some_and(|id| !self.held.contains_key(id)) {
            self.order.pop_front();
        }
        if let Some((id, held)) = self.order.front().and_then(|id| self.held.get_key_value(id)) {
            let (age, most) = (now.since(held.arrived), self.longest);
            if age > most + Span(self.excused.0 - held.excused.0) {
                return Err(Violation(format!("packet {id} held for {age:?}, {most:?} at most")));
            }
        }
        if let Some((until, excused)) = self.quiet_until {
            let until = until.0.saturating_add(self.excused.0 - excused.0);
            if now.0 > until && !self.held.is_empty() {
                let (count, bytes) = (self.held.len(), self.bytes);
                return Err(Violation(format!("{count} packets ({bytes} bytes) have not left")));
            }
        }
        Ok(())
    }
}
