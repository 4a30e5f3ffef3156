//! Settings on trial: they end by themselves unless somebody keeps them.
//!
//! A trial is a deadline on the monotonic clock and the way back: give the interface back, or
//! another discipline for one direction. The daemon tells its supervisor whenever an interface's
//! trials change, so a daemon that is started again goes on where the last one ended.

use serde::{Deserialize, Serialize};
use simnel_core::{Span, Time};

use crate::direction::Direction;

/// Trials last at least and at most so long: time to look, and no forgotten ones for weeks.
pub const SHORTEST: Span = Span::from_secs(1);
/// See [`SHORTEST`].
pub const LONGEST: Span = Span::from_secs(7 * 24 * 3600);

/// The way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Back {
    /// Give the interface back.
    Down,
    /// Settings as they were, in `tc`'s words.
    Change(Direction, String),
}

/// A trial as `show` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Milliseconds until it ends.
    pub ms: u64,
    /// The action at its end.
    pub back: Back,
}

/// A trial under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// Of the monotonic clock, in ns, which daemons of one supervisor share.
    until: u64,
    back: Back,
}

impl Trial {
    /// The way back.
    pub(crate) fn back(&self) -> &Back {
        &self.back
    }

    /// Time until it ends.
    pub(crate) fn left(&self, now: Time) -> Span {
        Span(self.until.saturating_sub(now.0))
    }

    /// Time since it has ended; None while it lasts.
    pub(crate) fn overdue(&self, now: Time) -> Option<Span> {
        now.0.checked_sub(self.until).map(Span)
    }
}

/// Trials of all interfaces.
#[derive(Default)]
pub(crate) struct Trials(Vec<(String, Trial)>);

impl Trials {
    /// Begins one. A second trial of the same thing leads back to where the first began.
    pub(crate) fn begin(&mut self, interface: &str, back: Back, now: Time, span: Span) {
        let until = now.0.saturating_add(span.0);
        let same = |trial: &Trial| match (&trial.back, &back) {
            (Back::Change(a, _), Back::Change(b, _)) => a == b,
            (a, b) => a == b,
        };
        match self.0.iter_mut().find(|(name, trial)| name == interface && same(trial)) {
            Some((_, trial)) => trial.until = until,
            None => self.0.push((interface.to_owned(), Trial { until, back })),
        }
    }

    /// Goes on with what an earlier daemon had.
    pub(crate) fn resume(&mut self, interface: &str, trials: Vec<Trial>) {
        self.forget(interface);
        self.0.extend(trials.into_iter().map(|trial| (interface.to_owned(), trial)));
    }

    /// Ends all of an interface without a way back; false if there was none.
    pub(crate) fn forget(&mut self, interface: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(name, _)| name != interface);
        self.0.len() < before
    }

    /// Ends that of one direction: somebody has decided otherwise.
    pub(crate) fn decided(&mut self, interface: &str, direction: Direction) {
        self.0.retain(|(name, trial)| {
            name != interface || !matches!(&trial.back, Back::Change(way, _) if *way == direction)
        });
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// All of an interface.
    pub(crate) fn of(&self, interface: &str) -> Vec<Trial> {
        let own = self.0.iter().filter(|(name, _)| name == interface);
        own.map(|(_, trial)| trial.clone()).collect()
    }

    /// The same, as it is shown.
    pub(crate) fn left(&self, interface: &str, now: Time) -> Vec<Left> {
        let left =
            |trial: Trial| Left { ms: trial.left(now).0.div_ceil(1_000_000), back: trial.back };
        self.of(interface).into_iter().map(left).collect()
    }

    /// Takes one that has ended.
    pub(crate) fn due(&mut self, now: Time) -> Option<(String, Back)> {
        let index = self.0.iter().position(|(_, trial)| trial.overdue(now).is_some())?;
        let (interface, trial) = self.0.remove(index);
        Some((interface, trial.back))
    }

    /// Time until the next one ends.
    pub(crate) fn patience(&self, now: Time) -> Option<Span> {
        self.0.iter().map(|(_, trial)| trial.left(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Span = Span::from_secs(60);

    fn change(words: &str) -> Back {
        Back::Change(Direction::Upload, words.into())
    }

    #[test]
    fn a_trial_ends_in_time_and_leads_back_to_where_the_first_began() {
        let mut trials = Trials::default();
        trials.begin("wan", change("cake bandwidth 8Mbit"), Time(0), MINUTE);
        trials.begin("wan", Back::Down, Time(0), MINUTE);
        trials.begin("wan", change("cake bandwidth 6Mbit"), Time(30_000_000_000), MINUTE);
        let left = trials.left("wan", Time(31_000_000_000));
        assert_eq!(left.len(), 2);
        assert_eq!((left[0].ms, left[1].ms), (59_000, 29_000));
        assert_eq!(trials.patience(Time(31_000_000_000)), Some(Span::from_secs(29)));
        assert_eq!(trials.due(Time(59_999_999_999)), None);
        assert_eq!(trials.due(Time(60_000_000_000)), Some(("wan".into(), Back::Down)));
        let back = change("cake bandwidth 8Mbit");
        assert_eq!(trials.due(Time(90_000_000_000)), Some(("wan".into(), back)));
        assert_eq!(trials.due(Time::MAX), None);
    }

    #[test]
    fn what_is_kept_or_decided_does_not_end() {
        let mut trials = Trials::default();
        trials.begin("wan", change("cake"), Time(0), MINUTE);
        trials.begin("wan", Back::Change(Direction::Download, "cake".into()), Time(0), MINUTE);
        trials.begin("lan", Back::Down, Time(0), MINUTE);
        trials.decided("wan", Direction::Upload);
        assert_eq!(trials.of("wan").len(), 1);
        assert!(trials.forget("wan") && !trials.forget("wan"));
        assert_eq!(trials.due(Time::MAX), Some(("lan".into(), Back::Down)));
    }

    #[test]
    fn a_later_daemon_goes_on_with_them() {
        let mut trials = Trials::default();
        trials.begin("wan", change("cake"), Time(5), MINUTE);
        let told = serde_json::to_string(&trials.of("wan")).unwrap();
        let mut later = Trials::default();
        later.resume("wan", serde_json::from_str(&told).unwrap());
        assert_eq!(later.left("wan", Time(5)), trials.left("wan", Time(5)));
    }

    #[test]
    fn what_is_forgotten_leads_nowhere() {
        let mut trials = Trials::default();
        trials.begin("wan", change("cake"), Time(0), MINUTE);
        trials.clear();
        assert_eq!((trials.due(Time::MAX), trials.patience(Time(0))), (None, None));
    }
}
