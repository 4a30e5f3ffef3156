//! Settings of web traffic.

use simnel_core::Span;

/// No object is larger.
pub(crate) const MAX_OBJECT: u64 = 100_000_000;

/// Habits of a household that browses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Mean time from one connection to the next.
    pub interval: Span,
    /// Pages over one connection, at least and at most.
    pub pages: (u64, u64),
    /// Objects of a page, at least and at most.
    pub objects: (u64, u64),
    /// Median size of an object in bytes.
    pub object_size: u64,
    /// Standard deviation of the logarithm of sizes, in thousandths.
    pub object_spread_milli: u64,
    /// Request in bytes, at least and at most.
    pub request: (u64, u64),
    /// Median time that a server thinks.
    pub think: Span,
    /// Mean time between pages of one connection.
    pub reading: Span,
}

impl Default for Params {
    /// Ten connections a second of one page with few objects: about 0.8 Mbit/s.
    fn default() -> Params {
        Params {
            interval: Span::from_millis(100),
            pages: (1, 1),
            objects: (1, 3),
            object_size: 2_500,
            object_spread_milli: 1_200,
            request: (300, 700),
            think: Span::from_millis(10),
            reading: Span::from_secs(5),
        }
    }
}

impl Params {
    /// The expected range, if something is outside it.
    pub(crate) fn check(&self) -> Option<&'static str> {
        let ordered = |(low, high): (u64, u64), most| low >= 1 && low <= high && high <= most;
        if self.interval < Span::from_micros(10) || self.interval > Span::from_secs(86_400) {
            Some("at most 100,000 connections a second and at least one a day")
        } else if !ordered(self.pages, 10_000) || !ordered(self.objects, 10_000) {
            Some("1 to 10,000 pages and objects, MIN not above MAX")
        } else if !ordered(self.request, 1_000_000) {
            Some("requests of 1 byte to 1 MB, MIN not above MAX")
        } else if self.object_size == 0 || self.object_size > MAX_OBJECT {
            Some("objects of 1 byte to 100 MB")
        } else if self.object_spread_milli > 4_000 {
            Some("a spread of at most 4")
        } else if self.think > Span::from_secs(60) || self.reading > Span::from_secs(86_400) {
            Some("at most 60 s of thinking and a day of reading")
        } else {
            None
        }
    }
}
