//! Finds the first event in which a replay differs from its recording.
//!
//! Order, times, drops and CE marks are always compared. Tier and queue are compared when both
//! sides give them, a length on the line when the recording gives one. After the first difference
//! the two sides are in different states and nothing further means anything, so the comparison ends
//! there.

use std::fmt;
use std::fmt::Write as _;

use serde::Deserialize;

use super::command::What;
use super::device::Replayed;
use super::format::{Event, Fate, Recording};
use super::statistics;

/// Equal events shown before a difference.
const CONTEXT_BEFORE: usize = 3;
/// Events of each side shown after a difference.
const CONTEXT_AFTER: usize = 2;

/// In what the first differing event differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Same packet, same fate, another time.
    Time,
    /// Same packet, but one side set CE and the other did not.
    Mark,
    /// Same packet, another length on the line.
    Size,
    /// Same packet, from another tier or queue.
    Place,
    /// Another packet met the same fate.
    Order,
    /// One side dropped a packet where the other did something else.
    Drop,
    /// One side filtered an acknowledgement where the other did something else.
    AckFilter,
    /// One side has no more events.
    End,
    /// All events are equal, but something was counted otherwise.
    Statistics,
    /// The replay could not be made at all.
    Failed,
}

impl Kind {
    /// The word for it, as the ledger writes it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Time => "time",
            Kind::Mark => "mark",
            Kind::Size => "size",
            Kind::Place => "place",
            Kind::Order => "order",
            Kind::Drop => "drop",
            Kind::AckFilter => "ack-filter",
            Kind::End => "end",
            Kind::Statistics => "statistics",
            Kind::Failed => "failed",
        }
    }
}

/// The first difference between a replay and its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In what.
    pub kind: Kind,
    /// Both lines with what precedes and follows them, or why there was no replay.
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  first difference: {}\n{}", self.kind.name(), self.text)
    }
}

impl Difference {
    pub(super) fn failed(text: String) -> Difference {
        Difference { kind: Kind::Failed, text }
    }
}

/// The number of equal events from the beginning, and the first difference if there is one. It is
/// in what became of a packet, or else in what was counted.
pub fn compare(recording: &Recording, ours: &Replayed) -> (usize, Option<Difference>) {
    let expected = sorted(recording, &recording.expected);
    let events = sorted(recording, &ours.events);
    let (common, difference) = compare_events(["recorded", "ours"], &expected, &events);
    (common, difference.or_else(|| compare_statistics(recording, ours)))
}

/// `events`, those of a reset by number: the order in which a discipline is emptied says nothing.
fn sorted(recording: &Recording, events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    for reset in recording.commands.iter().filter(|command| command.what == What::Reset) {
        let is_lost = |event: &Event| event.time == reset.time && event.fate == Fate::Dropped;
        for lost in events.chunk_by_mut(|a, b| is_lost(a) && is_lost(b)) {
            lost.sort_by_key(|event| event.id);
        }
    }
    events
}

/// The number of equal events from the beginning, and the first difference if there is one, with
/// names for both sides.
pub(super) fn compare_events(
    names: [&str; 2],
    expected: &[Event],
    ours: &[Event],
) -> (usize, Option<Difference>) {
    let common = expected.iter().zip(ours).take_while(|(e, o)| differs(e, o).is_none()).count();
    let kind = match (expected.get(common), ours.get(common)) {
        (None, None) => return (common, None),
        (Some(expected), Some(ours)) => differs(expected, ours).unwrap_or(Kind::End),
        _ => Kind::End,
    };
    (common, Some(Difference { kind, text: context(names, expected, ours, common) }))
}

fn compare_statistics(recording: &Recording, ours: &Replayed) -> Option<Difference> {
    let text = recording.statistics.iter().find_map(|recorded| {
        let is_same = |ours: &&statistics::Statistics| {
            (ours.look, ours.class) == (recorded.look, recorded.class)
        };
        match ours.statistics.iter().find(is_same) {
            Some(ours) => statistics::difference(recorded, ours),
            None => Some(format!("    at {}: no class {:x}\n", recorded.time.0, recorded.class)),
        }
    });
    text.map(|text| Difference { kind: Kind::Statistics, text })
}

fn differs(expected: &Event, ours: &Event) -> Option<Kind> {
    let same_fate = std::mem::discriminant(&expected.fate) == std::mem::discriminant(&ours.fate);
    if !same_fate {
        let filtered = [expected.fate, ours.fate].contains(&Fate::AckFiltered);
        return Some(if filtered { Kind::AckFilter } else { Kind::Drop });
    }
    if expected.id != ours.id {
        return Some(Kind::Order);
    }
    if expected.time != ours.time {
        return Some(Kind::Time);
    }
    let (
        Fate::Sent { place, adj_len, marked },
        Fate::Sent { place: our_place, adj_len: our_adj_len, marked: our_marked },
    ) = (expected.fate, ours.fate)
    else {
        return None;
    };
    if marked != our_marked {
        Some(Kind::Mark)
    } else if adj_len.is_some() && adj_len != our_adj_len {
        Some(Kind::Size)
    } else if place.is_some() && our_place.is_some() && place != our_place {
        Some(Kind::Place)
    } else {
        None
    }
}

fn context(names: [&str; 2], expected: &[Event], ours: &[Event], at: usize) -> String {
    let mut text = String::new();
    let line = |text: &mut String, name: &str, events: &[Event], n: usize| {
        let event = events.get(n).map_or_else(|| "(no more events)".into(), Event::to_string);
        let _ = writeln!(text, "    {name:8} {event}");
    };
    for n in at.saturating_sub(CONTEXT_BEFORE)..at {
        line(&mut text, "both", expected, n);
    }
    for (name, events) in names.into_iter().zip([expected, ours]) {
        for n in at..=at + CONTEXT_AFTER {
            line(&mut text, name, events, n);
            if n >= events.len() {
                break;
            }
        }
    }
    text
}
