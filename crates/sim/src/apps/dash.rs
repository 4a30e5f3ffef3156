//! Video over HTTP (DASH): chunks of constant play time, fetched one after the other over one
//! connection, in the quality that the throughput allows.
//!
//! The client first fills its buffer, then fetches a chunk whenever there is room for one. It takes
//! the highest rate of the ladder that does not exceed a share of the throughput of its last
//! chunks (harmonic mean, as in Jiang, Sekar, Zhang, FESTIVE, CoNEXT 2012), the lowest one first.
//! Play begins when enough is buffered; a buffer that runs dry is a stall, and play goes on when
//! again enough is there.

use simnel_core::{Span, Time};

use super::Context;
use crate::network::{Connection, Network, Notice, Side};
use crate::setup::dash::Params;

/// Chunks whose throughput counts.
const REMEMBERED: usize = 5;
/// Bytes of the request for a chunk.
const REQUEST: u64 = 300;
/// A chunk that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When it was asked for.
    pub asked: Time,
    /// Its rate in bits a second.
    pub rate: u64,
    /// Throughput while it was fetched, in bits a second.
    pub throughput: u64,
}

/// How the video played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Playback {
    /// All chunks in order.
    pub chunks: Vec<Chunk>,
    /// Time from the start to the first picture; None if it never came.
    pub startup: Option<Span>,
    /// How often the buffer ran dry.
    pub stalls: u64,
    /// Time without picture after the first one.
    pub stalled: Span,
    /// Play time watched.
    pub played: Span,
}

/// A player.
#[derive(Clone, Debug)]
pub(crate) struct Dash {
    context: Context,
    params: Params,
    connection: Option<Connection>,
    began: Time,
    /// Index of the present chunk's rate, when it was asked for, its size.
    fetching: Option<(usize, Time, u64)>,
    request_end: u64,
    chunk_end: u64,
    asked_server: bool,
    /// Play time buffered at `updated`.
    buffered: Span,
    updated: Time,
    playing: bool,
    playback: Playback,
}

impl Dash {
    pub fn new(params: &Params, context: Context) -> Dash {
        Dash {
            context,
            params: params.clone(),
            connection: None,
            began: Time::ZERO,
            fetching: None,
            request_end: 0,
            chunk_end: 0,
            asked_server: false,
            buffered: Span::ZERO,
            updated: Time::ZERO,
            playing: false,
            playback: Playback::default(),
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        if self.connection.is_none() {
            self.connection = Some(network.open(&self.context.opening, now));
            (self.began, self.updated) = (now, now);
            if self.context.stop != Time::MAX {
                network.wake(self.context.opening.app, self.context.stop);
            }
        }
        self.play(now);
        self.fetch(network, now);
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if events.data && side == Side::Server {
            let whole = network.received(connection, side) >= self.request_end;
            if let Some((.., size)) = self.fetching.filter(|_| whole && !self.asked_server) {
                self.asked_server = true;
                network.with_endpoint(connection, side, now, |endpoint| endpoint.write(size));
            }
        }
        if events.data && side == Side::Client {
            self.received(connection, network, now);
        }
        network.follow(connection, side, &events, now);
    }

    fn received(&mut self, connection: Connection, network: &mut Network, now: Time) {
        let Some((index, asked, size)) = self.fetching else { return };
        if network.received(connection, Side::Client) < self.chunk_end {
            return;
        }
        self.fetching = None;
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
        self.fetch(network, now);
    }

    /// Asks for the next chunk if there is room for it, or sleeps until there is.
    fn fetch(&mut self, network: &mut Network, now: Time) {
        let Some(connection) = self.connection else { return };
        if self.fetching.is_some() {
            return;
        }
        if now >= self.context.stop {
            network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.close());
            return;
        }
        let full = self.buffered + self.params.chunk;
        if full > self.params.buffer {
            if self.playing {
                let wait = full.saturating_sub(self.params.buffer);
                network.wake(self.context.opening.app, now + wait);
            }
            return;
        }
        let index = self.choose();
        let bits = u128::from(self.params.ladder[index]) * u128::from(self.params.chunk.0);
        let size = (bits / 8_000_000_000).max(1) as u64;
        self.fetching = Some((index, now, size));
        self.request_end += REQUEST;
        self.chunk_end += size;
        self.asked_server = false;
        network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.write(REQUEST));
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
        let now = now.min(self.context.stop).max(self.updated);
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

    pub fn playback(mut self, now: Time) -> Playback {
        self.play(now);
        self.playback
    }
}
