//! Changes by others to an interface while it is served: seen within half a second, told once.
//!
//! Our rules go by the interface's name. Where it is taken down, deleted and made again, they stand
//! and work as soon as it is back; where it gets another name, traffic passes by them, and that
//! must be told. A changed MTU changes quanta and limits: the disciplines follow. Tables of others
//! come and go (ours can be removed by nobody else): a flowtable among them may lead packets past
//! us from then on.

use std::fmt;

use serde::{Deserialize, Serialize};
use simnel_core::{Span, Time};

use crate::offload;
use crate::sys::{self, Query};

/// Time between looks for flowtables, each of which asks for all of them.
const OFFLOADS_EACH: Span = Span::from_secs(10);

/// An interface as last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    There { index: u32, mtu: u32, is_up: bool },
    Absent,
}

impl State {
    fn of(interface: &str) -> State {
        let ask = |query| sys::interface(interface, query);
        match (ask(Query::Index), ask(Query::Mtu), ask(Query::Flags)) {
            (Ok(index), Ok(mtu), Ok(flags)) => {
                State::There { index, mtu, is_up: flags & libc::IFF_UP as u32 != 0 }
            }
            _ => State::Absent,
        }
    }
}

/// Something that happened to an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is no longer there.
    Gone,
    /// It has another name, and nothing has this one.
    Renamed(String),
    /// It is there again.
    Back,
    /// It was taken down.
    Down,
    /// It was set up.
    Up,
    /// Longest packet in bytes, without link header.
    Mtu(u32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Gone => f.write_str("gone; what passes it when it is back will be shaped"),
            Change::Renamed(name) => write!(
                f,
                "renamed to {name}, whose traffic passes unshaped: rename it back, or `simnel \
                 down` and `simnel up {name}`"
            ),
            Change::Back => f.write_str("back, and shaped"),
            Change::Down => f.write_str("down: nothing passes until it is set up"),
            Change::Up => f.write_str("set up again"),
            Change::Mtu(mtu) => write!(f, "MTU is {mtu} now; the disciplines follow"),
        }
    }
}

/// The watch over one interface.
pub(crate) struct Presence {
    interface: String,
    state: State,
    /// Why nothing passes, or passes by us.
    trouble: Option<Change>,
    offloads: Vec<String>,
    next_offloads: Time,
}

impl Presence {
    /// Begins with what is there now; warnings about `offloads` were given.
    pub(crate) fn new(interface: &str, offloads: Vec<String>, now: Time) -> Presence {
        let state = State::of(interface);
        Presence {
            interface: interface.to_owned(),
            state,
            trouble: trouble(state, &[], None),
            offloads,
            next_offloads: now + OFFLOADS_EACH,
        }
    }

    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    /// Changes since the last look.
    pub(crate) fn look(&mut self) -> Vec<Change> {
        let state = State::of(&self.interface);
        let changes = changes(self.state, state, sys::interface_name);
        self.state = state;
        self.trouble = trouble(state, &changes, self.trouble.take());
        changes
    }

    /// The change for the worse that lasts.
    pub(crate) fn trouble(&self) -> Option<&Change> {
        self.trouble.as_ref()
    }

    /// Warnings about new ways past us.
    pub(crate) fn new_offloads(&mut self, now: Time) -> Vec<String> {
        if now < self.next_offloads || self.state == State::Absent {
            return Vec::new();
        }
        self.next_offloads = now + OFFLOADS_EACH;
        let before = std::mem::replace(&mut self.offloads, offload::warnings(&self.interface));
        self.offloads.iter().filter(|warning| !before.contains(warning)).cloned().collect()
    }
}

/// The change for the worse that lasts, after `changes` to the present state.
fn trouble(now: State, changes: &[Change], before: Option<Change>) -> Option<Change> {
    match now {
        State::There { is_up, .. } => (!is_up).then_some(Change::Down),
        State::Absent => changes.first().cloned().or(before),
    }
}

/// Changes between two looks. `name` gives the name of the interface with a number.
fn changes(before: State, now: State, name: impl Fn(u32) -> Option<String>) -> Vec<Change> {
    match (before, now) {
        (State::Absent, State::Absent) => Vec::new(),
        (State::Absent, State::There { .. }) => vec![Change::Back],
        (State::There { index, .. }, State::Absent) => {
            vec![name(index).map_or(Change::Gone, Change::Renamed)]
        }
        (State::There { mtu: old_mtu, is_up: was_up, .. }, State::There { mtu, is_up, .. }) => {
            let mut changes = Vec::new();
            if mtu != old_mtu {
                changes.push(Change::Mtu(mtu));
            }
            if is_up != was_up {
                changes.push(if is_up { Change::Up } else { Change::Down });
            }
            changes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: State = State::There { index: 7, mtu: 1500, is_up: true };

    #[test]
    fn each_change_is_told() {
        let down = State::There { index: 7, mtu: 1500, is_up: false };
        let small = State::There { index: 7, mtu: 1400, is_up: false };
        let another = State::There { index: 9, mtu: 1500, is_up: true };
        let nobody = |_| None;
        for (before, now, expected) in [
            (HERE, HERE, vec![]),
            (HERE, down, vec![Change::Down]),
            (HERE, small, vec![Change::Mtu(1400), Change::Down]),
            (down, HERE, vec![Change::Up]),
            (HERE, State::Absent, vec![Change::Gone]),
            (State::Absent, State::Absent, vec![]),
            (State::Absent, another, vec![Change::Back]),
            // Replaced between two looks: rules go by the name.
            (HERE, another, vec![]),
        ] {
            assert_eq!(changes(before, now, nobody), expected, "{before:?} {now:?}");
        }
        let renamed = |index| (index == 7).then(|| "ppp1".to_owned());
        let gone = changes(HERE, State::Absent, renamed);
        assert_eq!(gone, [Change::Renamed("ppp1".into())]);
        // It lasts until the interface is back, and up.
        let lasting = trouble(State::Absent, &gone, None);
        assert_eq!(trouble(State::Absent, &[], lasting.clone()).as_ref(), gone.first());
        assert_eq!(trouble(down, &[Change::Back], lasting.clone()), Some(Change::Down));
        assert_eq!(trouble(HERE, &[Change::Back], lasting), None);
    }
}
