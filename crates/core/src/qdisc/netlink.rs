//! Settings and statistics as Linux's rtnetlink has them, for disciplines that Linux has.
//!
//! The bytes are those of `TCA_OPTIONS` and `TCA_STATS_APP`. So unmodified programs (`tc`,
//! systemd-networkd) set and show a discipline of ours under the name of Linux's. What Linux
//! refuses is refused here, with its error number. Each discipline's attributes stand in its room,
//! `netlink.rs`; recordings of the real `tc` are the test (tests/data/tc/netlink.txt).

use super::{Class, Config, Device, Snapshot, DISCIPLINES};
use crate::netlink::{Error, Figure, Options, Problem, Statistics, Table, Writer};
use crate::time::Time;

pub use crate::netlink::Full;

/// Linux's netlink ABI of a discipline with settings `P` and statistics `S`.
pub struct Abi<P, S: 'static> {
    /// The settings that a request asks for, in place of the given ones if it changes a running
    /// discipline.
    pub(super) read: fn(&Request<'_>, Option<&P>) -> Result<P, Error>,
    /// Writes settings as `TCA_OPTIONS` has them, which for some disciplines has counters as well.
    pub(super) write_options: fn(&P, Option<&S>, &mut Writer<'_>),
    /// Statistics as `TCA_STATS_APP` has them.
    pub(super) statistics: Statistics<S>,
    /// Writes statistics of a class at a moment likewise, where Linux has some.
    pub(super) write_class: Option<WriteClass>,
}

/// Writes statistics of a class at a moment.
pub(super) type WriteClass = fn(&Class, Time, &mut Writer<'_>);

/// A request for a discipline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    /// The options, if there are any.
    pub options: Option<Options<'a>>,
    /// Device at which the discipline is to stand.
    pub device: &'a Device,
}

impl Request<'_> {
    /// The settings of a discipline whose attributes are all in `table`.
    pub fn read<P: Clone + Default>(&self, table: &Table<P>, old: Option<&P>) -> Result<P, Error> {
        let mut params = old.cloned().unwrap_or_default();
        if let Some(options) = &self.options {
            table.read(options, &mut params, old.is_some())?;
        }
        Ok(params)
    }
}

/// [`Abi::read`] for settings of any discipline.
pub(super) type Read = fn(&Request<'_>, Option<&Config>) -> Result<Config, Error>;

/// [`Statistics::read`] for statistics of any discipline.
pub(super) type ReadStatistics = fn(&[u8], &mut dyn FnMut(Figure));

/// The error that a discipline has no netlink attributes, or not these settings.
pub(super) const OTHER: Error =
    Error { attribute: "TCA_KIND", offset: 0, problem: Problem::OtherDiscipline };

/// Names of the disciplines that have netlink attributes.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    DISCIPLINES.iter().filter(|known| known.netlink.is_some()).map(|known| known.name)
}

/// The settings that a request for the discipline `name` on `device` asks for, with all that the
/// device decides filled in. With `old`, those of a running discipline, what is absent stays as it
/// is. Settings of ours that Linux does not have stay in any case.
pub fn parse(
    name: &str,
    options: Option<Options<'_>>,
    old: Option<&Config>,
    device: &Device,
) -> Result<Config, Error> {
    let read = DISCIPLINES.iter().find(|known| known.name == name).and_then(|known| known.netlink);
    read.ok_or(OTHER)?(&Request { options, device }, old)
}

/// Writes what `TCA_OPTIONS` holds into `out`: its length, zero for what Linux does not have.
/// Quanta and limits that the device decides are in it only if they are filled in
/// ([`Config::resolved`]). For `sfq` it has counters, which are zero without a snapshot.
pub fn write_options(
    config: &Config,
    snapshot: Option<&Snapshot>,
    out: &mut [u8],
) -> Result<usize, Full> {
    let mut out = Writer::new(out);
    config.write_netlink(snapshot.map(|snapshot| &snapshot.detail), &mut out);
    out.finish()
}

/// Writes what `TCA_STATS_APP` holds into `out`: its length, zero where Linux has no statistics of
/// the discipline's own.
pub fn write_statistics(snapshot: &Snapshot, out: &mut [u8]) -> Result<usize, Full> {
    let mut out = Writer::new(out);
    snapshot.detail.write_netlink(&mut out);
    out.finish()
}

/// Calls `each` for the numbers in `bytes`, which `TCA_STATS_APP` holds for the discipline `name`;
/// never where Linux has no statistics of its own.
pub fn read_statistics(name: &str, bytes: &[u8], each: &mut dyn FnMut(Figure)) {
    let known = DISCIPLINES.iter().find(|known| known.name == name);
    if let Some(read) = known.and_then(|known| known.statistics) {
        read(bytes, each);
    }
}

/// Writes what `TCA_STATS_APP` holds for a class of the discipline `name` at `now` into `out`: its
/// length, zero where Linux has nothing.
pub fn write_class(name: &str, class: &Class, now: Time, out: &mut [u8]) -> Result<usize, Full> {
    let mut out = Writer::new(out);
    let known = DISCIPLINES.iter().find(|known| known.name == name);
    if let Some(write) = known.and_then(|known| known.class) {
        write(class, now, &mut out);
    }
    out.finish()
}
