//! Lists of values in rules: sets, of which several rules may have the same.
//!
//! They come with the rules of a transaction, and go with them in another one. Sets without a name
//! would go by themselves. But such a set serves one rule only, and for its name the kernel looks
//! at all that there are: a few thousand took two seconds.
//!
//! Elements are where an interval begins and where it has ended, in order. Values are numbers whose
//! bytes are in network order; what a register has in the machine's order is read so, too.

use std::collections::BTreeMap;

use super::batch::Batch;
use crate::rules::forms::Interval;

/// NFT_SET_CONSTANT and NFT_SET_INTERVAL.
const LISTED: i32 = 2 | 4;
/// NFT_SET_ELEM_INTERVAL_END.
const END: i32 = 1;

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
    fn holds(self, value: u128) -> bool {
        self.length == 16 || value >> (8 * self.length) == 0
    }
}

/// Intervals in order, which neither overlap nor touch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct List {
    pub(super) key: Key,
    pub(super) intervals: Vec<Interval>,
}

/// Lists of a transaction, by number.
#[derive(Default)]
pub(super) struct Lists {
    all: BTreeMap<List, usize>,
    /// Those that the kernel is not told of yet.
    new: Vec<(usize, List)>,
}

impl Lists {
    /// Name of the set that is this list.
    pub(super) fn name(&mut self, list: List) -> String {
        let next = self.all.len();
        let new = &mut self.new;
        let number = *self.all.entry(list).or_insert_with_key(|list| {
            new.push((next, list.clone()));
            next
        });
        name(number)
    }

    /// How many there are: their numbers are below.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }
}

fn name(number: usize) -> String {
    format!("list_{number}")
}

impl Batch<'_> {
    /// Makes the sets of lists that are new.
    pub(super) fn make_lists(&mut self) {
        for (number, list) in std::mem::take(&mut self.lists.new) {
            self.make_list(&name(number), &list);
        }
    }

    /// Removes lists of an earlier transaction, whose rules are gone.
    pub(super) fn remove_lists(&mut self, count: usize) {
        for number in 0..count {
            self.begin(libc::NFT_MSG_DELSET, 0);
            self.writer.string(1, self.table);
            self.writer.string(2, &name(number));
            self.writer.finish();
        }
    }

    fn make_list(&mut self, name: &str, list: &List) {
        self.begin_set(name, list.key, LISTED);
        self.writer.finish();
        self.begin(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(2, name);
        let all = self.writer.start(3);
        for &(first, last) in &list.intervals {
            // The greatest value has none behind it.
            let end = last.checked_add(1).filter(|end| list.key.holds(*end));
            for (value, flags) in [(Some(first), 0), (end, END)] {
                let Some(value) = value else { continue };
                let element = self.writer.start(1); // NFTA_LIST_ELEM
                let key = self.writer.start(1);
                self.writer.attribute(1, &list.key.bytes(value));
                self.writer.end(key);
                self.writer.number(3, flags);
                self.writer.end(element);
            }
        }
        self.writer.end(all);
        self.writer.finish();
    }
}
