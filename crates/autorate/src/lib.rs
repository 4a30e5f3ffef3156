//! Shaper rates that follow a line whose capacity changes: LTE, 5G, satellites, shared cable.
//!
//! A [`Controller`] is driven by whoever has clock and sockets, the gateway or the lab:
//!
//! ```text
//! answer(reflector, rtt, now)     a probe came back          (any number, any order)
//! lost(reflector, now)            a probe did not
//! came(reflector, sent, now)      the same, if it tells when it was sent back
//! hear(round_trips, now)          both of passing TCP, by its timestamps (`round_trips.rs`)
//! tick(now, seen) -> Decision     every INTERVAL, with what the queues of both directions saw
//! active()                        the reflectors to probe until the next tick
//! ```
//!
//! **Delay** (`paths.rs`): each reflector has a baseline of its own; its *rise* is the RTT above
//! that. So has each passing connection, by its timestamps. The votes of all are taken together:
//! their median is the line's delay. Who has not been heard of late does not vote beside others.
//! Three late answers in turn tell before votes do.
//! Where a far clock tells, the way back is told from the way there, and each direction has a delay
//! of its own.
//!
//! A queue is the same for all of them, jitter is not. Where two answers in turn differ by more
//! than 3 ms in the mean, a growth of as much says nothing. The capacity that is known then stays.
//!
//! **Rates** (`law`): each direction is *rising*, *holding* at a capacity that it has found, or
//! *draining* the queue that it has made elsewhere. Two things are known here that no script sees:
//!
//! * *Download.* While the line's own queue stands, it delivers at its capacity, and our queue runs
//!   dry. So the arrival rate is the capacity. Delay that comes while our queue is never empty and
//!   packets arrive at the set rate was not made by our load.
//! * *Upload.* We know exactly what was released. A queue that grows by `d` seconds in `t` seconds
//!   drains at `released * t / (t + d)`.
//!
//! A rate falls at once to the measured capacity, less what drains the queue in [`DRAIN`], and
//! never by a fixed factor. What had been sent until then shows a round trip later: the rate falls
//! on while the queue proves longer, or the line slower. Above the capacity last seen it rises in
//! steps over what the line has carried, each longer than the feedback takes. The longer the same
//! capacity is found again, the seldomer it is tried.
//!
//! A queue's length is what has passed more, or less, than the capacity. So a delay that stands
//! still while what passed did not, in both directions, is no queue. Neither is one that a drain
//! does not lower. A route has changed, and its RTT becomes the baseline (a satellite's every 15
//! s). A delay that grows is always a queue.
//!
//! With neither reflectors nor TCP that flows, rates stay as they are: silence says nothing about
//! capacity. A drain in vain accuses the other direction; a route is to blame when both are
//! cleared.
//!
//! Invariants: a rate is within its limits always; the state is of constant size. The work of a
//! call is bounded; the same calls give the same decisions.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

use simnel_core::{Rate, Span, Time};

mod law;
mod paths;
mod round_trips;
#[cfg(test)]
mod tests;

use law::{Evidence, History, Law};
pub use law::{Limits, Phase, Reason, Seen};
use paths::Paths;
pub use paths::{MOST_ACTIVE, MOST_REFLECTORS};
pub use round_trips::{RoundTrips, Stamp};

/// Time between two calls of [`Controller::tick`]. Longer ones are harmless, and slower.
pub const INTERVAL: Span = Span::from_millis(50);
/// A queue is to be drained in so long: several round trips, and not so hard that TCP starves.
pub const DRAIN: Span = Span::from_millis(250);
/// Rises below this are noise: a slot of the medium, one packet of others.
pub const LOW: Span = Span::from_millis(6);
/// Rises from here on are a queue, or another route.
pub const HIGH: Span = Span::from_millis(12);
/// Delay that is enough to tell that the line is busy, where arrivals say so too.
const SLIGHT: Span = Span::from_millis(3);
/// So much delay, and both directions may be its cause.
const BOTH: Span = Span::from_millis(60);
/// A direction's turn to search, if the other wants to as well.
const TURN: Span = Span::from_millis(1000);
/// Delay without a load that could have made it: after so long it is the path's own.
const UNLOADED_SHIFT: Span = Span::from_millis(600);
/// Answers older than this say nothing about now.
const STALE: Span = Span::from_millis(600);

/// Settings of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Upload and download; None is not shaped.
    pub limits: [Option<Limits>; 2],
    /// Number of reflectors to choose from, at most [`MOST_REFLECTORS`]; may be zero.
    pub reflectors: u8,
    /// Number of reflectors probed at a time, at most [`MOST_ACTIVE`].
    pub active: u8,
}

/// Index of the upload in pairs.
pub const UP: usize = 0;
/// Index of the download in pairs.
pub const DOWN: usize = 1;

/// A tick's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The rate to set, upload and download; None where there is no shaper.
    pub rates: [Option<Rate>; 2],
    /// True if the active reflectors changed: ask [`Controller::active`].
    pub replaced: bool,
}

/// The controller's estimates and phase, for `show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Delay above the baseline; None while nothing votes.
    pub delay: Option<Span>,
    /// The lowest baseline of those that vote.
    pub baseline: Option<Span>,
    /// Active reflectors that answer.
    pub answering: u8,
    /// Passing connections whose RTTs are known now.
    pub connections: u8,
    /// True if RTTs of passing TCP vote because no reflector does.
    pub by_passing: bool,
    /// Each direction's phase.
    pub phases: [Option<Phase>; 2],
    /// Each direction's latest reason for a change, and when it was.
    pub reasons: [Option<(Reason, Time)>; 2],
    /// Each direction's capacity, as last found.
    pub known: [Option<Rate>; 2],
    /// Times that a new baseline was taken instead of a lower rate.
    pub shifts: u32,
}

/// The controller of one line.
#[derive(Clone, Debug)]
pub struct Controller {
    paths: Paths,
    laws: [Option<Law>; 2],
    /// Since when delay is high without a load that explains it.
    unexplained: Option<Time>,
    /// The direction that tries more than the capacity last seen, and since when.
    search: Option<(usize, Time)>,
    /// Time at which a far clock last told the directions' delays apart.
    told: Option<Time>,
    delay: Option<Span>,
    shifts: u32,
}

impl Controller {
    /// A controller that begins at the geometric middle of each direction's limits.
    pub fn new(settings: &Settings, now: Time) -> Controller {
        Controller {
            paths: Paths::new(settings.reflectors, settings.active),
            laws: [UP, DOWN].map(|which| {
                settings.limits[which].map(|limits| Law::new(which == UP, limits, now))
            }),
            unexplained: None,
            search: None,
            told: None,
            delay: None,
            shifts: 0,
        }
    }

    /// The same, but rates begin where they are `found`, as far as limits allow.
    pub fn beginning_at(mut self, found: [Option<Rate>; 2]) -> Controller {
        for (law, rate) in self.laws.iter_mut().zip(found) {
            if let Some((law, rate)) = law.as_mut().zip(rate) {
                law.begin_at(rate);
            }
        }
        self
    }

    /// A probe of `reflector` came back after `rtt`.
    pub fn answer(&mut self, reflector: u8, rtt: Span, now: Time) {
        self.paths.answer(reflector, rtt, now);
    }

    /// A probe of `reflector` did not come back in time.
    pub fn lost(&mut self, reflector: u8, now: Time) {
        self.paths.lost(reflector, now);
    }

    /// Passing TCP showed a round trip between gateway and Internet of `rtt`, of a connection with
    /// any `tag`. Those of the same tag share a baseline.
    pub fn passing(&mut self, tag: u32, rtt: Span, now: Time) {
        self.paths.passing(tag, rtt, now);
    }

    /// Takes in what `trips` has found since the last call.
    pub fn hear(&mut self, trips: &RoundTrips, now: Time) {
        trips.take(|connection, rtt| self.passing(connection, rtt, now));
        trips.take_comings(|connection, coming| self.paths.came(connection, coming, false, now));
    }

    /// The answer of `reflector` that came now was sent at a millisecond of its clock, which may be
    /// any clock.
    pub fn came(&mut self, reflector: u8, sent: u32, now: Time) {
        self.paths.came(reflector.into(), round_trips::coming(sent, now), true, now);
    }

    /// The reflectors to be probed, by number.
    pub fn active(&self) -> impl Iterator<Item = u8> + '_ {
        self.paths.active()
    }

    /// An interval is over, in which the queues saw this, upload and download.
    pub fn tick(&mut self, now: Time, seen: [Seen; 2]) -> Decision {
        let flows = seen.iter().any(|seen| seen.arrived > 0);
        let replaced = self.paths.review(now, flows);
        self.delay = self.paths.delay(now);
        let (votes, jitter) = (self.paths.take_heard(), self.paths.jitter());
        // Where far clocks tell, each direction has a delay of its own.
        let coming = self.delay.and_then(|delay| {
            let coming = self.paths.coming(delay, now)?.min(delay);
            Some([delay.saturating_sub(coming), coming])
        });
        let delays = coming.map_or([self.delay; 2], |delays| delays.map(Some));
        for (which, law) in self.laws.iter_mut().enumerate() {
            if let Some(law) = law {
                law.note_jitter(jitter);
                law.note(&seen[which], delays[which], votes, now);
            }
        }
        // A delay of one's own is proof enough; one of both is anybody's.
        let guilty = if coming.is_some() { History::was_loaded } else { History::may_be_guilty };
        let mut accused = self.histories().map(|history| history.is_some_and(guilty));
        // A line that is busy delivers evenly, and what it did before. A download that gets less
        // may only wait for its acknowledgements, in the upload's queue: that is drained first.
        if let ([true, true], [Some(up), Some(down)], None) = (accused, &self.laws, coming) {
            let both = self.delay.is_some_and(|delay| delay >= BOTH);
            let certain = down.confirms();
            accused[DOWN] = certain || both || up.has_tried();
            accused[UP] = !certain || both || down.has_tried() || up.is_draining();
        }
        // Nor does it matter then what speaks for the other.
        let in_vain = self.laws.each_ref().map(|law| law.as_ref().is_some_and(Law::drains_in_vain));
        for (which, history) in self.histories().into_iter().enumerate() {
            accused[which] |= in_vain[1 - which] && history.is_some_and(History::was_loaded);
        }
        let high = self.delay.is_some_and(|delay| delay >= LOW);
        let explained = self.laws.iter().flatten().any(Law::is_draining) || accused != [false; 2];
        self.unexplained = match self.unexplained {
            _ if !high || explained => None,
            None => Some(now),
            since => since,
        };
        if coming.is_some() {
            self.told = Some(now);
        }
        let told = self.told.is_some_and(|at| now.since(at) < STALE);
        let unsure = accused == [true; 2] && !told;
        let searching = self.search.map(|(which, _)| which);
        let mut shifted = self.unexplained.is_some_and(|since| now.since(since) >= UNLOADED_SHIFT);
        for (which, (law, accused)) in self.laws.iter_mut().zip(accused).enumerate() {
            if let Some(law) = law {
                let searches = searching == Some(which) || coming.is_some();
                let evidence = Evidence { delay: delays[which], accused, searches, unsure };
                law.decide(&evidence, now);
            }
        }
        // What is neither's is the route's.
        let mut laws = self.laws.iter().flatten();
        let grows = laws.clone().any(|law| law.history().sees_growth());
        shifted |= self.delay.is_some_and(|delay| delay >= SLIGHT)
            && !grows
            && laws.clone().any(|law| law.history().was_loaded() && law.is_acquitted())
            && laws.all(|law| law.history().sees_little() || law.is_acquitted());
        if shifted {
            self.unexplained = None;
            self.shifts = self.shifts.saturating_add(1);
            self.paths.shift(now);
            for law in self.laws.iter_mut().flatten() {
                law.shifted(now);
            }
        }
        self.take_turns(now);
        let rates = self.laws.each_ref().map(|law| law.as_ref().map(Law::rate));
        Decision { rates, replaced }
    }

    fn histories(&self) -> [Option<&History>; 2] {
        self.laws.each_ref().map(|law| law.as_ref().map(Law::history))
    }

    /// Only one direction searches at a time: whose delay would it be otherwise?
    fn take_turns(&mut self, now: Time) {
        let wants = |which: usize| self.laws[which].as_ref().is_some_and(Law::wants_to_search);
        self.search = match self.search {
            Some((which, since)) if wants(which) => {
                let over = now.since(since) >= TURN && wants(1 - which);
                Some(if over { (1 - which, now) } else { (which, since) })
            }
            Some((which, _)) if wants(1 - which) => Some((1 - which, now)),
            None if wants(DOWN) => Some((DOWN, now)),
            None if wants(UP) => Some((UP, now)),
            // The delay of a search that has just ended is still to come.
            Some((which, since)) if now.since(since) < TURN => Some((which, since)),
            _ => None,
        };
    }

    /// Its estimates and phase.
    pub fn state(&self) -> State {
        let law = |f: fn(&Law) -> Phase| self.laws.each_ref().map(|law| law.as_ref().map(f));
        State {
            delay: self.delay,
            baseline: self.paths.baseline(),
            answering: self.paths.answering(),
            connections: self.paths.connections(),
            by_passing: self.paths.by_passing(),
            phases: law(Law::phase),
            reasons: self.laws.each_ref().map(|law| law.as_ref().and_then(Law::reason)),
            known: self.laws.each_ref().map(|law| law.as_ref().and_then(Law::known)),
            shifts: self.shifts,
        }
    }
}
