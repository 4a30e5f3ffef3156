//! Forms of a rule: one for each header field that its lists may be about.
//!
//! nftables has no "or" within a rule, but lists of values. So the items of a list are one list
//! there, whatever their number. A rule of its own each needs which IP version's header is read,
//! and which end's address and port: eight forms at most.

use super::{Prefix, Traffic};
use crate::direction::Direction;

/// An IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) const BOTH: [Family; 2] = [Family::V4, Family::V6];

    pub(crate) fn number(self) -> i32 {
        match self {
            Family::V4 => libc::NFPROTO_IPV4,
            Family::V6 => libc::NFPROTO_IPV6,
        }
    }

    /// Offset of an address in the header, and its length, in bytes.
    pub(crate) fn address(self, end: End) -> (i32, i32) {
        match (self, end) {
            (Family::V4, End::Source) => (12, 4),
            (Family::V4, End::Destination) => (16, 4),
            (Family::V6, End::Source) => (8, 16),
            (Family::V6, End::Destination) => (24, 16),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Destination,
}

impl End {
    const BOTH: [End; 2] = [End::Source, End::Destination];

    /// The end at home: hosts there send what leaves.
    pub(crate) fn home(direction: Direction) -> End {
        match direction {
            Direction::Upload => End::Source,
            Direction::Download => End::Destination,
        }
    }

    /// The other one.
    pub(crate) fn far(direction: Direction) -> End {
        match direction {
            Direction::Upload => End::Destination,
            Direction::Download => End::Source,
        }
    }
}

/// The first and the last of values that follow each other.
pub(crate) type Interval = (u128, u128);

/// `all` in order, and those that overlap or touch as one: nftables refuses overlaps.
pub(crate) fn merged(all: impl IntoIterator<Item = Interval>) -> Vec<Interval> {
    let mut all: Vec<Interval> = all.into_iter().collect();
    all.sort_unstable();
    let mut merged: Vec<Interval> = Vec::new();
    for (first, last) in all {
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// One form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// The IP version whose header is read, if one is.
    pub(crate) family: Option<Family>,
    /// The end whose address is listed, if addresses are.
    pub(crate) address: Option<End>,
    /// The end whose port is listed, if ports are.
    pub(crate) port: Option<End>,
}

impl Traffic {
    /// All forms of a rule for this traffic.
    pub(crate) fn forms(&self) -> Vec<Form> {
        let ends = |listed: bool| if listed { End::BOTH.map(Some).to_vec() } else { vec![None] };
        let has_addresses = !self.addresses.is_empty();
        let reads_header = has_addresses
            || !(self.macs.is_empty() && self.hosts.is_empty() && self.dscps.is_empty());
        let is_read = |family: &Family| !has_addresses || !self.prefixes(*family).is_empty();
        let families: Vec<Option<Family>> = match reads_header {
            true => Family::BOTH.into_iter().filter(is_read).map(Some).collect(),
            false => vec![None],
        };
        let mut forms = Vec::new();
        for &family in &families {
            for address in ends(has_addresses) {
                let form = |port| Form { family, address, port };
                forms.extend(ends(!self.ports.is_empty()).into_iter().map(form));
            }
        }
        forms
    }

    /// Addresses of one IP version.
    pub(crate) fn prefixes(&self, family: Family) -> Vec<Interval> {
        let own = |prefix: &&Prefix| prefix.address.is_ipv4() == (family == Family::V4);
        merged(self.addresses.iter().filter(own).map(Prefix::interval))
    }

    /// Protocols: ports alone mean TCP and UDP. Empty if all fit.
    pub(crate) fn protocols(&self) -> Vec<i32> {
        match self.protocol {
            Some(protocol) => vec![protocol.into()],
            None if self.ports.is_empty() => Vec::new(),
            None => vec![libc::IPPROTO_TCP, libc::IPPROTO_UDP],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HostName, Mac};
    use super::*;

    /// RFC 791 and RFC 8200, section 3.
    #[test]
    fn addresses_stand_where_the_headers_have_them() {
        let places = |family: Family| End::BOTH.map(|end| family.address(end));
        assert_eq!(places(Family::V4), [(12, 4), (16, 4)]);
        assert_eq!(places(Family::V6), [(8, 16), (24, 16)]);
        assert_eq!(Family::BOTH.map(Family::number), [2, 10]);
    }

    #[test]
    fn ends_and_ip_versions_are_multiplied_and_lists_are_not() {
        let mut traffic = Traffic { ports: vec![(1, 1), (3, 4)], ..Traffic::default() };
        assert_eq!((traffic.forms().len(), traffic.protocols()), (2, vec![6, 17]));
        traffic.protocol = Some(17);
        assert_eq!((traffic.forms().len(), traffic.protocols()), (2, vec![17]));
        traffic.dscps = vec![46, 8];
        assert_eq!(traffic.forms().len(), 2 * 2, "both IP versions have code points");
        traffic.macs = vec![Mac([2; 6]), Mac([4; 6])];
        traffic.hosts = ["a.org", "b.org"].map(|name| HostName::read(name).unwrap()).to_vec();
        assert_eq!(traffic.forms().len(), 2 * 2, "of one end only");
        let prefix = |address: &str| Prefix { address: address.parse().unwrap(), length: 9 };
        traffic.addresses = vec![prefix("10.0.0.0"), prefix("12.0.0.0")];
        assert_eq!(traffic.forms().len(), 2 * 2, "of one IP version only");
        traffic.addresses.push(prefix("fd00::"));
        assert_eq!(traffic.forms().len(), 2 * 2 * 2);
        let lengths = Family::BOTH.map(|family| traffic.prefixes(family).len());
        assert_eq!(lengths, [2, 1], "each in its own header");
        assert!(Traffic::default().protocols().is_empty(), "not TCP and UDP alone");
    }

    #[test]
    fn intervals_that_overlap_or_touch_are_one() {
        let all = [(7, 9), (1, 2), (3, 3), (8, 8), (9, 12), (14, 14), (1, 1)];
        assert_eq!(merged(all), [(1, 3), (7, 12), (14, 14)]);
        assert_eq!(merged([(0, u128::MAX), (5, 6)]), [(0, u128::MAX)]);
        assert_eq!(merged([]), []);
    }
}
