//! Settings of video over HTTP (DASH).

use simnel_core::Span;

/// Most rates of a ladder.
const MAX_RATES: usize = 64;

/// Rates in bits a second of the video that the experiments on IoT flows used. It is Big Buck
/// Bunny, 2-second chunks (Lederer, Müller, Timmerer, MMSys 2012).
pub const LADDER: [u64; 20] = [
    45_652, 89_283, 131_087, 178_351, 221_600, 262_537, 334_349, 396_126, 522_286, 595_491,
    791_182, 1_032_682, 1_244_778, 1_546_902, 2_133_691, 2_484_135, 3_078_587, 3_526_922,
    3_840_360, 4_219_897,
];

/// A player and its video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Play time of a chunk.
    pub chunk: Span,
    /// Rates in bits a second, ascending.
    pub ladder: Vec<u64>,
    /// Play time that the buffer holds.
    pub buffer: Span,
    /// Play time that must be there before play begins, or goes on after a stall.
    pub prefill: Span,
    /// Share of the throughput that the rate may take, in thousandths.
    pub safety_milli: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            chunk: Span::from_secs(2),
            ladder: LADDER.to_vec(),
            buffer: Span::from_secs(30),
            prefill: Span::from_secs(4),
            safety_milli: 900,
        }
    }
}

impl Params {
    /// The expected range, if something is outside it.
    pub(crate) fn check(&self) -> Option<&'static str> {
        let ascending = self.ladder.windows(2).all(|pair| pair[0] < pair[1]);
        let sane = |rate: &u64| (1_000..=1_000_000_000).contains(rate);
        if self.ladder.is_empty() || self.ladder.len() > MAX_RATES {
            Some("1 to 64 rates")
        } else if !ascending || !self.ladder.iter().all(sane) {
            Some("ascending rates between 1kbit and 1gbit")
        } else if self.chunk < Span::from_millis(10) || self.chunk > Span::from_secs(60) {
            Some("chunks of 10 ms to 60 s")
        } else if self.buffer < self.chunk || self.buffer > Span::from_secs(3600) {
            Some("a buffer of at least one chunk and at most an hour")
        } else if self.prefill.0 > self.buffer.0 - self.buffer.0 % self.chunk.0 {
            // More is never asked for before play begins.
            Some("a pre-fill that is not longer than the whole chunks in the buffer")
        } else if !(1..=1000).contains(&self.safety_milli) {
            Some("a safety between 0.001 and 1")
        } else {
            None
        }
    }
}
