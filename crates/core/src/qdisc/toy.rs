//! `toy`: one queue that refuses newcomers while the packet that left last had waited too long.

use alloc::boxed::Box;
use core::fmt::{self, Write};

use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Fate, Limit, Single};
use crate::qdisc::{
    Backlog, ConfigError, Described, Detail, Device, DropReason, Managed, Names, PacketOwner,
    Totals,
};
use crate::tc::units::shown_time;
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::{Span, Time};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Waiting time that is accepted.
    pub target: Span,
}

impl Described for Params {
    const NAMES: Names = &[("toy", "one queue that refuses newcomers while it is slow")];
    const KEYWORDS: Keywords =
        &[&[Keyword::new("target", "TIME", "waiting time that is accepted, default 10ms")]];
    // A series of this name, with these words, in every figure in which disciplines compete.
    const CONTENDERS: Names = &[("toy", "toy target 10ms")];
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        const TIME: Value<Span> = Value::new("a TIME such as 10ms", units::time);
        let mut params = Params { target: Span::from_millis(10) };
        while let Some(word) = words.next() {
            match word {
                "target" => params.target = words.take(&TIME)?,
                _ => return Err(words.unknown()),
            }
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        write!(out, "target {} ", shown_time(self.target, digits))
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("target_ns")?.number(self.target.0)
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Single::<Toy>::new(self, device)?))
    }
}

figures! {
    /// Its counters: `simnel show` prints them under these names, as text and as JSON.
    pub struct Stats {
        /// Waiting time of the packet that left last.
        waited: Span,
        /// Newcomers that were refused.
        refused: u32,
    }
}

/// Its settings, state and counters.
pub struct Toy {
    target: Span,
    stats: Stats,
}

impl Aqm for Toy {
    type Params = Params;

    fn new(params: &Params, _: &Device) -> Result<Toy, ConfigError> {
        Ok(Toy { target: params.target, stats: Stats::default() })
    }

    fn limit(_: &Params, device: &Device) -> Limit {
        Limit::packets(device.tx_queue_len)
    }

    fn change(&mut self, params: &Params, _: &Device, _: &mut Toy) {
        self.target = params.target;
    }

    fn arrives(&mut self, _: &Packet, backlog: Backlog, _: Time, _: &mut dyn PacketOwner) -> Fate {
        // An empty queue is not slow, however long the last packet had waited.
        if backlog.packets == 0 || self.stats.waited <= self.target {
            return Fate::Pass;
        }
        self.stats.refused += 1;
        Fate::Drop(DropReason::Congested)
    }

    fn passes(&mut self, packet: &Packet, _: Backlog, now: Time) -> bool {
        self.stats.waited = now.since(packet.enqueued);
        true
    }

    fn restart(&mut self, _: &Params, _: &Device) {
        self.stats.waited = Span::ZERO;
    }

    fn statistics(&self, _: &mut Totals) -> Detail {
        Detail::Toy(self.stats)
    }
}
