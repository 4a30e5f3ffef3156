//! The tree of classes: who may send, at which level, and whose turn it is.
//!
//! While its ceil bucket is in debt, a class waits. Otherwise it sends by its own right while its
//! rate bucket is not in debt. If that is, it borrows from its parent, and the parent in turn from
//! its own.
//!
//! A class with packets hangs in one place for each priority. If it can send, that is the *row* of
//! its level. If it may borrow, that is the *feed* of its parent, which then counts as having
//! packets of that priority. If neither, it waits for the time at which its buckets will let it. So
//! what can be sent is always in a row. Leaves are in row 0 by their own right; an inner class is
//! in a higher row for whoever borrows from it. Lower levels are served first, then lower numbers
//! of `prio`. Within a row or a feed there is deficit round robin by `quantum`, in the order of
//! class ids.
//!
//! A packet is charged to its class and all above it: the rates of those below the lender are
//! spared, the ceils of all pay.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::framing::Framing;
use crate::memory::{filled, reserved, NoMemory};
use crate::packet::Packet;
use crate::rate::ByteTime;
use crate::room;
use crate::shaper::token_bucket::TokenBucket;
use crate::steps::{step, Budget, PER_LOOP};
use crate::time::{Span, Time};

use super::feed::{Feed, Level, PRIORITIES};

/// Levels: leaves are 0, an inner class without a parent the highest.
pub(super) const LEVELS: usize = 8;
/// Longest idle time that counts, and deepest debt: 60 s, as Linux's.
const MEMORY: Span = Span::from_secs(60);
/// Most steps of a search from a row to a leaf: many times more than one takes. Where a turn has
/// gone past the last member, the search goes up and down the levels once.
const MAX_STEPS: u32 = PER_LOOP;

/// Permission of a class to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Its ceil is reached.
    Wait,
    /// Its rate is, but not its ceil.
    Borrow,
    /// It sends by its own right.
    Send,
}

/// A class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub id: u16,
    pub parent: Option<u16>,
    pub level: u8,
    pub prio: u8,
    pub mode: Mode,
    /// Priorities, a bit each, of the packets that are here or below.
    activity: u8,
    pub quantum: i32,
    pub rate: TokenBucket,
    pub ceil: TokenBucket,
    /// Time as of which the buckets' levels hold.
    filled: Time,
    /// Time at which it is looked at again, while it cannot send by its own right.
    wakes: Time,
    pub framing: Framing,
    /// Bytes that a leaf may still send in its turn, at each level.
    deficit: [i32; LEVELS],
    /// Children that borrow, by priority; empty for a leaf.
    feeds: Box<[Feed]>,
    pub lends: u32,
    pub borrows: u32,
    pub overlimits: u32,
}

/// The way from a row down to a leaf: the classes whose feeds it goes through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    path: [u16; LEVELS],
    depth: usize,
}

/// All classes. Index order is the order of ids.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub classes: Vec<Class>,
    /// Stands in for a class of a number that there is none of.
    nobody: Class,
    /// Apart: a tree that is made is moved on the stack.
    levels: Box<[Level; LEVELS]>,
    /// Levels that have classes, a bit each.
    used: u8,
    pub overlimits: u64,
}

impl Class {
    /// A class that may send. The level and the feeds are the tree's to set.
    pub fn new(id: u16, parent: Option<u16>, rate: TokenBucket, ceil: TokenBucket) -> Class {
        Class {
            id,
            parent,
            level: 0,
            prio: 0,
            mode: Mode::Send,
            activity: 0,
            quantum: 0,
            rate,
            ceil,
            filled: Time::ZERO,
            wakes: Time::ZERO,
            framing: Framing::default(),
            deficit: [0; LEVELS],
            feeds: Box::default(),
            lends: 0,
            borrows: 0,
            overlimits: 0,
        }
    }

    #[inline]
    fn elapsed(&self, now: Time) -> Span {
        now.since(self.filled).min(MEMORY)
    }

    /// Permission after `elapsed` more time, and the time until there is more of it.
    #[inline]
    fn mode_after(&self, elapsed: Span) -> (Mode, Span) {
        let ceil = self.ceil.level(elapsed);
        if ceil < 0 {
            return (Mode::Wait, Span(ceil.unsigned_abs()));
        }
        match self.rate.level(elapsed) {
            rate if rate >= 0 => (Mode::Send, Span::ZERO),
            rate => (Mode::Borrow, Span(rate.unsigned_abs())),
        }
    }

    /// As full, as far as it fits, as `old` was at `now`.
    fn inherit(&mut self, old: &Class, now: Time) {
        let (mut rate, mut ceil) = (old.rate, old.ceil);
        rate.fill(old.elapsed(now));
        ceil.fill(old.elapsed(now));
        self.rate.inherit(&rate);
        self.ceil.inherit(&ceil);
        (self.lends, self.borrows, self.overlimits) = (old.lends, old.borrows, old.overlimits);
    }

    /// Children that borrow and have packets of `prio`; a leaf has none.
    #[inline]
    fn feed(&mut self, prio: usize) -> Option<&mut Feed> {
        self.feeds.get_mut(prio)
    }
}

/// The bits of `mask`, lowest first.
#[inline]
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < PRIORITIES).then_some(bit)
    })
}

/// Marks a way that is hardly ever taken.
#[cold]
fn rarely() {}

impl Tree {
    /// The tree of `classes`, which are in the order of their ids and name their parents by index.
    /// None if it is too deep. Full or not, the buckets are as of `now`.
    #[inline(never)]
    pub fn new(mut classes: Vec<Class>, now: Time) -> Result<Option<Tree>, NoMemory> {
        let count = classes.len();
        let mut children = filled(count, 0usize)?;
        for class in &classes {
            if let Some(parent) = class.parent {
                children[usize::from(parent)] += 1;
            }
        }
        for index in 0..count {
            if children[index] == 0 {
                continue;
            }
            let mut level = LEVELS - 1;
            let mut above = classes[index].parent;
            while let Some(parent) = above {
                level -= 1;
                if level == 0 {
                    return Ok(None);
                }
                above = classes[usize::from(parent)].parent;
            }
            let class = &mut classes[index];
            class.level = level as u8;
            let feeds = (0..PRIORITIES).map(|_| Feed::with_room(children[index]));
            class.feeds = feeds.collect::<Result<_, _>>()?;
        }
        let mut levels: Box<[Level; LEVELS]> = Box::default();
        for (number, level) in levels.iter_mut().enumerate() {
            let members = classes.iter().filter(|class| usize::from(class.level) == number).count();
            for row in &mut level.rows {
                *row = Feed::with_room(members)?;
            }
            level.waiting = reserved(members)?;
        }
        let used = classes.iter().fold(0, |used, class| used | 1 << class.level);
        let none = TokenBucket::with_depth(ByteTime::default(), Span::ZERO);
        let nobody = Class::new(0, None, none, none);
        let mut tree = Tree { classes, nobody, levels, used, overlimits: 0 };
        tree.start(now);
        Ok(Some(tree))
    }

    /// Permissions by buckets that are as they are since `now`; nobody has packets.
    fn start(&mut self, now: Time) {
        for level in self.levels.iter_mut() {
            level.waiting.clear();
        }
        for index in 0..self.classes.len() {
            let Some(class) = self.classes.get_mut(index) else { break };
            class.filled = now;
            let (mode, lack) = class.mode_after(Span::ZERO);
            class.mode = mode;
            if mode != Mode::Send {
                self.wait(index as u16, now, lack);
            }
        }
    }

    /// Buckets as full, as far as that fits, as those of the same classes in `old` at `now`; nobody
    /// has packets.
    pub fn inherit(&mut self, old: &Tree, now: Time) {
        for class in &mut self.classes {
            let index = old.classes.binary_search_by_key(&class.id, |class| class.id);
            if let Some(old) = index.ok().and_then(|index| old.classes.get(index)) {
                class.inherit(old, now);
            }
        }
        self.start(now);
        self.overlimits = old.overlimits;
    }

    /// All buckets are full, nobody has packets; counters stay.
    pub fn forget(&mut self, now: Time) {
        for level in self.levels.iter_mut() {
            level.rows.iter_mut().for_each(Feed::clear);
            level.mask = 0;
            level.waiting.clear();
        }
        for class in &mut self.classes {
            class.rate.make_full();
            class.ceil.make_full();
            class.filled = now;
            class.mode = Mode::Send;
            class.activity = 0;
            class.deficit = [0; LEVELS];
            class.feeds.iter_mut().for_each(Feed::clear);
        }
    }

    #[inline]
    fn class(&mut self, index: u16) -> &mut Class {
        match self.classes.get_mut(usize::from(index)) {
            Some(class) => class,
            None => {
                rarely();
                &mut self.nobody
            }
        }
    }

    #[inline]
    fn level(&mut self, level: usize) -> &mut Level {
        &mut self.levels[level % LEVELS]
    }

    /// The rows of `level` that are not empty, a bit each.
    #[inline]
    pub fn rows(&self, level: usize) -> u8 {
        self.levels[level % LEVELS].mask
    }

    /// True if something might be sent now.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.levels().any(|level| self.rows(level) != 0)
    }

    /// Earliest time at which a class is looked at again; None if none is to be.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        let first = |level: usize| self.levels[level % LEVELS].waiting.last().map(|(at, _)| *at);
        self.levels().filter_map(first).min()
    }

    /// Levels that have classes, the lowest first.
    #[inline]
    pub fn levels(&self) -> impl Iterator<Item = usize> {
        bits(self.used)
    }

    /// True if leaf `index` is known to have packets.
    #[inline]
    pub fn is_active(&self, index: u16) -> bool {
        self.classes.get(usize::from(index)).is_some_and(|class| class.activity != 0)
    }

    /// Leaf `index` has packets.
    #[inline]
    pub fn activate(&mut self, index: u16) {
        let class = self.class(index);
        if class.activity == 0 {
            class.activity = 1 << class.prio;
            match (class.mode, usize::from(class.prio)) {
                (Mode::Send, prio) => self.levels[0].join(prio, index),
                _ => self.hang_up(index),
            }
        }
    }

    /// Leaf `index` has no packets.
    #[inline]
    pub fn deactivate(&mut self, index: u16) {
        let class = self.class(index);
        match (class.mode, usize::from(class.prio)) {
            (Mode::Send, prio) if class.activity != 0 => self.levels[0].leave(prio, index),
            _ => self.take_down(index),
        }
        self.class(index).activity = 0;
    }

    /// Puts a class with packets where it belongs, and what that brings to life above it.
    fn hang_up(&mut self, mut index: u16) {
        let mut mask = self.class(index).activity;
        while mask != 0 && self.class(index).mode == Mode::Borrow {
            step();
            let Some(parent) = self.class(index).parent else { break };
            let above = self.class(parent);
            for prio in bits(mask) {
                let Some(feed) = above.feed(prio) else { continue };
                if !feed.members.is_empty() {
                    // The parent hangs where it belongs already.
                    mask &= !(1 << prio);
                }
                feed.insert(index);
            }
            above.activity |= mask;
            index = parent;
        }
        if mask != 0 && self.class(index).mode == Mode::Send {
            let level = usize::from(self.class(index).level);
            bits(mask).for_each(|prio| self.level(level).join(prio, index));
        }
    }

    /// Takes a class out, and what that leaves without packets above it.
    fn take_down(&mut self, mut index: u16) {
        let mut mask = self.class(index).activity;
        while mask != 0 && self.class(index).mode == Mode::Borrow {
            step();
            let Some(parent) = self.class(index).parent else { break };
            let above = self.class(parent);
            let mut emptied = 0;
            for prio in bits(mask) {
                let Some(feed) = above.feed(prio) else { continue };
                if feed.turn == Some(index) {
                    (feed.turn, feed.lost) = (None, Some(index));
                }
                feed.erase(index);
                if feed.members.is_empty() {
                    emptied |= 1 << prio;
                }
            }
            above.activity &= !emptied;
            (mask, index) = (emptied, parent);
        }
        if mask != 0 && self.class(index).mode == Mode::Send {
            let level = usize::from(self.class(index).level);
            bits(mask).for_each(|prio| self.level(level).leave(prio, index));
        }
    }

    /// Looks at what class `index` may do after `elapsed` more time, and puts it where it belongs.
    /// Returns how long until it may do more.
    #[inline(always)]
    fn change_mode(&mut self, index: u16, elapsed: Span) -> Span {
        let class = self.class(index);
        let (mode, lack) = class.mode_after(elapsed);
        if mode != class.mode {
            self.set_mode(index, mode);
        }
        lack
    }

    #[inline(never)]
    fn set_mode(&mut self, index: u16, mode: Mode) {
        if mode == Mode::Wait {
            self.class(index).overlimits += 1;
            self.overlimits += 1;
        }
        let class = self.class(index);
        if class.activity == 0 {
            class.mode = mode;
            return;
        }
        if class.mode != Mode::Wait {
            self.take_down(index);
        }
        self.class(index).mode = mode;
        if mode != Mode::Wait {
            self.hang_up(index);
        }
    }

    /// Looks at class `index` again after `lack`.
    fn wait(&mut self, index: u16, now: Time, lack: Span) {
        let class = self.class(index);
        class.wakes = now + lack.max(Span(1));
        let (wakes, level) = (class.wakes, usize::from(class.level));
        let waiting = &mut self.level(level).waiting;
        // Of those with the same time, the first to come is the first to be looked at.
        let at = waiting.partition_point(|(other, _)| *other > wakes);
        let _ = room::insert(waiting, at, (wakes, index));
    }

    fn stop_waiting(&mut self, index: u16) {
        let class = self.class(index);
        let (wakes, level) = (class.wakes, usize::from(class.level));
        let waiting = &mut self.level(level).waiting;
        let from = waiting.partition_point(|(other, _)| *other > wakes);
        let is_it = |(_, other): &(Time, u16)| {
            step();
            *other == index
        };
        if let Some(offset) = waiting.iter().skip(from).position(is_it) {
            room::remove(waiting, from + offset);
        }
    }

    /// Looks at the classes of `level` whose time has come, while there is `budget`. Each waits
    /// beyond `now` afterwards, or not at all.
    #[inline]
    pub fn wake(&mut self, level: usize, now: Time, budget: &Budget) {
        while let Some((at, index)) = self.level(level).waiting.last().copied() {
            if at > now || budget.is_spent() {
                return;
            }
            // It may move out of the feeds of all levels, and in.
            budget.spend_on(2 * LEVELS as u32);
            self.level(level).waiting.pop();
            let elapsed = self.class(index).elapsed(now);
            let lack = self.change_mode(index, elapsed);
            if self.class(index).mode != Mode::Send {
                self.wait(index, now, lack);
            }
        }
    }

    /// The leaf whose turn it is in a row: through the turns of all feeds on the way. Where a turn
    /// has gone past the last, it returns to the first and the one above moves on.
    #[inline]
    pub fn leaf(&mut self, level: usize, prio: usize, way: &mut Way) -> Option<u16> {
        way.depth = 0;
        // The common case: a leaf hangs in the row itself, and nothing left it.
        let turn = self.level(level).rows[prio % PRIORITIES].plain_turn();
        let leaf = turn.filter(|index| self.class(*index).level == 0);
        leaf.or_else(|| self.descend(level, prio, way))
    }

    /// The leaf after `index`, to which `way` led and which has nothing to send: the turn goes on.
    /// Of the way only the end is gone again, so that a round over all leaves takes two steps for
    /// each class.
    pub fn leaf_after(
        &mut self,
        index: u16,
        level: usize,
        prio: usize,
        way: &mut Way,
    ) -> Option<u16> {
        self.pass_on(index, level, prio);
        self.descend(level, prio, way)
    }

    /// The leaf to be served at level 0, and its priority, where no call is needed to find it. None
    /// if a class of that level is to be looked at by `now`.
    #[inline(always)]
    pub fn ready_leaf(&mut self, now: Time) -> Option<(u16, usize)> {
        let Level { rows, mask, waiting } = &mut self.levels[0];
        if waiting.last().is_some_and(|(at, _)| *at <= now) {
            return None;
        }
        let prio = u32::from(*mask).trailing_zeros() as usize;
        Some((rows.get_mut(prio)?.plain_turn()?, prio))
    }

    /// The leaf whose turn it is below the end of `way`, which then leads to it.
    #[inline(never)]
    fn descend(&mut self, level: usize, prio: usize, way: &mut Way) -> Option<u16> {
        let Way { path, depth } = way;
        for _ in 0..MAX_STEPS {
            step();
            let feed = self.feed_at(level, prio, path.get(..*depth)?)?;
            if let (None, Some(lost)) = (feed.turn, feed.lost) {
                feed.turn = feed.from(lost);
            }
            feed.lost = None;
            let turn = feed.turn;
            match turn {
                None => {
                    feed.turn = Some(*feed.members.first()?);
                    if *depth > 0 {
                        *depth -= 1;
                        self.feed_at(level, prio, path.get(..*depth)?)?.advance();
                    }
                }
                Some(index) if self.class(index).level == 0 => return Some(index),
                Some(index) => {
                    *path.get_mut(*depth)? = index;
                    *depth += 1;
                }
            }
        }
        None
    }

    /// The feed at the end of `path`, which leads down from a row.
    fn feed_at(&mut self, level: usize, prio: usize, path: &[u16]) -> Option<&mut Feed> {
        match path.last() {
            None => self.level(level).rows.get_mut(prio),
            Some(&index) => self.class(index).feed(prio),
        }
    }

    /// The turn goes on from leaf `index`, which was served at `level`.
    #[inline]
    fn pass_on(&mut self, index: u16, level: usize, prio: usize) {
        match self.class(index).parent {
            Some(parent) if level > 0 => self.class(parent).feed(prio),
            _ => self.levels[0].rows.get_mut(prio),
        }
        .into_iter()
        .for_each(Feed::advance);
    }

    /// Takes `len` bytes off what leaf `index` may send in its turn at `level`.
    #[inline(always)]
    pub fn spend(&mut self, index: u16, level: usize, prio: usize, len: u32) {
        let class = self.class(index);
        let quantum = class.quantum;
        let deficit = &mut class.deficit[level % LEVELS];
        // Lengths are bounded on arrival.
        *deficit = deficit.saturating_sub(len as i32);
        if *deficit < 0 {
            *deficit = deficit.saturating_add(quantum);
            self.pass_on(index, level, prio);
        }
    }

    /// Charges `packet` of leaf `index`, which was served at `level`, to it and all above it. The
    /// leaf's framing makes `wire_len` bytes of it.
    #[inline(always)]
    pub fn charge(&mut self, index: u16, level: usize, packet: &Packet, wire_len: u32, now: Time) {
        if let Some(parent) = self.charge_class(index, level, wire_len, now) {
            self.charge_inner(parent, level, packet, now);
        }
    }

    /// Charges `packet`, which was lent at `level`, to class `index` and all above it, which have
    /// framings of their own.
    #[inline(never)]
    fn charge_inner(&mut self, index: u16, level: usize, packet: &Packet, now: Time) {
        let mut next = Some(index);
        while let Some(index) = next {
            let bytes = self.class(index).framing.charge(packet);
            next = self.charge_class(index, level, bytes, now);
        }
    }

    /// Charges `bytes`, which were lent at `level`, to class `index`; gives its parent.
    #[inline(always)]
    fn charge_class(&mut self, index: u16, level: usize, bytes: u32, now: Time) -> Option<u16> {
        let floor = 1 - MEMORY.0 as i64;
        let class = self.class(index);
        let elapsed = class.elapsed(now);
        if usize::from(class.level) >= level {
            class.lends += u32::from(usize::from(class.level) == level);
            class.rate.pay(elapsed, bytes, floor);
        } else {
            class.borrows += 1;
            class.rate.fill(elapsed);
        }
        class.ceil.pay(elapsed, bytes, floor);
        class.filled = now;
        let parent = class.parent;
        if class.mode_after(Span::ZERO).0 != class.mode {
            self.leave_mode(index, now);
        }
        parent
    }

    /// Class `index` may do more or less than before, since it paid.
    #[cold]
    fn leave_mode(&mut self, index: u16, now: Time) {
        if self.class(index).mode != Mode::Send {
            self.stop_waiting(index);
        }
        let lack = self.change_mode(index, Span::ZERO);
        if self.class(index).mode != Mode::Send {
            self.wait(index, now, lack);
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
