//! Statistics of `dualpi2`, as `tc` shows them (iproute2 7.1), and some that it does not show.

use core::fmt::{self, Write};

use crate::aqm::pi2::ONE;
use crate::qdisc::OwnStats;
use crate::tc::units::write_fraction;
use crate::tc::Json;
use crate::time::Span;

/// DualPI2's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Base probability, in units of 1/[`ONE`].
    pub probability: u64,
    /// Time that the last packet of the C queue waited.
    pub delay_c: Span,
    /// Time that the last packet of the L queue waited.
    pub delay_l: Span,
    /// Packets that came into the C queue.
    pub packets_in_c: u32,
    /// Packets that came into the L queue.
    pub packets_in_l: u32,
    /// Most packets queued.
    pub max_queue: u32,
    /// Packets marked CE.
    pub ecn_mark: u32,
    /// Of those, packets beyond the step.
    pub step_marks: u32,
    /// Bytes by which the C queue may send more than the L queue now.
    pub credit: i32,
    /// Memory in use, in bytes.
    pub memory_used: u32,
    /// Most memory ever in use.
    pub max_memory_used: u32,
    /// Limit of that.
    pub memory_limit: u32,
    /// Packets of the C queue dropped by the AQM.
    pub drops_c: u32,
    /// Packets of the L queue dropped in overload.
    pub drops_l: u32,
    /// Packets dropped because a limit was reached.
    pub overlimit: u32,
    /// Packets in the C queue.
    pub qlen_c: u32,
    /// Packets in the L queue.
    pub qlen_l: u32,
}

impl Stats {
    /// Counters that `tc` does not show.
    fn ours(&self) -> [(&'static str, u32); 5] {
        [
            ("drops_c", self.drops_c),
            ("drops_l", self.drops_l),
            ("overlimit", self.overlimit),
            ("qlen_c", self.qlen_c),
            ("qlen_l", self.qlen_l),
        ]
    }
}

impl OwnStats for Stats {
    fn write_below(&self, all: bool, out: &mut dyn Write) -> fmt::Result {
        let millionths =
            (u128::from(self.probability) * 1_000_000 + u128::from(ONE / 2)) / u128::from(ONE);
        write!(out, "prob {}.{:06} ", millionths / 1_000_000, millionths % 1_000_000)?;
        let [delay_c, delay_l] = [self.delay_c, self.delay_l].map(Span::as_micros);
        writeln!(out, "delay_c {delay_c}us delay_l {delay_l}us")?;
        let Stats { packets_in_c, packets_in_l, max_queue, .. } = self;
        writeln!(out, "pkts_in_c {packets_in_c} pkts_in_l {packets_in_l} maxq {max_queue}")?;
        writeln!(out, "ecn_mark {} step_mark {}", self.ecn_mark, self.step_marks)?;
        let queue = if self.credit > 0 { "C-queue" } else { "L-queue" };
        writeln!(out, "credit {} ({queue})", self.credit)?;
        let Stats { memory_used, max_memory_used, memory_limit, .. } = self;
        writeln!(
            out,
            "memory_used {memory_used} (max {max_memory_used}) of memory limit {memory_limit}"
        )?;
        if all {
            let ours = self.ours();
            ours.iter().try_for_each(|(name, count)| write!(out, " {name} {count}"))?;
            out.write_char('\n')?;
        }
        Ok(())
    }

    fn write_json(&self, all: bool, json: &mut Json<'_>) -> fmt::Result {
        json.key("prob")?.raw(|out| write_fraction(self.probability, ONE, out))?;
        json.key("delay-c")?.number(self.delay_c.as_micros())?;
        json.key("delay-l")?.number(self.delay_l.as_micros())?;
        for (key, count) in [
            ("pkts-in-c", self.packets_in_c),
            ("pkts-in-l", self.packets_in_l),
            ("maxq", self.max_queue),
            ("ecn-mark", self.ecn_mark),
            ("step-mark", self.step_marks),
        ] {
            json.key(key)?.number(count.into())?;
        }
        json.key("credit")?.display(self.credit)?;
        json.key("memory-used")?.number(self.memory_used.into())?;
        json.key("max-memory-used")?.number(self.max_memory_used.into())?;
        json.key("memory-limit")?.number(self.memory_limit.into())?;
        if all {
            for (name, count) in self.ours() {
                json.key(name)?.number(count.into())?;
            }
        }
        Ok(())
    }
}
