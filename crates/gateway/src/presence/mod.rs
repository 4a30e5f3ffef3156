//! Changes by others to an interface while it is served: seen within half a second, told once.
//!
//! Our rules go by the interface's name. Where it is taken down, deleted and made again, they stand
//! and work as soon as it is back. Where it gets another name, traffic passes by them, and that
//! must be told. Another MTU or queue length changes quanta and limits: the disciplines follow.
//! Nothing of ours goes by the interface's addresses, but connections do, so other ones are told. A
//! default route that leaves by another interface takes the traffic along. Frames between ports of
//! a bridge are seen by rules of its family alone, which is chosen as the interface is taken over.
//! Tables of others come and go (ours can be removed by nobody else). A flowtable among them may
//! lead packets past us from then on; a rule that queues may bring us what is not ours.
//! Where the kernel shapes, a rule may take packets away from connection tracking, on which ours
//! stand there.

mod ways;

use std::fmt;
use std::io;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use simnel_core::{Span, Time};

use crate::addresses;
use crate::foreign;
use crate::links;
use crate::offload;
use crate::routes;
use crate::sys::{self, Query};
use crate::untracked;

/// Time between looks at others' tables, each of which asks for all of them.
const TABLES_EACH: Span = Span::from_secs(10);
/// Looks at routes, and those at bridges, take one part in so many of the time. A table of routes,
/// and one of devices, may be long.
const TABLE_SHARE: u64 = 200;

/// An interface as last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    There { index: u32, mtu: u32, queue: u32, is_up: bool },
    Absent,
}

impl State {
    fn of(interface: &str) -> State {
        let ask = |query| sys::interface(interface, query);
        let there = || -> io::Result<State> {
            let (index, mtu) = (ask(Query::Index)?, ask(Query::Mtu)?);
            let is_up = ask(Query::Flags)? & libc::IFF_UP as u32 != 0;
            Ok(State::There { index, mtu, queue: ask(Query::TxQueueLen)?, is_up })
        };
        there().unwrap_or(State::Absent)
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
    /// Packets that its own queue takes.
    QueueLength(u32),
    /// Its addresses, but for those of the link alone and those that are temporary.
    Addresses(Vec<IpAddr>),
    /// The default route leaves by another interface.
    Elsewhere {
        /// The versions of IP that this is about.
        versions: Vec<Version>,
        /// That interface.
        by: String,
    },
    /// The default route of these versions leaves by it again.
    Leads(Vec<Version>),
    /// It is a port of a bridge now.
    Port,
    /// It is a port of a bridge no longer.
    NoPort,
    /// It is a port of a bridge, or none, as when it was taken over.
    Fits,
    /// It could not be taken over, for this reason, and is tried again.
    Awaited(String),
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
}

fn named(versions: &[Version]) -> String {
    versions.iter().map(|version| format!("{version:?}")).collect::<Vec<_>>().join(" and ")
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
            Change::QueueLength(packets) => {
                write!(f, "queue length is {packets} now; the disciplines follow")
            }
            Change::Addresses(now) if now.is_empty() => f.write_str("without an address now"),
            Change::Addresses(now) => {
                let now: Vec<String> = now.iter().map(IpAddr::to_string).collect();
                write!(f, "addresses are {} now; shaping goes by the interface", now.join(", "))
            }
            Change::Elsewhere { versions, by } => write!(
                f,
                "no longer the way to the Internet: the default route of {} is by {by} now, \
                 whose traffic passes unshaped unless {by} is managed too",
                named(versions)
            ),
            Change::Leads(versions) => {
                write!(f, "the way to the Internet again (default route of {})", named(versions))
            }
            Change::Port => f.write_str(
                "a port of a bridge now, whose frames pass unshaped: take it out, or `simnel down` \
                 and `simnel up`",
            ),
            Change::NoPort => f.write_str(
                "no port of a bridge any more, and its traffic passes unshaped: put it back, or \
                 `simnel down` and `simnel up`",
            ),
            Change::Fits => f.write_str("shaped again, as before the change of its bridge"),
            Change::Awaited(reason) => write!(f, "waited for: {reason}"),
        }
    }
}

/// The watch over its being a port of a bridge, or none, as the rules need it.
struct Bridge {
    is_for_port: bool,
    /// Mismatch between the interface and what the rules are for; None while they fit.
    misfit: Option<Change>,
    next: Time,
}

impl Bridge {
    fn look(&mut self, interface: &str, now: Time) -> Option<Change> {
        if now < self.next {
            return None;
        }
        let start = sys::now();
        let is_port = links::bridge_of(interface);
        self.next = after_table(now, start);
        let misfit = match (is_port.ok()?.is_some(), self.is_for_port) {
            (true, false) => Some(Change::Port),
            (false, true) => Some(Change::NoPort),
            _ => None,
        };
        if misfit == self.misfit {
            return None;
        }
        self.misfit.clone_from(&misfit);
        Some(misfit.unwrap_or(Change::Fits))
    }
}

/// Time of the next look at a long table, after one at `now` that began at `start`.
fn after_table(now: Time, start: Time) -> Time {
    now + Span(sys::now().since(start).0.saturating_mul(TABLE_SHARE))
}

/// Whoever shapes an interface.
pub(crate) enum Shaper {
    /// This process, with these kernel queues.
    Process(Vec<u16>),
    /// Disciplines of the kernel, whose rules and flows stand on connection tracking.
    Kernel,
}

/// The watch over one interface.
pub(crate) struct Presence {
    interface: String,
    state: State,
    addresses: Vec<IpAddr>,
    /// As last seen while the interface was up.
    ways: ways::Seen,
    next_ways: Time,
    bridge: Option<Bridge>,
    /// Change because of which nothing passes, or traffic passes by us, if there is one.
    trouble: Option<Change>,
    shaper: Shaper,
    /// Warnings about others' tables that were given.
    tables: Vec<String>,
    next_tables: Time,
}

impl Presence {
    /// Begins with what is there now, others' tables included, which the second value is about.
    /// `is_for_port`: whether rules are for a port of a bridge, if that matters.
    pub(crate) fn new(
        interface: &str,
        shaper: Shaper,
        is_for_port: Option<bool>,
        now: Time,
    ) -> (Presence, Vec<String>) {
        let state = State::of(interface);
        let tables = tables(interface, &shaper);
        let presence = Presence {
            interface: interface.to_owned(),
            state,
            addresses: addresses_of(state).unwrap_or_default(),
            ways: ways::Seen::new(interface, routes::best(interface)),
            next_ways: now,
            bridge: is_for_port.map(|is_for_port| Bridge { is_for_port, misfit: None, next: now }),
            trouble: trouble(state, &[], None),
            shaper,
            tables: tables.clone(),
            next_tables: now + TABLES_EACH,
        };
        (presence, tables)
    }

    /// Changes since the last look.
    pub(crate) fn look(&mut self, now: Time) -> Vec<Change> {
        let state = State::of(&self.interface);
        let mut changes = changes(self.state, state, sys::interface_name);
        self.state = state;
        if let State::There { is_up: true, .. } = state {
            changes.extend(self.look_at_addresses());
            changes.extend(self.look_at_routes(now));
            let bridge = self.bridge.as_mut();
            changes.extend(bridge.and_then(|bridge| bridge.look(&self.interface, now)));
        }
        let misfit = self.bridge.as_ref().and_then(|bridge| bridge.misfit.clone());
        let elsewhere = self.ways.elsewhere(&self.interface);
        self.trouble = trouble(state, &changes, self.trouble.take()).or(misfit).or(elsewhere);
        changes
    }

    fn look_at_addresses(&mut self) -> Option<Change> {
        let addresses = addresses_of(self.state)?;
        (self.addresses != addresses).then(|| {
            self.addresses.clone_from(&addresses);
            Change::Addresses(addresses)
        })
    }

    fn look_at_routes(&mut self, now: Time) -> Vec<Change> {
        if now < self.next_ways {
            return Vec::new();
        }
        let start = sys::now();
        let ways = routes::best(&self.interface);
        self.next_ways = after_table(now, start);
        self.ways.look(&self.interface, ways)
    }

    /// True if the interface was there at the last look.
    pub(crate) fn is_there(&self) -> bool {
        self.state != State::Absent
    }

    /// The change for the worse that lasts.
    pub(crate) fn trouble(&self) -> Option<&Change> {
        self.trouble.as_ref()
    }

    /// Warnings about new ways past us, and new ones to us.
    pub(crate) fn new_in_tables(&mut self, now: Time) -> Vec<String> {
        if now < self.next_tables || self.state == State::Absent {
            return Vec::new();
        }
        self.next_tables = now + TABLES_EACH;
        let tables = tables(&self.interface, &self.shaper);
        let before = std::mem::replace(&mut self.tables, tables);
        self.tables.iter().filter(|warning| !before.contains(warning)).cloned().collect()
    }
}

/// Addresses of an interface that is there; None if that cannot be found out.
fn addresses_of(state: State) -> Option<Vec<IpAddr>> {
    match state {
        State::There { index, .. } => addresses::of(index).ok(),
        State::Absent => None,
    }
}

/// Warnings about tables of others: ways past us, and to us; or past connection tracking.
fn tables(interface: &str, shaper: &Shaper) -> Vec<String> {
    match shaper {
        Shaper::Process(queues) => {
            let mut warnings = offload::warnings(interface);
            warnings.extend(foreign::warnings(interface, queues));
            warnings
        }
        Shaper::Kernel => untracked::warnings(interface),
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
        // Deleted and made again between two looks: rules go by the name, sockets by the number.
        (State::There { index: old, .. }, State::There { index, .. }) if old != index => {
            vec![Change::Back]
        }
        (
            State::There { mtu: old_mtu, queue: old_queue, is_up: was_up, .. },
            State::There { mtu, queue, is_up, .. },
        ) => {
            let mut changes = Vec::new();
            if mtu != old_mtu {
                changes.push(Change::Mtu(mtu));
            }
            if queue != old_queue {
                changes.push(Change::QueueLength(queue));
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

    const HERE: State = State::There { index: 7, mtu: 1500, queue: 1000, is_up: true };

    #[test]
    fn each_change_is_told() {
        let down = State::There { index: 7, mtu: 1500, queue: 1000, is_up: false };
        let small = State::There { index: 7, mtu: 1400, queue: 1000, is_up: false };
        let short = State::There { index: 7, mtu: 1500, queue: 9, is_up: true };
        let another = State::There { index: 9, mtu: 1500, queue: 1000, is_up: true };
        let nobody = |_| None;
        for (before, now, expected) in [
            (HERE, HERE, vec![]),
            (HERE, down, vec![Change::Down]),
            (HERE, small, vec![Change::Mtu(1400), Change::Down]),
            (HERE, short, vec![Change::QueueLength(9)]),
            (down, HERE, vec![Change::Up]),
            (HERE, State::Absent, vec![Change::Gone]),
            (State::Absent, State::Absent, vec![]),
            (State::Absent, another, vec![Change::Back]),
            (HERE, another, vec![Change::Back]),
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
