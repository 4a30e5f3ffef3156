//! Statistics of `codel`, as `tc` shows them.

use core::fmt::{self, Write};

use crate::qdisc::OwnStats;
use crate::tc::units::shown_time;
use crate::tc::{Digits, Json};
use crate::time::Span;

/// CoDel's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Signals in the present or last spell.
    pub count: u32,
    /// Signals with which it began.
    pub lastcount: u32,
    /// Waiting time of the packet that left last.
    pub last_delay: Span,
    /// In a spell of signals.
    pub dropping: bool,
    /// Time from the last departure to the next signal, in microseconds: below zero if that is
    /// overdue, zero outside a spell.
    pub drop_next_us: i32,
    /// Largest packet seen, in bytes.
    pub max_packet: u32,
    /// Packets marked by the control law.
    pub ecn_mark: u32,
    /// Packets dropped because the queue was full.
    pub drop_overlimit: u32,
    /// Packets marked by `ce_threshold`.
    pub ce_mark: u32,
}

impl OwnStats for Stats {
    fn write_below(&self, _: bool, out: &mut dyn Write) -> fmt::Result {
        let delay = shown_time(self.last_delay, Digits::AsTc);
        write!(out, "  count {} lastcount {} ldelay {delay}", self.count, self.lastcount)?;
        out.write_str(if self.dropping { " dropping drop_next " } else { " drop_next " })?;
        out.write_str(if self.drop_next_us < 0 { "-" } else { "" })?;
        let ahead = Span::from_micros(self.drop_next_us.unsigned_abs().into());
        write!(out, "{}", shown_time(ahead, Digits::AsTc))?;
        write!(out, "\n  maxpacket {} ecn_mark {}", self.max_packet, self.ecn_mark)?;
        write!(out, " drop_overlimit {}", self.drop_overlimit)?;
        if self.ce_mark > 0 {
            write!(out, " ce_mark {}", self.ce_mark)?;
        }
        out.write_char('\n')
    }

    fn write_json(&self, _: bool, json: &mut Json<'_>) -> fmt::Result {
        json.key("count")?.number(self.count.into())?;
        json.key("lastcount")?.number(self.lastcount.into())?;
        json.key("ldelay")?.number(self.last_delay.as_micros())?;
        if self.dropping {
            json.key("dropping")?.raw(|out| out.write_str("null"))?;
        }
        json.key("drop_next")?.signed(self.drop_next_us.into())?;
        json.key("maxpacket")?.number(self.max_packet.into())?;
        json.key("ecn_mark")?.number(self.ecn_mark.into())?;
        json.key("drop_overlimit")?.number(self.drop_overlimit.into())?;
        if self.ce_mark > 0 {
            json.key("ce_mark")?.number(self.ce_mark.into())?;
        }
        Ok(())
    }
}
