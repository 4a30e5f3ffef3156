//! Delay above each path's baseline, and the vote of all.
//!
//! A path's baseline is the lowest RTT that it has shown. Each answer raises it by 1/512 of the
//! difference, so that a wrong one does not stay for ever; [`Paths::shift`] sets it anew. A path's
//! vote is the lowest rise of its two latest answers: one late answer is no queue. It counts for
//! [`STALE`]. Where half of all, or three, were heard within [`PROMPT`], votes older than that do
//! not count. Three answers in turn of three reflectors tell sooner than two answers of a path. The
//! delay is at least the least of them, unless jitter, or a pause of the line, could have made them
//! late.
//!
//! A reflector is replaced by the next of the list if it leaves [`DEAD`] probes in turn unanswered
//! while others answer. It is also replaced if it disagrees with the median for [`ODD`] answers in
//! turn: it is slow, or limits its answers. If none answers, the line may be down. Then they are
//! replaced all the same while traffic passes, one a second, and else kept.

use core::mem;

use simnel_core::{Span, Time};

use crate::round_trips::COMING_UNIT;
use crate::{HIGH, SLIGHT, STALE};

/// Reflectors to choose from.
pub const MOST_REFLECTORS: u8 = 64;
/// Reflectors that are probed at a time.
pub const MOST_ACTIVE: usize = 8;
/// Baselines of passing TCP: a connection takes the place of the one unheard for longest.
const PASSING: usize = 8;
/// Unanswered probes in turn after which a reflector is replaced.
const DEAD: u8 = 4;
/// Answers in turn that disagree with the median before a reflector is replaced.
const ODD: u8 = 20;
/// Time between two replacements while nothing answers.
const ROTATION: Span = Span::from_secs(1);

/// Time in which everybody who is probed has answered, and who has not is slow to.
const PROMPT: Span = Span::from_millis(250);
/// Votes that are enough.
const ENOUGH: usize = 3;
/// Shortest time that answers in turn span: what a pause has held up comes in one burst.
const SPREAD: Span = Span::from_millis(60);
/// Differences over which jitter is taken.
const WEIGHT: u64 = 64;
/// Longest time between two answers that meet the same queue.
const IN_TURN: Span = Span::from_millis(120);

/// Time after which a far clock is believed.
const CLOCK_TRIAL: Span = Span::from_millis(1000);
/// Time that it may be off by, beside a sixteenth of what has passed: a queue, or its skew.
const CLOCK_LEEWAY: Span = Span::from_millis(200);

/// Times from a far end to here, but for a constant, in [`COMING_UNIT`], which wrap round.
#[derive(Clone, Copy, Debug, Default)]
struct Comings {
    first: Option<(Time, u32)>,
    heard: Time,
    base: u32,
    latest: [u32; 3],
}

impl Comings {
    fn hear(&mut self, coming: u32, now: Time) {
        let runs_away = self.first.is_none_or(|(since, first)| {
            let off = Span(u64::from((coming.wrapping_sub(first) as i32).unsigned_abs()));
            off * COMING_UNIT.0 > CLOCK_LEEWAY + Span(now.since(since).0 / 16)
        });
        if runs_away {
            let first = Some((now, coming));
            *self = Comings { first, heard: now, base: coming, latest: [coming; 3] };
        }
        self.heard = now;
        self.latest = [self.latest[1], self.latest[2], coming];
        let above = coming.wrapping_sub(self.base) as i32;
        self.base = if above < 0 { coming } else { self.base.wrapping_add(above as u32 / 512) };
    }

    /// The time above the lowest, if the far clock is one of milliseconds. Who has not told it of
    /// late says nothing of now, whatever else it answers.
    fn rise(&self, now: Time) -> Option<Span> {
        if now.since(self.heard) >= STALE {
            return None;
        }
        self.first.filter(|(since, _)| now.since(*since) >= CLOCK_TRIAL)?;
        let above = |n: usize| (self.latest[n].wrapping_sub(self.base) as i32).max(0) as u64;
        Some(Span(above(1).min(above(2)) * COMING_UNIT.0))
    }

    /// Makes the latest ones the lowest.
    fn shift(&mut self) {
        let lowest = self.latest.iter().min_by_key(|one| one.wrapping_sub(self.base) as i32);
        self.base = lowest.copied().unwrap_or(self.base);
    }
}

/// RTTs of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// Number of the reflector, or the tag of a connection.
    name: u32,
    base: Option<Span>,
    latest: [Span; 3],
    heard: Option<Time>,
    /// Of passing TCP, the lowest RTT since the last review: acknowledgements may be held back.
    lowest: Option<(Span, Time)>,
    /// Probes in turn without an answer.
    unanswered: u8,
    /// Answers in turn that disagreed.
    odd: u8,
    comings: Comings,
}

impl Path {
    fn new(name: u32) -> Path {
        Path { name, ..Path::default() }
    }

    /// The rise of this answer.
    fn hear(&mut self, rtt: Span, now: Time) -> Span {
        self.unanswered = 0;
        if self.heard.is_none() {
            self.latest = [rtt; 3];
        }
        self.latest = [self.latest[1], self.latest[2], rtt];
        self.heard = Some(now);
        let base = self.base.unwrap_or(rtt);
        let rise = rtt.saturating_sub(base);
        self.base = Some(Span(base.0 + rise.0 / 512).min(rtt));
        rise
    }

    fn is_fresh(&self, now: Time) -> bool {
        self.is_heard_within(STALE, now)
    }

    fn is_heard_within(&self, span: Span, now: Time) -> bool {
        self.heard.is_some_and(|heard| now.since(heard) < span)
    }

    /// The vote, if there is one.
    fn rise(&self, now: Time) -> Option<Span> {
        let base = self.base.filter(|_| self.is_fresh(now))?;
        Some(self.latest[1].min(self.latest[2]).saturating_sub(base))
    }
}

/// Jitter of the line: the mean difference of two answers in turn, whichever reflector's. A queue
/// is about the same for both; where a medium makes packets wait for their turn, each has a delay
/// of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    last: Option<(Span, Time)>,
    mean: Span,
    /// Differences that the mean is of, up to [`WEIGHT`].
    number: u64,
}

impl Jitter {
    /// An answer came so late, above its path's baseline.
    fn hear(&mut self, rise: Span, now: Time) {
        if let Some((last, _)) = self.last.filter(|(_, at)| now.since(*at) < IN_TURN) {
            let differs = last.0.abs_diff(rise.0).min(HIGH.0);
            // The first ones count as much as each other: a mean from zero on would be too low.
            self.number = (self.number + 1).min(WEIGHT);
            self.mean = Span(self.mean.0 - self.mean.0 / self.number + differs / self.number);
        }
        self.last = Some((rise, now));
    }
}

/// All paths.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    active: [Path; MOST_ACTIVE],
    number: usize,
    /// Number of reflectors in the list, and the next to be taken from it.
    listed: u8,
    next: u8,
    rotated: Time,
    passing: [Path; PASSING],
    connections: u8,
    answering: u8,
    /// RTTs heard that nobody has asked for.
    heard: u32,
    jitter: Jitter,
    /// The latest answers of reflectors: whose, when, and the rise.
    row: [Option<(u8, Time, Span)>; 3],
}

impl Paths {
    pub fn new(listed: u8, active: u8) -> Paths {
        let listed = listed.min(MOST_REFLECTORS);
        let number = usize::from(active.min(listed)).min(MOST_ACTIVE);
        let mut paths = [Path::default(); MOST_ACTIVE];
        for (n, path) in paths.iter_mut().enumerate() {
            path.name = n as u32;
        }
        Paths {
            active: paths,
            number,
            listed,
            next: number as u8,
            rotated: Time::ZERO,
            passing: [Path::default(); PASSING],
            connections: 0,
            answering: 0,
            heard: 0,
            jitter: Jitter::default(),
            row: [None; 3],
        }
    }

    /// The mean difference of two answers in turn.
    pub fn jitter(&self) -> Span {
        self.jitter.mean
    }

    pub fn active(&self) -> impl Iterator<Item = u8> + '_ {
        self.active[..self.number].iter().map(|path| path.name as u8)
    }

    pub fn answer(&mut self, reflector: u8, rtt: Span, now: Time) {
        let (number, median) = (self.number, self.voted(now));
        let found = self.active[..number].iter_mut().find(|path| path.name == reflector.into());
        let Some(path) = found else { return };
        let rise = path.hear(rtt, now);
        self.heard += 1;
        let differs = match (median, path.rise(now)) {
            (Some(median), Some(rise)) => Span(median.0.abs_diff(rise.0)) > HIGH,
            _ => false,
        };
        path.odd = if differs { path.odd.saturating_add(1) } else { 0 };
        self.jitter.hear(rise, now);
        self.row = [self.row[1], self.row[2], Some((reflector, now, rise))];
    }

    /// The least rise of the three latest answers, if they are of three reflectors and show a
    /// queue by that.
    fn common_rise(&self, now: Time) -> Option<Span> {
        let [Some((a, first, x)), Some((b, _, y)), Some((c, last, z))] = self.row else {
            return None;
        };
        let are_three = a != b && b != c && c != a;
        let are_spread = last.since(first) >= SPREAD && now.since(first) < PROMPT;
        (are_three && are_spread && self.jitter.mean < SLIGHT).then(|| x.min(y).min(z))
    }

    pub fn lost(&mut self, reflector: u8, _now: Time) {
        let number = self.number;
        let found = self.active[..number].iter_mut().find(|path| path.name == reflector.into());
        if let Some(path) = found {
            path.unanswered = path.unanswered.saturating_add(1);
        }
    }

    pub fn passing(&mut self, tag: u32, rtt: Span, now: Time) {
        let same = |path: &Path| path.name == tag && path.heard.is_some();
        let index = self.passing.iter().position(same).or_else(|| {
            let heard = |n: &usize| self.passing[*n].heard.map_or(0, |heard| heard.0 + 1);
            let oldest = (0..PASSING).min_by_key(heard)?;
            // A connection that is still heard of keeps its place.
            (!self.passing[oldest].is_fresh(now)).then(|| {
                self.passing[oldest] = Path::new(tag);
                oldest
            })
        });
        if let Some(path) = index.and_then(|index| self.passing.get_mut(index)) {
            let lowest = path.lowest.map_or(rtt, |(lowest, _)| lowest.min(rtt));
            path.lowest = Some((lowest, now));
            path.heard.get_or_insert(now);
        }
    }

    /// An answer of a reflector, or a segment of a connection, took so long from there to here.
    pub fn came(&mut self, name: u32, coming: u32, is_reflector: bool, now: Time) {
        let number = self.number;
        let paths: &mut [Path] =
            if is_reflector { &mut self.active[..number] } else { &mut self.passing };
        let found = paths.iter_mut().find(|path| path.name == name && path.heard.is_some());
        if let Some(path) = found {
            path.comings.hear(coming, now);
        }
    }

    /// The lower median of the rises of comings; of those paths whose RTT rises as that of all
    /// does. None if nobody's clock tells.
    pub fn coming(&self, total: Span, now: Time) -> Option<Span> {
        let near = Span(total.0 / 4).max(SLIGHT);
        let agrees = |path: &&Path| {
            path.rise(now).is_some_and(|rise| Span(rise.0.abs_diff(total.0)) <= near)
        };
        median(self.voters(now).filter(agrees).filter_map(|path| path.comings.rise(now)))
    }

    /// Replaces reflectors that are no good. True if one was.
    pub fn review(&mut self, now: Time, traffic_passes: bool) -> bool {
        for path in &mut self.passing {
            if let Some((rtt, at)) = path.lowest.take() {
                if path.base.is_none() {
                    path.heard = None;
                }
                path.hear(rtt, at);
                self.heard += 1;
            }
        }
        let fresh = self.active[..self.number].iter().filter(|path| path.is_fresh(now)).count();
        self.answering = fresh as u8;
        self.connections = self.passing.iter().filter(|path| path.is_fresh(now)).count() as u8;
        let mut replaced = false;
        for n in 0..self.number {
            let path = &self.active[n];
            let silent = path.unanswered >= DEAD && !path.is_fresh(now);
            let alone = fresh == 0;
            let due = !alone || (traffic_passes && now.since(self.rotated) >= ROTATION);
            if ((silent && due) || path.odd >= ODD) && self.number < usize::from(self.listed) {
                self.active[n] = Path::new(self.candidate());
                self.rotated = now;
                replaced = true;
            }
        }
        replaced
    }

    /// The next reflector of the list that is not in use; there is one.
    fn candidate(&mut self) -> u32 {
        for _ in 0..self.listed {
            let name = self.next;
            self.next = (name + 1) % self.listed;
            if self.active[..self.number].iter().all(|path| path.name != name.into()) {
                return name.into();
            }
        }
        0
    }

    /// Those that vote: reflectors and connections alike. Where half of them, or enough, have been
    /// heard of late, who has not does not outvote them with what was before.
    fn voters(&self, now: Time) -> impl Iterator<Item = &Path> {
        let paths = self.active[..self.number].iter().chain(&self.passing);
        let within = |span| paths.clone().filter(|path| path.is_heard_within(span, now)).count();
        let enough = within(STALE).div_ceil(2).clamp(1, ENOUGH);
        let most = if within(PROMPT) >= enough { PROMPT } else { STALE };
        paths.filter(move |path| path.is_heard_within(most, now))
    }

    /// The lower median of the votes; None if there is none.
    fn voted(&self, now: Time) -> Option<Span> {
        median(self.voters(now).filter_map(|path| path.rise(now)))
    }

    /// The line's delay: what is voted, or what the latest answers have in common, if that is more.
    /// None if nobody votes.
    pub fn delay(&self, now: Time) -> Option<Span> {
        let voted = self.voted(now)?;
        Some(self.common_rise(now).map_or(voted, |common| voted.max(common)))
    }

    /// Makes the latest delays the baseline of every path.
    pub fn shift(&mut self, now: Time) {
        for path in self.active.iter_mut().chain(&mut self.passing) {
            if path.is_fresh(now) {
                path.base = path.latest.iter().min().copied();
                path.odd = 0;
                path.comings.shift();
            } else {
                // Its RTT on the new route is not known.
                path.base = None;
            }
        }
        self.row = [None; 3];
    }

    /// RTTs heard since this was last asked.
    pub fn take_heard(&mut self) -> u32 {
        mem::take(&mut self.heard)
    }

    pub fn baseline(&self) -> Option<Span> {
        let of = |paths: &[Path]| paths.iter().filter_map(|path| path.base).min();
        of(&self.active[..self.number]).or_else(|| of(&self.passing))
    }

    pub fn answering(&self) -> u8 {
        self.answering
    }

    pub fn by_passing(&self) -> bool {
        self.answering == 0 && self.connections > 0
    }

    pub fn connections(&self) -> u8 {
        self.connections
    }
}

/// The lower median; None of nothing.
fn median(spans: impl Iterator<Item = Span>) -> Option<Span> {
    let mut all = [Span::ZERO; MOST_ACTIVE + PASSING];
    let mut number = 0;
    for span in spans.take(all.len()) {
        all[number] = span;
        number += 1;
    }
    all[..number].sort_unstable();
    all[..number].get(number.saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn us(us: u64) -> Span {
        Span(us * 1_000)
    }

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// Paths of which each active reflector has answered twice at that time, after these ms.
    fn answered(listed: u8, rtts: &[u64], now: Time) -> Paths {
        let mut paths = Paths::new(listed, rtts.len() as u8);
        for _ in 0..2 {
            for (n, rtt) in rtts.iter().enumerate() {
                paths.answer(n as u8, ms(*rtt), now);
            }
        }
        paths
    }

    #[test]
    fn a_list_and_what_is_probed_of_it_have_bounds() {
        for (listed, active, number) in [(0, 4, 0), (3, 8, 3), (9, 4, 4), (200, 200, 8)] {
            let paths = Paths::new(listed, active);
            assert!(paths.active().eq(0..number));
            assert!(paths.listed <= MOST_REFLECTORS);
        }
    }

    /// A vote is the lower of two rises; the baseline is the lowest RTT, and grows by 1/512.
    #[test]
    fn one_late_answer_is_no_queue() {
        let mut path = Path::new(7);
        path.hear(ms(20), at(0));
        assert_eq!(path.rise(at(599)), Some(Span::ZERO));
        assert_eq!(path.rise(at(600)), None, "stale");
        path.hear(us(25_120), at(0));
        assert_eq!((path.base, path.rise(at(0))), (Some(us(20_010)), Some(Span::ZERO)));
        path.hear(us(30_250), at(0));
        assert_eq!((path.base, path.rise(at(0))), (Some(us(20_030)), Some(us(5_090))));
        path.hear(us(19_000), at(0));
        path.hear(us(19_000), at(0));
        assert_eq!((path.base, path.rise(at(0))), (Some(us(19_000)), Some(Span::ZERO)));
    }

    #[test]
    fn the_delay_is_the_lower_median() {
        let of = |all: &[u64]| median(all.iter().map(|&n| Span(n)));
        assert_eq!(of(&[]), None);
        for (all, middle) in [(&[5][..], 5), (&[9, 5], 5), (&[9, 5, 7], 7), (&[9, 5, 8, 7], 7)] {
            assert_eq!(of(all), Some(Span(middle)));
        }
        let mut paths = answered(3, &[20, 30, 40], at(0));
        (0..2).for_each(|_| paths.answer(1, ms(50), at(0)));
        assert!(paths.delay(at(0)).is_some_and(|delay| delay < ms(1)));
        (0..2).for_each(|_| paths.answer(2, ms(50), at(0)));
        assert!(paths.delay(at(0)).is_some_and(|delay| delay > ms(9) && delay <= ms(10)));
        assert_eq!(paths.delay(at(600)), None);
        assert_eq!((paths.take_heard(), paths.take_heard()), (10, 0));
        paths.answer(3, ms(9), at(0));
        assert_eq!(paths.take_heard(), 0, "nobody asked it");
    }

    /// The mean of differences that are one of moments, of the latest 64, and no more than 12 ms.
    #[test]
    fn jitter_is_how_much_answers_in_turn_differ() {
        let mut jitter = Jitter::default();
        let mut hear = |rise: u64, at_ms: u64| {
            jitter.hear(us(rise), at(at_ms));
            jitter.mean
        };
        assert_eq!(hear(9_000, 0), Span::ZERO);
        assert_eq!(hear(2_600, 119), us(6_400));
        assert_eq!(hear(9_000, 239), us(6_400), "another queue");
        assert_eq!(hear(12_200, 240), us(4_800));
        (0..62).for_each(|_| assert!(hear(12_200, 240) > Span::ZERO));
        // Of 64 now, the latest counts as much as each.
        let before = hear(12_200, 240).0;
        assert_eq!(hear(5_800, 240), Span(before - before / 64 + 100_000));
        let mut jitter = Jitter::default();
        [0, 90_000].iter().for_each(|rise| jitter.hear(us(*rise), at(0)));
        assert_eq!(jitter.mean, ms(12));
        // Two reflectors', each above its own baseline.
        let mut paths = answered(2, &[20, 50], at(0));
        assert_eq!(paths.jitter(), Span::ZERO);
        paths.answer(1, us(56_400), at(0));
        assert_eq!(paths.jitter(), us(1_600));
    }

    /// Votes older than 250 ms do not count if half of the paths, or three, have been heard since.
    #[test]
    fn votes_of_before_do_not_outvote_those_of_now() {
        let rises = |all: usize, late: usize, after_ms: u64| {
            let mut paths = answered(all as u8, &vec![20; all], at(0));
            for n in 0..late {
                (0..2).for_each(|_| paths.answer(n as u8, ms(50), at(100)));
            }
            paths.delay(at(after_ms)).map(|delay| delay > ms(29))
        };
        assert_eq!(rises(7, 3, 249), Some(false), "the others' are from now, too");
        assert_eq!(rises(7, 3, 250), Some(true));
        assert_eq!(rises(7, 2, 250), Some(false));
        assert_eq!(rises(7, 3, 350), Some(false), "nobody's is");
        assert_eq!((rises(7, 3, 600), rises(7, 3, 700)), (Some(true), None));
        for (all, late, rise) in [(2, 1, true), (3, 1, false), (3, 2, true), (4, 2, true)] {
            assert_eq!(rises(all, late, 250), Some(rise), "{late} of {all}");
        }
    }

    #[test]
    fn three_late_answers_in_turn_are_a_queue() {
        let answers = |names: [u8; 3], rtts: [u64; 3], apart_ms: u64| {
            let mut paths = answered(4, &[20; 4], at(0));
            for (n, (name, rtt)) in names.into_iter().zip(rtts).enumerate() {
                paths.answer(name, ms(rtt), at(100 + n as u64 * apart_ms));
            }
            paths
        };
        let late = answers([0, 1, 2], [50, 45, 60], 30);
        assert_eq!(late.delay(at(160)), Some(ms(25)), "the least of them");
        assert_eq!(late.delay(at(349)), Some(ms(25)));
        assert_eq!(late.delay(at(350)), Some(Span::ZERO), "they are of before");
        for (names, rtts, apart_ms) in [
            ([0, 1, 2], [50, 45, 60], 29),
            ([0, 1, 2], [50, 20, 60], 30),
            ([0, 1, 0], [50, 45, 60], 30),
            ([0, 0, 1], [50, 45, 60], 30),
            ([1, 0, 0], [50, 45, 60], 30),
        ] {
            let paths = answers(names, rtts, apart_ms);
            assert_eq!(paths.delay(at(160)), Some(Span::ZERO), "{names:?} {rtts:?} {apart_ms}");
        }
        let mut jittery = late.clone();
        jittery.jitter.mean = SLIGHT;
        assert_eq!(jittery.delay(at(160)), Some(Span::ZERO));
        let mut shifted = late;
        shifted.shift(at(160));
        assert_eq!(shifted.delay(at(160)), Some(Span::ZERO));
    }

    /// More than 12 ms from the median, twenty times in turn.
    #[test]
    fn who_disagrees_is_replaced() {
        let mut paths = answered(6, &[20, 20, 20], at(0));
        paths.answer(2, ms(40), at(0));
        assert_eq!(paths.active[2].odd, 0, "a vote has two answers");
        for n in 1..=19 {
            paths.answer(2, ms(40), at(0));
            assert_eq!(paths.active[2].odd, n);
        }
        assert!(!paths.review(at(0), false));
        paths.answer(2, ms(40), at(0));
        assert!(paths.review(at(0), false) && paths.active().eq([0, 1, 3]));
        assert_eq!(paths.active[2].odd, 0);
        // Once in agreement, all is forgotten; and 12 ms are none.
        for rtt in [ms(32), ms(20)] {
            let mut paths = answered(6, &[20, 20, 20], at(0));
            (0..4).for_each(|_| paths.answer(2, ms(40), at(0)));
            // 20 ms with what an answer after 32 adds.
            paths.active[2].base = Some(Span(19_976_517));
            paths.answer(2, rtt, at(0));
            assert_eq!(paths.active[2].odd, 0, "{rtt:?}");
        }
        // Of a list without others, each stays.
        let mut paths = answered(3, &[20, 20, 20], at(0));
        (0..30).for_each(|_| paths.answer(2, ms(40), at(0)));
        assert!(!paths.review(at(0), true) && paths.active().eq(0..3));
    }

    /// After four probes without an answer, while others answer; else one a second, while traffic
    /// passes.
    #[test]
    fn who_is_silent_is_replaced() {
        let mut paths = answered(5, &[20, 20], at(0));
        (0..3).for_each(|_| paths.lost(1, at(500)));
        paths.answer(0, ms(20), at(599));
        assert!(!paths.review(at(700), false));
        paths.lost(1, at(700));
        assert!(!paths.review(at(599), false), "it has answered just now");
        assert!(paths.review(at(700), false) && paths.active().eq([0, 2]));
        assert_eq!(paths.answering(), 1);
        // An answer ends the count.
        let mut paths = answered(5, &[20, 20], at(0));
        (0..3).for_each(|_| paths.lost(1, at(0)));
        paths.answer(1, ms(20), at(0));
        paths.lost(1, at(700));
        paths.answer(0, ms(20), at(700));
        assert!(!paths.review(at(700), false));
        // Nobody answers.
        let mut paths = answered(5, &[20, 20], at(0));
        (0..2).for_each(|n| (0..4).for_each(|_| paths.lost(n, at(0))));
        assert!(!paths.review(at(1_000), false), "the line may be down");
        assert!(!paths.review(at(999), true));
        assert!(paths.review(at(1_000), true) && paths.active().eq([2, 1]));
        assert!(!paths.review(at(1_999), true));
        assert!(paths.review(at(2_000), true) && paths.active().eq([2, 3]));
        // Round the list, past those in use.
        assert_eq!([(); 4].map(|()| paths.candidate()), [4, 0, 1, 4]);
    }

    /// A connection keeps its place while it is heard of; else the one unheard for longest goes.
    #[test]
    fn connections_have_eight_places() {
        let mut paths = Paths::new(0, 0);
        for tag in 0..9 {
            paths.passing(tag, ms(20), at(u64::from(tag)));
        }
        assert!(!paths.review(at(9), true));
        assert_eq!((paths.connections(), paths.take_heard()), (8, 8));
        assert!(paths.by_passing() && paths.passing.iter().all(|path| path.name < 8));
        paths.passing(3, ms(20), at(599));
        paths.passing(9, ms(20), at(599));
        assert!(paths.passing.iter().all(|path| path.name < 8));
        for tag in [9, 10] {
            paths.passing(tag, ms(20), at(601));
        }
        assert!([9, 10, 2, 3].iter().all(|tag| paths.passing.iter().any(|path| path.name == *tag)));
        assert!(paths.passing.iter().all(|path| path.name > 1));
        assert!(!Paths::new(0, 0).by_passing());
        // Of a connection's RTTs between two reviews the lowest counts: ACKs may be held back.
        let mut paths = Paths::new(0, 0);
        for rtts in [[90, 20, 50], [70, 30, 60], [30, 70, 80]] {
            rtts.iter().for_each(|rtt| paths.passing(4, ms(*rtt), at(5)));
            paths.review(at(5), true);
        }
        assert!(paths.delay(at(5)).is_some_and(|delay| delay > ms(9) && delay <= ms(10)));
        assert_eq!((paths.take_heard(), paths.baseline()), (3, paths.passing[0].base));
        assert_eq!((paths.answering(), paths.by_passing()), (0, true));
        // Where reflectors answer, they tell the baseline.
        let mut paths = answered(3, &[40, 50], at(0));
        paths.passing(4, ms(20), at(0));
        paths.review(at(0), true);
        assert_eq!((paths.baseline(), paths.by_passing()), (Some(ms(40)), false));
    }

    /// A new route's RTT is the lowest of three; whose is stale is not known.
    #[test]
    fn a_shift_makes_what_is_now_the_baseline() {
        let mut paths = answered(3, &[20, 20], at(0));
        [60, 50, 55].iter().for_each(|rtt| paths.answer(0, ms(*rtt), at(600)));
        paths.active[0].odd = 3;
        paths.shift(at(600));
        assert_eq!((paths.active[0].base, paths.active[0].odd), (Some(ms(50)), 0));
        assert_eq!(paths.active[1].base, None);
        assert_eq!((paths.delay(at(600)), paths.baseline()), (Some(Span::ZERO), Some(ms(50))));
        paths.answer(1, ms(70), at(600));
        assert_eq!(paths.active[1].base, Some(ms(70)));
    }

    /// In units of comings.
    fn coming(ms: u64) -> u32 {
        (ms * 1_000_000 / COMING_UNIT.0) as u32
    }

    /// Off by 200 ms and a sixteenth of the time at most; after a second it is believed.
    #[test]
    fn a_far_clock_that_runs_away_is_not_believed() {
        let start = 0xffff_ff00;
        let after = |ms: u64, off: u32, earlier: bool| {
            let mut comings = Comings::default();
            comings.hear(start, at(100));
            let next = if earlier { start.wrapping_sub(off) } else { start.wrapping_add(off) };
            comings.hear(next, at(100 + ms));
            comings.first.map(|(since, _)| since)
        };
        let most = coming(200 + 1_600 / 16);
        for earlier in [false, true] {
            assert_eq!(after(1_600, most, earlier), Some(at(100)));
            assert_eq!(after(1_600, most + 1, earlier), Some(at(1_700)));
        }
        // To the unit, where both are whole numbers of it.
        for (off, since) in [(195_313, at(100)), (195_314, at(100) + Span(8_192))] {
            let mut comings = Comings::default();
            comings.hear(start, at(100));
            comings.hear(start.wrapping_add(off), at(100) + Span(8_192));
            assert_eq!(comings.first.map(|(since, _)| since), Some(since));
        }
        let mut comings = Comings::default();
        assert_eq!(comings.rise(at(5_000)), None);
        comings.hear(start, at(100));
        comings.hear(start, at(600));
        assert_eq!(comings.rise(at(1_099)), None);
        assert_eq!(comings.rise(at(1_100)), Some(Span::ZERO));
        assert_eq!(comings.rise(at(1_199)), Some(Span::ZERO));
        assert_eq!(comings.rise(at(1_200)), None, "nobody has told it of late");
        // The lower of the two latest, above the lowest, which grows by 1/512.
        comings.hear(start.wrapping_add(10_240), at(1_100));
        assert_eq!(comings.rise(at(1_100)), Some(Span::ZERO));
        assert_eq!(comings.base, start.wrapping_add(20));
        comings.hear(start.wrapping_add(20 + 5_120), at(1_100));
        assert_eq!(comings.rise(at(1_100)), Some(Span((5_120 - 10) * COMING_UNIT.0)));
        comings.shift();
        assert_eq!(comings.base, start);
        comings.hear(start.wrapping_sub(5), at(1_100));
        assert_eq!((comings.base, comings.latest[2]), (start.wrapping_sub(5), comings.base));
    }

    /// Those vote whose RTT rises as that of all does: by a quarter more or less, or 3 ms.
    #[test]
    fn the_way_back_is_told_by_clocks_of_paths_that_agree() {
        let told = |total: Span, rise: Span| {
            let mut paths = answered(3, &[20], at(0));
            paths.came(0, 500, true, at(0));
            paths.came(0, 500, false, at(0));
            paths.came(1, 900, true, at(0));
            paths.active[0].base = Some(ms(20));
            (0..2).for_each(|_| paths.answer(0, ms(20) + rise, at(1_000)));
            (0..2).for_each(|_| paths.came(0, 500 + coming(7), true, at(1_000)));
            (0..2).for_each(|_| paths.came(1, 500 + coming(90), true, at(1_000)));
            paths.active[0].base = Some(ms(20));
            paths.coming(total, at(1_000))
        };
        let way_back = told(ms(40), ms(40)).expect("a clock");
        assert!(way_back > us(6_900) && way_back <= ms(7), "{way_back:?}");
        assert!(told(ms(40), ms(50)).is_some() && told(ms(40), us(50_001)).is_none());
        assert!(told(ms(40), ms(30)).is_some() && told(ms(40), us(29_999)).is_none());
        assert!(told(ms(4), ms(7)).is_some() && told(ms(4), us(7_001)).is_none());
        // A connection's clock, too.
        let mut paths = Paths::new(0, 0);
        paths.came(6, 500, false, at(0));
        assert_eq!(paths.passing[0].comings.first, None, "it is not known");
        paths.passing(6, ms(20), at(0));
        paths.came(6, 500, false, at(0));
        assert_eq!(paths.passing[0].comings.first, Some((at(0), 500)));
    }
}
