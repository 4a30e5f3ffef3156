//! `sfb`: stochastic fair BLUE (Feng, Kandlur, Saha and Shin 2001; man tc-sfb; facts D.6).
//!
//! One queue. Each flow is hashed into one bin in each of eight levels of sixteen. A bin's marking
//! probability rises with each arrival that finds `target` packets of its flows queued, and falls
//! with each that finds none. A flow is marked with the least probability of its bins. One that
//! responds is spared if on at least one level it shares no bin with the greedy ones. Where even
//! the least is one, the flow does not respond. It goes to the penalty box, whose token bucket lets
//! through `penalty_rate` packets a second. From one half on, ECN-capable packets are dropped as
//! well, with a chance that rises to one.
//!
//! So that no flow shares bad luck for ever, a second set of bins with another hash takes over each
//! `rehash`. For the last `db` of that, flows in the penalty box warm it up (double buffering). The
//! first set gets another key and forgets what it learnt under the old one. Linux's keeps that:
//! bins that a flood has filled drop packets of others for minutes after it.
//!
//! Under [`Arithmetic::Linux`] the owner computes the hash ([`PacketOwner::keyed_hash`]), so that
//! recordings give Linux's own bins under every key.
//!
//! Invariant: a bin's length is the number of queued packets that were hashed into it. Where they
//! wait elsewhere ([`Gate`](crate::qdisc::Gate)), bins forget them in the order in which they came,
//! however they leave. In Linux a packet says itself which bins are to forget it, in bytes that
//! disciplines below may use. Those that are dropped there are never forgotten.

mod netlink;
mod stats;
mod words;

use alloc::collections::VecDeque;

use crate::memory::reserved_queue;
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Fate, Limit, Single};
use crate::qdisc::{Backlog, Chance, ConfigError, Detail, Device, DropReason, PacketOwner, Totals};
use crate::random::Random;
use crate::rate::Arithmetic;
use crate::room;
use crate::steps::Budget;
use crate::tick::Tick;
use crate::time::{Span, Time};
use crate::wide::quotient;

pub use stats::Stats;

/// Levels of bins.
pub const LEVELS: usize = 8;
/// Bins in a level.
pub const BINS: usize = 16;
/// Bits of a hash that choose the bin of a level.
const BIN_BITS: u32 = 4;
/// Probability one.
pub const MAX_PROB: u16 = u16::MAX;
/// Longest time for which the penalty box saves up.
const MAX_AGE: Span = Span::from_secs(10);

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued; None takes the device's queue length.
    pub limit: Option<u32>,
    /// Time between two changes of the bins; zero for never.
    pub rehash: Span,
    /// Time before a change during which the other bins are warmed up; zero for none.
    pub db: Span,
    /// Packets in a bin at which its probability rises.
    pub target: u32,
    /// Packets in every bin of a flow at which all of it are dropped.
    pub max: u32,
    /// Step up, in units of 1/65535.
    pub increment: u16,
    /// Step down, in units of 1/65535.
    pub decrement: u16,
    /// Packets a second that the penalty box lets through.
    pub penalty_rate: u32,
    /// Packets that it lets through at once.
    pub penalty_burst: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            limit: None,
            rehash: Span::from_secs(600),
            db: Span::from_secs(60),
            target: 20,
            max: 25,
            increment: 33,
            decrement: 3,
            penalty_rate: 10,
            penalty_burst: 20,
        }
    }
}

impl Params {
    /// The limit in force on `device`.
    pub fn effective_limit(&self, device: &Device) -> u32 {
        self.limit.filter(|limit| *limit > 0).unwrap_or(device.tx_queue_len)
    }
}

/// A queue under SFB.
pub type Sfb = Single<Blue>;

/// One bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    /// Packets queued.
    len: u16,
    /// Marking probability, of [`MAX_PROB`].
    prob: u16,
}

/// One set of bins, and the key of its hash.
#[derive(Clone, Debug)]
struct Set {
    bins: [[Bin; BINS]; LEVELS],
    key: [u64; 2],
}

/// Combined state of a packet's bins.
struct Answer {
    least_prob: u16,
    least_len: u16,
}

/// The bins, the penalty box, the dice.
#[derive(Clone, Debug)]
pub struct Blue {
    params: Params,
    sets: [Set; 2],
    /// The set that decides.
    present: usize,
    /// The other one is being warmed up.
    warming: bool,
    changed_over: Time,
    tokens: u32,
    tokens_at: Time,
    random: Random,
    arithmetic: Arithmetic,
    tick: Tick,
    /// The hashes of the packet in hand, zero for a set that does not count it.
    hashes: [u32; 2],
    /// Of those that are queued, in their order.
    queued: VecDeque<[u32; 2]>,
    overlimits: u64,
    stats: Stats,
}

impl Set {
    fn new(random: &mut Random) -> Set {
        Set { bins: [[Bin::default(); BINS]; LEVELS], key: random.key() }
    }

    /// The bins of a packet with this hash.
    #[inline]
    fn bins(&mut self, mut hash: u32) -> impl Iterator<Item = &mut Bin> {
        self.bins.iter_mut().map(move |level| {
            let bin = hash as usize % BINS;
            hash >>= BIN_BITS;
            &mut level[bin]
        })
    }

    /// Moves the probabilities of a packet's bins.
    #[inline(always)]
    fn consult(&mut self, hash: u32, params: &Params) -> Answer {
        let mut answer = Answer { least_prob: MAX_PROB, least_len: u16::MAX };
        for bin in self.bins(hash) {
            if bin.len == 0 {
                bin.prob = bin.prob.saturating_sub(params.decrement);
            } else if u32::from(bin.len) >= params.target {
                bin.prob = bin.prob.saturating_add(params.increment);
            }
            answer.least_prob = answer.least_prob.min(bin.prob);
            answer.least_len = answer.least_len.min(bin.len);
        }
        answer
    }
}

/// A hash of `flow` under `key`, all of whose bits depend on all of the flow's.
#[inline]
fn mixed(flow: u64, [first, second]: [u64; 2]) -> u32 {
    let mixed = (flow ^ first).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32) ^ second).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 32) as u32
}

impl Blue {
    /// The hash of `packet` for set `set`. Zero stands for none.
    #[inline]
    fn hash(&self, packet: &Packet, set: usize, owner: &mut dyn PacketOwner) -> u32 {
        let key = self.sets[set & 1].key;
        let theirs = match self.arithmetic {
            Arithmetic::Exact => None,
            Arithmetic::Linux(_) => owner.keyed_hash(packet, key),
        };
        theirs.unwrap_or_else(|| mixed(packet.flow, key)).max(1)
    }

    /// The set `other`, which is to be the next, learns from a packet, too.
    #[cold]
    #[inline(never)]
    fn warm(&mut self, packet: &Packet, other: usize, owner: &mut dyn PacketOwner) {
        let hash = self.hash(packet, other, owner);
        self.hashes[other & 1] = hash;
        self.sets[other & 1].consult(hash, &self.params);
    }

    /// Changes the bins over when their time has come; says in which set a packet is looked up that
    /// comes at `now`.
    ///
    /// Linux reads which set is present before it changes them over. So the packet that finds the
    /// change due goes by the old set, and its new key.
    #[inline]
    fn change_over_for_arrival(&mut self, now: Time) -> usize {
        let before = self.present;
        self.change_over(now);
        match self.arithmetic {
            Arithmetic::Linux(_) => before,
            Arithmetic::Exact => self.present,
        }
    }

    /// Changes the bins over when their time has come.
    #[inline]
    fn change_over(&mut self, now: Time) {
        let Params { rehash, db, .. } = self.params;
        if rehash == Span::ZERO {
            return;
        }
        let tick = self.tick.last(now);
        let due = self.changed_over + self.tick.enough(rehash);
        if tick > due {
            let set = &mut self.sets[self.present & 1];
            set.key = self.random.key();
            if self.arithmetic == Arithmetic::Exact {
                set.bins.as_flattened_mut().iter_mut().for_each(|bin| bin.prob = 0);
            }
            self.present ^= 1;
            self.warming = false;
            self.changed_over = tick;
        } else if db > Span::ZERO && tick > due - self.tick.enough(db) {
            self.warming = true;
        }
    }

    /// True if the penalty box holds a packet back.
    fn penalised(&mut self, now: Time) -> bool {
        let Params { penalty_rate, penalty_burst, .. } = self.params;
        if penalty_rate == 0 || penalty_burst == 0 {
            return true;
        }
        if self.tokens == 0 {
            let tick = self.tick.last(now);
            let age = tick.since(self.tokens_at).min(MAX_AGE);
            let earned = quotient(u128::from(age.0) * u128::from(penalty_rate), 1_000_000_000);
            self.tokens = earned.min(u128::from(penalty_burst)) as u32;
            // Linux drops the fraction of a token: a flow that tries again soon never earns one.
            let paid = quotient(earned * 1_000_000_000, penalty_rate.into());
            let fraction = u128::from(age.0) - paid;
            self.tokens_at = match self.arithmetic {
                Arithmetic::Linux(_) => tick,
                Arithmetic::Exact => tick - Span(fraction as u64),
            };
            if self.tokens == 0 {
                return true;
            }
        }
        self.tokens -= 1;
        false
    }

    fn count(&mut self, hashes: [u32; 2], step: impl Fn(u16) -> u16) {
        for (set, hash) in self.sets.iter_mut().zip(hashes) {
            if hash != 0 {
                set.bins(hash).for_each(|bin| bin.len = step(bin.len));
            }
        }
    }

    fn uncount(&mut self, hashes: [u32; 2]) {
        self.count(hashes, |len| len.saturating_sub(1));
    }

    fn uncount_first(&mut self) {
        if let Some(hashes) = self.queued.pop_front() {
            self.uncount(hashes);
        }
    }

    /// Packets and probability (of [`MAX_PROB`]) of each bin of the present set, level by level.
    pub fn bins(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let bins = self.sets[self.present & 1].bins.iter().flatten();
        bins.map(|bin| (bin.len, bin.prob))
    }

    /// Longest bin, and largest and mean probability, of the present set.
    fn survey(&self) -> (u16, u16, u16) {
        let bins = self.sets[self.present & 1].bins.iter().flatten();
        let (mut len, mut most, mut sum) = (0, 0, 0);
        for bin in bins {
            (len, most) = (bin.len.max(len), bin.prob.max(most));
            sum += u32::from(bin.prob);
        }
        (len, most, (sum / (LEVELS * BINS) as u32) as u16)
    }
}

impl Aqm for Blue {
    const LEAVES_ALL: bool = true;
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Blue, ConfigError> {
        let mut random = Random::new(device.seed);
        let limit = Limit::packets(params.effective_limit(device));
        let tick = device.tick.last(device.now);
        Ok(Blue {
            params: *params,
            sets: [Set::new(&mut random), Set::new(&mut random)],
            present: 0,
            warming: false,
            changed_over: tick,
            tokens: params.penalty_burst,
            tokens_at: tick,
            random,
            arithmetic: device.arithmetic,
            tick: device.tick,
            hashes: [0; 2],
            queued: reserved_queue(limit.packets as usize + 1)?,
            overlimits: 0,
            stats: Stats::default(),
        })
    }

    fn limit(params: &Params, device: &Device) -> Limit {
        Limit::packets(params.effective_limit(device))
    }

    fn change(&mut self, params: &Params, _: &Device, spare: &mut Blue) {
        // As much as the spare was made for: the queue is within its limit.
        while let Some(hashes) = self.queued.pop_front() {
            let moved = room::push_back(&mut spare.queued, hashes);
            debug_assert!(moved.is_some(), "there is room for all");
        }
        core::mem::swap(&mut self.queued, &mut spare.queued);
        self.tokens = self.tokens.min(params.penalty_burst);
        self.params = *params;
    }

    #[inline]
    fn arrives(
        &mut self,
        packet: &Packet,
        _: Backlog,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Fate {
        let present = self.change_over_for_arrival(now) & 1;
        let hash = self.hash(packet, present, owner);
        self.hashes = if present == 0 { [hash, 0] } else { [0, hash] };
        let Answer { least_prob, least_len } = self.sets[present].consult(hash, &self.params);
        if u32::from(least_len) >= self.params.max {
            self.overlimits += 1;
            self.stats.bucketdrop += 1;
            return Fate::Drop(DropReason::Congested);
        }
        if least_prob == MAX_PROB {
            if self.warming {
                self.warm(packet, present ^ 1, owner);
            }
            if self.penalised(now) {
                self.overlimits += 1;
                self.stats.penaltydrop += 1;
                return Fate::Drop(DropReason::Flood);
            }
            return Fate::Pass;
        }
        let drawn = self.random.u16();
        if drawn >= least_prob {
            return Fate::Pass;
        }
        // From one half on, marks are not enough.
        let half = MAX_PROB / 2;
        let beyond = u32::from(least_prob.saturating_sub(half)) * 2;
        if u32::from(drawn) >= beyond && packet.is_markable() {
            self.stats.marked += 1;
            return Fate::Marked;
        }
        self.stats.earlydrop += 1;
        Fate::Drop(DropReason::Congested)
    }

    #[cold]
    fn refused(&mut self, _: Time) {
        self.overlimits += 1;
        self.stats.queuedrop += 1;
    }

    #[cold]
    fn refused_below(&mut self, _: Time) {
        self.stats.childdrop += 1;
        if let Some(hashes) = self.queued.pop_back() {
            self.uncount(hashes);
        }
    }

    /// Of more than a call may see to, the next one forgets.
    fn left_below(&mut self, packets: u32) {
        let budget = Budget::default();
        while self.queued.len() > packets as usize && budget.spend_at_ease() {
            self.uncount_first();
        }
    }

    #[inline]
    fn queued(&mut self, _: u32) {
        if room::push_back(&mut self.queued, self.hashes).is_some() {
            self.count(self.hashes, |len| len.saturating_add(1));
        }
    }

    #[inline]
    fn passes(&mut self, _: &Packet, _: Backlog, _: Time) -> bool {
        self.uncount_first();
        true
    }

    fn discarded(&mut self) {
        self.uncount_first();
    }

    fn restart(&mut self, params: &Params, _: &Device) {
        self.queued.clear();
        self.sets.iter_mut().for_each(|set| set.bins = [[Bin::default(); BINS]; LEVELS]);
        (self.warming, self.tokens) = (false, params.penalty_burst);
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        totals.overlimits = self.overlimits;
        totals.marked = self.stats.marked.into();
        let (maxqlen, maxprob, avgprob) = self.survey();
        Detail::Sfb(Stats {
            maxqlen: maxqlen.into(),
            maxprob: Chance(maxprob.into()),
            avgprob: Chance(avgprob.into()),
            ..self.stats
        })
    }
}

#[cfg(test)]
mod tests;
