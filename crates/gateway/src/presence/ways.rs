//! Default routes, and whether they still lead by an interface that they once led by.
//!
//! One that never did is of no interest: it is a second uplink, or a port of a bridge. No default
//! route at all changes nothing: the interface is about to come back, or another one to take over.

use super::{Change, Version};

const VERSIONS: [Version; 2] = [Version::IPv4, Version::IPv6];

/// The interfaces that default routes leave by, of IPv4 and of IPv6, ours of several that are as
/// good; None: there is none.
pub(super) type Ways = [Option<String>; 2];

/// The last look at them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    ways: Ways,
    /// The interface has been one of them.
    led: [bool; 2],
}

impl Seen {
    pub(super) fn new(interface: &str, ways: Ways) -> Seen {
        let mut seen = Seen::default();
        seen.look(interface, ways);
        seen
    }

    /// Changes to what is now.
    pub(super) fn look(&mut self, interface: &str, now: Ways) -> Vec<Change> {
        let (mut moved, mut back) = (Vec::new(), Vec::new());
        for (version, way) in now.into_iter().enumerate() {
            let before = &mut self.ways[version];
            if way.is_none() || *before == way {
                continue;
            }
            *before = way;
            let leads = before.as_deref() == Some(interface);
            match (self.led[version], leads) {
                (true, true) => back.push(VERSIONS[version]),
                (true, false) => moved.push(version),
                (false, leads) => self.led[version] = leads,
            }
        }
        let mut changes = self.grouped(&moved);
        changes.extend((!back.is_empty()).then_some(Change::Leads(back)));
        changes
    }

    /// The version of IP, or both, whose default route was ours and is not now.
    pub(super) fn elsewhere(&self, interface: &str) -> Option<Change> {
        let is_elsewhere = |version: &usize| {
            let way = self.ways[*version].as_deref();
            self.led[*version] && way.is_some_and(|way| way != interface)
        };
        let versions: Vec<usize> = (0..VERSIONS.len()).filter(is_elsewhere).collect();
        self.grouped(&versions).into_iter().next()
    }

    /// A change for each interface that default routes of `versions` leave by.
    fn grouped(&self, versions: &[usize]) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for &version in versions {
            let Some(way) = &self.ways[version] else { continue };
            match changes.last_mut() {
                Some(Change::Elsewhere { versions, by }) if by == way => {
                    versions.push(VERSIONS[version]);
                }
                _ => changes
                    .push(Change::Elsewhere { versions: vec![VERSIONS[version]], by: way.clone() }),
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(four: &str, six: &str) -> Ways {
        [four, six].map(|name| (!name.is_empty()).then(|| name.to_owned()))
    }

    fn elsewhere(versions: &[Version], by: &str) -> Change {
        Change::Elsewhere { versions: versions.to_vec(), by: by.into() }
    }

    #[test]
    fn a_way_that_moves_is_told_once_and_so_is_its_return() {
        use Version::{IPv4, IPv6};
        let mut seen = Seen::new("wan", ways("wan", ""));
        assert_eq!(seen.elsewhere("wan"), None);
        for (now, told, lasting) in [
            (ways("wan", ""), vec![], None),
            // A version that the interface never led.
            (ways("wan", "he-ipv6"), vec![], None),
            (ways("", ""), vec![], None),
            (ways("lte0", ""), vec![elsewhere(&[IPv4], "lte0")], Some(elsewhere(&[IPv4], "lte0"))),
            (ways("lte0", ""), vec![], Some(elsewhere(&[IPv4], "lte0"))),
            (ways("", ""), vec![], Some(elsewhere(&[IPv4], "lte0"))),
            (ways("wan", "wan"), vec![Change::Leads(vec![IPv4])], None),
            (
                ways("lte0", "lte0"),
                vec![elsewhere(&[IPv4, IPv6], "lte0")],
                Some(elsewhere(&[IPv4, IPv6], "lte0")),
            ),
            (
                ways("lte1", "wan"),
                vec![elsewhere(&[IPv4], "lte1"), Change::Leads(vec![IPv6])],
                Some(elsewhere(&[IPv4], "lte1")),
            ),
        ] {
            let shown = format!("{now:?}");
            assert_eq!(seen.look("wan", now), told, "{shown}");
            assert_eq!(seen.elsewhere("wan"), lasting, "{shown}");
        }
    }

    #[test]
    fn a_second_uplink_is_no_way_that_moved() {
        let mut seen = Seen::new("lte0", ways("wan", ""));
        assert_eq!(seen.look("lte0", ways("dsl0", "")), []);
        assert_eq!(seen.look("lte0", ways("lte0", "")), []);
        assert_eq!(seen.look("lte0", ways("dsl0", "")).len(), 1);
    }
}
