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
    pub probability: u32,
    /// Waiting time of the first packet of the C queue at the last call.
    pub delay_c: Span,
    /// The same of the L queue.
    pub delay_l: Span,
    /// Packets that came into the C queue.
    pub packets_in_c: u32,
    /// Packets that came into the L queue.
    pub packets_in_l: u32,
    /// Most packets that an arrival found queued.
    pub max_queue: u32,
    /// Marks: a packet that is marked for its delay and by chance counts twice.
    pub ecn_mark: u32,
    /// Of those, the ones beyond the step.
    pub step_marks: u32,
    /// Weighted bytes that the C queue may send before it is the turn of the L queue.
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
        let one = u64::from(ONE);
        let millionths = (u64::from(self.probability) * 1_000_000 + one / 2) / one;
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
        json.key("prob")?.raw(|out| write_fraction(self.probability.into(), ONE.into(), out))?;
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

#[cfg(test)]
mod tests {
    use std::string::String;

    use super::*;

    #[test]
    fn a_probability_has_six_places_and_the_sign_of_the_credit_names_a_queue() {
        let stats = Stats {
            probability: ONE / 8,
            delay_c: Span::from_micros(1_500),
            delay_l: Span::from_micros(20),
            packets_in_c: 7,
            packets_in_l: 6,
            max_queue: 5,
            ecn_mark: 4,
            step_marks: 3,
            credit: -2,
            memory_used: 100,
            max_memory_used: 200,
            memory_limit: 300,
            drops_c: 11,
            drops_l: 12,
            overlimit: 13,
            qlen_c: 14,
            qlen_l: 15,
        };
        let text = |stats: Stats, all| {
            let mut text = String::new();
            stats.write_below(all, &mut text).map(|()| text)
        };
        let (begin, middle, end) = (
            "prob 0.125000 delay_c 1500us delay_l 20us\npkts_in_c 7 pkts_in_l 6 maxq 5\n\
             ecn_mark 4 step_mark 3\n",
            "credit -2 (L-queue)\n",
            "memory_used 100 (max 200) of memory limit 300\n",
        );
        let ours = " drops_c 11 drops_l 12 overlimit 13 qlen_c 14 qlen_l 15\n";
        assert_eq!(text(stats, false), Ok([begin, middle, end].concat()));
        assert_eq!(text(stats, true), Ok([begin, middle, end, ours].concat()));

        let line = |probability, credit| {
            let text = text(Stats { probability, credit, ..Stats::default() }, false);
            let has = |words: &str| text.as_ref().is_ok_and(|text| text.contains(words));
            (has("prob 1.000000 ") || has("prob 0.000001 "), has("(C-queue)"))
        };
        assert_eq!(line(ONE, 1), (true, true));
        // Rounded: the least that is shown is half of a millionth.
        assert_eq!(line(ONE / 2_000_000 + 1, 0), (true, false));
        assert_eq!(line(ONE / 2_000_000 - 1, 0), (false, false));
    }
}
