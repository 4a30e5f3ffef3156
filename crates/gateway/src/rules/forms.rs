//! Forms of a rule: the combinations of list items, ends and protocols that it fits.

use super::{Cgroup, HostName, Mac, Prefix, Traffic};
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

    /// Where an address stands in the header, and its length.
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

const ENDS: [End; 2] = [End::Source, End::Destination];

/// Sender or receiver.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Anybody,
    Prefix(Prefix, End),
    Learnt(Mac, End),
}

/// One combination.
#[derive(Clone, Copy)]
pub(crate) struct Form<'a> {
    pub(crate) family: Option<Family>,
    pub(crate) who: Who,
    /// Name of the end that is not at home.
    pub(crate) host: Option<(&'a HostName, End)>,
    /// Program of this machine.
    pub(crate) cgroup: Option<&'a Cgroup>,
    pub(crate) dscp: Option<u8>,
    pub(crate) protocol: Option<u8>,
    pub(crate) port: Option<((u16, u16), End)>,
}

impl Traffic {
    /// Forms of a rule for this traffic, in the direction that has more.
    pub(super) fn forms(&self) -> usize {
        Self::combinations(self, Direction::Upload).len()
    }

    /// All of them, in `direction`.
    pub(crate) fn combinations(&self, direction: Direction) -> Vec<Form<'_>> {
        // Hosts at home send what leaves.
        let (home, far) = match direction {
            Direction::Upload => (End::Source, End::Destination),
            Direction::Download => (End::Destination, End::Source),
        };
        let mut who: Vec<(Option<Family>, Who)> = Vec::new();
        for &prefix in &self.addresses {
            let family = if prefix.address.is_ipv4() { Family::V4 } else { Family::V6 };
            who.extend(ENDS.map(|end| (Some(family), Who::Prefix(prefix, end))));
        }
        for &mac in &self.macs {
            who.extend(Family::BOTH.map(|family| (Some(family), Who::Learnt(mac, home))));
        }
        if who.is_empty() && self.dscps.is_empty() && self.hosts.is_empty() {
            who.push((None, Who::Anybody));
        } else if who.is_empty() {
            who.extend(Family::BOTH.map(|family| (Some(family), Who::Anybody)));
        }
        let hosts: Vec<_> = match &self.hosts[..] {
            [] => vec![None],
            hosts => hosts.iter().map(|host| Some((host, far))).collect(),
        };
        let cgroups: Vec<_> = match &self.cgroups[..] {
            [] => vec![None],
            cgroups => cgroups.iter().map(Some).collect(),
        };
        let with = |host| cgroups.iter().map(move |cgroup| (host, *cgroup));
        let far_and_own: Vec<_> = hosts.into_iter().flat_map(with).collect();
        let ports: Vec<_> =
            self.ports.iter().flat_map(|&range| ENDS.map(|end| Some((range, end)))).collect();
        let ports = if ports.is_empty() { vec![None] } else { ports };
        let protocols = match self.protocol {
            Some(protocol) => vec![Some(protocol)],
            None if self.ports.is_empty() => vec![None],
            None => vec![Some(libc::IPPROTO_TCP as u8), Some(libc::IPPROTO_UDP as u8)],
        };
        let dscps: Vec<_> = match &self.dscps[..] {
            [] => vec![None],
            dscps => dscps.iter().copied().map(Some).collect(),
        };
        let mut forms = Vec::new();
        for &(family, who) in &who {
            for &(host, cgroup) in &far_and_own {
                for &dscp in &dscps {
                    for &protocol in &protocols {
                        let form = |&port| Form { family, who, host, cgroup, dscp, protocol, port };
                        forms.extend(ports.iter().map(form));
                    }
                }
            }
        }
        forms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 791 and RFC 8200, section 3.
    #[test]
    fn addresses_stand_where_the_headers_have_them() {
        let places = |family: Family| ENDS.map(|end| family.address(end));
        assert_eq!(places(Family::V4), [(12, 4), (16, 4)]);
        assert_eq!(places(Family::V6), [(8, 16), (24, 16)]);
        assert_eq!(Family::BOTH.map(Family::number), [2, 10]);
    }

    #[test]
    fn lists_ends_and_protocols_are_multiplied() {
        let mut traffic = Traffic { ports: vec![(1, 1), (2, 3)], ..Traffic::default() };
        assert_eq!(traffic.forms(), 2 * 2 * 2);
        traffic.protocol = Some(17);
        assert_eq!(traffic.forms(), 2 * 2);
        traffic.dscps = vec![46];
        assert_eq!(traffic.forms(), 2 * 2 * 2, "both IP versions have code points");
        traffic.macs = vec![Mac([2; 6])];
        assert_eq!(traffic.forms(), 2 * 2 * 2);
        traffic.hosts = ["a.org", "b.org"].map(|name| HostName::read(name).unwrap()).to_vec();
        assert_eq!(traffic.forms(), 2 * 2 * 2 * 2, "of the far end only");
    }
}
