//! Statistics: counters that all disciplines keep, and the way each shows its own.
//!
//! All statistics are plain copies, without a heap: the data path hands them out whole.

use alloc::format;
use core::fmt::{self, Write};

use super::{Backlog, Detail, DropReason};
use crate::tc::units::{shown_fraction, shown_time, write_fraction};
use crate::tc::{Digits, Json};
use crate::time::{Span, Time};

/// Counters that every discipline keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Totals {
    /// Packets handed in.
    pub enqueued_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent (`len`).
    pub sent_bytes: u64,
    /// Packets given up, by reason: index with [`DropReason`] as usize.
    pub dropped: [u64; DropReason::COUNT],
    /// Packets on which this discipline set CE, or found it set when it wanted to.
    pub marked: u64,
    /// Times that the shaper held a packet back, or that a limit was exceeded.
    pub overlimits: u64,
}

impl Totals {
    /// Packets given up for any reason.
    pub fn drops(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// With `sent_packets` as it follows from the others: what came and was not dropped and is not
    /// among the `queued` was sent. So nobody needs to count it packet by packet.
    pub fn settled(self, queued: u32) -> Totals {
        let sent_packets = self.enqueued_packets - self.drops() - u64::from(queued);
        Totals { sent_packets, ..self }
    }

    fn join(&mut self, other: &Totals) {
        self.enqueued_packets += other.enqueued_packets;
        self.sent_packets += other.sent_packets;
        self.sent_bytes += other.sent_bytes;
        self.dropped.iter_mut().zip(other.dropped).for_each(|(count, other)| *count += other);
        self.marked += other.marked;
        self.overlimits += other.overlimits;
    }
}

/// One of many queues at one moment: a class, as `tc class show` calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Packets and bytes queued.
    pub backlog: Backlog,
    /// True if a flow uses it.
    pub is_used: bool,
    /// True if that flow has no standing queue, and goes first for it.
    pub is_sparse: bool,
    /// Bytes that it may send in its turn; below zero it is in debt.
    pub deficit: i32,
    /// Signals in the present or last spell.
    pub count: u32,
    /// Signals with which it began, where that is remembered.
    pub lastcount: u32,
    /// Time of the next signal; None outside a spell of them.
    pub drop_next: Option<Time>,
    /// BLUE's drop probability, Q0.32.
    pub p_drop: u32,
    /// Time of BLUE's last change of `p_drop`.
    pub blue_timer: Time,
}

/// All counters of one discipline at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot {
    /// Counters that every discipline keeps.
    pub totals: Totals,
    /// Present backlog.
    pub backlog: Backlog,
    /// Counters of this discipline alone.
    pub detail: Detail,
}

impl Snapshot {
    /// Adds what another of several parallel queues counted.
    pub fn join(&mut self, other: &Snapshot) {
        self.totals.join(&other.totals);
        self.backlog.packets = self.backlog.packets.saturating_add(other.backlog.packets);
        self.backlog.bytes = self.backlog.bytes.saturating_add(other.backlog.bytes);
        if let (Detail::Cake(all), Detail::Cake(stats)) = (&mut self.detail, &other.detail) {
            all.join(stats);
        }
    }
}

/// Counters and state of one discipline, beyond [`Totals`], as `tc` shows them. `()` is none.
pub trait OwnStats {
    /// Writes lines above those that all disciplines have.
    fn write_above(&self, out: &mut dyn Write) -> fmt::Result {
        let _ = out;
        Ok(())
    }

    /// Writes lines below them; `all` adds what `tc` does not know.
    fn write_below(&self, all: bool, out: &mut dyn Write) -> fmt::Result {
        let _ = (all, out);
        Ok(())
    }

    /// Writes members of the JSON object of the settings, after those.
    fn write_option_json(&self, json: &mut Json<'_>) -> fmt::Result {
        let _ = json;
        Ok(())
    }

    /// Writes members of the discipline's JSON object; `all` adds what `tc` does not know.
    fn write_json(&self, all: bool, json: &mut Json<'_>) -> fmt::Result {
        let _ = (all, json);
        Ok(())
    }
}

impl OwnStats for () {}

/// Bytes as statistics show them: in 32 bits, as in Linux.
pub(super) fn narrow(bytes: u64) -> u32 {
    bytes.min(u32::MAX.into()) as u32
}

/// One figure of [`figures!`].
pub(super) trait Figure: Copy {
    /// Writes a space, `name` and the figure.
    fn write(self, name: &str, out: &mut dyn Write) -> fmt::Result;
    /// Writes it as a member of a JSON object.
    fn write_json(self, name: &str, json: &mut Json<'_>) -> fmt::Result;
}

impl Figure for u64 {
    fn write(self, name: &str, out: &mut dyn Write) -> fmt::Result {
        write!(out, " {name} {self}")
    }

    fn write_json(self, name: &str, json: &mut Json<'_>) -> fmt::Result {
        json.key(name)?.number(self)
    }
}

impl Figure for u32 {
    fn write(self, name: &str, out: &mut dyn Write) -> fmt::Result {
        u64::from(self).write(name, out)
    }

    fn write_json(self, name: &str, json: &mut Json<'_>) -> fmt::Result {
        u64::from(self).write_json(name, json)
    }
}

/// A count that is shown only if it is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnlessZero(pub u32);

impl Figure for UnlessZero {
    fn write(self, name: &str, out: &mut dyn Write) -> fmt::Result {
        if self.0 == 0 {
            return Ok(());
        }
        self.0.write(name, out)
    }

    fn write_json(self, name: &str, json: &mut Json<'_>) -> fmt::Result {
        if self.0 == 0 {
            return Ok(());
        }
        self.0.write_json(name, json)
    }
}

/// A probability in units of 1/`WHOLE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Chance<const WHOLE: u64>(pub u64);

impl<const WHOLE: u64> Figure for Chance<WHOLE> {
    fn write(self, name: &str, out: &mut dyn Write) -> fmt::Result {
        write!(out, " {name} {}", shown_fraction(self.0, WHOLE))
    }

    fn write_json(self, name: &str, json: &mut Json<'_>) -> fmt::Result {
        json.key(name)?.raw(|out| write_fraction(self.0, WHOLE, out))
    }
}

/// In JSON in nanoseconds, as the name says there.
impl Figure for Span {
    fn write(self, name: &str, out: &mut dyn Write) -> fmt::Result {
        write!(out, " {name} {}", shown_time(self, Digits::AsTc))
    }

    fn write_json(self, name: &str, json: &mut Json<'_>) -> fmt::Result {
        json.key(&format!("{name}_ns"))?.number(self.0)
    }
}

/// As text its name alone, where it is true.
impl Figure for bool {
    fn write(self, name: &str, out: &mut dyn Write) -> fmt::Result {
        match self {
            true => write!(out, " {name}"),
            false => Ok(()),
        }
    }

    fn write_json(self, name: &str, json: &mut Json<'_>) -> fmt::Result {
        json.key(name)?.boolean(self)
    }
}

/// Makes the statistics of a discipline from their fields. These are shown under their names and in
/// this order: as text in lines, which a `;` divides.
macro_rules! figures {
    (
        $(#[$meta:meta])*
        pub struct $stats:ident {
            $($($(#[$field_meta:meta])* $field:ident: $type:ty),+ $(,)?);+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $stats {
            $($($(#[$field_meta])* pub $field: $type,)+)+
        }

        impl $crate::qdisc::OwnStats for $stats {
            fn write_below(&self, _: bool, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
                $(
                    // One space more than between them, as `tc` does.
                    out.write_char(' ')?;
                    $($crate::qdisc::stats::Figure::write(self.$field, stringify!($field), out)?;)+
                    out.write_char('\n')?;
                )+
                Ok(())
            }

            fn write_json(&self, _: bool, json: &mut $crate::tc::Json<'_>) -> core::fmt::Result {
                $($(
                    $crate::qdisc::stats::Figure::write_json(
                        self.$field, stringify!($field), json,
                    )?;
                )+)+
                Ok(())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_holds_or_not_is_shown_if_it_does() {
        for (holds, shown) in [(true, " unresponsive"), (false, "")] {
            let mut text = alloc::string::String::new();
            holds.write("unresponsive", &mut text).unwrap();
            assert_eq!(text, shown);
        }
    }

    #[test]
    fn totals_of_several_queues_are_sums() {
        let totals = |n: u64| Totals {
            enqueued_packets: 100 * n,
            sent_packets: 70 * n,
            sent_bytes: 70_000 * n,
            dropped: core::array::from_fn(|reason| (reason as u64 + 1) * n),
            marked: 3 * n,
            overlimits: 5 * n,
        };
        let mut sum = totals(2);
        sum.join(&totals(3));
        assert_eq!(sum, totals(5));
        let of = |n, packets, bytes| Snapshot {
            totals: totals(n),
            backlog: Backlog { packets, bytes },
            detail: Detail::Fifo(()),
        };
        let mut whole = of(2, 4, 900);
        whole.join(&of(3, u32::MAX - 1, 50));
        assert_eq!(whole.totals, sum);
        assert_eq!(whole.backlog, Backlog { packets: u32::MAX, bytes: 950 });
        let count = DropReason::COUNT as u64;
        assert_eq!(sum.drops(), 5 * count * (count + 1) / 2);
        let dropped = [2; DropReason::COUNT];
        let came = Totals { enqueued_packets: 100, dropped, ..Totals::default() };
        assert_eq!(came.settled(10).sent_packets, 90 - 2 * count);
    }
}
