//! Places of classes in rows, feeds and waiting lists, whatever comes and goes, and their turns.

use super::*;
use crate::random::Random;
use crate::rate::{Arithmetic, Rate};
use std::collections::BTreeSet;

/// A class of a byte a microsecond, and a ceil of two, that may save up 1,000 bytes.
fn class(id: u16, parent: Option<u16>, prio: u8) -> Class {
    let bucket = |rate| TokenBucket::new(Rate(rate), 1_000, Arithmetic::Exact);
    let class = Class::new(id, parent, bucket(1_000_000), bucket(2_000_000));
    Class { prio, quantum: 1_000, ..class }
}

fn tree(classes: Vec<Class>) -> Tree {
    Tree::new(classes, Time::ZERO).unwrap().expect("levels enough")
}

/// A root, two classes below it, and leaves of several priorities below these, the root and nobody.
fn family() -> Tree {
    tree(std::vec![
        class(1, None, 0),
        class(2, Some(0), 0),
        class(3, Some(0), 0),
        class(4, Some(1), 0),
        class(5, Some(1), 3),
        class(6, Some(2), 0),
        class(7, Some(2), 3),
        class(8, Some(2), 3),
        class(9, Some(0), 3),
        class(10, None, 7),
    ])
}

const LEAVES: [u16; 7] = [3, 4, 5, 6, 7, 8, 9];

/// Members of a row or a feed.
fn members(feed: &Feed) -> BTreeSet<u16> {
    assert!(feed.members.is_sorted_by(|a, b| a < b), "{feed:?}");
    feed.members.iter().copied().collect()
}

/// Every place and every counter of `tree` at `now`, whose leaves in `active` have packets.
fn check(tree: &Tree, active: &BTreeSet<u16>, now: Time) {
    let mut activity = [0u8; 10];
    for leaf in active {
        activity[usize::from(*leaf)] = 1 << tree.classes[usize::from(*leaf)].prio;
    }
    // Parents stand before their children.
    for index in (0..10).rev() {
        let Class { mode, parent, .. } = tree.classes[index];
        if let (Mode::Borrow, Some(parent)) = (mode, parent) {
            activity[usize::from(parent)] |= activity[index];
        }
    }
    let all = |prio: usize, is_in: &dyn Fn(&Class) -> bool| -> BTreeSet<u16> {
        let classes = tree.classes.iter().zip(&activity).zip(0u16..);
        let in_place = classes.filter(|((class, on), _)| **on >> prio & 1 == 1 && is_in(class));
        in_place.map(|(_, index)| index).collect()
    };
    for (index, class) in tree.classes.iter().enumerate() {
        assert_eq!(class.activity, activity[index], "{index}");
        for (prio, feed) in class.feeds.iter().enumerate() {
            let borrows =
                |class: &Class| (class.mode, class.parent) == (Mode::Borrow, Some(index as u16));
            assert_eq!(members(feed), all(prio, &borrows), "{index} {prio}");
        }
        let waits = tree.levels[usize::from(class.level)].waiting.iter();
        let waits: Vec<Time> =
            waits.filter(|(_, who)| usize::from(*who) == index).map(|(at, _)| *at).collect();
        let until = (class.mode != Mode::Send).then_some(class.wakes);
        assert_eq!(waits, Vec::from_iter(until), "{index} at {now:?}");
    }
    for (number, level) in tree.levels.iter().enumerate() {
        assert!(level.waiting.is_sorted_by(|(a, _), (b, _)| a >= b), "{level:?}");
        for (prio, row) in level.rows.iter().enumerate() {
            let sends =
                |class: &Class| class.mode == Mode::Send && usize::from(class.level) == number;
            assert_eq!(members(row), all(prio, &sends), "{number} {prio}");
            assert_eq!(tree.rows(number) >> prio & 1 == 1, !row.members.is_empty());
        }
    }
    assert_eq!(tree.is_open(), tree.levels.iter().any(|level| level.mask != 0));
    let waiting = tree.levels.iter().flat_map(|level| &level.waiting);
    assert_eq!(tree.next_wake(), waiting.map(|(at, _)| *at).min());
}

#[test]
fn classes_hang_where_they_may_send_or_borrow_and_wait_elsewhere() {
    let mut random = Random::new(11);
    let (mut tree, mut active, mut now) = (family(), BTreeSet::new(), Time(1));
    // Ceils hold more than rates do, so that most classes borrow.
    for class in &mut tree.classes {
        class.ceil = TokenBucket::new(Rate(2_000_000), 6_000, Arithmetic::Exact);
    }
    let mut modes = [0; 3];
    for step in 0..6_000 {
        let leaf = LEAVES[random.below(7) as usize];
        match random.below(20) {
            0..=5 => {
                tree.activate(leaf);
                active.insert(leaf);
            }
            6..=9 => {
                tree.deactivate(leaf);
                active.remove(&leaf);
            }
            10..=16 => {
                let packet = Packet::new(0, random.below(1_500));
                let level = [0, 0, 6, 7][random.below(4) as usize];
                tree.charge(leaf, level, &packet, packet.len, now);
            }
            17..=18 => {
                now += Span::from_micros(random.below(2_000).into());
                let budget = Budget::default();
                let levels: Vec<usize> = tree.levels().collect();
                assert_eq!(levels, [0, 6, 7]);
                levels.into_iter().for_each(|level| tree.wake(level, now, &budget));
                assert!(tree.next_wake().is_none_or(|next| next > now));
            }
            _ if step % 50 == 0 => {
                tree.forget(now);
                active.clear();
                assert!(tree.classes.iter().all(|class| class.mode == Mode::Send));
            }
            _ => {}
        }
        for class in &tree.classes {
            modes[class.mode as usize] += 1;
        }
        check(&tree, &active, now);
        assert!(LEAVES.iter().all(|leaf| tree.is_active(*leaf) == active.contains(leaf)));
    }
    assert!(modes.iter().all(|seen| *seen > 2_000), "{modes:?}");
}

#[test]
fn a_class_may_send_with_nothing_left_and_borrow_in_debt() {
    // A byte of its rate takes a microsecond, one of its ceil half of one.
    for (bytes, mode, lack) in [
        (0, Mode::Send, 0),
        (1_000, Mode::Send, 0),
        (1_001, Mode::Borrow, 1_000),
        (2_000, Mode::Wait, 500_000),
    ] {
        let mut class = class(1, None, 0);
        class.rate.pay(Span::ZERO, bytes, i64::MIN);
        class.ceil.pay(Span::ZERO, if bytes > 1_500 { bytes } else { 1_000 }, i64::MIN);
        assert_eq!(class.mode_after(Span::ZERO), (mode, Span(lack)), "{bytes}");
        assert_eq!(class.mode_after(Span(lack)).0 == mode, mode == Mode::Send, "{bytes}");
    }
}

/// The ceil that a class reaches is counted once, however often it is looked at.
#[test]
fn classes_over_their_ceil_are_counted() {
    let mut tree = family();
    let packet = Packet::new(0, 3_000);
    for _ in 0..3 {
        tree.charge(9, 0, &packet, 3_000, Time(1));
        assert_eq!((tree.classes[9].overlimits, tree.overlimits), (1, 1));
    }
    // From borrowing back to sending is no reason; again over it is.
    let budget = Budget::default();
    for ms in [4, 5, 6, 7, 8, 9] {
        tree.wake(0, Time(ms * 1_000_000), &budget);
    }
    assert_eq!((tree.classes[9].mode, tree.overlimits), (Mode::Send, 1));
    tree.charge(9, 0, &packet, 5_000, Time(9_000_000));
    assert_eq!((tree.classes[9].overlimits, tree.overlimits), (2, 2));
}

#[test]
fn a_feed_keeps_each_member_once_and_in_its_order() {
    let mut feed = Feed::with_room(5).unwrap();
    for class in [5, 2, 5, 9, 2, 9, 7] {
        feed.insert(class);
    }
    assert_eq!(feed.members, [2, 5, 7, 9]);
    for (from, found) in [(0, Some(2)), (2, Some(2)), (3, Some(5)), (9, Some(9)), (10, None)] {
        assert_eq!(feed.from(from), found, "{from}");
    }
    for (erased, left) in [(5, &[2, 7, 9][..]), (9, &[2, 7]), (3, &[2, 7]), (2, &[7])] {
        feed.erase(erased);
        assert_eq!(feed.members, left);
    }
    (feed.turn, feed.lost) = (Some(7), Some(3));
    feed.clear();
    assert_eq!((feed.members.len(), feed.turn, feed.lost), (0, None, None));
}

#[test]
fn a_turn_goes_on_only_from_whoever_had_it() {
    let mut level = Level::default();
    for (prio, class) in [(1, 3), (1, 4), (1, 6), (5, 3)] {
        level.rows[prio].members.reserve(4);
        level.join(prio, class);
    }
    assert_eq!(level.mask, 0b10_0010);
    level.rows[1].turn = Some(4);
    for (gone, turn, mask) in
        [(3, Some(4), 0b10_0010), (4, Some(6), 0b10_0010), (6, None, 0b10_0000)]
    {
        level.leave(1, gone);
        assert_eq!((level.rows[1].turn, level.mask), (turn, mask), "{gone}");
    }
    level.leave(5, 3);
    assert_eq!(level.mask, 0);
}

/// The earliest last; of those with the same time the first to come is looked at first.
#[test]
fn classes_wait_in_the_order_of_their_times() {
    let mut tree = family();
    for (index, lack) in [(3, 50), (4, 20), (5, 50), (6, 70), (7, 20), (8, 0)] {
        tree.wait(index, Time(1_000), Span(lack));
    }
    let waiting = |tree: &Tree| tree.levels[0].waiting.iter().rev().copied().collect::<Vec<_>>();
    let at = |after: u64, index| (Time(1_000 + after), index);
    assert_eq!(waiting(&tree), [at(1, 8), at(20, 4), at(20, 7), at(50, 3), at(50, 5), at(70, 6)]);
    for gone in [7, 5, 8, 5] {
        tree.stop_waiting(gone);
    }
    assert_eq!(waiting(&tree), [at(20, 4), at(50, 3), at(70, 6)]);
    // At level 6 others wait, and longer.
    tree.wait(2, Time(1_000), Span(10));
    assert_eq!(tree.next_wake(), Some(Time(1_010)));
    tree.stop_waiting(2);
    assert_eq!(tree.next_wake(), Some(Time(1_020)));
}

#[test]
fn classes_are_woken_when_it_is_time_as_long_as_there_is_a_budget() {
    let mut tree = family();
    for leaf in [9, 3] {
        tree.charge(leaf, 0, &Packet::new(0, 1_800), 1_800, Time(1));
        assert_eq!(tree.classes[usize::from(leaf)].mode, Mode::Wait);
    }
    let both = tree.levels[0].waiting.clone();
    let (early, late) = (Time(300_000), Time(50_000_000));
    let (budget, spent) = (Budget::default(), Budget::default());
    spent.exhaust();
    for (now, budget) in [(early, &budget), (early, &spent), (late, &spent)] {
        tree.wake(0, now, budget);
        assert_eq!(tree.levels[0].waiting, both);
    }
    assert_eq!(budget.used(), 0);
    tree.wake(0, late, &budget);
    // In and out of the feeds of eight levels, each of the two.
    assert_eq!((tree.levels[0].waiting.len(), budget.used()), (0, 2 * 16));
}

#[test]
fn a_leaf_is_ready_where_nobody_of_its_level_is_to_be_looked_at() {
    let mut tree = family();
    assert_eq!(tree.ready_leaf(Time(1)), None);
    for leaf in [9, 7, 4] {
        tree.activate(leaf);
    }
    // Lower priorities first, each in its own row.
    assert_eq!(tree.ready_leaf(Time(1)), Some((4, 3)));
    let leaf = |tree: &mut Tree, prio| tree.leaf(0, prio, &mut Way::default());
    assert_eq!([3, 7, 0].map(|prio| leaf(&mut tree, prio)), [Some(4), Some(9), None]);
    tree.activate(3);
    assert_eq!(tree.ready_leaf(Time(1)), Some((3, 0)));
    assert_eq!([0, 3].map(|prio| leaf(&mut tree, prio)), [Some(3), Some(4)]);
    tree.wait(5, Time(1), Span(99));
    for (now, ready) in [(99, Some((3, 0))), (100, None), (101, None)] {
        assert_eq!(tree.ready_leaf(Time(now)), ready, "{now}");
    }
}

/// A quantum a turn; a deficit of nothing is no debt.
#[test]
fn a_turn_ends_in_debt() {
    let mut tree = family();
    [6, 7, 8].into_iter().for_each(|leaf| tree.activate(leaf));
    for (leaf, len, deficit, turn) in
        [(6, 600, 400, 7), (7, 1_000, 0, 8), (6, 400, 0, 6), (6, 1, 999, 7), (8, 1_500, -500, 0)]
    {
        tree.levels[0].rows[3].turn = Some(leaf);
        tree.spend(leaf, 0, 3, len);
        assert_eq!(tree.classes[usize::from(leaf)].deficit[0], deficit, "{leaf} {len}");
        assert_eq!(tree.levels[0].rows[3].turn.unwrap_or(0), turn, "{leaf} {len}");
    }
}

/// All of an inner class have their turns before that of the next begins.
#[test]
fn turns_go_round_in_feeds_and_through_them() {
    let mut tree = family();
    for index in [1, 2, 3, 4, 5, 6, 7, 8] {
        tree.set_mode(index, Mode::Borrow);
    }
    [4, 6, 7, 8].into_iter().for_each(|leaf| tree.activate(leaf));
    // Where nobody has had the turn yet, it has gone past the last: the first is the root's own.
    let mut way = Way::default();
    let mut next = tree.leaf(7, 3, &mut way);
    for leaf in [8, 4, 6, 7, 8, 4, 6, 7, 8, 4, 6] {
        // From the row it is the same as from the end of the way.
        assert_eq!((next, tree.leaf(7, 3, &mut Way::default())), (Some(leaf), Some(leaf)));
        next = tree.leaf_after(leaf, 7, 3, &mut way);
    }
    // Whoever leaves while it has the turn loses it to the next.
    assert_eq!(next, Some(7));
    tree.deactivate(7);
    for leaf in [8, 4, 6, 8] {
        assert_eq!(tree.leaf(7, 3, &mut way), Some(leaf));
        tree.pass_on(leaf, 7, 3);
    }
}

#[test]
fn buckets_are_taken_over_as_they_were() {
    let mut old = family();
    old.charge(9, 0, &Packet::new(0, 1_500), 1_500, Time(1));
    old.charge(3, 7, &Packet::new(0, 3_000), 3_000, Time(1));
    let later = Time(300_001);
    let mut new = tree(std::vec![class(1, None, 0), class(4, Some(0), 0), class(10, None, 7)]);
    new.inherit(&old, later);
    for (index, before) in [(0, 0), (1, 3), (2, 9)] {
        let (old, new) = (&old.classes[before], &new.classes[index]);
        let elapsed = later.since(old.filled);
        assert_eq!(new.rate.level(Span::ZERO), old.rate.level(elapsed), "{}", new.id);
        assert_eq!(new.ceil.level(Span::ZERO), old.ceil.level(elapsed), "{}", new.id);
        assert_eq!(
            (new.lends, new.borrows, new.overlimits),
            (old.lends, old.borrows, old.overlimits)
        );
        assert_eq!((new.filled, new.mode), (later, new.mode_after(Span::ZERO).0));
    }
    assert_eq!(new.overlimits, old.overlimits);
    let modes: Vec<Mode> = new.classes.iter().map(|class| class.mode).collect();
    assert_eq!(modes, [Mode::Wait, Mode::Wait, Mode::Borrow]);
    for class in &new.classes {
        let waits = new.levels[usize::from(class.level)].waiting.iter();
        let waits = waits.filter(|(_, index)| new.classes[usize::from(*index)].id == class.id);
        assert_eq!(waits.count(), usize::from(class.mode != Mode::Send), "{}", class.id);
    }
    // What nobody waits for any more is forgotten.
    new.inherit(&family(), later);
    assert_eq!((new.next_wake(), new.overlimits), (None, 0));
    new.charge(2, 0, &Packet::new(0, 9_000), 9_000, later);
    new.forget(later);
    assert!(new.classes.iter().all(|class| class.rate.level(Span::ZERO) == 1_000_000));
    assert!(new.classes.iter().all(|class| class.ceil.level(Span::ZERO) == 500_000));
}

/// One of its priorities its parent has from elsewhere, the other is new there.
#[test]
fn a_class_of_two_priorities_brings_both_to_its_parent() {
    let mut tree = family();
    [2, 3, 4, 5].into_iter().for_each(|index| tree.set_mode(index, Mode::Borrow));
    tree.set_mode(1, Mode::Wait);
    [3, 4, 5].into_iter().for_each(|leaf| tree.activate(leaf));
    assert_eq!((tree.classes[0].activity, tree.rows(7)), (0b0001, 0b0001));
    tree.set_mode(1, Mode::Borrow);
    assert_eq!((tree.classes[0].activity, tree.rows(7)), (0b1001, 0b1001));
    let feeds = [0, 3].map(|prio| tree.classes[0].feeds[prio].members.clone());
    assert_eq!(feeds, [[1, 2].to_vec(), [1].to_vec()]);
    tree.set_mode(1, Mode::Wait);
    assert_eq!((tree.classes[0].activity, tree.rows(7)), (0b0001, 0b0001));
}
