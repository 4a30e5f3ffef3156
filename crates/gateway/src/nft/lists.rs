//! Lists of values in rules: sets, of which several rules may have the same.
//!
//! A set is made in a transaction before that of its first rule. Linux 6.18 lets rules of a
//! transaction hold some milliseconds before its sets do, and packets pass these rules in between.
//! Sets without a name would go with their rule. But such a set serves one rule only. To name it,
//! the kernel looks at all that there are: a few thousand took two seconds.
//!
//! Elements are where an interval begins and where it has ended, in order. Values are numbers whose
//! bytes are in network order; what a register has in the machine's order is read so, too.

use std::collections::BTreeMap;

use crate::rules::forms::Interval;

/// The type of a set's values, as nft numbers it, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: i32,
    pub(super) length: usize,
}

impl Key {
    /// Code points, where the header has them.
    pub(super) const DSCP: Key = Key { kind: 4, length: 2 };
    pub(super) const CGROUP: Key = Key { kind: 4, length: 8 };
    pub(super) const V4: Key = Key { kind: 7, length: 4 };
    pub(super) const V6: Key = Key { kind: 8, length: 16 };
    pub(super) const MAC: Key = Key { kind: 9, length: 6 };
    pub(super) const PROTOCOL: Key = Key { kind: 12, length: 1 };
    pub(super) const PORT: Key = Key { kind: 13, length: 2 };
    pub(super) const MARK: Key = Key { kind: 19, length: 4 };

    /// A value in so many bytes.
    pub(super) fn bytes(self, value: u128) -> Vec<u8> {
        value.to_be_bytes()[16 - self.length..].to_vec()
    }

    /// True if a value has so many bytes at most.
    pub(super) fn holds(self, value: u128) -> bool {
        self.length == 16 || value >> (8 * self.length) == 0
    }
}

/// Intervals in order, which neither overlap nor touch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct List {
    pub(super) key: Key,
    pub(super) intervals: Vec<Interval>,
}

/// Lists by number: those that there are in the table, and those that a transaction's rules need.
#[derive(Clone, Default)]
pub(super) struct Lists {
    laid: BTreeMap<List, usize>,
    needed: BTreeMap<List, usize>,
    /// Numbers from here on are free.
    free: usize,
}

impl Lists {
    /// Name of the set that is this list, which is needed.
    pub(super) fn name(&mut self, list: List) -> String {
        let (laid, free) = (&self.laid, &mut self.free);
        let number = *self.needed.entry(list).or_insert_with_key(|list| {
            laid.get(list).copied().unwrap_or_else(|| {
                *free += 1;
                *free - 1
            })
        });
        name(number)
    }

    /// The same once the needed ones have been made.
    pub(super) fn made(&self) -> Lists {
        let Lists { laid, needed, free } = self.clone();
        Lists { laid: laid.into_iter().chain(needed).collect(), needed: BTreeMap::new(), free }
    }

    /// The same once all others have been removed.
    pub(super) fn removed(self) -> Lists {
        Lists { laid: self.needed, needed: BTreeMap::new(), free: self.free }
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = (&List, &usize)> {
        self.needed.iter().filter(|(list, _)| !self.laid.contains_key(*list))
    }

    pub(super) fn left_over(&self) -> impl Iterator<Item = &usize> {
        let is_old = |(list, _): &(&List, &usize)| !self.needed.contains_key(*list);
        self.laid.iter().filter(is_old).map(|(_, number)| number)
    }
}

/// Name of the set with this number.
pub(super) fn name(number: usize) -> String {
    format!("list_{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(first: u128) -> List {
        List { key: Key::PORT, intervals: vec![(first, first), (9_000, 9_001)] }
    }

    /// No set has the name of another one as long as rules may look at it.
    #[test]
    fn what_stays_keeps_its_set_and_what_comes_has_a_new_one() {
        let mut lists = Lists::default();
        assert_eq!([7, 8, 7].map(|first| lists.name(list(first))), ["list_0", "list_1", "list_0"]);
        assert_eq!((lists.missing().count(), lists.left_over().count()), (2, 0));
        lists = lists.removed();
        assert_eq!([8, 6].map(|first| lists.name(list(first))), ["list_1", "list_2"]);
        let before = lists.clone();
        assert_eq!(lists.missing().collect::<Vec<_>>(), [(&list(6), &2)]);
        assert_eq!(lists.left_over().collect::<Vec<_>>(), [&0]);
        lists = lists.removed();
        assert_eq!((lists.name(list(7)), lists.left_over().count()), ("list_3".into(), 2));
        // Rules that were refused have left their lists behind.
        let mut refused = before.made();
        refused.name(list(7));
        assert_eq!(refused.left_over().collect::<Vec<_>>(), [&2, &1]);
    }
}
