//! Delay above each path's baseline, and the vote of all.
//!
//! A path's baseline is the lowest RTT that it has shown, raised by 1/512 of the difference with
//! each answer, so that a wrong one does not stay for ever, and set anew by [`Paths::shift`]. A
//! path's vote is the lowest rise of its two latest answers: one late answer is no queue.
//!
//! A reflector is replaced by the next of the list if it leaves [`DEAD`] probes in turn unanswered
//! while others answer, or if it disagrees with the median for [`ODD`] answers in turn: it is slow,
//! or limits its answers. If none answers, the line may be down: while traffic passes they are
//! replaced all the same, one a second, else kept.

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

/// Time after which a far clock is believed.
const CLOCK_TRIAL: Span = Span::from_millis(1000);
/// Time that it may be off by, beside a sixteenth of what has passed: a queue, or its skew.
const CLOCK_LEEWAY: Span = Span::from_millis(200);

/// Times from a far end to here, but for a constant, in [`COMING_UNIT`], which wrap round.
#[derive(Clone, Copy, Debug, Default)]
struct Comings {
    first: Option<(Time, u32)>,
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
            *self = Comings { first: Some((now, coming)), base: coming, latest: [coming; 3] };
        }
        self.latest = [self.latest[1], self.latest[2], coming];
        let above = coming.wrapping_sub(self.base) as i32;
        self.base = if above < 0 { coming } else { self.base.wrapping_add(above as u32 / 512) };
    }

    /// The time above the lowest, if the far clock is one of milliseconds.
    fn rise(&self, now: Time) -> Option<Span> {
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

    fn hear(&mut self, rtt: Span, now: Time) {
        self.unanswered = 0;
        if self.heard.is_none() {
            self.latest = [rtt; 3];
        }
        self.latest = [self.latest[1], self.latest[2], rtt];
        self.heard = Some(now);
        let base = self.base.unwrap_or(rtt);
        self.base = Some(Span(base.0 + rtt.saturating_sub(base).0 / 512).min(rtt));
    }

    fn is_fresh(&self, now: Time) -> bool {
        self.heard.is_some_and(|heard| now.since(heard) < STALE)
    }

    /// The vote, if there is one.
    fn rise(&self, now: Time) -> Option<Span> {
        let base = self.base.filter(|_| self.is_fresh(now))?;
        Some(self.latest[1].min(self.latest[2]).saturating_sub(base))
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
        }
    }

    pub fn active(&self) -> impl Iterator<Item = u8> + '_ {
        self.active[..self.number].iter().map(|path| path.name as u8)
    }

    pub fn answer(&mut self, reflector: u8, rtt: Span, now: Time) {
        let (number, median) = (self.number, self.delay(now));
        let found = self.active[..number].iter_mut().find(|path| path.name == reflector.into());
        let Some(path) = found else { return };
        path.hear(rtt, now);
        self.heard += 1;
        let differs = match (median, path.rise(now)) {
            (Some(median), Some(rise)) => Span(median.0.abs_diff(rise.0)) > HIGH,
            _ => false,
        };
        path.odd = if differs { path.odd.saturating_add(1) } else { 0 };
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

    /// The next reflector of the list that is not in use.
    fn candidate(&mut self) -> u32 {
        for _ in 0..self.listed {
            let name = u32::from(self.next % self.listed.max(1));
            self.next = (name as u8 + 1) % self.listed.max(1);
            if self.active[..self.number].iter().all(|path| path.name != name) {
                return name;
            }
        }
        0
    }

    /// Those that vote: reflectors and connections alike.
    fn voters(&self, now: Time) -> impl Iterator<Item = &Path> {
        let paths = self.active[..self.number].iter().chain(&self.passing);
        paths.filter(move |path| path.is_fresh(now))
    }

    /// The lower median of the votes; None if there is none.
    pub fn delay(&self, now: Time) -> Option<Span> {
        median(self.voters(now).filter_map(|path| path.rise(now)))
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
