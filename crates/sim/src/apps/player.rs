//! A player of video over HTTP (DASH): which chunk it asks for and when, and what is watched.
//!
//! It first fills its buffer, then asks for a chunk whenever there is room for one. It takes the
//! highest rate of the ladder that does not exceed a share of the throughput of its last chunks.
//! That throughput is the harmonic mean, as in Jiang, Sekar, Zhang, FESTIVE, CoNEXT 2012; the first
//! chunk has the lowest rate. Play begins when enough is buffered. A buffer that runs dry is a
//! stall, and play goes on when again enough is there. How chunks are fetched is its caller's.

use simnel_core::{Span, Time};

use crate::setup::dash::Params;

/// Chunks whose throughput counts.
const REMEMBERED: usize = 5;
/// Bytes of the request for a chunk.
pub const REQUEST: u64 = 300;

/// A chunk that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Time of the request.
    pub asked: Time,
    /// Its rate in bits a second.
    pub rate: u64,
    /// Throughput while it was fetched, in bits a second.
    pub throughput: u64,
}

/// Record of how the video played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Playback {
    /// All chunks in order.
    pub chunks: Vec<Chunk>,
    /// Time from the start to the first picture; None if it never came.
    pub startup: Option<Span>,
    /// Times that the buffer ran dry.
    pub stalls: u64,
    /// Time without picture after the first one.
    pub stalled: Span,
    /// Play time watched.
    pub played: Span,
}

/// A player's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It asks for a chunk of so many bytes.
    Ask(u64),
    /// It has no room before this moment.
    Wait(Time),
    /// It waits for the chunk that it asked for.
    Nothing,
    /// It has stopped.
    Stop,
}

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    params: Params,
    began: Time,
    stop: Time,
    /// Index of the present chunk's rate, when it was asked for, its size.
    fetching: Option<(usize, Time, u64)>,
    /// Play time buffered at `updated`.
    buffered: Span,
    updated: Time,
    playing: bool,
    playback: Playback,
}

impl Player {
    /// A player that begins now and stops at `stop` (`Time::MAX`: never).
    pub fn new(params: &Params, now: Time, stop: Time) -> Player {
        Player {
            params: params.clone(),
            began: now,
            stop,
            fetching: None,
            buffered: Span::ZERO,
            updated: now,
            playing: false,
            playback: Playback::default(),
        }
    }

    /// True from asking for a chunk until it is there.
    pub fn is_fetching(&self) -> bool {
        self.fetching.is_some()
    }

    /// Plays until now, and asks for the next chunk if there is room for it.
    pub fn next(&mut self, now: Time) -> Next {
        self.play(now);
        if self.is_fetching() {
            return Next::Nothing;
        }
        if now >= self.stop {
            return Next::Stop;
        }
        let full = self.buffered + self.params.chunk;
        if full > self.params.buffer {
            return match self.playing {
                true => Next::Wait(now + full.saturating_sub(self.params.buffer)),
                false => Next::Nothing,
            };
        }
        let index = self.choose();
        let bits = u128::from(self.params.ladder[index]) * u128::from(self.params.chunk.0);
        let size = (bits / 8_000_000_000).max(1) as u64;
        self.fetching = Some((index, now, size));
        Next::Ask(size)
    }

    /// The chunk that was asked for is there.
    pub fn fetched(&mut self, now: Time) {
        let Some((index, asked, size)) = self.fetching.take() else { return };
        let span = now.since(asked).0.max(1);
        let throughput = u128::from(size) * 8 * 1_000_000_000 / u128::from(span);
        let rate = self.params.ladder[index];
        self.playback.chunks.push(Chunk { asked, rate, throughput: throughput as u64 });
        self.play(now);
        self.buffered += self.params.chunk;
        if !self.playing && self.buffered >= self.params.prefill {
            self.playing = true;
            self.playback.startup.get_or_insert(now.since(self.began));
        }
    }

    /// The highest rate that the throughput of the last chunks allows.
    fn choose(&self) -> usize {
        let chunks = &self.playback.chunks;
        let last = &chunks[chunks.len().saturating_sub(REMEMBERED)..];
        if last.is_empty() {
            return 0;
        }
        // Harmonic mean in bits a second: picoseconds a bit keep six digits at 1 Gbit/s.
        const PICO: u128 = 1_000_000_000_000;
        let times: u128 = last.iter().map(|chunk| PICO / u128::from(chunk.throughput.max(1))).sum();
        let mean = PICO * last.len() as u128 / times.max(1);
        let allowed = mean * u128::from(self.params.safety_milli) / 1000;
        let fitting = self.params.ladder.partition_point(|rate| u128::from(*rate) <= allowed);
        fitting.saturating_sub(1)
    }

    /// Plays from the buffer what was played since the last call. Nobody watches on after the stop.
    fn play(&mut self, now: Time) {
        let now = now.min(self.stop).max(self.updated);
        let passed = now.since(self.updated);
        self.updated = now;
        if self.playback.startup.is_none() {
            return;
        }
        if !self.playing {
            self.playback.stalled += passed;
            return;
        }
        let played = Span(passed.0.min(self.buffered.0));
        self.buffered = self.buffered.saturating_sub(played);
        self.playback.played += played;
        let dry = passed.saturating_sub(played);
        if dry > Span::ZERO {
            self.playing = false;
            self.playback.stalls += 1;
            self.playback.stalled += dry;
        }
    }

    /// Record of the playback until `now`.
    pub fn playback(mut self, now: Time) -> Playback {
        self.play(now);
        self.playback
    }
}
