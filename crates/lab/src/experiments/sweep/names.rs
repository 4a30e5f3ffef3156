//! Measures of a sweep in words: `groups.ping.application.added_ms.p99` is the added latency of
//! ping, p99, in ms.

/// Quantities whose words are not those of their key.
const WORDS: [(&str, &str); 12] = [
    ("added", "added latency"),
    ("added_there", "added latency there"),
    ("added_back", "added latency back"),
    ("sojourn", "time in the queue"),
    ("load", "page load"),
    ("chosen", "chosen rate"),
    ("achieved", "rate while fetching"),
    ("base_rtt", "base RTT"),
    ("jain", "Jain's index"),
    ("mos", "call quality (MOS)"),
    ("loss", "share lost"),
    ("ack_drops", "filtered ACKs"),
];

/// Units as the ends of keys, and as they are written.
const UNITS: [(&str, &str); 3] = [("mbps", "Mbit/s"), ("ms", "ms"), ("s", "s")];

/// Figures of a distribution.
const FIGURES: [(&str, &str); 6] = [
    ("n", "count"),
    ("mean", "mean"),
    ("p50", "median"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("max", "greatest"),
];

/// A measure in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The quantity: `added latency, p99`.
    pub quantity: String,
    /// The traffic, or the line.
    pub of: String,
    /// The unit; empty if it has none.
    pub unit: &'static str,
}

impl Words {
    /// The words of a measure; of a path of other form its own.
    pub fn of(path: &str) -> Words {
        let (head, figure) = match path.rsplit_once('.') {
            Some((head, end)) => match FIGURES.iter().find(|(key, _)| *key == end) {
                Some((_, words)) => (head, Some(*words)),
                None => (path, None),
            },
            None => (path, None),
        };
        let (owner, key) = head.rsplit_once('.').unwrap_or(("", head));
        let (key, unit) = UNITS
            .iter()
            .find_map(|(end, unit)| match key.strip_suffix(end)? {
                "" => Some(("rate", *unit)),
                short => Some((short.strip_suffix('_')?, *unit)),
            })
            .unwrap_or((key, ""));
        let known = WORDS.iter().find(|(known, _)| *known == key);
        let mut quantity =
            known.map_or_else(|| key.replace('_', " "), |(_, words)| (*words).into());
        if let Some(figure) = figure {
            quantity += ", ";
            quantity += figure;
        }
        let owner = owner.strip_suffix(".application").unwrap_or(owner);
        let of = match (owner.strip_prefix("groups."), owner.strip_prefix("lines.")) {
            (Some(group), _) => group.to_string(),
            (_, Some(direction)) => format!("the line {direction}"),
            _ => owner.to_string(),
        };
        Words { quantity, of, unit: if figure == Some("count") { "" } else { unit } }
    }

    /// All of it: `added latency of ping, p99, ms`.
    pub fn whole(&self) -> String {
        let (what, figure) = self.quantity.split_once(", ").unwrap_or((&self.quantity, ""));
        let of = if self.of.is_empty() { String::new() } else { format!(" of {}", self.of) };
        let parts = [format!("{what}{of}"), figure.into(), self.unit.into()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// The label of an axis.
    pub fn label(&self) -> String {
        match self.unit {
            "" => self.quantity.clone(),
            unit => format!("{} ({unit})", self.quantity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_have_words() {
        for (path, words) in [
            ("groups.ping.application.added_ms.p99", "added latency of ping, p99, ms"),
            ("groups.voip up.application.mos", "call quality (MOS) of voip up"),
            ("groups.ping v1.2.application.added_ms.p50", "added latency of ping v1.2, median, ms"),
            ("groups.bulk.goodput_mbps", "goodput of bulk, Mbit/s"),
            ("groups.bulk.sojourn_ms.n", "time in the queue of bulk, count"),
            ("lines.up.mbps", "rate of the line up, Mbit/s"),
            ("lines.down.longest_queue", "longest queue of the line down"),
            ("groups.film.application.stalled_s", "stalled of film, s"),
            ("groups.film.application.stalls", "stalls of film"),
            ("something", "something"),
        ] {
            assert_eq!(Words::of(path).whole(), words, "{path}");
        }
        assert_eq!(Words::of("lines.up.sojourn_ms.p99").label(), "time in the queue, p99 (ms)");
    }
}
