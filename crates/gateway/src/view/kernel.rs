//! Directions that the kernel shapes, as it tells of them.

use simnel_core::qdisc;

use super::{limit, of, per_second, tiers, LineView, Look, Span};
use crate::direction::Direction;
use crate::error::Error;
use crate::flows::LineEntry;
use crate::kernel::{shaped, Own, Shaped};

/// A direction that the kernel shapes.
#[derive(Clone, Debug)]
pub struct KernelEntry {
    /// The interface.
    pub dev: String,
    /// The direction.
    pub direction: Direction,
    /// Settings in `tc`'s words.
    pub config: String,
    /// Counters.
    pub common: qdisc::Common,
    /// Statistics of its own.
    pub own: Own,
}

impl KernelEntry {
    pub(super) fn all(interface: &str) -> Result<Vec<KernelEntry>, Error> {
        let entry = |shaped: Shaped| {
            Ok(KernelEntry {
                config: shaped.words()?,
                dev: shaped.interface,
                direction: shaped.direction,
                own: Own::of(&shaped.listed),
                common: shaped.listed.common,
            })
        };
        shaped(Some(interface))?.into_iter().map(entry).collect()
    }

    /// Its sojourn times at `now_ns`, if it has any.
    pub(super) fn line(&self, now_ns: u64) -> Option<LineEntry> {
        let sojourns = self.own.sojourns?;
        Some(LineEntry {
            dev: self.dev.clone(),
            direction: self.direction,
            now_ns,
            sojourn_ns: sojourns.last.0,
            sojourns: sojourns.counts.to_vec(),
            untracked: 0,
            evicted: 0,
        })
    }
}

impl Span<'_> {
    pub(super) fn kernel_line(self, now: &Look, entry: &KernelEntry) -> LineView {
        let direction = entry.direction;
        let before = self.before.and_then(|look| of(&look.kernel, direction, |e| e.direction));
        let old = before.unwrap_or(entry);
        let (common, past) = (&entry.common, &old.common);
        let ns = self.before.map_or(0, |look| now.at_ns.saturating_sub(look.at_ns));
        LineView {
            dev: entry.dev.clone(),
            direction,
            in_kernel: true,
            config: entry.config.clone(),
            limit_bps: limit(&entry.config),
            rate_bps: per_second(common.sent_bytes, past.sent_bytes, ns).saturating_mul(8),
            packets_per_s: per_second(common.sent_packets, past.sent_packets, ns),
            bytes: common.sent_bytes,
            packets: common.sent_packets,
            overlimits: common.overlimits,
            requeues: common.requeues,
            backlog_packets: common.backlog.packets,
            backlog_bytes: common.backlog.bytes,
            drops: common.drops,
            new_drops: common.drops.saturating_sub(past.drops),
            marks: entry.own.marks,
            new_marks: entry.own.marks.zip(old.own.marks).map(|(now, old)| now.saturating_sub(old)),
            delay: self.delay(now, direction),
            tiers: tiers(&entry.own.tins, &old.own.tins, ns),
            cpu_permille: None,
            headroom_bps: None,
            follows: None,
        }
    }
}
